"""StackRegressor: least squares among stacks of layers that are sparse on the rows."""

from __future__ import annotations

from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sparsact.kernels.dispatch import blas_threads
from sparsact.learners.sparsely_activated import SparselyActivatedRegressor
from sparsact.learners.sparsely_activated.estimator import distinct_examples, generator_of
from sparsact.learners.sparsely_activated.leaf_models import Array
from sparsact.network import SparselyActivatedNetwork
from sparsact.stack import Stack
from sparsact.statistics.column_scales import exponents_of
from sparsact.validation.estimators import checked_rows
from sparsact.validation.parameters import checked_positive, checked_size
from sparsact_papers.stacks.search import StackSearch

LAYER_RESTARTS: Final = 2  # of the fit of one layer


class StackRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn ships no types
    r"""Least squares among stacks of sparsely activated layers.

    .. math:: h(x) = \langle u, a_L \rangle, \qquad a_l = \sigma(W_l\, a_{l-1} + V_l\, x - b_l), \qquad a_0 = x,

    with at most k_l units of layer l on at any training input. Stacks of random units, whose layers all descend
    together, and one layer with all units are fitted to most rows. The stack with the least error on rows held out is
    fitted to all rows, or one layer is, where that error is not below half of its own. Membership is exact; the minimum
    is that of a search.

    Parameters
    ----------
    n_units : sequence of int, default=(32, 32)
        The most units of each layer, from the bottom up.
    max_active : sequence of int, default=(2, 1)
        The most units of each layer that any training input may switch on.
    n_restarts : int, default=3
        Searches from random units after the first of them and that for one layer, until two good ones agree.
    max_iter : int, default=200
        Iterations of L-BFGS of each layer's own fit, and for each two of five penalties of the joint descent.
    tol : float, default=1e-8
        The search ends at an error of this share of the variance on the rows held out.
    random_state : int, RandomState or None, default=None
        Seed of the split and the starts.

    Attributes
    ----------
    stack_ : Stack
        The stack; it has a ``save`` of its own, and a ``certify`` for the cube. It has one layer, of at most
        ``sum(n_units)`` units with at most ``sum(max_active)`` on, unless the least error of stacks on the rows held
        out is below half of its own.
    loss_ : float
        Mean squared error on the rows fitted.
    n_iter_ : int
        Iterations of the joint descents of the stack, one at least.
    n_features_in_ : int
        Columns.

    Notes
    -----
    Depth pays where gates depend on computed features, such as parities; see the documentation of ``sparsact``.

    Examples
    --------
    The parity of two signs chooses one of two others:

    >>> from sparsact.hypercube import points
    >>> X = points(6)
    >>> y = np.where(X[:, 0] == X[:, 1], X[:, 2], X[:, 3]) + 1
    >>> model = StackRegressor((8, 8), (2, 2), random_state=0).fit(X, y)
    >>> bool((model.stack_.n_active(X) <= 2).all()), bool(model.loss_ < 1e-6)
    (True, True)
    """

    def __init__(
        self,
        n_units: tuple[int, ...] = (32, 32),
        max_active: tuple[int, ...] = (2, 1),
        *,
        n_restarts: int = 3,
        max_iter: int = 200,
        tol: float = 1e-8,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_units = n_units
        self.max_active = max_active
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @blas_threads(0)  # thousands of small products
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows X (m, n), of signs or of numbers, and targets y (m,)."""
        sizes, ks = _layer_sizes(self.n_units, self.max_active)
        n_restarts, max_iter = (
            checked_size(self.n_restarts, "`n_restarts`", 0),
            checked_size(self.max_iter, "`max_iter`"),
        )
        tol, rng = checked_positive(self.tol, "`tol`"), generator_of(self.random_state)
        checked, targets = checked_rows(self, X, y, dtype=np.float64, y_numeric=True)
        rows, given, weights = distinct_examples(checked, targets, np.ones(len(checked)))
        exponent = int(exponents_of(given))
        targets = np.ldexp(given, -exponent)  # squares of any numbers are then numbers
        one_layer = SparselyActivatedRegressor(
            sum(sizes),
            sum(ks),
            n_restarts=LAYER_RESTARTS,
            max_iter=max_iter,
            tol=tol,
            domain="cube" if (np.abs(rows) == 1).all() else "real",  # bits would be taken for signs
            random_state=int(rng.integers(2**31 - 1)),
        )

        def fit(X: Array, y: Array, weights: Array) -> SparselyActivatedNetwork:
            return one_layer.fit(X, y, sample_weight=weights).network_

        search = StackSearch(rows, targets, weights, sizes, ks, max_iter, fit, rng)
        for start in [search.random, search.shallow, *[search.random] * n_restarts]:
            start()
            if search.done(tol):
                break
        best, self.n_iter_ = search.best()
        self.stack_ = Stack(np.ldexp(best.u, exponent), best.layers)
        error = weights @ (best(rows) - targets) ** 2 / weights.sum()
        with np.errstate(over="ignore"):
            self.loss_ = float(np.ldexp(error, 2 * exponent))
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predicted targets, (m,)."""
        check_is_fitted(self)
        return self.stack_(checked_rows(self, X, reset=False, dtype=np.float64))


def _layer_sizes(n_units: Any, max_active: Any) -> tuple[list[int], list[int]]:
    sizes = [checked_size(s, "`n_units`") for s in n_units]
    ks = [checked_size(k, "`max_active`") for k in max_active]
    if not sizes or len(sizes) != len(ks):
        raise ValueError(
            f"`n_units` and `max_active` have a number for each layer; got {len(sizes)} and {len(ks)} of them: pass as "
            "many of one as of the other."
        )
    return sizes, ks
