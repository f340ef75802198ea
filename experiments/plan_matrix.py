"""How long each plan of each query takes: the tables of a set, and the matrix of plan_regret.py. A module, not a program.

A set has two tables, narrow (some 70 rows a block) and wide (some 7), of 150 MiB and more, each with four indexed
columns of whole numbers below the number of rows:
    uniform      random
    correlated   the row's number, or that with noise of some rows
    jittered     the row's number with noise of some hundred blocks
    shuffled     the row's number, but a random one for some rows
A point is a table, a column and a share of its range. Each plan is forced by enable_*:
    seq          a sequential scan: not timed on every point, see below
    index        SELECT count(filler) … WHERE column BETWEEN low AND high
    bitmap@E     the same at effective_io_concurrency E
    indexonly    SELECT count(column) …
The time is Execution Time of EXPLAIN (ANALYZE, TIMING OFF). It leaves out what all plans share, the planner's time and
the client's, which are longer than many a query is. (The planner also reads a few blocks of indexes that would be cold
otherwise.) Counting rows costs about 10 ns for each that the query finds, whatever the plan.

    cold   nothing of the table and of the column's index is in shared buffers or in the OS cache; io_probe_cache is
           asked before each execution. 15 and 16 have no way to evict from shared buffers: there other blocks are read
           until none of these is left
    warm   all of both is in the OS cache

Each plan is executed twice in a row, cold both times or warm both times, and the second time counts. The first execution
also has to find memory for what it reads; if the host of a virtual machine has taken the memory back meanwhile, that takes
longer than to read the device. The first time counts if it is longer than 5 sequential scans. If the second one is less
than 10 ms, two more executions follow, and the median of the last three times counts.

A sequential scan reads the same whatever the range is. It is timed for each column with the least and the greatest
share. The medians of a round are taken of all columns of a table; times at other shares lie on the line between the two.
From 18 on it depends on effective_io_concurrency: seq@E.
Further rounds time the plans that took no more than 6 times the best one in the first round: the best of those that the
query of filler can have. A plan that takes longer than 30 sequential scans is cancelled, and that limit is its time.

The JSON: version, set, default_eic, eics, selectivities, rounds, tables (name: blocks, rows, index_blocks by column),
cold_failures (times that a cache was not empty and was emptied once more), seconds;
    seq      list of table, state, plan, round, selectivity, ms
    points   list of table, column, selectivity, low, high, rows, and
             times   by state and plan: ms by round, null where it was not timed
             cut     by state: the plans that were cancelled
"""

import json
import os
import random
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))

STATES = ["cold", "warm"]
COLUMNS = ["uniform", "correlated", "jittered", "shuffled"]
# A plan that took more than this many times the best one's time is timed once.
HOPELESS = 6
# A plan that takes more than this many sequential scans is not executed again: the first time counts.
AGAIN = 5
# A plan that takes less is executed two times more.
SHORT_MS = 10
# A plan that takes this many sequential scans is cancelled.
CANCELLED = 30
NO_END = 600_000
# Blocks that are read at a time to push others out of shared buffers, and all blocks of the table they come from.
PUSHED, PUSHER = 9000, 36000

SETS = {
    "dev": {
        "seed": 0.25,
        "selectivities": [0.0003, 0.0007, 0.0016, 0.0038, 0.0088, 0.02, 0.047, 0.11, 0.26, 0.6],
        "tables": {
            "narrow": {"rows": 1_400_000, "filler": 64, "noise": 0, "jitter": 300 * 70, "shuffled": 0.2},
            "wide": {"rows": 168_000, "filler": 1080, "noise": 0, "jitter": 300 * 7, "shuffled": 0.2},
        },
    },
    "heldout": {
        "seed": 0.75,
        "selectivities": [0.0004, 0.0009, 0.0021, 0.0047, 0.011, 0.025, 0.055, 0.13, 0.3, 0.55],
        "tables": {
            "narrow": {"rows": 1_900_000, "filler": 41, "noise": 200, "jitter": 500 * 88, "shuffled": 0.1},
            "wide": {"rows": 240_000, "filler": 760, "noise": 20, "jitter": 150 * 9, "shuffled": 0.35},
        },
    },
    # To see that everything runs; its figures say nothing.
    "tiny": {
        "seed": 0.5,
        "selectivities": [0.002, 0.04, 0.5],
        "tables": {
            "narrow": {"rows": 70_000, "filler": 64, "noise": 0, "jitter": 30 * 70, "shuffled": 0.2},
            "wide": {"rows": 7_000, "filler": 1080, "noise": 0, "jitter": 30 * 7, "shuffled": 0.2},
        },
    },
}

