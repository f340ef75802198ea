//! `io_probe_sync`: what it costs to make writes durable, beside the WAL or in a tablespace.

mod bench;

use std::time::Duration;

use io_probe_core::machine::device::Placement;
use io_probe_core::measure::sync::{
    Case, CaseTimes, FLUSHES, FlushMethod, Group, Layout, Section, Selection,
};
use io_probe_core::stats::MIN_TURNS;
use pgrx::prelude::*;
use serde_json::{Value, json};

pub(super) use self::bench::{Bench, Benched};
use super::row::{Caveats, Doubt, Row, ms, of_leaves, us};
use crate::call::arguments::{self, figure};
use crate::call::named::NamedEnum;
use crate::call::options::{MEASURING, Options};
use crate::call::probe::Probe;
use crate::call::{Attempt, Begin, ProbedPlace};
use crate::error::{Error, Result};
use crate::pg::backend::argument::Elements;
use crate::pg::backend::encoding::Text;
use crate::pg::backend::interval::Interval;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::row::Rows;
use crate::pg::backend::server;
use crate::pg::storage::wal;

/// Options of this function alone.
const OPTIONS: [&str; 3] = ["commit_bytes", "commit_delay", "direct"];

/// Longest write, in kB.
const MOST_WRITE_KB: u32 = 1024;

/// Longest commit_delay in microseconds, as for the server's setting.
const MOST_COMMIT_DELAY: u32 = 100_000;

#[pg_extern(sql = false)]
fn io_probe_sync(
    spcname: Option<Text>,
    sections: Option<Elements<Text>>,
    duration: Option<Interval>,
    depth: Option<i32>,
    write_kb: Option<i32>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, &[&OPTIONS[..], &MEASURING].concat())?;
        let depth = arguments::depth(depth, 1)?;
        let sections = pick(sections.map(Elements::all), depth)?;
        let write_bytes = write_bytes(write_kb, &sections)?;
        let direct = direct(&options, &sections)?;
        let group = group(&options, depth)?;
        // Commits that share blocks are written in blocks.
        let flushes: &[u32] = if group.commit_bytes.is_some() { &[1] } else { &FLUSHES };
        let cases = cases(&sections, write_bytes, flushes, direct);
        let limits = options.limits(duration, cases.len())?;
        let tablespace = spcname.as_deref();
        let bench = Bench { cases, group, limits };

        let (call, place) = Begin { waits: options.flag("wait")?, ..Begin::of(Probe::Sync) }
            .on_place(|| ProbedPlace::find(tablespace))?;
        // A call that comes too late looks at no device.
        let place = if call.ended().is_none() { place.located() } else { place };
        let identity = identity(&place.placement);
        let found = call.attempt(|| bench.run(&call, &place), Benched::stop)?;
        Ok(rows(&bench, found, &identity))
    })
}

