#!/usr/bin/env -S python3 -B
"""Do verdicts and advice survive repetition?

    repetition.py record CONDITION
            records 600 runs (--runs), one every 2 seconds (--every), with read_ahead_kb 128; after each tenth
            one more with read_ahead_kb 16. With --longer 5, a run takes five times as long
    repetition.py judge
            judges all that was recorded, by io_probe_compare and io_probe_changes on copies of the stored
            runs: a table for each condition and version, and a last one of all together
    repetition.py recommend CONDITION
            calls io_probe_recommend 40 times (--calls), for all settings or for some (--settings), with a
            pause (--pause, in seconds). If most answers have another effective_io_concurrency, bitmap scans
            under both in turn tell whether it is faster

CONDITION is idle (a loop device whose file is in memory), or the load by a neighbour: constant, bursts (of 5 to
40 s) or drift (over minutes). The neighbour is fio, seeded. It works beside the file of a loop device in BENCH_DIR
(/var/tmp), of which the rows know nothing, or with --seen on the device itself, which they know as other_bytes. A
run is io_probe_record of seqscan, random, ping and sync, half a second together.

A group is 24 runs in a row. A/A compares the first 12 with the last 12, and the runs one by one in turns. A/B does
the same with the figures of the second side multiplied in the stored rows. A night is a run that was drawn: 30
nights and a last one, 300 times over. It is a false alarm if io_probe_changes calls any figure of the last one
different. Two nights with read_ahead_kb 16 come instead of the last one: this is called if a scan is "worse" in the
first or in the second. "all" is with all_items.

It needs root, and what tools/deps.sh bench installs. repetition.sh starts the server, of the version that PG
(the newest of the cache) names. What was recorded is in DIR (/var/tmp/repetition); an interrupted recording goes
on there. Two recordings of different versions may run at once: their runs take turns, and the second one, with
--beside, has no neighbour of its own.
"""

import argparse
import contextlib
import fcntl
import json
import math
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter

from arithmetic import Median, modal, verdict_of_share
from commands import psql, run, server_version
from history_verdicts import set_to
from random_vs_fio import fio_figures

# The folder of what is recorded.
DIR = pathlib.Path(os.environ.get("DIR", "/var/tmp/repetition"))
GROUP, EVERY_SLOW, NIGHTS, BEFORE, ROUNDS = 24, 10, 300, 30, 20
# Goals. By factor, the least share of differences that is found on an idle device; then the shares of all else.
FOUND = {0.9: 0.50, 0.8: 0.95, 0.5: 0.99}
DIFFERENT, UNKNOWN, ALARMS, CALLED, OUTSIDE, ADVISED = 17 / 200, 0.10, 22 / 300, 0.90, 3 / 40, 36 / 40
# Student's t at 5 %: of twelve pairs, and of twelve runs against twelve.
T_OF_PAIRS, T_OF_HALVES = 2.201, 2.074
# Each case is a factor, and whether the sides take turns.
CASES = [(factor, take_turns) for factor in (1.0, *FOUND) for take_turns in (False, True)]

LOAD = """CREATE TABLE repeated (k int, filler text);
    ALTER TABLE repeated ALTER filler SET STORAGE PLAIN;
    INSERT INTO repeated SELECT hashint4(n) & 1023, repeat('x', 960) FROM generate_series(1, 262144) AS n;
    CREATE INDEX ON repeated (k)"""


def probes(longer):
    """The arguments of io_probe_record. The four take some 0.4 s together, or `longer` times that."""
    paths = f'"paths": ["direct", "os", "server"], "cold": true, "duration": "{120 * longer} ms"'
    return [
        f"'seqscan', 'repeated', '{{{paths}}}'",
        f"""'random', 'repeated', '{{"paths": ["direct"], "duration": "{100 * longer} ms"}}'""",
        f"""'ping', 'repeated', '{{"every": "4 ms", "count": {10 * longer}}}'""",
        f"""'sync', NULL, '{{"sections": ["wal_segment"], "duration": "{96 * longer} ms"}}'""",
    ]


