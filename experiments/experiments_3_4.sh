#!/usr/bin/env bash
# Experiments 3 and 4: random fetches of 8 kB with and without O_DIRECT, at four readahead settings and two limits of
# the request size, and what the device saw of them; then the seek-rate test, beside ioping. Prints the tables of
# the pages beside it.
#
# The table, of 94,393 blocks, is alone on a loop device (see prepare_experiment of bench/lib.sh, and there BENCH_DIR
# and PG). An iostat runs beside the fetches: what it counts must be what their rows say. REPEATS (5) is how often each
# is measured, SECONDS_EACH (3) how long each run of experiment 4 takes, PINGS (50) how many requests a run of pings has.

. "$(dirname "$0")/../bench/lib.sh"

REPEATS=${REPEATS:-5}
SECONDS_EACH=${SECONDS_EACH:-3}
PINGS=${PINGS:-50}
read_ahead_kbs=(0 128 1024 4096)

# --- experiment 3 ----------------------------------------------------------------------------------------------------

# fetch MAX_SECTORS_KB READ_AHEAD_KB PATH PERCENT: fetches this share of the table's blocks, which were cold.
fetch() {
    local blocks=$((94393 * $4 / 100)) reads kb spoiled
    echo "max_sectors_kb $1, read_ahead_kb $2, path $3, $4 % of the blocks" >&2
    set_queue "$1" "$2"
    start_iostat
    for _ in $(seq "$REPEATS"); do
        sql -c "INSERT INTO fetched SELECT $1, $4, *
                FROM io_probe_random_full('tbl_cost_align', paths => '{$3}', cold => true,
                                     options => '{\"max_bytes\": $((blocks * 8192))}')"
    done
    stop_iostat >"$work/counted"
    read -r reads kb <"$work/counted"
    sql -c "INSERT INTO iostat VALUES ($1, $2, '$3', $4, $reads, $kb)"
    spoiled=$(sql -At -c "SELECT * FROM fetched WHERE status <> 'ok' OR NOT cold OR hole_blks > 0
                          OR blks <> 94393 * share / 100")
    [ -z "$spoiled" ] || give_up "too few, not cold, or with holes: $spoiled"
}

# What reaches the device by our count, and by iostat's, which is also in percent of ours.
print_fetches() {
    sql -P footer=off <<'SQL'
\echo
\echo Experiment 3
SELECT path, share AS "% of blocks", max_sectors_kb, read_ahead_kb, spread(array_agg(iops), 0) AS iops,
       spread(array_agg(mib_s), 1) AS mib_s, spread(array_agg(ios_per_block), 3) AS ios_per_block,
       spread(array_agg(over_read), 3) AS over_read, spread(array_agg(rareq_kb), 1) AS rareq_kb,
       spread(array_agg(os_pct), 1) AS os_pct,
       round(i.reads / count(*)) AS iostat_reads, round((i.reads / sum(device_ios) * 100)::numeric, 2) AS "%",
       round(i.kb / count(*)) AS iostat_kb, round((i.kb / sum(device_bytes) * 1024 * 100)::numeric, 2) AS "%"
FROM fetched JOIN iostat i USING (path, max_sectors_kb, read_ahead_kb, share)
GROUP BY 1, 2, 3, 4, i.reads, i.kb ORDER BY 1, 2, 3, 4;
SQL
}

# --- experiment 4 ----------------------------------------------------------------------------------------------------

# ours NAME PATH COLD
ours() {
    sql -c "INSERT INTO seek
            SELECT '$1', 'io_probe_random', 1e6 / lat_us, iops, NULL, lat_us, max_us, NULL,
                   os_pct
            FROM io_probe_random_full('tbl_cost_align', paths => '{$2}', cold => $3, duration => '$SECONDS_EACH s')"
}

# theirs NAME OPTION…: stores ioping's raw statistics of random requests all over the file. By its manual they are:
# requests that count, ns in them, their rate, bytes/s, min, avg, max and mdev in ns; all requests, ns in all.
theirs() {
    local raw
    raw=$(as_server ioping -R -B -s 8k -S "$(stat -L -c %s "$segment")" -w "$SECONDS_EACH" "${@:2}" "$segment")
    read -ra raw <<<"$raw"
    sql -c "INSERT INTO seek VALUES ('$1', 'ioping', ${raw[2]}, ${raw[8]} / (${raw[9]} / 1e9), ${raw[4]} / 1e3,
                                     ${raw[5]} / 1e3, ${raw[6]} / 1e3, ${raw[7]} / 1e3, NULL)"
}

# Fills the OS cache by a scan with readahead: the kernel then keeps many pages as one.
scan_through_cache() {
    evict_segment
    cat "$segment" >/dev/null
    expect_cached 99 100
}

seek_rates() {
    for _ in $(seq "$REPEATS"); do
        evict_segment
        ours 'direct' direct false
        theirs 'direct' -D
        ours 'buffered, cold' os true
        evict_segment
        theirs 'buffered, cold'
        scan_through_cache
        ours 'buffered, after a scan' os true
        scan_through_cache
        theirs 'buffered, after a scan'
    done
    sql -P footer=off <<'SQL'
\echo Experiment 4, the seek rate; times in us
SELECT how, tool, spread(array_agg(service_iops), 0) AS "1 / mean time",
       spread(array_agg(iops), 0) AS "by the wall clock", spread(array_agg(min_us), 1) AS min,
       spread(array_agg(avg_us), 1) AS avg, spread(array_agg(max_us), 0) AS max,
       spread(array_agg(mdev_us), 1) AS mdev, spread(array_agg(os_pct), 1) AS os_pct
FROM seek GROUP BY how, tool ORDER BY how DESC, tool;
SQL
}

