r"""Interactions of coordinates: what they change together, between two points or against the average of the others.

Coordinates are players. A set U takes its values from a ``point`` x, the others from a ``reference`` r, or at random:
:math:`v(U) = f(x_U, r_{-U})`, or its mean over r under a product measure. With the Moebius coefficients

.. math:: a_T = \sum_{U \subseteq T} (-1)^{|T \setminus U|}\, v(U)
    = \sum_{S \supseteq T} \hat f(S)\, \chi_S(r) \prod_{i \in T} (x_i r_i - 1),

and :math:`a_T = \hat f_p(T) \prod_{i \in T} (x_i - \mu_i) / \sigma_i` against the mean, every index of a set T is a sum
:math:`\sum_{S \supseteq T} w(|S|, |T|)\, a_S`. In genetics, :math:`a_T` is the *reference-based* epistasis of the
mutations T (r is the wild type) and the Banzhaf index their *background-averaged* epistasis,
:math:`\hat f(T)\, \chi_T(r)\, (-2)^{|T|}`.

References
----------
.. [G] M. Grabisch, M. Roubens, "An axiomatic approach to the concept of interaction among players in cooperative
   games", 1999: the Shapley (SII) and Banzhaf (BII) interaction indices.
.. [S] M. Sundararajan, K. Dhamdhere, A. Agarwal, "The Shapley Taylor Interaction Index", 2020 (STII).
.. [T] C.-P. Tsai, C.-K. Yeh, P. Ravikumar, "Faith-Shap: The Faithful Shapley Interaction Index", 2023 (FSII, FBII).
.. [P] F. J. Poelwijk, V. Krishna, R. Ranganathan, "The Context-Dependence of Mutations", 2016.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.fourier.coefficients import DenseCoefficients, SparseCoefficients, subset_sizes
from sparsact.fourier.measure import UNIFORM, Measure, moments
from sparsact.fourier.spectrum import Spectrum
from sparsact.fourier.subset_values import SubsetValues
from sparsact.hypercube import Masks, Subset, masks_of
from sparsact.validation.arrays import checked_signs
from sparsact.validation.parameters import checked_option, checked_size

Coefficients = DenseCoefficients | SparseCoefficients
Weight = Callable[[int, int], float]
INDICES: Final = ("Moebius", "BII", "SII", "STII", "FSII", "FBII")
OF_ORDER_ONE: Final = {"SV": "SII", "BV": "BII"}  # shapiq's names of order 1: Shapley values, Banzhaf values


@dataclass(frozen=True, eq=False, repr=False)
class Interactions(SubsetValues):
    """Values of an interaction index, set by set, as :func:`interactions` computes them.

    Attributes
    ----------
    index : str
        One of ``"Moebius"``, ``"BII"``, ``"SII"``, ``"STII"``, ``"FSII"``, ``"FBII"``.
    order : int
        Size of the largest sets.
    point : ndarray of shape (n,), int8
        Signs of the coordinates that are present.
    reference : ndarray of shape (n,), int8, or None
        Signs of absent coordinates; None if they are random.

    Examples
    --------
    >>> found = interactions([0.0, 1.0, 2.0, 2.5])
    >>> found
    <Interactions of 2 coordinates against the reference, Moebius up to order 2>
    >>> found.top(2)
    [((1,), 2.0), ((0,), 1.0)]
    """

    storage: Coefficients
    index: str
    order: int
    point: NDArray[np.int8]
    reference: NDArray[np.int8] | None
    _kind, _value, _least = "interactions", "value", 1

    @property
    def values(self) -> NDArray[np.float64]:
        """Stored values, read-only, in the order of :attr:`subsets`; others are zero."""
        return self.storage.coefficients

    @property
    def baseline(self) -> float:
        """Value of no coordinate: f at the reference, or its mean; of ``"FBII"`` the constant of the polynomial."""
        return self[()]

    def top(self, k: int, min_order: int = 1) -> list[tuple[Subset, float]]:
        """The k values of largest magnitude of sets of at least ``min_order`` coordinates, strongest first."""
        return self._strongest(k, min_order)

    def spectrum(self) -> Spectrum:
        r"""The function again: :math:`\hat f(S) = (-1)^{|S|} \chi_S(r) \sum_{T \supseteq S} 2^{-|T|} a_T`.

        Raises
        ------
        ValueError
            Unless these are all Moebius coefficients between two points that differ everywhere.
        """
        if (
            self.index != "Moebius"
            or self.order < self.n
            or self.reference is None
            or (self.point == self.reference).any()
        ):
            raise ValueError(
                "only Moebius coefficients of every order between opposite points determine a function; these are "
                f"{self.index} of order {self.order} of {self.n}: call interactions(f, reference=...)."
            )
        return Spectrum(self.storage.rebased(np.full(self.n, 0.5), self.reference / -2), None, self.feature_names)

    def to_shapiq(self) -> Any:
        """The same as ``shapiq.InteractionValues``; needs the package shapiq.

        shapiq names interactions of order 1 ``"SV"`` (Shapley values) or ``"BV"`` (Banzhaf values).
        """
        try:
            from shapiq import InteractionValues
        except ImportError as error:
            raise ImportError("`to_shapiq` needs the package shapiq: pip install shapiq.") from error
        lookup = {subset: place for place, subset in enumerate(self.subsets)}
        return InteractionValues(
            values=np.array(self.values),
            index=self.index,
            max_order=self.order,
            n_players=self.n,
            min_order=0,
            interaction_lookup=lookup,
            estimated=False,
            baseline_value=self.baseline,
        )

    @classmethod
    def from_shapiq(cls, values: Any, point: ArrayLike | None = None, reference: ArrayLike | None = None) -> Self:
        """From ``shapiq.InteractionValues``, whose game goes from ``reference`` (default: all +1) to ``point``.

        shapiq's ``"SV"`` is read as ``"SII"`` of order 1, and its ``"BV"`` as ``"BII"``, which have these values.
        """
        n = int(values.n_players)
        index = checked_option(OF_ORDER_ONE.get(str(values.index), str(values.index)), "`index`", INDICES)
        at, absent = _points(n, point, reference)
        subsets = list(values.interaction_lookup)
        numbers = np.asarray(values.values, dtype=np.float64)[[values.interaction_lookup[each] for each in subsets]]
        storage = SparseCoefficients.summed(n, masks_of(subsets, n), numbers)
        if not storage.coefficient(()) and values.baseline_value:
            empty = SparseCoefficients.summed(n, masks_of([()], n), np.array([float(values.baseline_value)]))
            storage = storage + empty
        return cls(storage, index, int(values.max_order), at, absent)

    def __repr__(self) -> str:
        of = "the mean" if self.reference is None else "the reference"
        return f"<Interactions of {self.n} coordinates against {of}, {self.index} up to order {self.order}>"


def interactions(
    function: object,
    index: str = "Moebius",
    order: int | None = None,
    *,
    point: ArrayLike | None = None,
    reference: ArrayLike | None = None,
    measure: Measure | None = None,
) -> Interactions:
    r"""Interaction values of the coordinates of a function, by any of six indices; exact up to rounding.

    Parameters
    ----------
    function : object
        Anything that :meth:`.Spectrum.of` takes: a spectrum, a table of values, a network, a fitted learner.
    index : {"Moebius", "BII", "SII", "STII", "FSII", "FBII"}
        - ``"Moebius"``: epistasis from the reference. They add up to f at the point, over the sets of any order.
        - ``"BII"``: Banzhaf, the change by the set averaged over all settings of the other players, equally often.
        - ``"SII"``: Shapley, averaged over numbers of other players first; at order 1 the Shapley values.
        - ``"STII"``, ``"FSII"``: Shapley-Taylor and faithful Shapley: values up to ``order`` add up to f at the point.
        - ``"FBII"``: faithful Banzhaf, the polynomial of degree ``order`` in the presence of players that is closest to
          the game, all sets of players weighing the same.
    order : int, optional
        Largest sets; default 2, and n for ``"Moebius"``.
    point, reference : array-like of n signs, optional
        Coordinates that are present are as in ``point``, absent ones as in ``reference``. By default the reference is
        +1 everywhere (every bit 0), and the point is opposite to it.
    measure : {"uniform", "data"}, float or array-like of shape (n,), optional
        Absent coordinates are drawn from this product measure instead (:meth:`.Spectrum.under`), and a ``point`` is
        needed. Shapley values then share out f at the point minus its mean.

    Returns
    -------
    interactions : Interactions
        Sets of size 0 to ``order``. The empty one has the value of no player; of ``"FBII"``, the polynomial's constant.

    Notes
    -----
    A table of :math:`2^n` coefficients costs one pass for each set requested, and a listed set of size s all of
    its subsets up to the order.

    Examples
    --------
    Two mutations that together undo what each does:

    >>> f = [0.0, 1.0, 1.0, 0.0]  # no mutation, the first, the second, both
    >>> found = interactions(f)
    >>> found[(0,)], found[(0, 1)]
    (1.0, -2.0)
    >>> interactions(f, "SII", order=1)[(0,)]  # half of f(both) - f(none)
    0.0
    """
    if measure is not None and (point is None or reference is not None):
        raise ValueError("with `measure` pass `point`, not `reference`: absent coordinates are drawn at random.")
    spectrum = Spectrum.of(function, measure=UNIFORM if measure is None else measure)
    n = spectrum.n
    checked_option(index, "`index`", INDICES)
    default = n if index == "Moebius" else min(2, n)
    largest = default if order is None else checked_size(order, "`order`", minimum=min(1, n), maximum=n)
    at, absent = _points(n, point, reference)
    if measure is None:
        signs = absent.astype(np.float64)
        moebius = _within(spectrum.storage.rebased(signs, -2.0 * signs), np.flatnonzero(at != absent))
    else:
        mean, deviation = moments(spectrum.frequencies, n)
        moebius = spectrum.storage.rebased(np.zeros(n), (at - mean) / deviation)
    baseline = absent if measure is None else None
    is_moebius = index == "Moebius"
    sums = moebius.truncated(largest) if is_moebius else _index_sums(moebius, _weight(index, largest), largest)
    return Interactions(sums, index, largest, at, baseline).named(spectrum.feature_names)


def _weight(index: str, order: int) -> Weight:
    """w(s, t) with which the Moebius coefficient of a set of size s counts for a subset of size t."""

    def faithful_shapley(s: int, t: int) -> float:
        if s <= order or not t:
            return float(s == t)
        sign, share = (-1.0) ** (order - t), t / (order + t) * comb(order, t)
        return sign * share * comb(s - 1, order) / comb(s + order - 1, order + t)

    def faithful_banzhaf(s: int, t: int) -> float:
        if s <= order:
            return float(s == t)
        return (-1.0) ** (order - t) * 0.5 ** (s - t) * comb(s - t - 1, order - t)

    weights: dict[str, Weight] = {
        "BII": lambda s, t: 0.5 ** (s - t) if t else float(s == 0),
        "SII": lambda s, t: 1 / (s - t + 1) if t else float(s == 0),
        "STII": lambda s, t: 1 / comb(s, t) if t == order else float(s == t),
        "FSII": faithful_shapley,
        "FBII": faithful_banzhaf,
    }
    return weights[index]


def _index_sums(stored: Coefficients, weight: Weight, order: int) -> SparseCoefficients:
    """For each set T of size up to ``order``, the sum over all S that hold it of w(|S|, |T|) times its coefficient."""
    n = stored.n
    if isinstance(stored, DenseCoefficients):
        cube, size = stored.coefficients.reshape((2,) * n), subset_sizes(n).reshape((2,) * n)
        subsets = [subset for t in range(order + 1) for subset in combinations(range(n), t)]
        weights = [np.array([weight(s, t) if s >= t else 0.0 for s in range(n + 1)]) for t in range(order + 1)]
        sums = np.empty(len(subsets))
        for place, subset in enumerate(subsets):
            holding = tuple(1 if n - 1 - axis in subset else slice(None) for axis in range(n))
            sums[place] = (weights[len(subset)][size[holding]] * cube[holding]).sum()
        return SparseCoefficients.summed(n, masks_of(subsets, n), sums)
    masks: list[Masks] = [stored.stored[:0]]
    values = [stored.coefficients[:0]]
    for rows, members, columns in stored.parts(0, order):
        if factor := weight(members.shape[1], len(columns)):
            masks.append(masks_of(members[:, columns], n))
            values.append(stored.coefficients[rows] * factor)
    return SparseCoefficients.summed(n, np.concatenate(masks), np.concatenate(values))


def _within(stored: Coefficients, coordinates: NDArray[np.intp]) -> Coefficients:
    """Only the coefficients of sets of these coordinates."""
    if len(coordinates) == stored.n:
        return stored
    outside = ~masks_of([coordinates.tolist()], stored.n)
    kept = ~(stored.masks() & outside).any(axis=1)
    if isinstance(stored, DenseCoefficients):
        return DenseCoefficients(np.where(kept, stored.coefficients, 0.0))
    return SparseCoefficients(stored.n, stored.stored[kept], stored.coefficients[kept])


def _signs(point: ArrayLike, n: int) -> NDArray[np.int8]:
    return np.asarray(checked_signs(np.atleast_2d(np.asarray(point)), n)[0]).astype(np.int8)


def _points(n: int, point: ArrayLike | None, reference: ArrayLike | None) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    absent = np.ones(n, dtype=np.int8) if reference is None else _signs(reference, n)
    return -absent if point is None else _signs(point, n), absent
