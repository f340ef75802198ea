#!/usr/bin/env bash
# The section wal_segment of io_probe_sync beside the server's own account of its WAL. A pgbench commits rows one by
# one; the server counts its writes and syncs of WAL and the time in them (track_wal_io_timing: pg_stat_wal up to
# PostgreSQL 17, the client backends of pg_stat_io from 18 on). pgbench, for SECONDS_EACH (5), and the probe run in
# turn, PAIRS times (11).
#
# First table, one client: `theirs` is flushes per second of the time in writes and syncs, `ours` the ops_s of the
# row of one WAL block that says in_use, `ratio` the median of ours / theirs. `low` and `high` are the least and the
# greatest; with 6 pairs or more, the true median lies between them with more than 95 %. Under open_datasync and open_sync
# a write is its own sync. Goal: within 15 %. `tps` is what the client got, with all its work that is not WAL.
#
# Second table, group commit: the commits a second of 4 and 8 clients and how many shared a flush, beside depth 4 and 8.
# No goal: these clients also parse, plan, insert and wait for locks on 2 or more CPUs before they commit; ours do
# nothing but commit, so they queue up sooner.
#
# MEDIUM=ram puts the whole server on a loop device whose file lies in /dev/shm (2 GiB; root). PG (the oldest and the
# newest of the cache) names the versions: PG=15,18. METHODS (fdatasync open_datasync) are judged one after the other.

. "$(dirname "$0")/lib.sh"

PAIRS=${PAIRS:-11}
SECONDS_EACH=${SECONDS_EACH:-5}
METHODS=${METHODS:-fdatasync open_datasync}

# pgbench_and_account CLIENTS: prints tps, commits, flushes, and seconds spent on writing and syncing WAL.
pgbench_and_account() {
    local told tps commits
    sql -c "SELECT pg_stat_reset_shared('$account')" >/dev/null
    told=$(pgbench -n -M prepared -c "$1" -j "$(($1 < 2 ? 1 : 2))" -T "$SECONDS_EACH" -f "$script")
    tps=$(awk '/^tps/ { print $3 }' <<<"$told")
    commits=$(awk '/actually processed/ { print $NF }' <<<"$told")
    # A backend hands in its figures when it ends, and pgbench does not wait for that.
    until [ "$(sql -At -c "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'")" = 0 ]; do
        sleep 0.1
    done
    sql -At -F ' ' -c "SELECT $tps, $commits, * FROM flushes"
}

# judge METHOD: runs all rounds with one client.
judge() {
    local tps commits flushes seconds
    use "$1"
    for _ in $(seq "$PAIRS"); do
        read -r tps commits flushes seconds < <(pgbench_and_account 1)
        sql -c "INSERT INTO pair SELECT '$1', $flushes / $seconds, $tps, $commits / $flushes::float8,
                                        r.ops_s, r.direct
                FROM io_probe_sync_full(sections => '{wal_segment}', duration => '8 s') r
                WHERE r.in_use AND r.writes * r.write_kb * 1024 = current_setting('wal_block_size')::int
                  AND r.status = 'ok'"
    done
    [ "$(sql -At -c "SELECT count(*) FROM pair WHERE method = '$1'")" = "$PAIRS" ] ||
        give_up "not one row of $1 that is in use in each round"
}

# together CLIENTS: runs all rounds with clients that share flushes.
together() {
    local tps commits flushes seconds
    for _ in $(seq "$PAIRS"); do
        read -r tps commits flushes seconds < <(pgbench_and_account "$1")
        sql -c "INSERT INTO shared SELECT $1, $tps, $commits / $flushes::float8, r.ops_s, r.ops / r.flushes::float8
                FROM io_probe_sync_full(sections => '{wal_segment}', depth => $1, duration => '8 s') r
                WHERE r.in_use AND r.write_kb * 1024 = current_setting('wal_block_size')::int AND r.status = 'ok'"
    done
}

# use METHOD: makes it the server's wal_sync_method.
use() {
    sql -c "ALTER SYSTEM SET wal_sync_method = $1" -c 'SELECT pg_reload_conf()' >/dev/null
    sleep 0.5
    [ "$(sql -At -c 'SHOW wal_sync_method')" = "$1" ] || give_up "wal_sync_method is not $1"
}

# If no syncs are counted, the method's writes are its syncs.
create_account() {
    if [ "$PG_VERSION_NUM" -lt 180000 ]; then
        account=wal
        sql -c "CREATE VIEW flushes AS
                SELECT coalesce(nullif(wal_sync, 0), wal_write) AS flushes,
                       (wal_write_time + wal_sync_time) / 1000 AS seconds FROM pg_stat_wal"
    else
        account=io
        sql -c "CREATE VIEW flushes AS
                SELECT coalesce(nullif(fsyncs, 0), writes) AS flushes,
                       (write_time + coalesce(fsync_time, 0)) / 1000 AS seconds
                FROM pg_stat_io WHERE object = 'wal' AND context = 'normal' AND backend_type = 'client backend'"
    fi
}

print_tables() {
    sql -P footer=off -v server="$1" <<'SQL'
\echo
SELECT :'server' AS server, method, direct, count(*) AS n, round(ratio::numeric, 3) AS ratio,
       round(min(ours / theirs)::numeric, 3) AS low, round(max(ours / theirs)::numeric, 3) AS high,
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY ours)) AS ours,
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY theirs)) AS theirs,
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY tps)) AS tps,
       spread(array_agg(a_flush), 2) AS "commits/flush",
       CASE WHEN abs(ratio - 1) <= 0.15 THEN 'met'
            WHEN min(ours / theirs) > 1.15 OR max(ours / theirs) < 0.85 THEN 'MISSED' ELSE 'open' END AS verdict
