//! What a load sends: reads of blocks of a relation, writes to a scratch file.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

use io_uring::{opcode, squeue, types};

use super::RingRequests;
use crate::engine::{Buffers, Completion, expect_full, pread};
use crate::files::direct_io;
use crate::files::page_cache::ResidencyMethod;
use crate::files::scratch::Scratch;
use crate::measure::content::Content;
use crate::measure::random::{FetchOrder, Found};
use crate::run::budget::{Budget, Outcome, stop_if};
use crate::run::clock::Clock;
use crate::run::memory;
use crate::run::order::Permutation;
use crate::{Error, Result};

/// Requests of one kind.
pub trait Requests: Send + Sync {
    /// Sends the request of this number, by this worker, and waits for its answer.
    ///
    /// # Errors
    /// Those of the system call.
    fn make(&self, number: u64, worker: usize) -> Result<()>;

    /// Bytes of each.
    fn bytes(&self) -> u64;

    /// How a ring may send them, if it may.
    fn by_ring(&self) -> Option<&dyn RingRequests> {
        None
    }
}

/// Reads of blocks in random order, or of runs of blocks in their order, past the page cache; when all have
/// been read, they begin again.
pub struct BlockReads {
    places: Vec<Place>,
    /// Of the segments.
    paths: Vec<PathBuf>,
    /// Bytes of a read.
    length: usize,
    /// Blocks of a read.
    blocks_each: u64,
    buffers: Buffers,
}

/// Where a block is.
#[derive(Clone)]
struct Place {
    file: Arc<File>,
    offset: u64,
    segment: u32,
}

impl BlockReads {
    /// Most blocks that are known beforehand: a GiB, and 3 MiB of memory.
    pub const MOST: u64 = 1 << 17;

    /// The first blocks of an order that hold data, to be read by so many workers. None if none does. Their
    /// files stay open.
    ///
    /// # Errors
    /// Those of opening files and of looking for holes, and a reason to stop.
    pub fn of(
        fetch_order: &mut FetchOrder<'_>,
        workers: usize,
        budget: &mut Budget<'_>,
    ) -> Outcome<Option<Self>> {
        let source = fetch_order.source();
        let block_size = u64::from(source.block_size());
        let mut places = memory::list_of(Self::MOST.min(source.blocks()) as usize)?;
        while (places.len() as u64) < Self::MOST {
            stop_if(budget.poll())?;
            fetch_order.prepare(budget)?;
            let Some(fetch) = fetch_order.hand_out(budget)? else { break };
            if fetch.found == Found::Hole {
                continue;
            }
            // It is read later, and not once.
            budget.refund(block_size);
            let located = fetch_order.locate(fetch.block)?;
            let segment = source.segment(fetch.block);
            places.push(Place { file: Arc::clone(&located.file), offset: located.offset, segment });
        }
        let paths = (0..source.segments()).map(|segment| source.path(segment)).collect();
        let buffers = Buffers::new(workers, block_size as usize)?;
        let reads = Self { places, paths, length: block_size as usize, blocks_each: 1, buffers };
        Ok((!reads.places.is_empty()).then_some(reads))
    }

    /// All blocks of a scratch file, in a random order of this seed, to be read by so many workers. None if
    /// it has none.
    ///
    /// # Errors
    /// Those of opening it without the page cache, and of memory.
    pub fn of_scratch(scratch: &Scratch, block_size: u32, seed: u64, workers: usize) -> Result<Option<Self>> {
        let file = Arc::new(scratch.open(libc::O_DIRECT)?);
        direct_io::check(&file, ResidencyMethod::of(&file), block_size)?;
        let order = Permutation::new((scratch.size() / u64::from(block_size)).min(Self::MOST), seed);
        let mut places = memory::list_of(order.len() as usize)?;
        places.extend((0..order.len()).map(|number| {
            let offset = order.at(number) * u64::from(block_size);
            Place { file: Arc::clone(&file), offset, segment: 0 }
        }));
        let length = block_size as usize;
        let buffers = Buffers::new(workers, length)?;
        let paths = vec![scratch.directory().to_owned()];
        let reads = Self { places, paths, length, blocks_each: 1, buffers };
        Ok((!reads.places.is_empty()).then_some(reads))
    }

