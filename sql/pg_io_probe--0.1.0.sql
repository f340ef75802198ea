-- pg_io_probe 0.1.0, as it was released. Do not change it: it is what `ALTER EXTENSION … UPDATE` has to start from.

-- Facts that are only read: devices, their counters, caches, running probes, what is possible here.

CREATE TYPE io_probe_device_row AS (
    object              text,
    spcname             text,
    device              text,
    scheduler           text,
    read_ahead_kb       bigint,
    read_ahead_sectors  bigint,
    rotational          boolean,
    fs_type             text,
    mount_point         text,
    directory           text,
    fs_free_bytes       bigint,
    mount_options       text,
    top_device          text,
    model               text,
    schedulers          text[],
    nr_requests         bigint,
    max_sectors_kb      bigint,
    max_hw_sectors_kb   bigint,
    logical_block_size  bigint,
    physical_block_size bigint,
    fs_block_size       bigint,
    optimal_io_size     bigint,
    alignment_offset    bigint,
    start_sector        bigint,
    aligned             boolean,
    size_bytes          bigint,
    read_only           boolean,
    write_cache         text,
    fua                 boolean,
    nomerges            smallint,
    direct_io_align     bigint,
    status              text,
    notes               text[]
);
COMMENT ON TYPE io_probe_device_row IS 'Row of io_probe_device: one object of the server on one device';
COMMENT ON COLUMN io_probe_device_row.object IS 'What lies there: tablespace, wal or temp (where temporary files of this session go)';
COMMENT ON COLUMN io_probe_device_row.spcname IS 'Tablespace; NULL for the WAL';
COMMENT ON COLUMN io_probe_device_row.device IS 'Device that does the I/O: the last one below partitions, dm and md; one row for each';
COMMENT ON COLUMN io_probe_device_row.scheduler IS 'I/O scheduler in force';
COMMENT ON COLUMN io_probe_device_row.read_ahead_kb IS 'Readahead window in kB that reads through this file system use; a descriptor keeps the one of the moment when it was opened';
COMMENT ON COLUMN io_probe_device_row.read_ahead_sectors IS 'The same in sectors of 512 bytes, as blockdev --getra prints it';
COMMENT ON COLUMN io_probe_device_row.rotational IS 'Does the device say that it spins? Virtual disks often say so wrongly';
COMMENT ON COLUMN io_probe_device_row.fs_type IS 'File system';
COMMENT ON COLUMN io_probe_device_row.mount_point IS 'Where the file system is mounted';
COMMENT ON COLUMN io_probe_device_row.directory IS 'The directory, symbolic links resolved';
COMMENT ON COLUMN io_probe_device_row.fs_free_bytes IS 'Bytes free for unprivileged processes';
COMMENT ON COLUMN io_probe_device_row.mount_options IS 'Options of the mount';
COMMENT ON COLUMN io_probe_device_row.top_device IS 'Device on which the file system sits: a partition, a dm or md device, or the disk itself';
COMMENT ON COLUMN io_probe_device_row.model IS 'Model as the device states it';
COMMENT ON COLUMN io_probe_device_row.schedulers IS 'Schedulers that the kernel offers for the device';
COMMENT ON COLUMN io_probe_device_row.nr_requests IS 'Requests that the queue holds';
COMMENT ON COLUMN io_probe_device_row.max_sectors_kb IS 'Largest request in kB that the kernel sends';
COMMENT ON COLUMN io_probe_device_row.max_hw_sectors_kb IS 'Largest request in kB that the device takes';
COMMENT ON COLUMN io_probe_device_row.logical_block_size IS 'Smallest unit in bytes that can be addressed';
COMMENT ON COLUMN io_probe_device_row.physical_block_size IS 'Smallest unit in bytes that is written without reading first';
COMMENT ON COLUMN io_probe_device_row.fs_block_size IS 'Allocation unit of the file system in bytes';
COMMENT ON COLUMN io_probe_device_row.optimal_io_size IS 'Request size in bytes that the device prefers; 0 if it states none';
COMMENT ON COLUMN io_probe_device_row.alignment_offset IS 'Bytes by which the device is off its natural alignment';
COMMENT ON COLUMN io_probe_device_row.start_sector IS 'First sector of the partition; NULL without one';
COMMENT ON COLUMN io_probe_device_row.aligned IS 'Does the partition start on a physical block and on an optimal I/O size?';
COMMENT ON COLUMN io_probe_device_row.size_bytes IS 'Size of the device in bytes';
COMMENT ON COLUMN io_probe_device_row.read_only IS 'Is the device read only?';
COMMENT ON COLUMN io_probe_device_row.write_cache IS 'write back: a volatile cache that must be flushed; write through: none';
COMMENT ON COLUMN io_probe_device_row.fua IS 'Can single writes go past the volatile cache?';
COMMENT ON COLUMN io_probe_device_row.nomerges IS '0: requests are merged; 1: only simple merges; 2: none';
COMMENT ON COLUMN io_probe_device_row.direct_io_align IS 'Multiple in bytes that O_DIRECT wants; 0: it has none; NULL if the kernel does not tell';
COMMENT ON COLUMN io_probe_device_row.status IS 'ok, or unsupported where no block device is known behind the directory';
COMMENT ON COLUMN io_probe_device_row.notes IS 'What could not be found out, and why';

CREATE FUNCTION io_probe_device()
RETURNS SETOF io_probe_device_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_device_wrapper';
COMMENT ON FUNCTION io_probe_device() IS 'Devices behind the tablespaces, the WAL and temporary files, and how they are set. Reads /proc and /sys; no I/O';
REVOKE ALL ON FUNCTION io_probe_device() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_device() TO pg_monitor;

CREATE TYPE io_probe_counters_row AS (
    sampled_at      timestamp with time zone,
    device          text,
    reads           bigint,
    reads_merged    bigint,
    read_bytes      bigint,
    read_ms         bigint,
    writes          bigint,
    writes_merged   bigint,
    write_bytes     bigint,
    write_ms        bigint,
    discards        bigint,
    discards_merged bigint,
    discard_bytes   bigint,
    discard_ms      bigint,
    flushes         bigint,
    flush_ms        bigint,
    in_flight       bigint,
    io_ms           bigint,
    weighted_io_ms  bigint
);
COMMENT ON TYPE io_probe_counters_row IS 'Row of io_probe_counters: one device';
COMMENT ON COLUMN io_probe_counters_row.sampled_at IS 'When the counters were read';
COMMENT ON COLUMN io_probe_counters_row.device IS 'Device';
COMMENT ON COLUMN io_probe_counters_row.reads IS 'Reads completed since the device appeared';
COMMENT ON COLUMN io_probe_counters_row.reads_merged IS 'Reads that were merged into queued ones';
COMMENT ON COLUMN io_probe_counters_row.read_bytes IS 'Bytes read';
COMMENT ON COLUMN io_probe_counters_row.read_ms IS 'Time in ms that all reads waited together, modulo 2^32';
COMMENT ON COLUMN io_probe_counters_row.writes IS 'Writes completed';
COMMENT ON COLUMN io_probe_counters_row.writes_merged IS 'Writes that were merged into queued ones';
COMMENT ON COLUMN io_probe_counters_row.write_bytes IS 'Bytes written';
COMMENT ON COLUMN io_probe_counters_row.write_ms IS 'Time in ms that all writes waited together, modulo 2^32';
COMMENT ON COLUMN io_probe_counters_row.discards IS 'Discards completed; NULL before Linux 4.18';
COMMENT ON COLUMN io_probe_counters_row.discards_merged IS 'Discards that were merged into queued ones';
COMMENT ON COLUMN io_probe_counters_row.discard_bytes IS 'Bytes discarded';
COMMENT ON COLUMN io_probe_counters_row.discard_ms IS 'Time in ms that all discards waited together, modulo 2^32';
COMMENT ON COLUMN io_probe_counters_row.flushes IS 'Flushes completed; NULL before Linux 5.5';
COMMENT ON COLUMN io_probe_counters_row.flush_ms IS 'Time in ms that all flushes waited together, modulo 2^32';
COMMENT ON COLUMN io_probe_counters_row.in_flight IS 'Requests in flight now';
COMMENT ON COLUMN io_probe_counters_row.io_ms IS 'Time in ms with a request in flight, modulo 2^32';
COMMENT ON COLUMN io_probe_counters_row.weighted_io_ms IS 'Time in ms that all requests waited together, modulo 2^32';

CREATE FUNCTION io_probe_counters()
RETURNS SETOF io_probe_counters_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 4
AS 'MODULE_PATHNAME', 'io_probe_counters_wrapper';
COMMENT ON FUNCTION io_probe_counters() IS 'Counters of the devices below the server, since each device appeared. The view io_probe_device_counters shows them';
REVOKE ALL ON FUNCTION io_probe_counters() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_counters() TO pg_monitor;

CREATE VIEW io_probe_device_counters AS SELECT * FROM io_probe_counters();
COMMENT ON VIEW io_probe_device_counters IS 'Cumulative counters of the devices below the server, for scrapers and \watch';
GRANT SELECT ON io_probe_device_counters TO pg_monitor;

CREATE TYPE io_probe_cache_row AS (
    fork            text,
    blks_total      bigint,
    shared_blks     bigint,
    shared_pct      double precision,
    os_cached_bytes bigint,
    os_cached_pct   double precision,
    os_dirty_bytes  bigint,
    hole_bytes      bigint
);
COMMENT ON TYPE io_probe_cache_row IS 'Row of io_probe_cache: one fork of the relation';
COMMENT ON COLUMN io_probe_cache_row.fork IS 'main (the data), fsm, vm or init';
COMMENT ON COLUMN io_probe_cache_row.blks_total IS 'Blocks of the fork';
COMMENT ON COLUMN io_probe_cache_row.shared_blks IS 'Blocks in shared buffers (in the session''s own for a temporary table)';
COMMENT ON COLUMN io_probe_cache_row.shared_pct IS 'The same in percent of blks_total; NULL for an empty fork';
COMMENT ON COLUMN io_probe_cache_row.os_cached_bytes IS 'Bytes in the OS page cache';
COMMENT ON COLUMN io_probe_cache_row.os_cached_pct IS 'The same in percent of the fork''s bytes; NULL for an empty fork';
COMMENT ON COLUMN io_probe_cache_row.os_dirty_bytes IS 'Bytes in the OS page cache that are not on storage yet; NULL before Linux 6.5';
COMMENT ON COLUMN io_probe_cache_row.hole_bytes IS 'Bytes in blocks that were never written to the file: the device has nothing to read for them';

