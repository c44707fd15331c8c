r"""How much a stack of sparsely activated layers can change under flips: proved from its weights and its sparsity.

With :math:`k_l` units of layer l active at most, :math:`\Delta_i f = f(x) - f(x^{\oplus i})`, and x uniform, bounds of
:math:`\|\Delta_i a_l\|` at every point, of :math:`\mathbb{E} \|\Delta_i a_l\|^2` and of :math:`\mathbb{E} \|a_l\|^2` go
from layer to layer. Each step takes the least of what the weights allow and of what the sizes of the outputs allow. The
proofs are in the documentation, "Average sensitivity of stacks".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.stack import Array, Stack, largest, most_outputs
from sparsact.validation.parameters import checked_size

RATES: Final = np.exp(np.linspace(log(1e-2), log(1e2), 80))  # of Chernoff's bound, over the norm of the weights


@dataclass(frozen=True, eq=False)
class StackSensitivity:
    r"""Proved bounds of a stack h on the cube.

    Attributes
    ----------
    average : float
        Bound of the average sensitivity :math:`\mathbb{E} \frac14 \sum_i (h(x) - h(x^{\oplus i}))^2`.
    influences : ndarray of shape (n,)
        Bounds of each :math:`\mathbb{E} \frac14 (h(x) - h(x^{\oplus i}))^2`.
    changes : ndarray of shape (n,)
        Bounds of :math:`|h(x) - h(x^{\oplus i})|` at every point.
    second_moment : float
        Bound of :math:`\mathbb{E}\, h(x)^2`.
    lowest, highest : float
        Bounds of all values.
    """

    average: float
    influences: Array
    changes: Array
    second_moment: float
    lowest: float
    highest: float


def stack_sensitivity(stack: Stack, active: Sequence[int] | None = None) -> StackSensitivity:
    r"""Bounds of the sensitivity of a stack, *proved* for every uniform input, at any n.

    Parameters
    ----------
    stack : Stack
        Stack of L layers on n inputs.
    active : sequence of L integers, optional
        Most units of each layer active at any point, as ``stack.certify().upper`` proves; by default all units.

    Returns
    -------
    bounds : StackSensitivity

    Notes
    -----
    Where the spectrum is exact (n <= 24), ``Spectrum.of(stack).total_influence()`` is the average sensitivity itself,
    and ``estimate_average_sensitivity`` comes close to it at any n; this is a proof where neither serves. It is never
    above :math:`4 k^2 W^2` for one layer, nor above :math:`(\sum_l (2k)^{L-l+1} U \omega_l v_{l+1} \cdots v_L)^2` for
    more (largest norms :math:`\omega_l` of weights on inputs, and largest weights :math:`v_l` between layers). It still
    counts all paths as if their signs agreed: expect a factor of about 10 for one layer, and of 10 to 30 more for each
    further one. Takes :math:`O(n \sum_l s_l s_{l-1})` steps.

    Examples
    --------
    The bound of one layer is attained:

    >>> stack_sensitivity(Stack([1, -1], [([[1], [-1]], [-1, -1])]), [1]).average
    4.0
    """
    ks = _checked(stack, active)
    most = [np.minimum(each, np.finfo(np.float64).max) for each in most_outputs(stack, ks)]
    pairs = [min(2 * k, s) for k, s in zip(ks, stack.n_units, strict=True)]  # units on at one of two points
    moment, change, norm, mean = 0.0, np.zeros((0, 0)), np.zeros(0), np.zeros(0)
    factors, directs = list[float](), list[Array]()
    for level, layer in enumerate(stack.layers):
        on_inputs = layer.W if not level else np.zeros((len(layer.b), stack.n)) if layer.V is None else layer.V
        k, pair = ks[level], pairs[level]
        direct = _norms(2 * np.abs(on_inputs).T, pair)
        directs.append(np.abs(on_inputs) * 2)
        if not level:
            factors.append(0.0)
            moment = float(_second_moments(layer.W, layer.b, most[0]).sum())
            each, norm, mean = directs[-1], direct, direct
        else:
            pair_below = pairs[level - 1]
            along = largest(np.abs(layer.W)[:, None, :] * change.T, pair_below).sum(axis=2)
            rows = _norms(layer.W, pair_below)[:, None] * norm
            each = directs[-1] + np.minimum(along, rows)
            factors.append(restricted_norm(layer.W, pair, pair_below))
            norm, mean = direct + factors[-1] * norm, direct + factors[-1] * mean
            own = np.maximum(np.abs(on_inputs).sum(axis=1) - layer.b, 0)
            from_below = restricted_norm(layer.W, k, ks[level - 1]) * moment**0.5
            moment = (float(_norms(own, k)) + from_below) ** 2
        moment = min(moment, float(_norms(most[level], k)) ** 2)
        change = np.minimum(each, most[level][:, None])
        norm = np.minimum(norm, _norms(change.T, pair))
        mean = np.minimum.reduce([mean, norm, np.full(stack.n, (2 * moment) ** 0.5)])
    size = float(_norms(stack.u, pairs[-1]))
    second = float(_norms(stack.u, ks[-1])) ** 2 * moment
    highest, lowest = (float(largest(np.maximum(sign * stack.u * most[-1], 0), ks[-1]).sum()) for sign in (1, -1))
    along_u = largest(np.abs(stack.u) * change.T, pairs[-1]).sum(axis=1)
    changes = np.minimum.reduce([along_u, size * norm, np.full(stack.n, highest + lowest)])
    influences = np.minimum.reduce([changes**2, (size * mean) ** 2, np.full(stack.n, 4 * second)]) / 4
    average = min(float(influences.sum()), _together(influences, directs, factors, ks, size))
    return StackSensitivity(average, influences, changes, second, -lowest, highest)


def _checked(stack: Stack, active: Sequence[int] | None) -> list[int]:
    if not isinstance(stack, Stack):
        raise TypeError(f"these bounds take a Stack; got {type(stack).__name__}.")
    given = stack.n_units if active is None else active
    if len(given) != stack.depth:
        raise ValueError(f"`active` needs a number for each of the {stack.depth} layers; got {len(given)}.")
    return [checked_size(k, "`active`", minimum=0, maximum=s) for k, s in zip(given, stack.n_units, strict=True)]


def _norms(values: Array, k: int) -> NDArray[np.float64]:
    """Euclidean norm of the k largest magnitudes of each row."""
    return np.asarray(np.sqrt((largest(np.abs(values), k) ** 2).sum(axis=-1)))


def restricted_norm(W: Array, n_rows: int, n_columns: int) -> float:
    r"""Bound on the spectral norm of every submatrix of W with the given numbers of rows and columns.

    The least of the spectral norm of W itself, of Frobenius norms of the largest entries, and of Schur's
    :math:`(\max_i \sum_j |w_{ij}| \max_j \sum_i |w_{ij}|)^{1/2}`.
    """
    by_rows, by_columns = _norms(W, n_columns), _norms(W.T, n_rows)
    row_sums, column_sums = (largest(np.abs(M), k).sum(axis=1) for M, k in ((W, n_columns), (W.T, n_rows)))
    schur = float(row_sums.max(initial=0) * column_sums.max(initial=0)) ** 0.5
    spectral = float(np.linalg.norm(W, 2)) if W.size else 0.0
    return float(min(spectral * (1 + 1e-9), _norms(by_rows, n_rows), _norms(by_columns, n_columns), schur))


def _second_moments(W: Array, b: Array, most: Array) -> Array:
    r"""Bounds (s,) of :math:`\mathbb{E} \sigma(z_j)^2` under uniform inputs, for the first layer.

    For every rate :math:`\lambda > 0`, :math:`\sigma(z)^2 \le (2/(e\lambda))^2 e^{\lambda z}`, and the mean of the
    exponential is a product of hyperbolic cosines.
    """
    norms = np.sqrt((W**2).sum(axis=1))
    scale = np.where(norms > 0, norms, 1.0)
    least = np.full(len(b), np.inf)
    for rate in RATES:
        terms = np.abs(W) * (rate / scale)[:, None]
        cosh = (terms + np.log1p(np.exp(-2 * terms)) - log(2)).sum(axis=1)
        least = np.minimum(least, 2 * (log(2) - 1 - np.log(rate / scale)) - rate / scale * b + cosh)
    with np.errstate(over="ignore"):
        return np.asarray(np.minimum(np.exp(least) * (1 + 1e-9), most**2))


def _together(influences: Array, directs: list[Array], factors: list[float], ks: list[int], size: float) -> float:
    """Bound on the sum of all influences: the largest bounds one by one, the others in one sum.

    In one sum, weights on the inputs count by norms of units.
    """
    order = np.argsort(-influences)
    one_by_one = np.concatenate([[0.0], np.cumsum(influences[order])])
    root = np.zeros(len(order) + 1)
    for direct, factor, k in zip(directs, factors, ks, strict=True):
        squares = np.zeros((len(direct), len(order) + 1))
        squares[:, :-1] = np.cumsum(direct[:, order[::-1]] ** 2, axis=1)[:, ::-1]
        root = np.sqrt(2 * largest(squares.T, k).sum(axis=1)) + factor * root
    return float((one_by_one + (size * root) ** 2 / 4).min())
