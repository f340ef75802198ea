"""Statistics of runs and answers: bounds of a ratio, shares, verdicts about them. A module, not a program."""

import itertools
import math
import re
import statistics
from collections import Counter
from dataclasses import dataclass

# One of two methods counts as faster if its rate is higher by more than this share.
FASTER = 0.05


def t_probability(t, df):
    """P(T <= t) of Student's t with a whole number of degrees of freedom: Abramowitz and Stegun 26.7.3 and 26.7.4."""
    angle = math.atan2(t, math.sqrt(df))
    sine, cosine = math.sin(angle), math.cos(angle)
    term = cosine if df % 2 else 1.0
    total = term if df > 1 or df % 2 == 0 else 0.0
    for k in range(3 if df % 2 else 2, df - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    within = 2 / math.pi * (angle + sine * total) if df % 2 else sine * total
    return (1 + within) / 2


def t_quantile(p, df):
    """The t with P(T <= t) = p, for p over one half: by bisection."""
    low, high = 0.0, 1e4
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if t_probability(middle, df) < p else (low, middle)
    return high


@dataclass
class Bounds:
    """The geometric mean of ratios, given as logarithms, with its one-sided bounds of 95 %."""

    ratio: float
    lower: float
    upper: float

    def __init__(self, logarithms):
        n = len(logarithms)
        mean = statistics.fmean(logarithms)
        half = t_quantile(0.95, n - 1) * statistics.stdev(logarithms) / math.sqrt(n) if n > 1 else math.inf
        self.ratio, self.lower = math.exp(mean), math.exp(mean - half)
        self.upper = math.exp(mean + half) if n > 1 else math.inf


@dataclass
class Goal:
    """The least and the most that a ratio may be."""

    least: float = 0.0
    most: float = math.inf

    def verdict(self, bounds):
        if self == Goal():
            return "-"
        if bounds.lower >= self.least and bounds.upper <= self.most:
            return "met"
        return "MISSED" if bounds.upper < self.least or bounds.lower > self.most else "open"

    def __str__(self):
        sides = [f"lower >= {self.least:.2f}"] if self.least else []
        sides += [f"upper <= {self.most:.2f}"] if self.most < math.inf else []
        return ", ".join(sides) or "-"


@dataclass
class Median:
    """A median, with the sign test's interval: the order statistics between which the true median lies with at least
    95 %, if there are 6 values or more."""

    ratio: float
    low: float
    high: float

    def __init__(self, values):
        values, n = sorted(values), len(values)
        # On each side, `outside` values lie outside: the most for which P(Bin(n, 1/2) <= outside) is at most 2.5 %.
        below = itertools.accumulate(math.comb(n, k) / 2**n for k in range(n))
        outside = max(sum(probability <= 0.025 for probability in below) - 1, 0)
        self.ratio, self.low, self.high = statistics.median(values), values[outside], values[n - 1 - outside]

    def __str__(self):
        return f"{self.ratio:.3f} ({self.low:.3f}-{self.high:.3f})"

    def verdict(self, tolerance):
        if abs(self.ratio - 1) <= tolerance:
            return "met"
        return "MISSED" if self.low > 1 + tolerance or self.high < 1 - tolerance else "open"


def verdict_of_order(of_theirs, of_ours):
    """Does ours agree on the faster one of two methods? The ratios divide the rate of the faster one in theirs by the other."""
    if of_theirs.low <= 1 + FASTER or of_ours.ratio > 1:
        return "met"
    return "MISSED" if of_ours.high < 1 else "open"


def verdict_of_share(count, total, least=0.0, most=1.0):
    """The share of `count` in `total` in percent, and whether it lies between `least` and `most`."""
    if total == 0:
        return "-"
    goal = f"at least {100 * least:.1f}" if least else f"at most {100 * most:.1f}"
    verdict = "met" if least <= count / total <= most else "MISSED"
    return f"{100 * count / total:5.1f} %" + (f", {goal}: {verdict}" if least > 0 or most < 1 else "")


def amount(text):
    """The value of a setting as a number, a size in kB, a time in us; None if it is no number."""
    found = re.fullmatch(r"(-?[0-9.]+) ?(kB|MB|GB|us|ms|s|)", text)
    units = {"kB": 1, "MB": 1024, "GB": 1024**2, "ms": 1000, "s": 10**6}
    return float(found[1]) * units.get(found[2], 1) if found else None


def modal(answers):
    """The value that is given most often, the medians of its bounds, and how many answers lie outside of them; without
    bounds, how many differ from it. An answer is a value, and the lowest and the highest that are as good."""
    best = Counter(value for value, _, _ in answers).most_common(1)[0][0]
    bounds = [answer[1:] for answer in answers if answer[0] == best and None not in answer]
    if not bounds or amount(best) is None:
        return best, best, best, sum(value != best for value, _, _ in answers)
    low, high = (sorted(ends, key=amount)[len(ends) // 2] for ends in zip(*bounds))
    return best, low, high, sum(not amount(low) <= amount(value) <= amount(high) for value, _, _ in answers)
