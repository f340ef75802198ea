-- What is new in 0.2.0: the history (runs that are kept, read and compared), and options. Both the last part of a fresh install
-- and the upgrade from 0.1.0.

\echo Use "CREATE EXTENSION pg_io_probe" or "ALTER EXTENSION pg_io_probe UPDATE" to load this file. \quit

-- Probes of the first release that know more options now, as they are commented in a fresh install.
COMMENT ON FUNCTION io_probe_depth(regclass, integer[], interval, bigint, jsonb) IS 'Random fetches past the page cache at several depths, by default 1, 2, 4 and so on to 64 as far as max_depth allows, which take turns in twenty rounds, a row each, and the knee of the curve. The duration is that of one depth. Options: max_bytes, max_iops, max_mib_per_s, max_util_pct, max_p99_us, wait';
COMMENT ON FUNCTION io_probe_page_cost(regclass, interval, boolean, double precision[], integer[], bigint, jsonb) IS 'The times behind planner costs: what the server takes to read a block from shared buffers, the OS cache and the device, in order, at random, and ascending with gaps at several densities and effective_io_concurrency settings, all in turn; 14 s at most by default. Reads from the device what the OS cache does not hold, and drops it from there afterwards; only with cold, which needs EXECUTE on io_probe_evict, are pages evicted that were cached before. Options: max_bytes (for each of sequential, random and the depths of sparse; all together may read their sum), max_iops, max_mib_per_s, max_util_pct, max_p99_us, precision, wait';
COMMENT ON FUNCTION io_probe_ping(regclass, integer, interval, text, text, jsonb) IS 'Sends single requests in turn and times each: read (random blocks of the relation), write (random blocks of a nameless scratch file in its tablespace) or pingpong (a write, a read, and so on); path direct or os. The modes that write need EXECUTE on io_probe_sync. Options: max_p99_us, seed, wait';
COMMENT ON FUNCTION io_probe_random(regclass, text[], interval, boolean, integer, bigint, jsonb) IS 'Times fetches of single blocks of a relation in a seeded random order, on up to three paths, a row each, with the tier that served each and what the device saw. A row lasts at most pg_io_probe.default_duration and reads at most default_max_bytes unless told otherwise. Options: max_bytes, max_iops, max_mib_per_s, max_util_pct, max_p99_us, precision, wait. Evicts nothing unless cold is true';
COMMENT ON FUNCTION io_probe_readahead(regclass, integer[], interval, jsonb) IS 'Throughput of a cold sequential scan over readahead windows, in turn: the setting in force as it is, others emulated. Evicts from the OS cache what it reads there, so it needs EXECUTE on io_probe_evict. Options: max_bytes, max_iops, max_mib_per_s, max_util_pct, max_p99_us, precision, wait';
COMMENT ON FUNCTION io_probe_recommend(regclass, text, text, text[], interval, boolean, boolean, jsonb) IS 'What the settings should be by what was measured, with reasons; changes nothing. Measures on the relation, or on the largest tables of each tablespace; settings picks from random_page_cost, seq_page_cost, effective_io_concurrency, maintenance_io_concurrency, read_ahead_kb, io_combine_limit, wal_sync_method and commit_delay. cold => true lets it evict what it reads (needs EXECUTE on io_probe_evict), writes => true lets it write scratch files beside the WAL (needs EXECUTE on io_probe_sync). Options: max_bytes, max_iops, max_mib_per_s, max_util_pct, max_p99_us, precision, wait';
COMMENT ON FUNCTION io_probe_seqscan(regclass, text[], interval, boolean, integer, integer, text, jsonb) IS 'Times a scan of a relation on up to three paths, a row each, with the tier that served the blocks and what the device saw. A row lasts at most pg_io_probe.default_duration and reads at most default_max_bytes unless told otherwise. Options: max_bytes, max_iops, max_mib_per_s, max_util_pct, max_p99_us, precision, wait, start_blk. Evicts nothing unless cold is true';
COMMENT ON FUNCTION io_probe_sync(text, text, interval, integer, text[], integer, jsonb) IS 'Times syncs of a nameless scratch file beside the WAL (target wal) or in a tablespace (target tablespace, spcname): the sections of pg_test_fsync, whose writes have write_kb (by default a WAL block), and wal_segment; all rows in turns, over and over, each for duration (by default pg_io_probe.default_duration, or less where all rows would need over half of pg_io_probe.max_duration). depth over 1: so many committers share one WAL (section wal_segment). Options: commit_bytes (WAL of a commit, which may then share a block with others; depth over 1), commit_delay (microseconds, by default as this server would wait; depth over 1), direct (wal_segment with or without O_DIRECT, by default as this server), max_bytes, max_iops, max_mib_per_s, max_util_pct (these four bind what is made durable, not no_sync), max_p99_us, precision, wait';

