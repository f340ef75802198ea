"""Which plan the planner picks for each query of a matrix, see plan_regret.py. A module, not a program.

The JSON: queries, each the number of a point and whether the index covers it; variants, each name, seq, random (the two page
costs), eic and picked, and for those that io_probe_recommend gave also what it said; grid, each seq, random and picked. A
variant "+ c" is the same where the correlations that io_probe_recommend gave are kept, too. picked is one plan a query, as
plan_matrix.node_of names them, without an eic.
"""

import json
import os
import sys

from plan_matrix import node_of, query_of, say

GRID_SEQ = [0.1, 0.25, 0.5, 1, 1.5, 2, 3]
GRID_RANDOM = [0.1, 0.25, 0.5, 1, 1.1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48]


def queries_of(matrix):
    """All queries: each point, first without an index that covers the query, then with one."""
    return [{"point": n, "covered": covered} for n in range(len(matrix["points"])) for covered in (False, True)]


def documents(text):
    """The JSON documents that follow each other in a text."""
    decoder, at, found = json.JSONDecoder(), 0, []
    while text[at:].strip():
        document, at = decoder.raw_decode(text, at + len(text[at:]) - len(text[at:].lstrip()))
        found.append(document)
    return found


def picked(session, matrix, queries, seq, rnd):
    """What the planner picks at these costs, with nothing forced."""
    session.run(f"SET seq_page_cost = {seq}; SET random_page_cost = {rnd}")
    asked = ";\n".join(f"EXPLAIN (FORMAT JSON) {query_of(matrix['points'][q['point']], q['covered'])}" for q in queries)
    return [node_of(explained["Plan"])[0] for (explained,) in documents("\n".join(session.run(asked)))]


def given(argument):
    """The variant that an argument name=seq/random/eic gives."""
    name, _, figures = argument.partition("=")
    try:
        seq, rnd, eic = figures.split("/")
        return {"name": name, "seq": float(seq), "random": float(rnd), "eic": int(eic)}
    except ValueError:
        sys.exit(f"not name=seq/random/eic: {argument}")


def recommended(session, default_eic):
    """The variant that the extension recommends; a setting about which it says nothing, or for which it has no value,
    stays at its default."""
    from lib import Failure

    settings = ["random_page_cost", "effective_io_concurrency", "correlation"]
    try:
        session.start_rows(
            f"""SELECT name, setting, recommended, low, high, why, statement, undo
                FROM io_probe_recommend_full(cold => true, settings => '{{{",".join(settings)}}}')"""
        )
        rows = [json.loads(line) for line in session.finish(timeout=600)]
    except Failure as failure:
        say(f"no recommendation: {str(failure).splitlines()[0]}")
        return None
    for row in rows:
        say(f"{row['setting']} {row['recommended']} ({row['low']} to {row['high']}): {row['why']}")
    costs = [row for row in rows if row["setting"] != "correlation"]
    values = {row["setting"]: float(row["recommended"]) for row in costs if row["recommended"] is not None}
    if len(values) < sum(row["recommended"] is not None for row in costs):
        sys.exit(f"several recommendations of one setting: {rows}")
    told = [row for row in rows if row["setting"] == "correlation" and row["statement"]]
    return {"name": "advised", "told": told, "seq": 1.0, "random": values.get("random_page_cost", 4.0),
            "eic": int(values.get("effective_io_concurrency", default_eic)), "said": rows}  # fmt: skip


def with_correlations(variant):
    """The same variant where the correlations that were recommended with it are kept."""
    return {**variant, "name": f"{variant['name']} + c", "keeps": variant["told"]}


def pick(matrix_path, picks_path, arguments, grid):
    """Asks the planner for its picks at all variants, and on the grid."""
    from lib import Session

    with open(matrix_path, encoding="ascii") as file:
        matrix = json.load(file)
    queries, eic = queries_of(matrix), matrix["default_eic"]
    with Session() as session:
        session.run("LOAD 'pg_io_probe'")
        variants = [{"name": "defaults", "seq": 1.0, "random": 4.0, "eic": eic},
                    {"name": "1.1", "seq": 1.0, "random": 1.1, "eic": eic}]  # fmt: skip
        if session.value("SELECT count(*) FROM pg_proc WHERE proname = 'io_probe_recommend'"):
            # The defaults and the caller's own values, also with the correlations that are advised.
            others = [variants[0], *map(given, arguments)]
            if advised := recommended(session, eic):
                variants += [advised, with_correlations(advised)]
                others += [with_correlations({**other, "told": advised["told"]}) for other in others]
            variants += others[1:]
        else:
            variants += map(given, arguments)
        for variant in variants:
            for row in variant.get("keeps", []):
                session.run(row["statement"])
            variant["picked"] = picked(session, matrix, queries, variant["seq"], variant["random"])
            for row in variant.get("keeps", []):
                session.run(row["undo"])
        cells = [{"seq": seq, "random": rnd} for seq in GRID_SEQ for rnd in GRID_RANDOM if rnd >= seq] if grid else []
        for cell in cells:
            cell["picked"] = picked(session, matrix, queries, cell["seq"], cell["random"])
    with open(picks_path + ".new", "w", encoding="ascii") as out:
        json.dump({"queries": queries, "variants": variants, "grid": cells}, out)
    os.replace(picks_path + ".new", picks_path)
