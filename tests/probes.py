"""Every probe and each way of it, as the tests of faults run it; the phase that it is in; and what it may leave behind."""

import collections
import json
import os
import re
import time
from dataclasses import dataclass, field

from lib import LONG, PGDATA, SCRATCH, Failure, Process, call, create_extension, engines, half_of, knows_readahead
from lib import literal, progress, repeated, say

# What a server writes when it recovers, and for its own relations. No scratch file has such a name.
RECOVERY = re.compile(
    r"/(pg_wal/[0-9A-F]{24}|pg_internal\.init|postmaster\.pid|pg_stat(_tmp)?/\w+\.(stat|tmp)|base/\d+/\d+(_fsm|_vm)?)$"
)
# Parts of a phase's name.
BEGINNING, WITH_SCRATCH = ", beginning", ", with a scratch file"
BRIEF = "180 ms"


@dataclass
class Probe:
    """A probe on the table `probed`, or on none."""

    name: str
    probe: str
    arguments: dict = field(default_factory=dict)
    engine: str = "auto"
    on_table: bool = True
    table: str = "probed"

    @property
    def relation(self):
        """The table that it is on; None if it is on none."""
        return self.table if self.on_table else None

    @property
    def call(self):
        """One call of it, with the engine of the session."""
        return call(self.probe, self.relation, **self.arguments)

    @property
    def once(self):
        """Statements that run it once, with its own engine."""
        return f"SET pg_io_probe.engine = {self.engine}; {self.query}"

    @property
    def query(self):
        """A query for its rows, with the engine of the session."""
        return f"SELECT * FROM {self.call}"

    def start(self, session, first="SELECT", most=None):
        """Runs the statements `first`, and then starts the probe again and again in one statement, with all its phases,
        until it is stopped, or `most` times."""
        session.run(f"SET pg_io_probe.engine = {self.engine}; {first}")
        query = repeated(self.probe, self.relation, **self.arguments)
        session.start(f"{query} LIMIT {most}" if most else query)


def probes(session, spcname="pg_default"):
    """All probes that can be had here; the sync of a tablespace is one of `spcname`."""
    found = [
        Probe("seqscan, server", "seqscan", {"paths": ["server"]}),
        Probe("seqscan, os", "seqscan", {"paths": ["os"]}),
        Probe("seqscan, cold", "seqscan", {"cold": True}),
        Probe("random, server", "random", {"paths": ["server"], "duration": BRIEF}),
        Probe("random, server at 16", "random", {"paths": ["server"], "depth": 16, "duration": BRIEF}),
        Probe("random, cold", "random", {"cold": True, "duration": BRIEF}),
        Probe("ping, read", "ping", {"count": 20, "every": "1 ms"}),
        Probe("ping, write", "ping", {"count": 20, "every": "1 ms", "mode": "write"}),
        Probe("ping, both, os", "ping", {"count": 20, "every": "1 ms", "mode": "pingpong", "path": "os"}),
        Probe("sync, wal", "sync", {"duration": "40 ms", "sections": ["all"]}, on_table=False),
        Probe("sync, wal at 8", "sync", {"duration": "320 ms", "sections": ["wal_segment"], "depth": 8}, on_table=False),
        Probe("sync, tablespace", "sync", {"duration": "70 ms", "spcname": spcname,
                                           "sections": ["one_write", "wal_segment"]}, on_table=False),
        Probe("write", "write", {"duration": "120 ms", "spcname": spcname}, on_table=False),
        Probe("mix, data", "mix", {"duration": "200 ms", "shares": [0, 50]}),
        Probe("mix, tablespace", "mix", {"spcname": spcname, "duration": "200 ms", "shares": [50]}),
        Probe("mix, wal", "mix", {"duration": "200 ms", "shares": [50], "writing": "wal"}),
        Probe("sustain", "sustain", {"every": "20 ms", "duration": BRIEF}),
        Probe("page_cost", "page_cost", {"cold": True, "densities": [0.2, 1], "concurrencies": [1, 16],
                                         "duration": "10 ms"}),
        Probe("recommend", "recommend", {"cold": True, "writes": True, "duration": BRIEF,
                                         "settings": ["random_page_cost", "read_ahead_kb", "wal_sync_method"]}),
        Probe("recommend, writes", "recommend", {"writes": True, "duration": "500 ms",
                                                 "settings": ["backend_flush_after", "autovacuum_vacuum_cost_limit"]}),
        Probe("iostat", "iostat", {"every": "50 ms", "count": 5}, on_table=False),
        Probe("evict", "evict"),
        Probe("record", "record", {"probe": "seqscan", "args": {"cold": True}}),
    ]  # fmt: skip
    for engine in engines(session):
        found += [
            Probe(f"seqscan, direct, {engine}", "seqscan", {"paths": ["direct"]}, engine),
            Probe(f"random, direct, {engine}", "random", {"paths": ["direct"], "depth": 8, "duration": BRIEF}, engine),
            Probe(f"random, os, {engine}", "random", {"paths": ["os"], "depth": 8, "duration": BRIEF}, engine),
            Probe(f"depth, {engine}", "depth", {"depths": [1, 8], "duration": BRIEF}, engine),
        ]
        if knows_readahead(session):
            # A turn takes a quarter of a second, and the kernel's comes again.
            found.append(Probe(f"readahead, {engine}", "readahead", {"windows_kb": [16, 256], "duration": "2 s"}, engine))
    return found


def some(known, times, always=()):
    """Each probe `times` times in the long mode; else a half of them, once, and those named in `always`."""
    return half_of(known, always=lambda probe: probe.name in always) * (times if LONG else 1)


WRITING = ["ping, write", "ping, both, os", "sync, wal", "sync, wal at 8", "sync, tablespace", "write", "mix, data",
           "mix, tablespace", "mix, wal", "recommend", "recommend, writes"]


