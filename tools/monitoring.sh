#!/usr/bin/env bash
# monitoring.sh: tests monitoring/ with the real programs, as root: a server with a table on a loop device, postgres_exporter with a
# role that may only read, and Prometheus with the rules. Runs are recorded, readahead is set to 16 kB, one more is recorded: the
# alert must fire. Then readahead is what it was, one more is recorded, and the alert must clear. It takes two minutes, and
# Debian's prometheus, prometheus-postgres-exporter and curl. PG (18) is the version, of the cache.

. "$(dirname "$0")/env.sh"
. tools/cluster.sh

loop=
finish() {
    # shellcheck disable=SC2046
    kill $(jobs -p) 2>/dev/null || true
    [ -z "${cluster:-}" ] || { [ ! -f "$PGDATA/postmaster.pid" ] || as_server pg_ctl stop -D "$PGDATA" -m immediate >/dev/null; }
    [ -z "$loop" ] || { umount "$cluster/tmp/disk"; losetup --detach "$loop"; }
    stop_cluster
}
trap finish EXIT

give_up() {
    echo "$*" >&2
    exit 1
}

promtool check rules monitoring/rules.yml
promtool test rules monitoring/rules_test.yml

CLUSTER_PARENT=/dev/shm start_cluster "$cache/pg/${PG:-18}/bin" 'shared_buffers = 8MB' 'io_method = sync' 'pg_io_probe.scratch_reserve = 0'
truncate -s 512M "$cluster/tmp/image"
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$cluster/tmp/image"
mkdir "$cluster/tmp/disk"
loop=$(losetup --find --show "$cluster/tmp/image")
mount "$loop" "$cluster/tmp/disk"
[ -z "$server_user" ] || chown "$server_user" "$cluster/tmp/disk"
read_ahead=/sys/block/${loop#/dev/}/queue/read_ahead_kb
sql -c 'CREATE EXTENSION pg_io_probe' -c 'CREATE ROLE watcher LOGIN IN ROLE pg_monitor' \
    -c "CREATE TABLESPACE disk LOCATION '$cluster/tmp/disk'" \
    -c "CREATE TABLE tbl TABLESPACE disk AS SELECT i, repeat('x', 900) AS t FROM generate_series(1, 200000) AS i" -c CHECKPOINT

# record TIMES
record() {
    local time
    for ((time = 0; time < $1; time++)); do
        sql -At -c "SELECT io_probe_record('seqscan', 'tbl', '{\"paths\": [\"server\"], \"cold\": true}', 'nightly')" >/dev/null
    done
}

cat >"$cluster/tmp/prometheus.yml" <<EOF
global: {scrape_interval: 2s, evaluation_interval: 2s}
rule_files: [$PWD/monitoring/rules.yml]
scrape_configs:
  - job_name: postgres
    static_configs: [{targets: ['127.0.0.1:19187']}]
EOF
# Without the exporter's cache of five minutes, for which this test would wait.
sed '/cache_seconds/d' monitoring/postgres_exporter.yml >"$cluster/tmp/queries.yml"
DATA_SOURCE_NAME="host=$PGHOST user=watcher dbname=postgres sslmode=disable" prometheus-postgres-exporter \
    --web.listen-address=127.0.0.1:19187 --extend.query-path="$cluster/tmp/queries.yml" --disable-default-metrics \
    --disable-settings-metrics >"$cluster/tmp/exporter.log" 2>&1 &
prometheus --config.file="$cluster/tmp/prometheus.yml" --storage.tsdb.path="$cluster/tmp/prometheus" \
    --web.listen-address=127.0.0.1:19090 >"$cluster/tmp/prometheus.log" 2>&1 &

# firing: prints how often StorageGotWorse fires now for the rate of scans.
firing() {
    curl -fsS 127.0.0.1:19090/api/v1/alerts 2>/dev/null | python3 -c '
import json, sys
alerts = json.load(sys.stdin)["data"]["alerts"]
print(sum(a["state"] == "firing" and a["labels"]["alertname"] == "StorageGotWorse" and a["labels"]["metric"] == "mib_s" for a in alerts))'
}

# expect NUMBER WHAT
expect() {
    local tries
    for ((tries = 0; tries < 30; tries++)); do
        [ "$(firing || true)" != "$1" ] || { echo "ok      $2"; return; }
        sleep 1
    done
    tail -n 5 "$cluster/tmp/exporter.log" "$cluster/tmp/prometheus.log" >&2
    sql -c 'SELECT item, metric, before, now, verdict, noise_pct, notes FROM io_probe_changes_full()' >&2
    give_up "FAILED  $2"
}

echo 4096 >"$read_ahead"
# The first scan after the table was written takes up to four times as long as the others.
record 1
sql -At -c "SELECT io_probe_prune('0', force => true)" >/dev/null
record 12
expect 0 'nothing fires'
figures=$(curl -fsS 127.0.0.1:19187/metrics | grep -c '^pg_io_probe_value')
[ "$figures" -gt 0 ] || { cat "$cluster/tmp/exporter.log" >&2; give_up 'the exporter shows no figures'; }
echo "ok      $figures figure is exported"
curl -fsS 127.0.0.1:19187/metrics | grep '^pg_io_probe_age_seconds.*schedule="nightly"' >/dev/null ||
    give_up 'the exporter shows no age'
echo 16 >"$read_ahead"
record 1
expect 1 'the alert fires after a run with readahead at 16 kB'
echo 4096 >"$read_ahead"
record 1
expect 0 'it clears after a run with readahead as before'
# What a scrape costs in a session that stays, as the exporter's does.
scrape="SELECT count(*) FROM io_probe_latest; SELECT count(*) FROM io_probe_changes();"
printf '%s\n' "$scrape" '\timing on' "$scrape" | sql -q
