#!/usr/bin/env bash
# check.sh [PG_CONFIG…]: runs everything that can be checked: format, lints, documentation, the tests of core/ and surface/,
# and on each PostgreSQL in the cache, or on these, the regression tests and the clients in tests/ (see CONTRIBUTING.md). What
# failed shows its output at the end; the last line counts it all. With PG_IO_PROBE_LONG set, each server has all of the clients,
# and each of those all of its cases.
#
# Most tests wait for a disk or for a clock, so several servers and the core are tested beside one another: LANES at a time,
# two a processor. Nothing is tried twice.

. "$(dirname "$0")/env.sh"
. tools/cluster.sh
exec </dev/null
shopt -s nullglob
LANES=${LANES:-$((2 * $(nproc)))}
# What continuous integration compiles stays in the cache; its checkout may not stay.
[ -z "${CI:-}" ] || export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$cache/target}"
target=${CARGO_TARGET_DIR:-target}
# The core's property tests try the same cases each time, and others in each long run.
[ -n "${PG_IO_PROBE_LONG:-}" ] || export PROPTEST_RNG_SEED=1
# What is linked depends on the sources alone, not on what was compiled before.
export CARGO_INCREMENTAL=0

# results has a line "PASSED FAILED" for each thing that was checked.
state=$(mktemp -d)
log=$state/log results=$state/results failures=$state/failures
touch "$results" "$failures"

# show_failures: shows, once, the output of what failed.
show_failures() {
    cat "$failures"
    : >"$failures"
}

clean_up() {
    local lane
    [ -z "${limited:-}" ] || kill "$limited" 2>/dev/null || true
    for lane in $(jobs -p); do
        kill -- "-$lane" 2>/dev/null || true
    done
    wait
    stop_cluster
    show_failures
    rm -rf "$state"
}
trap clean_up EXIT
trap 'exit 1' TERM INT

# say TEXT…: prints it in one piece, whatever the other lanes print.
say() {
    (
        flock 9
        printf '%s\n' "$*"
    ) 9>"$state/lock"
}

# within SECONDS COMMAND…: runs it, and ends it after SECONDS or when this script has to end: `timeout` has its own process group.
within() {
    local status=0
    # What runs in the background ignores interrupts unless it is told not to.
    env --default-signal=INT,QUIT timeout -k 10 "$@" &
    limited=$!
    wait "$limited" || status=$?
    limited=
    return "$status"
}

# report NAME START PASSED FAILED: adds to the count, and keeps the log if something failed.
report() {
    echo "$3 $4" >>"$results"
    if [ "$4" = 0 ]; then
        say "$(printf 'ok      %s: %d (%d s)' "$1" "$3" $((SECONDS - $2)))"
    else
        say "$(printf 'FAILED  %s: %d of %d (%d s)' "$1" "$4" $(($3 + $4)) $((SECONDS - $2)))"
        say "--- $1"$'\n'"$(cat "$log")" >>"$failures"
    fi
}

# step NAME COMMAND…: runs it as one test.
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

# core_tests: runs the tests that need no server. One that does not end, which Cargo names after a minute, is a failure.
core_tests() {
    local start=$SECONDS status=0 passed failed
    within 900 cargo test -q -p io_probe_core -p io_probe_advise -p io_probe_surface --no-fail-fast >"$log" 2>&1 || status=$?
    read -r passed failed < <(awk '/^test result:/ { p += $4; f += $6 } END { print p + 0, f + 0 }' "$log")
    [ "$status" = 0 ] || [ "$failed" != 0 ] || failed=1 # it failed before it came to a test
    case $status in 124 | 137) failed=$((failed + 1)) ;; esac # one hung, which has no name in the list
    report 'core and surface' "$start" "$passed" "$failed"
}

version_of() {
    "$1" --version | sed 's/[^0-9]*\([0-9.]*\).*/\1/'
}

