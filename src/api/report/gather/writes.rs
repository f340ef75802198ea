//! What a report tells of writes of data, and of reads beside them.

use std::cmp::Ordering;

use io_probe_core::run::budget::Limits;
use io_probe_surface::doubt::Doubt;
use io_probe_surface::mix::MixRow;
use io_probe_surface::report::ReportFullRow;
use io_probe_surface::write::WriteRow;
use pgrx::pg_sys;

use super::{
    Line, Mark, Measurements, NO_TABLE, OF_WRITES, Part, ReportDraft, ReportSection, beside_others, count,
    ends, promise_unless_paced, time, why_none,
};
use crate::api::write::{self, Pattern};
use crate::api::{mix, shared};
use crate::call::{NamedEnum, Probe, ProbedPlace, arguments, figure};
use crate::pg::backend::server;
use crate::pg::storage::tablespace::Tablespace;

/// Reads and writes at once, in percent of what each reaches alone.
const SHARES: [u32; 3] = [0, 50, 80];

/// The share of writes beside which a verdict tells what reads take.
const BESIDE: u32 = SHARES[1];

impl Measurements {
    /// The relation, and its tablespace, if data may be written there; else why not.
    fn may_write(&self, rel: Option<pg_sys::Oid>) -> std::result::Result<(pg_sys::Oid, Tablespace), String> {
        let right = Probe::Sync.function();
        let rel = match rel {
            _ if !self.writes => return Err("needs writes".to_owned()),
            None => return Err(NO_TABLE.to_owned()),
            _ if !server::may_execute(right) => return Err(format!("needs EXECUTE on {right}")),
            Some(rel) => rel,
        };
        let tablespace = Tablespace::of_relation(rel);
        match tablespace.check_may_write() {
            Ok(()) => Ok((rel, tablespace)),
            Err(error) => Err(error.message),
        }
    }

    /// Writes of data where the relation is, and reads beside them.
    pub(super) fn data_writes(&self, found: &mut ReportDraft, rel: Option<pg_sys::Oid>) {
        match self.may_write(rel) {
            Ok((rel, tablespace)) => {
                self.writes(found, tablespace);
                self.loads(found, rel);
            }
            Err(why) => OF_WRITES.iter().for_each(|item| found.missing(item, &why)),
        }
    }

    /// Writes of data past the page cache.
    fn writes(&self, found: &mut ReportDraft, tablespace: Tablespace) {
        let writes = found.run(Probe::Write, || {
            let ways = write::direct_ways()?;
            let limits = Limits { precision: None, ..self.limits(Part::Writes, ways.len())? };
            write::rows(ways, arguments::seed(None), limits, self.waits, || {
                tablespace.check_may_write()?;
                Ok(ProbedPlace::of_tablespace(tablespace))
            })
        });
        let (random, long): (Vec<_>, Vec<_>) =
            writes.into_iter().partition(|row| row.pattern == Pattern::Random.name());
        let fastest =
            random.iter().max_by(|a, b| a.writes_s.partial_cmp(&b.writes_s).unwrap_or(Ordering::Equal));
        let fastest = fastest.map(|row| row.depth);
        for row in &random {
            let promised = self.promised.write_iops.filter(|_| Some(row.depth) == fastest);
            found.written(ReportSection::Write, row, row.writes_s, "1/s", promised);
        }
        for row in &random {
            found.written(ReportSection::WriteP50, row, row.p50_us, "us", None);
            found.written(ReportSection::WriteP99, row, row.p99_us, "us", None);
        }
        for row in &long {
            found.written(ReportSection::LongWrite, row, row.mib_s, "MiB/s", self.promised.write_mib_s);
        }
        found.tell_writes(&random);
    }

    /// Reads beside writes, at several loads of each.
    fn loads(&self, found: &mut ReportDraft, rel: pg_sys::Oid) {
        if let Err(error) = mix::of_each_side(None) {
            return found.missing(OF_WRITES[1], &error.message);
        }
        let rows = found.run(Probe::Mix, || {
            let limits = Limits { precision: None, ..self.limits(Part::Loads, mix::loads(&SHARES))? };
            mix::beside_data(rel, &SHARES, limits, self.waits)
        });
        rows.iter().for_each(|row| found.load(row));
        found.tell_loads(&rows);
    }
}

impl ReportDraft {
    /// A figure of writes, which is that at so many in flight.
    fn written(
        &mut self,
        section: ReportSection,
        row: &WriteRow,
        value: Option<f64>,
        unit: &'static str,
        promised: Option<f64>,
    ) {
        // The interval is that of the rate in requests.
        let of_one = row.writes_s.zip(value).map(|(writes, value)| value / writes);
        let is_rate = matches!(section, ReportSection::Write | ReportSection::LongWrite);
        let end = |end: Option<f64>| end.zip(of_one).map(|(end, of_one)| figure(end * of_one));
        let (low, high) = ends(&row.interval);
        let interval = if is_rate { (end(low), end(high)) } else { (None, None) };
        let line = Line::figure(section, row.depth.to_string(), value, unit, interval);
        let line = line.marked(None, &row.caveats.doubt);
        self.push(promise_unless_paced(line, promised, true, &row.caveats));
    }

