//! The session and its transaction: errors, interrupts, locks, rows.

pub(crate) mod argument;
pub(crate) mod descriptors;
pub(crate) mod encoding;
pub(crate) mod executor;
pub(crate) mod interrupts;
pub(crate) mod interval;
pub(crate) mod json;
pub(crate) mod lock;
pub(crate) mod names;
pub(crate) mod nodes;
pub(crate) mod progress;
pub(crate) mod refused_setting;
pub(crate) mod rethrow;
pub(crate) mod row;
pub(crate) mod server;
pub(crate) mod statement;
pub(crate) mod subtransaction;
pub(crate) mod timer;
