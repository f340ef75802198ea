//! Tablespaces: where they are, which roles may write there, and a name for a temporary file.

use std::path::{Path, PathBuf};

use pgrx::pg_sys;

use crate::error::{Error, Result};
use crate::pg::backend::encoding::{self, text_or_none};
use crate::pg::backend::names;
use crate::pg::backend::server::data_directory;
use crate::pg::compat;
use crate::pg::settings;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tablespace(pg_sys::Oid);

impl Tablespace {
    /// All of them, by oid.
    pub(in crate::pg) fn all() -> Vec<Self> {
        names::rows("SELECT oid::int8 FROM pg_tablespace ORDER BY oid", &[]).into_iter().map(Self).collect()
    }

    /// The tablespaces of this session's temporary files: temp_tablespaces, or else the database's own.
    pub(in crate::pg) fn temporary() -> Vec<Self> {
        let mut oids = vec![pg_sys::InvalidOid; 64];
        // SAFETY: the array has as many elements as are announced.
        let count = unsafe {
            pg_sys::PrepareTempTablespaces();
            pg_sys::GetTempTablespaces(oids.as_mut_ptr(), oids.len() as i32)
        };
        oids.truncate(usize::try_from(count).unwrap_or(0));
        if oids.is_empty() {
            oids.push(Self::own().0);
        }
        // InvalidOid in the list stands for the database's own tablespace.
        oids.iter_mut().filter(|oid| **oid == pg_sys::InvalidOid).for_each(|oid| *oid = Self::own().0);
        Self::all().into_iter().filter(|tablespace| oids.contains(&tablespace.0)).collect()
    }

    pub(crate) fn own() -> Self {
        // SAFETY: reads a variable of this backend.
        Self(unsafe { pg_sys::MyDatabaseTableSpace })
    }

    pub(in crate::pg) fn oid(self) -> pg_sys::Oid {
        self.0
    }

    pub(in crate::pg) fn of_file(file: compat::FileId) -> Self {
        Self(file.tablespace)
    }

    /// The tablespace that the catalog names for a relation; needs no lock on it.
    pub(crate) fn of_relation(relation: pg_sys::Oid) -> Self {
        // SAFETY: a catalog lookup; 0 stands for the database's own, and for a relation that is gone.
        let oid = unsafe { pg_sys::get_rel_tablespace(relation) };
        if oid == pg_sys::InvalidOid { Self::own() } else { Self(oid) }
    }

    /// The tablespace of this name, to write temporary files into: the caller needs CREATE on it, unless it
    /// is the database's own, as for temp_tablespaces.
    pub(crate) fn to_write(name: &str) -> Result<Self> {
        let oid = encoding::name(name).map_or(pg_sys::InvalidOid, |name| {
            // SAFETY: a catalog lookup; an unknown name gives InvalidOid.
            unsafe { pg_sys::get_tablespace_oid(name.as_ptr(), true) }
        });
        if oid == pg_sys::InvalidOid {
            return Err(Error::undefined_object(format!("tablespace \"{name}\" does not exist")).hint(
                "pg_tablespace lists them. If you meant another argument, write its name, as in depth => 8.",
            ));
        }
        Self(oid).check_may_write()?;
        Ok(Self(oid))
    }

    /// Is the user allowed to write temporary files into it?
    pub(crate) fn check_may_write(self) -> Result<()> {
        if self == Self::own() || compat::may_create_in(self.0) {
            return Ok(());
        }
        let name = self.name().unwrap_or_default();
        Err(Error::denied(format!("permission denied for tablespace {name}")))
    }

    /// Its name; None when it is gone.
    pub(crate) fn name(self) -> Option<String> {
        // SAFETY: a catalog lookup; NULL when there is none.
        unsafe { text_or_none(pg_sys::get_tablespace_name(self.0)) }
    }

    pub(crate) fn io_concurrency(self) -> u32 {
        // SAFETY: a lookup in the catalogs.
        let concurrency = unsafe { pg_sys::get_tablespace_io_concurrency(self.0) };
        u32::try_from(concurrency).unwrap_or(0)
    }

    pub(crate) fn maintenance_concurrency(self) -> u32 {
        // SAFETY: a lookup in the catalogs.
        let concurrency = unsafe { pg_sys::get_tablespace_maintenance_io_concurrency(self.0) };
        u32::try_from(concurrency).unwrap_or(0)
    }

    /// An `effective_io_concurrency` of its own, which a session's does not override, where that rules how
    /// the server's streams read (from 18 on).
    pub(crate) fn fixed_concurrency(self) -> Option<u32> {
        let under = |value: u32| {
            settings::with(&[(c"effective_io_concurrency", &value.to_string())], || self.io_concurrency())
        };
        (compat::STREAMS_OBEY_TABLESPACE && (under(0) != 0 || under(1) != 1)).then(|| self.io_concurrency())
    }

    pub(in crate::pg) fn directory(self) -> PathBuf {
        let data = data_directory();
        match self.0 {
            pg_sys::DEFAULTTABLESPACE_OID => data.join("base"),
            pg_sys::GLOBALTABLESPACE_OID => data.join("global"),
            oid => data.join("pg_tblspc").join(oid.to_string()),
        }
    }

    /// A directory of it that is the server's to write into.
    pub(crate) fn inner_directory(self) -> PathBuf {
        match self.0 {
            pg_sys::DEFAULTTABLESPACE_OID | pg_sys::GLOBALTABLESPACE_OID => self.directory(),
            _ => self.temporary_directory().parent().map_or_else(|| self.directory(), Path::to_owned),
        }
    }

    /// A name in it for a file that the server, should it crash, removes when it starts.
    pub(crate) fn temporary_file(self) -> PathBuf {
        self.temporary_directory().join(format!("pgsql_tmp{}.io_probe", std::process::id()))
    }

    fn temporary_directory(self) -> PathBuf {
        let mut directory = [0; pg_sys::MAXPGPATH as usize];
        // SAFETY: the buffer is as long as the server's own paths.
        let directory = unsafe {
            pg_sys::TempTablespacePath(directory.as_mut_ptr(), self.0);
            compat::path(directory.as_ptr())
        };
        data_directory().join(directory)
    }
}
