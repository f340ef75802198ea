//! From what was measured to what a setting of PostgreSQL should be; the tree of an EXPLAIN, and which node
//! read which block; whether two runs differ. Knows PostgreSQL, but needs no server.
//!
//! Formulas only: nothing here reads, writes or knows where a value is set. What is set stays unless another
//! value is better by more than 5 % and *beyond the noise* of the measured times. So "keep what you have" is
//! the usual answer, and where the figures can't carry any, there is none.
//!
//! # Limitations and caveats
//! - A value that was not measured is not recommended: the best of a coarse ladder is found, not the best of
//!   all.
//! - Among many values one may look better by luck. Repeat before you change anything.

pub mod compare;
pub mod flushes;
#[cfg(any(test, fuzzing))]
pub mod hostile;
pub mod io_methods;
pub mod page_costs;
pub mod plan;
mod plateau;
pub mod report;
pub mod served;
pub mod sustained;
pub mod vacuum;
mod wal;

pub use plateau::{ByRatios, Choice, Plateau, SEEMS_WORSE, first_as_good, plateau};
pub use wal::{SyncMethod, WriteCache, sync_method};
