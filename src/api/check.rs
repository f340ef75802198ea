//! `io_probe_check`: what this server, its kernel and the caller's rights allow.

use io_probe_core::engine;
use io_probe_core::files::direct_io;
use io_probe_core::files::page_cache::{self, ResidencyMethod};
use io_probe_core::machine::account;
use io_probe_core::machine::cgroup::Cgroup;
use io_probe_core::machine::device::{self, Roots};
use io_probe_core::machine::pressure::Pressure;
use io_probe_core::measure::sync;
use io_probe_core::run::clock;
use pgrx::prelude::*;
use serde::Serialize;

use crate::call::arguments::figure;
use crate::gucs;
use crate::pg::backend::row::Rows;
use crate::pg::backend::server;
use crate::pg::catalog::facts;
use crate::pg::storage::buffers;

#[pg_extern(sql = false)]
fn io_probe_check() -> Rows {
    let items = kernel()
        .into_iter()
        .chain(devices())
        .chain(direct_io())
        .chain(scratch_files())
        .chain(clocks())
        .chain(this_server())
        .chain(rights());
    Rows::of(items)
}

/// `io_probe_check_row`.
#[derive(Debug, Serialize)]
struct CheckRow {
    item: String,
    status: &'static str,
    value: String,
    what_to_do: Option<&'static str>,
}

impl CheckRow {
    fn ok(item: impl Into<String>, value: impl Into<String>) -> Self {
        Self { item: item.into(), status: "ok", value: value.into(), what_to_do: None }
    }

    /// The row of `item`: ok with `found`, or else unsupported with `lacking`.
    fn of(
        item: &str,
        found: Option<impl Into<String>>,
        lacking: impl Into<String>,
        what_to_do: &'static str,
    ) -> Self {
        found.map_or_else(|| Self::missing(item, lacking, what_to_do), |found| Self::ok(item, found))
    }

    fn missing(item: impl Into<String>, value: impl Into<String>, what_to_do: &'static str) -> Self {
        let (item, value) = (item.into(), value.into());
        Self { item, status: "unsupported", value, what_to_do: Some(what_to_do) }
    }
}

