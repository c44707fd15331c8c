"""How often more than k units are active, from a sample: Remark 11 asks no more than that this be rare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta

from sparsact.activity import Certificate
from sparsact.certificate.inputs import Inputs
from sparsact.hypercube import bits_to_signs
from sparsact.validation.arrays import checked_columns
from sparsact.validation.parameters import checked_generator

Distribution: TypeAlias = Callable[[int, np.random.Generator], ArrayLike] | ArrayLike | None
TRIES_PER_SAMPLE: Final = 256


def clopper_pearson(exceeded: int, n_samples: int, confidence: float) -> float:
    r"""Upper confidence bound on a probability, from ``exceeded`` successes in ``n_samples`` independent trials.

    .. math:: \sup \{ p : \Pr[\mathrm{Bin}(m, p) \le e] \ge 1 - \text{confidence} \}

    >>> round(clopper_pearson(0, 299, 0.95), 4)
    0.01
    """
    if exceeded == n_samples:
        return 1.0
    return float(beta.ppf(confidence, exceeded + 1, n_samples - exceeded))


def certificate_of_sample(
    X: NDArray[Any],
    counts: NDArray[np.intp],
    n_units: int,
    upper: int,
    where: str,
    at_most: int | None,
    confidence: float,
) -> Certificate:
    """From exact ``counts`` (m,) of active units at independent inputs X (m, n); ``at_most`` None: the most seen.

    The bound then still has its confidence: with m samples, the chance that all lie below a level that a new one passes
    with probability p is at most (1 - p)**m, which is what Clopper and Pearson say of 0 cases.
    """
    best = int(counts.argmax())
    most = int(counts[best])
    k = most if at_most is None else at_most
    exceeded = int(np.count_nonzero(counts > k))
    witness = X[best].astype(np.int8) if (np.abs(X[best]) == 1).all() else X[best]
    return Certificate(
        most,
        upper,
        witness,
        "sampled",
        "a sample",
        where,
        n_units,
        confidence,
        n_samples=len(X),
        at_most=k,
        exceeded=exceeded,
        exceed_bound=clopper_pearson(exceeded, len(X), confidence),
    )


def sample(
    inputs: Inputs, distribution: Distribution, n_samples: int, rng: np.random.Generator | None
) -> NDArray[np.float64]:
    """Independent inputs, (m, n): given, drawn from a distribution, or uniform over the inputs (over y, for a lift).

    Raises
    ------
    ValueError
        If a generator is needed and missing, the sample has a wrong shape, or the inputs are too rare to be met.
    """
    if distribution is not None and not callable(distribution):
        X = checked_columns(distribution, inputs.n)
        if not len(X):
            raise ValueError("a sample needs at least one row; `distribution` has none.")
        return X
    if rng is None:
        raise ValueError("sampling needs a generator; pass rng=numpy.random.default_rng(seed).")
    checked_generator(rng)
    if callable(distribution):
        X = checked_columns(distribution(n_samples, rng), inputs.n)
        if len(X) != n_samples:
            raise ValueError(f"`distribution(n_samples, rng)` must return {n_samples} rows; it returned {len(X)}.")
        return X
    if inputs.lift is not None:
        return inputs.lift.sample(n_samples, rng=rng).astype(np.float64)
    return _uniform(inputs, n_samples, rng).astype(np.float64)


def _uniform(inputs: Inputs, n_samples: int, rng: np.random.Generator) -> NDArray[np.int8]:
    kept, found = [np.zeros((0, inputs.n), dtype=np.int8)], 0
    for _ in range(TRIES_PER_SAMPLE):
        X = bits_to_signs(rng.integers(2, size=(n_samples, inputs.n), dtype=np.int8))
        kept.append(X[inputs.contains(X)])
        found += len(kept[-1])
        if found >= n_samples:
            return np.concatenate(kept)[:n_samples]
    raise ValueError(
        f"only {found} of {TRIES_PER_SAMPLE * n_samples:,} uniform points meet the constraints, and {n_samples:,} are "
        "needed; pass a `distribution` that draws such points, or use another method."
    )
