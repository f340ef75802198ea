-- The devices while the database works, as iostat shows them.

CREATE TYPE io_probe_iostat_full_row AS (
    sampled_at           timestamp with time zone,
    device               text,
    util_pct             double precision,
    aqu_sz               double precision,
    r_s                  double precision,
    rmib_s               double precision,
    r_await_ms           double precision,
    rareq_kb             double precision,
    rrqm_s               double precision,
    w_s                  double precision,
    wmib_s               double precision,
    w_await_ms           double precision,
    wareq_kb             double precision,
    wrqm_s               double precision,
    d_s                  double precision,
    dmib_s               double precision,
    d_await_ms           double precision,
    dareq_kb             double precision,
    drqm_s               double precision,
    f_s                  double precision,
    f_await_ms           double precision,
    cpu_user_pct         double precision,
    cpu_system_pct       double precision,
    cpu_iowait_pct       double precision,
    cpu_idle_pct         double precision,
    cpu_steal_pct        double precision,
    io_pressure_pct      double precision,
    io_pressure_full_pct double precision,
    cgroup_rmib_s        double precision,
    cgroup_wmib_s        double precision,
    sample               integer,
    elapsed_ms           double precision,
    doubt                text,
    status               text,
    notes                text[]
);
COMMENT ON TYPE io_probe_iostat_full_row IS 'Row of io_probe_iostat_full: one device in one interval';
COMMENT ON COLUMN io_probe_iostat_full_row.sampled_at IS 'End of the interval';
COMMENT ON COLUMN io_probe_iostat_full_row.device IS 'Kernel name of the device, such as vda; NULL if no block device is known';
COMMENT ON COLUMN io_probe_iostat_full_row.util_pct IS 'Percent of the interval with at least one request in flight; it may read up to 102, since the kernel''s clock is coarse. A device that serves requests in parallel is not saturated at 100';
COMMENT ON COLUMN io_probe_iostat_full_row.aqu_sz IS 'Mean number of requests queued or in flight';
COMMENT ON COLUMN io_probe_iostat_full_row.r_s IS 'Reads completed per second';
COMMENT ON COLUMN io_probe_iostat_full_row.rmib_s IS 'MiB (2^20 bytes) read per second';
COMMENT ON COLUMN io_probe_iostat_full_row.r_await_ms IS 'Mean time from queueing to completion of a read, in ms; NULL without reads';
COMMENT ON COLUMN io_probe_iostat_full_row.rareq_kb IS 'Mean size of a read in kB of 1,024 bytes; NULL without reads';
COMMENT ON COLUMN io_probe_iostat_full_row.rrqm_s IS 'Reads merged into queued ones per second';
COMMENT ON COLUMN io_probe_iostat_full_row.w_s IS 'Writes completed per second';
COMMENT ON COLUMN io_probe_iostat_full_row.wmib_s IS 'MiB (2^20 bytes) written per second';
COMMENT ON COLUMN io_probe_iostat_full_row.w_await_ms IS 'Mean time from queueing to completion of a write, in ms; NULL without writes';
COMMENT ON COLUMN io_probe_iostat_full_row.wareq_kb IS 'Mean size of a write in kB of 1,024 bytes; NULL without writes';
COMMENT ON COLUMN io_probe_iostat_full_row.wrqm_s IS 'Writes merged into queued ones per second';
COMMENT ON COLUMN io_probe_iostat_full_row.d_s IS 'Discards completed per second; NULL before Linux 4.18';
COMMENT ON COLUMN io_probe_iostat_full_row.dmib_s IS 'MiB (2^20 bytes) discarded per second';
COMMENT ON COLUMN io_probe_iostat_full_row.d_await_ms IS 'Mean time from queueing to completion of a discard, in ms; NULL without discards';
COMMENT ON COLUMN io_probe_iostat_full_row.dareq_kb IS 'Mean size of a discard in kB of 1,024 bytes; NULL without discards';
COMMENT ON COLUMN io_probe_iostat_full_row.drqm_s IS 'Discards merged into queued ones per second';
COMMENT ON COLUMN io_probe_iostat_full_row.f_s IS 'Flushes completed per second; NULL before Linux 5.5';
COMMENT ON COLUMN io_probe_iostat_full_row.f_await_ms IS 'Mean time from queueing to completion of a flush, in ms; NULL without flushes';
COMMENT ON COLUMN io_probe_iostat_full_row.cpu_user_pct IS 'Percent of the machine''s CPU time in user code, niced processes and guests included. This and the next four columns add up to 100';
COMMENT ON COLUMN io_probe_iostat_full_row.cpu_system_pct IS 'Percent of the machine''s CPU time in the kernel, interrupts included';
COMMENT ON COLUMN io_probe_iostat_full_row.cpu_iowait_pct IS 'Percent of the machine''s CPU time that was idle with I/O outstanding: a hint, not a measure of storage';
COMMENT ON COLUMN io_probe_iostat_full_row.cpu_idle_pct IS 'Percent of the machine''s CPU time that was idle without I/O outstanding';
COMMENT ON COLUMN io_probe_iostat_full_row.cpu_steal_pct IS 'Percent of the machine''s CPU time that the hypervisor gave to others';
COMMENT ON COLUMN io_probe_iostat_full_row.io_pressure_pct IS 'Percent of the interval in which at least one task of the machine waited for I/O (some of /proc/pressure/io); NULL if the kernel does not tell';
COMMENT ON COLUMN io_probe_iostat_full_row.io_pressure_full_pct IS 'Percent of the interval in which all tasks that had work waited for I/O (full of /proc/pressure/io); NULL if the kernel does not tell';
COMMENT ON COLUMN io_probe_iostat_full_row.cgroup_rmib_s IS 'Part of rmib_s that the server''s cgroup read; NULL without a cgroup that counts I/O';
COMMENT ON COLUMN io_probe_iostat_full_row.cgroup_wmib_s IS 'Part of wmib_s that the server''s cgroup wrote; NULL without a cgroup that counts I/O';
COMMENT ON COLUMN io_probe_iostat_full_row.sample IS 'Number of the interval, from 1';
COMMENT ON COLUMN io_probe_iostat_full_row.elapsed_ms IS 'How long the interval really lasted, in ms';
COMMENT ON COLUMN io_probe_iostat_full_row.doubt IS 'What speaks against this row''s figures: at most two codes of docs/interface.md, the worst first; NULL: nothing';
COMMENT ON COLUMN io_probe_iostat_full_row.status IS 'ok; partial: the interval ended early because the statement had no more time; unsupported: the device has no counters here, or no device is known; void: a counter went backwards, or the device appeared or disappeared';
COMMENT ON COLUMN io_probe_iostat_full_row.notes IS 'What to know about the interval, one sentence per element; the first interval has the limits that the cgroup sets';

