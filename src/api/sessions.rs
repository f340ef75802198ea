//! `io_probe_sessions`: which processes of the server use storage now.
//!
//! The kernel keeps an account of each process. What the I/O workers move (from PostgreSQL 18 on) is on
//! theirs: it is given to the processes that were seen to hand reads over, by how many bytes that were. A
//! process that ended is on the account of its parent, the postmaster: what it moved until it was seen last
//! is told with its name, the rest without.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use io_probe_core::machine::device::{BlockDevice, Counters, Roots};
use io_probe_core::machine::handed_reads::{HandedReads, HandedShare, HandedShares};
use io_probe_core::machine::process_io::ProcessIo;
use io_probe_core::run::clock::{Clock, Monotonic, nanoseconds};
use io_probe_surface::sessions::SessionRow;
use io_probe_surface::value::{Text, Timestamp};
use pgrx::prelude::*;

use super::device::leaves_of_server;
use super::iostat::{MOST_ROWS, interval};
use super::shared::ms;
use crate::call::{Begin, Call, Probe, arguments};
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::{Rows, SqlInterval, interrupts, server};
use crate::pg::catalog::activity::{self, Activity, HandedRead, ServerProcess};

/// How often it is looked at what the I/O workers read for whom.
const GLANCE: Duration = Duration::from_millis(20);

/// How often all processes are looked at within an interval, for those that end. With many of them more
/// rarely: looking takes at most one part of so many of the time.
const LOOK: Duration = Duration::from_millis(100);
const LOOKING: u64 = 20;
/// Most processes of an interval that are kept in mind: of others that end the name is not told.
const MOST_SEEN: usize = 20_000;

/// Most intervals of a call.
const MOST_SAMPLES: u32 = 1_000;

/// `kind` of an I/O worker.
const IO_WORKER: &str = "io worker";
/// That of processes that have ended.
const ENDED: &str = "ended";

#[pg_extern(sql = false)]
fn io_probe_sessions(every: Option<SqlInterval>, count: Option<i32>) -> Rows {
    Rows::answer(|| {
        let every = interval(every)?;
        let count = arguments::positive_up_to("count", count.unwrap_or(1), MOST_SAMPLES)?;
        gucs::capped_duration("count times every", every.saturating_mul(count))?;
        let call = Begin::of(Probe::Sessions).beside_probes()?;
        watch(&call, every, count)
    })
}

fn watch(call: &Call, every: Duration, count: u32) -> Result<Vec<SessionRow>> {
    if ProcessIo::of(std::process::id() as i32).is_none() {
        return Err(Error::unsupported("the kernel does not show how much each process has read"));
    }
    let devices = Devices::of_server();
    let mut glances = Glances::begin();
    let mut rows = Vec::new();
    call.progress.total(count.into());
    let mut before = Look::take(&devices, [].into_iter());
    for sample in 1..=count {
        if call.ended().is_some() {
            break;
        }
        if rows.len() > MOST_ROWS {
            pgrx::notice!(
                "ended after {} of {count} intervals: a call returns at most {MOST_ROWS} rows",
                sample - 1
            );
            break;
        }
        glances.watch_until(&before, before.at + nanoseconds(every.min(call.time_left())));
        let last_seen = glances.last_seen.values().map(|last| &last.seen);
        let now = Look::take(&devices, before.processes.values().chain(last_seen));
        rows.extend(Interval::of(&before, &now, &glances).rows(sample));
        call.progress.done(sample.into());
        before = now;
    }
    Ok(rows)
}

/// The devices below the server.
struct Devices(Vec<BlockDevice>);

impl Devices {
    fn of_server() -> Self {
        let roots = Roots::default();
        let (leaves, _) = leaves_of_server(&roots);
        Self(leaves.iter().filter_map(|leaf| BlockDevice::find(&leaf.name, &roots)).collect())
    }

    /// Bytes that they have read and written.
    fn moved(&self) -> Option<(u64, u64)> {
        let counters: Option<Vec<Counters>> = self.0.iter().map(BlockDevice::counters).collect();
        let counters = counters.filter(|all| !all.is_empty())?;
        let read = counters.iter().map(|counters| counters.reads.bytes()).sum();
        let written = counters.iter().map(|counters| counters.writes.bytes()).sum();
        Some((read, written))
    }
}

