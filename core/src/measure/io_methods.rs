//! What a scan takes when its reads are made in another way than the server's present one.
//!
//! From 18 on the server reads by one of three methods, `io_method`, and only a restart changes it. So the
//! method is emulated in this process: the reads of a scan, their order and how far they run ahead are given,
//! each is made as the method makes it, and each block is worked on as a scan works on it.
//!
//! - `sync`: the scan reads. What lies ahead with gaps it announces to the kernel.
//! - `worker`: threads read for it, each with a descriptor of its own, as I/O workers have. They are woken by
//!   a queue, they verify what they have read, and they wake the scan.
//! - `io_uring`: the kernel reads for it. As the server does, the scan has the kernel's own threads copy once
//!   more than four reads are in flight.
//!
//! Both clocks are read: wall clock, and processor time of the process with all its threads, so that a method
//! that waits for the device can be told from one that waits for a processor.
//!
//! # Limitations and caveats
//! - Threads share the process's memory; I/O workers are processes, which costs a little more to switch to.
//! - The work on a block is a computation of a given length, and a look at each line of its memory.
//! - A stream that begins has one read in flight, and twice as many after each, up to its depth. The
//!   server's streams also look less far ahead where they find blocks in shared buffers.
//!
//! Sources: `method_sync.c`, `method_worker.c`, `method_io_uring.c`, `read_stream.c` and `checksum_impl.h` of
//! PostgreSQL 18.

mod turns;

use std::ops::Range;
use std::sync::Arc;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

pub use self::turns::{ByServer, Compared, Contender, MethodsRun, ReadTurn, SCANS, compare};
use crate::engine::{Engine, Pread, Threads, Uring, expect_full, look_at};
use crate::files::{Access, OpenFile, RelationFiles};
use crate::run::clock::{Clock, Monotonic, cpu_of_process_ns};
use crate::{Error, Result};

/// How reads are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By the scan, one at a time.
    Sync,
    /// By so many workers.
    Worker(u32),
    /// By the kernel.
    IoUring,
}

/// What a scan reads, and what it does with it.
#[derive(Debug, Clone)]
pub struct Stream {
    /// The reads, in order: none goes from one segment into another.
    pub reads: Vec<Range<u64>>,
    /// Most reads in flight, 1 or more.
    pub depth: usize,
    /// Are there gaps between them, so that the kernel does not foresee them?
    pub has_gaps: bool,
    /// Processor time of each block, in steps of [`Work`].
    pub steps: u64,
    /// Is each block verified?
    pub verifies: bool,
}

impl Stream {
    /// Blocks of all reads.
    pub fn blocks(&self) -> u64 {
        self.reads.iter().map(|read| read.end - read.start).sum()
    }
}

/// What the reads of a stream took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Wall clock in nanoseconds.
    pub wall_ns: u64,
    /// Processor time of the process, with all threads, in nanoseconds.
    pub cpu_ns: u64,
}

/// A method, ready to read.
pub struct Emulation<'a> {
    source: &'a RelationFiles,
    method: Method,
    engine: Box<dyn Engine>,
    /// Descriptors: one for each worker.
    files: Vec<RelationFiles>,
    slots: usize,
}

/// Reads in flight from which on the server leaves more of them to the kernel's threads.
const LEFT_TO_KERNEL: usize = 4;

impl<'a> Emulation<'a> {
    /// Of streams of at most `depth` reads in flight, each of at most `request` bytes.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the kernel refuses io_uring; others if there is no memory or no thread.
    pub fn new(
        source: &'a RelationFiles,
        method: Method,
        depth: usize,
        request: usize,
        verifies: bool,
    ) -> Result<Self> {
        let depth = depth.max(1);
        let engine: Box<dyn Engine> = match method {
            Method::Sync => Box::new(Pread::new(request)?),
            Method::Worker(workers) => {
                Box::new(Threads::serving(workers as usize, depth, request, verifies)?)
            }
            Method::IoUring => Box::new(Uring::with_background(depth, request, LEFT_TO_KERNEL)?),
        };
        let descriptors = if let Method::Worker(workers) = method { workers.max(1) } else { 1 };
        let slots = if method == Method::Sync { 1 } else { depth };
        Ok(Self { source, method, engine, files: (0..descriptors).map(|_| source.afresh()).collect(), slots })
    }

