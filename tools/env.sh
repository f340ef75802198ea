#!/usr/bin/env bash
# What the other scripts share; source it. It goes to the top of the checkout and sets
#   cache   the folder for everything that is built or fetched; nothing of it goes into the checkout
# PostgreSQL of version NN, where there is one, is $cache/pg/NN: see servers.sh.

set -euo pipefail
umask 022 # the server's user has to read what root puts into the cache
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ -n "${PG_IO_PROBE_CACHE:-}" ]; then
    cache=$PG_IO_PROBE_CACHE
elif [ "$(id -u)" = 0 ]; then
    cache=/var/cache/pg_io_probe
else
    cache=${XDG_CACHE_HOME:-$HOME/.cache}/pg_io_probe
fi

cache=$(realpath -m "$cache")

# pg_configs: the pg_config of each PostgreSQL in the cache, oldest first.
pg_configs() {
    local pg_config
    for pg_config in "$cache"/pg/[0-9][0-9]/bin/pg_config; do
        [ ! -x "$pg_config" ] || echo "$pg_config"
    done
}
