"""Exponents of theory against measured curves, in a window that does not depend on the errors."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact_papers.claims import Verdict, needed, within
from sparsact_papers.intervals import slope_of
from sparsact_papers.results import Rows

Array = NDArray[np.float64]

SIDE: Final = 8  # cells a side: coarser tables have buckets nearly as wide as the domain, and their errors saturate
HALF: Final = (
    0.5  # exponents are dimensions: a measured one supports k if it lies nearer to k than to a refuting whole number
)
RATE_RULE: Final = (
    f"slope of log largest error in log buckets of each seed's curve, over the tables with at least {SIDE}^k buckets "
    f"(a grid with {SIDE} cells a side); holds if the 95 % interval of its mean over seeds lies below -1/(k + 1/2)"
)
RATE_REFUTED: Final = "the slope is significantly above -1/(k + 1/2): the table grows as in more than k dimensions"


def error_curve(rows: Rows) -> tuple[Array, Array]:
    """Buckets and largest errors of rows that continue each other, in ascending order of buckets."""
    buckets, errors = (np.concatenate([row[name] for row in rows]) for name in ("buckets", "sup_errors"))
    order = np.argsort(buckets)
    return buckets[order], errors[order]


def window(rows: Rows, k: int) -> tuple[Array, Array]:
    """The part of the curve with at least ``SIDE**k`` buckets."""
    buckets, errors = error_curve(rows)
    kept = buckets >= SIDE**k
    return buckets[kept], errors[kept]


def judge_rate(rows: Rows, k: int, what: str) -> Verdict:
    """Whether the largest error falls at least as fast as buckets^(-1/k), a curve for each seed.

    Rows have lists ``buckets`` and ``sup_errors``; k is the dimension of the domain, ``what`` the name of the curves.
    """
    curves = [window(group, k) for group in rows.groups("seed").values()]
    curves = [(n, e) for n, e in curves if len(n) > 2]
    needed(rows if curves else Rows([]), f"{what} three tables of {SIDE}^{k} buckets or more")
    slope = slope_of((n.tolist(), e.tolist()) for n, e in curves)
    verdict = within(slope, most=-1 / (k + HALF), what=what)
    fewest, most = (pick(len(n) for n, _ in curves) for pick in (min, max))
    tables = f"{fewest} to {most}" if fewest < most else f"{most}"
    fewer = f", and does not exclude {-1 / (k - 1):.3g} of k - 1" if k > 1 and slope.low <= -1 / (k - 1) else ""
    products = [float(np.median([n[i] * e[i] ** k for n, e in curves])) for i in (0, -1)]
    return Verdict(
        verdict.outcome,
        f"{verdict.measured} against {-1 / k:.3g}{fewer}; {tables} tables a curve; buckets * error^k "
        f"{products[0]:.3g} (coarsest) to {products[1]:.3g} (finest)",
    )
