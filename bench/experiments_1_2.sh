#!/usr/bin/env bash
# Experiments 1 and 2: a cold sequential scan of 94,393 blocks at eight readahead settings and two limits of the request
# size, and what the device saw of it. Prints the tables of docs/experiments/.
#
# The device is a loop device with an ext4 of its own, which holds nothing but the table and which nobody else reads;
# it reads its file by O_DIRECT, so that the host's cache does not serve it. An iostat runs beside the scans: what it
# counts must be what the scans' rows say.
#
# Root only, for the device and its settings. BENCH_DIR (/var/tmp) is where its 2 GiB go, REPEATS (5) how often each
# scan is measured, PG (the newest) the version of PostgreSQL in the cache.

. "$(dirname "$0")/lib.sh"

REPEATS=${REPEATS:-5}
read_ahead_kbs=(0 16 64 128 256 512 1024 4096)
max_sectors_kbs=(128 512)

[ "$(id -u)" = 0 ] || give_up "$0 makes a loop device: run it as root"
tools/deps.sh bench
pg_config=$(pg_configs | tail -n 1)
[ -z "${PG:-}" ] || pg_config=$cache/pg/$PG/bin/pg_config

work=$(mktemp -d "${BENCH_DIR:-/var/tmp}/pg_io_probe.XXXXXX")
loop="" saved=()
trap clean_up EXIT
# Queue limits outlive the device: the next one of this name would have them.
clean_up() {
    stop_iostat >/dev/null
    stop_cluster
    ! mountpoint -q "$work/mount" || umount "$work/mount"
    if [ -n "$loop" ]; then
        [ ${#saved[@]} = 0 ] || set_queue "${saved[@]}" || true
        losetup --detach "$loop"
    fi
    rm -rf "$work"
}

make_device() {
    fallocate -l 2G "$work/disk"
    loop=$(losetup --find --show --direct-io=on "$work/disk")
    [ "$(losetup --noheadings --output DIO "$loop" | tr -d ' ')" = 1 ] ||
        give_up "the file system of $work has no O_DIRECT for loop devices: name another directory by BENCH_DIR"
    device=${loop#/dev/}
    saved=("$(<"/sys/block/$device/queue/max_sectors_kb")" "$(<"/sys/block/$device/queue/read_ahead_kb")")
    # What mkfs leaves for later, the kernel would write while we measure.
    mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$loop"
    mkdir "$work/mount"
    mount -o noatime "$loop" "$work/mount"
    mkdir "$work/mount/tablespace"
    chmod 755 "$work"
    chown "$server_user" "$work/mount/tablespace"
}

# set_queue MAX_SECTORS_KB READ_AHEAD_KB
set_queue() {
    echo "$1" >"/sys/block/$device/queue/max_sectors_kb"
    echo "$2" >"/sys/block/$device/queue/read_ahead_kb"
}

start_iostat() {
    LC_ALL=C iostat -dxky "$device" 1 >"$work/iostat" &
    iostat=$!
    sleep 0.5
}

# Prints the reads and the kB that it has counted: the sums of its rates, each over one second.
stop_iostat() {
    [ -n "${iostat:-}" ] || return 0
    sleep 1.5
    kill "$iostat"
    wait "$iostat" || true
    iostat=
    awk -v device="$device" '$1 == device { reads += $2; kb += $3 } END { print reads + 0, kb + 0 }' "$work/iostat"
}

# measure MAX_SECTORS_KB READ_AHEAD_KB
measure() {
    local path reads kb spoiled
    echo "max_sectors_kb $1, read_ahead_kb $2" >&2
    set_queue "$1" "$2"
    # A descriptor keeps the readahead of the moment when it was opened, and the server's are old.
    (cd / && as_server pg_ctl restart -w -l "$cluster/log") >/dev/null
    for path in os server; do
        start_iostat
        for _ in $(seq "$REPEATS"); do
            sql -c "INSERT INTO scan SELECT $1, *
                    FROM io_probe_seqscan('tbl_cost_align', paths => '{$path}', cold => true)"
        done
        stop_iostat >"$work/counted"
        read -r reads kb <"$work/counted"
        sql -c "INSERT INTO iostat VALUES ($1, $2, '$path', $reads, $kb)"
    done
    spoiled=$(sql -At -c "SELECT * FROM scan WHERE status <> 'ok' OR NOT complete OR NOT cold OR hole_blks > 0")
    [ -z "$spoiled" ] || give_up "not whole, not cold, or with holes: $spoiled"
    done_by_hand "$@"
}

# The query of experiment 1, as it was timed before there was a probe.
done_by_hand() {
    local plan
    for _ in $(seq "$REPEATS"); do
        sql -c "SELECT FROM io_probe_evict('tbl_cost_align')" >/dev/null
        expect_cached 0 0
        plan=$(sql -At -c 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM tbl_cost_align')
        sql -v max_sectors_kb="$1" -v read_ahead_kb="$2" -v plan="$plan" <<'SQL'
INSERT INTO query
SELECT :max_sectors_kb, :read_ahead_kb, (p #>> '{0,Execution Time}')::float8,
       (p #>> '{0,Plan,Shared Hit Blocks}')::int, (p #>> '{0,Plan,Shared Read Blocks}')::int
FROM (VALUES (:'plan'::json)) plan (p)
SQL
    done
}

# Experiment 1, with requests as large as may be.
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

# print_requests PATH: what the device saw of a scan, and what iostat says of the same, in percent of ours too.
print_requests() {
    sql -P footer=off -v path="$1" <<'SQL'
\echo Experiment 2, path :path
SELECT max_sectors_kb, read_ahead_kb, spread(array_agg(elapsed_ms), 0) AS elapsed_ms,
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY mib_per_s)) AS mib_per_s,
       spread(array_agg(us_per_block), 2) AS us_per_block, spread(array_agg(ios_per_block), 3) AS ios_per_block,
       spread(array_agg(rareq_kb), 1) AS rareq_kb, spread(array_agg(aqu_sz), 2) AS aqu_sz,
       spread(array_agg(r_await_ms), 2) AS r_await_ms,
       round(i.reads / count(*)) AS iostat_reads, round((i.reads / sum(device_ios) * 100)::numeric, 2) AS "%",
       round(i.kb / count(*)) AS iostat_kb, round((i.kb / sum(device_bytes) * 1024 * 100)::numeric, 2) AS "%"
FROM scan JOIN iostat i USING (path, max_sectors_kb, read_ahead_kb)
WHERE path = :'path' GROUP BY 1, 2, i.reads, i.kb ORDER BY 1, 2;
SQL
}

make_device
install_extension "$pg_config"
start_bench_server "$pg_config"
sql -c "CREATE TABLESPACE experiment LOCATION '$work/mount/tablespace'"
PGOPTIONS='-c default_tablespace=experiment' load_segment
sql <<'SQL'
CREATE TABLE scan AS SELECT 0 AS max_sectors_kb, s.* FROM io_probe_seqscan('tbl_cost_align') s WITH NO DATA;
CREATE TABLE iostat (max_sectors_kb int, read_ahead_kb int, path text, reads float8, kb float8);
CREATE TABLE query (max_sectors_kb int, read_ahead_kb int, ms float8, hit int, read int);
-- The median, and from the least to the greatest.
CREATE FUNCTION spread(numbers float8[], digits int) RETURNS text
RETURN (SELECT round(percentile_cont(0.5) WITHIN GROUP (ORDER BY n)::numeric, digits)
            || CASE WHEN round(max(n)::numeric, digits) > round(min(n)::numeric, digits)
                    THEN format(' (%s-%s)', round(min(n)::numeric, digits), round(max(n)::numeric, digits)) ELSE '' END
        FROM unnest(numbers) n);
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
