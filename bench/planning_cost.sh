#!/usr/bin/env bash
# What the library costs where it is loaded and nothing is kept, see planning_cost.py. PG (the oldest and the newest of the
# cache) names the versions of PostgreSQL: PG=15,18. Half a minute each.

. "$(dirname "$0")/lib.sh"

trap clean_up EXIT
for major in $(majors); do
    install_extension "$cache/pg/$major/bin/pg_config"
    start_bench_server "$cache/pg/$major/bin/pg_config"
    echo "PostgreSQL $major"
    bench/planning_cost.py "$@"
    clean_up
done
