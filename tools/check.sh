#!/usr/bin/env bash
# Runs everything that can be checked: format, lints, documentation, the core's tests, and on each PostgreSQL in the
# cache the regression tests and the clients in tests/ (see CONTRIBUTING.md). What fails shows its output; the last
# line counts it all.
#
# Most tests wait for a disk or for a clock, so several servers and the core are tested beside one another: LANES (8) at a
# time. What fails there gets a second try when the lanes are over, with nothing beside it: a disk that others use may be
# in the way once, a defect fails twice. The line before the last tells how many needed it.

. "$(dirname "$0")/env.sh"
. tools/cluster.sh
exec </dev/null
shopt -s nullglob
LANES=${LANES:-8}
# What continuous integration compiles stays in the cache, where its checkout may not.
[ -z "${CI:-}" ] || export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$cache/target}"
target=${CARGO_TARGET_DIR:-target}
# What is linked hangs on the sources alone, not on what was compiled before.
export CARGO_INCREMENTAL=0

# results has a line "PASSED FAILED" for each thing that was checked, again one "JOB NAME" for each that needs a second try.
state=$(mktemp -d)
log=$state/log results=$state/results again=$state/again
touch "$results" "$again"

clean_up() {
    local lane
    [ -z "${limited:-}" ] || kill "$limited" 2>/dev/null || true
    for lane in $(jobs -p); do
        kill -- "-$lane" 2>/dev/null || true
    done
    wait
    stop_cluster
    rm -rf "$state"
}
trap clean_up EXIT
trap 'exit 1' TERM INT

# say TEXT…: prints it undivided by what others print.
say() {
    (
        flock 9
        printf '%s\n' "$*"
    ) 9>"$state/lock"
}

# within SECONDS COMMAND…: ends it when that is over, or when this is told to end: `timeout` has a process group of its own.
within() {
    local status=0
    # What runs in the background ignores interrupts unless it is told not to.
    env --default-signal=INT,QUIT timeout -k 10 "$@" &
    limited=$!
    wait "$limited" || status=$?
    limited=
    return "$status"
}

