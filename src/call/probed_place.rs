//! A directory that a probe writes to: beside the WAL, or in a tablespace.

use std::path::PathBuf;

use io_probe_core::files::scratch::ScratchLocation;
use io_probe_core::machine::account::Account;
use io_probe_core::machine::device::{self, Placement, Roots};
use io_probe_core::machine::observer::Observer;
use io_probe_core::measure::sync;

use super::{Failure, Outcome, admission};
use crate::error::Result;
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
    fn new(directory: PathBuf, fallback: PathBuf) -> Self {
        Self { directory, fallback, placement: Placement::default(), roots: Roots::default() }
    }

    /// The directory of the WAL.
    pub(crate) fn of_wal() -> Self {
        Self::new(wal::directory(), wal::temporary_file())
    }

    /// The directory of the tablespace of this name; without a name, that of the WAL.
    ///
    /// # Errors
    /// There is no such tablespace, or the caller may not create objects in it.
    pub(crate) fn find(spcname: Option<&str>) -> Result<Self> {
        let Some(name) = spcname else { return Ok(Self::of_wal()) };
        let tablespace = Tablespace::to_write(name)?;
        Ok(Self::new(tablespace.inner_directory(), tablespace.temporary_file()))
    }

    /// The same with what lies below it.
    pub(crate) fn located(self) -> Self {
        Self { placement: device::locate(&self.directory, &self.roots), ..self }
    }

    /// Refuses if others keep its device busier than the cap on that allows.
    pub(crate) fn check_admitted(&self) -> Result<()> {
        admission::admit(&self.placement, &self.roots)
    }

    /// Refuses a file system on which syncs of a scratch file say nothing of syncs of other files.
    pub(crate) fn check_syncs(&self) -> Outcome<()> {
        let fs_type = self.placement.mount.as_ref().map(|mount| mount.fs_type.as_str());
        match fs_type.filter(|fs_type| !sync::logs_nameless_files(fs_type)) {
            None => Ok(()),
            Some(fs_type) => Err(Failure::Unsupported(format!(
                "{fs_type} does not sync a file without a name as it syncs others, and the scratch file has \
                 none"
            ))),
        }
    }

    /// Where scratch files go.
    pub(crate) fn scratch_location(&self) -> ScratchLocation<'_> {
        ScratchLocation { directory: &self.directory, fallback: &self.fallback }
    }

    /// Watches the devices below it.
    pub(crate) fn observer(&self) -> Observer<'_> {
        Observer::new(Account::Own, &self.placement.leaves, &self.roots)
    }
}
