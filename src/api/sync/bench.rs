//! The measurement itself, for whoever asks what a sync costs.

use std::path::PathBuf;

use io_probe_core::files::scratch::{Created, ScratchLocation};
use io_probe_core::machine::account::Account;
use io_probe_core::machine::device::{self, Placement, Roots};
use io_probe_core::machine::observer::Observer;
use io_probe_core::measure::sync::{self, Case, CaseTimes, Group, Layout, SyncRun};
use io_probe_core::run::budget::{Limits, Stop};

use crate::call::{Call, Refusal, admission};
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
}

/// Cases to be measured.
pub(in crate::api) struct Bench {
    pub(in crate::api) cases: Vec<Case>,
    pub(in crate::api) group: Group,
    /// Of each case.
    pub(in crate::api) limits: Limits,
}

/// What came of it.
pub(in crate::api) enum Benched {
    /// The file system does not sync a nameless file as it syncs others.
    Refused(String),
    /// The device is not to be disturbed.
    Busy(Refusal),
    /// It did not come to that.
    NotBegun(Stop),
    /// What is known of each case, and the files that it was measured in.
    CaseTimes(Vec<CaseTimes>, Layout),
}

impl Bench {
    /// Measures within what the statement has left. Writes scratch files, which are gone afterwards.
    pub(in crate::api) fn run(&self, call: &Call, place: &SyncPlace) -> Result<Benched> {
        if let Some(stop) = call.ended() {
            return Ok(Benched::NotBegun(stop));
        }
        let SyncPlace { placement, roots, .. } = place;
        let fs_type = placement.mount.as_ref().map(|mount| mount.fs_type.as_str());
        if let Some(fs_type) = fs_type.filter(|fs_type| !sync::logs_nameless_files(fs_type)) {
            return Ok(Benched::Refused(format!(
                "{fs_type} does not sync a file without a name as it syncs others, and the scratch file has none"
            )));
        }
        if let Err(refusal) = admission::admit(placement, roots) {
            return Ok(Benched::Busy(refusal));
        }
        let observer = Observer::new(Account::Own, &placement.leaves, roots);
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
            Created::Stopped(stop) => return Ok(Benched::NotBegun(stop)),
        };
        let run = SyncRun { cases: &self.cases, group: self.group, limits: self.limits, observer: &observer };
        let mut report = |turn: u64, turns: u64, case: &Case| {
            call.progress.path(case.section.name(), turns);
            call.progress.done(turn - 1);
        };
        let measured =
            call.with_budget(&interrupts, |budget| sync::run(&files, &run, budget, &mut report))?;
        measured.iter().for_each(|measured| call.note_stop(measured.stop));
        Ok(Benched::CaseTimes(measured, layout))
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
