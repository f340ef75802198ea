#!/usr/bin/env -S python3 -B
"""The benchmarks' arithmetic gives known answers, and they read right what other programs print; no server is needed."""

import itertools
import json
import math
import os
import random
import sys
import unittest
from collections import Counter

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "experiments"))

import commands
import history_verdicts as history
import iostat_vs_sysstat as iostat
import pgbench_beside_probes as beside
import plan_matrix
import plan_pick
import plan_report
import random_vs_fio as fetches
import readahead_vs_kernel as readahead
import repetition
import sync_vs_pg_test_fsync as syncs
import what_probes_cost as costs
import who_served_tpch as served
from arithmetic import Bounds, Goal, Median, amount, modal, t_quantile, verdict_of_order, verdict_of_share

# What pg_test_fsync prints.
PG_TEST_FSYNC = """1 second per test
O_DIRECT supported on this platform for open_datasync and open_sync.

Compare file sync methods using one 8kB write:
(in wal_sync_method preference order, except fdatasync is Linux's default)
        open_datasync                      6748.507 ops/sec     148 usecs/op
        fdatasync                          6787.948 ops/sec     147 usecs/op
        fsync_writethrough                              n/a
        open_sync                                      n/a*

Compare open_sync with different write sizes:
(This is designed to compare the cost of writing 16kB in different write
open_sync sizes.)
         1 * 16kB open_sync write          6435.282 ops/sec     155 usecs/op
        16 *  1kB open_sync writes          457.680 ops/sec    2185 usecs/op

Test if fsync on non-write file descriptor is honored:
(If the times are similar, fsync() can sync data written on a different
descriptor.)
        write, fsync, close                7330.900 ops/sec     136 usecs/op

Non-sync'ed 8kB writes:
        write                           3037372.085 ops/sec       0 usecs/op
"""


class Arithmetic(unittest.TestCase):
    """Intervals and verdicts."""

    def test_students_t(self):
        tables = {  # of Student's t
            (0.95, 1): 6.3138, (0.95, 2): 2.9200, (0.95, 3): 2.3534, (0.95, 4): 2.1318, (0.95, 10): 1.8125,
            (0.95, 24): 1.7109, (0.95, 120): 1.6577,
            (0.975, 5): 2.5706, (0.975, 24): 2.0639, (0.99, 9): 2.8214,
        }  # fmt: skip
        for (p, df), t in tables.items():
            assert abs(t_quantile(p, df) - t) < 5e-5, (p, df, t_quantile(p, df), t)

    def test_bounds_of_a_mean(self):
        # Mean 0, s = 0.1, n = 3: the half-width is 2.92 * 0.1 / sqrt(3).
        bounds = Bounds([-0.1, 0.0, 0.1])
        assert abs(bounds.ratio - 1) < 1e-9
        assert abs(bounds.lower - math.exp(-0.168586)) < 1e-5
        assert abs(bounds.upper - math.exp(0.168586)) < 1e-5

    def test_goals(self):
        narrow, wide = Bounds([-0.04, -0.04]), Bounds([-0.3, 0.3])
        assert Goal(least=0.95).verdict(narrow) == "met" and Goal(least=0.97).verdict(narrow) == "MISSED"
        assert Goal(most=1.05).verdict(narrow) == "met" and Goal(most=0.95).verdict(narrow) == "MISSED"
        assert Goal(0.9, 1.1).verdict(narrow) == "met" and Goal(0.9, 1.1).verdict(wide) == "open"
        assert Goal(0.98, 1.1).verdict(narrow) == Goal(0.9, 0.95).verdict(narrow) == "MISSED"
        assert Goal().verdict(wide) == "-"

    def test_sign_test(self):
        # The extremes up to 8 values, the second of each end of 9, the fourth of 15.
        for n, outside in ((1, 0), (6, 0), (8, 0), (9, 1), (11, 1), (12, 2), (15, 3), (25, 7)):
            median = Median(range(n))
            assert (median.low, median.high) == (outside, n - 1 - outside), (n, median)
        assert Median([3, 1, 2]).ratio == 2

    def test_verdicts_of_a_median(self):
        assert Median([0.96, 0.96]).verdict(0.05) == "met" and Median([0.90, 0.94]).verdict(0.05) == "MISSED"
        assert Median([0.7, 0.8, 1.2]).verdict(0.05) == "open"
        assert Median([0.7, 0.92, 1.2]).verdict(0.10) == "met"

    def test_verdicts_of_an_order(self):
        twice, alike, half = Median([2.0, 2.1]), Median([1.0, 1.2]), Median([0.5, 0.6])
        assert verdict_of_order(twice, alike) == "met" and verdict_of_order(alike, half) == "met"
        assert verdict_of_order(twice, half) == "MISSED"
        assert verdict_of_order(twice, Median([0.8, 1.1])) == "open"

    def test_shares(self):
        assert verdict_of_share(17, 200, most=17 / 200) == "  8.5 %, at most 8.5: met"
        assert verdict_of_share(18, 200, most=17 / 200) == "  9.0 %, at most 8.5: MISSED"
        assert verdict_of_share(36, 40, least=0.9) == " 90.0 %, at least 90.0: met"
        assert verdict_of_share(35, 40, least=0.9).endswith("MISSED")
        assert verdict_of_share(1, 4) == " 25.0 %" and verdict_of_share(0, 0, most=0.1) == "-"

    def test_answers(self):
        sizes = [("128kB", "64kB", "1MB"), ("1MB", "128kB", "1MB"), ("128kB", "128kB", "256kB"),
                 ("2MB", "1MB", "2MB"), ("128kB", "64kB", "512kB")]  # fmt: skip
        assert modal(sizes) == ("128kB", "64kB", "512kB", 2), modal(sizes)
        assert modal([("1.5", "1.1", "4"), ("1.5", "1.2", "2"), ("2.5", "1", "9")]) == ("1.5", "1.2", "4", 0)
        assert modal([("fsync", None, None), ("fdatasync", None, None), ("fsync", None, None)])[3] == 1
        assert modal([("0", "0", "0")]) == ("0", "0", "0", 0)
        assert [amount(text) for text in ("1 GB", "-1", "2ms", "fsync")] == [1024**2, -1, 2000, None]


