//! `io_probe_readahead`: the curve of throughput over readahead windows.

use io_probe_core::Error as CoreError;
use io_probe_core::engine::Kind;
use io_probe_core::machine::account::Account;
use io_probe_core::machine::observer::Observer;
use io_probe_core::measure::readahead::{
    self, Contender, Emulation, LARGEST_WINDOW, ROOM_OF_SLOT, ReadaheadRun, SLOTS, WindowFigures, WindowTally,
};
use io_probe_core::measure::tiers::Tiers;
use io_probe_core::run::budget::{Budget, Limits};
use io_probe_core::run::clock::Monotonic;
use pgrx::datum;
use pgrx::prelude::*;
use serde::Serialize;

use super::cache::check_may_evict;
use crate::call::arguments::{self, figure};
use crate::call::options::Options;
use crate::call::probed_relation::{
    DIRECT_PCT, DeviceFigures, Failure, Identity, NOT_DIRECT, ProbedRelation, Verdict,
};
use crate::call::statement;
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::argument::Elements;
use crate::pg::backend::interrupts;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::progress::Progress;
use crate::pg::backend::row::Rows;
use crate::pg::backend::server;
use crate::pg::storage::relation::Fork;

/// The options of this function.
const OPTIONS: [&str; 7] =
    ["max_bytes", "max_iops", "max_mib_per_s", "max_util_pct", "max_p99_us", "precision", "wait"];

/// Windows by default, in kB, as the SQL signature says.
pub(super) const WINDOWS_KB: [i32; 9] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/// Most windows of a call.
const MOST_WINDOWS: usize = 32;

/// Precision where the call asks for none: as fine as what tells the best window.
pub(super) const PRECISION: f64 = 0.03;

/// At a setting below this, in bytes, the page cache's work can't be told well from the cost of a request.
const LEAST_SETTING: u64 = 64 << 10;

/// With fewer turns of a window no window is called the best.
const LEAST_TURNS: u64 = 3;

/// A row of the kernel is void if less of it than this, in percent, came from the device.
const COLD_PCT: f64 = 99.0;
/// The note that says so.
const NOT_COLD: &str = "not cold: part of the blocks came from the OS cache";

/// Sessions that were there before a change don't notice it.
const OLD_DESCRIPTORS: &str =
    "sessions keep the window with which they opened a file: after a change, reconnect";

#[pg_extern(sql = false)]
fn io_probe_readahead(
    rel: Option<pg_sys::Oid>,
    windows_kb: Option<Elements<i32>>,
    duration: Option<datum::Interval>,
    options: Option<JsonbText>,
) -> Rows {
    let request = || {
        let options = Options::parse(options, &OPTIONS)?;
        let windows = pick(windows_kb.map(Elements::all))?;
        let duration = arguments::duration(duration)?;
        let mut limits = options.limits(duration)?;
        if duration.is_none() {
            limits = gucs::shared_by_rows(limits, windows.len() as u32 + 1);
        }
        limits.precision = limits.precision.or(Some(PRECISION));
        Ok(ReadaheadRequest { rel: arguments::relation(rel)?, windows, limits, wait: options.flag("wait")? })
    };
    Rows::answer(|| request().and_then(|request| request.run()))
}

/// The windows that were asked for in bytes, each once, ascending.
fn pick(windows_kb: Option<Vec<Option<i32>>>) -> Result<Vec<u64>> {
    let windows_kb = windows_kb.unwrap_or_else(|| WINDOWS_KB.map(Some).to_vec());
    if windows_kb.is_empty() {
        return Err(Error::invalid("windows_kb must not be empty"));
    }
    let block_kb = (pg_sys::BLCKSZ / 1024) as i32;
    let most_kb = (LARGEST_WINDOW >> 10) as i32;
    let bytes = |kb: Option<i32>| {
        let kb = kb.ok_or_else(|| Error::invalid("windows_kb must not contain nulls"))?;
        if !(0..=most_kb).contains(&kb) || kb % block_kb != 0 {
            let valid = format!("multiples of {block_kb} from 0 to {most_kb}");
            return Err(Error::invalid(format!("windows_kb must contain {valid}, not {kb}")));
        }
        Ok(u64::from(kb.unsigned_abs()) << 10)
    };
    let mut windows = windows_kb.into_iter().map(bytes).collect::<Result<Vec<u64>>>()?;
    windows.sort_unstable();
    windows.dedup();
    if windows.len() > MOST_WINDOWS {
        let count = windows.len();
        return Err(Error::invalid(format!("windows_kb must contain at most {MOST_WINDOWS}, not {count}")));
    }
    Ok(windows)
}

