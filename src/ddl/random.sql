-- Random fetches of single blocks.

CREATE TYPE io_probe_random_full_row AS (
    path                text,
    iops                double precision,
    err_pct             double precision,
    lat_us              double precision,
    p50_us              double precision,
    p95_us              double precision,
    p99_us              double precision,
    p999_us             double precision,
    max_us              double precision,
    min_us              double precision,
    mdev_us             double precision,
    shared_pct          double precision,
    os_pct              double precision,
    device_pct          double precision,
    blks                bigint,
    complete            boolean,
    cold                boolean,
    doubt               text,
    status              text,
    notes               text[],
    elapsed_ms          double precision,
    service_iops        double precision,
    ci_low              double precision,
    ci_high             double precision,
    mib_s               double precision,
    shared_us           double precision,
    os_us               double precision,
    device_us           double precision,
    shared_blks_hit     bigint,
    os_blks_hit         bigint,
    device_blks_read    bigint,
    shared_blks_written bigint,
    device_bytes        bigint,
    device_source       text,
    device_ios          bigint,
    ios_per_block       double precision,
    over_read           double precision,
    rareq_kb            double precision,
    aqu_sz              double precision,
    r_await_ms          double precision,
    util_pct            double precision,
    other_bytes         bigint,
    warmup_us           double precision,
    response_avg_us     double precision,
    response_p99_us     double precision,
    hole_blks           bigint,
    blks_total          bigint,
    depth               integer,
    engine              text,
    seed                bigint,
    device              text,
    scheduler           text,
    read_ahead_kb       bigint,
    relid               regclass,
    schemaname          text,
    relname             text,
    spcname             text,
    started_at          timestamp with time zone
);
COMMENT ON TYPE io_probe_random_full_row IS 'Row of io_probe_random_full: one path';
COMMENT ON COLUMN io_probe_random_full_row.path IS 'direct: O_DIRECT; server: through the buffer manager, into a small ring of buffers; os: pread through the OS page cache';
COMMENT ON COLUMN io_probe_random_full_row.iops IS 'Fetches per second of wall-clock time, without warm-up, holes and the time to fill and empty the queue. Under a rate limit: what the limit allowed';
COMMENT ON COLUMN io_probe_random_full_row.err_pct IS 'Half the width of the 95 % confidence interval of iops, in percent of iops; NULL without an interval, or without ci_high';
COMMENT ON COLUMN io_probe_random_full_row.lat_us IS 'Mean latency in microseconds, from issue until the block is seen to be there. Left out: warm-up, requests that fill the queue, and requests in flight while another segment file of the relation was looked at. NULL if the server reads ahead';
COMMENT ON COLUMN io_probe_random_full_row.p50_us IS 'Median latency in microseconds; NULL if fewer than ten fetches lie above it';
COMMENT ON COLUMN io_probe_random_full_row.p95_us IS 'Latency in microseconds that 95 % of the fetches did not exceed; NULL if fewer than ten fetches lie above it';
COMMENT ON COLUMN io_probe_random_full_row.p99_us IS 'Latency in microseconds that 99 % of the fetches did not exceed; NULL if fewer than ten fetches lie above it';
COMMENT ON COLUMN io_probe_random_full_row.p999_us IS 'Latency in microseconds that 99.9 % of the fetches did not exceed; NULL if fewer than ten fetches lie above it';
COMMENT ON COLUMN io_probe_random_full_row.max_us IS 'Greatest latency in microseconds';
COMMENT ON COLUMN io_probe_random_full_row.min_us IS 'Least latency in microseconds';
COMMENT ON COLUMN io_probe_random_full_row.mdev_us IS 'Standard deviation of the latencies in microseconds (of the population, as ioping)';
COMMENT ON COLUMN io_probe_random_full_row.shared_pct IS 'Percent of the fetches that shared buffers (of a temporary table: the session''s own buffers) served; NULL if unknown';
COMMENT ON COLUMN io_probe_random_full_row.os_pct IS 'Percent of the fetches that the OS page cache served; NULL if unknown';
COMMENT ON COLUMN io_probe_random_full_row.device_pct IS 'Percent of the fetches that came from the device, as far as the kernel can tell: it counts what a cache in the drive, a RAID controller or a hypervisor served as the device''s. NULL if unknown';
COMMENT ON COLUMN io_probe_random_full_row.blks IS 'Blocks fetched, each at most once, including warm-up and blocks that were never written (hole_blks), which need no read';
COMMENT ON COLUMN io_probe_random_full_row.complete IS 'Was every block of the relation fetched? If not, a note says what ended the run';
COMMENT ON COLUMN io_probe_random_full_row.cold IS 'true: verified that no cache served a fetch, or (after cold => true) only with blocks that this run''s own readahead had brought into the OS page cache. NULL if the kernel does not tell, or if no block held data';
COMMENT ON COLUMN io_probe_random_full_row.doubt IS 'What speaks against this row''s figures: at most two codes of docs/interface.md, the worst first; NULL: nothing';
COMMENT ON COLUMN io_probe_random_full_row.status IS 'ok; partial: something from outside ended the row early; unsupported: not possible here; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_random_full_row.notes IS 'What to know about this row, one sentence per element';
COMMENT ON COLUMN io_probe_random_full_row.elapsed_ms IS 'Wall-clock time of the run in ms, including pauses and looks at the caches, without the time to evict and to write dirty pages back before';
COMMENT ON COLUMN io_probe_random_full_row.service_iops IS 'Fetches per second that one requester gets: fetches divided by the time spent in them, as ioping''s other rate. Times depth, it is about iops';
COMMENT ON COLUMN io_probe_random_full_row.ci_low IS 'Lower end of the 95 % confidence interval of iops, within this run; NULL if the run has fewer than 20 slices of 1 ms, and under a rate limit';
COMMENT ON COLUMN io_probe_random_full_row.ci_high IS 'Upper end of the 95 % confidence interval of iops; NULL without an interval, or if the interval has no upper end';
COMMENT ON COLUMN io_probe_random_full_row.mib_s IS 'iops times the block size, in MiB (2^20 bytes) per second';
COMMENT ON COLUMN io_probe_random_full_row.shared_us IS 'Mean latency in microseconds of the fetches that shared buffers served; NULL at a depth over 1';
COMMENT ON COLUMN io_probe_random_full_row.os_us IS 'Mean latency in microseconds of the fetches that the OS page cache served; NULL at a depth over 1, where a hit waits until it is seen';
COMMENT ON COLUMN io_probe_random_full_row.device_us IS 'Mean latency in microseconds of the fetches that came from the device; NULL if there are none';
COMMENT ON COLUMN io_probe_random_full_row.shared_blks_hit IS 'Fetches that shared buffers (or the session''s own buffers) served; NULL if unknown';
COMMENT ON COLUMN io_probe_random_full_row.os_blks_hit IS 'Fetches of blocks that were wholly in the OS page cache right before the fetch; NULL if unknown';
COMMENT ON COLUMN io_probe_random_full_row.device_blks_read IS 'Fetches that neither shared buffers nor the OS page cache served, without holes';
COMMENT ON COLUMN io_probe_random_full_row.shared_blks_written IS 'Path server: dirty pages of shared buffers (for a temporary table: of the session''s own buffers) that had to be written to make room; NULL for other paths';
COMMENT ON COLUMN io_probe_random_full_row.device_bytes IS 'Bytes fetched from storage for this row, readahead included; NULL if unknown';
COMMENT ON COLUMN io_probe_random_full_row.device_source IS 'Whose reads device_bytes counts: backend (this process alone) or io_workers (from PostgreSQL 18 on: all that the I/O workers read, for other sessions too)';
COMMENT ON COLUMN io_probe_random_full_row.device_ios IS 'Reads that the devices completed meanwhile, for all processes';
COMMENT ON COLUMN io_probe_random_full_row.ios_per_block IS 'device_ios per fetch that came from the device. Over 1: requests are split; under 1: requests are merged';
COMMENT ON COLUMN io_probe_random_full_row.over_read IS 'device_bytes divided by the bytes of device_blks_read. Over 1: the kernel read around the requested blocks; under 1: it had parts of them in the cache';
COMMENT ON COLUMN io_probe_random_full_row.rareq_kb IS 'Mean size of the devices'' reads in kB (rareq-sz of iostat); NULL without reads';
COMMENT ON COLUMN io_probe_random_full_row.aqu_sz IS 'Mean number of requests queued or in flight (aqu-sz of iostat)';
COMMENT ON COLUMN io_probe_random_full_row.r_await_ms IS 'Mean time of a device read in ms, queueing included (r_await of iostat); NULL without reads';
COMMENT ON COLUMN io_probe_random_full_row.util_pct IS 'Percent of the time with at least one request in flight (%util of iostat); of several devices, the busiest''s';
COMMENT ON COLUMN io_probe_random_full_row.other_bytes IS 'Bytes that the devices moved meanwhile beyond device_bytes: reads for other processes, and all writes';
COMMENT ON COLUMN io_probe_random_full_row.warmup_us IS 'Latency of the first fetch in microseconds, which is part of no other time';
COMMENT ON COLUMN io_probe_random_full_row.response_avg_us IS 'Mean time in microseconds from when a fetch was due to its completion, which is more than its latency if it was issued late. NULL unless max_iops alone limits the rate, at depth 1';
COMMENT ON COLUMN io_probe_random_full_row.response_p99_us IS 'Time in microseconds from when a fetch was due to its completion that 99 % did not exceed. NULL unless max_iops alone limits the rate, at depth 1';
COMMENT ON COLUMN io_probe_random_full_row.hole_blks IS 'Blocks that were never written to the file (path server: and are in no buffer). They count in blks, but are not read';
COMMENT ON COLUMN io_probe_random_full_row.blks_total IS 'Blocks of the relation';
COMMENT ON COLUMN io_probe_random_full_row.depth IS 'Requests in flight; path server: how many reads the server may issue ahead';
COMMENT ON COLUMN io_probe_random_full_row.engine IS 'How the reads were issued. pread: one at a time; io_uring, threads: several at a time. Path server: ReadBuffer (one block at a time), PrefetchBuffer or a read stream (some ahead), from PostgreSQL 18 on with the server''s io_method';
COMMENT ON COLUMN io_probe_random_full_row.seed IS 'Seed of the random order; the same seed gives the same order of a relation of the same size';
COMMENT ON COLUMN io_probe_random_full_row.device IS 'Devices behind the relation, see io_probe_device; NULL if unknown';
COMMENT ON COLUMN io_probe_random_full_row.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_random_full_row.read_ahead_kb IS 'Readahead window in kB that newly opened files get; NULL if unknown';
COMMENT ON COLUMN io_probe_random_full_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_random_full_row.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_random_full_row.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_random_full_row.spcname IS 'Tablespace of the relation';
COMMENT ON COLUMN io_probe_random_full_row.started_at IS 'When the run on this path started';

