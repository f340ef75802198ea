//! One call of a probe: its rights, its lock, its share of the statement's time, and the relation that it measures.

pub(crate) mod admission;
pub(crate) mod arguments;
pub(crate) mod measured_times;
pub(crate) mod options;
pub(crate) mod probed_relation;
pub(crate) mod statement;