# report NAME START PASSED FAILED: adds to the count, and shows the log if something failed.
report() {
    echo "$3 $4" >>"$results"
    if [ "$4" = 0 ]; then
        say "$(printf 'ok      %s: %d (%d s)' "$1" "$3" $((SECONDS - $2)))"
    else
        say "$(cat "$log"; printf 'FAILED  %s: %d of %d (%d s)' "$1" "$4" $(($3 + $4)) $((SECONDS - $2)))"
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

# core_tests [NAME…]: the core's tests, or just these. On a first try, those that fail are only noted. One that does not end,
# which Cargo names after a minute, is a failure.
core_tests() {
    local start=$SECONDS status=0 passed failed names
    within 900 cargo test -q -p io_probe_core --no-fail-fast -- ${1:+--exact "$@"} >"$log" 2>&1 || status=$?
    read -r passed failed < <(awk '/^test result:/ { p += $4; f += $6 } END { print p + 0, f + 0 }' "$log")
    [ "$status" = 0 ] || [ "$failed" != 0 ] || failed=1 # it failed before it came to a test
    case $status in 124 | 137) failed=$((failed + 1)) ;; esac # one hung, which has no name in the list
    # The names stand in a list by themselves, and before it each above what it printed.
    names=$(sed -n 's/^    \([a-z0-9_]*\(::[a-z0-9_]*\)*\)$/\1/p' "$log" | sort -u)
    if [ $# = 0 ] && [ -n "$names" ] && [ "$(wc -w <<<"$names")" = "$failed" ]; then
        # shellcheck disable=SC2086
        printf 'core %s\n' $names >>"$again"
        # shellcheck disable=SC2086
        say "$(cat "$log")" $'\n'"again   core:" $names
        failed=0
    fi
    report "core${1:+, second try}" "$start" "$passed" "$failed"
}

version_of() {
    "$1" --version | sed 's/[^0-9]*\([0-9.]*\).*/\1/'
}

# is_between PG_CONFIG MAJOR: is it neither the oldest nor one of those that have all tests, from 18 on?
is_between() {
    [ "$1" != "${servers[0]}" ] && [ "$2" -lt 18 ]
}

# compile_core: so that the lanes find it compiled.
compile_core() {
    log=$(mktemp -p "$state")
    step 'clippy, core' cargo clippy -q --release -p io_probe_core --all-targets -- -D warnings || true
    step 'core: build' cargo test -q -p io_probe_core --no-run || true
}

# compile PG_CONFIG: lints, builds and installs for that server, which makes a file of its version's name. Each has a folder
# of its own: what they share, one after the other would compile anew. Those in between are hardly optimized: a new machine would
# spend minutes on that.
compile() {
    local version major
    version=$(version_of "$1") major=${version%%.*}
    log=$(mktemp -p "$state")
    export CARGO_TARGET_DIR=$target/pg$major PGRX_PG_CONFIG_PATH=$1
    ! is_between "$1" "$major" ||
        export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1
    step "$version: clippy" cargo clippy -q --release --all-targets --features "pg$major" -- -D warnings || true
    ! step "$version: build" build_and_install "$1" || touch "$state/$version"
    # Once, with the newest.
    [ "$1" != "${servers[-1]}" ] || RUSTDOCFLAGS='-D warnings' step 'documentation' \
        cargo doc -q --release --workspace --no-deps --document-private-items --features "pg$major" || true
}

build_and_install() {
    make -s PG_CONFIG="$1" && make -s uninstall PG_CONFIG="$1" && make -s install PG_CONFIG="$1"
}

# --- a server ------------------------------------------------------------------------------------------------------

# regress JOB NAME PG_CONFIG TEST…: the regression tests, of which each counts. On a first try, when may_retry is set,
# those that fail are only noted.
regress() {
    local job=$1 name=$2 pg_config=$3 start=$SECONDS passed failed
    shift 3
    rm -rf "$cluster/regress"
    mkdir "$cluster/regress"
    within 1500 make -s installcheck PG_CONFIG="$pg_config" REGRESS="$*" REGRESS_OPTS="--outputdir=$cluster/regress" \
        >"$log" 2>&1 || true
    # 15 prints "test NAME ... ok", later ones "ok 1 - NAME".
    passed=$(sed -nE 's/^(test +([a-z_]+) .*\.\.\. ok|ok [0-9]+ +[-+] +([a-z_]+)) .*/\2\3/p' "$log")
    failed=$(printf '%s\n' "$@" | grep -vxF "$passed" || true)
    cat "$cluster/regress/regression.diffs" >>"$log" 2>/dev/null || true
    [ -z "$failed" ] || tail -n 30 "$cluster/log" >>"$log"
    if [ -n "${may_retry:-}" ] && [ -n "$failed" ]; then
        # shellcheck disable=SC2086
        printf "$job regress %s\n" $failed >>"$again"
        # shellcheck disable=SC2086
        say "$(cat "$cluster/regress/regression.diffs" 2>/dev/null)" $'\n'"again   $name: regress:" $failed
        failed=
    fi
    report "$name: regress" "$start" "$(wc -w <<<"$passed")" "$(wc -w <<<"$failed")"
}

# Of many cases a check tries some, a second try the same: see by_chance and on_one_server in tests/lib.py.
export CHANCE=${CHANCE:-$((RANDOM % 6))}
echo "CHANCE=$CHANCE: which of the many cases are tried"

# Seconds that a client may take: ten hours in the long mode, in which faults and calls are tried many times.
patience=600
[ -z "${PG_IO_PROBE_LONG:-}" ] || patience=36000

# client JOB NAME FILE: runs one of tests/ in a database and a folder of its own; exit status 77 says: can't run here.
client() {
    local job=$1 name=$2 file=$3 start=$SECONDS status=0
    local place
    export PLACE=0 SERVERS=1
    for place in "${!full[@]}"; do
        [ "${full[place]}" != "${configs[job]}" ] || export PLACE=$place SERVERS=${#full[@]}
    done
    export PGDATABASE=client_test
    {
        rm -rf "$TEST_TMP" && as_server mkdir "$TEST_TMP" &&
            dropdb --if-exists --force "$PGDATABASE" && createdb "$PGDATABASE" &&
            sql -c 'CREATE EXTENSION pg_io_probe' &&
            within "$patience" "$file"
    } >"$log" 2>&1 || status=$?
    if [ $status = 0 ]; then
        report "$name: $file" "$start" 1 0
    elif [ $status = 77 ]; then
        say "skipped $name: $file: $(tail -n 1 "$log")"
    elif [ -n "${may_retry:-}" ]; then
        echo "$job client $file" >>"$again"
        say "$(cat "$log")" $'\n'"again   $name: $file"
    else
        tail -n 30 "$cluster/log" >>"$log"
        report "$name: $file" "$start" 0 1
    fi
}

# The oldest server and 18 have all tests; but what the planner picks, and what that says of storage, is asked on one of the two,
# by chance. Servers in between have those for how they read, what their catalogs hold, and how a run is stored, and 18 with another
# io_method, which decides how it reads, those that read. With `sync` it reads as 17 does: of the clients each runs on one of these,
# by chance. With io_uring it reads as none, and has reads in flight: processes die and relations are taken away, too.
tests=$(sed -n 's/^REGRESS = //p' Makefile)
few_tests=${tests/ recommend_costs/}
reading_tests='extension device cache seqscan random depth ping page_cost recommend iostat bad_input settings explain cleanup'
all=(tests/*.sh tests/*.py)
truths=(tests/{iostat,random_truth,truth}.py)
ends=(tests/{cancel,faults}.py)
in_flight=(tests/{crashes,ddl}.py)
stored=(tests/{dump,history}.py)
# What hardly depends on the version, by whole files: on one of the servers that have all tests.
alike=(tests/{encodings,growth,hostile_storage,limits,size,sync}.py)
# The regression tests are a job, each of these is one, and each four of the others: of about as many seconds.
long=(tests/{costs,cron,growth,sync}.py)

# share PLACE COUNT FILE…: which of these the server at that place of so many tries: each file is for one, by chance; in the
# long mode for all.
share() {
    local place=$1 count=$2 turn=$CHANCE file
    shift 2
    for file; do
        [ -z "${PG_IO_PROBE_LONG:-}" ] && ((turn++ % count != place)) || echo "$file"
    done
}

# A job is a server with some settings, and what is tested on it.
names=() configs=() settings=() tests_of=() clients_of=()

# add_job NAME PG_CONFIG SETTING TESTS CLIENT…
add_job() {
    names+=("$1") configs+=("$2") settings+=("$3") tests_of+=("$4")
    shift 4
    clients_of+=("$*")
}

# add_all PLACE NAME PG_CONFIG SETTING: jobs for all there is, but for the share of others.
add_all() {
    local count=${#full[@]} place=$1 clients others=() file i
    shift
    mapfile -t clients < <(
        printf '%s\n' "${all[@]}" | grep -vxF "$(printf '%s\n' "${alike[@]}")"
        share "$place" "$count" "${alike[@]}"
    )
    if [ -n "$(share "$place" "$count" recommend_costs)" ]; then
        add_job "$@" "$tests"
    else
        add_job "$@" "$few_tests"
    fi
    for file in "${clients[@]}"; do
        [ -x "$file" ] || continue
        case " ${long[*]} " in
            *" $file "*) add_job "$@" '' "$file" ;;
            *) others+=("$file") ;;
        esac
    done
    for ((i = 0; i < ${#others[@]}; i += 4)); do
        add_job "$@" '' "${others[@]:i:4}"
    done
}

# with_server JOB COMMAND…: does it on the job's server.
with_server() {
    local job=$1
    shift
    if start_cluster "$("${configs[job]}" --bindir)" ${settings[job]:+"${settings[job]}"} >"$log" 2>&1; then
        "$@"
    elif grep -q 'could not setup io_uring' "$log"; then
        say "skipped ${names[job]}: the kernel or the container refuses io_uring"
    else
        report "${names[job]}: start" "$SECONDS" 0 1
    fi
    stop_cluster
}

# test_server JOB: all that is to be tested on it.
test_server() {
    local file
    # shellcheck disable=SC2086
    [ -z "${tests_of[$1]}" ] || regress "$1" "${names[$1]}" "${configs[$1]}" ${tests_of[$1]}
    for file in ${clients_of[$1]}; do
        client "$1" "${names[$1]}" "$file"
    done
}

# second_try JOB: what failed there.
second_try() {
    local failed file
    failed=$(sed -n "s/^$1 regress //p" "$again" | grep -vxE 'extension|cleanup' || true)
    if grep -q "^$1 regress " "$again"; then
        # shellcheck disable=SC2086
        regress "$1" "${names[$1]}, second try" "${configs[$1]}" extension $failed cleanup
    fi
    # shellcheck disable=SC2013 # no name of a test has a blank
    for file in $(sed -n "s/^$1 client //p" "$again"); do
        client "$1" "${names[$1]}, second try" "$file"
    done
}

# lane: does one job after another, until somebody has done the last.
lane() {
    local job
    log=$(mktemp -p "$state")
    trap stop_cluster EXIT
    trap 'kill "${limited:-}" 2>/dev/null; exit 1' TERM
    # shellcheck disable=SC2016
    while job=$(flock "$state/lock" sh -c 'head -n 1 "$0"; sed -i 1d "$0"' "$state/queue") && [ -n "$job" ]; do
        if [ "$job" = core ]; then
            core_tests
        else
            with_server "$job" test_server "$job"
        fi
    done
}

# --- all of it -----------------------------------------------------------------------------------------------------

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
for judges in bench/*_judges.py bench/plan_regret.py bench/what_probes_cost.py; do
    step "$judges" "$judges" --self-test || true
done
mapfile -t servers < <(pg_configs)
set -m
compile_core &
for pg_config in "${servers[@]}"; do
    while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n; done
    compile "$pg_config" &
done
set +m
wait

full=() partial=()
for pg_config in "${servers[@]}"; do
    version=$(version_of "$pg_config")
    [ -e "$state/$version" ] || continue
    if is_between "$pg_config" "${version%%.*}"; then
        partial+=("$pg_config")
    else
        full+=("$pg_config")
    fi
done
for i in "${!partial[@]}"; do
    mapfile -t clients < <(
        share "$i" $((${#partial[@]} + 1)) "${truths[@]}"
        share "$i" "${#partial[@]}" "${ends[@]}" "${stored[@]}"
    )
    add_job "$(version_of "${partial[i]}")" "${partial[i]}" '' "$few_tests" "${clients[@]}"
done
for i in "${!full[@]}"; do
    pg_config=${full[i]}
    version=$(version_of "$pg_config") major=${version%%.*}
    if [ "$major" -lt 18 ]; then
        add_all "$i" "$version" "$pg_config" ''
    else
        add_all "$i" "$version, worker" "$pg_config" 'io_method = worker'
        for method in sync io_uring; do
            [ $method != io_uring ] || [[ $("$pg_config" --configure) = *liburing* ]] || continue
            clients=("${truths[@]}" "${ends[@]}" "${in_flight[@]}")
            [ $method != sync ] || mapfile -t clients < <(
                share "${#partial[@]}" $((${#partial[@]} + 1)) "${truths[@]}"
            )
            add_job "$version, $method" "$pg_config" "io_method = $method" "$reading_tests" "${clients[@]}"
        done
    fi
done
# Those that take longest first, so that none is left for the end: about as many seconds as this.
{
    for job in "${!names[@]}"; do
        seconds=0
        for file in ${tests_of[job]}; do
            [ "$file" != recommend_costs ] || seconds=$((seconds + 150))
            seconds=$((seconds + 4))
        done
        for file in ${clients_of[job]}; do
            case " ${long[*]} " in
                *" $file "*) seconds=$((seconds + 100)) ;;
                *) seconds=$((seconds + 30)) ;;
            esac
        done
        echo "$seconds $job"
    done
    echo "120 core"
} | sort -rn | cut -d ' ' -f 2 >"$state/queue"
may_retry=yes
# Each a process group, so that an interrupt reaches what is not meant to ignore it.
set -m
for _ in $(seq "$LANES"); do
    lane &
done
set +m
wait
may_retry=
if grep -q '^core ' "$again"; then
    # shellcheck disable=SC2046 # no name has a blank
    core_tests $(sed -n 's/^core //p' "$again")
fi
for job in "${!names[@]}"; do
    ! grep -q "^$job " "$again" || with_server "$job" second_try "$job"
done

read -r passed failed < <(awk '{ p += $1; f += $2 } END { print p + 0, f + 0 }' "$results")
[ ! -s "$again" ] || echo "$(wc -l <"$again") had a second try"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
