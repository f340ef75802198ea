-- Printed from the declaration in surface/: do not edit.
\echo Use "CREATE EXTENSION pg_io_probe" to load this file. \quit

-- Facts that are only read: devices, caches, running probes.

CREATE TYPE io_probe_device_full_row AS (
    object              text,
    spcname             text,
    device              text,
    scheduler           text,
    read_ahead_kb       bigint,
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
    size_bytes          bigint,
    read_only           boolean,
    write_cache         text,
    fua                 boolean,
    direct_io_align     bigint,
    status              text,
    notes               text[]
);
COMMENT ON TYPE io_probe_device_full_row IS 'Row of io_probe_device_full: one directory of the server on one device';
COMMENT ON COLUMN io_probe_device_full_row.object IS 'What the directory is for: tablespace, wal or temp (temporary files of this session)';
COMMENT ON COLUMN io_probe_device_full_row.spcname IS 'Name of the tablespace; NULL for the WAL';
COMMENT ON COLUMN io_probe_device_full_row.device IS 'The disk that does the I/O, below partitions, LVM, encryption and software RAID. There is a row for each disk';
COMMENT ON COLUMN io_probe_device_full_row.scheduler IS 'I/O scheduler in force on the device';
COMMENT ON COLUMN io_probe_device_full_row.read_ahead_kb IS 'Readahead window in kB. An open file keeps the window with which it was opened';
COMMENT ON COLUMN io_probe_device_full_row.rotational IS 'Does the device report that it rotates? Virtual disks often report this wrongly';
COMMENT ON COLUMN io_probe_device_full_row.fs_type IS 'Type of the file system';
COMMENT ON COLUMN io_probe_device_full_row.mount_point IS 'Where the file system is mounted';
COMMENT ON COLUMN io_probe_device_full_row.directory IS 'Directory of the object, symbolic links resolved';
COMMENT ON COLUMN io_probe_device_full_row.fs_free_bytes IS 'Bytes that are free for users other than root';
COMMENT ON COLUMN io_probe_device_full_row.mount_options IS 'Mount options of the file system';
COMMENT ON COLUMN io_probe_device_full_row.top_device IS 'Block device of the file system: a partition, dm, md or the disk';
COMMENT ON COLUMN io_probe_device_full_row.model IS 'Model name that the device reports';
COMMENT ON COLUMN io_probe_device_full_row.schedulers IS 'Schedulers that the kernel offers';
COMMENT ON COLUMN io_probe_device_full_row.nr_requests IS 'Longest queue of requests in the kernel for the device';
COMMENT ON COLUMN io_probe_device_full_row.max_sectors_kb IS 'Largest request that the kernel sends, in kB';
COMMENT ON COLUMN io_probe_device_full_row.max_hw_sectors_kb IS 'Largest request that the device accepts, in kB';
COMMENT ON COLUMN io_probe_device_full_row.logical_block_size IS 'Smallest unit that can be addressed, in bytes';
COMMENT ON COLUMN io_probe_device_full_row.physical_block_size IS 'Smallest unit that the device writes without reading first, in bytes';
COMMENT ON COLUMN io_probe_device_full_row.fs_block_size IS 'Allocation unit of the file system in bytes';
COMMENT ON COLUMN io_probe_device_full_row.size_bytes IS 'Size of the device in bytes';
COMMENT ON COLUMN io_probe_device_full_row.read_only IS 'Is the device read only?';
COMMENT ON COLUMN io_probe_device_full_row.write_cache IS 'write back: the device has a volatile cache, which a sync must flush; write through: it has none, or reports none';
COMMENT ON COLUMN io_probe_device_full_row.fua IS 'Can a single write bypass the device''s volatile cache (Force Unit Access)?';
COMMENT ON COLUMN io_probe_device_full_row.direct_io_align IS 'O_DIRECT requires multiples of this many bytes; 0: O_DIRECT is not possible';
COMMENT ON COLUMN io_probe_device_full_row.status IS 'ok; unsupported: no block device is known behind the directory';
COMMENT ON COLUMN io_probe_device_full_row.notes IS 'What could not be found out, and why';

CREATE TYPE io_probe_device_row AS (
    object        text,
    spcname       text,
    device        text,
    scheduler     text,
    read_ahead_kb bigint,
    rotational    boolean,
    fs_type       text,
    write_cache   text,
    status        text
);
COMMENT ON TYPE io_probe_device_row IS 'Row of io_probe_device: one directory of the server on one device';
COMMENT ON COLUMN io_probe_device_row.object IS 'What the directory is for: tablespace, wal or temp (temporary files of this session)';
COMMENT ON COLUMN io_probe_device_row.spcname IS 'Name of the tablespace; NULL for the WAL';
COMMENT ON COLUMN io_probe_device_row.device IS 'The disk that does the I/O, below partitions, LVM, encryption and software RAID. There is a row for each disk';
COMMENT ON COLUMN io_probe_device_row.scheduler IS 'I/O scheduler in force on the device';
COMMENT ON COLUMN io_probe_device_row.read_ahead_kb IS 'Readahead window in kB. An open file keeps the window with which it was opened';
COMMENT ON COLUMN io_probe_device_row.rotational IS 'Does the device report that it rotates? Virtual disks often report this wrongly';
COMMENT ON COLUMN io_probe_device_row.fs_type IS 'Type of the file system';
COMMENT ON COLUMN io_probe_device_row.write_cache IS 'write back: the device has a volatile cache, which a sync must flush; write through: it has none, or reports none';
COMMENT ON COLUMN io_probe_device_row.status IS 'ok; unsupported: no block device is known behind the directory';

CREATE TYPE io_probe_cache_row AS (
    blks_total      bigint,
    shared_blks     bigint,
    shared_pct      double precision,
    os_cached_bytes bigint,
    os_pct          double precision,
    os_dirty_bytes  bigint,
    hole_bytes      bigint
);
COMMENT ON TYPE io_probe_cache_row IS 'Row of io_probe_cache: the relation, without its free space map and visibility map';
COMMENT ON COLUMN io_probe_cache_row.blks_total IS 'Blocks of the relation';
COMMENT ON COLUMN io_probe_cache_row.shared_blks IS 'Blocks in shared buffers (temporary table: in the session''s local buffers)';
COMMENT ON COLUMN io_probe_cache_row.shared_pct IS 'Percent of the relation in shared buffers; NULL if it is empty';
COMMENT ON COLUMN io_probe_cache_row.os_cached_bytes IS 'Bytes in the OS cache; NULL on ZFS, which has its own cache';
COMMENT ON COLUMN io_probe_cache_row.os_pct IS 'Percent of the relation in the OS cache; NULL if it is empty, and on ZFS';
COMMENT ON COLUMN io_probe_cache_row.os_dirty_bytes IS 'Bytes in the OS cache that are not yet on storage; NULL before Linux 6.5';
COMMENT ON COLUMN io_probe_cache_row.hole_bytes IS 'Bytes of holes (blocks never written), for which the device reads nothing';

CREATE TYPE io_probe_evict_row AS (
    shared_blks_before bigint,
    shared_blks_after  bigint,
    os_bytes_before    bigint,
    os_bytes_after     bigint,
    complete           boolean,
    notes              text[]
);
COMMENT ON TYPE io_probe_evict_row IS 'Row of io_probe_evict: the relation, without its free space map and visibility map';
COMMENT ON COLUMN io_probe_evict_row.shared_blks_before IS 'Blocks in shared buffers before the call';
COMMENT ON COLUMN io_probe_evict_row.shared_blks_after IS 'Blocks in shared buffers after the call; PostgreSQL 15 and 16 can''t evict them';
COMMENT ON COLUMN io_probe_evict_row.os_bytes_before IS 'Bytes in the OS cache before the call';
COMMENT ON COLUMN io_probe_evict_row.os_bytes_after IS 'Bytes in the OS cache after the call';
COMMENT ON COLUMN io_probe_evict_row.complete IS 'Are both caches free of the relation now?';
COMMENT ON COLUMN io_probe_evict_row.notes IS 'Why something stayed in a cache';

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
COMMENT ON COLUMN io_probe_progress_row.relid IS 'Relation that the probe reads; NULL if there is none, or if it is in another database';
COMMENT ON COLUMN io_probe_progress_row.probe IS 'Name of the probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_progress_row.path IS 'Path that the probe measures now; sync: section; sustain: pattern; readahead: mode; evict: NULL';
COMMENT ON COLUMN io_probe_progress_row.done IS 'Blocks done on this path (seqscan, random, depth, evict), or requests (ping); others: turns, slices or intervals done';
COMMENT ON COLUMN io_probe_progress_row.total IS 'Number of blocks, requests or turns in all; 0 if unknown. A limit may end the probe earlier';
COMMENT ON COLUMN io_probe_progress_row.started_at IS 'When the call started';

CREATE TYPE io_probe_check_row AS (
    item       text,
    status     text,
    value      text,
    what_to_do text
);
COMMENT ON TYPE io_probe_check_row IS 'Row of io_probe_check: one thing that matters to probes';
COMMENT ON COLUMN io_probe_check_row.item IS 'What was checked';
COMMENT ON COLUMN io_probe_check_row.status IS 'ok; unsupported: this kernel or server does not have it';
COMMENT ON COLUMN io_probe_check_row.value IS 'What was found';
COMMENT ON COLUMN io_probe_check_row.what_to_do IS 'What it means for probes, or how to change it; NULL if status is ok';

CREATE FUNCTION io_probe_device()
RETURNS SETOF io_probe_device_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_device_wrapper';
COMMENT ON FUNCTION io_probe_device() IS '[Look] Shows the devices behind the tablespaces, the WAL and temporary files, and their settings. Reads /proc and /sys, and causes no I/O. pg_monitor may call it';
REVOKE ALL ON FUNCTION io_probe_device() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_device() TO pg_monitor;

CREATE FUNCTION io_probe_device_full()
RETURNS SETOF io_probe_device_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_device_wrapper';
COMMENT ON FUNCTION io_probe_device_full() IS '[Look] io_probe_device with all columns';
REVOKE ALL ON FUNCTION io_probe_device_full() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_device_full() TO pg_monitor;

