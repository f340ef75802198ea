#!/usr/bin/env bash
# fuzz.sh [build | TARGET [OPTION…] | minimise TARGET]: coverage-guided fuzzing of what core and advise read from
# outside, by libFuzzer, with the stable compiler. The targets, and what they promise, are in core/src/hostile and
# advise/src/hostile.
#   without arguments     each target in turn, FUZZ_SECONDS each (default 1800)
#   TARGET [OPTION…]      one, with options of libFuzzer
#   minimise TARGET       leaves in the corpus only what its coverage needs
# Each target's corpus is an archive, fuzz/corpus/TARGET.tar, which is unpacked beside the binaries. New inputs go there,
# too; `minimise` takes over those that cover something new.

. "$(dirname "$0")/env.sh"

triple=$(rustc -vV | sed -n 's/^host: //p')
built=${CARGO_TARGET_DIR:-target}/fuzz
# The core is safe code: what a sanitizer would find, a panic tells. Overflows are checked (fuzz/Cargo.toml).
coverage=(-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares)

build() {
    RUSTFLAGS="--cfg fuzzing ${coverage[*]}" cargo build -q --locked --release --manifest-path fuzz/Cargo.toml \
        --target "$triple" --target-dir "$built"
}

# unpack TARGET: unpacks its corpus into a folder.
unpack() {
    rm -rf "${built:?}/corpus/$1"
    mkdir -p "$built/corpus/$1" "$built/found/$1"
    tar -xf "fuzz/corpus/$1.tar" -C "$built/corpus/$1"
}

# pack TARGET: packs that folder as the corpus. The same files make the same archive.
pack() {
    find "$built/corpus/$1" -type f -printf '%P\0' | LC_ALL=C sort -z |
        tar -cf "fuzz/corpus/$1.tar" -C "$built/corpus/$1" --null -T - \
            --format=ustar --mode=644 --owner=0 --group=0 --numeric-owner --mtime=@0
}

# run TARGET [OPTION…]: fuzzes it; what it finds beyond the corpus is kept.
run() {
    local target=$1 options=(-timeout=10 -rss_limit_mb=1024 -dict=fuzz/words.dict)
    shift
    unpack "$target"
    mkdir -p "$built/broken"
    FUZZ_TARGET=$target "$built/$triple/release/io_probe_fuzz" "${options[@]}" -artifact_prefix="$built/broken/$target-" "$@" \
        "$built/found/$target" "$built/corpus/$target"
}

# Of the inputs below 2,500 bytes, takes those that reach what others don't.
minimise() {
    local work
    work=$(mktemp -d)
    mkdir "$work/small" "$work/kept"
    unpack "$1"
    find "$built/corpus/$1" "$built/found/$1" -type f -size -2500c -exec cp {} "$work/small" \;
    FUZZ_TARGET=$1 "$built/$triple/release/io_probe_fuzz" -set_cover_merge=1 -use_counters=0 "$work/kept" "$work/small"
    # An input whose name is not a hash stays.
    find "$built/corpus/$1" -type f -regextype egrep -regex '.*/[0-9a-f]{40}' -delete
    cp -n "$work/kept"/* "$built/corpus/$1"
    pack "$1"
    rm -r "$work"
}

build
case ${1:-} in
    build) ;;
    minimise) minimise "$2" ;;
    '')
        for target in fuzz/corpus/*.tar; do
            run "$(basename "$target" .tar)" -max_total_time="${FUZZ_SECONDS:-1800}" -print_final_stats=1
        done
        ;;
    *) run "$@" ;;
esac
