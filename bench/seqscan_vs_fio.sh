#!/usr/bin/env bash
# The scans of io_probe_seqscan side by side with the tools that one would use without it, on one file of 737 MiB, on
# each PostgreSQL of the cache and each io_method of 18:
#   direct  against fio: io_uring, O_DIRECT, iodepth 16, the better of bs=256k and bs=1M; once as it comes, and once
#           with its buffers in huge pages, as ours are, which makes a request one segment to the device
#   os      against dd bs=8192 to /dev/null: all is in the OS cache
#   server  against pg_prewarm(…, 'buffer'): all is in the OS cache, nothing in shared buffers
# Ours and theirs run in turn, PAIRS times (11). Each line has the median of the ratios of our rate to theirs with the
# least and the greatest, the medians of both rates in MiB/s, and whether the ratio is as good as its goal. The script
# checks around each run what the caches hold, and gives up if it is not as said here.

. "$(dirname "$0")/lib.sh"

PAIRS=${PAIRS:-11}
line='%-15s %-7s %-23s %6s %6s %6s %9s %9s %5s  %s\n'

# ours PATH TIER: MiB/s of a scan on this path, served by this tier.
ours() {
    local answer
    answer=$(sql -At -c "SELECT CASE WHEN status = 'ok' AND complete AND hole_blks = 0 AND $2_pct > 99
                                     THEN mib_s::text ELSE s::text END
                         FROM io_probe_seqscan_full('tbl_cost_align', paths => '{$1}') s")
    [[ $answer =~ ^[0-9.]+$ ]] || give_up "not a whole scan from $2: $answer"
    echo "$answer"
}

# pair PATH TOOL VARIANT OURS THEIRS
pair() {
    sql -c "INSERT INTO pair VALUES ('$1', '$2', '$3', $4, $5)"
}

# against_fio NAME [OPTION…]
against_fio() {
    local name=$1 ours bs
    shift
    for _ in $(seq "$PAIRS"); do
        expect_cached 0 0
        ours=$(ours direct device)
        for bs in 256k 1M; do
            expect_cached 0 0
            pair direct "$name" "bs=$bs" "$ours" "$(fio_rate "--bs=$bs" "$@")"
        done
    done
}

# fio_rate OPTION…: MiB/s by fio's own clock, from its first request to its last.
fio_rate() {
    local told
    told=$(cd / && as_server fio --name=judge --filename="$segment" --readonly --rw=read --direct=1 \
        --ioengine=io_uring --iodepth=16 --output-format=json "$@")
    sql -At -v told="$told" <<<"SELECT (:'told'::json #>> '{jobs,0,read,bw_bytes}')::float8 / (1 << 20)"
}

# Runs right before each run, and 99 % is enough: a kernel may drop what is cached at any time, without need.
cache_all() {
    cat "$segment" >/dev/null
    expect_cached 99 100
}

against_dd() {
    local ours
    for _ in $(seq "$PAIRS"); do
        cache_all
        ours=$(ours os os)
        cache_all
        pair os dd bs=8192 "$ours" "$(dd_rate)"
    done
}

dd_rate() {
    LC_ALL=C dd if="$segment" of=/dev/null bs=8192 2>&1 | awk '/copied/ { print $1 / $(NF - 3) / 2 ^ 20 }'
}

# One session, since the first touch of each shared buffer costs a page fault; its first pair does not count. The
# filler, twice as large as shared buffers, drives out what the run before left there; prewarming by `read` leaves
# shared buffers alone.
against_pg_prewarm() {
    cache_all
    sql -v pairs="$PAIRS" <<'SQL'
CREATE EXTENSION pg_prewarm;
CREATE TABLE filler AS SELECT * FROM tbl_cost_align LIMIT 4000000;
SET bench.pairs = :pairs;
DO $$
DECLARE
    blocks float8 := pg_relation_size('tbl_cost_align') / 8192;
    ours record;
    theirs json;
BEGIN
    FOR pair IN 0..current_setting('bench.pairs')::int LOOP
        PERFORM pg_prewarm('filler', 'buffer'), pg_prewarm('tbl_cost_align', 'read');
        SELECT * INTO ours FROM io_probe_seqscan_full('tbl_cost_align', paths => '{server}');
        ASSERT ours.status = 'ok' AND ours.complete AND ours.os_pct > 99 AND ours.shared_blks_hit = 0
           AND ours.shared_blks_read = blocks, format('not a whole scan from the OS cache: %s', ours);

        PERFORM pg_prewarm('filler', 'buffer'), pg_prewarm('tbl_cost_align', 'read');
        EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT pg_prewarm(''tbl_cost_align'', ''buffer'')' INTO theirs;
        ASSERT (theirs #>> '{0,Plan,Shared Read Blocks}')::int = blocks,
            format('pg_prewarm found blocks in shared buffers: %s', theirs);

        IF pair > 0 THEN
            INSERT INTO pair VALUES ('server', 'pg_prewarm', 'buffer', ours.mib_s,
                                     blocks / 128 / ((theirs #>> '{0,Execution Time}')::float8 / 1000));
        END IF;
    END LOOP;
END
$$;
SQL
    expect_cached 99 100
}

# Prints a line for each tool, in the variant that was the fastest.
verdicts() {
    sql -At -v name="$1" <<'SQL' | while IFS='|' read -ra fields; do
WITH medians AS (
    SELECT path, tool, variant,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY ours / theirs) AS ratio, min(ours / theirs), max(ours / theirs),
           percentile_cont(0.5) WITHIN GROUP (ORDER BY ours) AS ours,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY theirs) AS theirs
    FROM pair GROUP BY path, tool, variant
), best AS (
    SELECT DISTINCT ON (path, tool) * FROM medians ORDER BY path, tool, theirs DESC
)
SELECT :'name', path, concat_ws(' ', tool, variant),
       round(ratio::numeric, 3), round(min::numeric, 3), round(max::numeric, 3),
       round(ours::numeric), round(theirs::numeric), goal, CASE WHEN ratio >= goal THEN 'met' ELSE 'MISSED' END
FROM best JOIN (VALUES ('direct', 0.98), ('os', 0.95), ('server', 1.00)) goals (path, goal) USING (path)
ORDER BY path, tool;
SQL
        # shellcheck disable=SC2059
        printf "$line" "${fields[@]}"
    done
}

# judge NAME PG_CONFIG [SETTING…]
judge() {
    local name=$1
    shift
    install_extension "$1"
    if ! start_bench_server "$@" 2>"$log"; then
        grep -q 'could not setup io_uring' "$log" || give_up "$(<"$log")"
        echo "$name: skipped, the kernel or the container refuses io_uring"
        stop_cluster
        return
    fi
    load_segment
    sql -c 'CREATE TABLE pair (path text, tool text, variant text, ours float8, theirs float8)' \
        -c "SELECT FROM io_probe_evict('tbl_cost_align')" >/dev/null
    against_fio fio
    GLIBC_TUNABLES=glibc.malloc.hugetlb=1 against_fio 'fio, huge pages' --mem_align=2M
    against_dd
    # A PostgreSQL without contrib has no pg_prewarm.
    if [ -f "$("$1" --sharedir)/extension/pg_prewarm.control" ]; then
        against_pg_prewarm
    fi
    verdicts "$name"
    stop_cluster
}

tools/deps.sh bench
log=$(mktemp)
trap 'stop_cluster; rm -f "$log"' EXIT
# shellcheck disable=SC2059
printf "$line" PostgreSQL path against ratio min max ours theirs goal verdict
for pg_config in $(pg_configs); do
    version=$("$pg_config" --version | sed 's/[^0-9]*\([0-9.]*\).*/\1/')
    if [ "${version%%.*}" -lt 18 ]; then
        judge "$version" "$pg_config"
    else
        for method in worker sync io_uring; do
            [ $method != io_uring ] || [[ $("$pg_config" --configure) = *liburing* ]] || continue
            judge "$version $method" "$pg_config" "io_method = $method"
        done
    fi
done