# ping_ours NAME MODE PATH: stores PINGS requests of io_probe_ping, one every 20 ms.
ping_ours() {
    sql -c "INSERT INTO ping SELECT '$1', 'io_probe_ping', request, op, warmup, lat_us
            FROM io_probe_ping_full('tbl_cost_align', count => $PINGS, every => '20 ms', mode => '$2', path => '$3')"
}

# ping_theirs NAME TARGET OPTION…: the same by ioping. In a directory, ioping uses a file of its own, of 1 MiB.
ping_theirs() {
    local told
    told=$(as_server ioping -J -s 8k -c "$PINGS" -i 0.02 "${@:3}" "$2")
    sql -v name="$1" -v tool="ioping ${*:3}" -v told="$told" <<'SQL'
INSERT INTO ping
SELECT :'name', :'tool', (io ->> 'request')::int, io ->> 'operation', (io ->> 'ignored')::bool,
       (io ->> 'time')::float8 / 1000
FROM json_array_elements(:'told') line, LATERAL (SELECT line -> 'io') as_told (io)
WHERE io IS NOT NULL;
SQL
}

# With -C, ioping does not sync what it has written, like ours. Without -C, its times include the sync.
pings() {
    local directory=$work/mount/tablespace
    evict_segment
    ping_ours 'direct' read direct
    ping_theirs 'direct' "$segment" -D
    ping_ours 'direct, ping-pong' pingpong direct
    ping_theirs 'direct, ping-pong' "$directory" -D -C -G
    ping_theirs 'direct, ping-pong' "$directory" -D -G
    scan_through_cache
    ping_ours 'cached' read os
    ping_theirs 'cached' "$segment" -C
    ping_ours 'cached, ping-pong' pingpong os
    ping_theirs 'cached, ping-pong' "$directory" -C -G
    sql -P footer=off <<'SQL'
\echo Experiment 4, request by request; times in us
SELECT how, tool, op, count(*) FILTER (WHERE NOT warmup) AS requests,
       round(max(lat_us) FILTER (WHERE warmup)::numeric, 1) AS "warm-up",
       round(min(lat_us) FILTER (WHERE NOT warmup)::numeric, 1) AS min,
       round(avg(lat_us) FILTER (WHERE NOT warmup)::numeric, 1) AS avg,
       round(max(lat_us) FILTER (WHERE NOT warmup)::numeric, 1) AS max,
       round(stddev_pop(lat_us) FILTER (WHERE NOT warmup)::numeric, 1) AS mdev
FROM ping GROUP BY how, tool, op ORDER BY how, op, tool;
SQL
}

# Why random_page_cost is above seq_page_cost: the time of a block at random, and of a block in sequence.
print_ratios() {
    for _ in $(seq "$REPEATS"); do
        sql -c "INSERT INTO page
                SELECT r.path, r.lat_us, s.block_us
                FROM io_probe_random_full('tbl_cost_align', paths => '{direct,os}', cold => true,
                                     duration => '$((2 * SECONDS_EACH)) s') r
                JOIN io_probe_seqscan_full('tbl_cost_align', paths => '{direct,os}', cold => true) s USING (path)"
    done
    sql -P footer=off <<'SQL'
\echo Experiment 4, a block at random and a block in sequence, us
SELECT path, spread(array_agg(random), 1) AS random, spread(array_agg(sequential), 2) AS sequential,
       spread(array_agg(random / sequential), 1) AS ratio
FROM page GROUP BY path ORDER BY path;
SQL
}

trap clean_up EXIT
prepare_experiment
sql <<'SQL'
CREATE TABLE fetched AS
SELECT 0 AS max_sectors_kb, 0 AS share, r.* FROM io_probe_random_full('tbl_cost_align') r WITH NO DATA;
CREATE TABLE iostat (max_sectors_kb int, read_ahead_kb int, path text, share int, reads float8, kb float8);
CREATE TABLE seek (how text, tool text, service_iops float8, iops float8, min_us float8, avg_us float8, max_us float8,
                   mdev_us float8, os_pct float8);
CREATE TABLE ping (how text, tool text, request int, op text, warmup bool, lat_us float8);
CREATE TABLE page (path text, random float8, sequential float8);
SQL
echo "$("$pg_config" --version), Linux $(uname -r), medians (least-greatest) of $REPEATS"

for max_sectors_kb in 4 "$max_sectors_kb_before"; do
    for read_ahead_kb in "${read_ahead_kbs[@]}"; do
        fetch "$max_sectors_kb" "$read_ahead_kb" direct 10
        for share in 2 10 50; do
            fetch "$max_sectors_kb" "$read_ahead_kb" os "$share"
        done
    done
done
print_fetches

# Most devices come with a readahead of 128 kB; a loop device has more.
set_queue "$max_sectors_kb_before" 128
seek_rates
pings
print_ratios
