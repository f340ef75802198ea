//! Measures storage from inside a process: timed reads with the tier that served them told apart,
//! and the facts of the device below.
//!
//! Nothing here knows PostgreSQL: the extension is one face of it, tests and benchmarks are others.
//!
//! The top-level modules. Code in one uses that one and those further down in this list.
//!
//! - [`measure`]: scans, random fetches, pings, page times, readahead windows, syncs;
//!   and the tiers that served them.
//! - [`files`]: a relation's files, their holes, what the OS cache has of them, scratch files.
//! - [`engine`]: issues reads, several at a time.
//! - [`machine`]: devices and their counters, control groups, processors, pressure; what a run cost all of
//!   them.
//! - [`run`]: clock, budget, stopwatch, order, turns, worker threads.
//! - [`stats`]: from times to figures and their intervals.

#[cfg(not(target_os = "linux"))]
compile_error!("pg_io_probe measures through Linux kernel interfaces and builds on Linux only");

pub mod engine;
mod error;
pub mod files;
#[cfg(any(test, fuzzing))]
pub mod hostile;
pub mod machine;
pub mod measure;
pub mod run;
pub mod stats;

pub use error::{Error, Result};