# compile_core: compiles what needs no server, so that the lanes find it compiled.
compile_core() {
    log=$(mktemp -p "$state")
    test_devices
    step 'clippy, core and surface' \
        cargo clippy -q --release -p io_probe_core -p io_probe_advise -p io_probe_surface --all-targets -- -D warnings || true
    step 'crates without a server: build' cargo test -q -p io_probe_core -p io_probe_advise -p io_probe_surface --no-run || true
}

# test_devices: lints, tests and compiles the made-up devices, where devices/device.sh looks for them.
test_devices() {
    local devices=(--locked --release --ignore-rust-version --manifest-path devices/Cargo.toml --target-dir "$target/devices")
    step 'made-up devices: clippy' cargo clippy -q "${devices[@]}" --all-targets -- -D warnings || true
    step 'made-up devices: tests' cargo test -q "${devices[@]}" || true
    step 'made-up devices: build' cargo build -q "${devices[@]}" || true
}

# compile PG_CONFIG: builds and installs for that server, and on success makes a file named by its version. Each version has a
# target folder of its own: in a common one, each would compile anew what they share. Only the newest is optimized as users have
# it, and versions between the oldest and the newest are not linted: a new machine would spend minutes on that. The compiler's
# warnings are errors on all.
compile() {
    local version major
    version=$(version_of "$1") major=${version%%.*}
    log=$(mktemp -p "$state")
    export PGRX_PG_CONFIG_PATH=$1
    if [ "$1" = "$oldest" ] || [ "$1" = "$newest" ]; then
        # The same folder as make's: what pgrx generates is made once.
        step "$version: clippy" cargo clippy -q --release --ignore-rust-version --target-dir "$target/pg$major" --all-targets \
            --features "pg$major" -- -D warnings || true
    fi
    [ "$1" = "$newest" ] ||
        export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1
    ! step "$version: build" build_and_install "$1" || touch "$state/$version"
    [ "$1" != "$newest" ] || RUSTDOCFLAGS='-D warnings' step 'documentation' \
        cargo doc -q --release --ignore-rust-version --target-dir "$target/pg$major" --workspace --no-deps \
        --document-private-items --features "pg$major" || true
}

build_and_install() {
    make -s PG_CONFIG="$1" RUSTC_OPTIONS='-D warnings' && make -s uninstall PG_CONFIG="$1" && make -s install PG_CONFIG="$1"
}

# --- a server ------------------------------------------------------------------------------------------------------

# regress NAME PG_CONFIG TEST…: runs the regression tests, of which each counts.
regress() {
    local name=$1 pg_config=$2 start=$SECONDS passed failed
    shift 2
    rm -rf "$cluster/regress"
    mkdir "$cluster/regress"
    within 1500 make -s installcheck PG_CONFIG="$pg_config" REGRESS="$*" REGRESS_OPTS="--outputdir=$cluster/regress" \
        >"$log" 2>&1 || true
    # 15 prints "test NAME ... ok", later ones "ok 1 - NAME".
    passed=$(sed -nE 's/^(test +([a-z_]+) .*\.\.\. ok|ok [0-9]+ +[-+] +([a-z_]+)) .*/\2\3/p' "$log")
    failed=$(printf '%s\n' "$@" | grep -vxF "$passed" || true)
    [ -z "$failed" ] || tail -n 30 "$cluster/log" >>"$log"
    # Last, since whoever sees only the end of a long output wants these lines.
    cat "$cluster/regress/regression.diffs" >>"$log" 2>/dev/null || true
    report "$name: regress" "$start" "$(wc -w <<<"$passed")" "$(wc -w <<<"$failed")"
}

# Seconds that a client may take: ten hours in the long mode, in which faults and calls are tried many times.
patience=1800
[ -z "${PG_IO_PROBE_LONG:-}" ] || patience=36000

