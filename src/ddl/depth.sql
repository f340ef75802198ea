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
COMMENT ON COLUMN io_probe_depth_full_row.iops IS 'Fetches per second of wall-clock time';
COMMENT ON COLUMN io_probe_depth_full_row.err_pct IS 'Half the width of the 95 % confidence interval of iops, in percent of iops; NULL without an interval, or without ci_high';
COMMENT ON COLUMN io_probe_depth_full_row.mib_s IS 'iops times the block size, in MiB (2^20 bytes) per second';
COMMENT ON COLUMN io_probe_depth_full_row.lat_us IS 'Mean latency in microseconds, from issue to completion';
COMMENT ON COLUMN io_probe_depth_full_row.p50_us IS 'Median latency in microseconds; NULL if fewer than ten fetches lie above it';
COMMENT ON COLUMN io_probe_depth_full_row.p95_us IS 'Latency in microseconds that 95 % of the fetches did not exceed; NULL if fewer than ten fetches lie above it';
COMMENT ON COLUMN io_probe_depth_full_row.p99_us IS 'Latency in microseconds that 99 % of the fetches did not exceed; NULL if fewer than ten fetches lie above it';
COMMENT ON COLUMN io_probe_depth_full_row.best IS 'Is this the smallest depth that is as good as the fastest (not surely slower by more than 5 %, nor seemingly by more than 10 %)? NULL under a rate limit, or if a depth has no interval';
COMMENT ON COLUMN io_probe_depth_full_row.engine IS 'How the reads were issued. pread: one at a time; io_uring, threads: several at a time';
COMMENT ON COLUMN io_probe_depth_full_row.doubt IS 'What speaks against this row''s figures: at most two codes of docs/interface.md, the worst first; NULL: nothing';
COMMENT ON COLUMN io_probe_depth_full_row.status IS 'ok; partial: something from outside ended the row early; unsupported: not possible here; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_depth_full_row.notes IS 'What to know about this row, one sentence per element';
COMMENT ON COLUMN io_probe_depth_full_row.blks IS 'Blocks fetched at this depth, including blocks that were never written (hole_blks), which need no read';
COMMENT ON COLUMN io_probe_depth_full_row.elapsed_ms IS 'Wall-clock time of this depth in ms';
COMMENT ON COLUMN io_probe_depth_full_row.ci_low IS 'Lower end of the 95 % confidence interval of iops, over the twenty rounds in which the depths took turns; NULL with fewer rounds';
COMMENT ON COLUMN io_probe_depth_full_row.ci_high IS 'Upper end of the 95 % confidence interval of iops; NULL without an interval, or if the interval has no upper end';
COMMENT ON COLUMN io_probe_depth_full_row.device_pct IS 'Percent of all fetches of the call that came from the device, as far as the kernel can tell; NULL if unknown';
COMMENT ON COLUMN io_probe_depth_full_row.hole_blks IS 'Blocks that were never written to the file: they count in blks, but are not read';
COMMENT ON COLUMN io_probe_depth_full_row.seed IS 'Seed of the random order';
COMMENT ON COLUMN io_probe_depth_full_row.device IS 'Devices behind the relation, see io_probe_device; NULL if unknown';
COMMENT ON COLUMN io_probe_depth_full_row.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_depth_full_row.read_ahead_kb IS 'Readahead window in kB that newly opened files get; NULL if unknown';
COMMENT ON COLUMN io_probe_depth_full_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_depth_full_row.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_depth_full_row.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_depth_full_row.spcname IS 'Tablespace of the relation';
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
    duration text      DEFAULT NULL,
    seed     bigint    DEFAULT NULL,
    options  jsonb     DEFAULT '{}'
)
RETURNS SETOF io_probe_depth_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 7
AS 'MODULE_PATHNAME', 'io_probe_depth_wrapper';
COMMENT ON FUNCTION io_probe_depth(regclass, integer[], text, bigint, jsonb) IS 'Times random fetches past the OS page cache at several depths, one row each, and marks the knee of the curve as best. The depths are by default 1, 2, 4 and so on to 64, as far as pg_io_probe.max_depth allows. They take turns in twenty rounds and share the duration. Evicts nothing. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, wait';
REVOKE ALL ON FUNCTION io_probe_depth(regclass, integer[], text, bigint, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_depth_full(
    rel      regclass,
    depths   integer[] DEFAULT NULL,
    duration text      DEFAULT NULL,
    seed     bigint    DEFAULT NULL,
    options  jsonb     DEFAULT '{}'
)
RETURNS SETOF io_probe_depth_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 7
AS 'MODULE_PATHNAME', 'io_probe_depth_wrapper';
COMMENT ON FUNCTION io_probe_depth_full(regclass, integer[], text, bigint, jsonb) IS 'The rows of io_probe_depth with all columns';
REVOKE ALL ON FUNCTION io_probe_depth_full(regclass, integer[], text, bigint, jsonb) FROM PUBLIC;