-- Columns of the first release that are told more plainly now, as in a fresh install; before the views that copy them.
COMMENT ON COLUMN io_probe_cache_row.os_cached_bytes IS 'Bytes in the OS page cache; NULL on ZFS, which keeps a cache of its own';
COMMENT ON COLUMN io_probe_depth_row.engine IS 'How the reads were issued. pread: one at a time; io_uring, threads: several at a time';
COMMENT ON COLUMN io_probe_depth_row.from_device_pct IS 'Share of all fetches of the call that came from the device, in percent, as far as the kernel can tell';
COMMENT ON COLUMN io_probe_depth_row.fetches IS 'Blocks fetched at this depth; those that were never written (hole_blks) are counted, though they need no read';
COMMENT ON COLUMN io_probe_depth_row.ci_low_iops IS 'Lower end of the 95 % confidence interval of iops, over the twenty rounds in which the depths took turns; NULL where there were fewer';
COMMENT ON COLUMN io_probe_device_row.device IS 'Device that does the I/O: the disk below partitions, LVM and encryption (dm) and software RAID (md); one row for each';
COMMENT ON COLUMN io_probe_device_row.read_ahead_kb IS 'Readahead window in kB that reads through this file system use; a file that is open already keeps the one with which it was opened';
COMMENT ON COLUMN io_probe_device_row.nr_requests IS 'Most requests that the queue of the kernel holds';
COMMENT ON COLUMN io_probe_counters_row.read_ms IS 'Time in ms that all reads waited together; starts anew at 0 after 2^32';
COMMENT ON COLUMN io_probe_counters_row.write_ms IS 'Time in ms that all writes waited together; starts anew at 0 after 2^32';
COMMENT ON COLUMN io_probe_counters_row.discard_ms IS 'Time in ms that all discards waited together; starts anew at 0 after 2^32';
COMMENT ON COLUMN io_probe_counters_row.flush_ms IS 'Time in ms that all flushes waited together; starts anew at 0 after 2^32';
COMMENT ON COLUMN io_probe_counters_row.io_ms IS 'Time in ms with a request in flight; starts anew at 0 after 2^32';
COMMENT ON COLUMN io_probe_counters_row.weighted_io_ms IS 'Time in ms that all requests waited together; starts anew at 0 after 2^32';
COMMENT ON COLUMN io_probe_evict_row.complete IS 'Is nothing left in shared buffers, nor in the OS page cache?';
COMMENT ON COLUMN io_probe_iostat_row.util_pct IS 'Share of the interval with at least one request, in percent; may read up to 102, since the kernel''s clock ticks. A device that serves requests in parallel is not saturated at 100';
COMMENT ON COLUMN io_probe_iostat_row.io_pressure_full_pct IS 'Share in which all tasks that had work waited for I/O (full of /proc/pressure/io)';
COMMENT ON COLUMN io_probe_iostat_query_row.util_pct IS 'Share of the interval with at least one request, in percent; may read up to 102, since the kernel''s clock ticks. A device that serves requests in parallel is not saturated at 100';
COMMENT ON COLUMN io_probe_iostat_query_row.io_pressure_full_pct IS 'Share in which all tasks that had work waited for I/O (full of /proc/pressure/io)';
COMMENT ON COLUMN io_probe_page_cost_row.ci_low_us IS 'Lower end of the 95 % confidence interval of us_per_block; it takes three turns for device, six for the others';
COMMENT ON COLUMN io_probe_page_cost_row.resident_pct IS 'Share of the samples, in percent, that the OS cache held before: 0 or nearly so for device; NULL for shared and cpu';
COMMENT ON COLUMN io_probe_page_cost_row.notes IS 'What limits the figures, a sentence each';
COMMENT ON COLUMN io_probe_page_cost_row.turns IS 'How many turns this way to read had (all of them take turns of some milliseconds). Slow ones that are left out of the time are counted, too; of device the first is warm-up if there are more than three. In the row of the tuple, pairs of counts';
COMMENT ON COLUMN io_probe_random_row.device_source IS 'Whose account device_bytes is: backend (this process alone) or io_workers (from PostgreSQL 18 on: all that the I/O workers read, for other sessions too)';
COMMENT ON COLUMN io_probe_random_row.from_shared_pct IS 'Share of the fetches, in percent, that shared buffers (of a temporary table the session''s own buffers) served';
COMMENT ON COLUMN io_probe_random_series_row.from_shared_pct IS 'Share of the fetches, in percent, that shared buffers (of a temporary table the session''s own buffers) served';
COMMENT ON COLUMN io_probe_random_row.from_os_pct IS 'Share that the OS page cache served, in percent';
COMMENT ON COLUMN io_probe_random_series_row.from_os_pct IS 'Share that the OS page cache served, in percent';
COMMENT ON COLUMN io_probe_random_row.from_device_pct IS 'Share that came from the device, in percent, as far as the kernel can tell: what a cache in the drive, a RAID controller or a hypervisor served counts as the device''s';
COMMENT ON COLUMN io_probe_random_series_row.from_device_pct IS 'Share that came from the device, in percent';
COMMENT ON COLUMN io_probe_random_row.engine IS 'How the reads were issued. pread: one at a time; io_uring, threads: several at a time; on the server path how the server reads: ReadBuffer (one block a time), PrefetchBuffer or a read stream (some ahead), from PostgreSQL 18 on with its io_method';
COMMENT ON COLUMN io_probe_random_row.lat_avg_us IS 'Mean latency in microseconds, from issue to when the block is seen to be there; left out are warm-up, the requests that fill the queue, and those in flight while a further segment file of the relation was looked at; NULL where the server reads ahead';
COMMENT ON COLUMN io_probe_random_row.fetches IS 'Blocks fetched, warm-up included, each block at most once; blocks that were never written (hole_blks) are counted, though they need no read';
COMMENT ON COLUMN io_probe_random_row.cold IS 'Verified: no fetch was served by a cache, or (after cold => true) only by what this run''s own readahead had brought into the OS page cache. NULL if the kernel does not tell, or nothing held data';
COMMENT ON COLUMN io_probe_random_row.elapsed_ms IS 'Wall clock of the run in ms, pauses and looks at the caches included; what it took to evict, and to write dirty pages back before, is not';
COMMENT ON COLUMN io_probe_random_row.service_iops IS 'What one requester gets: fetches divided by the time spent in requests, as ioping''s other rate; times depth it is about iops';
COMMENT ON COLUMN io_probe_random_row.ci_low_iops IS 'Lower end of the 95 % confidence interval of iops, within this run; NULL for runs under 20 slices of 1 ms and under a rate limit';
COMMENT ON COLUMN io_probe_random_row.over_read IS 'device_bytes divided by the bytes of device_blks_read: over 1, the kernel read around the blocks that were asked for; under 1, it had parts of them';
COMMENT ON COLUMN io_probe_random_row.response_avg_us IS 'Under max_iops alone, at depth 1: mean time from when a fetch was due to its completion, which is more than its latency when it had to be issued late';
COMMENT ON COLUMN io_probe_random_row.response_p99_us IS 'Under max_iops alone, at depth 1: the response time that 99 % did not exceed';
COMMENT ON COLUMN io_probe_readahead_row.window_kb IS 'Readahead window in kB of 1,024 bytes, as in /sys/block/*/queue/read_ahead_kb';
COMMENT ON COLUMN io_probe_readahead_row.mode IS 'kernel: the setting in force, read through the OS page cache as it is; emulated: requests of one window past the page cache, the next one submitted while the present one is used, plus cache_us a block';
COMMENT ON COLUMN io_probe_readahead_row.ci_low_us IS 'Lower end of the 95 % confidence interval of us_per_block';
COMMENT ON COLUMN io_probe_readahead_row.ci_high_us IS 'Upper end of that interval';
COMMENT ON COLUMN io_probe_readahead_row.blks_read IS 'Blocks read in the turns that count';
COMMENT ON COLUMN io_probe_readahead_row.ios_per_block IS 'device_ios per block read';
COMMENT ON COLUMN io_probe_recommend_row.low IS 'Lowest value that is as good: within the noise, or, of page costs found by asking the planner, with plans that are slower by a hundredth at most; NULL for a setting without an order, or without figures';
COMMENT ON COLUMN io_probe_recommend_row.high IS 'Highest value that is as good, in the same sense';
COMMENT ON COLUMN io_probe_explain_row.predicted_device_ms IS 'The same if all that it read came from the device, in the order in which the node reaches its blocks. What was read took a time between the two, nearer to the one that served; io_read_ms is less where waiting overlaps with work (from PostgreSQL 18 on)';
COMMENT ON COLUMN io_probe_seqscan_row.device_source IS 'Whose account device_bytes is: backend (this process alone) or io_workers (from PostgreSQL 18 on: all that the I/O workers read, for other sessions too)';
COMMENT ON COLUMN io_probe_seqscan_row.us_per_block IS 'Microseconds per block: total time over total blocks. A run is timed in slices of 1 ms or more; if it has more than 20, the first is left out as warm-up';
COMMENT ON COLUMN io_probe_seqscan_row.from_shared_pct IS 'Share of the blocks, in percent, that shared buffers (of a temporary table the session''s own buffers) served';
COMMENT ON COLUMN io_probe_seqscan_row.from_os_pct IS 'Share that the OS page cache served, in percent';
COMMENT ON COLUMN io_probe_seqscan_row.from_device_pct IS 'Share that came from the device, in percent, as far as the kernel can tell: what a cache in the drive, a RAID controller or a hypervisor served counts as the device''s';
COMMENT ON COLUMN io_probe_seqscan_row.blks_scanned IS 'Blocks read, those included that were never written (hole_blks)';
COMMENT ON COLUMN io_probe_seqscan_row.elapsed_ms IS 'Wall clock of the scan in ms, pauses of a rate limit and blocks that were never written included; what it took to evict or to write back is not';
COMMENT ON COLUMN io_probe_seqscan_row.ci_low_us IS 'Lower end of the 95 % confidence interval of us_per_block, within this run; NULL for runs under 20 slices of 1 ms';
COMMENT ON COLUMN io_probe_seqscan_row.os_blks_cached IS 'Blocks of the range read that the OS page cache held before; those never written are left out';
COMMENT ON COLUMN io_probe_seqscan_row.engine IS 'How the reads were issued. pread: one at a time; io_uring, threads: several at a time; on the server path how the server reads: ReadBuffer (one block a time), or a read stream (several), from PostgreSQL 18 on with its io_method';
COMMENT ON COLUMN io_probe_sync_row.lat_p95_us IS '95 % took no longer; NULL with fewer than 200 operations';
COMMENT ON COLUMN io_probe_sync_row.lat_p99_us IS '99 % took no longer; NULL with fewer than 1,000 operations';
COMMENT ON COLUMN io_probe_sync_row.ci_low_us IS 'Lower end of the 95 % confidence interval of us_per_op, which covers how far turns differed; NULL with fewer than three turns of 0.1 s';
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

