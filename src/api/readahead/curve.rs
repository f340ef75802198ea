//! Measuring the curve of a relation that is open, and what there is to say of each window.

use std::time::Duration;

use io_probe_advise::first_as_good;
use io_probe_core::engine::Kind;
use io_probe_core::machine::account::Account;
use io_probe_core::machine::observer::IoDelta;
use io_probe_core::measure::readahead::{
    self, Contender, LARGEST_WINDOW, ROOM_OF_SLOT, ReadaheadCurve, ReadaheadRun, SLOTS, WindowFigures,
    WindowTally,
};
use io_probe_core::measure::tiers::Tiers;
use io_probe_core::run::budget::{Limits, Stop};
use io_probe_core::stats::MIN_TURNS;

use crate::api::shared::{self, Caveats, DIRECT_PCT, NOT_DIRECT};
use crate::call::{Call, Failure, Outcome, ProbedRelation};
use crate::gucs;
use crate::pg::backend::server;
use io_probe_surface::doubt::Doubt;
use io_probe_surface::words;

/// At a setting below this, in bytes, the page cache's work can't be told well from the cost of a request.
const LEAST_SETTING: u64 = 64 << 10;

/// A window of the kernel is void if less of it than this, in percent, came from the device.
const COLD_PCT: f64 = 99.0;

/// Windows, the most important first: those that a scan gains most from, and others that are far from these.
const BY_IMPORTANCE_KB: [u64; 9] = [1024, 256, 4096, 512, 2048, 128, 64, 32, 16];

/// Note of the best window: sessions that were there before a change don't notice it.
const OLD_DESCRIPTORS: &str =
    "sessions keep the window with which they opened a file: after a change, reconnect";

/// Why a window of which nothing else is known has no figures.
const NO_TURNS: &str = "all turns with this window were left out";
const LEFT_OUT: &str = "left out, since turns take long here: give a longer duration";

words! {
    /// Whose readahead a window is.
    #[derive(Default)]
    WindowMode {
        /// The setting in force.
        #[default]
        Kernel = "kernel",
        /// Another one.
        Emulated = "emulated",
    }
}

#[derive(Debug, Default)]
pub(in crate::api) struct WindowResult {
    /// Its bytes; None where the setting in force is not known.
    window: Option<u64>,
    pub(in crate::api) mode: WindowMode,
    pub(in crate::api) figures: Option<WindowFigures>,
    pub(in crate::api) why_none: String,
    pub(in crate::api) turns: u64,
    /// Had it no room in the time?
    pub(in crate::api) is_left_out: bool,
    pub(super) best: Option<bool>,
    pub(super) blocks: u64,
    pub(super) elapsed_ns: Option<u64>,
    /// Percent of the blocks that came from the device.
    pub(super) from_device: Option<f64>,
    /// What the page cache costs a block, where that is part of the figures.
    pub(super) cache_ns: Option<f64>,
    pub(super) cost: Option<IoDelta>,
    pub(super) engine: Option<&'static str>,
    pub(in crate::api) caveats: Caveats,
}

/// The curve as core measured it, and what it was measured with.
struct MeasuredCurve {
    curve: ReadaheadCurve,
    /// The window of the twin of the setting in force.
    twin: u64,
    engine: &'static str,
    /// Notes of each emulated window.
    notes: Vec<String>,
}

/// Measures the setting in force and these windows, in bytes, each once, ascending. `limits` are those of
/// each. The results are ascending, too. Also returns about how long it would take until each has an
/// interval, if one has none for want of time. Evicts what it reads.
pub(in crate::api) fn measure(
    call: &Call,
    relation: &ProbedRelation,
    windows: &[u64],
    limits: Limits,
) -> crate::error::Result<(Vec<WindowResult>, Option<Duration>)> {
    let in_force = relation.placement.read_ahead_kb.map(|kb| kb << 10);
    let emulated = windows.iter().copied().filter(|window| Some(*window) != in_force);
    let mut emulated: Vec<u64> = emulated.collect();
    let rank = |window: &u64| BY_IMPORTANCE_KB.iter().position(|kb| kb << 10 == *window);
    emulated.sort_by_key(|window| rank(window).unwrap_or(usize::MAX));
    let mut results = vec![WindowResult::new(in_force, WindowMode::Kernel)];
    results.extend(emulated.iter().map(|window| WindowResult::new(Some(*window), WindowMode::Emulated)));
    let found = call.attempt(|| run(call, relation, in_force, &emulated, limits), |found| found.curve.stop);
    let (doubt, why) = match found {
        Ok(measured) => {
            measured.fill(&mut results, relation);
            results.sort_by_key(|result| result.window);
            compare(&measured.curve, &mut results, relation);
            return Ok((results, measured.curve.needs));
        }
        Err(Failure::NotBegun(stop)) => (Doubt::Partial, stop.to_string()),
        Err(Failure::Unsupported(why)) => (Doubt::Unsupported, why),
        Err(Failure::Error(error)) => return Err(error),
    };
    results.iter_mut().for_each(|result| result.lack(doubt, why.clone()));
    results.sort_by_key(|result| result.window);
    Ok((results, None))
}

