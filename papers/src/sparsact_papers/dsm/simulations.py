"""Section 3 of paper B as constructors: other models, written as one DSM each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparsact.kernels import bucket_statistics, hashing
from sparsact.routing import EMPTY, BlockTop1, Interpolation, Nearest, Selection, Switch
from sparsact.validation.arrays import checked_reals
from sparsact_papers.dsm.model import DSM, Array, Units


def from_interpolation(points: ArrayLike, values: ArrayLike) -> DSM:
    r"""The DSM(d, 1, t) that has given values at t points, and 0 elsewhere (Section 3).

    :math:`\phi(x) = Bx` with rows :math:`b_i = x_i`, and :math:`A_i = f(x_i) / \langle b_i, x_i \rangle`. Mended: the
    paper leaves B free, but the inner product must not be zero.

    Parameters
    ----------
    points : array-like of shape (t, d)
        Different points, none of them zero.
    values : array-like of shape (t,) or (t, outputs)

    Returns
    -------
    g : DSM

    Examples
    --------
    >>> g = from_interpolation([[1.0, 2.0], [0.0, 3.0]], [5.0, 7.0])
    >>> g([[0.0, 3.0], [1.0, 2.0]])[:, 0]
    array([7., 5.])
    """
    state = Interpolation.state_of(points)
    B = state["points"]
    router = Interpolation(len(B))
    squares = (B * B).sum(axis=1)
    if not squares.all():
        zero = int(np.argmin(squares))
        raise ValueError(f"point {zero} is zero, so no feature <b, x> sees it; shift the points.")
    A = _outputs(values, len(B)) / squares[:, None]
    return DSM(B.shape[1], lambda X, units: _products(X, B, units), lambda X: router(X, state), A)


def from_nearest(points: ArrayLike, values: ArrayLike, k: int) -> DSM:
    r"""The DSM(d, k, t) that equals regression by the k nearest of t points (Section 3).

    :math:`A = (f(b_1), \ldots, f(b_t)) / k` and :math:`\phi = 1`; the mask has the k nearest by Euclidean distance.
    For unit vectors these are the k largest entries of Bx, as the paper has it (:math:`\|x - b\|^2 = 2 - 2 \langle x, b
    \rangle`; printed without its square).

    Parameters
    ----------
    points : array-like of shape (t, d)
    values : array-like of shape (t,) or (t, outputs)
    k : int

    Returns
    -------
    g : DSM
        With one unit a point, k of them on.

    Examples
    --------
    >>> g = from_nearest([[0.0], [1.0], [5.0]], [2.0, 4.0, 30.0], k=2)
    >>> g([[0.4]])[:, 0], g.n_active([[0.4]])
    (array([3.]), array([2]))
    """
    state = Nearest.state_of(points)
    centres = state["centres"]
    router = Nearest(k, len(centres))
    A = _outputs(values, len(centres)) / k
    return DSM(centres.shape[1], _one, lambda X: router(X, state), A)


def from_switch(router: Switch, gate: ArrayLike, W: ArrayLike, b: ArrayLike, A: ArrayLike) -> DSM:
    r"""The DSM(d, s, sL) of a Switch layer with L experts of s ReLU units each (Section 3.1).

    Unit (l, j) is :math:`\mathrm{relu}(\langle w_{lj}, x \rangle + b_{lj})`; the mask is the block of the expert that
    the gate chooses, with its probability as the weight. Routed as outside of training.

    Parameters
    ----------
    router : Switch
    gate : array-like of shape (L, d)
    W, b : array-likes of shape (L, s, d) and (L, s)
    A : array-like of shape (L, s, outputs)

    Returns
    -------
    g : DSM
        With s units per expert; the units of one expert are on.

    Examples
    --------
    Two experts of one unit, relu(x) and relu(-x); a gate of this size is sure:

    >>> g = from_switch(Switch(2), [[50.0], [-50.0]], [[[1.0]], [[-1.0]]], [[0.0], [0.0]], [[[1.0]], [[1.0]]])
    >>> g([[2.0], [-3.0]])[:, 0], g.n_active([[2.0], [-3.0]])
    (array([2., 3.]), array([1, 1]))
    """
    W, b, A = checked_reals(W, "`W`"), checked_reals(b, "`b`"), checked_reals(A, "`A`")
    if W.ndim != 3 or b.shape != W.shape[:2] or A.ndim != 3 or A.shape[:2] != W.shape[:2]:
        raise ValueError(
            f"W (L, s, d), b (L, s) and A (L, s, outputs) must agree; got {W.shape}, {b.shape}, {A.shape}."
        )
    n_experts, s, d = W.shape
    state = {"gate": checked_reals(gate, "`gate`")}
    if state["gate"].shape != (n_experts, d) or router.n_experts != n_experts:
        raise ValueError(f"the gate must have shape ({n_experts}, {d}), and the router {n_experts} experts.")
    below, bias = W.reshape(-1, d), b.ravel()
    return DSM(
        d,
        lambda X, units: np.maximum(_products(X, below, units) + bias[units], 0.0),
        lambda X: router(X, state).expand(s),
        A.reshape(n_experts * s, -1),
    )


def from_scaling(router: BlockTop1, down: ArrayLike, up: ArrayLike, W: ArrayLike, b: ArrayLike, A: ArrayLike) -> DSM:
    r"""The DSM(d, s, t) of a Scaling Transformer's layer: one ReLU unit on in each of s blocks (Section 3.1).

    Parameters
    ----------
    router : BlockTop1
    down, up : array-likes of shape (rank, d) and (t, rank)
    W, b : array-likes of shape (t, d) and (t,)
    A : array-like of shape (t, outputs)

    Returns
    -------
    g : DSM
        With one unit of each block on.

    Examples
    --------
    One block of two units: the controller chooses relu(x) where x > 0, and relu(-x) elsewhere:

    >>> W = [[1.0], [-1.0]]
    >>> g = from_scaling(BlockTop1(1, 2), [[1.0]], W, W, [0.0, 0.0], [1.0, 10.0])
    >>> g([[2.0], [-3.0]])[:, 0]
    array([ 2., 30.])
    """
    W, b = checked_reals(W, "`W`"), checked_reals(b, "`b`")
    state = {"down": checked_reals(down, "`down`"), "up": checked_reals(up, "`up`")}
    if W.ndim != 2 or b.shape != W.shape[:1] or len(W) != router.width(W.shape[1]):
        raise ValueError(f"W (t, d) and b (t,) must have the router's units; got shapes {W.shape} and {b.shape}.")
    if state["down"].shape[1:] != W.shape[1:] or state["up"].shape != (len(W), len(state["down"])):
        raise ValueError("down (rank, d) and up (t, rank) do not fit together, or not to W.")
    return DSM(
        W.shape[1],
        lambda X, units: np.maximum(_products(X, W, units) + b[units], 0.0),
        lambda X: router(X, state),
        _outputs(A, len(W)),
    )


def from_lsh(model: Any) -> DSM:
    r"""The DSM of a fitted :class:`~sparsact.LSHRegressor`: a unit for each coefficient of each bucket (Section 3.2).

    With s tables and D coefficients a bucket, sD of the units that belong to buckets are on; a polynomial of degree 0
    has D = 1 and :math:`\phi = 1`. What the regressor adds to the paper's model is in :math:`\phi` too: the average by
    weight of rows, :math:`n_b / \sum_{b'} n_{b'}` over the buckets of x, and d + 1 units that are always on, for level
    and trend. An input whose buckets are all empty has these alone.

    Parameters
    ----------
    model : LSHRegressor

    Returns
    -------
    g : DSM
        Equal to the model wherever a bucket answers, but that values are not clipped to the range of the targets.

    Raises
    ------
    ValueError
        If the model has several stages or trees beneath its tables, or leaves columns out: it is not the paper's then.

    Examples
    --------
    >>> from sparsact import LSHRegressor
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> model = LSHRegressor(2, random_state=0).fit(X, np.abs(X[:, 0]))
    >>> bool(np.allclose(from_lsh(model)(X)[:, 0], model.predict(X)))
    True
    """
    if model.n_stages_ > 1 or model.base == "trees" or len(model.columns_) < model.n_features_in_:
        raise ValueError(
            "a DSM simulates the tables of one stage over all columns; "
            'fit with n_stages=1, columns="all" and base="linear" or "constant".'
        )
    predictor = model.predictor()
    table = predictor.table
    layout, index = table.layout, table.index
    solution = table.solved(predictor.alpha, predictor.policy.min_count)
    d, D, n_own = layout.n_columns, layout.n_features, layout.n_columns + 1
    A = np.concatenate([layout.level[None], layout.trend, solution.coefficients.reshape(-1, layout.n_targets)])

    def route(X: Array) -> Selection:
        ids = index.find(hashing.places(X, layout.hashes).keys).astype(np.int64)
        ids = np.where((ids >= 0) & (_at(solution.weights, ids) > 0), ids, EMPTY)
        units = np.where(ids[:, :, None] == EMPTY, EMPTY, n_own + ids[:, :, None] * D + np.arange(D))
        always = np.broadcast_to(np.arange(n_own), (len(X), n_own))
        places = np.concatenate([always, units.reshape(len(X), -1)], axis=1)
        return Selection.of(places, (places != EMPTY).astype(np.float64), len(A))

    def features(X: Array, units: Units) -> Array:
        found = hashing.places(X, layout.hashes)
        own = np.concatenate([np.ones((len(X), 1)), X - layout.hashes.centre], axis=1)
        values = np.take_along_axis(own, np.minimum(units, d), axis=1)
        ids = index.find(found.keys).astype(np.int64)
        weight = np.where(ids >= 0, _at(solution.weights, ids), 0.0)
        total = weight.sum(axis=1, keepdims=True)
        share = weight / np.where(total > 0, total, 1.0)
        polynomials = bucket_statistics.features(found.V, layout.degree)  # (m, tables or 1, D)
        for t in range(layout.n_tables):
            place = units - n_own - ids[:, t : t + 1] * D
            mine = (ids[:, t : t + 1] >= 0) & (place >= 0) & (place < D)
            own_values = np.take_along_axis(polynomials[:, t % polynomials.shape[1]], np.clip(place, 0, D - 1), axis=1)
            values = np.where(mine, own_values * share[:, t : t + 1], values)
        return values  # of a bucket that x is not in, a value of no meaning: the mask is 0 there

    return DSM(d, features, route, np.ascontiguousarray(A))


def _at(weights: Array, ids: Units) -> Array:
    return weights[ids] if len(weights) else np.zeros(ids.shape)


def _one(X: Array, units: Units) -> Array:
    return np.ones(units.shape)


def _products(X: Array, B: Array, units: Units) -> Array:
    """<x_i, b_u> for the units asked for."""
    return np.asarray(np.take_along_axis(X @ B.T, units, axis=1))


def _outputs(values: ArrayLike, t: int) -> Array:
    array = checked_reals(values, "values")
    if array.ndim not in (1, 2) or len(array) != t:
        raise ValueError(f"there must be one value, or one row of outputs, for each of {t} units; got {array.shape}.")
    return array.reshape(t, -1).copy()
