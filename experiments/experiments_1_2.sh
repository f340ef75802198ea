#!/usr/bin/env bash
# Experiments 1 and 2: a cold sequential scan of 94,393 blocks at eight readahead settings and two limits of the request
# size, and what the device saw of it. Prints the tables of the pages beside it.
#
# The table is alone on a loop device (see prepare_experiment of bench/lib.sh, and there BENCH_DIR and PG). An iostat
# runs beside the scans: what it counts must be what the scans' rows say. REPEATS (5) is how often each is measured.

. "$(dirname "$0")/../bench/lib.sh"

REPEATS=${REPEATS:-5}
read_ahead_kbs=(0 16 64 128 256 512 1024 4096)
max_sectors_kbs=(128 512)

# measure MAX_SECTORS_KB READ_AHEAD_KB
measure() {
    local path reads kb spoiled
    echo "max_sectors_kb $1, read_ahead_kb $2" >&2
    set_queue "$1" "$2"
    # A descriptor keeps the readahead with which it was opened, and the server's were opened before.
    (cd / && as_server pg_ctl restart -w -l "$cluster/log") >/dev/null
    for path in os server; do
        start_iostat
        for _ in $(seq "$REPEATS"); do
            sql -c "INSERT INTO scan SELECT $1, *
                    FROM io_probe_seqscan_full('tbl_cost_align', paths => '{$path}', cold => true)"
        done
        stop_iostat >"$work/counted"
        read -r reads kb <"$work/counted"
        sql -c "INSERT INTO iostat VALUES ($1, $2, '$path', $reads, $kb)"
    done
    spoiled=$(sql -At -c "SELECT * FROM scan WHERE status <> 'ok' OR NOT complete OR NOT cold OR hole_blks > 0")
    [ -z "$spoiled" ] || give_up "not whole, not cold, or with holes: $spoiled"
    done_by_hand "$@"
}

# Times the query of experiment 1 by EXPLAIN, as was done before there was a probe.
done_by_hand() {
    local plan
    for _ in $(seq "$REPEATS"); do
        evict_segment
        plan=$(sql -At -c 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM tbl_cost_align')
        sql -v max_sectors_kb="$1" -v read_ahead_kb="$2" -v plan="$plan" <<'SQL'
INSERT INTO query
SELECT :max_sectors_kb, :read_ahead_kb, (p #>> '{0,Execution Time}')::float8,
       (p #>> '{0,Plan,Shared Hit Blocks}')::int, (p #>> '{0,Plan,Shared Read Blocks}')::int
FROM (VALUES (:'plan'::json)) plan (p)
SQL
    done
}

# Experiment 1, at the larger limit of the request size.
print_times() {
    sql -P footer=off <<'SQL'
\echo
\echo Experiment 1, times in ms
SELECT read_ahead_kb, s.os, s.server, spread(array_agg(ms), 0) AS "SELECT *",
       max(hit) AS "shared hit", min(read) AS read
FROM query JOIN (
    SELECT max_sectors_kb, read_ahead_kb, spread(array_agg(elapsed_ms) FILTER (WHERE path = 'os'), 0) AS os,
           spread(array_agg(elapsed_ms) FILTER (WHERE path = 'server'), 0) AS server
    FROM scan GROUP BY 1, 2
) s USING (max_sectors_kb, read_ahead_kb)
WHERE max_sectors_kb = (SELECT max(max_sectors_kb) FROM scan)
GROUP BY 1, 2, 3 ORDER BY 1;
SQL
}

# print_requests PATH: what the device saw of a scan by our count, and by iostat's, which is also in percent of ours.
print_requests() {
    sql -P footer=off -v path="$1" <<'SQL'
\echo Experiment 2, path :path
SELECT max_sectors_kb, read_ahead_kb, spread(array_agg(elapsed_ms), 0) AS elapsed_ms,
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY mib_s)) AS mib_s,
       spread(array_agg(block_us), 2) AS block_us, spread(array_agg(ios_per_block), 3) AS ios_per_block,
       spread(array_agg(rareq_kb), 1) AS rareq_kb, spread(array_agg(aqu_sz), 2) AS aqu_sz,
       spread(array_agg(r_await_ms), 2) AS r_await_ms,
       round(i.reads / count(*)) AS iostat_reads, round((i.reads / sum(device_ios) * 100)::numeric, 2) AS "%",
       round(i.kb / count(*)) AS iostat_kb, round((i.kb / sum(device_bytes) * 1024 * 100)::numeric, 2) AS "%"
FROM scan JOIN iostat i USING (path, max_sectors_kb, read_ahead_kb)
WHERE path = :'path' GROUP BY 1, 2, i.reads, i.kb ORDER BY 1, 2;
SQL
}

trap clean_up EXIT
prepare_experiment
sql <<'SQL'
CREATE TABLE scan AS SELECT 0 AS max_sectors_kb, s.* FROM io_probe_seqscan_full('tbl_cost_align') s WITH NO DATA;
CREATE TABLE iostat (max_sectors_kb int, read_ahead_kb int, path text, reads float8, kb float8);
CREATE TABLE query (max_sectors_kb int, read_ahead_kb int, ms float8, hit int, read int);
SQL

for max_sectors_kb in "${max_sectors_kbs[@]}"; do
    for read_ahead_kb in "${read_ahead_kbs[@]}"; do
        measure "$max_sectors_kb" "$read_ahead_kb"
    done
done
echo "$("$pg_config" --version), Linux $(uname -r), medians (least-greatest) of $REPEATS"
print_times
print_requests os
print_requests server