    /// Reads the blocks in runs of `length` bytes, by so many workers, in their order or in a random one of
    /// this seed. What makes no such run is left out; None if nothing makes one.
    ///
    /// # Errors
    /// There is no memory for the buffers.
    pub fn in_runs(mut self, length: usize, random: Option<u64>, workers: usize) -> Result<Option<Self>> {
        let of_run = (length / self.length).max(1);
        let block_size = self.length as u64;
        self.places.sort_unstable_by_key(|place| (place.segment, place.offset));
        let next_to =
            |one: &Place, next: &Place| (one.segment, one.offset + block_size) == (next.segment, next.offset);
        let mut starts = Vec::new();
        for run in self.places.chunk_by(next_to) {
            starts.extend(run.chunks_exact(of_run).map(|blocks| blocks[0].clone()));
        }
        if let Some(seed) = random {
            let order = Permutation::new(starts.len() as u64, seed);
            starts = (0..starts.len() as u64).map(|place| starts[order.at(place) as usize].clone()).collect();
        }
        let (length, blocks_each) = (of_run * self.length, of_run as u64);
        let buffers = Buffers::new(workers, length)?;
        let reads = Self { places: starts, length, blocks_each, buffers, ..self };
        Ok((!reads.places.is_empty()).then_some(reads))
    }

    /// How many blocks it reads before it begins again.
    pub fn blocks(&self) -> u64 {
        self.places.len() as u64 * self.blocks_each
    }
}

impl BlockReads {
    fn place(&self, number: u64) -> &Place {
        &self.places[(number % self.places.len() as u64) as usize]
    }
}

impl Requests for BlockReads {
    fn make(&self, number: u64, worker: usize) -> Result<()> {
        let Place { file, offset, .. } = self.place(number);
        let buffer = self.buffers.slot_at(worker, 0, self.length);
        let result = loop {
            match pread(file, buffer, self.length, *offset) {
                Err(libc::EINTR) => {}
                result => break result,
            }
        };
        self.judge(number, result)
    }

    fn bytes(&self) -> u64 {
        self.length as u64
    }

    fn by_ring(&self) -> Option<&dyn RingRequests> {
        Some(self)
    }
}

impl RingRequests for BlockReads {
    fn entry(&self, number: u64, slot: usize) -> squeue::Entry {
        let Place { file, offset, .. } = self.place(number);
        let buffer = self.buffers.slot_at(slot, 0, self.length);
        opcode::Read::new(types::Fd(file.as_raw_fd()), buffer, self.length as u32).offset(*offset).build()
    }

    fn judge(&self, number: u64, result: Result<usize, i32>) -> Result<()> {
        let Place { offset, segment, .. } = self.place(number);
        expect_full(Completion { slot: 0, result }, &self.paths[*segment as usize], *offset, self.length)
    }
}

/// Writes to a scratch file.
pub struct ScratchWrites {
    scratch: Arc<Scratch>,
    file: File,
    /// None: one behind the other.
    order: Option<Permutation>,
    places: u64,
    length: u32,
    content: Arc<Content>,
    syncs: bool,
}

impl ScratchWrites {
    /// Writes of `length` bytes each through a descriptor with these flags, in an order of this seed or one
    /// behind the other; `syncs`: each waits until it is durable.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where such writes can't go past the page cache, if the flags want that.
    pub fn new(
        scratch: Arc<Scratch>,
        flags: i32,
        length: u32,
        random: Option<u64>,
        syncs: bool,
    ) -> Result<Self> {
        let content = Arc::new(Content::new(length as usize)?);
        Self::of(content, scratch, flags, length, random, syncs)
    }

    /// Such writes, of a content that others write as well.
    ///
    /// # Errors
    /// As those of `new`.
    pub(in crate::measure) fn of(
        content: Arc<Content>,
        scratch: Arc<Scratch>,
        flags: i32,
        length: u32,
        random: Option<u64>,
        syncs: bool,
    ) -> Result<Self> {
        let file = scratch.open(flags)?;
        if flags & libc::O_DIRECT != 0 {
            direct_io::check(&file, ResidencyMethod::of(&file), length)?;
        }
        let places = scratch.size() / u64::from(length);
        if places == 0 {
            let why = format!("the scratch file has fewer than {length} bytes");
            return Err(Error::Unsupported { what: "a write of this size", why });
        }
        let order = random.map(|seed| Permutation::new(places, seed));
        Ok(Self { scratch, file, order, places, length, content, syncs })
    }

    /// Makes the write of this number, without a sync. Returns its place, counted in writes, and what the
    /// system call took in nanoseconds.
    pub(in crate::measure) fn timed(&self, number: u64, clock: &dyn Clock) -> Result<(u64, u64)> {
        let (offset, data) = self.write(number);
        let started = clock.now();
        self.scratch.write(&self.file, data, offset)?;
        Ok((offset / u64::from(self.length), clock.now() - started))
    }

    /// Where the write of this number goes to, in bytes, and what it writes.
    fn write(&self, number: u64) -> (u64, &[u8]) {
        let index = number % self.places;
        let place = self.order.as_ref().map_or(index, |order| order.at(index));
        let length = u64::from(self.length);
        (place * length, self.content.at(number.wrapping_mul(length), self.length as usize))
    }
}

