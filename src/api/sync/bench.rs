//! The measurement itself, for whoever asks what a sync costs.

use std::path::Path;

use io_probe_core::files::scratch::{Created, ScratchLocation};
use io_probe_core::machine::account::Account;
use io_probe_core::machine::device::{Placement, Roots};
use io_probe_core::machine::observer::Observer;
use io_probe_core::measure::sync::{self, Case, CaseTimes, Group, Layout, SyncRun};
use io_probe_core::run::budget::{Budget, Limits, Stop};
use io_probe_core::run::clock::Monotonic;

use crate::call::admission::{self, Refusal};
use crate::call::statement;
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::interrupts;
use crate::pg::backend::progress::Progress;
use crate::pg::storage::wal;

/// Cases to be measured in a directory that the caller may write to.
pub(in crate::api) struct Bench<'a> {
    /// The directory.
    pub(in crate::api) directory: &'a Path,
    /// A name for where the file system has no nameless files.
    pub(in crate::api) fallback: &'a Path,
    /// What lies below it.
    pub(in crate::api) placement: &'a Placement,
    pub(in crate::api) roots: &'a Roots,
    pub(in crate::api) cases: &'a [Case],
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

impl Bench<'_> {
    /// Measures within what the statement has left. Writes scratch files, which are gone afterwards.
    pub(in crate::api) fn run(&self, progress: &Progress) -> Result<Benched> {
        let fs_type = self.placement.mount.as_ref().map(|mount| mount.fs_type.as_str());
        if let Some(fs_type) = fs_type.filter(|fs_type| !sync::logs_nameless_files(fs_type)) {
            return Ok(Benched::Refused(format!(
                "{fs_type} does not sync a file without a name as it syncs others, and the scratch file has none"
            )));
        }
        if let Err(refusal) = admission::admit(self.placement, self.roots) {
            return Ok(Benched::Busy(refusal));
        }
        let observer = Observer::new(Account::Own, &self.placement.leaves, self.roots);
        let limit = gucs::scratch_limit();
        let layout = Layout::plan(self.cases, limit, wal::segment_bytes()).ok_or_else(|| {
            Error::invalid("the scratch files of these sections would be too large")
                .detail(format!("pg_io_probe.scratch_limit is {} MB.", limit >> 20))
                .hint("Give a smaller write_kb or fewer sections, or raise the setting.")
        })?;
        progress.path(self.cases.first().map_or("", |case| case.section.name()), 0);
        let mut should_stop = interrupts::should_stop(Vec::new());
        let mut should_stop = || statement::over().or_else(&mut should_stop);
        let reserve = gucs::scratch_reserve();
        let place = ScratchLocation { directory: self.directory, fallback: self.fallback };
        let files =
            match layout.make(place, reserve, self.limits, wal::SEGMENT_FILL, &observer, &mut should_stop)? {
                Created::Ready(files) => files,
                Created::Stopped(stop) => return Ok(Benched::NotBegun(stop)),
            };
        let run = SyncRun { cases: self.cases, group: self.group, limits: self.limits, observer: &observer };
        let mut report = |turn: u64, turns: u64, case: &Case| {
            progress.path(case.section.name(), turns);
            progress.done(turn - 1);
        };
        let mut budget = Budget::of_statement(statement::left(), &Monotonic, &mut should_stop);
        let measured = sync::run(&files, &run, &mut budget, &mut report)?;
        measured.iter().for_each(|measured| statement::heed(measured.stop));
        Ok(Benched::CaseTimes(measured, layout))
    }
}
