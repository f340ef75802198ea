#!/usr/bin/env bash
# run.sh [NAME [ARGUMENT…]]: starts servers, and bench/NAME.py on each; without a name all of them, one after the other.
# NAME.py says what it does, what its lines mean, and which variables it takes. PG (the oldest and the newest of the
# cache) names the versions of PostgreSQL: PG=15,18. BENCH_DIR as in lib.sh. What needs a loop device needs root.
#
#   advice_on_any_disk       what following io_probe_recommend gains, on made-up devices: as root, an hour
#   history_verdicts         io_probe_compare of equal and of different runs, on a loop device
#   io_method                advice on io_method and io_workers beside what a server takes that is restarted with each: from 18 on
#   iostat_vs_sysstat        io_probe_iostat beside iostat -x, on a loop device
#   map_and_pgbench          the map of io_probe_mix beside what pgbench suffers, on a made-up device: as root, half an hour
#   mix_and_fio              reads and writes at once, and writes alone, beside fio: on the disk and on made-up devices
#   pgbench_beside_probes    what a limited probe costs a pgbench beside it
#   planning_cost            what the library costs where it is loaded and no correlation is kept
#   probes_on_any_disk       each probe beside fio, on made-up devices of known timing: as root, an hour and a half
#   random_vs_fio            random fetches beside fio and ioping
#   sync_vs_pg_test_fsync    io_probe_sync beside pg_test_fsync, in pg_wal (MEDIUM=disk) and on a loop device in
#                            memory (MEDIUM=ram, which takes 2 GiB): by default both, or without root the first
#   what_probes_cost         time, I/O, memory and locks of each probe. It wants an idle machine and 3 GiB of disk
#   who_served_tpch          io_probe_explain of the queries of TPC-H beside what a loop device has counted

. "$(dirname "$0")/lib.sh"

advice_on_any_disk() {
    start_bench_server "$pg_config"
    CARGO_TARGET_DIR=$cache/target bench/advice_on_any_disk.py "$@"
}

history_verdicts() {
    prepare_device
    bench/history_verdicts.py "$device"
}

io_method() {
    start_bench_server "$pg_config"
    CARGO_TARGET_DIR=$cache/target bench/io_method.py "$@"
}

iostat_vs_sysstat() {
    # What is left at the end of the device is for discards.
    file_system_size=1536M prepare_device
    set_queue "$max_sectors_kb_before" 128
    bench/iostat_vs_sysstat.py "$device" "$work/mount" $((1536 << 20))
}

map_and_pgbench() {
    start_bench_server "$pg_config" 'checkpoint_timeout = 30s' 'checkpoint_completion_target = 0.33'
    CARGO_TARGET_DIR=$cache/target bench/map_and_pgbench.py "$@"
}

mix_and_fio() {
    start_bench_server "$pg_config"
    CARGO_TARGET_DIR=$cache/target bench/mix_and_fio.py "$@"
}

pgbench_beside_probes() {
    # The probe's own table is not pgbench's; both are on the same device.
    start_bench_server "$pg_config" 'shared_buffers = 1GB' 'synchronous_commit = on' 'checkpoint_timeout = 1h'
    load_segment
    bench/pgbench_beside_probes.py "$("$pg_config" --bindir)/pgbench"
}

planning_cost() {
    start_bench_server "$pg_config"
    bench/planning_cost.py "$@"
}

probes_on_any_disk() {
    start_bench_server "$pg_config"
    CARGO_TARGET_DIR=$cache/target bench/probes_on_any_disk.py "$@"
}

random_vs_fio() {
    start_bench_server "$pg_config"
    load_segment
    # As many rows more as still fit one segment. VACUUM FULL leaves no block that is empty or was never written.
    sql -c "INSERT INTO tbl_cost_align SELECT 10100000 + id, md5((10100000 + id)::text), crt_time
            FROM tbl_cost_align LIMIT 3900000" \
        -c 'VACUUM FULL tbl_cost_align' -c 'CHECKPOINT'
    find_segment
    [ "$(stat -L -c %s "$segment")" = $((130842 * 8192)) ] || give_up "$segment is not of 130,842 blocks"
    evict_segment
    bench/random_vs_fio.py "$segment"
}

sync_vs_pg_test_fsync() {
    local medium media=${MEDIUM:-} directory tablespace pg_test_fsync
    pg_test_fsync=$("$pg_config" --bindir)/pg_test_fsync
    # A PostgreSQL that was built without it takes that of 15, which does the same.
    [ -x "$pg_test_fsync" ] || pg_test_fsync=$cache/pg/15/bin/pg_test_fsync
    [ -n "$media" ] || media=disk$([ "$(id -u)" != 0 ] || echo ,ram)
    for medium in ${media//,/ }; do
        tablespace=()
        [ "$medium" != ram ] || BENCH_DIR=/dev/shm make_device
        # In memory, a row writes what it may write by default in less than a second.
        start_bench_server "$pg_config" 'pg_io_probe.max_bytes = 1TB' 'pg_io_probe.default_max_bytes = 1TB'
        directory=$PGDATA/pg_wal
        if [ "$medium" = ram ]; then
            sql -c "CREATE TABLESPACE judged LOCATION '$work/mount/tablespace'"
            directory=$(echo "$work"/mount/tablespace/PG_*)
            tablespace=(judged)
        fi
        # What initdb and the installation have left to write must not be written during the measurement.
        sync
        MEDIUM=$medium bench/sync_vs_pg_test_fsync.py "$pg_test_fsync" "$directory" "${tablespace[@]}"
        clean_up
    done
}

what_probes_cost() {
    # The probes run with their defaults, so the limits that start_bench_server raises are put back.
    start_bench_server "$pg_config" 'shared_buffers = 512MB' 'checkpoint_timeout = 1h' 'bgwriter_lru_maxpages = 0' \
        'max_parallel_maintenance_workers = 0' 'pg_io_probe.max_duration = 1min' 'pg_io_probe.row_duration = 5s'
    bench/what_probes_cost.py
}

who_served_tpch() {
    # Temporary files stay on the disk of the data directory.
    prepare_device
    set_queue "$max_sectors_kb_before" "${READ_AHEAD_KB:-128}"
    bench/who_served_tpch.py "$device" "$@"
}

# These run if no name is given.
names=(history_verdicts iostat_vs_sysstat pgbench_beside_probes planning_cost probes_on_any_disk random_vs_fio
    sync_vs_pg_test_fsync what_probes_cost who_served_tpch)
if [ $# != 0 ]; then
    if ! declare -F "$1" >/dev/null || [ ! -x "bench/$1.py" ]; then give_up "there is no benchmark $1"; fi
    names=("$1")
    shift
fi
tools/deps.sh bench
trap clean_up EXIT
for name in "${names[@]}"; do
    for major in $(majors); do
        pg_config=$cache/pg/$major/bin/pg_config
        install_extension "$pg_config"
        echo "$name, PostgreSQL $major"
        PG=$major "$name" "$@"
        clean_up
    done
done
