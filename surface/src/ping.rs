//! One request now and then.

use crate::function::OptionName::{self, MaxP99, Seed, Wait};
use crate::function::{FILES, Function, MEASURE, Returns, optional, options, required};
use crate::row::{Row, row};
use crate::shared::{CaveatColumns, PlaceColumns};
use crate::value::Timestamp;

row! {
    /// one request
    row PingRow "ping" everyday [request, op, path, lat_us, served_by, blkno, relid, doubt] {
        /// Number of the request, from 1
        request: Option<u64>,
        /// read: a block of the relation; write: a block of a scratch file
        op: Option<&'static str>,
        /// Is it the first read or the first write? Don't count it in a mean
        warmup: Option<bool>,
        /// Time of the system call in us; a write is not synced. NULL if the row is void
        lat_us: Option<f64>,
        /// os: the block was in the OS cache before the read; device: it was not, or path is direct. NULL for
        /// a write
        served_by: Option<&'static str>,
        /// direct: by O_DIRECT; os: through the OS cache
        path: &'static str,
        /// Block of the relation that was read
        blkno: Option<u64>,
        /// Seed of the random order; option or argument seed repeats it
        seed: i64,
        /// When the call started; if it has several paths, when this path started
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
    arguments: &[
        required("rel", "regclass"),
        optional("path", "text", "'direct'"),
        optional("mode", "text", "'read'"),
        optional("every", "text", "'100 ms'"),
        optional("count", "integer", "10"),
        options(OPTIONS),
    ],
    returns: Returns::Rows(&PingRow::TYPE, 10),
    comment: "\
        Sends single requests, and times each. Arguments: mode: read (random blocks of the relation), write \
        (blocks of a scratch file in its tablespace) or pingpong (reads and writes in turn); path: direct or \
        os; every: time from one request to the next; count: how many requests. Needs EXECUTE, and SELECT or \
        MAINTAIN on the relation. Modes that write also need EXECUTE on io_probe_sync, and CREATE on the \
        tablespace if it is not the database's default. Options: max_p99, seed, wait",
    example: "'public.probed', mode => 'pingpong', every => '0', count => 2",
    errors: &[FILES],
    ..MEASURE
}];