/// What speaks against all of them.
pub(in crate::api) fn doubt(results: &[WindowResult]) -> Option<Doubt> {
    let costs = results.iter().filter_map(|result| result.cost.clone());
    costs.reduce(IoDelta::then).and_then(|cost| shared::worst(cost.is_disturbed(), &cost.held_back))
}

fn run(
    call: &Call,
    relation: &ProbedRelation,
    in_force: Option<u64>,
    windows: &[u64],
    limits: Limits,
) -> Outcome<MeasuredCurve> {
    let cap = gucs::depth(None, SLOTS)?;
    if cap < SLOTS {
        let why = format!(
            "readahead is measured with {SLOTS} requests in flight, but pg_io_probe.max_depth is {cap}"
        );
        return Err(Failure::Unsupported(why));
    }
    relation.reads_of_device()?;
    let in_force = in_force.ok_or_else(|| {
        let notes = relation.placement.notes.join("; ");
        Failure::Unsupported(format!("the present read_ahead_kb is unknown: {notes}"))
    })?;
    let mut opened = ProbedRelation::engine(SLOTS, ROOM_OF_SLOT)?;
    let engine = opened.kind.name();
    let mut notes: Vec<String> = opened.note.into_iter().collect();
    if in_force < LEAST_SETTING {
        notes.push("cache_us is only approximate, since read_ahead_kb is less than 64".to_owned());
    }
    // The kernel reads no less than a block.
    let twin = in_force.min(LARGEST_WINDOW).next_multiple_of(relation.block_size());
    let observer = relation.observer(Account::Own);
    let run = ReadaheadRun { source: &relation.source, in_force: twin, windows, limits, observer: &observer };
    let mut report = |turn: u64, turns: u64, whose: Contender| {
        let mode = if whose == Contender::Kernel { WindowMode::Kernel } else { WindowMode::Emulated };
        call.progress.path(mode.name(), turns);
        call.progress.done(turn - 1);
    };
    let curve = call.with_budget(&relation.interrupts, |budget| {
        readahead::curve(&run, opened.engine.as_mut(), budget, &mut report)
    });
    Ok(MeasuredCurve { curve: curve?, twin, engine, notes })
}

impl MeasuredCurve {
    /// Fills the results: the kernel's, which comes first, and those of the emulated windows.
    fn fill(&self, results: &mut [WindowResult], relation: &ProbedRelation) {
        let Self { curve, twin, engine, notes } = self;
        let block_size = relation.block_size();
        let (kernel, emulated) = results.split_at_mut(1);
        let kernel = &mut kernel[0];
        kernel.engine = Some(Kind::Pread.name());
        kernel.fill(&curve.kernel, 0.0, relation);
        kernel.judge(&curve.kernel, curve.of_kernel(), twin / block_size, curve.stop);
        let is_kernel_lost = kernel.caveats.has(Doubt::Void);
        let cache_ns = curve.cache_cost().map(|cost| cost.ns);
        if let Some(why) = &curve.refused {
            emulated.iter_mut().for_each(|result| result.lack(Doubt::Unsupported, why.clone()));
        }
        for (index, (result, tally)) in emulated.iter_mut().zip(&curve.emulated).enumerate() {
            result.engine = Some(engine);
            if index >= curve.measured {
                result.is_left_out = true;
                result.lack(Doubt::Short, LEFT_OUT);
                continue;
            }
            result.caveats.notes.extend(notes.iter().cloned());
            result.fill(tally, cache_ns.unwrap_or(0.0), relation);
            if is_kernel_lost {
                result.lack(Doubt::Void, "cache_us is unknown, since the row of mode kernel has no figures");
                continue;
            }
            let window_blocks = result.window.unwrap_or(0) / block_size;
            result.judge(tally, curve.of_emulated(tally), window_blocks, curve.stop);
            result.cache_ns = cache_ns.filter(|_| result.figures.is_some());
        }
    }
}