ENABLED = {
    "seq": "seqscan",
    "index": "indexscan",
    "bitmap": "bitmapscan",
    "indexonly": "indexonlyscan",
}
NODES = {"Seq Scan": "seq", "Index Scan": "index", "Bitmap Heap Scan": "bitmap", "Index Only Scan": "indexonly"}


def base_of(plan):
    """The kind of a plan: bitmap of bitmap@16."""
    return plan.partition("@")[0]


def eic_of(plan):
    """The eic of a plan: 16 of bitmap@16; None where it does not matter."""
    eic = plan.partition("@")[2]
    return int(eic) if eic else None


def plans_of(version, eics):
    """The plans that are forced on each point; and the sequential ones, apart."""
    on_points = ["index", "indexonly", *(f"bitmap@{eic}" for eic in eics)]
    return on_points, [f"seq@{eic}" for eic in eics] if version >= 18 else ["seq"]


def query_of(point, covered):
    """The query of a point: one that the index on its column covers, or one that it does not."""
    counted = point["column"] if covered else "filler"
    where = f"{point['column']} BETWEEN {point['low']} AND {point['high']}"
    return f"SELECT count({counted}) FROM {point['table']} WHERE {where}"


def node_of(plan):
    """How an EXPLAIN's plan reads its table, and the node that does."""
    while plan["Node Type"] not in NODES:
        (plan,) = plan["Plans"]
    return NODES[plan["Node Type"]], plan


def index_of(point):
    return f"{point['table']}_{point['column']}"


# --- the tables ------------------------------------------------------------------------------------------------------


def make_tables(session, chosen):
    """Makes the tables of a set, unless they are there; their rows and blocks."""
    session.run("SET client_min_messages = error; CREATE EXTENSION IF NOT EXISTS pg_prewarm")
    session.run(f"SET default_statistics_target = 1000; SELECT setseed({chosen['seed']})")
    made = {}
    for name, shape in chosen["tables"].items():
        if session.value(f"SELECT to_regclass('{name}') IS NULL"):
            say(f"table {name}")
            make_table(session, name, shape)
        blocks = {relation: session.value(f"SELECT pg_relation_size('{relation}') / 8192")
                  for relation in [name, *(f"{name}_{column}" for column in COLUMNS)]}  # fmt: skip
        made[name] = {"rows": shape["rows"], "blocks": blocks.pop(name), "index_blocks": {
            column: blocks[f"{name}_{column}"] for column in COLUMNS}}  # fmt: skip
    session.run("CHECKPOINT")
    return made


def make_table(session, name, shape):
    """Makes one of the tables; the caller has run SELECT setseed()."""
    rows = shape["rows"]

    def noise(width):
        return f"least(greatest(g + floor((random() - 0.5) * {2 * width})::int, 0), {rows - 1})"

    session.run(f"""BEGIN; CREATE TABLE {name} (uniform int, correlated int, jittered int, shuffled int, filler text)
        WITH (autovacuum_enabled = off); INSERT INTO {name}
        SELECT floor(random() * {rows}), {noise(shape["noise"])}, {noise(shape["jitter"])},
               CASE WHEN random() < {shape["shuffled"]} THEN floor(random() * {rows}) ELSE g END,
               repeat('x', {shape["filler"]})
        FROM generate_series(0, {rows - 1}) g; COMMIT""")
    for column in COLUMNS:
        session.run(f"CREATE INDEX {name}_{column} ON {name} ({column})")
    session.run(f"VACUUM (ANALYZE) {name}")


def make_pusher(session):
    """Makes the table that is read to push others out of shared buffers."""
    session.run("""CREATE TABLE IF NOT EXISTS pusher (id int, filler text) WITH (autovacuum_enabled = off);
        TRUNCATE pusher; ALTER TABLE pusher ALTER filler SET STORAGE PLAIN""")
    session.run(f"INSERT INTO pusher SELECT g, repeat('x', 8000) FROM generate_series(1, {PUSHER}) g; VACUUM pusher")


def make_points(chosen):
    """All points of a set, each with a range of its own."""
    dice = random.Random(chosen["seed"])
    points = []
    for table, shape in chosen["tables"].items():
        for column in COLUMNS:
            for share in chosen["selectivities"]:
                # Not at the ends of the column: for those the planner asks the index.
                low = round(dice.uniform(0.003, 0.994 - share) * shape["rows"])
                high = low + round(share * shape["rows"]) - 1
                points.append({"table": table, "column": column, "selectivity": share, "low": low, "high": high})
    return points


