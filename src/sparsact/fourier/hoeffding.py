r"""Sum-to-zero (Hoeffding, ANOVA) components of a function on a grid of letters, exact.

Under a product measure with probabilities :math:`p_i(a)` of the letters of each site, every function is a unique sum
:math:`f = \sum_S f_S` over sets of sites, where :math:`f_S` depends on the sites of S alone and has mean 0 over the
letters of each of them [1]_. The components are orthogonal, so that their variances add up to that of f. A table gives
them over a grid of all letters; a polynomial in bits of the letters, at any number of sites.

References
----------
.. [1] W. Hoeffding, "A class of statistics with asymptotically normal distribution", Ann. Math. Stat. 19, 1948;
   B. Efron, C. Stein, "The jackknife estimate of variance", Ann. Stat. 9, 1981.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact import registry
from sparsact.fourier.measure import UNIFORM
from sparsact.fourier.spectrum import Spectrum
from sparsact.hypercube import Subset
from sparsact.validation.arrays import checked_reals

Array = NDArray[np.float64]


class Anova(ABC):
    """Components of a function of sites, made by :func:`anova`. ``frequencies``: how often letters occur."""

    frequencies: tuple[Array, ...]

    @property
    def n_sites(self) -> int:
        """Number n of sites."""
        return len(self.frequencies)

    @property
    def mean(self) -> float:
        """Mean of the function: the component of no site."""
        return float(self.component(()))

    @abstractmethod
    def component(self, sites: Iterable[int]) -> Array:
        r"""Component of a set of sites, at all of their letters: an axis for each, in ascending order.

        .. math:: f_S = \sum_{U \subseteq S} (-1)^{|S \setminus U|} \, \mathbb{E}[f \mid x_U]

        The component of one site holds the effects of its letters, that of two sites their epistasis.
        """

    @property
    @abstractmethod
    def by_set(self) -> tuple[NDArray[np.bool_], Array]:
        """Sets of sites (N, n) and the variances (N,) of their components; other sets have variance 0."""

    def variance(self, sites: Iterable[int]) -> float:
        """Variance of the component of a set of sites."""
        chosen, (sets, variances) = self._checked(sites), self.by_set
        return float(variances[(sets == np.isin(np.arange(self.n_sites), chosen)).all(axis=1)].sum())

    def variance_by_degree(self) -> Array:
        """Variances (n,) of all components of one site, of two, and so on; their sum is the function's."""
        sets, variances = self.by_set
        return np.asarray(np.bincount(sets.sum(axis=1), variances, self.n_sites + 1), dtype=np.float64)[1:]

    def variance_by_site(self) -> Array:
        """Variances (n,) of all components that hold a site: divided by the variance, total Sobol indices."""
        sets, variances = self.by_set
        return np.asarray(variances @ sets)

    def variance_by_pair(self) -> Array:
        """Variances (n, n) of the components of two sites, symmetric; of single sites on the diagonal."""
        (sets, variances), found = self.by_set, np.zeros((self.n_sites, self.n_sites))
        for size in (1, 2):
            some = sets.sum(axis=1) == size
            ends = np.nonzero(sets[some])[1].reshape(-1, size)
            found[ends[:, 0], ends[:, -1]] = found[ends[:, -1], ends[:, 0]] = variances[some]
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


@dataclass(frozen=True, eq=False)
class GridAnova(Anova):
    """Components of a table: ``values`` has an axis for each site, and an entry for each letter."""

    values: Array
    frequencies: tuple[Array, ...]

    def component(self, sites: Iterable[int]) -> Array:
        """Component of a set of sites, at all of their letters."""
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

    @property
    def by_set(self) -> tuple[NDArray[np.bool_], Array]:
        """All sets of sites, and their variances."""
        return np.indices(self.variances.shape).reshape(self.n_sites, -1).T == 1, self.variances.ravel()


