//! Facts that are only read: devices, their counters, caches, running probes, what is possible here.

use crate::function::{Function, Group, Returns, Who, required};
use crate::row::{Row, row};
use crate::value::{Relation, Text, Timestamp};

row! {
    /// one object of the server on one device
    row DeviceRow "device" everyday [
        object, spcname, device, scheduler, read_ahead_kb, rotational, fs_type, write_cache, status
    ] {
        /// What lies on the device: tablespace, wal or temp (where temporary files of this session go)
        object: &'static str,
        /// Name of the tablespace; NULL for the WAL
        spcname: Option<Text>,
        /// Device that does the I/O: the disk below partitions, LVM and encryption (dm) and software RAID
        /// (md), one row for each disk; NULL if unknown
        device: Option<Text>,
        /// I/O scheduler in force on the device
        scheduler: Option<Text>,
        /// Readahead window in kB of reads through this file system; an open file keeps the window with which
        /// it was opened
        read_ahead_kb: Option<u64>,
        /// read_ahead_kb in sectors of 512 bytes, as blockdev --getra prints it
        read_ahead_sectors: Option<u64>,
        /// Does the device say that it is a rotating disk? Virtual disks often say so wrongly
        rotational: Option<bool>,
        /// Type of the file system
        fs_type: Option<Text>,
        /// Where the file system is mounted
        mount_point: Option<Text>,
        /// Directory of the object, symbolic links resolved
        directory: Text,
        /// Bytes of the file system that are free for unprivileged processes
        fs_free_bytes: Option<u64>,
        /// Mount options of the file system
        mount_options: Option<Text>,
        /// Device on which the file system sits: a partition, a dm or md device, or the disk itself
        top_device: Option<Text>,
        /// Model as the device states it
        model: Option<Text>,
        /// Schedulers that the kernel offers for the device
        schedulers: Option<Vec<String>>,
        /// Maximum number of requests in the kernel's queue for the device
        nr_requests: Option<u64>,
        /// Largest request in kB that the kernel sends to the device
        max_sectors_kb: Option<u64>,
        /// Largest request in kB that the device accepts
        max_hw_sectors_kb: Option<u64>,
        /// Smallest unit in bytes that the device can address
        logical_block_size: Option<u64>,
        /// Smallest unit in bytes that the device writes without reading first
        physical_block_size: Option<u64>,
        /// Allocation unit of the file system in bytes
        fs_block_size: Option<u64>,
        /// Request size in bytes that the device prefers; 0 if it states none
        optimal_io_size: Option<u64>,
        /// Bytes by which the partition or device is off its natural alignment
        alignment_offset: Option<i64>,
        /// First sector of the partition; NULL without a partition
        start_sector: Option<u64>,
        /// Does the partition start on a boundary of a physical block and of optimal_io_size?
        aligned: Option<bool>,
        /// Size of the device in bytes
        size_bytes: Option<u64>,
        /// Is the device read only?
        read_only: Option<bool>,
        /// write back: the device has a volatile cache, which must be flushed; write through: it has none, or
        /// says so
        write_cache: Option<Text>,
        /// Can a single write pass the device's volatile cache (Force Unit Access)?
        fua: Option<bool>,
        /// 0: the kernel merges requests; 1: only simple merges; 2: no merges
        nomerges: Option<i16>,
        /// Multiple in bytes that O_DIRECT requires; 0: no O_DIRECT here; NULL if the kernel does not tell
        direct_io_align: Option<u64>,
        /// ok, or unsupported if no block device is known behind the directory
        status: &'static str,
        /// What could not be found out, and why, one sentence per element
        notes: Vec<String>,
    }
}

row! {
    /// one device
    row CountersRow "counters" everyday [] {
        /// When the counters were read
        sampled_at: Timestamp,
        /// Kernel name of the device, such as vda
        device: Text,
        /// Reads that the device completed since it appeared
        reads: u64,
        /// Reads that were merged into queued reads
        reads_merged: u64,
        /// Bytes read since the device appeared
        read_bytes: u64,
        /// Time in ms that all reads took together, queueing included; starts again at 0 after 2^32
        read_ms: u64,
        /// Writes that the device completed since it appeared
        writes: u64,
        /// Writes that were merged into queued writes
        writes_merged: u64,
        /// Bytes written since the device appeared
        write_bytes: u64,
        /// Time in ms that all writes took together, queueing included; starts again at 0 after 2^32
        write_ms: u64,
        /// Discards that the device completed since it appeared; NULL before Linux 4.18
        discards: Option<u64>,
        /// Discards that were merged into queued discards; NULL before Linux 4.18
        discards_merged: Option<u64>,
        /// Bytes discarded since the device appeared; NULL before Linux 4.18
        discard_bytes: Option<u64>,
        /// Time in ms that all discards took together, queueing included; starts again at 0 after 2^32; NULL
        /// before Linux 4.18
        discard_ms: Option<u64>,
        /// Flushes that the device completed since it appeared; NULL before Linux 5.5
        flushes: Option<u64>,
        /// Time in ms that all flushes took together, queueing included; starts again at 0 after 2^32; NULL
        /// before Linux 5.5
        flush_ms: Option<u64>,
        /// Requests in flight when the counters were read
        in_flight: u64,
        /// Time in ms with at least one request in flight; starts again at 0 after 2^32
        io_ms: u64,
        /// Time in ms that all requests took together, queueing included; starts again at 0 after 2^32
        weighted_io_ms: u64,
    }
}

