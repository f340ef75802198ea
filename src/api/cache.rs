//! `io_probe_cache`: what the caches hold of a relation. `io_probe_evict`: making them let go.

use io_probe_core::Error as CoreError;
use io_probe_core::files::holes::Holes;
use io_probe_core::files::page_cache::Residency;
use io_probe_core::files::{Access, RelationFiles};
use pgrx::prelude::*;
use serde_json::{Value, json};

use crate::call::Begin;
use crate::call::arguments::{self, figure};
use crate::call::named::NamedEnum;
use crate::call::probe::Probe;
use crate::error::Result;
use crate::pg::backend::descriptors::Reserved;
use crate::pg::backend::interrupts::{self, Interrupts};
use crate::pg::backend::row::Rows;
use crate::pg::backend::server;
use crate::pg::storage::buffers::{self, ResidentBlocks};
use crate::pg::storage::relation::{Fork, Relation};

#[pg_extern(sql = false)]
fn io_probe_cache(rel: Option<pg_sys::Oid>) -> Rows {
    Rows::answer(|| states(rel))
}

#[pg_extern(sql = false)]
fn io_probe_evict(rel: Option<pg_sys::Oid>) -> Rows {
    Rows::answer(|| evictions(rel))
}

fn states(rel: Option<pg_sys::Oid>) -> Result<Vec<Value>> {
    let relation = Relation::open_for_facts(arguments::relation(rel)?, Probe::Cache.function())?;
    let buffers = ResidentBlocks::of(&relation);
    forks(&relation).map(|(fork, source)| state(fork, &source, buffers.in_fork(fork))).collect()
}

/// The forks that exist.
fn forks(relation: &Relation) -> impl Iterator<Item = (Fork, RelationFiles)> {
    Fork::ALL.iter().filter_map(|&fork| Some((fork, relation.source(fork)?)))
}

/// A row of `io_probe_cache_row`.
fn state(fork: Fork, source: &RelationFiles, shared_blks: u64) -> Result<Value> {
    let _descriptors = Reserved::of(source);
    let block_size = u64::from(source.block_size());
    let bytes = source.blocks() * block_size;
    let share = |part: u64, whole: u64| (whole > 0).then(|| figure(part as f64 * 100.0 / whole as f64));
    let mut hole_blocks = 0;
    for part in source.parts(0..source.blocks()) {
        let open = source.open(part.segment, Access::Buffered)?;
        let range = source.byte_range(&part);
        let mut should_stop = || {
            interrupts::check();
            None
        };
        should_stop();
        if let Ok(holes) = Holes::find(&open, range.clone(), &mut should_stop)? {
            hole_blocks += holes.whole_blocks(range, block_size);
        }
    }
    let residency = match resident(source) {
        Ok(residency) => Some(residency),
        // The file system has a cache of its own.
        Err(CoreError::Unsupported { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let cached_bytes = residency.map(|residency| residency.cached_bytes);
    Ok(json!({
        "fork": fork.name(),
        "blks_total": source.blocks(),
        "shared_blks": shared_blks,
        "shared_pct": share(shared_blks, source.blocks()),
        "os_cached_bytes": cached_bytes,
        "os_pct": cached_bytes.and_then(|cached| share(cached, bytes)),
        "os_dirty_bytes": residency.and_then(|residency| residency.dirty_bytes),
        "hole_bytes": hole_blocks * block_size,
    }))
}

/// What the OS page cache holds of a fork.
fn resident(source: &RelationFiles) -> io_probe_core::Result<Residency> {
    let mut sum = Residency { cached_bytes: 0, dirty_bytes: Some(0) };
    for part in source.parts(0..source.blocks()) {
        interrupts::check();
        let found = source.open(part.segment, Access::Buffered)?.residency(source.byte_range(&part))?;
        sum.cached_bytes += found.cached_bytes;
        sum.dirty_bytes = sum.dirty_bytes.zip(found.dirty_bytes).map(|(a, b)| a + b);
    }
    Ok(sum)
}

/// Rows of `io_probe_evict_row`.
fn evictions(rel: Option<pg_sys::Oid>) -> Result<Vec<Value>> {
    let rel = arguments::relation(rel)?;
    let (call, relation) = Begin::of(Probe::Evict).on_relation_beside_probes(rel)?;
    let interrupts = Interrupts::of(relation.locked());
    let mut should_stop = || call.should_stop(&interrupts);
    let shared_before = ResidentBlocks::of(&relation);
    let mut os_before = Vec::new();
    for (fork, source) in forks(&relation) {
        let _descriptors = Reserved::of(&source);
        os_before.push((fork, resident(&source)?));
    }
    let mut stop = buffers::flush_and_evict(&relation, &mut should_stop);
    let shared_after = ResidentBlocks::of(&relation);
    let mut rows = Vec::new();
    for (fork, os_before) in os_before {
        let Some(source) = relation.source(fork) else { continue };
        let _descriptors = Reserved::of(&source);
        if stop.is_none() {
            call.progress.path(fork.name(), source.blocks());
            stop = source
                .evict(0..source.blocks(), &mut should_stop, &mut |blocks| call.progress.done(blocks))?;
        }
        let os_after = resident(&source)?;
        let shared_blks_after = shared_after.in_fork(fork);
        let mut notes: Vec<String> = stop.iter().map(ToString::to_string).collect();
        if shared_blks_after > 0 && relation.is_temporary() {
            notes.push("pages in the session's own buffers stay there".to_owned());
        } else if shared_blks_after > 0 && !buffers::EVICTS_SHARED_BUFFERS {
            notes.push("this server version cannot evict shared buffers".to_owned());
        } else if shared_blks_after > 0 && server::in_recovery() {
            notes.push("shared buffers are left alone during recovery".to_owned());
        } else if shared_blks_after > 0 && stop.is_none() {
            notes.push("pages that others use stay in shared buffers".to_owned());
        }
        if stop.is_none() && os_after.cached_bytes > 0 {
            notes.push(
                "pages stay in the OS cache: others use them, or the file system has no other place"
                    .to_owned(),
            );
        }
        if fork == Fork::Main {
            notes.extend([relation.toast_note(), relation.indexes_note()].into_iter().flatten());
        }
        rows.push(json!({
            "fork": fork.name(),
            "shared_blks_before": shared_before.in_fork(fork),
            "shared_blks_after": shared_blks_after,
            "os_bytes_before": os_before.cached_bytes,
            "os_bytes_after": os_after.cached_bytes,
            "complete": shared_blks_after == 0 && os_after.cached_bytes == 0,
            "notes": notes,
        }));
    }
    Ok(rows)
}

/// Bytes of a fork that are in the OS cache; None where the kernel does not tell.
pub(super) fn cached_bytes(source: &RelationFiles) -> Option<u64> {
    resident(source).ok().map(|found| found.cached_bytes)
}
