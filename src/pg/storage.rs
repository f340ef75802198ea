//! Relations, their blocks in shared buffers, and where their files are.

pub(crate) mod btree;
pub(crate) mod buffers;
pub(crate) mod expressions;
pub(crate) mod relation;
pub(crate) mod server_reader;
pub(crate) mod tablespace;
pub(crate) mod wal;
