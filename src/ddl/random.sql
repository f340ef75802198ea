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
COMMENT ON COLUMN io_probe_random_full_row.iops IS 'Fetches a second over the wall clock; warm-up, holes, and the filling and emptying of the queue are left out; under a rate limit, what that allowed';
COMMENT ON COLUMN io_probe_random_full_row.err_pct IS 'Half the 95 % confidence interval of iops, in percent of it; NULL where there is no interval';
COMMENT ON COLUMN io_probe_random_full_row.lat_us IS 'Mean latency in microseconds, from issue to when the block is seen to be there; left out are warm-up, the requests that fill the queue, and those in flight while a further segment file of the relation was looked at; NULL where the server reads ahead';
COMMENT ON COLUMN io_probe_random_full_row.p50_us IS 'Median latency';
COMMENT ON COLUMN io_probe_random_full_row.p95_us IS 'Latency that 95 % did not exceed; a quantile is NULL where fewer than ten fetches lie above it';
COMMENT ON COLUMN io_probe_random_full_row.p99_us IS 'The same for 99 %';
COMMENT ON COLUMN io_probe_random_full_row.p999_us IS 'The same for 99.9 %';
COMMENT ON COLUMN io_probe_random_full_row.max_us IS 'Greatest latency';
COMMENT ON COLUMN io_probe_random_full_row.min_us IS 'Least latency';
COMMENT ON COLUMN io_probe_random_full_row.mdev_us IS 'Standard deviation of the latencies (of the population, as ioping)';
COMMENT ON COLUMN io_probe_random_full_row.shared_pct IS 'Share of the fetches, in percent, that shared buffers (of a temporary table the session''s own buffers) served';
COMMENT ON COLUMN io_probe_random_full_row.os_pct IS 'Share that the OS page cache served, in percent';
COMMENT ON COLUMN io_probe_random_full_row.device_pct IS 'Share that came from the device, in percent, as far as the kernel can tell: what a cache in the drive, a RAID controller or a hypervisor served counts as the device''s';
COMMENT ON COLUMN io_probe_random_full_row.blks IS 'Blocks fetched, warm-up included, each block at most once; blocks that were never written (hole_blks) are counted, though they need no read';
COMMENT ON COLUMN io_probe_random_full_row.complete IS 'Was every block of the relation fetched? If not, a note says what ended it';
COMMENT ON COLUMN io_probe_random_full_row.cold IS 'Verified: no fetch was served by a cache, or (after cold => true) only by what this run''s own readahead had brought into the OS page cache. NULL if the kernel does not tell, or nothing held data';
COMMENT ON COLUMN io_probe_random_full_row.doubt IS 'What speaks against the figures of this row, the worst first, at most two: see docs/interface.md; NULL: nothing';
COMMENT ON COLUMN io_probe_random_full_row.status IS 'ok; partial: something from outside ended it early; unsupported: not possible here; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_random_full_row.notes IS 'What to know about this row, a sentence each';
COMMENT ON COLUMN io_probe_random_full_row.elapsed_ms IS 'Wall clock of the run in ms, pauses and looks at the caches included; what it took to evict, and to write dirty pages back before, is not';
COMMENT ON COLUMN io_probe_random_full_row.service_iops IS 'What one requester gets: blks divided by the time spent in requests, as ioping''s other rate; times depth it is about iops';
COMMENT ON COLUMN io_probe_random_full_row.ci_low IS 'Lower end of the 95 % confidence interval of iops, within this run; NULL for runs under 20 slices of 1 ms and under a rate limit';
COMMENT ON COLUMN io_probe_random_full_row.ci_high IS 'Upper end of the same';
COMMENT ON COLUMN io_probe_random_full_row.mib_s IS 'iops times the block size, in MiB (2^20 bytes) a second';
COMMENT ON COLUMN io_probe_random_full_row.shared_us IS 'Mean latency in microseconds of the fetches that shared buffers served; NULL at a depth over 1';
COMMENT ON COLUMN io_probe_random_full_row.os_us IS 'The same of those that the OS page cache served; NULL at a depth over 1, where a hit waits until it is seen';
COMMENT ON COLUMN io_probe_random_full_row.device_us IS 'The same of those that came from the device';
COMMENT ON COLUMN io_probe_random_full_row.shared_blks_hit IS 'Fetches that shared buffers (or the session''s own) served';
COMMENT ON COLUMN io_probe_random_full_row.os_blks_hit IS 'Fetches of blocks that were wholly in the OS page cache right before';
COMMENT ON COLUMN io_probe_random_full_row.device_blks_read IS 'All other fetches, holes left out';
COMMENT ON COLUMN io_probe_random_full_row.shared_blks_written IS 'server: dirty pages (for a temporary table, of the session''s own buffers) that had to be written to make room';
COMMENT ON COLUMN io_probe_random_full_row.device_bytes IS 'Bytes fetched from storage for this row, readahead included';
COMMENT ON COLUMN io_probe_random_full_row.device_source IS 'Whose account device_bytes is: backend (this process alone) or io_workers (from PostgreSQL 18 on: all that the I/O workers read, for other sessions too)';
COMMENT ON COLUMN io_probe_random_full_row.device_ios IS 'Reads that the devices completed meanwhile, everyone''s';
COMMENT ON COLUMN io_probe_random_full_row.ios_per_block IS 'device_ios per fetch that came from the device: over 1, requests are split; under 1, merged';
COMMENT ON COLUMN io_probe_random_full_row.over_read IS 'device_bytes divided by the bytes of device_blks_read: over 1, the kernel read around the blocks that were asked for; under 1, it had parts of them';
COMMENT ON COLUMN io_probe_random_full_row.rareq_kb IS 'Mean size in kB of the devices'' reads, as iostat names it';
COMMENT ON COLUMN io_probe_random_full_row.aqu_sz IS 'Mean number of requests in flight, as iostat names it';
COMMENT ON COLUMN io_probe_random_full_row.r_await_ms IS 'Mean time in ms of a device read, queueing included, as iostat names it';
COMMENT ON COLUMN io_probe_random_full_row.util_pct IS 'Percent of the time with a request in flight, as iostat names it';
COMMENT ON COLUMN io_probe_random_full_row.other_bytes IS 'Bytes that the devices moved meanwhile beyond device_bytes: others'' reads, and all writes';
COMMENT ON COLUMN io_probe_random_full_row.warmup_us IS 'Latency of the first fetch, which is part of no other time';
COMMENT ON COLUMN io_probe_random_full_row.response_avg_us IS 'Under max_iops alone, at depth 1: mean time from when a fetch was due to its completion, which is more than its latency when it had to be issued late';
COMMENT ON COLUMN io_probe_random_full_row.response_p99_us IS 'Under max_iops alone, at depth 1: the response time that 99 % did not exceed';
COMMENT ON COLUMN io_probe_random_full_row.hole_blks IS 'Blocks that were never written to the file (on the server path: nor are in buffers); counted in blks, but not read';
COMMENT ON COLUMN io_probe_random_full_row.blks_total IS 'Blocks of the relation';
COMMENT ON COLUMN io_probe_random_full_row.depth IS 'Requests in flight; on the server path, how many reads the server may run ahead';
COMMENT ON COLUMN io_probe_random_full_row.engine IS 'How the reads were issued. pread: one at a time; io_uring, threads: several at a time; on the server path how the server reads: ReadBuffer (one block a time), PrefetchBuffer or a read stream (some ahead), from PostgreSQL 18 on with its io_method';
COMMENT ON COLUMN io_probe_random_full_row.seed IS 'Seed of the order; the same seed gives the same order of a relation of the same size';
COMMENT ON COLUMN io_probe_random_full_row.device IS 'Devices behind the relation, see io_probe_device';
COMMENT ON COLUMN io_probe_random_full_row.scheduler IS 'Their I/O scheduler';
COMMENT ON COLUMN io_probe_random_full_row.read_ahead_kb IS 'Readahead window in kB in force for newly opened files';
COMMENT ON COLUMN io_probe_random_full_row.relid IS 'Relation';
COMMENT ON COLUMN io_probe_random_full_row.schemaname IS 'Its schema';
COMMENT ON COLUMN io_probe_random_full_row.relname IS 'Its name';
COMMENT ON COLUMN io_probe_random_full_row.spcname IS 'Its tablespace';
COMMENT ON COLUMN io_probe_random_full_row.started_at IS 'When this path started';

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
    duration interval DEFAULT NULL,
    cold     boolean  DEFAULT false,
    depth    integer  DEFAULT 1,
    seed     bigint   DEFAULT NULL,
    options  jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_random_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 3
