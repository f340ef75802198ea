#!/usr/bin/env -S python3 -B
"""How much longer the planner's plans take than the best ones, by planner costs and effective_io_concurrency (eic).

    plan_regret.py time MATRIX.json [--set NAME] [--rounds N] [--eic E,E]
                                makes the tables of a set (dev, heldout, tiny) on the server that the environment names,
                                and times every plan of every query, cold and warm, in N (5) rounds: see plan_matrix.py
    plan_regret.py pick MATRIX.json PICKS.json [--grid] [--recommend CACHE,CACHE/UNIT] [NAME=SEQ/RANDOM/EIC …]
                                asks the planner of the same server which plan it picks, with nothing forced, at the
                                defaults of its version, at random_page_cost 1.1, at what io_probe_recommend says for
                                each of its caches (or for those that are named), and at what is named here; --grid adds
                                a grid of costs: see plan_pick.py
    plan_regret.py report MATRIX.json PICKS.json [--svg FILE] [--wrong N]
                                the regrets, and the N (10) worst picks of each variant; needs no server
    plan_regret.py --self-test

plan_regret.sh starts the servers, and keeps them so that other variants can be tried.

A query's regret is the time of the plan that was picked, as it runs at the variant's eic, over that of the best plan at
any eic. Who takes the least of several noisy times finds one that is too small, so even the best plan has a regret. To
know how much: of the rounds one half, in every possible way, chooses a plan, and the other judges it. A time is the
median of the judging half, and a regret the geometric mean over all halves, of the variants' plans and of the chosen
ones alike. The latter are the `floor`; `best plan at eic E` is chosen in the same way among the plans at one eic, and
`grid: best plan that any cell picks` among those that the planner picks at some costs: they tell what no planner cost
can mend. A plan that was timed once, since it was hopeless, counts with that time in each half; one that was cancelled
counts with the time that it got.

The columns: geometric mean over all queries, the worst one, and how many are over 1.2. The goal of a variant: cold at
most the floor plus half of what the better one of `defaults` and `1.1` has above it; warm no worse than either of them,
and nowhere over 3.
"""

import argparse
import json
import math
import random
import sys

import plan_matrix
import plan_pick
import plan_report


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("time")
    command.add_argument("matrix")
    command.add_argument("--set", default="dev", choices=plan_matrix.SETS)
    command.add_argument("--rounds", type=int, default=5)
    command.add_argument("--eic", default="")
    command = commands.add_parser("pick")
    command.add_argument("matrix")
    command.add_argument("picks")
    command.add_argument("--grid", action="store_true")
    command.add_argument("--recommend", default="cold,current,stats,planned")
    command.add_argument("variants", nargs="*")
    command = commands.add_parser("report")
    command.add_argument("matrix")
    command.add_argument("picks")
    command.add_argument("--svg")
    command.add_argument("--wrong", type=int, default=10)
    # What stands after an option is not taken for a list's.
    told, rest = parser.parse_known_args()
    if rest and (told.command != "pick" or any(one.startswith("-") for one in rest)):
        parser.error(f"not understood: {rest}")
    if told.command == "time":
        plan_matrix.measure(told.matrix, told.set, told.rounds, [int(eic) for eic in told.eic.split(",") if eic])
    elif told.command == "pick":
        recommend = [which for which in told.recommend.split(",") if which]
        plan_pick.pick(told.matrix, told.picks, told.variants + rest, recommend, told.grid)
    else:
        plan_report.report(told.matrix, told.picks, told.svg, told.wrong)


