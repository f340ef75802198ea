//! A made-up server: it reads real files, so that the OS cache holds what it has read, and takes as long as
//! it is told.

use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use crate::Result;
use crate::files::open_file::dropped;
use crate::files::relation_files::fixture::BLOCK;
use crate::files::{Access, OpenFile, RelationFiles};
use crate::measure::BlockReader;
use crate::measure::page_times::{LEAST_BLOCKS, Order, Way};
use crate::run::clock::{Clock, Manual};
use crate::run::stopwatch::Stopwatch;

/// Nanoseconds per block.
pub(super) const HIT: f64 = 1_500.0;
pub(super) const OS_SEQUENTIAL: f64 = 2_500.0;
pub(super) const OS_RANDOM: f64 = 4_000.0;
pub(super) const SEQUENTIAL: f64 = 6_000.0;
pub(super) const RANDOM: f64 = 70_000.0;
/// Nanoseconds per block of reads with gaps.
pub(super) fn sparse(density: f64, concurrency: u32) -> f64 {
    9_000.0 + 4_000.0 / density / f64::from(concurrency + 1)
}

/// Blocks that its ring of buffers holds.
const RING: u64 = 32;
/// How many times slower the first window of a scan is.
const GETTING_GOING: f64 = 5.0;

/// A turn that the server was asked for.
pub(super) struct Asked {
    pub(super) way: Way,
    pub(super) blocks: Vec<u64>,
    pub(super) warm_up: usize,
    /// How many it fetched from the device.
    pub(super) fetched: u64,
}

pub(super) struct MadeUp<'a> {
    source: &'a RelationFiles,
    clock: &'a Manual,
    files: Files,
    /// How many blocks came into the ring, and for each block, this number when it last came.
    came: u64,
    last_came: Vec<Option<u64>>,
    pub(super) asked: Vec<Asked>,
    /// Densities that it knows.
    pub(super) densities: Vec<f64>,
    /// How much longer than usual a turn takes, as a share.
    pub(super) noise: Box<dyn FnMut(Way) -> f64 + 'a>,
    /// Bytes at the start of a scan that are slow; as many are fetched beyond the last block.
    pub(super) window: u64,
    /// One in `hits` blocks is a hit, whatever came before.
    pub(super) hits: Option<usize>,
    /// If false, nothing is fetched, and nothing is ever cached.
    pub(super) fetches: bool,
    /// Nanoseconds that the first block of a turn takes besides.
    pub(super) late_ns: u64,
    /// Blocks that it lets through in each tenth of a second, but for those of a scan.
    pub(super) limit: Option<Limit>,
    /// Blocks that arrive together where they are read in order, each after this many nanoseconds a block.
    pub(super) lumps: Option<(u64, f64)>,
}

/// A limit as the kernel keeps one: so many in a tenth of a second, as soon as they are asked for.
pub(super) struct Limit {
    pub(super) most: u64,
    tenth: u64,
    used: u64,
}

impl Limit {
    pub(super) fn of(most: u64) -> Self {
        Self { most, tenth: 0, used: 0 }
    }

    /// Nanoseconds until one more is let through.
    fn wait(&mut self, now: u64) -> u64 {
        const TENTH_NS: u64 = 100_000_000;
        if now / TENTH_NS > self.tenth {
            (self.tenth, self.used) = (now / TENTH_NS, 0);
        } else if self.used == self.most {
            (self.tenth, self.used) = (self.tenth + 1, 0);
        }
        self.used += 1;
        (self.tenth * TENTH_NS).saturating_sub(now)
    }
}

impl<'a> MadeUp<'a> {
    pub(super) fn new(source: &'a RelationFiles, clock: &'a Manual) -> Self {
        Self {
            source,
            clock,
            files: Files::new(source),
            came: 0,
            last_came: vec![None; source.blocks() as usize],
            asked: Vec::new(),
            densities: Vec::new(),
            noise: Box::new(|_| 0.0),
            window: 0,
            hits: None,
            fetches: true,
            late_ns: 0,
            limit: None,
            lumps: None,
        }
    }

    /// Turns of one way.
    pub(super) fn of(&self, way: Way) -> impl Iterator<Item = &Asked> {
        self.asked.iter().filter(move |asked| asked.way == way)
    }

    /// Nanoseconds of a block from the device.
    fn ns(&mut self, order: &Order<'_>, index: usize) -> f64 {
        let late = if index == 0 { self.late_ns as f64 } else { 0.0 };
        late + self.on_time(order, index)
    }

    fn on_time(&mut self, order: &Order<'_>, index: usize) -> f64 {
        if let Some(limit) = self.limit.as_mut().filter(|_| order.way != Way::Scan) {
            let alone = if order.way == Way::Single { RANDOM } else { 0.0 };
            return limit.wait(self.clock.now()) as f64 + alone;
        }
        let is_in_order = order.blocks.windows(2).all(|two| two[0] + 1 == two[1]);
        if let Some((blocks, ns)) = self.lumps.filter(|_| is_in_order) {
            return if order.blocks[index].is_multiple_of(blocks) { blocks as f64 * ns } else { 0.0 };
        }
        match order.way {
            Way::Scan if index as u64 * BLOCK < self.window => SEQUENTIAL * GETTING_GOING,
            Way::Scan => SEQUENTIAL,
            Way::Single => RANDOM,
            Way::Bitmap(concurrency) => {
                let span = order.blocks[order.blocks.len() - 1] - order.blocks[0] + 1;
                let density = order.blocks.len() as f64 / span as f64;
                let near = |a: &&f64, b: &&f64| (*a - density).abs().total_cmp(&(*b - density).abs());
                sparse(*self.densities.iter().min_by(near).expect("densities"), concurrency)
            }
        }
    }
}

