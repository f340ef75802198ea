#!/usr/bin/env bash
# What each probe costs the server that it runs on: time, I/O, processor, caches, memory, locks, files. what_probes_cost.py
# says how that is looked at; its table is that of docs/costs.md. PG (the oldest and the newest of the cache) names the
# versions of PostgreSQL: PG=15,18. RUNS, MIB and ONLY are passed on. It wants an idle machine and 3 GiB of disk, and takes ten
# minutes for a version and run.

. "$(dirname "$0")/lib.sh"

trap clean_up EXIT
for major in $(majors); do
    pg_config=$cache/pg/$major/bin/pg_config
    install_extension "$pg_config"
    # Probes with their defaults, so these are put back to what they are without a benchmark.
    start_bench_server "$pg_config" 'shared_buffers = 512MB' 'checkpoint_timeout = 1h' 'bgwriter_lru_maxpages = 0' \
        'max_parallel_maintenance_workers = 0' 'pg_io_probe.max_duration = 1min' 'pg_io_probe.row_duration = 5s'
    bench/what_probes_cost.py
    clean_up
done