class RandomVsFio(unittest.TestCase):
    def test_fio(self):
        percentile = {"50.000000": 41728, "99.000000": 99840}
        lat = {"percentile": {"50.000000": 41984, "99.000000": 100864}}
        read = {"iops": 20168.8, "total_ios": 20189, "clat_ns": {"percentile": percentile}, "lat_ns": lat}
        figures, count = fetches.fio_figures(json.dumps({"jobs": [{"error": 0, "read": read}]}))
        assert count == 20189 and figures == {
            "iops": 20168.8, "p50 clat": 41.728, "p99 clat": 99.84, "p50 lat": 41.984, "p99 lat": 100.864,
        }  # fmt: skip

    def test_ioping(self):
        raw = "100 9573265 10446 42785821 86849 95733 154609 10548 100 10649035\n"  # of ioping's manual
        figures = fetches.ioping_figures(raw)
        assert figures["service iops"] == 10446 and abs(figures["iops"] - 9390.5) < 0.1, figures

    def test_who_takes_part(self):
        assert fetches.readers(1) == [fetches.OURS, fetches.FIO, fetches.FIO_HUGE, fetches.IOPING]
        assert fetches.readers(32) == [fetches.OURS, fetches.FIO, fetches.FIO_HUGE, fetches.THREADS]


