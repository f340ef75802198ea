#!/usr/bin/env bash
# The server that repetition.py runs on: repetition.sh CONDITION COMMAND… starts it, runs the command, and
# leaves nothing of it, however that ends. It lies, with its WAL, on a loop device, whose file is in /dev/shm
# if the condition is idle, else in BENCH_DIR (/var/tmp). If the condition is none, there is no device.

. "$(dirname "$0")/lib.sh"

child=
stop() {
    if [ -n "$child" ]; then
        kill "$child" 2>/dev/null || true
        wait "$child" || true
    fi
    exit 143
}

condition=$1
shift
[ "$(id -u)" = 0 ] || give_up "$0 makes a loop device: run it as root"
pg_config=$(pg_configs | tail -n 1)
[ -z "${PG:-}" ] || pg_config=$cache/pg/$PG/bin/pg_config
install_extension "$pg_config"
trap clean_up EXIT
trap stop HUP INT TERM
case $condition in
    none) CLUSTER_PARENT=/dev/shm ;;
    idle) BENCH_DIR=/dev/shm direct_io=off make_device ;;
    *) make_device ;;
esac
if [ "$condition" != none ]; then
    # The limits of the last device of this name are still in force.
    set_queue 1280 128
    CLUSTER_PARENT=$work/mount
    export DEVICE=$device WORK=$work
fi
# Few buffers, since PostgreSQL up to 16 can't evict from them; and no checkpoint, which would be a neighbour.
start_bench_server "$pg_config" 'shared_buffers = 16MB' 'checkpoint_timeout = 1h' 'max_wal_size = 1GB' \
    'pg_io_probe.max_duration = 1min' 'pg_io_probe.row_duration = 5s' \
    'pg_io_probe.scratch_reserve = 256MB'
ON_SERVER=1 "$@" &
child=$!
wait "$child"
