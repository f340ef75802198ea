//! One request now and then.

use crate::function::OptionName::{self, MaxP99, Seed, Wait};
use crate::function::{FILES, Function, Group, Returns, Who, optional, options, required};
use crate::row::{Row, row};
use crate::shared::{CaveatColumns, PlaceColumns};
use crate::value::Timestamp;

row! {
    /// one request
    row PingRow "ping" everyday [request, op, path, lat_us, served_by, blkno, relid, doubt] {
        /// Number of the request, from 1
        request: Option<u64>,
        /// read: a block of the relation; write: one of a scratch file
        op: Option<&'static str>,
        /// Is it the first read or the first write? Leave it out of means
        warmup: Option<bool>,
        /// Time of the system call in us; no sync follows a write. NULL if the row is void
        lat_us: Option<f64>,
        /// Of a read: os if the block was in the OS cache, else device
        served_by: Option<&'static str>,
        /// direct: O_DIRECT; os: through the OS cache
        path: &'static str,
        /// Block of the relation that was read
        blkno: Option<u64>,
        /// Seed of the random order; option or argument seed repeats it
        seed: i64,
        /// When the call, or this path of it, started
        started_at: Timestamp,
        ..place: PlaceColumns,
        ..caveats: CaveatColumns,
    }
}

/// Its options.
pub const OPTIONS: &[OptionName] = &[MaxP99, Seed, Wait];

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "ping",
    calls: None,
    arguments: &[
        required("rel", "regclass"),
        optional("path", "text", "'direct'"),
        optional("mode", "text", "'read'"),
        optional("every", "text", "'100 ms'"),
        optional("count", "integer", "10"),
        options(OPTIONS),
    ],
    returns: Returns::Rows(&PingRow::TYPE, 10),
    group: Group::Measure,
    who: Who::Owner,
    comment: "\
        Sends count single requests, one at a time at intervals of every, and times each. mode: read (random \
        blocks of the relation), write (of a scratch file in its tablespace) or pingpong (in turn). path: \
        direct or os. Needs EXECUTE, and SELECT or MAINTAIN on the relation; modes that write need EXECUTE \
        on io_probe_sync too, and CREATE on its tablespace if that is not the database's own. Options: \
        max_p99, seed, wait",
    example: "'public.probed', mode => 'pingpong', every => '0', count => 2",
    errors: &[FILES],
}];
