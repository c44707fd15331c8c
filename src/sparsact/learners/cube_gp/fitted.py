"""What a fitted Gaussian process on the cube says: predictions, intervals, coefficients, and its file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sparsact.fourier import Spectrum
from sparsact.hypercube import Subset
from sparsact.kernels.dispatch import blas_threads
from sparsact.learners.cube_gp.component import LARGEST_CUBE
from sparsact.learners.cube_gp.kernel import CubeKernel
from sparsact.learners.cube_gp.marginal import MarginalPosterior, VarianceDecomposition, variance_decomposition
from sparsact.learners.cube_gp.posterior import Hyperparameters
from sparsact.learners.cube_gp.rows import DistinctRows, distinct_points
from sparsact.learners.cube_gp.saving import kernel_arrays, posterior_arrays, read_kernel, read_posterior
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.systems.cube import CubePosterior
from sparsact.learners.gp.systems.inducing import InducingSystem
from sparsact.learners.on_cube import OnCube
from sparsact.saving import schema
from sparsact.saving.schema import ArrayField, Arrays, State
from sparsact.transaction import locked
from sparsact.validation.arrays import checked_reals
from sparsact.validation.parameters import checked_probability

_UNITS: Final = {"units": ArrayField("3")}


class FittedCubeGP(OnCube):
    """Reading side of :class:`CubeGPRegressor`: a posterior of standardized targets, and their mean and scale."""

    _CONTENT = "_posterior"

    kernel: str | CubeKernel
    y_mean_: float
    log_marginal_likelihood_value_: float
    _scale: float
    _posterior: MarginalPosterior

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Posterior means of the function, (m,); with ``return_std`` also its standard deviations, (m,).

        The deviations are the function's; :meth:`prediction_intervals` are of new measurements.
        """
        bits = self._bits(X)
        mean = self.y_mean_ + self._scale * self._posterior.best.values(bits)
        return (mean, self._deviations(bits)) if return_std else mean

    def _out_of_fold(self, X: ArrayLike, y: Array, weights: Array | None, folds: NDArray[np.intp]) -> Array:
        """Predictions (m,) of the rows of a fit with inducing points, by its kernel, each from other folds' rows."""
        system, bits = cast("InducingSystem", self._posterior.best.system), self._bits(X)
        number = distinct_points(np.concatenate([system.points, bits]))[1]
        place = np.full(number.max() + 1, -1)
        place[number[: len(system)]] = np.arange(len(system))
        place = place[number[len(system) :]]
        fitted = place >= 0  # others have no weight
        z, weights = (y - self.y_mean_) / self._scale, np.where(fitted, 1.0 if weights is None else weights, 0.0)
        others = weights * (folds != np.arange(folds.max() + 1)[:, None])  # of each fold those that predict it
        total, sums = (
            np.stack([np.bincount(place[fitted], of_fold[fitted], len(system)) for of_fold in each])
            for each in (others, others * z)
        )
        noise = np.divide(self._posterior.given.noise_variance, total, out=np.full_like(total, np.inf), where=total > 0)
        targets = np.divide(sums, total, out=np.zeros_like(sums), where=total > 0)
        solved = system.solve(targets, system.tolerance, noise).checked(system.solver, system.remedy)
        predicted = system.products(solved)[folds, place]
        predicted[~fitted] = self._posterior.best.values(bits[~fitted])
        return self.y_mean_ + self._scale * predicted

    def _deviations(self, bits: Array) -> Array:
        with blas_threads(len(self._posterior.rows) ** 3 / 3):
            return np.asarray(self._scale * np.sqrt(self._posterior.variances(bits)))

    def prediction_intervals(self, X: ArrayLike, confidence: float = 0.95) -> Array:
        """Intervals (m, 2) in which new measurements of weight 1 lie with probability ``confidence``.

        Where errors of measured rows, each predicted from the others, have heavier tails than a normal distribution,
        intervals are as wide as that share of them needs.
        """
        bits = self._bits(X)
        deviations = self._posterior.interval_deviations(checked_probability(confidence, "`confidence`"))
        mean, deviation = self.y_mean_ + self._scale * self._posterior.best.values(bits), self._deviations(bits)
        half = deviations * np.hypot(deviation, self._scale * np.sqrt(self._posterior.noise_variance))
        return np.stack([mean - half, mean + half], axis=-1)

    def sample_y(
        self, X: ArrayLike, n_samples: int = 1, random_state: int | np.random.RandomState | None = 0
    ) -> NDArray[np.float64]:
        """Draws of the function at rows X from its posterior, (m, n_samples)."""
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))
        return np.asarray(self.y_mean_ + self._scale * self._posterior.draws_at(self._bits(X), n_samples, rng).T)

    def log_marginal_likelihood(self, theta: ArrayLike | None = None) -> float:
        """Log marginal likelihood of all rows, by a Cholesky factor.

        Parameters
        ----------
        theta : array-like of shape (k + 1,), optional
            Parameters of a kernel of the same kind and the logarithm of the noise variance. Those found by default:
            ``kernel_.theta`` and the logarithm of ``noise_variance_``.
        """
        check_is_fitted(self)
        tried, rows = self._posterior.given, self._posterior.rows
        if theta is not None:
            given = checked_reals(theta, "`theta`")
            if given.shape != (tried.kernel.theta.size + 1,):
                raise ValueError(
                    f"`theta` holds {tried.kernel.theta.size} parameters of the kernel and the logarithm of the noise "
                    f"variance; got shape {given.shape}."
                )
            kernel = self.kernel_.with_theta(given[:-1]).times(1 / self._scale)
            tried = Hyperparameters(kernel, float(np.exp(given[-1] - 2 * np.log(self._scale))))
        with blas_threads(len(rows) ** 3 / 3):
            return self._in_units(tried.log_likelihood(rows), rows)

    def _in_units(self, log_likelihood: float, rows: DistinctRows) -> float:
        """Log-likelihood of targets in the units of y."""
        return log_likelihood - float(rows.counts.sum() * np.log(self._scale))

    @property
    def kernel_(self) -> CubeKernel:
        """The kernel, in the units of y squared."""
        check_is_fitted(self)
        return self._posterior.given.kernel.times(self._scale)

    @property
    def noise_variance_(self) -> float:
        """Variance of the noise of a row of weight 1."""
        check_is_fitted(self)
        return self._posterior.given.noise_variance * self._scale * self._scale

    @property
    def X_train_(self) -> NDArray[np.int8]:  # noqa: N802 - the name of scikit-learn
        """Distinct rows that were fitted, (m, n): signs or bits as X was, bits of real columns."""
        check_is_fitted(self)
        bits = self._posterior.rows.bits.astype(np.int8)
        return 1 - 2 * bits if self.encoding_ == "signs" else bits

    @property
    def n_inducing_(self) -> int:
        """Inducing points that variances come from; 0 where these are exact, or from draws."""
        check_is_fitted(self)
        system = self._posterior.inducing
        return 0 if system is None else len(system.inducing)

    @property
    def alpha_(self) -> Array:
        """Dual coefficients: inverse covariance matrix of the distinct rows times their centred targets, (m,)."""
        check_is_fitted(self)
        return self._posterior.best.alpha / self._scale

    @property
    def spectrum_(self) -> Spectrum:
        """Fourier spectrum of the posterior mean, n up to 20; over the signs of the cuts, for real columns."""
        coefficients = self._scale * self._on_cube("a spectrum").cube.coefficients
        coefficients[0] += self.y_mean_
        return Spectrum.from_coefficients(coefficients)

    def _coefficients(self, subsets: Iterable[Iterable[int]] | None) -> tuple[Array, Array]:
        """Posterior means and standard deviations (N,) of coefficients."""
        with blas_threads(len(self._posterior.rows) ** 3 / 3):
            if subsets is None:
                posterior = self._on_cube("all coefficients")
                mean, variance = self.spectrum_.coefficients, posterior.coefficient_variances
            else:
                named = self._named(subsets)
                mean, variance = self._posterior.coefficient_moments(named)
                mean = self._scale * mean + np.array([0.0 if subset else self.y_mean_ for subset in named])
        return mean, self._scale * np.sqrt(variance)

    def _means(self, subsets: list[Subset]) -> Array:
        """Posterior means (N,) of some coefficients, of more than 20 columns, without deviations, which take long."""
        means = self._scale * self._posterior.coefficient_means(subsets)
        return means + [0.0 if subset else self.y_mean_ for subset in subsets]

    def variance_decomposition(
        self, n_samples: int = 400, random_state: int | np.random.RandomState | None = 0
    ) -> VarianceDecomposition:
        """Posterior of the variance by degree, its shares, and the influence of each column; n up to 20.

        From draws of the function. The spectrum of the mean has less variance than the mean of these: what the rows
        leave open has variance too.
        """
        posterior = self._on_cube("a decomposition of the variance")
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))
        return variance_decomposition(self._in_units_of_y(block) for block in posterior.draws(n_samples, rng))

    def _in_units_of_y(self, coefficients: Array) -> Array:
        coefficients *= self._scale
        coefficients[:, 0] += self.y_mean_
        return coefficients

    def _on_cube(self, what: str) -> MarginalPosterior:
        check_is_fitted(self)
        if not isinstance(self._posterior.best, CubePosterior):
            raise AttributeError(
                f"{what} of {self.n_features_in_} columns needs 2**{self.n_features_in_} coefficients, made for up to "
                f"{LARGEST_CUBE} columns; name some subsets in standard_errors or confidence_intervals."
            )
        return self._posterior

    @locked
    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, which :func:`sparsact.load` reads back."""
        check_is_fitted(self)
        arrays = posterior_arrays(self._posterior)
        arrays["units"] = np.array([self.y_mean_, self._scale, self.log_marginal_likelihood_value_])
        changed = {}
        if isinstance(self.kernel, CubeKernel):
            changed = {"kernel": "auto"}  # a value of its own, below
            arrays |= schema.add_prefix("given", kernel_arrays(self.kernel))
        self._write(path, arrays, params=changed)

    @classmethod
    def _from_file(cls, state: State, arrays: Arrays) -> Self:
        """The regressor that :meth:`save` wrote."""
        learner, read = cls._read(state, arrays, _UNITS)
        n = learner.n_features_in_
        learner.y_mean_, learner._scale, learner.log_marginal_likelihood_value_ = read["units"].tolist()
        if not learner._scale > 0:
            raise ValueError("a scale that is not positive")
        learner._posterior = read_posterior(n, arrays)
        if given := schema.strip_prefix("given", arrays):
            learner.kernel = read_kernel(n, given)
        return learner
