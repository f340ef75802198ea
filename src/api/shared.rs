//! What rows of several families share: whether to trust a row, what the device saw, whose figures they are.

use io_probe_core::machine::account::{Account, Lost};
use io_probe_core::machine::device::{Activity, Leaf, Placement};
use io_probe_core::machine::observer::{HeldBack, IoDelta};
use io_probe_core::measure::random::RandomRun;
use io_probe_core::run::budget::Stop;
use io_probe_core::stats::{Interval, Latencies};
use io_probe_surface::doubt::{Doubt, Doubts};
use io_probe_surface::shared::{
    ActivityColumns, CaveatColumns, IntervalColumns, LatencyColumns, PlaceColumns, TierColumns,
};
use io_probe_surface::value::{Json, Relation, Text};

use serde_json::{Value, json};

use crate::call::{Failure, Outcome, ProbedRelation, figure};
use crate::error::Result;

/// What speaks against a row's figures, and what there is to know of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Caveats {
    pub(super) notes: Vec<String>,
    doubts: Doubts,
}

impl Caveats {
    /// The caveats of a row whose notes stand in another row.
    pub(super) fn without_notes(&self) -> Self {
        Self { doubts: self.doubts.unusable().into_iter().collect(), notes: Vec::new() }
    }

    /// The caveats of a row that has all doubts, while the notes stand in another row.
    pub(super) fn doubts_alone(&self) -> Self {
        Self { doubts: self.doubts.clone(), notes: Vec::new() }
    }

    /// As columns.
    pub(super) fn columns(self) -> CaveatColumns {
        CaveatColumns { status: self.status(), doubt: self.doubts, notes: self.notes }
    }

    /// Can the figures be trusted?
    pub(super) fn is_ok(&self) -> bool {
        self.doubts.unusable().is_none()
    }

