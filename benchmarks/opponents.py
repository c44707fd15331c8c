"""The same task for both sides: a noisy polynomial of signs, and scikit-learn's road to it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import PolynomialFeatures

Rows = tuple[NDArray[np.float64], NDArray[np.float64]]
_TERMS: Final = 40


def pipeline(degree: int, alpha: float = 1.0) -> Pipeline:
    """All monomials of degree at most ``degree`` written out, then ridge regression by Cholesky."""
    monomials = PolynomialFeatures(degree, interaction_only=True, include_bias=False)
    return Pipeline([("monomials", monomials), ("ridge", Ridge(alpha=alpha, solver="cholesky"))])


def random_signs(n: int, m: int, *, rng: np.random.Generator) -> NDArray[np.int8]:
    """Uniform points of the cube, (m, n)."""
    return np.int8(1) - np.int8(2) * rng.integers(0, 2, (m, n), dtype=np.int8)


def noisy_polynomial(signs: NDArray[np.int8], degree: int, *, rng: np.random.Generator) -> NDArray[np.float64]:
    """Values (m,) of a few random monomials, with standard normal coefficients and noise of half their deviation."""
    y = np.zeros(len(signs))
    for _ in range(_TERMS):
        subset = rng.choice(signs.shape[1], rng.integers(1, degree + 1), replace=False)
        y += rng.standard_normal() * signs[:, subset].prod(axis=1)
    return y + 0.5 * y.std() * rng.standard_normal(len(y))


def task(n: int, degree: int, m: int, seed: int = 0) -> Rows:
    """Signs as float64, the type that costs scikit-learn no conversion, and targets."""
    rng = np.random.default_rng(seed)
    signs = random_signs(n, m, rng=rng)
    return signs.astype(np.float64), noisy_polynomial(signs, degree, rng=rng)


def write(folder: str | Path, X: NDArray[np.generic], y: NDArray[np.float64]) -> None:
    """Keep rows where a fresh process finds them, so that it need not hold more than they take."""
    np.save(Path(folder) / "X.npy", X)
    np.save(Path(folder) / "y.npy", y)


def read(folder: str | Path) -> Rows:
    """Rows that were written."""
    return np.load(Path(folder) / "X.npy"), np.load(Path(folder) / "y.npy")
