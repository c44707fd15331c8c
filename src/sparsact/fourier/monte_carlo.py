"""Monte Carlo estimates for a function that can only be called, on any number of coordinates.

A function takes an (m, n) array of signs (float64) and returns m values. Every estimate is the mean of independent
samples with the right expectation, so it is unbiased, and its standard error is that of the mean. Memory is bounded:
the function is called with at most ``batch_size`` rows, by default about four million signs. For a
:class:`~sparsact.SparselyActivatedNetwork` a point and all its n neighbours cost little more than the point alone.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Section 2.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.fourier.estimate import Estimate, mean_of
from sparsact.fourier.halfspaces import Unit
from sparsact.fourier.spectrum import Spectrum
from sparsact.hypercube import bits_to_signs, masks_of
from sparsact.network import SparselyActivatedNetwork
from sparsact.stack import Stack
from sparsact.validation.arrays import checked_per_row, checked_subset
from sparsact.validation.parameters import check_named, checked_correlation, checked_generator, checked_size

Function = Callable[[NDArray[np.float64]], Any]
Changes = Callable[[NDArray[np.float64], NDArray[np.bool_]], NDArray[np.float64]]

SIGNS_AT_ONCE: Final = 2**22
FEW_FLIPS: Final = 1 / 32  # share of flipped coordinates below which updating a pre-activation beats computing it again


def values_of(f: Function, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values of a function at the rows of ``X``, checked: finite, one per row."""
    shown = X.view()
    shown.setflags(write=False)  # a function that changes its argument would change the sample
    return checked_per_row(f(shown), len(X), "the function")


def quarter_squares(f: Function, X: NDArray[np.float64], flipped: NDArray[np.intp], rows: int) -> NDArray[np.float64]:
    """Quarter squares of f(x) - f(x^i) for the coordinates ``flipped`` (m, r) of every point, shape (m, r)."""
    values = values_of(f, X)
    point, coordinate = np.repeat(np.arange(len(X)), flipped.shape[1]), flipped.ravel()
    squares = np.empty(len(point))
    for start in range(0, len(point), rows):
        block = slice(start, start + rows)
        Y = X[point[block]]
        Y[np.arange(len(Y)), coordinate[block]] *= -1
        squares[block] = ((values[point[block]] - values_of(f, Y)) / 2) ** 2
    return squares.reshape(flipped.shape)


def changes(f: Function, share: float) -> Changes:
    """The function of points and of flips, both (m, n), that returns f(x) - f(y), (m,); a ``share`` is flipped."""
    if not isinstance(f, SparselyActivatedNetwork) or isinstance(f.W, sp.csr_array) or share >= FEW_FLIPS:
        return lambda X, flipped: values_of(f, X) - values_of(f, np.where(flipped, -X, X))
    columns = np.ascontiguousarray(f.W.T)

    def updated(X: NDArray[np.float64], flipped: NDArray[np.bool_]) -> NDArray[np.float64]:
        before = f.preactivations(X)
        after = before - sp.csr_array(np.where(flipped, 2 * X, 0)) @ columns
        return np.asarray((np.maximum(before, 0) - np.maximum(after, 0)) @ f.u)

    return updated