class SyncVsPgTestFsync(unittest.TestCase):
    def test_rates_of_both(self):
        their = syncs.their_rates(PG_TEST_FSYNC)
        assert their == {
            ("one_write", "open_datasync"): 6748.507, ("one_write", "fdatasync"): 6787.948,
            ("one_write", "open_sync"): None,
            ("open_sync_size", "open_sync 1 * 16 kB"): 6435.282,
            ("open_sync_size", "open_sync 16 * 1 kB"): 457.68,
            ("other_fd", "write, fsync, close"): 7330.9, ("no_sync", "write"): 3037372.085,
        }, their  # fmt: skip

        def row(section, method, direct, rate, writes=1, write_kb=8):
            status = "ok" if rate else "unsupported"
            return {"section": section, "method": method, "direct": direct, "ops_s": rate,
                    "status": status,
                    "writes": writes, "write_kb": write_kb}  # fmt: skip

        our = syncs.our_rates([
            row("one_write", "open_datasync", True, 6700), row("one_write", "open_datasync", False, 1),
            row("one_write", "fdatasync", False, 6800),
            row("one_write", "open_sync", True, None), row("one_write", "open_sync", False, 1),
            row("open_sync_size", "open_sync", True, 6400, 1, 16),
            row("open_sync_size", "open_sync", True, 460, 16, 1),
            row("other_fd", "write, fsync, close", False, 7300), row("no_sync", "write", False, 3e6),
        ])  # fmt: skip
        assert our.keys() == their.keys() and our["one_write", "open_datasync"] == 6700, our
        assert our["open_sync_size", "open_sync 16 * 1 kB"] == 460 and our["one_write", "open_sync"] is None


class HistoryVerdicts(unittest.TestCase):
    def test_shares_and_times(self):
        assert history.share_of_different([["same", 1], ["better", 2], ["can't tell", 1], ["worse", 0.5]]) == 50
        assert history.timings("Time: 0.512 ms\n\nTime: 61234.567 ms (01:01.235)\n") == [0.512, 61234.567]


class IostatVsSysstat(unittest.TestCase):
    def test_totals_and_verdicts(self):
        device = {name: 0.0 for name, _ in [*iostat.SUMS.values(), *iostat.MEANS.values()]}
        cpu = {"user": 10.0, "nice": 5.0, "system": 20.0, "iowait": 15.0, "steal": 0.0, "idle": 50.0}
        reports = [
            {"avg-cpu": cpu, "disk": [{**device, "r/s": 100.0, "rkB/s": 1024.0, "r_await": 1.0,
                                       "util": 50.0}]},
            {"avg-cpu": cpu, "disk": [{**device, "r/s": 300.0, "rkB/s": 3072.0, "r_await": 3.0, "aqu-sz": 2.0,
                                        "d_await": 0.1}]},
        ]
        their = iostat.theirs(reports, 1.0)
        assert (their["r_s"], their["rmib_s"], their["aqu_sz"], their["util_pct"]) == (400, 4, 2, 0.5), their
        assert (their["r_await_ms"], their["w_await_ms"]) == (2.5, 0) and their["cpu_user_pct"] == 15, their
        assert iostat.theirs(reports, 1.01)["r_s"] == 404

        # The same requests in intervals of other lengths; the third has none.
        row = {column: 0.0 for column in [*iostat.SUMS, *iostat.MEANS, *iostat.CPU]}
        row |= {"r_await_ms": None, "cpu_user_pct": 15.0}
        our = iostat.ours([
            {**row, "elapsed_ms": 500.0, "r_s": 200.0, "rmib_s": 2.0, "r_await_ms": 1.0, "util_pct": 100.0},
            {**row, "elapsed_ms": 1000.0, "r_s": 300.0, "rmib_s": 3.0, "r_await_ms": 3.0, "aqu_sz": 2.0},
            {**row, "elapsed_ms": 500.0},
        ])  # fmt: skip
        same = ["r_s", "rmib_s", "aqu_sz", "util_pct", "r_await_ms", "cpu_user_pct"]
        assert [our[column] for column in same] == [their[column] for column in same], our

        moved = dict.fromkeys(iostat.COUNTERS, 0)
        moved |= {"r_s": 400, "r_sectors": 8192, "r_ticks": 1000, "weighted": 2000, "io_ticks": 500,
                  "f_s": 2, "f_ticks": 3}  # fmt: skip
        kernel = iostat.kernels([7] * 17, [7 + moved[name] for name in iostat.COUNTERS])
        assert [kernel[column] for column in same[:-1]] == [their[column] for column in same[:-1]], kernel
        assert (kernel["rareq_kb"], kernel["f_await_ms"]) == (10.24, 1.5), kernel
        assert "w_await_ms" not in kernel, kernel

        assert iostat.verdict(100.4, 100, 0.5) == iostat.verdict(99.6, 100, 0.5) == "met"
        assert iostat.verdict(100.6, 100, 0.5) == iostat.verdict(99.4, 100, 0.5) == "MISSED"
        assert iostat.verdict(0, 0, 0) == "-" and iostat.verdict(0.1, 0, 0) == "MISSED"
        # Half a percent of a large figure; three standard deviations of the rounding, 0.01 / sqrt(12), of a
        # small one; an edge.
        assert iostat.allowed("r_s", reports, 400, 0) == 2 and iostat.allowed("w_s", reports, 0, 0) == 0
        assert math.isclose(iostat.allowed("d_await_ms", reports, 0.1, 0), 3 * 0.01 / math.sqrt(12))
        assert iostat.allowed("cpu_idle_pct", reports, 50, 0.01) > 0.5