impl BlockReader<Order<'_>> for MadeUp<'_> {
    fn read(&mut self, order: &mut Order<'_>, watch: &mut Stopwatch<'_>) -> Result<()> {
        let factor = 1.0 + (self.noise)(order.way);
        let (mut fetched, mut read) = (0, 0);
        watch.begin();
        let begun = self.clock.now();
        for (index, block) in order.blocks.iter().enumerate() {
            if index % 64 == 0 {
                watch.idle();
            }
            let elapsed = self.clock.now() - begun;
            watch.rate(index >= order.warm_up || elapsed > order.lead_ns);
            let timed = watch.rated();
            let is_long = timed.ns >= order.length_ns && timed.work >= LEAST_BLOCKS as u64;
            let over = is_long || timed.work >= order.most;
            if watch.stop().is_some() || over {
                break;
            }
            let is_held = self.last_came[*block as usize].is_some_and(|last| self.came - last < RING);
            let hit = is_held || self.hits.is_some_and(|hits| index % hits == 0);
            let ns = if hit {
                HIT
            } else if self.fetches && self.files.is_cached(*block) {
                if order.way == Way::Single { OS_RANDOM } else { OS_SEQUENTIAL }
            } else {
                fetched += 1;
                self.ns(order, index) * factor
            };
            if self.fetches {
                // Hits, too: the kernel reads ahead what lies between.
                self.files.fetch(*block);
            }
            if !hit {
                self.came += 1;
                self.last_came[*block as usize] = Some(self.came);
            }
            read += 1;
            self.clock.advance(ns as u64);
            watch.add(self.clock.now(), 1);
            order.hits += u64::from(hit && index >= order.warm_up);
        }
        let last = order.blocks[..read].last();
        if let Some(last) = last.filter(|_| self.fetches && order.way != Way::Single) {
            let ahead = *last + 1..(*last + 1 + self.window / BLOCK).min(self.source.blocks());
            ahead.for_each(|block| self.files.fetch(block));
        }
        let blocks = order.blocks.to_vec();
        self.asked.push(Asked { way: order.way, blocks, warm_up: order.warm_up, fetched });
        Ok(())
    }
}

/// The files, read without the kernel's readahead: by descriptors of their own, as the server's are.
pub(super) struct Files(RelationFiles);

impl Files {
    pub(super) fn new(source: &RelationFiles) -> Self {
        Self(source.afresh())
    }

    fn open(&self, block: u64) -> Arc<OpenFile> {
        let open = self.0.open(self.0.segment(block), Access::Buffered).expect("opened");
        posix_fadvise(&open.file, 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM).expect("advised");
        open
    }

    pub(super) fn fetch(&self, block: u64) {
        let open = self.open(block);
        open.file.read_exact_at(&mut [0; BLOCK as usize], self.0.offset(block)).expect("read");
    }

    pub(super) fn is_cached(&self, block: u64) -> bool {
        let start = self.0.offset(block);
        self.open(block).residency(start..start + BLOCK).expect("residency").cached_bytes > 0
    }

    /// Fetches these until all are cached, and says which are.
    pub(super) fn fetch_all(&self, blocks: Range<u64>) -> Vec<bool> {
        for _ in 0..10 {
            blocks.clone().for_each(|block| self.fetch(block));
            let cached = self.cached();
            if cached.iter().filter(|cached| **cached).count() as u64 == blocks.end - blocks.start {
                return cached;
            }
        }
        panic!("the kernel doesn't keep {blocks:?}, or keeps more");
    }

    /// Checks that the cache holds no block beyond `before`, and that none of these was to be dropped. Some
    /// may be missing: a kernel takes pages back whenever it needs memory.
    pub(super) fn assert_kept(&self, before: &[bool]) {
        for (block, (before, now)) in before.iter().zip(self.cached()).enumerate() {
            assert!(*before || !now, "block {block} has come into the cache");
        }
        let dropped = dropped::take();
        for block in (0..self.0.blocks()).filter(|block| before[*block as usize]) {
            let (path, start) = (&self.open(block).path, self.0.offset(block));
            let is_in = |(file, bytes): &(PathBuf, Range<u64>)| {
                file == path && bytes.start < start + BLOCK && start < bytes.end
            };
            assert!(!dropped.iter().any(is_in), "block {block} was dropped");
        }
    }

    /// Which blocks are cached.
    pub(super) fn cached(&self) -> Vec<bool> {
        (0..self.0.blocks()).map(|block| self.is_cached(block)).collect()
    }
}

/// Time that a clock shows, for asserts.
pub(super) fn seconds(clock: &Manual) -> f64 {
    clock.now() as f64 / 1e9
}
