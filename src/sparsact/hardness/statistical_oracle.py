r"""How a statistical-query oracle answers: any number within the tolerance is legal, and these choose one.

- *sampling*: the mean over fresh random examples, honest and wrong only by chance;
- *exact*: the expectation itself;
- *adversarial*: the legal number nearest to the answer for labels that are independent of the points. As long as that
  number is itself legal, the answer says nothing about the function.

References
----------
.. [K] M. Kearns, "Efficient noise-tolerant learning from statistical queries", 1998.
.. [B] A. Blum et al., "Weakly learning DNF and characterizing statistical query learning", 1994.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.hardness.distribution import Examples, LabelledDistribution, weighted_characters
from sparsact.hardness.queries import Query, StatisticalQueries, query_values
from sparsact.hypercube import WORD, Masks, n_words
from sparsact.validation.parameters import checked_generator, checked_option, checked_probability

SIGNS_AT_ONCE: Final = 2**22
MAX_SAMPLES: Final = 10**9  # of one answer


class StatisticalQueryOracle(StatisticalQueries):
    r"""Statistical queries about a labelled distribution.

    Parameters
    ----------
    examples, tolerance : LabelledDistribution, and float
        Points and the labels of the unknown function, and :math:`\tau`, in (0, 1].
    answers : {"sampling", "adversarial", "exact"}
        Which legal answer is given; see :mod:`sparsact.hardness.statistical_oracle`.
    budget : int, optional
        Maximum number of queries.
    failure_probability, rng : float, and numpy.random.Generator
        For sampled answers: the chance of each to be off by more than the tolerance, and the source of randomness.

    Notes
    -----
    Exact and adversarial answers to arbitrary queries enumerate the points, so there may be at most ``2**16``; to
    queries of characters they read the spectrum of the label, at any size. Sampled answers draw
    ``ceil(2 ln(2 / failure_probability) / tolerance**2)`` examples for each query or each family of characters, by
    Hoeffding's inequality.

    Examples
    --------
    A parity of three bits and an adversary: only its own character has an answer other than 0.

    >>> from sparsact.hardness import parity_distribution
    >>> oracle = StatisticalQueryOracle(parity_distribution((0, 1, 3), 5), 0.1, "adversarial", budget=10)
    >>> oracle.correlations([(0,), (1, 3), (0, 1, 3)])
    array([0. , 0. , 0.9])
    >>> oracle.ledger.n_queries, oracle.ledger.left
    (3, 7)
    """

    def __init__(
        self,
        examples: LabelledDistribution,
        tolerance: float,
        answers: Literal["sampling", "adversarial", "exact"] = "sampling",
        *,
        budget: int | None = None,
        failure_probability: float = 1e-6,
        rng: np.random.Generator | None = None,
    ) -> None:
        super().__init__(examples.n, tolerance, budget)
        self.examples = examples
        self.answers = checked_option(answers, "`answers`", ("sampling", "adversarial", "exact"))
        self.rng = checked_generator(rng) if answers == "sampling" else None
        if self.rng is not None:
            chance = checked_probability(failure_probability, "`failure_probability`")
            self.n_samples = hoeffding_samples(self.tolerance, chance)
            if self.n_samples > MAX_SAMPLES:
                raise ValueError(
                    f"a sampled answer within {tolerance} takes {self.n_samples:.2g} examples, at most "
                    f'{MAX_SAMPLES:.2g} are drawn: raise `tolerance`, or take answers="exact" or "adversarial".'
                )

    def _mean(self, phi: Query) -> float:
        if self.rng is not None:
            return sum(float(query_values(phi, X, y).sum()) for X, y in self._batches(self.rng)) / self.n_samples
        X, y, probability = self.examples.support()
        truth = float(probability @ query_values(phi, X, y))
        if self.answers == "exact":
            return truth
        values, label = np.unique(y, return_inverse=True)  # one call of phi per distinct label
        shares = np.bincount(label, weights=probability)
        decoys = (float(probability @ query_values(phi, X, np.full_like(y, value))) for value in values)
        decoy = sum(share * mean for share, mean in zip(shares, decoys, strict=True))
        return float(np.clip(decoy, truth - self.tolerance, truth + self.tolerance))

    def _correlations(self, masks: Masks) -> NDArray[np.float64]:
        if self.rng is not None:  # a union bound over the masks needs no independent examples
            total = sum((_sums_of_products(X, y, masks) for X, y in self._batches(self.rng)), np.zeros(len(masks)))
            return total / self.n_samples
        largest = self.examples.largest_label
        if largest > 1 + 1e-12:
            raise ValueError(
                f"a query must have values in [-1, 1]; a label, and so its product with a character, has size "
                f"{largest}: divide the labels by it."
            )
        truth = self.examples.correlations(masks)
        if self.answers == "exact":
            return truth
        mean_label = self.examples.correlations(np.zeros((1, n_words(self.n)), dtype=np.uint64))
        decoys = mean_label * self.examples.character_means(masks)  # under independent labels the means multiply
        return np.clip(decoys, truth - self.tolerance, truth + self.tolerance)

    def _batches(self, rng: np.random.Generator) -> Iterator[Examples]:
        rows = max(1, SIGNS_AT_ONCE // self.n)
        for start in range(0, self.n_samples, rows):
            yield self.examples.sample(min(rows, self.n_samples - start), rng=rng)


def hoeffding_samples(accuracy: float, failure_probability: float) -> int:
    """Examples whose mean of numbers in [-1, 1] is off by more than ``accuracy`` with at most this probability.

    >>> hoeffding_samples(0.1, 0.01)
    1060
    """
    return ceil(2 * log(2 / failure_probability) / accuracy**2)


def _sums_of_products(X: NDArray[Any], y: NDArray[np.float64], masks: Masks) -> NDArray[np.float64]:
    """Sums over examples of y times every character; for labels +-1 by popcount, the label as one more coordinate."""
    if not (np.abs(y) == 1).all():
        query_values(lambda _, labels: labels, X, y)
        return weighted_characters(X, y, masks)
    m, n = X.shape
    columns, _ = kernels.pack_columns(np.column_stack([X, y.astype(np.int8)]), 1, -1)
    with_label = np.zeros((len(masks), n_words(n + 1)), dtype=np.uint64)
    with_label[:, : masks.shape[1]] = masks
    with_label[:, n // WORD] |= np.uint64(1) << np.uint64(n % WORD)
    everything = np.full((1, columns.shape[1]), ~np.uint64(0))
    odd = kernels.parity_counts(columns, everything, with_label)[0]
    return np.asarray(m - 2 * odd, dtype=np.float64)
