//! What other sessions see of a running probe: its wait event and its progress.
//!
//! Progress uses the server's own reporting with a command number that no core command has, so that
//! it needs no shared memory of ours and no preload. Core's progress views don't show it.

use std::time::Duration;

use io_probe_surface::facts::ProgressRow;
use io_probe_surface::value::{Relation, Timestamp};
use pgrx::pg_sys;

use crate::pg::backend::{encoding, server};
use crate::pg::compat;
pub(crate) use crate::pg::compat::WaitEvent;

/// A command number outside the server's own enumeration.
const COMMAND: pg_sys::ProgressCommandType::Type = 0x696f;

// Positions of the reported values.
const PROBE: i32 = 0;
const DONE: i32 = 1;
const TOTAL: i32 = 2;
const STARTED: i32 = 3;
/// The first of those that hold the name of the path, eight bytes each.
const PATH: i32 = 4;
const PATH_VALUES: usize = 4;
/// When it ends at the latest.
const ENDS: i32 = PATH + PATH_VALUES as i32;

/// Reports until it is dropped.
pub(crate) struct Progress {
    reporting: bool,
    /// Set with a path: probes without paths wait elsewhere.
    wait_event: u32,
}

impl Progress {
    /// Starts reporting the probe of this number on a relation, if it is on one, which lasts this long at
    /// most, unless the backend already reports a command of its own, such as the COPY that this probe is the
    /// query of.
    pub(crate) fn start(probe: i64, waits: WaitEvent, relation: Option<pg_sys::Oid>, most: Duration) -> Self {
        let relation = relation.unwrap_or(pg_sys::InvalidOid);
        // SAFETY: the entry is this backend's own; the calls only write to it.
        let reporting = unsafe {
            !pg_sys::MyBEEntry.is_null()
                && (*pg_sys::MyBEEntry).st_progress_command
                    == pg_sys::ProgressCommandType::PROGRESS_COMMAND_INVALID
        };
        if reporting {
            // SAFETY: as above.
            unsafe { pg_sys::pgstat_progress_start_command(COMMAND, relation) };
        }
        let progress = Self { reporting, wait_event: compat::wait_event(waits) };
        progress.report(PROBE, probe);
        let started = server::moment();
        progress.report(STARTED, started);
        let most = i64::try_from(most.as_micros()).unwrap_or(i64::MAX);
        progress.report(ENDS, started.saturating_add(most));
        progress
    }

    /// A new path begins, or a section or mode, whose name has at most 32 bytes; it is empty if there is
    /// only one. The wait event stays until the next path: reads past the server set none of their own. Those
    /// through the server do, and leave none behind.
    pub(crate) fn path(&self, path: &str, total: u64) {
        wait_event(self.wait_event);
        self.report(DONE, 0);
        self.report(TOTAL, total as i64);
        if self.reporting {
            let positions: [i32; PATH_VALUES] = std::array::from_fn(|place| PATH + place as i32);
            let values = packed(path);
            // SAFETY: the positions are within the entry's 20 values, and there are as many values.
            unsafe {
                pg_sys::pgstat_progress_update_multi_param(
                    PATH_VALUES as i32,
                    positions.as_ptr(),
                    values.as_ptr(),
                );
            }
        }
    }

    /// `number` samples will be taken, on no path. Waiting for them has a wait event of its own.
    pub(crate) fn total(&self, number: u64) {
        self.report(TOTAL, number as i64);
    }

    /// `number` blocks, turns or samples are done.
    pub(crate) fn done(&self, number: u64) {
        self.report(DONE, number as i64);
    }

    /// A turn begins, of so many; they are numbered from 1.
    pub(crate) fn turn(&self, path: &str, number: u64, of: u64) {
        self.path(path, of);
        self.done(number - 1);
    }

    fn report(&self, position: i32, value: i64) {
        if self.reporting {
            // SAFETY: the position is within the entry's 20 values.
            unsafe { pg_sys::pgstat_progress_update_param(position, value) };
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return; // Abort ends both.
        }
        wait_event(0);
        if self.reporting {
            // SAFETY: ends what `start` began.
            unsafe { pg_sys::pgstat_progress_end_command() };
        }
    }
}

/// What this backend reports now. Undoing a subtransaction ends all reports, also those begun outside of it.
pub(in crate::pg) struct KeptProgress(Option<(pg_sys::ProgressCommandType::Type, pg_sys::Oid, Vec<i64>)>);

