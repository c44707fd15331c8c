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
from sparsact.hypercube import points
from sparsact.kernels.dispatch import blas_threads
from sparsact.learners.cube_gp.kernel import CubeKernel
from sparsact.learners.cube_gp.merged_rows import DistinctRows, distinct_points
from sparsact.learners.cube_gp.posterior import Hyperparameters
from sparsact.learners.cube_gp.posterior_mixture import MarginalPosterior, VarianceDecomposition, variance_decomposition
from sparsact.learners.cube_gp.saving import kernel_arrays, posterior_arrays, read_kernel, read_posterior
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.systems.inducing import InducingSystem
from sparsact.learners.on_cube import OnCube
from sparsact.learners.programs import ExportedFunction, ProgramSource, RowSymbols, program_of_values
from sparsact.saving import schema
from sparsact.saving.schema import ArrayField, Arrays, State
from sparsact.transaction import locked
from sparsact.validation.arrays import checked_reals
from sparsact.validation.parameters import checked_probability

_LIKELIHOOD: Final = {"likelihood": ArrayField("1")}


class FittedCubeGP(OnCube, ExportedFunction):
    """Reading side of :class:`CubeGPRegressor`."""

    _CONTENT = "_posterior"

    kernel: str | CubeKernel
    log_marginal_likelihood_value_: float
    _posterior: MarginalPosterior

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Posterior means of the function, (m,); with ``return_std`` also its standard deviations, (m,).

        The deviations are the function's; for new measurements see :meth:`prediction_intervals`.
        """
        bits = self._bits(X)
        mean = self._posterior.values(bits)
        return (mean, self._deviations(bits)) if return_std else mean

    def _out_of_fold(self, X: ArrayLike, y: Array, weights: Array | None, folds: NDArray[np.intp]) -> Array:
        """Predictions (m,) of the rows of a fit with inducing points, by its kernel, each from other folds' rows."""
        system, bits = cast("InducingSystem", self._posterior.best.system), self._bits(X)
        number = distinct_points(np.concatenate([system.points, bits]))[1]
        place = np.full(number.max() + 1, -1)
        place[number[: len(system)]] = np.arange(len(system))
        place = place[number[len(system) :]]
        fitted = place >= 0  # others have no weight
        posterior = self._posterior
        z, weights = (y - posterior.shift) / posterior.unit, np.where(fitted, 1.0 if weights is None else weights, 0.0)
        others = weights * (folds != np.arange(folds.max() + 1)[:, None])  # (folds, m): 0 for the fold's own rows
        total, sums = (
            np.stack([np.bincount(place[fitted], of_fold[fitted], len(system)) for of_fold in each])
            for each in (others, others * z)
        )
        noise = np.divide(posterior.given.noise_variance, total, out=np.full_like(total, np.inf), where=total > 0)
        targets = np.divide(sums, total, out=np.zeros_like(sums), where=total > 0)
        solved = system.solve(targets, system.tolerance, noise).checked(system.solver, system.remedy)
        predicted = system.products(solved)[folds, place]
        predicted[~fitted] = posterior.best.values(bits[~fitted])
        return posterior.shift + posterior.unit * predicted

    def _deviations(self, bits: Array) -> Array:
        with blas_threads(len(self._posterior.rows) ** 3 / 3):
            return self._posterior.deviations(bits)

    def prediction_intervals(self, X: ArrayLike, confidence: float = 0.95) -> Array:
        """Intervals (m, 2) in which new measurements of weight 1 lie with probability ``confidence``.

        Where errors of measured rows, each predicted from the others, have heavier tails than a normal distribution,
        intervals are as wide as that share of them needs; and wider where values of larger errors are predicted.
        """
        bits = self._bits(X)
        mean = self._posterior.values(bits)
        deviations = self._posterior.interval_deviations(mean, checked_probability(confidence, "`confidence`"))
        half = deviations * np.hypot(self._deviations(bits), self._posterior.noise_deviation)
        return np.stack([mean - half, mean + half], axis=-1)

    def sample_y(
        self, X: ArrayLike, n_samples: int = 1, random_state: int | np.random.RandomState | None = 0
    ) -> NDArray[np.float64]:
        """Draws of the function at rows X from its posterior, (m, n_samples)."""
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))
        return np.asarray(self._posterior.draws_at(self._bits(X), n_samples, rng).T)

    def log_marginal_likelihood(self, theta: ArrayLike | None = None) -> float:
        """Log marginal likelihood of all m rows, with inducing points too, by a Cholesky factor.

        It takes m^3 / 3 multiplications. A matrix of all rows for which there is no memory is refused.

        Parameters
        ----------
        theta : array-like of shape (k + 1,), optional
            Parameters of a kernel of the same kind and the logarithm of the noise variance. Those found by default:
            ``kernel_.theta`` and the logarithm of ``noise_variance_``.
        """
        check_is_fitted(self)
        tried, rows, unit = self._posterior.given, self._posterior.rows, self._posterior.unit
        if theta is not None:
            given = checked_reals(theta, "`theta`")
            if given.shape != (tried.kernel.theta.size + 1,):
                raise ValueError(
                    f"`theta` holds {tried.kernel.theta.size} parameters of the kernel and the logarithm of the noise "
                    f"variance; got shape {given.shape}."
                )
            kernel = self.kernel_.with_theta(given[:-1]).times(1 / unit)
            tried = Hyperparameters(kernel, float(np.exp(given[-1] - 2 * np.log(unit))))
        with blas_threads(len(rows) ** 3 / 3):
            return self._in_units(tried.log_likelihood(rows), rows)

    def _in_units(self, log_likelihood: float, rows: DistinctRows) -> float:
        """Log-likelihood of targets in the units of y."""
        return log_likelihood - float(rows.counts.sum() * np.log(self._posterior.unit))

    @property
    def kernel_(self) -> CubeKernel:
        """The kernel, in the units of y squared."""
        check_is_fitted(self)
        return self._posterior.given.kernel.times(self._posterior.unit)

    @property
    def noise_variance_(self) -> float:
        """Variance of the noise of a row of weight 1."""
        check_is_fitted(self)
        return self._posterior.given.noise_variance * self._posterior.unit * self._posterior.unit

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
    def y_mean_(self) -> float:
        """Weighted mean of the targets."""
        check_is_fitted(self)
        return self._posterior.shift

    @property
    def alpha_(self) -> Array:
        """Dual coefficients: inverse covariance matrix of the distinct rows times their centred targets, (m,)."""
        check_is_fitted(self)
        return self._posterior.best.alpha / self._posterior.unit

    @property
    def spectrum_(self) -> Spectrum:
        """Fourier spectrum of the posterior mean, n up to 20; over the signs of the cuts, for real columns."""
        check_is_fitted(self)
        return Spectrum.from_coefficients(self._posterior.all_means)

    def _coefficients(self, subsets: Iterable[Iterable[int]] | None) -> tuple[Array, Array]:
        """Posterior means and standard deviations (N,) of coefficients."""
        with blas_threads(len(self._posterior.rows) ** 3 / 3):
            return self._posterior.coefficients(None if subsets is None else self._named(subsets))

    def variance_decomposition(
        self, n_samples: int = 400, random_state: int | np.random.RandomState | None = 0
    ) -> VarianceDecomposition:
        """Posterior of the variance by degree, its shares, and the influence of each column; n up to 20.

        From draws of the function. The spectrum of the mean has less variance than the mean of these: what the rows
        leave open has variance too.
        """
        check_is_fitted(self)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))
        return variance_decomposition(self._posterior.draws(n_samples, rng))

    def _program(self) -> ProgramSource:
        check_is_fitted(self)
        inputs, values = RowSymbols(self.n_features_in_, self.encoding_, self.cuts_), self._posterior.values
        return program_of_values(inputs, type(self).__name__, lambda: values((points(inputs.n) < 0).astype(np.float64)))

    @locked
    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, which :func:`sparsact.load` reads back."""
        check_is_fitted(self)
        arrays = posterior_arrays(self._posterior)
        arrays["likelihood"] = np.array([self.log_marginal_likelihood_value_])
        changed = {}
        if isinstance(self.kernel, CubeKernel):
            changed = {"kernel": "auto"}  # a value of its own, below
            arrays |= schema.add_prefix("given", kernel_arrays(self.kernel))
        self._write(path, arrays, params=changed)

    @classmethod
    def _from_file(cls, state: State, arrays: Arrays) -> Self:
        """The regressor that :meth:`save` wrote."""
        learner, read = cls._read(state, arrays, _LIKELIHOOD)
        n = learner.n_features_in_
        learner.log_marginal_likelihood_value_ = float(read["likelihood"][0])
        learner._posterior = read_posterior(n, arrays)
        if given := schema.strip_prefix("given", arrays):
            learner.kernel = read_kernel(n, given)
        return learner
