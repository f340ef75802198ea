#!/usr/bin/env bash
# build.sh PG_CONFIG: builds the extension for that PostgreSQL and lays out its files, as they go below /,
# in target/release/pg_io_probe-pgNN. `make install` copies them from there.

. "$(dirname "$0")/env.sh"

give_up() {
    echo "$*" >&2
    exit 1
}

pg_config=$(command -v "$1") || give_up "could not find $1: name the one to build for with make PG_CONFIG=…"
command -v cargo-pgrx >/dev/null || give_up 'could not find cargo-pgrx: run make deps'
major=$("$pg_config" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')

# What an earlier version left there would be installed too.
rm -rf "${CARGO_TARGET_DIR:-target}/release/pg_io_probe-pg$major"
# With the variable set, pgrx needs no `cargo pgrx init` and no configuration in the home directory.
PGRX_PG_CONFIG_PATH=$pg_config \
    cargo pgrx package --pg-config "$pg_config" --no-default-features --features "pg$major"
