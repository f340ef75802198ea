//! Is what was synced on the storage? What file system and devices show beside the times.
//!
//! A sync of data that was just written makes the devices write it. If they keep it in a volatile cache, it
//! makes them flush that as well, unless the write itself passed the cache (FUA), as a direct one may.
//!
//! # Limitations and caveats
//! - A device that has never counted a write, or a flush, counts none: then its silence says nothing.
//! - The counters are everyone's: others' requests may stand for those that are missing.
//! - A device may acknowledge a flush and obey it as little as a layer above it.
//!
//! Sources: the kernel's `Documentation/block/writeback_cache_control.rst` and
//! `Documentation/block/stat.rst`; ext4(5) and btrfs(5) for `nobarrier`.

use std::fmt::{self, Display, Formatter};

use super::case::Case;
use super::measured::CaseTimes;
use crate::machine::device::{Counters, Placement, Roots};

/// Why what was synced is not durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotDurable {
    /// The file system is in memory.
    InMemory,
    /// Fewer writes reached the devices than were synced.
    NoWrites,
    /// A volatile cache was flushed less often than it was written to.
    NoFlushes,
}

impl Display for NotDurable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InMemory => "the file system is in memory, so a sync makes nothing durable",
            Self::NoWrites => {
                "fewer writes reached the device than were synced: something swallows the syncs"
            }
            Self::NoFlushes => {
                "the syncs did not flush the device's volatile cache (are write barriers off?): a power cut \
                 loses data that was synced"
            }
        })
    }
}

/// What is known beforehand of the storage below a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Durability {
    in_memory: bool,
    /// Would the devices have counted writes, and flushes, if there had been any?
    counts_writes: bool,
    counts_flushes: bool,
    /// Does a device keep in a volatile cache what it has acknowledged?
    volatile: bool,
    /// Can single writes pass the caches of all devices?
    fua: bool,
}

impl Durability {
    /// What the kernel tells of a directory's file system and devices.
    pub fn of(placement: &Placement, roots: &Roots) -> Self {
        let leaves = &placement.leaves;
        let counters: Vec<Counters> = leaves.iter().filter_map(|leaf| leaf.counters(roots)).collect();
        let mount = placement.mount.as_ref();
        let has_no_barriers = mount.is_some_and(|mount| {
            mount.options.split(',').any(|option| matches!(option, "nobarrier" | "barrier=0"))
        });
        let mut flushes = counters.iter().filter_map(|counters| counters.flushes);
        Self {
            in_memory: placement.is_in_memory(),
            counts_writes: counters.iter().any(|counters| counters.writes.completed > 0),
            counts_flushes: has_no_barriers || flushes.any(|flushes| flushes.completed > 0),
            volatile: leaves.iter().any(|leaf| leaf.write_cache.as_deref() == Some("write back")),
            fua: leaves.iter().all(|leaf| leaf.fua == Some(true)),
        }
    }

    /// Why what a case has synced is not durable, if that is known.
    pub(super) fn judge(&self, case: &Case, measured: &CaseTimes) -> Option<NotDurable> {
        if !case.is_durable() {
            return None;
        }
        let device = measured.device().unwrap_or_default();
        let is_short = |requests: u64| (requests as f64) < ENOUGH * measured.flushes as f64;
        let needs_flushes = self.volatile && !(self.fua && case.direct);
        if self.in_memory {
            Some(NotDurable::InMemory)
        } else if self.counts_writes && measured.device().is_some() && is_short(device.writes) {
            Some(NotDurable::NoWrites)
        } else if self.counts_flushes && needs_flushes && device.flushes.is_some_and(is_short) {
            Some(NotDurable::NoFlushes)
        } else {
            None
        }
    }
}

/// Requests that a sync needs at least, as a mean: a tenth is left for those that are counted late.
const ENOUGH: f64 = 0.9;

#[cfg(test)]
mod tests {
    use super::super::case::{FlushMethod, Section};
    use super::*;
    use crate::machine::device::{Activity, Leaf, Mount, Traffic};

    /// A disk whose counters have counted all kinds, with a volatile cache.
    const DISK: Durability = Durability {
        in_memory: false,
        counts_writes: true,
        counts_flushes: true,
        volatile: true,
        fua: false,
    };