/// Is the WAL segment to be written past the page cache? None to do as this server would.
fn direct(options: &Options, sections: &[Section]) -> Result<Option<bool>> {
    let direct = options.choice("direct")?;
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

/// The sections that were picked, by default all; where several commit, the one that is about commits.
fn pick(names: Option<Vec<Option<Text>>>, depth: u32) -> Result<Vec<Section>> {
    let valid: &[Section] = if depth == 1 { &Section::ALL } else { &[Section::WalSegment] };
    let check = |section: Section| {
        if valid.contains(&section) {
            return Ok(());
        }
        let message = format!("section \"{}\" has no depth over 1", section.name());
        Err(Error::invalid(message).hint("Committers share the log of section \"wal_segment\" only."))
    };
    Ok(Section::list(names, check)?.unwrap_or_else(|| valid.to_vec()))
}

/// Bytes of a write, by default those of a WAL block.
fn write_bytes(write_kb: Option<i32>, sections: &[Section]) -> Result<u32> {
    let Some(write_kb) = write_kb else { return Ok(wal::BLOCK_BYTES) };
    if sections.iter().all(|section| matches!(section, Section::OpenSyncSize | Section::WalSegment)) {
        return Err(Error::invalid("write_kb requires a section with writes of that size")
            .hint("Sections \"open_sync_size\" and \"wal_segment\" have sizes of their own."));
    }
    Ok(arguments::positive_up_to("write_kb", write_kb, MOST_WRITE_KB)? << 10)
}

/// How many sessions commit, and how: as asked for, or as this server would.
fn group(options: &Options, committers: u32) -> Result<Group> {
    let number = |name: &str, least, most| match options.count(name, least)? {
        Some(_) if committers == 1 => {
            Err(Error::invalid(format!("option \"{name}\" requires a depth over 1")))
        }
        Some(number) if number > u64::from(most) => {
            Err(Error::invalid(format!("option \"{name}\" must be at most {most}, not {number}")))
        }
        number => Ok(number.map(|number| number as u32)),
    };
    let delay = number("commit_delay", 0, MOST_COMMIT_DELAY)?;
    let commit_bytes = number("commit_bytes", 1, MOST_WRITE_KB << 10)?;
    let delay = delay.map_or_else(|| wal::commit_delay(committers), |us| Duration::from_micros(us.into()));
    Ok(Group { committers, delay, commit_bytes })
}

/// Where it is measured, and when it begins.
fn identity(placement: &Placement) -> Value {
    let fua: Option<Vec<bool>> = placement.leaves.iter().map(|leaf| leaf.fua).collect();
    json!({
        "device": of_leaves(placement, |leaf| Some(&leaf.name)),
        "scheduler": of_leaves(placement, |leaf| leaf.scheduler.as_deref()),
        "write_cache": of_leaves(placement, |leaf| leaf.write_cache.as_deref()),
        "fua": fua.filter(|all| !all.is_empty()).map(|all| all.into_iter().all(|fua| fua)),
        "fs_type": placement.mount.as_ref().map(|mount| &mount.fs_type),
        "directory": placement.mount.as_ref().map(|_| placement.directory.display().to_string()),
        "started_at": server::now(),
    })
}

/// A row for each case.
fn rows(bench: &Bench, found: Attempt<Benched>, identity: &Value) -> Vec<Row> {
    let current = wal::sync_method().and_then(|name| FlushMethod::of_wal(&name));
    let is_in_use = |case: &Case| {
        let is_same = || current == Some(case.method) && case.direct == wal::opens_direct(case.method);
        case.section.is_of_wal().then(is_same)
    };
    let mut caveats = Caveats::default();
    let found = caveats.accept(found);
    let blank = |case: &Case| {
        Row::default().under(caveats.clone()).with(identity.clone()).with(json!({
            "section": case.section.name(),
            "method": case.method.name(),
            "writes": case.writes,
            "write_kb": case.write_bytes >> 10,
            "in_use": is_in_use(case),
            "direct": case.direct,
            "depth": bench.group.committers,
            "ops": 0,
            "flushes": 0,
        }))
    };
    let mut rows: Vec<Row> = bench.cases.iter().map(blank).collect();
    if let Some(Benched { cases, layout, disturbed }) = found {
        for ((row, case), measured) in rows.iter_mut().zip(&bench.cases).zip(&cases) {
            set_figures(row, measured);
            if disturbed && measured.flushes > 0 {
                row.caveats.doubt_since(Doubt::Others, "others read from the device meanwhile");
            }
            add_notes(&mut row.caveats, case, is_in_use(case) == Some(true), bench.group, &layout);
        }
    }
    rows
}

/// Notes what else there is to know of a row.
fn add_notes(caveats: &mut Caveats, case: &Case, in_use: bool, group: Group, layout: &Layout) {
    if case.section.is_of_wal() && wal::sync_method().is_none() {
        caveats.note("fsync is off: this server syncs nothing");
    }
    if in_use && group.committers == 1 && !group.delay.is_zero() {
        let delay = group.delay.as_micros();
        caveats
            .note(format!("commit_siblings is 0: this server lets even a lone commit wait {delay} us more"));
    }
    let shortened = layout.segment_bytes().filter(|bytes| *bytes < wal::segment_bytes());
    if let Some(bytes) = shortened.filter(|_| case.section == Section::WalSegment) {
        let (bytes, wanted) = (bytes >> 10, wal::segment_bytes() >> 10);
        caveats.note(format!("the segment was {bytes} kB long, not {wanted}: pg_io_probe.scratch_limit"));
    }
}

/// Puts into a row what was measured.
fn set_figures(row: &mut Row, measured: &CaseTimes) {
    if let Some(why) = &measured.refused {
        row.caveats.refuse(why.clone());
        return;
    }
    match measured.stop {
        Some(stop) if measured.ops() == 0 && stop.is_for_all() => row.caveats.not_begun(stop),
        Some(stop) => row.caveats.stopped(stop),
        None => {}
    }
    if measured.syncs_are_swallowed {
        row.caveats.void("fewer writes reached the device than were synced: something swallows the syncs");
        return;
    }
    if measured.paused {
        row.caveats
            .doubt_since(Doubt::Paced, "rate-limited: after a pause an operation may take longer or shorter");
    } else if measured.interval().is_none() {
        row.caveats.too_short(MIN_TURNS, "turns");
    }
    let (device, ns_per_op) = (measured.device(), measured.ns_per_op());
    row.set(json!({
        "ops_s": ns_per_op.filter(|_| !measured.paused).map(|ns| figure(1e9 / ns)),
        "op_us": ns_per_op.map(us),
        "max_us": measured.latencies.most().map(|ns| us(ns as f64)),
        "ops": measured.ops(),
        "flushes": measured.flushes,
        "device_writes_per_op": device.map(|device| figure(device.writes_per_op())),
        "device_flushes_per_op": device.and_then(|device| device.flushes_per_op()).map(figure),
        "elapsed_ms": ms(measured.elapsed_ns()),
    }));
    row.set_latencies(&measured.latencies);
    row.set_interval_of_time(measured.interval());
}
