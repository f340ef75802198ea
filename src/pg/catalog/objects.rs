//! What of the server lies on devices.

use std::path::PathBuf;

use crate::pg::storage::tablespace::Tablespace;
use crate::pg::storage::wal;

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
pub(crate) fn all() -> Vec<Object> {
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
