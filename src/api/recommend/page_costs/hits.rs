//! Which share of the fetches a cache may be expected to serve.

use io_probe_core::advise::page_costs::cache_mix::HitRatios;
use pgrx::pg_sys;

use crate::api::cache::cached_bytes;
use crate::api::recommend::place::Candidate;
use crate::call::probe::Probe;
use crate::pg::backend::descriptors::Reserved;
use crate::pg::backend::interrupts;
use crate::pg::catalog::facts;
use crate::pg::storage::relation::{Fork, Held, Relation, indexes_of};

/// What the OS cache holds now: of the tables for sequential reads, of their indexes, too, for random ones.
/// None if that can't be seen.
pub(super) fn of_residency(relations: &[Candidate]) -> Option<HitRatios> {
    let tables = Cached::of(relations.iter().map(|relation| relation.oid));
    let indexes: Vec<pg_sys::Oid> = relations.iter().flat_map(|relation| indexes_of(relation.oid)).collect();
    let indexes = Cached::of(indexes.into_iter());
    let all = Cached { bytes: tables.bytes + indexes.bytes, cached: tables.cached + indexes.cached };
    tables.share().zip(all.share()).map(|(sequential, random)| HitRatios { random, sequential })
}

/// What the server has counted since its statistics were reset: of tables for sequential reads, of indexes
/// for random ones. Hits are those in shared buffers. None before anything was read.
pub(super) fn of_statistics(relations: &[Candidate]) -> Option<HitRatios> {
    let oids: Vec<pg_sys::Oid> = relations.iter().map(|relation| relation.oid).collect();
    let counted = facts::hits(&oids)?;
    let share = |hit: u64, read: u64| (hit + read > 0).then(|| hit as f64 / (hit + read) as f64);
    let sequential = share(counted.heap_hit, counted.heap_read)?;
    let random = share(counted.index_hit, counted.index_read)?;
    Some(HitRatios { random, sequential })
}

#[derive(Default)]
struct Cached {
    bytes: u64,
    cached: u64,
}

impl Cached {
    fn of(relations: impl Iterator<Item = pg_sys::Oid>) -> Self {
        let mut sum = Self::default();
        for oid in relations {
            interrupts::check();
            let Some(_held) = Held::take(oid) else { continue };
            // One that is gone by now holds nothing.
            let Ok(relation) = Relation::open_to_read(oid, Probe::Recommend.function()) else { continue };
            let Some(source) = relation.source(Fork::MAIN) else { continue };
            let _descriptors = Reserved::of(&source);
            if let Some(cached) = cached_bytes(&source) {
                sum.bytes += source.blocks() * u64::from(source.block_size());
                sum.cached += cached;
            }
        }
        sum
    }

    fn share(&self) -> Option<f64> {
        (self.bytes > 0).then(|| (self.cached as f64 / self.bytes as f64).min(1.0))
    }
}
