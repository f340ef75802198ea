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
    ends, promise, time, why_none,
};
use crate::api::mix::{self, Writing};
use crate::api::shared;
use crate::api::write::{self, Pattern};
use crate::call::{NamedEnum, Probe, ProbedPlace, arguments, figure};
use crate::pg::backend::server;
use crate::pg::storage::tablespace::Tablespace;

/// Reads and writes at once, in percent of what each reaches alone.
const SHARES: [u32; 3] = [0, 50, 80];

/// The share of writes beside which a verdict tells what reads take, and of reads, what commits do.
const BESIDE: u32 = SHARES[1];

/// Commits, one at a time, and reads, in percent of what each reaches alone.
const SHARES_OF_COMMITS: [u32; 2] = [0, BESIDE];
const COMMITS: &str = "commits beside reads";

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
                if self.loads(found, rel) {
                    self.commits_beside_reads(found, rel);
                }
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

    /// Reads beside writes, at several loads of each. Returns whether the probe ran.
    fn loads(&self, found: &mut ReportDraft, rel: pg_sys::Oid) -> bool {
        if let Err(error) = mix::of_each_side(None) {
            found.missing(OF_WRITES[1], &error.message);
            return false;
        }
        let rows = found.run(Probe::Mix, || {
            mix::beside(rel, Writing::Data, &SHARES, self.limits_of_loads()?, self.waits)
        });
        rows.iter().for_each(|row| found.load(row));
        found.tell_loads(&rows);
        !rows.is_empty()
    }

    /// Commits, one at a time, beside reads.
    fn commits_beside_reads(&self, found: &mut ReportDraft, rel: pg_sys::Oid) {
        let rows = found.run(Probe::Mix, || {
            mix::beside(rel, Writing::Wal, &SHARES_OF_COMMITS, self.limits_of_loads()?, self.waits)
        });
        rows.iter().for_each(|row| found.load_of_commits(row));
        found.tell_commits(&rows);
    }

    fn limits_of_loads(&self) -> crate::error::Result<Limits> {
        let loads = mix::loads(&SHARES) + mix::loads(&SHARES_OF_COMMITS);
        Ok(Limits { precision: None, ..self.limits(Part::Loads, loads)? })
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
        let (low, high) = match section {
            ReportSection::Write | ReportSection::LongWrite => ends(&row.interval),
            _ => (None, None),
        };
        let [low, high] = [low, high].map(|end| Some(figure(end? * of_one?)));
        let line = Line::figure(section, row.depth.to_string(), value, unit, (low, high));
        let line = line.marked(None, &row.caveats.doubt);
        self.push(promise(line, promised, true));
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
            format!("; a cache of the device may hold all of the {mib} MiB file")
        });
        let beside = beside_others(&several.caveats);
        self.say(
            "writes",
            format!("{} random writes per second with {depth} in flight{beside}{times}{cache}.", count(most)),
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
        if row.read_pct > Some(0) {
            let latencies = [(ReportSection::LoadP50, row.r_p50_us), (ReportSection::LoadP99, row.r_p99_us)];
            self.latencies_of_load(row, latencies);
        }
    }

    /// A load of reads and commits: what commits take.
    fn load_of_commits(&mut self, row: &MixRow) {
        if row.write_pct > Some(0) {
            let latencies =
                [(ReportSection::CommitLoadP50, row.w_p50_us), (ReportSection::CommitLoadP99, row.w_p99_us)];
            self.latencies_of_load(row, latencies);
        }
    }

    fn latencies_of_load(&mut self, row: &MixRow, latencies: [(ReportSection, Option<f64>); 2]) {
        let Some(read_pct) = row.read_pct.filter(|_| row.load == mix::CELL) else { return };
        let mark = (row.carried == Some(false)).then_some(Mark::NotCarried);
        for (section, us) in latencies {
            let line = Line::figure(section, read_pct.to_string(), us, "us", (None, None));
            let line = line.marked(mark, &row.caveats.doubt);
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

    fn tell_commits(&mut self, rows: &[MixRow]) {
        let Some(first) = rows.first() else { return };
        let doubt = &first.caveats.doubt;
        let cells: Vec<&MixRow> = rows.iter().filter(|row| row.load == mix::CELL).collect();
        if doubt.unusable().is_some() || cells.iter().all(|cell| cell.w_p50_us.is_none()) {
            return self.missing(COMMITS, &why_none(&first.caveats));
        }
        if let Some(told) = beside_reads(&cells).filter(|_| !doubt.has(Doubt::Paced)) {
            self.say(COMMITS, format!("{told}{}.", beside_others(&first.caveats)));
        }
    }
}

/// The load of these shares, if it was carried.
fn carried<'a>(cells: &[&'a MixRow], reads: u32, writes: u32) -> Option<&'a MixRow> {
    let shares = (Some(reads), Some(writes));
    let cell = cells.iter().find(|cell| (cell.read_pct, cell.write_pct) == shares);
    cell.filter(|cell| cell.carried == Some(true)).copied()
}

