"""StackRegressor: least squares among stacks of layers that are sparse on the rows."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsact.kernels.dispatch import blas_threads
from sparsact.learners.sparsely_activated.estimator import SparselyActivatedModel, distinct_rows, generator_of
from sparsact.learners.sparsely_activated.held_out import Descended
from sparsact.learners.sparsely_activated.leaf_models import Array
from sparsact.learners.sparsely_activated.regressor import SparselyActivatedRegressor
from sparsact.learners.sparsely_activated.stack_search import StackSearch
from sparsact.network import SparselyActivatedNetwork
from sparsact.saving import modelfile, schema
from sparsact.saving.schema import Arrays, Checks, State
from sparsact.stack import Stack
from sparsact.statistics.units import exponents_of
from sparsact.transaction import locked, transaction
from sparsact.validation.estimators import checked_rows
from sparsact.validation.parameters import checked_size

if TYPE_CHECKING:
    from sparsact.certificate import StackCertificate

LAYER_RESTARTS: Final = 2  # of the fit of one layer
_LEARNED: Final[Checks] = {
    "n_features_in_": schema.as_count,
    "encoding_": schema.as_encoding,
    "n_iter_": schema.as_count,
}


class StackRegressor(RegressorMixin, SparselyActivatedModel):  # type: ignore[misc] # untyped scikit-learn
    r"""Least squares among stacks of sparsely activated layers.

    .. math:: h(x) = \langle u, a_L \rangle, \qquad a_l = \sigma(W_l\, a_{l-1} + V_l\, x - b_l), \qquad a_0 = x,

    with at most k_l units of layer l on at any training input. Stacks of random units, of which all layers descend
    together, and one layer with all units are fitted to most rows. The stack with the least error on those held out is
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
    domain : {"auto", "cube", "real"}, default="auto"
        As in :class:`SparselyActivatedRegressor`.
    random_state : int, RandomState or None, default=None
        Of the split and the starts.
    verbose : int, default=0
        Print the error of each search on the rows held out.

    Attributes
    ----------
    stack_ : Stack
        The stack; over signs when X was bits. It has one layer, of at most ``sum(n_units)`` units with at most
        ``sum(max_active)`` on, unless the least error of stacks on the rows held out
        is below half of its own.
    loss_ : float
        Weighted mean squared error on the rows fitted.
    n_iter_ : int
        Iterations of the joint descents of the stack, one at least.
    domain_, encoding_ : str
        ``"cube"`` or ``"real"``; ``"signs"``, ``"bits"`` or None.
    n_features_in_ : int
        Columns.

    Notes
    -----
    Depth pays where gates depend on computed features, such as parities; see the documentation. Rows of weight zero are
    left out. A stack has no constant: targets that lie far from 0 need a unit at every row, and are learned less well.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_units": ["array-like"],
        "max_active": ["array-like"],
        "n_restarts": [Interval(Integral, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": SparselyActivatedModel._parameter_constraints["tol"],
        "domain": [StrOptions({"auto", "cube", "real"})],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_units: tuple[int, ...] = (32, 32),
        max_active: tuple[int, ...] = (2, 1),
        *,
        n_restarts: int = 3,
        max_iter: int = 200,
        tol: float = 1e-8,
        domain: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_units = n_units
        self.max_active = max_active
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.tol = tol
        self.domain = domain
        self.random_state = random_state
        self.verbose = verbose

    @blas_threads(0)  # thousands of small products
    @transaction
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Fit to rows X (m, n), targets y (m,) and weights (m,)."""
        self._validate_params()
        sizes, ks = _layer_sizes(self.n_units, self.max_active)
        rng = generator_of(self.random_state)
        rows, given, weights = distinct_rows(*self._rows(X, y, sample_weight))
        exponent = int(exponents_of(given))
        targets = np.ldexp(given, -exponent)  # squares of any numbers are then numbers
        one_layer = SparselyActivatedRegressor(
            sum(sizes),
            sum(ks),
            n_restarts=LAYER_RESTARTS,
            max_iter=self.max_iter,
            tol=self.tol,
            domain=self.domain_,
            random_state=int(rng.integers(2**31 - 1)),
        )

        def fit(X: Array, y: Array, weights: Array) -> SparselyActivatedNetwork:
            return one_layer.fit(X, y, sample_weight=weights).network_

        search = StackSearch(rows, targets, weights, sizes, ks, self.max_iter, fit, rng)
        for start in [search.random, search.shallow, *[search.random] * self.n_restarts]:
            self._report(start())
            if search.done(self.tol):
                break
        best, self.n_iter_ = search.best()
        self.stack_ = Stack(np.ldexp(best.u, exponent), best.layers)
        error = weights @ (best(rows) - targets) ** 2 / weights.sum()
        with np.errstate(over="ignore"):
            self.loss_ = float(np.ldexp(error, 2 * exponent))

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predicted targets, (m,)."""
        check_is_fitted(self)
        finite = self.encoding_ is None
        return self.stack_(self._inputs(checked_rows(self, X, reset=False, dtype="numeric", ensure_all_finite=finite)))

    @property
    def domain_(self) -> str:
        """``"cube"`` or ``"real"``: what the fitted rows are."""
        return "real" if self.encoding_ is None else "cube"

    @property
    def cube_certificate_(self) -> StackCertificate:
        """The most units of each layer that any point of the cube switches on, as ``stack_.certify()`` finds it."""
        check_is_fitted(self)
        if self.domain_ == "real":
            raise AttributeError('a model of real columns has no certificate over the cube; fit with domain="cube".')
        return self.stack_.certify()

    @locked
    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, which :func:`sparsact.load` reads back."""
        check_is_fitted(self)
        state = schema.learned_state(self, _LEARNED) | {"params": schema.params_of(self), "depth": self.stack_.depth}
        modelfile.write(path, type(self).__name__, state, self.stack_._arrays() | {"loss": np.array([self.loss_])})

    @classmethod
    def _from_file(cls, state: State, arrays: Arrays) -> Self:
        """The regressor that :meth:`save` wrote."""
        learner: Self = schema.rebuild(cls, state, _LEARNED)
        learner.stack_, learner.loss_ = Stack._from_file(state, arrays), float(arrays["loss"][0])
        if learner.stack_.n != learner.n_features_in_:
            raise ValueError(f"a stack of {learner.stack_.n} inputs for {learner.n_features_in_} columns")
        return learner

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "stack_")

    def _report(self, found: Descended[Stack]) -> None:
        if self.verbose:
            print(f"{type(self).__name__}: {found.origin}: mean squared error {found.error:.4g} on rows held out")


def _layer_sizes(n_units: Any, max_active: Any) -> tuple[list[int], list[int]]:
    sizes = [checked_size(s, "`n_units`") for s in n_units]
    ks = [checked_size(k, "`max_active`") for k in max_active]
    if not sizes or len(sizes) != len(ks):
        raise ValueError(
            f"`n_units` and `max_active` have a number for each layer; got {len(sizes)} and {len(ks)} of them."
        )
    return sizes, ks
