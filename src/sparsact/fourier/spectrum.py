r"""The Fourier spectrum of a real-valued function on the cube, and what can be read off it.

.. math:: f(x) = \sum_{S \subseteq [n]} \hat f(S)\, \chi_S(x), \qquad W_k = \sum_{|S| = k} \hat f(S)^2.

Order and signs follow :mod:`sparsact.hypercube`.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Section 2.1 and Claim 2.1.
.. [O] R. O'Donnell, "Analysis of Boolean Functions", 2014, Chapters 1-3; Section 8.4 for other measures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import singledispatch
from operator import index
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.fourier.coefficients import DenseCoefficients, SparseCoefficients
from sparsact.fourier.measure import UNIFORM, Measure, checked_measure, moments
from sparsact.fourier.subset_values import SubsetValues, formula
from sparsact.fourier.transform import walsh_hadamard
from sparsact.hypercube import Masks, Subset
from sparsact.validation.arrays import checked_masks, checked_reals, checked_restriction, checked_signs, checked_table
from sparsact.validation.parameters import checked_correlation

LARGEST_TABLE: Final = 26  # coordinates; 2**26 float64 are half a gigabyte


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum(SubsetValues):
    r"""Fourier coefficients of a real-valued function on :math:`\{-1, 1\}^n`.

    Immutable; two are equal when they are the same function. Make one with :meth:`of` or :meth:`from_coefficients`. It
    stores either a table of all ``2**n`` coefficients or, for any ``n``, the few that may differ from zero; the results
    are the same, and the cost is linear in the number stored unless a method states otherwise. Coefficients may have
    any size: a result that is a float is right, even where squares on the way would overflow. ``frequencies`` (n,) are
    the probabilities of bit 1 under the measure of the basis (:meth:`under`), None if it is uniform; ``feature_names``
    are names of the coordinates (:meth:`named`), where they have some.

    Examples
    --------
    The majority of three bits:

    >>> majority = Spectrum.of([1, 1, 1, -1, 1, -1, -1, -1])
    >>> majority
    <Spectrum on 3 coordinates, degree 3: 0.5 x0 + 0.5 x1 + 0.5 x2 - 0.5 x0 x1 x2>
    >>> majority.total_influence()
    1.5
    >>> majority.restrict({2: 1})
    <Spectrum on 2 coordinates, degree 2: 0.5 + 0.5 x0 + 0.5 x1 - 0.5 x0 x1>
    """

    storage: DenseCoefficients | SparseCoefficients
    frequencies: NDArray[np.float64] | None = None
    feature_names: tuple[str, ...] | None = None
    _kind, _value, _least = "spectrum", "coefficient", 0

    @classmethod
    def of(cls, thing: object, n: int | None = None, *, measure: Measure = UNIFORM) -> Spectrum:
        """Spectrum of a function in any of its forms.

        Parameters
        ----------
        thing : object
            A table of ``2**n`` values in table order; a mapping from subsets (tuples of coordinates) to coefficients;
            a spectrum; a fitted learner (its ``spectrum_``); or an object whose type :func:`.spectrum_of` knows.
        n : int, optional
            Number of coordinates. A mapping needs it; elsewhere it is known, and compared if given. A table costs one
            transform, ``n * 2**n`` additions.
        measure : {"uniform", "data"}, float or array-like of shape (n,), default="uniform"
            As in :meth:`under`; ``"data"``: the frequencies of bit 1 among the rows that a learner was fitted to.

        Examples
        --------
        >>> Spectrum.of({(): 2.0, (0, 70): -1.0}, n=100)
        <Spectrum on 100 coordinates, degree 2: 2 - 1 x0 x70>
        """
        if isinstance(thing, Mapping):
            if n is None:
                raise ValueError("the number of coordinates cannot be read off a mapping of coefficients: pass `n`.")
            return cls.from_coefficients(list(thing.values()), thing.keys(), n).under(measure)
        spectrum = spectrum_of(thing)
        if n not in (None, spectrum.n):
            raise ValueError(f"n = {n}, but the function has {spectrum.n} coordinates; leave `n` out.")
        return spectrum._under(checked_measure(measure, spectrum.n, thing))

    def under(self, measure: Measure) -> Spectrum:
        r"""The same function in the orthonormal basis of a product measure; norms and weights then refer to it.

        .. math:: f = \sum_S \hat f_p(S) \prod_{i \in S} \frac{x_i - \mu_i}{\sqrt{1 - \mu_i^2}}, \quad \mu_i = 1 - 2 p_i

        Exact, and of the same degree: ``n * 2**n`` operations for a table, ``2**s`` for a listed subset of size s.

        Parameters
        ----------
        measure : "uniform", float or array-like of shape (n,)
            Probabilities :math:`p_i` of bit 1 (sign -1), strictly between 0 and 1, independent of each other.

        Examples
        --------
        The AND of two bits that are seldom 1 is nearly constant:

        >>> both = Spectrum.of([0, 0, 0, 1]).under(0.1)
        >>> round(both.mean(), 9), both.weight_by_degree().round(4)
        (0.01, array([0.0001, 0.0018, 0.0081]))
        """
        return self._under(checked_measure(measure, self.n))

    def _under(self, frequencies: NDArray[np.float64] | None) -> Spectrum:
        (mean, deviation), (to_mean, to_deviation) = moments(self.frequencies, self.n), moments(frequencies, self.n)
        if (mean == to_mean).all():
            return self
        rebased = self.storage.rebased((to_mean - mean) / deviation, to_deviation / deviation)
        return replace(self, storage=rebased, frequencies=frequencies)

    @classmethod
    def from_coefficients(
        cls, coefficients: ArrayLike, subsets: Iterable[Iterable[int]] | Masks | None = None, n: int | None = None
    ) -> Spectrum:
        """Spectrum with the given coefficients.

        Parameters
        ----------
        coefficients : array-like of shape (2**n,) or (N,)
            All of them in table order, or the ones of ``subsets``.
        subsets : N tuples of coordinates or uint64 masks of shape (N, words), optional
            Distinct subsets; the others have coefficient zero.
        n : int, optional
            Number of coordinates; needed with ``subsets``.

        Examples
        --------
        >>> Spectrum.from_coefficients([3.0, -1.0], subsets=[(1,), (0, 4)], n=5)
        <Spectrum on 5 coordinates, degree 2: 3 x1 - 1 x0 x4>
        """
        if subsets is None:
            table = checked_table(coefficients, "coefficients").copy()
            if n is not None and table.size != 2**n:
                raise ValueError(f"{n} coordinates have {2**n} coefficients; got {table.size}. Name their `subsets`.")
            return cls(DenseCoefficients(table))
        if n is None:
            raise ValueError("the number of coordinates cannot be read off `subsets`: pass `n`.")
        values, masks = checked_reals(coefficients, "coefficients"), checked_masks(subsets, n)
        if values.shape != (len(masks),):
            raise ValueError(f"{len(masks)} subsets need as many coefficients; got shape {values.shape}.")
        stored = SparseCoefficients.summed(n, masks, values)
        if len(stored.stored) < len(masks):
            raise ValueError("`subsets` names a subset twice; add its coefficients first.")
        return cls(stored)

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """Stored coefficients, read-only, in the order of :attr:`subsets`."""
        return self.storage.coefficients

    @property
    def masks(self) -> Masks:
        """Stored subsets as masks (N, words): a table in table order, else by size, then lexicographically."""
        return self.storage.masks()

    def coefficient(self, subset: Iterable[int]) -> float:
        r"""Coefficient :math:`\hat f(S)` of a tuple of coordinates; zero when it is not stored."""
        return self[subset]

    def top(self, k: int, min_degree: int = 0) -> list[tuple[Subset, float]]:
        """The k stored coefficients of largest magnitude with ``|S| >= min_degree``, strongest first.

        Equal magnitudes are listed by size, then lexicographically.

        >>> Spectrum.of([1, 1, 1, -1]).top(3, min_degree=1)
        [((0,), 0.5), ((1,), 0.5), ((0, 1), -0.5)]
        """
        return self._strongest(k, min_degree)

    def weight_by_degree(self) -> NDArray[np.float64]:
        """Sums of squared coefficients :math:`W_k`, shape (n + 1,), whatever the degree of the function.

        As every sum of squares here, infinite beyond the range of float64, and 0 below it.
        """
        return self.storage.weights().values()

    def degree(self, tolerance: float = 0.0) -> int:
        """Size of the largest subset whose coefficient exceeds ``tolerance`` in magnitude; 0 if there is none."""
        return self.storage.degree(tolerance)

    def mean(self) -> float:
        r"""Mean :math:`\hat f(\emptyset)` over uniform points."""
        return self.coefficient(())

    def norm(self) -> float:
        r"""Norm :math:`\|f\|_2 = \sqrt{\mathbb{E} f^2}`, by Parseval's identity."""
        return self.storage.weights().root()

    def variance(self) -> float:
        r"""Variance :math:`\sum_{S \ne \emptyset} \hat f(S)^2` over uniform points."""
        return self.tail(0)

    def tail(self, degree: int) -> float:
        r"""Weight above a degree, :math:`\sum_{|S| > d} \hat f(S)^2`: the error of the best degree-d polynomial.

        At most ``2 * noise_sensitivity(rho) / (1 - rho**d)`` for ``0 <= rho < 1`` and ``d >= 1`` ([A]_, Claim 2.1).
        """
        return self.storage.weights().dot(np.arange(self.n + 1) > index(degree))

    def influences(self) -> NDArray[np.float64]:
        r"""Influence :math:`\sum_{S \ni i} \hat f(S)^2` of every coordinate, shape (n,)."""
        return self.storage.influences()

    def total_influence(self) -> float:
        r"""Sum of the influences, :math:`\sum_S |S| \hat f(S)^2`; the average sensitivity AS(f) of [A]_."""
        return self.storage.weights().dot(np.arange(self.n + 1))

    def noise_stability(self, rho: float) -> float:
        r"""Correlation :math:`\mathbb{E}[f(x) f(y)] = \sum_S \rho^{|S|} \hat f(S)^2` of f with f under noise.

        ``y`` is ``x`` with every coordinate flipped with probability ``(1 - rho) / 2``; ``-1 <= rho <= 1``. Under
        another measure each is drawn again with probability ``1 - rho``; ``0 <= rho <= 1``.
        """
        return self.storage.weights().dot(self._retention(rho))

    def noise_sensitivity(self, rho: float) -> float:
        r"""Noise sensitivity: the mean of :math:`\frac14 (f(x) - f(y))^2` when y is x under noise.

        .. math:: \mathrm{NS}_\rho(f) = \sum_S \tfrac12 (1 - \rho^{|S|})\, \hat f(S)^2

        The noise is that of :meth:`noise_stability`. Follows [A]_, Claim 2.1, with the 1/4 of its definition; for a
        function with values +-1 it is the probability that noise changes the value.
        """
        return self.storage.weights().dot((1 - self._retention(rho)) / 2)

    def noise(self, rho: float) -> Spectrum:
        r"""The function :math:`T_\rho f = \sum_S \rho^{|S|} \hat f(S) \chi_S`: the mean of f over noise at x."""
        return replace(self, storage=self.storage.scaled(self._retention(rho)))

    def _retention(self, rho: float) -> NDArray[np.float64]:
        if (kept := checked_correlation(rho)) < 0 and self.frequencies is not None:
            raise ValueError(f"`rho` must lie in [0, 1] under unequal frequencies, to draw again or not; got {rho}.")
        return np.asarray(kept ** np.arange(self.n + 1))

    def truncate(self, degree: int) -> Spectrum:
        """The part of degree at most ``degree``: the best approximation by such a polynomial."""
        return replace(self, storage=self.storage.truncated(degree))

    def restrict(self, signs: dict[int, int]) -> Spectrum:
        r"""The function with some coordinates fixed, on the other coordinates, renumbered in order.

        .. math:: \hat g(T) = \sum_{U \subseteq F} \hat f(T \cup U) \prod_{i \in U} \mathrm{sign}_i

        Parameters
        ----------
        signs : dict
            Sign +1 or -1 of every fixed coordinate ``F``.

        Examples
        --------
        Coordinate 2 of the function is coordinate 1 of its restriction:

        >>> Spectrum.of({(0,): 1.0, (1, 2): 3.0}, n=3).restrict({1: -1})
        <Spectrum on 2 coordinates, degree 1: -3 x1 + 1 x0>
        """
        left = Spectrum(self._under(None).storage.restricted(checked_restriction(signs, self.n)))
        if self.feature_names is not None:
            left = left.named([name for i, name in enumerate(self.feature_names) if i not in signs])
        return left if self.frequencies is None else left._under(np.delete(self.frequencies, list(signs)))

    def values(self) -> NDArray[np.float64]:
        """Values at all points, shape (2**n,), in table order, read-only; at most 26 coordinates unless dense."""
        return self._under(None)._table().values

    def __call__(self, X: ArrayLike) -> NDArray[np.float64]:
        """Values (m,) at signs (m, n): looked up in :meth:`values` of a table, else ``m * N`` products of signs."""
        return self._under(None).storage(checked_signs(X, self.n))

    def to_dense(self) -> Spectrum:
        """The same function, stored as a table; at most 26 coordinates."""
        return replace(self, storage=self._table())

    def to_sparse(self, threshold: float = 0.0) -> Spectrum:
        """The coefficients above ``threshold`` in magnitude, stored as a list of subsets; at 0 the same function."""
        return replace(self, storage=self.storage.above(threshold))

    def _table(self) -> DenseCoefficients:
        if isinstance(self.storage, DenseCoefficients):
            return self.storage
        if self.n > LARGEST_TABLE:
            raise ValueError(
                f"a table of 2**{self.n} numbers is too large: tables go up to n = {LARGEST_TABLE}. "
                "Call the spectrum at points instead."
            )
        return self.storage.to_dense()

    def __add__(self, other: Spectrum) -> Spectrum:
        if not isinstance(other, Spectrum):
            return NotImplemented
        if self.n != other.n:
            raise ValueError(f"the functions have {self.n} and {other.n} coordinates; they must have the same.")
        other = other._under(self.frequencies)
        if isinstance(self.storage, SparseCoefficients) and isinstance(other.storage, SparseCoefficients):
            return replace(self, storage=self.storage + other.storage)
        return replace(self, storage=self._table() + other._table())

    def __mul__(self, factor: float) -> Spectrum:
        return replace(self, storage=self.storage * float(factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Spectrum:
        return self * (1 / divisor)

    def __neg__(self) -> Spectrum:
        return self * -1.0

    def __sub__(self, other: Spectrum) -> Spectrum:
        return self + -other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Spectrum):
            return NotImplemented
        return self.n == other.n and not (self - other).coefficients.any()

    def __repr__(self) -> str:
        return f"<Spectrum on {self.n} coordinates, {self._degree()}: {formula(self.top(5), 4, self.feature_names)}>"

    def _degree(self) -> str:
        """The degree, for people: of coefficients that are not rounding errors of the largest."""
        degree, rough = self.degree(), self.degree(2.0**-40 * sum(abs(value) for _, value in self.top(1)))
        scaled = "" if self.frequencies is None else ", x standardised"
        return (f"degree {degree}" if degree == rough else f"degree {rough} up to rounding") + scaled


@singledispatch
def spectrum_of(thing: Any) -> Spectrum:
    """Spectrum by a type that ``spectrum_of.register`` has added, or of a learner or a table; else a TypeError."""
    if isinstance(thing, Spectrum):
        return thing
    if hasattr(thing, "spectrum_") or hasattr(type(thing), "spectrum_"):  # an unfitted learner says so itself
        return Spectrum.of(thing.spectrum_)
    if callable(thing) or isinstance(thing, str) or hasattr(thing, "__fspath__"):
        raise TypeError(
            f"the spectrum of a {type(thing).__name__} is not known: nothing is registered for its type, and it has no "
            "fitted `spectrum_`. Load a saved model, sparsact.load(path); for any other function pass its table of "
            "values, f(sparsact.hypercube.points(n))."
        )
    return Spectrum(DenseCoefficients(walsh_hadamard(checked_table(thing))))
