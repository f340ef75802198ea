"""Do correlations that io_probe_recommend advises make a query slower? See plan_regret.py. A module, not a program.

Tables are made one after the other, of 30 to 90 MiB, their shapes drawn at random. Each has an indexed column in the order
of the table, except for noise over some blocks, for a share of values that lie anywhere, for pieces of the order that were
shuffled, and for what updates, deletes and appends out of order leave behind. On each table io_probe_recommend is asked for
the correlation of the index at the settings in force. Where it advises one, ranges of eight shares of the rows are planned
without it and with it. Where the plans differ, both are executed in turn, five times cold and eleven times warm. It tells
the medians in milliseconds, without and with it, and their ratio.
"""

import json
import random
import statistics

from plan_matrix import say

SHARES = [0.0002, 0.0008, 0.003, 0.01, 0.03, 0.08, 0.2, 0.5]
PAIRS = {"cold": 5, "warm": 11}
# A new pick that takes more than this many times the old one's time does harm.
HARM = 1.2


def make(session, dice):
    """Makes a table of a shape that is drawn; the shape in words."""
    filler = dice.choice([20, 60, 200, 700])
    rows = round(dice.uniform(30, 90) * 2**20 / (filler + 44))
    noise = round(rows * 10 ** dice.uniform(-5, -0.7)) if dice.random() < 0.7 else 0
    anywhere = dice.choice([0, 0, 0.02, 0.1, 0.4, 0.8])
    pieces = dice.choice([1, 1, 10, 100, 3000])
    value = f"g + floor((random() - 0.5) * {2 * noise})::int"
    value = f"CASE WHEN random() < {anywhere} THEN floor(random() * {rows})::int ELSE {value} END"
    length = max(1, rows // pieces)
    session.run(f"""SELECT setseed({dice.random()}); DROP TABLE IF EXISTS made_up;
        CREATE TABLE made_up (id int, value int, filler text) WITH (autovacuum_enabled = off, fillfactor = {dice.choice([100, 100, 80])});
        INSERT INTO made_up SELECT g, {value}, repeat('x', {filler}) FROM
            (SELECT p * {length} + i AS g FROM generate_series(0, {pieces - 1}) AS p, generate_series(0, {length - 1}) AS i
             ORDER BY hashint4(p), i) AS g;
        CREATE INDEX made_up_value ON made_up (value)""")
    after = dice.choice(["", "", "updates", "deletes", "appends"])
    if after == "updates":
        session.run("UPDATE made_up SET filler = filler || 'y' WHERE random() < 0.3")
    elif after == "deletes":
        session.run("DELETE FROM made_up WHERE random() < 0.5")
        session.run(f"VACUUM made_up; INSERT INTO made_up SELECT g, g, repeat('x', {filler}) FROM generate_series(1, {rows // 3}) AS g")
    elif after == "appends":
        session.run(f"INSERT INTO made_up SELECT g, floor(random() * {rows})::int, repeat('x', {filler}) FROM generate_series(1, {rows // 5}) AS g")
    session.run("VACUUM ANALYZE made_up; CHECKPOINT")
    return f"{rows} rows with {filler} bytes, noise {noise}, {anywhere} anywhere, {pieces} pieces, {after or 'as loaded'}"


def plan_of(session, query):
    """The kind of node that reads the table."""
    (explained,) = json.loads("\n".join(session.run(f"EXPLAIN (FORMAT JSON) {query}")))
    return explained["Plan"]["Plans"][0]["Node Type"]


def time_of(session, query, cold):
    if cold:
        session.run("SELECT FROM io_probe_evict('made_up'); SELECT FROM io_probe_evict('made_up_value')")
    (explained,) = json.loads("\n".join(session.run(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {query}")))
    return explained["Execution Time"]


def judge(session, query, off_first):
    """The median times of the old pick and of the new one: cold, and warm."""
    medians = {}
    for caches, pairs in PAIRS.items():
        times = {"on": [], "off": []}
        for number in range(pairs):
            for state in ("off", "on") if (number + off_first) % 2 else ("on", "off"):
                session.run(f"SET pg_io_probe.correct_correlation = {state}")
                if caches == "warm":
                    time_of(session, query, False)
                times[state].append(time_of(session, query, caches == "cold"))
        medians[caches] = (statistics.median(times["off"]), statistics.median(times["on"]))
    return medians


def harm(seed, tables):
    """Tells of each pick that an advised correlation changes, and how many of them are slower."""
    from lib import VERSION, Session

    if VERSION < 17:
        raise SystemExit("from 17 on: others can't evict from shared buffers")
    found, advised, same = [], 0, 0
    with Session() as session:
        session.run("LOAD 'pg_io_probe'; SET max_parallel_workers_per_gather = 0")
        for number in range(tables):
            dice = random.Random(seed * 1000 + number)
            shape = make(session, dice)
            session.start_rows("""SELECT recommended, current, statement FROM io_probe_recommend_full('made_up', cold => true,
                settings => '{correlation}', duration => '4 s')""")
            rows = [json.loads(line) for line in session.finish(timeout=600)]
            (row,) = rows or [{"statement": None}]
            if not row["statement"]:
                continue
            advised += 1
            least, most = session.run("SELECT min(value), max(value) FROM made_up")[0].split("|")
            session.run(row["statement"])
            for share in SHARES:
                low = dice.uniform(int(least), int(most) - share * (int(most) - int(least)))
                high = low + share * (int(most) - int(least))
                query = f"SELECT count(filler) FROM made_up WHERE value BETWEEN {round(low)} AND {round(high)}"
                plans = []
                for state in ("off", "on"):
                    session.run(f"SET pg_io_probe.correct_correlation = {state}")
                    plans.append(plan_of(session, query))
                if plans[0] == plans[1]:
                    same += 1
                    continue
                medians = judge(session, query, number)
                found.append(medians)
                told = [f"{caches} {new / old:.2f} ({old:.2f} -> {new:.2f} ms)" for caches, (old, new) in medians.items()]
                say(f"{shape}; {row['current']} -> {row['recommended']}; {share}: {plans[0]} -> {plans[1]}: {', '.join(told)}")
            session.run("DELETE FROM io_probe_corrections")
        session.run("DROP TABLE made_up")
    print(f"{tables} tables, {advised} with advice; {same} picks stay, {len(found)} change")
    if not found:
        return
    for caches in PAIRS:
        times = [medians[caches] for medians in found]
        slower = [(old, new) for old, new in times if new > HARM * old]
        mean = statistics.geometric_mean(new / old for old, new in times)
        print(f"{caches}: {mean:.3f} times as long (geometric mean), {len(slower)} over {HARM}"
              f", {sum(new - old for old, new in slower):.2f} ms together")  # fmt: skip