class ReadaheadVsKernel(unittest.TestCase):
    def test_dd(self):
        told = ("32768+0 records in\n32768+0 records out\n"
                "268435456 bytes (268 MB, 256 MiB) copied, 0.131072 s, 2.0 GB/s\n")  # fmt: skip
        assert readahead.dd_us(told) == 4 and readahead.dd_us(told.replace("0.131072", "1.31072e-01")) == 4

    def test_curves_and_sweeps(self):
        def row(window, us, best=False, **more):
            row = {"window_kb": window, "block_us": us, "best": best, "status": "ok", "notes": []}
            return row | more

        rows = [row(16, 20.0), row(128, 5.0, True)]
        found, best = readahead.curve(rows, [16, 128])
        assert (sorted(found), best) == ([16, 128], 128)
        for wrong, windows in [(rows, [16, 64]), ([row(16, 1)], [16]), ([*rows, row(64, 5, True)], [16, 128]),
                               ([*rows, row(16, 1)], [16]),
                               ([{**rows[1], "status": "void"}], [128])]:  # fmt: skip
            try:
                readahead.curve(wrong, windows)
            except SystemExit:
                continue
            raise AssertionError(f"taken for a curve: {wrong}")

        # A device that gets slower: each curve lies between two sweeps, and is a tenth slower than they.
        sweeps = [{16: {"block_us": 10.0 * 2**n, "dd": 20.0 * 2**n}} for n in range(4)]
        curves = [({16: row(16, 11.0 * 2**n * math.sqrt(2))}, 16) for n in range(3)]
        ratios = readahead.pairs_of(sweeps, curves, "block_us")[16]
        assert all(math.isclose(ratio, 1.1) for ratio in ratios)
        assert all(math.isclose(ratio, 0.55) for ratio in readahead.pairs_of(sweeps, curves, "dd")[16])
        assert Median([1.1] * 3).verdict(0.12) == "met" and Median([1.13] * 3).verdict(0.12) == "MISSED"
        assert readahead.pairs_of(sweeps, [({16: row(16, None)}, 16)], "block_us") == {16: []}

        others = {64: {"block_us": 5.0}, 128: {"block_us": 4.8}}
        sweeps = [{16: {"block_us": us}} | others for us in (9, 10, 11)]
        assert readahead.at_best(sweeps, [({}, 64), ({}, 64), ({}, 128)]) == (Counter({64: 2, 128: 1}), 0.96)
        assert readahead.at_best(sweeps, [({}, 16), ({}, 128)])[1] == 0.48


