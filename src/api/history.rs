//! Runs that are kept: measured as one value, stored, and compared.

mod compare;
mod facts;
mod measure;
mod store;

pub(super) use self::compare::{Change, since_earlier};
pub(super) use self::facts::locate;
pub(super) use self::measure::beside;
