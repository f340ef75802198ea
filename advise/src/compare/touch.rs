//! Which figures a changed setting can touch.
//!
//! Requests of a probe past the OS cache, and its own syncs, are the same whatever most settings say. If such
//! a figure moves, something else has changed.
//!
//! # Limitations and caveats
//! Only what surely can't touch a figure is named here. All else may: another kernel, device or host, this
//! extension's own settings, arguments.

use std::ffi::CStr;

/// Which figures a setting can touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touches {
    /// All.
    All,
    /// Those of reads through the server or the OS cache.
    Cached,
    /// Those of io_probe_sync, which writes and waits as a commit does.
    Syncs,
    /// Both of these.
    CachedAndSyncs,
    /// None: the setting is of the server's own writes.
    Nothing,
}

/// The server's settings that bear on I/O. A change of one is a change of the configuration.
pub const SETTINGS: [(&CStr, Touches); 26] = [
    (c"backend_flush_after", Touches::Cached),
    (c"block_size", Touches::All),
    (c"commit_delay", Touches::Syncs),
    (c"commit_siblings", Touches::Syncs),
    (c"data_checksums", Touches::Cached),
    (c"debug_io_direct", Touches::CachedAndSyncs),
    (c"effective_io_concurrency", Touches::Cached),
    (c"fsync", Touches::Nothing),
    (c"huge_pages", Touches::Cached),
    (c"io_combine_limit", Touches::Cached),
    (c"io_max_combine_limit", Touches::Cached),
    (c"io_max_concurrency", Touches::Cached),
    (c"io_max_workers", Touches::Cached),
    (c"io_method", Touches::Cached),
    (c"io_min_workers", Touches::Cached),
    (c"io_worker_idle_timeout", Touches::Cached),
    (c"io_worker_launch_interval", Touches::Cached),
    (c"io_workers", Touches::Cached),
    (c"maintenance_io_concurrency", Touches::Cached),
    (c"shared_buffers", Touches::Cached),
    (c"temp_buffers", Touches::Cached),
    (c"track_io_timing", Touches::Cached),
    (c"wal_init_zero", Touches::Nothing),
    (c"wal_level", Touches::Syncs),
    (c"wal_segment_size", Touches::Syncs),
    (c"wal_sync_method", Touches::Nothing),
];

/// What a figure is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Reads past the OS cache, by the probe itself.
    Direct,
    /// Those of reads through the server or the OS cache.
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

fn touches(name: &str) -> Touches {
    if name == "read_ahead_kb" || name.starts_with("tablespace ") {
        return Touches::Cached;
    }
    let known = SETTINGS.iter().find(|(setting, _)| setting.to_bytes() == name.as_bytes());
    known.map_or(Touches::All, |(_, touches)| *touches)
}

/// Can what differs by this name, as in the rows of io_probe_compare, have moved the figure of this item of a
/// probe?
pub fn can_touch(name: &str, probe: &str, item: &str) -> bool {
    match touches(name) {
        Touches::All => true,
        Touches::Cached => way(probe, item) == Way::Cached,
        Touches::Syncs => way(probe, item) == Way::Syncs,
        Touches::CachedAndSyncs => way(probe, item) != Way::Direct,
        Touches::Nothing => false,
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
