//! `io_probe_check`: what this server and its kernel allow.

use io_probe_core::engine::{self, UringRefusal};
use io_probe_core::files::direct_io;
use io_probe_core::files::page_cache::{self, ResidencyMethod};
use io_probe_core::machine::account;
use io_probe_core::machine::device::{self, Roots};
use io_probe_core::machine::pressure::Pressure;
use io_probe_core::run::clock;
use io_probe_surface::facts::CheckRow;
use io_probe_surface::value::Text;
use pgrx::prelude::*;

use crate::call::figure;
use crate::gucs;
use crate::pg::backend::{Rows, server};
use crate::pg::catalog::facts::{self, Object};
use crate::pg::storage::buffers;

#[pg_extern(sql = false)]
fn io_probe_check() -> Rows {
    Rows::answer(|| {
        Ok([kernel(), io_uring(), devices(), direct_io(), scratch_files(), clocks(), this_server()].concat())
    })
}

fn row(
    item: impl Into<Text>,
    status: &'static str,
    value: impl Into<Text>,
    what_to_do: Option<&'static str>,
) -> CheckRow {
    // In lines, so that psql shows a row in a hundred columns.
    let [value, what_to_do] = [(value.into(), 25), (what_to_do.unwrap_or_default().into(), 24)]
        .map(|(text, width): (Text, usize)| Text::from(textwrap::fill(&text, width)));
    CheckRow {
        item: item.into(),
        status,
        value,
        what_to_do: Some(what_to_do).filter(|what| !what.is_empty()),
    }
}

fn ok(item: impl Into<Text>, value: impl Into<Text>) -> CheckRow {
    row(item, "ok", value, None)
}

fn missing(item: impl Into<Text>, value: impl Into<Text>, what_to_do: &'static str) -> CheckRow {
    row(item, "unsupported", value, Some(what_to_do))
}

/// Ok with what was found, or else unsupported with `lacking`.
fn found_or(
    found: Option<impl Into<Text>>,
    item: &'static str,
    lacking: impl Into<Text>,
    what_to_do: &'static str,
) -> CheckRow {
    match found {
        Some(found) => ok(item, found),
        None => missing(item, lacking, what_to_do),
    }
}

fn kernel() -> Vec<CheckRow> {
    let roots = Roots::default();
    let kernel = found_or(
        read_trimmed("/proc/sys/kernel/osrelease"),
        "kernel",
        "unknown",
        "/proc is not mounted in this container, or shows processes only (subset=pid).",
    );
    let residency = found_or(
        (page_cache::method() == ResidencyMethod::Cachestat).then_some("cachestat"),
        "OS cache residency",
        "mincore, which does not show dirty pages",
        "Linux 6.5 or later has cachestat; a container's seccomp profile may refuse it.",
    );
    let setting = read_trimmed("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let chosen = setting.split(['[', ']']).nth(1).unwrap_or("unknown").to_owned();
    let huge_pages = found_or(
        Some(chosen.clone()).filter(|chosen| ["always", "madvise"].contains(&chosen.as_str())),
        "huge pages for read buffers",
        chosen,
        "Large direct reads reach the device in more segments, which slows some devices down; \
         set transparent_hugepage/enabled to madvise.",
    );
    let account = found_or(
        account::own_read_bytes().map(|_| "/proc/self/io"),
        "account of bytes read",
        "/proc/self/io can't be read",
        "It is unknown how much came from the device. The kernel needs CONFIG_TASK_IO_ACCOUNTING, and a \
         container needs a /proc whose files the server may read.",
    );
    let pressure = found_or(
        Pressure::read(&roots).map(|_| "/proc/pressure/io"),
        "I/O pressure",
        "/proc/pressure/io can't be read",
        "The kernel needs CONFIG_PSI, and psi=1 on its command line if PSI is off by default.",
    );
    vec![kernel, residency, huge_pages, account, pressure]
}

/// What io_uring needs: for reads by the probes, and for `io_method = io_uring` of a server from 18 on.
fn io_uring() -> Vec<CheckRow> {
    let disabled = read_trimmed(IO_URING_DISABLED);
    let is_enabled = disabled.as_deref().is_none_or(|value| value == "0");
    let ring = match engine::io_uring_refusal() {
        None => ok("io_uring", "available"),
        Some(why) => missing("io_uring", why.to_string(), what_allows_it(&why, is_enabled)),
    };
    let value = disabled.unwrap_or_else(|| "not on this kernel".to_owned());
    let sysctl = found_or(
        is_enabled.then(|| value.clone()),
        "kernel.io_uring_disabled",
        value,
        "0 allows io_uring to all, 1 only to processes with CAP_SYS_ADMIN or in the group \
         kernel.io_uring_group, 2 to nobody.",
    );
    let locked = found_or(
        locked_memory(),
        "lockable memory",
        "/proc/self/limits can't be read",
        "Before Linux 5.12 each backend's ring needs RLIMIT_MEMLOCK (systemd: LimitMEMLOCK).",
    );
    vec![ring, sysctl, locked, io_methods()]
}

const IO_URING_DISABLED: &str = "/proc/sys/kernel/io_uring_disabled";

fn what_allows_it(why: &UringRefusal, is_enabled: bool) -> &'static str {
    match why {
        UringRefusal::Kernel => {
            "Threads are used instead. Linux 5.1 and later have io_uring, if they were built with it."
        }
        UringRefusal::Permission if !is_enabled => {
            "Threads are used instead. Set kernel.io_uring_disabled to 0; or set it to 1, and \
             kernel.io_uring_group to the server's group."
        }
        UringRefusal::Permission => {
            "Threads are used instead. Allow io_uring_setup, io_uring_enter and io_uring_register in the \
             seccomp profile of the container or service."
        }
        UringRefusal::Memory => {
            "Threads are used instead. Raise RLIMIT_MEMLOCK (systemd: LimitMEMLOCK), or use Linux 5.12 or \
             later, where rings do not count against it."
        }
        UringRefusal::Other(_) => "Threads are used instead.",
    }
}

