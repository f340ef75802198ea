#!/usr/bin/env bash
# suite.sh [MAJOR…]: runs on servers with assertions, built from Debian's source (15 and 18). First comes the server's own
# regression suite, while probes of all kinds run without a pause from another database, and the library is loaded in all
# sessions (18: once with worker and once with io_uring). pg_amcheck and pg_checksums look at everything afterwards. Then comes
# all of this project's own check. The servers stay in the cache; to renew one, delete $cache/assert/MAJOR.
#
# First of all the suite runs, without probes, on a library that counts each query as io_probe_explain does.
#
# It fails on any difference of the suite, on an SQLSTATE of a probe that nothing explains, on corruption, and on what a
# server must not write to its log.
#   SERIAL=1        one test at a time, as `make installcheck` of the server's source does it; without, `installcheck-parallel`
#   PROBES=none     the suite alone, without probes and without the library: to tell whether a difference is ours
#   PROBES=counted  the suite without probes, each query counted

. "$(dirname "$0")/env.sh"
. tools/cluster.sh
. tools/debian.sh

# build MAJOR: builds PostgreSQL with assertions as $cache/assert/MAJOR; regress in it is its suite, ready to run.
build() {
    local major=$1 place=$cache/assert/$1 work=$cache/src/$1 options=()
    [ ! -e "$place/regress" ] || return 0
    echo "building PostgreSQL $major with assertions (some minutes on 2 cores)"
    mkdir -p "$cache/src"
    unpack_source "$major" "$work" >"$work.log" 2>&1 || { tail -n 5 "$work.log" >&2; return 1; }
    [ "$major" -lt 18 ] || options=(--with-liburing)
    rm -rf "$place"
    (
        unset MAKELEVEL MAKEFLAGS MFLAGS
        cd "$work/build"
        ./configure --quiet --prefix="$place" --enable-cassert --without-icu --without-readline --without-zlib "${options[@]}" &&
            make --silent -j "$(nproc)" world-bin && make --silent install-world-bin && make --silent -C src/test/regress all
    ) >"$work.log" 2>&1 || { tail -n 30 "$work.log" >&2; return 1; }
    cp -r "$work/build/src/test/regress" "$place/regress"
    rm -rf "$work"
}

# run_suite MAJOR [SETTING…]
run_suite() {
    local place=$cache/assert/$1 started=$SECONDS failed=0 prober='' preload=('session_preload_libraries = pg_io_probe')
    shift
    [ "${PROBES:-}" != none ] || preload=()
    echo "$("$place/bin/postgres" --version) $*"
    # More checkpoints and more to do for autovacuum than by default.
    initdb_option=--data-checksums start_cluster "$place/bin" 'max_prepared_transactions = 2' \
        'checkpoint_timeout = 30s' 'autovacuum_naptime = 10s' "${preload[@]}" "$@" || return 1
    as_server mkdir "$cluster/suite"
    if [ -z "${PROBES:-}" ]; then
        sql -c 'CREATE DATABASE probed'
        PGDATABASE=probed tools/prober.py "$cluster/prober" &
        prober=$!
        until [ -e "$cluster/prober" ]; do
            kill -0 $prober 2>/dev/null || { wait $prober; return 1; }
            sleep 0.1
        done
    fi

    (cd "$place/regress" && as_server ./pg_regress --inputdir=. --bindir="$PG_BINDIR" --dlpath="$PWD" --outputdir="$cluster/suite" \
        --max-concurrent-tests=20 --schedule=parallel_schedule ${SERIAL:+--max-connections=1}) >"$cluster/suite/log" 2>&1 ||
        failed=1
    if [ $failed = 0 ]; then
        tail -n 1 "$cluster/suite/log"
    else
        cat "$cluster/suite/log" "$cluster/suite/regression.diffs" 2>/dev/null
    fi

    if [ -n "$prober" ]; then
        kill -TERM $prober 2>/dev/null || true
        wait $prober || failed=1
    fi
    check_server || failed=1
    stop_cluster
    echo "took $((SECONDS - started)) s"
    return $failed
}

# What a server must not log, whatever the suite asks for.
alarming='PANIC|TRAP: |(was terminated|terminated by signal)|was not closed|refcount leak|page verification failed|invalid page in block'

# check_server: is anything left of the probes, or anything broken? Stops the server.
check_server() {
    local failed=0 databases left
    left=$(sql -At -c "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
    [ "$left" = 0 ] || { echo "$left advisory locks are left"; failed=1; }
    left=$(find "$PGDATA/" -path '*pgsql_tmp*' -type f -o -name 'xlogtemp*' | wc -l)
    [ "$left" = 0 ] || { echo "$left temporary files are left"; failed=1; }
    databases=$(sql -At -c 'SELECT count(*) FROM pg_database WHERE datallowconn')
    if pg_amcheck --all --install-missing --heapallindexed --parent-check >"$cluster/amcheck" 2>&1; then
        echo "pg_amcheck: nothing to say of $databases databases"
    else
        cat "$cluster/amcheck"
        failed=1
    fi
    if grep -aE "$alarming" "$cluster/log"; then
        failed=1
    fi
    (cd / && as_server pg_ctl stop -w -m fast) >/dev/null || failed=1
    if (cd / && as_server pg_checksums --check -D "$PGDATA") >"$cluster/checksums" 2>&1; then
        sed -n 's/^\(Blocks scanned\|Bad checksums\): */pg_checksums: \L\1 /p' "$cluster/checksums"
    else
        cat "$cluster/checksums"
        failed=1
    fi
    return $failed
}

trap stop_cluster EXIT
tools/deps.sh suite
[ $# -gt 0 ] || set -- 15 18
failures=0 servers=()
# Apart from what is compiled for servers without assertions.
target=$cache/assert/target
# library MAJOR [FEATURE]
library() {
    CARGO_TARGET_DIR=$target make -s PG_CONFIG="$cache/assert/$1/bin/pg_config" PG_IO_PROBE_FEATURES="${2:-}"
    CARGO_TARGET_DIR=$target make -s install PG_CONFIG="$cache/assert/$1/bin/pg_config"
}

for major; do
    build "$major"
    servers+=("$cache/assert/$major/bin/pg_config")
    if [ -z "${PROBES:-}" ] || [ "$PROBES" = counted ]; then
        library "$major" count_every_query
        PROBES=counted run_suite "$major" || failures=$((failures + 1))
    fi
    [ "${PROBES:-}" != counted ] || continue
    library "$major"
    if [ "$major" -lt 18 ]; then
        run_suite "$major" || failures=$((failures + 1))
    else
        run_suite "$major" 'io_method = worker' 'shared_preload_libraries = pg_io_probe' || failures=$((failures + 1))
        run_suite "$major" 'io_method = io_uring' || failures=$((failures + 1))
    fi
done
[ -n "${PROBES:-}" ] || CARGO_TARGET_DIR=$target tools/check.sh "${servers[@]}" || failures=$((failures + 1))
[ $failures = 0 ]