CREATE TABLE io_probe_runs (
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
    version           text,
    recorded_at       timestamp with time zone NOT NULL DEFAULT pg_catalog.now()
);

-- What tells series and configurations apart: 128 bits of the server's own hash. md5() fails where OpenSSL obeys FIPS 140, and
-- sha256() wants bytes, which no function that is immutable makes of a text.
DO $hashed$
DECLARE
    -- Arguments but for those that change nothing.
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
    EXECUTE pg_catalog.format('ALTER TABLE io_probe_runs ADD series text NOT NULL GENERATED ALWAYS AS (%s) STORED',
                              pg_catalog.format(hashed, series));
    EXECUTE pg_catalog.format('ALTER TABLE io_probe_runs ADD configuration text NOT NULL GENERATED ALWAYS AS (%s) STORED',
                              pg_catalog.format(hashed, configuration));
END
$hashed$;

CREATE INDEX io_probe_runs_started_at ON io_probe_runs (started_at);
-- The latest runs of each series, of each of its configurations, and of each label.
CREATE INDEX io_probe_runs_series ON io_probe_runs (series, started_at, id)
    WHERE status OPERATOR(pg_catalog.=) 'ok';
CREATE INDEX io_probe_runs_configuration ON io_probe_runs (series, configuration, started_at, id)
    WHERE status OPERATOR(pg_catalog.=) 'ok';
