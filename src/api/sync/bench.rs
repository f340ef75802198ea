//! The measurement itself, for whoever asks what a sync costs.

use std::path::PathBuf;

use io_probe_core::files::scratch::{Created, ScratchLocation};
use io_probe_core::machine::account::Account;
use io_probe_core::machine::device::{self, Placement, Roots};
use io_probe_core::machine::observer::Observer;
use io_probe_core::measure::sync::{self, Case, CaseTimes, Group, Layout, SyncRun};
use io_probe_core::run::budget::{Limits, Stop};

use crate::call::{Call, Failure, Outcome, Refusal, Stopped, admission};
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::interrupts::Interrupts;
use crate::pg::storage::tablespace::Tablespace;
use crate::pg::storage::wal;

/// A directory that the caller may write to.
pub(in crate::api) struct SyncPlace {
    directory: PathBuf,
    /// A name for where the file system has no nameless files.
    fallback: PathBuf,
    /// What lies below it.
    pub(in crate::api) placement: Placement,
    roots: Roots,
}

impl SyncPlace {
    fn new(directory: PathBuf, fallback: PathBuf) -> Self {
        Self { directory, fallback, placement: Placement::default(), roots: Roots::default() }
    }

    /// That of the WAL.
    pub(in crate::api) fn of_wal() -> Self {
        Self::new(wal::directory(), wal::temporary_file())
    }

    /// That of a tablespace.
    pub(super) fn of_tablespace(tablespace: Tablespace) -> Self {
        Self::new(tablespace.inner_directory(), tablespace.temporary_file())
    }

    /// The same with what lies below it.
    pub(in crate::api) fn located(self) -> Self {
        Self { placement: device::locate(&self.directory, &self.roots), ..self }
    }

    /// Refuses if others keep its device busier than the cap on that allows.
    pub(in crate::api) fn check_admitted(&self) -> std::result::Result<(), Refusal> {
        admission::admit(&self.placement, &self.roots)
    }
}

/// Cases to be measured.
pub(in crate::api) struct Bench {
    pub(in crate::api) cases: Vec<Case>,
    pub(in crate::api) group: Group,
    /// Of each case.
    pub(in crate::api) limits: Limits,
}

/// What is known of each case, and the files that it was measured in.
pub(in crate::api) struct Benched {
    pub(in crate::api) cases: Vec<CaseTimes>,
    pub(super) layout: Layout,
}

impl Stopped for Benched {
    fn stop(&self) -> Option<Stop> {
        self.cases.iter().filter_map(|case| case.stop).find(|stop| stop.is_for_all())
    }
}

impl Bench {
    /// Measures within what the statement has left. Writes scratch files, which are gone afterwards.
    pub(in crate::api) fn run(&self, call: &Call, place: &SyncPlace) -> Outcome<Benched> {
        let SyncPlace { placement, roots, .. } = place;
        let fs_type = placement.mount.as_ref().map(|mount| mount.fs_type.as_str());
        if let Some(fs_type) = fs_type.filter(|fs_type| !sync::logs_nameless_files(fs_type)) {
            return Err(Failure::Unsupported(format!(
                "{fs_type} does not sync a file without a name as it syncs others, and the scratch file has none"
            )));
        }
        let observer = Observer::new(Account::Own, &placement.leaves, roots);
        place.check_admitted().map_err(Error::from)?;
        let layout = self.layout()?;
        call.progress.path(self.cases.first().map_or("", |case| case.section.name()), 0);
        let interrupts = Interrupts::of(Vec::new());
        let mut should_stop = || call.should_stop(&interrupts);
        let reserve = gucs::scratch_reserve();
        let location = ScratchLocation { directory: &place.directory, fallback: &place.fallback };
        let files = match layout.make(
            location,
            reserve,
            self.limits,
            wal::SEGMENT_FILL,
            &observer,
            &mut should_stop,
        )? {
            Created::Ready(files) => files,
            Created::Stopped(stop) => return Err(Failure::NotBegun(stop)),
        };
        let run = SyncRun { cases: &self.cases, group: self.group, limits: self.limits, observer: &observer };
        let mut report = |turn: u64, turns: u64, case: &Case| {
            call.progress.path(case.section.name(), turns);
            call.progress.done(turn - 1);
        };
        let cases = call.with_budget(&interrupts, |budget| sync::run(&files, &run, budget, &mut report))?;
        Ok(Benched { cases, layout })
    }

    fn layout(&self) -> Result<Layout> {
        let limit = gucs::scratch_limit();
        Layout::plan(&self.cases, limit, wal::segment_bytes()).ok_or_else(|| {
            Error::invalid("the scratch files of these sections would be too large")
                .detail(format!("pg_io_probe.scratch_limit is {} MB.", limit >> 20))
                .hint("Give a smaller write_kb or fewer sections, or raise the setting.")
        })
    }
}
