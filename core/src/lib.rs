//! Measures storage from inside a process: timed reads with the tier that served them told apart,
//! and the facts of the device below.
//!
//! Nothing here knows PostgreSQL: the extension is one face of it, tests and benchmarks are others.
//! Work flows one way. A [`source`] names the files, [`extents`] says where they hold data, [`cache`] what the
//! kernel already keeps of it, an [`engine`] issues the reads. [`scan`] reads in order, [`random`] in an [`order`]
//! drawn from a seed, [`ping`] now and then; what writes does so in a [`scratch`] file, and [`mod@sync`] tells what it
//! costs to make that durable; each under the [`pace`] that the caller set. [`stats`] turns times into figures, a
//! [`witness`] says what it cost the [`device`] and in whose [`account`], and [`tiers`] who served it. [`cost`] and [`advice`]
//! say what follows from it for the server's settings, and [`mod@compare`] whether two runs differ. [`host`] names the
//! machine.

#[cfg(not(target_os = "linux"))]
compile_error!("pg_io_probe measures through Linux kernel interfaces and builds on Linux only");

pub mod account;
pub mod advice;
pub mod cache;
pub mod cgroup;
pub mod clock;
pub mod compare;
pub mod cost;
pub mod cpu;
mod crew;
pub mod device;
pub mod direct_io;
pub mod engine;
mod error;
pub mod extents;
#[cfg(test)]
mod golden;
pub mod host;
#[cfg(any(test, fuzzing))]
pub mod hostile;
pub mod iostat;
pub mod memory;
pub mod order;
pub mod pace;
pub mod ping;
pub mod plan;
pub mod pressure;
pub mod quiesce;
pub mod random;
pub mod readahead;
pub mod scan;
pub mod scratch;
pub mod source;
pub mod stats;
pub mod sync;
pub mod tiers;
pub mod waits;
pub mod witness;
mod writeback;

pub use error::{Error, Result};
