#!/usr/bin/env bash
# Runs everything that can be checked: format, lints, documentation, the core's tests, and on each PostgreSQL in the
# cache the regression tests and the clients in tests/ (see CONTRIBUTING.md). What fails shows its output; the last
# line counts it all.

. "$(dirname "$0")/env.sh"
. tools/cluster.sh
exec </dev/null
shopt -s nullglob
# A continuous integration run starts from a new checkout: what it compiled before is in the cache.
[ -z "${CI:-}" ] || export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$cache/target}"

log=$(mktemp)
trap 'stop_cluster; rm -f "$log"' EXIT
passed=0 failed=0

# report NAME START PASSED FAILED: adds to the count, and shows the log if something failed.
report() {
    passed=$((passed + $3)) failed=$((failed + $4))
    if [ "$4" = 0 ]; then
        printf 'ok      %s: %d (%d s)\n' "$1" "$3" $((SECONDS - $2))
    else
        cat "$log"
        printf 'FAILED  %s: %d of %d (%d s)\n' "$1" "$4" $(($3 + $4)) $((SECONDS - $2))
    fi
}

# step NAME COMMAND…: counts as one test.
step() {
    local name=$1 start=$SECONDS
    shift
    if "$@" >"$log" 2>&1; then
        report "$name" "$start" 1 0
    else
        report "$name" "$start" 0 1
        return 1
    fi
}

# count_tests NAME AWK COMMAND…: counts the tests that the awk program finds in the output, p passed and f failed.
count_tests() {
    local name=$1 awk=$2 start=$SECONDS status=0 p f
    shift 2
    "$@" >"$log" 2>&1 || status=$?
    read -r p f < <(awk "$awk"' END { print p + 0, f + 0 }' "$log")
    [ "$status" = 0 ] || [ "$f" != 0 ] || f=1 # it failed before it came to a test
    report "$name" "$start" "$p" "$f"
}

build_and_install() {
    make -s PG_CONFIG="$1" && make -s uninstall PG_CONFIG="$1" && make -s install PG_CONFIG="$1"
}

regress() {
    mkdir "$cluster/regress"
    make -s installcheck PG_CONFIG="$1" REGRESS_OPTS="--outputdir=$cluster/regress" || {
        cat "$cluster/regress/regression.diffs"
        tail -n 30 "$cluster/log"
        return 1
    }
}

# client NAME FILE: runs one of tests/ in a database and a folder of its own; exit status 77 says: can't run here.
client() {
    local start=$SECONDS status=0
    export PGDATABASE=client_test
    {
        rm -rf "$TEST_TMP" && as_server mkdir "$TEST_TMP" &&
            dropdb --if-exists --force "$PGDATABASE" && createdb "$PGDATABASE" &&
            sql -c 'CREATE EXTENSION pg_io_probe' &&
            timeout -k 10 300 "$2"
    } >"$log" 2>&1 || status=$?
    case $status in
        0) report "$1" "$start" 1 0 ;;
        77) printf 'skipped %s: %s\n' "$1" "$(tail -n 1 "$log")" ;;
        *) tail -n 30 "$cluster/log" >>"$log"; report "$1" "$start" 0 1 ;;
    esac
}

# Those that run on the oldest server and on 18; those among them that read through it, as io_method says; and those
# for servers in between, which differ in how they read, what their catalogs hold, and how a run is stored.
all=(tests/*.sh tests/*.py)
readers=(tests/{cancel,ddl,faults,iostat,random_truth,truth}.py)
between=("${readers[@]}" tests/{costs,dump,history}.py)

# on_server NAME PG_CONFIG [SETTING…]: the tests that need a server, on one with these settings.
on_server() {
    local name=$1 pg_config=$2 file
    shift 2
    if ! start_cluster "$("$pg_config" --bindir)" "$@" >"$log" 2>&1; then
        if grep -q 'could not setup io_uring' "$log"; then
            echo "skipped $name: the kernel or the container refuses io_uring"
        else
            report "$name: start" "$SECONDS" 0 1
        fi
    else
        count_tests "$name: regress" '/^(ok |test .*\.\.\. ok)/ { p++ } /^(not ok |test .*\.\.\. FAILED)/ { f++ }' \
            regress "$pg_config"
        for file in "${clients[@]}"; do
            [ ! -x "$file" ] || client "$name: $file" "$file"
        done
    fi
    stop_cluster
}

same_version() {
    local version
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
    [ "$(grep -c "\"version\": \"$version\"" META.json)" = 2 ]
}

tools/deps.sh || { echo '0 passed, 1 failed'; exit 1; }

step 'Cargo.lock is up to date' cargo fetch --locked || true
step 'META.json has the version of Cargo.toml' same_version || true
step 'format' cargo fmt --all --check || true
if command -v shellcheck >/dev/null; then
    step 'shellcheck' shellcheck -x -P SCRIPTDIR .ci/run tools/*.sh tests/*.sh bench/*.sh || true
fi
for judges in bench/*_judges.py bench/plan_regret.py; do
    step "$judges" "$judges" --self-test || true
done
step 'clippy, core' cargo clippy -q --release -p io_probe_core --all-targets -- -D warnings || true
# shellcheck disable=SC2016
count_tests 'core' '/^test result:/ { p += $4; f += $6 }' cargo test -q -p io_probe_core --no-fail-fast

mapfile -t servers < <(pg_configs)
for pg_config in "${servers[@]}"; do
    version=$("$pg_config" --version | sed 's/[^0-9]*\([0-9.]*\).*/\1/')
    major=${version%%.*}
    PGRX_PG_CONFIG_PATH=$pg_config step "$version: clippy" \
        cargo clippy -q --release --all-targets --features "pg$major" -- -D warnings || true
    step "$version: build" build_and_install "$pg_config" || continue
    clients=("${all[@]}")
    if [ "$major" -lt 18 ]; then
        [ "$pg_config" = "${servers[0]}" ] || clients=("${between[@]}")
        on_server "$version" "$pg_config"
    else
        for method in worker sync io_uring; do
            [ $method != io_uring ] || [[ $("$pg_config" --configure) = *liburing* ]] || continue
            on_server "$version, $method" "$pg_config" "io_method = $method"
            clients=("${readers[@]}")
        done
    fi
done
PGRX_PG_CONFIG_PATH=$pg_config RUSTDOCFLAGS='-D warnings' step 'documentation' \
    cargo doc -q --release --workspace --no-deps --document-private-items --features "pg$major" || true

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