fn kernel() -> Vec<CheckRow> {
    let residency = CheckRow::of(
        "OS cache residency",
        (page_cache::method() == ResidencyMethod::Cachestat).then_some("cachestat"),
        "mincore, which does not tell dirty pages",
        "Linux 6.5 or later has cachestat; a container's seccomp profile may refuse it.",
    );
    let uring = match engine::io_uring_refusal() {
        None => CheckRow::ok("io_uring", "available"),
        Some(why) => CheckRow::missing(
            "io_uring",
            why,
            "Threads are used instead. Allow io_uring in the container, or see kernel.io_uring_disabled.",
        ),
    };
    let account = CheckRow::of(
        "account of bytes read",
        account::own_read_bytes().map(|_| "/proc/self/io"),
        "/proc/self/io can't be read",
        "The kernel needs CONFIG_TASK_IO_ACCOUNTING, the container a /proc; device shares are unknown.",
    );
    let release = read_trimmed("/proc/sys/kernel/osrelease");
    let kernel = CheckRow::of("kernel", release, "unknown", "/proc is not mounted in this container.");
    let setting = read_trimmed("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let chosen = setting.split(['[', ']']).nth(1);
    let huge_pages = CheckRow::of(
        "huge pages for read buffers",
        chosen.filter(|chosen| ["always", "madvise"].contains(chosen)),
        chosen.unwrap_or("unknown"),
        "Large direct reads reach the device in more segments, which slows some devices down; \
         set transparent_hugepage/enabled to madvise.",
    );
    let roots = Roots::default();
    let pressure = CheckRow::of(
        "I/O pressure",
        Pressure::read(&roots).map(|_| "/proc/pressure/io"),
        "/proc/pressure/io can't be read",
        "The kernel needs CONFIG_PSI, and psi=1 on its command line where that is off by default.",
    );
    let cgroup = Cgroup::find(&roots);
    let path = cgroup.io_path();
    let counted = if cgroup.counts_io() {
        CheckRow::ok("I/O of the server's cgroup", path.unwrap_or_default())
    } else {
        let value =
            path.map_or_else(|| "no cgroup is visible".to_owned(), |path| format!("not counted: {path}"));
        let advice =
            "Give the server a cgroup that counts I/O (systemd: IOAccounting=yes) to tell its share apart.";
        CheckRow::missing("I/O of the server's cgroup", value, advice)
    };
    vec![kernel, residency, uring, huge_pages, account, pressure, counted]
}

fn read_trimmed(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn devices() -> Vec<CheckRow> {
    let roots = Roots::default();
    let of = |object: facts::Object| {
        let name = format!("device of {}", object.name());
        let placement = device::locate(&object.directory, &roots);
        let leaves: Vec<&str> = placement.leaves.iter().map(|leaf| leaf.name.as_str()).collect();
        let counted = placement.leaves.iter().all(|leaf| leaf.counters(&roots).is_some());
        match (leaves.is_empty(), counted) {
            (false, true) => CheckRow::ok(name, leaves.join(", ")),
            (false, false) => CheckRow::missing(
                name,
                format!("{}, without counters", leaves.join(", ")),
                "Mount /sys in the container to see requests and queue settings.",
            ),
            (true, _) => CheckRow::missing(
                name,
                placement.notes.first().map_or("no block device", String::as_str),
                "Times are measured all the same; requests and queue settings are unknown.",
            ),
        }
    };
    facts::objects().into_iter().map(of).collect()
}

/// Whether O_DIRECT works, by object.
fn direct_io() -> Vec<CheckRow> {
    let of = |object: facts::Object| {
        let name = format!("O_DIRECT on {}", object.name());
        match direct_io::alignment_below(&object.directory) {
            Some(0) => CheckRow::missing(name, "none", "The direct path is unsupported on this file system."),
            Some(align) => CheckRow::ok(name, format!("in multiples of {align} bytes")),
            None => CheckRow::missing(
                name,
                "unknown",
                "The kernel does not tell before 6.1, or there is no file yet; the direct path finds out.",
            ),
        }
    };
    facts::objects().into_iter().filter(|object| object.kind == "tablespace").map(of).collect()
}

/// Whether probes that write find a place, by object.
fn scratch_files() -> Vec<CheckRow> {
    let roots = Roots::default();
    let of = |object: facts::Object| {
        let name = format!("scratch file on {}", object.name());
        let placement = device::locate(&object.directory, &roots);
        let fs_type = placement.mount.map(|mount| mount.fs_type).unwrap_or_default();
        let free = placement.file_system.map_or(0, |file_system| file_system.free_bytes);
        let value = format!("{fs_type}, {} MB free", free >> 20);
        if !sync::logs_nameless_files(&fs_type) {
            let advice = "This file system syncs a file without a name otherwise than others: no sync test.";
            CheckRow::missing(name, value, advice)
        } else if free < gucs::scratch_limit().saturating_add(gucs::scratch_reserve()) {
            let advice =
                "It takes pg_io_probe.scratch_limit at most and leaves pg_io_probe.scratch_reserve free.";
            CheckRow::missing(name, value, advice)
        } else {
            CheckRow::ok(name, value)
        }
    };
    facts::objects().into_iter().filter(|object| object.kind != "temp").map(of).collect()
}

fn clocks() -> Vec<CheckRow> {
    vec![
        CheckRow::ok("clock resolution", format!("{} ns", clock::resolution_ns())),
        CheckRow::ok("clock cost", format!("{} ns a reading", figure(clock::cost_ns()))),
    ]
}

fn this_server() -> Vec<CheckRow> {
    let evicts = CheckRow::of(
        "eviction from shared buffers",
        buffers::EVICTS_SHARED_BUFFERS.then_some("available"),
        "not before PostgreSQL 17",
        "With cold => true the server path passes over blocks that are in shared buffers.",
    );
    let timing = server::setting(c"track_io_timing").unwrap_or_default();
    let timing = CheckRow::of(
        "track_io_timing",
        Some(timing.as_str()).filter(|timing| *timing == "on"),
        timing.as_str(),
        "Turn it on to see io_ms in io_probe_explain; io_probe_check's clock cost is its price.",
    );
    let path = CheckRow::ok("server path", server::read_method());
    let settings = server::own_settings().into_iter().map(|(name, value)| CheckRow::ok(name, value));
    [path, evicts, timing].into_iter().chain(settings).collect()
}

fn rights() -> Vec<CheckRow> {
    let of = |function: &server::OwnFunction| {
        let name = format!("EXECUTE on {}", function.name);
        if function.executable {
            CheckRow::ok(name, "granted")
        } else {
            let advice = "Ask for GRANT EXECUTE; the README has the statements.";
            CheckRow {
                item: name,
                status: "denied",
                value: "not granted".to_owned(),
                what_to_do: Some(advice),
            }
        }
    };
    let functions = server::own_functions();
    // A function of all columns goes with the one that people call, unless only one of the two is granted.
    let is_shown = |function: &&server::OwnFunction| {
        function.name.strip_suffix("_full").is_none_or(|name| {
            functions.iter().any(|other| other.name == name && other.executable != function.executable)
        })
    };
    functions.iter().filter(is_shown).map(of).collect()
}
