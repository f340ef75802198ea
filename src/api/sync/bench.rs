//! The measurement itself, for all functions that ask what a sync costs.

use std::collections::HashMap;

use io_probe_core::machine::disturbance::{self, DISTURBING};
use io_probe_core::machine::observer::{HeldBack, Surroundings};
use io_probe_core::machine::process_io::ProcessIo;
use io_probe_core::measure::sync::{self, Case, CaseTimes, GroupCommit, Layout, SyncRun};
use io_probe_core::run::budget::{Limits, Stop};

use crate::call::{Call, NamedEnum, Outcome, ProbedPlace};
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::interrupts::Interrupts;
use crate::pg::backend::server;
use crate::pg::storage::wal;

/// Cases to be measured.
pub(in crate::api) struct Bench {
    pub(in crate::api) cases: Vec<Case>,
    pub(in crate::api) group: GroupCommit,
    /// Limits of each case.
    pub(in crate::api) limits: Limits,
}

/// What is known of each case, and the files that it was measured in.
pub(in crate::api) struct Benched {
    pub(in crate::api) cases: Vec<CaseTimes>,
    pub(super) layout: Layout,
    /// Did others use the device much meanwhile?
    pub(in crate::api) disturbed: bool,
    /// What the server's control group held back.
    pub(in crate::api) held_back: HeldBack,
}

impl Benched {
    /// What ended all of it early, if so.
    pub(in crate::api) fn stop(&self) -> Option<Stop> {
        self.cases.iter().filter_map(|case| case.stop).find(|stop| stop.is_for_all())
    }
}

impl Bench {
    /// Measures within what the statement has left. Writes scratch files, which are gone afterwards.
    pub(in crate::api) fn run(&self, call: &Call, place: &ProbedPlace) -> Outcome<Benched> {
        let observer = place.observer();
        place.check_admitted()?;
        let layout = self.layout()?;
        call.progress.path(self.cases.first().map_or("", |case| case.section.name()), 0);
        let interrupts = Interrupts::of(Vec::new());
        let mut should_stop = || call.should_stop(&interrupts);
        let reserve = gucs::SCRATCH_RESERVE.bytes();
        let location = place.scratch_location();
        let files = layout.make(
            location,
            place.needs_names(),
            reserve,
            self.limits,
            wal::SEGMENT_FILL,
            &mut should_stop,
        )?;
        let run = SyncRun {
            cases: &self.cases,
            group: self.group,
            limits: self.limits,
            observer: &observer,
            durability: place.durability(),
        };
        let mut report = |turn: u64, turns: u64, case: &Case| {
            call.progress.path(case.section.name(), turns);
            call.progress.done(turn - 1);
        };
        let processes = OtherWrites::begin();
        let (cases, surroundings) = observer
            .beside(|| call.with_budget(&interrupts, |budget| sync::run(&files, &run, budget, &mut report)));
        let disturbed = surroundings.is_disturbed() || processes.disturb(&surroundings);
        Ok(Benched { cases: cases?, layout, disturbed, held_back: surroundings.held_back })
    }

    pub(super) fn layout(&self) -> Result<Layout> {
        let limit = gucs::SCRATCH_LIMIT.bytes();
        Layout::plan(&self.cases, limit, wal::segment_bytes()).ok_or_else(|| {
            Error::invalid("the scratch files of these sections would be too large")
                .detail(format!("pg_io_probe.scratch_limit is {} MB.", limit >> 20))
                .hint("Give a smaller write_kb or fewer sections, or raise the setting.")
        })
    }
}

/// What the other processes of this server have written, as far as the kernel tells. (What the devices wrote
/// is ours as well: journals follow our writes.)
struct OtherWrites(HashMap<i32, u64>);

impl OtherWrites {
    fn begin() -> Self {
        let own = std::process::id() as i32;
        let pids = server::pids().filter(|pid| *pid != own);
        Self(pids.filter_map(|pid| Some((pid, ProcessIo::of(pid)?.written))).collect())
    }

    /// Did they write a share that counts beside a run?
    fn disturb(&self, run: &Surroundings) -> bool {
        let before = |pid| self.0.get(pid).copied().unwrap_or(0);
        let written = Self::begin().0.iter().map(|(pid, now)| now.saturating_sub(before(pid))).sum::<u64>();
        disturbance::taken(run.own_bytes.map(|own| own as f64), Some(written as f64)) > DISTURBING
    }
}
