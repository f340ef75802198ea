#!/usr/bin/env bash
# What the benchmarks share; source it. On top of tools/env.sh and tools/cluster.sh it gives
#   give_up MESSAGE                     ends the script with an error
#   install_extension PG_CONFIG         builds it and installs it into a PostgreSQL of the cache
#   start_bench_server PG_CONFIG [NAME=VALUE…]
#                                       starts a server with the extension, which does nothing by itself
#   majors                              prints which versions to judge: PG, else the oldest and the newest of the cache
#   load_segment                        loads tbl_cost_align; sets segment, its file
#   find_segment                        sets it again, after something has rewritten the table
#   expect_cached LEAST MOST            gives up unless the OS cache holds LEAST to MOST percent of that file
#   evict_segment                       drops all of it from the OS cache
#   create_spread                       creates a function spread(numbers, digits): the median (least-greatest)
# and for an experiment, which needs a device of its own and root:
#   make_device                         makes a loop device with a file system of its own, of 2 GiB in BENCH_DIR
#                                       (/var/tmp); sets device (loop0, say), work (a directory),
#                                       max_sectors_kb_before and read_ahead_kb_before. With file_system_size set, the
#                                       file system is smaller than the device; with direct_io=off, the device reads
#                                       its file through the host's cache
#   prepare_device                      starts a server with an empty tablespace, experiment, on such a device; sets
#                                       pg_config. PG (the newest) is the version of PostgreSQL in the cache
#   prepare_experiment                  the same with tbl_cost_align, and nothing else, in that tablespace
#   set_queue MAX_SECTORS_KB READ_AHEAD_KB
#                                       sets both limits of the device
#   start_iostat                        starts an iostat that watches the device
#   stop_iostat                         ends it; prints the reads and the kB that it has counted
#   clean_up                            ends all of this and restores the limits: trap clean_up EXIT

. "$(dirname "${BASH_SOURCE[0]}")/../tools/env.sh"
. tools/cluster.sh

give_up() {
    echo "$*" >&2
    exit 1
}

install_extension() {
    local said
    said=$(make -s PG_CONFIG="$1" 2>&1) || give_up "$said"
    make -s install PG_CONFIG="$1"
}

start_bench_server() {
    start_cluster "$("$1" --bindir)" 'shared_buffers = 128MB' 'wal_level = minimal' 'max_wal_senders = 0' \
        'max_wal_size = 4GB' 'autovacuum = off' 'max_parallel_workers_per_gather = 0' 'jit = off' \
        'pg_io_probe.max_duration = 1h' 'pg_io_probe.row_duration = 10min' "${@:2}" &&
        sql -c 'CREATE EXTENSION pg_io_probe'
}

majors() {
    if [ -n "${PG:-}" ]; then
        echo "${PG//,/ }"
    else
        pg_configs | sed -n '1p;$p' | sed 's|.*/\([0-9]*\)/bin/pg_config|\1|' | uniq | paste -sd ' '
    fi
}

# Calls load_table of tools/cluster.sh, and finds the table's file.
load_segment() {
    load_table
    find_segment
    [ "$(stat -L -c %s "$segment")" = $((94393 * 8192)) ] || give_up "$segment is not of 94,393 blocks"
}

find_segment() {
    segment=$PGDATA/$(sql -At -c "SELECT pg_relation_filepath('tbl_cost_align')")
}

# Asks as the file's owner: of other users' files the kernel says that all is cached.
expect_cached() {
    local cached size
    cached=$(as_server fincore --bytes --noheadings --output RES "$segment")
    size=$(stat -L -c %s "$segment")
    if ((cached * 100 < size * $1 || cached * 100 > size * $2)); then
        give_up "the OS cache holds $cached of the $size bytes of $segment"
    fi
}

evict_segment() {
    sql -c "SELECT FROM io_probe_evict('tbl_cost_align')" >/dev/null
    expect_cached 0 0
}

