-- What a sync costs: pg_test_fsync's table and the WAL's own pattern, on a nameless scratch file.

CREATE TYPE io_probe_sync_full_row AS (
    section               text,
    method                text,
    writes                integer,
    write_kb              integer,
    ops_s                 double precision,
    op_us                 double precision,
    err_pct               double precision,
    p50_us                double precision,
    p95_us                double precision,
    p99_us                double precision,
    max_us                double precision,
    in_use                boolean,
    direct                boolean,
    doubt                 text,
    status                text,
    notes                 text[],
    ops                   bigint,
    ci_low                double precision,
    ci_high               double precision,
    depth                 integer,
    flushes               bigint,
    device_writes_per_op  double precision,
    device_flushes_per_op double precision,
    elapsed_ms            double precision,
    device                text,
    scheduler             text,
    write_cache           text,
    fua                   boolean,
    fs_type               text,
    directory             text,
    started_at            timestamp with time zone
);
COMMENT ON TYPE io_probe_sync_full_row IS 'Row of io_probe_sync_full: one way to make writes durable';
COMMENT ON COLUMN io_probe_sync_full_row.section IS 'one_write, two_writes: one or two writes, then a sync; open_sync_size: 16 kB in 1 to 16 synchronous writes; other_fd: a write, synced through the same file descriptor or through another; no_sync: a write without a sync. These five are sections of pg_test_fsync and write the same place again and again. wal_segment: writes on through a zero-filled segment, as the server writes its WAL';
COMMENT ON COLUMN io_probe_sync_full_row.method IS 'Method as wal_sync_method names it (open_datasync: O_DSYNC; open_sync: O_SYNC), or the system calls in their order';
COMMENT ON COLUMN io_probe_sync_full_row.writes IS 'Write calls per operation';
COMMENT ON COLUMN io_probe_sync_full_row.write_kb IS 'Size of each write in kB of 1,024 bytes. wal_segment: 1, 2, 8 and 32 WAL blocks; at a depth over 1, the WAL of each commit; with option commit_bytes, one WAL block';
COMMENT ON COLUMN io_probe_sync_full_row.ops_s IS 'Operations (the writes and their sync) per second; at a depth over 1, commits of all committers together. NULL under a rate limit';
COMMENT ON COLUMN io_probe_sync_full_row.op_us IS 'Mean time of an operation in microseconds; at a depth over 1, elapsed time divided by the commits of all committers together';
COMMENT ON COLUMN io_probe_sync_full_row.err_pct IS 'Half the width of the 95 % confidence interval of op_us, in percent of op_us; NULL without an interval';
COMMENT ON COLUMN io_probe_sync_full_row.p50_us IS 'Median time of an operation in microseconds; at a depth over 1, how long a committer waited. NULL with fewer than 20 operations';
COMMENT ON COLUMN io_probe_sync_full_row.p95_us IS 'Time in microseconds that 95 % of the operations did not exceed; NULL with fewer than 200 operations';
COMMENT ON COLUMN io_probe_sync_full_row.p99_us IS 'Time in microseconds that 99 % of the operations did not exceed; NULL with fewer than 1,000 operations';
COMMENT ON COLUMN io_probe_sync_full_row.max_us IS 'Longest time of an operation in microseconds';
COMMENT ON COLUMN io_probe_sync_full_row.in_use IS 'Does this server sync its WAL in just this way (same wal_sync_method, same use of O_DIRECT)? NULL in open_sync_size, other_fd and no_sync';
COMMENT ON COLUMN io_probe_sync_full_row.direct IS 'Was the file opened with O_DIRECT?';
COMMENT ON COLUMN io_probe_sync_full_row.doubt IS 'What speaks against this row''s figures: at most two codes of docs/interface.md, the worst first; NULL: nothing';
COMMENT ON COLUMN io_probe_sync_full_row.status IS 'ok; partial: something from outside ended the row early; unsupported: not possible here; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_sync_full_row.notes IS 'What to know about this row, one sentence per element';
COMMENT ON COLUMN io_probe_sync_full_row.ops IS 'Operations measured, without the first of each turn, which is warm-up';
COMMENT ON COLUMN io_probe_sync_full_row.ci_low IS 'Lower end of the 95 % confidence interval of op_us, which covers how far the turns differed; NULL with fewer than three turns of 0.1 s';
COMMENT ON COLUMN io_probe_sync_full_row.ci_high IS 'Upper end of the 95 % confidence interval of op_us; NULL without an interval';
COMMENT ON COLUMN io_probe_sync_full_row.depth IS 'Number of committers that share one WAL. A committer does not flush if another one''s flush has covered its WAL';
COMMENT ON COLUMN io_probe_sync_full_row.flushes IS 'Syncs that made the operations durable. With open_datasync and open_sync each write is one; fewer than ops if committers shared syncs; 0 in no_sync';
COMMENT ON COLUMN io_probe_sync_full_row.device_writes_per_op IS 'Write requests that the device completed per operation, for all processes; kernels count the request that carries a flush as one more. NULL if unknown';
COMMENT ON COLUMN io_probe_sync_full_row.device_flushes_per_op IS 'Cache flushes that the device completed per operation, for all processes; 0 if the device has no volatile cache, or if writes pass the cache (FUA). NULL if unknown';
COMMENT ON COLUMN io_probe_sync_full_row.elapsed_ms IS 'Time spent in the operations, in milliseconds';
COMMENT ON COLUMN io_probe_sync_full_row.device IS 'Devices behind the directory, see io_probe_device; NULL if unknown';
COMMENT ON COLUMN io_probe_sync_full_row.scheduler IS 'I/O scheduler of the devices behind the directory';
COMMENT ON COLUMN io_probe_sync_full_row.write_cache IS 'write back: the device has a volatile cache, which a sync must flush; write through: it has none, or says so';
COMMENT ON COLUMN io_probe_sync_full_row.fua IS 'Can a single write pass the device''s cache (Force Unit Access)?';
COMMENT ON COLUMN io_probe_sync_full_row.fs_type IS 'Type of the file system';
COMMENT ON COLUMN io_probe_sync_full_row.directory IS 'Directory of the scratch file, symbolic links resolved';
COMMENT ON COLUMN io_probe_sync_full_row.started_at IS 'When the call started';

