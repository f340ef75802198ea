//! The session and its transaction: errors, interrupts, locks, rows, settings.

pub(crate) mod argument;
pub(crate) mod descriptors;
pub(crate) mod encoding;
pub(crate) mod error_passage;
pub(crate) mod executor;
pub(crate) mod interrupts;
pub(crate) mod json;
pub(crate) mod lock;
pub(crate) mod progress;
pub(crate) mod reserve;
pub(crate) mod row;
pub(crate) mod server;
pub(crate) mod settings;
pub(crate) mod subtransaction;
