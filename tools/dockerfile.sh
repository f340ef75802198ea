#!/usr/bin/env bash
# dockerfile.sh: runs the steps of the Dockerfile on a new Debian 12 with its PostgreSQL 15, made by debootstrap in a folder that is
# deleted afterwards, then CREATE EXTENSION and a scan. In place of the official image there is Debian's package, in place
# of rustup the machine's toolchain. It takes ten minutes, root, and room in /var/tmp (FRESH_PARENT).

. "$(dirname "$0")/env.sh"
. tools/debian.sh

major=15
work=$(mktemp -d "${FRESH_PARENT:-/var/tmp}/pg_io_probe_docker.XXXXXX")
leave_root() {
    in_root pg_ctlcluster "$major" main stop -m immediate 2>/dev/null || true
    umount "$work/root/opt/rust" "$work/root/proc" 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap leave_root EXIT
trap 'exit 1' INT TERM

# in_root COMMAND…: runs it there, as a RUN would.
in_root() {
    chroot "$work/root" env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PG_MAJOR="$major" \
        SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PATH=/opt/rust/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# step INSTRUCTION ARGUMENTS: one line of the Dockerfile.
step() {
    echo "-- $1 $2"
    case $1 in
        RUN)
            [[ $2 != *rustup* ]] || return 0
            in_root bash -ec "cd $directory && $2" >>"$work/log" 2>&1
            ;;
        COPY)
            case $2 in
                '. /src') git clone -q --no-local "$PWD" "$work/root/src" ;;
                '--from=build /stage/ /') cp -a "$work/root/stage/." "$work/root/" ;;
                *) echo 'not known' >&2; return 1 ;;
            esac
            ;;
        WORKDIR) directory=$2 ;;
        ARG | FROM | ENV) ;;
        *) echo 'not known' >&2; return 1 ;;
    esac
}

debootstrap --variant=minbase --include="ca-certificates,postgresql-$major" bookworm "$work/root" "$(archive_of_debian)" \
    >"$work/log" 2>&1 || { tail "$work/log"; exit 1; }
cp -L /etc/resolv.conf /etc/hosts "$work/root/etc/"
cp -L /etc/ssl/certs/ca-certificates.crt "$work/root/etc/ssl/certs/"
mount -t proc proc "$work/root/proc"
mkdir -p "$work/root/opt/rust"
mount --bind -o ro "$(rustc --print sysroot)" "$work/root/opt/rust"
directory=/
while read -r instruction arguments; do
    step "$instruction" "$arguments" || { tail -n 30 "$work/log"; exit 1; }
done < <(sed -e ':a' -e '/\\$/N; s/\\\n *//; ta' -e '/^#/d; /^$/d' Dockerfile)
in_root pg_ctlcluster "$major" main start
in_root su postgres -c "psql -X -v ON_ERROR_STOP=1 -c 'CREATE EXTENSION pg_io_probe' \
    -c 'CREATE TABLE tbl AS SELECT i, repeat(chr(120), 900) AS t FROM generate_series(1, 50000) i' -c CHECKPOINT \
    -c 'SELECT * FROM io_probe_seqscan(\$\$tbl\$\$)'"
echo 'ok      the steps of the Dockerfile'
