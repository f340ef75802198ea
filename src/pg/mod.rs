//! The server's side: everything that calls PostgreSQL, and all that is unsafe about it.
//!
//! Nothing here measures. ERROR arrives as a panic that unwinds, FATAL unwinds nothing; so what must
//! not outlive a call is either the transaction's (locks, relations, pins) or registered for exit.

pub(crate) mod argument;
pub(crate) mod buffers;
pub(crate) mod catalog;
mod compat;
mod descriptors;
pub(crate) mod encoding;
mod error_passage;
mod executor;
pub(crate) mod explain;
mod expressions;
pub(crate) mod fetch;
pub(crate) mod history;
pub(crate) mod indexes;
pub(crate) mod interrupts;
pub(crate) mod json;
pub(crate) mod lock;
mod names;
pub(crate) mod objects;
pub(crate) mod pages;
pub(crate) mod planner;
pub(crate) mod progress;
pub(crate) mod query;
pub(crate) mod relation;
mod reserve;
pub(crate) mod row;
pub(crate) mod server;
pub(crate) mod settings;
mod subtransaction;
pub(crate) mod tablespace;
pub(crate) mod tuples;
pub(crate) mod wal;

pub(crate) use error_passage::{Texts, answer, warn};
pub(crate) use server::{reserve_setting_prefix, statement_start};