CREATE FUNCTION io_probe_cache(rel regclass)
RETURNS SETOF io_probe_cache_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 4
AS 'MODULE_PATHNAME', 'io_probe_cache_wrapper';
COMMENT ON FUNCTION io_probe_cache(regclass) IS 'What shared buffers and the OS page cache hold of a relation. Walks all buffer headers; reads no data';
REVOKE ALL ON FUNCTION io_probe_cache(regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_cache(regclass) TO pg_monitor;

CREATE TYPE io_probe_evict_row AS (
    fork               text,
    shared_blks_before bigint,
    shared_blks_after  bigint,
    os_bytes_before    bigint,
    os_bytes_after     bigint,
    complete           boolean,
    notes              text[]
);
COMMENT ON TYPE io_probe_evict_row IS 'Row of io_probe_evict: one fork of the relation';
COMMENT ON COLUMN io_probe_evict_row.fork IS 'main (the data), fsm, vm or init';
COMMENT ON COLUMN io_probe_evict_row.shared_blks_before IS 'Blocks in shared buffers before';
COMMENT ON COLUMN io_probe_evict_row.shared_blks_after IS 'Blocks in shared buffers after; PostgreSQL 15 and 16 cannot evict them';
COMMENT ON COLUMN io_probe_evict_row.os_bytes_before IS 'Bytes in the OS page cache before';
COMMENT ON COLUMN io_probe_evict_row.os_bytes_after IS 'Bytes in the OS page cache after';
COMMENT ON COLUMN io_probe_evict_row.complete IS 'Is nothing left in either?';
COMMENT ON COLUMN io_probe_evict_row.notes IS 'Why something stayed';

CREATE FUNCTION io_probe_evict(rel regclass)
RETURNS SETOF io_probe_evict_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 4
AS 'MODULE_PATHNAME', 'io_probe_evict_wrapper';
COMMENT ON FUNCTION io_probe_evict(regclass) IS 'Writes a relation''s dirty pages out and drops it from the OS page cache, and from shared buffers where the server can. Other sessions will read it from the device again';
REVOKE ALL ON FUNCTION io_probe_evict(regclass) FROM PUBLIC;

CREATE TYPE io_probe_progress_row AS (
    pid        integer,
    relid      regclass,
    probe      text,
    path       text,
    done       bigint,
    total      bigint,
    started_at timestamp with time zone
);
COMMENT ON TYPE io_probe_progress_row IS 'Row of io_probe_progress: one running probe';
COMMENT ON COLUMN io_probe_progress_row.pid IS 'Server process that runs the probe';
COMMENT ON COLUMN io_probe_progress_row.relid IS 'Relation; NULL if the probe reads none, or one of another database';
COMMENT ON COLUMN io_probe_progress_row.probe IS 'Kind of probe';
COMMENT ON COLUMN io_probe_progress_row.path IS 'Path that it is on; of io_probe_sync the section, of io_probe_readahead the mode, of io_probe_evict the fork';
COMMENT ON COLUMN io_probe_progress_row.done IS 'Blocks done on this path; of io_probe_sync and io_probe_readahead turns, of io_probe_iostat samples';
COMMENT ON COLUMN io_probe_progress_row.total IS 'Blocks of the relation from where the path began, turns of all rows, or samples; a bound may end it earlier; 0 if nobody knows';
COMMENT ON COLUMN io_probe_progress_row.started_at IS 'When the call started';

CREATE FUNCTION io_probe_progress()
RETURNS SETOF io_probe_progress_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1
AS 'MODULE_PATHNAME', 'io_probe_progress_wrapper';
COMMENT ON FUNCTION io_probe_progress() IS 'What the probes of all sessions are doing now';
REVOKE ALL ON FUNCTION io_probe_progress() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_progress() TO pg_monitor;

CREATE TYPE io_probe_check_row AS (
    item       text,
    status     text,
    value      text,
    what_to_do text
);
COMMENT ON TYPE io_probe_check_row IS 'Row of io_probe_check: one thing that matters to probes';
COMMENT ON COLUMN io_probe_check_row.item IS 'What was looked at';
COMMENT ON COLUMN io_probe_check_row.status IS 'ok, unsupported (this kernel or server lacks it) or denied (the caller lacks a right)';
COMMENT ON COLUMN io_probe_check_row.value IS 'What was found';
COMMENT ON COLUMN io_probe_check_row.what_to_do IS 'What follows, or what would change it; NULL where all is well';

CREATE FUNCTION io_probe_check()
RETURNS SETOF io_probe_check_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 30
AS 'MODULE_PATHNAME', 'io_probe_check_wrapper';
COMMENT ON FUNCTION io_probe_check() IS 'What this server, its kernel and the caller''s rights allow. Reads no data';
REVOKE ALL ON FUNCTION io_probe_check() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_check() TO pg_monitor;

-- The timed scan.

CREATE TYPE io_probe_seqscan_row AS (
    path                text,
    mib_per_s           double precision,
    us_per_block        double precision,
    from_shared_pct     double precision,
    from_os_pct         double precision,
    from_device_pct     double precision,
    blks_scanned        bigint,
    complete            boolean,
    cold                boolean,
    status              text,
    notes               text[],
    elapsed_ms          double precision,
    ci_low_us           double precision,
    ci_high_us          double precision,
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
COMMENT ON TYPE io_probe_seqscan_row IS 'Row of io_probe_seqscan: one path';
COMMENT ON COLUMN io_probe_seqscan_row.path IS 'direct: O_DIRECT, large requests at a depth; server: through the buffer manager as the server reads; os: through the OS page cache, one block a call';
COMMENT ON COLUMN io_probe_seqscan_row.mib_per_s IS 'MiB (2^20 bytes) a second while reading, of the blocks that hold data; NULL where a rate limit made the scan pause';
COMMENT ON COLUMN io_probe_seqscan_row.us_per_block IS 'Microseconds per block: total time over total blocks; the first slice (warm-up) is left out of runs with more than 20 slices';
COMMENT ON COLUMN io_probe_seqscan_row.from_shared_pct IS 'Share of the blocks that shared buffers (or the session''s own) served';
COMMENT ON COLUMN io_probe_seqscan_row.from_os_pct IS 'Share that the OS page cache served';
COMMENT ON COLUMN io_probe_seqscan_row.from_device_pct IS 'Share that came from the device, as far as the kernel can tell: caches below it are unknown';
COMMENT ON COLUMN io_probe_seqscan_row.blks_scanned IS 'Blocks read, holes included';
COMMENT ON COLUMN io_probe_seqscan_row.complete IS 'Was everything read up to the end of the relation? If not, a note says what ended it';
COMMENT ON COLUMN io_probe_seqscan_row.cold IS 'Verified: none of the blocks read was in the OS page cache before, and none was found in shared buffers; NULL if the kernel does not tell, or nothing held data';
COMMENT ON COLUMN io_probe_seqscan_row.status IS 'ok; partial: something from outside ended it early; unsupported: not possible here; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_seqscan_row.notes IS 'What to know about this row, a sentence each';
COMMENT ON COLUMN io_probe_seqscan_row.elapsed_ms IS 'Wall clock of the scan in ms, pauses and holes included; what it took to evict or to write back is not';
COMMENT ON COLUMN io_probe_seqscan_row.ci_low_us IS 'Lower end of the 95 % interval of us_per_block; NULL for runs under 20 slices of 1 ms';
COMMENT ON COLUMN io_probe_seqscan_row.ci_high_us IS 'Upper end of the same';
COMMENT ON COLUMN io_probe_seqscan_row.shared_blks_hit IS 'server: blocks found in shared buffers';
COMMENT ON COLUMN io_probe_seqscan_row.shared_blks_read IS 'server: blocks read into shared buffers';
COMMENT ON COLUMN io_probe_seqscan_row.shared_blks_written IS 'server: dirty pages (for a temporary table, of the session''s own buffers) that had to be written to make room';
COMMENT ON COLUMN io_probe_seqscan_row.local_blks_hit IS 'server, temporary table: blocks found in the session''s own buffers';
COMMENT ON COLUMN io_probe_seqscan_row.local_blks_read IS 'server, temporary table: blocks read into them';
COMMENT ON COLUMN io_probe_seqscan_row.os_blks_cached IS 'Blocks of the range read that the OS page cache held before, holes left out';
COMMENT ON COLUMN io_probe_seqscan_row.hole_blks IS 'Blocks that were never written to the file (on the server path: nor are in buffers); read, but left out of the rate';
COMMENT ON COLUMN io_probe_seqscan_row.device_bytes IS 'Bytes fetched from storage for this row, readahead included';
COMMENT ON COLUMN io_probe_seqscan_row.device_source IS 'Whose account device_bytes is: backend (this process alone) or io_workers (PostgreSQL 18: all that the I/O workers read, for other sessions too)';
COMMENT ON COLUMN io_probe_seqscan_row.device_ios IS 'Reads that the devices completed meanwhile, everyone''s';
COMMENT ON COLUMN io_probe_seqscan_row.ios_per_block IS 'device_ios per block that came from the device: over 1, requests are split; under 1, merged';
COMMENT ON COLUMN io_probe_seqscan_row.rareq_kb IS 'Mean size in kB of the devices'' reads, as iostat names it';
COMMENT ON COLUMN io_probe_seqscan_row.aqu_sz IS 'Mean number of requests in flight, as iostat names it';
COMMENT ON COLUMN io_probe_seqscan_row.r_await_ms IS 'Mean time in ms of a device read, queueing included, as iostat names it';
COMMENT ON COLUMN io_probe_seqscan_row.util_pct IS 'Percent of the time with a request in flight, as iostat names it';
COMMENT ON COLUMN io_probe_seqscan_row.other_bytes IS 'Bytes that the devices moved meanwhile beyond device_bytes: others'' reads, and all writes';
COMMENT ON COLUMN io_probe_seqscan_row.blks_total IS 'Blocks of the fork';
COMMENT ON COLUMN io_probe_seqscan_row.chunk_kb IS 'Size in kB of the requests; NULL where the server decides';
COMMENT ON COLUMN io_probe_seqscan_row.depth IS 'Requests in flight; NULL where the server decides';
COMMENT ON COLUMN io_probe_seqscan_row.engine IS 'How the reads were issued: pread, io_uring, threads; or the server''s way';
COMMENT ON COLUMN io_probe_seqscan_row.device IS 'Devices behind the relation, see io_probe_device';
COMMENT ON COLUMN io_probe_seqscan_row.scheduler IS 'Their I/O scheduler';
COMMENT ON COLUMN io_probe_seqscan_row.read_ahead_kb IS 'Readahead window in kB in force for newly opened files';
COMMENT ON COLUMN io_probe_seqscan_row.fork IS 'Fork of the relation';
COMMENT ON COLUMN io_probe_seqscan_row.relid IS 'Relation';
COMMENT ON COLUMN io_probe_seqscan_row.schemaname IS 'Its schema';
COMMENT ON COLUMN io_probe_seqscan_row.relname IS 'Its name';
COMMENT ON COLUMN io_probe_seqscan_row.spcname IS 'Its tablespace';
COMMENT ON COLUMN io_probe_seqscan_row.started_at IS 'When this path started';

CREATE FUNCTION io_probe_seqscan(
    rel       regclass,
    paths     text[]   DEFAULT '{direct,server,os}',
    duration  interval DEFAULT NULL,
    cold      boolean  DEFAULT false,
    chunk_kb  integer  DEFAULT NULL,
    depth     integer  DEFAULT NULL,
    fork      text     DEFAULT 'main',
    options   jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_seqscan_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 3
AS 'MODULE_PATHNAME', 'io_probe_seqscan_wrapper';
COMMENT ON FUNCTION io_probe_seqscan(regclass, text[], interval, boolean, integer, integer, text, jsonb) IS 'Times a scan of a relation on up to three paths, a row each, with the tier that served the blocks and what the device saw. A row lasts at most pg_io_probe.default_duration and reads at most default_max_bytes unless told otherwise. Options: max_bytes, max_iops, max_mib_per_s, precision, wait, start_blk. Evicts nothing unless cold is true';
REVOKE ALL ON FUNCTION io_probe_seqscan(regclass, text[], interval, boolean, integer, integer, text, jsonb) FROM PUBLIC;

-- Random fetches of single blocks.

CREATE TYPE io_probe_random_row AS (
    path                text,
    iops                double precision,
    lat_avg_us          double precision,
    lat_p50_us          double precision,
    lat_p95_us          double precision,
    lat_p99_us          double precision,
    lat_p999_us         double precision,
    lat_max_us          double precision,
    lat_min_us          double precision,
    lat_mdev_us         double precision,
    from_shared_pct     double precision,
    from_os_pct         double precision,
    from_device_pct     double precision,
    fetches             bigint,
    complete            boolean,
    cold                boolean,
    status              text,
    notes               text[],
    elapsed_ms          double precision,
    service_iops        double precision,
    ci_low_iops         double precision,
    ci_high_iops        double precision,
    mib_per_s           double precision,
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
COMMENT ON TYPE io_probe_random_row IS 'Row of io_probe_random: one path';
COMMENT ON COLUMN io_probe_random_row.path IS 'direct: O_DIRECT; server: through the buffer manager, into a small ring of buffers; os: pread through the OS page cache';
COMMENT ON COLUMN io_probe_random_row.iops IS 'Fetches a second over the wall clock; warm-up, holes, and the filling and emptying of the queue are left out; under a rate limit, what that allowed';
COMMENT ON COLUMN io_probe_random_row.lat_avg_us IS 'Mean latency in microseconds, from issue to when the block is seen to be there; left out are warm-up, the requests that fill the queue, and those that a look at a new segment disturbed; NULL where the server reads ahead';
COMMENT ON COLUMN io_probe_random_row.lat_p50_us IS 'Median latency';
COMMENT ON COLUMN io_probe_random_row.lat_p95_us IS 'Latency that 95 % did not exceed; a quantile is NULL where fewer than ten fetches lie above it';
COMMENT ON COLUMN io_probe_random_row.lat_p99_us IS 'The same for 99 %';
COMMENT ON COLUMN io_probe_random_row.lat_p999_us IS 'The same for 99.9 %';
COMMENT ON COLUMN io_probe_random_row.lat_max_us IS 'Greatest latency';
COMMENT ON COLUMN io_probe_random_row.lat_min_us IS 'Least latency';
COMMENT ON COLUMN io_probe_random_row.lat_mdev_us IS 'Standard deviation of the latencies (of the population, as ioping)';
COMMENT ON COLUMN io_probe_random_row.from_shared_pct IS 'Share of the fetches that shared buffers (or the session''s own) served';
COMMENT ON COLUMN io_probe_random_row.from_os_pct IS 'Share that the OS page cache served';
COMMENT ON COLUMN io_probe_random_row.from_device_pct IS 'Share that came from the device, as far as the kernel can tell: caches below it are unknown';
COMMENT ON COLUMN io_probe_random_row.fetches IS 'Blocks fetched, warm-up included, and holes, which need no read; each block at most once';
COMMENT ON COLUMN io_probe_random_row.complete IS 'Was every block of the relation fetched? If not, a note says what ended it';
COMMENT ON COLUMN io_probe_random_row.cold IS 'Verified: no fetch was served by a cache; or, after cold => true, by the OS page cache alone, and our own readahead accounts for that. NULL if the kernel does not tell, or nothing held data';
COMMENT ON COLUMN io_probe_random_row.status IS 'ok; partial: something from outside ended it early; unsupported: not possible here; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_random_row.notes IS 'What to know about this row, a sentence each';
COMMENT ON COLUMN io_probe_random_row.elapsed_ms IS 'Wall clock of the run in ms, pauses, looks at the caches and writing dirty pages back included; what it took to evict is not';
COMMENT ON COLUMN io_probe_random_row.service_iops IS 'What one requester gets: fetches over the time spent in requests, as ioping''s other rate; times depth it is about iops';
COMMENT ON COLUMN io_probe_random_row.ci_low_iops IS 'Lower end of the 95 % interval of iops within this run; NULL for runs under 20 slices of 1 ms and under a rate limit';
COMMENT ON COLUMN io_probe_random_row.ci_high_iops IS 'Upper end of the same';
COMMENT ON COLUMN io_probe_random_row.mib_per_s IS 'iops times the block size, in MiB (2^20 bytes) a second';
COMMENT ON COLUMN io_probe_random_row.shared_us IS 'Mean latency in microseconds of the fetches that shared buffers served; NULL at a depth over 1';
COMMENT ON COLUMN io_probe_random_row.os_us IS 'The same of those that the OS page cache served; NULL at a depth over 1, where a hit waits until it is seen';
COMMENT ON COLUMN io_probe_random_row.device_us IS 'The same of those that came from the device';
COMMENT ON COLUMN io_probe_random_row.shared_blks_hit IS 'Fetches that shared buffers (or the session''s own) served';
COMMENT ON COLUMN io_probe_random_row.os_blks_hit IS 'Fetches of blocks that were wholly in the OS page cache right before';
COMMENT ON COLUMN io_probe_random_row.device_blks_read IS 'All other fetches, holes left out';
COMMENT ON COLUMN io_probe_random_row.shared_blks_written IS 'server: dirty pages (for a temporary table, of the session''s own buffers) that had to be written to make room';
COMMENT ON COLUMN io_probe_random_row.device_bytes IS 'Bytes fetched from storage for this row, readahead included';
COMMENT ON COLUMN io_probe_random_row.device_source IS 'Whose account device_bytes is: backend (this process alone) or io_workers (PostgreSQL 18: all that the I/O workers read, for other sessions too)';
COMMENT ON COLUMN io_probe_random_row.device_ios IS 'Reads that the devices completed meanwhile, everyone''s';
COMMENT ON COLUMN io_probe_random_row.ios_per_block IS 'device_ios per fetch that came from the device: over 1, requests are split; under 1, merged';
COMMENT ON COLUMN io_probe_random_row.over_read IS 'device_bytes over the bytes of device_blks_read: over 1, the kernel read around the blocks that were asked for';
COMMENT ON COLUMN io_probe_random_row.rareq_kb IS 'Mean size in kB of the devices'' reads, as iostat names it';
COMMENT ON COLUMN io_probe_random_row.aqu_sz IS 'Mean number of requests in flight, as iostat names it';
COMMENT ON COLUMN io_probe_random_row.r_await_ms IS 'Mean time in ms of a device read, queueing included, as iostat names it';
COMMENT ON COLUMN io_probe_random_row.util_pct IS 'Percent of the time with a request in flight, as iostat names it';
COMMENT ON COLUMN io_probe_random_row.other_bytes IS 'Bytes that the devices moved meanwhile beyond device_bytes: others'' reads, and all writes';
COMMENT ON COLUMN io_probe_random_row.warmup_us IS 'Latency of the first fetch, which is part of no other time';
COMMENT ON COLUMN io_probe_random_row.response_avg_us IS 'Under a rate limit, at depth 1: mean time from when a fetch was due to its completion, which is more than its latency when it had to be issued late';
COMMENT ON COLUMN io_probe_random_row.response_p99_us IS 'Under a rate limit, at depth 1: the response time that 99 % did not exceed';
COMMENT ON COLUMN io_probe_random_row.hole_blks IS 'Blocks that were never written to the file (on the server path: nor are in buffers); counted in fetches, but not read';
COMMENT ON COLUMN io_probe_random_row.blks_total IS 'Blocks of the relation';
COMMENT ON COLUMN io_probe_random_row.depth IS 'Requests in flight; on the server path, how many reads the server may run ahead';
COMMENT ON COLUMN io_probe_random_row.engine IS 'How the reads were issued: pread, io_uring, threads; or the server''s way';
COMMENT ON COLUMN io_probe_random_row.seed IS 'Seed of the order; the same seed gives the same order of a relation of the same size';
COMMENT ON COLUMN io_probe_random_row.device IS 'Devices behind the relation, see io_probe_device';
COMMENT ON COLUMN io_probe_random_row.scheduler IS 'Their I/O scheduler';
COMMENT ON COLUMN io_probe_random_row.read_ahead_kb IS 'Readahead window in kB in force for newly opened files';
COMMENT ON COLUMN io_probe_random_row.relid IS 'Relation';
COMMENT ON COLUMN io_probe_random_row.schemaname IS 'Its schema';
COMMENT ON COLUMN io_probe_random_row.relname IS 'Its name';
COMMENT ON COLUMN io_probe_random_row.spcname IS 'Its tablespace';
COMMENT ON COLUMN io_probe_random_row.started_at IS 'When this path started';

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
COMMENT ON FUNCTION io_probe_random(regclass, text[], interval, boolean, integer, bigint, jsonb) IS 'Times fetches of single blocks of a relation in a seeded random order, on up to three paths, a row each, with the tier that served each and what the device saw. A row lasts at most pg_io_probe.default_duration and reads at most default_max_bytes unless told otherwise. Options: max_bytes, max_iops, max_mib_per_s, precision, wait. Evicts nothing unless cold is true';
REVOKE ALL ON FUNCTION io_probe_random(regclass, text[], interval, boolean, integer, bigint, jsonb) FROM PUBLIC;

CREATE TYPE io_probe_random_series_row AS (
    path            text,
    second          bigint,
    iops            double precision,
    lat_avg_us      double precision,
    lat_max_us      double precision,
    fetches         bigint,
    from_shared_pct double precision,
    from_os_pct     double precision,
    from_device_pct double precision,
    r_s             double precision,
    rmib_s          double precision,
    rrqm_s          double precision,
    rareq_kb        double precision,
    aqu_sz          double precision,
    r_await_ms      double precision,
    util_pct        double precision,
    w_s             double precision,
    wmib_s          double precision,
    cpu_user_pct    double precision,
    cpu_system_pct  double precision,
    cpu_iowait_pct  double precision,
    cpu_idle_pct    double precision,
    cpu_steal_pct   double precision,
    length_ms       double precision,
    status          text,
    notes           text[],
    sampled_at      timestamp with time zone
);
COMMENT ON TYPE io_probe_random_series_row IS 'Row of io_probe_random_series: one second of one path';
COMMENT ON COLUMN io_probe_random_series_row.path IS 'Path, see io_probe_random_row';
COMMENT ON COLUMN io_probe_random_series_row.second IS 'Number of the second, from 1; a slow request that ends it may make it longer';
COMMENT ON COLUMN io_probe_random_series_row.iops IS 'Fetches a second, pauses included';
COMMENT ON COLUMN io_probe_random_series_row.lat_avg_us IS 'Mean latency in microseconds, warm-up included; NULL where the server reads ahead';
COMMENT ON COLUMN io_probe_random_series_row.lat_max_us IS 'Greatest latency';
COMMENT ON COLUMN io_probe_random_series_row.fetches IS 'Blocks fetched, holes left out';
COMMENT ON COLUMN io_probe_random_series_row.from_shared_pct IS 'Share of the fetches that shared buffers (or the session''s own) served';
COMMENT ON COLUMN io_probe_random_series_row.from_os_pct IS 'Share that the OS page cache served';
COMMENT ON COLUMN io_probe_random_series_row.from_device_pct IS 'Share that came from the device';
COMMENT ON COLUMN io_probe_random_series_row.r_s IS 'Reads a second that the devices completed, everyone''s, as iostat names it';
COMMENT ON COLUMN io_probe_random_series_row.rmib_s IS 'MiB a second that the devices read';
COMMENT ON COLUMN io_probe_random_series_row.rrqm_s IS 'Reads a second that were merged into others before they reached the devices';
COMMENT ON COLUMN io_probe_random_series_row.rareq_kb IS 'Mean size in kB of the devices'' reads';
COMMENT ON COLUMN io_probe_random_series_row.aqu_sz IS 'Mean number of requests in flight';
COMMENT ON COLUMN io_probe_random_series_row.r_await_ms IS 'Mean time in ms of a device read, queueing included';
COMMENT ON COLUMN io_probe_random_series_row.util_pct IS 'Percent of the time with a request in flight';
COMMENT ON COLUMN io_probe_random_series_row.w_s IS 'Writes a second that the devices completed';
COMMENT ON COLUMN io_probe_random_series_row.wmib_s IS 'MiB a second that the devices wrote';
COMMENT ON COLUMN io_probe_random_series_row.cpu_user_pct IS 'Share of the machine''s CPU time in user code, all processes together';
COMMENT ON COLUMN io_probe_random_series_row.cpu_system_pct IS 'Share in the kernel, interrupts included';
COMMENT ON COLUMN io_probe_random_series_row.cpu_iowait_pct IS 'Share idle with I/O outstanding';
COMMENT ON COLUMN io_probe_random_series_row.cpu_idle_pct IS 'Share idle';
COMMENT ON COLUMN io_probe_random_series_row.cpu_steal_pct IS 'Share that the hypervisor gave to others';
COMMENT ON COLUMN io_probe_random_series_row.length_ms IS 'What this second really lasted, in ms; the last one ends with the run';
COMMENT ON COLUMN io_probe_random_series_row.status IS 'ok; partial: something from outside ended it early; unsupported: not possible here; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_random_series_row.notes IS 'What to know about the run, a sentence each; in the row of its last second';
COMMENT ON COLUMN io_probe_random_series_row.sampled_at IS 'When this second ended';

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

-- Random fetches at several depths.

CREATE TYPE io_probe_depth_row AS (
    depth           integer,
    iops            double precision,
    mib_per_s       double precision,
    lat_avg_us      double precision,
    lat_p50_us      double precision,
    lat_p95_us      double precision,
    lat_p99_us      double precision,
    knee            boolean,
    engine          text,
    status          text,
    notes           text[],
    fetches         bigint,
    elapsed_ms      double precision,
    ci_low_iops     double precision,
    ci_high_iops    double precision,
    from_device_pct double precision,
    hole_blks       bigint,
    seed            bigint,
    device          text,
    scheduler       text,
    read_ahead_kb   bigint,
    relid           regclass,
    schemaname      text,
    relname         text,
    spcname         text,
    started_at      timestamp with time zone
);
COMMENT ON TYPE io_probe_depth_row IS 'Row of io_probe_depth: one depth';
COMMENT ON COLUMN io_probe_depth_row.depth IS 'Requests in flight';
COMMENT ON COLUMN io_probe_depth_row.iops IS 'Fetches a second over the wall clock';
COMMENT ON COLUMN io_probe_depth_row.mib_per_s IS 'iops times the block size, in MiB (2^20 bytes) a second';
COMMENT ON COLUMN io_probe_depth_row.lat_avg_us IS 'Mean latency in microseconds, from issue to completion';
COMMENT ON COLUMN io_probe_depth_row.lat_p50_us IS 'Median latency';
COMMENT ON COLUMN io_probe_depth_row.lat_p95_us IS 'Latency that 95 % did not exceed; a quantile is NULL where fewer than ten fetches lie above it';
COMMENT ON COLUMN io_probe_depth_row.lat_p99_us IS 'The same for 99 %';
COMMENT ON COLUMN io_probe_depth_row.knee IS 'Is this the smallest depth whose iops is within 5 % of the best? NULL under a rate limit, or where a depth has no rate';
COMMENT ON COLUMN io_probe_depth_row.engine IS 'How the reads were issued: pread, io_uring, threads';
COMMENT ON COLUMN io_probe_depth_row.status IS 'ok; partial: something from outside ended it early; unsupported: not possible here; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_depth_row.notes IS 'What to know about this row, a sentence each';
COMMENT ON COLUMN io_probe_depth_row.fetches IS 'Blocks fetched at this depth, and holes, which need no read';
COMMENT ON COLUMN io_probe_depth_row.elapsed_ms IS 'Wall clock of this depth in ms';
COMMENT ON COLUMN io_probe_depth_row.ci_low_iops IS 'Lower end of the 95 % interval of iops, over the twenty rounds in which the depths took turns; NULL where there were fewer';
COMMENT ON COLUMN io_probe_depth_row.ci_high_iops IS 'Upper end of the same';
COMMENT ON COLUMN io_probe_depth_row.from_device_pct IS 'Share of all fetches of the call that came from the device, as far as the kernel can tell';
COMMENT ON COLUMN io_probe_depth_row.hole_blks IS 'Blocks that were never written to the file: counted in fetches, but not read';
COMMENT ON COLUMN io_probe_depth_row.seed IS 'Seed of the order';
COMMENT ON COLUMN io_probe_depth_row.device IS 'Devices behind the relation, see io_probe_device';
COMMENT ON COLUMN io_probe_depth_row.scheduler IS 'Their I/O scheduler';
COMMENT ON COLUMN io_probe_depth_row.read_ahead_kb IS 'Readahead window in kB in force for newly opened files';
COMMENT ON COLUMN io_probe_depth_row.relid IS 'Relation';
COMMENT ON COLUMN io_probe_depth_row.schemaname IS 'Its schema';
COMMENT ON COLUMN io_probe_depth_row.relname IS 'Its name';
COMMENT ON COLUMN io_probe_depth_row.spcname IS 'Its tablespace';
COMMENT ON COLUMN io_probe_depth_row.started_at IS 'When the call started';

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
COMMENT ON FUNCTION io_probe_depth(regclass, integer[], interval, bigint, jsonb) IS 'Random fetches past the page cache at several depths, by default 1, 2, 4 … 64 as far as max_depth allows, which take turns in twenty rounds, a row each, and the knee of the curve. The duration is that of one depth. Options: max_bytes, max_iops, max_mib_per_s, wait';
REVOKE ALL ON FUNCTION io_probe_depth(regclass, integer[], interval, bigint, jsonb) FROM PUBLIC;

-- One request now and then.

CREATE TYPE io_probe_ping_row AS (
    request       bigint,
    op            text,
    warmup        boolean,
    time_us       double precision,
    served_by     text,
    path          text,
    status        text,
    notes         text[],
    blkno         bigint,
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
COMMENT ON TYPE io_probe_ping_row IS 'Row of io_probe_ping: one request';
COMMENT ON COLUMN io_probe_ping_row.request IS 'Number of the request, from 1';
COMMENT ON COLUMN io_probe_ping_row.op IS 'read: a block of the relation; write: a block of a scratch file in its tablespace';
COMMENT ON COLUMN io_probe_ping_row.warmup IS 'The first of its kind, to be left out of means';
COMMENT ON COLUMN io_probe_ping_row.time_us IS 'What the system call took, in microseconds; a write is not followed by a sync';
COMMENT ON COLUMN io_probe_ping_row.served_by IS 'read: os, if the block was in the OS page cache right before, else device; NULL for a write, if the kernel does not tell, or if the row is void';
COMMENT ON COLUMN io_probe_ping_row.path IS 'direct: O_DIRECT; os: through the OS page cache';
COMMENT ON COLUMN io_probe_ping_row.status IS 'ok; partial: something from outside ended it early; unsupported: not possible here; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_ping_row.notes IS 'What to know about the call, a sentence each; in the last row';
COMMENT ON COLUMN io_probe_ping_row.blkno IS 'read: the block of the relation';
COMMENT ON COLUMN io_probe_ping_row.seed IS 'Seed of the order; may be given again as an option';
COMMENT ON COLUMN io_probe_ping_row.device IS 'Devices behind the relation, see io_probe_device';
COMMENT ON COLUMN io_probe_ping_row.scheduler IS 'Their I/O scheduler';
COMMENT ON COLUMN io_probe_ping_row.read_ahead_kb IS 'Readahead window in kB in force for newly opened files';
COMMENT ON COLUMN io_probe_ping_row.relid IS 'Relation';
COMMENT ON COLUMN io_probe_ping_row.schemaname IS 'Its schema';
COMMENT ON COLUMN io_probe_ping_row.relname IS 'Its name';
COMMENT ON COLUMN io_probe_ping_row.spcname IS 'Its tablespace';
COMMENT ON COLUMN io_probe_ping_row.started_at IS 'When the call started';

CREATE FUNCTION io_probe_ping(
    rel     regclass,
    count   integer  DEFAULT 10,
    every   interval DEFAULT '100 ms',
    mode    text     DEFAULT 'read',
    path    text     DEFAULT 'direct',
    options jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_ping_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_ping_wrapper';
COMMENT ON FUNCTION io_probe_ping(regclass, integer, interval, text, text, jsonb) IS 'Sends single requests in turn and times each: read (random blocks of the relation), write (random blocks of a nameless scratch file in its tablespace) or pingpong (a write, a read, and so on); path direct or os. The modes that write need EXECUTE on io_probe_sync. Options: seed, wait';
REVOKE ALL ON FUNCTION io_probe_ping(regclass, integer, interval, text, text, jsonb) FROM PUBLIC;

-- What a sync costs: pg_test_fsync's table and the WAL's own pattern, on a nameless scratch file.

CREATE TYPE io_probe_sync_row AS (
    section               text,
    method                text,
    writes                integer,
    write_kb              integer,
    ops_per_s             double precision,
    us_per_op             double precision,
    lat_p50_us            double precision,
    lat_p95_us            double precision,
    lat_p99_us            double precision,
    lat_max_us            double precision,
    is_current            boolean,
    direct                boolean,
    status                text,
    notes                 text[],
    ops                   bigint,
    ci_low_us             double precision,
    ci_high_us            double precision,
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
COMMENT ON TYPE io_probe_sync_row IS 'Row of io_probe_sync: one way to make writes durable';
COMMENT ON COLUMN io_probe_sync_row.section IS 'one_write, two_writes: so many writes, then a sync; open_sync_size: 16 kB in 1 to 16 synchronous writes; other_fd: the file is synced through the descriptor that wrote or through another; no_sync: a write without a sync. These five are those of pg_test_fsync and write the same place again and again. wal_segment: on through a zero-filled segment, as the server writes its WAL';
COMMENT ON COLUMN io_probe_sync_row.method IS 'As wal_sync_method calls it (open_datasync: O_DSYNC; open_sync: O_SYNC), or the system calls in turn';
COMMENT ON COLUMN io_probe_sync_row.writes IS 'Write calls of an operation';
COMMENT ON COLUMN io_probe_sync_row.write_kb IS 'Size of each, in kB of 1,024 bytes; wal_segment: 1, 2, 8 and 32 WAL blocks, at a depth over 1 the WAL of each commit (see option commit_bytes)';
COMMENT ON COLUMN io_probe_sync_row.ops_per_s IS 'Operations a second: the writes and their sync; at a depth over 1, commits of all committers together. NULL under a rate limit';
COMMENT ON COLUMN io_probe_sync_row.us_per_op IS 'Mean time of an operation in microseconds; at a depth over 1, the time that passed per commit of all committers together';
COMMENT ON COLUMN io_probe_sync_row.lat_p50_us IS 'Median time of an operation in microseconds; at a depth over 1, how long a committer waited. NULL with fewer than 20 operations';
COMMENT ON COLUMN io_probe_sync_row.lat_p95_us IS '95 % took no longer; NULL with fewer than 200';
COMMENT ON COLUMN io_probe_sync_row.lat_p99_us IS '99 % took no longer; NULL with fewer than 1,000';
COMMENT ON COLUMN io_probe_sync_row.lat_max_us IS 'Longest time of an operation in microseconds';
COMMENT ON COLUMN io_probe_sync_row.is_current IS 'Does this server sync its WAL in just this way: the same wal_sync_method, with or without O_DIRECT? NULL in open_sync_size, other_fd and no_sync';
COMMENT ON COLUMN io_probe_sync_row.direct IS 'Was the file open with O_DIRECT?';
COMMENT ON COLUMN io_probe_sync_row.status IS 'ok; partial: something from outside ended it early; unsupported: not possible here; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_sync_row.notes IS 'What to know about the row, a sentence each';
COMMENT ON COLUMN io_probe_sync_row.ops IS 'Operations measured; the first of each turn is warm-up and not counted';
COMMENT ON COLUMN io_probe_sync_row.ci_low_us IS 'Lower end of the 95 % interval of us_per_op, which covers how far turns differed; NULL with fewer than three turns of 0.1 s';
COMMENT ON COLUMN io_probe_sync_row.ci_high_us IS 'Its upper end';
COMMENT ON COLUMN io_probe_sync_row.depth IS 'Committers that share one WAL; one whose WAL a flush of another has covered does not flush itself';
COMMENT ON COLUMN io_probe_sync_row.flushes IS 'Syncs that made the operations durable: a descriptor that syncs does so at each write; fewer than ops where committers shared them, 0 in no_sync';
COMMENT ON COLUMN io_probe_sync_row.device_writes_per_op IS 'Write requests that the device completed per operation, everyone''s included; kernels count the request that carries a flush as one more';
COMMENT ON COLUMN io_probe_sync_row.device_flushes_per_op IS 'Cache flushes that the device completed per operation, everyone''s included; none where it has no volatile cache, or where writes pass it (FUA)';
COMMENT ON COLUMN io_probe_sync_row.elapsed_ms IS 'Time spent in the operations, in milliseconds';
COMMENT ON COLUMN io_probe_sync_row.device IS 'Devices behind the directory, see io_probe_device';
COMMENT ON COLUMN io_probe_sync_row.scheduler IS 'Their I/O scheduler';
COMMENT ON COLUMN io_probe_sync_row.write_cache IS 'write back: the device has a volatile cache, which a sync must flush; write through: it has none, or says that it has none';
COMMENT ON COLUMN io_probe_sync_row.fua IS 'Can a single write pass the device''s cache (Force Unit Access)?';
COMMENT ON COLUMN io_probe_sync_row.fs_type IS 'Type of the file system';
COMMENT ON COLUMN io_probe_sync_row.directory IS 'Where the scratch file was, symbolic links followed';
COMMENT ON COLUMN io_probe_sync_row.started_at IS 'When the call started';

CREATE FUNCTION io_probe_sync(
    target   text     DEFAULT 'wal',
    spcname  text     DEFAULT NULL,
    duration interval DEFAULT NULL,
    write_kb integer  DEFAULT NULL,
    sections text[]   DEFAULT NULL,
    depth    integer  DEFAULT 1,
    options  jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_sync_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 40
AS 'MODULE_PATHNAME', 'io_probe_sync_wrapper';
COMMENT ON FUNCTION io_probe_sync(text, text, interval, integer, text[], integer, jsonb) IS 'Times syncs of a nameless scratch file beside the WAL (target wal) or in a tablespace (target tablespace, spcname): the sections of pg_test_fsync, whose writes have write_kb (by default a WAL block), and wal_segment; all rows in turns, over and over, each for duration (by default pg_io_probe.default_duration, or less where all rows would need over half of pg_io_probe.max_duration). depth over 1: so many committers share one WAL (section wal_segment). Options: commit_bytes (WAL of a commit, which may then share a block with others; depth over 1), commit_delay (microseconds, by default as this server would wait; depth over 1), direct (wal_segment with or without O_DIRECT, by default as this server), max_bytes, max_iops, max_mib_per_s (these three bind what is made durable, not no_sync), precision, wait';
REVOKE ALL ON FUNCTION io_probe_sync(text, text, interval, integer, text[], integer, jsonb) FROM PUBLIC;

-- The devices while the database works, as iostat shows them.

CREATE TYPE io_probe_iostat_row AS (
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
    length_ms            double precision,
    status               text,
    notes                text[]
);
COMMENT ON TYPE io_probe_iostat_row IS 'Row of io_probe_iostat: one device in one interval';
COMMENT ON COLUMN io_probe_iostat_row.sampled_at IS 'End of the interval';
COMMENT ON COLUMN io_probe_iostat_row.device IS 'Kernel name of the device, such as vda; NULL where no block device is known';
COMMENT ON COLUMN io_probe_iostat_row.util_pct IS 'Share of the interval with at least one request, in percent; up to 102 by the ticks of the kernel''s clock. A device that serves requests in parallel is not saturated at 100';
COMMENT ON COLUMN io_probe_iostat_row.aqu_sz IS 'Mean number of requests queued or in flight';
COMMENT ON COLUMN io_probe_iostat_row.r_s IS 'Reads completed per second';
COMMENT ON COLUMN io_probe_iostat_row.rmib_s IS 'MiB (2^20 bytes) read per second';
COMMENT ON COLUMN io_probe_iostat_row.r_await_ms IS 'Mean time from queueing to completion of a read, in ms; NULL without reads';
COMMENT ON COLUMN io_probe_iostat_row.rareq_kb IS 'Mean size of a read in kB of 1,024 bytes; NULL without reads';
COMMENT ON COLUMN io_probe_iostat_row.rrqm_s IS 'Reads merged into queued ones per second';
COMMENT ON COLUMN io_probe_iostat_row.w_s IS 'Writes completed per second';
COMMENT ON COLUMN io_probe_iostat_row.wmib_s IS 'MiB (2^20 bytes) written per second';
COMMENT ON COLUMN io_probe_iostat_row.w_await_ms IS 'Mean time from queueing to completion of a write, in ms; NULL without writes';
COMMENT ON COLUMN io_probe_iostat_row.wareq_kb IS 'Mean size of a write in kB of 1,024 bytes; NULL without writes';
COMMENT ON COLUMN io_probe_iostat_row.wrqm_s IS 'Writes merged into queued ones per second';
COMMENT ON COLUMN io_probe_iostat_row.d_s IS 'Discards completed per second; NULL before Linux 4.18';
COMMENT ON COLUMN io_probe_iostat_row.dmib_s IS 'MiB (2^20 bytes) discarded per second';
COMMENT ON COLUMN io_probe_iostat_row.d_await_ms IS 'Mean time from queueing to completion of a discard, in ms; NULL without discards';
COMMENT ON COLUMN io_probe_iostat_row.dareq_kb IS 'Mean size of a discard in kB of 1,024 bytes; NULL without discards';
COMMENT ON COLUMN io_probe_iostat_row.drqm_s IS 'Discards merged into queued ones per second';
COMMENT ON COLUMN io_probe_iostat_row.f_s IS 'Flushes completed per second; NULL before Linux 5.5';
COMMENT ON COLUMN io_probe_iostat_row.f_await_ms IS 'Mean time from queueing to completion of a flush, in ms; NULL without flushes';
COMMENT ON COLUMN io_probe_iostat_row.cpu_user_pct IS 'Share of all CPU time in user code, niced and guests included; this and the next four are of the whole machine and make 100';
COMMENT ON COLUMN io_probe_iostat_row.cpu_system_pct IS 'Share in the kernel, interrupts included';
COMMENT ON COLUMN io_probe_iostat_row.cpu_iowait_pct IS 'Share idle with I/O outstanding: a hint, not a measure of storage';
COMMENT ON COLUMN io_probe_iostat_row.cpu_idle_pct IS 'Share idle';
COMMENT ON COLUMN io_probe_iostat_row.cpu_steal_pct IS 'Share that the hypervisor gave to others';
COMMENT ON COLUMN io_probe_iostat_row.io_pressure_pct IS 'Share of the interval in which at least one task of the machine waited for I/O (some of /proc/pressure/io); NULL where the kernel does not tell';
COMMENT ON COLUMN io_probe_iostat_row.io_pressure_full_pct IS 'Share in which all tasks that were not idle did (full)';
COMMENT ON COLUMN io_probe_iostat_row.cgroup_rmib_s IS 'Of rmib_s, what the cgroup of the server read; NULL without a cgroup that counts I/O';
COMMENT ON COLUMN io_probe_iostat_row.cgroup_wmib_s IS 'Of wmib_s, what the cgroup of the server wrote';
COMMENT ON COLUMN io_probe_iostat_row.sample IS 'Number of the interval, from 1';
COMMENT ON COLUMN io_probe_iostat_row.length_ms IS 'What the interval really lasted, in ms';
COMMENT ON COLUMN io_probe_iostat_row.status IS 'ok; partial: it ended early, since the statement had no more time; unsupported: the device has no counters here, or none is known; void: a counter went backwards, or the device came or went';
COMMENT ON COLUMN io_probe_iostat_row.notes IS 'What to know about the interval, a sentence each; limits of the cgroup that bind stand in the first';

CREATE FUNCTION io_probe_iostat(
    every   interval DEFAULT '1 s',
    samples integer  DEFAULT 1,
    device  text     DEFAULT NULL,
    options jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_iostat_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_iostat_wrapper';
COMMENT ON FUNCTION io_probe_iostat(interval, integer, text, jsonb) IS 'Watches devices for so many intervals, as iostat -x does, beside CPU and I/O pressure: those behind the tablespaces, the WAL and temporary files, or the one that is named. Never since boot: the first row is the first interval. Reads /proc and /sys; no I/O. Takes no lock, so it runs beside a probe. There are no options yet';
REVOKE ALL ON FUNCTION io_probe_iostat(interval, integer, text, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_iostat(interval, integer, text, jsonb) TO pg_monitor;

-- The same for as long as a query runs.

CREATE TYPE io_probe_iostat_query_row AS (
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
    length_ms            double precision,
    status               text,
    notes                text[],
    query_ms             double precision,
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
COMMENT ON TYPE io_probe_iostat_query_row IS 'Row of io_probe_iostat_query: one device in one interval, as in io_probe_iostat_row; the last row has no device and the query''s own figures';
COMMENT ON COLUMN io_probe_iostat_query_row.sampled_at IS 'End of the interval';
COMMENT ON COLUMN io_probe_iostat_query_row.device IS 'Device; NULL in the last row, which is of the query';
COMMENT ON COLUMN io_probe_iostat_query_row.util_pct IS 'Share of the interval with at least one request, in percent; up to 102 by the ticks of the kernel''s clock. A device that serves requests in parallel is not saturated at 100';
COMMENT ON COLUMN io_probe_iostat_query_row.aqu_sz IS 'Mean number of requests queued or in flight';
COMMENT ON COLUMN io_probe_iostat_query_row.r_s IS 'Reads completed per second';
COMMENT ON COLUMN io_probe_iostat_query_row.rmib_s IS 'MiB (2^20 bytes) read per second';
COMMENT ON COLUMN io_probe_iostat_query_row.r_await_ms IS 'Mean time from queueing to completion of a read, in ms; NULL without reads';
COMMENT ON COLUMN io_probe_iostat_query_row.rareq_kb IS 'Mean size of a read in kB of 1,024 bytes; NULL without reads';
COMMENT ON COLUMN io_probe_iostat_query_row.rrqm_s IS 'Reads merged into queued ones per second';
COMMENT ON COLUMN io_probe_iostat_query_row.w_s IS 'Writes completed per second';
COMMENT ON COLUMN io_probe_iostat_query_row.wmib_s IS 'MiB (2^20 bytes) written per second';
COMMENT ON COLUMN io_probe_iostat_query_row.w_await_ms IS 'Mean time from queueing to completion of a write, in ms; NULL without writes';
COMMENT ON COLUMN io_probe_iostat_query_row.wareq_kb IS 'Mean size of a write in kB of 1,024 bytes; NULL without writes';
COMMENT ON COLUMN io_probe_iostat_query_row.wrqm_s IS 'Writes merged into queued ones per second';
COMMENT ON COLUMN io_probe_iostat_query_row.d_s IS 'Discards completed per second; NULL before Linux 4.18';
COMMENT ON COLUMN io_probe_iostat_query_row.dmib_s IS 'MiB (2^20 bytes) discarded per second';
COMMENT ON COLUMN io_probe_iostat_query_row.d_await_ms IS 'Mean time from queueing to completion of a discard, in ms; NULL without discards';
COMMENT ON COLUMN io_probe_iostat_query_row.dareq_kb IS 'Mean size of a discard in kB of 1,024 bytes; NULL without discards';
COMMENT ON COLUMN io_probe_iostat_query_row.drqm_s IS 'Discards merged into queued ones per second';
COMMENT ON COLUMN io_probe_iostat_query_row.f_s IS 'Flushes completed per second; NULL before Linux 5.5';
COMMENT ON COLUMN io_probe_iostat_query_row.f_await_ms IS 'Mean time from queueing to completion of a flush, in ms; NULL without flushes';
COMMENT ON COLUMN io_probe_iostat_query_row.cpu_user_pct IS 'Share of all CPU time in user code, niced and guests included; this and the next four are of the whole machine and make 100';
COMMENT ON COLUMN io_probe_iostat_query_row.cpu_system_pct IS 'Share in the kernel, interrupts included';
COMMENT ON COLUMN io_probe_iostat_query_row.cpu_iowait_pct IS 'Share idle with I/O outstanding: a hint, not a measure of storage';
COMMENT ON COLUMN io_probe_iostat_query_row.cpu_idle_pct IS 'Share idle';
COMMENT ON COLUMN io_probe_iostat_query_row.cpu_steal_pct IS 'Share that the hypervisor gave to others';
COMMENT ON COLUMN io_probe_iostat_query_row.io_pressure_pct IS 'Share of the interval in which at least one task of the machine waited for I/O (some of /proc/pressure/io); NULL where the kernel does not tell';
COMMENT ON COLUMN io_probe_iostat_query_row.io_pressure_full_pct IS 'Share in which all tasks that were not idle did (full)';
COMMENT ON COLUMN io_probe_iostat_query_row.cgroup_rmib_s IS 'Of rmib_s, what the cgroup of the server read; NULL without a cgroup that counts I/O';
COMMENT ON COLUMN io_probe_iostat_query_row.cgroup_wmib_s IS 'Of wmib_s, what the cgroup of the server wrote';
COMMENT ON COLUMN io_probe_iostat_query_row.sample IS 'Number of the interval, from 1; NULL in the last row';
COMMENT ON COLUMN io_probe_iostat_query_row.length_ms IS 'What the interval really lasted, in ms: the last one ends with the query. Of a long query they are doubled, so that at most 3,600 are kept';
COMMENT ON COLUMN io_probe_iostat_query_row.status IS 'ok; unsupported: the device has no counters here, or none is known; void: a counter went backwards, or the device came or went';
COMMENT ON COLUMN io_probe_iostat_query_row.notes IS 'What to know about the interval, a sentence each; limits of the cgroup that bind stand in the first';
COMMENT ON COLUMN io_probe_iostat_query_row.query_ms IS 'What the query took, its planning included, in ms; this and all that follow are in the last row only';
COMMENT ON COLUMN io_probe_iostat_query_row.query_rows IS 'Rows that it returned, all of which were discarded';
COMMENT ON COLUMN io_probe_iostat_query_row.shared_blks_hit IS 'Blocks that it found in shared buffers, those for its planning and by its parallel workers included; this and the next eight count what EXPLAIN (BUFFERS, WAL) does';
COMMENT ON COLUMN io_probe_iostat_query_row.shared_blks_read IS 'Blocks that it asked the operating system for';
COMMENT ON COLUMN io_probe_iostat_query_row.shared_blks_dirtied IS 'Blocks that it changed, hint bits and pruning included';
COMMENT ON COLUMN io_probe_iostat_query_row.shared_blks_written IS 'Blocks that it had to write itself to make room in shared buffers, whoever had changed them';
COMMENT ON COLUMN io_probe_iostat_query_row.local_blks_hit IS 'Blocks of temporary tables that it found in the session''s buffers';
COMMENT ON COLUMN io_probe_iostat_query_row.local_blks_read IS 'Blocks of temporary tables that it read';
COMMENT ON COLUMN io_probe_iostat_query_row.local_blks_written IS 'Blocks of temporary tables that it wrote';
COMMENT ON COLUMN io_probe_iostat_query_row.temp_blks_read IS 'Blocks of temporary files (sorts, hashes) that it read';
COMMENT ON COLUMN io_probe_iostat_query_row.temp_blks_written IS 'Blocks of temporary files that it wrote';
COMMENT ON COLUMN io_probe_iostat_query_row.wal_bytes IS 'WAL that it wrote, in bytes: reading may prune pages and set hint bits';
COMMENT ON COLUMN io_probe_iostat_query_row.device_bytes IS 'Bytes fetched from storage on its behalf; NULL where that is not known, as under a plan with parallel workers, and a note says why';
COMMENT ON COLUMN io_probe_iostat_query_row.device_source IS 'Whose account device_bytes is: backend, or io_workers, which serve other sessions too';

CREATE FUNCTION io_probe_iostat_query(
    query   text,
    every   interval DEFAULT '1 s',
    options jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_iostat_query_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_iostat_query_wrapper';
COMMENT ON FUNCTION io_probe_iostat_query(text, interval, jsonb) IS 'Runs a query with the caller''s rights, throws its rows away, and gives io_probe_iostat''s rows for the time it took, then one with the query''s own figures. One statement that reads; what would write is refused. It has no bound on time but statement_timeout, and takes no lock, so that a probe can be watched. Options: device';
REVOKE ALL ON FUNCTION io_probe_iostat_query(text, interval, jsonb) FROM PUBLIC;

-- The curve of throughput over readahead windows, without touching /sys.

CREATE TYPE io_probe_readahead_row AS (
    window_kb      bigint,
    mode           text,
    mib_per_s      double precision,
    us_per_block   double precision,
    rareq_kb       double precision,
    aqu_sz         double precision,
    best           boolean,
    blockdev_setra text,
    udev_rule      text,
    status         text,
    notes          text[],
    ci_low_us      double precision,
    ci_high_us     double precision,
    cache_us       double precision,
    turns          bigint,
    blks_read      bigint,
    elapsed_ms     double precision,
    device_bytes   bigint,
    device_ios     bigint,
    ios_per_block  double precision,
    r_await_ms     double precision,
    util_pct       double precision,
    other_bytes    bigint,
    from_device_pct double precision,
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
COMMENT ON TYPE io_probe_readahead_row IS 'Row of io_probe_readahead: one readahead window';
COMMENT ON COLUMN io_probe_readahead_row.window_kb IS 'Readahead window in kB of 1,024 bytes, as in /sys/block/…/queue/read_ahead_kb';
COMMENT ON COLUMN io_probe_readahead_row.mode IS 'kernel: the setting in force, read through the OS page cache as it is; emulated: requests of one window, one ahead, plus cache_us a block';
COMMENT ON COLUMN io_probe_readahead_row.mib_per_s IS 'What a cold sequential scan gets that reads a block at a time, in MiB (2^20 bytes) per second: the block size over us_per_block';
COMMENT ON COLUMN io_probe_readahead_row.us_per_block IS 'Time per block in microseconds, without the work of the server';
COMMENT ON COLUMN io_probe_readahead_row.rareq_kb IS 'Mean size of a read at the device in kB of 1,024 bytes (iostat''s rareq-sz), everyone''s reads included';
COMMENT ON COLUMN io_probe_readahead_row.aqu_sz IS 'Mean number of requests queued or in flight, everyone''s included; emulated: over the time with cache_us';
COMMENT ON COLUMN io_probe_readahead_row.best IS 'The smallest window whose throughput is within 3 % of the highest; NULL if a row is void or had fewer than three turns, or something from outside ended it early';
COMMENT ON COLUMN io_probe_readahead_row.blockdev_setra IS 'The line to set this window until the next boot, as root; sessions keep the window with which they opened a file';
COMMENT ON COLUMN io_probe_readahead_row.udev_rule IS 'The line to set it at each boot, for a file in /etc/udev/rules.d';
COMMENT ON COLUMN io_probe_readahead_row.status IS 'ok; partial: something from outside ended it early; unsupported: not possible here; void: part of the blocks did not come from the device, so there are no figures';
COMMENT ON COLUMN io_probe_readahead_row.notes IS 'What to know about the row, a sentence each';
COMMENT ON COLUMN io_probe_readahead_row.ci_low_us IS 'Lower end of the 95 % interval of us_per_block';
COMMENT ON COLUMN io_probe_readahead_row.ci_high_us IS 'Upper end';
COMMENT ON COLUMN io_probe_readahead_row.cache_us IS 'emulated: what the page cache costs a block, in microseconds, measured at the setting in force and contained in us_per_block';
COMMENT ON COLUMN io_probe_readahead_row.turns IS 'Turns that count: windows take turns, the first of each is warm-up, and those of the kernel that other work disturbed are left out';
COMMENT ON COLUMN io_probe_readahead_row.blks_read IS 'Blocks read in them';
COMMENT ON COLUMN io_probe_readahead_row.elapsed_ms IS 'Wall clock of all turns, warm-up and those left out included, in ms';
COMMENT ON COLUMN io_probe_readahead_row.device_bytes IS 'Bytes fetched from storage by this backend in the turns that count';
COMMENT ON COLUMN io_probe_readahead_row.device_ios IS 'Reads that the devices completed meanwhile, everyone''s included';
COMMENT ON COLUMN io_probe_readahead_row.ios_per_block IS 'The same per block read';
COMMENT ON COLUMN io_probe_readahead_row.r_await_ms IS 'Mean time from queueing to completion of a read, in ms';
COMMENT ON COLUMN io_probe_readahead_row.util_pct IS 'Share of the time with at least one request at the device, in percent; emulated: of the time with cache_us';
COMMENT ON COLUMN io_probe_readahead_row.other_bytes IS 'Bytes that the devices moved for others';
COMMENT ON COLUMN io_probe_readahead_row.from_device_pct IS 'Share of the blocks that came from the device, in percent: below 100 something was cached';
COMMENT ON COLUMN io_probe_readahead_row.engine IS 'How it read: pread for kernel; else io_uring or threads past the page cache, or readahead where O_DIRECT is refused, which is readahead(2)';
COMMENT ON COLUMN io_probe_readahead_row.device IS 'Devices behind the relation, see io_probe_device';
COMMENT ON COLUMN io_probe_readahead_row.scheduler IS 'Their I/O scheduler';
COMMENT ON COLUMN io_probe_readahead_row.read_ahead_kb IS 'Readahead window in kB in force for newly opened files';
COMMENT ON COLUMN io_probe_readahead_row.relid IS 'Relation';
COMMENT ON COLUMN io_probe_readahead_row.schemaname IS 'Its schema';
COMMENT ON COLUMN io_probe_readahead_row.relname IS 'Its name';
COMMENT ON COLUMN io_probe_readahead_row.spcname IS 'Its tablespace';
COMMENT ON COLUMN io_probe_readahead_row.started_at IS 'When the call started';

CREATE FUNCTION io_probe_readahead(
    rel        regclass,
    windows_kb integer[] DEFAULT '{16,32,64,128,256,512,1024,2048,4096}',
    duration   interval  DEFAULT NULL,
    options    jsonb     DEFAULT '{}'
)
RETURNS SETOF io_probe_readahead_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_readahead_wrapper';
COMMENT ON FUNCTION io_probe_readahead(regclass, integer[], interval, jsonb) IS 'Throughput of a cold sequential scan over readahead windows, in turn: the setting in force as it is, others emulated. Evicts from the OS cache what it reads there, so it needs EXECUTE on io_probe_evict. Options: max_bytes, max_iops, max_mib_per_s, precision, wait';
REVOKE ALL ON FUNCTION io_probe_readahead(regclass, integer[], interval, jsonb) FROM PUBLIC;

-- What reading a block takes.

CREATE TYPE io_probe_page_cost_row AS (
    tier          text,
    pattern       text,
    density       double precision,
    depth         integer,
    us_per_block  double precision,
    ci_low_us     double precision,
    ci_high_us    double precision,
    samples       bigint,
    resident_pct  double precision,
    us_per_tuple  double precision,
    status        text,
    notes         text[],
    turns         bigint,
    seed          bigint,
    device        text,
    scheduler     text,
    read_ahead_kb bigint,
    relid         regclass,
    schemaname    text,
    relname       text,
    spcname       text,
    started_at    timestamptz
);
COMMENT ON TYPE io_probe_page_cost_row IS 'Row of io_probe_page_cost: one way to read a block, or the work on a tuple';
COMMENT ON COLUMN io_probe_page_cost_row.tier IS 'Who serves the block: shared (shared buffers), os (OS cache) or device; cpu for the row of the tuple';
COMMENT ON COLUMN io_probe_page_cost_row.pattern IS 'sequential: as a sequential scan of this server reads. random: one block after the other in no order, as an index scan. sparse: ascending with gaps, as a bitmap heap scan of this server. tuple: the executor''s work on the tuples of a block';
COMMENT ON COLUMN io_probe_page_cost_row.density IS 'Sparse only: share of the blocks that are read';
COMMENT ON COLUMN io_probe_page_cost_row.depth IS 'Reads that may be in flight: 1 for random, effective_io_concurrency for sparse (0 is no prefetch); NULL where the server decides';
COMMENT ON COLUMN io_probe_page_cost_row.us_per_block IS 'Time per block read in microseconds, without the work on its tuples; in the row of the tuple, that work. NULL if it could not be measured';
COMMENT ON COLUMN io_probe_page_cost_row.ci_low_us IS 'Lower end of the 95 % interval of us_per_block; from three turns on for device, from six for the others';
COMMENT ON COLUMN io_probe_page_cost_row.ci_high_us IS 'Upper end of that interval';
COMMENT ON COLUMN io_probe_page_cost_row.samples IS 'Blocks that were timed; tuples in the row of the tuple';
COMMENT ON COLUMN io_probe_page_cost_row.resident_pct IS 'Share of them in percent that the OS cache held before: 0 or nearly so for device; NULL for shared and cpu';
COMMENT ON COLUMN io_probe_page_cost_row.us_per_tuple IS 'Row of the tuple: microseconds per tuple of a count of all tuples, beside the page itself';
COMMENT ON COLUMN io_probe_page_cost_row.status IS 'ok; partial: ended early, or no time could be measured, see notes';
COMMENT ON COLUMN io_probe_page_cost_row.notes IS 'What limits the figures';
COMMENT ON COLUMN io_probe_page_cost_row.turns IS 'Turns that count, with slow ones that are left out of the time; of device the first is warm-up if there are more than three. Pairs of counts in the row of the tuple';
COMMENT ON COLUMN io_probe_page_cost_row.seed IS 'Seed that chose the blocks';
COMMENT ON COLUMN io_probe_page_cost_row.device IS 'Devices behind the relation, see io_probe_device';
COMMENT ON COLUMN io_probe_page_cost_row.scheduler IS 'Their I/O scheduler';
COMMENT ON COLUMN io_probe_page_cost_row.read_ahead_kb IS 'Readahead window in kB in force for newly opened files';
COMMENT ON COLUMN io_probe_page_cost_row.relid IS 'Relation';
COMMENT ON COLUMN io_probe_page_cost_row.schemaname IS 'Its schema';
COMMENT ON COLUMN io_probe_page_cost_row.relname IS 'Its name';
COMMENT ON COLUMN io_probe_page_cost_row.spcname IS 'Its tablespace';
COMMENT ON COLUMN io_probe_page_cost_row.started_at IS 'When the call started';

CREATE FUNCTION io_probe_page_cost(
    rel           regclass,
    duration      interval           DEFAULT NULL,
    cold          boolean            DEFAULT false,
    densities     double precision[] DEFAULT '{0.03,0.1,0.2,0.35,0.5,0.72,1}',
    concurrencies integer[]          DEFAULT NULL,
    seed          bigint             DEFAULT NULL,
    options       jsonb              DEFAULT '{}'
)
RETURNS SETOF io_probe_page_cost_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 42
AS 'MODULE_PATHNAME', 'io_probe_page_cost_wrapper';
COMMENT ON FUNCTION io_probe_page_cost(regclass, interval, boolean, double precision[], integer[], bigint, jsonb) IS 'The times behind planner costs: what the server takes to read a block from shared buffers, the OS cache and the device, in order, at random, and ascending with gaps at several densities and effective_io_concurrency settings, all in turn; 14 s at most by default. Reads from the device what the OS cache does not hold, and drops it from there afterwards; only with cold, which needs EXECUTE on io_probe_evict, are pages evicted that were cached before. Options: max_bytes (for each of sequential, random and the depths of sparse; all together may read their sum), max_iops, max_mib_per_s, precision, wait';
REVOKE ALL ON FUNCTION io_probe_page_cost(regclass, interval, boolean, double precision[], integer[], bigint, jsonb) FROM PUBLIC;

-- What the settings should be by what was measured. Nothing is changed.

CREATE TYPE io_probe_recommend_row AS (
    scope          text,
    name           text,
    setting        text,
    current        text,
    current_source text,
    recommended    text,
    low            text,
    high           text,
    applies        text,
    statement      text,
    why            text,
    rel_used       regclass,
    evidence       jsonb
);
COMMENT ON TYPE io_probe_recommend_row IS 'Row of io_probe_recommend: one setting in one place';
COMMENT ON COLUMN io_probe_recommend_row.scope IS 'For what it is set: cluster, tablespace or device';
COMMENT ON COLUMN io_probe_recommend_row.name IS 'Name of the tablespace, or of the device; NULL for the cluster, and where the device is unknown';
COMMENT ON COLUMN io_probe_recommend_row.setting IS 'Name of the setting: the server''s, or the kernel''s for a device';
COMMENT ON COLUMN io_probe_recommend_row.current IS 'Value in force, as SHOW prints it; of a device in kB as in /sys';
COMMENT ON COLUMN io_probe_recommend_row.current_source IS 'Where it comes from: source of pg_settings for this session, tablespace if the tablespace has a value of its own, or /sys';
COMMENT ON COLUMN io_probe_recommend_row.recommended IS 'Value that what was measured speaks for, in the form that ALTER SYSTEM takes; the same as current: keep what you have; NULL: nothing can be said, and why says so';
COMMENT ON COLUMN io_probe_recommend_row.low IS 'Lowest value that is as good within the noise, or of planned costs within a hundredth by the model; NULL for a setting without an order, or without figures';
COMMENT ON COLUMN io_probe_recommend_row.high IS 'Highest value that is as good within the noise';
COMMENT ON COLUMN io_probe_recommend_row.applies IS 'How a change takes effect: now, reload (of the configuration), restart (of the server), or root (a command of the operating system)';
COMMENT ON COLUMN io_probe_recommend_row.statement IS 'What sets it: SQL, or a shell command where applies is root; NULL if there is nothing to change';
COMMENT ON COLUMN io_probe_recommend_row.why IS 'The reason, one sentence';
COMMENT ON COLUMN io_probe_recommend_row.rel_used IS 'Relation that was measured, or would have been';
COMMENT ON COLUMN io_probe_recommend_row.evidence IS 'The figures that it rests on';

CREATE FUNCTION io_probe_recommend(
    rel      regclass DEFAULT NULL,
    cache    text     DEFAULT 'planned',
    unit     text     DEFAULT 'cpu',
    settings text[]   DEFAULT NULL,
    duration interval DEFAULT NULL,
    cold     boolean  DEFAULT false,
    writes   boolean  DEFAULT false,
    options  jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_recommend_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 8
AS 'MODULE_PATHNAME', 'io_probe_recommend_wrapper';
COMMENT ON FUNCTION io_probe_recommend(regclass, text, text, text[], interval, boolean, boolean, jsonb) IS 'What the settings should be by what was measured, with reasons; changes nothing. Measures on the relation, or on the largest tables of each tablespace; settings picks from random_page_cost, seq_page_cost, effective_io_concurrency, maintenance_io_concurrency, read_ahead_kb, io_combine_limit, wal_sync_method and commit_delay. cold => true lets it evict what it reads (needs EXECUTE on io_probe_evict), writes => true lets it write scratch files beside the WAL (needs EXECUTE on io_probe_sync). Options: max_bytes, max_iops, max_mib_per_s, precision, wait';
REVOKE ALL ON FUNCTION io_probe_recommend(regclass, text, text, text[], interval, boolean, boolean, jsonb) FROM PUBLIC;

-- A plan as rows. PUBLIC may execute these: they can do nothing that EXPLAIN can't.

CREATE TYPE io_probe_explain_row AS (
    node_id             integer,
    parent_id           integer,
    level               integer,
    node_type           text,
    relid               regclass,
    indexid             regclass,
    alias               text,
    access              text,
    shared_blks_hit     bigint,
    shared_blks_read    bigint,
    temp_blks_read      bigint,
    temp_blks_written   bigint,
    io_read_ms          double precision,
    self_ms             double precision,
    total_ms            double precision,
    plan_rows           double precision,
    actual_rows         double precision,
    loops               bigint,
    startup_cost        double precision,
    total_cost          double precision,
    local_blks_hit      bigint,
    local_blks_read     bigint,
    predicted_os_ms     double precision,
    predicted_device_ms double precision
);
COMMENT ON TYPE io_probe_explain_row IS 'Row of io_probe_explain: one plan node';
COMMENT ON COLUMN io_probe_explain_row.node_id IS '1 for the top node, then in the order in which EXPLAIN prints them';
COMMENT ON COLUMN io_probe_explain_row.parent_id IS 'Node below which EXPLAIN prints this one; NULL for the top node';
COMMENT ON COLUMN io_probe_explain_row.level IS 'Depth below the top node, which is 0';
COMMENT ON COLUMN io_probe_explain_row.node_type IS 'Name as EXPLAIN prints it';
COMMENT ON COLUMN io_probe_explain_row.relid IS 'Table that the node reads or modifies; joins with every probe. For a Bitmap Index Scan the table that it works for';
COMMENT ON COLUMN io_probe_explain_row.indexid IS 'Index that the node reads';
COMMENT ON COLUMN io_probe_explain_row.alias IS 'Name of the item in the query';
COMMENT ON COLUMN io_probe_explain_row.access IS 'How the node reaches its blocks: sequential, random or bitmap; NULL for a node that scans nothing';
COMMENT ON COLUMN io_probe_explain_row.shared_blks_hit IS 'Own blocks found in shared buffers; NULL unless executed';
COMMENT ON COLUMN io_probe_explain_row.shared_blks_read IS 'Own blocks read into shared buffers, from the OS cache or the device';
COMMENT ON COLUMN io_probe_explain_row.temp_blks_read IS 'Own blocks of temporary files read';
COMMENT ON COLUMN io_probe_explain_row.temp_blks_written IS 'Own blocks of temporary files written';
COMMENT ON COLUMN io_probe_explain_row.io_read_ms IS 'Own time in ms spent waiting for blocks of tables and indexes, all processes together; NULL without track_io_timing';
COMMENT ON COLUMN io_probe_explain_row.self_ms IS 'Own part of total_ms, never negative';
COMMENT ON COLUMN io_probe_explain_row.total_ms IS 'Time in ms in the node and below it: average per loop times loops, so workers add up';
COMMENT ON COLUMN io_probe_explain_row.plan_rows IS 'Rows per loop that the planner expected';
COMMENT ON COLUMN io_probe_explain_row.actual_rows IS 'Rows per loop that came out';
COMMENT ON COLUMN io_probe_explain_row.loops IS 'How often the node was started, over all processes';
COMMENT ON COLUMN io_probe_explain_row.startup_cost IS 'The planner''s cost up to the first row';
COMMENT ON COLUMN io_probe_explain_row.total_cost IS 'The planner''s cost up to the last row';
COMMENT ON COLUMN io_probe_explain_row.local_blks_hit IS 'Own blocks of temporary tables found in the session''s buffers';
COMMENT ON COLUMN io_probe_explain_row.local_blks_read IS 'Own blocks of temporary tables read into them';
COMMENT ON COLUMN io_probe_explain_row.predicted_os_ms IS 'Time in ms that the node''s own shared blocks would take by measured times if all that it read came from the OS cache, one process at a time; NULL unless executed and the times are known';
COMMENT ON COLUMN io_probe_explain_row.predicted_device_ms IS 'The same if all that it read came from the device, in the order in which the node reaches its blocks. What was read took a time between the two, nearer to the one that served; io_read_ms is less where waiting overlaps with work (PostgreSQL 18)';

CREATE FUNCTION io_probe_explain(query text, execute boolean DEFAULT false, options jsonb DEFAULT '{}')
RETURNS SETOF io_probe_explain_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_explain_wrapper';
COMMENT ON FUNCTION io_probe_explain(text, boolean, jsonb) IS 'Plan of one query as rows, a node each. With execute the query is run, in a read-only subtransaction, and each node shows its own blocks and times: the sums over all nodes are those of the statement. Option page_cost: rows of io_probe_page_cost to predict from, instead of those that this session measured last in the tablespace';

CREATE FUNCTION io_probe_explain_json(plan json, options jsonb DEFAULT '{}')
RETURNS SETOF io_probe_explain_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_explain_json_wrapper';
COMMENT ON FUNCTION io_probe_explain_json(json, jsonb) IS 'The rows of io_probe_explain from an EXPLAIN (FORMAT JSON) that was taken elsewhere, such as in the log of auto_explain. Names are looked up in this database, and so are sizes and settings for predictions. Option page_cost: as there';