def estimate_average_sensitivity(
    f: Function,
    n: int | None = None,
    *,
    n_samples: int,
    rng: np.random.Generator,
    n_flips: int | None = None,
    batch_size: int | None = None,
) -> Estimate:
    r"""Estimate of the average sensitivity.

    .. math:: \mathrm{AS}(f) = \mathbb{E}_x\, \tfrac14 \sum_i (f(x) - f(x^{\oplus i}))^2

    Each sample draws a point and ``r = n_flips`` distinct coordinates, uniformly, and is
    :math:`\frac{n}{r} \sum_i q_i(x)` over these, where :math:`q_i(x) = \frac14 (f(x) - f(x^{\oplus i}))^2`.

    Parameters
    ----------
    f : callable
        Takes signs (m, n), returns m values.
    n : int, optional
        Number of coordinates. A network, spectrum, halfspace or neuron knows it, and then it is compared if given.
    n_samples : int
        Number of points, at least 2.
    rng : numpy.random.Generator
        Source of randomness.
    n_flips : int, optional
        Coordinates flipped at each point, from 1 to n; n gives the sensitivity of the point itself. By default 1,
        and n for a network.
    batch_size : int, optional
        Maximum number of rows in one call of ``f``.

    Returns
    -------
    estimate : Estimate
        Value and standard error, float.

    Notes
    -----
    ``n_samples * (1 + n_flips)`` evaluations; for a network with all flips, one product with the weights per sample and
    n operations (or its non-zeros) for each unit that is on or that a flip switches on. A sample has variance
    :math:`\mathrm{Var}_x[\mathrm{sen}_f(x)] + \frac{n^2}{r} \frac{n - r}{n - 1} \mathbb{E}_x \mathrm{Var}_i[q_i(x)]`;
    at r = 1 and values +-1 this is ``AS * (n - AS)``. More flips help most when they are cheaper than a new point.

    Examples
    --------
    Each flip changes a parity, whatever the points:

    >>> parity = lambda X: X.prod(axis=1)
    >>> estimate_average_sensitivity(parity, 100, n_samples=10, rng=np.random.default_rng(0))
    Estimate(value=100.0, standard_error=0.0, n_samples=10)
    """
    n = checked_dimension(f, n)
    rows = _checked_rows(f, n, n_samples, batch_size)
    if isinstance(f, SparselyActivatedNetwork) and n_flips in (None, n):
        return mean_of(kernels.flip_squares(X, f.W, f.u, f.b) for X in _random_points(n, n_samples, rows, rng))
    n_flips = 1 if n_flips is None else n_flips
    checked_size(n_flips, "`n_flips`", maximum=n)

    def samples() -> Iterator[NDArray[Any]]:
        for X in _random_points(n, n_samples, rows, rng):
            flipped = _random_coordinates(len(X), n, n_flips, rng)
            yield n * quarter_squares(f, X, flipped, rows).mean(axis=1)

    return mean_of(samples())


