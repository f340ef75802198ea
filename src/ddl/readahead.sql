-- The curve of throughput over readahead windows, without touching /sys.

CREATE TYPE io_probe_readahead_full_row AS (
    window_kb      bigint,
    mode           text,
    mib_s          double precision,
    block_us       double precision,
    err_pct        double precision,
    rareq_kb       double precision,
    aqu_sz         double precision,
    best           boolean,
    blockdev_setra text,
    udev_rule      text,
    doubt          text,
    status         text,
    notes          text[],
    ci_low         double precision,
    ci_high        double precision,
    cache_us       double precision,
    turns          bigint,
    blks           bigint,
    elapsed_ms     double precision,
    device_bytes   bigint,
    device_ios     bigint,
    ios_per_block  double precision,
    r_await_ms     double precision,
    util_pct       double precision,
    other_bytes    bigint,
    device_pct     double precision,
    engine         text,
    device         text,
    scheduler      text,
    read_ahead_kb  bigint,
    relid          regclass,
    schemaname     text,
    relname        text,
    spcname        text,
    started_at     timestamp with time zone
);
COMMENT ON TYPE io_probe_readahead_full_row IS 'Row of io_probe_readahead_full: one readahead window';
COMMENT ON COLUMN io_probe_readahead_full_row.window_kb IS 'Readahead window in kB of 1,024 bytes, as in /sys/block/*/queue/read_ahead_kb; NULL if the setting in force is unknown';
COMMENT ON COLUMN io_probe_readahead_full_row.mode IS 'kernel: the setting in force, read through the OS page cache as it is; emulated: requests of one window past the page cache, where the next one is submitted while the present one is used, plus cache_us per block';
COMMENT ON COLUMN io_probe_readahead_full_row.mib_s IS 'Rate of a cold sequential scan that reads one block at a time, in MiB (2^20 bytes) per second: the block size divided by block_us';
COMMENT ON COLUMN io_probe_readahead_full_row.block_us IS 'Time per block in microseconds, without the work of the server';
COMMENT ON COLUMN io_probe_readahead_full_row.err_pct IS 'Half the width of the 95 % confidence interval of block_us, in percent of block_us; NULL without an interval';
COMMENT ON COLUMN io_probe_readahead_full_row.rareq_kb IS 'Mean size of a device read in kB of 1,024 bytes (rareq-sz of iostat), for all processes';
COMMENT ON COLUMN io_probe_readahead_full_row.aqu_sz IS 'Mean number of requests queued or in flight, for all processes; emulated: over the time including cache_us';
COMMENT ON COLUMN io_probe_readahead_full_row.best IS 'Is this the smallest window that is as good as the fastest (not surely slower by more than 5 %, nor seemingly by more than 10 %)? NULL if a row is void or has no interval, or if something from outside ended the call early';
COMMENT ON COLUMN io_probe_readahead_full_row.blockdev_setra IS 'Shell command that sets this window until the next boot, as root; sessions keep the window with which they opened a file. NULL if the device is unknown';
COMMENT ON COLUMN io_probe_readahead_full_row.udev_rule IS 'Line for a file in /etc/udev/rules.d that sets this window at each boot; NULL if the device is unknown';
COMMENT ON COLUMN io_probe_readahead_full_row.doubt IS 'What speaks against this row''s figures: at most two codes of docs/interface.md, the worst first; NULL: nothing';
COMMENT ON COLUMN io_probe_readahead_full_row.status IS 'ok; partial: something from outside ended the row early; unsupported: not possible here; void: part of the blocks did not come from the device, so there are no figures';
COMMENT ON COLUMN io_probe_readahead_full_row.notes IS 'What to know about this row, one sentence per element';
COMMENT ON COLUMN io_probe_readahead_full_row.ci_low IS 'Lower end of the 95 % confidence interval of block_us; NULL without an interval';
COMMENT ON COLUMN io_probe_readahead_full_row.ci_high IS 'Upper end of the 95 % confidence interval of block_us; NULL without an interval';
COMMENT ON COLUMN io_probe_readahead_full_row.cache_us IS 'emulated: cost of the page cache per block in microseconds, measured at the setting in force and contained in block_us; kernel: NULL';
COMMENT ON COLUMN io_probe_readahead_full_row.turns IS 'Number of turns that count. The windows take turns; the first turn of each is warm-up, and kernel turns that other work disturbed are left out';
COMMENT ON COLUMN io_probe_readahead_full_row.blks IS 'Blocks read in the turns that count';
COMMENT ON COLUMN io_probe_readahead_full_row.elapsed_ms IS 'Wall-clock time of all turns in ms, including warm-up and turns that are left out';
COMMENT ON COLUMN io_probe_readahead_full_row.device_bytes IS 'Bytes fetched from storage by this backend in the turns that count; NULL if unknown';
COMMENT ON COLUMN io_probe_readahead_full_row.device_ios IS 'Reads that the devices completed meanwhile, for all processes';
COMMENT ON COLUMN io_probe_readahead_full_row.ios_per_block IS 'device_ios per block read';
COMMENT ON COLUMN io_probe_readahead_full_row.r_await_ms IS 'Mean time from queueing to completion of a device read, in ms; NULL without reads';
COMMENT ON COLUMN io_probe_readahead_full_row.util_pct IS 'Percent of the time with at least one request in flight (of several devices, the busiest''s); emulated: of the time including cache_us';
COMMENT ON COLUMN io_probe_readahead_full_row.other_bytes IS 'Bytes that the devices moved meanwhile beyond device_bytes: reads for other processes, and all writes';
COMMENT ON COLUMN io_probe_readahead_full_row.device_pct IS 'Percent of the blocks that came from the device; below 100 something was cached. NULL if unknown';
COMMENT ON COLUMN io_probe_readahead_full_row.engine IS 'How the reads were issued: pread for kernel; io_uring or threads, past the page cache, for emulated';
COMMENT ON COLUMN io_probe_readahead_full_row.device IS 'Devices behind the relation, see io_probe_device; NULL if unknown';
COMMENT ON COLUMN io_probe_readahead_full_row.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_readahead_full_row.read_ahead_kb IS 'Readahead window in kB that newly opened files get; NULL if unknown';
COMMENT ON COLUMN io_probe_readahead_full_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_readahead_full_row.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_readahead_full_row.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_readahead_full_row.spcname IS 'Tablespace of the relation';
COMMENT ON COLUMN io_probe_readahead_full_row.started_at IS 'When the call started';

