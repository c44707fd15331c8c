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

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from math import ceil, log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.hardness.distribution import Examples, LabelledDistribution, weighted_characters
from sparsact.hypercube import WORD, Masks, n_words

Query = Callable[[NDArray[Any], NDArray[Any]], Any]
SIGNS_AT_ONCE: Final = 2**22
MAX_SAMPLES: Final = 10**9  # of one answer


class Answers(ABC):
    """Legal answers to statistical queries about one distribution, at one tolerance."""

    n_samples = 0
    """Number of random examples drawn for one answer."""

    def __init__(self, distribution: LabelledDistribution, tolerance: float) -> None:
        self.distribution = distribution
        self.tolerance = tolerance

    @abstractmethod
    def mean(self, phi: Query) -> float:
        r"""Answer for :math:`\mathbb{E}[\phi(x, y)]`."""

    @abstractmethod
    def correlations(self, masks: Masks) -> NDArray[np.float64]:
        r"""Answers for :math:`\mathbb{E}[y\, \chi_T(x)]`, one for each subset T."""


class SampledAnswers(Answers):
    """Means over fresh examples, enough that each is off by more than the tolerance with at most a stated chance.

    Queries asked together share their examples; a union bound over them needs no independence.
    """

    def __init__(
        self, distribution: LabelledDistribution, tolerance: float, chance: float, rng: np.random.Generator
    ) -> None:
        super().__init__(distribution, tolerance)
        self.n_samples = hoeffding_samples(tolerance, chance)
        if self.n_samples > MAX_SAMPLES:
            raise ValueError(
                f"a sampled answer within {tolerance} takes {self.n_samples:.2g} examples, at most {MAX_SAMPLES:.2g} "
                'are drawn: raise `tolerance`, or take answers="exact" or "adversarial".'
            )
        self.rng = rng

    def mean(self, phi: Query) -> float:
        """Mean of phi over fresh examples."""
        return sum(float(query_values(phi, X, y).sum()) for X, y in self._batches()) / self.n_samples

    def correlations(self, masks: Masks) -> NDArray[np.float64]:
        """Means of all products over the same fresh examples."""
        total = np.zeros(len(masks))
        for X, y in self._batches():
            total += _sums_of_products(X, y, masks)
        return total / self.n_samples

    def _batches(self) -> Iterator[Examples]:
        rows = max(1, SIGNS_AT_ONCE // self.distribution.n)
        for start in range(0, self.n_samples, rows):
            yield self.distribution.sample(min(rows, self.n_samples - start), rng=self.rng)


class ExactAnswers(Answers):
    """The expectations themselves, by enumeration or from the spectrum."""

    def mean(self, phi: Query) -> float:
        """Expectation of phi over the support."""
        X, y, probability = self.distribution.support()
        return float(probability @ query_values(phi, X, y))

    def correlations(self, masks: Masks) -> NDArray[np.float64]:
        """Expectations of the products; refused where a label is known to be outside [-1, 1]."""
        largest = self.distribution.largest_label
        if largest > 1 + 1e-12:
            raise ValueError(
                f"a query must have values in [-1, 1]; a label, and so its product with a character, has size "
                f"{largest}: divide the labels by it."
            )
        return self.distribution.correlations(masks)


class AdversarialAnswers(ExactAnswers):
    """The legal answers nearest to those under labels that are drawn independently of the points."""

    def mean(self, phi: Query) -> float:
        """The value under independent labels, clipped to the legal answers; one call of phi per distinct label."""
        X, y, probability = self.distribution.support()
        values, label = np.unique(y, return_inverse=True)
        shares = np.bincount(label, weights=probability)
        decoy = sum(
            share * float(probability @ query_values(phi, X, np.full_like(y, value)))
            for value, share in zip(values, shares, strict=True)
        )
        return float(self._nearest_legal(super().mean(phi), decoy))

    def correlations(self, masks: Masks) -> NDArray[np.float64]:
        """The same for products with characters: under independent labels the means multiply."""
        mean_label = self.distribution.correlations(np.zeros((1, n_words(self.distribution.n)), dtype=np.uint64))
        decoys = mean_label * self.distribution.character_means(masks)
        return np.asarray(self._nearest_legal(super().correlations(masks), decoys))

    def _nearest_legal(self, truth: Any, decoy: Any) -> Any:
        return np.clip(decoy, truth - self.tolerance, truth + self.tolerance)


def hoeffding_samples(accuracy: float, failure_probability: float) -> int:
    """Examples whose mean of numbers in [-1, 1] is off by more than ``accuracy`` with at most this probability.

    >>> hoeffding_samples(0.1, 0.01)
    1060
    """
    return ceil(2 * log(2 / failure_probability) / accuracy**2)


def query_values(phi: Query, X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Values (rows,) of a query at examples, refused unless they are legal: finite and in [-1, 1]."""
    returned = np.asarray(phi(X, y))
    if np.iscomplexobj(returned):
        raise ValueError(f"a query must have real values in [-1, 1]; it returned {returned.dtype}: query each part.")
    values = returned.astype(np.float64, copy=False)
    if values.shape != (len(X),):
        raise ValueError(f"a query must return one value per example, shape ({len(X)},); it returned {values.shape}.")
    illegal = ~(np.abs(values) <= 1 + 1e-12)  # NaN too; rounding of a legal product is forgiven
    if illegal.any():
        worst = values[illegal][0]
        raise ValueError(f"a query must have values in [-1, 1]; it returned {worst}: divide it by its bound.")
    return values


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
