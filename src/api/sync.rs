//! `io_probe_sync`: what it costs to make writes durable, beside the WAL or in a tablespace.

mod bench;

use std::time::Duration;

use io_probe_core::machine::device::Placement;
use io_probe_core::measure::sync::{Case, CaseTimes, FLUSHES, FlushMethod, GroupCommit, Section, Selection};
use io_probe_core::stats::MIN_TURNS;
use io_probe_surface::doubt::Doubt;
use io_probe_surface::function::OptionName;
use io_probe_surface::sync::{OPTIONS, SyncRow};
use io_probe_surface::value::Timestamp;
use pgrx::prelude::*;

pub(super) use self::bench::{Bench, Benched};
use super::shared::{self, Caveats, ms, of_leaves, us};
use crate::call::{Begin, NamedEnum, Options, Outcome, Probe, ProbedPlace, arguments, figure};
use crate::error::{Error, Result};
use crate::pg::backend::{Elements, JsonbText, Rows, SqlInterval, Text, server};
use crate::pg::storage::wal;

/// Longest write, in kB.
const MOST_WRITE_KB: u32 = 1024;

/// Longest commit_delay in microseconds, as for the server's setting.
const MOST_COMMIT_DELAY: u32 = 100_000;

#[pg_extern(sql = false)]
fn io_probe_sync(
    spcname: Option<Text>,
    sections: Option<Elements<Text>>,
    duration: Option<SqlInterval>,
    depth: Option<i32>,
    write_kb: Option<i32>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, OPTIONS)?;
        let depth = arguments::depth(depth, 1)?;
        let given = sections.map(|given| given.0);
        // What is not asked for is what a commit does.
        let flushes = if given.is_some() { &FLUSHES[..] } else { &FLUSHES[..1] };
        let sections = pick(given, depth)?;
        let write_bytes = write_bytes(write_kb, &sections)?;
        let direct = direct(&options, &sections)?;
        let group = group(&options, depth)?;
        // Commits that share blocks are written in blocks.
        let flushes = if group.commit_bytes.is_some() { &FLUSHES[..1] } else { flushes };
        let cases = cases(&sections, write_bytes, flushes, direct);
        let limits = options.limits(duration, cases.len())?;
        rows(Bench { cases, group, limits }, spcname.as_deref(), options.waits()?)
    })
}

/// Measures in a tablespace, or beside the WAL: a row for each case.
pub(super) fn rows(bench: Bench, spcname: Option<&str>, waits: bool) -> Result<Vec<SyncRow>> {
    bench.layout()?;
    let (call, place) = Begin { waits, ..Begin::of(Probe::Sync) }.on_place(|| ProbedPlace::find(spcname))?;
    // A call that comes too late looks at no device.
    let place = if call.ended().is_none() { place.located() } else { place };
    let sync = SyncCall { bench, place, started_at: server::present() };
    let found = call.attempt(|| sync.bench.run(&call, &sync.place), Benched::stop);
    sync.rows(found)
}

/// Is the WAL segment to be written past the page cache? None to do as this server would.
fn direct(options: &Options, sections: &[Section]) -> Result<Option<bool>> {
    let direct = options.choice(OptionName::Direct)?;
    if direct.is_some() && !sections.contains(&Section::WalSegment) {
        return Err(Error::invalid("option \"direct\" requires section \"wal_segment\""));
    }
    Ok(direct)
}

/// What is to be measured: of the WAL segment, flushes of so many blocks.
pub(super) fn cases(
    sections: &[Section],
    write_bytes: u32,
    flushes: &[u32],
    direct: Option<bool>,
) -> Vec<Case> {
    Case::all(&Selection {
        sections,
        write_bytes,
        wal_block: wal::BLOCK_BYTES,
        flushes,
        segment_direct: &|method| direct.unwrap_or_else(|| wal::opens_direct(method)),
    })
}