# client NAME FILE: runs one of tests/ in a database and a folder of its own; exit status 77 says: can't run here.
client() {
    local name=$1 file=$2 start=$SECONDS status=0
    export PGDATABASE=client_test
    {
        rm -rf "$TEST_TMP" && as_server mkdir "$TEST_TMP" &&
            dropdb --if-exists --force "$PGDATABASE" && createdb "$PGDATABASE" &&
            sql -c 'CREATE EXTENSION pg_io_probe' &&
            within "$patience" "$file"
    } >"$log" 2>&1 || status=$?
    # Even a server that is meant to end must not do so by a failed assertion.
    ! grep -a 'TRAP: ' "$cluster/log" >>"$log" || status=1
    if [ $status = 0 ]; then
        report "$name: $file" "$start" 1 0
    elif [ $status = 77 ]; then
        say "skipped $name: $file: $(tail -n 1 "$log")"
    else
        tail -n 30 "$cluster/log" >>"$log"
        report "$name: $file" "$start" 0 1
    fi
}

# The oldest server and the newest that is released have all tests; but files that hardly depend on the version run on one of the
# two only. The others have one short job: how they read, what their catalogs hold, how a run is stored and how an ERROR passes.
# io_method decides how the newest reads, so with another one it has the tests that read: with `sync` it reads as 17 does. With
# io_uring it reads as no other version does, with reads in flight: there processes die and relations are taken away, too.
tests=$(sed -n 's/^REGRESS = //p' Makefile)
few_tests=${tests/ recommend_costs/}
reading_tests='extension device cache seqscan random depth ping page_cost recommend iostat bad_input settings explain cleanup'
short_tests='extension cache seqscan random iostat history compare bad_input search_path settings explain upgrade cleanup'
only_oldest=(tests/encoding.py)
only_newest=(tests/{any_disk,argument_sizes,large_relations}.py)
short=(tests/{errors,accuracy,workers,served}.py)
in_flight=(tests/{cancel,crashes,ddl,faults,iostat,random_accuracy,accuracy,served}.py)

# A job is a server with some settings, and what is tested on it.
names=() configs=() settings=() tests_of=() clients_of=()

# add_job NAME PG_CONFIG SETTING TESTS CLIENT…
add_job() {
    names+=("$1") configs+=("$2") settings+=("$3") tests_of+=("$4")
    shift 4
    clients_of+=("$*")
}