def self_test():
    """Known answers."""
    # A point as plan_matrix makes it, and what a query of it can do.
    times = {"index": [10.0, 20.0], "indexonly": [1.0, 1.0], "bitmap@0": [5.0, None], "bitmap@16": [8.0, 8.0]}
    point = {"table": "t", "column": "c", "selectivity": 0.2, "low": 1, "high": 9, "times": {"cold": times}}
    seq = {"table": "t", "state": "cold", "plan": "seq"}
    measured = [(0, 0.1, 10), (0, 0.5, 30), (0, 0.5, 50), (1, 0.1, 20), (1, 0.5, 20), (1, 0.1, 30), (1, 0.1, 21)]
    matrix = {"version": 15, "eics": [0, 16], "rounds": 2, "selectivities": [0.1, 0.5], "points": [point],
              "seq": [{**seq, "round": n, "selectivity": share, "ms": ms} for n, share, ms in measured]}  # fmt: skip
    on_line = plan_matrix.seq_times(matrix, point, "cold", "seq")
    assert all(map(math.isclose, on_line, [17.5, 20.75])), on_line
    found = plan_matrix.times_of(matrix, point, "cold", False)
    assert sorted(found) == ["bitmap@0", "bitmap@16", "index", "seq"] and "indexonly" not in found
    assert "indexonly" in plan_matrix.times_of(matrix, point, "cold", True)
    assert plan_matrix.plans_of(18, [1])[1] == ["seq@1"] and plan_matrix.plans_of(17, [1])[1] == ["seq"]
    assert plan_matrix.query_of(point, True) == "SELECT count(c) FROM t WHERE c BETWEEN 1 AND 9"
    for name, chosen in plan_matrix.SETS.items():
        points = plan_matrix.make_points(chosen)
        assert len(points) >= 24 and points == plan_matrix.make_points(chosen), name
        assert all(0 <= one["low"] <= one["high"] < chosen["tables"][one["table"]]["rows"] for one in points), name

    # EXPLAINs, one after the other.
    scan = {"Node Type": "Bitmap Heap Scan", "Plans": [{"Node Type": "Bitmap Index Scan"}]}
    told = json.dumps([{"Plan": {"Node Type": "Aggregate", "Plans": [scan]}}], indent=2)
    both = plan_pick.documents(f"\n{told}\n{told}\n")
    assert len(both) == 2 and plan_matrix.node_of(both[1][0]["Plan"]) == ("bitmap", scan)
    assert plan_pick.given("x=0.5/2/24") == {"name": "x", "seq": 0.5, "random": 2.0, "eic": 24}

    # Each half chooses once, and judges once.
    assert len(plan_report.splits(5)) == 10 and all(len(judged) == 3 for _, judged in plan_report.splits(5))
    assert plan_report.splits(2) == [((0,), [1]), ((1,), [0])] and len(plan_report.splits(1)) == 1
    assert plan_report.median_of([4.0, None, 8.0], [0, 1]) == 4 and plan_report.median_of([4.0, None], [1]) == 4
    doubled = plan_report.between({"bitmap@0": [1.0, None], "bitmap@3": [4.0, 9.0]}, "bitmap", 1)
    assert math.isclose(doubled[0], 2) and doubled[1] is None
    assert plan_report.between({"bitmap@0": [1.0], "bitmap@3": [4.0]}, "bitmap", 1000) == [4.0]

    # Two plans whose times never change: the better one has no regret, and is chosen.
    query = plan_report.Query({"index": [10.0] * 4, "seq": [20.0] * 4}, 4)
    assert (query.regret("index", 1), query.floor(), query.best) == (0, 0, "index")
    assert math.isclose(query.regret("seq", 1), math.log(2))
    # At another eic there is a better one.
    query = plan_report.Query({"bitmap@0": [30.0] * 3, "bitmap@16": [10.0] * 3, "seq": [20.0] * 3}, 3)
    assert math.isclose(query.floor(0), math.log(2)) and query.floor() == query.floor(16) == 0
    assert math.isclose(query.regret("bitmap", 0), math.log(3))
    assert query.floor(bases={"bitmap"}) == 0 and math.isclose(query.floor(bases={"seq"}), math.log(2))
    # What was chosen by one round is the worse one in the other: as bad as it can be, for whoever chooses; and a plan
    # that nobody would choose by chance is as good as the other one.
    query = plan_report.Query({"index": [10.0, 20.0], "seq": [20.0, 10.0]}, 2)
    assert math.isclose(query.floor(), math.log(2)) and math.isclose(query.regret("seq", 1), math.log(2) / 2)
    # Plans that differ by noise alone: a fixed pick has the floor's regret.
    dice, picked, floors = random.Random(1), [], []
    for _ in range(2000):
        query = plan_report.Query({plan: [dice.lognormvariate(0, 0.1) for _ in range(5)] for plan in "abc"}, 5)
        picked.append(query.regret("a", 1))
        floors.append(query.floor())
    assert 0.03 < sum(picked) / 2000 < 0.06 and abs(sum(picked) - sum(floors)) / 2000 < 0.003

    assert plan_report.goal(1.1, [1.5, 1.3]) == (1.1 + 1.3) / 2 and plan_report.goal(1.1, [1.0, 1.3]) == 1.1
    by_state = {"cold": times, "warm": {**times, "index": [4.0, 4.0]}}
    scores = plan_report.Scores({**matrix, "points": [{**point, "times": by_state}], "default_eic": 16,
                                 "seq": [{**one, "state": s} for one in matrix["seq"] for s in plan_matrix.STATES]},
                                plan_pick.queries_of(matrix))  # fmt: skip
    assert scores.name(1) == "t.c 0.2 covered"
    assert scores.regrets("cold", ["bitmap", "indexonly"], 0) == [0, 0]
    picks = [["index", "indexonly"], ["bitmap", "indexonly"]]
    grid = [{"seq": 1, "random": n, "picked": picked} for n, picked in enumerate(picks)]
    cells = {name: (cell["random"], eic) for cell, eic, name in plan_report.best_cells(scores, grid)}
    assert cells == {"grid: best cold": (1, 0), "grid: best warm": (0, 0), "grid: best of both": (1, 0),
                     "grid: both at eic 16": (0, 16)}, cells  # fmt: skip
    print("ok")


if __name__ == "__main__":
    main()