/// A process and what it has moved so far.
#[derive(Clone)]
struct SeenProcess {
    process: ServerProcess,
    io: ProcessIo,
}

/// What one look finds.
struct Look {
    at: u64,
    moment: Timestamp,
    /// By their numbers.
    processes: BTreeMap<i32, SeenProcess>,
    /// What the postmaster has moved, with its processes that have ended.
    postmaster: Option<ProcessIo>,
    devices: Option<(u64, u64)>,
}

impl Look {
    /// Of the processes that were seen earlier, in the order of time, some may be about to end: the server
    /// has forgotten these, and the postmaster has not waited for them yet.
    fn take<'a>(devices: &Devices, earlier: impl Iterator<Item = &'a SeenProcess>) -> Self {
        let processes = activity::processes().into_iter();
        let mut processes: BTreeMap<i32, SeenProcess> = processes
            .filter_map(|process| {
                Some((process.pid, SeenProcess { io: ProcessIo::of(process.pid)?, process }))
            })
            .collect();
        let gone = earlier.filter(|known| !processes.contains_key(&known.process.pid));
        let ending: Vec<SeenProcess> = gone.filter(|known| is_process(known.process.pid)).cloned().collect();
        processes.extend(ending.into_iter().map(|known| (known.process.pid, known)));
        let postmaster = ProcessIo::of(server::postmaster());
        Self {
            at: Monotonic.now(),
            moment: server::present(),
            processes,
            postmaster,
            devices: devices.moved(),
        }
    }

    fn find(&self, process: &ServerProcess) -> Option<&SeenProcess> {
        self.processes.get(&process.pid).filter(|seen| seen.process.began == process.began)
    }
}

/// A process when it was seen last, and what it did.
struct LastSeen {
    seen: SeenProcess,
    activity: Activity,
}

/// Looks at what processes hand over to the I/O workers, and at processes that may end.
#[derive(Default)]
struct Glances {
    /// Is there something to see, and may the caller?
    sees: bool,
    handed: HandedReads,
    /// What each was last seen to read.
    files: HashMap<i32, String>,
    last_seen: HashMap<i32, LastSeen>,
    next_look: u64,
}

impl Glances {
    fn begin() -> Self {
        Self { sees: server::reads_by_workers() && activity::sees_reads(), ..Self::default() }
    }

    /// Looks again and again until then, and forgets what was handed over and what had ended before.
    fn watch_until(&mut self, before: &Look, when: u64) {
        (self.handed, self.files) = Default::default();
        self.last_seen.retain(|_, last| {
            let seen = before.find(&last.seen.process);
            seen.is_some_and(|seen| {
                last.seen.io = seen.io;
                true
            })
        });
        loop {
            if self.sees {
                activity::handed_reads().into_iter().for_each(|read| self.add(read));
            }
            if Monotonic.now() >= self.next_look {
                self.look();
            }
            let glance = Monotonic.now() + nanoseconds(GLANCE);
            let next = if self.sees { glance } else { self.next_look };
            if next >= when {
                return interrupts::sleep_until(when);
            }
            interrupts::sleep_until(next);
        }
    }

    fn look(&mut self) {
        let began = Monotonic.now();
        let processes = activity::processes();
        let pids: Vec<i32> = processes.iter().map(|process| process.pid).collect();
        let mut activities = activities_of(&pids);
        for process in processes {
            let (pid, activity) = (process.pid, activities.remove(&process.pid).unwrap_or_default());
            let has_room = self.last_seen.len() < MOST_SEEN || self.last_seen.contains_key(&pid);
            if let Some(io) = ProcessIo::of(pid).filter(|_| has_room) {
                self.last_seen.insert(pid, LastSeen { seen: SeenProcess { process, io }, activity });
            }
        }
        let took = Monotonic.now() - began;
        self.next_look = began + nanoseconds(LOOK).max(took * LOOKING);
    }

    fn add(&mut self, HandedRead { pid, read, file }: HandedRead) {
        self.handed.add(pid, read);
        self.files.extend(file.map(|file| (pid, file)));
    }
}

