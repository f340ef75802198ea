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
COMMENT ON COLUMN io_probe_seqscan_full_row.path IS 'direct: O_DIRECT with large requests, several in flight; server: through the buffer manager, as the server scans; os: through the OS page cache, one block per call';
COMMENT ON COLUMN io_probe_seqscan_full_row.mib_s IS 'MiB (2^20 bytes) per second while reading, of the blocks that hold data; NULL if a rate limit made the scan pause';
COMMENT ON COLUMN io_probe_seqscan_full_row.block_us IS 'Microseconds per block: total time divided by total blocks; NULL if mib_s is. A run is timed in slices of 1 ms or more; if it has more than 20, the first is left out as warm-up';
COMMENT ON COLUMN io_probe_seqscan_full_row.err_pct IS 'Half the width of the 95 % confidence interval of block_us, in percent of block_us; NULL without an interval';
COMMENT ON COLUMN io_probe_seqscan_full_row.shared_pct IS 'Percent of the blocks that shared buffers (of a temporary table: the session''s own buffers) served; NULL if unknown';
COMMENT ON COLUMN io_probe_seqscan_full_row.os_pct IS 'Percent of the blocks that the OS page cache served; NULL if unknown';
COMMENT ON COLUMN io_probe_seqscan_full_row.device_pct IS 'Percent of the blocks that came from the device, as far as the kernel can tell: it counts what a cache in the drive, a RAID controller or a hypervisor served as the device''s. NULL if unknown';
COMMENT ON COLUMN io_probe_seqscan_full_row.blks IS 'Blocks read, including blocks that were never written (hole_blks)';
COMMENT ON COLUMN io_probe_seqscan_full_row.complete IS 'Was everything read up to the end of the relation? If not, a note says what ended the scan';
COMMENT ON COLUMN io_probe_seqscan_full_row.cold IS 'true: verified that none of the blocks read was in the OS page cache before, nor on path server in shared buffers. NULL if the kernel does not tell, or if no block held data';
COMMENT ON COLUMN io_probe_seqscan_full_row.doubt IS 'What speaks against this row''s figures: at most two codes of docs/interface.md, the worst first; NULL: nothing';
COMMENT ON COLUMN io_probe_seqscan_full_row.status IS 'ok; partial: something from outside ended the row early; unsupported: not possible here; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_seqscan_full_row.notes IS 'What to know about this row, one sentence per element';
COMMENT ON COLUMN io_probe_seqscan_full_row.elapsed_ms IS 'Wall-clock time of the scan in ms, including pauses of a rate limit and blocks that were never written, without the time to evict or to write back';
COMMENT ON COLUMN io_probe_seqscan_full_row.ci_low IS 'Lower end of the 95 % confidence interval of block_us, within this run; NULL if the run has fewer than 20 slices of 1 ms';
COMMENT ON COLUMN io_probe_seqscan_full_row.ci_high IS 'Upper end of the 95 % confidence interval of block_us; NULL without an interval';
COMMENT ON COLUMN io_probe_seqscan_full_row.shared_blks_hit IS 'Path server: blocks found in shared buffers; NULL for other paths and temporary tables';
COMMENT ON COLUMN io_probe_seqscan_full_row.shared_blks_read IS 'Path server: blocks read into shared buffers; NULL for other paths and temporary tables';
COMMENT ON COLUMN io_probe_seqscan_full_row.shared_blks_written IS 'Path server: dirty pages of shared buffers (for a temporary table: of the session''s own buffers) that had to be written to make room; NULL for other paths';
COMMENT ON COLUMN io_probe_seqscan_full_row.local_blks_hit IS 'Path server, temporary table: blocks found in the session''s own buffers; else NULL';
COMMENT ON COLUMN io_probe_seqscan_full_row.local_blks_read IS 'Path server, temporary table: blocks read into the session''s own buffers; else NULL';
COMMENT ON COLUMN io_probe_seqscan_full_row.os_blks_cached IS 'Blocks of the range read that the OS page cache held before the scan, without blocks that were never written; NULL if the kernel does not tell';
COMMENT ON COLUMN io_probe_seqscan_full_row.hole_blks IS 'Blocks that were never written to the file (path server: and are in no buffer). They are read, but left out of the rate';
COMMENT ON COLUMN io_probe_seqscan_full_row.device_bytes IS 'Bytes fetched from storage for this row, readahead included; NULL if unknown';
COMMENT ON COLUMN io_probe_seqscan_full_row.device_source IS 'Whose reads device_bytes counts: backend (this process alone) or io_workers (from PostgreSQL 18 on: all that the I/O workers read, for other sessions too)';
COMMENT ON COLUMN io_probe_seqscan_full_row.device_ios IS 'Reads that the devices completed meanwhile, for all processes';
COMMENT ON COLUMN io_probe_seqscan_full_row.ios_per_block IS 'device_ios per block that came from the device. Over 1: requests are split; under 1: requests are merged';
COMMENT ON COLUMN io_probe_seqscan_full_row.rareq_kb IS 'Mean size of the devices'' reads in kB (rareq-sz of iostat); NULL without reads';
COMMENT ON COLUMN io_probe_seqscan_full_row.aqu_sz IS 'Mean number of requests queued or in flight (aqu-sz of iostat)';
COMMENT ON COLUMN io_probe_seqscan_full_row.r_await_ms IS 'Mean time of a device read in ms, queueing included (r_await of iostat); NULL without reads';
COMMENT ON COLUMN io_probe_seqscan_full_row.util_pct IS 'Percent of the time with at least one request in flight (%util of iostat); of several devices, the busiest''s';
COMMENT ON COLUMN io_probe_seqscan_full_row.other_bytes IS 'Bytes that the devices moved meanwhile beyond device_bytes: reads for other processes, and all writes';
COMMENT ON COLUMN io_probe_seqscan_full_row.blks_total IS 'Blocks of the fork';
COMMENT ON COLUMN io_probe_seqscan_full_row.chunk_kb IS 'Size of the requests in kB; NULL if the server decides';
COMMENT ON COLUMN io_probe_seqscan_full_row.depth IS 'Requests in flight; NULL if the server decides';
COMMENT ON COLUMN io_probe_seqscan_full_row.engine IS 'How the reads were issued. pread: one at a time; io_uring, threads: several at a time. Path server: ReadBuffer (one block at a time) or a read stream (several), from PostgreSQL 18 on with the server''s io_method';
COMMENT ON COLUMN io_probe_seqscan_full_row.device IS 'Devices behind the relation, see io_probe_device; NULL if unknown';
COMMENT ON COLUMN io_probe_seqscan_full_row.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_seqscan_full_row.read_ahead_kb IS 'Readahead window in kB that newly opened files get; NULL if unknown';
COMMENT ON COLUMN io_probe_seqscan_full_row.fork IS 'Fork of the relation: main, fsm, vm or init';
COMMENT ON COLUMN io_probe_seqscan_full_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_seqscan_full_row.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_seqscan_full_row.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_seqscan_full_row.spcname IS 'Tablespace of the relation';
COMMENT ON COLUMN io_probe_seqscan_full_row.started_at IS 'When the scan on this path started';

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
    duration  text     DEFAULT NULL,
    cold      boolean  DEFAULT false,
    depth     integer  DEFAULT NULL,
    chunk_kb  integer  DEFAULT NULL,
    fork      text     DEFAULT 'main',
    options   jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_seqscan_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 3