impl KeptProgress {
    pub(in crate::pg) fn now() -> Self {
        // SAFETY: the entry is this backend's own.
        let entry = unsafe { pg_sys::MyBEEntry.as_ref() };
        let reports = entry.filter(|entry| {
            entry.st_progress_command != pg_sys::ProgressCommandType::PROGRESS_COMMAND_INVALID
        });
        Self(reports.map(|entry| {
            (entry.st_progress_command, entry.st_progress_command_target, entry.st_progress_param.to_vec())
        }))
    }

    pub(in crate::pg) fn put_back(self) {
        let Some((command, target, values)) = self.0 else { return };
        // SAFETY: the calls only write to this backend's own entry; there are as many values as it has.
        unsafe {
            pg_sys::pgstat_progress_start_command(command, target);
            for (position, value) in (0..).zip(values) {
                pg_sys::pgstat_progress_update_param(position, value);
            }
        }
    }
}

fn wait_event(event: u32) {
    // SAFETY: always points to a variable of this backend, in shared memory or its own; others read
    // it at any moment, hence volatile, as the server itself does it.
    unsafe { std::ptr::write_volatile(pg_sys::my_wait_event_info, event) };
}

/// A path's name in values, which are 0 where there is none.
fn packed(path: &str) -> [i64; PATH_VALUES] {
    let mut words = [[0; 8]; PATH_VALUES];
    words.as_flattened_mut().iter_mut().zip(path.bytes()).for_each(|(to, from)| *to = from);
    words.map(i64::from_ne_bytes)
}

/// The name in such values; None if there is none.
fn unpacked(values: &[i64]) -> Option<String> {
    let bytes = values.iter().flat_map(|value| value.to_ne_bytes()).take_while(|byte| *byte != 0);
    String::from_utf8(bytes.collect()).ok().filter(|name| !name.is_empty())
}

/// What reports now; `name` has the name of a probe's number.
pub(crate) fn running(name: impl Fn(i64) -> Option<&'static str>) -> Vec<ProgressRow> {
    // SAFETY: reads a variable of this backend.
    let database = unsafe { pg_sys::MyDatabaseId };
    server::backends()
        .filter(|entry| entry.st_progress_command == COMMAND)
        .map(|entry| ProgressRow {
            pid: entry.st_procpid,
            relid: Some(entry.st_progress_command_target)
                .filter(|oid| entry.st_databaseid == database && *oid != pg_sys::InvalidOid)
                .map(|oid| Relation(oid.to_u32())),
            probe: name(value(entry, PROBE)),
            path: unpacked(&entry.st_progress_param[PATH as usize..][..PATH_VALUES]),
            done: value(entry, DONE),
            total: value(entry, TOTAL),
            started_at: Timestamp(value(entry, STARTED)),
        })
        .collect()
}

/// What an entry of ours reports at a position.
fn value(entry: &pg_sys::PgBackendStatus, position: i32) -> i64 {
    entry.st_progress_param[position as usize]
}

/// Who runs the probe of this process, since when, and for how long at most, as a sentence; None if it
/// reports none, or if the caller may not see that.
pub(in crate::pg) fn told(pid: i32, name: impl Fn(i64) -> Option<&'static str>) -> Option<String> {
    let entry =
        server::backends().find(|entry| entry.st_procpid == pid && entry.st_progress_command == COMMAND)?;
    let [started, ends] = [STARTED, ENDS].map(|position| value(entry, position));
    // It reports one value after the other.
    let begun = started != 0 && ends != 0;
    let probe = name(value(entry, PROBE)).filter(|_| begun && server::may_execute("io_probe_progress"))?;
    // SAFETY: a catalog lookup, which gives NULL for a role that is gone.
    let role = unsafe { encoding::text_or_none(pg_sys::GetUserNameFromId(entry.st_userid, true)) };
    let role = role.map_or(String::new(), |role| format!(" (role \"{role}\")"));
    let now = server::moment();
    let [since, left] = [now - started, ends - now].map(|us| (us.max(0) + 999_999) / 1_000_000);
    Some(format!(
        "PID {pid}{role} has been running io_probe_{probe} for {since} s, and ends it in {left} s at the \
         latest."
    ))
}
