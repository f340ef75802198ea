#!/usr/bin/env bash
# A PostgreSQL server of its own, which listens on no network address and is gone afterwards. Source it, then:
#   start_cluster BINDIR [NAME=VALUE…]  makes a data directory with these settings and starts a server on it;
#                                       initdb_option, if set, is one more option of initdb
#   stop_cluster                        stops the server and deletes all that belonged to it: trap stop_cluster EXIT
#   as_server COMMAND…                  runs a command as the user that owns the server
#   sql [OPTION…]                       psql that reads no .psqlrc and stops at the first error
#   load_table                          loads tbl_cost_align: 10,100,000 rows in 94,393 blocks
# start_cluster sets cluster (the directory) and exports PATH, PGHOST, PGPORT, PGUSER, PGDATABASE, PGDATA, PG_BINDIR,
# PG_VERSION_NUM and TEST_TMP, so that whatever runs next needs no options. CLUSTER_PARENT says where to make the
# directory: /var/tmp, since /tmp is often a tmpfs, which has no device to measure.

# PostgreSQL refuses to run as root.
if [ "$(id -u)" != 0 ]; then
    server_user=
elif id postgres >/dev/null 2>&1; then
    server_user=postgres
else
    server_user=nobody
fi

path_before=$PATH

as_server() {
    if [ -z "$server_user" ]; then
        "$@"
    else
        setpriv --reuid="$server_user" --regid="$(id -g "$server_user")" --init-groups -- "$@"
    fi
}

sql() {
    psql -X -q -v ON_ERROR_STOP=1 "$@"
}

start_cluster() {
    export PG_BINDIR=$1
    shift
    cluster=$(mktemp -d "${CLUSTER_PARENT:-/var/tmp}/pg_io_probe.XXXXXX")
    mkdir "$cluster/tmp"
    [ -z "$server_user" ] || chown -R "$server_user" "$cluster"
    chmod 755 "$cluster"

    # An ERROR with a Rust backtrace is slower and reads differently.
    unset RUST_BACKTRACE RUST_LIB_BACKTRACE PGSERVICE PGOPTIONS PGHOSTADDR PGPASSWORD
    export PATH=$PG_BINDIR:$path_before PGHOST=$cluster PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
    export PGDATA=$cluster/data TEST_TMP=$cluster/tmp
    # A release candidate has a version like 19rc1.
    PG_VERSION_NUM=$(postgres --version | sed -E 's/[^0-9]*([0-9]+)(\.([0-9]+))?.*/\1 \3/' | xargs printf '%d%04d')
    export PG_VERSION_NUM

    (
        cd /
        as_server initdb -U postgres -A trust --no-locale -E UTF8 --no-sync ${initdb_option:+"$initdb_option"}
        # Other users of this machine must not become superusers of a server that trusts everyone.
        printf '%s\n' "$@" "listen_addresses = ''" "unix_socket_directories = '$cluster'" \
            'unix_socket_permissions = 0700' >>"$PGDATA/postgresql.conf"
        as_server pg_ctl start -w -t 60 -l "$cluster/log"
    ) >"$cluster/start" 2>&1 || {
        cat "$cluster/start" "$cluster/log" >&2 2>/dev/null
        return 1
    }
}

stop_cluster() {
    [ -n "${cluster:-}" ] || return 0
    if [ -f "$PGDATA/postmaster.pid" ]; then
        (cd / && { as_server pg_ctl stop -m fast || as_server pg_ctl stop -m immediate; }) >/dev/null 2>&1 || true
    fi
    rm -rf "$cluster"
    cluster=
}

# COPY writes each block once and full: 107 rows in each of 94,393 blocks. (CREATE TABLE AS and INSERT would leave
# some empty at the end.) With FREEZE, and with wal_level minimal, nothing has to write them again.
load_table() {
    sql -c "COPY (SELECT i, md5(i::text), timestamp '2024-01-01' + i * interval '1 second'
                  FROM generate_series(1, 10100000) i) TO STDOUT (FORMAT binary)" |
        sql -c 'BEGIN' \
            -c 'CREATE TABLE tbl_cost_align (id int, info text, crt_time timestamp)' \
            -c 'COPY tbl_cost_align FROM STDIN (FORMAT binary, FREEZE)' \
            -c 'COMMIT'
    sql -c 'VACUUM ANALYZE tbl_cost_align' -c 'CHECKPOINT'
}
