#!/usr/bin/env -S python3 -B
"""How much longer the planner's plans take than the best ones, by planner costs and effective_io_concurrency (eic).

    plan_regret.py time MATRIX.json [--set NAME] [--rounds N] [--eic E,E]
                                makes the tables of a set (dev, heldout, tiny) on the server that the environment names,
                                and times every plan of every query, cold and warm, in N (5) rounds: see plan_matrix.py
    plan_regret.py pick MATRIX.json PICKS.json [--grid] [NAME=SEQ/RANDOM/EIC …]
                                asks the planner of the same server which plan it picks, with nothing forced, at the
                                defaults of its version, at random_page_cost 1.1, at what io_probe_recommend says, without
                                and with the correlations that it recommends ("+ c"), and at each NAME=…, likewise; --grid
                                adds a grid of costs: see plan_pick.py
    plan_regret.py report MATRIX.json PICKS.json [--wrong N]
                                the regrets, and the N (10) worst picks of each variant; needs no server

    plan_regret.py compare SVG NAME…
                                draws the mean regrets of the defaults, of 1.1 and of what is recommended side by side,
                                from NAME.json and NAME.picks.json; needs no server

    plan_regret.py harm [--tables N] [--seed S]
                                does an advised correlation make a query slower on one of N (200) tables, whose shapes
                                are drawn? On the same servers, from 17 on: see plan_harm.py

plan_regret.sh starts the servers, and keeps them so that other variants can be tried.

A query's regret is the time of the plan that was picked, as it runs at the variant's eic, over that of the best plan at
any eic. The least of several noisy times is too small, so even the best plan has a regret. To know how much, one half of
the rounds chooses a plan and the other half judges it, in every possible way. A time is the median of the judging half. A
regret is the geometric mean over all halves, for the variants' plans and for the chosen ones alike. That of the chosen
ones is the `floor`. `best plan at eic E` is chosen in the same way among the plans at one eic, and `grid: best plan that
any cell picks` among those that the planner picks at some costs: they tell what no planner cost can improve. A plan that
was timed once, since it was hopeless, counts with that time in each half; one that was cancelled counts with the time that
it got.

The columns: geometric mean over all queries, the worst one, and how many are over 1.2. The goal of a variant: cold at
most the floor plus half of what the better one of `defaults` and `1.1` has above it; warm no worse than either of them,
and nowhere over 3.
"""

import argparse

import plan_harm
import plan_matrix
import plan_pick
import plan_report


def main():
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
    command.add_argument("variants", nargs="*")
    command = commands.add_parser("report")
    command.add_argument("matrix")
    command.add_argument("picks")
    command.add_argument("--wrong", type=int, default=10)
    command = commands.add_parser("compare")
    command.add_argument("svg")
    command.add_argument("names", nargs="+")
    command = commands.add_parser("harm")
    command.add_argument("--tables", type=int, default=200)
    command.add_argument("--seed", type=int, default=1)
    # argparse does not add an argument that stands after an option to the list `variants`.
    told, rest = parser.parse_known_args()
    if rest and (told.command != "pick" or any(one.startswith("-") for one in rest)):
        parser.error(f"not understood: {rest}")
    if told.command == "time":
        plan_matrix.measure(told.matrix, told.set, told.rounds, [int(eic) for eic in told.eic.split(",") if eic])
    elif told.command == "pick":
        plan_pick.pick(told.matrix, told.picks, told.variants + rest, told.grid)
    elif told.command == "compare":
        plan_report.compare(told.svg, told.names)
    elif told.command == "harm":
        plan_harm.harm(told.seed, told.tables)
    else:
        plan_report.report(told.matrix, told.picks, told.wrong)


if __name__ == "__main__":
    main()
