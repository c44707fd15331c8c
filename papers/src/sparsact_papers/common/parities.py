"""Learners of a hidden parity, each with the queries and examples it used, and its remaining error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.fourier import Spectrum
from sparsact.hardness import (
    InconsistentLabelsError,
    LiftedFunction,
    MembershipOracle,
    ParityAdversary,
    StatisticalQueryOracle,
    heavy_coefficients,
    junta_samples,
    learn_junta,
    learn_parity,
    low_degree_by_queries,
    parity_distribution,
)
from sparsact.hardness.parity_comparison import SPARE_EXAMPLES
from sparsact.hypercube import subsets_of

Generator = np.random.Generator

TOLERANCE: Final = 0.124  # just below the coefficients 1/8 of a bent function of six bits
BENT_BITS: Final = 6
TEST_EXAMPLES: Final = 4000


class Cost(NamedTuple):
    """What a learner used, and the share of wrong signs at fresh points; 1/2 if it has no hypothesis."""

    queries: int
    examples: int
    error: float


def error_of(hypothesis: Callable[..., Any], truth: LiftedFunction, rng: Generator) -> float:
    """Share of wrong signs at fresh examples; 0 is half wrong."""
    X, y = truth.sample(TEST_EXAMPLES, rng=rng)
    return float(np.mean((1 - np.sign(hypothesis(X)) * y) / 2))


def by_characters(m: int, rng: Generator) -> Cost:
    """All characters in a random order, until the answers leave one parity."""
    adversary = ParityAdversary(m, TOLERANCE)
    return _settled(adversary, rng.permutation(2**m))


def by_bent_functions(m: int, rng: Generator) -> Cost:
    """A bent function of six bits times a character of the rest tests 64 parities at once; then single characters."""
    adversary = ParityAdversary(m, TOLERANCE)
    for block in rng.permutation(2 ** (m - BENT_BITS)):
        rest = np.flatnonzero(block >> np.arange(m - BENT_BITS) & 1) + BENT_BITS

        def g(X: NDArray[Any], rest: NDArray[np.intp] = rest) -> NDArray[np.float64]:
            return np.asarray(_bent(X) * X[:, rest].prod(axis=1), dtype=np.float64)

        if adversary.correlation(g, "a bent function times a character"):
            break
    return _settled(adversary, np.flatnonzero(adversary.possible))


def _bent(X: NDArray[Any]) -> NDArray[np.float64]:
    """The inner product of three bits with three others, as a sign: all its 64 coefficients are 1/8 in size."""
    both = (X[:, 0:BENT_BITS:2] < 0) & (X[:, 1:BENT_BITS:2] < 0)
    return np.asarray(1.0 - 2.0 * (both.sum(axis=1) % 2))


def _settled(adversary: ParityAdversary, candidates: NDArray[np.intp]) -> Cost:
    """Ask for the candidates' characters; the answer that is not 0 names the parity, if no other is left."""
    answers = adversary.correlations(candidates.astype(np.uint64)[:, None])
    left = np.flatnonzero(adversary.possible)
    found = len(left) == 1 and candidates[int(np.argmax(np.abs(answers)))] == left[0]
    return Cost(adversary.ledger.n_queries, 0, 0.0 if found else 0.5)


def by_low_degree(subset: list[int], m: int, degree: int, noise: float, rng: Generator) -> Cost:
    """The low-degree algorithm with adversarial answers; noise shrinks every correlation by 1 - 2 noise."""
    noisy = LiftedFunction(Spectrum.of({tuple(subset): 1 - 2 * noise}, n=m), m)
    oracle = StatisticalQueryOracle(noisy, TOLERANCE, "adversarial")
    hypothesis = low_degree_by_queries(oracle, degree)
    return Cost(oracle.ledger.n_queries, 0, error_of(hypothesis, parity_distribution(subset, m), rng))


def by_juntas(subset: list[int], m: int, rng: Generator) -> Cost:
    """Correlations of ever higher order on one sample; each is counted as a query."""
    truth = parity_distribution(subset, m)
    X, y = truth.sample(junta_samples(m, len(subset)), rng=rng)
    learned = learn_junta(X, y, len(subset), method="brute force")
    right = subsets_of(Spectrum.of(learned).masks) == [tuple(subset)]
    return Cost(learned.work.correlations, len(y), 0.0 if right else error_of(learned, truth, rng))


def by_membership(subset: list[int], m: int, rng: Generator) -> Cost:
    """Heavy coefficients, from values at points of the learner's choice."""
    truth = parity_distribution(subset, m)
    oracle = MembershipOracle(truth.labels, m)
    found = heavy_coefficients(oracle, 0.9, rng=rng, failure_probability=1e-6)
    return Cost(oracle.ledger.n_queries, 0, error_of(found, truth, rng))


def by_elimination(subset: list[int], m: int, noise: float, rng: Generator, *, lifted: bool = False) -> Cost:
    """Elimination over GF(2) on the fewest examples that span all points; with noise on all that were drawn."""
    truth = parity_distribution(subset, m, lifted=lifted)
    X, y = truth.sample(m + SPARE_EXAMPLES, rng=rng)
    noisy = np.where(rng.random(len(y)) < noise, -y, y)
    try:
        learned = learn_parity(X, noisy)
        used = len(y) if noise else next(t for t in range(m, len(y) + 1) if learn_parity(X[:t], y[:t]).rank == m)
        learned = learn_parity(X[:used], noisy[:used])
    except InconsistentLabelsError:
        return Cost(0, len(y), 0.5)  # no parity has these labels: no hypothesis
    return Cost(0, used, error_of(learned, truth, rng))