# --- measuring -------------------------------------------------------------------------------------------------------


class Matrix:
    """Measures, and holds what was measured."""

    def __init__(self, session, version, set_name, eics, default_eic):
        chosen = SETS[set_name]
        self.session, self.push = session, 0
        self.plans, self.seq_plans = plans_of(version, eics)
        self.data = {
            "version": version, "server": session.value("SELECT current_setting('server_version')"), "set": set_name,
            "default_eic": default_eic, "eics": eics, "selectivities": chosen["selectivities"], "rounds": 0,
            "cold_failures": 0, "seq": [], "points": make_points(chosen),
        }  # fmt: skip
        for point in self.data["points"]:
            point["times"] = {state: {plan: [] for plan in self.plans} for state in STATES}
            point["cut"] = {state: [] for state in STATES}
        self.data["tables"] = make_tables(session, chosen)

    def chill(self, relations):
        """Empties both caches of these relations, and checks that they are empty."""
        evictions = 0
        for _ in range(1000):
            left = self.cached(relations)
            if left["shared"]:
                self.push_out(relations)
                continue
            if not left["os"]:
                self.data["cold_failures"] += max(evictions - 1, 0)
                return
            evictions += 1
            self.session.run("; ".join(f"SELECT FROM io_probe_evict('{relation}')" for relation in relations))
        raise RuntimeError(f"{relations} do not leave the caches: {left}")

    def cached(self, relations):
        """Blocks in shared buffers, and bytes in the OS cache."""
        each = " UNION ALL ".join(f"SELECT * FROM io_probe_cache('{relation}')" for relation in relations)
        return self.session.row(f"SELECT sum(shared_blks) AS shared, sum(os_cached_bytes) AS os FROM ({each}) c")

    def push_out(self, relations):
        if self.data["version"] >= 17:
            self.session.run("; ".join(f"SELECT FROM io_probe_evict('{relation}')" for relation in relations))
        else:
            last = self.push + PUSHED - 1
            self.session.run(f"SELECT pg_prewarm('pusher', 'buffer', 'main', {self.push}, {last})")
            self.push = (last + 1) % PUSHER

    def heat(self, relations):
        """Reads all of these relations into the OS cache, and checks that they are there."""
        for _ in range(5):
            self.session.run("; ".join(f"SELECT pg_prewarm('{relation}', 'read')" for relation in relations))
            sizes = " + ".join(f"pg_relation_size('{relation}')" for relation in relations)
            size = self.session.value(f"SELECT {sizes}")
            if self.cached(relations)["os"] >= 0.999 * size:
                return
        raise RuntimeError(f"{relations} do not stay in the OS cache")

    def execute(self, point, plan, most_ms):
        """The time in ms, and whether the plan was cancelled at `most_ms`."""
        from lib import Failure

        base, eic = base_of(plan), eic_of(plan)
        enabled = "; ".join(f"SET enable_{scan} = {'on' if base == of else 'off'}" for of, scan in ENABLED.items())
        eic = "RESET effective_io_concurrency" if eic is None else f"SET effective_io_concurrency = {eic}"
        self.session.run(f"SET statement_timeout = {most_ms}; {enabled}; {eic}")
        query = query_of(point, covered=base == "indexonly")
        try:
            told = self.session.run(f"EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF, SUMMARY ON, FORMAT JSON) {query}")
        except Failure as failure:
            if failure.sqlstate != "57014":
                raise
            return most_ms, True
        finally:
            self.session.run("RESET statement_timeout")
        (explained,) = json.loads("\n".join(told))
        node, plan = node_of(explained["Plan"])
        if node != base:
            raise RuntimeError(f"{node} where {base} was forced: {query}")
        point["rows"] = round(plan["Actual Rows"])
        return explained["Execution Time"], False

    def round(self, number):
        """Times all columns of all tables, cold and warm."""
        dice = random.Random(number)
        total = len(self.data["tables"]) * len(COLUMNS)
        for done, (table, column) in enumerate((t, c) for t in self.data["tables"] for c in COLUMNS):
            points = [p for p in self.data["points"] if (p["table"], p["column"]) == (table, column)]
            relations = [table, index_of(points[0])]
            for state in STATES:
                if state == "warm":
                    self.heat(relations)
                turns = [(self.time_point, point) for point in points]
                turns += [(self.time_seq, point) for point in (points[0], points[-1])]
                for measure_one, point in dice.sample(turns, len(turns)):
                    measure_one(number, state, point, relations, dice)
            say(f"round {number + 1}: {done + 1} of {total}")
        self.data["rounds"] = number + 1

    def time_one(self, state, point, plan, relations, most_ms, again_ms):
        """The time in ms that counts, as the module's docstring says; and was the plan cancelled?"""
        timed = []
        while True:
            if state == "cold":
                self.chill(relations)
            ms, cut = self.execute(point, plan, most_ms)
            timed.append(ms)
            if cut or ms > again_ms:
                return ms, cut
            if len(timed) == 4 or len(timed) == 2 and ms >= SHORT_MS:
                return statistics.median(timed[1:]), False

    def time_seq(self, number, state, point, relations, dice):
        """Times the sequential scans of a point."""
        for plan in dice.sample(self.seq_plans, len(self.seq_plans)):
            ms, _ = self.time_one(state, point, plan, relations, NO_END, NO_END)
            self.data["seq"].append({"table": point["table"], "state": state, "plan": plan, "round": number,
                                     "selectivity": point["selectivity"], "ms": ms})  # fmt: skip

    def time_point(self, number, state, point, relations, dice):
        """Times all other plans of a point, in random order."""
        times = point["times"][state]
        seq = [one["ms"] for one in self.data["seq"] if (one["table"], one["state"]) == (point["table"], state)]
        most_ms = max(1000, round(CANCELLED * min(seq))) if seq else 10_000
        chosen = self.plans
        if number:
            # What an index-only scan takes says nothing about the queries that can't have one.
            best = min(min(seq), *(ms[0] for plan, ms in times.items() if plan != "indexonly"))
            chosen = [plan for plan in self.plans if times[plan][0] <= HOPELESS * best]
        chosen = dice.sample(chosen, len(chosen))
        again_ms = AGAIN * min(seq) if seq else NO_END
        for plan in chosen:
            ms, cut = self.time_one(state, point, plan, relations, most_ms, again_ms)
            times[plan].append(round(ms, 3))
            if cut and plan not in point["cut"][state]:
                point["cut"][state].append(plan)
        for plan in self.plans:
            times[plan] += [None] * (number + 1 - len(times[plan]))


