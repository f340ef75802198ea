//! What the catalogs and the server say of what is measured, and of where.

use std::ffi::CStr;
use std::path::PathBuf;

use pgrx::pg_sys;
use serde::{Deserialize, Serialize};

use crate::pg::backend::encoding::text_or_none;
use crate::pg::backend::names;
use crate::pg::backend::server::{self, data_directory, in_recovery};
use crate::pg::catalog::facts::bytes_of_files;
use crate::pg::storage::tablespace::Tablespace;

/// A relation as its catalogs have it.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct RelationFacts {
    relid: u32,
    relkind: String,
    pub(crate) schemaname: String,
    pub(crate) relname: String,
    /// Size of its main fork.
    #[serde(default)]
    pub(crate) rel_bytes: Option<u64>,
    pub(crate) spcname: Option<String>,
    /// The first segment of its main fork, from the data directory; None if it has no files.
    #[serde(skip_serializing)]
    path: Option<PathBuf>,
}

impl RelationFacts {
    /// The relation of this oid, if there is one. Takes no lock on it, so waits for none; and no right is
    /// needed.
    pub(crate) fn find(oid: pg_sys::Oid) -> Option<Self> {
        let query = format!(
            "SELECT json_build_object('relid', c.oid::int8, 'relkind', c.relkind, \
                 'schemaname', n.nspname, 'relname', c.relname, 'spcname', t.spcname, \
                 'path', pg_relation_filepath(c.oid)) \
             FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace \
             LEFT JOIN pg_tablespace AS t ON t.oid = \
                 CASE WHEN c.reltablespace = 0 THEN {}::oid ELSE c.reltablespace END \
             WHERE c.oid = {}::oid",
            Tablespace::own().oid().to_u32(),
            oid.to_u32()
        );
        let found: Self = names::rows(&query, &[]).into_iter().next()?;
        let path = found.path.map(|path| data_directory().join(path));
        Some(Self { rel_bytes: path.as_deref().map(bytes_of_files), path, ..found })
    }

    /// The directory of its files.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        Some(self.path.as_ref()?.parent()?.to_owned())
    }
}

/// The role that measures, and the server that it is on.
#[derive(Debug, Serialize)]
pub(crate) struct ServerFacts {
    rolname: Option<String>,
    pub(crate) datname: Option<String>,
    pub(crate) server_version: Option<String>,
    pub(crate) in_recovery: bool,
    cluster_name: Option<String>,
    /// As text: JSON's numbers are not as exact everywhere.
    system_identifier: String,
}

impl ServerFacts {
    pub(crate) fn now() -> Self {
        // SAFETY: catalog lookups, of which the first gives NULL for what is gone; the results are C strings.
        // The last reads shared memory.
        let (rolname, datname, identifier) = unsafe {
            let role = pg_sys::GetUserNameFromId(pg_sys::GetUserId(), true);
            let database = pg_sys::get_database_name(pg_sys::MyDatabaseId);
            (text_or_none(role), text_or_none(database), pg_sys::GetSystemIdentifier())
        };
        Self {
            rolname,
            datname,
            server_version: server::setting(c"server_version"),
            in_recovery: in_recovery(),
            cluster_name: server::setting(c"cluster_name").filter(|name| !name.is_empty()),
            system_identifier: identifier.to_string(),
        }
    }
}

/// The value of a setting as SHOW prints it; None for one that this version lacks. It must not be one that
/// only some roles may see.
pub(crate) fn setting_value(name: &CStr) -> Option<String> {
    // SAFETY: the name is a C string; a missing setting is allowed and gives NULL, others a C string.
    unsafe { text_or_none(pg_sys::GetConfigOptionByName(name.as_ptr(), std::ptr::null_mut(), true)) }
}