    /// "ok", or what takes the figures away.
    pub(super) fn status(&self) -> &'static str {
        self.doubts.unusable().map_or("ok", Doubt::name)
    }

    /// Does this speak against the figures?
    pub(super) fn has(&self, doubt: Doubt) -> bool {
        self.doubts.has(doubt)
    }

    /// Adds one short sentence.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Adds what speaks against the figures; a column of its own has the number.
    pub(super) fn doubt(&mut self, doubt: Doubt) {
        self.doubts.add(doubt);
    }

    /// Adds what speaks against the figures, and the sentence that says so.
    pub(super) fn doubt_since(&mut self, doubt: Doubt, why: impl Into<String>) {
        self.doubt(doubt);
        self.note(why);
    }

    /// There is nothing to measure here.
    pub(super) fn refuse(&mut self, why: impl Into<String>) {
        self.doubt_since(Doubt::Unsupported, why);
    }

    /// Not all that was wanted could be had.
    pub(super) fn partial(&mut self, why: &str) {
        self.doubt_since(Doubt::Partial, why);
    }

    /// Returns what was measured; if nothing was, notes why.
    pub(super) fn accept<T>(&mut self, outcome: Outcome<T>) -> Result<Option<T>> {
        match outcome {
            Ok(measured) => return Ok(Some(measured)),
            Err(Failure::NotBegun(stop)) => self.not_begun(stop),
            Err(Failure::Unsupported(why)) => self.refuse(why),
            Err(Failure::Error(error)) => return Err(error),
        }
        Ok(None)
    }

    /// The call came too late to begin.
    pub(super) fn not_begun(&mut self, why: Stop) {
        self.partial(&why.to_string());
    }

    /// The run read what it could until something from outside ended it, or a bound of its own.
    pub(super) fn stopped(&mut self, why: Stop) {
        if why.is_for_all() {
            self.doubt(Doubt::Partial);
        }
        self.note(why.to_string());
    }

    /// What there is to know of a relation, whatever is read of it.
    pub(super) fn note_relation(&mut self, relation: &ProbedRelation) {
        if relation.source.blocks() == 0 {
            self.doubt_since(Doubt::Short, "there are no blocks to read");
        }
        self.notes.extend(relation.notes().cloned());
    }

    /// Of a relation with too many files to keep open, the first were read.
    pub(super) fn note_open_files(&mut self, relation: &ProbedRelation) {
        if relation.source.blocks_of_open_files() < relation.source.blocks() {
            self.note("only the first 48 segments of the relation were read");
        }
    }

    /// What there is to know of the devices' figures.
    pub(super) fn note_device(&mut self, cost: &IoDelta) {
        if cost.activity.as_ref().is_some_and(Activity::util_is_doubtful) {
            self.note(UTIL_DOUBTFUL);
        }
        if cost.is_disturbed() {
            self.doubt(Doubt::Others);
        }
        self.note_held_back(&cost.held_back);
    }

    /// What the server's control group held back.
    pub(super) fn note_held_back(&mut self, held_back: &HeldBack) {
        let limits = held_back.limits.iter();
        limits.for_each(|limit| self.doubt_since(Doubt::Limited, limit.sentence.clone()));
        held_back.quota_sentence().into_iter().for_each(|short| self.doubt_since(Doubt::CpuQuota, short));
    }

    /// The figures contradict each other.
    pub(super) fn void(&mut self, why: &str) {
        self.doubt_since(Doubt::Void, why);
    }

    /// The run has no interval, since it has fewer than `least` of its `parts`.
    pub(super) fn too_short(&mut self, least: usize, parts: &str) {
        self.doubt_since(
            Doubt::Short,
            format!("too short for a confidence interval, which needs {least} {parts}"),
        );
    }

    /// What there is to know of the rate of a run whose interval is taken over at least `least` `parts`.
    pub(super) fn note_rate(&mut self, run: &RandomRun, least: usize, parts: &str) {
        if run.throttled {
            self.doubt_since(Doubt::Paced, "rate-limited: iops is not what the device could give");
        } else if run.rated.work == 0 && run.with_data() > 0 {
            self.doubt_since(
                Doubt::Short,
                "too few blocks for a rate: blocks of the warm-up, and blocks read while the queue fills or \
                 drains, do not count",
            );
        } else if run.rated.work > 0 && run.interval.is_none() {
            self.too_short(least, parts);
        }
    }

    /// Pauses between turns, and none within them.
    pub(super) fn paused_between_turns(&mut self) {
        self.doubt_since(
            Doubt::Paced,
            "rate-limited: with pauses between turns, but each turn ran at full speed",
        );
    }

    /// `reads` reads were in no rate, since they were of holes.
    pub(super) fn note_holes(&mut self, reads: u64) {
        if reads > 0 {
            self.note(format!(
                "{reads} reads of blocks that were never written to the file (holes) are left out"
            ));
        }
    }

    /// `blocks` blocks were not read, since they stayed in buffers.
    pub(super) fn note_passed_over(&mut self, blocks: u64) {
        if blocks > 0 {
            self.note(format!("{blocks} blocks could not be evicted from buffers and were passed over"));
        }
    }

    /// `bytes` bytes had to be written before they could be read from the device.
    pub(super) fn note_written_back(&mut self, bytes: u64) {
        if bytes > 0 {
            let kb = bytes / 1024;
            self.note(format!("{kb} kB were dirty in the OS cache and were written back first"));
        }
    }

    /// An earlier path of the call read what this one found in the OS cache.
    pub(super) fn warmed(&mut self) {
        self.doubt_since(Doubt::Warmed, "an earlier path of this call left blocks in the OS cache");
    }

    /// Blocks were read up to `times` times.
    pub(super) fn read_up_to(&mut self, times: u64) {
        if times > 1 {
            self.doubt_since(
                Doubt::Small,
                format!("blocks were read up to {times} times: caches below the kernel may serve them"),
            );
        }
    }

    /// The device became slower in the middle: from then on a block took `times` as long.
    pub(super) fn slowed(&mut self, times: Option<f64>) {
        if let Some(times) = times {
            self.doubt_since(
                Doubt::Slowed,
                format!(
                    "the device slowed down in the middle: a block took {times:.1} times as long from then on"
                ),
            );
        }
    }

    /// The time of a block changed by `trend`, a share, if one tier alone served the blocks: where the tier
    /// changes in the middle, so does the time. Or it made a step, `slowed` times up. `shares` are the
    /// tiers', in percent.
    pub(super) fn drifted(&mut self, trend: Option<f64>, slowed: Option<f64>, shares: Option<[f64; 3]>) {
        let one_tier = shares.is_some_and(|shares| shares.iter().any(|share| *share >= ONE_TIER_PCT));
        self.slowed(slowed.filter(|_| one_tier));
        if let Some(trend) = trend.filter(|_| one_tier) {
            let percent = trend * 100.0;
            self.doubt_since(
                Doubt::Drift,
                format!("the time per block changed by {percent:+.0} % from the start of the run to its end"),
            );
        }
    }
}