AS 'MODULE_PATHNAME', 'io_probe_random_wrapper';
COMMENT ON FUNCTION io_probe_random(regclass, text[], interval, boolean, integer, bigint, jsonb) IS 'Times fetches of single blocks of a relation in a seeded random order, on up to three paths, a row each, with the tier that served each and what the device saw. The paths share the duration; without one each lasts at most pg_io_probe.row_duration. Each reads at most max_bytes (pg_io_probe.default_max_bytes). Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, wait. Evicts nothing unless cold is true';
REVOKE ALL ON FUNCTION io_probe_random(regclass, text[], interval, boolean, integer, bigint, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_random_full(
    rel      regclass,
    paths    text[]   DEFAULT '{direct,server,os}',
    duration interval DEFAULT NULL,
    cold     boolean  DEFAULT false,
    depth    integer  DEFAULT 1,
    seed     bigint   DEFAULT NULL,
    options  jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_random_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 3
AS 'MODULE_PATHNAME', 'io_probe_random_wrapper';
COMMENT ON FUNCTION io_probe_random_full(regclass, text[], interval, boolean, integer, bigint, jsonb) IS 'The rows of io_probe_random with all columns';
REVOKE ALL ON FUNCTION io_probe_random_full(regclass, text[], interval, boolean, integer, bigint, jsonb) FROM PUBLIC;

CREATE TYPE io_probe_random_series_full_row AS (
    path           text,
    second         bigint,
    iops           double precision,
    lat_us         double precision,
    max_us         double precision,
    blks           bigint,
    shared_pct     double precision,
    os_pct         double precision,
    device_pct     double precision,
    r_s            double precision,
    rmib_s         double precision,
    rrqm_s         double precision,
    rareq_kb       double precision,
    aqu_sz         double precision,
    r_await_ms     double precision,
    util_pct       double precision,
    w_s            double precision,
    wmib_s         double precision,
    cpu_user_pct   double precision,
    cpu_system_pct double precision,
    cpu_iowait_pct double precision,
    cpu_idle_pct   double precision,
    cpu_steal_pct  double precision,
    elapsed_ms     double precision,
    doubt          text,
    status         text,
    notes          text[],
    sampled_at     timestamp with time zone
);
COMMENT ON TYPE io_probe_random_series_full_row IS 'Row of io_probe_random_series_full: one second of one path';
COMMENT ON COLUMN io_probe_random_series_full_row.path IS 'Path, see io_probe_random_row';
COMMENT ON COLUMN io_probe_random_series_full_row.second IS 'Number of the second, from 1; a slow request that ends it may make it longer';
COMMENT ON COLUMN io_probe_random_series_full_row.iops IS 'Fetches a second, pauses included';
COMMENT ON COLUMN io_probe_random_series_full_row.lat_us IS 'Mean latency in microseconds, warm-up included; NULL where the server reads ahead';
COMMENT ON COLUMN io_probe_random_series_full_row.max_us IS 'Greatest latency';
COMMENT ON COLUMN io_probe_random_series_full_row.blks IS 'Blocks fetched, holes left out';
COMMENT ON COLUMN io_probe_random_series_full_row.shared_pct IS 'Share of the fetches, in percent, that shared buffers (of a temporary table the session''s own buffers) served';
COMMENT ON COLUMN io_probe_random_series_full_row.os_pct IS 'Share that the OS page cache served, in percent';
COMMENT ON COLUMN io_probe_random_series_full_row.device_pct IS 'Share that came from the device, in percent';
COMMENT ON COLUMN io_probe_random_series_full_row.r_s IS 'Reads a second that the devices completed, everyone''s, as iostat names it';
COMMENT ON COLUMN io_probe_random_series_full_row.rmib_s IS 'MiB a second that the devices read';
COMMENT ON COLUMN io_probe_random_series_full_row.rrqm_s IS 'Reads a second that were merged into others before they reached the devices';
COMMENT ON COLUMN io_probe_random_series_full_row.rareq_kb IS 'Mean size in kB of the devices'' reads';
COMMENT ON COLUMN io_probe_random_series_full_row.aqu_sz IS 'Mean number of requests in flight';
COMMENT ON COLUMN io_probe_random_series_full_row.r_await_ms IS 'Mean time in ms of a device read, queueing included';
COMMENT ON COLUMN io_probe_random_series_full_row.util_pct IS 'Percent of the time with a request in flight';
COMMENT ON COLUMN io_probe_random_series_full_row.w_s IS 'Writes a second that the devices completed';
COMMENT ON COLUMN io_probe_random_series_full_row.wmib_s IS 'MiB a second that the devices wrote';
COMMENT ON COLUMN io_probe_random_series_full_row.cpu_user_pct IS 'Share of the machine''s CPU time in user code, all processes together';
COMMENT ON COLUMN io_probe_random_series_full_row.cpu_system_pct IS 'Share in the kernel, interrupts included';
COMMENT ON COLUMN io_probe_random_series_full_row.cpu_iowait_pct IS 'Share idle with I/O outstanding';
COMMENT ON COLUMN io_probe_random_series_full_row.cpu_idle_pct IS 'Share idle';
COMMENT ON COLUMN io_probe_random_series_full_row.cpu_steal_pct IS 'Share that the hypervisor gave to others';
COMMENT ON COLUMN io_probe_random_series_full_row.elapsed_ms IS 'What this second really lasted, in ms; the last one ends with the run';
COMMENT ON COLUMN io_probe_random_series_full_row.doubt IS 'What speaks against the figures of this row, the worst first, at most two: see docs/interface.md; NULL: nothing';
COMMENT ON COLUMN io_probe_random_series_full_row.status IS 'ok; partial: something from outside ended it early; unsupported: not possible here; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_random_series_full_row.notes IS 'What to know about the run, a sentence each; in the row of its last second';
COMMENT ON COLUMN io_probe_random_series_full_row.sampled_at IS 'When this second ended';

CREATE TYPE io_probe_random_series_row AS (
    path       text,
    second     bigint,
    iops       double precision,
    lat_us     double precision,
    max_us     double precision,
    device_pct double precision,
    r_s        double precision,
    r_await_ms double precision,
    util_pct   double precision,
    doubt      text
);
COMMENT ON TYPE io_probe_random_series_row IS 'Row of io_probe_random_series: one second of one path';

CREATE FUNCTION io_probe_random_series(
    rel      regclass,
    paths    text[]   DEFAULT '{direct,server,os}',
    duration interval DEFAULT NULL,
    cold     boolean  DEFAULT false,
    depth    integer  DEFAULT 1,
    seed     bigint   DEFAULT NULL,
    options  jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_random_series_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 15
AS 'MODULE_PATHNAME', 'io_probe_random_series_wrapper';
COMMENT ON FUNCTION io_probe_random_series(regclass, text[], interval, boolean, integer, bigint, jsonb) IS 'The run of io_probe_random second by second, beside what the devices and the processors did. Same arguments';
REVOKE ALL ON FUNCTION io_probe_random_series(regclass, text[], interval, boolean, integer, bigint, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_random_series_full(
    rel      regclass,
    paths    text[]   DEFAULT '{direct,server,os}',
    duration interval DEFAULT NULL,
    cold     boolean  DEFAULT false,
    depth    integer  DEFAULT 1,
    seed     bigint   DEFAULT NULL,
    options  jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_random_series_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 15
AS 'MODULE_PATHNAME', 'io_probe_random_series_wrapper';
COMMENT ON FUNCTION io_probe_random_series_full(regclass, text[], interval, boolean, integer, bigint, jsonb) IS 'The rows of io_probe_random_series with all columns';
REVOKE ALL ON FUNCTION io_probe_random_series_full(regclass, text[], interval, boolean, integer, bigint, jsonb) FROM PUBLIC;