/// A call whose arguments are right by themselves.
struct ReadaheadRequest {
    rel: pg_sys::Oid,
    windows: Vec<u64>,
    limits: Limits,
    wait: bool,
}

/// `io_probe_readahead_row`; the type's comments say what each attribute means.
#[derive(Debug, Default, Serialize)]
pub(super) struct ReadaheadRow {
    pub(super) window_kb: Option<u64>,
    pub(super) mode: &'static str,
    pub(super) mib_per_s: Option<f64>,
    pub(super) us_per_block: Option<f64>,
    best: Option<bool>,
    pub(super) blockdev_setra: Option<String>,
    pub(super) udev_rule: Option<String>,
    #[serde(flatten)]
    pub(super) verdict: Verdict,
    pub(super) ci_low_us: Option<f64>,
    pub(super) ci_high_us: Option<f64>,
    cache_us: Option<f64>,
    pub(super) turns: u64,
    blks_read: u64,
    elapsed_ms: Option<f64>,
    device_bytes: Option<u64>,
    from_device_pct: Option<f64>,
    #[serde(flatten)]
    device_figures: DeviceFigures,
    engine: Option<String>,
    #[serde(flatten)]
    identity: Identity,
}

impl ReadaheadRequest {
    fn run(&self) -> Result<Vec<ReadaheadRow>> {
        check_may_evict("io_probe_readahead")?;
        let (_lock, subject) =
            ProbedRelation::open_alone(self.rel, Fork::MAIN, "io_probe_readahead", self.wait)?;
        let _charge = statement::charge()?;
        let progress = Progress::start("readahead", Some(subject.relation.oid()));
        CurveOf { subject: &subject, windows: &self.windows, limits: self.limits }.rows(&progress)
    }
}

/// The curve of a relation that is open, for whoever may evict.
pub(super) struct CurveOf<'a> {
    pub(super) subject: &'a ProbedRelation,
    /// Windows beside the one in force, in bytes, each once, ascending.
    pub(super) windows: &'a [u64],
    /// Of each window.
    pub(super) limits: Limits,
}

