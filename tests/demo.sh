#!/usr/bin/env bash
# What `make demo` shows comes without an error.

. "$(dirname "$0")/../tools/env.sh"
. tools/cluster.sh

sql -c 'DROP EXTENSION pg_io_probe'
load_table
. tools/demo_steps.sh
