//! Under which circumstances a probe ran: what it measured, the devices below and how they were set, the
//! machine and the server's settings. Read before the probe begins.

use io_probe_core::machine::device::{self, Leaf, Placement, Roots};
use io_probe_core::machine::host::Host;
use pgrx::pg_sys;
use serde_json::{Map, Value, json};

use super::super::device::leaves_of_server;
use crate::api::row::of_leaves;
use crate::call::probe::{Probe, Recorded};
use crate::pg::catalog::facts;
use crate::pg::history::{self, RelationFacts};

/// The settings that bear on I/O, of the server and of this extension. A change of one is a change of the
/// configuration. Caps are among them: a cap holds where a call gives no value.
const SETTINGS: [&str; 38] = [
    "backend_flush_after",
    "block_size",
    "commit_delay",
    "commit_siblings",
    "data_checksums",
    "debug_io_direct",
    "effective_io_concurrency",
    "fsync",
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
    "pg_io_probe.row_duration",
    "pg_io_probe.default_max_bytes",
    "pg_io_probe.engine",
    "pg_io_probe.max_busy_pct",
    "pg_io_probe.max_bytes",
    "pg_io_probe.max_depth",
    "pg_io_probe.max_duration",
    "pg_io_probe.max_iops",
    "pg_io_probe.max_mib_s",
    "pg_io_probe.max_p99",
    "pg_io_probe.max_util_pct",
    "pg_io_probe.scratch_limit",
    "shared_buffers",
    "temp_buffers",
    "track_io_timing",
    "wal_init_zero",
    "wal_level",
    "wal_segment_size",
    "wal_sync_method",
];

/// How a device was set.
fn leaf_facts(leaf: &Leaf, placement: &Placement) -> Value {
    json!({
        "device": leaf.name,
        "model": leaf.model,
        "scheduler": leaf.scheduler,
        // The window of the device on which the file system sits.
        "read_ahead_kb": placement.read_ahead_kb.or(leaf.read_ahead_kb),
        "nr_requests": leaf.nr_requests,
        "max_sectors_kb": leaf.max_sectors_kb,
        "rotational": leaf.rotational,
        "write_cache": leaf.write_cache,
    })
}

/// The part of the result of a probe that is about to be called with `args` that says where its rows come
/// from, and the devices below the object. Its keys are the columns of io_probe_runs; those of the relation
/// are in an object of their own.
pub(super) fn gather(
    probe: Probe,
    rel: Option<pg_sys::Oid>,
    args: &Map<String, Value>,
) -> (Value, Vec<Leaf>) {
    let relation = rel.and_then(RelationFacts::find);
    let (object, spcname, placement) = match &relation {
        Some(relation) => of_relation(relation),
        None if probe.recorded() == Recorded::WalOrTablespace => of_place(args),
        None => of_server(),
    };
    let mut settings: Map<String, Value> =
        history::setting_values(&SETTINGS).map(|(name, value)| (name.to_owned(), value.into())).collect();
    for option in spcname.iter().flat_map(|name| facts::tablespace_options(name)) {
        let (name, value) = option.split_once('=').unwrap_or((&option, ""));
        settings.insert(format!("tablespace {name}"), value.into());
    }
    let host = Host::here();
    let facts = json!({
        "object": object,
        "relation": relation,
        "spcname": spcname,
        "device": of_leaves(&placement, |leaf| Some(&leaf.name)),
        "model": of_leaves(&placement, |leaf| leaf.model.as_deref()),
        "leaves": placement.leaves.iter().map(|leaf| leaf_facts(leaf, &placement)).collect::<Value>(),
        "kernel": host.as_ref().map(|host| &host.kernel),
        "host": host.as_ref().map(|host| &host.name),
        "settings": settings,
    });
    (facts, placement.leaves)
}

fn of_relation(relation: &RelationFacts) -> (String, Option<String>, Placement) {
    let object = format!("{}.{}", relation.schemaname, relation.relname);
    let placement = relation.directory().map(|directory| device::locate(&directory, &Roots::default()));
    (object, relation.spcname.clone(), placement.unwrap_or_default())
}

/// The place of a probe's scratch file: beside the WAL, or in a tablespace.
fn of_place(args: &Map<String, Value>) -> (String, Option<String>, Placement) {
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    let spcname = text("spcname");
    let name = spcname.map_or_else(|| "wal".to_owned(), |name| format!("tablespace {name}"));
    let placed = facts::objects().into_iter().find(|object| object.name() == name);
    let placement = placed.map(|object| device::locate(&object.directory, &Roots::default()));
    (name, spcname.map(str::to_owned), placement.unwrap_or_default())
}

/// All devices that the server uses.
fn of_server() -> (String, Option<String>, Placement) {
    let (leaves, _) = leaves_of_server(&Roots::default());
    ("server".to_owned(), None, Placement { leaves, ..Placement::default() })
}
