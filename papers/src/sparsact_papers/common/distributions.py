"""Distributions of signs: uniform, and three others."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

UNIFORM, BIASED, CORRELATED, CENTRES = "uniform", "biased signs", "correlated signs", "near eight centres"
DISTRIBUTIONS: Final = (UNIFORM, BIASED, CORRELATED, CENTRES)
BIAS, STAY = 0.8, 0.8  # a biased sign is +1, a correlated one equals the one before it, with these probabilities
N_CENTRES, FLIP = 8, 0.1
IN_WORDS: Final = (
    "Points are uniform; or signs biased (+1 with probability 0.8); or each sign equal to the one before with "
    "probability 0.8; or one of eight centres with each sign flipped with probability 0.1."
)


def draw(distribution: str, n: int, m: int, seed: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Independent points of {-1, 1}^n, (m, n); the seed is that of the centres."""
    if distribution == CENTRES:
        centres = np.random.default_rng([seed, 5]).choice([-1, 1], size=(N_CENTRES, n))
        return np.asarray(centres[rng.integers(N_CENTRES, size=m)] * rng.choice([-1, 1], (m, n), p=[FLIP, 1 - FLIP]))
    if distribution == CORRELATED:
        first = rng.choice([-1, 1], (m, 1))
        return np.asarray(np.cumprod(np.hstack([first, rng.choice([-1, 1], (m, n - 1), p=[1 - STAY, STAY])]), axis=1))
    share = BIAS if distribution == BIASED else 0.5
    return np.asarray(rng.choice([-1, 1], (m, n), p=[1 - share, share]))


def unseen(new: NDArray[np.int64], X: NDArray[np.int64]) -> NDArray[np.int64]:
    """New points of signs that are not among the rows of X."""
    place = 1 << np.arange(X.shape[1])
    return np.asarray(new[~np.isin((new > 0) @ place, (X > 0) @ place)])