/// The worst of what went on beside a measurement, for advice that rests on it.
pub(super) fn worst(disturbed: bool, held_back: &HeldBack) -> Option<Doubt> {
    let limited = (!held_back.limits.is_empty()).then_some(Doubt::Limited);
    let short = held_back.short_quota().map(|_| Doubt::CpuQuota);
    short.or(disturbed.then_some(Doubt::Others)).or(limited)
}

/// What to join the rows of this relation by.
pub(super) fn place(probed: &ProbedRelation) -> PlaceColumns {
    let ProbedRelation { relation, placement, .. } = probed;
    PlaceColumns {
        device: of_leaves(placement, |leaf| Some(&leaf.name)).map(Text::from),
        scheduler: of_leaves(placement, |leaf| leaf.scheduler.as_deref()).map(Text::from),
        read_ahead_kb: placement.read_ahead_kb,
        relid: Some(Relation(relation.oid().to_u32())),
        schemaname: relation.schema().map(Text::from),
        relname: Some(relation.name().to_owned().into()),
        spcname: relation.file_tablespace().name().map(Text::from),
    }
}

/// MiB a second, of so many blocks of this size a second.
pub(super) fn mib_s(blocks: f64, block_size: u64) -> f64 {
    figure(blocks * block_size as f64 / f64::from(1 << 20))
}

/// The 95 % interval of a row's main figure in microseconds, a time in nanoseconds.
pub(super) fn interval_of_time(found: Option<Interval>, caveats: &mut Caveats) -> IntervalColumns {
    found.map_or_else(IntervalColumns::default, |i| {
        interval_around(i.value / 1e3, i.low / 1e3, Some(i.high / 1e3), caveats)
    })
}

/// The interval in times a second of what comes once in a time in nanoseconds.
pub(super) fn interval_of_rate(found: Option<Interval>, caveats: &mut Caveats) -> IntervalColumns {
    found.map_or_else(IntervalColumns::default, |i| {
        interval_around(1e9 / i.value, 1e9 / i.high, (i.low > 0.0).then(|| 1e9 / i.low), caveats)
    })
}

/// The interval around a row's main figure; it may have no upper end, and is as wide as can be then. One that
/// is too wide speaks against the figure.
pub(super) fn interval_around(
    value: f64,
    low: f64,
    high: Option<f64>,
    caveats: &mut Caveats,
) -> IntervalColumns {
    let err_pct = high.map(|high| figure((high - low) / 2.0 / value * 100.0));
    if err_pct.is_none_or(|percent| percent > NOISY_PCT) {
        caveats.doubt(Doubt::Noisy);
    }
    IntervalColumns { err_pct, ci_low: Some(figure(low)), ci_high: high.map(figure) }
}

/// The latencies that a person looks at first.
pub(super) fn latencies(latencies: &Latencies) -> LatencyColumns {
    LatencyColumns {
        lat_us: latencies.total().ns_each().map(us),
        p50_us: quantile_us(latencies, 0.5),
        p95_us: quantile_us(latencies, 0.95),
        p99_us: quantile_us(latencies, 0.99),
        histogram: Some(histogram(latencies)),
    }
}

/// A quantile in microseconds; None with fewer than ten latencies beyond it.
pub(super) fn quantile_us(latencies: &Latencies, quantile: f64) -> Option<f64> {
    latencies.quantile(quantile).map(|ns| us(ns as f64))
}

/// How many there are in each range of latencies.
pub(super) fn histogram(latencies: &Latencies) -> Json {
    let classes = latencies.classes();
    let ranges = classes.iter().map(|class| {
        let [low_us, high_us] = [class.low_ns, class.high_ns].map(|ns| us(ns as f64));
        json!({"low_us": low_us, "high_us": high_us, "count": class.count})
    });
    Json(ranges.collect::<Value>().to_string())
}

