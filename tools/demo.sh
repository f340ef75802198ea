#!/usr/bin/env bash
# Shows what the extension does, in about a minute: on a server of its own, with a table of 94,393 blocks.
# KEEP=1 leaves the server running and says how to reach it.

. "$(dirname "$0")/env.sh"
. tools/cluster.sh
. tools/debian.sh

tools/deps.sh demo

# Installed into a copy, so that a check that runs meanwhile keeps what it built.
copy=$cache/demo
rm -rf "$copy"
cp -a "$cache/pg/${suites%% *}" "$copy"
pg_config=$copy/bin/pg_config

echo "building the extension for $("$pg_config" --version)"
# With fewer optimizations across crates and without line numbers: most of a demo on a new machine is waiting for the compiler.
CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=false \
    make -s PG_CONFIG="$pg_config"
make -s install PG_CONFIG="$pg_config"

echo 'starting a server on a private socket, in a folder of its own'
trap stop_cluster EXIT
start_cluster "$("$pg_config" --bindir)" 'shared_buffers = 128MB' 'wal_level = minimal' 'max_wal_senders = 0' \
    'max_wal_size = 4GB' 'track_io_timing = on' 'max_parallel_workers_per_gather = 0' 'jit = off'

echo 'loading a table of 10,100,000 rows (15 s)'
load_table

. tools/demo_steps.sh

if [ -n "${KEEP:-}" ]; then
    trap - EXIT
    say 'The server is left running. To look around, and to stop it and delete its files:'
    echo "$PG_BINDIR/psql -h $PGHOST -p $PGPORT -U $PGUSER $PGDATABASE"
    echo "kill -INT \$(head -n 1 $PGDATA/postmaster.pid) && sleep 2 && rm -r $cluster"
else
    say 'stopping the server and deleting its files'
fi