def estimate_influences(
    f: Function, n: int | None = None, *, n_samples: int, rng: np.random.Generator, batch_size: int | None = None
) -> Estimate:
    r"""Estimates of all influences :math:`\mathbb{E}\,\frac14 (f(x) - f(x^{\oplus i}))^2`, arrays of shape (n,).

    Every sample flips all coordinates of one point in turn: ``n_samples * (n + 1)`` evaluations, or for a network the
    cost of its average sensitivity. Estimates of different coordinates share points, hence are not independent.

    Parameters
    ----------
    f, n, n_samples, rng, batch_size
        As in :func:`estimate_average_sensitivity`; None for an ``n`` that the function knows.

    Returns
    -------
    estimate : Estimate
        Values and standard errors, each (n,).

    Examples
    --------
    In a product of two coordinates, these two have influence 1, whatever the points:

    >>> estimate_influences(lambda X: X[:, 0] * X[:, 2], 4, n_samples=10, rng=np.random.default_rng(0)).value
    array([1., 0., 1., 0.])
    """
    n = checked_dimension(f, n)
    rows = _checked_rows(f, n, n_samples, batch_size)
    points = _random_points(n, n_samples, min(rows, max(1, SIGNS_AT_ONCE // n)), rng)
    if isinstance(f, SparselyActivatedNetwork):
        return mean_of((kernels.flip_differences(X, f.W, f.u, f.b) / 2) ** 2 for X in points)
    return mean_of(quarter_squares(f, X, np.broadcast_to(np.arange(n), X.shape), rows) for X in points)


def estimate_noise_sensitivity(
    f: Function, n: int | None, rho: float, *, n_samples: int, rng: np.random.Generator, batch_size: int | None = None
) -> Estimate:
    r"""Estimate of the noise sensitivity :math:`\mathrm{NS}_\rho(f) = \mathbb{E}\,\frac14 (f(x) - f(y))^2`.

    ``y`` is ``x`` with every coordinate flipped with probability ``(1 - rho) / 2``. Takes ``2 * n_samples``
    evaluations, little more than half of that for a network with dense weights if ``rho`` is above 15/16, which is then
    updated from x to y. For values +-1 a sample has variance ``NS * (1 - NS)``.

    Parameters
    ----------
    f, n, n_samples, rng, batch_size
        As in :func:`estimate_average_sensitivity`; None for an ``n`` that the function knows.
    rho : float in [-1, 1]
        Correlation of x and y.

    Returns
    -------
    estimate : Estimate
        Value and standard error, float.

    Examples
    --------
    A single coordinate is another after noise with probability (1 - 0.8) / 2:

    >>> found = estimate_noise_sensitivity(lambda X: X[:, 0], 3, 0.8, n_samples=4000, rng=np.random.default_rng(0))
    >>> abs(found.value - 0.1) < 5 * found.standard_error
    True
    """
    flip_probability = (1 - checked_correlation(rho)) / 2
    n = checked_dimension(f, n)
    rows = _checked_rows(f, n, n_samples, batch_size)
    change = changes(f, flip_probability)
    return mean_of(
        (change(X, rng.random(X.shape) < flip_probability) / 2) ** 2 for X in _random_points(n, n_samples, rows, rng)
    )


def estimate_coefficient(
    f: Function,
    subset: Iterable[int],
    n: int | None = None,
    *,
    n_samples: int,
    rng: np.random.Generator,
    batch_size: int | None = None,
) -> Estimate:
    r"""Estimate of the Fourier coefficient :math:`\hat f(S) = \mathbb{E}[f(x) \chi_S(x)]` of one subset.

    ``n_samples`` evaluations; a sample has variance :math:`\|f\|_2^2 - \hat f(S)^2`.

    Parameters
    ----------
    f, n, n_samples, rng, batch_size
        As in :func:`estimate_average_sensitivity`; None for an ``n`` that the function knows.
    subset : iterable of int
        S.

    Returns
    -------
    estimate : Estimate
        Value and standard error, float.

    Examples
    --------
    >>> product = lambda X: 3 * X[:, 2] * X[:, 7]
    >>> estimate_coefficient(product, (2, 7), 50, n_samples=10, rng=np.random.default_rng(0)).value
    3.0
    """
    members = checked_subset(subset)
    n = checked_dimension(f, n)
    rows = _checked_rows(f, n, n_samples, batch_size)
    masks_of([members], n)  # validates the coordinates
    return mean_of(X[:, list(members)].prod(axis=1) * values_of(f, X) for X in _random_points(n, n_samples, rows, rng))


def _random_points(n: int, n_samples: int, rows: int, rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    checked_generator(rng)
    for start in range(0, n_samples, rows):
        bits = rng.integers(2, size=(min(rows, n_samples - start), n), dtype=np.int8)
        yield bits_to_signs(bits).astype(np.float64)


def _random_coordinates(m: int, n: int, r: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """``r`` distinct coordinates for each of m points, (m, r)."""
    if r == 1:
        return rng.integers(n, size=(m, 1), dtype=np.intp)
    if r == n:
        return np.broadcast_to(np.arange(n), (m, n))
    return np.argpartition(rng.random((m, n)), r, axis=1)[:, :r]


def _checked_rows(f: Function, n: int, n_samples: int, batch_size: int | None) -> int:
    """Rows of one batch."""
    check_named(n_samples=n_samples)
    width = max(n, f.s) if isinstance(f, SparselyActivatedNetwork) else n
    return max(1, SIGNS_AT_ONCE // width) if batch_size is None else checked_size(batch_size, "`batch_size`")


def checked_dimension(f: Function, n: int | None) -> int:
    """Number of coordinates of ``f``, its own or the caller's."""
    if not callable(f):
        raise TypeError(
            f"the function must be callable on signs (m, n); got {type(f).__name__}: a table of values needs no "
            "sample, pass it to sparsact.fourier.Spectrum.of."
        )
    known = f.n if isinstance(f, SparselyActivatedNetwork | Stack | Spectrum | Unit) else n
    if known is None:
        raise ValueError("pass `n`, the number of coordinates: it cannot be read off a function.")
    checked_size(known if n is None else n, "`n`")
    if n not in (None, known):
        raise ValueError(f"n = {n}, but the function has {known} coordinates; leave `n` out.")
    return known
