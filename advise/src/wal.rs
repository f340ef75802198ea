//! wal_sync_method from the times of flushes.
//!
//! Of the methods, each is meant to have the data on the storage when it returns. One that is much faster
//! than another on a device with a volatile cache may be faster because it leaves the data there. With FUA
//! the kernel can write through the cache, block by block, which is faster than emptying the whole of it and
//! no less safe. Without, every method has to empty it, so that a large difference between two of them has no
//! honest reason.
//!
//! Sources: the kernel's `Documentation/block/writeback_cache_control.rst`; `issue_xlog_fsync` in
//! `src/backend/access/transam/xlog.c`.

use io_probe_core::machine::device::Leaf;
use io_probe_core::measure::sync::FlushMethod;
use io_probe_core::stats::Interval;

/// A method must be faster by this factor, counted from the near ends of the intervals.
const GAIN: f64 = 1.10;

/// Does the storage of the WAL keep what it has acknowledged in memory that a power cut empties? From best to
/// worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteCache {
    /// No volatile cache, or one that single writes can pass.
    Safe,
    /// The kernel does not tell.
    Unknown,
    /// A volatile cache, and no way past it but to empty it.
    Volatile,
}

impl WriteCache {
    /// The cache of all devices below a directory: the worst of them counts.
    pub fn of(leaves: &[Leaf]) -> Self {
        leaves.iter().map(Self::of_leaf).max().unwrap_or(WriteCache::Unknown)
    }

    fn of_leaf(leaf: &Leaf) -> Self {
        match (leaf.write_cache.as_deref(), leaf.fua) {
            (Some("write through"), _) | (Some("write back"), Some(true)) => Self::Safe,
            (Some("write back"), Some(false)) => Self::Volatile,
            _ => Self::Unknown,
        }
    }
}

/// What to do about wal_sync_method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SyncMethod {
    /// No method is faster by over a tenth beyond the noise.
    Keep,
    /// A method is faster, `gain` times as a mean.
    Change {
        /// The faster method.
        to: FlushMethod,
        /// Time of the present method over that of the faster one.
        gain: f64,
    },
    /// This one is faster, but perhaps because it leaves the data in a volatile cache.
    Distrust(FlushMethod),
    /// This one is faster, and whether there is such a cache is not known.
    Unknown(FlushMethod),
    /// There are no figures of the present method.
    Unmeasured,
}

/// Compares the present method with the others, by the time of a flush in any unit.
pub fn sync_method(current: FlushMethod, times: &[(FlushMethod, Interval)], cache: WriteCache) -> SyncMethod {
    let Some((_, present)) = times.iter().find(|(method, _)| *method == current) else {
        return SyncMethod::Unmeasured;
    };
    let faster = times
        .iter()
        .filter(|(_, other)| other.high > 0.0 && present.low / other.high > GAIN)
        .min_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    let Some(&(to, time)) = faster else { return SyncMethod::Keep };
    match cache {
        WriteCache::Safe => SyncMethod::Change { to, gain: present.value / time.value },
        WriteCache::Volatile => SyncMethod::Distrust(to),
        WriteCache::Unknown => SyncMethod::Unknown(to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(value: f64, half: f64) -> Interval {
        Interval { value, low: value - half, high: value + half }
    }

    fn time(method: FlushMethod, value: f64, half: f64) -> (FlushMethod, Interval) {
        (method, interval(value, half))
    }

    #[test]
    fn a_method_must_gain_a_tenth_beyond_the_noise() {
        let times = |value, half| {
            [
                time(FlushMethod::Fdatasync, 100.0, 2.0),
                time(FlushMethod::OpenDatasync, value, half),
                time(FlushMethod::Fsync, 130.0, 1.0),
            ]
        };
        let advice = |value, half| sync_method(FlushMethod::Fdatasync, &times(value, half), WriteCache::Safe);
        assert_eq!(advice(80.0, 2.0), SyncMethod::Change { to: FlushMethod::OpenDatasync, gain: 1.25 });
        // 98 / 89.1 is just a tenth: 98 / 1.1 = 89.09.
        assert_eq!(advice(88.0, 1.1), SyncMethod::Keep);
        assert!(matches!(advice(88.0, 1.0), SyncMethod::Change { .. }));
        assert_eq!(advice(80.0, 12.0), SyncMethod::Keep, "noise");
        assert_eq!(advice(120.0, 1.0), SyncMethod::Keep);
        assert_eq!(
            sync_method(FlushMethod::OpenSync, &times(80.0, 1.0), WriteCache::Safe),
            SyncMethod::Unmeasured
        );
    }

    #[test]
    fn of_several_faster_ones_the_fastest() {
        let times = [
            time(FlushMethod::Fsync, 200.0, 1.0),
            time(FlushMethod::Fdatasync, 100.0, 1.0),
            time(FlushMethod::OpenDatasync, 50.0, 1.0),
            time(FlushMethod::OpenSync, 60.0, 1.0),
        ];
        let advice = sync_method(FlushMethod::Fsync, &times, WriteCache::Safe);
        assert_eq!(advice, SyncMethod::Change { to: FlushMethod::OpenDatasync, gain: 4.0 });
    }

    #[test]
    fn what_a_volatile_cache_may_swallow_is_never_recommended() {
        let times = [time(FlushMethod::Fdatasync, 5000.0, 10.0), time(FlushMethod::OpenDatasync, 50.0, 1.0)];
        let advice = |cache| sync_method(FlushMethod::Fdatasync, &times, cache);
        assert_eq!(advice(WriteCache::Volatile), SyncMethod::Distrust(FlushMethod::OpenDatasync));
        assert_eq!(advice(WriteCache::Unknown), SyncMethod::Unknown(FlushMethod::OpenDatasync));
        assert!(matches!(advice(WriteCache::Safe), SyncMethod::Change { .. }));
        // Nothing is faster: the cache does not matter.
        assert_eq!(sync_method(FlushMethod::OpenDatasync, &times, WriteCache::Volatile), SyncMethod::Keep);
    }

    #[test]
    fn the_worst_device_counts() {
        let leaf = |write_cache: Option<&str>, fua| Leaf {
            write_cache: write_cache.map(str::to_owned),
            fua,
            ..Leaf::default()
        };
        let through = || leaf(Some("write through"), None);
        let back = |fua| leaf(Some("write back"), fua);
        assert_eq!(WriteCache::of(&[]), WriteCache::Unknown);
        assert_eq!(WriteCache::of(&[through()]), WriteCache::Safe);
        assert_eq!(WriteCache::of(&[through(), back(Some(true))]), WriteCache::Safe);
        assert_eq!(WriteCache::of(&[through(), back(None)]), WriteCache::Unknown);
        assert_eq!(WriteCache::of(&[leaf(None, Some(true)), back(Some(false))]), WriteCache::Volatile);
    }
}
