#!/usr/bin/env bash
# What `make demo` shows of the extension, on the server that the environment names, with the table of load_table in it. To be
# sourced after cluster.sh.

say() {
    printf '\n-- %s\n' "$*"
}

# show EXPLANATION QUERY
show() {
    say "$1"
    printf '%s\n\n' "$2"
    sql -P null=- -P footer=off -c "$2"
}

show 'The extension needs no preload and no restart.' \
    'CREATE EXTENSION pg_io_probe;'

show 'Where do the data, the WAL and the temporary files lie, and how is that device set up?' \
    'SELECT * FROM io_probe_device();'

sql -c 'CREATE INDEX ON tbl_cost_align (id)'
show 'What does the storage give, and which settings fit it? (It evicts the table and writes scratch files; it changes no setting.)' \
    "SELECT * FROM io_probe_report('tbl_cost_align', duration => '30 s', cold => true, writes => true);"

show 'How fast is a cold sequential scan, by each of the three ways that a page can travel, and who served the blocks?' \
    "SELECT * FROM io_probe_seqscan('tbl_cost_align', cold => true, duration => '6 s');"

show 'How long does a commit wait for its flush, by each wal_sync_method?' \
    "SELECT * FROM io_probe_sync(duration => '4 s');"

sql -c "SELECT FROM io_probe_evict('tbl_cost_align')" >/dev/null
show 'Is this query slow because of the disk?' \
    "SELECT * FROM io_probe_explain('SELECT count(*) FROM tbl_cost_align', execute => true);"

sql -c "SELECT FROM io_probe_evict('tbl_cost_align')" >/dev/null
sql -c 'CREATE TABLE copied AS SELECT * FROM tbl_cost_align' &
show 'Another session copies the table. Which session uses the disk?' \
    'SELECT * FROM io_probe_sessions();'

wait $!
sql -c 'DROP TABLE copied'

show 'Keep what a probe finds, with when, where and under which settings: twelve short runs.' \
    "SELECT count(io_probe_record('random', 'tbl_cost_align', '{\"paths\": [\"direct\"], \"duration\": \"200 ms\"}'))
FROM generate_series(1, 12);"

show 'Does the last one differ from the first by more than such runs do by themselves?' \
    "SELECT * FROM io_probe_compare((SELECT min(id) FROM io_probe_runs), (SELECT max(id) FROM io_probe_runs));"
