#!/usr/bin/env bash
# sanitize.sh [address|thread|miri|valgrind …]: core's tests, and with them its I/O paths, watched for memory that is used
# when it should not be, races and other undefined behaviour. Without arguments: all four. What can't be had here is skipped,
# which the output says.
#   address   AddressSanitizer and LeakSanitizer: all tests
#   thread    ThreadSanitizer, with a standard library built for it (rustup component add rust-src): tests with threads
#   miri      an interpreter that knows all the rules, but few system calls (rustup component add --toolchain nightly miri):
#             tests that compute, and those of the buffers, the threads and the blocking reads of the engines
#   valgrind  memcheck: reads of memory that was never written, which AddressSanitizer doesn't see: tests that read and write,
#             but for one that times committers, which valgrind runs one at a time

. "$(dirname "$0")/env.sh"

target=$(rustc -vV | sed -n 's/^host: //p')
folder=${CARGO_TARGET_DIR:-$cache/target}-sanitize
# Cases of a property test, as many as make sense at a tenth of the speed or less.
export PROPTEST_CASES=${PROPTEST_CASES:-16}
unset RUST_BACKTRACE
failures=0 ran=0
log=$(mktemp)
trap 'rm -f "$log" "$log.leaks"' EXIT
# These tests leak on purpose: they abandon something, as a process that exits does, or want a clock to outlive them.
leaking_tests=(a_process_that_exits_joins engines_can_be_dropped_and_shut_down a_sweep_visits_all_depths a_sweep_of_a_slow_device swept_for)

# run NAME COMMAND…: runs it, with a folder of its own to build in, and shows its output if it fails.
run() {
    local name=$1 start=$SECONDS
    shift
    ran=$((ran + 1))
    if CARGO_TARGET_DIR=$folder/$name "$@" >"$log" 2>&1; then
        # shellcheck disable=SC2016
        awk -v name="$name" -v took=$((SECONDS - start)) '/^test result:/ { passed += $4; left += $8 + $12 }
            END { printf "ok      %s: %d tests, %d left out (%d s)\n", name, passed, left, took }' "$log"
    else
        cat "$log"
        echo "FAILED  $name ($((SECONDS - start)) s)"
        failures=$((failures + 1))
    fi
}

skip() {
    echo "skipped $1: $2"
}

address() {
    printf 'leak:%s\n' "${leaking_tests[@]}" >"$log.leaks"
    LSAN_OPTIONS=print_suppressions=0:suppressions=$log.leaks RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address run address \
        cargo test -q -p io_probe_core -p io_probe_advise --target "$target" --no-fail-fast
}

# In the standard library as it comes, ThreadSanitizer would not see what the locks order.
thread() {
    if [ ! -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ]; then
        skip thread 'no source of the standard library: rustup component add rust-src'
    else
        RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=thread run thread \
            cargo test -q -Zbuild-std -p io_probe_core -p io_probe_advise --lib --target "$target" --no-fail-fast -- \
            workers:: engine:: ping:: random:: readahead:: scan:: sync:: page_times::
    fi
}

# The tests that Miri can run, and runs within minutes. It knows neither io_uring nor O_DIRECT nor O_TMPFILE, starts no process, and
# reads no directory, which is how a test gets an error of a read. Its short reads are off: engines know those, but their tests want
# files of a known length. What is abandoned on purpose is no leak.
miri_knows=(account:: clock:: workers:: device::mount:: device::queue:: engine:: plan::naming:: pressure::
    rounds:: budget:: tiers::
    --skip a_tally_of_real_processes --skip one_that_has_ended --skip cost_is_that_of_a_read
    --skip short_reads_and_errors_surface --skip a_process_that_exits_joins)

miri() {
    local toolchain
    for toolchain in "" +nightly; do
        if cargo ${toolchain:+"$toolchain"} miri --version >/dev/null 2>&1; then
            CARGO_PROFILE_TEST_OPT_LEVEL=0 MIRIFLAGS='-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-no-short-fd-operations' PROPTEST_CASES=2 run miri \
                cargo ${toolchain:+"$toolchain"} miri test -q -p io_probe_core -p io_probe_advise --lib --no-fail-fast -- "${miri_knows[@]}"
            return
        fi
    done
    skip miri 'rustup component add --toolchain nightly miri'
}

valgrind() {
    if ! type -P valgrind >/dev/null; then
        skip valgrind 'apt-get install valgrind'
        return
    fi
    local variable
    variable=CARGO_TARGET_$(tr a-z- A-Z_ <<<"$target")_RUNNER
    printf '{\n   left on purpose\n   Memcheck:Leak\n   ...\n   fun:*%s*\n}\n' "${leaking_tests[@]}" >"$log.leaks"
    run valgrind env "$variable=valgrind -q --suppressions=$log.leaks --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite" \
        cargo test -q -p io_probe_core --lib --target "$target" --no-fail-fast -- \
        page_cache:: workers:: engine:: holes:: fiemap:: relation_files:: memory:: ping:: random:: readahead:: \
            scan:: scratch:: sync:: --skip committers_share_flushes
}

case $# in 0) set -- address thread valgrind miri ;; esac
for kind; do
    case $kind in
        address | thread | miri | valgrind) "$kind" ;;
        *) echo "usage: sanitize.sh [address|thread|miri|valgrind …]" >&2; exit 2 ;;
    esac
done
echo "$((ran - failures)) passed, $failures failed"
[ "$failures" = 0 ]
