//! What a device is asked for.

/// Seconds since the device got its present model.
pub type Seconds = f64;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads bytes.
    Read,
    /// Writes bytes.
    Write,
    /// Makes what was written before durable.
    Flush,
}

/// A request; a flush has no length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What it does.
    pub kind: Kind,
    /// Where on the device it begins, in bytes.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

impl Request {
    /// Where it ends, in bytes.
    pub fn end(&self) -> u64 {
        self.offset + self.length
    }
}

/// Names a request while it is in flight.
pub type Ticket = u64;