    /// Opens what the stream reads, so that opening is not timed.
    fn opened(&self, stream: &Stream) -> Result<()> {
        for read in &stream.reads {
            for files in &self.files {
                files.open(self.source.segment(read.start), Access::Buffered)?;
            }
        }
        Ok(())
    }

    /// Reads all of a stream. `looks` is called while it waits, and after each read with the nanoseconds for
    /// which that was waited for; it may unwind.
    ///
    /// # Errors
    /// Those of the reads.
    pub fn read(&mut self, stream: &Stream, looks: &mut dyn FnMut(Option<u64>)) -> Result<Spent> {
        self.opened(stream)?;
        let (began, cpu) = (Monotonic.now(), cpu_of_process_ns());
        let mut arrived = vec![false; stream.reads.len()];
        let (mut begun, mut ahead) = (0, 1);
        for current in 0..stream.reads.len() {
            let until = (current + ahead).min(stream.reads.len());
            while begun < until {
                self.begin(stream, begun, begun > current)?;
                begun += 1;
            }
            let waits = Monotonic.now();
            if self.method == Method::Sync {
                self.submit(stream, current)?;
            }
            while !arrived[current] {
                let completion = self.engine.wait(&mut || looks(None))?;
                let index = self.index_of(completion.slot, current);
                let (open, offset, bytes) = self.place(stream, index)?;
                expect_full(completion, &open.path, offset, bytes)?;
                arrived[index] = true;
            }
            looks(Some(Monotonic.now() - waits));
            self.work(stream, current);
            ahead = (2 * ahead).min(stream.depth.max(1));
        }
        Ok(Spent { wall_ns: Monotonic.now() - began, cpu_ns: cpu_of_process_ns() - cpu })
    }

    /// The read of a slot, if `current` is the oldest in flight.
    fn index_of(&self, slot: usize, current: usize) -> usize {
        current + (slot + self.slots - current % self.slots) % self.slots
    }

    fn place(&self, stream: &Stream, index: usize) -> Result<(Arc<OpenFile>, u64, usize)> {
        let read = &stream.reads[index];
        let files = &self.files[index % self.files.len()];
        let open = files.open(self.source.segment(read.start), Access::Buffered)?;
        let bytes = (read.end - read.start) as usize * self.source.block_size() as usize;
        Ok((open, self.source.offset(read.start), bytes))
    }

    fn begin(&mut self, stream: &Stream, index: usize, is_ahead: bool) -> Result<()> {
        if self.method != Method::Sync {
            return self.submit(stream, index);
        }
        if is_ahead && stream.has_gaps {
            let (open, offset, bytes) = self.place(stream, index)?;
            let advice = PosixFadviseAdvice::POSIX_FADV_WILLNEED;
            posix_fadvise(&open.file, offset as i64, bytes as i64, advice)
                .map_err(|e| Error::io("read ahead in file", &open.path, e))?;
        }
        Ok(())
    }

    fn submit(&mut self, stream: &Stream, index: usize) -> Result<()> {
        let (open, offset, bytes) = self.place(stream, index)?;
        self.engine.submit(index % self.slots, &open.file, offset, bytes);
        Ok(())
    }

    /// What a scan does with the blocks of a read.
    fn work(&mut self, stream: &Stream, index: usize) {
        let block_size = self.source.block_size() as usize;
        let read = &stream.reads[index];
        let verifies = stream.verifies && !matches!(self.method, Method::Worker(_));
        for block in 0..(read.end - read.start) as usize {
            let (slot, at) = (index % self.slots, block * block_size);
            std::hint::black_box(look_at(self.engine.bytes(slot, at, block_size), verifies));
            std::hint::black_box(Work::steps(stream.steps));
        }
    }
}