# A loop device with an ext4 of its own, which holds nothing but the table and has no other users. The device reads its
# file by O_DIRECT, unless direct_io is off, so that the host's cache does not serve it.
make_device() {
    local loop direct_io=${direct_io:-on}
    work=$(mktemp -d "${BENCH_DIR:-/var/tmp}/pg_io_probe.XXXXXX")
    chmod 755 "$work"
    fallocate -l 2G "$work/disk"
    loop=$(losetup --find --show --direct-io="$direct_io" "$work/disk")
    device=${loop#/dev/}
    max_sectors_kb_before=$(<"/sys/block/$device/queue/max_sectors_kb")
    read_ahead_kb_before=$(<"/sys/block/$device/queue/read_ahead_kb")
    [ "$direct_io" = off ] || [ "$(losetup --noheadings --output DIO "$loop" | tr -d ' ')" = 1 ] ||
        give_up "the file system of $work has no O_DIRECT for loop devices: name another directory by BENCH_DIR"
    # What mkfs leaves for later, the kernel would write while we measure.
    mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$loop" ${file_system_size:+"$file_system_size"}
    mkdir "$work/mount"
    mount -o noatime "$loop" "$work/mount"
    mkdir "$work/mount/tablespace"
    chown "$server_user" "$work/mount/tablespace"
}

remove_device() {
    local attempt
    # What was interrupted may need a moment to let go of its files.
    for attempt in 1 2 3 4 5; do
        ! mountpoint -q "$work/mount" || umount "$work/mount" || sleep "$attempt"
    done
    ! mountpoint -q "$work/mount" || give_up "$work/mount is still in use: it stays, and so does /dev/$device"
    if [ -n "${device:-}" ]; then
        # The limits outlive the device: the next one of this name would have them.
        set_queue "$max_sectors_kb_before" "$read_ahead_kb_before" || true
        losetup --detach "/dev/$device"
    fi
    rm -rf "$work"
    work='' device=''
}

# spread: the median, with the least and the greatest in brackets if they differ.
create_spread() {
    sql <<'SQL'
CREATE FUNCTION spread(numbers float8[], digits int) RETURNS text
RETURN (SELECT round(percentile_cont(0.5) WITHIN GROUP (ORDER BY n)::numeric, digits)
            || CASE WHEN round(max(n)::numeric, digits) > round(min(n)::numeric, digits)
                    THEN format(' (%s-%s)', round(min(n)::numeric, digits), round(max(n)::numeric, digits)) ELSE '' END
        FROM unnest(numbers) n);
SQL
}

prepare_device() {
    [ "$(id -u)" = 0 ] || give_up "$0 makes a loop device: run it as root"
    tools/deps.sh bench
    pg_config=$(pg_configs | tail -n 1)
    [ -z "${PG:-}" ] || pg_config=$cache/pg/$PG/bin/pg_config
    make_device
    install_extension "$pg_config"
    start_bench_server "$pg_config"
    sql -c "CREATE TABLESPACE experiment LOCATION '$work/mount/tablespace'"
    create_spread
}

prepare_experiment() {
    prepare_device
    PGOPTIONS='-c default_tablespace=experiment' load_segment
}

clean_up() {
    stop_iostat >/dev/null
    stop_cluster
    [ -z "${work:-}" ] || remove_device
}

set_queue() {
    echo "$1" >"/sys/block/$device/queue/max_sectors_kb"
    echo "$2" >"/sys/block/$device/queue/read_ahead_kb"
}

start_iostat() {
    LC_ALL=C iostat -dxky "$device" 1 >"$work/iostat" &
    iostat=$!
    sleep 0.5
}

# Each rate of iostat's is over one second, so the sums are counts.
stop_iostat() {
    [ -n "${iostat:-}" ] || return 0
    sleep 1.5
    kill "$iostat" 2>/dev/null || true
    wait "$iostat" 2>/dev/null || true
    iostat=
    awk -v device="$device" '$1 == device { reads += $2; kb += $3 } END { print reads + 0, kb + 0 }' "$work/iostat"
}