def measure(path, set_name, rounds, more_eics):
    """Makes the tables and the matrix, and writes it after each round."""
    from lib import Session, VERSION

    start = time.monotonic()
    with Session() as session:
        default_eic = session.value("SELECT boot_val::int FROM pg_settings WHERE name = 'effective_io_concurrency'")
        if VERSION < 17:
            make_pusher(session)
        matrix = Matrix(session, VERSION, set_name, sorted({0, 1, 16, 64, default_eic, *more_eics}), default_eic)
        loaded = time.monotonic()
        for number in range(rounds):
            matrix.round(number)
            now = time.monotonic()
            matrix.data["seconds"] = round(now - start)
            left = (now - loaded) / (number + 1) * (rounds - number - 1)
            say(f"{now - start:.0f} s, about {left:.0f} s left; cold once more: {matrix.data['cold_failures']}")
            with open(path + ".new", "w", encoding="ascii") as out:
                json.dump(matrix.data, out)
            os.replace(path + ".new", path)
        # It is no table of the set: io_probe_recommend, which looks for the largest table, must not find it.
        session.run("DROP TABLE IF EXISTS pusher")


# --- what was measured -----------------------------------------------------------------------------------------------


def seq_times(matrix, point, state, plan):
    """A sequential scan's ms by round, for a point: on the line between those of the least and the greatest share."""
    low, high = matrix["selectivities"][0], matrix["selectivities"][-1]
    share = (point["selectivity"] - low) / (high - low)
    of_table = [one for one in matrix["seq"]
                if (one["table"], one["state"], one["plan"]) == (point["table"], state, plan)]  # fmt: skip

    def median(number, selectivity):
        return statistics.median(
            one["ms"] for one in of_table if (one["round"], one["selectivity"]) == (number, selectivity)
        )

    return [median(n, low) * (1 - share) + median(n, high) * share for n in range(matrix["rounds"])]


def times_of(matrix, point, state, covered):
    """The ms by round of all plans that a query of a point can have."""
    plans = {plan: ms for plan, ms in point["times"][state].items() if covered or plan != "indexonly"}
    _, seq_plans = plans_of(matrix["version"], matrix["eics"])
    return {**plans, **{plan: seq_times(matrix, point, state, plan) for plan in seq_plans}}


def say(text):
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)