/// What the other processes of this server moved while a report was made.
pub(super) struct OtherProcesses(Look);

impl OtherProcesses {
    pub(super) fn begin() -> Self {
        Self(Look::take(&Devices(Vec::new()), [].into_iter()))
    }

    /// Bytes by kind of process since then, the most first. I/O workers are left out: they read for us, too.
    pub(super) fn moved(&self) -> Vec<(String, u64)> {
        let now = Look::take(&Devices(Vec::new()), self.0.processes.values());
        let glances = Glances::default();
        let interval = Interval::of(&self.0, &now, &glances);
        let mut by_kind: BTreeMap<String, u64> = BTreeMap::new();
        let workers = server::io_workers();
        for seen in now.processes.values() {
            let pid = seen.process.pid;
            let is_ours = pid == std::process::id() as i32 || workers.contains(&pid);
            let moved = if is_ours { ProcessIo::default() } else { interval.moved(seen) };
            *by_kind.entry(seen.process.kind.clone()).or_default() += moved.fetched + moved.written;
        }
        let ended = interval.moved_by_ended();
        by_kind.insert("processes that ended".to_owned(), ended.fetched + ended.written);
        let mut moved: Vec<_> = by_kind.into_iter().filter(|(_, bytes)| *bytes >= LEAST).collect();
        moved.sort_by_key(|(_, bytes)| Reverse(*bytes));
        moved
    }
}

/// What the I/O workers moved for one that has this share of it.
fn part_of(share: HandedShare, of_workers: ProcessIo) -> ProcessIo {
    let cached = of_workers.cached() as f64 * share.cached;
    let fetched = of_workers.fetched as f64 * share.fetched;
    ProcessIo { called: (cached + fetched) as u64, fetched: fetched as u64, written: 0 }
}

/// Two looks, one after the other.
struct Interval<'a> {
    before: &'a Look,
    now: &'a Look,
    glances: &'a Glances,
    shares: HandedShares,
}

/// What ended processes moved themselves, and with what I/O workers moved for them.
#[derive(Default)]
struct MovedByEnded {
    itself: ProcessIo,
    altogether: ProcessIo,
}

impl<'a> Interval<'a> {
    fn of(before: &'a Look, now: &'a Look, glances: &'a Glances) -> Self {
        Self { before, now, glances, shares: glances.handed.shares() }
    }

    fn rows(&self, sample: u32) -> Vec<SessionRow> {
        // Their kind is hidden from some.
        let workers = server::io_workers();
        let (of_workers, others): (Vec<&SeenProcess>, Vec<&SeenProcess>) =
            self.now.processes.values().partition(|seen| workers.contains(&seen.process.pid));
        let of_workers =
            of_workers.iter().map(|seen| self.moved(seen)).fold(ProcessIo::default(), ProcessIo::and);
        let mut rows: Vec<SessionRow> =
            others.iter().filter_map(|seen| self.row_of(seen, of_workers)).collect();
        self.put_activities(&mut rows);
        let (of_named, told) = self.rows_of_ended(of_workers);
        rows.extend(of_named);
        sort(&mut rows);
        let mut of_ended = self.moved_by_ended().since(told);
        if self.shares.is_empty() {
            rows.extend(self.row_without_process(IO_WORKER, of_workers));
        } else {
            let ended = self.ended().map(|last| last.seen.process.pid);
            let known = others.iter().map(|seen| seen.process.pid).chain(ended);
            of_ended = of_ended.and(part_of(self.shares.of_others(known), of_workers));
        }
        rows.extend(self.row_without_process(ENDED, of_ended));
        rows.extend(self.rest(&rows));
        rows.iter_mut().for_each(|row| row.sample = sample);
        rows
    }

    /// What a process has moved. One that is new has moved all that it has.
    fn moved(&self, seen: &SeenProcess) -> ProcessIo {
        seen.io.since(self.before.find(&seen.process).map_or(ProcessIo::default(), |before| before.io))
    }

