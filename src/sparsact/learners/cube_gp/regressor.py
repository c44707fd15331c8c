"""CubeGPRegressor: an exact Gaussian process on the cube, and the posterior of every Walsh coefficient."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state

from sparsact.kernels.dispatch import blas_threads
from sparsact.learners.constraints import AUTO, COUNT, DOMAIN, POSITIVE, one_of
from sparsact.learners.cube_gp.fisher_scoring import WARM_STEPS, more_probable, refined
from sparsact.learners.cube_gp.fitted import FittedCubeGP
from sparsact.learners.cube_gp.hyperparameters import (
    HyperparameterPosterior,
    Hyperprior,
    most_probable,
    prior_around,
    prior_of,
)
from sparsact.learners.cube_gp.kernel import CubeKernel
from sparsact.learners.cube_gp.merged_rows import DistinctRows
from sparsact.learners.cube_gp.posterior_mixture import MarginalPosterior
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.systems.cube import MOST_DIRECT_ROWS
from sparsact.learners.on_cube import bits_of
from sparsact.learners.points import Points
from sparsact.transaction import transaction

REFINED_ROWS: Final = 2_000  # from which kernel and noise are learned at last where there are inducing points


@dataclass(eq=False, repr=False)
class CubeGPRegressor(FittedCubeGP, RegressorMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn ships no types
    r"""Exact Gaussian process regression on the cube, with the posterior of every Walsh coefficient.

    .. math:: y = \mu + \sum_S w_S\, \chi_S(x) + \varepsilon, \qquad w_S \sim N(0, p_S), \qquad
              \varepsilon \sim N(0, \sigma^2),

    where few parameters give the prior variances p of all :math:`2^n` coefficients: one for each coordinate (a product
    kernel, ARD over Hamming distance), one for each degree, both, or sums of these. They maximise the marginal
    likelihood times a weak prior.

    Parameters
    ----------
    kernel : str or CubeKernel, default="auto"
        ``"product"``: :math:`v \prod_i \rho_i^{[x_i \ne x_i']}`. ``"sparse_product"``: the same, with a prior of fewer
        interactions and more unequal coordinates. ``"degree"``: a variance for each degree. ``"degree_site"``: for each
        degree and each coordinate, :math:`\log p_S = a_{|S|} + \sum_{i \in S} b_i`. ``"degree_site_pair"``: with a term
        for each pair in S too. Sums such as ``"degree_site + product"``. ``"auto"``: ``"degree_site"`` for up to 20
        columns, else ``"product"``. A :class:`CubeKernel`, in the units of y squared, is where the search starts.
    noise_variance : float or "auto", default="auto"
        :math:`\sigma^2`; ``"auto"`` fits it, to no less than .001 of the variance of y.
    optimizer : {"fmin_l_bfgs_b"} or None, default="fmin_l_bfgs_b"
        None keeps the kernel as it is given.
    n_hyperparameter_rows : int, default=1000
        Largest number of distinct rows, drawn at random, from which Cholesky factors learn kernel and noise.
    max_inducing : int, default=1000
        Number M of inducing points, used for more than 20 columns and more distinct rows m than M and 4,096. They are
        random rows that make conjugate gradients fast and determine the variances. With M >= m the solution is exact,
        from a matrix of all rows. ``8 m M`` bytes and ``3 m M**2`` multiplications.
    refine : bool, default=True
        For more rows and up to 20 columns: continue on all rows by conjugate gradients, and keep the result with the
        better cross-validation. With inducing points: continue on 2,000 rows.
    warm_start : bool, default=False
        Start the search at the parameters of the earlier fit, if kernel and number of columns are the same. Fits to
        parts of the same rows, as in cross-validation, then take fewer steps; the prior does not change.
    domain : {"auto", "cube", "real"}, default="auto"
        ``"cube"``: X must be signs (+1, -1), bits (0, 1) or bool; bit 1 is sign -1. ``"real"``: column i becomes the
        sign -1 above its median ``cuts_[i]`` (where there is no such value, above the next smaller one), else +1.
        ``"auto"``: the cube if the values allow it.
    random_state : int, RandomState or None, default=None
        Seed of the rows for hyperparameters and of the draws that estimate variances.

    Attributes
    ----------
    kernel_ : CubeKernel
        The kernel, in the units of y squared.
    noise_variance_ : float
        :math:`\sigma^2`.
    log_marginal_likelihood_value_ : float
        Log marginal likelihood of the rows that kernel and noise were learned from by Cholesky factors.
    y_mean_ : float
        :math:`\mu`, the weighted mean of y.
    alpha_ : ndarray of shape (m,)
        Dual coefficients of the distinct rows ``X_train_``.
    X_train_ : ndarray of shape (m, n)
        Distinct rows of positive weight.
    spectrum_ : Spectrum
        Posterior mean of the function, n up to 20; :meth:`standard_errors` has the deviations.
    encoding_ : str
        ``"signs"`` or ``"bits"``; None for columns that were cut at ``cuts_``.
    n_inducing_ : int
        Inducing points; 0 where all is exact or, of up to 20 columns, computed by transforms.
    n_features_in_ : int
        Columns.

    Notes
    -----
    A weight w counts as w rows: its target has noise of variance :math:`\sigma^2 / w`. Whole weights are repeated rows,
    and equal targets of one point are evidence of little noise. Other weights are precisions, known up to a factor:
    pass inverse squares of the targets' standard deviations. Rows of the same point are merged, exactly. No mean has
    less noise than 1e-10 of the kernel's variance.

    Up to 1,024 distinct rows, and up to 4,096 of many columns, a Cholesky factor gives mean and variances exactly.
    Beyond, for up to 20 columns, conjugate gradients solve; a step is two transforms of :math:`n 2^n` additions. Then
    deviations are estimated from 520 draws of the posterior, with the relative error :math:`1 / \sqrt{2 \cdot 520}`.

    More than 20 columns need a product kernel, one of degrees, or their sum. Beyond 4,096 distinct rows m, conjugate
    gradients on all of them give means, and moments of named coefficients, to a residual of .001; a step computes the
    :math:`m^2 / 2` covariances again, and tens of steps are needed. Variances of values come
    from ``max_inducing`` inducing points, times one factor that makes their mean right at 16 rows left out [2]_.

    Means belong to the most probable kernel and noise. Deviations and intervals average over 20 draws of both, from
    Laplace's approximation of their posterior, unless ``optimizer`` is None or there are inducing points. They are
    computed when first asked for.

    References
    ----------
    .. [1] C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine Learning", 2006, Chapters 2 and 5.
    .. [2] J. Quinonero-Candela, C. E. Rasmussen, "A unifying view of sparse approximate Gaussian process regression",
           JMLR 6, 2005.
    .. [3] J. Zhou et al., "Higher-order epistasis and phenotypic prediction", PNAS 2022: variance by degree.

    Examples
    --------
    From half of the points of a function of five coordinates, with noise, the others follow:

    >>> import numpy as np
    >>> from sparsact.hypercube import points
    >>> X, rng = points(8), np.random.default_rng(0)
    >>> f = X[:, 0] - 2 * X[:, 1] * X[:, 2] + X[:, 2] * X[:, 3] * X[:, 4]
    >>> seen = rng.permutation(256)[:128]
    >>> model = CubeGPRegressor(random_state=0).fit(X[seen], (f + 0.1 * rng.normal(size=256))[seen])
    >>> bool((np.abs(model.predict(X) - f) < 0.2).all())
    True
    >>> model.confidence_intervals([(1, 2), (5, 6)]).round(1) + 0.0
    array([[-2., -2.],
           [ 0.,  0.]])
    """

    kernel: str | CubeKernel = "auto"
    _: KW_ONLY
    noise_variance: float | str = "auto"
    optimizer: str | None = "fmin_l_bfgs_b"
    n_hyperparameter_rows: int = 1000
    max_inducing: int = 1000
    refine: bool = True
    warm_start: bool = False
    domain: str = "auto"
    random_state: int | np.random.RandomState | None = None

    _most_direct_rows = MOST_DIRECT_ROWS
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, CubeKernel],
        "noise_variance": [POSITIVE, AUTO],
        "optimizer": [one_of("fmin_l_bfgs_b"), None],
        "n_hyperparameter_rows": [COUNT],
        "max_inducing": [COUNT],
        "refine": ["boolean"],
        "warm_start": ["boolean"],
        "domain": DOMAIN,
        "random_state": ["random_state"],
    }

    @transaction
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Learn kernel and noise, and fit rows X (m, n), targets y (m,) and weights (m,)."""
        self._validate_params()
        seed = tuple(check_random_state(self.random_state).randint(2**31 - 1, size=4).tolist())
        rows, shift, unit = self._standardized(*self._rows_to_fit(X, y, sample_weight))
        prior = self._prior(rows.bits.shape[1], unit).of_rows(rows)
        rng = np.random.default_rng(seed)
        chosen = rows
        if len(rows) > self.n_hyperparameter_rows:
            chosen = rows.take(np.sort(rng.permutation(len(rows))[: self.n_hyperparameter_rows]))
        with blas_threads(len(chosen) ** 3 / 3):
            before = self._before(prior)
            refine = self.refine and self.optimizer is not None and len(chosen) < len(rows)
            if refine and before is not None and before.known_precision is not None:  # of all rows already
                # near the optimum of other rows a step or two gain what there is
                found = more_probable(before, rows, max_steps=WARM_STEPS, rng=rng).value
            else:
                start, known = prior.mean if before is None else before.mode, None
                if not isinstance(self.noise_variance, str):
                    known = max(float(self.noise_variance) / unit / unit, np.finfo(float).tiny)
                found = HyperparameterPosterior(prior, chosen, known, start)
                if self.optimizer is not None:
                    found = most_probable(found)
                if refine and prior.kernel.has_table:
                    found = refined(found, rows, rng=rng)
                elif refine and self._has_inducing(rows, prior.kernel):
                    chosen = rows.take(np.sort(rng.permutation(len(rows))[:REFINED_ROWS]))
                    found = most_probable(replace(found, rows=chosen))
            given = found.best
            value = given.log_likelihood(chosen)
        inducing = None
        if self._has_inducing(rows, given.kernel):
            inducing = np.sort(rng.permutation(len(rows))[: self.max_inducing])
        with blas_threads(len(rows) ** 3 / 3):
            best = given.posterior(rows, inducing)
        uncertain = np.empty((0, given.kernel.theta.size + 1)) if self.optimizer is None else found
        self._posterior = MarginalPosterior(rows, given, best, uncertain, seed, shift, unit)
        self.log_marginal_likelihood_value_ = self._in_units(value, chosen)

    def _has_inducing(self, rows: DistinctRows, kernel: CubeKernel) -> bool:
        return not kernel.has_table and len(rows) > max(self._most_direct_rows, self.max_inducing)

    def _standardized(self, points: Points, y: Array, weights: Array) -> tuple[DistinctRows, float, float]:
        """Distinct rows with targets of mean 0 and variance 1, and their mean and scale."""
        largest = float(np.abs(y).max()) or 1.0  # squares of y / largest do not overflow
        distinct = DistinctRows.of(bits_of(points), y / largest, weights)
        scale = max(np.sqrt(distinct.variance), np.finfo(float).eps)  # equal targets are known to their rounding
        return distinct.standardized(distinct.mean, scale), largest * distinct.mean, float(largest * scale)

    def _prior(self, n: int, unit: float) -> Hyperprior:
        """Prior of the parameters of a standardized function."""
        if isinstance(self.kernel, str):
            return prior_of(self.kernel, n)
        if self.kernel.n != n:
            raise ValueError(f"the kernel has {self.kernel.n} coordinates and `X` {n} columns; make them equal.")
        return prior_around(self.kernel.times(1 / unit))

    def _before(self, prior: Hyperprior) -> HyperparameterPosterior | None:
        """What the fit before has found, where the search begins there."""
        before = getattr(getattr(self, "_posterior", None), "hyperparameters", None)
        if not self.warm_start or self.optimizer is None or not isinstance(before, HyperparameterPosterior):
            return None
        return before if before.prior.kernel.is_like(prior.kernel) else None