class Outcomes:
    """What callers saw, by fault."""

    def __init__(self):
        self.seen = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))

    def of(self, fault, session, probe, query=None):
        """Runs a probe, or another query of it, to its end. Returns the statuses of its rows, or the SQLSTATE; and its
        rows, or the failure."""
        session.run(f"SET pg_io_probe.engine = {probe.engine}")
        session.start(f"SELECT row_to_json(r) FROM ({query or probe.query}) AS r")
        return self.note(fault, session, probe)

    def note(self, fault, session, probe):
        """The same for a probe that was started."""
        try:
            lines = session.finish()
        except Failure as failure:
            ended = failure.sqlstate or "connection lost"
            self.seen[fault][ended][probe.name] += 1
            return ended, failure
        rows = [json.loads(line) for line in lines if line.startswith("{")]
        warned = re.findall(r"SQLSTATE is (\w{5})", "\n".join(lines))
        said = sorted({row.get("status") or "rows" for row in rows} | {f"recorded {state}" for state in warned})
        ended = " and ".join(said) or "no rows"
        self.seen[fault][ended][probe.name] += 1
        return ended, rows

    def tell(self):
        """Prints the outcomes."""
        for fault, ends in self.seen.items():
            for ended, names in sorted(ends.items()):
                say(f"{fault}: {ended} {sum(names.values())} times: {', '.join(sorted(names))}")


# --- where it is ---------------------------------------------------------------------------------------------------


# By probe, names that phase() gives. A path or section has a phase "beginning" if it begins by evicting or by making a file.
PHASES = {
    "seqscan, cold": ["direct, beginning", "direct", "server, beginning", "server", "os, beginning", "os"],
    "random, cold": ["direct, beginning", "direct", "server, beginning", "server", "os, beginning", "os"],
    "ping, write": ["direct, beginning", "direct, with a scratch file"],
    "ping, both, os": ["os, beginning", "os, with a scratch file"],
    "sync, wal": [f"{section}, with a scratch file" for section in
                  ["one_write", "two_writes", "open_sync_size", "other_fd", "no_sync", "wal_segment"]],
    "sync, wal at 8": ["wal_segment, beginning", "wal_segment, with a scratch file"],
    "sync, tablespace": ["one_write, with a scratch file", "wal_segment, with a scratch file"],
    "readahead": ["kernel", "emulated"],
    "recommend": ["server, beginning", "emulated"],
    "recommend, writes": ["no path, beginning"],
    "evict": ["no path, beginning"],
    "record": ["direct", "server", "os"],
}  # fmt: skip


def phases(probe):
    """Phases of a probe in which it can be met for sure, by the names that phase() gives; None is any."""
    return PHASES.get(probe.name) or PHASES.get(probe.probe, [None])


def phase(control, pid):
    """Where a probe is: its path or section, whether it is only beginning there, and whether it has a scratch file."""
    row = progress(control, pid)
    if row is None:
        return "between two calls"
    scratch = any(re.search(SCRATCH, name) for name in Process(pid).descriptors())
    # The file is being made for the first section, or the table evicted before the first block.
    beginning = not row["done"] and not (scratch and row["total"])
    return (row["path"] or "no path") + (BEGINNING if beginning else WITH_SCRATCH if scratch else "")


# --- what is left --------------------------------------------------------------------------------------------------


def all_files(directory=PGDATA):
    """Names of all files in the data directory and in its tablespaces."""
    walked = os.walk(directory, followlinks=True)
    return {os.path.join(directory, name) for directory, folders, names in walked for name in names + folders}


def new_files(before, directory=PGDATA):
    """Files that are new, without those that a server writes itself."""
    return {name for name in all_files(directory) - before if not RECOVERY.search(name)}


class Holdings:
    """What a server process holds, to be compared with what it holds when a probe has ended."""

    def __init__(self, session, control, tables=("probed",)):
        self.process, self.control = Process(session.pid), control
        self.tables = ", ".join(f"to_regclass({literal(table)})" for table in tables)
        # Nothing can be created on a standby, which has what its primary has.
        if not control.value("SELECT pg_is_in_recovery()"):
            create_extension(control, "pg_buffercache")
        self.sees_pins = control.value("SELECT to_regclass('pg_buffercache') IS NOT NULL")
        self.before = self.now()

    def now(self):
        """Threads and descriptors."""
        return {"threads": self.process.threads(), "descriptors": self.process.descriptors()}

    def left(self):
        """What is held now that was not before: nothing, if all is well."""
        left = {name: held for name, held in self.now().items() if held != self.before[name]}
        return {**left, **self.after_its_end()}

    def after_its_end(self):
        """What others still see of a probe: nothing, if all is well."""
        left = {}
        left["locks"] = self.control.rows(
            "SELECT locktype, relation::regclass::text, mode FROM pg_locks WHERE locktype = 'advisory' "
            f"OR pid = {self.process.pid} AND relation IN ({self.tables})"
        )
        left["progress"] = self.control.rows(f"SELECT * FROM io_probe_progress() WHERE pid = {self.process.pid}")
        if self.sees_pins:
            pinned = f"""SELECT relfilenode FROM pg_buffercache WHERE pinning_backends > 0
                AND relfilenode IN (SELECT pg_relation_filenode(t) FROM unnest(ARRAY[{self.tables}]) AS t)"""
            left["pins"] = self.control.rows(pinned)
            # Other processes, such as the checkpointer or the startup process, have pins for a moment.
            patience = time.monotonic() + 2
            while left["pins"] and time.monotonic() < patience:
                left["pins"] = self.control.rows(pinned)
        return {name: held for name, held in left.items() if held}
