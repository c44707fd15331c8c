r"""The empirical Rademacher complexity of the sparse and of the dense class, exactly, on a few points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.fourier import Estimate
from sparsact.rademacher.dichotomies import most_faces, most_sets
from sparsact.rademacher.packing import packings
from sparsact.rademacher.sample import checked_draws, checked_n_active, checked_sample, checked_scale, mean_of_draws
from sparsact.rademacher.units import Units

MOST_SETS = 2**14
MOST_FACES = 2**24
MOST_ENTRIES = 2**28


def exact_complexity(
    X: ArrayLike,
    s: int | Sequence[int],
    k: int | None = 1,
    *,
    W: float = 1.0,
    B: float = 1.0,
    signs: ArrayLike | None = None,
    support: ArrayLike | None = None,
) -> Estimate:
    r"""Empirical Rademacher complexity of the class of k-sparsely activated networks on the points ``X``.

    .. math:: \mathcal{R}(X) = \mathbb{E}_\zeta \max_{h \in \mathcal{H}_{n,s,k}^{W,B}}
        \frac1m \sum_{i=1}^m \zeta_i h(x_i)

    Parameters
    ----------
    X : array-like of shape (m, n)
        A few points, of the cube or real.
    s : int or sequence of int
        Number of units; of a sequence, the complexity for each, on the same signs.
    k : int or None
        Number of active units. None is the dense class, and so is every k >= s.
    W, B : float
        Scale of the class (Definition 2), positive.
    signs : array-like of shape (N, m), optional
        Sign vectors :math:`\zeta` to average over, N >= 2, to be drawn independently and uniformly. By default all
        :math:`2^m` of them, with which nothing is left to chance (m <= 12).
    support : array-like of shape (l, n), optional
        Points at which too at most k units may be active; ``points(n)`` for the class on the whole cube. By default the
        class is that of networks which are k-sparse on ``X``.

    Returns
    -------
    complexity : Estimate
        With standard error 0 where all sign vectors were taken.

    Raises
    ------
    ValueError
        If a shape disagrees, a number is out of range, or there are too many points to be exact (by the costs
        below): for these see :func:`~sparsact.rademacher.lower_complexity`.

    Notes
    -----
    The output weights of a best network are +-1, and its units matter to one another only through the sets of points on
    which they are active. The sets that halfspaces cut from the points are listed; the best unit on each lies on a face
    of a cone and has a closed form there, ties included, since a unit at a tie is off; and the best s sets that cover
    no point more than k times come from a table of ``(k + 1)**points`` entries. Units of the dense class do not matter
    to one another at all: its complexity is exactly s times that of one unit.

    Maxima are exact up to rounding: the tests hold each against a dual bound, with a relative gap below 1e-11. Of m
    distinct points of full dimension there are :math:`N \le 2 \sum_{i \le n} \binom{m-1}{i}` sets, at most
    :math:`2^{14}` here, whose cones may have :math:`2^{24}` faces together; each face takes about ``2 * m * n``
    operations for each draw. The table costs ``N * (k + 1)**points``, at most :math:`2^{28}`, operations for each draw
    and unit. All points of the 3-cube with all signs: 104 sets with 1848 faces, half a second.

    References
    ----------
    .. [A] "Learning Neural Networks with Sparse Activations", 2024, Section 5.

    Examples
    --------
    Two points of a line: one unit is worth 2 at most whatever the signs, and so is a second one, at the other point.

    >>> exact_complexity([[1.0], [-1.0]], s=[1, 2]).value.round(6)
    array([1., 2.])
    """
    return mean_of_draws(exact_maxima(X, s, k, W=W, B=B, signs=signs, support=support), exact=signs is None)


def exact_maxima(
    X: ArrayLike,
    s: int | Sequence[int],
    k: int | None = 1,
    *,
    W: float = 1.0,
    B: float = 1.0,
    signs: ArrayLike | None = None,
    support: ArrayLike | None = None,
) -> NDArray[np.float64]:
    r"""What :func:`exact_complexity` averages: :math:`\max_h \frac1m \sum_i \zeta_i h(x_i)` of every sign vector.

    Shape (N,), or (N, number of sizes) for a sequence of them; parameters and errors as there.

    >>> exact_maxima([[1.0], [-1.0]], s=[1, 2], signs=[[1, 1], [1, -1]]).round(6)
    array([[1., 2.],
           [1., 2.]])
    """
    rows, distinct, place = _distinct(X, support)
    checked_scale(W, B)
    sizes = np.asarray(s)
    if sizes.dtype.kind not in "iu" or not sizes.size or sizes.min() < 1:
        raise ValueError(f"`s` must be a number of units, 1 or more; got {s!r}.")
    largest = int(sizes.max())
    limit = checked_n_active(k, largest)
    useful = min(largest, limit * len(distinct))  # more units than these are off everywhere
    _check_size(len(distinct), distinct.shape[1], (limit + 1) ** len(distinct) if limit < largest else 1)
    zeta = checked_draws(signs, len(rows))
    totals = np.zeros((len(distinct), len(zeta)))
    np.add.at(totals, place, zeta.T)
    units = Units(distinct, W, B)
    cases, case = np.unique(np.concatenate([totals.T, -totals.T]), axis=0, return_inverse=True)
    values = units.best(cases)[0][case].reshape(2, len(zeta), -1).max(axis=0)
    if limit < largest:
        maxima = packings(values, units.sets, useful, limit)[:, np.minimum(sizes, useful)]
    else:
        maxima = np.multiply.outer(values.max(axis=1), sizes)
    return np.asarray(maxima / len(rows))


def _distinct(
    X: ArrayLike, support: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]:
    """The points, the distinct ones among them and the support, and which of these each point is."""
    rows, everywhere = checked_sample(X, support)
    distinct, place = np.unique(everywhere, axis=0, return_inverse=True)
    return rows, distinct, place[: len(rows)]


def _check_size(n_points: int, n: int, n_states: int) -> None:
    n_sets = most_sets(n_points, n)
    if n_sets > MOST_SETS or n_sets * n_states > MOST_ENTRIES or most_faces(n_points, n) > MOST_FACES:
        raise ValueError(
            f"{n_points} distinct points in {n} dimensions are too many to be exact (up to {n_sets} sets, "
            f"a table of {n_states} states): use lower_complexity, or fewer points."
        )