impl Requests for ScratchWrites {
    fn make(&self, number: u64, _worker: usize) -> Result<()> {
        let (offset, data) = self.write(number);
        self.scratch.write(&self.file, data, offset)?;
        if self.syncs {
            let synced = self.file.sync_data();
            synced.map_err(|e| self.scratch.failed("fdatasync scratch file in directory", None, e))?;
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.length.into()
    }

    fn by_ring(&self) -> Option<&dyn RingRequests> {
        (!self.syncs).then_some(self)
    }
}

impl RingRequests for ScratchWrites {
    fn entry(&self, number: u64, _slot: usize) -> squeue::Entry {
        let (offset, data) = self.write(number);
        opcode::Write::new(types::Fd(self.file.as_raw_fd()), data.as_ptr(), self.length)
            .offset(offset)
            .build()
    }

    fn judge(&self, number: u64, result: Result<usize, i32>) -> Result<()> {
        let (offset, data) = self.write(number);
        self.scratch.judge_write(data.len(), offset, result.map_err(io::Error::from_raw_os_error))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::files::RelationFiles;
    use crate::measure::load::{self, Pace, Reached, Stream};
    use crate::measure::random::Look;
    use crate::run::clock::Monotonic;

    const BLOCK: u32 = 8192;

    /// Reads of a file of 16 blocks.
    fn reads(directory: &tempfile::TempDir, workers: usize) -> (RelationFiles, BlockReads) {
        let source = RelationFiles::new(directory.path().join("1"), BLOCK, 16, 16);
        std::fs::write(source.path(0), vec![1; 16 * BLOCK as usize]).expect("written");
        let mut should_stop = || None;
        let mut budget = Budget::unlimited(&Monotonic, &mut should_stop);
        let mut order = FetchOrder::new(&source, Permutation::new(16, 7), 0, Look::Never);
        let reads = BlockReads::of(&mut order, workers, &mut budget).ok().flatten().expect("blocks");
        drop(order);
        (source, reads)
    }

    fn run(reads: BlockReads, workers: usize, pace: Pace) -> Result<Reached> {
        let mut should_stop = || None;
        let mut budget = Budget::unlimited(&Monotonic, &mut should_stop);
        let stream = Stream::new(Arc::new(reads), workers).at(pace);
        load::run(&[stream], Duration::from_millis(300), &mut budget)
            .map(|(mut reached, _)| reached.remove(0))
    }

    /// With one worker it is a thread, with four a ring, if this process may have one.
    #[test]
    fn one_thread_or_a_ring_sends_what_is_due() {
        for workers in [1, 4] {
            let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
            let (_source, reads) = reads(&directory, workers);
            let reached = run(reads, workers, Pace::Due(200.0)).expect("answers");
            assert!((1..=55).contains(&reached.answered), "{reached:?}");
            assert_eq!(reached.latencies.total().work, reached.answered);
            assert!(reached.bytes >= reached.answered * u64::from(BLOCK), "{reached:?}");
        }
    }

    #[test]
    fn an_error_of_one_request_ends_them_all() {
        for workers in [1, 4] {
            let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
            let (source, reads) = reads(&directory, workers);
            File::options().write(true).open(source.path(0)).expect("opened").set_len(9 * 8192).expect("cut");
            let error = run(reads, workers, Pace::Free).expect_err("an end");
            assert!(matches!(error, Error::ShortRead { .. }), "{error}");
        }
    }

    #[test]
    fn runs_are_whole_and_in_order() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
        // Segments of 10 blocks.
        let source = RelationFiles::new(directory.path().join("1"), BLOCK, 10, 25);
        for (segment, blocks) in [(0, 10), (1, 10), (2, 5)] {
            std::fs::write(source.path(segment), vec![1; blocks * BLOCK as usize]).expect("written");
        }
        let mut should_stop = || None;
        let mut budget = Budget::unlimited(&Monotonic, &mut should_stop);
        let mut order = FetchOrder::new(&source, Permutation::new(25, 7), 0, Look::Never);
        let reads = BlockReads::of(&mut order, 2, &mut budget).ok().flatten().expect("blocks");
        assert_eq!((reads.blocks(), reads.bytes()), (25, u64::from(BLOCK)));
        let reads = reads.in_runs(4 * BLOCK as usize, None, 2).expect("memory").expect("runs");
        let block = |place: &Place| (place.segment, place.offset / u64::from(BLOCK));
        assert_eq!(
            reads.places.iter().map(block).collect::<Vec<_>>(),
            [(0, 0), (0, 4), (1, 0), (1, 4), (2, 0)]
        );
        assert_eq!((reads.blocks(), reads.bytes()), (20, 4 * u64::from(BLOCK)));
        (0..10).for_each(|number| reads.make(number, 1).expect("read"));
        assert!(reads.in_runs(64 * BLOCK as usize, Some(7), 2).expect("memory").is_none());
    }
}
