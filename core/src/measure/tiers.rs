//! What served the blocks of a scan: shared buffers, the OS page cache, or the device.
//!
//! Hits are counted by the buffer manager. The other two are told apart by what the page cache held before
//! the read, and by the bytes that were fetched: a cached block needs no fetch, and a fetched one was not
//! cached. Readahead fetches more than was asked for, so fetched bytes are an upper bound. Where fewer were
//! fetched than were missing, the two contradict each other, and nothing is said: others brought the pages
//! in, or the file system keeps no account. Both are in bytes, since a kernel's pages are smaller than a
//! block: half of one may be cached. What the device served is rounded up to blocks.
//!
//! Below the kernel (RAID controllers, hypervisors, drives) are more caches, of which nothing is known.

/// Blocks by the tier that served them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tiers {
    /// Found in the server's buffers.
    pub shared: u64,
    /// Found in the OS page cache.
    pub os: u64,
    /// Fetched from the device.
    pub device: u64,
}

/// What is known about a scan that went through the page cache.
#[derive(Debug, Clone, Copy)]
pub struct Evidence {
    /// Bytes of a block.
    pub block_size: u64,
    /// Blocks found in the server's buffers; 0 when it read past the server.
    pub hits: u64,
    /// Blocks read from the file that hold data.
    pub reads: u64,
    /// Bytes of the whole range, hits included, that were in the page cache before; None if unknown.
    pub cached_bytes: Option<u64>,
    /// Bytes that were fetched; None if unknown.
    pub fetched_bytes: Option<u64>,
}

/// Are so few bytes fetched that they contradict how many of those read were missing? Others bring pages in
/// meanwhile: less than a block, a twentieth of what was missing, or a thousandth of all says nothing.
pub fn are_too_few(fetched: u64, missing: u64, read: u64, block_size: u64) -> bool {
    let short = missing.saturating_sub(fetched);
    short >= block_size && short > (missing / 20).max(read / 1000)
}

impl Tiers {
    /// The tiers of a scan through the page cache; None when nothing tells the page cache from the device, or
    /// when what does contradicts itself.
    pub fn of_buffered(evidence: Evidence) -> Option<Self> {
        let Evidence { block_size, hits, reads, cached_bytes, fetched_bytes } = evidence;
        let (hit_bytes, read_bytes) = (hits * block_size, reads * block_size);
        // With hits, which of the cached bytes were read is not known: at least those that the
        // hits can't account for, at most all.
        let (most, least) = match cached_bytes {
            Some(cached) => (
                read_bytes.min((read_bytes + hit_bytes).saturating_sub(cached)),
                read_bytes.saturating_sub(cached),
            ),
            None => (read_bytes, 0),
        };
        let device_bytes = match fetched_bytes {
            Some(fetched) if are_too_few(fetched, least, read_bytes, block_size) => return None,
            Some(fetched) => fetched.min(most),
            None if cached_bytes.is_some() => most,
            None => return None,
        };
        let device = device_bytes.div_ceil(block_size);
        Some(Self { shared: hits, os: reads - device, device })
    }

    /// The tiers of a scan past the page cache.
    pub fn of_direct(reads: u64, fetched: u64) -> Self {
        let device = fetched.min(reads);
        Self { shared: 0, os: reads - device, device }
    }

    /// Adds the blocks of `other`.
    pub fn absorb(&mut self, other: &Tiers) {
        self.shared += other.shared;
        self.os += other.os;
        self.device += other.device;
    }

    /// The shares in percent: shared, os, device. None without blocks.
    pub fn percent(&self) -> Option<[f64; 3]> {
        let all = self.shared + self.os + self.device;
        let tiers = [self.shared, self.os, self.device];
        (all > 0).then(|| tiers.map(|blocks| blocks as f64 * 100.0 / all as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;
    const BLOCK: u64 = 2 * PAGE;

    fn device_of(hits: u64, reads: u64, cached: Option<u64>, fetched: Option<u64>) -> Option<u64> {
        of_bytes(hits, reads, cached.map(|blocks| blocks * BLOCK), fetched.map(|blocks| blocks * BLOCK))
    }

    fn of_bytes(hits: u64, reads: u64, cached_bytes: Option<u64>, fetched_bytes: Option<u64>) -> Option<u64> {
        let evidence = Evidence { block_size: BLOCK, hits, reads, cached_bytes, fetched_bytes };
        Tiers::of_buffered(evidence).map(|t| {
            assert_eq!(t.shared + t.os + t.device, hits + reads);
            t.device
        })
    }

    #[test]
    fn residency_and_fetched_bytes_agree() {
        assert_eq!(device_of(0, 100, Some(0), Some(100)), Some(100));
        assert_eq!(device_of(0, 100, Some(100), Some(0)), Some(0));
        assert_eq!(device_of(0, 100, Some(40), Some(60)), Some(60));
    }

    #[test]
    fn readahead_past_the_end_is_not_a_tier() {
        assert_eq!(device_of(0, 100, Some(40), Some(75)), Some(60));
    }

    #[test]
    fn a_contradiction_gives_no_tiers() {
        assert_eq!(device_of(0, 100, Some(0), Some(10)), None);
        assert_eq!(device_of(0, 100, Some(0), Some(96)), Some(96));
        assert_eq!(device_of(0, 100, Some(99), Some(0)), None);
        // Of many a thousandth.
        assert_eq!(device_of(0, 100_000, Some(99_900), Some(0)), Some(0));
        assert_eq!(device_of(0, 100_000, Some(99_890), Some(0)), None);
    }

    #[test]
    fn half_of_a_block_may_be_cached() {
        // Of nine of a hundred blocks one page of two is missing.
        assert_eq!(of_bytes(0, 100, Some(100 * BLOCK - 9 * PAGE), Some(9 * PAGE)), Some(5));
        assert_eq!(of_bytes(0, 100, Some(100 * BLOCK - 9 * PAGE), Some(8 * PAGE)), Some(4));
        assert_eq!(of_bytes(0, 100, Some(100 * BLOCK - 9 * PAGE), Some(7 * PAGE)), None);
        assert_eq!(of_bytes(0, 100, Some(PAGE), None), Some(100));
    }

    #[test]
    fn hits_may_or_may_not_be_cached_too() {
        // 50 hits; 50 of the 100 blocks are cached: the same ones, or the others.
        assert_eq!(device_of(50, 50, Some(50), Some(50)), Some(50));
        assert_eq!(device_of(50, 50, Some(50), Some(0)), Some(0));
        assert_eq!(device_of(50, 50, Some(50), None), Some(50));
    }

    #[test]
    fn one_source_is_enough_none_is_not() {
        assert_eq!(device_of(0, 100, None, Some(30)), Some(30));
        assert_eq!(device_of(0, 100, Some(30), None), Some(70));
        assert_eq!(device_of(0, 100, None, None), None);
    }

    #[test]
    fn shares_add_up() {
        let tiers = Tiers { shared: 1, os: 1, device: 2 };
        assert_eq!(tiers.percent(), Some([25.0, 25.0, 50.0]));
        assert_eq!(Tiers::default().percent(), None);
        assert_eq!(Tiers::of_direct(10, 12), Tiers { shared: 0, os: 0, device: 10 });
    }
}
