#!/usr/bin/env bash
# Shows what the extension does, in about a minute: on a server of its own, with a table of 94,393 blocks.
# KEEP=1 leaves the server running and says how to reach it.

. "$(dirname "$0")/env.sh"
. tools/cluster.sh

say() {
    printf '\n-- %s\n' "$*"
}

# show EXPLANATION QUERY
show() {
    say "$1"
    printf '%s\n\n' "$2"
    sql -P null=- -P footer=off -c "$2"
}

tools/deps.sh demo

# A copy of the system's PostgreSQL, so that nothing is installed into that. PostgreSQL finds its files from where its
# programs lie, if the folders keep their places to each other.
copy=$cache/demo
rm -rf "$copy"
mkdir -p "$copy"/usr/{lib,share}/postgresql
cp -a /usr/lib/postgresql/15 "$copy/usr/lib/postgresql"
cp -a /usr/share/postgresql/15 "$copy/usr/share/postgresql"
ln -s /usr/include "$copy/usr/include"
pg_config=$copy/usr/lib/postgresql/15/bin/pg_config

say "building the extension for $("$pg_config" --version)"
# With fewer optimizations across crates and without line numbers: most of a demo on a new machine is waiting for the compiler.
CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=false \
    make -s PG_CONFIG="$pg_config"
make -s install PG_CONFIG="$pg_config"

say 'starting a server on a private socket, in a folder of its own'
trap stop_cluster EXIT
start_cluster "$("$pg_config" --bindir)" 'shared_buffers = 128MB' 'wal_level = minimal' 'max_wal_senders = 0' \
    'max_wal_size = 4GB' 'track_io_timing = on' 'max_parallel_workers_per_gather = 0' 'jit = off'

say 'loading a table of 10,100,000 rows (15 s)'
load_table

show 'The extension needs no preload and no restart.' \
    'CREATE EXTENSION pg_io_probe;'

show 'Where do the data, the WAL and the temporary files lie, and how is that device set up?' \
    'SELECT * FROM io_probe_device();'

show 'How much of the table is in memory: in shared buffers, and in the cache of the operating system?' \
    "SELECT * FROM io_probe_cache('tbl_cost_align');"

show 'How fast is a sequential scan of it that starts cold, by each of the three ways that a page can travel?' \
    "SELECT * FROM io_probe_seqscan('tbl_cost_align', cold => true);"

show 'The same with all columns (_full), kept to be joined below: a few of these columns, and the notes.' \
    "CREATE TABLE scan AS SELECT * FROM io_probe_seqscan_full('tbl_cost_align', cold => true);
SELECT path, mib_s, blks, complete, cold, ios_per_block, rareq_kb, aqu_sz, r_await_ms, status, engine FROM scan;
SELECT path, note FROM scan, unnest(notes) AS note;"

show 'What does fetching one random block cost, past the caches, through the server, and through the OS?' \
    "SELECT * FROM io_probe_random('tbl_cost_align', cold => true, duration => '6 s');"

show 'How many requests in flight does the device want?' \
    "SELECT * FROM io_probe_depth('tbl_cost_align', duration => '7 s');"

show 'What does a block take in order, at random and with gaps? (The times behind planner costs.)' \
    "SELECT * FROM io_probe_page_cost('tbl_cost_align', '{0.1,0.5}', '{0,16}', duration => '2 s', cold => true);"

show 'Which readahead would be best for scans? (The setting in force as it is, others emulated.)' \
    "SELECT * FROM io_probe_readahead('tbl_cost_align', duration => '10 s');"

show 'What does it cost to make writes durable where the WAL lies, and how does this server do it?' \
    "SELECT * FROM io_probe_sync(duration => '8 s');"

show 'And when eight sessions commit at once, and share the flushes?' \
    "SELECT method, write_kb, ops_s AS commits_s, p50_us, round(1.0 * ops / flushes, 1) AS commits_per_flush, in_use
FROM io_probe_sync_full(depth => 8, duration => '5 s') WHERE write_kb = 8;"

show 'What should be set otherwise? (It may evict what it reads, and write scratch files, but it changes no setting.)' \
    "SELECT setting, current, recommended, low, high, applies, why
FROM io_probe_recommend_full(settings => '{read_ahead_kb,wal_sync_method}', duration => '16 s',
                             cold => true, writes => true);"

sql -c "SELECT FROM io_probe_evict('tbl_cost_align')" >/dev/null
show 'What does a query do, and how much of its time is the reading, at the speed that the scan measured?' \
    "SELECT e.node, e.shared_blks_read, e.self_ms, e.io_ms, round((e.shared_blks_read * s.block_us / 1000)::numeric) AS reading_ms
FROM io_probe_explain('SELECT count(*) FROM tbl_cost_align', execute => true) AS e
LEFT JOIN scan AS s ON s.relid = e.relid AND s.path = 'server'
ORDER BY e.node_id;"

show 'Keep what a probe finds, with when, where and under which settings: twelve short runs.' \
    "SELECT count(io_probe_record('random', 'tbl_cost_align', '{\"paths\": [\"direct\"], \"duration\": \"200 ms\"}'))
FROM generate_series(1, 12);"

show 'Does the last one differ from the first by more than such runs do by themselves?' \
    "SELECT * FROM io_probe_compare((SELECT min(id) FROM io_probe_runs), (SELECT max(id) FROM io_probe_runs));"

if [ -n "${KEEP:-}" ]; then
    trap - EXIT
    say 'The server is left running. To look around, and to stop it and delete its files:'
    echo "$PG_BINDIR/psql -h $PGHOST -p $PGPORT -U $PGUSER $PGDATABASE"
    echo "kill -INT \$(head -n 1 $PGDATA/postmaster.pid) && sleep 2 && rm -r $cluster"
else
    say 'stopping the server and deleting its files'
fi