CREATE TYPE io_probe_readahead_row AS (
    window_kb bigint,
    mode      text,
    mib_s     double precision,
    block_us  double precision,
    err_pct   double precision,
    rareq_kb  double precision,
    util_pct  double precision,
    best      boolean,
    relid     regclass,
    doubt     text
);
COMMENT ON TYPE io_probe_readahead_row IS 'Row of io_probe_readahead: one readahead window';

CREATE FUNCTION io_probe_readahead(
    rel        regclass,
    windows_kb integer[] DEFAULT '{16,32,64,128,256,512,1024,2048,4096}',
    duration   text      DEFAULT NULL,
    options    jsonb     DEFAULT '{}'
)
RETURNS SETOF io_probe_readahead_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_readahead_wrapper';
COMMENT ON FUNCTION io_probe_readahead(regclass, integer[], text, jsonb) IS 'Times a cold sequential scan at several readahead windows, one row each, and changes no setting: the window in force is read as it is, the others are emulated. The windows take turns and share the duration. Evicts from the OS page cache what it reads there, so it needs EXECUTE on io_probe_evict too. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, wait';
REVOKE ALL ON FUNCTION io_probe_readahead(regclass, integer[], text, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_readahead_full(
    rel        regclass,
    windows_kb integer[] DEFAULT '{16,32,64,128,256,512,1024,2048,4096}',
    duration   text      DEFAULT NULL,
    options    jsonb     DEFAULT '{}'
)
RETURNS SETOF io_probe_readahead_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_readahead_wrapper';
COMMENT ON FUNCTION io_probe_readahead_full(regclass, integer[], text, jsonb) IS 'The rows of io_probe_readahead with all columns';
REVOKE ALL ON FUNCTION io_probe_readahead_full(regclass, integer[], text, jsonb) FROM PUBLIC;
