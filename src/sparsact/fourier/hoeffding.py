r"""Sum-to-zero (Hoeffding, ANOVA) components of a function on a grid of letters, exact.

Under a product measure with probabilities :math:`p_i(a)` of the letters of each site, every function is a unique sum
:math:`f = \sum_S f_S` over sets of sites, where :math:`f_S` depends on the sites of S alone and has mean 0 over the
letters of each of them [1]_. The components are orthogonal, so that their variances add up to that of f.

References
----------
.. [1] W. Hoeffding, "A class of statistics with asymptotically normal distribution", Ann. Math. Stat. 19, 1948;
   B. Efron, C. Stein, "The jackknife estimate of variance", Ann. Stat. 9, 1981.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact import registry
from sparsact.hypercube import Subset

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Anova:
    """Components of a function on a grid; :func:`anova` makes it.

    Attributes
    ----------
    values : ndarray of shape (q_1, ..., q_n)
        The function.
    frequencies : tuple of ndarray of shape (q_i,)
        Probabilities of the letters of each site.
    """

    values: Array
    frequencies: tuple[Array, ...]

    @property
    def n_sites(self) -> int:
        """Number n of sites."""
        return self.values.ndim

    @property
    def mean(self) -> float:
        """Mean of the function: the component of no site."""
        return float(self.component(()))

    def component(self, sites: Iterable[int]) -> Array:
        r"""Component of a set of sites, at all of their letters: an axis for each, in ascending order.

        .. math:: f_S = \sum_{U \subseteq S} (-1)^{|S \setminus U|} \, \mathbb{E}[f \mid x_U]

        The component of one site holds the effects of its letters, that of two sites their epistasis.
        """
        chosen = self._checked(sites)
        table = self.values
        for site, weights in enumerate(self.frequencies):
            mean = np.expand_dims(np.tensordot(table, weights, axes=(site, 0)), site)
            table = table - mean if site in chosen else mean
        return np.asarray(table.squeeze(tuple(set(range(self.n_sites)) - set(chosen))))

    @cached_property
    def variances(self) -> Array:
        r"""Variances of all components, shape (2,) * n: entry (1, 0, 1) is that of the set of sites 0 and 2.

        In a basis of each site that is orthonormal under its probabilities and begins with the constant, they are sums
        of squared coefficients. A reflection that takes the first unit vector to :math:`\sqrt{p_i}` makes one, at
        2 q operations a fibre.
        """
        table = self.values - self.mean  # the mean does not cost the others their digits
        for site, weights in enumerate(self.frequencies):
            table = np.moveaxis(table, site, 0)
            root = np.sqrt(weights)
            normal = root.copy()
            normal[0] -= 1.0
            table = table * root.reshape(-1, *[1] * (self.n_sites - 1))
            if square := float(normal @ normal):
                table -= np.multiply.outer(2 / square * normal, np.tensordot(normal, table, axes=1))
            table = np.moveaxis(table, 0, site)
        squares = table**2
        for site in range(self.n_sites):
            parts = np.split(squares, [1], axis=site)
            squares = np.concatenate([part.sum(axis=site, keepdims=True) for part in parts], axis=site)
        squares[(0,) * self.n_sites] = 0.0
        return np.asarray(squares)

    def variance(self, sites: Iterable[int]) -> float:
        """Variance of the component of a set of sites."""
        chosen = self._checked(sites)
        return float(self.variances[tuple(int(site in chosen) for site in range(self.n_sites))])

    def variance_by_degree(self) -> Array:
        """Variances (n,) of all components of one site, of two, and so on; their sum is the function's."""
        degrees = np.indices(self.variances.shape).sum(axis=0)
        sums = np.asarray(np.bincount(degrees.ravel(), self.variances.ravel(), self.n_sites + 1), dtype=np.float64)
        return sums[1:]

    def variance_by_site(self) -> Array:
        """Variances (n,) of all components that hold a site: divided by the variance, total Sobol indices."""
        sites = range(self.n_sites)
        return np.array([self.variances.take(1, axis=site).sum() for site in sites])

    def variance_by_pair(self) -> Array:
        """Variances (n, n) of the components of two sites, symmetric; of single sites on the diagonal."""
        found = np.diag([self.variance((site,)) for site in range(self.n_sites)])
        for i, j in combinations(range(self.n_sites), 2):
            found[i, j] = found[j, i] = self.variance((i, j))
        return found

    def top_effects(self, n_effects: int, max_degree: int = 2) -> list[tuple[Subset, tuple[int, ...], float]]:
        """The largest entries, by size, of components of up to ``max_degree`` sites: sites, letters, and effect.

        Letters are places on their axes; letters of probability 0 are left out.
        """
        found: list[tuple[Subset, tuple[int, ...], float]] = []
        for degree in range(1, min(max_degree, self.n_sites) + 1):
            for sites in combinations(range(self.n_sites), degree):
                table = self.component(sites)
                there = [np.flatnonzero(self.frequencies[site]) for site in sites]
                occurring = table[np.ix_(*there)]
                for place in np.argsort(-np.abs(occurring), axis=None, kind="stable")[:n_effects]:
                    at = np.unravel_index(place, occurring.shape)
                    letters = tuple(int(of_site[i]) for of_site, i in zip(there, at, strict=True))
                    found.append((sites, letters, float(table[letters])))
        return sorted(found, key=lambda effect: -abs(effect[2]))[:n_effects]

    def plot(self, **options: object) -> Any:
        """Draw the effects of letters by site, on new axes or on ``ax``: a :class:`~sparsact.LettersDisplay`.

        ``letters`` and ``feature_names`` name letters and sites. Variances are drawn by ``from_anova`` of
        :class:`~sparsact.VarianceDisplay` (by degree) and :class:`~sparsact.InteractionsDisplay` (by site and pair).
        Wants matplotlib.
        """
        return registry.find(registry.DISPLAYS["anova"]).from_anova(self, **options)

    def _checked(self, sites: Iterable[int]) -> Subset:
        chosen = tuple(sorted(set(sites)))
        if chosen and not 0 <= chosen[0] <= chosen[-1] < self.n_sites:
            raise ValueError(f"sites {chosen} are not among the {self.n_sites} sites, which count from 0.")
        return chosen