    /// Processes that ended meanwhile, as they were seen last.
    fn ended(&self) -> impl Iterator<Item = &LastSeen> {
        self.glances.last_seen.values().filter(|last| self.now.find(&last.seen.process).is_none())
    }

    /// A row for all of a name, an application and a query, since of short sessions there may be many; and
    /// what the processes of these rows moved themselves.
    fn rows_of_ended(&self, of_workers: ProcessIo) -> (Vec<SessionRow>, ProcessIo) {
        let mut by_name: BTreeMap<_, (MovedByEnded, &Activity)> = BTreeMap::new();
        for LastSeen { seen, activity } in self.ended() {
            let moved = self.moved(seen);
            let of_workers = part_of(self.shares.of(seen.process.pid), of_workers);
            let key = (name_of(activity, &seen.process.kind), &activity.application_name, &activity.query);
            let (sum, _) = by_name.entry(key).or_insert_with(|| (MovedByEnded::default(), activity));
            sum.itself = sum.itself.and(moved);
            sum.altogether = sum.altogether.and(moved).and(of_workers);
        }
        let (mut rows, mut told) = (Vec::new(), ProcessIo::default());
        for ((name, ..), (moved, activity)) in by_name {
            if let Some(mut row) = self.row_without_process(ENDED, moved.altogether) {
                put_activity(&mut row, activity.clone());
                told = told.and(moved.itself);
                rows.push(SessionRow {
                    process: format!("{name}, ended").into(),
                    wait: None,
                    state: None,
                    ..row
                });
            }
        }
        (rows, told)
    }

    /// What processes have moved that ended meanwhile, in this interval.
    fn moved_by_ended(&self) -> ProcessIo {
        let ended = self.before.processes.values().filter(|seen| self.now.find(&seen.process).is_none());
        let known = ended.map(|seen| seen.io).fold(ProcessIo::default(), ProcessIo::and);
        let looks = self.now.postmaster.zip(self.before.postmaster);
        looks.map_or(ProcessIo::default(), |(now, before)| now.since(before).since(known))
    }

    /// None if it has moved nothing. It has its part of what the I/O workers did.
    fn row_of(&self, seen: &SeenProcess, of_workers: ProcessIo) -> Option<SessionRow> {
        let SeenProcess { process, .. } = seen;
        let mut moved = self.moved(seen);
        if process.pid == std::process::id() as i32 {
            moved.called = moved.fetched; // It has read what it tells.
        }
        let moved = moved.and(part_of(self.shares.of(process.pid), of_workers));
        // One that is new has written all that it has.
        let wal_before = self.before.find(process).map_or(Some(0.0), |before| before.process.wal_bytes);
        let wal = process.wal_bytes.zip(wal_before).map(|(now, before)| (now - before).max(0.0));
        // What a transaction has written so far is counted at its end.
        let wal = wal.filter(|bytes| *bytes > 0.0 || moved.written == 0);
        Some(SessionRow {
            pid: Some(process.pid),
            wal_mib_s: wal.map(|bytes| self.mib_s(bytes)),
            file: self.glances.files.get(&process.pid).cloned().map(Text::from),
            ..self.row_without_process(&process.kind, moved)?
        })
    }

    /// Says what the processes of these rows do.
    fn put_activities(&self, rows: &mut [SessionRow]) {
        let pids: Vec<i32> = rows.iter().filter_map(|row| row.pid).collect();
        let known = activities_of(&pids);
        for row in rows {
            let Some((pid, activity)) = row.pid.and_then(|pid| Some((pid, known.get(&pid)?.clone()))) else {
                continue;
            };
            if self.now.processes.get(&pid).is_some_and(|seen| seen.process.began == activity.began) {
                put_activity(row, activity);
            }
        }
    }

    /// None if nothing was moved.
    fn row_without_process(&self, kind: &str, moved: ProcessIo) -> Option<SessionRow> {
        if moved.fetched + moved.written + moved.cached() < LEAST {
            return None;
        }
        Some(SessionRow {
            rmib_s: Some(self.mib_s(moved.fetched as f64)),
            os_mib_s: (!server::reads_by_io_uring()).then(|| self.mib_s(moved.cached() as f64)),
            wmib_s: Some(self.mib_s(moved.written as f64)),
            ..self.empty_row(kind)
        })
    }

