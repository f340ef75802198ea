-- Facts that are only read: devices, their counters, caches, running probes, what is possible here.

CREATE TYPE io_probe_device_full_row AS (
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
COMMENT ON TYPE io_probe_device_full_row IS 'Row of io_probe_device_full: one object of the server on one device';
COMMENT ON COLUMN io_probe_device_full_row.object IS 'What lies on the device: tablespace, wal or temp (where temporary files of this session go)';
COMMENT ON COLUMN io_probe_device_full_row.spcname IS 'Name of the tablespace; NULL for the WAL';
COMMENT ON COLUMN io_probe_device_full_row.device IS 'Device that does the I/O: the disk below partitions, LVM and encryption (dm) and software RAID (md), one row for each disk; NULL if unknown';
COMMENT ON COLUMN io_probe_device_full_row.scheduler IS 'I/O scheduler in force on the device';
COMMENT ON COLUMN io_probe_device_full_row.read_ahead_kb IS 'Readahead window in kB of reads through this file system; an open file keeps the window with which it was opened';
COMMENT ON COLUMN io_probe_device_full_row.read_ahead_sectors IS 'read_ahead_kb in sectors of 512 bytes, as blockdev --getra prints it';
COMMENT ON COLUMN io_probe_device_full_row.rotational IS 'Does the device say that it is a rotating disk? Virtual disks often say so wrongly';
COMMENT ON COLUMN io_probe_device_full_row.fs_type IS 'Type of the file system';
COMMENT ON COLUMN io_probe_device_full_row.mount_point IS 'Where the file system is mounted';
COMMENT ON COLUMN io_probe_device_full_row.directory IS 'Directory of the object, symbolic links resolved';
COMMENT ON COLUMN io_probe_device_full_row.fs_free_bytes IS 'Bytes of the file system that are free for unprivileged processes';
COMMENT ON COLUMN io_probe_device_full_row.mount_options IS 'Mount options of the file system';
COMMENT ON COLUMN io_probe_device_full_row.top_device IS 'Device on which the file system sits: a partition, a dm or md device, or the disk itself';
COMMENT ON COLUMN io_probe_device_full_row.model IS 'Model as the device states it';
COMMENT ON COLUMN io_probe_device_full_row.schedulers IS 'Schedulers that the kernel offers for the device';
COMMENT ON COLUMN io_probe_device_full_row.nr_requests IS 'Maximum number of requests in the kernel''s queue for the device';
COMMENT ON COLUMN io_probe_device_full_row.max_sectors_kb IS 'Largest request in kB that the kernel sends to the device';
COMMENT ON COLUMN io_probe_device_full_row.max_hw_sectors_kb IS 'Largest request in kB that the device accepts';
COMMENT ON COLUMN io_probe_device_full_row.logical_block_size IS 'Smallest unit in bytes that the device can address';
COMMENT ON COLUMN io_probe_device_full_row.physical_block_size IS 'Smallest unit in bytes that the device writes without reading first';
COMMENT ON COLUMN io_probe_device_full_row.fs_block_size IS 'Allocation unit of the file system in bytes';
COMMENT ON COLUMN io_probe_device_full_row.optimal_io_size IS 'Request size in bytes that the device prefers; 0 if it states none';
COMMENT ON COLUMN io_probe_device_full_row.alignment_offset IS 'Bytes by which the partition or device is off its natural alignment';
COMMENT ON COLUMN io_probe_device_full_row.start_sector IS 'First sector of the partition; NULL without a partition';
COMMENT ON COLUMN io_probe_device_full_row.aligned IS 'Does the partition start on a boundary of a physical block and of optimal_io_size?';
COMMENT ON COLUMN io_probe_device_full_row.size_bytes IS 'Size of the device in bytes';
COMMENT ON COLUMN io_probe_device_full_row.read_only IS 'Is the device read only?';
COMMENT ON COLUMN io_probe_device_full_row.write_cache IS 'write back: the device has a volatile cache, which must be flushed; write through: it has none, or says so';
COMMENT ON COLUMN io_probe_device_full_row.fua IS 'Can a single write pass the device''s volatile cache (Force Unit Access)?';
COMMENT ON COLUMN io_probe_device_full_row.nomerges IS '0: the kernel merges requests; 1: only simple merges; 2: no merges';
COMMENT ON COLUMN io_probe_device_full_row.direct_io_align IS 'Multiple in bytes that O_DIRECT requires; 0: no O_DIRECT here; NULL if the kernel does not tell';
COMMENT ON COLUMN io_probe_device_full_row.status IS 'ok, or unsupported if no block device is known behind the directory';
COMMENT ON COLUMN io_probe_device_full_row.notes IS 'What could not be found out, and why, one sentence per element';

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
COMMENT ON TYPE io_probe_device_row IS 'Row of io_probe_device: one object of the server on one device';

CREATE FUNCTION io_probe_device()
RETURNS SETOF io_probe_device_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_device_wrapper';
COMMENT ON FUNCTION io_probe_device() IS 'Devices behind the tablespaces, the WAL and temporary files, and their settings. Reads /proc and /sys, and causes no I/O. pg_monitor may call it';
REVOKE ALL ON FUNCTION io_probe_device() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_device() TO pg_monitor;

CREATE FUNCTION io_probe_device_full()
RETURNS SETOF io_probe_device_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10
AS 'MODULE_PATHNAME', 'io_probe_device_wrapper';
COMMENT ON FUNCTION io_probe_device_full() IS 'The rows of io_probe_device with all columns';
REVOKE ALL ON FUNCTION io_probe_device_full() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_device_full() TO pg_monitor;

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
COMMENT ON COLUMN io_probe_counters_row.device IS 'Kernel name of the device, such as vda';
COMMENT ON COLUMN io_probe_counters_row.reads IS 'Reads that the device completed since it appeared';
COMMENT ON COLUMN io_probe_counters_row.reads_merged IS 'Reads that were merged into queued reads';
COMMENT ON COLUMN io_probe_counters_row.read_bytes IS 'Bytes read since the device appeared';
COMMENT ON COLUMN io_probe_counters_row.read_ms IS 'Time in ms that all reads took together, queueing included; starts again at 0 after 2^32';
COMMENT ON COLUMN io_probe_counters_row.writes IS 'Writes that the device completed since it appeared';
COMMENT ON COLUMN io_probe_counters_row.writes_merged IS 'Writes that were merged into queued writes';
COMMENT ON COLUMN io_probe_counters_row.write_bytes IS 'Bytes written since the device appeared';
COMMENT ON COLUMN io_probe_counters_row.write_ms IS 'Time in ms that all writes took together, queueing included; starts again at 0 after 2^32';
COMMENT ON COLUMN io_probe_counters_row.discards IS 'Discards that the device completed since it appeared; NULL before Linux 4.18';
COMMENT ON COLUMN io_probe_counters_row.discards_merged IS 'Discards that were merged into queued discards; NULL before Linux 4.18';
COMMENT ON COLUMN io_probe_counters_row.discard_bytes IS 'Bytes discarded since the device appeared; NULL before Linux 4.18';
COMMENT ON COLUMN io_probe_counters_row.discard_ms IS 'Time in ms that all discards took together, queueing included; starts again at 0 after 2^32; NULL before Linux 4.18';
COMMENT ON COLUMN io_probe_counters_row.flushes IS 'Flushes that the device completed since it appeared; NULL before Linux 5.5';
COMMENT ON COLUMN io_probe_counters_row.flush_ms IS 'Time in ms that all flushes took together, queueing included; starts again at 0 after 2^32; NULL before Linux 5.5';
COMMENT ON COLUMN io_probe_counters_row.in_flight IS 'Requests in flight when the counters were read';
COMMENT ON COLUMN io_probe_counters_row.io_ms IS 'Time in ms with at least one request in flight; starts again at 0 after 2^32';
COMMENT ON COLUMN io_probe_counters_row.weighted_io_ms IS 'Time in ms that all requests took together, queueing included; starts again at 0 after 2^32';

CREATE FUNCTION io_probe_counters()
RETURNS SETOF io_probe_counters_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 4
AS 'MODULE_PATHNAME', 'io_probe_counters_wrapper';
COMMENT ON FUNCTION io_probe_counters() IS 'Cumulative counters of the devices below the server, each since the device appeared. Causes no I/O. The view io_probe_device_counters shows them. pg_monitor may call it';
REVOKE ALL ON FUNCTION io_probe_counters() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_counters() TO pg_monitor;

CREATE VIEW io_probe_device_counters AS SELECT * FROM io_probe_counters();
COMMENT ON VIEW io_probe_device_counters IS 'Cumulative counters of the devices below the server, for monitoring tools and \watch';
-- The columns of the view are those of the row type.
DO $counters$
DECLARE
    about record;
BEGIN
    FOR about IN
        SELECT attname, pg_catalog.col_description(attrelid, attnum) AS text FROM pg_catalog.pg_attribute
         WHERE attrelid OPERATOR(pg_catalog.=) 'io_probe_counters_row'::pg_catalog.regclass AND attnum OPERATOR(pg_catalog.>) 0 AND NOT attisdropped
    LOOP
        EXECUTE pg_catalog.format('COMMENT ON COLUMN io_probe_device_counters.%I IS %L', about.attname, about.text);
    END LOOP;
END
$counters$;
GRANT SELECT ON io_probe_device_counters TO pg_monitor;

CREATE TYPE io_probe_cache_row AS (
    fork            text,
    blks_total      bigint,
    shared_blks     bigint,
    shared_pct      double precision,
    os_cached_bytes bigint,
    os_pct   double precision,
    os_dirty_bytes  bigint,
    hole_bytes      bigint
);
COMMENT ON TYPE io_probe_cache_row IS 'Row of io_probe_cache: one fork of the relation';
COMMENT ON COLUMN io_probe_cache_row.fork IS 'main (the data), fsm, vm or init';
COMMENT ON COLUMN io_probe_cache_row.blks_total IS 'Blocks of the fork';
COMMENT ON COLUMN io_probe_cache_row.shared_blks IS 'Blocks of the fork in shared buffers (of a temporary table: in the session''s own buffers)';
COMMENT ON COLUMN io_probe_cache_row.shared_pct IS 'shared_blks in percent of blks_total; NULL for an empty fork';
COMMENT ON COLUMN io_probe_cache_row.os_cached_bytes IS 'Bytes of the fork in the OS page cache; NULL on ZFS, which keeps a cache of its own';
COMMENT ON COLUMN io_probe_cache_row.os_pct IS 'os_cached_bytes in percent of the fork''s bytes; NULL for an empty fork, and on ZFS';
COMMENT ON COLUMN io_probe_cache_row.os_dirty_bytes IS 'Bytes of the fork in the OS page cache that are not on storage yet; NULL before Linux 6.5';
COMMENT ON COLUMN io_probe_cache_row.hole_bytes IS 'Bytes in blocks that were never written to the file: the device has nothing to read for them';

CREATE FUNCTION io_probe_cache(rel regclass)
RETURNS SETOF io_probe_cache_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 4
AS 'MODULE_PATHNAME', 'io_probe_cache_wrapper';
COMMENT ON FUNCTION io_probe_cache(regclass) IS 'How much of a relation is in shared buffers and in the OS page cache, one row per fork. Walks all buffer headers; reads no data. pg_monitor may call it';
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
COMMENT ON COLUMN io_probe_evict_row.shared_blks_before IS 'Blocks in shared buffers before the call';
COMMENT ON COLUMN io_probe_evict_row.shared_blks_after IS 'Blocks in shared buffers after the call; PostgreSQL 15 and 16 cannot evict them';
COMMENT ON COLUMN io_probe_evict_row.os_bytes_before IS 'Bytes in the OS page cache before the call';
COMMENT ON COLUMN io_probe_evict_row.os_bytes_after IS 'Bytes in the OS page cache after the call';
COMMENT ON COLUMN io_probe_evict_row.complete IS 'Is nothing of the fork left in shared buffers and in the OS page cache?';
COMMENT ON COLUMN io_probe_evict_row.notes IS 'Why something stayed in a cache, one sentence per element';

CREATE FUNCTION io_probe_evict(rel regclass)
RETURNS SETOF io_probe_evict_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 4
AS 'MODULE_PATHNAME', 'io_probe_evict_wrapper';
COMMENT ON FUNCTION io_probe_evict(regclass) IS 'Writes the dirty pages of a relation, then drops it from the OS page cache and, where the server can (from PostgreSQL 17 on), from shared buffers. Other sessions will read it from the device again. Needs EXECUTE, and SELECT or MAINTAIN on the relation';
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
COMMENT ON COLUMN io_probe_progress_row.relid IS 'Relation that the probe reads; NULL if it reads none, or one of another database';
COMMENT ON COLUMN io_probe_progress_row.probe IS 'Name of the probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_progress_row.path IS 'Path that the probe measures now; for sync the section, for readahead the mode, for evict the fork';
COMMENT ON COLUMN io_probe_progress_row.done IS 'Blocks done on this path; for sync and readahead turns done, for iostat samples done';
COMMENT ON COLUMN io_probe_progress_row.total IS 'What done can reach: blocks from the start of the path to the end of the relation, turns of all rows, or samples; 0 if unknown. A bound may end the path earlier';
COMMENT ON COLUMN io_probe_progress_row.started_at IS 'When the call started';

CREATE FUNCTION io_probe_progress()
RETURNS SETOF io_probe_progress_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1
AS 'MODULE_PATHNAME', 'io_probe_progress_wrapper';
COMMENT ON FUNCTION io_probe_progress() IS 'What the probes of all sessions are doing now, one row per probe. pg_monitor may call it';
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
COMMENT ON COLUMN io_probe_check_row.status IS 'ok, unsupported (this kernel or server lacks it) or denied (the caller lacks the right)';
COMMENT ON COLUMN io_probe_check_row.value IS 'What was found';
COMMENT ON COLUMN io_probe_check_row.what_to_do IS 'What it means for probes, or what would change it; NULL if the status is ok';

CREATE FUNCTION io_probe_check()
RETURNS SETOF io_probe_check_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 30
AS 'MODULE_PATHNAME', 'io_probe_check_wrapper';
COMMENT ON FUNCTION io_probe_check() IS 'What this server, its kernel and the caller''s rights allow, one row per item. Reads no data. pg_monitor may call it';
REVOKE ALL ON FUNCTION io_probe_check() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_check() TO pg_monitor;