/// What reads at this share take beside writes and without, if both loads were carried.
fn beside_writes(cells: &[&MixRow], reads: u32) -> Option<String> {
    let rows = [carried(cells, reads, BESIDE)?, carried(cells, reads, 0)?];
    let (which, beside, alone) = compared(rows.map(|row| [row.r_p99_us, row.r_p50_us]))?;
    Some(format!(
        "Reads at {reads} % of their top rate: {which} over {beside} beside writes at {BESIDE} % of the top \
         write rate, and over {alone} without writes"
    ))
}

/// What commits take beside reads and without; or that they did not keep up.
fn beside_reads(cells: &[&MixRow]) -> Option<String> {
    let without = carried(cells, 0, BESIDE)?;
    let Some(with) = carried(cells, BESIDE, BESIDE) else {
        return Some(format!(
            "While reads run at {BESIDE} % of their top rate, one session cannot hold {BESIDE} % of its top \
             commit rate"
        ));
    };
    let (which, beside, alone) = compared([with, without].map(|row| [row.w_p99_us, row.w_p50_us]))?;
    Some(format!(
        "Commits of one session at {BESIDE} % of its top rate: {which} over {beside} beside reads at \
         {BESIDE} % of the top read rate, and over {alone} without reads"
    ))
}

/// The 99th percentiles of both, or else their medians: of what they tell, and each in words. None if others
/// in between would have made it faster, which is chance.
fn compared([with, without]: [[Option<f64>; 2]; 2]) -> Option<(&'static str, String, String)> {
    let which = ["one in a hundred takes", "half of them take"];
    let both = with.into_iter().zip(without).map(|(with, without)| with.zip(without));
    let known = which.into_iter().zip(both).find_map(|(which, both)| Some((which, both?)));
    let (which, (beside, alone)) = known.filter(|(_, (beside, alone))| beside >= alone)?;
    Some((which, time(beside), time(alone)))
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
    if cells.iter().all(|cell| cell.carried == Some(true) && cell.caveats.doubt.unusable().is_none()) {
        return format!(
            "The volume keeps up with reads and writes at the same time, each at {most} % of its rate alone"
        );
    }
    match bend.read_pct.zip(bend.write_pct) {
        Some((reads, writes)) => {
            let greater = if cells.iter().any(|cell| is_carried_beyond(cell, bend)) {
                "and with some greater loads, but not reliably: repeat it"
            } else {
                "but not with any greater load that was tried"
            };
            format!(
                "The volume keeps up with reads at {reads} % and writes at {writes} % of the rate that each \
                 reaches alone, {greater}"
            )
        }
        None if cells.iter().any(|cell| cell.carried == Some(true)) => {
            "The volume kept up with some loads, but not with smaller ones: repeat it".to_owned()
        }
        None if cells.iter().any(|cell| cell.carried == Some(false)) => {
            "Each load that was tried was too much for the volume".to_owned()
        }
        None => "It is not known which loads the volume keeps up with".to_owned(),
    }
}

/// Was this load carried, and is it greater? It may be by luck, where a smaller one was not.
fn is_carried_beyond(cell: &MixRow, bend: &MixRow) -> bool {
    let [shares, of_bend] = [cell, bend].map(|row| (row.read_pct, row.write_pct));
    cell.carried == Some(true) && shares.0 >= of_bend.0 && shares.1 >= of_bend.1 && shares != of_bend
}
