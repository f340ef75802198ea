//! What the figures of a path are worth: which tier served its fetches, whether they can be true, and the
//! notes on them.

use io_probe_core::measure::contradictions::differs_from_depth;
use io_probe_core::measure::tiers::{self, Evidence, Tiers};
use io_probe_core::stats::MIN_SLICES;

use super::{PathOutcome, RandomTarget};
use crate::api::shared::{Caveats, DIRECT_PCT, NOT_DIRECT, SLICES, SMALL, TIERS_UNKNOWN};
use crate::call::ReadPath;
use io_probe_surface::doubt::Doubt;

/// What follows from what a path did.
#[derive(Default)]
pub(super) struct Findings {
    /// Which tiers served the fetches; None where that is not known.
    pub(super) tiers: Option<Tiers>,
    /// Their shares in percent: shared buffers, OS cache, device.
    pub(super) percent: Option<[f64; 3]>,
    /// Did caches serve none of the fetches, but for what the path's own readahead brought?
    pub(super) cold: Option<bool>,
    /// Did not all fetches of the direct path come from the device?
    not_direct: bool,
    /// Do the rate and the latency contradict each other?
    contradictory: bool,
}

impl Findings {
    pub(super) fn of(target: &RandomTarget<'_>, measured: &PathOutcome) -> Self {
        let block_size = target.relation.block_size();
        let tiers = measured.tiers(block_size);
        let percent = tiers.and_then(|tiers| tiers.percent());
        let is_direct = measured.way.path == ReadPath::Direct;
        Self {
            tiers,
            percent,
            cold: tiers
                .filter(|_| measured.run.with_data() > 0)
                .map(|tiers| tiers.shared == 0 && (tiers.os == 0 || measured.read_ahead(tiers, block_size))),
            not_direct: is_direct && percent.is_some_and(|[_, _, device]| device < DIRECT_PCT),
            contradictory: measured.differs_from_depth(),
        }
    }

    pub(super) fn is_void(&self) -> bool {
        self.not_direct || self.contradictory
    }

    pub(super) fn judge(&self, target: &RandomTarget<'_>, measured: &PathOutcome, caveats: &mut Caveats) {
        let run = &measured.run;
        caveats.note_rate(run, MIN_SLICES, SLICES);
        if run.latencies.total().work == 0 && run.rated.work > 0 {
            caveats.note("the server decides when it reads ahead, so single latencies are not known");
        }
        if self.tiers.is_none() && run.with_data() > 0 {
            caveats.doubt_since(Doubt::TiersUnknown, TIERS_UNKNOWN);
        }
        if self.not_direct {
            caveats.void(NOT_DIRECT);
        }
        if self.contradictory {
            caveats.void("rate times latency is not the depth: the figures contradict each other");
        }
        caveats.note_device(&measured.cost);
        if let Some(stop) = run.stop {
            caveats.stopped(stop);
        }
        caveats.note_holes(run.holes);
        caveats.note_passed_over(run.passed_over);
        if run.passed_over > 0 && run.with_data() == 0 {
            caveats.doubt(Doubt::Partial);
        }
        if measured.way.path == ReadPath::Direct {
            note_size(target, measured, caveats);
        } else {
            self.judge_caches(target, measured, caveats);
        }
        caveats.drifted(run.trend, run.slowed, self.percent);
        caveats.note_relation(target.relation);
        caveats.notes.extend(measured.notes.iter().cloned());
        caveats.note_written_back(measured.written_back);
    }

    fn judge_caches(&self, target: &RandomTarget<'_>, measured: &PathOutcome, caveats: &mut Caveats) {
        let Tiers { shared, os, .. } = self.tiers.unwrap_or_default();
        if !target.arguments.cold {
            if measured.warmed && os > 0 {
                caveats.warmed();
            }
        } else if self.cold == Some(false) {
            let by_whom = match measured.cost.fetched {
                Ok(_) => "others had brought the blocks there",
                Err(_) => {
                    "it is unknown whether others or the probe's own readahead had brought the blocks \
                     there: the bytes read from the device were not counted"
                }
            };
            caveats.doubt_since(
                Doubt::NotCold,
                format!("not cold: shared buffers served {shared} fetches, the OS cache {os}: {by_whom}"),
            );
        } else if os > 0 {
            caveats.note(format!("readahead around other fetches had brought in {os} of the blocks"));
        }
    }
}

/// The caches of drives and controllers may hold all of a small relation.
fn note_size(target: &RandomTarget<'_>, measured: &PathOutcome, caveats: &mut Caveats) {
    let bytes = target.relation.source.blocks() * target.relation.block_size();
    if measured.run.with_data() > 0 && bytes < SMALL {
        let mib = bytes.div_ceil(1 << 20);
        let why = format!("a relation of {mib} MiB may fit into caches below the kernel");
        caveats.doubt_since(Doubt::Small, why);
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

    /// Is rate times latency not the depth? False where there is no queue of our own.
    fn differs_from_depth(&self) -> bool {
        let Self { run, way, .. } = self;
        let is_full = way.depth > 1 && !run.throttled;
        is_full && differs_from_depth(run.latencies.total(), run.rated, way.depth.into())
    }

    /// Which tiers served the fetches; None when it is not known, or when what tells it contradicts itself.
    fn tiers(&self, block_size: u64) -> Option<Tiers> {
        let run = &self.run;
        let (blocks, fetched_bytes) = (run.with_data(), self.cost.fetched_bytes());
        if self.way.path == ReadPath::Direct {
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