STORED = """
    SELECT jsonb_build_object('turn', {turn}, 'slow', {slow}, 'runs', jsonb_agg(to_jsonb(run) || rows))
    FROM io_probe_runs AS run, LATERAL (
        SELECT jsonb_build_object('rows', coalesce(jsonb_agg(result ORDER BY ordinal), '[]')) AS rows
        FROM io_probe_results WHERE run_id = run.id
    ) AS of_run WHERE label = '{turn} {slow}'"""


# --- neighbours ---------------------------------------------------------------------------------------------


def steps(condition, dice):
    """The neighbour's steps, without an end: seconds, and the share of the disk that it takes."""
    while condition == "constant":
        yield 600, 0.4
    while condition == "bursts":
        yield dice.uniform(10, 60), 0
        yield dice.uniform(5, 40), dice.uniform(0.4, 0.9)
    while condition == "drift":
        period = 10 * dice.randint(12, 48)
        for at in range(0, period, 10):
            yield 10, 0.4 - 0.38 * math.cos(2 * math.pi * at / period)


class Neighbour(threading.Thread):
    """fio, step by step, until the end of the `with` block."""

    def __init__(self, condition, seed, file):
        super().__init__()
        self.steps = steps(condition, random.Random(seed))
        self.over = threading.Event()
        self.fio = ["fio", "--name=neighbour", f"--filename={file}", "--size=512M", "--bs=64k", "--direct=1"]
        self.fio += ["--rw=randrw", "--rwmixread=75", "--ioengine=io_uring", "--iodepth=8", "--time_based"]
        if condition != "idle":
            told = run([*self.fio, "--output-format=json", "--lat_percentiles=1", "--runtime=3"])
            self.most = fio_figures(told)[0]["iops"]

    def run(self):
        for seconds, share_of_disk in self.steps:
            if share_of_disk == 0:
                self.over.wait(seconds)
            elif not self.over.is_set():
                self.take(seconds, share_of_disk * self.most)
            if self.over.is_set():
                return

    def take(self, seconds, reads):
        rates = f"--rate_iops={max(3, round(reads))},{max(1, round(reads / 3))}"
        command = [*self.fio, rates, f"--runtime={round(1000 * seconds)}ms", "--output=/dev/null"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as fio:
            while fio.poll() is None and not self.over.wait(0.1):
                pass
            fio.terminate()

    def __enter__(self):
        self.start()

    def __exit__(self, *_):
        self.over.set()
        self.join()


def in_turn(*queries):
    """What queries give in one session."""
    return psql(queries[-1], *(option for query in queries[:-1] for option in ("-c", query)))


# --- recording ----------------------------------------------------------------------------------------------


def kept(given, what):
    """The file of a condition's records, and what it holds so far."""
    DIR.mkdir(parents=True, exist_ok=True)
    longer = getattr(given, "longer", 1)
    name = given.condition + ("-seen" if given.seen else "") + (f"-longer{longer}" if longer > 1 else "")
    file = DIR / f"{name}-{server_version().partition('.')[0]}.{what}"
    return file, [json.loads(line) for line in file.open(encoding="ascii")] if file.exists() else []


def keep(file, line):
    with file.open("a", encoding="ascii") as lines:
        lines.write(json.dumps(line) + "\n")


def prepare(given, done):
    """Makes the table, synced, in one piece, and in no buffer; the neighbour."""
    in_turn(LOAD, "VACUUM FULL repeated", "VACUUM ANALYZE repeated", "CHECKPOINT")
    if given.beside:
        return contextlib.nullcontext()
    place = pathlib.Path(os.environ["WORK"]) / ("mount/neighbour" if given.seen else "neighbour")
    return Neighbour(given.condition, f"{given.condition} {done}", place)


def turns(runs):
    """The runs in order, each with whether it has little readahead."""
    for turn in range(runs):
        yield turn, False
        if turn % EVERY_SLOW == EVERY_SLOW - 1:
            yield turn, True


def record(given):
    file, lines = kept(given, "runs")
    done = {(line["turn"], line["slow"]) for line in lines}
    with prepare(given, len(done)):
        measure(given, -1, False)  # not kept: it sets hint bits, and does what else only the first run does
        due = time.monotonic()
        for turn in (turn for turn in turns(given.runs) if turn not in done):
            time.sleep(max(0, due - time.monotonic()))
            due = time.monotonic() + given.every
            keep(file, measure(given, *turn))
    print(f"{file}: {len(kept(given, 'runs')[1])} runs")


def measure(given, turn, slow):
    """Records a run of each probe, while no other recording runs; the runs as they were stored."""
    calls = [f"SELECT io_probe_record({probe}, '{turn} {slow}')" for probe in probes(given.longer)]
    window = f"/sys/block/{os.environ['DEVICE']}/queue/read_ahead_kb"
    set_to(window, "16" if slow else "128")
    with (DIR / "turn").open("w", encoding="ascii") as its_turn:
        fcntl.flock(its_turn, fcntl.LOCK_EX)
        told = in_turn(*calls, STORED.format(turn=turn, slow=slow))
    set_to(window, "128")
    return json.loads(told.splitlines()[-1])


# --- judging ------------------------------------------------------------------------------------------------

# `put` copies stored runs, at their own times or as nights from `night` on, with figures times a factor. KEEP leaves
# out devices and cluster: a recording that was interrupted goes on with others.
JUDGE = """
CREATE TABLE lines (line jsonb);
CREATE TABLE kept (turn int, slow bool, run jsonb, rows jsonb);
CREATE FUNCTION scaled(result jsonb, factor float8) RETURNS jsonb RETURN result || (
    SELECT coalesce(jsonb_object_agg(key, factor * value::float8), '{{}}') FROM jsonb_each(result)
    WHERE key = ANY ('{{mib_s,iops,ops_s,ci_low,ci_high,p50_us,p99_us,lat_us}}')
          AND jsonb_typeof(value) = 'number');
CREATE FUNCTION put(turns int[], is_slow bool, label text, factor float8, night int) RETURNS void
LANGUAGE sql AS $$
    WITH copy AS (
        SELECT nextval('io_probe_runs_id_seq') AS copy_id, kept.run, kept.rows,
               to_jsonb(timestamptz '2024-01-01' + (night + place) * interval '1 day') AS at
        FROM unnest(turns) WITH ORDINALITY AS chosen (turn, place)
        JOIN kept ON kept.turn = chosen.turn AND kept.slow = is_slow
    ), changed AS (
        SELECT copy.run || jsonb_build_object(
            'id', copy_id, 'label', label, 'started_at', coalesce(at, copy.run -> 'started_at')
        ) AS changed_run
        FROM copy
    ), stored AS (
        INSERT INTO io_probe_runs ({columns})
        SELECT {columns} FROM changed, jsonb_populate_record(NULL::io_probe_runs, changed_run)
    )
    INSERT INTO io_probe_results SELECT copy_id, ordinal, scaled(result, factor)
    FROM copy, jsonb_array_elements(copy.rows) WITH ORDINALITY AS row (result, ordinal) $$
"""
COLUMNS = """SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
    WHERE attrelid = 'io_probe_runs'::regclass AND attnum > 0 AND attgenerated = '' AND NOT attisdropped"""
KEEP = """INSERT INTO kept SELECT (line ->> 'turn')::int, (line ->> 'slow')::bool,
        run - 'rows' || '{"system_identifier": "1", "leaves": []}', run -> 'rows'
    FROM lines, jsonb_array_elements(line -> 'runs') AS run"""
TURNS = "SELECT coalesce(jsonb_agg(DISTINCT turn), '[]') FROM kept WHERE slow = {}"
# The logarithms of each figure's values, in the order of time.
VALUES = """SELECT coalesce(jsonb_agg(of_figure), '[]') FROM (
    SELECT jsonb_build_array(concat_ws(' ', probe, item, metric), jsonb_agg(ln(value) ORDER BY started_at)) AS of_figure
    FROM io_probe_metrics WHERE value > 0 GROUP BY probe, item, metric HAVING count(*) = {}) AS each"""
FORGET = "TRUNCATE io_probe_runs, io_probe_results"
SAID = """SELECT coalesce(jsonb_agg(jsonb_build_array(figure, verdict, ratio)), '[]')
    FROM {}, concat_ws(' ', probe, item, metric) AS figure
    WHERE verdict IS NOT NULL"""
CHANGES = [SAID.format(f"io_probe_changes_full(1, {all_items})") for all_items in (False, True)]


def put(runs, label, slow=False, factor=1.0, night="NULL"):
    """The query that copies these runs."""
    return f"SELECT put('{{{','.join(map(str, runs))}}}', {slow}, '{label}', {factor}, {night})"


def said(*queries):
    """Runs queries; what those that give a list (SAID, VALUES) give."""
    return [json.loads(line) for line in in_turn(*queries).splitlines() if line.startswith("[")]


def sides(runs, take_turns):
    """The two sides of a group: its halves, or every second run."""
    return (runs[::2], runs[1::2]) if take_turns else (runs[: len(runs) // 2], runs[len(runs) // 2 :])


def kind(verdict, ratio, factor):
    """What a verdict comes to if the second side was multiplied by a factor of 1 or less."""
    if verdict in ("same", "can't tell"):
        return "same" if verdict == "same" else "unknown"
    return "wrong" if factor < 1 < ratio else "different"


def judge_groups(runs):
    """How often each figure got each kind of verdict, by case; how often t-tests (of pairs in turns, or of halves) call one
    different, by case; and the standard deviations of each figure's logarithm."""
    counts, by_t_test, deviations = {}, {case: Counter() for case in CASES}, {}
    for start in range(0, len(runs) - GROUP + 1, GROUP):
        for factor, take_turns in CASES:
            a, b = sides(runs[start : start + GROUP], take_turns)
            compared = SAID.format("io_probe_compare('a', 'b')")
            found, values = said(FORGET, put(a, "a"), put(b, "b", factor=factor), compared, VALUES.format(GROUP))
            for figure, verdict, ratio in found:
                of_figure = counts.setdefault(figure, {case: Counter() for case in CASES})
                of_figure[factor, take_turns][kind(verdict, ratio, factor)] += 1
            test = pairs_differ if take_turns else halves_differ
            by_t_test[factor, take_turns].update(test(logarithms) for _, logarithms in values)
            if factor == 1 and take_turns:
                for figure, logarithms in values:
                    deviations.setdefault(figure, []).append(statistics.stdev(logarithms))
    return counts, by_t_test, deviations


def pairs_differ(logarithms):
    """Do runs that are neighbours in time differ, by the t-test at 5 %?"""
    ratios = [b - a for a, b in zip(logarithms[::2], logarithms[1::2])]
    return abs(statistics.mean(ratios)) > T_OF_PAIRS * statistics.stdev(ratios) / math.sqrt(len(ratios))


def halves_differ(logarithms):
    """Does the first half differ from the second, by the t-test at 5 %?"""
    a, b = sides(logarithms, False)
    error = math.sqrt((statistics.variance(a) + statistics.variance(b)) / len(a))
    return abs(statistics.mean(b) - statistics.mean(a)) > T_OF_HALVES * error


def judge_nights(runs, slow, dice):
    """How often there was a false alarm, and how often little readahead was called: without all_items and with."""
    alarms, called = [0, 0], [0, 0]
    for _ in range(NIGHTS):
        *before, last = dice.sample(runs, min(BEFORE + 1, len(runs)))
        calls = [FORGET, put(before, "before", night=0), put([last], "last", night=len(before)), *CHANGES]
        calls += ["DELETE FROM io_probe_runs WHERE label = 'last'"]
        for night, turn in enumerate(dice.sample(slow, 2), len(before)):
            calls += [put([turn], "slow", slow=True, night=night), *CHANGES]
        found = said(*calls)
        for way in (0, 1):
            alarms[way] += any(verdict in ("better", "worse") for _, verdict, _ in found[way])
            on_slow = [row for night in found[2 + way :: 2] for row in night if row[0].startswith("seqscan")]
            called[way] += any(verdict == "worse" for _, verdict, _ in on_slow)
    return alarms, called


def share(counts, what):
    """How many verdicts are of the kind `what`, and how many there are."""
    return sum(count[what] for count in counts), sum(count.total() for count in counts)


def say(about, count, total, least=0.0, most=1.0):
    print(f"{about:<50}{f'{count}/{total}':>9} {verdict_of_share(count, total, least, most)}", flush=True)


def print_line(about, *cells):
    print(f"{about:<33}" + "".join(f"{cell:>8}" for cell in cells), flush=True)


def name(factor, take_turns):
    """The name of a case."""
    return ("A/A" if factor == 1 else f"x{factor}") + (" t" if take_turns else "")


def judge_file(file):
    """Prints all about a condition and version; the counts of judge_groups."""
    copy = f"\\copy lines FROM '{file}' (FORMAT csv, QUOTE e'\\x01', DELIMITER e'\\x02')"
    in_turn("TRUNCATE lines, kept", copy, KEEP)
    runs, slow = (json.loads(psql(TURNS.format(is_slow))) for is_slow in (False, True))
    print(f"\n{file.stem}: {len(runs)} runs, {len(slow)} with read_ahead_kb 16")
    print_line("different; t: in turns", *(name(*case) for case in CASES), "unknown")
    (counts, by_t_test, deviations), is_idle = judge_groups(runs), file.stem.startswith("idle")
    for figure, of_figure in sorted(counts.items()):
        shares = [share([of_figure[case]], "different") for case in CASES]
        shares.append(share(of_figure.values(), "unknown"))
        print_line(figure, *(f"{count}/{total}" for count, total in shares))
    every = [count for of_figure in counts.values() for count in of_figure.values()]
    say("unknown", *share(every, "unknown"), most=UNKNOWN if is_idle else 1)
    say("the wrong way round", *share(every, "wrong"))
    for case in CASES[2:]:
        found = share([of_figure[case] for of_figure in counts.values()], "different")
        say(f"found, {name(*case)}", *found, least=FOUND[case[0]] if is_idle else 0)
    for case, found in by_t_test.items():
        say(f"by the t-test, {name(*case)}", found[True], found.total())
    medians = [statistics.median(of_figure) for of_figure in deviations.values()]
    print(f"standard deviation of the figures from run to run: {min(medians):.2f} to {max(medians):.2f}")
    alarms, called = judge_nights(runs, slow, random.Random(file.stem))
    for way, about in enumerate(("", ", all")):
        say(f"false alarm{about}", alarms[way], NIGHTS, most=ALARMS)
        say(f"read_ahead_kb 16 called{about}", called[way], NIGHTS, least=CALLED)
    return counts


def judge(_given):
    psql(JUDGE.format(columns=psql(COLUMNS)))
    found = [judge_file(file) for file in sorted(DIR.glob("*.runs"))]
    print("\nall together")
    for figure in sorted({figure for counts in found for figure in counts}):
        for case in CASES[:2]:
            pooled = [counts[figure][case] for counts in found if figure in counts]
            say(f"{name(*case)}, {figure}", *share(pooled, "different"), most=DIFFERENT)


# --- advice -------------------------------------------------------------------------------------------------

ADVICE = """
    SELECT jsonb_agg(jsonb_build_array(concat_ws(' ', scope, setting), current, recommended, low, high, why))
    FROM io_probe_recommend_full('repeated', settings => {}, cold => true, writes => true)"""


def recommend(given):
    file, lines = kept(given, "advice")
    with prepare(given, len(lines)):
        for _ in range(len(lines), given.calls):
            keep(file, json.loads(psql(ADVICE.format(f"'{{{given.settings}}}'" if given.settings else "NULL"))))
            time.sleep(given.pause)
        rows = [row for call in kept(given, "advice")[1] for row in call]
        print(f"\n{file.stem}")
        for setting in sorted({row[0] for row in rows}):
            judge_advice(setting, [row[1:] for row in rows if row[0] == setting])


def judge_advice(setting, answers):
    """Prints all about a setting. An answer is: current, recommended, low, high, why."""
    current, known = answers[-1][0], [answer[1:4] for answer in answers if answer[1] is not None]
    say(f"{setting}: no answer", len(answers) - len(known), len(answers))
    for why, count in Counter(why for answer in answers if answer[1] is None for why in answer[4:]).most_common():
        print(f"  {count}: {why}")
    if not known:
        return
    best, low, high, outside = modal(known)
    say(f"  most say {best}; not {low} to {high}", outside, len(known), most=OUTSIDE)
    is_concurrency = setting.endswith(" effective_io_concurrency")
    least = ADVISED if is_concurrency and current == "1" else 0
    say(f"  other than {current}", sum(row[0] != current for row in known), len(answers), least=least)
    if is_concurrency and best != current:
        confirm(current, best)


def confirm(current, best):
    """Is the recommended value faster? Bitmap scans run under both in turn, each of other rows."""
    ratios = []
    for turn in range(ROUNDS):
        pair = list(enumerate((current, best), 2 * turn))
        took = {value: bitmap_ms(value, place) for place, value in (pair if turn % 2 else pair[::-1])}
        ratios.append(took[current] / took[best])
    ratio = Median(ratios)
    print(f"  time under {current} / under {best}: {ratio} {'met' if ratio.low > 1 else 'MISSED'}")


def bitmap_ms(concurrency, place):
    """The ms that a cold bitmap scan of a hundredth of the rows takes."""
    query = f"SELECT count(filler) FROM repeated WHERE k BETWEEN {10 * place} AND {10 * place + 9}"
    plan = "SET enable_seqscan = off; SET enable_indexscan = off"
    cold = "SELECT FROM io_probe_evict('repeated')"
    concurrent = f"SET effective_io_concurrency = {concurrency}"
    told = in_turn(cold, plan, concurrent, f"EXPLAIN (ANALYZE, FORMAT json) {query}")
    return json.loads(told)[0]["Execution Time"]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    commands = parser.add_subparsers(required=True)
    for function in (record, judge, recommend):
        command = commands.add_parser(function.__name__)
        command.set_defaults(function=function, condition="none")
        if function is not judge:
            command.add_argument("condition", choices=["idle", "constant", "bursts", "drift"])
            command.add_argument("--seen", action="store_true")
            command.add_argument("--beside", action="store_true")
    commands.choices["record"].add_argument("--runs", type=int, default=600)
    commands.choices["record"].add_argument("--every", type=float, default=2)
    commands.choices["record"].add_argument("--longer", type=int, default=1)
    commands.choices["recommend"].add_argument("--calls", type=int, default=40)
    commands.choices["recommend"].add_argument("--settings", default="")
    commands.choices["recommend"].add_argument("--pause", type=float, default=0)
    given = parser.parse_args()
    if "ON_SERVER" in os.environ:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        given.function(given)
    else:
        program = os.path.abspath(__file__)
        server = program.removesuffix(".py") + ".sh"
        os.execvp("bash", ["bash", server, given.condition, program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