impl CurveOf<'_> {
    /// Measures it within what the statement has left: a row for each window, ascending.
    pub(super) fn rows(&self, progress: &Progress) -> Result<Vec<ReadaheadRow>> {
        let subject = self.subject;
        // One moment and one device for all rows of the call.
        let identity = Identity::of(subject);
        let in_force = subject.placement.read_ahead_kb.map(|kb| kb << 10);
        let emulated: Vec<u64> = self.windows.iter().copied().filter(|w| Some(*w) != in_force).collect();
        let blank = |window: Option<u64>, mode| {
            let window_kb = window.map(|bytes| bytes >> 10);
            let device = subject.placement.read_ahead_device.as_deref();
            let lines = window_kb.zip(device).map(|(kb, device)| lines(kb, device));
            let (blockdev_setra, udev_rule) = lines.unzip();
            ReadaheadRow {
                window_kb,
                mode,
                blockdev_setra,
                udev_rule,
                identity: identity.clone(),
                ..ReadaheadRow::default()
            }
        };
        let kernel = blank(in_force, "kernel");
        let mut rows: Vec<ReadaheadRow> =
            [kernel].into_iter().chain(emulated.iter().map(|w| blank(Some(*w), "emulated"))).collect();
        if let Some(stop) = statement::over() {
            rows.iter_mut().for_each(|row| row.verdict.not_begun(stop));
        } else if let Err(Failure::Unsupported(why)) = subject.reads_of_device() {
            rows.iter_mut().for_each(|row| row.verdict.refuse(why.clone()));
        } else if let Some(in_force) = in_force {
            self.measure(in_force, &emulated, &mut rows, progress)?;
        } else {
            let why = "the setting in force is unknown: ".to_owned() + &subject.placement.notes.join("; ");
            rows.iter_mut().for_each(|row| row.verdict.refuse(why.clone()));
        }
        rows.sort_by_key(|row| row.window_kb);
        Ok(rows)
    }

    /// Fills the rows: the kernel's first, then those of the emulated windows.
    fn measure(
        &self,
        in_force: u64,
        windows: &[u64],
        rows: &mut [ReadaheadRow],
        progress: &Progress,
    ) -> Result<()> {
        let subject = self.subject;
        let block_size = subject.block_size();
        // The kernel reads no less than a block.
        let twin = in_force.min(LARGEST_WINDOW).next_multiple_of(block_size);
        let mut notes = Vec::new();
        let mut emulation = match subject.source.open(0, true) {
            Ok(_) => {
                let opened = ProbedRelation::engine(gucs::depth(Some(SLOTS), SLOTS)?, ROOM_OF_SLOT)?;
                notes.extend(opened.note);
                Emulation::Direct(opened.engine)
            }
            Err(refused @ CoreError::Unsupported { .. }) => {
                notes.push(format!("emulated by readahead(2), which is less exact: {refused}"));
                let largest = subject.placement.leaves.iter().filter_map(|leaf| leaf.max_sectors_kb).min();
                Emulation::ReadaheadCalls { piece: in_force.max(largest.unwrap_or(0) << 10) }
            }
            Err(e) => return Err(e.into()),
        };
        let engine = match &emulation {
            Emulation::Direct(engine) => engine.kind().name(),
            Emulation::ReadaheadCalls { .. } => "readahead",
        };
        if in_force < LEAST_SETTING {
            notes.push("cache_us is coarse: it was measured at a setting of less than 64 kB".to_owned());
        }
        let observer = Observer::new(Account::Own, &subject.placement.leaves, &subject.roots);
        let limits = self.limits;
        let run =
            ReadaheadRun { source: &subject.source, in_force: twin, windows, limits, observer: &observer };
        let mut should_stop = interrupts::should_stop(subject.relation.locked());
        let mut should_stop = || statement::over().or_else(&mut should_stop);
        let mut report = |turn: u64, turns: u64, whose: Contender| {
            progress.path(if whose == Contender::Kernel { "kernel" } else { "emulated" }, turns);
            progress.done(turn - 1);
        };
        let mut budget = Budget::of_statement(statement::left(), &Monotonic, &mut should_stop);
        let curve = readahead::curve(&run, &mut emulation, &mut budget, &mut report)?;
        statement::heed(curve.stop);

        let (kernel, emulated) = rows.split_at_mut(1);
        let kernel = &mut kernel[0];
        kernel.engine = Some(Kind::Pread.to_string());
        kernel.fill(&curve.kernel, 0.0, subject);
        kernel.tell(&curve.kernel, curve.of_kernel(), twin / block_size, block_size);
        let cache_ns = curve.cache_cost().map(|cost| cost.ns);
        for ((row, tally), window) in emulated.iter_mut().zip(&curve.emulated).zip(windows) {
            row.engine = Some(engine.to_owned());
            row.verdict.notes.extend(notes.iter().cloned());
            row.fill(tally, cache_ns.unwrap_or(0.0), subject);
            if ["void", "unsupported"].contains(&kernel.verdict.status) {
                row.verdict.void("what the page cache costs is unknown: the kernel's row has no figures");
            } else if row.tell(tally, curve.of_emulated(tally), window / block_size, block_size) {
                row.cache_us = cache_ns.map(|ns| figure(ns / 1e3));
            }
        }
        if curve.stop.is_none_or(|stop| !stop.is_for_all()) {
            mark_best(rows);
        }
        let at_a_time = server::scan_read_kb();
        for row in rows {
            if let Some(kb) = at_a_time.filter(|kb| row.window_kb.is_some_and(|window| window < *kb)) {
                row.verdict.note(format!(
                    "a scan of this server reads {kb} kB at a time (io_combine_limit): to it a smaller window is none"
                ));
            }
            curve.stop.into_iter().for_each(|stop| row.verdict.stopped(stop));
            if curve.paused {
                row.verdict.note("rate-limited: with pauses between turns, each of which ran at full speed");
            }
        }
        Ok(())
    }
}

