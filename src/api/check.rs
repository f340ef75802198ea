//! `io_probe_check`: what this server, its kernel and the caller's rights allow.

use io_probe_core::machine::account;
use io_probe_core::files::cache::{self, Method};
use io_probe_core::machine::cgroup::Cgroup;
use io_probe_core::run::clock::{self, Monotonic};
use io_probe_core::machine::device::{self, Roots};
use io_probe_core::files::direct_io;
use io_probe_core::engine;
use io_probe_core::machine::pressure::Pressure;
use io_probe_core::measure::random::Recorder;
use io_probe_core::measure::sync;
use pgrx::prelude::*;
use serde::Serialize;

use crate::call::arguments::figure;
use crate::gucs;
use crate::pg::backend::row::Rows;
use crate::pg::storage::buffers;
use crate::pg::catalog::objects;
use crate::pg::backend::server;

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
struct Item {
    item: String,
    status: &'static str,
    value: String,
    what_to_do: Option<&'static str>,
}

impl Item {
    fn ok(item: impl Into<String>, value: impl Into<String>) -> Self {
        Self { item: item.into(), status: "ok", value: value.into(), what_to_do: None }
    }

    fn missing(item: impl Into<String>, value: impl Into<String>, what_to_do: &'static str) -> Self {
        let (item, value) = (item.into(), value.into());
        Self { item, status: "unsupported", value, what_to_do: Some(what_to_do) }
    }
}

fn kernel() -> Vec<Item> {
    let residency = match cache::method() {
        Method::Cachestat => Item::ok("OS cache residency", "cachestat"),
        Method::Mincore | Method::Unknown => Item::missing(
            "OS cache residency",
            "mincore, which does not tell dirty pages",
            "Linux 6.5 or later has cachestat; a container's seccomp profile may refuse it.",
        ),
    };
    let uring = match engine::io_uring_refusal() {
        None => Item::ok("io_uring", "available"),
        Some(why) => Item::missing(
            "io_uring",
            why,
            "Threads are used instead. Allow io_uring in the container, or see kernel.io_uring_disabled.",
        ),
    };
    let account = match account::own_read_bytes() {
        Some(_) => Item::ok("account of bytes read", "/proc/self/io"),
        None => Item::missing(
            "account of bytes read",
            "/proc/self/io can't be read",
            "The kernel needs CONFIG_TASK_IO_ACCOUNTING, the container a /proc; device shares are unknown.",
        ),
    };
    let kernel = read_trimmed("/proc/sys/kernel/osrelease").map_or_else(
        || Item::missing("kernel", "unknown", "/proc is not mounted in this container."),
        |release| Item::ok("kernel", release),
    );
    let setting = read_trimmed("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let huge_pages = match setting.split(['[', ']']).nth(1) {
        Some(chosen @ ("always" | "madvise")) => Item::ok("huge pages for read buffers", chosen),
        other => Item::missing(
            "huge pages for read buffers",
            other.unwrap_or("unknown"),
            "Large direct reads reach the device in more segments, which slows some devices down; \
             set transparent_hugepage/enabled to madvise.",
        ),
    };
    let roots = Roots::default();
    let pressure = match Pressure::read(&roots) {
        Some(_) => Item::ok("I/O pressure", "/proc/pressure/io"),
        None => Item::missing(
            "I/O pressure",
            "/proc/pressure/io can't be read",
            "The kernel needs CONFIG_PSI, and psi=1 on its command line where that is off by default.",
        ),
    };
    let cgroup = Cgroup::find(&roots);
    let path = cgroup.io_path();
    let counted = if cgroup.counts_io() {
        Item::ok("I/O of the server's cgroup", path.unwrap_or_default())
    } else {
        let value =
            path.map_or_else(|| "no cgroup is visible".to_owned(), |path| format!("not counted: {path}"));
        let advice =
            "Give the server a cgroup that counts I/O (systemd: IOAccounting=yes) to tell its share apart.";
        Item::missing("I/O of the server's cgroup", value, advice)
    };
    vec![kernel, residency, uring, huge_pages, account, pressure, counted]
}

