#!/usr/bin/env bash
# suite.sh [PG_CONFIG [SETTING…]]: the server's own regression suite, while probes of all kinds run without a pause from
# another database. The library is loaded in all sessions. Afterwards pg_amcheck and pg_checksums look at everything.
# The extension has to be installed there. Without arguments: on each PostgreSQL of the cache whose source Debian has, too, the
# newest with worker and with io_uring.
#
# It fails on any difference of the suite, on an SQLSTATE of a probe that nothing explains, on corruption, and on what a
# server must not write to its log.
#   SERIAL=1        one test at a time, as `make installcheck` of the server's source does it; without, `installcheck-parallel`
#   PROBES=none     no probes, and the library is not loaded: to tell whether a difference is ours

. "$(dirname "$0")/env.sh"
. tools/cluster.sh
. tools/debian.sh

# tree_of PG_CONFIG: sets tree, the folder with the suite of just this version, ready to run.
tree_of() {
    local version major work
    version=$("$1" --version | sed 's/[^0-9]*\([0-9.]*\).*/\1/')
    major=${version%%.*}
    tree=$cache/suite/$version/src/test/regress
    [ ! -x "$tree/pg_regress" ] || return 0
    echo "building the regression suite of $version (a minute on 2 cores)"
    work=$cache/src/$major
    unpack_source "$major" "$work" >/dev/null || return
    (
        unset MAKELEVEL MAKEFLAGS MFLAGS
        cd "$work/build"
        ./configure --quiet --without-icu --without-readline --without-zlib
        grep -q "PG_VERSION \"$version\"" src/include/pg_config.h || {
            echo "the source package is of another version than $version"
            exit 1
        }
        make --silent -j "$(nproc)" -C src/test/regress all
    ) >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; return 1; }
    mkdir -p "$cache/suite"
    rm -rf "$cache/suite/$version"
    mv "$work/build" "$cache/suite/$version"
    rm -rf "$work"
}

# run_suite PG_CONFIG [SETTING…]
run_suite() {
    local pg_config=$1 started=$SECONDS failed=0 prober='' preload=('session_preload_libraries = pg_io_probe')
    shift
    [ -z "${PROBES:-}" ] || preload=()
    tree_of "$pg_config"
    echo "$("$pg_config" --version) $*"
    # More checkpoints and more to do for autovacuum than by default.
    initdb_option=--data-checksums start_cluster "$("$pg_config" --bindir)" 'max_prepared_transactions = 2' \
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

    (cd "$tree" && as_server ./pg_regress --inputdir=. --bindir="$PG_BINDIR" --dlpath="$tree" --outputdir="$cluster/suite" \
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
alarming='PANIC|(was terminated|terminated by signal)|was not closed|refcount leak|page verification failed|invalid page in block'

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
failures=0
if [ $# -gt 0 ]; then
    run_suite "$@" || failures=1
else
    tools/deps.sh suite
    for pg_config in $(pg_configs); do
        if ! tree_of "$pg_config"; then
            echo "skipped $("$pg_config" --version): Debian does not have its source today"
            continue
        fi
        make -s PG_CONFIG="$pg_config" && make -s install PG_CONFIG="$pg_config"
        case $pg_config in
            */1[5-7]/*) run_suite "$pg_config" || failures=$((failures + 1)) ;;
            *)
                run_suite "$pg_config" 'io_method = worker' 'shared_preload_libraries = pg_io_probe' || failures=$((failures + 1))
                run_suite "$pg_config" 'io_method = io_uring' || failures=$((failures + 1))
                ;;
        esac
    done
fi
[ $failures = 0 ]
