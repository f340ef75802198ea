//! What the catalogs say of settings, of the tablespaces' own, of what lies on devices, and of where the
//! user's tables are.

use std::collections::BTreeMap;
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
    /// Its value in its own unit, as a bare number.
    setting: String,
    /// Where it comes from, as `pg_settings.source` says.
    pub(crate) source: String,
}

impl SettingValue {
    pub(crate) fn of_tablespace(value: &str) -> Self {
        let (shown, setting) = (value.to_owned(), value.to_owned());
        Self { shown, setting, source: "tablespace".to_owned() }
    }

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

/// The values that a setting may have; None where this server has no such setting, or they are not counted
/// up. The name must be a plain word.
pub(crate) fn values_of(name: &str) -> Option<Vec<String>> {
    let query = format!("SELECT unnest(enumvals) FROM pg_settings WHERE name = '{name}'");
    let values = names::rows(&query, &[]);
    (!values.is_empty()).then_some(values)
}

/// What ALTER SYSTEM has set a setting to, in force or not; None where it has not, or the caller is no
/// superuser. The name must be a plain word.
pub(crate) fn set_by_alter_system(name: &str) -> Option<String> {
    if !server::is_superuser() {
        return None;
    }
    let query = format!(
        "SELECT setting FROM pg_file_settings \
         WHERE name = '{name}' AND right(sourcefile, 21) = '/postgresql.auto.conf' \
         ORDER BY seqno DESC LIMIT 1"
    );
    names::rows(&query, &[]).into_iter().next()
}

/// A setting that is a number, in its own unit, as RESET would set it in this session: with what the database
/// or the role has of its own. None where this server has none. The name must be a plain word.
pub(crate) fn number_at_reset(name: &str) -> Option<f64> {
    let query = format!("SELECT to_json(reset_val::float8) FROM pg_settings WHERE name = '{name}'");
    names::rows(&query, &[]).into_iter().next()
}

/// The schema of the extension, quoted.
pub(crate) fn own_schema() -> String {
    let query = "SELECT quote_ident(n.nspname) FROM pg_extension AS e \
         JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'pg_io_probe'";
    names::rows(query, &[]).into_iter().next().unwrap_or_default()
}

/// A table, or materialized view, that is neither the server's own nor this extension's, nor temporary; and
/// where that can be read, unlogged ones.
#[derive(Debug, Deserialize)]
pub(crate) struct UserTable {
    pub(crate) oid: pg_sys::Oid,
    /// The tablespace of its files.
    pub(crate) spcname: String,
    /// The first segment of its main fork, from the data directory; None if it is gone.
    path: Option<PathBuf>,
    /// May the caller read or maintain it?
    pub(crate) may_probe: bool,
    /// Its TOAST table, to which the same right leads.
    pub(crate) toast: Option<ToastTable>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ToastTable {
    pub(crate) oid: pg_sys::Oid,
    path: Option<PathBuf>,
}

// Bytes are those of the main fork by what its files say: no lock is taken, so that nothing is waited for.
impl UserTable {
    pub(crate) fn bytes(&self) -> u64 {
        bytes_of_main(self.path.as_deref())
    }
}

impl ToastTable {
    pub(crate) fn bytes(&self) -> u64 {
        bytes_of_main(self.path.as_deref())
    }
}

fn bytes_of_main(path: Option<&Path>) -> u64 {
    path.map_or(0, |path| bytes_of_files(&data_directory().join(path)))
}

/// Bytes of the segments of a fork, of which `path` is the first.
pub(in crate::pg) fn bytes_of_files(path: &Path) -> u64 {
    let segments = (0..).map_while(|number: u32| {
        let mut path = path.as_os_str().to_owned();
        if number > 0 {
            path.push(format!(".{number}"));
        }
        std::fs::metadata(path).ok().map(|found| found.len())
    });
    segments.sum()
}

/// The largest of the user's tables and their TOAST tables.
pub(crate) fn largest_table() -> Option<pg_sys::Oid> {
    let mut largest: Option<(u64, pg_sys::Oid)> = None;
    user_tables(|table| {
        if !table.may_probe {
            return;
        }
        let toast = table.toast.as_ref().map(|toast| (toast.bytes(), toast.oid));
        let own = (table.bytes(), table.oid);
        // Of several as large it is the last.
        largest = largest.into_iter().chain(toast).chain([own]).max_by_key(|(bytes, _)| *bytes);
    });
    largest.map(|(_, oid)| oid)
}

/// Hands over the user's tables of this database.
pub(crate) fn user_tables(mut take: impl FnMut(UserTable)) {
    /// There may be any number of them.
    const AT_A_TIME: usize = 1000;
    let mut last = pg_sys::InvalidOid;
    loop {
        // Of a table that is gone by now, the path is NULL, and so is the right.
        let query = format!(
            "WITH found AS MATERIALIZED ( \
                 SELECT c.oid, c.reltablespace, c.reltoastrelid AS toast FROM pg_class AS c \
                 WHERE c.oid > {}::oid AND c.relkind IN ('r', 'm') AND (c.relpersistence = 'p' \
                     OR c.relpersistence = 'u' AND NOT pg_is_in_recovery()) \
                 AND c.relnamespace NOT IN (SELECT n.oid FROM pg_namespace AS n \
                     WHERE n.nspname IN ('pg_catalog', 'information_schema', 'pg_toast')) \
                 AND c.oid NOT IN (SELECT own.oid FROM {}) \
                 ORDER BY c.oid LIMIT {AT_A_TIME} \
             ) \
             SELECT json_build_object('oid', found.oid::int8, 'spcname', t.spcname, \
                 'path', pg_relation_filepath(found.oid), \
                 'may_probe', coalesce(has_table_privilege(found.oid, '{}'), false), \
                 'toast', CASE WHEN toast <> 0 THEN json_build_object('oid', toast::int8, \
                     'path', pg_relation_filepath(toast)) END) \
             FROM found JOIN pg_tablespace AS t ON t.oid = \
                 CASE WHEN reltablespace = 0 THEN {}::oid ELSE reltablespace END \
             ORDER BY found.oid",
            last.to_u32(),
            from_own("pg_class", "own"),
            compat::PROBE_PRIVILEGES,
            Tablespace::own().oid().to_u32(),
        );
        let found: Vec<UserTable> = names::rows(&query, &[]);
        let Some(end) = found.last() else { break };
        last = end.oid;
        for table in found {
            interrupts::check();
            take(table);
        }
    }
}

/// A relation's schema and name, as SQL writes them; None if it is gone.
pub(crate) fn qualified_name(relation: pg_sys::Oid) -> Option<String> {
    let query = format!(
        "SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_class AS c \
         JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = {}::oid",
        relation.to_u32()
    );
    names::rows(&query, &[]).into_iter().next()
}

/// The settings of a tablespace's own, and their values.
pub(crate) fn tablespace_options(spcname: &str) -> BTreeMap<String, String> {
    // They are numbers, which may be written with any number of zeros.
    let query = "SELECT json_build_array(spcname, option_name, left(option_value, 100)) \
         FROM pg_tablespace, pg_options_to_table(spcoptions)";
    let options = names::rows::<(String, String, String)>(query, &[]).into_iter();
    options.filter(|(name, ..)| name == spcname).map(|(_, setting, value)| (setting, value)).collect()
}

/// Is there but one tablespace for users' tables?
pub(crate) fn has_one_tablespace() -> bool {
    let query = "SELECT count(*) = 1 FROM pg_tablespace WHERE spcname <> 'pg_global'";
    names::rows(query, &[]).into_iter().next().unwrap_or(false)
}

/// Does a tablespace have this setting of its own?
pub(crate) fn has_tablespace_with(setting: &str) -> bool {
    let query = "SELECT option_name FROM pg_tablespace, pg_options_to_table(spcoptions)";
    names::rows::<String>(query, &[]).iter().any(|name| name == setting)
}

/// Something of the server that lies on a device.
pub(crate) struct Object {
    /// `tablespace`, `wal` or `temp`.
    pub(crate) kind: &'static str,
    /// The tablespace's name, where it is one.
    pub(crate) tablespace: Option<String>,
    pub(crate) directory: PathBuf,
}

impl Object {
    fn in_tablespace(kind: &'static str, tablespace: Tablespace) -> Self {
        Self { kind, directory: tablespace.directory(), tablespace: tablespace.name() }
    }
    /// What a person calls it.
    pub(crate) fn name(&self) -> String {
        self.tablespace.as_ref().map_or_else(|| self.kind.to_owned(), |name| format!("{} {name}", self.kind))
    }
}

/// Each tablespace, the WAL, and where this session's temporary files go.
pub(crate) fn objects() -> Vec<Object> {
    let wal = Object { kind: "wal", tablespace: None, directory: wal::directory() };
    let permanent = Tablespace::all().into_iter().map(|t| Object::in_tablespace("tablespace", t));
    let temporary = Tablespace::temporary().into_iter().map(|t| Object::in_tablespace("temp", t));
    permanent.chain([wal]).chain(temporary).collect()
}