/// A computation of a known length: what the processor does for a block, apart from reading it. It takes its
/// time of the processor also if others want that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Nanoseconds of a step.
    step_ns: f64,
}

impl Work {
    /// Measures how long a step takes.
    pub fn measured() -> Self {
        const STEPS: u64 = 20_000;
        const TIMES: usize = 10;
        let time = |_| {
            let began = Monotonic.now();
            std::hint::black_box(Self::steps(STEPS));
            (Monotonic.now() - began) as f64 / STEPS as f64
        };
        Self { step_ns: (0..TIMES).map(time).fold(f64::INFINITY, f64::min) }
    }

    /// How many steps take so many nanoseconds, a tenth of a millisecond at most: of a bloated table a tuple
    /// takes long, and a clock that is too coarse sees no step.
    pub fn of(self, ns: f64) -> u64 {
        (ns.min(1e5) / self.step_ns.max(0.1)) as u64
    }

    /// Computes so many steps.
    pub fn steps(steps: u64) -> u64 {
        (0..steps).fold(std::hint::black_box(1), |x: u64, step| x.wrapping_mul(0x5851_f42d_4c95_7f2d) ^ step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::relation_files::fixture::Relation;

    const BLOCKS: u64 = 512;

    fn methods(relation: &Relation) -> Vec<Emulation<'_>> {
        let all = [Method::Sync, Method::Worker(1), Method::Worker(3), Method::IoUring];
        let open = |method| match Emulation::new(&relation.source, method, 4, 4 * 8192, true) {
            Ok(emulation) => Some(emulation),
            Err(Error::Unsupported { .. }) => None,
            Err(error) => panic!("{error}"),
        };
        all.into_iter().filter_map(open).collect()
    }

    fn stream(reads: Vec<Range<u64>>, has_gaps: bool) -> Stream {
        Stream { reads, depth: 4, has_gaps, steps: 10, verifies: true }
    }

    #[test]
    fn each_method_reads_all_and_nothing_else_but_ahead() {
        let relation = Relation::of_segments(100, BLOCKS, 0..BLOCKS);
        for mut emulation in methods(&relation) {
            // Reads of one block and of four, and some at the end of a segment.
            let reads: Vec<Range<u64>> =
                (0..BLOCKS / 8).map(|read| 8 * read..8 * read + 1 + 3 * (read % 2)).collect();
            let stream = stream(reads, true);
            relation.evict();
            let spent = emulation.read(&stream, &mut |_| ()).expect("read");
            let method = emulation.method;
            for read in &stream.reads {
                let cached = relation.source.cached_bytes(read.clone()).expect("known");
                assert_eq!(cached, (read.end - read.start) * 8192, "{method:?} {read:?}");
            }
            assert!(spent.cpu_ns > 0 && spent.wall_ns > 0, "{method:?} {spent:?}");
            assert_eq!(stream.blocks(), BLOCKS / 16 * 5);
            // Once more, and shorter than its depth.
            emulation.read(&stream, &mut |_| ()).expect("read again");
            let short = Stream { reads: std::iter::once(3..4).collect(), ..stream };
            emulation.read(&short, &mut |_| ()).expect("read one");
        }
    }

    #[test]
    fn slots_tell_reads() {
        let relation = Relation::new(1, 0..1);
        let emulation = Emulation::new(&relation.source, Method::Worker(1), 3, 8192, false).expect("threads");
        for current in 0..7 {
            for index in current..current + 3 {
                assert_eq!(emulation.index_of(index % 3, current), index);
            }
        }
    }

    #[test]
    fn work_takes_as_long_as_it_should() {
        let work = Work::measured();
        assert_eq!(work.of(0.0), 0);
        let (one, ten) = (work.of(1e4), work.of(1e5));
        assert!(one > 0 && (9 * one..=11 * one).contains(&ten), "{one} {ten}");
        assert_ne!(Work::steps(3), Work::steps(4));
    }
}
