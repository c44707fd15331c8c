"""Claims about Theorem 4.1: the rate of its tables, and what equal error costs a trained dense network."""

from __future__ import annotations

from functools import partial
from math import inf, nextafter

from sparsact_papers.experiments.claim import Claim, Verdict, every, needed, within
from sparsact_papers.experiments.interval import range_of, slope_of
from sparsact_papers.experiments.rates import HALF, RATE_REFUTED, RATE_RULE, error_curve, judge_rate
from sparsact_papers.experiments.rows import Row, Rows

DIMENSIONS = (1, 2, 3, 4)


def tables(rows: Rows) -> Rows:
    """Rows of hash tables."""
    return Rows(row for row in rows if "buckets" in row.values)


def dense(rows: Rows) -> Rows:
    """Rows of dense layers, trained or random."""
    return Rows(row for row in rows if "n_units" in row.parameters or "n_random_units" in row.parameters)


def judge_dimension(rows: Rows, k: int) -> Verdict:
    """The rate in one dimension."""
    return judge_rate(needed(tables(rows).where(k=k), f"tables with k = {k}"), k, f"k = {k}:")


def judge_cost(rows: Rows) -> Verdict:
    """The least dense operations (and parameters) that reach the error of the finest table, over those of the hash."""
    parts = []
    for (k,), networks in needed(dense(rows), "dense layers").groups("k").items():
        ratios, out_of_reach = [], 0
        for (seed,), of_seed in networks.groups("seed").items():
            hashed = needed(tables(rows).where(k=k, seed=seed), f"tables with k = {k}, seed {seed}")
            error = error_curve(hashed)[1].min()
            serving = [row for row in of_seed if row["sup_error"] <= error]
            least = min(serving or [max(of_seed, key=_operations)], key=_operations)
            ratio = _operations(least) / _operations(hashed[0])
            ratios.append(ratio if serving else nextafter(ratio, inf))  # more than that
            out_of_reach += not serving
        verdict = within(range_of(ratios), least=nextafter(1.0, inf), what=f"k = {k}, dense / hash:")
        more = f", more in {out_of_reach} of {len(ratios)} seeds, where no width served" if out_of_reach else ""
        parts.append(Verdict(verdict.outcome, verdict.measured + more))
    return every(*parts)


def _operations(row: Row) -> int:
    return int(row["operations"])


def judge_growth(rows: Rows) -> Verdict:
    """How fast the largest error above random layers falls with their operations."""
    layers = needed(Rows(row for row in rows if "n_random_units" in row.parameters), "random layers")
    parts = []
    for (k,), group in layers.groups("k").items():
        curves = [(one.column("operations"), one.column("sup_error")) for one in group.groups("seed").values()]
        whole = [curve for curve in curves if len(curve[0]) > 1]
        parts.append(within(slope_of(whole), least=-1 / (k - HALF), what=f"k = {k}, against {-1 / k:.3g}:"))
    return every(*parts)


def _rate(k: int) -> Claim:
    return Claim(
        name=f"rate-{k}",
        place="Theorem 4.1",
        statement=f"A largest error of eps takes O(1 / eps^k) buckets: k = {k}.",
        printed="O(L sqrt(d)^k / eps^k) buckets",
        rule=RATE_RULE,
        refuted_if=RATE_REFUTED,
        judge=partial(judge_dimension, k=k),
    )


CLAIMS = (
    *(_rate(k) for k in DIMENSIONS),
    Claim(
        name="cost",
        place="Section 4, after Theorem 4.2",
        statement="At equal largest error a forward pass costs a dense model more operations than the hash.",
        printed="O(dk log(1/eps)) against Omega(d (2 sqrt(d)/(C eps))^k)",
        rule="multiply-adds of the narrowest dense layer, trained or random, whose largest error is at most that of "
        "the finest table, over the hash's d K + K (the widest layer's where none serves); holds if above 1 for every "
        "k and seed. Parameters read, (d + 2) w + 1 against K (d + 1) + 1, have the same ratios within 6 %",
        refuted_if="for some k and seed a dense layer of the hash's operations has the finest table's error",
        judge=judge_cost,
    ),
    Claim(
        name="cost-growth",
        place="beyond the paper",
        statement="On this easy target too, not only on the hardest of Theorem 4.2, the operations of a dense "
        "model with a random bottom layer grow like (1/eps)^k.",
        printed="",
        rule="slope of log largest error in log operations over all widths of random layers, fitted for each seed; "
        "holds if the 95 % interval of its mean lies above -1/(k - 1/2) for each k",
        refuted_if="for some k the error falls significantly faster than operations^(-1/(k - 1/2))",
        judge=judge_growth,
    ),
)