AS 'MODULE_PATHNAME', 'io_probe_seqscan_wrapper';
COMMENT ON FUNCTION io_probe_seqscan(regclass, text[], text, boolean, integer, integer, text, jsonb) IS 'Times a scan of a relation on up to three paths, one row each, with the tier that served the blocks and what the devices did. The paths share the duration; without a duration each path lasts at most pg_io_probe.row_duration. Each path reads at most max_bytes (default pg_io_probe.default_max_bytes). Evicts nothing unless cold is true, which needs EXECUTE on io_probe_evict. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, wait, start_blk';
REVOKE ALL ON FUNCTION io_probe_seqscan(regclass, text[], text, boolean, integer, integer, text, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_seqscan_full(
    rel       regclass,
    paths     text[]   DEFAULT '{direct,server,os}',
    duration  text     DEFAULT NULL,
    cold      boolean  DEFAULT false,
    depth     integer  DEFAULT NULL,
    chunk_kb  integer  DEFAULT NULL,
    fork      text     DEFAULT 'main',
    options   jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_seqscan_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 3
AS 'MODULE_PATHNAME', 'io_probe_seqscan_wrapper';
COMMENT ON FUNCTION io_probe_seqscan_full(regclass, text[], text, boolean, integer, integer, text, jsonb) IS 'The rows of io_probe_seqscan with all columns';
REVOKE ALL ON FUNCTION io_probe_seqscan_full(regclass, text[], text, boolean, integer, integer, text, jsonb) FROM PUBLIC;