/// The sections that were picked, by default the one that is about commits; where several commit, it is the
/// only one.
fn pick(names: Option<Vec<Option<Text>>>, depth: u32) -> Result<Vec<Section>> {
    let valid: &[Section] = if depth == 1 { &Section::ALL } else { &[Section::WalSegment] };
    if let Some([Some(name)]) = names.as_deref()
        && Section::EVERY == Some(&**name)
    {
        return Ok(valid.to_vec());
    }
    let check = |section: Section| {
        if valid.contains(&section) {
            return Ok(());
        }
        let message = format!("section \"{}\" has no depth over 1", section.name());
        Err(Error::invalid(message).hint("Committers share a log only in section \"wal_segment\"."))
    };
    Ok(Section::list(names, check)?.unwrap_or_else(|| vec![Section::WalSegment]))
}

/// Bytes of a write, by default those of a WAL block.
fn write_bytes(write_kb: Option<i32>, sections: &[Section]) -> Result<u32> {
    let Some(write_kb) = write_kb else { return Ok(wal::BLOCK_BYTES) };
    if sections.iter().all(|section| matches!(section, Section::OpenSyncSize | Section::WalSegment)) {
        return Err(Error::invalid("write_kb requires a section that uses it")
            .hint("Sections \"open_sync_size\" and \"wal_segment\" have their own sizes."));
    }
    Ok(arguments::positive_up_to("write_kb", write_kb, MOST_WRITE_KB)? << 10)
}

/// How many sessions commit, and how: as asked for, or as this server would.
fn group(options: &Options, committers: u32) -> Result<GroupCommit> {
    let number = |option: OptionName, least, most| match options.count(option, least)? {
        Some(_) if committers == 1 => {
            Err(Error::invalid(format!("option \"{}\" requires a depth over 1", option.name())))
        }
        Some(number) if number > u64::from(most) => {
            Err(Error::invalid(format!("option \"{}\" must be at most {most}, not {number}", option.name())))
        }
        number => Ok(number.map(|number| number as u32)),
    };
    let delay = number(OptionName::CommitDelay, 0, MOST_COMMIT_DELAY)?;
    let commit_bytes = number(OptionName::CommitBytes, 1, MOST_WRITE_KB << 10)?;
    let delay = delay.map_or_else(|| wal::commit_delay(committers), |us| Duration::from_micros(us.into()));
    Ok(GroupCommit { committers, delay, commit_bytes })
}

/// A call of this function.
struct SyncCall {
    bench: Bench,
    place: ProbedPlace,
    started_at: Timestamp,
}

impl SyncCall {
    /// A row for each case.
    fn rows(&self, found: Outcome<Benched>) -> Result<Vec<SyncRow>> {
        let cases = &self.bench.cases;
        let mut caveats = Caveats::default();
        let Some(benched) = caveats.accept(found)? else {
            return Ok(cases.iter().map(|case| self.row(case, None, caveats.clone())).collect());
        };
        let measured = |(case, times)| self.row(case, Some(times), self.caveats(case, times, &benched));
        Ok(cases.iter().zip(&benched.cases).map(measured).collect())
    }

    /// What speaks against the figures of a case, and what else there is to know of them.
    fn caveats(&self, case: &Case, times: &CaseTimes, benched: &Benched) -> Caveats {
        let mut caveats = Caveats::default();
        judge(times, &mut caveats);
        caveats.note_held_back(&benched.held_back);
        if benched.disturbed && times.flushes > 0 {
            caveats.doubt_since(
                Doubt::Others,
                "others read from the device or wrote to it during the measurement",
            );
        }
        if case.section.is_of_wal() && wal::sync_method().is_none() {
            caveats.note("fsync is off, so this server syncs nothing");
        }
        let GroupCommit { committers, delay, .. } = self.bench.group;
        if is_in_use(case) == Some(true) && committers == 1 && !delay.is_zero() {
            let delay = delay.as_micros();
            caveats.note(format!(
                "commit_siblings is 0, so even a single commit on this server waits {delay} us more"
            ));
        }
        let shortened = benched.layout.segment_bytes().filter(|bytes| *bytes < wal::segment_bytes());
        if let Some(bytes) = shortened.filter(|_| case.section == Section::WalSegment) {
            let (kb, wanted) = (bytes >> 10, wal::segment_bytes() >> 10);
            caveats.note(format!(
                "the segment was {kb} kB long, not {wanted}, because of pg_io_probe.scratch_limit"
            ));
        }
        caveats
    }

