#!/usr/bin/env bash
# io_probe_sync side by side with pg_test_fsync, in one and the same directory: sync_vs_pg_test_fsync.py says how, and what its
# lines mean. MEDIUM says where:
#   disk   in pg_wal of a server in /var/tmp
#   ram    in a tablespace on a loop device whose file lies in /dev/shm: no disk that drifts, so even small
#          differences show. It takes 2 GiB of memory, and root
# both of them unless it is set, ram only for root. PG (the oldest and the newest of the cache) names the versions of
# PostgreSQL: PG=15,18. PAIRS and SECONDS_EACH are passed on.

. "$(dirname "$0")/lib.sh"

# judge PG_CONFIG MEDIUM
judge() {
    local directory tablespace=() pg_test_fsync
    pg_test_fsync=$("$1" --bindir)/pg_test_fsync
    # Not each of the ready built ones has it, and it does the same in all of them.
    [ -x "$pg_test_fsync" ] || pg_test_fsync=$cache/pg/15/bin/pg_test_fsync
    [ "$2" != ram ] || BENCH_DIR=/dev/shm make_device
    # In memory, what a row may write by default is written in less than a second.
    start_bench_server "$1" 'pg_io_probe.max_bytes = 1TB' 'pg_io_probe.default_max_bytes = 1TB'
    directory=$PGDATA/pg_wal
    if [ "$2" = ram ]; then
        sql -c "CREATE TABLESPACE judged LOCATION '$work/mount/tablespace'"
        directory=$(echo "$work"/mount/tablespace/PG_*)
        tablespace=(judged)
    fi
    # What initdb and the installation have left to write must not be written meanwhile.
    sync
    MEDIUM=$2 bench/sync_vs_pg_test_fsync.py "$pg_test_fsync" "$directory" "${tablespace[@]}"
    clean_up
}

tools/deps.sh bench
trap clean_up EXIT
if [ -z "${MEDIUM:-}" ]; then
    MEDIUM=disk
    [ "$(id -u)" != 0 ] || MEDIUM=disk,ram
fi
for major in $(majors); do
    pg_config=$cache/pg/$major/bin/pg_config
    install_extension "$pg_config"
    for medium in ${MEDIUM//,/ }; do
        judge "$pg_config" "$medium"
    done
done