CREATE FUNCTION io_probe_cache(rel regclass)
RETURNS SETOF io_probe_cache_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 4
AS 'MODULE_PATHNAME', 'io_probe_cache_wrapper';
COMMENT ON FUNCTION io_probe_cache(regclass) IS '[Look] Shows how much of a relation is in shared buffers and in the OS page cache. Looks at all buffer headers, but reads no data. pg_monitor may call it';
REVOKE ALL ON FUNCTION io_probe_cache(regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_cache(regclass) TO pg_monitor;

CREATE FUNCTION io_probe_evict(rel regclass)
RETURNS SETOF io_probe_evict_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 4
AS 'MODULE_PATHNAME', 'io_probe_evict_wrapper';
COMMENT ON FUNCTION io_probe_evict(regclass) IS '[Measure] Writes the dirty pages of a relation. Then drops it from the OS page cache and, in PostgreSQL 17 and later, from shared buffers. This affects all sessions. Needs EXECUTE, and SELECT or MAINTAIN on the relation';
REVOKE ALL ON FUNCTION io_probe_evict(regclass) FROM PUBLIC;

CREATE FUNCTION io_probe_progress()
RETURNS SETOF io_probe_progress_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1
AS 'MODULE_PATHNAME', 'io_probe_progress_wrapper';
COMMENT ON FUNCTION io_probe_progress() IS '[Look] Shows what the probes of all sessions do now, one row per probe. pg_monitor may call it';
REVOKE ALL ON FUNCTION io_probe_progress() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_progress() TO pg_monitor;

CREATE FUNCTION io_probe_check()
RETURNS SETOF io_probe_check_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_check_wrapper';
COMMENT ON FUNCTION io_probe_check() IS '[Look] Shows what this server and its kernel allow. Reads no data. pg_monitor may call it';
REVOKE ALL ON FUNCTION io_probe_check() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_check() TO pg_monitor;

-- The timed scan.

CREATE TYPE io_probe_seqscan_full_row AS (
    path                text,
    mib_s               double precision,
    block_us            double precision,
    blks                bigint,
    complete            boolean,
    cold                boolean,
    elapsed_ms          double precision,
    shared_blks_hit     bigint,
    shared_blks_read    bigint,
    shared_blks_written bigint,
    local_blks_hit      bigint,
    local_blks_read     bigint,
    os_blks_cached      bigint,
    hole_blks           bigint,
    device_source       text,
    blks_total          bigint,
    chunk_kb            bigint,
    depth               integer,
    engine              text,
    started_at          timestamp with time zone,
    device              text,
    scheduler           text,
    read_ahead_kb       bigint,
    relid               regclass,
    schemaname          text,
    relname             text,
    spcname             text,
    doubt               text,
    status              text,
    notes               text[],
    err_pct             double precision,
    ci_low              double precision,
    ci_high             double precision,
    shared_pct          double precision,
    os_pct              double precision,
    device_pct          double precision,
    device_bytes        bigint,
    device_ios          bigint,
    ios_per_block       double precision,
    rareq_kb            double precision,
    aqu_sz              double precision,
    r_await_ms          double precision,
    util_pct            double precision,
    other_bytes         bigint
);
COMMENT ON TYPE io_probe_seqscan_full_row IS 'Row of io_probe_seqscan_full: one path';
COMMENT ON COLUMN io_probe_seqscan_full_row.path IS 'direct: by O_DIRECT, with several large requests in flight; server: as a sequential scan of the server; os: through the OS cache, one block per call';
COMMENT ON COLUMN io_probe_seqscan_full_row.mib_s IS 'MiB per second while the scan read blocks with data; NULL if a rate limit made it pause';
COMMENT ON COLUMN io_probe_seqscan_full_row.block_us IS 'us per block; NULL if mib_s is NULL. Of more than 20 slices of time (1 ms or more), the first does not count';
COMMENT ON COLUMN io_probe_seqscan_full_row.blks IS 'Number of blocks read, including holes (blocks never written)';
COMMENT ON COLUMN io_probe_seqscan_full_row.complete IS 'Was everything read? If not, column notes says why';
COMMENT ON COLUMN io_probe_seqscan_full_row.cold IS 'true: no block was in the OS cache before the scan, nor (where path is server) in shared buffers';
COMMENT ON COLUMN io_probe_seqscan_full_row.elapsed_ms IS 'Elapsed time in ms, with pauses of a rate limit, without the eviction';
COMMENT ON COLUMN io_probe_seqscan_full_row.shared_blks_hit IS 'Where path is server: blocks found in shared buffers; NULL for temporary tables';
COMMENT ON COLUMN io_probe_seqscan_full_row.shared_blks_read IS 'Where path is server: blocks read into shared buffers; NULL for temporary tables';
COMMENT ON COLUMN io_probe_seqscan_full_row.shared_blks_written IS 'Where path is server: dirty shared buffers written to make room for the blocks read';
COMMENT ON COLUMN io_probe_seqscan_full_row.local_blks_hit IS 'Blocks of a temporary table found in the session''s own buffers; only where path is server';
COMMENT ON COLUMN io_probe_seqscan_full_row.local_blks_read IS 'Blocks of a temporary table read into the session''s own buffers; only where path is server';
COMMENT ON COLUMN io_probe_seqscan_full_row.os_blks_cached IS 'Blocks read that had been in the OS cache before the scan. Holes do not count';
COMMENT ON COLUMN io_probe_seqscan_full_row.hole_blks IS 'Holes: blocks never written (where path is server: and not in shared buffers). They are read, but the rate does not count them';
COMMENT ON COLUMN io_probe_seqscan_full_row.device_source IS 'backend: device_bytes counts reads of this process; io_workers: also all reads of the I/O workers, for all sessions';
COMMENT ON COLUMN io_probe_seqscan_full_row.blks_total IS 'Blocks of the relation';
COMMENT ON COLUMN io_probe_seqscan_full_row.chunk_kb IS 'Size of the requests in kB; NULL if the server decides';
COMMENT ON COLUMN io_probe_seqscan_full_row.depth IS 'Requests in flight; NULL if the server decides';
COMMENT ON COLUMN io_probe_seqscan_full_row.engine IS 'pread: one read at a time; io_uring, threads: several at a time. Where path is server: ReadBuffer, PrefetchBuffer or a read stream';
COMMENT ON COLUMN io_probe_seqscan_full_row.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_seqscan_full_row.device IS 'Devices behind the relation';
COMMENT ON COLUMN io_probe_seqscan_full_row.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_seqscan_full_row.read_ahead_kb IS 'Readahead window in kB that newly opened files get';
COMMENT ON COLUMN io_probe_seqscan_full_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_seqscan_full_row.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_seqscan_full_row.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_seqscan_full_row.spcname IS 'Tablespace of the relation, or the tablespace that the call names';
COMMENT ON COLUMN io_probe_seqscan_full_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_seqscan_full_row.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_seqscan_full_row.notes IS 'Sentences about this row. A note about the whole call is in one row only';
COMMENT ON COLUMN io_probe_seqscan_full_row.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_seqscan_full_row.ci_low IS 'Lower end of the 95 % confidence interval. The interval covers only the variation within this run';
COMMENT ON COLUMN io_probe_seqscan_full_row.ci_high IS 'Upper end of the 95 % confidence interval';
COMMENT ON COLUMN io_probe_seqscan_full_row.shared_pct IS 'Percent of the blocks from shared buffers (temporary table: from the session''s local buffers)';
COMMENT ON COLUMN io_probe_seqscan_full_row.os_pct IS 'Percent of the blocks from the OS cache';
COMMENT ON COLUMN io_probe_seqscan_full_row.device_pct IS 'Percent of the blocks from the device. Caches of a drive, a RAID controller or a hypervisor count as the device';
COMMENT ON COLUMN io_probe_seqscan_full_row.device_bytes IS 'Bytes fetched from storage for this row, readahead included';
COMMENT ON COLUMN io_probe_seqscan_full_row.device_ios IS 'Reads that the devices completed during the measurement, for all processes';
COMMENT ON COLUMN io_probe_seqscan_full_row.ios_per_block IS 'device_ios per block from the device. Over 1: a block took several reads; under 1: a read had several blocks';
COMMENT ON COLUMN io_probe_seqscan_full_row.rareq_kb IS 'Mean size of the devices'' reads in kB (rareq-sz of iostat)';
COMMENT ON COLUMN io_probe_seqscan_full_row.aqu_sz IS 'Mean number of requests queued or in flight (aqu-sz of iostat). In io_probe_readahead, mode emulated, the time for aqu_sz and util_pct includes cache_us';
COMMENT ON COLUMN io_probe_seqscan_full_row.r_await_ms IS 'Mean ms of a device read, queueing included (r_await of iostat)';
COMMENT ON COLUMN io_probe_seqscan_full_row.util_pct IS 'Percent of the time with a request in flight (%util of iostat). With several devices: of the busiest device';
COMMENT ON COLUMN io_probe_seqscan_full_row.other_bytes IS 'Bytes that the devices moved in addition to device_bytes: reads for others, and all writes';

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
COMMENT ON COLUMN io_probe_seqscan_row.path IS 'direct: by O_DIRECT, with several large requests in flight; server: as a sequential scan of the server; os: through the OS cache, one block per call';
COMMENT ON COLUMN io_probe_seqscan_row.mib_s IS 'MiB per second while the scan read blocks with data; NULL if a rate limit made it pause';
COMMENT ON COLUMN io_probe_seqscan_row.block_us IS 'us per block; NULL if mib_s is NULL. Of more than 20 slices of time (1 ms or more), the first does not count';
COMMENT ON COLUMN io_probe_seqscan_row.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_seqscan_row.shared_pct IS 'Percent of the blocks from shared buffers (temporary table: from the session''s local buffers)';
COMMENT ON COLUMN io_probe_seqscan_row.os_pct IS 'Percent of the blocks from the OS cache';
COMMENT ON COLUMN io_probe_seqscan_row.device_pct IS 'Percent of the blocks from the device. Caches of a drive, a RAID controller or a hypervisor count as the device';
COMMENT ON COLUMN io_probe_seqscan_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_seqscan_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';

CREATE FUNCTION io_probe_seqscan(
    rel regclass,
    paths text[] DEFAULT '{direct,server,os}',
    duration text DEFAULT NULL,
    cold boolean DEFAULT false,
    depth integer DEFAULT NULL,
    chunk_kb integer DEFAULT NULL,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_seqscan_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 3
AS 'MODULE_PATHNAME', 'io_probe_seqscan_wrapper';
COMMENT ON FUNCTION io_probe_seqscan(regclass, text[], text, boolean, integer, integer, jsonb) IS '[Measure] Times a scan of a relation on up to three paths. Shows which tier (shared buffers, OS cache, device) served the blocks, and what the devices did. By default each path lasts at most pg_io_probe.row_duration and reads at most pg_io_probe.default_max_bytes. cold => true evicts the relation first; it needs EXECUTE on io_probe_evict. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, wait, start_blk';
REVOKE ALL ON FUNCTION io_probe_seqscan(regclass, text[], text, boolean, integer, integer, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_seqscan_full(
    rel regclass,
    paths text[] DEFAULT '{direct,server,os}',
    duration text DEFAULT NULL,
    cold boolean DEFAULT false,
    depth integer DEFAULT NULL,
    chunk_kb integer DEFAULT NULL,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_seqscan_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 3
AS 'MODULE_PATHNAME', 'io_probe_seqscan_wrapper';
COMMENT ON FUNCTION io_probe_seqscan_full(regclass, text[], text, boolean, integer, integer, jsonb) IS '[Measure] io_probe_seqscan with all columns';
REVOKE ALL ON FUNCTION io_probe_seqscan_full(regclass, text[], text, boolean, integer, integer, jsonb) FROM PUBLIC;

-- Random fetches of single blocks.

CREATE TYPE io_probe_random_full_row AS (
    path                text,
    iops                double precision,
    p999_us             double precision,
    max_us              double precision,
    blks                bigint,
    complete            boolean,
    cold                boolean,
    elapsed_ms          double precision,
    mib_s               double precision,
    shared_us           double precision,
    os_us               double precision,
    device_us           double precision,
    shared_blks_hit     bigint,
    os_blks_hit         bigint,
    device_blks_read    bigint,
    shared_blks_written bigint,
    device_source       text,
    over_read           double precision,
    warmup_us           double precision,
    hole_blks           bigint,
    blks_total          bigint,
    depth               integer,
    engine              text,
    seed                bigint,
    started_at          timestamp with time zone,
    device              text,
    scheduler           text,
    read_ahead_kb       bigint,
    relid               regclass,
    schemaname          text,
    relname             text,
    spcname             text,
    doubt               text,
    status              text,
    notes               text[],
    err_pct             double precision,
    ci_low              double precision,
    ci_high             double precision,
    shared_pct          double precision,
    os_pct              double precision,
    device_pct          double precision,
    device_bytes        bigint,
    device_ios          bigint,
    ios_per_block       double precision,
    rareq_kb            double precision,
    aqu_sz              double precision,
    r_await_ms          double precision,
    util_pct            double precision,
    other_bytes         bigint,
    lat_us              double precision,
    p50_us              double precision,
    p95_us              double precision,
    p99_us              double precision,
    histogram           jsonb
);
COMMENT ON TYPE io_probe_random_full_row IS 'Row of io_probe_random_full: one path';
COMMENT ON COLUMN io_probe_random_full_row.path IS 'direct: reads by O_DIRECT; server: through a small ring of shared buffers; os: pread through the OS cache';
COMMENT ON COLUMN io_probe_random_full_row.iops IS 'Fetches per second, without warm-up, holes and filling the queue. Under a rate limit: the rate that the limit allowed';
COMMENT ON COLUMN io_probe_random_full_row.p999_us IS '99.9th percentile of the latency in us; NULL if fewer than ten fetches took longer';
COMMENT ON COLUMN io_probe_random_full_row.max_us IS 'Greatest latency in us';
COMMENT ON COLUMN io_probe_random_full_row.blks IS 'Number of blocks fetched, each once, including warm-up and holes (blocks never written)';
COMMENT ON COLUMN io_probe_random_full_row.complete IS 'Was every block fetched? If not, column notes says why';
COMMENT ON COLUMN io_probe_random_full_row.cold IS 'true: no fetch found its block in a cache. After cold => true, blocks that this path''s own readahead had cached do not count';
COMMENT ON COLUMN io_probe_random_full_row.elapsed_ms IS 'Elapsed time in ms, with pauses, without the eviction';
COMMENT ON COLUMN io_probe_random_full_row.mib_s IS 'iops times the block size, in MiB per second';
COMMENT ON COLUMN io_probe_random_full_row.shared_us IS 'Mean latency in us of fetches from shared buffers, at depth 1';
COMMENT ON COLUMN io_probe_random_full_row.os_us IS 'Mean latency in us of fetches from the OS cache, at depth 1';
COMMENT ON COLUMN io_probe_random_full_row.device_us IS 'Mean latency in us of fetches from the device';
COMMENT ON COLUMN io_probe_random_full_row.shared_blks_hit IS 'Fetches from shared buffers (temporary table: from the session''s local buffers)';
COMMENT ON COLUMN io_probe_random_full_row.os_blks_hit IS 'Fetches of blocks that were completely in the OS cache';
COMMENT ON COLUMN io_probe_random_full_row.device_blks_read IS 'Fetches that no cache served, without holes';
COMMENT ON COLUMN io_probe_random_full_row.shared_blks_written IS 'Where path is server: dirty shared buffers written to make room for the blocks read';
COMMENT ON COLUMN io_probe_random_full_row.device_source IS 'backend: device_bytes counts reads of this process; io_workers: also all reads of the I/O workers, for all sessions';
COMMENT ON COLUMN io_probe_random_full_row.over_read IS 'device_bytes divided by the bytes of device_blks_read. Over 1: the kernel read other blocks, too. Under 1: parts of blocks were cached';
COMMENT ON COLUMN io_probe_random_full_row.warmup_us IS 'Latency of the first fetch in us. No other time includes it';
COMMENT ON COLUMN io_probe_random_full_row.hole_blks IS 'Holes: blocks never written (where path is server: and not in shared buffers). blks counts them, but they are not read';
COMMENT ON COLUMN io_probe_random_full_row.blks_total IS 'Blocks of the relation';
COMMENT ON COLUMN io_probe_random_full_row.depth IS 'Requests in flight; where path is server: how many blocks the server may read ahead';
COMMENT ON COLUMN io_probe_random_full_row.engine IS 'pread: one read at a time; io_uring, threads: several at a time. Where path is server: ReadBuffer, PrefetchBuffer or a read stream';
COMMENT ON COLUMN io_probe_random_full_row.seed IS 'Seed of the random order; option or argument seed repeats it';
COMMENT ON COLUMN io_probe_random_full_row.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_random_full_row.device IS 'Devices behind the relation';
COMMENT ON COLUMN io_probe_random_full_row.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_random_full_row.read_ahead_kb IS 'Readahead window in kB that newly opened files get';
COMMENT ON COLUMN io_probe_random_full_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_random_full_row.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_random_full_row.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_random_full_row.spcname IS 'Tablespace of the relation, or the tablespace that the call names';
COMMENT ON COLUMN io_probe_random_full_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_random_full_row.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_random_full_row.notes IS 'Sentences about this row. A note about the whole call is in one row only';
COMMENT ON COLUMN io_probe_random_full_row.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_random_full_row.ci_low IS 'Lower end of the 95 % confidence interval. The interval covers only the variation within this run';
COMMENT ON COLUMN io_probe_random_full_row.ci_high IS 'Upper end of the 95 % confidence interval';
COMMENT ON COLUMN io_probe_random_full_row.shared_pct IS 'Percent of the blocks from shared buffers (temporary table: from the session''s local buffers)';
COMMENT ON COLUMN io_probe_random_full_row.os_pct IS 'Percent of the blocks from the OS cache';
COMMENT ON COLUMN io_probe_random_full_row.device_pct IS 'Percent of the blocks from the device. Caches of a drive, a RAID controller or a hypervisor count as the device';
COMMENT ON COLUMN io_probe_random_full_row.device_bytes IS 'Bytes fetched from storage for this row, readahead included';
COMMENT ON COLUMN io_probe_random_full_row.device_ios IS 'Reads that the devices completed during the measurement, for all processes';
COMMENT ON COLUMN io_probe_random_full_row.ios_per_block IS 'device_ios per block from the device. Over 1: a block took several reads; under 1: a read had several blocks';
COMMENT ON COLUMN io_probe_random_full_row.rareq_kb IS 'Mean size of the devices'' reads in kB (rareq-sz of iostat)';
COMMENT ON COLUMN io_probe_random_full_row.aqu_sz IS 'Mean number of requests queued or in flight (aqu-sz of iostat). In io_probe_readahead, mode emulated, the time for aqu_sz and util_pct includes cache_us';
COMMENT ON COLUMN io_probe_random_full_row.r_await_ms IS 'Mean ms of a device read, queueing included (r_await of iostat)';
COMMENT ON COLUMN io_probe_random_full_row.util_pct IS 'Percent of the time with a request in flight (%util of iostat). With several devices: of the busiest device';
COMMENT ON COLUMN io_probe_random_full_row.other_bytes IS 'Bytes that the devices moved in addition to device_bytes: reads for others, and all writes';
COMMENT ON COLUMN io_probe_random_full_row.lat_us IS 'Mean latency in us, from the request until the probe has the block. Excludes the warm-up and the fetches that first fill the queue. NULL if the server reads ahead';
COMMENT ON COLUMN io_probe_random_full_row.p50_us IS 'Median latency in us. Each percentile is NULL if fewer than ten fetches took longer';
COMMENT ON COLUMN io_probe_random_full_row.p95_us IS '95th percentile of the latency in us';
COMMENT ON COLUMN io_probe_random_full_row.p99_us IS '99th percentile of the latency in us';
COMMENT ON COLUMN io_probe_random_full_row.histogram IS 'Number of fetches in each latency range, without empty ranges: {low_us, high_us, count}. Each range is 1.19 times the one before';

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
COMMENT ON COLUMN io_probe_random_row.path IS 'direct: reads by O_DIRECT; server: through a small ring of shared buffers; os: pread through the OS cache';
COMMENT ON COLUMN io_probe_random_row.iops IS 'Fetches per second, without warm-up, holes and filling the queue. Under a rate limit: the rate that the limit allowed';
COMMENT ON COLUMN io_probe_random_row.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_random_row.p50_us IS 'Median latency in us. Each percentile is NULL if fewer than ten fetches took longer';
COMMENT ON COLUMN io_probe_random_row.p99_us IS '99th percentile of the latency in us';
COMMENT ON COLUMN io_probe_random_row.os_us IS 'Mean latency in us of fetches from the OS cache, at depth 1';
COMMENT ON COLUMN io_probe_random_row.device_us IS 'Mean latency in us of fetches from the device';
COMMENT ON COLUMN io_probe_random_row.device_pct IS 'Percent of the blocks from the device. Caches of a drive, a RAID controller or a hypervisor count as the device';
COMMENT ON COLUMN io_probe_random_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_random_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';

CREATE FUNCTION io_probe_random(
    rel regclass,
    paths text[] DEFAULT '{direct,server,os}',
    duration text DEFAULT NULL,
    cold boolean DEFAULT false,
    depth integer DEFAULT 1,
    seed bigint DEFAULT NULL,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_random_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 3
AS 'MODULE_PATHNAME', 'io_probe_random_wrapper';
COMMENT ON FUNCTION io_probe_random(regclass, text[], text, boolean, integer, bigint, jsonb) IS '[Measure] Times fetches of single blocks of a relation in random order, on up to three paths. Shows which tier (shared buffers, OS cache, device) served them, and what the devices did. For duration, max_bytes and cold see io_probe_seqscan. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, wait';
REVOKE ALL ON FUNCTION io_probe_random(regclass, text[], text, boolean, integer, bigint, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_random_full(
    rel regclass,
    paths text[] DEFAULT '{direct,server,os}',
    duration text DEFAULT NULL,
    cold boolean DEFAULT false,
    depth integer DEFAULT 1,
    seed bigint DEFAULT NULL,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_random_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 3
AS 'MODULE_PATHNAME', 'io_probe_random_wrapper';
COMMENT ON FUNCTION io_probe_random_full(regclass, text[], text, boolean, integer, bigint, jsonb) IS '[Measure] io_probe_random with all columns';
REVOKE ALL ON FUNCTION io_probe_random_full(regclass, text[], text, boolean, integer, bigint, jsonb) FROM PUBLIC;

-- Random fetches at several depths.

CREATE TYPE io_probe_depth_full_row AS (
    depth         integer,
    iops          double precision,
    mib_s         double precision,
    best          boolean,
    best_within   boolean,
    engine        text,
    blks          bigint,
    elapsed_ms    double precision,
    device_pct    double precision,
    hole_blks     bigint,
    seed          bigint,
    started_at    timestamp with time zone,
    device        text,
    scheduler     text,
    read_ahead_kb bigint,
    relid         regclass,
    schemaname    text,
    relname       text,
    spcname       text,
    doubt         text,
    status        text,
    notes         text[],
    err_pct       double precision,
    ci_low        double precision,
    ci_high       double precision,
    lat_us        double precision,
    p50_us        double precision,
    p95_us        double precision,
    p99_us        double precision,
    histogram     jsonb
);
COMMENT ON TYPE io_probe_depth_full_row IS 'Row of io_probe_depth_full: one depth';
COMMENT ON COLUMN io_probe_depth_full_row.depth IS 'Requests in flight';
COMMENT ON COLUMN io_probe_depth_full_row.iops IS 'Fetches per second';
COMMENT ON COLUMN io_probe_depth_full_row.mib_s IS 'iops times the block size, in MiB per second';
COMMENT ON COLUMN io_probe_depth_full_row.best IS 'Is it the smallest depth that is as good as the fastest? Not as good: measured over 10 % slower, or over 5 % slower with 95 % confidence. NULL under a rate limit, if this depth has no confidence interval, or if it alone of several has one';
COMMENT ON COLUMN io_probe_depth_full_row.best_within IS 'Among the depths whose p99_us does not exceed argument p99, has this one the most iops? NULL without that argument, and under a rate limit';
COMMENT ON COLUMN io_probe_depth_full_row.engine IS 'pread: one read at a time; io_uring, threads: several at a time';
COMMENT ON COLUMN io_probe_depth_full_row.blks IS 'Number of blocks fetched at this depth, including holes (blocks never written)';
COMMENT ON COLUMN io_probe_depth_full_row.elapsed_ms IS 'Elapsed time of this depth in ms';
COMMENT ON COLUMN io_probe_depth_full_row.device_pct IS 'Percent of the fetches at all depths together that came from the device';
COMMENT ON COLUMN io_probe_depth_full_row.hole_blks IS 'Holes: blocks never written (where path is server: and not in shared buffers). blks counts them, but they are not read';
COMMENT ON COLUMN io_probe_depth_full_row.seed IS 'Seed of the random order; option or argument seed repeats it';
COMMENT ON COLUMN io_probe_depth_full_row.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_depth_full_row.device IS 'Devices behind the relation';
COMMENT ON COLUMN io_probe_depth_full_row.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_depth_full_row.read_ahead_kb IS 'Readahead window in kB that newly opened files get';
COMMENT ON COLUMN io_probe_depth_full_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_depth_full_row.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_depth_full_row.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_depth_full_row.spcname IS 'Tablespace of the relation, or the tablespace that the call names';
COMMENT ON COLUMN io_probe_depth_full_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_depth_full_row.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_depth_full_row.notes IS 'Sentences about this row. A note about the whole call is in one row only';
COMMENT ON COLUMN io_probe_depth_full_row.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_depth_full_row.ci_low IS 'Lower end of the 95 % confidence interval. The interval covers only the variation within this run';
COMMENT ON COLUMN io_probe_depth_full_row.ci_high IS 'Upper end of the 95 % confidence interval';
COMMENT ON COLUMN io_probe_depth_full_row.lat_us IS 'Mean latency in us, from the request until the probe has the block. Excludes the warm-up and the fetches that first fill the queue. NULL if the server reads ahead';
COMMENT ON COLUMN io_probe_depth_full_row.p50_us IS 'Median latency in us. Each percentile is NULL if fewer than ten fetches took longer';
COMMENT ON COLUMN io_probe_depth_full_row.p95_us IS '95th percentile of the latency in us';
COMMENT ON COLUMN io_probe_depth_full_row.p99_us IS '99th percentile of the latency in us';
COMMENT ON COLUMN io_probe_depth_full_row.histogram IS 'Number of fetches in each latency range, without empty ranges: {low_us, high_us, count}. Each range is 1.19 times the one before';

CREATE TYPE io_probe_depth_row AS (
    depth       integer,
    iops        double precision,
    err_pct     double precision,
    mib_s       double precision,
    p50_us      double precision,
    p99_us      double precision,
    best        boolean,
    best_within boolean,
    relid       regclass,
    doubt       text
);
COMMENT ON TYPE io_probe_depth_row IS 'Row of io_probe_depth: one depth';
COMMENT ON COLUMN io_probe_depth_row.depth IS 'Requests in flight';
COMMENT ON COLUMN io_probe_depth_row.iops IS 'Fetches per second';
COMMENT ON COLUMN io_probe_depth_row.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_depth_row.mib_s IS 'iops times the block size, in MiB per second';
COMMENT ON COLUMN io_probe_depth_row.p50_us IS 'Median latency in us. Each percentile is NULL if fewer than ten fetches took longer';
COMMENT ON COLUMN io_probe_depth_row.p99_us IS '99th percentile of the latency in us';
COMMENT ON COLUMN io_probe_depth_row.best IS 'Is it the smallest depth that is as good as the fastest? Not as good: measured over 10 % slower, or over 5 % slower with 95 % confidence. NULL under a rate limit, if this depth has no confidence interval, or if it alone of several has one';
COMMENT ON COLUMN io_probe_depth_row.best_within IS 'Among the depths whose p99_us does not exceed argument p99, has this one the most iops? NULL without that argument, and under a rate limit';
COMMENT ON COLUMN io_probe_depth_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_depth_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';

CREATE FUNCTION io_probe_depth(
    rel regclass,
    depths integer[] DEFAULT NULL,
    duration text DEFAULT NULL,
    seed bigint DEFAULT NULL,
    p99 text DEFAULT NULL,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_depth_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 7
AS 'MODULE_PATHNAME', 'io_probe_depth_wrapper';
COMMENT ON FUNCTION io_probe_depth(regclass, integer[], text, bigint, text, jsonb) IS '[Measure] Times random fetches past the OS page cache at several depths (by default 1, 2, 4 and so on to 64). Marks as best the smallest depth that is as good as the fastest. With p99, such as ''2 ms'', it also marks the fastest depth whose p99_us does not exceed it. Evicts nothing. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, wait';
REVOKE ALL ON FUNCTION io_probe_depth(regclass, integer[], text, bigint, text, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_depth_full(
    rel regclass,
    depths integer[] DEFAULT NULL,
    duration text DEFAULT NULL,
    seed bigint DEFAULT NULL,
    p99 text DEFAULT NULL,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_depth_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 7
AS 'MODULE_PATHNAME', 'io_probe_depth_wrapper';
COMMENT ON FUNCTION io_probe_depth_full(regclass, integer[], text, bigint, text, jsonb) IS '[Measure] io_probe_depth with all columns';
REVOKE ALL ON FUNCTION io_probe_depth_full(regclass, integer[], text, bigint, text, jsonb) FROM PUBLIC;

-- One request now and then.

CREATE TYPE io_probe_ping_full_row AS (
    request       bigint,
    op            text,
    warmup        boolean,
    lat_us        double precision,
    served_by     text,
    path          text,
    blkno         bigint,
    seed          bigint,
    started_at    timestamp with time zone,
    device        text,
    scheduler     text,
    read_ahead_kb bigint,
    relid         regclass,
    schemaname    text,
    relname       text,
    spcname       text,
    doubt         text,
    status        text,
    notes         text[]
);
COMMENT ON TYPE io_probe_ping_full_row IS 'Row of io_probe_ping_full: one request';
COMMENT ON COLUMN io_probe_ping_full_row.request IS 'Number of the request, from 1';
COMMENT ON COLUMN io_probe_ping_full_row.op IS 'read: a block of the relation; write: a block of a scratch file';
COMMENT ON COLUMN io_probe_ping_full_row.warmup IS 'Is it the first read or the first write? Don''t count it in a mean';
COMMENT ON COLUMN io_probe_ping_full_row.lat_us IS 'Time of the system call in us; a write is not synced. NULL if the row is void';
COMMENT ON COLUMN io_probe_ping_full_row.served_by IS 'os: the block was in the OS cache before the read; device: it was not, or path is direct. NULL for a write';
COMMENT ON COLUMN io_probe_ping_full_row.path IS 'direct: by O_DIRECT; os: through the OS cache';
COMMENT ON COLUMN io_probe_ping_full_row.blkno IS 'Block of the relation that was read';
COMMENT ON COLUMN io_probe_ping_full_row.seed IS 'Seed of the random order; option or argument seed repeats it';
COMMENT ON COLUMN io_probe_ping_full_row.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_ping_full_row.device IS 'Devices behind the relation';
COMMENT ON COLUMN io_probe_ping_full_row.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_ping_full_row.read_ahead_kb IS 'Readahead window in kB that newly opened files get';
COMMENT ON COLUMN io_probe_ping_full_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_ping_full_row.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_ping_full_row.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_ping_full_row.spcname IS 'Tablespace of the relation, or the tablespace that the call names';
COMMENT ON COLUMN io_probe_ping_full_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_ping_full_row.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_ping_full_row.notes IS 'Sentences about this row. A note about the whole call is in one row only';

CREATE TYPE io_probe_ping_row AS (
    request   bigint,
    op        text,
    path      text,
    lat_us    double precision,
    served_by text,
    blkno     bigint,
    relid     regclass,
    doubt     text
);
COMMENT ON TYPE io_probe_ping_row IS 'Row of io_probe_ping: one request';
COMMENT ON COLUMN io_probe_ping_row.request IS 'Number of the request, from 1';
COMMENT ON COLUMN io_probe_ping_row.op IS 'read: a block of the relation; write: a block of a scratch file';
COMMENT ON COLUMN io_probe_ping_row.path IS 'direct: by O_DIRECT; os: through the OS cache';
COMMENT ON COLUMN io_probe_ping_row.lat_us IS 'Time of the system call in us; a write is not synced. NULL if the row is void';
COMMENT ON COLUMN io_probe_ping_row.served_by IS 'os: the block was in the OS cache before the read; device: it was not, or path is direct. NULL for a write';
COMMENT ON COLUMN io_probe_ping_row.blkno IS 'Block of the relation that was read';
COMMENT ON COLUMN io_probe_ping_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_ping_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';

CREATE FUNCTION io_probe_ping(
    rel regclass,
    path text DEFAULT 'direct',
    mode text DEFAULT 'read',
    every text DEFAULT '100 ms',
    count integer DEFAULT 10,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_ping_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_ping_wrapper';
COMMENT ON FUNCTION io_probe_ping(regclass, text, text, text, integer, jsonb) IS '[Measure] Sends single requests, and times each. Arguments: mode: read (random blocks of the relation), write (blocks of a scratch file in its tablespace) or pingpong (reads and writes in turn); path: direct or os; every: time from one request to the next; count: how many requests. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Modes that write also need EXECUTE on io_probe_sync, and CREATE on the tablespace if it is not the database''s default. Options: max_p99, seed, wait';
REVOKE ALL ON FUNCTION io_probe_ping(regclass, text, text, text, integer, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_ping_full(
    rel regclass,
    path text DEFAULT 'direct',
    mode text DEFAULT 'read',
    every text DEFAULT '100 ms',
    count integer DEFAULT 10,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_ping_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_ping_wrapper';
COMMENT ON FUNCTION io_probe_ping_full(regclass, text, text, text, integer, jsonb) IS '[Measure] io_probe_ping with all columns';
REVOKE ALL ON FUNCTION io_probe_ping_full(regclass, text, text, text, integer, jsonb) FROM PUBLIC;

-- What a sync costs: pg_test_fsync's table and the WAL's own pattern.

CREATE TYPE io_probe_sync_full_row AS (
    section               text,
    method                text,
    writes                integer,
    write_kb              integer,
    ops_s                 double precision,
    op_us                 double precision,
    p50_us                double precision,
    p95_us                double precision,
    p99_us                double precision,
    histogram             jsonb,
    max_us                double precision,
    in_use                boolean,
    direct                boolean,
    ops                   bigint,
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
    started_at            timestamp with time zone,
    doubt                 text,
    status                text,
    notes                 text[],
    err_pct               double precision,
    ci_low                double precision,
    ci_high               double precision
);
COMMENT ON TYPE io_probe_sync_full_row IS 'Row of io_probe_sync_full: one method of writing and syncing';
COMMENT ON COLUMN io_probe_sync_full_row.section IS 'What is written. wal_segment: forward through a zero-filled segment, as the server writes WAL. All others are sections of pg_test_fsync, which overwrite the same blocks. one_write, two_writes: one or two writes, then a sync. open_sync_size: 16 kB in 1 to 16 synchronous writes. other_fd: a sync through the descriptor of the write, or another one. no_sync: a write without a sync';
COMMENT ON COLUMN io_probe_sync_full_row.method IS 'Value of wal_sync_method (open_datasync: O_DSYNC; open_sync: O_SYNC), or the system calls';
COMMENT ON COLUMN io_probe_sync_full_row.writes IS 'Write calls per operation';
COMMENT ON COLUMN io_probe_sync_full_row.write_kb IS 'Size of each write in kB. At a depth over 1: kB of WAL per commit; with option commit_bytes, size of a WAL block';
COMMENT ON COLUMN io_probe_sync_full_row.ops_s IS 'Operations per second. An operation is the writes and their sync. At a depth over 1: commits per second. NULL under a rate limit';
COMMENT ON COLUMN io_probe_sync_full_row.op_us IS 'Mean us of an operation. At a depth over 1: elapsed time divided by the number of commits';
COMMENT ON COLUMN io_probe_sync_full_row.p50_us IS 'Median time of an operation in us; at a depth over 1, median wait of a committer. NULL with fewer than 20 operations';
COMMENT ON COLUMN io_probe_sync_full_row.p95_us IS '95th percentile in us; NULL with fewer than 200 operations';
COMMENT ON COLUMN io_probe_sync_full_row.p99_us IS '99th percentile in us; NULL with fewer than 1,000 operations';
COMMENT ON COLUMN io_probe_sync_full_row.histogram IS 'Number of operations in each latency range, in the form of histogram of io_probe_depth';
COMMENT ON COLUMN io_probe_sync_full_row.max_us IS 'Longest operation in us';
COMMENT ON COLUMN io_probe_sync_full_row.in_use IS 'Does this server sync its WAL with this method and this value of direct? NULL in sections open_sync_size, other_fd and no_sync';
COMMENT ON COLUMN io_probe_sync_full_row.direct IS 'Was the file opened with O_DIRECT?';
COMMENT ON COLUMN io_probe_sync_full_row.ops IS 'Number of operations, without the first of each turn (warm-up)';
COMMENT ON COLUMN io_probe_sync_full_row.depth IS 'Number of committers that share one WAL. A committer does not flush if the flush of another one has covered its WAL';
COMMENT ON COLUMN io_probe_sync_full_row.flushes IS 'Number of syncs. With the open methods each write counts as a sync';
COMMENT ON COLUMN io_probe_sync_full_row.device_writes_per_op IS 'Writes of the device, from all processes, per operation. Many kernels count a flush as another write';
COMMENT ON COLUMN io_probe_sync_full_row.device_flushes_per_op IS 'Cache flushes of the device, from all processes, per operation. 0 without a volatile cache, or if writes bypass it (FUA)';
COMMENT ON COLUMN io_probe_sync_full_row.elapsed_ms IS 'Total time of the operations in ms';
COMMENT ON COLUMN io_probe_sync_full_row.device IS 'Devices behind the directory';
COMMENT ON COLUMN io_probe_sync_full_row.scheduler IS 'I/O scheduler of the devices behind the directory';
COMMENT ON COLUMN io_probe_sync_full_row.write_cache IS 'write back: the device has a volatile cache, which a sync must flush; write through: it has none, or reports none';
COMMENT ON COLUMN io_probe_sync_full_row.fua IS 'Can a single write bypass the device''s volatile cache (Force Unit Access)?';
COMMENT ON COLUMN io_probe_sync_full_row.fs_type IS 'Type of the file system';
COMMENT ON COLUMN io_probe_sync_full_row.directory IS 'Directory of the scratch file, symbolic links resolved';
COMMENT ON COLUMN io_probe_sync_full_row.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_sync_full_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_sync_full_row.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_sync_full_row.notes IS 'Sentences about this row. A note about the whole call is in one row only';
COMMENT ON COLUMN io_probe_sync_full_row.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_sync_full_row.ci_low IS 'Lower end of the 95 % confidence interval. The interval covers only the variation within this run';
COMMENT ON COLUMN io_probe_sync_full_row.ci_high IS 'Upper end of the 95 % confidence interval';

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
COMMENT ON TYPE io_probe_sync_row IS 'Row of io_probe_sync: one method of writing and syncing';
COMMENT ON COLUMN io_probe_sync_row.section IS 'What is written. wal_segment: forward through a zero-filled segment, as the server writes WAL. All others are sections of pg_test_fsync, which overwrite the same blocks. one_write, two_writes: one or two writes, then a sync. open_sync_size: 16 kB in 1 to 16 synchronous writes. other_fd: a sync through the descriptor of the write, or another one. no_sync: a write without a sync';
COMMENT ON COLUMN io_probe_sync_row.method IS 'Value of wal_sync_method (open_datasync: O_DSYNC; open_sync: O_SYNC), or the system calls';
COMMENT ON COLUMN io_probe_sync_row.direct IS 'Was the file opened with O_DIRECT?';
COMMENT ON COLUMN io_probe_sync_row.write_kb IS 'Size of each write in kB. At a depth over 1: kB of WAL per commit; with option commit_bytes, size of a WAL block';
COMMENT ON COLUMN io_probe_sync_row.ops_s IS 'Operations per second. An operation is the writes and their sync. At a depth over 1: commits per second. NULL under a rate limit';
COMMENT ON COLUMN io_probe_sync_row.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_sync_row.p50_us IS 'Median time of an operation in us; at a depth over 1, median wait of a committer. NULL with fewer than 20 operations';
COMMENT ON COLUMN io_probe_sync_row.p99_us IS '99th percentile in us; NULL with fewer than 1,000 operations';
COMMENT ON COLUMN io_probe_sync_row.in_use IS 'Does this server sync its WAL with this method and this value of direct? NULL in sections open_sync_size, other_fd and no_sync';
COMMENT ON COLUMN io_probe_sync_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';

CREATE FUNCTION io_probe_sync(
    spcname text DEFAULT NULL,
    sections text[] DEFAULT NULL,
    duration text DEFAULT NULL,
    depth integer DEFAULT 1,
    write_kb integer DEFAULT NULL,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_sync_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 40
AS 'MODULE_PATHNAME', 'io_probe_sync_wrapper';
COMMENT ON FUNCTION io_probe_sync(text, text[], text, integer, integer, jsonb) IS '[Measure] Times writes and syncs of a scratch file in the folder of the WAL, or in tablespace spcname. While it runs, commits of other sessions wait for its syncs. By default there is a row for each wal_sync_method, with writes of one WAL block. sections => ''{wal_segment}'' adds larger writes. ''{all}'' adds the sections of pg_test_fsync; write_kb sets the size of their writes (by default a WAL block). A depth over 1 is the number of committers that share one WAL (section wal_segment). Needs EXECUTE, and CREATE on the tablespace if it is not the database''s default. Options: commit_bytes (bytes of WAL per commit, so that several commits may share a block; needs a depth over 1), commit_delay (microseconds, by default as on this server; needs a depth over 1), direct (whether wal_segment is written by O_DIRECT, by default as on this server), max_bytes, max_iops, max_mib_s, max_util_pct (these four do not limit section no_sync), max_p99, precision, wait';
REVOKE ALL ON FUNCTION io_probe_sync(text, text[], text, integer, integer, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_sync_full(
    spcname text DEFAULT NULL,
    sections text[] DEFAULT NULL,
    duration text DEFAULT NULL,
    depth integer DEFAULT 1,
    write_kb integer DEFAULT NULL,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_sync_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 40
AS 'MODULE_PATHNAME', 'io_probe_sync_wrapper';
COMMENT ON FUNCTION io_probe_sync_full(text, text[], text, integer, integer, jsonb) IS '[Measure] io_probe_sync with all columns';
REVOKE ALL ON FUNCTION io_probe_sync_full(text, text[], text, integer, integer, jsonb) FROM PUBLIC;

-- What writing data files costs.

CREATE TYPE io_probe_write_full_row AS (
    pattern     text,
    path        text,
    depth       integer,
    write_kb    integer,
    flush_kb    bigint,
    writes_s    double precision,
    mib_s       double precision,
    p50_us      double precision,
    p95_us      double precision,
    p99_us      double precision,
    histogram   jsonb,
    fsync_ms    double precision,
    ops         bigint,
    elapsed_ms  double precision,
    device_mib  double precision,
    scratch_mib bigint,
    device      text,
    scheduler   text,
    write_cache text,
    fs_type     text,
    directory   text,
    seed        bigint,
    started_at  timestamp with time zone,
    doubt       text,
    status      text,
    notes       text[],
    err_pct     double precision,
    ci_low      double precision,
    ci_high     double precision
);
COMMENT ON TYPE io_probe_write_full_row IS 'Row of io_probe_write_full: one pattern at one depth';
COMMENT ON COLUMN io_probe_write_full_row.pattern IS 'random: blocks anywhere; backend: blocks anywhere, as sessions write that need a buffer; sequential: 256 kB in order; checkpoint: half of the blocks, in order, as the checkpointer writes; copy: blocks in order, as COPY writes';
COMMENT ON COLUMN io_probe_write_full_row.path IS 'direct: by O_DIRECT; os: through the OS cache, as the server does, with a sync before a block is written again, and at the end of each of five turns';
COMMENT ON COLUMN io_probe_write_full_row.depth IS 'Greatest number of writes in flight';
COMMENT ON COLUMN io_probe_write_full_row.write_kb IS 'Size of each write in kB';
COMMENT ON COLUMN io_probe_write_full_row.flush_kb IS 'After how many kB the kernel is told to write back (checkpoint_flush_after or backend_flush_after). NULL: not before the sync';
COMMENT ON COLUMN io_probe_write_full_row.writes_s IS 'Writes per second. Where path is os, the time includes the syncs';
COMMENT ON COLUMN io_probe_write_full_row.mib_s IS 'writes_s times write_kb, in MiB per second';
COMMENT ON COLUMN io_probe_write_full_row.p50_us IS 'Median time of a write in us; where path is os, a write only copies to the OS cache. Each percentile is NULL if fewer than ten writes took longer';
COMMENT ON COLUMN io_probe_write_full_row.p95_us IS '95th percentile of write times in us';
COMMENT ON COLUMN io_probe_write_full_row.p99_us IS '99th percentile of write times in us';
COMMENT ON COLUMN io_probe_write_full_row.histogram IS 'Number of writes in each latency range, in the form of histogram of io_probe_depth';
COMMENT ON COLUMN io_probe_write_full_row.fsync_ms IS 'Mean ms of a sync; NULL where path is direct';
COMMENT ON COLUMN io_probe_write_full_row.ops IS 'Number of writes that were measured';
COMMENT ON COLUMN io_probe_write_full_row.elapsed_ms IS 'Total time of these writes in ms, including the syncs';
COMMENT ON COLUMN io_probe_write_full_row.device_mib IS 'MiB that the devices wrote during the measurement, for all processes';
COMMENT ON COLUMN io_probe_write_full_row.scratch_mib IS 'Size of the scratch file in MiB';
COMMENT ON COLUMN io_probe_write_full_row.device IS 'Devices behind the directory';
COMMENT ON COLUMN io_probe_write_full_row.scheduler IS 'I/O scheduler of the devices behind the directory';
COMMENT ON COLUMN io_probe_write_full_row.write_cache IS 'write back: the device has a volatile cache, which a sync must flush; write through: it has none, or reports none';
COMMENT ON COLUMN io_probe_write_full_row.fs_type IS 'Type of the file system';
COMMENT ON COLUMN io_probe_write_full_row.directory IS 'Directory of the scratch file, symbolic links resolved';
COMMENT ON COLUMN io_probe_write_full_row.seed IS 'Seed of the random order; option or argument seed repeats it';
COMMENT ON COLUMN io_probe_write_full_row.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_write_full_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_write_full_row.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_write_full_row.notes IS 'Sentences about this row. A note about the whole call is in one row only';
COMMENT ON COLUMN io_probe_write_full_row.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_write_full_row.ci_low IS 'Lower end of the 95 % confidence interval. The interval covers only the variation within this run';
COMMENT ON COLUMN io_probe_write_full_row.ci_high IS 'Upper end of the 95 % confidence interval';

CREATE TYPE io_probe_write_row AS (
    pattern  text,
    path     text,
    depth    integer,
    write_kb integer,
    writes_s double precision,
    err_pct  double precision,
    mib_s    double precision,
    p99_us   double precision,
    fsync_ms double precision,
    doubt    text
);
COMMENT ON TYPE io_probe_write_row IS 'Row of io_probe_write: one pattern at one depth';
COMMENT ON COLUMN io_probe_write_row.pattern IS 'random: blocks anywhere; backend: blocks anywhere, as sessions write that need a buffer; sequential: 256 kB in order; checkpoint: half of the blocks, in order, as the checkpointer writes; copy: blocks in order, as COPY writes';
COMMENT ON COLUMN io_probe_write_row.path IS 'direct: by O_DIRECT; os: through the OS cache, as the server does, with a sync before a block is written again, and at the end of each of five turns';
COMMENT ON COLUMN io_probe_write_row.depth IS 'Greatest number of writes in flight';
COMMENT ON COLUMN io_probe_write_row.write_kb IS 'Size of each write in kB';
COMMENT ON COLUMN io_probe_write_row.writes_s IS 'Writes per second. Where path is os, the time includes the syncs';
COMMENT ON COLUMN io_probe_write_row.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_write_row.mib_s IS 'writes_s times write_kb, in MiB per second';
COMMENT ON COLUMN io_probe_write_row.p99_us IS '99th percentile of write times in us';
COMMENT ON COLUMN io_probe_write_row.fsync_ms IS 'Mean ms of a sync; NULL where path is direct';
COMMENT ON COLUMN io_probe_write_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';

CREATE FUNCTION io_probe_write(
    spcname text DEFAULT NULL,
    patterns text[] DEFAULT NULL,
    duration text DEFAULT NULL,
    depth integer DEFAULT 16,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_write_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 6
AS 'MODULE_PATHNAME', 'io_probe_write_wrapper';
COMMENT ON FUNCTION io_probe_write(text, text[], text, integer, jsonb) IS '[Measure] Times writes as the server makes them to data files, on a scratch file in tablespace spcname (by default the database''s default). Some patterns bypass the OS cache; others write through it, and sync. Meanwhile, syncs of others may wait. Needs EXECUTE, also on io_probe_sync, and CREATE on the tablespace if it is not the database''s default. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, seed, wait';
REVOKE ALL ON FUNCTION io_probe_write(text, text[], text, integer, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_write_full(
    spcname text DEFAULT NULL,
    patterns text[] DEFAULT NULL,
    duration text DEFAULT NULL,
    depth integer DEFAULT 16,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_write_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 6
AS 'MODULE_PATHNAME', 'io_probe_write_wrapper';
COMMENT ON FUNCTION io_probe_write_full(text, text[], text, integer, jsonb) IS '[Measure] io_probe_write with all columns';
REVOKE ALL ON FUNCTION io_probe_write_full(text, text[], text, integer, jsonb) FROM PUBLIC;

-- Reads and writes at once.

CREATE TYPE io_probe_mix_full_row AS (
    load          text,
    read_pct      integer,
    write_pct     integer,
    reads_s       double precision,
    r_p50_us      double precision,
    r_p95_us      double precision,
    r_p99_us      double precision,
    r_histogram   jsonb,
    writes_s      double precision,
    w_p50_us      double precision,
    w_p95_us      double precision,
    w_p99_us      double precision,
    w_histogram   jsonb,
    carried       boolean,
    sent_reads_s  double precision,
    sent_writes_s double precision,
    writing       text,
    read_kb       integer,
    write_kb      integer,
    depth         integer,
    elapsed_ms    double precision,
    seed          bigint,
    started_at    timestamp with time zone,
    device        text,
    scheduler     text,
    read_ahead_kb bigint,
    relid         regclass,
    schemaname    text,
    relname       text,
    spcname       text,
    doubt         text,
    status        text,
    notes         text[]
);
COMMENT ON TYPE io_probe_mix_full_row IS 'Row of io_probe_mix_full: one load of reads and writes';
COMMENT ON COLUMN io_probe_mix_full_row.load IS 'bend (first row): the greatest load that was answered in time, as were all smaller loads; if there is none, the figures are NULL. others (with argument like): what others sent, now or in the stored run. reads alone, writes alone: as fast as possible. cell: reads and writes at the shares read_pct and write_pct';
COMMENT ON COLUMN io_probe_mix_full_row.read_pct IS 'Rate of reads, in percent of row reads alone (with argument like: of row others)';
COMMENT ON COLUMN io_probe_mix_full_row.write_pct IS 'Rate of writes, in percent of row writes alone (with argument like: of row others)';
COMMENT ON COLUMN io_probe_mix_full_row.reads_s IS 'Reads answered per second';
COMMENT ON COLUMN io_probe_mix_full_row.r_p50_us IS 'Median time of a read in us, from its scheduled start until its answer. Each percentile is NULL if fewer than ten requests took longer';
COMMENT ON COLUMN io_probe_mix_full_row.r_p95_us IS '95th percentile of read times in us';
COMMENT ON COLUMN io_probe_mix_full_row.r_p99_us IS '99th percentile of read times in us';
COMMENT ON COLUMN io_probe_mix_full_row.r_histogram IS 'Number of reads in each latency range, in the form of histogram of io_probe_depth';
COMMENT ON COLUMN io_probe_mix_full_row.writes_s IS 'Writes answered per second';
COMMENT ON COLUMN io_probe_mix_full_row.w_p50_us IS 'Median time of a write in us, with its sync if writing is wal';
COMMENT ON COLUMN io_probe_mix_full_row.w_p95_us IS '95th percentile of write times in us';
COMMENT ON COLUMN io_probe_mix_full_row.w_p99_us IS '99th percentile of write times in us';
COMMENT ON COLUMN io_probe_mix_full_row.w_histogram IS 'Number of writes in each latency range, in the form of histogram of io_probe_depth';
COMMENT ON COLUMN io_probe_mix_full_row.carried IS 'Were at least 95 % of the reads and 95 % of the writes answered in time? If not, the percentiles are too low: they don''t count unanswered requests. NULL for reads alone and writes alone';
COMMENT ON COLUMN io_probe_mix_full_row.sent_reads_s IS 'Reads sent per second. NULL if each was sent as soon as an earlier one ended';
COMMENT ON COLUMN io_probe_mix_full_row.sent_writes_s IS 'Writes sent per second. NULL if each was sent as soon as an earlier one ended';
COMMENT ON COLUMN io_probe_mix_full_row.writing IS 'data: blocks in random order; sequential: 256 kB in order; wal: a WAL block, then fdatasync';
COMMENT ON COLUMN io_probe_mix_full_row.read_kb IS 'Size of a read in kB';
COMMENT ON COLUMN io_probe_mix_full_row.write_kb IS 'Size of a write in kB';
COMMENT ON COLUMN io_probe_mix_full_row.depth IS 'Greatest number of reads in flight, and of writes in flight. With wal: one write at a time';
COMMENT ON COLUMN io_probe_mix_full_row.elapsed_ms IS 'Measured time in ms';
COMMENT ON COLUMN io_probe_mix_full_row.seed IS 'Seed of the random order; option or argument seed repeats it';
COMMENT ON COLUMN io_probe_mix_full_row.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_mix_full_row.device IS 'Devices behind the relation';
COMMENT ON COLUMN io_probe_mix_full_row.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_mix_full_row.read_ahead_kb IS 'Readahead window in kB that newly opened files get';
COMMENT ON COLUMN io_probe_mix_full_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_mix_full_row.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_mix_full_row.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_mix_full_row.spcname IS 'Tablespace of the relation, or the tablespace that the call names';
COMMENT ON COLUMN io_probe_mix_full_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_mix_full_row.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_mix_full_row.notes IS 'Sentences about this row. A note about the whole call is in one row only';

CREATE TYPE io_probe_mix_row AS (
    load      text,
    read_pct  integer,
    write_pct integer,
    reads_s   double precision,
    r_p50_us  double precision,
    r_p99_us  double precision,
    writes_s  double precision,
    w_p50_us  double precision,
    w_p99_us  double precision,
    doubt     text
);
COMMENT ON TYPE io_probe_mix_row IS 'Row of io_probe_mix: one load of reads and writes';
COMMENT ON COLUMN io_probe_mix_row.load IS 'bend (first row): the greatest load that was answered in time, as were all smaller loads; if there is none, the figures are NULL. others (with argument like): what others sent, now or in the stored run. reads alone, writes alone: as fast as possible. cell: reads and writes at the shares read_pct and write_pct';
COMMENT ON COLUMN io_probe_mix_row.read_pct IS 'Rate of reads, in percent of row reads alone (with argument like: of row others)';
COMMENT ON COLUMN io_probe_mix_row.write_pct IS 'Rate of writes, in percent of row writes alone (with argument like: of row others)';
COMMENT ON COLUMN io_probe_mix_row.reads_s IS 'Reads answered per second';
COMMENT ON COLUMN io_probe_mix_row.r_p50_us IS 'Median time of a read in us, from its scheduled start until its answer. Each percentile is NULL if fewer than ten requests took longer';
COMMENT ON COLUMN io_probe_mix_row.r_p99_us IS '99th percentile of read times in us';
COMMENT ON COLUMN io_probe_mix_row.writes_s IS 'Writes answered per second';
COMMENT ON COLUMN io_probe_mix_row.w_p50_us IS 'Median time of a write in us, with its sync if writing is wal';
COMMENT ON COLUMN io_probe_mix_row.w_p99_us IS '99th percentile of write times in us';
COMMENT ON COLUMN io_probe_mix_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';

CREATE FUNCTION io_probe_mix(
    rel regclass,
    spcname text DEFAULT NULL,
    writing text DEFAULT 'data',
    shares integer[] DEFAULT NULL,
    duration text DEFAULT NULL,
    depth integer DEFAULT 16,
    like text DEFAULT NULL,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_mix_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 28
AS 'MODULE_PATHNAME', 'io_probe_mix_wrapper';
COMMENT ON FUNCTION io_probe_mix(regclass, text, text, integer[], text, integer, text, jsonb) IS '[Measure] Shows how long reads take while writes go on. It reads random blocks of the relation, and writes a scratch file, past the OS page cache. First it measures reads alone and writes alone, as fast as possible with depth requests in flight. Then it sends both at even intervals, for each pair of shares: a share is a percentage of the rate of reads alone, or of writes alone. By default shares are 0, 20, 40, 60 and 80. The first row has the greatest load that the device keeps up with. like => ''now'' first watches what others send to the devices. Then it sends 1, 2 and 4 times as many requests of the same sizes. like => ''17'' takes that load from stored run 17 of io_probe_iostat. spcname is another tablespace to try: the function then reads and writes scratch files there. writing: data (random blocks, in the relation''s tablespace), sequential (as a backup or COPY) or wal (WAL blocks with a sync each, in the folder of the WAL). All rows take turns and share the duration. Needs EXECUTE, also on io_probe_sync, SELECT or MAINTAIN on the relation, and CREATE on the tablespace if it is not the database''s default. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, seed, wait';
REVOKE ALL ON FUNCTION io_probe_mix(regclass, text, text, integer[], text, integer, text, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_mix_full(
    rel regclass,
    spcname text DEFAULT NULL,
    writing text DEFAULT 'data',
    shares integer[] DEFAULT NULL,
    duration text DEFAULT NULL,
    depth integer DEFAULT 16,
    like text DEFAULT NULL,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_mix_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 28
AS 'MODULE_PATHNAME', 'io_probe_mix_wrapper';
COMMENT ON FUNCTION io_probe_mix_full(regclass, text, text, integer[], text, integer, text, jsonb) IS '[Measure] io_probe_mix with all columns';
REVOKE ALL ON FUNCTION io_probe_mix_full(regclass, text, text, integer[], text, integer, text, jsonb) FROM PUBLIC;

-- One load that goes on.

CREATE TYPE io_probe_sustain_full_row AS (
    pattern       text,
    slice         bigint,
    at_s          double precision,
    iops          double precision,
    mib_s         double precision,
    p50_us        double precision,
    p99_us        double precision,
    verdict       text,
    burst_iops    double precision,
    burst_s       double precision,
    bucket        double precision,
    refill_s      double precision,
    steady        boolean,
    range_pct     double precision,
    read_kb       integer,
    depth         integer,
    elapsed_ms    double precision,
    seed          bigint,
    started_at    timestamp with time zone,
    device        text,
    scheduler     text,
    read_ahead_kb bigint,
    relid         regclass,
    schemaname    text,
    relname       text,
    spcname       text,
    doubt         text,
    status        text,
    notes         text[]
);
COMMENT ON TYPE io_probe_sustain_full_row IS 'Row of io_probe_sustain_full: the result of a pattern, or one slice of its time';
COMMENT ON COLUMN io_probe_sustain_full_row.pattern IS 'random: single blocks; sequential: 256 kB in order';
COMMENT ON COLUMN io_probe_sustain_full_row.slice IS 'Number of the slice. NULL in the first row of a pattern: that row has the rate after a burst, or without a burst the rate of the whole time';
COMMENT ON COLUMN io_probe_sustain_full_row.at_s IS 'When the slice began, in seconds since the first read of the pattern';
COMMENT ON COLUMN io_probe_sustain_full_row.iops IS 'Reads per second';
COMMENT ON COLUMN io_probe_sustain_full_row.mib_s IS 'iops times the size of a read, in MiB (2^20 bytes) per second';
COMMENT ON COLUMN io_probe_sustain_full_row.p50_us IS 'Median latency in us; NULL if fewer than ten reads took longer';
COMMENT ON COLUMN io_probe_sustain_full_row.p99_us IS '99th percentile of the latency in us; NULL if fewer than ten reads took longer';
COMMENT ON COLUMN io_probe_sustain_full_row.verdict IS 'First row: cap of ..., steady, not steady (see column steady) or too short (under five slices); after a burst, ''burst of ... s, then'' comes first. cap: the rate varies by at most 3 %, and is a round number or follows a burst. It may also be the device''s own limit. NULL in other rows';
COMMENT ON COLUMN io_probe_sustain_full_row.burst_iops IS 'First row: reads per second until the burst credits were used up; NULL without a burst';
COMMENT ON COLUMN io_probe_sustain_full_row.burst_s IS 'First row: how many seconds the burst lasted';
COMMENT ON COLUMN io_probe_sustain_full_row.bucket IS 'First row: burst credits at the start, as a number of reads; the bucket may not have been full';
COMMENT ON COLUMN io_probe_sustain_full_row.refill_s IS 'First row: seconds without reads until the bucket has as many credits again';
COMMENT ON COLUMN io_probe_sustain_full_row.steady IS 'First row: is the rate steady by SNIA''s test? It is if the rates of five equal parts of the time (after a burst, if any) differ by at most 20 % of their mean, and the best-fit line changes by at most 10 % of the mean. NULL with under five slices';
COMMENT ON COLUMN io_probe_sustain_full_row.range_pct IS 'First row: highest minus lowest rate of the five parts (see steady), in percent of their mean';
COMMENT ON COLUMN io_probe_sustain_full_row.read_kb IS 'Size of a read in kB';
COMMENT ON COLUMN io_probe_sustain_full_row.depth IS 'Greatest number of reads in flight';
COMMENT ON COLUMN io_probe_sustain_full_row.elapsed_ms IS 'Length of the slice in ms; in the first row, of all slices';
COMMENT ON COLUMN io_probe_sustain_full_row.seed IS 'Seed of the random order; option seed repeats it';
COMMENT ON COLUMN io_probe_sustain_full_row.started_at IS 'When the call started';
COMMENT ON COLUMN io_probe_sustain_full_row.device IS 'Devices behind the relation';
COMMENT ON COLUMN io_probe_sustain_full_row.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_sustain_full_row.read_ahead_kb IS 'Readahead window in kB that newly opened files get';
COMMENT ON COLUMN io_probe_sustain_full_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_sustain_full_row.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_sustain_full_row.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_sustain_full_row.spcname IS 'Tablespace of the relation, or the tablespace that the call names';
COMMENT ON COLUMN io_probe_sustain_full_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_sustain_full_row.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_sustain_full_row.notes IS 'Sentences about this row. A note about the whole call is in one row only';

CREATE TYPE io_probe_sustain_row AS (
    pattern text,
    slice   bigint,
    at_s    double precision,
    iops    double precision,
    mib_s   double precision,
    p50_us  double precision,
    p99_us  double precision,
    verdict text,
    doubt   text
);
COMMENT ON TYPE io_probe_sustain_row IS 'Row of io_probe_sustain: the result of a pattern, or one slice of its time';
COMMENT ON COLUMN io_probe_sustain_row.pattern IS 'random: single blocks; sequential: 256 kB in order';
COMMENT ON COLUMN io_probe_sustain_row.slice IS 'Number of the slice. NULL in the first row of a pattern: that row has the rate after a burst, or without a burst the rate of the whole time';
COMMENT ON COLUMN io_probe_sustain_row.at_s IS 'When the slice began, in seconds since the first read of the pattern';
COMMENT ON COLUMN io_probe_sustain_row.iops IS 'Reads per second';
COMMENT ON COLUMN io_probe_sustain_row.mib_s IS 'iops times the size of a read, in MiB (2^20 bytes) per second';
COMMENT ON COLUMN io_probe_sustain_row.p50_us IS 'Median latency in us; NULL if fewer than ten reads took longer';
COMMENT ON COLUMN io_probe_sustain_row.p99_us IS '99th percentile of the latency in us; NULL if fewer than ten reads took longer';
COMMENT ON COLUMN io_probe_sustain_row.verdict IS 'First row: cap of ..., steady, not steady (see column steady) or too short (under five slices); after a burst, ''burst of ... s, then'' comes first. cap: the rate varies by at most 3 %, and is a round number or follows a burst. It may also be the device''s own limit. NULL in other rows';
COMMENT ON COLUMN io_probe_sustain_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';

CREATE FUNCTION io_probe_sustain(
    rel regclass,
    patterns text[] DEFAULT NULL,
    every text DEFAULT NULL,
    duration text DEFAULT NULL,
    depth integer DEFAULT 16,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_sustain_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 202
AS 'MODULE_PATHNAME', 'io_probe_sustain_wrapper';
COMMENT ON FUNCTION io_probe_sustain(regclass, text[], text, text, integer, jsonb) IS '[Measure] Reads the relation for a long time, past the OS page cache. Finds a burst and its end, and what looks like a cap. patterns: random (single blocks), then sequential (256 kB). With both patterns, a limit on IOPS and a limit on MiB/s can be told apart. The patterns share the duration. The first row of a pattern has the verdict. The next rows are slices of the length every (by default a hundredth of the pattern''s time, at least 100 ms). If an earlier load has used up credits, the burst is shorter. Evicts nothing. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, seed, wait';
REVOKE ALL ON FUNCTION io_probe_sustain(regclass, text[], text, text, integer, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_sustain_full(
    rel regclass,
    patterns text[] DEFAULT NULL,
    every text DEFAULT NULL,
    duration text DEFAULT NULL,
    depth integer DEFAULT 16,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_sustain_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 202
AS 'MODULE_PATHNAME', 'io_probe_sustain_wrapper';
COMMENT ON FUNCTION io_probe_sustain_full(regclass, text[], text, text, integer, jsonb) IS '[Measure] io_probe_sustain with all columns';
REVOKE ALL ON FUNCTION io_probe_sustain_full(regclass, text[], text, text, integer, jsonb) FROM PUBLIC;

-- The devices while the database works, as iostat shows them.

CREATE TYPE io_probe_iostat_full_row AS (
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
    sample               integer,
    elapsed_ms           double precision,
    doubt                text,
    status               text,
    notes                text[]
);
COMMENT ON TYPE io_probe_iostat_full_row IS 'Row of io_probe_iostat_full: one device in one interval';
COMMENT ON COLUMN io_probe_iostat_full_row.sampled_at IS 'When the interval ended';
COMMENT ON COLUMN io_probe_iostat_full_row.device IS 'Kernel name of the device, such as vda; NULL if none is known';
COMMENT ON COLUMN io_probe_iostat_full_row.util_pct IS 'Percent of the interval with a request in flight (up to 102, since the kernel''s clock is coarse). Even at 100, a device that serves many requests at a time may have reserves';
COMMENT ON COLUMN io_probe_iostat_full_row.aqu_sz IS 'Mean number of requests queued or in flight';
COMMENT ON COLUMN io_probe_iostat_full_row.r_s IS 'Reads completed per second';
COMMENT ON COLUMN io_probe_iostat_full_row.rmib_s IS 'MiB read per second';
COMMENT ON COLUMN io_probe_iostat_full_row.r_await_ms IS 'Mean ms of a read, queueing included';
COMMENT ON COLUMN io_probe_iostat_full_row.rareq_kb IS 'Mean size of a read in kB';
COMMENT ON COLUMN io_probe_iostat_full_row.rrqm_s IS 'Reads merged into queued reads per second';
COMMENT ON COLUMN io_probe_iostat_full_row.w_s IS 'Writes completed per second';
COMMENT ON COLUMN io_probe_iostat_full_row.wmib_s IS 'MiB written per second';
COMMENT ON COLUMN io_probe_iostat_full_row.w_await_ms IS 'Mean ms of a write';
COMMENT ON COLUMN io_probe_iostat_full_row.wareq_kb IS 'Mean size of a write in kB';
COMMENT ON COLUMN io_probe_iostat_full_row.wrqm_s IS 'Writes merged into queued writes per second';
COMMENT ON COLUMN io_probe_iostat_full_row.d_s IS 'Discards completed per second; NULL before Linux 4.18';
COMMENT ON COLUMN io_probe_iostat_full_row.dmib_s IS 'MiB discarded per second';
COMMENT ON COLUMN io_probe_iostat_full_row.d_await_ms IS 'Mean ms of a discard';
COMMENT ON COLUMN io_probe_iostat_full_row.dareq_kb IS 'Mean size of a discard in kB';
COMMENT ON COLUMN io_probe_iostat_full_row.drqm_s IS 'Discards merged into queued discards per second';
COMMENT ON COLUMN io_probe_iostat_full_row.f_s IS 'Flushes completed per second; NULL before Linux 5.5';
COMMENT ON COLUMN io_probe_iostat_full_row.f_await_ms IS 'Mean ms of a flush';
COMMENT ON COLUMN io_probe_iostat_full_row.cpu_user_pct IS 'Percent of the machine''s CPU time in user code, with nice processes and guests. The five cpu_ columns add up to 100';
COMMENT ON COLUMN io_probe_iostat_full_row.cpu_system_pct IS 'Percent of the CPU time in the kernel, with interrupts';
COMMENT ON COLUMN io_probe_iostat_full_row.cpu_iowait_pct IS 'Percent of the CPU time that was idle while I/O was in flight: a hint, not a measure of storage';
COMMENT ON COLUMN io_probe_iostat_full_row.cpu_idle_pct IS 'Percent of the CPU time that was idle without I/O in flight';
COMMENT ON COLUMN io_probe_iostat_full_row.cpu_steal_pct IS 'Percent of the CPU time that the hypervisor gave to others';
COMMENT ON COLUMN io_probe_iostat_full_row.io_pressure_pct IS 'Percent of the interval in which a task waited for I/O (some of /proc/pressure/io)';
COMMENT ON COLUMN io_probe_iostat_full_row.io_pressure_full_pct IS 'Percent of the interval in which all tasks that had work waited for I/O (full of /proc/pressure/io)';
COMMENT ON COLUMN io_probe_iostat_full_row.sample IS 'Number of the interval, from 1';
COMMENT ON COLUMN io_probe_iostat_full_row.elapsed_ms IS 'Measured length of the interval in ms';
COMMENT ON COLUMN io_probe_iostat_full_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_iostat_full_row.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_iostat_full_row.notes IS 'Sentences about this row. A note about the whole call is in one row only';

CREATE TYPE io_probe_iostat_row AS (
    sample     integer,
    device     text,
    util_pct   double precision,
    aqu_sz     double precision,
    r_s        double precision,
    rmib_s     double precision,
    r_await_ms double precision,
    wmib_s     double precision,
    w_await_ms double precision,
    doubt      text
);
COMMENT ON TYPE io_probe_iostat_row IS 'Row of io_probe_iostat: one device in one interval';
COMMENT ON COLUMN io_probe_iostat_row.sample IS 'Number of the interval, from 1';
COMMENT ON COLUMN io_probe_iostat_row.device IS 'Kernel name of the device, such as vda; NULL if none is known';
COMMENT ON COLUMN io_probe_iostat_row.util_pct IS 'Percent of the interval with a request in flight (up to 102, since the kernel''s clock is coarse). Even at 100, a device that serves many requests at a time may have reserves';
COMMENT ON COLUMN io_probe_iostat_row.aqu_sz IS 'Mean number of requests queued or in flight';
COMMENT ON COLUMN io_probe_iostat_row.r_s IS 'Reads completed per second';
COMMENT ON COLUMN io_probe_iostat_row.rmib_s IS 'MiB read per second';
COMMENT ON COLUMN io_probe_iostat_row.r_await_ms IS 'Mean ms of a read, queueing included';
COMMENT ON COLUMN io_probe_iostat_row.wmib_s IS 'MiB written per second';
COMMENT ON COLUMN io_probe_iostat_row.w_await_ms IS 'Mean ms of a write';
COMMENT ON COLUMN io_probe_iostat_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';

CREATE FUNCTION io_probe_iostat(every text DEFAULT '1 s', count integer DEFAULT 1, options jsonb DEFAULT '{}')
RETURNS SETOF io_probe_iostat_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_iostat_wrapper';
COMMENT ON FUNCTION io_probe_iostat(text, integer, jsonb) IS '[Look] Watches devices as iostat -x does, and shows CPU use and I/O pressure. Arguments: every: length of an interval; count: how many. It watches the devices behind the tablespaces, the WAL and temporary files, or only the one in option device. The first row is the first interval, not the time since boot. Causes no I/O, and may run while a probe runs. pg_monitor may call it. Options: device';
REVOKE ALL ON FUNCTION io_probe_iostat(text, integer, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_iostat(text, integer, jsonb) TO pg_monitor;

CREATE FUNCTION io_probe_iostat_full(every text DEFAULT '1 s', count integer DEFAULT 1, options jsonb DEFAULT '{}')
RETURNS SETOF io_probe_iostat_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_iostat_wrapper';
COMMENT ON FUNCTION io_probe_iostat_full(text, integer, jsonb) IS '[Look] io_probe_iostat with all columns';
REVOKE ALL ON FUNCTION io_probe_iostat_full(text, integer, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_iostat_full(text, integer, jsonb) TO pg_monitor;

-- Who uses the devices.

CREATE TYPE io_probe_sessions_full_row AS (
    sample           integer,
    pid              integer,
    process          text,
    rmib_s           double precision,
    os_mib_s         double precision,
    wmib_s           double precision,
    wal_mib_s        double precision,
    wait             text,
    query            text,
    kind             text,
    usename          text,
    datname          text,
    application_name text,
    leader_pid       integer,
    state            text,
    file             text,
    sampled_at       timestamp with time zone,
    elapsed_ms       double precision
);
COMMENT ON TYPE io_probe_sessions_full_row IS 'Row of io_probe_sessions_full: one process of the server that moved bytes in one interval; then what else the devices moved';
COMMENT ON COLUMN io_probe_sessions_full_row.sample IS 'Number of the interval, from 1';
COMMENT ON COLUMN io_probe_sessions_full_row.pid IS 'Process id; NULL in a row of several processes';
COMMENT ON COLUMN io_probe_sessions_full_row.process IS 'role@database of a session; worker of PID for a parallel worker; else the kind of process. Rows without pid are: io worker (reads by I/O workers for which no session was seen to wait); NAME, ended (processes of this name that ended in the interval, until they were last seen); ended (the rest of what processes moved that ended); outside this server (device reads for none of the processes above); other writes (the devices wrote this much more than the processes: other programs write, or earlier writes leave the OS cache); still cached (the processes wrote this much more than the devices, which get it later)';
COMMENT ON COLUMN io_probe_sessions_full_row.rmib_s IS 'MiB per second fetched from the devices for this process, also by I/O workers';
COMMENT ON COLUMN io_probe_sessions_full_row.os_mib_s IS 'MiB per second that the process read from the OS cache, also of what was read ahead in an earlier interval; NULL with io_method io_uring, since the kernel does not count these reads';
COMMENT ON COLUMN io_probe_sessions_full_row.wmib_s IS 'MiB per second that the process wrote to the OS cache. These bytes reach the device later, or never';
COMMENT ON COLUMN io_probe_sessions_full_row.wal_mib_s IS 'MiB of WAL per second. The server counts WAL at the end of a transaction, at most once per second. NULL before PostgreSQL 18, if the process was idle when the interval began, or if unknown';
COMMENT ON COLUMN io_probe_sessions_full_row.wait IS 'wait_event of pg_stat_activity at the end of the interval';
COMMENT ON COLUMN io_probe_sessions_full_row.query IS 'First 24 characters of its query, on one line';
COMMENT ON COLUMN io_probe_sessions_full_row.kind IS 'backend_type of pg_stat_activity, ended (the process has ended), or hidden (the caller may not see it)';
COMMENT ON COLUMN io_probe_sessions_full_row.usename IS 'Role';
COMMENT ON COLUMN io_probe_sessions_full_row.datname IS 'Database';
COMMENT ON COLUMN io_probe_sessions_full_row.application_name IS 'application_name of pg_stat_activity';
COMMENT ON COLUMN io_probe_sessions_full_row.leader_pid IS 'Leader of a parallel worker';
COMMENT ON COLUMN io_probe_sessions_full_row.state IS 'State as in pg_stat_activity: active, idle and so on';
COMMENT ON COLUMN io_probe_sessions_full_row.file IS 'File and blocks that I/O workers were last seen to read for the process';
COMMENT ON COLUMN io_probe_sessions_full_row.sampled_at IS 'When the interval ended';
COMMENT ON COLUMN io_probe_sessions_full_row.elapsed_ms IS 'Length of the interval in ms';

CREATE TYPE io_probe_sessions_row AS (
    pid              integer,
    process          text,
    application_name text,
    rmib_s           double precision,
    wmib_s           double precision,
    wal_mib_s        double precision,
    wait             text,
    query            text
);
COMMENT ON TYPE io_probe_sessions_row IS 'Row of io_probe_sessions: one process of the server that moved bytes in one interval; then what else the devices moved';
COMMENT ON COLUMN io_probe_sessions_row.pid IS 'Process id; NULL in a row of several processes';
COMMENT ON COLUMN io_probe_sessions_row.process IS 'role@database of a session; worker of PID for a parallel worker; else the kind of process. Rows without pid are: io worker (reads by I/O workers for which no session was seen to wait); NAME, ended (processes of this name that ended in the interval, until they were last seen); ended (the rest of what processes moved that ended); outside this server (device reads for none of the processes above); other writes (the devices wrote this much more than the processes: other programs write, or earlier writes leave the OS cache); still cached (the processes wrote this much more than the devices, which get it later)';
COMMENT ON COLUMN io_probe_sessions_row.application_name IS 'application_name of pg_stat_activity';
COMMENT ON COLUMN io_probe_sessions_row.rmib_s IS 'MiB per second fetched from the devices for this process, also by I/O workers';
COMMENT ON COLUMN io_probe_sessions_row.wmib_s IS 'MiB per second that the process wrote to the OS cache. These bytes reach the device later, or never';
COMMENT ON COLUMN io_probe_sessions_row.wal_mib_s IS 'MiB of WAL per second. The server counts WAL at the end of a transaction, at most once per second. NULL before PostgreSQL 18, if the process was idle when the interval began, or if unknown';
COMMENT ON COLUMN io_probe_sessions_row.wait IS 'wait_event of pg_stat_activity at the end of the interval';
COMMENT ON COLUMN io_probe_sessions_row.query IS 'First 24 characters of its query, on one line';

CREATE FUNCTION io_probe_sessions(every text DEFAULT '1 s', count integer DEFAULT 1)
RETURNS SETOF io_probe_sessions_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_sessions_wrapper';
COMMENT ON FUNCTION io_probe_sessions(text, integer) IS '[Look] Shows which processes of this server use storage. There is a row for each process that moved bytes in an interval, the largest amount first. Two more rows show what else the devices moved. Causes no I/O, and may run while a probe runs. pg_monitor may call it';
REVOKE ALL ON FUNCTION io_probe_sessions(text, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_sessions(text, integer) TO pg_monitor;

CREATE FUNCTION io_probe_sessions_full(every text DEFAULT '1 s', count integer DEFAULT 1)
RETURNS SETOF io_probe_sessions_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_sessions_wrapper';
COMMENT ON FUNCTION io_probe_sessions_full(text, integer) IS '[Look] io_probe_sessions with all columns';
REVOKE ALL ON FUNCTION io_probe_sessions_full(text, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_sessions_full(text, integer) TO pg_monitor;

-- Readahead windows, beside one another.

CREATE TYPE io_probe_readahead_full_row AS (
    window_kb      bigint,
    mode           text,
    mib_s          double precision,
    block_us       double precision,
    best           boolean,
    blockdev_setra text,
    udev_rule      text,
    cache_us       double precision,
    turns          bigint,
    blks           bigint,
    elapsed_ms     double precision,
    device_pct     double precision,
    engine         text,
    started_at     timestamp with time zone,
    device         text,
    scheduler      text,
    read_ahead_kb  bigint,
    relid          regclass,
    schemaname     text,
    relname        text,
    spcname        text,
    doubt          text,
    status         text,
    notes          text[],
    err_pct        double precision,
    ci_low         double precision,
    ci_high        double precision,
    device_bytes   bigint,
    device_ios     bigint,
    ios_per_block  double precision,
    rareq_kb       double precision,
    aqu_sz         double precision,
    r_await_ms     double precision,
    util_pct       double precision,
    other_bytes    bigint
);
COMMENT ON TYPE io_probe_readahead_full_row IS 'Row of io_probe_readahead_full: one readahead window';
COMMENT ON COLUMN io_probe_readahead_full_row.window_kb IS 'Readahead window in kB, as in /sys/block/*/queue/read_ahead_kb; NULL if the setting in force is unknown';
COMMENT ON COLUMN io_probe_readahead_full_row.mode IS 'kernel: the window in force, with reads through the OS cache. emulated: the probe reads one window at a time past the OS cache, and fetches the next window while it uses the present one; block_us includes cache_us';
COMMENT ON COLUMN io_probe_readahead_full_row.mib_s IS 'MiB per second of a cold scan, one block at a time';
COMMENT ON COLUMN io_probe_readahead_full_row.block_us IS 'Time per block in us, without the server''s own work';
COMMENT ON COLUMN io_probe_readahead_full_row.best IS 'Is it the smallest window that is as good as the fastest (see best of io_probe_depth)? NULL if the row is void or has no confidence interval, or if the call ended early';
COMMENT ON COLUMN io_probe_readahead_full_row.blockdev_setra IS 'Command for root that sets this window until the next boot. For open files, sessions keep the old window';
COMMENT ON COLUMN io_probe_readahead_full_row.udev_rule IS 'Line for /etc/udev/rules.d that sets this window at each boot';
COMMENT ON COLUMN io_probe_readahead_full_row.cache_us IS 'Mode emulated: us per block that the OS cache takes, measured at the window in force and included in block_us';
COMMENT ON COLUMN io_probe_readahead_full_row.turns IS 'Number of turns that count. Left out are the first turn and, in mode kernel, turns with much more CPU time than others';
COMMENT ON COLUMN io_probe_readahead_full_row.blks IS 'Number of blocks read in the turns that count';
COMMENT ON COLUMN io_probe_readahead_full_row.elapsed_ms IS 'Elapsed time of all turns in ms';
COMMENT ON COLUMN io_probe_readahead_full_row.device_pct IS 'Percent of the blocks that came from the device. Below 100, some blocks were cached';
COMMENT ON COLUMN io_probe_readahead_full_row.engine IS 'How the probe read: pread for mode kernel; io_uring or threads for mode emulated';
COMMENT ON COLUMN io_probe_readahead_full_row.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_readahead_full_row.device IS 'Devices behind the relation';
COMMENT ON COLUMN io_probe_readahead_full_row.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_readahead_full_row.read_ahead_kb IS 'Readahead window in kB that newly opened files get';
COMMENT ON COLUMN io_probe_readahead_full_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_readahead_full_row.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_readahead_full_row.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_readahead_full_row.spcname IS 'Tablespace of the relation, or the tablespace that the call names';
COMMENT ON COLUMN io_probe_readahead_full_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_readahead_full_row.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_readahead_full_row.notes IS 'Sentences about this row. A note about the whole call is in one row only';
COMMENT ON COLUMN io_probe_readahead_full_row.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_readahead_full_row.ci_low IS 'Lower end of the 95 % confidence interval. The interval covers only the variation within this run';
COMMENT ON COLUMN io_probe_readahead_full_row.ci_high IS 'Upper end of the 95 % confidence interval';
COMMENT ON COLUMN io_probe_readahead_full_row.device_bytes IS 'Bytes fetched from storage for this row, readahead included';
COMMENT ON COLUMN io_probe_readahead_full_row.device_ios IS 'Reads that the devices completed during the measurement, for all processes';
COMMENT ON COLUMN io_probe_readahead_full_row.ios_per_block IS 'device_ios per block from the device. Over 1: a block took several reads; under 1: a read had several blocks';
COMMENT ON COLUMN io_probe_readahead_full_row.rareq_kb IS 'Mean size of the devices'' reads in kB (rareq-sz of iostat)';
COMMENT ON COLUMN io_probe_readahead_full_row.aqu_sz IS 'Mean number of requests queued or in flight (aqu-sz of iostat). In io_probe_readahead, mode emulated, the time for aqu_sz and util_pct includes cache_us';
COMMENT ON COLUMN io_probe_readahead_full_row.r_await_ms IS 'Mean ms of a device read, queueing included (r_await of iostat)';
COMMENT ON COLUMN io_probe_readahead_full_row.util_pct IS 'Percent of the time with a request in flight (%util of iostat). With several devices: of the busiest device';
COMMENT ON COLUMN io_probe_readahead_full_row.other_bytes IS 'Bytes that the devices moved in addition to device_bytes: reads for others, and all writes';

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
COMMENT ON COLUMN io_probe_readahead_row.window_kb IS 'Readahead window in kB, as in /sys/block/*/queue/read_ahead_kb; NULL if the setting in force is unknown';
COMMENT ON COLUMN io_probe_readahead_row.mode IS 'kernel: the window in force, with reads through the OS cache. emulated: the probe reads one window at a time past the OS cache, and fetches the next window while it uses the present one; block_us includes cache_us';
COMMENT ON COLUMN io_probe_readahead_row.mib_s IS 'MiB per second of a cold scan, one block at a time';
COMMENT ON COLUMN io_probe_readahead_row.block_us IS 'Time per block in us, without the server''s own work';
COMMENT ON COLUMN io_probe_readahead_row.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_readahead_row.rareq_kb IS 'Mean size of the devices'' reads in kB (rareq-sz of iostat)';
COMMENT ON COLUMN io_probe_readahead_row.util_pct IS 'Percent of the time with a request in flight (%util of iostat). With several devices: of the busiest device';
COMMENT ON COLUMN io_probe_readahead_row.best IS 'Is it the smallest window that is as good as the fastest (see best of io_probe_depth)? NULL if the row is void or has no confidence interval, or if the call ended early';
COMMENT ON COLUMN io_probe_readahead_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_readahead_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';

CREATE FUNCTION io_probe_readahead(
    rel regclass,
    windows_kb integer[] DEFAULT '{16,32,64,128,256,512,1024,2048,4096}',
    duration text DEFAULT NULL,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_readahead_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_readahead_wrapper';
COMMENT ON FUNCTION io_probe_readahead(regclass, integer[], text, jsonb) IS '[Measure] Times a cold sequential scan at several readahead windows. Changes no setting: it measures the window in force, and emulates the others. It drops the blocks that it read through the OS cache, so it also needs EXECUTE on io_probe_evict. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, wait';
REVOKE ALL ON FUNCTION io_probe_readahead(regclass, integer[], text, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_readahead_full(
    rel regclass,
    windows_kb integer[] DEFAULT '{16,32,64,128,256,512,1024,2048,4096}',
    duration text DEFAULT NULL,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_readahead_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_readahead_wrapper';
COMMENT ON FUNCTION io_probe_readahead_full(regclass, integer[], text, jsonb) IS '[Measure] io_probe_readahead with all columns';
REVOKE ALL ON FUNCTION io_probe_readahead_full(regclass, integer[], text, jsonb) FROM PUBLIC;

-- What planner costs stand for.

CREATE TYPE io_probe_page_cost_full_row AS (
    tier          text,
    pattern       text,
    density       double precision,
    depth         integer,
    block_us      double precision,
    blks          bigint,
    os_pct        double precision,
    tuple_us      double precision,
    turns         bigint,
    seed          bigint,
    started_at    timestamp with time zone,
    device        text,
    scheduler     text,
    read_ahead_kb bigint,
    relid         regclass,
    schemaname    text,
    relname       text,
    spcname       text,
    doubt         text,
    status        text,
    notes         text[],
    err_pct       double precision,
    ci_low        double precision,
    ci_high       double precision
);
COMMENT ON TYPE io_probe_page_cost_full_row IS 'Row of io_probe_page_cost_full: one method of reading a block, or the work on a tuple';
COMMENT ON COLUMN io_probe_page_cost_full_row.tier IS 'Which tier serves the block: shared (shared buffers), os (OS cache) or device. For pattern tuple: cpu';
COMMENT ON COLUMN io_probe_page_cost_full_row.pattern IS 'sequential: in order; random: one block at a time in random order, as an index scan; sparse: ascending with gaps, as a bitmap heap scan; tuple: the executor''s work on the tuples of a block';
COMMENT ON COLUMN io_probe_page_cost_full_row.density IS 'Pattern sparse: what share of the blocks is read, over 0 and at most 1. NULL for other patterns';
COMMENT ON COLUMN io_probe_page_cost_full_row.depth IS 'Reads in flight. random: 1; sparse: effective_io_concurrency (0: each block is read when it is needed). NULL if the server decides';
COMMENT ON COLUMN io_probe_page_cost_full_row.block_us IS 'Mean us to get a block, without the work on its tuples. Pattern tuple: us of that work per block';
COMMENT ON COLUMN io_probe_page_cost_full_row.blks IS 'Number of blocks that were timed; for pattern tuple, number of tuples';
COMMENT ON COLUMN io_probe_page_cost_full_row.os_pct IS 'Percent of the blocks that were in the OS cache before the read';
COMMENT ON COLUMN io_probe_page_cost_full_row.tuple_us IS 'Pattern tuple: CPU time in us to count one tuple, without getting its page. NULL for other patterns';
COMMENT ON COLUMN io_probe_page_cost_full_row.turns IS 'Number of turns, including turns that block_us leaves out; for pattern tuple, number of pairs of timed counts';
COMMENT ON COLUMN io_probe_page_cost_full_row.seed IS 'Seed of the random order; option or argument seed repeats it';
COMMENT ON COLUMN io_probe_page_cost_full_row.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_page_cost_full_row.device IS 'Devices behind the relation';
COMMENT ON COLUMN io_probe_page_cost_full_row.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_page_cost_full_row.read_ahead_kb IS 'Readahead window in kB that newly opened files get';
COMMENT ON COLUMN io_probe_page_cost_full_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_page_cost_full_row.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_page_cost_full_row.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_page_cost_full_row.spcname IS 'Tablespace of the relation, or the tablespace that the call names';
COMMENT ON COLUMN io_probe_page_cost_full_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_page_cost_full_row.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_page_cost_full_row.notes IS 'Sentences about this row. A note about the whole call is in one row only';
COMMENT ON COLUMN io_probe_page_cost_full_row.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_page_cost_full_row.ci_low IS 'Lower end of the 95 % confidence interval. The interval covers only the variation within this run';
COMMENT ON COLUMN io_probe_page_cost_full_row.ci_high IS 'Upper end of the 95 % confidence interval';

CREATE TYPE io_probe_page_cost_row AS (
    tier     text,
    pattern  text,
    density  double precision,
    depth    integer,
    block_us double precision,
    err_pct  double precision,
    tuple_us double precision,
    blks     bigint,
    relid    regclass,
    doubt    text
);
COMMENT ON TYPE io_probe_page_cost_row IS 'Row of io_probe_page_cost: one method of reading a block, or the work on a tuple';
COMMENT ON COLUMN io_probe_page_cost_row.tier IS 'Which tier serves the block: shared (shared buffers), os (OS cache) or device. For pattern tuple: cpu';
COMMENT ON COLUMN io_probe_page_cost_row.pattern IS 'sequential: in order; random: one block at a time in random order, as an index scan; sparse: ascending with gaps, as a bitmap heap scan; tuple: the executor''s work on the tuples of a block';
COMMENT ON COLUMN io_probe_page_cost_row.density IS 'Pattern sparse: what share of the blocks is read, over 0 and at most 1. NULL for other patterns';
COMMENT ON COLUMN io_probe_page_cost_row.depth IS 'Reads in flight. random: 1; sparse: effective_io_concurrency (0: each block is read when it is needed). NULL if the server decides';
COMMENT ON COLUMN io_probe_page_cost_row.block_us IS 'Mean us to get a block, without the work on its tuples. Pattern tuple: us of that work per block';
COMMENT ON COLUMN io_probe_page_cost_row.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_page_cost_row.tuple_us IS 'Pattern tuple: CPU time in us to count one tuple, without getting its page. NULL for other patterns';
COMMENT ON COLUMN io_probe_page_cost_row.blks IS 'Number of blocks that were timed; for pattern tuple, number of tuples';
COMMENT ON COLUMN io_probe_page_cost_row.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_page_cost_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';

CREATE FUNCTION io_probe_page_cost(
    rel regclass,
    densities double precision[] DEFAULT '{0.03,0.1,0.2,0.35,0.5,0.72,1}',
    concurrencies integer[] DEFAULT NULL,
    duration text DEFAULT NULL,
    cold boolean DEFAULT false,
    seed bigint DEFAULT NULL,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_page_cost_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 42
AS 'MODULE_PATHNAME', 'io_probe_page_cost_wrapper';
COMMENT ON FUNCTION io_probe_page_cost(regclass, double precision[], integer[], text, boolean, bigint, jsonb) IS '[Measure] Times the operations behind planner costs. Reads blocks from shared buffers, the OS page cache and the device, in order, at random, and ascending with gaps at several densities and effective_io_concurrency settings. Takes 14 s by default, and up to 28 s if some time is not known to within 10 % by then. Afterwards it drops from the OS page cache what it read from the device. cold => true evicts pages that were cached before; it needs EXECUTE on io_probe_evict. Without cold, a cached relation has only one row of tier device: random reads by O_DIRECT. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: max_bytes (separately for sequential, for random and for each depth of sparse), max_iops, max_mib_s, max_util_pct, max_p99, precision, wait';
REVOKE ALL ON FUNCTION io_probe_page_cost(regclass, double precision[], integer[], text, boolean, bigint, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_page_cost_full(
    rel regclass,
    densities double precision[] DEFAULT '{0.03,0.1,0.2,0.35,0.5,0.72,1}',
    concurrencies integer[] DEFAULT NULL,
    duration text DEFAULT NULL,
    cold boolean DEFAULT false,
    seed bigint DEFAULT NULL,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_page_cost_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 42
AS 'MODULE_PATHNAME', 'io_probe_page_cost_wrapper';
COMMENT ON FUNCTION io_probe_page_cost_full(regclass, double precision[], integer[], text, boolean, bigint, jsonb) IS '[Measure] io_probe_page_cost with all columns';
REVOKE ALL ON FUNCTION io_probe_page_cost_full(regclass, double precision[], integer[], text, boolean, bigint, jsonb) FROM PUBLIC;

-- Values of settings, from what was measured.

CREATE TYPE io_probe_recommend_full_row AS (
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
    undo           text,
    instead        text[],
    hides          text,
    why            text,
    relid          regclass,
    doubt          text,
    evidence       jsonb,
    server_version integer,
    io_method      text
);
COMMENT ON TYPE io_probe_recommend_full_row IS 'Row of io_probe_recommend_full: one setting in one scope';
COMMENT ON COLUMN io_probe_recommend_full_row.scope IS 'Where the value applies: cluster, tablespace, index or device. A setting of tablespaces has scope cluster if there is only one, without a value by ALTER TABLESPACE';
COMMENT ON COLUMN io_probe_recommend_full_row.name IS 'Name of the tablespace, index or device; NULL for the cluster, or if unknown';
COMMENT ON COLUMN io_probe_recommend_full_row.setting IS 'Setting of the server; for a device, setting of the kernel; for an index, correlation';
COMMENT ON COLUMN io_probe_recommend_full_row.current IS 'Value in force, as SHOW prints it; for a device in kB';
COMMENT ON COLUMN io_probe_recommend_full_row.current_source IS 'Source of current: a source of pg_settings, tablespace (the tablespace has its own value), pg_statistic, io_probe_corrections, or /sys';
COMMENT ON COLUMN io_probe_recommend_full_row.recommended IS 'Best value by this measurement, as ALTER SYSTEM takes it. Equal to current: keep it. NULL: no advice (see column why)';
COMMENT ON COLUMN io_probe_recommend_full_row.low IS 'Lowest value that is as good as the best. Not as good: over 5 % worse with 95 % confidence, by the errors of measurement and model';
COMMENT ON COLUMN io_probe_recommend_full_row.high IS 'Highest value that is as good as the best';
COMMENT ON COLUMN io_probe_recommend_full_row.applies IS 'When a change takes effect. now: at once; reload: after SELECT pg_reload_conf(); restart: after a restart of the server; root: statement is a shell command for root';
COMMENT ON COLUMN io_probe_recommend_full_row.statement IS 'SQL that sets the recommended value (psql runs it by \gexec); a shell command if applies is root';
COMMENT ON COLUMN io_probe_recommend_full_row.undo IS 'SQL or command that undoes statement: it sets the old value again, or resets the setting. Only a superuser sees what ALTER SYSTEM had set; for others, undo resets it';
COMMENT ON COLUMN io_probe_recommend_full_row.instead IS 'Alternative to statement, one command per element. For a tablespace: resets its own value, if any, and sets the value for the whole server; then run SELECT pg_reload_conf(). For the cluster: sets the value for the only tablespace (SHOW does not show it). For a correlation, in PostgreSQL 18 and later: sets it in the column''s statistics until the next ANALYZE. NULL if there is none';
COMMENT ON COLUMN io_probe_recommend_full_row.hides IS 'Where else the setting may have a value (database, role ...) that overrides statement or instead, or is overridden by them. Begins with ''to be run on the primary'' if a standby refuses statement';
COMMENT ON COLUMN io_probe_recommend_full_row.why IS 'Reason for the recommendation, or why there is none';
COMMENT ON COLUMN io_probe_recommend_full_row.relid IS 'Relation that was measured, or was to be measured';
COMMENT ON COLUMN io_probe_recommend_full_row.doubt IS 'If recommended is NULL: needs cold, needs writes (that argument may bring advice), not looked at (no time was left for this index), or unknown (see column why). Else short (some values were not measured, see column why), or what happened meanwhile: slowed (the device slowed down), limited (an I/O limit of the server''s cgroup was near), cpu quota (the cgroup''s CPU quota was used up), others (others used the device). NULL: no doubt';
COMMENT ON COLUMN io_probe_recommend_full_row.evidence IS 'Figures behind the recommendation';
COMMENT ON COLUMN io_probe_recommend_full_row.server_version IS 'Major version of the server at the measurement. On another version the advice is stale';
COMMENT ON COLUMN io_probe_recommend_full_row.io_method IS 'io_method at the measurement; NULL before PostgreSQL 18. With another io_method the advice is stale';

CREATE TYPE io_probe_recommend_row AS (
    setting     text,
    name        text,
    current     text,
    recommended text,
    low         text,
    high        text,
    doubt       text
);
COMMENT ON TYPE io_probe_recommend_row IS 'Row of io_probe_recommend: one setting in one scope';
COMMENT ON COLUMN io_probe_recommend_row.setting IS 'Setting of the server; for a device, setting of the kernel; for an index, correlation';
COMMENT ON COLUMN io_probe_recommend_row.name IS 'Name of the tablespace, index or device; NULL for the cluster, or if unknown';
COMMENT ON COLUMN io_probe_recommend_row.current IS 'Value in force, as SHOW prints it; for a device in kB';
COMMENT ON COLUMN io_probe_recommend_row.recommended IS 'Best value by this measurement, as ALTER SYSTEM takes it. Equal to current: keep it. NULL: no advice (see column why)';
COMMENT ON COLUMN io_probe_recommend_row.low IS 'Lowest value that is as good as the best. Not as good: over 5 % worse with 95 % confidence, by the errors of measurement and model';
COMMENT ON COLUMN io_probe_recommend_row.high IS 'Highest value that is as good as the best';
COMMENT ON COLUMN io_probe_recommend_row.doubt IS 'If recommended is NULL: needs cold, needs writes (that argument may bring advice), not looked at (no time was left for this index), or unknown (see column why). Else short (some values were not measured, see column why), or what happened meanwhile: slowed (the device slowed down), limited (an I/O limit of the server''s cgroup was near), cpu quota (the cgroup''s CPU quota was used up), others (others used the device). NULL: no doubt';

CREATE FUNCTION io_probe_recommend(
    rel regclass DEFAULT NULL,
    settings text[] DEFAULT NULL,
    duration text DEFAULT NULL,
    cold boolean DEFAULT false,
    writes boolean DEFAULT false,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_recommend_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 8
AS 'MODULE_PATHNAME', 'io_probe_recommend_wrapper';
COMMENT ON FUNCTION io_probe_recommend(regclass, text[], text, boolean, boolean, jsonb) IS '[Advise] Measures, then recommends values of settings. Changes no setting. A NOTICE shows each statement that would change a setting; io_probe_recommend_full also shows the reasons. Measures the relation, or the largest table of each tablespace. settings selects the rows to show, and does not change their values: random_page_cost, effective_io_concurrency, maintenance_io_concurrency, correlation, read_ahead_kb, wal_sync_method, checkpoint_flush_after, backend_flush_after, bgwriter_flush_after, checkpoint_completion_target and autovacuum_vacuum_cost_limit; in PostgreSQL 18 and later also io_method, io_workers (PostgreSQL 19: io_min_workers and io_max_workers), io_max_concurrency, io_combine_limit and io_max_combine_limit. An index has a row if another correlation is better, if there was no time to look at it, or if settings names correlation. seq_page_cost stays as it is, as the unit of all costs. cold => true evicts what the function reads (needs EXECUTE on io_probe_evict). writes => true writes scratch files in the folder of the WAL and in the tablespace of the largest table. This needs EXECUTE on io_probe_sync; without CREATE on that tablespace, if it is not the database''s default, the flush_after settings have no advice. Needs EXECUTE, and SELECT or MAINTAIN on the tables. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, wait';
REVOKE ALL ON FUNCTION io_probe_recommend(regclass, text[], text, boolean, boolean, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_recommend_full(
    rel regclass DEFAULT NULL,
    settings text[] DEFAULT NULL,
    duration text DEFAULT NULL,
    cold boolean DEFAULT false,
    writes boolean DEFAULT false,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_recommend_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 8
AS 'MODULE_PATHNAME', 'io_probe_recommend_wrapper';
COMMENT ON FUNCTION io_probe_recommend_full(regclass, text[], text, boolean, boolean, jsonb) IS '[Advise] io_probe_recommend with all columns';
REVOKE ALL ON FUNCTION io_probe_recommend_full(regclass, text[], text, boolean, boolean, jsonb) FROM PUBLIC;

-- Where the rows of indexes lie, and correlations that the planner uses in place of ANALYZE's.

CREATE TYPE io_probe_correlation_full_row AS (
    index         regclass,
    correlation   double precision,
    stored        double precision,
    scattered_pct double precision,
    stretch_blks  bigint,
    ordered_blks  bigint,
    range_blks    bigint,
    random_blks   bigint,
    method        text,
    relid         regclass,
    evidence      jsonb,
    doubt         text,
    status        text,
    notes         text[]
);
COMMENT ON TYPE io_probe_correlation_full_row IS 'Row of io_probe_correlation_full: one index';
COMMENT ON COLUMN io_probe_correlation_full_row.index IS 'The index';
COMMENT ON COLUMN io_probe_correlation_full_row.correlation IS 'Correlation that ANALYZE found for the index''s first column or expression, from -1 to 1';
COMMENT ON COLUMN io_probe_correlation_full_row.stored IS 'Correlation that io_probe_correct stored for the index; NULL if the caller may not see the statistics';
COMMENT ON COLUMN io_probe_correlation_full_row.scattered_pct IS 'Percent of the rows that are stored far (over 5 % of the table) from their neighbours in the index. Up to a value of 5, scattered rows in the same block count as one';
COMMENT ON COLUMN io_probe_correlation_full_row.stretch_blks IS 'Number of blocks from which rows that are not scattered come at any moment of an index scan; up to 4: stored in index order';
COMMENT ON COLUMN io_probe_correlation_full_row.ordered_blks IS 'Number of blocks that a scan of 1 % of the index would visit if its rows were stored next to each other';
COMMENT ON COLUMN io_probe_correlation_full_row.range_blks IS 'Number of different blocks that a scan of 1 % of the index visits, estimated from samples';
COMMENT ON COLUMN io_probe_correlation_full_row.random_blks IS 'Number of range_blks visited in no order or backwards: the kernel does not read ahead for them';
COMMENT ON COLUMN io_probe_correlation_full_row.method IS 'Access method of the index; the figures are NULL unless it is btree';
COMMENT ON COLUMN io_probe_correlation_full_row.relid IS 'Table of the index';
COMMENT ON COLUMN io_probe_correlation_full_row.evidence IS '95 % confidence intervals of scattered_pct and stretch_blks; number of index entries read; ranges: for 0.01, 0.1, 1 and 10 percent of the index {ordered_blks, blks, ci_blks, random_blks, random_ci_blks}';
COMMENT ON COLUMN io_probe_correlation_full_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_correlation_full_row.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_correlation_full_row.notes IS 'Sentences about this row. A note about the whole call is in one row only';

CREATE TYPE io_probe_correlation_row AS (
    index         regclass,
    correlation   double precision,
    stored        double precision,
    scattered_pct double precision,
    stretch_blks  bigint,
    ordered_blks  bigint,
    range_blks    bigint,
    random_blks   bigint,
    doubt         text
);
COMMENT ON TYPE io_probe_correlation_row IS 'Row of io_probe_correlation: one index';
COMMENT ON COLUMN io_probe_correlation_row.index IS 'The index';
COMMENT ON COLUMN io_probe_correlation_row.correlation IS 'Correlation that ANALYZE found for the index''s first column or expression, from -1 to 1';
COMMENT ON COLUMN io_probe_correlation_row.stored IS 'Correlation that io_probe_correct stored for the index; NULL if the caller may not see the statistics';
COMMENT ON COLUMN io_probe_correlation_row.scattered_pct IS 'Percent of the rows that are stored far (over 5 % of the table) from their neighbours in the index. Up to a value of 5, scattered rows in the same block count as one';
COMMENT ON COLUMN io_probe_correlation_row.stretch_blks IS 'Number of blocks from which rows that are not scattered come at any moment of an index scan; up to 4: stored in index order';
COMMENT ON COLUMN io_probe_correlation_row.ordered_blks IS 'Number of blocks that a scan of 1 % of the index would visit if its rows were stored next to each other';
COMMENT ON COLUMN io_probe_correlation_row.range_blks IS 'Number of different blocks that a scan of 1 % of the index visits, estimated from samples';
COMMENT ON COLUMN io_probe_correlation_row.random_blks IS 'Number of range_blks visited in no order or backwards: the kernel does not read ahead for them';
COMMENT ON COLUMN io_probe_correlation_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';

CREATE FUNCTION io_probe_correlation(rel regclass)
RETURNS SETOF io_probe_correlation_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 4
AS 'MODULE_PATHNAME', 'io_probe_correlation_wrapper';
COMMENT ON FUNCTION io_probe_correlation(regclass) IS '[Look] Shows how far the rows of a table are stored in the order of each index, and the correlation that the planner uses. Reads some pages of each btree index, and nothing of the table. Needs EXECUTE, and SELECT or MAINTAIN on the table. The figures are NULL without SELECT, or if the caller is under row-level security';
REVOKE ALL ON FUNCTION io_probe_correlation(regclass) FROM PUBLIC;

CREATE FUNCTION io_probe_correlation_full(rel regclass)
RETURNS SETOF io_probe_correlation_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 4
AS 'MODULE_PATHNAME', 'io_probe_correlation_wrapper';
COMMENT ON FUNCTION io_probe_correlation_full(regclass) IS '[Look] io_probe_correlation with all columns';
REVOKE ALL ON FUNCTION io_probe_correlation_full(regclass) FROM PUBLIC;

CREATE FUNCTION io_probe_correct(index regclass, correlation double precision)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'io_probe_correct_wrapper';
COMMENT ON FUNCTION io_probe_correct(regclass, double precision) IS '[Advise] Stores a correlation, from 0 to 1, for a btree index; NULL deletes it. The planner uses it in all sessions that have loaded the library (session_preload_libraries = ''pg_io_probe''). Needs EXECUTE. The caller must own the table or, in PostgreSQL 17 and later, have MAINTAIN on it';
REVOKE ALL ON FUNCTION io_probe_correct(regclass, double precision) FROM PUBLIC;

-- Where the rows of indexes lie, and correlations that the planner uses in place of what ANALYZE found.

CREATE TABLE io_probe_corrections (
    schemaname    name NOT NULL,
    tablename     name NOT NULL,
    indexname     name NOT NULL,
    correlation   double precision NOT NULL,
    analyzed      real NOT NULL,
    relfilenode   oid NOT NULL,
    reltuples     real NOT NULL,
    major_version integer NOT NULL,
    io_method     name NOT NULL,
    set_at        timestamp with time zone NOT NULL DEFAULT pg_catalog.now(),
    PRIMARY KEY (schemaname, tablename, indexname)
) USING heap;
SELECT pg_catalog.pg_extension_config_dump('io_probe_corrections', '');
COMMENT ON TABLE io_probe_corrections IS 'Correlations of indexes. The planner uses them in place of those that ANALYZE found, in sessions that have loaded the library. io_probe_correct writes them; the owner of this table may DELETE rows of tables that are gone. At most 1000 rows of a table count';
COMMENT ON COLUMN io_probe_corrections.schemaname IS 'Schema of the table and of the index';
COMMENT ON COLUMN io_probe_corrections.tablename IS 'Name of the table';
COMMENT ON COLUMN io_probe_corrections.indexname IS 'Name of the index; not its oid, since REINDEX CONCURRENTLY changes that';
COMMENT ON COLUMN io_probe_corrections.correlation IS 'Correlation that the planner uses, from 0 to 1';
COMMENT ON COLUMN io_probe_corrections.analyzed IS 'Correlation that ANALYZE had found at set_at. If it later finds one that differs by over 0.1, the row no longer counts';
COMMENT ON COLUMN io_probe_corrections.relfilenode IS 'File of the table at set_at. If the table is rewritten, the row no longer counts';
COMMENT ON COLUMN io_probe_corrections.reltuples IS 'Rows of the table at set_at. If their number later differs by over 20 %, the row no longer counts';
COMMENT ON COLUMN io_probe_corrections.major_version IS 'Major version of the server at set_at. On another version the row no longer counts';
COMMENT ON COLUMN io_probe_corrections.io_method IS 'io_method at set_at, empty before PostgreSQL 18. With another io_method the row no longer counts';
COMMENT ON COLUMN io_probe_corrections.set_at IS 'When io_probe_correct was called';

-- A plan as rows.

CREATE TYPE io_probe_explain_full_row AS (
    node_id           integer,
    parent_id         integer,
    level             integer,
    node_type         text,
    node              text,
    relid             regclass,
    indexid           regclass,
    alias             text,
    access            text,
    shared_blks_hit   bigint,
    shared_blks_read  bigint,
    os_mib            double precision,
    device_mib        double precision,
    temp_mib          double precision,
    temp_blks_read    bigint,
    temp_blks_written bigint,
    io_ms             double precision,
    temp_io_ms        double precision,
    self_ms           double precision,
    total_ms          double precision,
    processes         bigint,
    plan_rows         double precision,
    actual_rows       double precision,
    loops             bigint,
    startup_cost      double precision,
    total_cost        double precision,
    local_blks_hit    bigint,
    local_blks_read   bigint,
    local_io_ms       double precision,
    expected_ms       double precision,
    os_ms             double precision,
    device_ms         double precision
);
COMMENT ON TYPE io_probe_explain_full_row IS 'Row of io_probe_explain_full: one plan node. If the query was executed, the last row has the sums, and its node_id is NULL. If not, columns that need an execution are NULL';
COMMENT ON COLUMN io_probe_explain_full_row.node_id IS 'Number of the node, from 1, in the order of EXPLAIN; NULL in the row of sums';
COMMENT ON COLUMN io_probe_explain_full_row.parent_id IS 'Number of the node above it; NULL for the top node';
COMMENT ON COLUMN io_probe_explain_full_row.level IS 'Level of the node; the top node has 0';
COMMENT ON COLUMN io_probe_explain_full_row.node_type IS 'Type of the node as EXPLAIN prints it. In the row of sums, the cause of the time: the disk (the query waited for it at least 50 % of the time), partly the disk (at least 10 %), not the disk, or unknown';
COMMENT ON COLUMN io_probe_explain_full_row.node IS 'node_type, indented by level; the row of sums begins with =';
COMMENT ON COLUMN io_probe_explain_full_row.relid IS 'Table that the node reads or modifies (of a Bitmap Index Scan: the index''s table). Join it with relid of any probe';
COMMENT ON COLUMN io_probe_explain_full_row.indexid IS 'Index that the node reads';
COMMENT ON COLUMN io_probe_explain_full_row.alias IS 'Name in the query for what the node scans';
COMMENT ON COLUMN io_probe_explain_full_row.access IS 'How the node reaches its blocks: sequential, random or bitmap; NULL if it scans nothing';
COMMENT ON COLUMN io_probe_explain_full_row.shared_blks_hit IS 'Blocks found in shared buffers. All figures are of the node itself, without the nodes below it, unless the column says otherwise';
COMMENT ON COLUMN io_probe_explain_full_row.shared_blks_read IS 'Blocks read into shared buffers';
COMMENT ON COLUMN io_probe_explain_full_row.os_mib IS 'MiB read from the OS cache; NULL if unknown';
COMMENT ON COLUMN io_probe_explain_full_row.device_mib IS 'MiB fetched from the device. The kernel''s readahead counts, even if nobody needed it';
COMMENT ON COLUMN io_probe_explain_full_row.temp_mib IS 'MiB of temporary files that were read and written';
COMMENT ON COLUMN io_probe_explain_full_row.temp_blks_read IS 'Blocks of temporary files read';
COMMENT ON COLUMN io_probe_explain_full_row.temp_blks_written IS 'Blocks of temporary files written';
COMMENT ON COLUMN io_probe_explain_full_row.io_ms IS 'Part of self_ms in which the node waited for blocks of tables and indexes. All times are means over the parallel processes. NULL if argument plan was made without track_io_timing';
COMMENT ON COLUMN io_probe_explain_full_row.temp_io_ms IS 'Part of self_ms spent on temporary files: a sort, a hash or a CTE did not fit into memory';
COMMENT ON COLUMN io_probe_explain_full_row.self_ms IS 'Part of total_ms that the node itself took. With many short calls, it is sampled every ms';
COMMENT ON COLUMN io_probe_explain_full_row.total_ms IS 'Time in ms of the node and of the nodes below it';
COMMENT ON COLUMN io_probe_explain_full_row.processes IS 'Number of processes that ran this part of the plan: below a Gather the workers and the leader, else 1';
COMMENT ON COLUMN io_probe_explain_full_row.plan_rows IS 'Rows per loop that the planner estimated';
COMMENT ON COLUMN io_probe_explain_full_row.actual_rows IS 'Rows per loop that the node returned';
COMMENT ON COLUMN io_probe_explain_full_row.loops IS 'How often the node was started, summed over all processes';
COMMENT ON COLUMN io_probe_explain_full_row.startup_cost IS 'The planner''s cost up to the first row';
COMMENT ON COLUMN io_probe_explain_full_row.total_cost IS 'The planner''s cost up to the last row';
COMMENT ON COLUMN io_probe_explain_full_row.local_blks_hit IS 'Blocks of temporary tables found in the session''s own buffers';
COMMENT ON COLUMN io_probe_explain_full_row.local_blks_read IS 'Blocks of temporary tables read';
COMMENT ON COLUMN io_probe_explain_full_row.local_io_ms IS 'Part of io_ms spent on blocks of temporary tables; NULL before PostgreSQL 17';
COMMENT ON COLUMN io_probe_explain_full_row.expected_ms IS 'io_ms as predicted from the times that io_probe_page_cost measured. If io_ms is much longer, requests had to queue, or others used the device. NULL if several processes ran the node';
COMMENT ON COLUMN io_probe_explain_full_row.os_ms IS 'Predicted ms if all shared_blks_read came from the OS cache';
COMMENT ON COLUMN io_probe_explain_full_row.device_ms IS 'Predicted ms if all shared_blks_read came from the device, in the node''s order. In PostgreSQL 18 and later io_ms is shorter if waiting overlaps with work';

CREATE TYPE io_probe_explain_row AS (
    node       text,
    relid      regclass,
    self_ms    double precision,
    io_ms      double precision,
    os_mib     double precision,
    device_mib double precision,
    temp_mib   double precision
);
COMMENT ON TYPE io_probe_explain_row IS 'Row of io_probe_explain: one plan node. If the query was executed, the last row has the sums, and its node_id is NULL. If not, columns that need an execution are NULL';
COMMENT ON COLUMN io_probe_explain_row.node IS 'node_type, indented by level; the row of sums begins with =';
COMMENT ON COLUMN io_probe_explain_row.relid IS 'Table that the node reads or modifies (of a Bitmap Index Scan: the index''s table). Join it with relid of any probe';
COMMENT ON COLUMN io_probe_explain_row.self_ms IS 'Part of total_ms that the node itself took. With many short calls, it is sampled every ms';
COMMENT ON COLUMN io_probe_explain_row.io_ms IS 'Part of self_ms in which the node waited for blocks of tables and indexes. All times are means over the parallel processes. NULL if argument plan was made without track_io_timing';
COMMENT ON COLUMN io_probe_explain_row.os_mib IS 'MiB read from the OS cache; NULL if unknown';
COMMENT ON COLUMN io_probe_explain_row.device_mib IS 'MiB fetched from the device. The kernel''s readahead counts, even if nobody needed it';
COMMENT ON COLUMN io_probe_explain_row.temp_mib IS 'MiB of temporary files that were read and written';

CREATE TYPE io_probe_explain_text_row AS (
    plan text
);
COMMENT ON TYPE io_probe_explain_text_row IS 'Row of io_probe_explain_text: one line';
COMMENT ON COLUMN io_probe_explain_text_row.plan IS 'The line';

CREATE FUNCTION io_probe_explain(query text, execute boolean DEFAULT false, options jsonb DEFAULT '{}')
RETURNS SETOF io_probe_explain_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_explain_wrapper';
COMMENT ON FUNCTION io_probe_explain(text, boolean, jsonb) IS '[Look] Shows the plan of one query, a row per node. execute => true runs the query, read-only. Then each row has the blocks and times of the node itself, and which tier served the blocks. The last row has the sums, and tells whether the disk was the cause. Everyone may call it. Options: page_cost (rows of io_probe_page_cost for the predictions, instead of what this session measured last), exact (in PostgreSQL 18 and later with I/O workers: the backend itself reads, with effective_io_concurrency 0, so that the bytes of each node are exact)';

CREATE FUNCTION io_probe_explain_full(query text, execute boolean DEFAULT false, options jsonb DEFAULT '{}')
RETURNS SETOF io_probe_explain_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_explain_wrapper';
COMMENT ON FUNCTION io_probe_explain_full(text, boolean, jsonb) IS '[Look] io_probe_explain with all columns';

CREATE FUNCTION io_probe_explain(plan json, options jsonb DEFAULT '{}')
RETURNS SETOF io_probe_explain_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_explain_json_wrapper';
COMMENT ON FUNCTION io_probe_explain(json, jsonb) IS '[Look] Shows a plan that EXPLAIN (FORMAT JSON) or auto_explain printed, as io_probe_explain(query) does. Name the argument: io_probe_explain(plan => ''...''). Looks up names, sizes and settings in this database. Everyone may call it. Option page_cost: works as in io_probe_explain(query)';

CREATE FUNCTION io_probe_explain_full(plan json, options jsonb DEFAULT '{}')
RETURNS SETOF io_probe_explain_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_explain_json_wrapper';
COMMENT ON FUNCTION io_probe_explain_full(json, jsonb) IS '[Look] io_probe_explain with all columns';

CREATE FUNCTION io_probe_explain_text(query text)
RETURNS SETOF io_probe_explain_text_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_explain_text_wrapper';
COMMENT ON FUNCTION io_probe_explain_text(text) IS '[Look] Runs EXPLAIN (ANALYZE, BUFFERS) of a query that only reads. After the Buffers of each node, one more line says which tier served its reads, and how long the node waited. The last line says whether the disk was the cause. Everyone may call it';

-- All that there is to know of the storage, in one call and in words.

CREATE TYPE io_probe_report_full_row AS (
    section   text,
    item      text,
    value     double precision,
    unit      text,
    low       double precision,
    high      double precision,
    promised  double precision,
    kept      boolean,
    finding   text,
    mark      text,
    doubt     text,
    statement text,
    write_pct integer
);
COMMENT ON TYPE io_probe_report_full_row IS 'Row of io_probe_report_full: one line, a figure or a fact';
COMMENT ON COLUMN io_probe_report_full_row.section IS 'Subject of the line: server, device, trust, scan, depth, p50, p99, write, write_p50, write_p99, long_write, commit, commit_p99, load, load_p50, load_p99, commit_load_p50, commit_load_p99, readahead, verdict, advice, missing';
COMMENT ON COLUMN io_probe_report_full_row.item IS 'What the line is about. trust: good, fair, poor or unknown, for the parts that finding names (scans, reads, writes, commits, mixed load). scan: the path. depth, p50, p99, write, write_p50, write_p99, long_write: requests in flight. commit, commit_p99: the sync method. load: reads alone or writes alone. load_p50, load_p99, commit_load_p50, commit_load_p99: rate of reads, in percent of reads alone. readahead: the window in kB';
COMMENT ON COLUMN io_probe_report_full_row.value IS 'Figure that was measured; NULL for a fact';
COMMENT ON COLUMN io_probe_report_full_row.unit IS 'Unit of value';
COMMENT ON COLUMN io_probe_report_full_row.low IS 'Lower end of the 95 % confidence interval of value';
COMMENT ON COLUMN io_probe_report_full_row.high IS 'Upper end of the 95 % confidence interval of value';
COMMENT ON COLUMN io_probe_report_full_row.promised IS 'What argument promised gives for this figure';
COMMENT ON COLUMN io_probe_report_full_row.kept IS 'Is the promise kept, within 5 percent? NULL without a promise, or if unknown (a line of section verdict has the cause)';
COMMENT ON COLUMN io_probe_report_full_row.finding IS 'The fact, in words. NULL for a figure, except for the size of the relation: there the relation''s name';
COMMENT ON COLUMN io_probe_report_full_row.mark IS 'best: the smallest depth that is as good as the fastest; in use: the server uses it; from memory: under 90 % of the scan came from the device; not carried: under 95 % of reads or writes were answered in time, so the true percentile is higher';
COMMENT ON COLUMN io_probe_report_full_row.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figure, or the line has none';
COMMENT ON COLUMN io_probe_report_full_row.statement IS 'Section advice: statement that carries out the advice';
COMMENT ON COLUMN io_probe_report_full_row.write_pct IS 'Sections load_p50, load_p99: rate of writes meanwhile, in percent of the rate of writes alone. commit_load_p50, commit_load_p99: rate of commits, in percent of the rate of commits alone';

CREATE TYPE io_probe_report_row AS (
    report text
);
COMMENT ON TYPE io_probe_report_row IS 'Row of io_probe_report: one line of the report, as text or as HTML';
COMMENT ON COLUMN io_probe_report_row.report IS 'The line';

CREATE FUNCTION io_probe_report_full(
    rel regclass DEFAULT NULL,
    duration text DEFAULT NULL,
    cold boolean DEFAULT false,
    writes boolean DEFAULT false,
    promised jsonb DEFAULT NULL,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_report_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 50
AS 'MODULE_PATHNAME', 'io_probe_report_full_wrapper';
COMMENT ON FUNCTION io_probe_report_full(regclass, text, boolean, boolean, jsonb, jsonb) IS '[Measure] Returns the content of io_probe_report as rows, to join and to store';
REVOKE ALL ON FUNCTION io_probe_report_full(regclass, text, boolean, boolean, jsonb, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_report(
    rel regclass DEFAULT NULL,
    duration text DEFAULT NULL,
    cold boolean DEFAULT false,
    writes boolean DEFAULT false,
    promised jsonb DEFAULT NULL,
    format text DEFAULT 'text',
    run bigint DEFAULT NULL,
    options jsonb DEFAULT '{}'
)
RETURNS SETOF io_probe_report_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 50
AS 'MODULE_PATHNAME', 'io_probe_report_wrapper';
COMMENT ON FUNCTION io_probe_report(regclass, text, boolean, boolean, jsonb, text, bigint, jsonb) IS '[Measure] Reports on the storage in one call: devices, scans, random reads, readahead and settings, with verdicts in words. It takes half a minute unless duration says otherwise. writes => true adds writes, flushes, and latencies of reads during writes. Measures relation rel, or the largest table. promised is what you pay for: {"mib_s": 2000, "iops": 100000, "p99_us": 500, "write_mib_s": 1000, "write_iops": 50000, "commit_us": 1000, "commit_p99_us": 2000}. format: text (80 columns) or html (one page, with pictures). run shows a report that io_probe_record(''report'') has stored. cold => true evicts what the report reads. writes => true writes scratch files in the folder of the WAL and in the relation''s tablespace. The report leaves out and lists what the caller has no right to measure (rights on the _full functions count). Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision (not for reads at several depths, and not for writes), wait';
REVOKE ALL ON FUNCTION io_probe_report(regclass, text, boolean, boolean, jsonb, text, bigint, jsonb) FROM PUBLIC;

-- Runs that are kept, and the rows of their probes.

CREATE FUNCTION io_probe_measure(probe text, rel regclass DEFAULT NULL, args jsonb DEFAULT '{}')
RETURNS jsonb
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'io_probe_measure_wrapper';
COMMENT ON FUNCTION io_probe_measure(text, regclass, jsonb) IS '[Keep] Runs a probe (seqscan: io_probe_seqscan, and so on) with the caller''s rights. Returns rows and circumstances as one value, for io_probe_import here or on another server. args are the probe''s arguments by name. If storage or the server makes the probe fail, status is failed. If another probe is running, or the device is too busy, status is skipped. Both raise a WARNING. Stores nothing, so it works on a standby. Needs EXECUTE on the probe''s _full function, and the rights that the probe needs';
REVOKE ALL ON FUNCTION io_probe_measure(text, regclass, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_import(result jsonb, label text DEFAULT NULL)
RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'io_probe_import_wrapper';
COMMENT ON FUNCTION io_probe_import(jsonb, text) IS '[Keep] Stores a result of io_probe_measure, from here or from another server, with an optional label. Returns the number of the run. Needs EXECUTE';
REVOKE ALL ON FUNCTION io_probe_import(jsonb, text) FROM PUBLIC;

CREATE FUNCTION io_probe_record(
    probe text,
    rel regclass DEFAULT NULL,
    args jsonb DEFAULT '{}',
    label text DEFAULT NULL
)
RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'io_probe_record_wrapper';
COMMENT ON FUNCTION io_probe_record(text, regclass, jsonb, text) IS '[Keep] Runs a probe as io_probe_measure does, and stores the result with an optional label. Returns the number of the run. Needs EXECUTE on the probe''s _full function, and the rights that the probe needs';
REVOKE ALL ON FUNCTION io_probe_record(text, regclass, jsonb, text) FROM PUBLIC;

CREATE FUNCTION io_probe_prune(keep text, force boolean DEFAULT false)
RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'io_probe_prune_wrapper';
COMMENT ON FUNCTION io_probe_prune(text, boolean) IS '[Keep] Deletes the stored runs that are older than argument keep, such as ''90 days'', and returns how many it deleted. A keep under a day needs force => true. Needs EXECUTE';
REVOKE ALL ON FUNCTION io_probe_prune(text, boolean) FROM PUBLIC;

-- Runs that are kept, and the rows of their probes.

-- 128 bits of the server's own hash tell series and configurations apart. md5() fails where OpenSSL obeys FIPS 140, and sha256()
-- takes bytes, which no immutable function makes of a text.
DO $runs$
DECLARE
    -- The arguments without those that change nothing.
    plain pg_catalog.text := $$args OPERATOR(pg_catalog.-) 'seed'::pg_catalog.text
        OPERATOR(pg_catalog.#-) '{options,wait}'::pg_catalog.text[] OPERATOR(pg_catalog.#-) '{options,seed}'::pg_catalog.text[]$$;
    series pg_catalog.text := pg_catalog.format($$system_identifier
        OPERATOR(pg_catalog.||) E'\n' OPERATOR(pg_catalog.||) CASE WHEN in_recovery THEN COALESCE(host, '') ELSE '' END
        OPERATOR(pg_catalog.||) E'\n' OPERATOR(pg_catalog.||) COALESCE(datname, '')
        OPERATOR(pg_catalog.||) E'\n' OPERATOR(pg_catalog.||) probe OPERATOR(pg_catalog.||) E'\n' OPERATOR(pg_catalog.||) object
        OPERATOR(pg_catalog.||) E'\n' OPERATOR(pg_catalog.||) (
            CASE WHEN (%1$s) OPERATOR(pg_catalog.->) 'options' OPERATOR(pg_catalog.=) '{}'::pg_catalog.jsonb
                 THEN (%1$s) OPERATOR(pg_catalog.-) 'options'::pg_catalog.text ELSE %1$s END)::pg_catalog.text$$, plain);
    configuration pg_catalog.text := $$COALESCE(kernel, '') OPERATOR(pg_catalog.||) E'\n'
        OPERATOR(pg_catalog.||) COALESCE(server_version, '') OPERATOR(pg_catalog.||) E'\n'
        OPERATOR(pg_catalog.||) COALESCE(spcname, '') OPERATOR(pg_catalog.||) E'\n'
        OPERATOR(pg_catalog.||) leaves::pg_catalog.text OPERATOR(pg_catalog.||) settings::pg_catalog.text$$;
    hashed pg_catalog.text := $$pg_catalog.to_hex(pg_catalog.hashtextextended(%1$s, 0)) OPERATOR(pg_catalog.||) '-'
        OPERATOR(pg_catalog.||) pg_catalog.to_hex(pg_catalog.hashtextextended(%1$s, 1))$$;
BEGIN
    EXECUTE pg_catalog.format($$CREATE TABLE io_probe_runs (
        id                bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
        started_at        timestamp with time zone NOT NULL CHECK (pg_catalog.isfinite(started_at)),
        elapsed_ms        double precision,
        label             text,
        probe             text NOT NULL,
        object            text NOT NULL,
        status            text NOT NULL CHECK (status OPERATOR(pg_catalog.=) ANY ('{ok,failed,skipped}'::pg_catalog.text[])),
        sqlstate          text,
        message           text,
        args              jsonb NOT NULL DEFAULT '{}',
        rolname           text,
        datname           text,
        relid             oid,
        relkind           "char",
        schemaname        text,
        relname           text,
        rel_bytes         bigint,
        spcname           text,
        device            text,
        model             text,
        leaves            jsonb NOT NULL DEFAULT '[]',
        kernel            text,
        server_version    text,
        in_recovery       boolean,
        cluster_name      text,
        host              text,
        system_identifier text NOT NULL,
        settings          jsonb NOT NULL DEFAULT '{}',
        own_bytes         bigint,
        other_bytes       bigint,
        steal_pct         double precision,
        version           text,
        recorded_at       timestamp with time zone NOT NULL DEFAULT pg_catalog.now(),
        series            text NOT NULL GENERATED ALWAYS AS (%s) STORED,
        configuration     text NOT NULL GENERATED ALWAYS AS (%s) STORED
    )$$, pg_catalog.format(hashed, series), pg_catalog.format(hashed, configuration));
END
$runs$;

CREATE INDEX io_probe_runs_started_at ON io_probe_runs (started_at);
-- The latest runs of each series, of each of its configurations, and of each label.
CREATE INDEX io_probe_runs_series ON io_probe_runs (series, started_at, id)
    WHERE status OPERATOR(pg_catalog.=) 'ok';
CREATE INDEX io_probe_runs_configuration ON io_probe_runs (series, configuration, started_at, id)
    WHERE status OPERATOR(pg_catalog.=) 'ok';
CREATE INDEX io_probe_runs_label ON io_probe_runs (label, series, started_at, id)
    WHERE status OPERATOR(pg_catalog.=) 'ok' AND label IS NOT NULL;

-- No foreign key to the runs: the server would look them up by the name of their schema, with their owner's rights.
CREATE TABLE io_probe_results (
    run_id  bigint NOT NULL,
    ordinal integer NOT NULL,
    result  jsonb NOT NULL,
    PRIMARY KEY (run_id, ordinal)
);

SELECT pg_catalog.pg_extension_config_dump('io_probe_runs', '');
SELECT pg_catalog.pg_extension_config_dump('io_probe_runs_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('io_probe_results', '');
GRANT SELECT ON io_probe_runs, io_probe_results TO pg_monitor;

COMMENT ON TABLE io_probe_runs IS 'Stored runs of probes, one per row: when, what, by whom, where, and under which circumstances. Only io_probe_record and io_probe_import add rows. pg_monitor may read it';
COMMENT ON COLUMN io_probe_runs.id IS 'Number of the run';
COMMENT ON COLUMN io_probe_runs.started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_runs.elapsed_ms IS 'Wall-clock time of the run in ms';
COMMENT ON COLUMN io_probe_runs.label IS 'Label that the caller gave the run, for io_probe_compare; NULL without one';
COMMENT ON COLUMN io_probe_runs.probe IS 'Name of the probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_runs.object IS 'What was measured: schema.table; for sync wal or tablespace NAME; for other probes server';
COMMENT ON COLUMN io_probe_runs.status IS 'ok; failed: the probe ended with an error; skipped: another probe was running, or the device was busier than pg_io_probe.max_busy_pct';
COMMENT ON COLUMN io_probe_runs.sqlstate IS 'SQLSTATE if the run failed or was skipped; NULL if not';
COMMENT ON COLUMN io_probe_runs.message IS 'First 10,000 characters of the message if the run failed or was skipped; NULL if not';
COMMENT ON COLUMN io_probe_runs.args IS 'Arguments of the call, without the relation and without those equal to their default. Values are in the form that their type prints, amounts in options as numbers, so that equal arguments have one series';
COMMENT ON COLUMN io_probe_runs.rolname IS 'Role that ran the probe';
COMMENT ON COLUMN io_probe_runs.datname IS 'Database in which the probe ran';
COMMENT ON COLUMN io_probe_runs.relid IS 'Oid of the relation in that database; NULL without a relation. It is an oid, not a regclass, since the relation may be gone, or in another cluster';
COMMENT ON COLUMN io_probe_runs.relkind IS 'Kind of the relation, as in pg_class';
COMMENT ON COLUMN io_probe_runs.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_runs.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_runs.rel_bytes IS 'Size of the relation''s main fork in bytes';
COMMENT ON COLUMN io_probe_runs.spcname IS 'Tablespace of what was measured';
COMMENT ON COLUMN io_probe_runs.device IS 'Devices of what was measured, as in io_probe_device; NULL if unknown';
COMMENT ON COLUMN io_probe_runs.model IS 'Models of the devices in device';
COMMENT ON COLUMN io_probe_runs.leaves IS 'Settings of each device in device: an array of {device, model, scheduler, read_ahead_kb, nr_requests, max_sectors_kb, rotational, write_cache}';
COMMENT ON COLUMN io_probe_runs.kernel IS 'Name and release of the kernel';
COMMENT ON COLUMN io_probe_runs.server_version IS 'Version of the server';
COMMENT ON COLUMN io_probe_runs.in_recovery IS 'Was the server a standby?';
COMMENT ON COLUMN io_probe_runs.cluster_name IS 'cluster_name of the server; NULL if it has none';
COMMENT ON COLUMN io_probe_runs.host IS 'Name of the machine';
COMMENT ON COLUMN io_probe_runs.system_identifier IS 'System identifier of the cluster; a standby has the same as its primary';
COMMENT ON COLUMN io_probe_runs.settings IS 'Settings of the server and of pg_io_probe that affect I/O, as SHOW prints them; null for a setting that this version does not have';
COMMENT ON COLUMN io_probe_runs.own_bytes IS 'Bytes that the run itself read from its devices and wrote; NULL if unknown';
COMMENT ON COLUMN io_probe_runs.other_bytes IS 'Bytes that the devices moved during the run in addition to own_bytes. If the run wrote, only bytes read count. NULL if unknown';
COMMENT ON COLUMN io_probe_runs.steal_pct IS 'Percent of the machine''s CPU time that the hypervisor gave to others during the run; NULL if unknown';
COMMENT ON COLUMN io_probe_runs.version IS 'Version of pg_io_probe that measured the run';
COMMENT ON COLUMN io_probe_runs.recorded_at IS 'When the run was stored here';
COMMENT ON COLUMN io_probe_runs.series IS 'Runs with the same series measure the same thing: probe, object, arguments without the seed and the option wait, database and cluster (on a standby also the machine)';
COMMENT ON COLUMN io_probe_runs.configuration IS 'Runs with the same configuration ran under the same kernel, server version, tablespace, device settings and server settings';
COMMENT ON SEQUENCE io_probe_runs_id_seq IS 'Numbers of the runs';
COMMENT ON TABLE io_probe_results IS 'Rows of the stored runs, as the probes returned them. The views io_probe_*_history show them with their types. pg_monitor may read it';
COMMENT ON COLUMN io_probe_results.run_id IS 'Number of the run in io_probe_runs';
COMMENT ON COLUMN io_probe_results.ordinal IS 'Number of the row in the run, from 1';
COMMENT ON COLUMN io_probe_results.result IS 'The row as JSON; its keys are the columns of the probe';

-- Comparing stored runs: their figures, the latest ones, and what has changed.

CREATE TYPE io_probe_compare_full_row AS (
    probe     text,
    item      text,
    metric    text,
    unit      text,
    a         double precision,
    b         double precision,
    ratio     double precision,
    verdict   text,
    remark    text,
    noise_pct double precision,
    runs      integer,
    a_setting text,
    b_setting text,
    object    text,
    notes     text[]
);
COMMENT ON TYPE io_probe_compare_full_row IS 'Row of io_probe_compare_full: one figure of both sides, or one setting that differs';
COMMENT ON COLUMN io_probe_compare_full_row.probe IS 'Name of the probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_compare_full_row.item IS 'Row of the probe, such as direct or depth 8, or the setting or argument that differs';
COMMENT ON COLUMN io_probe_compare_full_row.metric IS 'The figure: a column of the probe; NULL for a setting';
COMMENT ON COLUMN io_probe_compare_full_row.unit IS 'Unit of a and b; NULL for a setting';
COMMENT ON COLUMN io_probe_compare_full_row.a IS 'The figure in run_a, or its geometric mean over the runs of label_a';
COMMENT ON COLUMN io_probe_compare_full_row.b IS 'The figure in run_b, or its geometric mean over the runs of label_b';
COMMENT ON COLUMN io_probe_compare_full_row.ratio IS 'b divided by a, to four digits';
COMMENT ON COLUMN io_probe_compare_full_row.verdict IS 'Verdict on b: better or worse (by more than the noise), same (within 30 % with 95 % confidence), can''t tell, or other cause (better or worse, but no setting that differs can affect the figure). NULL for a setting';
COMMENT ON COLUMN io_probe_compare_full_row.remark IS 'If the verdict is can''t tell: how many more runs of each side may be enough, if they are like these (too noisy: over 1,000), which figure is missing, or others busy (they used the device or the processors: repeat the runs). For a setting or an argument: its values on both sides';
COMMENT ON COLUMN io_probe_compare_full_row.noise_pct IS 'By what percentage the greater figure must exceed the smaller one to count as different: the error within the runs or the noise from run to run, whichever is larger. NULL if the noise is not known';
COMMENT ON COLUMN io_probe_compare_full_row.runs IS 'Number of runs from which the noise is computed: earlier runs of the same series, and runs of the labels, without disturbed runs. With fewer than 10, the verdict is can''t tell';
COMMENT ON COLUMN io_probe_compare_full_row.a_setting IS 'Value of the setting on side a; NULL for a figure';
COMMENT ON COLUMN io_probe_compare_full_row.b_setting IS 'Value of the setting on side b';
COMMENT ON COLUMN io_probe_compare_full_row.object IS 'What was measured';
COMMENT ON COLUMN io_probe_compare_full_row.notes IS 'What limits the verdict';

CREATE TYPE io_probe_compare_row AS (
    probe   text,
    item    text,
    metric  text,
    a       double precision,
    b       double precision,
    ratio   double precision,
    verdict text,
    remark  text
);
COMMENT ON TYPE io_probe_compare_row IS 'Row of io_probe_compare: one figure of both sides, or one setting that differs';
COMMENT ON COLUMN io_probe_compare_row.probe IS 'Name of the probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_compare_row.item IS 'Row of the probe, such as direct or depth 8, or the setting or argument that differs';
COMMENT ON COLUMN io_probe_compare_row.metric IS 'The figure: a column of the probe; NULL for a setting';
COMMENT ON COLUMN io_probe_compare_row.a IS 'The figure in run_a, or its geometric mean over the runs of label_a';
COMMENT ON COLUMN io_probe_compare_row.b IS 'The figure in run_b, or its geometric mean over the runs of label_b';
COMMENT ON COLUMN io_probe_compare_row.ratio IS 'b divided by a, to four digits';
COMMENT ON COLUMN io_probe_compare_row.verdict IS 'Verdict on b: better or worse (by more than the noise), same (within 30 % with 95 % confidence), can''t tell, or other cause (better or worse, but no setting that differs can affect the figure). NULL for a setting';
COMMENT ON COLUMN io_probe_compare_row.remark IS 'If the verdict is can''t tell: how many more runs of each side may be enough, if they are like these (too noisy: over 1,000), which figure is missing, or others busy (they used the device or the processors: repeat the runs). For a setting or an argument: its values on both sides';

CREATE TYPE io_probe_changes_full_row AS (
    probe     text,
    object    text,
    item      text,
    metric    text,
    unit      text,
    before    double precision,
    now       double precision,
    ratio     double precision,
    verdict   text,
    remark    text,
    noise_pct double precision,
    runs      integer,
    since     timestamp with time zone,
    run_id    bigint,
    notes     text[]
);
COMMENT ON TYPE io_probe_changes_full_row IS 'Row of io_probe_changes_full: one figure of one series';
COMMENT ON COLUMN io_probe_changes_full_row.probe IS 'Name of the probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_changes_full_row.object IS 'What was measured';
COMMENT ON COLUMN io_probe_changes_full_row.item IS 'Row of the probe, such as direct or depth 8';
COMMENT ON COLUMN io_probe_changes_full_row.metric IS 'The figure: a column of the probe';
COMMENT ON COLUMN io_probe_changes_full_row.unit IS 'Unit of the figure';
COMMENT ON COLUMN io_probe_changes_full_row.before IS 'Geometric mean of the figure in up to 30 runs before the last runs';
COMMENT ON COLUMN io_probe_changes_full_row.now IS 'Geometric mean of the figure in the last runs';
COMMENT ON COLUMN io_probe_changes_full_row.ratio IS 'now divided by before, to four digits';
COMMENT ON COLUMN io_probe_changes_full_row.verdict IS 'How now compares with before: better or worse (by more than the noise), same (within 30 % with 95 % confidence) or can''t tell';
COMMENT ON COLUMN io_probe_changes_full_row.remark IS 'Arguments in which other series of the same probe and object differ. If the verdict is can''t tell: how many more runs may be enough, if they are like these (too noisy: over 1,000; add them to argument last), which figure is missing, or others busy (they used the device or the processors: repeat the run)';
COMMENT ON COLUMN io_probe_changes_full_row.noise_pct IS 'By what percentage the greater figure must exceed the smaller one to count. It grows with the number of figures that the call compares. NULL if the noise is not known';
COMMENT ON COLUMN io_probe_changes_full_row.runs IS 'Number of earlier runs that count. Disturbed runs don''t count, if enough other runs are left. With fewer than 10, the verdict is can''t tell';
COMMENT ON COLUMN io_probe_changes_full_row.since IS 'When the first of the last runs started';
COMMENT ON COLUMN io_probe_changes_full_row.run_id IS 'Number of the last run in io_probe_runs';
COMMENT ON COLUMN io_probe_changes_full_row.notes IS 'What limits the verdict';

CREATE TYPE io_probe_changes_row AS (
    probe   text,
    object  text,
    item    text,
    metric  text,
    before  double precision,
    now     double precision,
    verdict text,
    remark  text
);
COMMENT ON TYPE io_probe_changes_row IS 'Row of io_probe_changes: one figure of one series';
COMMENT ON COLUMN io_probe_changes_row.probe IS 'Name of the probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_changes_row.object IS 'What was measured';
COMMENT ON COLUMN io_probe_changes_row.item IS 'Row of the probe, such as direct or depth 8';
COMMENT ON COLUMN io_probe_changes_row.metric IS 'The figure: a column of the probe';
COMMENT ON COLUMN io_probe_changes_row.before IS 'Geometric mean of the figure in up to 30 runs before the last runs';
COMMENT ON COLUMN io_probe_changes_row.now IS 'Geometric mean of the figure in the last runs';
COMMENT ON COLUMN io_probe_changes_row.verdict IS 'How now compares with before: better or worse (by more than the noise), same (within 30 % with 95 % confidence) or can''t tell';
COMMENT ON COLUMN io_probe_changes_row.remark IS 'Arguments in which other series of the same probe and object differ. If the verdict is can''t tell: how many more runs may be enough, if they are like these (too noisy: over 1,000; add them to argument last), which figure is missing, or others busy (they used the device or the processors: repeat the run)';

CREATE FUNCTION io_probe_compare(run_a bigint, run_b bigint)
RETURNS SETOF io_probe_compare_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_compare_wrapper';
COMMENT ON FUNCTION io_probe_compare(bigint, bigint) IS '[Keep] Tells whether run_b is better or worse than run_a, by more than runs of the same configuration differ anyway. There is one row for each figure, then one for each setting and argument that differs. Reads stored runs only. pg_monitor may call it';
REVOKE ALL ON FUNCTION io_probe_compare(bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_compare(bigint, bigint) TO pg_monitor;

CREATE FUNCTION io_probe_compare_full(run_a bigint, run_b bigint)
RETURNS SETOF io_probe_compare_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_compare_wrapper';
COMMENT ON FUNCTION io_probe_compare_full(bigint, bigint) IS '[Keep] io_probe_compare with all columns';
REVOKE ALL ON FUNCTION io_probe_compare_full(bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_compare_full(bigint, bigint) TO pg_monitor;

CREATE FUNCTION io_probe_compare(label_a text, label_b text)
RETURNS SETOF io_probe_compare_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_compare_labels_wrapper';
COMMENT ON FUNCTION io_probe_compare(text, text) IS '[Keep] Compares the runs of two labels as io_probe_compare(run_a, run_b) compares two runs. Columns a and b are geometric means over the latest 50 runs of each label in a series (see io_probe_runs.series). Runs of the same series are compared, or else those of the same probe, object and arguments. Further rows show the arguments that differ. If the labels take turns, runs that are close in time count as pairs. pg_monitor may call it';
REVOKE ALL ON FUNCTION io_probe_compare(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_compare(text, text) TO pg_monitor;

CREATE FUNCTION io_probe_compare_full(label_a text, label_b text)
RETURNS SETOF io_probe_compare_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_compare_labels_wrapper';
COMMENT ON FUNCTION io_probe_compare_full(text, text) IS '[Keep] io_probe_compare with all columns';
REVOKE ALL ON FUNCTION io_probe_compare_full(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_compare_full(text, text) TO pg_monitor;

CREATE FUNCTION io_probe_changes(last integer DEFAULT 1, all_items boolean DEFAULT false)
RETURNS SETOF io_probe_changes_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_changes_wrapper';
COMMENT ON FUNCTION io_probe_changes(integer, boolean) IS '[Keep] Shows what changed by more than its noise. It compares the last runs of each series (argument last says how many) with up to 30 runs before them. It shows only what is in use (the current sync method, the kernel''s readahead window, all paths except os); all_items => true shows all items. If nothing has changed, about one call in twenty still reports a change, by chance (Holm''s correction). Reads stored runs only. pg_monitor may call it';
REVOKE ALL ON FUNCTION io_probe_changes(integer, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_changes(integer, boolean) TO pg_monitor;

CREATE FUNCTION io_probe_changes_full(last integer DEFAULT 1, all_items boolean DEFAULT false)
RETURNS SETOF io_probe_changes_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_changes_wrapper';
COMMENT ON FUNCTION io_probe_changes_full(integer, boolean) IS '[Keep] io_probe_changes with all columns';
REVOKE ALL ON FUNCTION io_probe_changes_full(integer, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_changes_full(integer, boolean) TO pg_monitor;

-- Comparing stored runs: their figures, the latest ones, and what has changed.

-- Which figures of a probe's rows are compared: the column, its unit, whether more is better, and the ends of an interval. Only
-- the width of the interval over its middle counts, so that a rate may have the interval of a time. Each OFFSET 0 makes the server
-- compute something once for each row, not wherever it is used. An imported run may have any number of rows: each item counts
-- once, and only up to a limit.
CREATE VIEW io_probe_metrics AS
SELECT run.id AS run_id, run.started_at, run.label, run.probe, run.object, figure.item, figure.metric, figure.unit, figure.value,
       CASE WHEN figure.low OPERATOR(pg_catalog.>=) 0::pg_catalog.float8 AND figure.high OPERATOR(pg_catalog.>) 0::pg_catalog.float8
                 AND figure.high OPERATOR(pg_catalog.>=) figure.low AND figure.high OPERATOR(pg_catalog.<) '1e300'::pg_catalog.float8
            THEN (figure.high OPERATOR(pg_catalog.-) figure.low) OPERATOR(pg_catalog./) (figure.high OPERATOR(pg_catalog.+) figure.low)
            WHEN figure.low IS NOT NULL AND figure.high IS NULL THEN 1
       END AS error,
       figure.more_is_better, run.series, run.configuration, figure.ordinal
FROM io_probe_runs AS run, LATERAL (SELECT DISTINCT ON (figure.item, figure.metric) * FROM (
    SELECT line.item, figure.metric, figure.unit, figure.value, figure.low, figure.high, figure.more_is_better, line.ordinal
    FROM (VALUES
        ('seqscan',   'mib_s',    'MiB/s', true,  'ci_low',   'ci_high',   NULL,         NULL),
        ('random',    'iops',         '1/s',   true,  'ci_low', 'ci_high', 'p50_us', 'p99_us'),
        ('depth',     'iops',         '1/s',   true,  'ci_low', 'ci_high', NULL,         NULL),
        ('readahead', 'mib_s',    'MiB/s', true,  'ci_low',   'ci_high',   NULL,         NULL),
        ('sync',      'ops_s',    '1/s',   true,  'ci_low',   'ci_high',   'p99_us', NULL),
        ('page_cost', 'block_us', 'us',    false, 'ci_low',   'ci_high',   NULL,         NULL),
        ('write',     'writes_s', '1/s',   true,  'ci_low',   'ci_high',   'p99_us', NULL),
        ('mix',       'reads_s',  '1/s',   true,  NULL,       NULL,        NULL,         NULL),
        ('mix',       'writes_s', '1/s',   true,  NULL,       NULL,        NULL,         NULL),
        ('sustain',   'iops',     '1/s',   true,  NULL,       NULL,        'p99_us', NULL)
    ) AS known (probe, metric, unit, more_is_better, low, high, latency, other_latency), LATERAL (
        SELECT line.ordinal, line.result,
               CASE known.probe
                   WHEN 'depth' THEN pg_catalog.concat('depth ', line.result OPERATOR(pg_catalog.->>) 'depth')
                   -- The kernel's window is a setting: each run says what it was.
                   WHEN 'readahead' THEN CASE line.result OPERATOR(pg_catalog.->>) 'mode' WHEN 'kernel' THEN 'kernel'
                       ELSE pg_catalog.concat(line.result OPERATOR(pg_catalog.->>) 'mode', ' ', line.result OPERATOR(pg_catalog.->>) 'window_kb', ' kB') END
                   -- In wal_segment a method is direct if the server's is. In other sections direct has a row of its own.
                   WHEN 'sync' THEN pg_catalog.concat(NULLIF(line.result OPERATOR(pg_catalog.->>) 'section', 'wal_segment') OPERATOR(pg_catalog.||) ' ',
                       line.result OPERATOR(pg_catalog.->>) 'method',
                       CASE WHEN (line.result OPERATOR(pg_catalog.->>) 'direct')::pg_catalog.bool AND line.result OPERATOR(pg_catalog.->>) 'section' OPERATOR(pg_catalog.<>) 'wal_segment'
                            THEN ' direct' END,
                       ' ' OPERATOR(pg_catalog.||) NULLIF(line.result OPERATOR(pg_catalog.->>) 'writes', '1') OPERATOR(pg_catalog.||) ' x',
                       ' ', line.result OPERATOR(pg_catalog.->>) 'write_kb', ' kB')
                   WHEN 'page_cost' THEN pg_catalog.concat(line.result OPERATOR(pg_catalog.->>) 'tier', ' ', line.result OPERATOR(pg_catalog.->>) 'pattern',
                       ' density ' OPERATOR(pg_catalog.||) (line.result OPERATOR(pg_catalog.->>) 'density'),
                       ' depth ' OPERATOR(pg_catalog.||) (line.result OPERATOR(pg_catalog.->>) 'depth'))
                   WHEN 'write' THEN pg_catalog.concat(line.result OPERATOR(pg_catalog.->>) 'pattern',
                       ' depth ', line.result OPERATOR(pg_catalog.->>) 'depth',
                       ' flush ' OPERATOR(pg_catalog.||) (line.result OPERATOR(pg_catalog.->>) 'flush_kb') OPERATOR(pg_catalog.||) ' kB')
                   -- All other loads are shares of these two.
                   WHEN 'mix' THEN CASE WHEN line.result OPERATOR(pg_catalog.->>) 'load' OPERATOR(pg_catalog.~~) '%alone'
                       THEN line.result OPERATOR(pg_catalog.->>) 'load' END
                   WHEN 'sustain' THEN CASE WHEN line.result OPERATOR(pg_catalog.->>) 'slice' IS NULL
                       THEN line.result OPERATOR(pg_catalog.->>) 'pattern' END
                   ELSE (line.result OPERATOR(pg_catalog.->>) 'path') OPERATOR(pg_catalog.||)
                       CASE WHEN (line.result OPERATOR(pg_catalog.->>) 'device_pct')::pg_catalog.float8 OPERATOR(pg_catalog.<) 90::pg_catalog.float8
                            THEN ', cached' ELSE '' END
               END AS item
        FROM io_probe_results AS line WHERE line.run_id OPERATOR(pg_catalog.=) run.id
        OFFSET 0
    ) AS line, LATERAL (
        SELECT column1 AS metric, column2 AS unit, column3 AS more_is_better,
               (line.result OPERATOR(pg_catalog.->>) column1)::pg_catalog.float8 AS value,
               (line.result OPERATOR(pg_catalog.->>) column4)::pg_catalog.float8 AS low,
               (line.result OPERATOR(pg_catalog.->>) column5)::pg_catalog.float8 AS high
        FROM (VALUES (known.metric, known.unit, known.more_is_better, known.low, known.high),
                     (known.latency, 'us', false, NULL, NULL), (known.other_latency, 'us', false, NULL, NULL)) AS each
        OFFSET 0
    ) AS figure
    WHERE known.probe OPERATOR(pg_catalog.=) run.probe
          -- Under a limit this is the limit's rate.
          AND NOT (figure.metric OPERATOR(pg_catalog.=) ANY ('{iops,reads_s,writes_s}')
                   AND COALESCE(line.result OPERATOR(pg_catalog.->>) 'doubt', '') OPERATOR(pg_catalog.~~) '%paced%')
          AND figure.value OPERATOR(pg_catalog.>) '-Infinity'::pg_catalog.float8 AND figure.value OPERATOR(pg_catalog.<) 'Infinity'::pg_catalog.float8
    UNION ALL
    SELECT line.result OPERATOR(pg_catalog.->>) 'op', 'median_us', 'us',
           pg_catalog.percentile_cont(0.5) WITHIN GROUP (ORDER BY (line.result OPERATOR(pg_catalog.->>) 'lat_us')::pg_catalog.float8),
           NULL::pg_catalog.float8, NULL::pg_catalog.float8, false, pg_catalog.min(line.ordinal)
    FROM io_probe_results AS line
    WHERE line.run_id OPERATOR(pg_catalog.=) run.id AND run.probe OPERATOR(pg_catalog.=) 'ping'
          AND (line.result OPERATOR(pg_catalog.->>) 'lat_us')::pg_catalog.float8 OPERATOR(pg_catalog.>=) 0::pg_catalog.float8
          AND (line.result OPERATOR(pg_catalog.->>) 'lat_us')::pg_catalog.float8 OPERATOR(pg_catalog.<) 'Infinity'::pg_catalog.float8
          AND NOT COALESCE((line.result OPERATOR(pg_catalog.->>) 'warmup')::pg_catalog.bool, false)
    GROUP BY 1
    UNION ALL
    -- Of a report, what its table shows; of flushes and windows, only those in use.
    SELECT line.item, line.metric, line.unit, line.value, line.low, line.high, line.more_is_better, line.ordinal
    FROM (
        SELECT pg_catalog.concat(known.section, ' ', CASE known.section WHEN 'readahead' THEN 'kernel' ELSE line.result OPERATOR(pg_catalog.->>) 'item' END,
                   CASE WHEN line.result OPERATOR(pg_catalog.->>) 'mark' OPERATOR(pg_catalog.=) 'from memory' THEN ', cached' END) AS item,
               known.metric, known.unit, known.more_is_better, line.ordinal,
               (line.result OPERATOR(pg_catalog.->>) 'value')::pg_catalog.float8 AS value,
               (line.result OPERATOR(pg_catalog.->>) 'low')::pg_catalog.float8 AS low,
               (line.result OPERATOR(pg_catalog.->>) 'high')::pg_catalog.float8 AS high
        FROM (VALUES ('scan', 'mib_s', 'MiB/s', true), ('depth', 'iops', '1/s', true), ('p99', 'p99_us', 'us', false),
                     ('write', 'writes_s', '1/s', true), ('long_write', 'mib_s', 'MiB/s', true),
                     ('commit', 'op_us', 'us', false), ('commit_p99', 'p99_us', 'us', false), ('readahead', 'mib_s', 'MiB/s', true)
        ) AS known (section, metric, unit, more_is_better), io_probe_results AS line
        WHERE run.probe OPERATOR(pg_catalog.=) 'report' AND line.run_id OPERATOR(pg_catalog.=) run.id
              AND line.result OPERATOR(pg_catalog.->>) 'section' OPERATOR(pg_catalog.=) known.section
              AND (known.section OPERATOR(pg_catalog.=) ANY ('{scan,depth,write,long_write}')
                   OR known.section OPERATOR(pg_catalog.=) 'p99' AND line.result OPERATOR(pg_catalog.->>) 'item' OPERATOR(pg_catalog.=) '1'
                   OR line.result OPERATOR(pg_catalog.->>) 'mark' OPERATOR(pg_catalog.=) 'in use')
              AND (known.section OPERATOR(pg_catalog.=) 'p99' OR COALESCE(line.result OPERATOR(pg_catalog.->>) 'doubt', '') OPERATOR(pg_catalog.!~~) '%paced%')
        OFFSET 0
    ) AS line
    WHERE line.value OPERATOR(pg_catalog.>) '-Infinity'::pg_catalog.float8 AND line.value OPERATOR(pg_catalog.<) 'Infinity'::pg_catalog.float8
) AS figure WHERE figure.item IS NOT NULL ORDER BY figure.item, figure.metric, figure.ordinal LIMIT 3000) AS figure
WHERE run.status OPERATOR(pg_catalog.=) 'ok';
COMMENT ON VIEW io_probe_metrics IS 'Figures of stored runs, one per row, for io_probe_compare, io_probe_changes and io_probe_latest. It has no rates of requests under a rate limit, since they only show the limit';
COMMENT ON COLUMN io_probe_metrics.run_id IS 'Number of the run in io_probe_runs';
COMMENT ON COLUMN io_probe_metrics.started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_metrics.label IS 'Label that the caller gave the run; NULL without one';
COMMENT ON COLUMN io_probe_metrics.probe IS 'Name of the probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_metrics.object IS 'What was measured';
COMMENT ON COLUMN io_probe_metrics.item IS 'Row of the probe that the figure is from, such as direct or depth 8. sync: fdatasync 8 kB (section wal_segment), one_write fdatasync 8 kB. write: random depth 16. mix: reads alone, writes alone. sustain: random, sequential. report: scan direct, depth 8, p99 1, commit fdatasync, commit_p99 fdatasync, write 16, long_write 16, readahead kernel. If less than 90 % of the blocks came from the device, ", cached" follows';
COMMENT ON COLUMN io_probe_metrics.metric IS 'Name of the figure, which is a column of the probe; for ping median_us, the median without the warm-up';
COMMENT ON COLUMN io_probe_metrics.unit IS 'Unit of value';
COMMENT ON COLUMN io_probe_metrics.value IS 'Value of the figure';
COMMENT ON COLUMN io_probe_metrics.error IS 'Half the width of the 95 % confidence interval of value within the run, as a share of the middle of the interval: 0.05 is +- 5 %. 1 if the interval has no upper end; NULL without an interval';
COMMENT ON COLUMN io_probe_metrics.more_is_better IS 'true: a greater value is better, as for a rate; false: it is worse, as for a latency';
COMMENT ON COLUMN io_probe_metrics.series IS 'Runs with the same series measure the same thing, see io_probe_runs';
COMMENT ON COLUMN io_probe_metrics.configuration IS 'Runs with the same configuration ran under the same circumstances, see io_probe_runs';
COMMENT ON COLUMN io_probe_metrics.ordinal IS 'Number of the row in the run, from 1';
GRANT SELECT ON io_probe_metrics TO pg_monitor;

-- It steps from one series to the next by the index: one step for each series, however many runs there are.
CREATE VIEW io_probe_latest AS
WITH RECURSIVE each (series) AS (
    (SELECT series FROM io_probe_runs WHERE status OPERATOR(pg_catalog.=) 'ok' ORDER BY series LIMIT 1)
    UNION ALL
    SELECT (SELECT other.series FROM io_probe_runs AS other
            WHERE other.status OPERATOR(pg_catalog.=) 'ok' AND other.series OPERATOR(pg_catalog.>) each.series
            ORDER BY other.series LIMIT 1)
    FROM each WHERE each.series IS NOT NULL
)
SELECT metrics.probe, metrics.object, metrics.item, metrics.metric, metrics.value, metrics.unit,
       pg_catalog.now() OPERATOR(pg_catalog.-) metrics.started_at AS age, metrics.run_id, metrics.label, last.datname, last.host
FROM each, LATERAL (
    SELECT run.id, run.datname, run.host FROM io_probe_runs AS run
    WHERE run.status OPERATOR(pg_catalog.=) 'ok' AND run.series OPERATOR(pg_catalog.=) each.series
    ORDER BY run.started_at DESC, run.id DESC LIMIT 1
) AS last, LATERAL (
    SELECT * FROM io_probe_metrics AS found WHERE found.run_id OPERATOR(pg_catalog.=) last.id
) AS metrics;
COMMENT ON VIEW io_probe_latest IS 'The latest figures of each series. A series is one probe, object and set of arguments in one database and cluster';
COMMENT ON COLUMN io_probe_latest.probe IS 'Name of the probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_latest.object IS 'What was measured';
COMMENT ON COLUMN io_probe_latest.item IS 'Row of the probe that the figure is from, such as direct or depth 8';
COMMENT ON COLUMN io_probe_latest.metric IS 'Name of the figure, which is a column of the probe; for ping median_us, the median without the warm-up';
COMMENT ON COLUMN io_probe_latest.value IS 'Value of the figure';
COMMENT ON COLUMN io_probe_latest.unit IS 'Unit of value';
COMMENT ON COLUMN io_probe_latest.age IS 'How long ago the run started';
COMMENT ON COLUMN io_probe_latest.run_id IS 'Number of the run in io_probe_runs';
COMMENT ON COLUMN io_probe_latest.label IS 'Label that the caller gave the run; NULL without one';
COMMENT ON COLUMN io_probe_latest.datname IS 'Database in which the probe ran';
COMMENT ON COLUMN io_probe_latest.host IS 'Name of the machine on which the probe ran';
GRANT SELECT ON io_probe_latest TO pg_monitor;

-- The rows of the stored runs.

CREATE VIEW io_probe_seqscan_history AS
SELECT run.id AS run_id, run.started_at AS run_started_at, run.label,
       line.path,
       line.mib_s,
       line.block_us,
       line.blks,
       line.complete,
       line.cold,
       line.elapsed_ms,
       line.shared_blks_hit,
       line.shared_blks_read,
       line.shared_blks_written,
       line.local_blks_hit,
       line.local_blks_read,
       line.os_blks_cached,
       line.hole_blks,
       line.device_source,
       line.blks_total,
       line.chunk_kb,
       line.depth,
       line.engine,
       line.started_at,
       line.device,
       line.scheduler,
       line.read_ahead_kb,
       run.relid,
       line.schemaname,
       line.relname,
       line.spcname,
       line.doubt,
       line.status,
       line.notes,
       line.err_pct,
       line.ci_low,
       line.ci_high,
       line.shared_pct,
       line.os_pct,
       line.device_pct,
       line.device_bytes,
       line.device_ios,
       line.ios_per_block,
       line.rareq_kb,
       line.aqu_sz,
       line.r_await_ms,
       line.util_pct,
       line.other_bytes
FROM io_probe_runs AS run
JOIN io_probe_results AS result ON result.run_id OPERATOR(pg_catalog.=) run.id,
-- Rows of other probes need not fit the type, and may be read before they are left out.
LATERAL pg_catalog.jsonb_populate_record(NULL::io_probe_seqscan_full_row,
    CASE WHEN run.probe OPERATOR(pg_catalog.=) 'seqscan'
         THEN result.result OPERATOR(pg_catalog.-) 'relid'::pg_catalog.text END) AS line
WHERE run.probe OPERATOR(pg_catalog.=) 'seqscan';
COMMENT ON VIEW io_probe_seqscan_history IS 'Rows of io_probe_seqscan_full in the stored runs';
COMMENT ON COLUMN io_probe_seqscan_history.run_id IS 'Number of the run in io_probe_runs';
COMMENT ON COLUMN io_probe_seqscan_history.run_started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_seqscan_history.label IS 'Label that the caller gave the run';
COMMENT ON COLUMN io_probe_seqscan_history.path IS 'direct: by O_DIRECT, with several large requests in flight; server: as a sequential scan of the server; os: through the OS cache, one block per call';
COMMENT ON COLUMN io_probe_seqscan_history.mib_s IS 'MiB per second while the scan read blocks with data; NULL if a rate limit made it pause';
COMMENT ON COLUMN io_probe_seqscan_history.block_us IS 'us per block; NULL if mib_s is NULL. Of more than 20 slices of time (1 ms or more), the first does not count';
COMMENT ON COLUMN io_probe_seqscan_history.blks IS 'Number of blocks read, including holes (blocks never written)';
COMMENT ON COLUMN io_probe_seqscan_history.complete IS 'Was everything read? If not, column notes says why';
COMMENT ON COLUMN io_probe_seqscan_history.cold IS 'true: no block was in the OS cache before the scan, nor (where path is server) in shared buffers';
COMMENT ON COLUMN io_probe_seqscan_history.elapsed_ms IS 'Elapsed time in ms, with pauses of a rate limit, without the eviction';
COMMENT ON COLUMN io_probe_seqscan_history.shared_blks_hit IS 'Where path is server: blocks found in shared buffers; NULL for temporary tables';
COMMENT ON COLUMN io_probe_seqscan_history.shared_blks_read IS 'Where path is server: blocks read into shared buffers; NULL for temporary tables';
COMMENT ON COLUMN io_probe_seqscan_history.shared_blks_written IS 'Where path is server: dirty shared buffers written to make room for the blocks read';
COMMENT ON COLUMN io_probe_seqscan_history.local_blks_hit IS 'Blocks of a temporary table found in the session''s own buffers; only where path is server';
COMMENT ON COLUMN io_probe_seqscan_history.local_blks_read IS 'Blocks of a temporary table read into the session''s own buffers; only where path is server';
COMMENT ON COLUMN io_probe_seqscan_history.os_blks_cached IS 'Blocks read that had been in the OS cache before the scan. Holes do not count';
COMMENT ON COLUMN io_probe_seqscan_history.hole_blks IS 'Holes: blocks never written (where path is server: and not in shared buffers). They are read, but the rate does not count them';
COMMENT ON COLUMN io_probe_seqscan_history.device_source IS 'backend: device_bytes counts reads of this process; io_workers: also all reads of the I/O workers, for all sessions';
COMMENT ON COLUMN io_probe_seqscan_history.blks_total IS 'Blocks of the relation';
COMMENT ON COLUMN io_probe_seqscan_history.chunk_kb IS 'Size of the requests in kB; NULL if the server decides';
COMMENT ON COLUMN io_probe_seqscan_history.depth IS 'Requests in flight; NULL if the server decides';
COMMENT ON COLUMN io_probe_seqscan_history.engine IS 'pread: one read at a time; io_uring, threads: several at a time. Where path is server: ReadBuffer, PrefetchBuffer or a read stream';
COMMENT ON COLUMN io_probe_seqscan_history.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_seqscan_history.device IS 'Devices behind the relation';
COMMENT ON COLUMN io_probe_seqscan_history.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_seqscan_history.read_ahead_kb IS 'Readahead window in kB that newly opened files get';
COMMENT ON COLUMN io_probe_seqscan_history.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_seqscan_history.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_seqscan_history.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_seqscan_history.spcname IS 'Tablespace of the relation, or the tablespace that the call names';
COMMENT ON COLUMN io_probe_seqscan_history.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_seqscan_history.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_seqscan_history.notes IS 'Sentences about this row. A note about the whole call is in one row only';
COMMENT ON COLUMN io_probe_seqscan_history.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_seqscan_history.ci_low IS 'Lower end of the 95 % confidence interval. The interval covers only the variation within this run';
COMMENT ON COLUMN io_probe_seqscan_history.ci_high IS 'Upper end of the 95 % confidence interval';
COMMENT ON COLUMN io_probe_seqscan_history.shared_pct IS 'Percent of the blocks from shared buffers (temporary table: from the session''s local buffers)';
COMMENT ON COLUMN io_probe_seqscan_history.os_pct IS 'Percent of the blocks from the OS cache';
COMMENT ON COLUMN io_probe_seqscan_history.device_pct IS 'Percent of the blocks from the device. Caches of a drive, a RAID controller or a hypervisor count as the device';
COMMENT ON COLUMN io_probe_seqscan_history.device_bytes IS 'Bytes fetched from storage for this row, readahead included';
COMMENT ON COLUMN io_probe_seqscan_history.device_ios IS 'Reads that the devices completed during the measurement, for all processes';
COMMENT ON COLUMN io_probe_seqscan_history.ios_per_block IS 'device_ios per block from the device. Over 1: a block took several reads; under 1: a read had several blocks';
COMMENT ON COLUMN io_probe_seqscan_history.rareq_kb IS 'Mean size of the devices'' reads in kB (rareq-sz of iostat)';
COMMENT ON COLUMN io_probe_seqscan_history.aqu_sz IS 'Mean number of requests queued or in flight (aqu-sz of iostat). In io_probe_readahead, mode emulated, the time for aqu_sz and util_pct includes cache_us';
COMMENT ON COLUMN io_probe_seqscan_history.r_await_ms IS 'Mean ms of a device read, queueing included (r_await of iostat)';
COMMENT ON COLUMN io_probe_seqscan_history.util_pct IS 'Percent of the time with a request in flight (%util of iostat). With several devices: of the busiest device';
COMMENT ON COLUMN io_probe_seqscan_history.other_bytes IS 'Bytes that the devices moved in addition to device_bytes: reads for others, and all writes';
GRANT SELECT ON io_probe_seqscan_history TO pg_monitor;

CREATE VIEW io_probe_random_history AS
SELECT run.id AS run_id, run.started_at AS run_started_at, run.label,
       line.path,
       line.iops,
       line.p999_us,
       line.max_us,
       line.blks,
       line.complete,
       line.cold,
       line.elapsed_ms,
       line.mib_s,
       line.shared_us,
       line.os_us,
       line.device_us,
       line.shared_blks_hit,
       line.os_blks_hit,
       line.device_blks_read,
       line.shared_blks_written,
       line.device_source,
       line.over_read,
       line.warmup_us,
       line.hole_blks,
       line.blks_total,
       line.depth,
       line.engine,
       line.seed,
       line.started_at,
       line.device,
       line.scheduler,
       line.read_ahead_kb,
       run.relid,
       line.schemaname,
       line.relname,
       line.spcname,
       line.doubt,
       line.status,
       line.notes,
       line.err_pct,
       line.ci_low,
       line.ci_high,
       line.shared_pct,
       line.os_pct,
       line.device_pct,
       line.device_bytes,
       line.device_ios,
       line.ios_per_block,
       line.rareq_kb,
       line.aqu_sz,
       line.r_await_ms,
       line.util_pct,
       line.other_bytes,
       line.lat_us,
       line.p50_us,
       line.p95_us,
       line.p99_us,
       line.histogram
FROM io_probe_runs AS run
JOIN io_probe_results AS result ON result.run_id OPERATOR(pg_catalog.=) run.id,
-- Rows of other probes need not fit the type, and may be read before they are left out.
LATERAL pg_catalog.jsonb_populate_record(NULL::io_probe_random_full_row,
    CASE WHEN run.probe OPERATOR(pg_catalog.=) 'random'
         THEN result.result OPERATOR(pg_catalog.-) 'relid'::pg_catalog.text END) AS line
WHERE run.probe OPERATOR(pg_catalog.=) 'random';
COMMENT ON VIEW io_probe_random_history IS 'Rows of io_probe_random_full in the stored runs';
COMMENT ON COLUMN io_probe_random_history.run_id IS 'Number of the run in io_probe_runs';
COMMENT ON COLUMN io_probe_random_history.run_started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_random_history.label IS 'Label that the caller gave the run';
COMMENT ON COLUMN io_probe_random_history.path IS 'direct: reads by O_DIRECT; server: through a small ring of shared buffers; os: pread through the OS cache';
COMMENT ON COLUMN io_probe_random_history.iops IS 'Fetches per second, without warm-up, holes and filling the queue. Under a rate limit: the rate that the limit allowed';
COMMENT ON COLUMN io_probe_random_history.p999_us IS '99.9th percentile of the latency in us; NULL if fewer than ten fetches took longer';
COMMENT ON COLUMN io_probe_random_history.max_us IS 'Greatest latency in us';
COMMENT ON COLUMN io_probe_random_history.blks IS 'Number of blocks fetched, each once, including warm-up and holes (blocks never written)';
COMMENT ON COLUMN io_probe_random_history.complete IS 'Was every block fetched? If not, column notes says why';
COMMENT ON COLUMN io_probe_random_history.cold IS 'true: no fetch found its block in a cache. After cold => true, blocks that this path''s own readahead had cached do not count';
COMMENT ON COLUMN io_probe_random_history.elapsed_ms IS 'Elapsed time in ms, with pauses, without the eviction';
COMMENT ON COLUMN io_probe_random_history.mib_s IS 'iops times the block size, in MiB per second';
COMMENT ON COLUMN io_probe_random_history.shared_us IS 'Mean latency in us of fetches from shared buffers, at depth 1';
COMMENT ON COLUMN io_probe_random_history.os_us IS 'Mean latency in us of fetches from the OS cache, at depth 1';
COMMENT ON COLUMN io_probe_random_history.device_us IS 'Mean latency in us of fetches from the device';
COMMENT ON COLUMN io_probe_random_history.shared_blks_hit IS 'Fetches from shared buffers (temporary table: from the session''s local buffers)';
COMMENT ON COLUMN io_probe_random_history.os_blks_hit IS 'Fetches of blocks that were completely in the OS cache';
COMMENT ON COLUMN io_probe_random_history.device_blks_read IS 'Fetches that no cache served, without holes';
COMMENT ON COLUMN io_probe_random_history.shared_blks_written IS 'Where path is server: dirty shared buffers written to make room for the blocks read';
COMMENT ON COLUMN io_probe_random_history.device_source IS 'backend: device_bytes counts reads of this process; io_workers: also all reads of the I/O workers, for all sessions';
COMMENT ON COLUMN io_probe_random_history.over_read IS 'device_bytes divided by the bytes of device_blks_read. Over 1: the kernel read other blocks, too. Under 1: parts of blocks were cached';
COMMENT ON COLUMN io_probe_random_history.warmup_us IS 'Latency of the first fetch in us. No other time includes it';
COMMENT ON COLUMN io_probe_random_history.hole_blks IS 'Holes: blocks never written (where path is server: and not in shared buffers). blks counts them, but they are not read';
COMMENT ON COLUMN io_probe_random_history.blks_total IS 'Blocks of the relation';
COMMENT ON COLUMN io_probe_random_history.depth IS 'Requests in flight; where path is server: how many blocks the server may read ahead';
COMMENT ON COLUMN io_probe_random_history.engine IS 'pread: one read at a time; io_uring, threads: several at a time. Where path is server: ReadBuffer, PrefetchBuffer or a read stream';
COMMENT ON COLUMN io_probe_random_history.seed IS 'Seed of the random order; option or argument seed repeats it';
COMMENT ON COLUMN io_probe_random_history.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_random_history.device IS 'Devices behind the relation';
COMMENT ON COLUMN io_probe_random_history.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_random_history.read_ahead_kb IS 'Readahead window in kB that newly opened files get';
COMMENT ON COLUMN io_probe_random_history.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_random_history.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_random_history.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_random_history.spcname IS 'Tablespace of the relation, or the tablespace that the call names';
COMMENT ON COLUMN io_probe_random_history.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_random_history.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_random_history.notes IS 'Sentences about this row. A note about the whole call is in one row only';
COMMENT ON COLUMN io_probe_random_history.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_random_history.ci_low IS 'Lower end of the 95 % confidence interval. The interval covers only the variation within this run';
COMMENT ON COLUMN io_probe_random_history.ci_high IS 'Upper end of the 95 % confidence interval';
COMMENT ON COLUMN io_probe_random_history.shared_pct IS 'Percent of the blocks from shared buffers (temporary table: from the session''s local buffers)';
COMMENT ON COLUMN io_probe_random_history.os_pct IS 'Percent of the blocks from the OS cache';
COMMENT ON COLUMN io_probe_random_history.device_pct IS 'Percent of the blocks from the device. Caches of a drive, a RAID controller or a hypervisor count as the device';
COMMENT ON COLUMN io_probe_random_history.device_bytes IS 'Bytes fetched from storage for this row, readahead included';
COMMENT ON COLUMN io_probe_random_history.device_ios IS 'Reads that the devices completed during the measurement, for all processes';
COMMENT ON COLUMN io_probe_random_history.ios_per_block IS 'device_ios per block from the device. Over 1: a block took several reads; under 1: a read had several blocks';
COMMENT ON COLUMN io_probe_random_history.rareq_kb IS 'Mean size of the devices'' reads in kB (rareq-sz of iostat)';
COMMENT ON COLUMN io_probe_random_history.aqu_sz IS 'Mean number of requests queued or in flight (aqu-sz of iostat). In io_probe_readahead, mode emulated, the time for aqu_sz and util_pct includes cache_us';
COMMENT ON COLUMN io_probe_random_history.r_await_ms IS 'Mean ms of a device read, queueing included (r_await of iostat)';
COMMENT ON COLUMN io_probe_random_history.util_pct IS 'Percent of the time with a request in flight (%util of iostat). With several devices: of the busiest device';
COMMENT ON COLUMN io_probe_random_history.other_bytes IS 'Bytes that the devices moved in addition to device_bytes: reads for others, and all writes';
COMMENT ON COLUMN io_probe_random_history.lat_us IS 'Mean latency in us, from the request until the probe has the block. Excludes the warm-up and the fetches that first fill the queue. NULL if the server reads ahead';
COMMENT ON COLUMN io_probe_random_history.p50_us IS 'Median latency in us. Each percentile is NULL if fewer than ten fetches took longer';
COMMENT ON COLUMN io_probe_random_history.p95_us IS '95th percentile of the latency in us';
COMMENT ON COLUMN io_probe_random_history.p99_us IS '99th percentile of the latency in us';
COMMENT ON COLUMN io_probe_random_history.histogram IS 'Number of fetches in each latency range, without empty ranges: {low_us, high_us, count}. Each range is 1.19 times the one before';
GRANT SELECT ON io_probe_random_history TO pg_monitor;

CREATE VIEW io_probe_depth_history AS
SELECT run.id AS run_id, run.started_at AS run_started_at, run.label,
       line.depth,
       line.iops,
       line.mib_s,
       line.best,
       line.best_within,
       line.engine,
       line.blks,
       line.elapsed_ms,
       line.device_pct,
       line.hole_blks,
       line.seed,
       line.started_at,
       line.device,
       line.scheduler,
       line.read_ahead_kb,
       run.relid,
       line.schemaname,
       line.relname,
       line.spcname,
       line.doubt,
       line.status,
       line.notes,
       line.err_pct,
       line.ci_low,
       line.ci_high,
       line.lat_us,
       line.p50_us,
       line.p95_us,
       line.p99_us,
       line.histogram
FROM io_probe_runs AS run
JOIN io_probe_results AS result ON result.run_id OPERATOR(pg_catalog.=) run.id,
-- Rows of other probes need not fit the type, and may be read before they are left out.
LATERAL pg_catalog.jsonb_populate_record(NULL::io_probe_depth_full_row,
    CASE WHEN run.probe OPERATOR(pg_catalog.=) 'depth'
         THEN result.result OPERATOR(pg_catalog.-) 'relid'::pg_catalog.text END) AS line
WHERE run.probe OPERATOR(pg_catalog.=) 'depth';
COMMENT ON VIEW io_probe_depth_history IS 'Rows of io_probe_depth_full in the stored runs';
COMMENT ON COLUMN io_probe_depth_history.run_id IS 'Number of the run in io_probe_runs';
COMMENT ON COLUMN io_probe_depth_history.run_started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_depth_history.label IS 'Label that the caller gave the run';
COMMENT ON COLUMN io_probe_depth_history.depth IS 'Requests in flight';
COMMENT ON COLUMN io_probe_depth_history.iops IS 'Fetches per second';
COMMENT ON COLUMN io_probe_depth_history.mib_s IS 'iops times the block size, in MiB per second';
COMMENT ON COLUMN io_probe_depth_history.best IS 'Is it the smallest depth that is as good as the fastest? Not as good: measured over 10 % slower, or over 5 % slower with 95 % confidence. NULL under a rate limit, if this depth has no confidence interval, or if it alone of several has one';
COMMENT ON COLUMN io_probe_depth_history.best_within IS 'Among the depths whose p99_us does not exceed argument p99, has this one the most iops? NULL without that argument, and under a rate limit';
COMMENT ON COLUMN io_probe_depth_history.engine IS 'pread: one read at a time; io_uring, threads: several at a time';
COMMENT ON COLUMN io_probe_depth_history.blks IS 'Number of blocks fetched at this depth, including holes (blocks never written)';
COMMENT ON COLUMN io_probe_depth_history.elapsed_ms IS 'Elapsed time of this depth in ms';
COMMENT ON COLUMN io_probe_depth_history.device_pct IS 'Percent of the fetches at all depths together that came from the device';
COMMENT ON COLUMN io_probe_depth_history.hole_blks IS 'Holes: blocks never written (where path is server: and not in shared buffers). blks counts them, but they are not read';
COMMENT ON COLUMN io_probe_depth_history.seed IS 'Seed of the random order; option or argument seed repeats it';
COMMENT ON COLUMN io_probe_depth_history.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_depth_history.device IS 'Devices behind the relation';
COMMENT ON COLUMN io_probe_depth_history.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_depth_history.read_ahead_kb IS 'Readahead window in kB that newly opened files get';
COMMENT ON COLUMN io_probe_depth_history.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_depth_history.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_depth_history.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_depth_history.spcname IS 'Tablespace of the relation, or the tablespace that the call names';
COMMENT ON COLUMN io_probe_depth_history.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_depth_history.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_depth_history.notes IS 'Sentences about this row. A note about the whole call is in one row only';
COMMENT ON COLUMN io_probe_depth_history.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_depth_history.ci_low IS 'Lower end of the 95 % confidence interval. The interval covers only the variation within this run';
COMMENT ON COLUMN io_probe_depth_history.ci_high IS 'Upper end of the 95 % confidence interval';
COMMENT ON COLUMN io_probe_depth_history.lat_us IS 'Mean latency in us, from the request until the probe has the block. Excludes the warm-up and the fetches that first fill the queue. NULL if the server reads ahead';
COMMENT ON COLUMN io_probe_depth_history.p50_us IS 'Median latency in us. Each percentile is NULL if fewer than ten fetches took longer';
COMMENT ON COLUMN io_probe_depth_history.p95_us IS '95th percentile of the latency in us';
COMMENT ON COLUMN io_probe_depth_history.p99_us IS '99th percentile of the latency in us';
COMMENT ON COLUMN io_probe_depth_history.histogram IS 'Number of fetches in each latency range, without empty ranges: {low_us, high_us, count}. Each range is 1.19 times the one before';
GRANT SELECT ON io_probe_depth_history TO pg_monitor;

CREATE VIEW io_probe_ping_history AS
SELECT run.id AS run_id, run.started_at AS run_started_at, run.label,
       line.request,
       line.op,
       line.warmup,
       line.lat_us,
       line.served_by,
       line.path,
       line.blkno,
       line.seed,
       line.started_at,
       line.device,
       line.scheduler,
       line.read_ahead_kb,
       run.relid,
       line.schemaname,
       line.relname,
       line.spcname,
       line.doubt,
       line.status,
       line.notes
FROM io_probe_runs AS run
JOIN io_probe_results AS result ON result.run_id OPERATOR(pg_catalog.=) run.id,
-- Rows of other probes need not fit the type, and may be read before they are left out.
LATERAL pg_catalog.jsonb_populate_record(NULL::io_probe_ping_full_row,
    CASE WHEN run.probe OPERATOR(pg_catalog.=) 'ping'
         THEN result.result OPERATOR(pg_catalog.-) 'relid'::pg_catalog.text END) AS line
WHERE run.probe OPERATOR(pg_catalog.=) 'ping';
COMMENT ON VIEW io_probe_ping_history IS 'Rows of io_probe_ping_full in the stored runs';
COMMENT ON COLUMN io_probe_ping_history.run_id IS 'Number of the run in io_probe_runs';
COMMENT ON COLUMN io_probe_ping_history.run_started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_ping_history.label IS 'Label that the caller gave the run';
COMMENT ON COLUMN io_probe_ping_history.request IS 'Number of the request, from 1';
COMMENT ON COLUMN io_probe_ping_history.op IS 'read: a block of the relation; write: a block of a scratch file';
COMMENT ON COLUMN io_probe_ping_history.warmup IS 'Is it the first read or the first write? Don''t count it in a mean';
COMMENT ON COLUMN io_probe_ping_history.lat_us IS 'Time of the system call in us; a write is not synced. NULL if the row is void';
COMMENT ON COLUMN io_probe_ping_history.served_by IS 'os: the block was in the OS cache before the read; device: it was not, or path is direct. NULL for a write';
COMMENT ON COLUMN io_probe_ping_history.path IS 'direct: by O_DIRECT; os: through the OS cache';
COMMENT ON COLUMN io_probe_ping_history.blkno IS 'Block of the relation that was read';
COMMENT ON COLUMN io_probe_ping_history.seed IS 'Seed of the random order; option or argument seed repeats it';
COMMENT ON COLUMN io_probe_ping_history.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_ping_history.device IS 'Devices behind the relation';
COMMENT ON COLUMN io_probe_ping_history.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_ping_history.read_ahead_kb IS 'Readahead window in kB that newly opened files get';
COMMENT ON COLUMN io_probe_ping_history.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_ping_history.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_ping_history.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_ping_history.spcname IS 'Tablespace of the relation, or the tablespace that the call names';
COMMENT ON COLUMN io_probe_ping_history.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_ping_history.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_ping_history.notes IS 'Sentences about this row. A note about the whole call is in one row only';
GRANT SELECT ON io_probe_ping_history TO pg_monitor;

CREATE VIEW io_probe_sync_history AS
SELECT run.id AS run_id, run.started_at AS run_started_at, run.label,
       line.section,
       line.method,
       line.writes,
       line.write_kb,
       line.ops_s,
       line.op_us,
       line.p50_us,
       line.p95_us,
       line.p99_us,
       line.histogram,
       line.max_us,
       line.in_use,
       line.direct,
       line.ops,
       line.depth,
       line.flushes,
       line.device_writes_per_op,
       line.device_flushes_per_op,
       line.elapsed_ms,
       line.device,
       line.scheduler,
       line.write_cache,
       line.fua,
       line.fs_type,
       line.directory,
       line.started_at,
       line.doubt,
       line.status,
       line.notes,
       line.err_pct,
       line.ci_low,
       line.ci_high
FROM io_probe_runs AS run
JOIN io_probe_results AS result ON result.run_id OPERATOR(pg_catalog.=) run.id,
-- Rows of other probes need not fit the type, and may be read before they are left out.
LATERAL pg_catalog.jsonb_populate_record(NULL::io_probe_sync_full_row,
    CASE WHEN run.probe OPERATOR(pg_catalog.=) 'sync'
         THEN result.result OPERATOR(pg_catalog.-) 'relid'::pg_catalog.text END) AS line
WHERE run.probe OPERATOR(pg_catalog.=) 'sync';
COMMENT ON VIEW io_probe_sync_history IS 'Rows of io_probe_sync_full in the stored runs';
COMMENT ON COLUMN io_probe_sync_history.run_id IS 'Number of the run in io_probe_runs';
COMMENT ON COLUMN io_probe_sync_history.run_started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_sync_history.label IS 'Label that the caller gave the run';
COMMENT ON COLUMN io_probe_sync_history.section IS 'What is written. wal_segment: forward through a zero-filled segment, as the server writes WAL. All others are sections of pg_test_fsync, which overwrite the same blocks. one_write, two_writes: one or two writes, then a sync. open_sync_size: 16 kB in 1 to 16 synchronous writes. other_fd: a sync through the descriptor of the write, or another one. no_sync: a write without a sync';
COMMENT ON COLUMN io_probe_sync_history.method IS 'Value of wal_sync_method (open_datasync: O_DSYNC; open_sync: O_SYNC), or the system calls';
COMMENT ON COLUMN io_probe_sync_history.writes IS 'Write calls per operation';
COMMENT ON COLUMN io_probe_sync_history.write_kb IS 'Size of each write in kB. At a depth over 1: kB of WAL per commit; with option commit_bytes, size of a WAL block';
COMMENT ON COLUMN io_probe_sync_history.ops_s IS 'Operations per second. An operation is the writes and their sync. At a depth over 1: commits per second. NULL under a rate limit';
COMMENT ON COLUMN io_probe_sync_history.op_us IS 'Mean us of an operation. At a depth over 1: elapsed time divided by the number of commits';
COMMENT ON COLUMN io_probe_sync_history.p50_us IS 'Median time of an operation in us; at a depth over 1, median wait of a committer. NULL with fewer than 20 operations';
COMMENT ON COLUMN io_probe_sync_history.p95_us IS '95th percentile in us; NULL with fewer than 200 operations';
COMMENT ON COLUMN io_probe_sync_history.p99_us IS '99th percentile in us; NULL with fewer than 1,000 operations';
COMMENT ON COLUMN io_probe_sync_history.histogram IS 'Number of operations in each latency range, in the form of histogram of io_probe_depth';
COMMENT ON COLUMN io_probe_sync_history.max_us IS 'Longest operation in us';
COMMENT ON COLUMN io_probe_sync_history.in_use IS 'Does this server sync its WAL with this method and this value of direct? NULL in sections open_sync_size, other_fd and no_sync';
COMMENT ON COLUMN io_probe_sync_history.direct IS 'Was the file opened with O_DIRECT?';
COMMENT ON COLUMN io_probe_sync_history.ops IS 'Number of operations, without the first of each turn (warm-up)';
COMMENT ON COLUMN io_probe_sync_history.depth IS 'Number of committers that share one WAL. A committer does not flush if the flush of another one has covered its WAL';
COMMENT ON COLUMN io_probe_sync_history.flushes IS 'Number of syncs. With the open methods each write counts as a sync';
COMMENT ON COLUMN io_probe_sync_history.device_writes_per_op IS 'Writes of the device, from all processes, per operation. Many kernels count a flush as another write';
COMMENT ON COLUMN io_probe_sync_history.device_flushes_per_op IS 'Cache flushes of the device, from all processes, per operation. 0 without a volatile cache, or if writes bypass it (FUA)';
COMMENT ON COLUMN io_probe_sync_history.elapsed_ms IS 'Total time of the operations in ms';
COMMENT ON COLUMN io_probe_sync_history.device IS 'Devices behind the directory';
COMMENT ON COLUMN io_probe_sync_history.scheduler IS 'I/O scheduler of the devices behind the directory';
COMMENT ON COLUMN io_probe_sync_history.write_cache IS 'write back: the device has a volatile cache, which a sync must flush; write through: it has none, or reports none';
COMMENT ON COLUMN io_probe_sync_history.fua IS 'Can a single write bypass the device''s volatile cache (Force Unit Access)?';
COMMENT ON COLUMN io_probe_sync_history.fs_type IS 'Type of the file system';
COMMENT ON COLUMN io_probe_sync_history.directory IS 'Directory of the scratch file, symbolic links resolved';
COMMENT ON COLUMN io_probe_sync_history.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_sync_history.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_sync_history.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_sync_history.notes IS 'Sentences about this row. A note about the whole call is in one row only';
COMMENT ON COLUMN io_probe_sync_history.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_sync_history.ci_low IS 'Lower end of the 95 % confidence interval. The interval covers only the variation within this run';
COMMENT ON COLUMN io_probe_sync_history.ci_high IS 'Upper end of the 95 % confidence interval';
GRANT SELECT ON io_probe_sync_history TO pg_monitor;

CREATE VIEW io_probe_write_history AS
SELECT run.id AS run_id, run.started_at AS run_started_at, run.label,
       line.pattern,
       line.path,
       line.depth,
       line.write_kb,
       line.flush_kb,
       line.writes_s,
       line.mib_s,
       line.p50_us,
       line.p95_us,
       line.p99_us,
       line.histogram,
       line.fsync_ms,
       line.ops,
       line.elapsed_ms,
       line.device_mib,
       line.scratch_mib,
       line.device,
       line.scheduler,
       line.write_cache,
       line.fs_type,
       line.directory,
       line.seed,
       line.started_at,
       line.doubt,
       line.status,
       line.notes,
       line.err_pct,
       line.ci_low,
       line.ci_high
FROM io_probe_runs AS run
JOIN io_probe_results AS result ON result.run_id OPERATOR(pg_catalog.=) run.id,
-- Rows of other probes need not fit the type, and may be read before they are left out.
LATERAL pg_catalog.jsonb_populate_record(NULL::io_probe_write_full_row,
    CASE WHEN run.probe OPERATOR(pg_catalog.=) 'write'
         THEN result.result OPERATOR(pg_catalog.-) 'relid'::pg_catalog.text END) AS line
WHERE run.probe OPERATOR(pg_catalog.=) 'write';
COMMENT ON VIEW io_probe_write_history IS 'Rows of io_probe_write_full in the stored runs';
COMMENT ON COLUMN io_probe_write_history.run_id IS 'Number of the run in io_probe_runs';
COMMENT ON COLUMN io_probe_write_history.run_started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_write_history.label IS 'Label that the caller gave the run';
COMMENT ON COLUMN io_probe_write_history.pattern IS 'random: blocks anywhere; backend: blocks anywhere, as sessions write that need a buffer; sequential: 256 kB in order; checkpoint: half of the blocks, in order, as the checkpointer writes; copy: blocks in order, as COPY writes';
COMMENT ON COLUMN io_probe_write_history.path IS 'direct: by O_DIRECT; os: through the OS cache, as the server does, with a sync before a block is written again, and at the end of each of five turns';
COMMENT ON COLUMN io_probe_write_history.depth IS 'Greatest number of writes in flight';
COMMENT ON COLUMN io_probe_write_history.write_kb IS 'Size of each write in kB';
COMMENT ON COLUMN io_probe_write_history.flush_kb IS 'After how many kB the kernel is told to write back (checkpoint_flush_after or backend_flush_after). NULL: not before the sync';
COMMENT ON COLUMN io_probe_write_history.writes_s IS 'Writes per second. Where path is os, the time includes the syncs';
COMMENT ON COLUMN io_probe_write_history.mib_s IS 'writes_s times write_kb, in MiB per second';
COMMENT ON COLUMN io_probe_write_history.p50_us IS 'Median time of a write in us; where path is os, a write only copies to the OS cache. Each percentile is NULL if fewer than ten writes took longer';
COMMENT ON COLUMN io_probe_write_history.p95_us IS '95th percentile of write times in us';
COMMENT ON COLUMN io_probe_write_history.p99_us IS '99th percentile of write times in us';
COMMENT ON COLUMN io_probe_write_history.histogram IS 'Number of writes in each latency range, in the form of histogram of io_probe_depth';
COMMENT ON COLUMN io_probe_write_history.fsync_ms IS 'Mean ms of a sync; NULL where path is direct';
COMMENT ON COLUMN io_probe_write_history.ops IS 'Number of writes that were measured';
COMMENT ON COLUMN io_probe_write_history.elapsed_ms IS 'Total time of these writes in ms, including the syncs';
COMMENT ON COLUMN io_probe_write_history.device_mib IS 'MiB that the devices wrote during the measurement, for all processes';
COMMENT ON COLUMN io_probe_write_history.scratch_mib IS 'Size of the scratch file in MiB';
COMMENT ON COLUMN io_probe_write_history.device IS 'Devices behind the directory';
COMMENT ON COLUMN io_probe_write_history.scheduler IS 'I/O scheduler of the devices behind the directory';
COMMENT ON COLUMN io_probe_write_history.write_cache IS 'write back: the device has a volatile cache, which a sync must flush; write through: it has none, or reports none';
COMMENT ON COLUMN io_probe_write_history.fs_type IS 'Type of the file system';
COMMENT ON COLUMN io_probe_write_history.directory IS 'Directory of the scratch file, symbolic links resolved';
COMMENT ON COLUMN io_probe_write_history.seed IS 'Seed of the random order; option or argument seed repeats it';
COMMENT ON COLUMN io_probe_write_history.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_write_history.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_write_history.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_write_history.notes IS 'Sentences about this row. A note about the whole call is in one row only';
COMMENT ON COLUMN io_probe_write_history.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_write_history.ci_low IS 'Lower end of the 95 % confidence interval. The interval covers only the variation within this run';
COMMENT ON COLUMN io_probe_write_history.ci_high IS 'Upper end of the 95 % confidence interval';
GRANT SELECT ON io_probe_write_history TO pg_monitor;

CREATE VIEW io_probe_mix_history AS
SELECT run.id AS run_id, run.started_at AS run_started_at, run.label,
       line.load,
       line.read_pct,
       line.write_pct,
       line.reads_s,
       line.r_p50_us,
       line.r_p95_us,
       line.r_p99_us,
       line.r_histogram,
       line.writes_s,
       line.w_p50_us,
       line.w_p95_us,
       line.w_p99_us,
       line.w_histogram,
       line.carried,
       line.sent_reads_s,
       line.sent_writes_s,
       line.writing,
       line.read_kb,
       line.write_kb,
       line.depth,
       line.elapsed_ms,
       line.seed,
       line.started_at,
       line.device,
       line.scheduler,
       line.read_ahead_kb,
       run.relid,
       line.schemaname,
       line.relname,
       line.spcname,
       line.doubt,
       line.status,
       line.notes
FROM io_probe_runs AS run
JOIN io_probe_results AS result ON result.run_id OPERATOR(pg_catalog.=) run.id,
-- Rows of other probes need not fit the type, and may be read before they are left out.
LATERAL pg_catalog.jsonb_populate_record(NULL::io_probe_mix_full_row,
    CASE WHEN run.probe OPERATOR(pg_catalog.=) 'mix'
         THEN result.result OPERATOR(pg_catalog.-) 'relid'::pg_catalog.text END) AS line
WHERE run.probe OPERATOR(pg_catalog.=) 'mix';
COMMENT ON VIEW io_probe_mix_history IS 'Rows of io_probe_mix_full in the stored runs';
COMMENT ON COLUMN io_probe_mix_history.run_id IS 'Number of the run in io_probe_runs';
COMMENT ON COLUMN io_probe_mix_history.run_started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_mix_history.label IS 'Label that the caller gave the run';
COMMENT ON COLUMN io_probe_mix_history.load IS 'bend (first row): the greatest load that was answered in time, as were all smaller loads; if there is none, the figures are NULL. others (with argument like): what others sent, now or in the stored run. reads alone, writes alone: as fast as possible. cell: reads and writes at the shares read_pct and write_pct';
COMMENT ON COLUMN io_probe_mix_history.read_pct IS 'Rate of reads, in percent of row reads alone (with argument like: of row others)';
COMMENT ON COLUMN io_probe_mix_history.write_pct IS 'Rate of writes, in percent of row writes alone (with argument like: of row others)';
COMMENT ON COLUMN io_probe_mix_history.reads_s IS 'Reads answered per second';
COMMENT ON COLUMN io_probe_mix_history.r_p50_us IS 'Median time of a read in us, from its scheduled start until its answer. Each percentile is NULL if fewer than ten requests took longer';
COMMENT ON COLUMN io_probe_mix_history.r_p95_us IS '95th percentile of read times in us';
COMMENT ON COLUMN io_probe_mix_history.r_p99_us IS '99th percentile of read times in us';
COMMENT ON COLUMN io_probe_mix_history.r_histogram IS 'Number of reads in each latency range, in the form of histogram of io_probe_depth';
COMMENT ON COLUMN io_probe_mix_history.writes_s IS 'Writes answered per second';
COMMENT ON COLUMN io_probe_mix_history.w_p50_us IS 'Median time of a write in us, with its sync if writing is wal';
COMMENT ON COLUMN io_probe_mix_history.w_p95_us IS '95th percentile of write times in us';
COMMENT ON COLUMN io_probe_mix_history.w_p99_us IS '99th percentile of write times in us';
COMMENT ON COLUMN io_probe_mix_history.w_histogram IS 'Number of writes in each latency range, in the form of histogram of io_probe_depth';
COMMENT ON COLUMN io_probe_mix_history.carried IS 'Were at least 95 % of the reads and 95 % of the writes answered in time? If not, the percentiles are too low: they don''t count unanswered requests. NULL for reads alone and writes alone';
COMMENT ON COLUMN io_probe_mix_history.sent_reads_s IS 'Reads sent per second. NULL if each was sent as soon as an earlier one ended';
COMMENT ON COLUMN io_probe_mix_history.sent_writes_s IS 'Writes sent per second. NULL if each was sent as soon as an earlier one ended';
COMMENT ON COLUMN io_probe_mix_history.writing IS 'data: blocks in random order; sequential: 256 kB in order; wal: a WAL block, then fdatasync';
COMMENT ON COLUMN io_probe_mix_history.read_kb IS 'Size of a read in kB';
COMMENT ON COLUMN io_probe_mix_history.write_kb IS 'Size of a write in kB';
COMMENT ON COLUMN io_probe_mix_history.depth IS 'Greatest number of reads in flight, and of writes in flight. With wal: one write at a time';
COMMENT ON COLUMN io_probe_mix_history.elapsed_ms IS 'Measured time in ms';
COMMENT ON COLUMN io_probe_mix_history.seed IS 'Seed of the random order; option or argument seed repeats it';
COMMENT ON COLUMN io_probe_mix_history.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_mix_history.device IS 'Devices behind the relation';
COMMENT ON COLUMN io_probe_mix_history.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_mix_history.read_ahead_kb IS 'Readahead window in kB that newly opened files get';
COMMENT ON COLUMN io_probe_mix_history.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_mix_history.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_mix_history.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_mix_history.spcname IS 'Tablespace of the relation, or the tablespace that the call names';
COMMENT ON COLUMN io_probe_mix_history.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_mix_history.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_mix_history.notes IS 'Sentences about this row. A note about the whole call is in one row only';
GRANT SELECT ON io_probe_mix_history TO pg_monitor;

CREATE VIEW io_probe_sustain_history AS
SELECT run.id AS run_id, run.started_at AS run_started_at, run.label,
       line.pattern,
       line.slice,
       line.at_s,
       line.iops,
       line.mib_s,
       line.p50_us,
       line.p99_us,
       line.verdict,
       line.burst_iops,
       line.burst_s,
       line.bucket,
       line.refill_s,
       line.steady,
       line.range_pct,
       line.read_kb,
       line.depth,
       line.elapsed_ms,
       line.seed,
       line.started_at,
       line.device,
       line.scheduler,
       line.read_ahead_kb,
       run.relid,
       line.schemaname,
       line.relname,
       line.spcname,
       line.doubt,
       line.status,
       line.notes
FROM io_probe_runs AS run
JOIN io_probe_results AS result ON result.run_id OPERATOR(pg_catalog.=) run.id,
-- Rows of other probes need not fit the type, and may be read before they are left out.
LATERAL pg_catalog.jsonb_populate_record(NULL::io_probe_sustain_full_row,
    CASE WHEN run.probe OPERATOR(pg_catalog.=) 'sustain'
         THEN result.result OPERATOR(pg_catalog.-) 'relid'::pg_catalog.text END) AS line
WHERE run.probe OPERATOR(pg_catalog.=) 'sustain';
COMMENT ON VIEW io_probe_sustain_history IS 'Rows of io_probe_sustain_full in the stored runs';
COMMENT ON COLUMN io_probe_sustain_history.run_id IS 'Number of the run in io_probe_runs';
COMMENT ON COLUMN io_probe_sustain_history.run_started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_sustain_history.label IS 'Label that the caller gave the run';
COMMENT ON COLUMN io_probe_sustain_history.pattern IS 'random: single blocks; sequential: 256 kB in order';
COMMENT ON COLUMN io_probe_sustain_history.slice IS 'Number of the slice. NULL in the first row of a pattern: that row has the rate after a burst, or without a burst the rate of the whole time';
COMMENT ON COLUMN io_probe_sustain_history.at_s IS 'When the slice began, in seconds since the first read of the pattern';
COMMENT ON COLUMN io_probe_sustain_history.iops IS 'Reads per second';
COMMENT ON COLUMN io_probe_sustain_history.mib_s IS 'iops times the size of a read, in MiB (2^20 bytes) per second';
COMMENT ON COLUMN io_probe_sustain_history.p50_us IS 'Median latency in us; NULL if fewer than ten reads took longer';
COMMENT ON COLUMN io_probe_sustain_history.p99_us IS '99th percentile of the latency in us; NULL if fewer than ten reads took longer';
COMMENT ON COLUMN io_probe_sustain_history.verdict IS 'First row: cap of ..., steady, not steady (see column steady) or too short (under five slices); after a burst, ''burst of ... s, then'' comes first. cap: the rate varies by at most 3 %, and is a round number or follows a burst. It may also be the device''s own limit. NULL in other rows';
COMMENT ON COLUMN io_probe_sustain_history.burst_iops IS 'First row: reads per second until the burst credits were used up; NULL without a burst';
COMMENT ON COLUMN io_probe_sustain_history.burst_s IS 'First row: how many seconds the burst lasted';
COMMENT ON COLUMN io_probe_sustain_history.bucket IS 'First row: burst credits at the start, as a number of reads; the bucket may not have been full';
COMMENT ON COLUMN io_probe_sustain_history.refill_s IS 'First row: seconds without reads until the bucket has as many credits again';
COMMENT ON COLUMN io_probe_sustain_history.steady IS 'First row: is the rate steady by SNIA''s test? It is if the rates of five equal parts of the time (after a burst, if any) differ by at most 20 % of their mean, and the best-fit line changes by at most 10 % of the mean. NULL with under five slices';
COMMENT ON COLUMN io_probe_sustain_history.range_pct IS 'First row: highest minus lowest rate of the five parts (see steady), in percent of their mean';
COMMENT ON COLUMN io_probe_sustain_history.read_kb IS 'Size of a read in kB';
COMMENT ON COLUMN io_probe_sustain_history.depth IS 'Greatest number of reads in flight';
COMMENT ON COLUMN io_probe_sustain_history.elapsed_ms IS 'Length of the slice in ms; in the first row, of all slices';
COMMENT ON COLUMN io_probe_sustain_history.seed IS 'Seed of the random order; option seed repeats it';
COMMENT ON COLUMN io_probe_sustain_history.started_at IS 'When the call started';
COMMENT ON COLUMN io_probe_sustain_history.device IS 'Devices behind the relation';
COMMENT ON COLUMN io_probe_sustain_history.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_sustain_history.read_ahead_kb IS 'Readahead window in kB that newly opened files get';
COMMENT ON COLUMN io_probe_sustain_history.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_sustain_history.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_sustain_history.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_sustain_history.spcname IS 'Tablespace of the relation, or the tablespace that the call names';
COMMENT ON COLUMN io_probe_sustain_history.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_sustain_history.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_sustain_history.notes IS 'Sentences about this row. A note about the whole call is in one row only';
GRANT SELECT ON io_probe_sustain_history TO pg_monitor;

CREATE VIEW io_probe_readahead_history AS
SELECT run.id AS run_id, run.started_at AS run_started_at, run.label,
       line.window_kb,
       line.mode,
       line.mib_s,
       line.block_us,
       line.best,
       line.blockdev_setra,
       line.udev_rule,
       line.cache_us,
       line.turns,
       line.blks,
       line.elapsed_ms,
       line.device_pct,
       line.engine,
       line.started_at,
       line.device,
       line.scheduler,
       line.read_ahead_kb,
       run.relid,
       line.schemaname,
       line.relname,
       line.spcname,
       line.doubt,
       line.status,
       line.notes,
       line.err_pct,
       line.ci_low,
       line.ci_high,
       line.device_bytes,
       line.device_ios,
       line.ios_per_block,
       line.rareq_kb,
       line.aqu_sz,
       line.r_await_ms,
       line.util_pct,
       line.other_bytes
FROM io_probe_runs AS run
JOIN io_probe_results AS result ON result.run_id OPERATOR(pg_catalog.=) run.id,
-- Rows of other probes need not fit the type, and may be read before they are left out.
LATERAL pg_catalog.jsonb_populate_record(NULL::io_probe_readahead_full_row,
    CASE WHEN run.probe OPERATOR(pg_catalog.=) 'readahead'
         THEN result.result OPERATOR(pg_catalog.-) 'relid'::pg_catalog.text END) AS line
WHERE run.probe OPERATOR(pg_catalog.=) 'readahead';
COMMENT ON VIEW io_probe_readahead_history IS 'Rows of io_probe_readahead_full in the stored runs';
COMMENT ON COLUMN io_probe_readahead_history.run_id IS 'Number of the run in io_probe_runs';
COMMENT ON COLUMN io_probe_readahead_history.run_started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_readahead_history.label IS 'Label that the caller gave the run';
COMMENT ON COLUMN io_probe_readahead_history.window_kb IS 'Readahead window in kB, as in /sys/block/*/queue/read_ahead_kb; NULL if the setting in force is unknown';
COMMENT ON COLUMN io_probe_readahead_history.mode IS 'kernel: the window in force, with reads through the OS cache. emulated: the probe reads one window at a time past the OS cache, and fetches the next window while it uses the present one; block_us includes cache_us';
COMMENT ON COLUMN io_probe_readahead_history.mib_s IS 'MiB per second of a cold scan, one block at a time';
COMMENT ON COLUMN io_probe_readahead_history.block_us IS 'Time per block in us, without the server''s own work';
COMMENT ON COLUMN io_probe_readahead_history.best IS 'Is it the smallest window that is as good as the fastest (see best of io_probe_depth)? NULL if the row is void or has no confidence interval, or if the call ended early';
COMMENT ON COLUMN io_probe_readahead_history.blockdev_setra IS 'Command for root that sets this window until the next boot. For open files, sessions keep the old window';
COMMENT ON COLUMN io_probe_readahead_history.udev_rule IS 'Line for /etc/udev/rules.d that sets this window at each boot';
COMMENT ON COLUMN io_probe_readahead_history.cache_us IS 'Mode emulated: us per block that the OS cache takes, measured at the window in force and included in block_us';
COMMENT ON COLUMN io_probe_readahead_history.turns IS 'Number of turns that count. Left out are the first turn and, in mode kernel, turns with much more CPU time than others';
COMMENT ON COLUMN io_probe_readahead_history.blks IS 'Number of blocks read in the turns that count';
COMMENT ON COLUMN io_probe_readahead_history.elapsed_ms IS 'Elapsed time of all turns in ms';
COMMENT ON COLUMN io_probe_readahead_history.device_pct IS 'Percent of the blocks that came from the device. Below 100, some blocks were cached';
COMMENT ON COLUMN io_probe_readahead_history.engine IS 'How the probe read: pread for mode kernel; io_uring or threads for mode emulated';
COMMENT ON COLUMN io_probe_readahead_history.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_readahead_history.device IS 'Devices behind the relation';
COMMENT ON COLUMN io_probe_readahead_history.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_readahead_history.read_ahead_kb IS 'Readahead window in kB that newly opened files get';
COMMENT ON COLUMN io_probe_readahead_history.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_readahead_history.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_readahead_history.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_readahead_history.spcname IS 'Tablespace of the relation, or the tablespace that the call names';
COMMENT ON COLUMN io_probe_readahead_history.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_readahead_history.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_readahead_history.notes IS 'Sentences about this row. A note about the whole call is in one row only';
COMMENT ON COLUMN io_probe_readahead_history.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_readahead_history.ci_low IS 'Lower end of the 95 % confidence interval. The interval covers only the variation within this run';
COMMENT ON COLUMN io_probe_readahead_history.ci_high IS 'Upper end of the 95 % confidence interval';
COMMENT ON COLUMN io_probe_readahead_history.device_bytes IS 'Bytes fetched from storage for this row, readahead included';
COMMENT ON COLUMN io_probe_readahead_history.device_ios IS 'Reads that the devices completed during the measurement, for all processes';
COMMENT ON COLUMN io_probe_readahead_history.ios_per_block IS 'device_ios per block from the device. Over 1: a block took several reads; under 1: a read had several blocks';
COMMENT ON COLUMN io_probe_readahead_history.rareq_kb IS 'Mean size of the devices'' reads in kB (rareq-sz of iostat)';
COMMENT ON COLUMN io_probe_readahead_history.aqu_sz IS 'Mean number of requests queued or in flight (aqu-sz of iostat). In io_probe_readahead, mode emulated, the time for aqu_sz and util_pct includes cache_us';
COMMENT ON COLUMN io_probe_readahead_history.r_await_ms IS 'Mean ms of a device read, queueing included (r_await of iostat)';
COMMENT ON COLUMN io_probe_readahead_history.util_pct IS 'Percent of the time with a request in flight (%util of iostat). With several devices: of the busiest device';
COMMENT ON COLUMN io_probe_readahead_history.other_bytes IS 'Bytes that the devices moved in addition to device_bytes: reads for others, and all writes';
GRANT SELECT ON io_probe_readahead_history TO pg_monitor;

CREATE VIEW io_probe_page_cost_history AS
SELECT run.id AS run_id, run.started_at AS run_started_at, run.label,
       line.tier,
       line.pattern,
       line.density,
       line.depth,
       line.block_us,
       line.blks,
       line.os_pct,
       line.tuple_us,
       line.turns,
       line.seed,
       line.started_at,
       line.device,
       line.scheduler,
       line.read_ahead_kb,
       run.relid,
       line.schemaname,
       line.relname,
       line.spcname,
       line.doubt,
       line.status,
       line.notes,
       line.err_pct,
       line.ci_low,
       line.ci_high
FROM io_probe_runs AS run
JOIN io_probe_results AS result ON result.run_id OPERATOR(pg_catalog.=) run.id,
-- Rows of other probes need not fit the type, and may be read before they are left out.
LATERAL pg_catalog.jsonb_populate_record(NULL::io_probe_page_cost_full_row,
    CASE WHEN run.probe OPERATOR(pg_catalog.=) 'page_cost'
         THEN result.result OPERATOR(pg_catalog.-) 'relid'::pg_catalog.text END) AS line
WHERE run.probe OPERATOR(pg_catalog.=) 'page_cost';
COMMENT ON VIEW io_probe_page_cost_history IS 'Rows of io_probe_page_cost_full in the stored runs';
COMMENT ON COLUMN io_probe_page_cost_history.run_id IS 'Number of the run in io_probe_runs';
COMMENT ON COLUMN io_probe_page_cost_history.run_started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_page_cost_history.label IS 'Label that the caller gave the run';
COMMENT ON COLUMN io_probe_page_cost_history.tier IS 'Which tier serves the block: shared (shared buffers), os (OS cache) or device. For pattern tuple: cpu';
COMMENT ON COLUMN io_probe_page_cost_history.pattern IS 'sequential: in order; random: one block at a time in random order, as an index scan; sparse: ascending with gaps, as a bitmap heap scan; tuple: the executor''s work on the tuples of a block';
COMMENT ON COLUMN io_probe_page_cost_history.density IS 'Pattern sparse: what share of the blocks is read, over 0 and at most 1. NULL for other patterns';
COMMENT ON COLUMN io_probe_page_cost_history.depth IS 'Reads in flight. random: 1; sparse: effective_io_concurrency (0: each block is read when it is needed). NULL if the server decides';
COMMENT ON COLUMN io_probe_page_cost_history.block_us IS 'Mean us to get a block, without the work on its tuples. Pattern tuple: us of that work per block';
COMMENT ON COLUMN io_probe_page_cost_history.blks IS 'Number of blocks that were timed; for pattern tuple, number of tuples';
COMMENT ON COLUMN io_probe_page_cost_history.os_pct IS 'Percent of the blocks that were in the OS cache before the read';
COMMENT ON COLUMN io_probe_page_cost_history.tuple_us IS 'Pattern tuple: CPU time in us to count one tuple, without getting its page. NULL for other patterns';
COMMENT ON COLUMN io_probe_page_cost_history.turns IS 'Number of turns, including turns that block_us leaves out; for pattern tuple, number of pairs of timed counts';
COMMENT ON COLUMN io_probe_page_cost_history.seed IS 'Seed of the random order; option or argument seed repeats it';
COMMENT ON COLUMN io_probe_page_cost_history.started_at IS 'When the call started; if it has several paths, when this path started';
COMMENT ON COLUMN io_probe_page_cost_history.device IS 'Devices behind the relation';
COMMENT ON COLUMN io_probe_page_cost_history.scheduler IS 'I/O scheduler of the devices behind the relation';
COMMENT ON COLUMN io_probe_page_cost_history.read_ahead_kb IS 'Readahead window in kB that newly opened files get';
COMMENT ON COLUMN io_probe_page_cost_history.relid IS 'Relation that the call names';
COMMENT ON COLUMN io_probe_page_cost_history.schemaname IS 'Schema of the relation';
COMMENT ON COLUMN io_probe_page_cost_history.relname IS 'Name of the relation';
COMMENT ON COLUMN io_probe_page_cost_history.spcname IS 'Tablespace of the relation, or the tablespace that the call names';
COMMENT ON COLUMN io_probe_page_cost_history.doubt IS 'At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against the figures of the row';
COMMENT ON COLUMN io_probe_page_cost_history.status IS 'ok; partial: something from outside ended the measurement early; unsupported: not possible on this system; void: the figures contradict each other';
COMMENT ON COLUMN io_probe_page_cost_history.notes IS 'Sentences about this row. A note about the whole call is in one row only';
COMMENT ON COLUMN io_probe_page_cost_history.err_pct IS 'Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us, writes_s)';
COMMENT ON COLUMN io_probe_page_cost_history.ci_low IS 'Lower end of the 95 % confidence interval. The interval covers only the variation within this run';
COMMENT ON COLUMN io_probe_page_cost_history.ci_high IS 'Upper end of the 95 % confidence interval';
GRANT SELECT ON io_probe_page_cost_history TO pg_monitor;

CREATE VIEW io_probe_recommend_history AS
SELECT run.id AS run_id, run.started_at AS run_started_at, run.label,
       line.scope,
       line.name,
       line.setting,
       line.current,
       line.current_source,
       line.recommended,
       line.low,
       line.high,
       line.applies,
       line.statement,
       line.undo,
       line.instead,
       line.hides,
       line.why,
       run.relid,
       CASE WHEN line.recommended IS NULL
                 OR line.server_version OPERATOR(pg_catalog.=) (
                     pg_catalog.current_setting('server_version_num')::pg_catalog.int4
                     OPERATOR(pg_catalog./) 10000)
                 AND COALESCE(line.io_method, '') OPERATOR(pg_catalog.=) COALESCE(
                     pg_catalog.current_setting('io_method', true), '')
            THEN line.doubt ELSE 'stale' END AS doubt,
       line.evidence,
       line.server_version,
       line.io_method
FROM io_probe_runs AS run
JOIN io_probe_results AS result ON result.run_id OPERATOR(pg_catalog.=) run.id,
-- Rows of other probes need not fit the type, and may be read before they are left out.
LATERAL pg_catalog.jsonb_populate_record(NULL::io_probe_recommend_full_row,
    CASE WHEN run.probe OPERATOR(pg_catalog.=) 'recommend'
         THEN result.result OPERATOR(pg_catalog.-) 'relid'::pg_catalog.text END) AS line
WHERE run.probe OPERATOR(pg_catalog.=) 'recommend';
COMMENT ON VIEW io_probe_recommend_history IS 'Rows of io_probe_recommend_full in the stored runs. doubt is stale if the advice is of another major version or io_method';
COMMENT ON COLUMN io_probe_recommend_history.run_id IS 'Number of the run in io_probe_runs';
COMMENT ON COLUMN io_probe_recommend_history.run_started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_recommend_history.label IS 'Label that the caller gave the run';
COMMENT ON COLUMN io_probe_recommend_history.scope IS 'Where the value applies: cluster, tablespace, index or device. A setting of tablespaces has scope cluster if there is only one, without a value by ALTER TABLESPACE';
COMMENT ON COLUMN io_probe_recommend_history.name IS 'Name of the tablespace, index or device; NULL for the cluster, or if unknown';
COMMENT ON COLUMN io_probe_recommend_history.setting IS 'Setting of the server; for a device, setting of the kernel; for an index, correlation';
COMMENT ON COLUMN io_probe_recommend_history.current IS 'Value in force, as SHOW prints it; for a device in kB';
COMMENT ON COLUMN io_probe_recommend_history.current_source IS 'Source of current: a source of pg_settings, tablespace (the tablespace has its own value), pg_statistic, io_probe_corrections, or /sys';
COMMENT ON COLUMN io_probe_recommend_history.recommended IS 'Best value by this measurement, as ALTER SYSTEM takes it. Equal to current: keep it. NULL: no advice (see column why)';
COMMENT ON COLUMN io_probe_recommend_history.low IS 'Lowest value that is as good as the best. Not as good: over 5 % worse with 95 % confidence, by the errors of measurement and model';
COMMENT ON COLUMN io_probe_recommend_history.high IS 'Highest value that is as good as the best';
COMMENT ON COLUMN io_probe_recommend_history.applies IS 'When a change takes effect. now: at once; reload: after SELECT pg_reload_conf(); restart: after a restart of the server; root: statement is a shell command for root';
COMMENT ON COLUMN io_probe_recommend_history.statement IS 'SQL that sets the recommended value (psql runs it by \gexec); a shell command if applies is root';
COMMENT ON COLUMN io_probe_recommend_history.undo IS 'SQL or command that undoes statement: it sets the old value again, or resets the setting. Only a superuser sees what ALTER SYSTEM had set; for others, undo resets it';
COMMENT ON COLUMN io_probe_recommend_history.instead IS 'Alternative to statement, one command per element. For a tablespace: resets its own value, if any, and sets the value for the whole server; then run SELECT pg_reload_conf(). For the cluster: sets the value for the only tablespace (SHOW does not show it). For a correlation, in PostgreSQL 18 and later: sets it in the column''s statistics until the next ANALYZE. NULL if there is none';
COMMENT ON COLUMN io_probe_recommend_history.hides IS 'Where else the setting may have a value (database, role ...) that overrides statement or instead, or is overridden by them. Begins with ''to be run on the primary'' if a standby refuses statement';
COMMENT ON COLUMN io_probe_recommend_history.why IS 'Reason for the recommendation, or why there is none';
COMMENT ON COLUMN io_probe_recommend_history.relid IS 'Relation that was measured, or was to be measured';
COMMENT ON COLUMN io_probe_recommend_history.doubt IS 'If recommended is NULL: needs cold, needs writes (that argument may bring advice), not looked at (no time was left for this index), or unknown (see column why). Else short (some values were not measured, see column why), or what happened meanwhile: slowed (the device slowed down), limited (an I/O limit of the server''s cgroup was near), cpu quota (the cgroup''s CPU quota was used up), others (others used the device). NULL: no doubt';
COMMENT ON COLUMN io_probe_recommend_history.evidence IS 'Figures behind the recommendation';
COMMENT ON COLUMN io_probe_recommend_history.server_version IS 'Major version of the server at the measurement. On another version the advice is stale';
COMMENT ON COLUMN io_probe_recommend_history.io_method IS 'io_method at the measurement; NULL before PostgreSQL 18. With another io_method the advice is stale';
GRANT SELECT ON io_probe_recommend_history TO pg_monitor;
