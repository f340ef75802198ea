//! What the figures of a path are worth: which tier served its fetches, whether they can be true, and the
//! notes on them.

use io_probe_core::measure::tiers::{self, Evidence, Tiers};

use super::{PathOutcome, RandomTarget};
use crate::api::row::{Caveats, DIRECT_PCT, Doubt, NOT_DIRECT, SLICES, TIERS_UNKNOWN};
use crate::call::arguments::Path;

/// Below this size, in bytes, the caches of drives and controllers may hold the whole relation.
const SMALL_RELATION: u64 = 256 << 20;

/// What follows from what a path did.
pub(super) struct Findings {
    /// Which tiers served the fetches; None where that is not known.
    pub(super) tiers: Option<Tiers>,
    /// The same in percent: shared buffers, OS cache, device.
    pub(super) percent: Option<[f64; 3]>,
    /// Did caches serve none of the fetches, but for what the path's own readahead brought?
    pub(super) cold: Option<bool>,
    /// Do the figures contradict each other?
    pub(super) void: bool,
    pub(super) caveats: Caveats,
}

impl Findings {
    pub(super) fn of(target: &RandomTarget<'_>, measured: &PathOutcome) -> Self {
        let block_size = target.relation.block_size();
        let tiers = measured.tiers(block_size);
        let is_cold =
            |tiers: Tiers| tiers.shared == 0 && (tiers.os == 0 || measured.read_ahead(tiers, block_size));
        let mut findings = Self {
            tiers,
            percent: tiers.and_then(|tiers| tiers.percent()),
            cold: tiers.filter(|_| measured.run.with_data() > 0).map(is_cold),
            void: false,
            caveats: Caveats::default(),
        };
        findings.note_rate(measured);
        findings.note_contradictions(measured);
        findings.caveats.note_device(&measured.cost);
        findings.note_blocks(target, measured);
        findings.note_environment(target, measured);
        findings
    }

    fn note_rate(&mut self, measured: &PathOutcome) {
        let run = &measured.run;
        self.caveats.note_rate(run, SLICES);
        if run.latencies.moments().count() == 0 && run.rated.work > 0 {
            self.caveats.note("the server decides when it reads ahead: single latencies are not known");
        }
    }

    fn note_contradictions(&mut self, measured: &PathOutcome) {
        if self.tiers.is_none() && measured.run.with_data() > 0 {
            self.caveats.doubt_since(Doubt::TiersUnknown, TIERS_UNKNOWN);
        }
        let is_short = self.percent.is_some_and(|[_, _, device]| device < DIRECT_PCT);
        if measured.way.path == Path::Direct && is_short {
            self.void(NOT_DIRECT);
        }
        if measured.fullness().is_some_and(|share| !(0.85..1.1).contains(&share)) {
            self.void("rate times latency is not the depth: the figures contradict each other");
        }
    }

    fn void(&mut self, why: &str) {
        self.void = true;
        self.caveats.void(why);
    }

    fn note_blocks(&mut self, target: &RandomTarget<'_>, measured: &PathOutcome) {
        let (run, caveats) = (&measured.run, &mut self.caveats);
        run.stop.into_iter().for_each(|stop| caveats.stopped(stop));
        caveats.note_holes(run.holes);
        caveats.note_passed_over(run.passed_over);
        if run.passed_over > 0 && run.with_data() == 0 {
            caveats.doubt(Doubt::Partial);
        }
        let Tiers { shared, os, .. } = self.tiers.unwrap_or_default();
        if measured.way.path == Path::Direct {
            return;
        }
        if target.arguments.cold {
            if self.cold == Some(false) {
                caveats.doubt_since(Doubt::NotCold, format!(
                    "not cold: {shared} fetches found a buffer, {os} the OS cache, where others had brought \
                     them"
                ));
            } else if os > 0 {
                caveats.note(format!("readahead around other fetches had brought in {os} of the blocks"));
            }
        } else if measured.warmed && os > 0 {
            caveats.warmed();
        }
    }

    fn note_environment(&mut self, target: &RandomTarget<'_>, measured: &PathOutcome) {
        let (run, caveats) = (&measured.run, &mut self.caveats);
        let bytes = target.relation.source.blocks() * target.relation.block_size();
        if measured.way.path == Path::Direct && run.with_data() > 0 && bytes < SMALL_RELATION {
            let mib = bytes.div_ceil(1 << 20);
            caveats.doubt_since(
                Doubt::Small,
                format!("a relation of {mib} MiB may fit the caches below the kernel"),
            );
        }
        caveats.drifted(run.trend, self.percent);
        caveats.note_relation(target.relation);
        caveats.notes.extend(measured.notes.iter().cloned());
        caveats.note_written_back(measured.written_back);
    }
}

impl PathOutcome {
    /// Did our own readahead bring the blocks that were found in caches, which were verified to be empty
    /// before? It must have fetched at least as much beyond what was asked for.
    fn read_ahead(&self, tiers: Tiers, block_size: u64) -> bool {
        let beyond =
            self.cost.fetched_bytes().and_then(|fetched| fetched.checked_sub(tiers.device * block_size));
        self.way.place.emptied == Some(true) && beyond.is_some_and(|bytes| bytes >= tiers.os * block_size)
    }

    /// Requests in flight by Little's law (rate times latency), as a share of the depth. None where there is
    /// no queue of our own, or too little to tell.
    fn fullness(&self) -> Option<f64> {
        // In a short run, a moment without a CPU while the queue is emptied would count for much.
        const ENOUGH_NS: u64 = 500_000_000;
        let run = &self.run;
        let full = self.way.depth > 1 && !run.throttled && run.rated.ns >= ENOUGH_NS;
        let latency = run.latencies.moments().mean().filter(|_| full)?;
        Some(latency * run.rated.work as f64 / run.rated.ns as f64 / f64::from(self.way.depth))
    }

    /// Which tiers served the fetches; None when it is not known, or when what tells it contradicts itself.
    fn tiers(&self, block_size: u64) -> Option<Tiers> {
        let run = &self.run;
        let (blocks, fetched_bytes) = (run.with_data(), self.cost.fetched_bytes());
        if self.way.path == Path::Direct {
            return fetched_bytes.map(|bytes| Tiers::of_direct(blocks, bytes.div_ceil(block_size)));
        }
        let (tiers, missing_bytes) = match self.missing {
            None if run.unknown > 0 => return None,
            None => (run.tiers, run.missing_bytes),
            Some(missing) => {
                let hits = self.usage.hits().min(blocks);
                if hits > 0 {
                    // Which blocks those were is not known.
                    let cached_bytes = Some((blocks * block_size).saturating_sub(missing.bytes));
                    let reads = blocks - hits;
                    let evidence = Evidence { block_size, hits, reads, cached_bytes, fetched_bytes };
                    return Tiers::of_buffered(evidence);
                }
                (Tiers { shared: 0, os: blocks - missing.blocks, device: missing.blocks }, missing.bytes)
            }
        };
        let contradicted = fetched_bytes.is_some_and(|fetched| {
            tiers::are_too_few(fetched, missing_bytes, blocks * block_size, block_size)
        });
        (!contradicted).then_some(tiers)
    }
}
