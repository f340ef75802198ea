#!/usr/bin/env bash
# The regret of the planner's plans, see plan_regret.py:
#   plan_regret.sh              all of the following but harm, in this order, and no server is left
#   plan_regret.sh time         makes servers with the tables of SET, unless earlier ones are still there, and times all
#                               plans, which takes ten minutes each
#   plan_regret.sh pick [ARGUMENT…]
#                               asks the planner on these servers, see plan_regret.py for the arguments
#   plan_regret.sh report [ARGUMENT…]
#                               prints the regrets; needs no server
#   plan_regret.sh harm [ARGUMENT…]
#                               looks for harm on these servers, from 17 on; ten seconds a table
#   plan_regret.sh stop         stops and deletes the servers
# SET (dev) is dev, heldout or tiny (to see that all runs). PG (the oldest and the newest of the cache) names the versions
# of PostgreSQL: PG=15,18.
# In DIR (/var/tmp/plan_regret) are, for each SET-PG, the data directory, SET-PG.env (to source: then psql and
# plan_regret.py talk to that server), SET-PG.json and SET-PG.picks.json. ROUNDS is how often each plan is timed (5),
# EIC=24,100 further settings of effective_io_concurrency.

. "$(dirname "$0")/../bench/lib.sh"

SET=${SET:-dev}
DIR=${DIR:-/var/tmp/plan_regret}

# start_kept MAJOR: starts a server that outlives this script, unless the script fails.
start_kept() {
    local pg_config=$cache/pg/$1/bin/pg_config
    install_extension "$pg_config"
    CLUSTER_PARENT=$DIR
    trap stop_cluster EXIT
    start_bench_server "$pg_config" 'checkpoint_timeout = 1d'
    {
        declare -p cluster PGHOST PGPORT PGUSER PGDATABASE PGDATA PG_BINDIR PG_VERSION_NUM TEST_TMP |
            sed 's/^declare -[-x]* /export /'
        echo "export PATH=\"$PG_BINDIR:\$PATH\""
    } >"$name.env"
    # shellcheck disable=SC2064
    trap "stop_cluster; rm -f '$name.env'" EXIT
}

stop_kept() {
    [ -f "$name.env" ] || return 0
    # shellcheck disable=SC1090
    . "$name.env"
    stop_cluster
    rm "$name.env"
}

# on_kept COMMAND…: runs it against the server that was kept.
on_kept() (
    [ -f "$name.env" ] || give_up "no server of $name: plan_regret.sh time makes one"
    # shellcheck disable=SC1090
    . "$name.env"
    "$@"
)

time_plans() {
    [ -f "$name.env" ] || start_kept "$major"
    on_kept experiments/plan_regret.py time "$name.json" --set "$SET" --rounds "${ROUNDS:-5}" --eic "${EIC:-}"
    trap - EXIT
}

pick() {
    on_kept experiments/plan_regret.py pick "$name.json" "$name.picks.json" "$@"
}

report() {
    experiments/plan_regret.py report "$name.json" "$name.picks.json" "$@"
}

tools/deps.sh bench
mkdir -p "$DIR"
command=${1:-all}
[ $# = 0 ] || shift
for major in $(majors); do
    name=$DIR/$SET-$major
    case $command in
        time) time_plans ;;
        pick) pick "$@" ;;
        report) report "$@" ;;
        harm) on_kept experiments/plan_regret.py harm "$@" ;;
        stop) stop_kept ;;
        all) stop_kept; time_plans; pick --grid; report; stop_kept ;;
        *) give_up 'usage: plan_regret.sh [time|pick|report|harm|stop]' ;;
    esac
done