fn read_trimmed(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn devices() -> Vec<Item> {
    let roots = Roots::default();
    let of = |object: objects::Object| {
        let name = format!("device of {}", object.name());
        let placement = device::locate(&object.directory, &roots);
        let leaves: Vec<&str> = placement.leaves.iter().map(|leaf| leaf.name.as_str()).collect();
        let counted = placement.leaves.iter().all(|leaf| leaf.counters(&roots).is_some());
        match (leaves.is_empty(), counted) {
            (false, true) => Item::ok(name, leaves.join(", ")),
            (false, false) => Item::missing(
                name,
                format!("{}, without counters", leaves.join(", ")),
                "Mount /sys in the container to see requests and queue settings.",
            ),
            (true, _) => Item::missing(
                name,
                placement.notes.first().map_or("no block device", String::as_str),
                "Times are measured all the same; requests and queue settings are unknown.",
            ),
        }
    };
    objects::all().into_iter().map(of).collect()
}

/// Whether O_DIRECT works, by object.
fn direct_io() -> Vec<Item> {
    let of = |object: objects::Object| {
        let name = format!("O_DIRECT on {}", object.name());
        match direct_io::alignment_below(&object.directory) {
            Some(0) => Item::missing(name, "none", "The direct path is unsupported on this file system."),
            Some(align) => Item::ok(name, format!("in multiples of {align} bytes")),
            None => Item::missing(
                name,
                "unknown",
                "The kernel does not tell before 6.1, or there is no file yet; the direct path finds out.",
            ),
        }
    };
    objects::all().into_iter().filter(|object| object.kind == "tablespace").map(of).collect()
}

/// Whether probes that write find a place, by object.
fn scratch_files() -> Vec<Item> {
    let roots = Roots::default();
    let of = |object: objects::Object| {
        let name = format!("scratch file on {}", object.name());
        let placement = device::locate(&object.directory, &roots);
        let fs_type = placement.mount.map(|mount| mount.fs_type).unwrap_or_default();
        let free = placement.file_system.map_or(0, |file_system| file_system.free_bytes);
        let value = format!("{fs_type}, {} MB free", free >> 20);
        if !sync::logs_nameless_files(&fs_type) {
            let advice = "This file system syncs a file without a name otherwise than others: no sync test.";
            Item::missing(name, value, advice)
        } else if free < gucs::scratch_limit().saturating_add(gucs::scratch_reserve()) {
            let advice =
                "It takes pg_io_probe.scratch_limit at most and leaves pg_io_probe.scratch_reserve free.";
            Item::missing(name, value, advice)
        } else {
            Item::ok(name, value)
        }
    };
    objects::all().into_iter().filter(|object| object.kind != "temp").map(of).collect()
}

fn clocks() -> Vec<Item> {
    let (with_clock, without) = Recorder::cost_ns(&Monotonic);
    vec![
        Item::ok("clock resolution", format!("{} ns", clock::resolution_ns())),
        Item::ok("clock cost", format!("{} ns a reading", figure(clock::cost_ns()))),
        Item::ok(
            "recorder cost",
            format!(
                "{} ns a fetch, {} ns without its reading of the clock",
                figure(with_clock),
                figure(without)
            ),
        ),
    ]
}

fn this_server() -> Vec<Item> {
    let evicts = if buffers::can_evict() {
        Item::ok("eviction from shared buffers", "available")
    } else {
        Item::missing(
            "eviction from shared buffers",
            "not before PostgreSQL 17",
            "With cold => true the server path passes over blocks that are in shared buffers.",
        )
    };
    let timing = match server::setting(c"track_io_timing") {
        Some(value) if value == "on" => Item::ok("track_io_timing", value),
        value => Item::missing(
            "track_io_timing",
            value.unwrap_or_default(),
            "Turn it on to see io_read_ms in io_probe_explain; io_probe_check's clock cost is its price.",
        ),
    };
    let path = Item::ok("server path", server::read_method());
    let settings = server::own_settings().into_iter().map(|(name, value)| Item::ok(name, value));
    [path, evicts, timing].into_iter().chain(settings).collect()
}

fn rights() -> Vec<Item> {
    let of = |function: &server::OwnFunction| {
        let name = format!("EXECUTE on {}", function.name);
        if function.executable {
            Item::ok(name, "granted")
        } else {
            let advice = "Ask for GRANT EXECUTE; the README has one block for it.";
            Item { item: name, status: "denied", value: "not granted".to_owned(), what_to_do: Some(advice) }
        }
    };
    server::own_functions().iter().map(of).collect()
}