/// Marks the best window, and says of each what holds for the whole curve. The results are ascending.
fn compare(curve: &ReadaheadCurve, results: &mut [WindowResult], relation: &ProbedRelation) {
    if curve.stop.is_none_or(|stop| !stop.is_for_all()) {
        mark_best(results);
    }
    let at_a_time = server::scan_read_kb();
    let times = curve.blocks_read().div_ceil(relation.source.blocks().max(1));
    for result in results.iter_mut().filter(|result| !result.caveats.has(Doubt::Unsupported)) {
        if let Some(kb) = at_a_time.filter(|kb| result.kb().is_some_and(|window| window < *kb)) {
            result.caveats.note(format!(
                "a scan by this server reads {kb} kB at a time (io_combine_limit), so a smaller window does \
                 nothing for it"
            ));
        }
        result.caveats.read_up_to(times);
        curve.stop.into_iter().for_each(|stop| result.caveats.stopped(stop));
        if curve.paused {
            result.caveats.paused_between_turns();
        }
    }
}

/// Marks the smallest window that is as good as the fastest, of those that have an interval. The results are
/// ascending.
fn mark_best(results: &mut [WindowResult]) {
    let mut known: Vec<&mut WindowResult> =
        results.iter_mut().filter(|result| result.window.is_some()).collect();
    let Some(best) = first_as_good(known.iter().map(|result| result.figures?.interval)) else { return };
    let rated = known.iter_mut().enumerate().filter(|(_, result)| result.has_interval());
    rated.for_each(|(index, result)| result.best = Some(index == best));
    known[best].caveats.note(OLD_DESCRIPTORS);
}

impl WindowResult {
    fn new(window: Option<u64>, mode: WindowMode) -> Self {
        Self { window, mode, why_none: NO_TURNS.to_owned(), ..Self::default() }
    }

    fn has_interval(&self) -> bool {
        self.figures.is_some_and(|figures| figures.interval.is_some())
    }

    pub(in crate::api) fn kb(&self) -> Option<u64> {
        self.window.map(|bytes| bytes >> 10)
    }

    fn lack(&mut self, doubt: Doubt, why: impl Into<String>) {
        self.why_none = why.into();
        self.caveats.doubt_since(doubt, self.why_none.clone());
        self.figures = None;
    }

    pub(super) fn mib_s(&self, block_size: u64) -> Option<f64> {
        self.figures.map(|figures| shared::mib_s(1e9 / figures.ns_per_block, block_size))
    }

    /// Takes what was seen of a window. The device's figures are as if each block took `added_ns` more.
    fn fill(&mut self, tally: &WindowTally, added_ns: f64, relation: &ProbedRelation) {
        let block_size = relation.block_size();
        self.turns = tally.turns();
        self.blocks = tally.blocks();
        self.elapsed_ns = Some(tally.elapsed_ns);
        if let Some(cost) = tally.cost(added_ns) {
            let from_device = match self.mode {
                // What the kernel fetched may also lie beyond what was read.
                WindowMode::Kernel => tally
                    .cached_bytes()
                    .map(|cached| tally.blocks().saturating_sub(cached.div_ceil(block_size))),
                WindowMode::Emulated => cost.fetched_bytes().map(|bytes| bytes.div_ceil(block_size)),
            };
            self.from_device = from_device
                .and_then(|blocks| Tiers::of_direct(tally.blocks(), blocks).percent())
                .map(|[_, _, share]| share);
            self.caveats.note_device(&cost);
            self.cost = Some(cost);
        }
        self.caveats.note_holes(tally.holes);
        if tally.disturbed() > 0 {
            self.caveats.note(format!(
                "number of turns left out because other work disturbed them: {}",
                tally.disturbed()
            ));
        }
        self.caveats.note_relation(relation);
    }

    /// Takes the figures, unless the device did not serve the blocks, or too few whole windows were read.
    fn judge(
        &mut self,
        tally: &WindowTally,
        figures: Option<WindowFigures>,
        window_blocks: u64,
        stop: Option<Stop>,
    ) {
        let (least, why) = match self.mode {
            WindowMode::Kernel => (COLD_PCT, "not cold: a part of the blocks came from the OS cache"),
            WindowMode::Emulated => (DIRECT_PCT, NOT_DIRECT),
        };
        match figures {
            _ if self.from_device.is_some_and(|share| share < least) => self.lack(Doubt::Void, why),
            _ if !readahead::is_enough(tally, window_blocks) => {
                self.lack(Doubt::Short, "the turns were too short to measure this window");
            }
            Some(figures) => {
                if figures.interval.is_none() {
                    self.caveats.too_short(MIN_TURNS, "turns");
                }
                self.figures = Some(figures);
            }
            None if tally.blocks() > 0 => {
                self.lack(Doubt::Short, "the time of the page cache is not known yet: no figures are given");
            }
            None => match stop {
                // Each row says by itself what stopped the curve.
                Some(stop) => {
                    self.caveats.doubt(Doubt::Short);
                    self.why_none = stop.to_string();
                }
                None => self.lack(Doubt::Short, NO_TURNS),
            },
        }
    }
}
