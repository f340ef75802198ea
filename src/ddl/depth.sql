-- Random fetches at several depths.

CREATE TYPE io_probe_depth_full_row AS (
    depth         integer,
    iops          double precision,
    err_pct       double precision,
    mib_s         double precision,
    lat_us        double precision,
    p50_us        double precision,
    p95_us        double precision,
    p99_us        double precision,
    best          boolean,
    engine        text,
    doubt         text,
    status        text,
    notes         text[],
    blks          bigint,
    elapsed_ms    double precision,
    ci_low        double precision,
    ci_high       double precision,
    device_pct    double precision,
    hole_blks     bigint,
    seed          bigint,
    device        text,
    scheduler     text,
    read_ahead_kb bigint,
    relid         regclass,
    schemaname    text,
    relname       text,
    spcname       text,
    started_at    timestamp with time zone
);
COMMENT ON TYPE io_probe_depth_full_row IS 'Row of io_probe_depth_full: one depth';
COMMENT ON COLUMN io_probe_depth_full_row.depth IS 'Requests in flight';
COMMENT ON COLUMN io_probe_depth_full_row.iops IS 'Fetches a second over the wall clock';
COMMENT ON COLUMN io_probe_depth_full_row.err_pct IS 'Half the 95 % confidence interval of iops, in percent of it; NULL where there is no interval';
COMMENT ON COLUMN io_probe_depth_full_row.mib_s IS 'iops times the block size, in MiB (2^20 bytes) a second';
COMMENT ON COLUMN io_probe_depth_full_row.lat_us IS 'Mean latency in microseconds, from issue to completion';
COMMENT ON COLUMN io_probe_depth_full_row.p50_us IS 'Median latency';
COMMENT ON COLUMN io_probe_depth_full_row.p95_us IS 'Latency that 95 % did not exceed; a quantile is NULL where fewer than ten fetches lie above it';
COMMENT ON COLUMN io_probe_depth_full_row.p99_us IS 'The same for 99 %';
COMMENT ON COLUMN io_probe_depth_full_row.best IS 'Is this the smallest depth that is as good as the best: not surely slower by more than 5 %, given the error of both? NULL under a rate limit, or where a depth has no interval';
COMMENT ON COLUMN io_probe_depth_full_row.engine IS 'How the reads were issued. pread: one at a time; io_uring, threads: several at a time';
COMMENT ON COLUMN io_probe_depth_full_row.doubt IS 'What speaks against the figures of this row, the worst first, at most two: see docs/interface.md; NULL: nothing';
COMMENT ON COLUMN io_probe_depth_full_row.status IS 'ok; partial: something from outside ended it early; unsupported: not possible here; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_depth_full_row.notes IS 'What to know about this row, a sentence each';
COMMENT ON COLUMN io_probe_depth_full_row.blks IS 'Blocks fetched at this depth; those that were never written (hole_blks) are counted, though they need no read';
COMMENT ON COLUMN io_probe_depth_full_row.elapsed_ms IS 'Wall clock of this depth in ms';
COMMENT ON COLUMN io_probe_depth_full_row.ci_low IS 'Lower end of the 95 % confidence interval of iops, over the twenty rounds in which the depths took turns; NULL where there were fewer';
COMMENT ON COLUMN io_probe_depth_full_row.ci_high IS 'Upper end of the same';
COMMENT ON COLUMN io_probe_depth_full_row.device_pct IS 'Share of all fetches of the call that came from the device, in percent, as far as the kernel can tell';
COMMENT ON COLUMN io_probe_depth_full_row.hole_blks IS 'Blocks that were never written to the file: counted in blks, but not read';
COMMENT ON COLUMN io_probe_depth_full_row.seed IS 'Seed of the order';
COMMENT ON COLUMN io_probe_depth_full_row.device IS 'Devices behind the relation, see io_probe_device';
COMMENT ON COLUMN io_probe_depth_full_row.scheduler IS 'Their I/O scheduler';
COMMENT ON COLUMN io_probe_depth_full_row.read_ahead_kb IS 'Readahead window in kB in force for newly opened files';
COMMENT ON COLUMN io_probe_depth_full_row.relid IS 'Relation';
COMMENT ON COLUMN io_probe_depth_full_row.schemaname IS 'Its schema';
COMMENT ON COLUMN io_probe_depth_full_row.relname IS 'Its name';
COMMENT ON COLUMN io_probe_depth_full_row.spcname IS 'Its tablespace';
COMMENT ON COLUMN io_probe_depth_full_row.started_at IS 'When the call started';

CREATE TYPE io_probe_depth_row AS (
    depth   integer,
    iops    double precision,
    err_pct double precision,
    mib_s   double precision,
    p50_us  double precision,
    p99_us  double precision,
    best    boolean,
    relid   regclass,
    doubt   text
);
COMMENT ON TYPE io_probe_depth_row IS 'Row of io_probe_depth: one depth';

CREATE FUNCTION io_probe_depth(
    rel      regclass,
    depths   integer[] DEFAULT NULL,
    duration interval  DEFAULT NULL,
    seed     bigint    DEFAULT NULL,
    options  jsonb     DEFAULT '{}'
)
RETURNS SETOF io_probe_depth_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 7
AS 'MODULE_PATHNAME', 'io_probe_depth_wrapper';
COMMENT ON FUNCTION io_probe_depth(regclass, integer[], interval, bigint, jsonb) IS 'Random fetches past the page cache at several depths, by default 1, 2, 4 and so on to 64 as far as max_depth allows, which take turns in twenty rounds, a row each, and the knee of the curve. The depths share the duration. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, wait';
REVOKE ALL ON FUNCTION io_probe_depth(regclass, integer[], interval, bigint, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_depth_full(
    rel      regclass,
    depths   integer[] DEFAULT NULL,
    duration interval  DEFAULT NULL,
    seed     bigint    DEFAULT NULL,
    options  jsonb     DEFAULT '{}'
)
RETURNS SETOF io_probe_depth_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 7
AS 'MODULE_PATHNAME', 'io_probe_depth_wrapper';
COMMENT ON FUNCTION io_probe_depth_full(regclass, integer[], interval, bigint, jsonb) IS 'The rows of io_probe_depth with all columns';
REVOKE ALL ON FUNCTION io_probe_depth_full(regclass, integer[], interval, bigint, jsonb) FROM PUBLIC;
