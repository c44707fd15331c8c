"""Claims that a theorem implies: their rows check the code that measures, and no longer the paper.

A claim belongs here if its rule cannot fail on rows that are measured as they should be, but for the chance of a
sample. Each reason can be followed by hand; the theorems are proved in the documentation (Sharper bounds, Hardness).
"""

from __future__ import annotations

from typing import Final

SENSITIVITY: Final = "AS <= 4 k^2 W^2 (sharper Lemma 9)"
TAIL: Final = "AS is the sum of |T| times the squared coefficient of T, so that a tail is at most AS / (d + 1)"
CLAIM_2_1: Final = "Claim 2.1: NS is the sum of (1 - rho^|T|) / 2 times the squared coefficient of T"

IMPLIED: Final[dict[str, dict[str, str]]] = {
    "weight-by-degree": {"tail-bound": f"{TAIL}; {SENSITIVITY}"},
    "average-sensitivity": {
        "lemma-9": f"{SENSITIVITY}, which is less from six inputs on (sqrt(6) ln 6 > 4)",
        "sharper": SENSITIVITY,
        "attained": "construction: k copies of a function whose sensitivity is found by hand",
    },
    "noise-sensitivity": {
        "lemma-10": "NS <= 2 (1 - rho) k^2 W^2 (sharper Lemma 10), which is less from n s = 5 on (ln(5)^2 > 2)",
        "sharper": "NS <= (1 - rho) AS / 2 and " + SENSITIVITY,
        "linear": f"{CLAIM_2_1}; for |T| <= 16 and 1 - rho <= 1/128 each term has a power between 0.94 and 1",
        "tail": f"{CLAIM_2_1}, where 1 - rho^|T| >= 1 - rho^(d + 1) for sets above degree d",
    },
    "sufficient-degree": {
        "theorem-8": f"{TAIL}; {SENSITIVITY}; and 4 k^2 W^2 / epsilon is less, see below",
        "sharper": f"{TAIL}; {SENSITIVITY}",
        "sharper-than-theorem-8": "epsilon <= AS <= 4 k^2 W^2 and ln(n s) >= 2: 4 epsilon <= 16 k^2 W^2 <= "
        "k^6 W^2 ln(n s)^4",
    },
    "stacks": {
        "sparse": "gates: each point agrees with one address of each tree, and other gates outweigh their units",
        "bound": "the theorem on stacks, with the largest weights in place of norms",
        "sharper-bound": "the theorem on stacks",
    },
    "low-degree-curves": {"agnostic-bound": "the triangle inequality"},
    "juntas-and-index": {"averages": "Lemma 7 with its constants: Hoeffding's inequality for each of N averages"},
    "correlated-activations": {"bounds": f"{SENSITIVITY}, and its form for the mean square activity"},
    "rademacher": {
        "dense": "units without a common constraint are maximised one by one",
        "explicit-bound": "the theorem with explicit constants (Rademacher complexity)",
    },
    "sq-ledger": {
        "bound": "Theorem 14 with its constant (Hardness)",
        "below": "characters are orthogonal: all these correlations are 0",
    },
    "landscapes": {"sensitivity": TAIL},
    "fresh-sparsity": {"symmetry": "a fresh row is the largest of m + 1 with probability 1 / (m + 1)"},
    "hyperplane-buckets": {"cells": "the number of cells of an arrangement (Schlaefli; Cover, 1965)"},
    "theorem-4-1-practice": {"misses": "both shares have the mean sum_b p_b (1 - p_b)^m"},
    "dense-lower-bounds": {"separation-mended": "Parseval's identity"},
}


def implied_by(experiment: str, claim: str) -> str | None:
    """The theorem that implies a claim of an experiment, or None."""
    return IMPLIED.get(experiment, {}).get(claim)
