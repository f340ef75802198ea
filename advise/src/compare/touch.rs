//! Which figures a changed setting can touch.
//!
//! Requests of a probe past the OS cache, and its own syncs, are the same whatever most settings say. If such
//! a figure moves, something else has changed.
//!
//! # Limitations and caveats
//! Only what surely can't touch a figure is named here. All else may: another kernel, device or host, this
//! extension's own settings, arguments.

/// Settings of what the server writes, which no read knows of.
const OF_WAL: [&str; 7] = [
    "commit_delay",
    "commit_siblings",
    "fsync",
    "wal_init_zero",
    "wal_level",
    "wal_segment_size",
    "wal_sync_method",
];

/// Of those, what decides how a commit writes, or how long it waits; io_probe_sync does the same.
const OF_COMMITS: [&str; 4] = ["commit_delay", "commit_siblings", "wal_level", "wal_segment_size"];

/// Settings of how the server reads and keeps what it has read.
const OF_CACHED_READS: [&str; 18] = [
    "backend_flush_after",
    "data_checksums",
    "effective_io_concurrency",
    "huge_pages",
    "io_combine_limit",
    "io_max_combine_limit",
    "io_max_concurrency",
    "io_max_workers",
    "io_method",
    "io_min_workers",
    "io_worker_idle_timeout",
    "io_worker_launch_interval",
    "io_workers",
    "maintenance_io_concurrency",
    "read_ahead_kb",
    "shared_buffers",
    "temp_buffers",
    "track_io_timing",
];

/// What a figure is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Reads past the OS cache, by the probe itself.
    Direct,
    /// Reads through the server or the OS cache.
    Cached,
    /// Syncs, by the probe itself.
    Syncs,
}

fn way(probe: &str, item: &str) -> Way {
    match (probe, item.split_once(' ')) {
        ("sync", _) | ("report", Some(("commit" | "commit_p99", _))) => Way::Syncs,
        ("depth", _) | ("report", Some(("depth" | "p99", _))) => Way::Direct,
        ("seqscan" | "random", _) if item == "direct" => Way::Direct,
        ("report", Some(("scan", "direct"))) | ("readahead", Some(("emulated", _))) => Way::Direct,
        _ => Way::Cached,
    }
}

/// Can what differs by this name, as in the rows of io_probe_compare, have moved the figure of this item of a
/// probe?
pub fn can_touch(name: &str, probe: &str, item: &str) -> bool {
    let is_of_reads = OF_CACHED_READS.contains(&name) || name.starts_with("tablespace ");
    match way(probe, item) {
        Way::Direct => !is_of_reads && !OF_WAL.contains(&name) && name != "debug_io_direct",
        Way::Cached => !OF_WAL.contains(&name),
        Way::Syncs => !is_of_reads && (!OF_WAL.contains(&name) || OF_COMMITS.contains(&name)),
    }
}

#[cfg(test)]
mod tests {
    use super::can_touch;

    #[test]
    fn a_setting_touches_what_works_by_it() {
        let figures = [
            ("seqscan", "direct"),
            ("depth", "depth 8"),
            ("report", "scan direct"),
            ("readahead", "emulated 128 kB"),
            ("seqscan", "server"),
            ("seqscan", "direct, cached"),
            ("readahead", "kernel"),
            ("report", "readahead kernel"),
            ("sync", "fdatasync 8 kB"),
            ("report", "commit_p99 fsync"),
        ];
        let touched = |name| figures.map(|(probe, item)| u8::from(can_touch(name, probe, item)));
        for name in ["read_ahead_kb", "effective_io_concurrency", "shared_buffers", "tablespace io_method"] {
            assert_eq!(touched(name), [0, 0, 0, 0, 1, 1, 1, 1, 0, 0], "{name}");
        }
        for name in ["wal_sync_method", "fsync"] {
            assert_eq!(touched(name), [0; 10], "{name}");
        }
        assert_eq!(touched("commit_delay"), [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(touched("debug_io_direct"), [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
        for name in ["kernel", "device", "scheduler", "argument cold", "pg_io_probe.engine", "host"] {
            assert_eq!(touched(name), [1; 10], "{name}");
        }
    }
}
