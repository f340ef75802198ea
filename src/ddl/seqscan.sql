-- The timed scan.

CREATE TYPE io_probe_seqscan_full_row AS (
    path                text,
    mib_s               double precision,
    block_us            double precision,
    err_pct             double precision,
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
    ci_low              double precision,
    ci_high             double precision,
    shared_blks_hit     bigint,
    shared_blks_read    bigint,
    shared_blks_written bigint,
    local_blks_hit      bigint,
    local_blks_read     bigint,
    os_blks_cached      bigint,
    hole_blks           bigint,
    device_bytes        bigint,
    device_source       text,
    device_ios          bigint,
    ios_per_block       double precision,
    rareq_kb            double precision,
    aqu_sz              double precision,
    r_await_ms          double precision,
    util_pct            double precision,
    other_bytes         bigint,
    blks_total          bigint,
    chunk_kb            bigint,
    depth               integer,
    engine              text,
    device              text,
    scheduler           text,
    read_ahead_kb       bigint,
    fork                text,
    relid               regclass,
    schemaname          text,
    relname             text,
    spcname             text,
    started_at          timestamp with time zone
);
COMMENT ON TYPE io_probe_seqscan_full_row IS 'Row of io_probe_seqscan_full: one path';
COMMENT ON COLUMN io_probe_seqscan_full_row.path IS 'direct: O_DIRECT, large requests at a depth; server: through the buffer manager as the server reads; os: through the OS page cache, one block a call';
COMMENT ON COLUMN io_probe_seqscan_full_row.mib_s IS 'MiB (2^20 bytes) a second while reading, of the blocks that hold data; NULL where a rate limit made the scan pause';
COMMENT ON COLUMN io_probe_seqscan_full_row.block_us IS 'Microseconds per block: total time over total blocks. A run is timed in slices of 1 ms or more; if it has more than 20, the first is left out as warm-up';
COMMENT ON COLUMN io_probe_seqscan_full_row.err_pct IS 'Half the 95 % confidence interval of block_us, in percent of it; NULL where there is no interval';
COMMENT ON COLUMN io_probe_seqscan_full_row.shared_pct IS 'Share of the blocks, in percent, that shared buffers (of a temporary table the session''s own buffers) served';
COMMENT ON COLUMN io_probe_seqscan_full_row.os_pct IS 'Share that the OS page cache served, in percent';
COMMENT ON COLUMN io_probe_seqscan_full_row.device_pct IS 'Share that came from the device, in percent, as far as the kernel can tell: what a cache in the drive, a RAID controller or a hypervisor served counts as the device''s';
COMMENT ON COLUMN io_probe_seqscan_full_row.blks IS 'Blocks read, those included that were never written (hole_blks)';
COMMENT ON COLUMN io_probe_seqscan_full_row.complete IS 'Was everything read up to the end of the relation? If not, a note says what ended it';
COMMENT ON COLUMN io_probe_seqscan_full_row.cold IS 'Verified: none of the blocks read was in the OS page cache before, and none was found in shared buffers; NULL if the kernel does not tell, or nothing held data';
COMMENT ON COLUMN io_probe_seqscan_full_row.doubt IS 'What speaks against the figures of this row, the worst first, at most two: see docs/interface.md; NULL: nothing';
COMMENT ON COLUMN io_probe_seqscan_full_row.status IS 'ok; partial: something from outside ended it early; unsupported: not possible here; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_seqscan_full_row.notes IS 'What to know about this row, a sentence each';
COMMENT ON COLUMN io_probe_seqscan_full_row.elapsed_ms IS 'Wall clock of the scan in ms, pauses of a rate limit and blocks that were never written included; what it took to evict or to write back is not';
COMMENT ON COLUMN io_probe_seqscan_full_row.ci_low IS 'Lower end of the 95 % confidence interval of block_us, within this run; NULL for runs under 20 slices of 1 ms';
COMMENT ON COLUMN io_probe_seqscan_full_row.ci_high IS 'Upper end of the same';
COMMENT ON COLUMN io_probe_seqscan_full_row.shared_blks_hit IS 'server: blocks found in shared buffers';
COMMENT ON COLUMN io_probe_seqscan_full_row.shared_blks_read IS 'server: blocks read into shared buffers';
COMMENT ON COLUMN io_probe_seqscan_full_row.shared_blks_written IS 'server: dirty pages (for a temporary table, of the session''s own buffers) that had to be written to make room';
COMMENT ON COLUMN io_probe_seqscan_full_row.local_blks_hit IS 'server, temporary table: blocks found in the session''s own buffers';
COMMENT ON COLUMN io_probe_seqscan_full_row.local_blks_read IS 'server, temporary table: blocks read into them';
COMMENT ON COLUMN io_probe_seqscan_full_row.os_blks_cached IS 'Blocks of the range read that the OS page cache held before; those never written are left out';
COMMENT ON COLUMN io_probe_seqscan_full_row.hole_blks IS 'Blocks that were never written to the file (on the server path: nor are in buffers); read, but left out of the rate';
COMMENT ON COLUMN io_probe_seqscan_full_row.device_bytes IS 'Bytes fetched from storage for this row, readahead included';
COMMENT ON COLUMN io_probe_seqscan_full_row.device_source IS 'Whose account device_bytes is: backend (this process alone) or io_workers (from PostgreSQL 18 on: all that the I/O workers read, for other sessions too)';
COMMENT ON COLUMN io_probe_seqscan_full_row.device_ios IS 'Reads that the devices completed meanwhile, everyone''s';
COMMENT ON COLUMN io_probe_seqscan_full_row.ios_per_block IS 'device_ios per block that came from the device: over 1, requests are split; under 1, merged';
COMMENT ON COLUMN io_probe_seqscan_full_row.rareq_kb IS 'Mean size in kB of the devices'' reads, as iostat names it';
COMMENT ON COLUMN io_probe_seqscan_full_row.aqu_sz IS 'Mean number of requests in flight, as iostat names it';
COMMENT ON COLUMN io_probe_seqscan_full_row.r_await_ms IS 'Mean time in ms of a device read, queueing included, as iostat names it';
COMMENT ON COLUMN io_probe_seqscan_full_row.util_pct IS 'Percent of the time with a request in flight, as iostat names it';
COMMENT ON COLUMN io_probe_seqscan_full_row.other_bytes IS 'Bytes that the devices moved meanwhile beyond device_bytes: others'' reads, and all writes';
COMMENT ON COLUMN io_probe_seqscan_full_row.blks_total IS 'Blocks of the fork';
COMMENT ON COLUMN io_probe_seqscan_full_row.chunk_kb IS 'Size in kB of the requests; NULL where the server decides';
COMMENT ON COLUMN io_probe_seqscan_full_row.depth IS 'Requests in flight; NULL where the server decides';
COMMENT ON COLUMN io_probe_seqscan_full_row.engine IS 'How the reads were issued. pread: one at a time; io_uring, threads: several at a time; on the server path how the server reads: ReadBuffer (one block a time), or a read stream (several), from PostgreSQL 18 on with its io_method';
COMMENT ON COLUMN io_probe_seqscan_full_row.device IS 'Devices behind the relation, see io_probe_device';
COMMENT ON COLUMN io_probe_seqscan_full_row.scheduler IS 'Their I/O scheduler';
COMMENT ON COLUMN io_probe_seqscan_full_row.read_ahead_kb IS 'Readahead window in kB in force for newly opened files';
COMMENT ON COLUMN io_probe_seqscan_full_row.fork IS 'Fork of the relation';
COMMENT ON COLUMN io_probe_seqscan_full_row.relid IS 'Relation';
COMMENT ON COLUMN io_probe_seqscan_full_row.schemaname IS 'Its schema';
COMMENT ON COLUMN io_probe_seqscan_full_row.relname IS 'Its name';
COMMENT ON COLUMN io_probe_seqscan_full_row.spcname IS 'Its tablespace';
COMMENT ON COLUMN io_probe_seqscan_full_row.started_at IS 'When this path started';