    fn row(&self, case: &Case, times: Option<&CaseTimes>, mut caveats: Caveats) -> SyncRow {
        let placement = &self.place.placement;
        let mount = placement.mount.as_ref();
        let times = times.filter(|times| times.refused.is_none() && times.not_durable.is_none());
        let ns_per_op = times.and_then(CaseTimes::ns_per_op);
        let latencies = times.map(|times| shared::latencies(&times.latencies)).unwrap_or_default();
        let device = times.and_then(CaseTimes::device);
        SyncRow {
            section: case.section.name(),
            method: case.method.name(),
            writes: case.writes,
            write_kb: case.write_bytes >> 10,
            ops_s: ns_per_op.filter(|_| times.is_some_and(|times| !times.paused)).map(|ns| figure(1e9 / ns)),
            op_us: ns_per_op.map(us),
            p50_us: latencies.p50_us,
            p95_us: latencies.p95_us,
            p99_us: latencies.p99_us,
            histogram: latencies.histogram,
            max_us: times.and_then(|times| times.latencies.most()).map(|ns| us(ns as f64)),
            in_use: is_in_use(case),
            direct: case.direct,
            ops: times.map_or(0, CaseTimes::ops),
            depth: self.bench.group.committers,
            flushes: times.map_or(0, |times| times.flushes),
            device_writes_per_op: device.map(|device| figure(device.writes_per_op())),
            device_flushes_per_op: device.and_then(|device| device.flushes_per_op()).map(figure),
            elapsed_ms: times.map(|times| ms(times.elapsed_ns())),
            device: of_leaves(placement, |leaf| Some(&leaf.name)).map(Into::into),
            scheduler: of_leaves(placement, |leaf| leaf.scheduler.as_deref()).map(Into::into),
            write_cache: of_leaves(placement, |leaf| leaf.write_cache.as_deref()).map(Into::into),
            fua: fua(placement),
            fs_type: mount.map(|mount| mount.fs_type.clone().into()),
            directory: mount.map(|_| placement.directory.display().to_string().into()),
            started_at: self.started_at,
            interval: shared::interval_of_time(times.and_then(CaseTimes::interval), &mut caveats),
            caveats: caveats.columns(),
        }
    }
}

/// What speaks against these times.
fn judge(times: &CaseTimes, caveats: &mut Caveats) {
    if let Some(why) = &times.refused {
        return caveats.refuse(why.clone());
    }
    if let Some(why) = times.not_durable {
        caveats.void(&why.to_string());
    }
    match times.stop {
        Some(stop) if times.ops() == 0 && stop.is_for_all() => caveats.not_begun(stop),
        Some(stop) => caveats.stopped(stop),
        None => {}
    }
    if times.not_durable.is_some() {
        return;
    }
    if times.paused {
        caveats.doubt_since(
            Doubt::Paced,
            "rate-limited: after a pause an operation may take more time, or less",
        );
    } else if times.interval().is_none() {
        caveats.too_short(MIN_TURNS, "turns");
    }
}

/// Does this server sync its WAL as in this case? None if the case is not about that.
fn is_in_use(case: &Case) -> Option<bool> {
    let in_force = wal::sync_method().and_then(|name| FlushMethod::of_wal(&name));
    let is_same = in_force == Some(case.method) && case.direct == wal::opens_direct(case.method);
    case.section.is_of_wal().then_some(is_same)
}

/// Can a write pass the caches of all devices? None if that is not known of each.
fn fua(placement: &Placement) -> Option<bool> {
    let of_each: Vec<bool> = placement.leaves.iter().map(|leaf| leaf.fua).collect::<Option<_>>()?;
    (!of_each.is_empty()).then(|| of_each.into_iter().all(|fua| fua))
}
