"""LowDegreeRegressor: least squares on low-degree monomials."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sparsact.learners.constraints import AUTO, SIZE
from sparsact.learners.low_degree.choose import automatic
from sparsact.learners.low_degree.estimator import LowDegree
from sparsact.statistics.statistic import Batch
from sparsact.transaction import transaction

_CHOSEN_BY_FIT: Final = (
    'degree="auto" is chosen by fit, from all rows at once: for rows in pieces name a degree (once fitted, '
    "set_params(degree=model.degree_)), or stream into LowDegreeRegressorCV, which chooses by folds."
)
_ALPHA_BY_FIT: Final = _CHOSEN_BY_FIT.replace("degree", "alpha").replace("a alpha", "an alpha")


def _can_stream(learner: LowDegreeRegressor) -> bool:
    """Whether rows may come in pieces: the degree must be known before them."""
    if learner._chooses_degree() or learner._chooses_alpha():
        raise AttributeError(_CHOSEN_BY_FIT if learner._chooses_degree() else _ALPHA_BY_FIT)
    return True


class LowDegreeRegressor(MultiOutputMixin, RegressorMixin, LowDegree):  # type: ignore[misc] # untyped scikit-learn
    r"""Least squares on the monomials of degree at most d: the low-degree algorithm.

    .. math:: f(x) = \hat f(\emptyset) + \sum_{1 \le |S| \le d} \hat f(S)\, \chi_S(x), \qquad
              \chi_S(x) = \prod_{i \in S} x_i,

    fitted by least squares or ridge, exactly, and without the m x D matrix of monomials [1]_. In the realizable and the
    agnostic case, error eps above the best is reached with :math:`O(n^d / \varepsilon)` rows.

    Parameters
    ----------
    degree : int or "auto", default=2
        Largest size of an interaction. ``"auto"``: ``fit`` chooses it by the error on held-out folds, for the given
        ``alpha``, and says so in ``degree_reason_``. At most what time and memory allow and, without a penalty, half
        as many monomials as rows. All rows are needed at once: there is no ``partial_fit`` then.
    alpha : float or "auto", default=0.0
        Ridge penalty on all coefficients but the intercept, on scikit-learn's ``Ridge`` scale; for ``solver="lasso"``
        the penalty on scikit-learn's ``Lasso`` scale. ``"auto"``: ``fit`` chooses it in the same way, next to the
        degree; both then agree with :class:`LowDegreeRegressorCV` and :func:`sparsact.fit_table`.
    solver : {"auto", "cells", "moments", "kernel", "correlation", "lasso"}, default="auto"
        Cells, moments and kernel give the same least squares (ridge) solution, of least norm where rows do not
        determine it: ``"cells"`` sums the rows into 2**n cells and works by Walsh-Hadamard transforms (n <= 26);
        ``"moments"`` takes the Gram matrix from popcount moments of symmetric differences (any n); ``"kernel"`` solves
        an N x N system over the N distinct rows (more monomials than rows). ``"auto"`` chooses, and says what and why
        in ``solver_`` and ``solver_reason_``. ``"correlation"`` is the textbook average of ``y * chi_S``, right for
        uniform inputs only; ``"lasso"`` gives sparse coefficients.
    fit_intercept : bool, default=True
        Fit the coefficient of the empty subset, unpenalised.
    domain : {"auto", "cube", "real"}, default="auto"
        ``"cube"``: X must be signs (+1, -1), bits (0, 1) or bool; bit 1 is sign -1. ``"real"``: columns are used as
        they are, monomials are products of columns. ``"auto"``: the cube if the values allow it.
    min_degree : int, default=1
        Smallest size of a subset other than the empty one.
    subsets : list of tuples, default=None
        The subsets allowed, in place of ``degree`` and ``min_degree``.
    max_memory : float, default=None
        Bytes that a fit may use; None for 80 % of the free memory.
    n_jobs : int, default=None
        Threads of the native kernels, as in joblib; None follows threadpoolctl. The result does not depend on it.
    verbose : int, default=0
        Print what ``"auto"`` chose and why.

    Attributes
    ----------
    coefficients_ : ndarray of shape (D,) or (T, D)
        Coefficients of ``subsets_``.
    intercept_ : float or ndarray of shape (T,)
        Coefficient of the empty subset.
    feature_importances_ : ndarray of shape (n_features,)
        Total effect of each column on the predictions, as a share of their variance; see there. Found when it is first
        asked for, from the statistic.
    subsets_ : list of tuples
        By size, then lexicographic: the order of scikit-learn's ``PolynomialFeatures(interaction_only=True)``.
    spectrum_ : Spectrum or list of Spectrum
        The fitted function's Fourier spectrum, one a target.
    solver_, solver_reason_ : str
        The solver chosen, and why.
    alpha_ : float
        The penalty.
    degree_, degree_reason_ : int, str
        Largest size of an interaction, and by what it was chosen.
    r2_, residual_variance_ : float or ndarray of shape (T,)
        On the rows fitted: share of variance explained; squared residual per degree of freedom.
    n_samples_seen_ : int
        Rows of non-zero weight.

    Notes
    -----
    The statistic is additive and exact: rows may come in any order and in any split (``partial_fit``, ``merge``,
    ``remove``), and ``coefficients_`` is the same to the bit. Real columns are summed in floating point, so there the
    order matters within rounding; their units do not, but products of columns whose means are 2e4 of their deviations
    or more are lost, and refused. Low degree removes computation, not sample complexity: D coefficients still need
    more than D rows, or a penalty.

    References
    ----------
    .. [1] P. Awasthi, N. Dikkala, P. Kamath, R. Meka, "Learning Neural Networks with Sparse Activations", COLT 2024,
       Lemma 7.

    Examples
    --------
    A parity of two bits among three, and noise-free:

    >>> import numpy as np
    >>> from sparsact import LowDegreeRegressor
    >>> from sparsact.hypercube import points
    >>> X = points(3)
    >>> model = LowDegreeRegressor(degree=2).fit(X, 5 + 2 * X[:, 0] * X[:, 2])
    >>> model.spectrum_.top(2)
    [((), 5.0), ((0, 2), 2.0)]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LowDegree._parameter_constraints,
        "degree": [SIZE, AUTO],
        "alpha": [*LowDegree._parameter_constraints["alpha"], AUTO],
    }

    @available_if(_can_stream)  # type: ignore[untyped-decorator] # scikit-learn ships no types
    @transaction
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Add rows; the solution is found when it is next needed."""
        self._partial_fit(X, y, sample_weight, reset=not self._begun())

    def _validated(self, X: ArrayLike, y: ArrayLike, *, reset: bool) -> tuple[NDArray[Any], NDArray[np.float64]]:
        rows, targets = self._checked_with_targets(X, y, reset=reset, multi_output=True, y_numeric=True)
        if reset:
            self._single_target = targets.ndim == 1
        return rows, np.ascontiguousarray(targets.reshape(len(targets), -1), dtype=np.float64)

    def _chooses_degree(self) -> bool:
        return bool(self.degree == "auto")

    def _chooses_alpha(self) -> bool:
        return isinstance(self.alpha, str)

    def _choose_degree(self, batch: Batch) -> None:
        if not (self._chooses_degree() or self._chooses_alpha()):
            return
        spec = self._spec(degree=0)
        if spec.penalty(0.0).kind != "ridge":
            name, what = "degree" if self._chooses_degree() else "alpha", f'solver="{self.solver}"'
            raise ValueError(f'{name}="auto" chooses for least squares and ridge, not with {what}: name a {name}.')
        degree = None if self._chooses_degree() else int(self.degree)
        alpha = None if self._chooses_alpha() else float(self.alpha)
        self._automatic = automatic(batch, spec, self.domain, degree, alpha)

    @property
    def alpha_(self) -> float:
        """The penalty."""
        check_is_fitted(self)
        if not self._chooses_alpha():
            return float(self.alpha)
        if "_automatic" not in self.__dict__:
            raise ValueError(_ALPHA_BY_FIT)
        return self._automatic.alpha

    def _largest_degree(self) -> int:
        if not self._chooses_degree():
            return int(self.degree)
        if "_automatic" not in self.__dict__:
            raise ValueError(_CHOSEN_BY_FIT)
        return self._automatic.degree

    @property
    def degree_reason_(self) -> str:
        """Reason for the choice of the degree, one sentence."""
        check_is_fitted(self)
        return self._automatic.reason if self._chooses_degree() else "the degree was given."

    def _before_merge(self, other: Self) -> None:
        if not self._begun():
            return
        if self._chooses_alpha() and self.alpha_ != other.alpha_:
            raise ValueError(
                f"cannot merge: the two have penalties {self.alpha_:g} and {other.alpha_:g}; fit both with one of them."
            )
        if self._largest_degree() != other._largest_degree():
            raise ValueError(
                f"cannot merge: the two have degrees {self.degree_} and {other.degree_}; fit both with one of them."
            )

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predicted targets, (m,) or (m, T)."""
        values = self._values(X)
        return values[:, 0] if self._single_target else values

    @property
    def _single(self) -> bool:
        return self._single_target

    @property
    def residual_variance_(self) -> Any:
        """Squared residual per degree of freedom, a float or (T,); NaN when no freedom is left, inf beyond float64."""
        freedom, unit = self._fitted.residual_degrees_of_freedom, self._fitted.unit
        with np.errstate(over="ignore"):  # of targets beyond 1e154
            variance = unit * (unit * (self._fitted.squared_error / (freedom if freedom > 0 else np.nan)))
        return self._squeezed(variance)

    @property
    def r2_(self) -> Any:
        """Share of the variance of the fitted rows that is explained, a float or (T,); NaN for a constant target."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self._squeezed(1 - self._fitted.squared_error / self._fitted.target_squares)