CREATE TYPE io_probe_seqscan_row AS (
    path       text,
    mib_s      double precision,
    block_us   double precision,
    err_pct    double precision,
    shared_pct double precision,
    os_pct     double precision,
    device_pct double precision,
    relid      regclass,
    doubt      text
);
COMMENT ON TYPE io_probe_seqscan_row IS 'Row of io_probe_seqscan: one path';

CREATE FUNCTION io_probe_seqscan(
    rel       regclass,
    paths     text[]   DEFAULT '{direct,server,os}',
    duration  interval DEFAULT NULL,
    cold      boolean  DEFAULT false,
    depth     integer  DEFAULT NULL,
    chunk_kb  integer  DEFAULT NULL,
    fork      text     DEFAULT 'main',
    options   jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_seqscan_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 3
AS 'MODULE_PATHNAME', 'io_probe_seqscan_wrapper';
COMMENT ON FUNCTION io_probe_seqscan(regclass, text[], interval, boolean, integer, integer, text, jsonb) IS 'Times a scan of a relation on up to three paths, a row each, with the tier that served the blocks and what the device saw. The paths share the duration; without one each lasts at most pg_io_probe.row_duration. Each reads at most max_bytes (pg_io_probe.default_max_bytes). Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, wait, start_blk. Evicts nothing unless cold is true';
REVOKE ALL ON FUNCTION io_probe_seqscan(regclass, text[], interval, boolean, integer, integer, text, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_seqscan_full(
    rel       regclass,
    paths     text[]   DEFAULT '{direct,server,os}',
    duration  interval DEFAULT NULL,
    cold      boolean  DEFAULT false,
    depth     integer  DEFAULT NULL,
    chunk_kb  integer  DEFAULT NULL,
    fork      text     DEFAULT 'main',
    options   jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_seqscan_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 3
AS 'MODULE_PATHNAME', 'io_probe_seqscan_wrapper';
COMMENT ON FUNCTION io_probe_seqscan_full(regclass, text[], interval, boolean, integer, integer, text, jsonb) IS 'The rows of io_probe_seqscan with all columns';
REVOKE ALL ON FUNCTION io_probe_seqscan_full(regclass, text[], interval, boolean, integer, integer, text, jsonb) FROM PUBLIC;
