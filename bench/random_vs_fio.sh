#!/usr/bin/env bash
# The random fetches of io_probe_random side by side with fio and ioping, on one file of 1,022 MiB: random_vs_fio.py
# says how, and what its lines mean. PG (the oldest and the newest of the cache) names the versions of PostgreSQL:
# PG=15,18. PAIRS, SECONDS_EACH and DEPTHS are passed on.

. "$(dirname "$0")/lib.sh"

# As many rows more as still fit one segment, and no block that is empty or that was never written.
enlarge_segment() {
    sql -c "INSERT INTO tbl_cost_align SELECT 10100000 + id, md5((10100000 + id)::text), crt_time
            FROM tbl_cost_align LIMIT 3900000" \
        -c 'VACUUM FULL tbl_cost_align' -c 'CHECKPOINT'
    find_segment
    [ "$(stat -L -c %s "$segment")" = $((130842 * 8192)) ] || give_up "$segment is not of 130,842 blocks"
}

tools/deps.sh bench
trap stop_cluster EXIT
if [ -z "${PG:-}" ]; then
    PG=$(pg_configs | sed -n '1p;$p' | sed 's|.*/\([0-9]*\)/bin/pg_config|\1|' | uniq)
fi
for major in ${PG//,/ }; do
    pg_config=$cache/pg/$major/bin/pg_config
    install_extension "$pg_config"
    start_bench_server "$pg_config"
    load_segment
    enlarge_segment
    evict_segment
    bench/random_vs_fio.py "$segment"
    stop_cluster
done
