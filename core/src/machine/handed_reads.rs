//! What processes have others read for them, as looks at their open requests show it.
//!
//! A request has a handle of its process, and a number that grows each time that the handle is used. So what
//! was not seen in between is counted as well.
//!
//! # Limitations and caveats
//! A read is in flight for as long as the device takes, and hardly if the page cache has it. So what was
//! fetched is shared out by that where it was seen often enough. Where it was not, as on a fast device, it is
//! shared out by all that was handed over, cached or not.

use std::collections::HashMap;

use serde::Deserialize;

/// As many reads have to be seen in flight before what was fetched is shared out by them.
const SIGHTINGS: u64 = 30;

/// A request as one look finds it.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct OpenRead {
    /// The handle.
    pub handle: i64,
    /// How often it was used before.
    pub generation: i64,
    /// Its length.
    pub bytes: u64,
    /// Has it begun, and not ended?
    pub in_flight: bool,
}

/// What a process has handed over.
#[derive(Debug, Default)]
struct Handed {
    /// Of each handle the first and the last generation that was seen.
    handles: HashMap<i64, (i64, i64)>,
    reads: u64,
    bytes: u64,
    sightings: u64,
    bytes_in_flight: u64,
}

impl Handed {
    fn add(&mut self, read: OpenRead) {
        let OpenRead { handle, generation, bytes, in_flight } = read;
        if in_flight {
            (self.sightings, self.bytes_in_flight) = (self.sightings + 1, self.bytes_in_flight + bytes);
        }
        let first = self.handles.get(&handle).map_or(generation, |(first, _)| *first);
        let known = self.handles.insert(handle, (first, generation));
        if known.is_none_or(|(_, last)| last != generation) {
            (self.reads, self.bytes) = (self.reads + 1, self.bytes + bytes);
        }
    }

    /// About how many bytes: as many reads as its handles were used for.
    fn bytes(&self) -> f64 {
        let uses: i64 = self.handles.values().map(|(first, last)| last - first + 1).sum();
        uses as f64 * self.bytes as f64 / self.reads.max(1) as f64
    }
}

/// The part of a process of what was read for all.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HandedShare {
    /// Of what the page cache had.
    pub cached: f64,
    /// Of what was fetched.
    pub fetched: f64,
}

/// What processes have handed over.
#[derive(Debug, Default)]
pub struct HandedReads(HashMap<i32, Handed>);

impl HandedReads {
    /// A process has this request.
    pub fn add(&mut self, pid: i32, read: OpenRead) {
        self.0.entry(pid).or_default().add(read);
    }

    /// The part of each process.
    pub fn shares(&self) -> HandedShares {
        let bytes = self.0.values().map(Handed::bytes).sum::<f64>().max(1.0);
        let in_flight = self.0.values().map(|handed| handed.bytes_in_flight).sum::<u64>().max(1) as f64;
        let is_seen = self.0.values().map(|handed| handed.sightings).sum::<u64>() >= SIGHTINGS;
        let of = |handed: &Handed| {
            let cached = handed.bytes() / bytes;
            let fetched = if is_seen { handed.bytes_in_flight as f64 / in_flight } else { cached };
            HandedShare { cached, fetched }
        };
        HandedShares(self.0.iter().map(|(pid, handed)| (*pid, of(handed))).collect())
    }
}

/// The parts of all processes that handed something over.
#[derive(Debug, Default)]
pub struct HandedShares(HashMap<i32, HandedShare>);

impl HandedShares {
    /// Was nothing handed over?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The part of a process.
    pub fn of(&self, pid: i32) -> HandedShare {
        self.0.get(&pid).copied().unwrap_or_default()
    }

    /// The part of all that were seen but for these processes.
    pub fn of_others(&self, known: impl Iterator<Item = i32>) -> HandedShare {
        let all = HandedShare { cached: 1.0, fetched: 1.0 };
        known.map(|pid| self.of(pid)).fold(all, |rest, share| HandedShare {
            cached: (rest.cached - share.cached).max(0.0),
            fetched: (rest.fetched - share.fetched).max(0.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(handle: i64, generation: i64, in_flight: bool) -> OpenRead {
        OpenRead { handle, generation, bytes: 1000, in_flight }
    }

    #[test]
    fn reads_between_two_looks_count() {
        let mut handed = HandedReads::default();
        // One process uses a handle nine times, another one each of two handles once, and is seen twice.
        [1, 5, 9].into_iter().for_each(|generation| handed.add(1, read(7, generation, false)));
        [1, 2, 1, 2].into_iter().for_each(|handle| handed.add(2, read(handle, 3, false)));
        let shares = [1, 2, 3].map(|pid| handed.shares().of(pid));
        assert_eq!(shares.map(|share| share.cached), [9.0 / 11.0, 2.0 / 11.0, 0.0]);
        assert_eq!(shares.map(|share| share.fetched), shares.map(|share| share.cached));
    }

    #[test]
    fn the_device_worked_for_those_whose_reads_were_in_flight() {
        let mut handed = HandedReads::default();
        // One reads much that is cached, the other little that is not.
        (0..1000).for_each(|generation| handed.add(1, read(1, generation, false)));
        (0..SIGHTINGS as i64).for_each(|generation| handed.add(2, read(1, generation, true)));
        assert_eq!((handed.shares().of(1).fetched, handed.shares().of(2).fetched), (0.0, 1.0));
        assert!(handed.shares().of(1).cached > 0.9);
        // The one has ended: its part is left.
        assert_eq!(handed.shares().of_others([2, 3].into_iter()).fetched, 0.0);
        assert_eq!(handed.shares().of_others([1, 3].into_iter()).fetched, 1.0);
    }
}