row! {
    /// one fork of the relation
    row CacheRow "cache" everyday [] {
        /// main (the data), fsm, vm or init
        fork: &'static str,
        /// Blocks of the fork
        blks_total: u64,
        /// Blocks of the fork in shared buffers (of a temporary table: in the session's own buffers)
        shared_blks: u64,
        /// shared_blks in percent of blks_total; NULL for an empty fork
        shared_pct: Option<f64>,
        /// Bytes of the fork in the OS page cache; NULL on ZFS, which keeps a cache of its own
        os_cached_bytes: Option<u64>,
        /// os_cached_bytes in percent of the fork's bytes; NULL for an empty fork, and on ZFS
        os_pct: Option<f64>,
        /// Bytes of the fork in the OS page cache that are not on storage yet; NULL before Linux 6.5
        os_dirty_bytes: Option<u64>,
        /// Bytes in blocks that were never written to the file: the device has nothing to read for them
        hole_bytes: u64,
    }
}

row! {
    /// one fork of the relation
    row EvictRow "evict" everyday [] {
        /// main (the data), fsm, vm or init
        fork: &'static str,
        /// Blocks in shared buffers before the call
        shared_blks_before: u64,
        /// Blocks in shared buffers after the call; PostgreSQL 15 and 16 cannot evict them
        shared_blks_after: u64,
        /// Bytes in the OS page cache before the call
        os_bytes_before: u64,
        /// Bytes in the OS page cache after the call
        os_bytes_after: u64,
        /// Is nothing of the fork left in shared buffers and in the OS page cache?
        complete: bool,
        /// Why something stayed in a cache, one sentence per element
        notes: Vec<String>,
    }
}

row! {
    /// one running probe
    row ProgressRow "progress" everyday [] {
        /// Server process that runs the probe
        pid: i32,
        /// Relation that the probe reads; NULL if it reads none, or one of another database
        relid: Option<Relation>,
        /// Name of the probe: seqscan is io_probe_seqscan, and so on
        probe: Option<&'static str>,
        /// Path that the probe measures now; for sync the section, for readahead the mode, for evict the fork
        path: Option<String>,
        /// Blocks done on this path; for sync and readahead turns done, for iostat samples done
        done: i64,
        /// What done can reach: blocks from the start of the path to the end of the relation, turns of all
        /// rows, or samples; 0 if unknown. A bound may end the path earlier
        total: i64,
        /// When the call started
        started_at: Timestamp,
    }
}

row! {
    /// one thing that matters to probes
    row CheckRow "check" everyday [] {
        /// What was looked at
        item: Text,
        /// ok or unsupported (this kernel or server lacks it)
        status: &'static str,
        /// What was found
        value: Text,
        /// What it means for probes, or what would change it; NULL if the status is ok
        what_to_do: Option<Text>,
    }
}

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "device",
        calls: None,
        arguments: &[],
        returns: Returns::Rows(&DeviceRow::TYPE, 10),
        group: Group::Look,
        who: Who::Monitor,
        comment: "\
            Devices behind the tablespaces, the WAL and temporary files, and their settings. Reads /proc and \
            /sys, and causes no I/O. pg_monitor may call it",
        example: "",
        errors: &[],
    },
    Function {
        name: "counters",
        calls: None,
        arguments: &[],
        returns: Returns::Rows(&CountersRow::TYPE, 4),
        group: Group::Look,
        who: Who::Monitor,
        comment: "\
            Cumulative counters of the devices below the server, each since the device appeared. Causes no \
            I/O. pg_monitor may call it",
        example: "",
        errors: &[],
    },
    Function {
        name: "cache",
        calls: None,
        arguments: &[required("rel", "regclass")],
        returns: Returns::Rows(&CacheRow::TYPE, 4),
        group: Group::Look,
        who: Who::Monitor,
        comment: "\
            How much of a relation is in shared buffers and in the OS page cache, one row per fork. Walks \
            all buffer headers; reads no data. pg_monitor may call it",
        example: "'public.probed'",
        errors: &[],
    },
    Function {
        name: "evict",
        calls: None,
        arguments: &[required("rel", "regclass")],
        returns: Returns::Rows(&EvictRow::TYPE, 4),
        group: Group::Measure,
        who: Who::Owner,
        comment: "\
            Writes the dirty pages of a relation, then drops it from the OS page cache and, where the server \
            can (from PostgreSQL 17 on), from shared buffers. Other sessions will read it from the device \
            again. Needs EXECUTE, and SELECT or MAINTAIN on the relation",
        example: "'public.probed'",
        errors: &[],
    },
    Function {
        name: "progress",
        calls: None,
        arguments: &[],
        returns: Returns::Rows(&ProgressRow::TYPE, 1),
        group: Group::Look,
        who: Who::Monitor,
        comment: "What the probes of all sessions are doing now, one row per probe. pg_monitor may call it",
        example: "",
        errors: &[],
    },
    Function {
        name: "check",
        calls: None,
        arguments: &[],
        returns: Returns::Rows(&CheckRow::TYPE, 20),
        group: Group::Look,
        who: Who::Monitor,
        comment: "\
            What this server and its kernel allow, one row per item. Reads no data. pg_monitor may call it",
        example: "",
        errors: &[],
    },
];
