//! `io_probe_cache`: what the caches hold of a relation. `io_probe_evict`: making them let go.

use io_probe_core::Error as CoreError;
use io_probe_core::files::holes::Holes;
use io_probe_core::files::page_cache::Residency;
use io_probe_core::files::{Access, RelationFiles};
use io_probe_core::run::budget::{Stop, stopped};
use io_probe_surface::facts::{CacheRow, EvictRow};
use pgrx::prelude::*;

use crate::call::{Begin, Probe, arguments, figure};
use crate::error::Result;
use crate::pg::backend::descriptors::Reserved;
use crate::pg::backend::interrupts::{self, Interrupts};
use crate::pg::backend::{Rows, server};
use crate::pg::storage::buffers;
use crate::pg::storage::relation::Relation;

#[pg_extern(sql = false)]
fn io_probe_cache(rel: Option<pg_sys::Oid>) -> Rows {
    Rows::answer(|| {
        let relation = Relation::open_for_facts(arguments::relation(rel)?, Probe::Cache.function())?;
        let shared_blks = buffers::count_resident(&relation);
        relation.source().iter().map(|source| cache_row(source, shared_blks)).collect()
    })
}

#[pg_extern(sql = false)]
fn io_probe_evict(rel: Option<pg_sys::Oid>) -> Rows {
    Rows::answer(|| evict(arguments::relation(rel)?))
}

fn cache_row(source: &RelationFiles, shared_blks: u64) -> Result<CacheRow> {
    let _descriptors = Reserved::of(source);
    let hole_bytes = hole_bytes(source)?;
    let cached = match resident(source) {
        Ok(residency) => Some(residency),
        // The file system has a cache of its own.
        Err(CoreError::Unsupported { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let bytes = source.blocks() * u64::from(source.block_size());
    Ok(CacheRow {
        blks_total: source.blocks(),
        shared_blks,
        shared_pct: percent(shared_blks, source.blocks()),
        os_cached_bytes: cached.map(|cached| cached.cached_bytes),
        os_pct: cached.and_then(|cached| percent(cached.cached_bytes, bytes)),
        os_dirty_bytes: cached.and_then(|cached| cached.dirty_bytes),
        hole_bytes,
    })
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| figure(part as f64 * 100.0 / whole as f64))
}

/// Bytes in blocks that were never written.
fn hole_bytes(source: &RelationFiles) -> Result<u64> {
    let block_size = u64::from(source.block_size());
    let mut blocks = 0;
    for part in source.parts(0..source.blocks()) {
        let open = source.open(part.segment, Access::Buffered)?;
        let range = source.byte_range(&part);
        let mut should_stop = || {
            interrupts::check();
            None
        };
        should_stop();
        match Holes::find(&open, range.clone(), &mut should_stop) {
            Ok(holes) => blocks += holes.whole_blocks(range, block_size),
            Err(end) => drop(end.stop()?),
        }
    }
    Ok(blocks * block_size)
}

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

fn evict(rel: pg_sys::Oid) -> Result<Vec<EvictRow>> {
    let (call, relation) = Begin::of(Probe::Evict).on_relation_beside_probes(rel)?;
    let interrupts = Interrupts::of(relation.locked());
    let mut should_stop = || call.should_stop(&interrupts);
    let Some(source) = relation.source() else { return Ok(Vec::new()) };
    let shared_blks_before = buffers::count_resident(&relation);
    let os_bytes_before = {
        let _descriptors = Reserved::of(&source);
        resident(&source)?.cached_bytes
    };
    let mut stop = buffers::flush_and_evict(&relation, &mut should_stop);
    let shared_blks_after = buffers::count_resident(&relation);
    // It may have grown meanwhile.
    let source = relation.source().unwrap_or(source);
    let _descriptors = Reserved::of(&source);
    if stop.is_none() {
        call.progress.path("", source.blocks());
        let mut report = |blocks| call.progress.done(blocks);
        stop = stopped(source.evict(0..source.blocks(), &mut should_stop, &mut report))?;
    }
    let os_bytes_after = resident(&source)?.cached_bytes;
    let why_shared = why_in_buffers(&relation, stop).filter(|_| shared_blks_after > 0);
    let why_os = (stop.is_none() && os_bytes_after > 0).then_some(STAYS_IN_OS_CACHE);
    let about_others = [relation.toast_note(), relation.indexes_note()];
    Ok(vec![EvictRow {
        shared_blks_before,
        shared_blks_after,
        os_bytes_before,
        os_bytes_after,
        complete: shared_blks_after == 0 && os_bytes_after == 0,
        notes: stop
            .map(|stop| stop.to_string())
            .into_iter()
            .chain(why_shared.into_iter().chain(why_os).map(str::to_owned))
            .chain(about_others.into_iter().flatten())
            .collect(),
    }])
}

const STAYS_IN_OS_CACHE: &str =
    "pages stay in the OS cache: others use them, or the file system is in memory (tmpfs)";

/// Why blocks stay in buffers; None if eviction has stopped before.
fn why_in_buffers(relation: &Relation, stop: Option<Stop>) -> Option<&'static str> {
    if relation.is_temporary() {
        Some("a temporary table's pages stay in the session's local buffers")
    } else if !buffers::EVICTS_SHARED_BUFFERS {
        Some("this server version cannot evict from shared buffers")
    } else if server::in_recovery() {
        Some("during recovery, nothing is evicted from shared buffers")
    } else {
        stop.is_none().then_some("pages that others use stay in shared buffers")
    }
}

/// Bytes of a relation that are in the OS cache; None where the kernel does not tell.
pub(super) fn cached_bytes(source: &RelationFiles) -> Option<u64> {
    resident(source).ok().map(|found| found.cached_bytes)
}