    /// Of no process, or of several.
    fn empty_row(&self, kind: &str) -> SessionRow {
        SessionRow {
            process: kind.to_owned().into(),
            kind: kind.to_owned().into(),
            sampled_at: self.now.moment,
            elapsed_ms: ms(self.now.at - self.before.at),
            ..SessionRow::default()
        }
    }

    /// What the devices moved beyond that.
    fn rest(&self, rows: &[SessionRow]) -> Vec<SessionRow> {
        let Some(((read, written), before)) = self.now.devices.zip(self.before.devices) else {
            return Vec::new();
        };
        let read_by_rows: f64 = rows.iter().filter_map(|row| row.rmib_s).sum();
        let read = hundredths(self.mib_s(read.saturating_sub(before.0) as f64) - read_by_rows);
        let written_by_rows: f64 = rows.iter().filter_map(|row| row.wmib_s).sum();
        let written = hundredths(self.mib_s(written.saturating_sub(before.1) as f64) - written_by_rows);
        let of_cache = if written < 0.0 { "still cached" } else { "other writes" };
        vec![
            SessionRow { rmib_s: Some(read.max(0.0)), ..self.empty_row("outside this server") },
            SessionRow { wmib_s: Some(written.abs()), ..self.empty_row(of_cache) },
        ]
    }

    fn mib_s(&self, bytes: f64) -> f64 {
        let seconds = (self.now.at - self.before.at).max(1) as f64 / 1e9;
        hundredths(bytes / f64::from(1 << 20) / seconds)
    }
}

fn activities_of(pids: &[i32]) -> HashMap<i32, Activity> {
    activity::activities(pids).into_iter().map(|activity| (activity.pid, activity)).collect()
}

/// What a process of this kind is called.
fn name_of(activity: &Activity, kind: &str) -> String {
    match (activity.leader_pid, &activity.usename, &activity.datname) {
        (Some(leader), ..) => format!("worker of {leader}"),
        (None, Some(role), Some(database)) => format!("{role}@{database}"),
        _ => kind.to_owned(),
    }
}

/// Says what the process of a row does.
fn put_activity(row: &mut SessionRow, activity: Activity) {
    row.process = name_of(&activity, &row.kind).into();
    let Activity { usename, datname, leader_pid, .. } = activity;
    row.leader_pid = leader_pid;
    row.usename = usename.map(Text::from);
    row.datname = datname.map(Text::from);
    row.application_name = activity.application_name.map(Text::from);
    row.wait = activity.wait.map(Text::from);
    row.query = activity.query.filter(|query| !query.is_empty()).map(Text::from);
    row.state = activity.state.map(Text::from);
}

/// Is there a process of this number, or one that its parent has not waited for?
fn is_process(pid: i32) -> bool {
    std::path::Path::new("/proc").join(pid.to_string()).exists()
}

/// A rate as people read it.
fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Fewer bytes in an interval are the process's own, and no traffic: it reads what it is told.
const LEAST: u64 = 16 << 10;

/// What the row's process read and wrote.
fn moved(row: &SessionRow) -> f64 {
    row.rmib_s.unwrap_or(0.0) + row.wmib_s.unwrap_or(0.0)
}

/// The process that the row's process works for.
fn group(row: &SessionRow) -> Option<i32> {
    row.leader_pid.or(row.pid)
}

/// The greatest first; parallel workers right behind their leader. What ended stands alone.
fn sort(rows: &mut [SessionRow]) {
    let mut of_group: HashMap<i32, f64> = HashMap::new();
    for row in rows.iter() {
        if let Some(group) = group(row) {
            *of_group.entry(group).or_default() += moved(row);
        }
    }
    let weight = |row: &SessionRow| group(row).map_or_else(|| moved(row), |group| of_group[&group]);
    rows.sort_by(|a, b| {
        let by_group = weight(b).total_cmp(&weight(a)).then(group(a).cmp(&group(b)));
        by_group.then(a.leader_pid.is_some().cmp(&b.leader_pid.is_some())).then(moved(b).total_cmp(&moved(a)))
    });
}