    /// The rate of a limit says nothing of the volume.
    fn tell_writes(&mut self, random: &[WriteRow]) {
        let (Some(one), Some(several)) = (random.first(), random.last()) else { return };
        let (Some(of_one), Some(most)) = (one.writes_s, several.writes_s) else {
            return self.missing(OF_WRITES[0], &why_none(&several.caveats));
        };
        if several.caveats.doubt.has(Doubt::Paced) {
            return;
        }
        let (depth, times) = (several.depth, most / of_one);
        let times = if depth > 1 { format!(", {times:.1} times as many as with one") } else { String::new() };
        let small = several.scratch_mib.filter(|_| several.caveats.doubt.has(Doubt::Small));
        let cache = small.map_or(String::new(), |mib| {
            format!("; a cache of the device may take all {mib} MiB of the file that was written")
        });
        let beside = beside_others(&several.caveats);
        self.say(
            "writes",
            format!("{} random writes a second with {depth} in flight{beside}{times}{cache}.", count(most)),
        );
    }

    /// A load of reads and writes: what reads take, or of a side alone, how many there were.
    fn load(&mut self, row: &MixRow) {
        let doubts = &row.caveats.doubt;
        let alone = match row.load {
            mix::READS_ALONE => Some(("reads", row.reads_s)),
            mix::WRITES_ALONE => Some(("writes", row.writes_s)),
            _ => None,
        };
        if let Some((side, per_s)) = alone {
            let line = Line::figure(ReportSection::Load, side, per_s, "1/s", (None, None));
            return self.push(line.marked(None, doubts));
        }
        let Some(read_pct) = row.read_pct.filter(|pct| *pct > 0 && row.load == mix::CELL) else { return };
        let mark = (row.carried == Some(false)).then_some(Mark::NotCarried);
        for (section, us) in [(ReportSection::LoadP50, row.r_p50_us), (ReportSection::LoadP99, row.r_p99_us)]
        {
            let line =
                Line::figure(section, read_pct.to_string(), us, "us", (None, None)).marked(mark, doubts);
            self.push(Line(ReportFullRow { write_pct: row.write_pct, ..line.0 }));
        }
    }

    /// What reads take beside writes, and how much of both there can be. Shares of the rate of a limit say
    /// nothing of the volume.
    fn tell_loads(&mut self, rows: &[MixRow]) {
        let Some(bend) = rows.first() else { return };
        let cells: Vec<&MixRow> = rows.iter().filter(|row| row.load == mix::CELL).collect();
        if !cells.iter().any(|cell| cell.carried.is_some()) || bend.caveats.doubt.unusable().is_some() {
            return self.missing(OF_WRITES[1], &why_none(&bend.caveats));
        }
        if bend.caveats.doubt.has(Doubt::Paced) {
            return;
        }
        let beside = beside_others(&bend.caveats);
        if let Some(told) = SHARES.iter().rev().find_map(|reads| beside_writes(&cells, *reads)) {
            self.say("mixed load", format!("{told}{beside}."));
        }
        self.say("bend", format!("{}{beside}. {}.", kept_up(bend, &cells), tried(&cells)));
    }
}

/// What reads at this share take beside writes and without, if both loads were carried.
fn beside_writes(cells: &[&MixRow], reads: u32) -> Option<String> {
    let cell = |writes| {
        let is_it = |cell: &&&MixRow| (cell.read_pct, cell.write_pct) == (Some(reads), Some(writes));
        cells.iter().find(is_it).filter(|cell| cell.carried == Some(true))
    };
    let (with, without) = (cell(BESIDE)?, cell(0)?);
    let p99 = with.r_p99_us.zip(without.r_p99_us).map(|both| ("one in a hundred takes", both));
    let p50 = || Some(("half of them take", with.r_p50_us.zip(without.r_p50_us)?));
    let (which, (beside, alone)) = p99.or_else(p50)?;
    let (beside, alone) = (time(beside), time(alone));
    Some(format!(
        "Reads at {reads} % of what they reach alone: {which} over {beside} beside writes at {BESIDE} %, \
         over {alone} without"
    ))
}

/// For how long loads were tried, and what the largest of them wrote.
fn tried(cells: &[&MixRow]) -> String {
    let longest = cells.iter().map(seconds).fold(0.0, f64::max);
    let most = cells.iter().map(mib_written).fold(0.0, f64::max);
    format!("Each load was tried for {longest:.2} s, and wrote {most:.0} MiB at most")
}

fn seconds(cell: &&MixRow) -> f64 {
    cell.elapsed_ms.unwrap_or(0.0) / 1000.0
}

fn mib_written(cell: &&MixRow) -> f64 {
    seconds(cell) * shared::mib_s(cell.writes_s.unwrap_or(0.0), u64::from(cell.write_kb) << 10)
}

/// The greatest load of reads and writes that was carried.
fn kept_up(bend: &MixRow, cells: &[&MixRow]) -> String {
    let most = SHARES[SHARES.len() - 1];
    let carried = |cell: &&MixRow| cell.carried == Some(true) && cell.caveats.doubt.unusable().is_none();
    if cells.iter().all(carried) {
        return format!("The volume keeps up with reads and writes at once, {most} % of each alone");
    }
    match (bend.read_pct, bend.write_pct) {
        (Some(reads), Some(writes)) => format!(
            "The volume keeps up with reads at {reads} % and writes at {writes} % of each alone, and with no \
             greater load that was tried"
        ),
        _ => "The volume keeps up with no load that was tried".to_owned(),
    }
}