/// The limit of the server, as the kernel prints it: bytes, or unlimited.
fn locked_memory() -> Option<String> {
    let limits = read_trimmed("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    line.split_whitespace().next().map(str::to_owned)
}

/// The methods that the server was built with.
fn io_methods() -> CheckRow {
    const ITEM: &str = "io_method";
    let Some(methods) = facts::values_of(ITEM) else {
        return missing(
            ITEM,
            "not before PostgreSQL 18",
            "Each server process does its own reads, as with io_method = sync.",
        );
    };
    let all = methods.join(", ");
    let has_ring = methods.iter().any(|method| method == "io_uring");
    found_or(
        has_ring.then(|| all.clone()),
        ITEM,
        all,
        "The server was built without liburing: io_method = io_uring needs a package or a build with it.",
    )
}

fn read_trimmed(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn devices() -> Vec<CheckRow> {
    facts::objects().iter().map(device_of).collect()
}

fn device_of(object: &Object) -> CheckRow {
    let roots = Roots::default();
    let item = format!("device of {}", name(object));
    let placement = device::locate(&object.directory, &roots);
    let leaves: Vec<&str> = placement.leaves.iter().map(|leaf| leaf.name.as_str()).collect();
    let leaves = leaves.join(", ");
    if placement.leaves.is_empty() {
        missing(
            item,
            placement.notes.into_iter().next().map_or("no block device".into(), Text::from),
            "Probes still measure times, but requests and queue settings are unknown.",
        )
    } else if placement.leaves.iter().all(|leaf| leaf.counters(&roots).is_some()) {
        ok(item, leaves)
    } else {
        missing(
            item,
            format!("{leaves}, without counters"),
            "Mount /sys in the container to see requests and queue settings.",
        )
    }
}

/// The tablespace's name, or what else it is.
fn name(object: &Object) -> String {
    let of_tablespace = object.tablespace.clone().filter(|_| object.kind == "tablespace");
    of_tablespace.unwrap_or_else(|| object.name())
}

/// Whether O_DIRECT works, by object.
fn direct_io() -> Vec<CheckRow> {
    facts::objects().iter().filter(|object| object.kind == "tablespace").map(direct_io_on).collect()
}

fn direct_io_on(object: &Object) -> CheckRow {
    let item = format!("O_DIRECT on {}", name(object));
    match direct_io::alignment_below(&object.directory) {
        Some(0) => {
            missing(item, "none", "This file system does not support O_DIRECT, which path direct needs.")
        }
        Some(align) => ok(item, format!("in multiples of {align} bytes")),
        None => missing(
            item,
            "unknown",
            "Linux shows this from 6.1 on, if a file exists. A probe with path direct shows if it works.",
        ),
    }
}

/// Whether probes that write find a place, by object.
fn scratch_files() -> Vec<CheckRow> {
    facts::objects().iter().filter(|object| object.kind != "temp").map(scratch_file_on).collect()
}

fn scratch_file_on(object: &Object) -> CheckRow {
    let item = format!("scratch file on {}", name(object));
    let placement = device::locate(&object.directory, &Roots::default());
    let fs_type = placement.mount.map(|mount| mount.fs_type).unwrap_or_default();
    let free = placement.file_system.map_or(0, |file_system| file_system.free_bytes);
    let value = format!("{fs_type}, {} MB free", free >> 20);
    if free < gucs::SCRATCH_LIMIT.bytes().saturating_add(gucs::SCRATCH_RESERVE.bytes()) {
        let advice =
            "It may take up to pg_io_probe.scratch_limit, and pg_io_probe.scratch_reserve must stay free.";
        missing(item, value, advice)
    } else {
        ok(item, value)
    }
}

fn clocks() -> Vec<CheckRow> {
    vec![
        ok("clock resolution", format!("{} ns", clock::resolution_ns())),
        ok("clock cost", format!("{} ns per reading", figure(clock::cost_ns()))),
    ]
}

fn this_server() -> Vec<CheckRow> {
    let path = ok("server path", server::read_method());
    let evicts = found_or(
        buffers::EVICTS_SHARED_BUFFERS.then_some("available"),
        "eviction from shared buffers",
        "not before PostgreSQL 17",
        "With cold => true, path server skips blocks that are in shared buffers.",
    );
    let timing = server::setting(c"track_io_timing").unwrap_or_default();
    let timing = if timing == "on" { "on" } else { "off: plans that you pass as JSON may have no io_ms" };
    vec![path, evicts, ok("track_io_timing", timing)]
}
