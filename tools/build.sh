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

built=${CARGO_TARGET_DIR:-target}/release/pg_io_probe-pg$major
# What an earlier version left there would be installed too.
rm -rf "$built"
# With the first variable set, pgrx needs no `cargo pgrx init` and no configuration in the home directory; with the other,
# Rust 1.95 also builds crates that ask for a newer Rust and do not need it.
PGRX_PG_CONFIG_PATH=$pg_config PGRX_BUILD_FLAGS="--ignore-rust-version ${PGRX_BUILD_FLAGS:-}" \
    cargo pgrx package --pg-config "$pg_config" --no-default-features --features "pg$major"

# pgrx writes the script of this version, and copies those that lead from one version to another. The scripts of the
# released versions go beside them, so that CREATE EXTENSION can make any of those; a test does.
extensions=$built$("$pg_config" --sharedir)/extension
shopt -s nullglob
for script in sql/pg_io_probe--*.sql; do
    [ -e "$extensions/${script#sql/}" ] || install -m 644 "$script" "$extensions"
done
