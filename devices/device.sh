#!/usr/bin/env bash
# device.sh: brings up a made-up block device for tests and benchmarks, as root. README.md has the models.
#   check                     says what is missing to have one here, and fails then
#   build                     compiles the server, into the target folder, and prints where it is
#   up NAME GIB               makes the device, with the model `off`, and an ext4 of its own; prints, a line each, the block device,
#                             where its file system is mounted, and the folder of its control files
#   model NAME WORDS…         gives it a model, such as: model NAME gp3 iops=500
#   counts NAME               prints what it has done, a count a line
#   readahead NAME KB         sets its readahead; it begins with 128 kB, as in clouds
#   block NAME, mount NAME    print the block device, and where its file system is mounted
#   down NAME                 takes it away, with all that was on it
# It is in memory, and takes as much of it as was written. MADE_UP_DEVICES is the folder for all of them.

set -euo pipefail
folder=${MADE_UP_DEVICES:-/var/tmp/pg_io_probe_devices}
crate=$(dirname "${BASH_SOURCE[0]}")
target=${CARGO_TARGET_DIR:-$crate/../target}/devices

give_up() {
    echo "$*" >&2
    exit 1
}

check() {
    local tool
    [ "$(id -u)" = 0 ] || give_up 'only root can make a block device'
    { [ -c /dev/fuse ] && : </dev/fuse; } 2>/dev/null || give_up 'FUSE is not there: /dev/fuse cannot be opened'
    for tool in cargo losetup mkfs.ext4 mount chrt; do
        command -v "$tool" >/dev/null || give_up "could not find $tool"
    done
    losetup --find >/dev/null 2>&1 || give_up 'there are no loop devices here'
}

build() {
    cargo build -q --locked --release --ignore-rust-version --manifest-path "$crate/Cargo.toml" --target-dir "$target"
    echo "$target/release/io_probe_device"
}

# queue: the folder of its queue's settings.
queue() {
    echo "/sys/class/block/$(basename "$(<"$device/block")")/queue"
}

readahead() {
    echo "$1" >"$(queue)/read_ahead_kb"
}

# serve GIB: starts the server, at real-time priority where that is allowed: others on the machine would make it late.
serve() {
    local server priority=(chrt --fifo 10)
    server=$(build)
    "${priority[@]}" true 2>/dev/null || priority=()
    setsid "${priority[@]}" "$server" "$device/fuse" "$1" </dev/null >"$device/log" 2>&1 &
    until [ -e "$device/fuse/disk" ]; do
        kill -0 $! 2>/dev/null || give_up "$(cat "$device/log")"
        sleep 0.05
    done
}

up() {
    local block
    check
    mkdir -p "$folder"
    mkdir "$device" 2>/dev/null || give_up "$device is there already: device.sh down $(basename "$device")"
    trap down EXIT
    mkdir "$device/fuse" "$device/mount"
    serve "$1"
    block=$(losetup --direct-io=on --find --show "$device/fuse/disk")
    echo "$block" >"$device/block"
    [ "$(losetup --noheadings --output DIO "$block" | tr -d ' ')" = 1 ] || give_up "the kernel gives $block no direct I/O"
    # The next device of its number would have ours.
    cat "$(queue)/read_ahead_kb" >"$device/readahead_before"
    readahead 128
    # What mkfs leaves for later, the kernel would write while something is measured.
    mkfs.ext4 -q -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$block"
    mount -o noatime "$block" "$device/mount"
    trap - EXIT
    printf '%s\n' "$block" "$device/mount" "$device/fuse"
}

# Undoes as much of `up` as was done. What is waiting in a slow model is answered first.
down() {
    trap - EXIT
    [ ! -e "$device/fuse/model" ] || echo off >"$device/fuse/model"
    ! mountpoint -q "$device/mount" || retry umount "$device/mount" || umount --lazy "$device/mount"
    if [ -s "$device/block" ]; then
        readahead "$(<"$device/readahead_before")"
        losetup --detach "$(<"$device/block")"
    fi
    ! mountpoint -q "$device/fuse" || retry umount "$device/fuse" || umount --lazy "$device/fuse"
    rm -rf --one-file-system "$device"
}

# retry COMMAND…: what used it may need a moment to let go of it.
retry() {
    local attempt
    for attempt in 1 2 3 4 5; do
        ! "$@" 2>/dev/null || return 0
        sleep "0.$attempt"
    done
    return 1
}

# with_device COMMAND…: runs it on a device that is there.
with_device() {
    [ -e "$device/block" ] || give_up "no device is called $(basename "$device")"
    "$@"
}

set_model() {
    { echo "$*" >"$device/fuse/model"; } 2>/dev/null || give_up "$(tail -n 1 "$device/log")"
}

[[ "${1:-} ${2-x}" =~ ^[a-z]+\ [A-Za-z0-9_-]+$ ]] || set --
command=${1:-} device=$folder/${2:-}
shift $(($# < 2 ? $# : 2))
case $command in
    check) check ;;
    build) build ;;
    up) up "${1:-2}" ;;
    model) with_device set_model "$@" ;;
    counts) with_device cat "$device/fuse/counts" ;;
    readahead) with_device readahead "${1:?}" ;;
    block) with_device cat "$device/block" ;;
    mount) with_device echo "$device/mount" ;;
    down) [ ! -e "$device" ] || down ;;
    *) sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