FROM pair JOIN (SELECT method, percentile_cont(0.5) WITHIN GROUP (ORDER BY ours / theirs) AS ratio
                FROM pair GROUP BY method) medians USING (method)
GROUP BY method, direct, ratio ORDER BY method DESC;

SELECT :'server' AS server, committers, spread(array_agg(tps), 0) AS "pgbench, commits/s",
       spread(array_agg(a_flush), 2) AS "commits/flush", spread(array_agg(ours), 0) AS "ours, commits/s",
       spread(array_agg(our_flush), 2) AS "commits/flush"
FROM shared GROUP BY committers ORDER BY committers;
SQL
}

# judge_server PG_CONFIG MAJOR
judge_server() {
    local method committers
    install_extension "$1"
    [ "$MEDIUM" != ram ] || BENCH_DIR=/dev/shm make_device
    # Only the clients shall write WAL, and no segment shall be made anew meanwhile.
    CLUSTER_PARENT=${work:+$work/mount} start_bench_server "$1" 'track_wal_io_timing = on' 'checkpoint_timeout = 1h' \
        'wal_writer_delay = 10s' 'wal_writer_flush_after = 1GB' 'bgwriter_lru_maxpages = 0' 'min_wal_size = 512MB'
    create_account
    create_spread
    sql -c 'CREATE TABLE committed (id int)' \
        -c 'CREATE TABLE pair (method text, theirs float8, tps float8, a_flush float8, ours float8, direct bool)' \
        -c 'CREATE TABLE shared (committers int, tps float8, a_flush float8, ours float8, our_flush float8)'
    script=$TEST_TMP/script
    echo 'INSERT INTO committed VALUES (1);' >"$script"
    pgbench_and_account 1 >/dev/null
    for method in $METHODS; do
        judge "$method"
    done
    use "${METHODS%% *}"
    for committers in 4 8; do
        together "$committers"
    done
    print_tables "$2 $MEDIUM"
    clean_up
}

tools/deps.sh bench
MEDIUM=${MEDIUM:-disk}
trap clean_up EXIT
for major in $(majors); do
    judge_server "$cache/pg/$major/bin/pg_config" "$major"
done