    fn case(method: FlushMethod, direct: bool) -> Case {
        Case { section: Section::OneWrite, method, direct, writes: 1, write_bytes: 8192 }
    }

    /// What 100 syncs were that made the device complete so many writes and flushes.
    fn judged(storage: Durability, case: Case, writes: u64, flushes: Option<u64>) -> Option<NotDurable> {
        let mut measured = CaseTimes::new();
        measured.flushes = 100;
        let activity = Activity {
            elapsed_ms: 1.0,
            reads: Traffic::default(),
            writes: Traffic { requests: writes, ..Traffic::default() },
            discards: None,
            flushes: flushes.map(|requests| Traffic { requests, ..Traffic::default() }),
            aqu_sz: None,
            util_pct: None,
        };
        measured.saw(Some(activity), 101);
        storage.judge(&case, &measured)
    }

    #[test]
    fn each_sync_takes_a_write() {
        for method in [FlushMethod::OpenDatasync, FlushMethod::Fsync, FlushMethod::WriteCloseFsync] {
            let judged = |writes| judged(DISK, case(method, false), writes, Some(writes));
            assert_eq!([0, 89].map(judged), [Some(NotDurable::NoWrites); 2], "{method:?}");
            assert_eq!([90, 200].map(judged), [None; 2], "{method:?}");
        }
        let nobody_asked = judged(DISK, case(FlushMethod::Write, false), 0, Some(0));
        let not_counted = Durability { counts_writes: false, ..DISK };
        assert_eq!(nobody_asked, None);
        assert_eq!(judged(not_counted, case(FlushMethod::Fsync, false), 0, None), None);
    }

    #[test]
    fn a_volatile_cache_takes_a_flush_unless_the_write_passes_it() {
        let (sync, direct) = (case(FlushMethod::Fdatasync, false), case(FlushMethod::OpenDatasync, true));
        assert_eq!(judged(DISK, sync, 100, Some(0)), Some(NotDurable::NoFlushes));
        assert_eq!(judged(DISK, direct, 100, Some(0)), Some(NotDurable::NoFlushes));
        assert_eq!(judged(DISK, sync, 200, Some(100)), None);
        let passes = Durability { fua: true, ..DISK };
        assert_eq!(judged(passes, direct, 100, Some(0)), None);
        assert_eq!(judged(passes, sync, 100, Some(0)), Some(NotDurable::NoFlushes));
        let has_none = Durability { volatile: false, ..DISK };
        assert_eq!(judged(has_none, sync, 100, Some(0)), None);
        // As below drivers that count a flush as a write, or on an old kernel.
        let not_counted = Durability { counts_flushes: false, ..DISK };
        assert_eq!(judged(not_counted, sync, 100, Some(0)), None);
        assert_eq!(judged(DISK, sync, 100, None), None);
    }

    #[test]
    fn memory_is_not_durable_whatever_is_counted() {
        let mount = |fs_type: &str, options: &str| Mount {
            device_number: "0:1".parse().unwrap(),
            root: "/".into(),
            mount_point: "/".into(),
            fs_type: fs_type.to_owned(),
            source: None,
            options: options.to_owned(),
        };
        let storage = |mount, leaves| {
            let placement = Placement { mount: Some(mount), leaves, ..Placement::default() };
            Durability::of(&placement, &Roots::default())
        };
        for fs_type in ["tmpfs", "ramfs"] {
            let memory = storage(mount(fs_type, "rw"), Vec::new());
            let judged = |method| judged(memory, case(method, false), 100, None);
            assert_eq!(judged(FlushMethod::Fsync), Some(NotDurable::InMemory));
            assert_eq!(judged(FlushMethod::Write), None);
        }
        let cached = || vec![Leaf { write_cache: Some("write back".to_owned()), ..Leaf::default() }];
        let without = storage(mount("ext4", "rw,noatime,nobarrier"), cached());
        assert!(without.volatile && without.counts_flushes && !without.in_memory);
        assert!(!storage(mount("ext4", "rw"), cached()).counts_flushes);
    }
}
