//! The server's side: everything that calls PostgreSQL, and all that is unsafe about it.
//!
//! Nothing here measures. ERROR arrives as a panic that unwinds, FATAL unwinds nothing; so what must
//! not outlive a call is either the transaction's (locks, relations, pins) or registered for exit.

pub(crate) mod backend;
pub(crate) mod catalog;
mod compat;
pub(crate) mod history;
pub(crate) mod settings;
pub(crate) mod storage;
