//! `io_probe_device`: which devices are behind the server's directories, and how they are set.
//! `io_probe_counters`: what those devices have done since boot.

use io_probe_core::files::direct_io;
use io_probe_core::machine::device::{self, Counters, Leaf, Roots};
use pgrx::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use crate::pg::backend::row::Rows;
use crate::pg::backend::server;
use crate::pg::catalog::facts::{self, Object};

#[pg_extern(sql = false)]
fn io_probe_device() -> Rows {
    let roots = Roots::default();
    Rows::of(facts::objects().iter().flat_map(|object| facts(object, &roots)))
}

/// `io_probe_device_full_row`.
#[derive(Serialize)]
struct Fact {
    #[serde(flatten)]
    leaf: Option<Leaf>,
    /// What all rows of an object have.
    #[serde(flatten)]
    shared: Value,
    status: &'static str,
}

/// The rows of one object: one per leaf, or one without a device.
fn facts(object: &Object, roots: &Roots) -> Vec<Fact> {
    let placement = device::locate(&object.directory, roots);
    let (mount, file_system) = (placement.mount.as_ref(), placement.file_system.as_ref());
    let shared = json!({
        "object": object.kind,
        "spcname": object.tablespace,
        "read_ahead_kb": placement.read_ahead_kb,
        "read_ahead_sectors": placement.read_ahead_kb.map(|kb| kb * 2),
        "fs_type": mount.map(|m| &m.fs_type),
        "mount_point": mount.map(|m| m.mount_point.display().to_string()),
        "mount_options": mount.map(|m| &m.options),
        "directory": placement.directory.display().to_string(),
        "fs_free_bytes": file_system.map(|f| f.free_bytes),
        "fs_block_size": file_system.map(|f| f.block_size),
        "top_device": placement.top,
        "direct_io_align": direct_io::alignment_below(&placement.directory),
        "notes": placement.notes,
    });
    if placement.leaves.is_empty() {
        return vec![Fact { leaf: None, shared, status: "unsupported" }];
    }
    let of_leaf = |leaf| Fact { leaf: Some(leaf), shared: shared.clone(), status: "ok" };
    placement.leaves.into_iter().map(of_leaf).collect()
}

/// The devices behind the tablespaces, the WAL and temporary files, each once, and what could not be found
/// out.
pub(super) fn leaves_of_server(roots: &Roots) -> (Vec<Leaf>, Vec<String>) {
    let (mut leaves, mut notes): (Vec<Leaf>, Vec<String>) = Default::default();
    for object in facts::objects() {
        let placement = device::locate(&object.directory, roots);
        for leaf in placement.leaves {
            if !leaves.iter().any(|known| known.name == leaf.name) {
                leaves.push(leaf);
            }
        }
        for note in placement.notes {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    (leaves, notes)
}

#[pg_extern(sql = false)]
fn io_probe_counters() -> Rows {
    let roots = Roots::default();
    let (leaves, _) = leaves_of_server(&roots);
    let sampled_at = server::now();
    let row = |leaf: &Leaf| Some(totals(&sampled_at, &leaf.name, &leaf.counters(&roots)?));
    Rows::of(leaves.iter().filter_map(row))
}

/// A row of `io_probe_counters_row`.
fn totals(sampled_at: &str, device: &str, counters: &Counters) -> Value {
    let Counters { reads, writes, discards, flushes, .. } = counters;
    json!({
        "sampled_at": sampled_at,
        "device": device,
        "reads": reads.completed,
        "reads_merged": reads.merged,
        "read_bytes": reads.bytes(),
        "read_ms": reads.ticks_ms,
        "writes": writes.completed,
        "writes_merged": writes.merged,
        "write_bytes": writes.bytes(),
        "write_ms": writes.ticks_ms,
        "discards": discards.map(|d| d.completed),
        "discards_merged": discards.map(|d| d.merged),
        "discard_bytes": discards.map(|d| d.bytes()),
        "discard_ms": discards.map(|d| d.ticks_ms),
        "flushes": flushes.map(|f| f.completed),
        "flush_ms": flushes.map(|f| f.ticks_ms),
        "in_flight": counters.in_flight,
        "io_ms": counters.io_ticks_ms,
        "weighted_io_ms": counters.weighted_ticks_ms,
    })
}
