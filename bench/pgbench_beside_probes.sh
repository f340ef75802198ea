#!/usr/bin/env bash
# What a limited probe costs those who work beside it: pgbench with and without, in turn. pgbench_beside_probes.py says how, and
# what its lines mean. PG (the oldest and the newest of the cache) names the versions of PostgreSQL: PG=15,18. PAIRS, SECONDS_EACH,
# SCALE, CLIENTS, SHARE, SCRIPTS and ONLY are passed on.

. "$(dirname "$0")/lib.sh"

tools/deps.sh bench
trap clean_up EXIT
for major in $(majors); do
    pg_config=$cache/pg/$major/bin/pg_config
    install_extension "$pg_config"
    # The probe's own table is not pgbench's; both are on the same device.
    start_bench_server "$pg_config" 'shared_buffers = 1GB' 'synchronous_commit = on' 'checkpoint_timeout = 1h'
    load_segment
    bench/pgbench_beside_probes.py "$("$pg_config" --bindir)/pgbench"
    clean_up
done