/// What was read from the devices, `device_blocks` blocks of it for this row, and what they did meanwhile,
/// everyone's requests included.
pub(super) fn activity(cost: &IoDelta, device_blocks: Option<u64>) -> ActivityColumns {
    let of_bytes = ActivityColumns {
        device_bytes: cost.fetched_bytes(),
        other_bytes: cost.other_bytes(),
        ..ActivityColumns::default()
    };
    let Some(activity) = &cost.activity else { return of_bytes };
    let requests = activity.reads.requests;
    let blocks = device_blocks.filter(|blocks| *blocks > 0);
    ActivityColumns {
        device_ios: Some(requests),
        ios_per_block: blocks.map(|blocks| figure(requests as f64 / blocks as f64)),
        rareq_kb: activity.reads.request_kb().map(figure),
        r_await_ms: activity.reads.await_ms().map(figure),
        aqu_sz: activity.aqu_sz.map(figure),
        util_pct: activity.busy_pct().map(figure),
        ..of_bytes
    }
}

/// The shares of the tiers, in percent.
pub(super) fn tiers(percent: Option<[f64; 3]>) -> TierColumns {
    let [shared_pct, os_pct, device_pct] =
        percent.map_or([None; 3], |shares| shares.map(|share| Some(figure(share))));
    TierColumns { shared_pct, os_pct, device_pct }
}

/// From this half-width on, in percent of the figure, an interval is too wide to lean on.
const NOISY_PCT: f64 = 10.0;

/// Nanoseconds as microseconds.
pub(super) fn us(ns: f64) -> f64 {
    figure(ns / 1e3)
}

/// Nanoseconds as milliseconds.
pub(super) fn ms(ns: u64) -> f64 {
    figure(ns as f64 / 1e6)
}

/// A fact of the devices behind a directory, those of equal neighbours once.
pub(super) fn of_leaves(placement: &Placement, fact: impl Fn(&Leaf) -> Option<&str>) -> Option<String> {
    let mut facts: Vec<&str> = placement.leaves.iter().filter_map(fact).collect();
    facts.dedup();
    (!facts.is_empty()).then(|| facts.join(","))
}

/// `device_source` of what this process reads itself.
pub(super) const BACKEND: &str = "backend";
/// `device_source` of what PostgreSQL's I/O workers read, for this process and for others.
const IO_WORKERS: &str = "io_workers";

/// `device_source` of what this account counts.
pub(super) fn device_source(account: Account) -> &'static str {
    if matches!(account, Account::With(_)) { IO_WORKERS } else { BACKEND }
}

/// Why `device_bytes` is NULL.
fn why_lost(lost: Lost) -> &'static str {
    match lost {
        Lost::NoAccount => "device_bytes is unknown: /proc does not show the bytes that the process read",
        Lost::Ended => {
            "device_bytes is unknown: an I/O worker may have ended meanwhile, which loses its counts"
        }
    }
}

/// What there is to know of `device_bytes` in this account.
pub(super) fn account_notes(account: Account, cost: &IoDelta) -> Vec<String> {
    let shared = matches!(account, Account::With(_)).then_some(WORKERS_SERVE_ALL);
    // Where the account is unknown the row says so by itself.
    let lost = cost.fetched.err().filter(|_| !matches!(account, Account::Unknown)).map(why_lost);
    shared.into_iter().chain(lost).map(str::to_owned).collect()
}

/// Note of a row whose device was busy for longer than the row lasted.
pub(super) const UTIL_DOUBTFUL: &str =
    "the device's busy time is longer than the elapsed time, so util_pct is doubtful";
/// Note of a row whose shares are NULL.
pub(super) const TIERS_UNKNOWN: &str =
    "the tier that served the blocks is unknown: neither bytes fetched nor the OS cache show it";
/// Below this size, in bytes, the caches of drives and controllers may hold all of a relation or file.
pub(super) const SMALL: u64 = 256 << 20;
/// A direct row is void if less of it than this, in percent, came from the device.
pub(super) const DIRECT_PCT: f64 = 99.9;
/// From this share on, in percent, one tier served all as far as five digits show.
const ONE_TIER_PCT: f64 = 99.9995;
/// The parts of a run that an interval is taken over.
pub(super) const SLICES: &str = "slices of 1 ms";
/// Note of a row that is void.
pub(super) const NOT_DIRECT: &str = "O_DIRECT was accepted, but not all bytes came from a block device";
/// Note of a row that is void, of requests past the page cache.
pub(super) const CONTRADICTED: &str =
    "the figures contradict the device's counters, or each other (rate times latency is over the depth)";
/// Note of what `IO_WORKERS` means.
const WORKERS_SERVE_ALL: &str =
    "device_bytes counts all reads of the I/O workers, also those for other sessions";