/// How to set a window of so many kB on a device: for now, and at each boot.
fn lines(kb: u64, device: &str) -> (String, String) {
    let sectors = kb * 2;
    (
        format!("blockdev --setra {sectors} /dev/{device}"),
        format!(
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"{device}\", ATTR{{queue/read_ahead_kb}}=\"{kb}\""
        ),
    )
}

/// Marks the best window among those that have figures, unless one is void or had too few turns.
fn mark_best(rows: &mut [ReadaheadRow]) {
    let unsure = |row: &ReadaheadRow| {
        row.verdict.status == "void" || row.mib_per_s.is_some() && row.turns < LEAST_TURNS
    };
    if rows.iter().any(unsure) {
        return;
    }
    let curve: Vec<(u64, f64)> = rows.iter().filter_map(|row| row.window_kb.zip(row.mib_per_s)).collect();
    let Some(best) = readahead::best(&curve).filter(|_| curve.len() > 1) else { return };
    for row in rows.iter_mut().filter(|row| row.mib_per_s.is_some()) {
        row.best = Some(row.window_kb == Some(best));
        if row.best == Some(true) {
            row.verdict.note(OLD_DESCRIPTORS);
        }
    }
}

impl ReadaheadRow {
    /// What was seen of a window, whose blocks take so many nanoseconds more than they did.
    fn fill(&mut self, tally: &WindowTally, added_ns: f64, subject: &ProbedRelation) {
        let block_size = subject.block_size();
        self.turns = tally.turns();
        self.blks_read = tally.blocks();
        self.elapsed_ms = Some(figure(tally.elapsed_ns as f64 / 1e6));
        if let Some(why) = &tally.refused {
            self.verdict.refuse(why.clone());
            return;
        }
        if let Some(cost) = tally.cost(added_ns) {
            self.device_bytes = cost.fetched_bytes;
            let from_device = match self.mode {
                // What it fetched may also lie beyond what was read.
                "kernel" => tally
                    .cached_bytes()
                    .map(|cached| tally.blocks().saturating_sub(cached.div_ceil(block_size))),
                _ => cost.fetched_bytes.map(|bytes| bytes.div_ceil(block_size)),
            };
            self.from_device_pct = from_device
                .and_then(|blocks| Tiers::of_direct(tally.blocks(), blocks).percent())
                .map(|[_, _, share]| figure(share));
            self.device_figures = DeviceFigures::of(&cost, Some(tally.blocks()), &mut self.verdict);
        }
        if tally.holes > 0 {
            let holes = tally.holes;
            self.verdict
                .note(format!("{holes} blocks were never written to the file (holes) and are left out"));
        }
        if tally.disturbed() > 0 {
            self.verdict
                .note(format!("turns left out because other work disturbed them: {}", tally.disturbed()));
        }
        let read = tally.blocks();
        let total = subject.source.blocks();
        if read > total {
            let times = read.div_ceil(total.max(1));
            self.verdict.note(format!(
                "blocks were read up to {times} times: caches below the kernel may serve them"
            ));
        }
    }

    /// Its figures, unless the device did not serve the blocks, or too few windows of so many blocks were read. Returns
    /// whether there are some.
    fn tell(
        &mut self,
        tally: &WindowTally,
        figures: Option<WindowFigures>,
        window_blocks: u64,
        block_size: u64,
    ) -> bool {
        let (least, why) =
            if self.mode == "kernel" { (COLD_PCT, NOT_COLD) } else { (DIRECT_PCT, NOT_DIRECT) };
        if self.from_device_pct.is_some_and(|share| share < least) {
            self.verdict.void(why);
            return false;
        }
        if !readahead::is_enough(tally, window_blocks) {
            self.verdict.note("turns were too short for this window: no figures are given");
            return false;
        }
        let Some(WindowFigures { ns_per_block, interval }) = figures else {
            if tally.blocks() > 0 {
                self.verdict.note("what the page cache costs is not known yet: no figures are given");
            }
            return false;
        };
        self.us_per_block = Some(figure(ns_per_block / 1e3));
        self.mib_per_s = Some(figure(block_size as f64 / ns_per_block * 1e9 / f64::from(1 << 20)));
        self.ci_low_us = interval.map(|interval| figure(interval.low / 1e3));
        self.ci_high_us = interval.map(|interval| figure(interval.high / 1e3));
        true
    }
}
