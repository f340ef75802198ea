#!/usr/bin/env bash
# io_probe_iostat and io_probe_iostat_query beside a running iostat -x, for a minute of fio's requests on a loop device
# with a tablespace of the server: iostat_vs_sysstat.py says how, and what its lines mean. For root. PG (the oldest and the
# newest of the cache) names the versions of PostgreSQL: PG=15,18. SECONDS_ALL is passed on; BENCH_DIR as in lib.sh.

. "$(dirname "$0")/lib.sh"

trap clean_up EXIT
for major in $(majors); do
    # What is left at the end of the device is for discards.
    PG=$major file_system_size=1536M prepare_device
    set_queue "$max_sectors_kb_before" 128
    bench/iostat_vs_sysstat.py "$device" "$work/mount" $((1536 << 20))
    clean_up
done
