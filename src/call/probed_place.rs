//! A directory that a probe writes to: beside the WAL, or in a tablespace.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use io_probe_core::files::scratch::{Fill, Room, Scratch, ScratchLocation, ScratchName};
use io_probe_core::machine::account::Account;
use io_probe_core::machine::device::{self, Placement, Roots};
use io_probe_core::machine::observer::Observer;
use io_probe_core::measure::sync::{self, Durability};
use io_probe_core::run::budget::{self, Limits, StopCheck};

use super::admission;
use crate::error::Result;
use crate::gucs;
use crate::pg::storage::relation::Relation;
use crate::pg::storage::tablespace::Tablespace;
use crate::pg::storage::wal;

/// A directory that a probe writes to. Scratch files there are gone when they are closed.
pub(crate) struct ProbedPlace {
    directory: PathBuf,
    /// Name of a scratch file where the file system has no nameless ones.
    fallback: PathBuf,
    /// What lies below it; nothing until it is located.
    pub(crate) placement: Placement,
    roots: Roots,
}

impl ProbedPlace {
    /// Most bytes of a scratch file for writes of data, if the limit on such files allows.
    pub(crate) const MOST_SCRATCH: u64 = 1 << 30;

    fn new(directory: PathBuf, fallback: PathBuf) -> Self {
        Self { directory, fallback, placement: Placement::default(), roots: Roots::default() }
    }

    pub(crate) fn of_wal() -> Self {
        Self::new(wal::directory(), wal::temporary_file())
    }

    /// The directory of the tablespace of this name; without a name, that of the WAL.
    ///
    /// # Errors
    /// There is no such tablespace, or the caller may not create objects in it.
    pub(crate) fn find(spcname: Option<&str>) -> Result<Self> {
        let Some(name) = spcname else { return Ok(Self::of_wal()) };
        Ok(Self::of_tablespace(Tablespace::to_write(name)?))
    }

    /// The directory of the tablespace of this name; without a name, that of the database's own tablespace.
    ///
    /// # Errors
    /// As those of `find`.
    pub(crate) fn of_data(spcname: Option<&str>) -> Result<Self> {
        Ok(Self::of_tablespace(spcname.map_or(Ok(Tablespace::own()), Tablespace::to_write)?))
    }

    pub(crate) fn of_tablespace(tablespace: Tablespace) -> Self {
        Self::new(tablespace.inner_directory(), tablespace.temporary_file())
    }

    /// The directory of a relation's files.
    pub(crate) fn beside(relation: &Relation) -> Self {
        Self::new(relation.directory(), relation.file_tablespace().temporary_file())
    }

    /// Finds what lies below it.
    pub(crate) fn located(self) -> Self {
        Self { placement: device::locate(&self.directory, &self.roots), ..self }
    }

    /// Refuses if others keep its device busier than the cap on that allows.
    pub(crate) fn check_admitted(&self) -> Result<()> {
        admission::admit(&self.placement, &self.roots)
    }

    /// Must a scratch file keep a name there, since syncs of others say nothing of those of the server's
    /// files?
    pub(crate) fn needs_names(&self) -> bool {
        let fs_type = self.placement.mount.as_ref().map(|mount| mount.fs_type.as_str());
        fs_type.is_some_and(|fs_type| !sync::logs_nameless_files(fs_type))
    }

    pub(crate) fn scratch_location(&self) -> ScratchLocation<'_> {
        ScratchLocation { directory: &self.directory, fallback: &self.fallback }
    }

    /// Makes a scratch file of this size, or as large as the limit on such files allows. Where it must keep a
    /// name, that is no other one's of this process, and goes when it is dropped.
    pub(crate) fn make_scratch(
        &self,
        size: u64,
        fill: Fill,
        limits: Limits,
        should_stop: &mut StopCheck<'_>,
    ) -> budget::Outcome<(Scratch, Option<ScratchName>)> {
        let size = size.min(gucs::SCRATCH_LIMIT.bytes());
        let room = Room { size, reserve: gucs::SCRATCH_RESERVE.bytes(), limits };
        static NAMES: AtomicUsize = AtomicUsize::new(0);
        let number = self.needs_names().then(|| NAMES.fetch_add(1, Ordering::Relaxed));
        Scratch::create(self.scratch_location(), number, room, fill, should_stop)
    }

    /// What is known of it that bears on whether syncs there make data durable. Asked once something has been
    /// written there.
    pub(crate) fn durability(&self) -> Durability {
        Durability::of(&self.placement, &self.roots)
    }

    pub(crate) fn observer(&self) -> Observer<'_> {
        Observer::new(Account::Own, &self.placement.leaves, &self.roots)
    }
}