CREATE TYPE io_probe_iostat_row AS (
    sample     integer,
    device     text,
    util_pct   double precision,
    aqu_sz     double precision,
    r_s        double precision,
    rmib_s     double precision,
    r_await_ms double precision,
    wmib_s     double precision,
    w_await_ms double precision,
    doubt      text
);
COMMENT ON TYPE io_probe_iostat_row IS 'Row of io_probe_iostat: one device in one interval';

CREATE FUNCTION io_probe_iostat(
    every   text     DEFAULT '1 s',
    count   integer  DEFAULT 1,
    options jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_iostat_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_iostat_wrapper';
COMMENT ON FUNCTION io_probe_iostat(text, integer, jsonb) IS 'Watches devices for count intervals, as iostat -x does, with CPU use and I/O pressure: the devices behind the tablespaces, the WAL and temporary files, or the one that option device names. The first row is the first interval, never the time since boot. Reads /proc and /sys, and causes no I/O. Takes no lock, so it runs beside a probe. pg_monitor may call it. Options: device';
REVOKE ALL ON FUNCTION io_probe_iostat(text, integer, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_iostat(text, integer, jsonb) TO pg_monitor;

CREATE FUNCTION io_probe_iostat_full(
    every   text     DEFAULT '1 s',
    count   integer  DEFAULT 1,
    options jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_iostat_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_iostat_wrapper';
COMMENT ON FUNCTION io_probe_iostat_full(text, integer, jsonb) IS 'The rows of io_probe_iostat with all columns';
REVOKE ALL ON FUNCTION io_probe_iostat_full(text, integer, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_iostat_full(text, integer, jsonb) TO pg_monitor;

-- The devices while a query runs.

CREATE TYPE io_probe_iostat_query_full_row AS (
    sampled_at           timestamp with time zone,
    device               text,
    util_pct             double precision,
    aqu_sz               double precision,
    r_s                  double precision,
    rmib_s               double precision,
    r_await_ms           double precision,
    rareq_kb             double precision,
    rrqm_s               double precision,
    w_s                  double precision,
    wmib_s               double precision,
    w_await_ms           double precision,
    wareq_kb             double precision,
    wrqm_s               double precision,
    d_s                  double precision,
    dmib_s               double precision,
    d_await_ms           double precision,
    dareq_kb             double precision,
    drqm_s               double precision,
    f_s                  double precision,
    f_await_ms           double precision,
    cpu_user_pct         double precision,
    cpu_system_pct       double precision,
    cpu_iowait_pct       double precision,
    cpu_idle_pct         double precision,
    cpu_steal_pct        double precision,
    io_pressure_pct      double precision,
    io_pressure_full_pct double precision,
    cgroup_rmib_s        double precision,
    cgroup_wmib_s        double precision,
    sample               integer,
    elapsed_ms           double precision,
    doubt                text,
    status               text,
    notes                text[],
    query_rows           bigint,
    shared_blks_hit      bigint,
    shared_blks_read     bigint,
    shared_blks_dirtied  bigint,
    shared_blks_written  bigint,
    local_blks_hit       bigint,
    local_blks_read      bigint,
    local_blks_written   bigint,
    temp_blks_read       bigint,
    temp_blks_written    bigint,
    wal_bytes            bigint,
    device_bytes         bigint,
    device_source        text
);
COMMENT ON TYPE io_probe_iostat_query_full_row IS 'Row of io_probe_iostat_query_full: one device in one interval, as in io_probe_iostat; the last row has no device, but the query''s own figures';
COMMENT ON COLUMN io_probe_iostat_query_full_row.sampled_at IS 'End of the interval';
COMMENT ON COLUMN io_probe_iostat_query_full_row.device IS 'Kernel name of the device; NULL in the last row, which is the query''s, and if no block device is known';
COMMENT ON COLUMN io_probe_iostat_query_full_row.util_pct IS 'Percent of the interval with at least one request in flight; it may read up to 102, since the kernel''s clock is coarse. A device that serves requests in parallel is not saturated at 100';
COMMENT ON COLUMN io_probe_iostat_query_full_row.aqu_sz IS 'Mean number of requests queued or in flight';
COMMENT ON COLUMN io_probe_iostat_query_full_row.r_s IS 'Reads completed per second';
COMMENT ON COLUMN io_probe_iostat_query_full_row.rmib_s IS 'MiB (2^20 bytes) read per second';
COMMENT ON COLUMN io_probe_iostat_query_full_row.r_await_ms IS 'Mean time from queueing to completion of a read, in ms; NULL without reads';
COMMENT ON COLUMN io_probe_iostat_query_full_row.rareq_kb IS 'Mean size of a read in kB of 1,024 bytes; NULL without reads';
COMMENT ON COLUMN io_probe_iostat_query_full_row.rrqm_s IS 'Reads merged into queued ones per second';
COMMENT ON COLUMN io_probe_iostat_query_full_row.w_s IS 'Writes completed per second';
COMMENT ON COLUMN io_probe_iostat_query_full_row.wmib_s IS 'MiB (2^20 bytes) written per second';
COMMENT ON COLUMN io_probe_iostat_query_full_row.w_await_ms IS 'Mean time from queueing to completion of a write, in ms; NULL without writes';
COMMENT ON COLUMN io_probe_iostat_query_full_row.wareq_kb IS 'Mean size of a write in kB of 1,024 bytes; NULL without writes';
COMMENT ON COLUMN io_probe_iostat_query_full_row.wrqm_s IS 'Writes merged into queued ones per second';
COMMENT ON COLUMN io_probe_iostat_query_full_row.d_s IS 'Discards completed per second; NULL before Linux 4.18';
COMMENT ON COLUMN io_probe_iostat_query_full_row.dmib_s IS 'MiB (2^20 bytes) discarded per second';
COMMENT ON COLUMN io_probe_iostat_query_full_row.d_await_ms IS 'Mean time from queueing to completion of a discard, in ms; NULL without discards';
COMMENT ON COLUMN io_probe_iostat_query_full_row.dareq_kb IS 'Mean size of a discard in kB of 1,024 bytes; NULL without discards';
COMMENT ON COLUMN io_probe_iostat_query_full_row.drqm_s IS 'Discards merged into queued ones per second';
COMMENT ON COLUMN io_probe_iostat_query_full_row.f_s IS 'Flushes completed per second; NULL before Linux 5.5';
COMMENT ON COLUMN io_probe_iostat_query_full_row.f_await_ms IS 'Mean time from queueing to completion of a flush, in ms; NULL without flushes';
COMMENT ON COLUMN io_probe_iostat_query_full_row.cpu_user_pct IS 'Percent of the machine''s CPU time in user code, niced processes and guests included. This and the next four columns add up to 100';
COMMENT ON COLUMN io_probe_iostat_query_full_row.cpu_system_pct IS 'Percent of the machine''s CPU time in the kernel, interrupts included';
COMMENT ON COLUMN io_probe_iostat_query_full_row.cpu_iowait_pct IS 'Percent of the machine''s CPU time that was idle with I/O outstanding: a hint, not a measure of storage';
COMMENT ON COLUMN io_probe_iostat_query_full_row.cpu_idle_pct IS 'Percent of the machine''s CPU time that was idle without I/O outstanding';
COMMENT ON COLUMN io_probe_iostat_query_full_row.cpu_steal_pct IS 'Percent of the machine''s CPU time that the hypervisor gave to others';
COMMENT ON COLUMN io_probe_iostat_query_full_row.io_pressure_pct IS 'Percent of the interval in which at least one task of the machine waited for I/O (some of /proc/pressure/io); NULL if the kernel does not tell';
COMMENT ON COLUMN io_probe_iostat_query_full_row.io_pressure_full_pct IS 'Percent of the interval in which all tasks that had work waited for I/O (full of /proc/pressure/io); NULL if the kernel does not tell';
COMMENT ON COLUMN io_probe_iostat_query_full_row.cgroup_rmib_s IS 'Part of rmib_s that the server''s cgroup read; NULL without a cgroup that counts I/O';
COMMENT ON COLUMN io_probe_iostat_query_full_row.cgroup_wmib_s IS 'Part of wmib_s that the server''s cgroup wrote; NULL without a cgroup that counts I/O';
COMMENT ON COLUMN io_probe_iostat_query_full_row.sample IS 'Number of the interval, from 1; NULL in the last row';
COMMENT ON COLUMN io_probe_iostat_query_full_row.elapsed_ms IS 'How long the interval really lasted, in ms; the last interval ends with the query. The intervals of a long query are doubled, so that at most 3,600 are kept. Last row: how long the query took';
COMMENT ON COLUMN io_probe_iostat_query_full_row.doubt IS 'What speaks against this row''s figures: at most two codes of docs/interface.md, the worst first; NULL: nothing';
COMMENT ON COLUMN io_probe_iostat_query_full_row.status IS 'ok; unsupported: the device has no counters here, or no device is known; void: a counter went backwards, or the device appeared or disappeared';
COMMENT ON COLUMN io_probe_iostat_query_full_row.notes IS 'What to know about the interval, one sentence per element; the first interval has the limits that the cgroup sets';
COMMENT ON COLUMN io_probe_iostat_query_full_row.query_rows IS 'Rows that the query returned, all of which were discarded. This and the following columns are NULL but in the last row';
COMMENT ON COLUMN io_probe_iostat_query_full_row.shared_blks_hit IS 'Blocks that the query found in shared buffers, including its planning and its parallel workers. The columns from here to wal_bytes count as EXPLAIN (BUFFERS, WAL) does';
COMMENT ON COLUMN io_probe_iostat_query_full_row.shared_blks_read IS 'Blocks that the query asked the operating system for';
COMMENT ON COLUMN io_probe_iostat_query_full_row.shared_blks_dirtied IS 'Blocks that the query changed, hint bits and pruning included';
COMMENT ON COLUMN io_probe_iostat_query_full_row.shared_blks_written IS 'Blocks that the query itself had to write to make room in shared buffers, no matter which session had changed them';
COMMENT ON COLUMN io_probe_iostat_query_full_row.local_blks_hit IS 'Blocks of temporary tables that the query found in the session''s own buffers';
COMMENT ON COLUMN io_probe_iostat_query_full_row.local_blks_read IS 'Blocks of temporary tables that the query read';
COMMENT ON COLUMN io_probe_iostat_query_full_row.local_blks_written IS 'Blocks of temporary tables that the query wrote';
COMMENT ON COLUMN io_probe_iostat_query_full_row.temp_blks_read IS 'Blocks of temporary files (sorts, hashes) that the query read';
COMMENT ON COLUMN io_probe_iostat_query_full_row.temp_blks_written IS 'Blocks of temporary files that the query wrote';
COMMENT ON COLUMN io_probe_iostat_query_full_row.wal_bytes IS 'WAL that the query wrote, in bytes: a query that reads may prune pages and set hint bits';
COMMENT ON COLUMN io_probe_iostat_query_full_row.device_bytes IS 'Bytes fetched from storage for the query; NULL if unknown, as with parallel workers, and a note says why';
COMMENT ON COLUMN io_probe_iostat_query_full_row.device_source IS 'Whose reads device_bytes counts: backend (this process alone) or io_workers (which read for other sessions too)';

CREATE TYPE io_probe_iostat_query_row AS (
    device     text,
    elapsed_ms double precision,
    util_pct   double precision,
    aqu_sz     double precision,
    r_s        double precision,
    rmib_s     double precision,
    r_await_ms double precision,
    rareq_kb   double precision,
    wmib_s     double precision,
    doubt      text
);
COMMENT ON TYPE io_probe_iostat_query_row IS 'Row of io_probe_iostat_query: one device in one interval, as in io_probe_iostat; the last row has no device, but the query''s own figures';

CREATE FUNCTION io_probe_iostat_query(
    query   text,
    every   text     DEFAULT '1 s',
    options jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_iostat_query_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_iostat_query_wrapper';
COMMENT ON FUNCTION io_probe_iostat_query(text, text, jsonb) IS 'Runs a query with the caller''s rights, discards its rows, and returns the rows of io_probe_iostat for the time that it took, then one row with the query''s own figures. The query must be one statement that reads; a statement that writes is refused. Only statement_timeout limits its time. Takes no lock, so the query may call a probe, and this function up to four deep. Needs EXECUTE. Options: device';
REVOKE ALL ON FUNCTION io_probe_iostat_query(text, text, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_iostat_query_full(
    query   text,
    every   text     DEFAULT '1 s',
    options jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_iostat_query_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_iostat_query_wrapper';
COMMENT ON FUNCTION io_probe_iostat_query_full(text, text, jsonb) IS 'The rows of io_probe_iostat_query with all columns';
REVOKE ALL ON FUNCTION io_probe_iostat_query_full(text, text, jsonb) FROM PUBLIC;
