#!/usr/bin/env bash
# io_probe_readahead's emulated windows beside the kernel's own: readahead_vs_kernel.py says how, and what its lines mean.
# For root, which sets the kernel's windows and puts them back. MEDIUM says where the table of 256 MiB lies (all three):
#   disk     in a server in /var/tmp (BENCH_DIR), on the disk behind it
#   loop     on a loop device that reads its file, in that directory too, by O_DIRECT
#   cached   on a loop device whose file is in the host's cache
# CALIBRATE_AT is the kernel's setting while io_probe_readahead runs: by default 128, and on the disk also own, the setting
# that it had before. Several are judged in turn: CALIBRATE_AT=128,own. PG (the newest of the cache) names
# the versions of PostgreSQL. PAIRS, WINDOWS, SECONDS_EACH and JSON (a file, for all figures) are passed on.

. "$(dirname "$0")/lib.sh"

disk_windows=()

# keep_windows: remembers the readahead windows of the disks behind pg_default; sets devices.
keep_windows() {
    local name
    devices=$(sql -At -c "SELECT string_agg(DISTINCT device, ' ') FROM io_probe_device_full()
                          WHERE object = 'tablespace' AND spcname = 'pg_default'")
    for name in $devices; do
        disk_windows+=("$name $(<"/sys/block/$name/queue/read_ahead_kb")")
    done
}

put_back() {
    local kept
    for kept in "${disk_windows[@]}"; do
        echo "${kept#* }" >"/sys/block/${kept% *}/queue/read_ahead_kb" || true
    done
    disk_windows=()
    clean_up
}

# Loads a row a block, 32,768 blocks. VACUUM FULL leaves them synced, in one piece, and not in shared buffers.
load_blocks() {
    sql -c "CREATE TABLE tbl (id int, filler text)" \
        -c "ALTER TABLE tbl ALTER filler SET STORAGE PLAIN" \
        -c "INSERT INTO tbl SELECT g, repeat('x', 8000) FROM generate_series(1, 32768) g" \
        -c 'VACUUM FULL tbl' -c 'CHECKPOINT'
    sync
}

# judge MEDIUM CALIBRATE_AT…
judge() {
    local medium=$1 at own=
    shift
    if [ "$medium" = disk ]; then
        start_bench_server "$pg_config"
        load_blocks
        keep_windows
        own=$(<"/sys/block/${devices%% *}/queue/read_ahead_kb")
    else
        direct_io=$([ "$medium" = cached ] && echo off || echo on)
        make_device
        start_bench_server "$pg_config"
        sql -c "CREATE TABLESPACE judged LOCATION '$work/mount/tablespace'"
        PGOPTIONS='-c default_tablespace=judged' load_blocks
        devices=$device
        # The limits of the last device of this name are still in force.
        set_queue "${MAX_SECTORS_KB:-1280}" 128
        own=128
    fi
    for at in "$@"; do
        [ "$at" != own ] || at=$own
        BACKING="$([ "$medium" != cached ] || echo "$work/disk")" MEDIUM=$medium \
            bench/readahead_vs_kernel.py "$at" "$devices"
    done
    put_back
}

[ "$(id -u)" = 0 ] || give_up "$0 sets the kernel's readahead: run it as root"
tools/deps.sh bench
trap put_back EXIT
if [ -z "${PG:-}" ]; then
    PG=$(pg_configs | sed -n '$s|.*/\([0-9]*\)/bin/pg_config|\1|p')
fi
MEDIUM=${MEDIUM:-disk,loop,cached}
[ -z "${BENCH_DIR:-}" ] || export CLUSTER_PARENT=$BENCH_DIR
for major in ${PG//,/ }; do
    pg_config=$cache/pg/$major/bin/pg_config
    install_extension "$pg_config"
    for medium in ${MEDIUM//,/ }; do
        settings=${CALIBRATE_AT:-128}
        [ -n "${CALIBRATE_AT:-}" ] || [ "$medium" != disk ] || settings=128,own
        read -ra settings <<<"${settings//,/ }"
        judge "$medium" "${settings[@]}"
    done
done
