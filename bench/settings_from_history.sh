#!/usr/bin/env bash
# Experiments 1 and 5 from the history: scans under each readahead window and sync tests under each I/O scheduler are
# recorded. For each, one query prints the table; docs/history.md has both. Then come nights enough for io_probe_changes,
# the last one with another window.
#
# On a loop device: see prepare_device of bench/lib.sh, and there BENCH_DIR and PG. SCANS (3) of each window, SYNCS (8)
# short tests under each scheduler in turn, and NIGHTS (15); with 0 there is no such table.

. "$(dirname "$0")/lib.sh"

SCANS=${SCANS:-3}
SYNCS=${SYNCS:-8}
NIGHTS=${NIGHTS:-15}
scheduler_before=

set_scheduler() {
    echo "$1" >"/sys/block/$device/queue/scheduler"
}

finish() {
    [ -z "$scheduler_before" ] || set_scheduler "$scheduler_before"
    clean_up
}

# from_history LINE: prints the query of docs/history.md whose first line matches.
from_history() {
    awk -v line="$1" '$0 ~ line { found = 1 } /^```/ { found = 0 } found' docs/history.md
}

# show RUNS QUERY: prints the query and its result, as docs/history.md has them; nothing if RUNS is 0.
show() {
    [ "$1" != 0 ] || return 0
    shift
    # shellcheck disable=SC2016
    printf '```sql\n%s\n```\n```\n' "$1"
    sql -P footer=off -c "$1"
    echo '```'
}

record() {
    sql -At -c "SELECT io_probe_record($1)" >/dev/null
}

trap finish EXIT
prepare_experiment

for _ in $(seq "$SCANS"); do
    for kb in 0 16 128 512 4096; do
        set_queue 512 "$kb"
        record "'seqscan', 'tbl_cost_align', '{\"paths\": [\"os\"], \"cold\": true}', 'readahead'"
    done
done
show "$SCANS" "$(from_history '^SELECT read_ahead_kb, count')"

set_queue 512 128
scheduler_before=$(sed 's/.*\[\(.*\)\].*/\1/' "/sys/block/$device/queue/scheduler")
for _ in $(seq "$SYNCS"); do
    for scheduler in $(tr -d '[]' <"/sys/block/$device/queue/scheduler"); do
        set_scheduler "$scheduler"
        record "'sync', args => '{\"spcname\": \"experiment\", \"duration\": \"3800 ms\"}',
                label => 'schedulers'"
    done
done
set_scheduler "$scheduler_before"
show "$SYNCS" "$(from_history '^SELECT section, method, direct, writes, write_kb,$')"

# shellcheck disable=SC2016
sql -c 'SELECT io_probe_prune($$0$$)' >/dev/null
for night in $(seq "$NIGHTS"); do
    [ "$night" != "$NIGHTS" ] || set_queue 512 16
    record "'seqscan', 'tbl_cost_align', '{\"cold\": true}', 'nightly'"
    record "'random', 'tbl_cost_align', '{\"cold\": true, \"duration\": \"1 s\"}', 'nightly'"
done
show "$NIGHTS" 'SELECT probe, object, item, metric, before, now, ratio, verdict, noise_pct, runs FROM io_probe_changes();'