CREATE TYPE io_probe_sync_row AS (
    section  text,
    method   text,
    direct   boolean,
    write_kb integer,
    ops_s    double precision,
    err_pct  double precision,
    p50_us   double precision,
    p99_us   double precision,
    in_use   boolean,
    doubt    text
);
COMMENT ON TYPE io_probe_sync_row IS 'Row of io_probe_sync: one way to make writes durable';

CREATE FUNCTION io_probe_sync(
    spcname  text     DEFAULT NULL,
    sections text[]   DEFAULT NULL,
    duration text     DEFAULT NULL,
    depth    integer  DEFAULT 1,
    write_kb integer  DEFAULT NULL,
    options  jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_sync_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 40
AS 'MODULE_PATHNAME', 'io_probe_sync_wrapper';
COMMENT ON FUNCTION io_probe_sync(text, text[], text, integer, integer, jsonb) IS 'Times writes and syncs of a nameless scratch file beside the WAL, or in tablespace spcname. While it runs, commits of other sessions wait. Sections: those of pg_test_fsync, with writes of write_kb (by default a WAL block), and wal_segment. All rows take turns and share the duration; without a duration each row lasts at most pg_io_probe.row_duration, and all together half of pg_io_probe.max_duration. depth over 1: that many committers share one WAL (section wal_segment). Needs EXECUTE, and CREATE on a tablespace other than the database''s own. Options: commit_bytes (WAL of a commit, which may then share a block with others; depth over 1), commit_delay (microseconds, by default as this server would wait; depth over 1), direct (wal_segment with or without O_DIRECT, by default as this server), max_bytes, max_iops, max_mib_s, max_util_pct (these four limit what is made durable, not no_sync), max_p99, precision, wait';
REVOKE ALL ON FUNCTION io_probe_sync(text, text[], text, integer, integer, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_sync_full(
    spcname  text     DEFAULT NULL,
    sections text[]   DEFAULT NULL,
    duration text     DEFAULT NULL,
    depth    integer  DEFAULT 1,
    write_kb integer  DEFAULT NULL,
    options  jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_sync_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 40
AS 'MODULE_PATHNAME', 'io_probe_sync_wrapper';
COMMENT ON FUNCTION io_probe_sync_full(text, text[], text, integer, integer, jsonb) IS 'The rows of io_probe_sync with all columns';
REVOKE ALL ON FUNCTION io_probe_sync_full(text, text[], text, integer, integer, jsonb) FROM PUBLIC;
