//! The WAL as this server writes it: where, in which pieces, and with which flags.
//!
//! Source: `get_sync_bit` and `XLogFileInitInternal` in `src/backend/access/transam/xlog.c` of PostgreSQL 15
//! to 19.

use std::path::PathBuf;
use std::time::Duration;

use io_probe_core::measure::sync::FlushMethod;
use pgrx::pg_sys;

use crate::pg::backend::server::{data_directory, in_recovery, io_direct, number, setting};
pub(crate) use crate::pg::compat::SEGMENT_FILL;

pub(crate) const BLOCK_BYTES: u32 = pg_sys::XLOG_BLCKSZ;

pub(crate) fn directory() -> PathBuf {
    data_directory().join("pg_wal")
}

/// A name there for a file that the server, should it crash, removes when it starts: it calls its own
/// unfinished segments so.
pub(crate) fn temporary_file() -> PathBuf {
    directory().join(format!("xlogtemp.{}", std::process::id()))
}

pub(crate) fn segment_bytes() -> u64 {
    // SAFETY: set once at server start.
    unsafe { pg_sys::wal_segment_size }.unsigned_abs().into()
}

/// The value of wal_sync_method; None while the server syncs nothing (`fsync = off`).
pub(crate) fn sync_method() -> Option<String> {
    setting(c"wal_sync_method").filter(|_| setting(c"fsync").as_deref() != Some("off"))
}

/// Would this server open its WAL with O_DIRECT under this method? Up to 15 it does where the WAL is not read
/// back, from 16 on only by `debug_io_direct`; the WAL receiver of a standby never does.
pub(crate) fn opens_direct(method: FlushMethod) -> bool {
    let minimal = || setting(c"wal_level").as_deref() == Some("minimal");
    !in_recovery() && io_direct("wal").unwrap_or_else(|| method.syncs_by_open() && minimal())
}

/// How long the first of `committers` committers waits for the others before it flushes.
pub(crate) fn commit_delay(committers: u32) -> Duration {
    let others_at_least = number(c"commit_siblings").unwrap_or(0);
    let waits = committers.saturating_sub(1) >= others_at_least && sync_method().is_some();
    Duration::from_micros(if waits { number(c"commit_delay").unwrap_or(0) } else { 0 })
}