CREATE INDEX io_probe_runs_label ON io_probe_runs (label, series, started_at, id)
    WHERE status OPERATOR(pg_catalog.=) 'ok' AND label IS NOT NULL;

-- Without a reference to the runs: the server would look them up by the name of their schema, with their owner's rights.
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

COMMENT ON TABLE io_probe_runs IS 'One run of a probe: when, what, by whom, where, and under which circumstances. Written by io_probe_record and io_probe_import only';
COMMENT ON COLUMN io_probe_runs.id IS 'Number of the run';
COMMENT ON COLUMN io_probe_runs.started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_runs.elapsed_ms IS 'How long it took in ms, by the wall clock';
COMMENT ON COLUMN io_probe_runs.label IS 'What the caller called it, for io_probe_compare';
COMMENT ON COLUMN io_probe_runs.probe IS 'Probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_runs.object IS 'What was measured: schema.table; of sync wal or tablespace NAME; else what the probe looks at';
COMMENT ON COLUMN io_probe_runs.status IS 'ok; failed: the probe ended by an error; skipped: another probe was running, or the device was busier than pg_io_probe.max_busy_pct';
COMMENT ON COLUMN io_probe_runs.sqlstate IS 'SQLSTATE of that error';
COMMENT ON COLUMN io_probe_runs.message IS 'Its message';
COMMENT ON COLUMN io_probe_runs.args IS 'Arguments as they were given to io_probe_record, the relation left out';
COMMENT ON COLUMN io_probe_runs.rolname IS 'Role that ran the probe';
COMMENT ON COLUMN io_probe_runs.datname IS 'Database in which it ran';
COMMENT ON COLUMN io_probe_runs.relid IS 'Oid of the relation there; an oid, so that a dropped relation disturbs nothing';
COMMENT ON COLUMN io_probe_runs.relkind IS 'Its kind as in pg_class';
COMMENT ON COLUMN io_probe_runs.schemaname IS 'Its schema';
COMMENT ON COLUMN io_probe_runs.relname IS 'Its name';
COMMENT ON COLUMN io_probe_runs.rel_bytes IS 'Size of its main fork in bytes';
COMMENT ON COLUMN io_probe_runs.spcname IS 'Tablespace of what was measured';
COMMENT ON COLUMN io_probe_runs.device IS 'Devices below it, see io_probe_device';
COMMENT ON COLUMN io_probe_runs.model IS 'Their models';
COMMENT ON COLUMN io_probe_runs.leaves IS 'The settings of each of these devices: an array of {device, model, scheduler, read_ahead_kb, nr_requests, max_sectors_kb, rotational, write_cache}';
COMMENT ON COLUMN io_probe_runs.kernel IS 'Kernel: name and release';
COMMENT ON COLUMN io_probe_runs.server_version IS 'Version of the server';
COMMENT ON COLUMN io_probe_runs.in_recovery IS 'Was it a standby?';
COMMENT ON COLUMN io_probe_runs.cluster_name IS 'cluster_name of the server; NULL if it has none';
COMMENT ON COLUMN io_probe_runs.host IS 'Name of the machine';
COMMENT ON COLUMN io_probe_runs.system_identifier IS 'System identifier of the cluster: a standby has that of its primary';
COMMENT ON COLUMN io_probe_runs.settings IS 'Settings of the server and of pg_io_probe that bear on I/O, as SHOW prints them';
COMMENT ON COLUMN io_probe_runs.version IS 'Version of pg_io_probe that measured';
COMMENT ON COLUMN io_probe_runs.recorded_at IS 'When the run was stored here';
COMMENT ON COLUMN io_probe_runs.series IS 'Runs of the same series measure the same thing: probe, object, arguments without the seed and the option wait, database and cluster (of a standby: and machine)';
COMMENT ON COLUMN io_probe_runs.configuration IS 'Runs of the same configuration did so under the same kernel, server version, tablespace, device settings and server settings';
COMMENT ON SEQUENCE io_probe_runs_id_seq IS 'Numbers of the runs';
COMMENT ON TABLE io_probe_results IS 'The rows of the probes, as they returned them; the views io_probe_*_history show them with their types';
COMMENT ON COLUMN io_probe_results.run_id IS 'Run in io_probe_runs';
COMMENT ON COLUMN io_probe_results.ordinal IS 'Number of the row in the run, from 1';
COMMENT ON COLUMN io_probe_results.result IS 'The row; its keys are the columns of the probe';