class PgbenchBesideProbes(unittest.TestCase):
    def test_turns_and_rates(self):
        said = "at 10.0\nat 11.0\nat 12.5\nended\nat 12.5\nat 13.5\nat 15.0\nended\nat 15.0\n"
        turns = beside.turns(said)
        assert turns == [(10.0, 11.0, 12.5), (12.5, 13.5, 15.0), (15.0, math.inf, math.inf)], turns
        log = "0 199 2241 0 1175850568 995598\n1 7 9 0 10 5\n"
        assert list(beside.ends(log)) == [1175850568.995598, 10.000005]
        # pgbench begins in the first turn, which is left out. Beside calls: 2 transactions in a second, then 4.
        # Beside nothing: 3 in one and a half.
        ended = [10.5, 11.1, 11.7, 12.3, 12.6, 13.4, 13.6, 14.0, 14.4, 15.1, 15.2, 15.3, 15.9, 16.0]
        assert beside.rates(ended, turns) == (3.0, 2.0), beside.rates(ended, turns)
        call = beside.limited(*beside.PROBES[0][1:], 5)
        assert call == (
            "SELECT FROM io_probe_seqscan_full('tbl_cost_align', '{direct}', duration => '1 s', cold => true, "
            """options => '{"max_util_pct": 5}')"""
        ), call
        bursts = beside.bursts([1.0, 1.1, 1.2, 2.2, 2.3, 4.0])
        assert bursts == [(1.0, 1.2, 2.2), (2.2, 2.3, 4.0), (4.0, 4.0, math.inf)], bursts


