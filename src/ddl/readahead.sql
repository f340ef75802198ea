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
COMMENT ON COLUMN io_probe_readahead_full_row.window_kb IS 'Readahead window in kB of 1,024 bytes, as in /sys/block/*/queue/read_ahead_kb';
COMMENT ON COLUMN io_probe_readahead_full_row.mode IS 'kernel: the setting in force, read through the OS page cache as it is; emulated: requests of one window past the page cache, the next one submitted while the present one is used, plus cache_us a block';
COMMENT ON COLUMN io_probe_readahead_full_row.mib_s IS 'What a cold sequential scan gets that reads a block at a time, in MiB (2^20 bytes) per second: the block size over block_us';
COMMENT ON COLUMN io_probe_readahead_full_row.block_us IS 'Time per block in microseconds, without the work of the server';
COMMENT ON COLUMN io_probe_readahead_full_row.err_pct IS 'Half the 95 % confidence interval of block_us, in percent of it; NULL where there is no interval';
COMMENT ON COLUMN io_probe_readahead_full_row.rareq_kb IS 'Mean size of a read at the device in kB of 1,024 bytes (iostat''s rareq-sz), everyone''s reads included';
COMMENT ON COLUMN io_probe_readahead_full_row.aqu_sz IS 'Mean number of requests queued or in flight, everyone''s included; emulated: over the time with cache_us';
COMMENT ON COLUMN io_probe_readahead_full_row.best IS 'The smallest window that is as good as the fastest: not surely slower by more than 5 %, given the error of both; NULL if a row is void or has no interval, or something from outside ended it early';
COMMENT ON COLUMN io_probe_readahead_full_row.blockdev_setra IS 'The line to set this window until the next boot, as root; sessions keep the window with which they opened a file';
COMMENT ON COLUMN io_probe_readahead_full_row.udev_rule IS 'The line to set it at each boot, for a file in /etc/udev/rules.d';
COMMENT ON COLUMN io_probe_readahead_full_row.doubt IS 'What speaks against the figures of this row, the worst first, at most two: see docs/interface.md; NULL: nothing';
COMMENT ON COLUMN io_probe_readahead_full_row.status IS 'ok; partial: something from outside ended it early; unsupported: not possible here; void: part of the blocks did not come from the device, so there are no figures';
COMMENT ON COLUMN io_probe_readahead_full_row.notes IS 'What to know about the row, a sentence each';
COMMENT ON COLUMN io_probe_readahead_full_row.ci_low IS 'Lower end of the 95 % confidence interval of block_us';
COMMENT ON COLUMN io_probe_readahead_full_row.ci_high IS 'Upper end of that interval';
COMMENT ON COLUMN io_probe_readahead_full_row.cache_us IS 'emulated: what the page cache costs a block, in microseconds, measured at the setting in force and contained in block_us';
COMMENT ON COLUMN io_probe_readahead_full_row.turns IS 'Turns that count: windows take turns, the first of each is warm-up, and those of the kernel that other work disturbed are left out';
COMMENT ON COLUMN io_probe_readahead_full_row.blks IS 'Blocks read in the turns that count';
COMMENT ON COLUMN io_probe_readahead_full_row.elapsed_ms IS 'Wall clock of all turns, warm-up and those left out included, in ms';
COMMENT ON COLUMN io_probe_readahead_full_row.device_bytes IS 'Bytes fetched from storage by this backend in the turns that count';
COMMENT ON COLUMN io_probe_readahead_full_row.device_ios IS 'Reads that the devices completed meanwhile, everyone''s included';
COMMENT ON COLUMN io_probe_readahead_full_row.ios_per_block IS 'device_ios per block read';
COMMENT ON COLUMN io_probe_readahead_full_row.r_await_ms IS 'Mean time from queueing to completion of a read, in ms';
COMMENT ON COLUMN io_probe_readahead_full_row.util_pct IS 'Share of the time with at least one request at the device, in percent; emulated: of the time with cache_us';
COMMENT ON COLUMN io_probe_readahead_full_row.other_bytes IS 'Bytes that the devices moved for others';
COMMENT ON COLUMN io_probe_readahead_full_row.device_pct IS 'Share of the blocks that came from the device, in percent: below 100 something was cached';
COMMENT ON COLUMN io_probe_readahead_full_row.engine IS 'How it read: pread for kernel; else io_uring or threads, past the page cache';
COMMENT ON COLUMN io_probe_readahead_full_row.device IS 'Devices behind the relation, see io_probe_device';
COMMENT ON COLUMN io_probe_readahead_full_row.scheduler IS 'Their I/O scheduler';
COMMENT ON COLUMN io_probe_readahead_full_row.read_ahead_kb IS 'Readahead window in kB in force for newly opened files';
COMMENT ON COLUMN io_probe_readahead_full_row.relid IS 'Relation';
COMMENT ON COLUMN io_probe_readahead_full_row.schemaname IS 'Its schema';
COMMENT ON COLUMN io_probe_readahead_full_row.relname IS 'Its name';
COMMENT ON COLUMN io_probe_readahead_full_row.spcname IS 'Its tablespace';
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
    duration   interval  DEFAULT NULL,
    options    jsonb     DEFAULT '{}'
)
RETURNS SETOF io_probe_readahead_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_readahead_wrapper';
COMMENT ON FUNCTION io_probe_readahead(regclass, integer[], interval, jsonb) IS 'Throughput of a cold sequential scan over readahead windows, in turn: the setting in force as it is, others emulated. Evicts from the OS cache what it reads there, so it needs EXECUTE on io_probe_evict. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, wait';
REVOKE ALL ON FUNCTION io_probe_readahead(regclass, integer[], interval, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_readahead_full(
    rel        regclass,
    windows_kb integer[] DEFAULT '{16,32,64,128,256,512,1024,2048,4096}',
    duration   interval  DEFAULT NULL,
    options    jsonb     DEFAULT '{}'
)
RETURNS SETOF io_probe_readahead_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_readahead_wrapper';
COMMENT ON FUNCTION io_probe_readahead_full(regclass, integer[], interval, jsonb) IS 'The rows of io_probe_readahead with all columns';
REVOKE ALL ON FUNCTION io_probe_readahead_full(regclass, integer[], interval, jsonb) FROM PUBLIC;