@dataclass(frozen=True, eq=False)
class ListedAnova(Anova):
    """Components of a polynomial: a table for each set of sites that has one."""

    tables: Mapping[Subset, Array]
    frequencies: tuple[Array, ...]

    @classmethod
    def of(cls, polynomial: Spectrum, letters: Sequence[Array], frequencies: tuple[Array, ...]) -> Self:
        """Expand products of signs, of the bits (q_i, b_i) of the letters of each site, one after the other."""
        site_of = np.repeat(np.arange(len(letters)), [bits.shape[1] for bits in letters])
        place = np.concatenate([np.arange(bits.shape[1]) for bits in letters])
        sums: dict[Subset, Array] = {}
        for subset, coefficient in polynomial.items():
            sites, table = tuple(sorted(set(site_of[list(subset)].tolist()))), np.array(coefficient)
            for site in sites:
                own = [place[i] for i in subset if site_of[i] == site]
                table = np.multiply.outer(table, (1 - 2 * letters[site][:, own]).prod(axis=1))
            sums[sites] = sums.get(sites, 0.0) + table
        found: dict[Subset, Array] = {(): np.zeros(())}
        for sites, table in sums.items():
            part = GridAnova(table, tuple(frequencies[site] for site in sites))
            for size in range(len(sites) + 1):
                for inner in combinations(range(len(sites)), size):
                    named = tuple(sites[i] for i in inner)
                    found[named] = found.get(named, 0.0) + part.component(inner)
        return cls(found, frequencies)

    def component(self, sites: Iterable[int]) -> Array:
        """Component of a set of sites, at all of their letters."""
        chosen = self._checked(sites)
        there = self.tables.get(chosen)
        return np.zeros([len(self.frequencies[site]) for site in chosen]) if there is None else there

    @cached_property
    def by_set(self) -> tuple[NDArray[np.bool_], Array]:
        """The sets that have a table, and their variances."""
        sets = np.array([np.isin(np.arange(self.n_sites), sites) for sites in self.tables])
        variances = np.zeros(len(sets))
        for place, (sites, table) in enumerate(self.tables.items()):
            squares = table**2
            for site in reversed(sites):
                squares = squares @ self.frequencies[site]
            variances[place] = squares if sites else 0.0
        return sets, variances


def anova(
    values: ArrayLike | Spectrum,
    frequencies: Sequence[ArrayLike] | None = None,
    *,
    letters: Sequence[ArrayLike] | None = None,
) -> Anova:
    r"""Sum-to-zero components of a function on a grid, one axis a site, one entry a letter; or of a polynomial.

    Parameters
    ----------
    values : array-like of shape (q_1, ..., q_n), or Spectrum
        The function at all combinations of letters, or a polynomial in the bits of ``letters``.
    frequencies : sequence of array-like of shape (q_i,), optional
        Probabilities or counts of the letters of each site, which are divided by their sum; by default all letters are
        equally frequent.
    letters : sequence of array-like of shape (q_i, b_i), optional
        With a polynomial: the bits of each letter of each site. The sites' bits follow each other.

    Returns
    -------
    Anova
        Components, and variances by set of sites, degree, site and pair.

    Notes
    -----
    All :math:`2^n` variances of a table cost about 4 n operations for each of the N values; a product of a polynomial
    costs as many tables as its sites have subsets.

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
    if (letters is None) == isinstance(values, Spectrum):
        raise ValueError("a Spectrum needs the bits of its `letters`, and a table has none; pass both, or a table.")
    if isinstance(values, Spectrum) and letters is not None:
        bits = [np.atleast_2d(checked_reals(one, "`letters`")) for one in letters]
        if sum(one.shape[1] for one in bits) != values.n:
            raise ValueError(f"`letters` have {sum(one.shape[1] for one in bits)} bits, the function {values.n}.")
        return ListedAnova.of(values.under(UNIFORM), bits, _checked_frequencies(frequencies, list(map(len, bits))))
    table = np.asarray(values, dtype=np.float64)
    if not table.ndim or not table.size or not np.isfinite(table).all():
        raise ValueError(
            f"`values` of shape {table.shape} must be finite, with an axis for each site; fill in what was not "
            "measured, by predictions for example."
        )
    return GridAnova(table, _checked_frequencies(frequencies, table.shape))


def _checked_frequencies(frequencies: Sequence[ArrayLike] | None, sizes: Sequence[int]) -> tuple[Array, ...]:
    given = [np.ones(q) for q in sizes] if frequencies is None else list(frequencies)
    if len(given) != len(sizes):
        raise ValueError(f"`frequencies` has {len(given)} sites and `values` {len(sizes)} axes; pass one for each.")
    found = []
    for site, (counts, q) in enumerate(zip(given, sizes, strict=True)):
        weights = np.asarray(counts, dtype=np.float64)
        if weights.shape != (q,) or not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
            raise ValueError(f"frequencies of site {site} must be {q} numbers, none negative, and not all 0.")
        found.append(weights / weights.sum())
    return tuple(found)
