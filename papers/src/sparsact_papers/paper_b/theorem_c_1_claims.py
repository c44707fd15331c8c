"""Claims about tables on manifolds: the rate, the ambient dimension, pruning."""

from __future__ import annotations

import numpy as np

from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.common.rates import RATE_REFUTED, RATE_RULE, judge_rate, window
from sparsact_papers.intervals import mean_of, share_of
from sparsact_papers.results import Row, Rows

DIMENSIONS = {"circle": 1, "sphere": 2, "swiss roll": 2}
AMBIENTS = (8, 16)
FEW = 8  # rows: a bucket of fewer is pruned
PROBABILITY = 0.8  # of the theorem


def judge_columns(rows: Rows) -> Verdict:
    """Power of d with which the buckets grow at equal largest error."""
    parts = []
    for (manifold,), found in needed(rows, "curves").groups("manifold").items():
        k = DIMENSIONS[manifold]
        pairs = [pair for pair in found.groups("seed").values() if pair.distinct("ambient") == list(AMBIENTS)]
        powers = [
            (_log_constant(pair.where(ambient=AMBIENTS[1]), k) - _log_constant(pair.where(ambient=AMBIENTS[0]), k))
            / np.log(AMBIENTS[1] / AMBIENTS[0])
            for pair in pairs
        ]
        parts.append(within(mean_of(powers), most=k / 2, what=f"{manifold}: power of d against {k / 2:g},"))
    return every(*parts)


def _log_constant(curve: Rows, k: int) -> float:
    """Mean of log(buckets * error^k) over the window of a curve."""
    buckets, errors = window(curve, k)
    return float(np.mean(np.log(buckets) + k * np.log(errors)))


def judge_pruning(rows: Rows) -> Verdict:
    """Share of the draws in which every test point keeps a bucket at all widths of which the proof speaks."""
    lost = [most for row in needed(rows, "curves") if (most := _most_lost(row)) is not None]
    kept = sum(most == 0 for most in lost)
    what = f"draws in which no point is lost; at most {max(lost, default=0):.2%} of the points are,"
    return within(share_of(kept, len(lost)), least=PROBABILITY, what=what)


def _most_lost(row: Row) -> float | None:
    """Largest share of lost points at the widths that leave FEW rows in a bucket of the proof's least volume."""
    k, d = row["k"], row["ambient"]
    # least volume (width / (d sqrt(k)))^k, as a share of the (2 sqrt(d))^k that the domain has at most
    shares = [(width / (d * k**0.5) / (2 * d**0.5)) ** k for width in row["widths"]]
    lost = [lost for lost, share in zip(row["pruned_by_all"], shares, strict=True) if row["rows"] * share >= FEW]
    return max(lost, default=None)


def _rate(manifold: str, k: int) -> Claim:
    return Claim(
        name=f"rate-{manifold.replace(' ', '-')}",
        place="Theorem C.1",
        statement=f"On a {manifold} (k = {k}) a table needs O(1 / eps^k) buckets for a largest error of eps.",
        printed="O(sqrt(dk)^k / eps^k) buckets",
        rule=f"{RATE_RULE}, in both ambient dimensions",
        refuted_if=f"{RATE_REFUTED}, in some ambient dimension",
        judge=lambda rows: every(
            *(
                judge_rate(group, DIMENSIONS[manifold], f"{manifold}, d = {d}:")
                for (d,), group in needed(rows.where(manifold=manifold), f"curves on a {manifold}")
                .groups("ambient")
                .items()
            )
        ),
    )


CLAIMS = (
    *(_rate(manifold, k) for manifold, k in DIMENSIONS.items()),
    Claim(
        name="columns",
        place="Theorem C.1",
        statement="At equal largest error the buckets of a table grow no faster than d^(k/2), although each table has "
        "d directions.",
        printed="O(sqrt(dk)^k / eps^k), and in the proof (d^2 sqrt(k) / eps)^k: not exponential in d",
        rule="mean of log(buckets * error^k) over the same tables, at d = 16 less at d = 8, the same manifold and "
        "seed, over log 2; holds if the 95 % interval of its mean over seeds lies below k/2 for every manifold",
        refuted_if="for some manifold the power of d is significantly above k/2",
        judge=judge_columns,
    ),
    Claim(
        name="pruning",
        place="Theorem C.1, proof",
        statement="When sparse buckets are pruned, every point still has a kept bucket in at least one table, with "
        "probability 0.8.",
        printed="we only include buckets with volume at least (Omega(eps / (d sqrt(k))))^k",
        rule=f"pruned are buckets with fewer than {FEW} rows, at widths eps for which (eps / (d sqrt(k)))^k of the (2 "
        f"sqrt(d))^k that the domain's volume is at most holds {FEW} rows or more; holds if the 95 % interval "
        "(Clopper and Pearson) of the share of draws in which all test points have a kept bucket lies above 0.8",
        refuted_if="the share of draws in which all points keep a bucket is significantly below 0.8",
        judge=judge_pruning,
    ),
)