CREATE TYPE io_probe_random_row AS (
    path       text,
    iops       double precision,
    err_pct    double precision,
    p50_us     double precision,
    p99_us     double precision,
    os_us      double precision,
    device_us  double precision,
    device_pct double precision,
    relid      regclass,
    doubt      text
);
COMMENT ON TYPE io_probe_random_row IS 'Row of io_probe_random: one path';

CREATE FUNCTION io_probe_random(
    rel      regclass,
    paths    text[]   DEFAULT '{direct,server,os}',
    duration text     DEFAULT NULL,
    cold     boolean  DEFAULT false,
    depth    integer  DEFAULT 1,
    seed     bigint   DEFAULT NULL,
    options  jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_random_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 3
AS 'MODULE_PATHNAME', 'io_probe_random_wrapper';
COMMENT ON FUNCTION io_probe_random(regclass, text[], text, boolean, integer, bigint, jsonb) IS 'Times fetches of single blocks of a relation in a seeded random order on up to three paths, one row each, with the tier that served the fetches and what the devices did. The paths share the duration; without a duration each path lasts at most pg_io_probe.row_duration. Each path reads at most max_bytes (default pg_io_probe.default_max_bytes). Evicts nothing unless cold is true, which needs EXECUTE on io_probe_evict. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, wait';
REVOKE ALL ON FUNCTION io_probe_random(regclass, text[], text, boolean, integer, bigint, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_random_full(
    rel      regclass,
    paths    text[]   DEFAULT '{direct,server,os}',
    duration text     DEFAULT NULL,
    cold     boolean  DEFAULT false,
    depth    integer  DEFAULT 1,
    seed     bigint   DEFAULT NULL,
    options  jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_random_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 3
AS 'MODULE_PATHNAME', 'io_probe_random_wrapper';
COMMENT ON FUNCTION io_probe_random_full(regclass, text[], text, boolean, integer, bigint, jsonb) IS 'The rows of io_probe_random with all columns';
REVOKE ALL ON FUNCTION io_probe_random_full(regclass, text[], text, boolean, integer, bigint, jsonb) FROM PUBLIC;
