"""Least models that reach an accuracy on Theorem 4.2's family, and pairs of Theorem D.1's."""

from __future__ import annotations

from math import cos, pi, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact_papers.data import diagonal_subspace, random_cones
from sparsact_papers.data.analytic import FINENESS, random_analytic

Array = NDArray[np.float64]
WIDEST, RIDGE = 4096, 1e-10
CONSTANT: Final = 6.0  # the "large enough" C of Theorem D.1, as in `random_analytic`


def needed_width(k: int, epsilon: float, ambient: int, seed: int) -> dict[str, Any]:
    """The least width, and the fewest buckets, with a largest error of epsilon / 2 on one member of the family."""
    rng = np.random.default_rng([seed, k])
    domain = diagonal_subspace(ambient, k, rng=rng)
    f = random_cones(domain, epsilon, rng=rng)
    n_cones = len(f.target.centres)  # type: ignore[attr-defined] # of the Cones within
    m = min(1 << 15, max(4096, 400 * n_cones))
    X, new = domain.sample(m, rng=rng), domain.sample(m, rng=rng)
    y, truth = f(X), f(new)
    widths, errors = [], []
    width = 8
    while width <= WIDEST:
        widths.append(width)
        errors.append(dense_error(domain.coordinates(X), y, domain.coordinates(new), truth, width, seed))
        if errors[-1] <= epsilon / 2:
            break
        width = round(width * sqrt(2))
    buckets, bucket_error = fewest_buckets(X, y, new, truth, k, epsilon / 2, seed)
    line = np.column_stack([X, np.ones(m)])
    slope = np.linalg.lstsq(line, y, rcond=None)[0]
    return {
        "n_cones": n_cones,
        "rows": m,
        "widths": widths,
        "sup_errors": errors,
        "needed": widths[-1] if errors[-1] <= epsilon / 2 else None,
        "buckets": buckets,
        "bucket_sup_error": bucket_error,
        "hash_operations": 4 * k * ambient,
        "largest": float(np.abs(truth).max()),
        "deviation": float(truth.std()),
        "linear_rmse": float(np.sqrt(np.mean((np.column_stack([new, np.ones(m)]) @ slope - truth) ** 2))),
    }


def dense_error(Z: Array, y: Array, new: Array, truth: Array, width: int, seed: int) -> float:
    """Largest error of the best linear layer above ``width`` random ReLU units, the first of an endless list.

    The units' kinks are uniform over the extent of the points along random directions: a random layer that is as well
    placed as one can hope for.
    """
    rng = np.random.default_rng([seed, 7])
    draws = rng.normal(size=(WIDEST, Z.shape[1] + 1))[:width]
    B = draws[:, :-1] / np.linalg.norm(draws[:, :-1], axis=1, keepdims=True)
    reach = float(np.linalg.norm(Z, axis=1).max())
    c = reach * (2 * np.random.default_rng([seed, 8]).uniform(size=WIDEST)[:width] - 1)

    def features(points: Array) -> Array:
        return np.column_stack([np.maximum(points @ B.T + c, 0.0), points, np.ones(len(points))])

    phi = features(Z)
    gram = phi.T @ phi
    gram[np.diag_indices_from(gram)] += RIDGE * np.trace(gram) / len(gram)
    A = np.linalg.solve(gram, phi.T @ y)
    return float(np.abs(features(new) @ A - truth).max())


def fewest_buckets(
    X: Array, y: Array, new: Array, truth: Array, k: int, goal: float, seed: int
) -> tuple[int | None, float]:
    """Buckets of Theorem 4.1's literal learner at the widest width that meets the goal, and its error."""
    from sparsact.learners import LSHRegressor

    error = float("inf")
    for width in goal * 2.0 ** np.arange(3, -5, -0.5):
        model = LSHRegressor(1, 4 * k, float(width), 0, "euclidean", "nearest", seed, directions="principal").fit(X, y)
        error = float(np.abs(model.predict(new) - truth).max())
        if error <= goal:
            return int(model.n_buckets_), error
    return None, error


def pair(k: int, n_waves: int, seed: int) -> dict[str, Any]:
    """Distance of two random members of Theorem D.1's family, with L = 1, and what (10) says it is at least."""
    top = 1 / (CONSTANT * sqrt(k) * pi)
    rngs = [np.random.default_rng([seed, k, n_waves, member]) for member in (1, 2)]
    f, g = (random_analytic(k, top / n_waves * (1 - 1e-9), constant=CONSTANT, rng=rng) for rng in rngs)
    difference = f.amplitudes - g.amplitudes
    differing = float(np.mean(difference != 0))
    rms = sqrt(2 * float((difference**2).sum()))  # Parseval: the cosines are orthogonal, with mean square 1/2
    a = float(np.abs(f.amplitudes).flat[0])
    by_parseval = 2 * sqrt(2) * a * sqrt(differing * difference.size)
    on_grid = largest_on_grid(difference)
    return {
        "differing": differing,
        "rms": rms,
        "sup": on_grid,
        "sup_at_most": on_grid / cos(pi / FINENESS) ** k,
        # (10) with eps_1 = 1 / n_waves and alpha = k / 2 + 1: 2^(k/2 + 1) L sqrt(c) eps_1 / (C sqrt(k) pi)
        "printed": 2 ** (k / 2 + 1) * sqrt(differing) * top / n_waves,
        "parseval_gap": abs(rms - by_parseval),
        "lipschitz": max(f.lipschitz, g.lipschitz),
    }


def largest_on_grid(amplitudes: Array) -> float:
    """Largest value of the cosine series with these amplitudes on a grid of one period."""
    n_waves, k = len(amplitudes), amplitudes.ndim
    padded = np.zeros((FINENESS * n_waves,) * k)
    padded[(slice(1, n_waves + 1),) * k] = amplitudes
    return 2 * float(np.abs(np.fft.fftn(padded).real).max())
