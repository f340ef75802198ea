#!/usr/bin/env bash
# What io_probe_compare says of runs on an idle device, on one without readahead, and on a throttled one, and how fast the history is with
# 100,000 runs: history_verdicts.py says how, and what its lines mean. As root, on a loop device of its own in BENCH_DIR
# (/var/tmp). PG (the newest of the cache) is the version of PostgreSQL. RUNS and SLOW_RUNS are passed on.

. "$(dirname "$0")/lib.sh"

trap clean_up EXIT
prepare_device
bench/history_verdicts.py "$device"
