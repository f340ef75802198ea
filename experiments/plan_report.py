"""The regret of what the planner picks, from a matrix and the picks: see plan_regret.py. A module, not a program."""

import itertools
import json
import math
import statistics
import subprocess

from plan_matrix import STATES, base_of, eic_of, times_of

# A pick that takes this many times the best plan is called wrong.
WRONG = 1.2


def splits(rounds):
    """Ways to choose by some of the rounds, and to judge by the others, which are as many or one more."""
    if rounds < 2:
        return [(range(rounds), range(rounds))]
    of = range(rounds)
    return [(some, [n for n in of if n not in some]) for some in itertools.combinations(of, rounds // 2)]


def median_of(ms, rounds):
    """The median of a plan's times in these rounds; in all rounds, if it was not timed in these."""
    timed = [ms[n] for n in rounds if ms[n] is not None] or [one for one in ms if one is not None]
    return statistics.median(timed)


def between(plans, base, eic):
    """The times at an eic that was not measured: between the next two that were, on a line of logarithms."""
    known = sorted(eic_of(plan) for plan in plans if base_of(plan) == base)
    if eic >= known[-1]:
        return plans[f"{base}@{known[-1]}"]
    above = next(one for one in known if one > eic)
    below = known[known.index(above) - 1]
    share = math.log((1 + eic) / (1 + below)) / math.log((1 + above) / (1 + below))
    # Where one of the two was timed once, only the first round has both.
    pairs = zip(plans[f"{base}@{below}"], plans[f"{base}@{above}"])
    return [None if None in pair else pair[0] ** (1 - share) * pair[1] ** share for pair in pairs]


class Query:
    """A query in one state: how much longer than the best one each plan takes, in logarithms."""

    def __init__(self, plans, rounds):
        self.plans, self.splits = plans, splits(rounds)
        self.least = [min(median_of(ms, judged) for ms in plans.values()) for _, judged in self.splits]
        self.regrets = {plan: self._regret(ms) for plan, ms in plans.items()}
        self.best = min(self.regrets, key=self.regrets.get)

    def _regret(self, ms):
        return statistics.fmean(math.log(median_of(ms, judged) / least)
                                for (_, judged), least in zip(self.splits, self.least))  # fmt: skip

    def regret(self, base, eic):
        """The regret of a plan as it runs at this eic."""
        if base in self.plans:
            return self.regrets[base]
        if f"{base}@{eic}" not in self.regrets:
            self.regrets[f"{base}@{eic}"] = self._regret(between(self.plans, base, eic))
        return self.regrets[f"{base}@{eic}"]

    def floor(self, eic=None, bases=None):
        """The regret of the plan that the other rounds choose: among all, or among those at one eic, or of some kinds."""
        plans = {
            plan: ms
            for plan, ms in self.plans.items()
            if (eic is None or eic_of(plan) in (None, eic)) and (bases is None or base_of(plan) in bases)
        }
        regrets = []
        for (chosen_by, judged), least in zip(self.splits, self.least):
            chosen = min(plans, key=lambda plan: median_of(plans[plan], chosen_by))
            regrets.append(math.log(median_of(plans[chosen], judged) / least))
        return statistics.fmean(regrets)


class Scores:
    """The regrets of all queries of a matrix."""

    def __init__(self, matrix, queries):
        self.matrix, self.queries = matrix, queries
        self.of = {
            state: [Query(times_of(matrix, matrix["points"][q["point"]], state, q["covered"]), matrix["rounds"])
                    for q in queries]
            for state in STATES
        }  # fmt: skip

    def regrets(self, state, picked, eic):
        """The regrets of the picked plans at an eic, one logarithm a query."""
        return [query.regret(base, eic) for query, base in zip(self.of[state], picked)]

    def floors(self, state, eic=None):
        return [query.floor(eic) for query in self.of[state]]

    def name(self, number):
        """A query, in words."""
        query = self.queries[number]
        point = self.matrix["points"][query["point"]]
        kind = "covered" if query["covered"] else "heap"
        return f"{point['table']}.{point['column']} {point['selectivity']:g} {kind}"


def mean(logarithms):
    return math.exp(statistics.fmean(logarithms))


def worst(logarithms):
    return math.exp(max(logarithms))


def costs(variant):
    return f"{variant['seq']:g} / {variant['random']:g}"


def rows_of(scores, picks):
    """The lines of the table: name, costs, eic, and the regrets by state."""
    rows = []
    for variant in picks["variants"]:
        regrets = {state: scores.regrets(state, variant["picked"], variant["eic"]) for state in STATES}
        rows.append((variant["name"], costs(variant), variant["eic"], regrets))
    for cell, eic, name in best_cells(scores, picks["grid"]):
        rows.append((name, costs(cell), eic, {s: scores.regrets(s, cell["picked"], eic) for s in STATES}))
    if picks["grid"]:
        picked = [set(bases) for bases in zip(*(cell["picked"] for cell in picks["grid"]))]
        floors = {s: [query.floor(bases=bases) for query, bases in zip(scores.of[s], picked)] for s in STATES}
        rows.append(("grid: best plan that any cell picks", "", "any", floors))
    for eic in scores.matrix["eics"]:
        rows.append((f"best plan at eic {eic}", "", eic, {state: scores.floors(state, eic) for state in STATES}))
    rows.append(("floor", "", "any", {state: scores.floors(state) for state in STATES}))
    return rows


def best_cells(scores, grid):
    """The cells of the grid with the least regret: cold, warm, and in both together; and both at the default eic."""
    if not grid:
        return
    measured = {
        (number, eic): [statistics.fmean(scores.regrets(state, cell["picked"], eic)) for state in STATES]
        for number, cell in enumerate(grid) for eic in scores.matrix["eics"]
    }  # fmt: skip
    default = scores.matrix["default_eic"]
    wanted = {"grid: best cold": ((1, 0), None), "grid: best warm": ((0, 1), None),
              "grid: best of both": ((1, 1), None), f"grid: both at eic {default}": ((1, 1), default)}  # fmt: skip
    for name, (weigh, eics) in wanted.items():
        allowed = [key for key in measured if eics is None or key[1] == eics]
        number, eic = min(allowed, key=lambda key: sum(w * m for w, m in zip(weigh, measured[key])))
        yield grid[number], eic, name


def print_report(matrix, picks, most_wrong):
    """Prints the table, in markdown, the verdicts, and the wrong picks."""
    scores = Scores(matrix, picks["queries"])
    rows = rows_of(scores, picks)
    of = f"{len(scores.queries)} queries, {matrix['rounds']} rounds"
    print(f"PostgreSQL {matrix['server']}, set {matrix['set']}, {of}\n")
    print("| variant | seq / random | eic | cold | worst | wrong | warm | worst | wrong |\n" + "|---" * 9 + "|")
    for name, cost, eic, regrets in rows:
        figures = [figure for state in STATES for figure in (
            f"{mean(regrets[state]):.3f}", f"{worst(regrets[state]):.1f}",
            str(sum(one > math.log(WRONG) for one in regrets[state])))]  # fmt: skip
        print(f"| {' | '.join([name, cost, str(eic), *figures])} |")
    print_parts(scores, rows)
    print_verdicts(rows)
    for variant in picks["variants"]:
        for state in STATES:
            print_wrong(scores, variant, state, most_wrong)


def print_parts(scores, rows):
    """Prints geometric means by table and column, and by kind of query."""
    points = [scores.matrix["points"][q["point"]] for q in scores.queries]
    parts = [f"{p['table']}.{p['column']}" for p in points]
    kinds = ["covered" if q["covered"] else "heap" for q in scores.queries]
    for state in STATES:
        names = [*dict.fromkeys(parts), "heap", "covered"]
        print(f"\n| {state} | {' | '.join(names)} |\n" + "|---" * (len(names) + 1) + "|")
        for name, _, _, regrets in rows:
            means = [mean([one for one, part, kind in zip(regrets[state], parts, kinds) if which in (part, kind)])
                     for which in names]  # fmt: skip
            print(f"| {name} | {' | '.join(f'{one:.2f}' for one in means)} |")


def goal(floor, folk):
    """The most that a variant may have cold: the floor, and half of what the better of `folk` has above it."""
    return floor + max(min(folk) - floor, 0) / 2


def print_verdicts(rows):
    """Prints the verdict on each variant, beside `defaults` and `1.1`: see plan_regret.py."""
    by_name = {name: {state: mean(one) for state, one in regrets.items()} for name, _, _, regrets in rows}
    folk = {state: [by_name[name][state] for name in ("defaults", "1.1")] for state in STATES}
    most_cold, most_warm = goal(by_name["floor"]["cold"], folk["cold"]), min(folk["warm"])
    print(f"\ngoal: cold at most {most_cold:.3f}, warm at most {most_warm:.3f} and nowhere over 3")
    for name, _, _, regrets in rows:
        if name in ("defaults", "1.1", "floor") or ":" in name or name.startswith("best plan"):
            continue
        cold = "met" if by_name[name]["cold"] <= most_cold else "MISSED"
        warm = "met" if by_name[name]["warm"] <= most_warm and worst(regrets["warm"]) < 3 else "MISSED"
        print(f"{name}: cold {cold}, warm {warm}")


def print_wrong(scores, variant, state, most):
    """Prints the queries whose pick takes longest beside the best plan."""
    regrets = scores.regrets(state, variant["picked"], variant["eic"])
    order = sorted((n for n, one in enumerate(regrets) if one > math.log(WRONG)), key=lambda n: -regrets[n])
    at = f"{costs(variant)}, eic {variant['eic']}"
    print(f"\n{variant['name']} ({at}), {state}: {len(order)} wrong of {len(regrets)}")
    for number in order[:most]:
        query, cut = scores.of[state][number], scores.matrix["points"][scores.queries[number]["point"]]["cut"][state]
        picked, eic = variant["picked"][number], variant["eic"]
        shown = picked if picked in query.plans else f"{picked}@{eic}"
        least = "at least " if shown in cut else ""
        best = f"{query.best} ({median_of(query.plans[query.best], range(scores.matrix['rounds'])):.1f} ms)"
        same = min((plan for plan in query.plans if eic_of(plan) in (None, eic)), key=query.regrets.get)
        told = f"; at eic {eic} {same} {math.exp(query.regrets[same]):.2f}" if same != query.best else ""
        print(f"  {scores.name(number):34} {shown:10} {least}{math.exp(regrets[number]):6.2f} x {best}{told}")


# By the name of a variant, what its bar stands for.
BARS = {"defaults": "random_page_cost 4 (default)", "1.1": "random_page_cost 1.1", "advised": "io_probe_recommend",
        "advised + c": "the same with its correlations"}  # fmt: skip


def draw_bars(path, versions):
    """Draws the mean regrets of BARS side by side, by version, cold and warm, and a line for the best plans. SVG by gnuplot."""
    groups = [(f"{version}, {state}", state, rows) for version, rows in versions for state in STATES]
    lines = []
    for title, state, rows in groups:
        means = {name: mean(regrets[state]) for name, _, _, regrets in rows}
        lines.append(" ".join([f'"{title}"', *(f"{means[name]:.3f}" for name in [*BARS, "floor"])]))
    bars = [f'$bars using {number}:xtic(1) title "{title}"' for number, title in enumerate(BARS.values(), 2)]
    middle, width = (len(BARS) - 1) / 2, 1 / (len(BARS) + 1)
    labels = [f'$bars using ($0 + {(number - middle) * width}):{number + 2}:(sprintf("%.2f", ${number + 2})) with labels '
              "offset 0,0.5 font ',9' notitle" for number in range(len(BARS))]  # fmt: skip
    floor = f"$bars using ($0 - 0.45):{len(BARS) + 2}:(0.9):(0) with vectors nohead lw 2 dt 2 lc 'black' title 'the best plans'"
    commands = [f"set terminal svg noenhanced size 960,360 background 'white' font 'sans,11'; set output '{path}'",
                "$bars << EOD", *lines, "EOD",
                "set style data histogram; set style histogram clustered gap 1; set style fill solid 0.8 noborder",
                "set yrange [1:1.9]; set grid ytics; set key top right; set xtics scale 0",
                "set ylabel 'time over that of the best plan'", f"plot {', '.join(bars + labels + [floor])}", ""]  # fmt: skip
    subprocess.run(["gnuplot"], input="\n".join(commands), text=True, check=True)


def read_both(matrix_path, picks_path):
    with open(matrix_path, encoding="ascii") as file:
        matrix = json.load(file)
    with open(picks_path, encoding="ascii") as file:
        return matrix, json.load(file)


def compare(path, names):
    """Draws the bars of all NAME.json and NAME.picks.json."""
    read = [read_both(f"{name}.json", f"{name}.picks.json") for name in names]
    draw_bars(path, [(f"PostgreSQL {matrix['version']}", rows_of(Scores(matrix, picks["queries"]), picks)) for matrix, picks in read])


def report(matrix_path, picks_path, most_wrong):
    """Prints everything."""
    print_report(*read_both(matrix_path, picks_path), most_wrong)
