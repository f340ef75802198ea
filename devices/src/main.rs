//! A made-up block device for tests and benchmarks: `io_probe_device DIRECTORY GIB` serves the file
//! `DIRECTORY/disk` by FUSE, with the timing of a model. A loop device on that file, with direct I/O, is a
//! block device with its own readahead, scheduler and counters: see `device.sh`, and README.md for the
//! models.
//!
//! From the bottom up: [`request`], [`model`] (the arithmetic, without a clock), [`schedule`] (what is in
//! flight), [`control`] and [`server`].

mod control;
mod model;
mod request;
mod schedule;
mod server;
#[cfg(test)]
mod simulation;

use std::path::PathBuf;
use std::process::ExitCode;

/// The directory and the bytes that the arguments name.
fn arguments() -> Option<(PathBuf, u64)> {
    let mut arguments = std::env::args_os().skip(1);
    let directory = arguments.next()?.into();
    let gib: u64 = arguments.next()?.to_str()?.parse().ok()?;
    let bytes = gib.checked_mul(1 << 30).filter(|bytes| (1..1 << 50).contains(bytes))?;
    arguments.next().is_none().then_some((directory, bytes))
}

fn main() -> ExitCode {
    let Some((directory, bytes)) = arguments() else {
        eprintln!("usage: io_probe_device DIRECTORY GIB");
        return ExitCode::from(2);
    };
    match server::serve(&directory, bytes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{}: {e}", directory.display());
            ExitCode::FAILURE
        }
    }
}
