#!/usr/bin/env bash
# Experiment 5: what a sync costs under each I/O scheduler that the kernel lists, and what the device saw of it. Prints
# the tables of the pages beside it.
#
# It measures on a loop device (see prepare_device of bench/lib.sh, and there BENCH_DIR and PG), and on the disk that
# holds the server's WAL if its scheduler can be set; OWN_DISK=no leaves that disk alone. Each scheduler has a turn in
# each of ROUNDS (5), SECONDS_EACH (0.5) a row; every second round is in reverse order. However the script ends, each
# device gets back its scheduler and all of the settings that changed with it.

. "$(dirname "$0")/../bench/lib.sh"

ROUNDS=${ROUNDS:-5}
SECONDS_EACH=${SECONDS_EACH:-0.5}
OWN_DISK=${OWN_DISK:-yes}
declare -A kept

# keep_queue DEVICE: remembers all settings of its queue that can be written.
keep_queue() {
    local file value
    while read -r file; do
        ! value=$(cat "$file" 2>/dev/null) || kept[$file]=$value
    done < <(find "/sys/block/$1/queue/" -type f -perm /200)
}

# Schedulers first: each sets its own depth of the queue, and bfq ends the throttling of write-back.
restore_queues() {
    local file
    for file in "${!kept[@]}"; do
        [[ $file != */scheduler ]] || restore "$file" "$(in_force "${kept[$file]}")"
    done
    for file in "${!kept[@]}"; do
        [ "$(cat "$file")" = "${kept[$file]}" ] || restore "$file" "${kept[$file]}"
    done
    kept=()
}

restore() {
    echo "$2" >"$1" || echo "could not write $2 to $1: put it back by hand" >&2
}

# in_force SCHEDULERS: prints the one in brackets.
in_force() {
    local from=${1#*[}
    echo "${from%]*}"
}

# schedulers DEVICE: prints all that the kernel lists.
schedulers() {
    tr -d '[]' <"/sys/block/$1/queue/scheduler"
}

# measure DEVICE SPCNAME SCHEDULER: stores a row of each method, in blocks of 16 kB as published, and of 8 kB as in WAL today.
measure() {
    local write_kb strange
    echo "$1 $3" >&2
    echo "$3" >"/sys/block/$1/queue/scheduler"
    sql -c 'TRUNCATE turn'
    for write_kb in 16 8; do
        sql -c "INSERT INTO turn SELECT $write_kb, r.*
                FROM io_probe_sync_full($2, duration => '$((20 * SECONDS_EACH)) s', write_kb => $write_kb, sections =>
                                   '{one_write,two_writes,open_sync_size,other_fd,no_sync}') r"
    done
    strange=$(sql -At -c "SELECT * FROM turn
                          WHERE device <> '$1' OR scheduler <> '$3' OR status NOT IN ('ok', 'unsupported')")
    [ -z "$strange" ] || give_up "not ok, or not on $1 under $3: $strange"
    sql -c 'INSERT INTO synced SELECT * FROM turn'
}

# print_tables DEVICE
print_tables() {
    local write_kb
    for write_kb in 16 8; do
        print_table "$1" "$write_kb" 'operations a second' 'spread(array_agg(ops_s), 0)'
    done
    print_table "$1" 8 'p99, us' 'spread(array_agg(p99_us), 0)'
    print_table "$1" 8 'what the device completed per operation: writes, flushes' \
        "spread(array_agg(device_writes_per_op), 2) || ', ' || spread(array_agg(device_flushes_per_op), 2)"
}

# print_table DEVICE WRITE_KB NAME FIGURE
print_table() {
    echo
    echo "$1, $2 kB, $3"
    sql -P footer=off -v device="$1" -v write_kb="$2" -v figure="$4" <<'SQL'
SELECT what, scheduler, :figure AS figure FROM synced JOIN published USING (section, method, writes)
WHERE device = :'device' AND kb = :write_kb AND direct = o_direct AND status = 'ok'
GROUP BY line, what, scheduler ORDER BY line, min(started_at)
\crosstabview what scheduler figure
SQL
}

trap 'restore_queues; clean_up' EXIT
prepare_device
# The lines of the published table, and open_datasync, by which WAL can also be synced.
sql <<'SQL'
CREATE TABLE synced AS SELECT 0 AS kb, r.* FROM io_probe_sync_full() r WITH NO DATA;
CREATE TABLE turn (LIKE synced);
CREATE TABLE published AS
SELECT * FROM (VALUES (1, 'open_datasync', 'one_write', 'open_datasync', 1, true),
                      (2, 'fdatasync', 'one_write', 'fdatasync', 1, false),
                      (3, 'fsync', 'one_write', 'fsync', 1, false),
                      (4, 'open_sync', 'one_write', 'open_sync', 1, true),
                      (5, 'two writes, fdatasync', 'two_writes', 'fdatasync', 2, false),
                      (6, 'open_sync 16 × 1 kB', 'open_sync_size', 'open_sync', 16, true),
                      (7, 'write, fsync, close', 'other_fd', 'write, fsync, close', 1, false),
                      (8, 'write, close, fsync', 'other_fd', 'write, close, fsync', 1, false),
                      (9, 'write, not synced', 'no_sync', 'write', 1, false))
     published (line, what, section, method, writes, o_direct);
SQL
names=("$device")
disk=$(sql -At -c "SELECT device FROM io_probe_device_full() WHERE object = 'wal'")
if [ "$OWN_DISK" = yes ] && [ -w "/sys/block/$disk/queue/scheduler" ]; then
    names+=("$disk")
fi
for name in "${names[@]}"; do
    keep_queue "$name"
done

echo "$("$pg_config" --version), Linux $(uname -r), medians (least-greatest) of $ROUNDS"
for round in $(seq "$ROUNDS"); do
    for name in "${names[@]}"; do
        spcname=NULL
        [ "$name" != "$device" ] || spcname="'experiment'"
        read -ra turns < <(schedulers "$name")
        ((round % 2)) || read -ra turns < <(printf '%s\n' "${turns[@]}" | tac | paste -sd ' ')
        for scheduler in "${turns[@]}"; do
            measure "$name" "$spcname" "$scheduler"
        done
    done
done
for name in "${names[@]}"; do
    print_tables "$name"
done
