#!/usr/bin/env bash
# fresh.sh [root|user]…: the demo and the check as a newcomer meets them: on a new Debian 12, made by debootstrap in a folder that
# is deleted afterwards, from a clone of what is committed, with an empty cache. It shares the machine's kernel, network
# and Rust toolchain. It takes an hour, room in /var/tmp (FRESH_PARENT), and root.
#   root   first the network fails again and again; each `make deps` has to say so and the next to go on from there
#   user   a user with sudo types what the scripts print; Debian's archive has lost one of the versions in between
# What they print stays in $cache/fresh.

. "$(dirname "$0")/env.sh"
. tools/debian.sh

give_up() {
    echo "$*" >&2
    exit 1
}

[ "$(id -u)" = 0 ] || give_up 'a new system can be made by root only'
command -v debootstrap >/dev/null || give_up 'could not find debootstrap: run apt-get install debootstrap'
[ -z "$(git status --porcelain)" ] || echo 'what is not committed is not checked'
archive=$(archive_of_debian)
logs=$cache/fresh
mkdir -p "$logs"
# Bytes that go through before the network fails, each time: in the middle of packages, of servers, of crates.
piece=120000000

work=$(mktemp -d "${FRESH_PARENT:-/var/tmp}/pg_io_probe_fresh.XXXXXX")
proxy=
clean_up() {
    [ -z "$proxy" ] || kill "$proxy" 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

# new_system: makes the folder $root, with a user that may use sudo, the toolchain, and clones; all that comes from the
# network comes through the proxy.
new_system() {
    root=$work/root
    rm -rf --one-file-system "$root"
    cp -a "$work/base" "$root"
    mkdir -p "$root/opt/rust"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    echo "Acquire::http::Proxy \"http://127.0.0.1:$(cat "$work/port")\";" >"$root/etc/apt/apt.conf.d/proxy"
    # If the mirror is not renewed every day, the machine that uses it has these settings.
    apt-config dump | grep '^Acquire::Check-' >>"$root/etc/apt/apt.conf.d/proxy" || true
    chroot "$root" useradd --create-home --shell /bin/bash newcomer
    echo 'newcomer ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/newcomer"
    local home
    for home in root home/newcomer; do
        git clone -q --no-local "$PWD" "$root/$home/pg_io_probe"
    done
    chroot "$root" chown -R newcomer: /home/newcomer
}

# inside USER COMMAND: runs it there, in the clone. It has its own processes and mounts, which are gone when it ends.
# shellcheck disable=SC2016
inside() {
    local user=$1 command=$2 rust
    rust=$(rustc --print sysroot)
    rm -f "$work/limit" "$work/missing"
    [ -z "${limit:-}" ] || echo "$limit" >"$work/limit"
    [ -z "${missing:-}" ] || echo "$missing" >"$work/missing"
    root=$root rust=$rust user=$user unshare --mount --pid --fork --kill-child bash -euc '
        mount --make-rprivate /
        mount --bind "$root" "$root"
        mount --rbind /dev "$root/dev"
        mount --rbind /sys "$root/sys"
        mount -t proc proc "$root/proc"
        mount --bind -o ro "$rust" "$root/opt/rust"
        mkdir -p "$root/old"
        cd "$root"
        pivot_root . old
        umount -l /old
        cd /
        [ "$user" = root ] && home=/root || home=/home/$user
        status=0
        env -i HOME="$home" USER="$user" LANG=C.UTF-8 SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
            PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin https_proxy="$1" \
            setpriv --reuid="$user" --regid="$user" --init-groups -- bash -c "cd ~/pg_io_probe && $2" || status=$?
        exit $status # this shell stays, instead of the command, to reap processes whose parents are gone
    ' bash "http://127.0.0.1:$(cat "$work/port")" "$command" </dev/null
}

# passes NAME USER COMMAND: runs what has to succeed.
passes() {
    local start=$SECONDS
    if inside "$2" "$3" >"$logs/$1" 2>&1; then
        echo "ok      $1 ($((SECONDS - start)) s): $(grep -E '^[0-9]+ passed' "$logs/$1" | tail -n 1)"
    else
        tail -n 50 "$logs/$1"
        echo "FAILED  $1 ($((SECONDS - start)) s)"
        exit 1
    fi
}

# says_what_to_install NAME USER COMMAND: runs what has to stop with a line for sudo, then runs that line.
says_what_to_install() {
    local line
    ! inside "$2" "$3" >"$logs/$1" 2>&1 || give_up "$1 should have stopped"
    line=$(sed -n '/^sudo apt-get /p' "$logs/$1")
    [ -n "$line" ] || { cat "$logs/$1"; give_up "$1 does not say what to install"; }
    passes "$1, then what it says" "$2" "$line"
}

as_root() {
    local tries=0 twice
    new_system
    until limit=$(($(cat "$work/bytes") + piece)) inside root 'make deps' >"$logs/root: deps $tries" 2>&1; do
        tail -n 3 "$logs/root: deps $tries" | cut -c 1-150
        grep -q 'run it again' "$logs/root: deps $tries" || give_up 'it does not say what to do when the network fails'
        tries=$((tries + 1))
        [ "$tries" -lt 20 ] || give_up 'it does not get on'
    done
    [ "$tries" -gt 2 ] || give_up "the network failed $tries times only"
    echo "ok      root: deps, after the network had failed $tries times"
    # (Only the servers: the new system fetches some libraries for itself, too.)
    twice=$(grep '/postgresql-[^/]*\.deb$' "$work/log" | sort | uniq -d)
    [ -z "$twice" ] || { echo "$twice"; give_up 'these had come through, and were fetched again'; }
    passes 'root: what continuous integration runs' root .ci/run
    passes 'root: make demo' root 'make demo'
}

as_user() {
    new_system
    says_what_to_install 'user: make demo, first' newcomer 'make demo'
    passes 'user: make demo' newcomer 'make demo'
    says_what_to_install 'user: make check, first' newcomer 'make check'
    missing='/postgresql-17_' passes 'user: make check without 17' newcomer 'make check'
    grep "^PostgreSQL 17 can't be had" "$logs/user: make check without 17" || give_up 'it does not name 17'
}

tools/proxy.py "$work" &
proxy=$!
echo 0 >"$work/bytes"
until [ -e "$work/port" ]; do sleep 0.1; done
start=$SECONDS
http_proxy=http://127.0.0.1:$(cat "$work/port") debootstrap --include=ca-certificates,git,make,sudo \
    bookworm "$work/base" "$archive" >"$logs/debootstrap" 2>&1 || { tail "$logs/debootstrap"; exit 1; }
rm -rf "$work"/base/var/cache/apt/archives/*.deb
: >"$work/log"
echo "ok      a new Debian ($((SECONDS - start)) s)"
[ $# -gt 0 ] || set -- root user
for who; do
    "as_$who"
done