# add_jobs NAME PG_CONFIG SETTING TESTS CLIENT…: the tests are one job, each client that takes long is one, and each four
# other clients are one. All take about equally long.
long=(tests/{costs,cron,errors,growth,sync}.py)
add_jobs() {
    local server=("${@:1:3}") file others=() i
    add_job "${@:1:4}"
    shift 4
    for file; do
        case " ${long[*]} " in
            *" $file "*) add_job "${server[@]}" '' "$file" ;;
            *) others+=("$file") ;;
        esac
    done
    for ((i = 0; i < ${#others[@]}; i += 4)); do
        add_job "${server[@]}" '' "${others[@]:i:4}"
    done
}

# all_but FILE…: sets clients to all but these; in the long mode to all.
all_but() {
    local file
    clients=()
    for file in tests/*.sh tests/*.py; do
        [ -x "$file" ] || continue
        [ -z "${PG_IO_PROBE_LONG:-}" ] && [[ " $* " = *" $file "* ]] || clients+=("$file")
    done
}

# with_server JOB COMMAND…: runs it on the job's server.
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

# test_server JOB: runs the job's tests and clients.
test_server() {
    local file
    # shellcheck disable=SC2086
    [ -z "${tests_of[$1]}" ] || regress "${names[$1]}" "${configs[$1]}" ${tests_of[$1]}
    for file in ${clients_of[$1]}; do
        client "${names[$1]}" "$file"
    done
}

# lane: does one job after another, until none is left.
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
    [ "$(grep -c "\"version\": \"$version\"" META.json)" = 2 ] && grep -q "^default_version = '$version'" pg_io_probe.control
}

# What is printed from the declaration is what is committed.
printed() {
    local version
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
    cargo run -q -p io_probe_surface -- script | diff "sql/pg_io_probe--$version.sql" - &&
        cargo run -q -p io_probe_surface -- columns | diff docs/columns.md - &&
        cargo run -q -p io_probe_surface -- calls | diff tests/calls.json - || { echo 'run make printed'; return 1; }
}

# For what rustfmt does not wrap: comments and literals.
no_wide_lines() {
    local most files
    most=$(sed -n 's/^max_width = //p' rustfmt.toml)
    mapfile -t files < <(git ls-files '*.rs')
    [ "${#files[@]}" -gt 0 ] && ! LC_ALL=C.UTF-8 grep -nE "^.{$((most + 1))}" "${files[@]}"
}

servers=("$@")
if [ $# = 0 ]; then
    tools/deps.sh check || { echo '0 passed, 1 failed'; exit 1; }
    mapfile -t servers < <(pg_configs)
fi

step 'Cargo.lock is up to date' cargo fetch --locked || true
step 'devices/Cargo.lock is up to date' cargo fetch --locked --manifest-path devices/Cargo.toml || true
step 'META.json and the control file have the version of Cargo.toml' same_version || true
step 'format' cargo fmt --all --check || true
step 'format of devices/' cargo fmt --check --manifest-path devices/Cargo.toml || true
step 'no line of Rust is wider than max_width' no_wide_lines || true
if command -v shellcheck >/dev/null; then
    step 'shellcheck' shellcheck -x -P SCRIPTDIR .ci/run tools/*.sh tests/*.sh bench/*.sh devices/*.sh experiments/*.sh || true
fi
step 'the script of CREATE EXTENSION, docs/columns.md and tests/calls.json are those of surface/' printed || true
step 'bench: arithmetic' bench/test_arithmetic.py || true
oldest=${servers[0]} newest=${servers[-1]}
# A version that is not released yet is called 19rc1, say.
for pg_config in "${servers[@]}"; do
    [[ "$("$pg_config" --version)" =~ \ [0-9]+(devel|alpha|beta|rc) ]] || newest=$pg_config
done
set -m
compile_core &
for pg_config in "${servers[@]}"; do
    while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n; done
    compile "$pg_config" &
done
set +m
wait

for pg_config in "${servers[@]}"; do
    version=$(version_of "$pg_config")
    if [ ! -e "$state/$version" ]; then
        continue # it could not be compiled for this one
    elif [ "$pg_config" = "$oldest" ]; then
        all_but "${only_newest[@]}"
        add_jobs "$version" "$pg_config" '' "$few_tests" "${clients[@]}"
    elif [ "$pg_config" != "$newest" ] && [ -n "${PG_IO_PROBE_LONG:-}" ]; then
        all_but
        add_jobs "$version" "$pg_config" '' "$tests" "${clients[@]}"
    elif [ "$pg_config" != "$newest" ]; then
        add_job "$version" "$pg_config" '' "$short_tests" "${short[@]}"
    else
        all_but "${only_oldest[@]}"
        add_jobs "$version, worker" "$pg_config" 'io_method = worker' "$tests" "${clients[@]}"
        add_jobs "$version, sync" "$pg_config" 'io_method = sync' "$reading_tests"
        add_jobs "$version, io_uring" "$pg_config" 'io_method = io_uring' "$reading_tests" "${in_flight[@]}"
    fi
done
# The jobs that take longest come first, so that none is left for the end. Their seconds are estimates.
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
# Each lane is a process group, so that an interrupt reaches what is not meant to ignore it.
set -m
for _ in $(seq "$LANES"); do
    lane &
done
set +m
wait
read -r passed failed < <(awk '{ p += $1; f += $2 } END { print p + 0, f + 0 }' "$results")
show_failures
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
