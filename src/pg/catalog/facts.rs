//! What the catalogs say of settings, of the tablespaces' own, of what lies on devices, and of where the
//! user's tables are.

use std::path::{Path, PathBuf};

use pgrx::pg_sys;
use serde::Deserialize;

use crate::pg::backend::interrupts;
use crate::pg::backend::names::{self, from_own};
use crate::pg::backend::server::{self, data_directory};
use crate::pg::compat;
use crate::pg::storage::tablespace::Tablespace;
use crate::pg::storage::wal;

/// A setting of the server, or a tablespace's own, as this session sees it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct SettingValue {
    /// Its value as SHOW prints it, which ALTER SYSTEM takes.
    pub(crate) shown: String,
    /// The same in the setting's own unit.
    setting: String,
    /// Where it comes from, as `pg_settings.source` says.
    pub(crate) source: String,
}

impl SettingValue {
    /// The value that a tablespace has of its own.
    pub(crate) fn of_tablespace(value: &str) -> Self {
        let (shown, setting) = (value.to_owned(), value.to_owned());
        Self { shown, setting, source: "tablespace".to_owned() }
    }

    /// The value of a setting that is a number.
    pub(crate) fn number(&self) -> Option<f64> {
        self.setting.parse().ok()
    }
}

/// The setting of this name; None where this server has no such setting. The name must be a plain word.
pub(crate) fn setting(name: &str) -> Option<SettingValue> {
    let query = format!(
        "SELECT json_build_object('shown', current_setting(name), 'setting', setting, 'source', source) \
         FROM pg_settings WHERE name = '{name}'"
    );
    names::rows(&query, &[]).into_iter().next()
}

/// What ALTER SYSTEM has set a setting to, in force or not; None where it has not, or the caller is no
/// superuser. The name must be a plain word.
pub(crate) fn set_by_alter_system(name: &str) -> Option<String> {
    if !server::is_superuser() {
        return None;
    }
    let query = format!(
        "SELECT setting FROM pg_file_settings \
         WHERE name = '{name}' AND right(sourcefile, 21) = '/postgresql.auto.conf' ORDER BY seqno DESC"
    );
    names::rows(&query, &[]).into_iter().next()
}

/// The schema of the extension, quoted.
pub(crate) fn own_schema() -> String {
    let query = "SELECT quote_ident(n.nspname) FROM pg_extension AS e \
         JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'pg_io_probe'";
    names::rows(query, &[]).into_iter().next().unwrap_or_default()
}

/// A permanent table, or materialized view, that is neither the server's own nor this extension's.
#[derive(Debug, Deserialize)]
pub(crate) struct UserTable {
    pub(crate) oid: pg_sys::Oid,
    /// The tablespace of its files.
    pub(crate) spcname: String,
    /// The first segment of its main fork.
    path: PathBuf,
    /// May the caller read or maintain it?
    pub(crate) may_probe: bool,
}

impl UserTable {
    /// Bytes of the main fork by what its files say: no lock is taken, so that nothing is waited for.
    pub(crate) fn bytes(&self) -> u64 {
        bytes_of_files(&self.path)
    }
}

/// Bytes of the segments of a fork, of which `path` is the first.
pub(in crate::pg) fn bytes_of_files(path: &Path) -> u64 {
    let segment = |number: u32| {
        let mut path = path.as_os_str().to_owned();
        if number > 0 {
            path.push(format!(".{number}"));
        }
        std::fs::metadata(path).ok().map(|found| found.len())
    };
    (0..).map_while(segment).sum()
}

/// The largest table that the caller may read.
pub(crate) fn largest_table() -> Option<pg_sys::Oid> {
    let bytes = |table: &UserTable| {
        interrupts::check();
        table.bytes()
    };
    let tables = user_tables().into_iter().filter(|table| table.may_probe);
    tables.max_by_key(bytes).map(|table| table.oid)
}

/// The user's tables of this database.
pub(crate) fn user_tables() -> Vec<UserTable> {
    // Of a table that is gone by now, the path and the right are NULL.
    let query = format!(
        "WITH found AS MATERIALIZED ( \
             SELECT c.oid::int8 AS oid, t.spcname, pg_relation_filepath(c.oid) AS path, \
                    has_table_privilege(c.oid, '{}') AS may_probe \
             FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace \
             JOIN pg_tablespace AS t ON t.oid = \
                 CASE WHEN c.reltablespace = 0 THEN {}::oid ELSE c.reltablespace END \
             WHERE c.relkind IN ('r', 'm') AND c.relpersistence = 'p' \
             AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') \
             AND c.oid <> ALL (SELECT own.oid FROM {}) \
         ) \
         SELECT row_to_json(found) FROM found WHERE path IS NOT NULL AND may_probe IS NOT NULL",
        compat::PROBE_PRIVILEGES,
        Tablespace::own().oid().to_u32(),
        from_own("pg_class", "own")
    );
    let data = data_directory();
    let table = |found: UserTable| UserTable { path: data.join(&found.path), ..found };
    names::rows(&query, &[]).into_iter().map(table).collect()
}

/// The settings of a tablespace's own, each as `setting=value`.
pub(crate) fn tablespace_options(spcname: &str) -> Vec<String> {
    let query = "SELECT json_build_array(spcname, option) FROM pg_tablespace, unnest(spcoptions) AS option";
    let options = names::rows::<(String, String)>(query, &[]).into_iter();
    options.filter(|(name, _)| name == spcname).map(|(_, option)| option).collect()
}

/// Something of the server that lies on a device.
pub(crate) struct Object {
    /// `tablespace`, `wal` or `temp`.
    pub(crate) kind: &'static str,
    /// The tablespace's name, where it is one.
    pub(crate) tablespace: Option<String>,
    /// Where its files are.
    pub(crate) directory: PathBuf,
}

impl Object {
    /// What a person calls it.
    pub(crate) fn name(&self) -> String {
        self.tablespace.as_ref().map_or_else(|| self.kind.to_owned(), |name| format!("{} {name}", self.kind))
    }
}

/// Each tablespace, the WAL, and where this session's temporary files go.
pub(crate) fn objects() -> Vec<Object> {
    let in_tablespace = |kind, tablespace: Tablespace| Object {
        kind,
        directory: tablespace.directory(),
        tablespace: tablespace.name(),
    };
    let wal = Object { kind: "wal", tablespace: None, directory: wal::directory() };
    let permanent = Tablespace::all().into_iter().map(|t| in_tablespace("tablespace", t));
    let temporary = Tablespace::temporary().into_iter().map(|t| in_tablespace("temp", t));
    permanent.chain([wal]).chain(temporary).collect()
}
