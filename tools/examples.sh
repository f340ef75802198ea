#!/usr/bin/env bash
# Runs all examples of the documents on a server of its own, and writes what they return into the documents:
#
#     tools/examples.sh [FILE…]
#
# tools/examples.py says what an example is, docs/examples.sql makes the tables. PG (18) is the version, of the cache.
# It takes ten minutes and 6 GiB. It also makes a standby of the server, which one example queries.

. "$(dirname "$0")/env.sh"
. tools/cluster.sh

finish() {
    if [ -n "${cluster:-}" ] && [ -d "$cluster/standby" ]; then
        (cd / && as_server pg_ctl stop -m immediate -D "$cluster/standby") >/dev/null 2>&1 || true
    fi
    stop_cluster
}

# On the same disk, at the next port.
start_standby() {
    (
        cd /
        as_server pg_basebackup -D "$cluster/standby" -R -c fast
        echo 'port = 5433' >>"$cluster/standby/postgresql.conf"
        as_server pg_ctl start -w -t 60 -D "$cluster/standby" -l "$cluster/standby.log"
    ) >"$cluster/start" 2>&1 || {
        cat "$cluster/start" >&2
        return 1
    }
}

[ $# != 0 ] || set -- README.md docs/history.md docs/examples.md

trap finish EXIT
start_cluster "$cache/pg/${PG:-18}/bin"
sql -f docs/examples.sql
start_standby
as_server mkdir "$TEST_TMP/candidate"
# psql starts it by sh, which knows no function of this shell.
restart="pg_ctl restart -w -m fast -D $PGDATA -l $cluster/log"
if [ -n "$server_user" ]; then
    restart="setpriv --reuid=$server_user --regid=$(id -g "$server_user") --init-groups -- $restart"
fi
export RESTART="cd / && $restart"
tools/examples.py "$@" -- -v candidate="$TEST_TMP/candidate" -v standby="host=$PGHOST port=5433 user=$PGUSER dbname=$PGDATABASE"
