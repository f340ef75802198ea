//! Facts that are only read: devices, caches, running probes, what is possible here.

use crate::function::{Function, LOOK, MEASURE, Returns, required};
use crate::row::{Row, row};
use crate::value::{Relation, Text, Timestamp};

row! {
    /// one directory of the server on one device
    row DeviceRow "device" everyday [
        object, spcname, device, scheduler, read_ahead_kb, rotational, fs_type, write_cache, status
    ] {
        /// What the directory is for: tablespace, wal or temp (temporary files of this session)
        object: &'static str,
        /// Name of the tablespace; NULL for the WAL
        spcname: Option<Text>,
        /// The disk that does the I/O, below partitions, LVM, encryption and software RAID. There is a row
        /// for each disk
        device: Option<Text>,
        /// I/O scheduler in force on the device
        scheduler: Option<Text>,
        /// Readahead window in kB. An open file keeps the window with which it was opened
        read_ahead_kb: Option<u64>,
        /// Does the device report that it rotates? Virtual disks often report this wrongly
        rotational: Option<bool>,
        /// Type of the file system
        fs_type: Option<Text>,
        /// Where the file system is mounted
        mount_point: Option<Text>,
        /// Directory of the object, symbolic links resolved
        directory: Text,
        /// Bytes that are free for users other than root
        fs_free_bytes: Option<u64>,
        /// Mount options of the file system
        mount_options: Option<Text>,
        /// Block device of the file system: a partition, dm, md or the disk
        top_device: Option<Text>,
        /// Model name that the device reports
        model: Option<Text>,
        /// Schedulers that the kernel offers
        schedulers: Option<Vec<String>>,
        /// Longest queue of requests in the kernel for the device
        nr_requests: Option<u64>,
        /// Largest request that the kernel sends, in kB
        max_sectors_kb: Option<u64>,
        /// Largest request that the device accepts, in kB
        max_hw_sectors_kb: Option<u64>,
        /// Smallest unit that can be addressed, in bytes
        logical_block_size: Option<u64>,
        /// Smallest unit that the device writes without reading first, in bytes
        physical_block_size: Option<u64>,
        /// Allocation unit of the file system in bytes
        fs_block_size: Option<u64>,
        /// Size of the device in bytes
        size_bytes: Option<u64>,
        /// Is the device read only?
        read_only: Option<bool>,
        /// write back: the device has a volatile cache, which a sync must flush; write through: it has none,
        /// or reports none
        write_cache: Option<Text>,
        /// Can a single write bypass the device's volatile cache (Force Unit Access)?
        fua: Option<bool>,
        /// O_DIRECT requires multiples of this many bytes; 0: O_DIRECT is not possible
        direct_io_align: Option<u64>,
        /// ok; unsupported: no block device is known behind the directory
        status: &'static str,
        /// What could not be found out, and why
        notes: Vec<String>,
    }
}

row! {
    /// the relation, without its free space map and visibility map
    row CacheRow "cache" everyday [] {
        /// Blocks of the relation
        blks_total: u64,
        /// Blocks in shared buffers (temporary table: in the session's local buffers)
        shared_blks: u64,
        /// Percent of the relation in shared buffers; NULL if it is empty
        shared_pct: Option<f64>,
        /// Bytes in the OS cache; NULL on ZFS, which has its own cache
        os_cached_bytes: Option<u64>,
        /// Percent of the relation in the OS cache; NULL if it is empty, and on ZFS
        os_pct: Option<f64>,
        /// Bytes in the OS cache that are not yet on storage; NULL before Linux 6.5
        os_dirty_bytes: Option<u64>,
        /// Bytes of holes (blocks never written), for which the device reads nothing
        hole_bytes: u64,
    }
}

row! {
    /// the relation, without its free space map and visibility map
    row EvictRow "evict" everyday [] {
        /// Blocks in shared buffers before the call
        shared_blks_before: u64,
        /// Blocks in shared buffers after the call; PostgreSQL 15 and 16 can't evict them
        shared_blks_after: u64,
        /// Bytes in the OS cache before the call
        os_bytes_before: u64,
        /// Bytes in the OS cache after the call
        os_bytes_after: u64,
        /// Are both caches free of the relation now?
        complete: bool,
        /// Why something stayed in a cache
        notes: Vec<String>,
    }
}

row! {
    /// one running probe
    row ProgressRow "progress" everyday [] {
        /// Server process that runs the probe
        pid: i32,
        /// Relation that the probe reads; NULL if there is none, or if it is in another database
        relid: Option<Relation>,
        /// Name of the probe: seqscan is io_probe_seqscan, and so on
        probe: Option<&'static str>,
        /// Path that the probe measures now; sync: section; sustain: pattern; readahead: mode; evict: NULL
        path: Option<String>,
        /// Blocks done on this path (seqscan, random, depth, evict), or requests (ping); others: turns,
        /// slices or intervals done
        done: i64,
        /// Number of blocks, requests or turns in all; 0 if unknown. A limit may end the probe earlier
        total: i64,
        /// When the call started
        started_at: Timestamp,
    }
}

row! {
    /// one thing that matters to probes
    row CheckRow "check" everyday [] {
        /// What was checked
        item: Text,
        /// ok; unsupported: this kernel or server does not have it
        status: &'static str,
        /// What was found
        value: Text,
        /// What it means for probes, or how to change it; NULL if status is ok
        what_to_do: Option<Text>,
    }
}

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "device",
        returns: Returns::Rows(&DeviceRow::TYPE, 10),
        comment: "\
            Shows the devices behind the tablespaces, the WAL and temporary files, and their settings. Reads \
            /proc and /sys, and causes no I/O. pg_monitor may call it",
        ..LOOK
    },
    Function {
        name: "cache",
        arguments: &[required("rel", "regclass")],
        returns: Returns::Rows(&CacheRow::TYPE, 4),
        comment: "\
            Shows how much of a relation is in shared buffers and in the OS page cache. Looks at all buffer \
            headers, but reads no data. pg_monitor may call it",
        example: "'public.probed'",
        ..LOOK
    },
    Function {
        name: "evict",
        arguments: &[required("rel", "regclass")],
        returns: Returns::Rows(&EvictRow::TYPE, 4),
        comment: "\
            Writes the dirty pages of a relation. Then drops it from the OS page cache and, in PostgreSQL 17 \
            and later, from shared buffers. This affects all sessions. Needs EXECUTE, and SELECT or MAINTAIN \
            on the relation",
        example: "'public.probed'",
        ..MEASURE
    },
    Function {
        name: "progress",
        returns: Returns::Rows(&ProgressRow::TYPE, 1),
        comment: "Shows what the probes of all sessions do now, one row per probe. pg_monitor may call it",
        ..LOOK
    },
    Function {
        name: "check",
        returns: Returns::Rows(&CheckRow::TYPE, 20),
        comment: "Shows what this server and its kernel allow. Reads no data. pg_monitor may call it",
        ..LOOK
    },
];
