//! Issuing reads, several at a time.
//!
//! An engine owns one aligned buffer per slot and keeps at most one request in each. Three of them:
//! [`pread`](Pread) for depth 1, io_uring, and threads for where io_uring is refused (default
//! container profiles refuse it). What comes back is thrown away: pages read behind the server's
//! back may be torn or stale.
//!
//! An engine may be abandoned with requests in flight: see [`crate::run::shutdown`].

mod buffers;
mod pread;
mod threads;
pub(crate) mod uring;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

pub(crate) use buffers::{Buffers, look_at};
pub use pread::Pread;
pub(crate) use pread::pread;
pub use threads::Threads;
pub use uring::{Uring, UringRefusal, refusal as io_uring_refusal};

use crate::{Error, Result};

/// A finished request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The slot it was submitted in, idle again.
    pub slot: usize,
    /// Bytes read, or the errno.
    pub result: Result<usize, i32>,
}

/// Reads with several requests in flight, one a slot at most.
pub trait Engine {
    /// Starts reading `len` bytes at `offset` into the buffer of `slot`.
    ///
    /// # Panics
    /// When the slot is busy or out of range, or `len` exceeds the buffer: a bug of the caller.
    fn submit(&mut self, slot: usize, file: &Arc<File>, offset: u64, len: usize) {
        self.submit_at(slot, 0, file, offset, len);
    }

    /// Like [`Engine::submit`], but into the buffer from byte `at` on, a multiple of the page size.
    ///
    /// # Panics
    /// As for [`Engine::submit`].
    fn submit_at(&mut self, slot: usize, at: usize, file: &Arc<File>, offset: u64, len: usize);

    /// Waits for a request to finish. `idle` is called whenever the wait is interrupted, and may
    /// unwind out of it.
    ///
    /// # Panics
    /// When nothing is in flight: a bug of the caller.
    fn wait(&mut self, idle: &mut dyn FnMut()) -> Result<Completion>;

    /// What was read into the buffer of `slot`: `len` bytes of it, from byte `at` on.
    ///
    /// # Panics
    /// When the slot is busy or out of range, or the buffer has fewer bytes: a bug of the caller.
    fn bytes(&self, slot: usize, at: usize, len: usize) -> &[u8];
}

/// The kinds of engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One blocking `pread(2)` at a time.
    Pread,
    /// `io_uring(7)`.
    IoUring,
    /// A thread a slot, each with a blocking `pread(2)`.
    Threads,
}

impl Kind {
    /// Its name in results and options.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Pread => "pread",
            Kind::IoUring => "io_uring",
            Kind::Threads => "threads",
        }
    }
}

/// An engine, and why it is not the one that would be best.
pub struct Opened {
    /// Its kind.
    pub kind: Kind,
    /// The engine.
    pub engine: Box<dyn Engine>,
    /// One short sentence when io_uring was refused.
    pub note: Option<String>,
}

impl Opened {
    fn of(kind: Kind, depth: usize, request: usize) -> Result<Self> {
        let engine: Box<dyn Engine> = match kind {
            Kind::Pread => Box::new(Pread::new(request)?),
            Kind::IoUring => Box::new(Uring::new(depth, request)?),
            Kind::Threads => Box::new(Threads::new(depth, request)?),
        };
        Ok(Self { kind, engine, note: None })
    }
}

/// Opens an engine of `depth` slots of `request` bytes each: `kind`, or the best that this kernel
/// allows: pread at depth 1, else io_uring, else threads.
pub fn open(kind: Option<Kind>, depth: usize, request: usize) -> Result<Opened> {
    match kind {
        Some(kind) => Opened::of(kind, depth, request),
        None if depth == 1 => Opened::of(Kind::Pread, depth, request),
        None => match Opened::of(Kind::IoUring, depth, request) {
            Err(Error::Unsupported { why, .. }) => {
                let note = Some(format!("io_uring is not available: {why}"));
                Ok(Opened { note, ..Opened::of(Kind::Threads, depth, request)? })
            }
            opened => opened,
        },
    }
}

