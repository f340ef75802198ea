#!/usr/bin/env bash
# What the benchmarks share; source it. On top of tools/env.sh and tools/cluster.sh it gives
#   give_up MESSAGE                     ends the script with an error
#   install_extension PG_CONFIG         builds it and installs it into a PostgreSQL of the cache
#   start_bench_server PG_CONFIG [NAME=VALUE…]
#                                       starts a server with the extension, and with nothing to do by itself
#   load_segment                        loads tbl_cost_align; sets segment, its file
#   expect_cached LEAST MOST            gives up unless the OS cache holds so many percent of that file

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
        'pg_io_probe.max_duration = 1h' 'pg_io_probe.default_duration = 10min' "${@:2}" &&
        sql -c 'CREATE EXTENSION pg_io_probe'
}

# load_table of tools/cluster.sh, and where it lies.
load_segment() {
    load_table
    # shellcheck disable=SC2034
    segment=$PGDATA/$(sql -At -c "SELECT pg_relation_filepath('tbl_cost_align')")
    [ "$(stat -L -c %s "$segment")" = $((94393 * 8192)) ] || give_up "$segment is not of 94,393 blocks"
}

# As the file's owner: of the files of others the kernel says that all is cached.
expect_cached() {
    local cached size
    cached=$(as_server fincore --bytes --noheadings --output RES "$segment")
    size=$(stat -L -c %s "$segment")
    if ((cached * 100 < size * $1 || cached * 100 > size * $2)); then
        give_up "the OS cache holds $cached of the $size bytes of $segment"
    fi
}