-- The rows of each probe with their types. A view is made from the row type's attributes and takes over their comments; relid
-- is the run's oid, since the relation may be gone or in another cluster.
DO $history$
DECLARE
    probe  pg_catalog.text;
    type   pg_catalog.oid;
    view   pg_catalog.text;
    target pg_catalog.text;
    about  record;
BEGIN
    FOREACH probe IN ARRAY '{seqscan,random,random_series,depth,ping,sync,readahead,page_cost}'::pg_catalog.text[] LOOP
        view := pg_catalog.format('io_probe_%s_history', probe);
        type := pg_catalog.format('io_probe_%s_row', probe)::pg_catalog.regtype;
        SELECT pg_catalog.string_agg(pg_catalog.format(
                   CASE WHEN attname OPERATOR(pg_catalog.=) 'relid' THEN 'run.%1$I' ELSE 'line.%1$I' END, attname), ', ' ORDER BY attnum)
          INTO STRICT target
          FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_type ON typrelid OPERATOR(pg_catalog.=) attrelid
         WHERE pg_type.oid OPERATOR(pg_catalog.=) type AND attnum OPERATOR(pg_catalog.>) 0 AND NOT attisdropped;
        EXECUTE pg_catalog.format(
            'CREATE VIEW %1$I AS SELECT run.id AS run_id, run.started_at AS run_started_at, run.label, %2$s '
            'FROM io_probe_runs AS run JOIN io_probe_results AS result ON result.run_id OPERATOR(pg_catalog.=) run.id, '
            -- Rows of other probes need not fit, and may be read before they are left out.
            'LATERAL pg_catalog.jsonb_populate_record(NULL::%3$s, CASE WHEN run.probe OPERATOR(pg_catalog.=) %4$L '
            'THEN result.result OPERATOR(pg_catalog.-) ''relid''::pg_catalog.text END) AS line '
            'WHERE run.probe OPERATOR(pg_catalog.=) %4$L',
            view, target, type::pg_catalog.regtype, probe);
        FOR about IN
            SELECT attname, pg_catalog.col_description(attrelid, attnum) AS text
              FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_type ON typrelid OPERATOR(pg_catalog.=) attrelid
             WHERE pg_type.oid OPERATOR(pg_catalog.=) type AND attnum OPERATOR(pg_catalog.>) 0 AND NOT attisdropped
            UNION ALL VALUES ('run_id', 'Run in io_probe_runs'), ('run_started_at', 'When the probe was called'),
                             ('label', 'What the caller called the run')
        LOOP
            EXECUTE pg_catalog.format('COMMENT ON COLUMN %I.%I IS %L', view, about.attname, about.text);
        END LOOP;
        EXECUTE pg_catalog.format('COMMENT ON VIEW %I IS %L', view,
            pg_catalog.format('What io_probe_%s returned in the runs that are stored', probe));
        EXECUTE pg_catalog.format('GRANT SELECT ON %I TO pg_monitor', view);
    END LOOP;
END
$history$;