/// Is a ring of so many entries to be used, where the user wants this kind, or the best? It is one whose
/// answers a thread may wait for until a certain time, which takes Linux 5.11.
///
/// # Errors
/// [`Error::Unsupported`] if a ring is wanted, and refused.
pub fn uses_ring(kind: Option<Kind>, entries: usize) -> Result<bool> {
    if matches!(kind, Some(Kind::Pread | Kind::Threads)) {
        return Ok(false);
    }
    match uring::waits_refusal(entries as u32) {
        None => Ok(true),
        Some(_) if kind.is_none() => Ok(false),
        Some(why) => Err(Error::Unsupported { what: "io_uring", why: why.to_string() }),
    }
}

/// Turns a completion into bytes read in full, or the error that names file and offset.
pub fn expect_full(completion: Completion, path: &Path, offset: u64, wanted: usize) -> Result<()> {
    match completion.result {
        Ok(got) if got == wanted => Ok(()),
        Ok(got) => Err(Error::ShortRead { path: path.to_owned(), offset, wanted, got }),
        Err(errno) => Err(Error::io_at("read file", path, offset, std::io::Error::from_raw_os_error(errno))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const REQUEST: usize = 8192;

    fn file(requests: usize) -> (tempfile::NamedTempFile, Arc<File>) {
        let mut named = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        named.write_all(&vec![1; REQUEST * requests]).expect("written");
        let file = Arc::new(File::open(named.path()).expect("opened"));
        (named, file)
    }

    fn engines(depth: usize) -> Vec<Opened> {
        let mut engines = vec![open(Some(Kind::Threads), depth, REQUEST).expect("threads")];
        match open(Some(Kind::IoUring), depth, REQUEST) {
            Ok(opened) => engines.push(opened),
            Err(e) => eprintln!("not tested here: {e}"),
        }
        if depth == 1 {
            engines.push(open(Some(Kind::Pread), depth, REQUEST).expect("pread"));
        }
        engines
    }

    #[test]
    fn every_request_completes_once() {
        let (_named, file) = file(64);
        for depth in [1, 4, 32] {
            for Opened { kind, mut engine, .. } in engines(depth) {
                let mut completed = 0;
                let mut next = 0;
                for slot in 0..depth {
                    engine.submit(slot, &file, (next * REQUEST) as u64, REQUEST);
                    next += 1;
                }
                while completed < next {
                    let done = engine.wait(&mut || ()).expect("a completion");
                    assert_eq!(done.result, Ok(REQUEST), "{kind:?}");
                    completed += 1;
                    if next < 64 {
                        engine.submit(done.slot, &file, (next * REQUEST) as u64, REQUEST);
                        next += 1;
                    }
                }
                assert_eq!(completed, 64);
            }
        }
    }

    #[test]
    fn short_reads_and_errors_surface() {
        let (named, file) = file(1);
        for Opened { kind, mut engine, .. } in engines(1) {
            engine.submit(0, &file, 4096, REQUEST);
            let done = engine.wait(&mut || ()).expect("a completion");
            assert_eq!(done.result, Ok(4096), "{kind:?}");
            let error = expect_full(done, named.path(), 4096, REQUEST).expect_err("short");
            assert!(error.to_string().contains("at offset 4096: read only 4096 of 8192 bytes"), "{error}");

            let directory = Arc::new(File::open("/").expect("opened"));
            engine.submit(0, &directory, 0, REQUEST);
            let done = engine.wait(&mut || ()).expect("a completion");
            assert_eq!(done.result, Err(libc::EISDIR), "{kind:?}");
        }
    }

    #[test]
    fn engines_can_be_dropped_and_shut_down_in_flight() {
        let (_named, file) = file(32);
        for Opened { mut engine, .. } in engines(16) {
            for slot in 0..16 {
                engine.submit(slot, &file, (slot * REQUEST) as u64, REQUEST);
            }
            drop(engine);
        }
        let mut abandoned = engines(16);
        for Opened { engine, .. } in &mut abandoned {
            for slot in 0..16 {
                engine.submit(slot, &file, (slot * REQUEST) as u64, REQUEST);
            }
        }
        std::mem::forget(abandoned);
        crate::run::shutdown::all();
    }
}