class PlanRegret(unittest.TestCase):
    def setUp(self):
        # A point as plan_matrix makes it, with the times of its plans.
        self.times = {"index": [10.0, 20.0], "indexonly": [1.0, 1.0],
                      "bitmap@0": [5.0, None], "bitmap@16": [8.0, 8.0]}  # fmt: skip
        self.point = {"table": "t", "column": "c", "selectivity": 0.2, "low": 1, "high": 9,
                      "times": {"cold": self.times}}  # fmt: skip
        seq = {"table": "t", "state": "cold", "plan": "seq"}
        measured = [(0, 0.1, 10), (0, 0.5, 30), (0, 0.5, 50),
                    (1, 0.1, 20), (1, 0.5, 20), (1, 0.1, 30), (1, 0.1, 21)]  # fmt: skip
        self.matrix = {
            "version": 15, "eics": [0, 16], "rounds": 2, "selectivities": [0.1, 0.5], "points": [self.point],
            "seq": [{**seq, "round": n, "selectivity": share, "ms": ms} for n, share, ms in measured],
        }  # fmt: skip

    def test_matrix(self):
        on_line = plan_matrix.seq_times(self.matrix, self.point, "cold", "seq")
        assert all(map(math.isclose, on_line, [17.5, 20.75])), on_line
        found = plan_matrix.times_of(self.matrix, self.point, "cold", False)
        assert sorted(found) == ["bitmap@0", "bitmap@16", "index", "seq"] and "indexonly" not in found
        assert "indexonly" in plan_matrix.times_of(self.matrix, self.point, "cold", True)
        assert plan_matrix.plans_of(18, [1])[1] == ["seq@1"] and plan_matrix.plans_of(17, [1])[1] == ["seq"]
        assert plan_matrix.query_of(self.point, True) == "SELECT count(c) FROM t WHERE c BETWEEN 1 AND 9"
        for name, chosen in plan_matrix.SETS.items():
            points = plan_matrix.make_points(chosen)
            assert len(points) >= 24 and points == plan_matrix.make_points(chosen), name
            rows = {table: about["rows"] for table, about in chosen["tables"].items()}
            assert all(0 <= one["low"] <= one["high"] < rows[one["table"]] for one in points), name

    def test_picks(self):
        # Two EXPLAINs, one after the other.
        scan = {"Node Type": "Bitmap Heap Scan", "Plans": [{"Node Type": "Bitmap Index Scan"}]}
        told = json.dumps([{"Plan": {"Node Type": "Aggregate", "Plans": [scan]}}], indent=2)
        both = plan_pick.documents(f"\n{told}\n{told}\n")
        assert len(both) == 2 and plan_matrix.node_of(both[1][0]["Plan"]) == ("bitmap", scan)
        assert plan_pick.given("x=0.5/2/24") == {"name": "x", "seq": 0.5, "random": 2.0, "eic": 24}

    def test_halves(self):
        # Each half chooses once, and judges once.
        splits = plan_report.splits(5)
        assert len(splits) == 10 and all(len(judged) == 3 for _, judged in splits)
        assert plan_report.splits(2) == [((0,), [1]), ((1,), [0])] and len(plan_report.splits(1)) == 1
        assert plan_report.median_of([4.0, None, 8.0], [0, 1]) == 4
        assert plan_report.median_of([4.0, None], [1]) == 4
        doubled = plan_report.between({"bitmap@0": [1.0, None], "bitmap@3": [4.0, 9.0]}, "bitmap", 1)
        assert math.isclose(doubled[0], 2) and doubled[1] is None
        assert plan_report.between({"bitmap@0": [1.0], "bitmap@3": [4.0]}, "bitmap", 1000) == [4.0]

    def test_regrets(self):
        # Two plans whose times never change: the better one has no regret, and is chosen.
        query = plan_report.Query({"index": [10.0] * 4, "seq": [20.0] * 4}, 4)
        assert (query.regret("index", 1), query.floor(), query.best) == (0, 0, "index")
        assert math.isclose(query.regret("seq", 1), math.log(2))
        # At another eic there is a better plan.
        query = plan_report.Query({"bitmap@0": [30.0] * 3, "bitmap@16": [10.0] * 3, "seq": [20.0] * 3}, 3)
        assert math.isclose(query.floor(0), math.log(2)) and query.floor() == query.floor(16) == 0
        assert math.isclose(query.regret("bitmap", 0), math.log(3))
        assert query.floor(bases={"bitmap"}) == 0 and math.isclose(query.floor(bases={"seq"}), math.log(2))
        # The plan that one round chooses is the worse one in the other: the floor is as bad as it can be.
        # A fixed pick has half of it, whichever of the two plans it is.
        query = plan_report.Query({"index": [10.0, 20.0], "seq": [20.0, 10.0]}, 2)
        assert math.isclose(query.floor(), math.log(2))
        assert math.isclose(query.regret("seq", 1), math.log(2) / 2)
        # Plans that differ by noise alone: a fixed pick has the floor's regret.
        dice, picked, floors = random.Random(1), [], []
        for _ in range(2000):
            plans = {plan: [dice.lognormvariate(0, 0.1) for _ in range(5)] for plan in "abc"}
            query = plan_report.Query(plans, 5)
            picked.append(query.regret("a", 1))
            floors.append(query.floor())
        assert 0.03 < sum(picked) / 2000 < 0.06 and abs(sum(picked) - sum(floors)) / 2000 < 0.003

    def test_goals_and_grid(self):
        assert plan_report.goal(1.1, [1.5, 1.3]) == (1.1 + 1.3) / 2
        assert plan_report.goal(1.1, [1.0, 1.3]) == 1.1
        by_state = {"cold": self.times, "warm": {**self.times, "index": [4.0, 4.0]}}
        both = {
            **self.matrix, "points": [{**self.point, "times": by_state}], "default_eic": 16,
            "seq": [{**one, "state": state} for one in self.matrix["seq"] for state in plan_matrix.STATES],
        }  # fmt: skip
        scores = plan_report.Scores(both, plan_pick.queries_of(self.matrix))
        assert scores.name(1) == "t.c 0.2 covered"
        assert scores.regrets("cold", ["bitmap", "indexonly"], 0) == [0, 0]
        picks = [["index", "indexonly"], ["bitmap", "indexonly"]]
        grid = [{"seq": 1, "random": n, "picked": picked} for n, picked in enumerate(picks)]
        cells = {name: (cell["random"], eic) for cell, eic, name in plan_report.best_cells(scores, grid)}
        assert cells == {"grid: best cold": (1, 0), "grid: best warm": (0, 0), "grid: best of both": (1, 0),
                         "grid: both at eic 16": (0, 16)}, cells  # fmt: skip


