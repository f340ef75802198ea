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
pub(crate) mod rows;
pub(crate) mod server;
pub(crate) mod statement;
pub(crate) mod subtransaction;
pub(crate) mod timer;

pub(crate) use argument::{Elements, UpTo};
pub(crate) use encoding::Text;
pub(crate) use interval::SqlInterval;
pub(crate) use json::JsonbText;
pub(crate) use rows::Rows;

/// Does this when it is dropped, also by unwinding.
pub(crate) struct OnDrop<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
