//! What is counted of a node.

use std::ops::{AddAssign, Index, IndexMut};

use pgrx::pg_sys;

use crate::pg::compat;

/// A thing that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counter {
    SharedHit,
    SharedRead,
    LocalHit,
    LocalRead,
    TempRead,
    TempWritten,
    /// Nanoseconds of reading blocks of tables and indexes.
    IoTime,
    /// The part of them for temporary tables.
    LocalIoTime,
    /// Nanoseconds of reading and writing temporary files.
    TempIoTime,
    /// Bytes that were fetched from storage.
    Device,
    /// What of `IoTime` came with the process asleep for a while, in nanoseconds: only so it waits for the
    /// device.
    SleptTime,
    /// Bytes that were read then, and not fetched.
    SleptCached,
    /// Nanoseconds.
    OwnTime,
}

/// Of these, the server itself keeps so many.
pub(super) const OF_SERVER: usize = Counter::Device as usize;
pub(super) const COUNTERS: usize = Counter::OwnTime as usize + 1;

/// The server's counters of a process. Times are in the server's unit.
pub(super) type Usage = [i64; OF_SERVER];

/// What this process has used so far, as the server has it.
pub(super) fn seen() -> pg_sys::BufferUsage {
    // SAFETY: a variable of this process, only ever changed by it.
    unsafe { pg_sys::pgBufferUsage }
}

/// All that this process has used so far, in one number: no counter ever decreases, so that none has changed
/// if this has not. It is asked for twice for each row of each node.
#[inline(always)]
pub(super) fn sum() -> i64 {
    const WORDS: usize = size_of::<pg_sys::BufferUsage>() / size_of::<i64>();
    // Blocks that were dirtied or written: shared ones, and local ones.
    const NOT_COUNTED: [usize; 4] = [2, 3, 6, 7];
    let words = (&raw const pg_sys::pgBufferUsage).cast::<[i64; WORDS]>();
    let counted = (0..WORDS).filter(|word| !NOT_COUNTED.contains(word));
    // SAFETY: a variable of this process, made of numbers of this size.
    counted.fold(0, |sum: i64, at| sum.wrapping_add(unsafe { (*words)[at] }))
}

/// What is counted of it.
pub(super) fn usage(usage: &pg_sys::BufferUsage) -> Usage {
    let [io, local, temp] = compat::io_ticks(usage);
    [
        usage.shared_blks_hit,
        usage.shared_blks_read,
        usage.local_blks_hit,
        usage.local_blks_read,
        usage.temp_blks_read,
        usage.temp_blks_written,
        io,
        local,
        temp,
    ]
}

/// Has anything been read, or waited for, between two states?
#[inline]
pub(super) fn has_read(now: &Usage, before: &Usage) -> bool {
    const HITS: [usize; 2] = [Counter::SharedHit as usize, Counter::LocalHit as usize];
    (0..OF_SERVER).any(|counter| !HITS.contains(&counter) && now[counter] != before[counter])
}

/// What a node did itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NodeCounts([i64; COUNTERS]);

impl NodeCounts {
    pub(super) const NONE: Self = Self([0; COUNTERS]);

    pub(super) fn of(counts: [i64; COUNTERS]) -> Self {
        Self(counts)
    }

    pub(super) fn all(&self) -> &[i64; COUNTERS] {
        &self.0
    }

    /// Adds what was used between two states.
    pub(super) fn add_since(&mut self, now: &Usage, before: &Usage) {
        for (sum, (now, before)) in self.0.iter_mut().zip(now.iter().zip(before)) {
            *sum += now - before;
        }
    }

    /// A count, which is never below 0.
    pub(crate) fn get(&self, counter: Counter) -> u64 {
        u64::try_from(self[counter]).unwrap_or(0)
    }

    /// A time that the server measured, in nanoseconds.
    pub(crate) fn ns(&self, counter: Counter) -> u64 {
        u64::try_from(compat::nanoseconds(self[counter])).unwrap_or(0)
    }

    /// Nanoseconds of waiting for reads and writes.
    pub(super) fn waited_ns(&self) -> u64 {
        self.ns(Counter::IoTime) + self.ns(Counter::TempIoTime)
    }
}

impl Index<Counter> for NodeCounts {
    type Output = i64;

    fn index(&self, counter: Counter) -> &i64 {
        &self.0[counter as usize]
    }
}

impl IndexMut<Counter> for NodeCounts {
    fn index_mut(&mut self, counter: Counter) -> &mut i64 {
        &mut self.0[counter as usize]
    }
}

impl AddAssign for NodeCounts {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }
}