class WhatProbesCost(unittest.TestCase):
    def test_accounts_and_lines(self):
        seconds = commands.seconds_of("7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 0 0 20")
        assert seconds == 200 / os.sysconf("SC_CLK_TCK")
        told = "rchar: 1\nwchar: 2\nread_bytes: 8192\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n"
        assert costs.bytes_moved(told) == (8192, 4096)
        brief = [costs.brief(number) for number in (0, 0.004, 0.04, 1.26, 99.4, 1023.6)]
        assert brief == ["0", "0.00", "0.04", "1.3", "99.4", "1024"], brief
        one = dict.fromkeys(costs.COLUMNS, 2) | {"OS cache": (1024, 0), "locks": {"b", "a"}}
        other = dict.fromkeys(costs.COLUMNS, 4) | {"OS cache": (1024, 10), "locks": set()}
        assert costs.line("f()", [one, other]) == (
            "| `f()` | 3.0 | 3.0 | 3.0 | 3.0 | 1024 → 5.0 | 4 | 4 | 4.0 | 4.0 | 4 |"
        ), costs.line("f()", [one, other])
        locks = costs.locks_of({"f()": [one, other], "g()": [other]})
        assert locks == {"a; b": ["f()"], "none was seen": ["g()"]}, locks


class WhoServedTpch(unittest.TestCase):
    def test_queries(self):
        with open(os.path.join(served.FOLDER, "queries.sql"), encoding="utf-8") as file:
            queries = served.queries_of(file.read(), "0.5")
        assert list(queries) == [f"Q{number}" for number in range(1, 23)]
        assert all(query.startswith(("SELECT", "WITH")) and ";" not in query for query in queries.values())
        assert "0.0001 / 0.5" in queries["Q11"]

    def test_runs(self):
        notice = "NOTICE:  00000: The disk: 9 MiB read; waited 1,090 of 1,402 ms for the device"
        assert served.waited_of(["{}", notice]) == 1090 and served.waited_of(["{}"]) is None
        node = {"node_type": "Seq Scan", "device_mib": 10, "actual_rows": 1}
        sums = {"node_type": "the disk", "device_mib": 20, "shared_blks_hit": 128, "os_mib": 0, "temp_mib": 2.5, "total_ms": 7}
        run = served.Run([node, node], sums, 5, 1, 20.4)
        assert list(run.failures()) == [] and run.cells() == ["7", 5, "the disk", "1.0", "0", "20", "2.5"]
        wrong = served.Run([{**node, "actual_rows": 0}], sums, 5, 1, 20.6)
        assert len(list(wrong.failures())) == 3


class Repetition(unittest.TestCase):
    def test_neighbours(self):
        def steps(condition):
            return list(itertools.islice(repetition.steps(condition, random.Random(1)), 500))

        for condition, most in {"constant": 0.4, "bursts": 0.9, "drift": 0.8}.items():
            assert steps(condition) == steps(condition), condition
            assert all(0 <= share <= most for _, share in steps(condition)), condition
        assert all(5 <= seconds <= 40 for seconds, share in steps("bursts") if share)
        assert max(abs(one[1] - next_one[1]) for one, next_one in itertools.pairwise(steps("drift"))) < 0.2
        assert steps("idle") == []

    def test_turns_and_sides(self):
        taken = list(repetition.turns(21))
        assert len(taken) == 23 and taken[9:12] == [(9, False), (9, True), (10, False)]
        assert repetition.sides([1, 2, 3, 4], False) == ([1, 2], [3, 4])
        assert repetition.sides([1, 2, 3, 4], True) == ([1, 3], [2, 4])
        call = repetition.put([3, 1], "b", factor=0.9)
        assert call == "SELECT put('{3,1}', False, 'b', 0.9, NULL)", call

    def test_verdicts(self):
        # A rate that is less is worse, a time that is less is better: both are found.
        assert repetition.kind("worse", 0.9, 0.9) == repetition.kind("better", 0.9, 0.9) == "different"
        assert repetition.kind("better", 1.2, 0.9) == "wrong"
        assert repetition.kind("better", 1.2, 1.0) == "different"
        assert repetition.kind("can't tell", None, 0.9) == "unknown"
        assert repetition.share([Counter(same=3, different=1), Counter(unknown=2)], "different") == (1, 6)


if __name__ == "__main__":
    unittest.main()
