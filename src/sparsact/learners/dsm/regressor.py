"""DSMRegressor: a frozen bottom layer, a mask, and a top layer fitted in closed form or by RMSProp."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sparsact.learners.constraints import COUNT, DECAY, NONNEGATIVE, POSITIVE, one_of
from sparsact.learners.dsm.features import NAMES, Bottom, SparseLayer, check_router, entropy, router_of, stream
from sparsact.learners.dsm.fitted import FittedDSM, check_differences, check_size, units_of
from sparsact.learners.dsm.training import RidgeStatistic, RMSProp, TopLayer, add_rows, features_by_rows
from sparsact.routing import Router
from sparsact.statistics.centred import about_mean
from sparsact.transaction import transaction
from sparsact.validation.arrays import check_row_weights
from sparsact.validation.estimators import checked_rows, checked_sample_weight

Array = NDArray[np.float64]


def _is_additive(learner: DSMRegressor) -> bool:
    if learner.solver != "ridge":
        raise AttributeError(
            'only solver="ridge" keeps sums that can be merged; training depends on the order of rows.'
        )
    return True


@dataclass(eq=False, repr=False)
class DSMRegressor(FittedDSM, MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc] # untyped base
    r"""A data-dependent sparse model: a mask keeps s of t units for each input, and a linear layer reads them.

    .. math:: g(x) = (A \circ \operatorname{mask}(x))\, \phi(x), \qquad
              \phi(x) = \operatorname{act}(B (x - \bar x) + c),

    the class DSM(d, s, t) of [B]_ (Section 2.1), about the mean :math:`\bar x` of the rows of the first call: the
    paper's lie about the origin. The bottom layer (B, c) is drawn once and never trained; the top layer A is. What the
    paper's experiments (Appendix A.1) leave open is a parameter here.

    Parameters
    ----------
    n_units : int, default=1024
        Number of units t.
    n_active : int, default=256
        Number s of active units per input.
    router : str or Router, default="top_k"
        What chooses them. ``"top_k"``: the largest pre-activations, of equal ones the first. ``"random_hash"``: a hash
        of the input's bits. ``"nearest"``: the nearest of random centres. ``"block_top1"``: one of each of ``n_active``
        blocks. ``"hyperplane_lsh"``: a bucket in each of ``n_active`` tables. Or a :class:`sparsact.routing.Router` of
        that many units, whose own parameters then count in place of ``n_active`` and ``absolute``; what it would learn
        stays as drawn.
    solver : {"ridge", "rmsprop"}, default="ridge"
        ``"ridge"``: the best top layer in closed form, from sums that are additive over rows. ``"rmsprop"``: mini-batch
        training, as in the paper's Appendix A.1, of targets in their standard deviation (of the first call), from an
        intercept that is their mean.
    alpha : float, default=1e-6
        Ridge penalty in units of the features: :math:`\alpha` times the mean diagonal of their (centred, weighted) Gram
        matrix is added to that diagonal. The fit does not depend on the scale of the bottom layer or of the weights.
    bottom : {"random", "pca"}, default="random"
        ``"random"``: Glorot's uniform weights, as Keras draws them, for columns of about one unit. ``"pca"``:
        directions drawn from the covariance of the rows of the first call, and scaled by it.
    activation : {"identity", "relu"}, default="identity"
        Activation of the bottom layer.
    bias : bool, default=False
        Whether bottom units have random biases.
    absolute : bool, default=False
        Rank by absolute value (``"top_k"``).
    fit_intercept : bool, default=True
        Fit a constant next to A, unpenalised.
    epochs : int, default=50
        Passes over the rows (``"rmsprop"``).
    learning_rate, rho, epsilon : float, default=1e-5, 0.9, 1e-7
        Options of RMSProp; ``rho`` and ``epsilon`` as in Keras. In PyTorch ``rho`` is called alpha and is 0.99.
    batch_size : int, default=32
        Rows of a step; the last of an epoch may have fewer.
    random_state : int, RandomState or None, default=None
        Seed of the bottom layer, of the router and of the order of rows.

    Attributes
    ----------
    coefficients_ : ndarray of shape (t,) or (T, t)
        The top layer A.
    intercept_ : float or ndarray of shape (T,)
        The constant.
    layer_ : SparseLayer
        Bottom layer, router and its state.
    n_active_ : int
        The most units that an input switches on.
    loss_curve_ : list of float
        Mean squared error of each epoch as its batches were met, in variances of the targets of the first call
        (``"rmsprop"``).
    n_rows_ : int
        Rows of positive weight that were fitted.
    n_features_in_ : int
        Columns.

    Notes
    -----
    Ridge costs ``m t**2`` operations for m rows, ``t**3 / 3`` for the solution, found when it is first needed, and
    ``8 t**2`` bytes three times over; features are made in blocks. It is the optimum that training runs towards: at the
    paper's learning rate of 1e-5, training is far from done after 50 epochs.

    With a linear bottom layer and all units on, g is a linear function of x: only the mask makes it more. The
    largest half of the units, without a bias, are nearly the units with :math:`z \ge 0`: such a model is a ReLU layer.

    Weights count rows, in the closed form exactly; in training they weigh the mean over a batch.

    Rows that are moved, targets that are scaled and, with an intercept, targets that are moved give the same model,
    moved and scaled, within rounding; but ``"random_hash"`` hashes the bits of :math:`x`.

    References
    ----------
    .. [B] "A Theoretical View on Sparsely Activated Networks", 2022, Section 2.1 and Appendix A.1.

    Examples
    --------
    A quarter of 64 linear units bends where one linear layer cannot:

    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 2))
    >>> y = np.abs(X[:, 0] - X[:, 1])
    >>> DSMRegressor(64, 64, random_state=0).fit(X, y).score(X, y) < 0.1
    True
    >>> DSMRegressor(64, 16, random_state=0).fit(X, y).score(X, y) > 0.99
    True
    """

    n_units: int = 1024
    n_active: int = 256
    router: str | Router = "top_k"
    solver: str = "ridge"
    _: KW_ONLY
    alpha: float = 1e-06
    bottom: str = "random"
    activation: str = "identity"
    bias: bool = False
    absolute: bool = False
    fit_intercept: bool = True
    epochs: int = 50
    learning_rate: float = 1e-05
    batch_size: int = 32
    rho: float = 0.9
    epsilon: float = 1e-07
    random_state: int | np.random.RandomState | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_units": [COUNT],
        "n_active": [COUNT],
        "router": [one_of(*NAMES), Router],
        "solver": [one_of("ridge", "rmsprop")],
        "alpha": [NONNEGATIVE],
        "bottom": [one_of("random", "pca")],
        "activation": [one_of("identity", "relu")],
        "bias": ["boolean"],
        "absolute": ["boolean"],
        "fit_intercept": ["boolean"],
        "epochs": [COUNT],
        "learning_rate": [POSITIVE],
        "batch_size": [COUNT],
        "rho": [DECAY],
        "epsilon": [POSITIVE],
        "random_state": ["random_state"],
    }

    @transaction
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Fit to rows X (m, d), targets y (m,) or (m, T), and weights (m,); an earlier fit is discarded."""
        for name in ("layer_", "statistic_", "top_", "_solution"):
            self.__dict__.pop(name, None)
        self._learn(X, y, sample_weight, epochs=int(self.epochs))
        _ = self._top_layer  # solved here, so that predict changes nothing

    @transaction
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Add rows to the sums (``"ridge"``), or train for one more epoch, on these rows (``"rmsprop"``)."""
        self._learn(X, y, sample_weight, epochs=1)

    @available_if(_is_additive)  # type: ignore[untyped-decorator] # scikit-learn ships no types
    @transaction
    def merge(self, other: Self) -> None:
        """Add the rows that another model of the same layer has seen (``"ridge"``); equal to one fit up to rounding.

        Raises
        ------
        ValueError
            If the two do not share layer, columns or targets; says which.
        """
        if not isinstance(other, DSMRegressor):
            raise ValueError(f"cannot merge a {type(other).__name__} into a DSMRegressor; merge models of one kind.")
        check_is_fitted(self)
        check_is_fitted(other)
        theirs = other._statistic
        for name in ("n_features_in_", "feature_names_in_", "_n_targets"):
            mine, of_other = np.asarray(getattr(self, name, None)), np.asarray(getattr(other, name, None))
            if not np.array_equal(mine, of_other):
                what = "number of targets" if name == "_n_targets" else f"`{name}`"
                raise ValueError(f"cannot merge: {what} is {mine} here and {of_other} there; make them equal.")
        different = self.layer_.difference(other.layer_)
        if not different and not np.array_equal(self._unit, other._unit):
            different = "units of the targets"
        if different:
            raise ValueError(
                f"cannot merge: the two have different {different}; make both from one model, by `blank`, which keeps "
                "what it drew and chose from its first rows."
            )
        self._statistic.merge(theirs)
        self.n_rows_ = self.n_rows_ + other.n_rows_
        self.__dict__.pop("_solution", None)

    @available_if(_is_additive)  # type: ignore[untyped-decorator] # scikit-learn ships no types
    def blank(self) -> Self:
        """A model of the same layer that holds no rows: for workers whose parts are merged later (``"ridge"``).

        >>> X = np.linspace(0, 1, 40)[:, None]
        >>> whole = DSMRegressor(n_units=8, n_active=4, bottom="pca", random_state=0).fit(X, X[:, 0] ** 2)
        >>> parts = [whole.blank().partial_fit(X[i::2], X[i::2, 0] ** 2) for i in range(2)]
        >>> bool(np.allclose(parts[0].merge(parts[1]).predict(X), whole.predict(X)))
        True
        """
        check_is_fitted(self)
        empty = copy(self)
        empty.statistic_, empty.n_rows_ = RidgeStatistic(self.layer_.bottom.t, self._n_targets), 0
        empty.__dict__.pop("_solution", None)
        return empty

    def _fork(self) -> Callable[[bool], None]:
        """What a twin would change in place becomes its own; see :func:`sparsact.transaction.transaction`."""
        if "statistic_" in self.__dict__:
            self.statistic_ = copy(self.statistic_)
        if "top_" in self.__dict__:
            self.top_ = deepcopy(self.top_)
        return lambda kept: None

    def _learn(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, *, epochs: int) -> None:
        self._validate_params()
        first = not self.__sklearn_is_fitted__()
        rows, targets = checked_rows(
            self, X, y, reset=first, dtype=np.float64, multi_output=True, y_numeric=True, order="C"
        )
        weights = checked_sample_weight(sample_weight, rows)
        check_row_weights(weights)
        targets = np.asarray(targets, dtype=np.float64)
        there = weights > 0
        columns, rows, weights = targets.reshape(len(targets), -1)[there], rows[there], weights[there]
        check_differences(rows, "X")
        check_differences(columns, "y")
        layer = self._draw(rows, weights) if first else self._drawn
        unit = units_of(columns, weights) if first else self._unit
        if len(unit) != columns.shape[1]:
            raise ValueError(
                f"`y` has {columns.shape[1]} targets, and earlier rows had {self._n_targets}; pass the same number."
            )
        with np.errstate(over="ignore"):  # which is refused
            columns = columns / unit
        check_size(rows, layer.bottom, columns)
        if first:
            self._unit, level = unit, about_mean(columns, weights / weights.sum(), 1.0)[0]
            self._begin(layer, level, single=targets.ndim == 1)
        if self.solver == "ridge":
            add_rows(self._statistic, self.layer_, rows, columns, weights)
            self.__dict__.pop("_solution", None)
        else:
            features, top = features_by_rows(layer, rows, epochs), self.top_
            optimiser = RMSProp(self.learning_rate, self.rho, self.epsilon)
            for number in range(len(top.losses), len(top.losses) + epochs):  # goes on after a pause as without one
                top.epoch(
                    features,
                    columns,
                    weights,
                    optimiser,
                    batch_size=int(self.batch_size),
                    fit_intercept=self.fit_intercept,
                    rng=stream(self._seed, "order", number),
                )
        self.n_rows_ = self.n_rows_ + len(rows)

    def _draw(self, rows: Array, weights: Array) -> SparseLayer:
        """The bottom layer, the router and its state."""
        self._seed = entropy(self.random_state)
        t, d, router = int(self.n_units), rows.shape[1], self._router
        columns = t if router.routes_on != "inputs" else d
        check_router(router, columns, t)
        kind: dict[str, Any] = {"bias": self.bias, "activation": self.activation, "rng": stream(self._seed, "bottom")}
        if self.bottom == "pca":
            bottom = Bottom.principal(rows, weights, t, **kind)
        else:
            bottom = Bottom.random(d, t, **kind).about(rows, weights)
        return SparseLayer(bottom, router, router.initial_state(columns, rng=stream(self._seed, "router")))

    @property
    def _router(self) -> Router:
        return router_of(self.router, int(self.n_units), int(self.n_active), absolute=self.absolute, seed=self._seed)

    @property
    def _drawn(self) -> SparseLayer:
        """The layer of the rows before, if the parameters still say so."""
        bottom = self.layer_.bottom
        trained = "rmsprop" if "top_" in self.__dict__ else "ridge"
        now = (self.n_units, self.activation, self.solver, self._router)
        if now != (bottom.t, bottom.activation, trained, self.layer_.router):
            raise ValueError(
                "`n_units`, `activation`, `solver` or the router changed since the first rows; call fit to start again."
            )
        return self.layer_

    def _begin(self, layer: SparseLayer, level: Array, *, single: bool) -> None:
        """Start the sums, or the training from the mean (T,) of the targets in their units."""
        self.layer_, self._n_targets, self._single_target, self.n_rows_ = layer, len(level), single, 0
        if self.solver == "ridge":
            self.statistic_ = RidgeStatistic(layer.bottom.t, len(level))
        else:
            self.top_ = TopLayer.glorot(layer.bottom.t, len(level), rng=stream(self._seed, "top"))
            self.top_.intercept += level * self.fit_intercept