CREATE FUNCTION io_probe_measure(probe text, rel regclass DEFAULT NULL, args jsonb DEFAULT '{}')
RETURNS jsonb
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'io_probe_measure_wrapper';
COMMENT ON FUNCTION io_probe_measure(text, regclass, jsonb) IS 'Runs a probe (seqscan: io_probe_seqscan, and so on) with the caller''s rights and returns its rows and all circumstances as one value, which io_probe_import stores, here or on another server. args are its arguments by name. If storage or the server fails it, the status is failed, and if another probe is running, or the device is busier than pg_io_probe.max_busy_pct, skipped, each with a WARNING. Stores nothing: a standby will do';
REVOKE ALL ON FUNCTION io_probe_measure(text, regclass, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_import(result jsonb, label text DEFAULT NULL)
RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'io_probe_import_wrapper';
COMMENT ON FUNCTION io_probe_import(jsonb, text) IS 'Stores what io_probe_measure returned, here or on another server, and returns the number of the run';
REVOKE ALL ON FUNCTION io_probe_import(jsonb, text) FROM PUBLIC;

CREATE FUNCTION io_probe_record(probe text, rel regclass DEFAULT NULL, args jsonb DEFAULT '{}', label text DEFAULT NULL)
RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'io_probe_record_wrapper';
COMMENT ON FUNCTION io_probe_record(text, regclass, jsonb, text) IS 'Runs a probe as io_probe_measure does, stores the result and returns the number of the run. The caller needs EXECUTE on the probe and what that needs';
REVOKE ALL ON FUNCTION io_probe_record(text, regclass, jsonb, text) FROM PUBLIC;

CREATE FUNCTION io_probe_prune(keep interval)
RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'io_probe_prune_wrapper';
COMMENT ON FUNCTION io_probe_prune(interval) IS 'Deletes the runs that started longer ago than this, and returns how many they were';
REVOKE ALL ON FUNCTION io_probe_prune(interval) FROM PUBLIC;

-- Comparing.

CREATE TYPE io_probe_compare_row AS (
    probe     text,
    item      text,
    metric    text,
    unit      text,
    a         double precision,
    b         double precision,
    ratio     double precision,
    verdict   text,
    noise_pct double precision,
    runs      integer,
    a_setting text,
    b_setting text,
    object    text,
    notes     text[]
);
COMMENT ON TYPE io_probe_compare_row IS 'Row of io_probe_compare: one figure of both, or one setting that differs';
COMMENT ON COLUMN io_probe_compare_row.probe IS 'Probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_compare_row.item IS 'Which row of the probe, such as direct or depth 8';
COMMENT ON COLUMN io_probe_compare_row.metric IS 'Figure, as the probe''s column is called; or the setting that differs';
COMMENT ON COLUMN io_probe_compare_row.unit IS 'Unit of a and b';
COMMENT ON COLUMN io_probe_compare_row.a IS 'The figure in run_a; for a label the geometric mean of its runs';
COMMENT ON COLUMN io_probe_compare_row.b IS 'The figure in run_b';
COMMENT ON COLUMN io_probe_compare_row.ratio IS 'b divided by a';
COMMENT ON COLUMN io_probe_compare_row.verdict IS 'b against a: better, worse, same (within the noise) or unknown; NULL for a setting';
COMMENT ON COLUMN io_probe_compare_row.noise_pct IS 'A difference counts only if the greater of the two exceeds the smaller by more than so many percent of the smaller: the error within the runs, or the noise from run to run if that is larger; NULL if the noise is not known';
COMMENT ON COLUMN io_probe_compare_row.runs IS 'Earlier runs of the same series and configurations, from which the noise is known (of two labels, their own runs as well); with fewer than 10 nothing is decided';
COMMENT ON COLUMN io_probe_compare_row.a_setting IS 'The setting in run_a';
COMMENT ON COLUMN io_probe_compare_row.b_setting IS 'The setting in run_b';
COMMENT ON COLUMN io_probe_compare_row.object IS 'What was measured';
COMMENT ON COLUMN io_probe_compare_row.notes IS 'What limits the verdict, a sentence each';

CREATE FUNCTION io_probe_compare(run_a bigint, run_b bigint)
RETURNS SETOF io_probe_compare_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_compare_wrapper';
COMMENT ON FUNCTION io_probe_compare(bigint, bigint) IS 'Is run_b better or worse than run_a, beyond what runs of the same configuration differ anyway? A row for each figure, then one for each setting that differs';
REVOKE ALL ON FUNCTION io_probe_compare(bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_compare(bigint, bigint) TO pg_monitor;

CREATE FUNCTION io_probe_compare(label_a text, label_b text)
RETURNS SETOF io_probe_compare_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_compare_labels_wrapper';
COMMENT ON FUNCTION io_probe_compare(text, text) IS 'The same for all runs of two labels: each figure is the geometric mean of the label''s runs of a series, the latest 50, against the other''s of the same series; if that has none, of the same probe, object and arguments. What only one of the labels has is left out';
REVOKE ALL ON FUNCTION io_probe_compare(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_compare(text, text) TO pg_monitor;

CREATE TYPE io_probe_changes_row AS (
    probe     text,
    object    text,
    item      text,
    metric    text,
    unit      text,
    before    double precision,
    now       double precision,
    ratio     double precision,
    verdict   text,
    noise_pct double precision,
    runs      integer,
    since     timestamp with time zone,
    run_id    bigint
);
COMMENT ON TYPE io_probe_changes_row IS 'Row of io_probe_changes: one figure of one series';
COMMENT ON COLUMN io_probe_changes_row.probe IS 'Probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_changes_row.object IS 'What was measured';
COMMENT ON COLUMN io_probe_changes_row.item IS 'Which row of the probe, such as direct or depth 8';
COMMENT ON COLUMN io_probe_changes_row.metric IS 'Figure, as the probe''s column is called';
COMMENT ON COLUMN io_probe_changes_row.unit IS 'Unit of before and now';
COMMENT ON COLUMN io_probe_changes_row.before IS 'Geometric mean of the figure in up to 30 runs before the last ones';
COMMENT ON COLUMN io_probe_changes_row.now IS 'The same of the last runs';
COMMENT ON COLUMN io_probe_changes_row.ratio IS 'now divided by before';
COMMENT ON COLUMN io_probe_changes_row.verdict IS 'now against before: better, worse, same (within the noise) or unknown';
COMMENT ON COLUMN io_probe_changes_row.noise_pct IS 'A difference counts only if the greater of the two exceeds the smaller by more than so many percent of the smaller; NULL if the noise is not known';
COMMENT ON COLUMN io_probe_changes_row.runs IS 'Earlier runs of which before is the mean and from which the noise is known; with fewer than 10 nothing is decided';
COMMENT ON COLUMN io_probe_changes_row.since IS 'When the first of the last runs started';
COMMENT ON COLUMN io_probe_changes_row.run_id IS 'The last run';

CREATE FUNCTION io_probe_changes(last integer DEFAULT 1)
RETURNS SETOF io_probe_changes_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_changes_wrapper';
COMMENT ON FUNCTION io_probe_changes(integer) IS 'What moved by more than its noise: the last so many runs of each series against up to 30 before them';
REVOKE ALL ON FUNCTION io_probe_changes(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_changes(integer) TO pg_monitor;

-- Which figures of a probe's rows are compared: the column, its unit, whether more is better, and the ends of an interval, of
-- which only the width over the middle counts, so that a rate may have that of a time. Each OFFSET 0 has something computed
-- once for each row, not wherever it is used.
CREATE VIEW io_probe_metrics AS
SELECT run.id AS run_id, run.started_at, run.label, run.probe, run.object, figure.item, figure.metric, figure.unit, figure.value,
       figure.error, figure.more_is_better, run.series, run.configuration, figure.ordinal
FROM io_probe_runs AS run, LATERAL (
    SELECT line.item, figure.metric, figure.unit, figure.value,
           CASE WHEN (line.result OPERATOR(pg_catalog.->>) figure.low)::pg_catalog.float8 OPERATOR(pg_catalog.>) 0::pg_catalog.float8
                     AND (line.result OPERATOR(pg_catalog.->>) figure.high)::pg_catalog.float8
                         OPERATOR(pg_catalog.>=) (line.result OPERATOR(pg_catalog.->>) figure.low)::pg_catalog.float8
                     AND (line.result OPERATOR(pg_catalog.->>) figure.high)::pg_catalog.float8 OPERATOR(pg_catalog.<) '1e300'::pg_catalog.float8
                THEN ((line.result OPERATOR(pg_catalog.->>) figure.high)::pg_catalog.float8 OPERATOR(pg_catalog.-) (line.result OPERATOR(pg_catalog.->>) figure.low)::pg_catalog.float8)
                     OPERATOR(pg_catalog./) ((line.result OPERATOR(pg_catalog.->>) figure.high)::pg_catalog.float8 OPERATOR(pg_catalog.+) (line.result OPERATOR(pg_catalog.->>) figure.low)::pg_catalog.float8)
           END AS error,
           figure.more_is_better, line.ordinal
    FROM (VALUES
        ('seqscan',   'mib_per_s',    'MiB/s', true,  'ci_low_us',   'ci_high_us',   NULL,         NULL),
        ('random',    'iops',         '1/s',   true,  'ci_low_iops', 'ci_high_iops', 'lat_p50_us', 'lat_p99_us'),
        ('depth',     'iops',         '1/s',   true,  'ci_low_iops', 'ci_high_iops', NULL,         NULL),
        ('readahead', 'mib_per_s',    'MiB/s', true,  'ci_low_us',   'ci_high_us',   NULL,         NULL),
        ('sync',      'ops_per_s',    '1/s',   true,  'ci_low_us',   'ci_high_us',   'lat_p99_us', NULL),
        ('page_cost', 'us_per_block', 'us',    false, 'ci_low_us',   'ci_high_us',   NULL,         NULL)
    ) AS known (probe, metric, unit, more_is_better, low, high, latency, other_latency), LATERAL (
        SELECT line.ordinal, line.result,
               CASE known.probe
                   WHEN 'depth' THEN pg_catalog.concat('depth ', line.result OPERATOR(pg_catalog.->>) 'depth')
                   -- The window of the kernel is a setting, of which each run says what it was.
                   WHEN 'readahead' THEN CASE line.result OPERATOR(pg_catalog.->>) 'mode' WHEN 'kernel' THEN 'kernel'
                       ELSE pg_catalog.concat(line.result OPERATOR(pg_catalog.->>) 'mode', ' ', line.result OPERATOR(pg_catalog.->>) 'window_kb', ' kB') END
                   -- In the segment of the WAL a method is direct as the server has it, elsewhere it has a row for each.
                   WHEN 'sync' THEN pg_catalog.concat(line.result OPERATOR(pg_catalog.->>) 'section', ' ', line.result OPERATOR(pg_catalog.->>) 'method',
                       CASE WHEN (line.result OPERATOR(pg_catalog.->>) 'direct')::pg_catalog.bool AND line.result OPERATOR(pg_catalog.->>) 'section' OPERATOR(pg_catalog.<>) 'wal_segment'
                            THEN ' direct' END,
                       ' ' OPERATOR(pg_catalog.||) NULLIF(line.result OPERATOR(pg_catalog.->>) 'writes', '1') OPERATOR(pg_catalog.||) ' x',
                       ' ', line.result OPERATOR(pg_catalog.->>) 'write_kb', ' kB')
                   WHEN 'page_cost' THEN pg_catalog.concat(line.result OPERATOR(pg_catalog.->>) 'tier', ' ', line.result OPERATOR(pg_catalog.->>) 'pattern',
                       ' density ' OPERATOR(pg_catalog.||) (line.result OPERATOR(pg_catalog.->>) 'density'),
                       ' depth ' OPERATOR(pg_catalog.||) (line.result OPERATOR(pg_catalog.->>) 'depth'))
                   ELSE line.result OPERATOR(pg_catalog.->>) 'path'
               END AS item
        FROM io_probe_results AS line WHERE line.run_id OPERATOR(pg_catalog.=) run.id
        OFFSET 0
    ) AS line, LATERAL (
        SELECT column1 AS metric, column2 AS unit, column3 AS more_is_better, column4 AS low, column5 AS high,
               (line.result OPERATOR(pg_catalog.->>) column1)::pg_catalog.float8 AS value
        FROM (VALUES (known.metric, known.unit, known.more_is_better, known.low, known.high),
                     (known.latency, 'us', false, NULL, NULL), (known.other_latency, 'us', false, NULL, NULL)) AS each
        OFFSET 0
    ) AS figure
    WHERE known.probe OPERATOR(pg_catalog.=) run.probe
          AND figure.value OPERATOR(pg_catalog.>) '-Infinity'::pg_catalog.float8 AND figure.value OPERATOR(pg_catalog.<) 'Infinity'::pg_catalog.float8
    UNION ALL
    SELECT line.result OPERATOR(pg_catalog.->>) 'op', 'median_us', 'us',
           pg_catalog.percentile_cont(0.5) WITHIN GROUP (ORDER BY (line.result OPERATOR(pg_catalog.->>) 'time_us')::pg_catalog.float8),
           NULL::pg_catalog.float8, false, pg_catalog.min(line.ordinal)
    FROM io_probe_results AS line
    WHERE line.run_id OPERATOR(pg_catalog.=) run.id AND run.probe OPERATOR(pg_catalog.=) 'ping'
          AND (line.result OPERATOR(pg_catalog.->>) 'time_us')::pg_catalog.float8 OPERATOR(pg_catalog.>=) 0::pg_catalog.float8
          AND (line.result OPERATOR(pg_catalog.->>) 'time_us')::pg_catalog.float8 OPERATOR(pg_catalog.<) 'Infinity'::pg_catalog.float8
          AND NOT COALESCE((line.result OPERATOR(pg_catalog.->>) 'warmup')::pg_catalog.bool, false)
    GROUP BY 1
) AS figure
WHERE run.status OPERATOR(pg_catalog.=) 'ok' AND figure.item IS NOT NULL;
COMMENT ON VIEW io_probe_metrics IS 'The figures of stored runs that io_probe_compare, io_probe_changes and io_probe_latest are about, one a row';
COMMENT ON COLUMN io_probe_metrics.run_id IS 'Run in io_probe_runs';
COMMENT ON COLUMN io_probe_metrics.started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_metrics.label IS 'What the caller called the run';
COMMENT ON COLUMN io_probe_metrics.probe IS 'Probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_metrics.object IS 'What was measured';
COMMENT ON COLUMN io_probe_metrics.item IS 'Which row of the probe, such as direct or depth 8';
COMMENT ON COLUMN io_probe_metrics.metric IS 'Figure, as the probe''s column is called; of ping median_us, without the warm-up';
COMMENT ON COLUMN io_probe_metrics.unit IS 'Its unit';
COMMENT ON COLUMN io_probe_metrics.value IS 'Its value';
COMMENT ON COLUMN io_probe_metrics.error IS 'Half the width of its 95 % confidence interval within the run, divided by the middle of that interval; NULL without one';
COMMENT ON COLUMN io_probe_metrics.more_is_better IS 'Is a greater value better, as of a rate, or worse, as of a latency?';
COMMENT ON COLUMN io_probe_metrics.series IS 'Runs of the same series measure the same thing, see io_probe_runs';
COMMENT ON COLUMN io_probe_metrics.configuration IS 'Runs of the same configuration did so under the same circumstances, see io_probe_runs';
COMMENT ON COLUMN io_probe_metrics.ordinal IS 'Number of the row in the run, from 1';
GRANT SELECT ON io_probe_metrics TO pg_monitor;

-- From one series to the next by the index: that takes a step for each series, however many runs there are.
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
COMMENT ON VIEW io_probe_latest IS 'The latest figures of each series: of each probe, object and set of arguments, in each database and cluster';
COMMENT ON COLUMN io_probe_latest.probe IS 'Probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_latest.object IS 'What was measured';
COMMENT ON COLUMN io_probe_latest.item IS 'Which row of the probe, such as direct or depth 8';
COMMENT ON COLUMN io_probe_latest.metric IS 'Figure, as the probe''s column is called; of ping median_us, without the warm-up';
COMMENT ON COLUMN io_probe_latest.value IS 'Its value';
COMMENT ON COLUMN io_probe_latest.unit IS 'Its unit';
COMMENT ON COLUMN io_probe_latest.age IS 'How long ago the run started';
COMMENT ON COLUMN io_probe_latest.run_id IS 'Run in io_probe_runs';
COMMENT ON COLUMN io_probe_latest.label IS 'What the caller called the run';
COMMENT ON COLUMN io_probe_latest.datname IS 'Database in which it ran';
COMMENT ON COLUMN io_probe_latest.host IS 'Name of the machine';
GRANT SELECT ON io_probe_latest TO pg_monitor;

CREATE VIEW io_probe_changed AS
SELECT * FROM io_probe_changes(1) WHERE verdict OPERATOR(pg_catalog.=) ANY ('{better,worse}'::pg_catalog.text[]);
COMMENT ON VIEW io_probe_changed IS 'What moved by more than its noise: of io_probe_changes(1), which is about the last run of each series, the figures that are better or worse. Of a hundred that have not moved, a few are here all the same';
COMMENT ON COLUMN io_probe_changed.probe IS 'Probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_changed.object IS 'What was measured';
COMMENT ON COLUMN io_probe_changed.item IS 'Which row of the probe, such as direct or depth 8';
COMMENT ON COLUMN io_probe_changed.metric IS 'Figure, as the probe''s column is called';
COMMENT ON COLUMN io_probe_changed.unit IS 'Unit of before and now';
COMMENT ON COLUMN io_probe_changed.before IS 'Geometric mean of the figure in up to 30 runs before the last one';
COMMENT ON COLUMN io_probe_changed.now IS 'The figure in the last run';
COMMENT ON COLUMN io_probe_changed.ratio IS 'now divided by before';
COMMENT ON COLUMN io_probe_changed.verdict IS 'now against before: better or worse';
COMMENT ON COLUMN io_probe_changed.noise_pct IS 'A difference counts only if the greater of the two exceeds the smaller by more than so many percent of the smaller';
COMMENT ON COLUMN io_probe_changed.runs IS 'Earlier runs of which before is the mean and from which the noise is known';
COMMENT ON COLUMN io_probe_changed.since IS 'When the last run started';
COMMENT ON COLUMN io_probe_changed.run_id IS 'The last run';
GRANT SELECT ON io_probe_changed TO pg_monitor;