def anova(values: ArrayLike, frequencies: Sequence[ArrayLike] | None = None) -> Anova:
    r"""Sum-to-zero components of a function on a grid, one axis a site, one entry a letter.

    Parameters
    ----------
    values : array-like of shape (q_1, ..., q_n)
        The function at all combinations of letters.
    frequencies : sequence of array-like of shape (q_i,), optional
        Probabilities or counts of the letters of each site, which are divided by their sum; by default all letters are
        equally frequent.

    Returns
    -------
    Anova
        Components, and variances by set of sites, degree, site and pair.

    Notes
    -----
    All :math:`2^n` variances cost about 4 n operations for each of the N values.

    Examples
    --------
    The exclusive or of two bits has no effect of one site:

    >>> found = anova([[0, 1], [1, 0]])
    >>> found.mean, found.variance_by_degree().round(9)
    (0.5, array([0.  , 0.25]))
    >>> found.component((0, 1))
    array([[-0.5,  0.5],
           [ 0.5, -0.5]])
    """
    table = np.asarray(values, dtype=np.float64)
    if not table.ndim or not table.size or not np.isfinite(table).all():
        raise ValueError(
            f"`values` of shape {table.shape} must be finite, with an axis for each site; fill in what was not "
            "measured, by predictions for example."
        )
    given = [np.ones(q) for q in table.shape] if frequencies is None else list(frequencies)
    if len(given) != table.ndim:
        raise ValueError(f"`frequencies` has {len(given)} sites and `values` {table.ndim} axes; pass one for each.")
    found = []
    for site, (counts, q) in enumerate(zip(given, table.shape, strict=True)):
        weights = np.asarray(counts, dtype=np.float64)
        if weights.shape != (q,) or not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
            raise ValueError(f"frequencies of site {site} must be {q} numbers, none negative, and not all 0.")
        found.append(weights / weights.sum())
    return Anova(table, tuple(found))
