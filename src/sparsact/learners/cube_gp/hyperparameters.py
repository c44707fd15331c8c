r"""Kernels by name with weak priors of their parameters, and the parameters of greatest posterior density.

Targets have variance one here. A prior is Gaussian in the logarithms of prior variances: the mean coefficient varies as
much as the targets; a coefficient of a single coordinate has about .7 / n of the variance, and each further one a share
of :math:`e^{-.3} / n`, of a sparse product :math:`e^{-2.3} / n`. Second components begin weaker, and rougher. The
priors decide where few rows do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.linalg import block_diag

from sparsact.learners.cube_gp.component import LARGEST_CUBE, Component
from sparsact.learners.cube_gp.kernel import CubeKernel
from sparsact.learners.cube_gp.merged_rows import DistinctRows
from sparsact.learners.cube_gp.posterior import Hyperparameters
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.search import MAX_STEPS, by_quasi_newton

KERNELS: Final = ("product", "sparse_product", "degree", "degree_site", "degree_site_pair")  # names, which "+" joins
NOISE_FLOOR: Final = 1e-3  # of the variance of the targets, for a typical row
_NOISE, _NOISE_SD = float(np.log(0.08)), 1.5
_REMEDY: Final = "choose a kernel of fewer parameters, or fit again with warm_start=True, from where this has ended"
_UNFIT: Final = 1e10  # negative log density where a matrix is not positive definite
_LARGEST_NOISE: Final = 50.0  # logarithm
_STEP: Final = 1e-3  # of differences of gradients
_UNEQUAL, _UNEQUAL_SPARSE = 1.5, 2.5  # deviations of the sites of a product kernel from a slope that all share
_LEAST_CURVATURE: Final = 0.1  # of a normal approximation: no logarithm has a deviation above 3.2


@dataclass(frozen=True, eq=False)
class Hyperprior:
    """Gaussian prior of a kernel's ``theta`` and of the logarithm of the noise variance above its floor.

    The noise is that of a row of weight ``noise_unit``.
    """

    kernel: CubeKernel  # its theta is the mean
    precision: Array
    noise_unit: float = 1.0
    noise_floor: float = NOISE_FLOOR

    def of_rows(self, rows: DistinctRows) -> Hyperprior:
        """With the noise of a row of typical weight; the more their weights differ, the less is known of it."""
        unit, precision = rows.typical_weight, self.precision.copy()
        precision[-1, -1] = 1 / (_NOISE_SD**2 + rows.spread**2)
        floor = unit * NOISE_FLOOR * float(np.exp(-2 * rows.spread))
        return replace(self, precision=precision, noise_unit=unit, noise_floor=floor)

    @property
    def mean(self) -> Array:
        """Means of all parameters, the noise last."""
        return np.append(self.kernel.theta, _NOISE)

    def log_density(self, parameters: Array) -> tuple[float, Array]:
        """Logarithm of the density up to a constant, and its gradient."""
        away = parameters - self.mean
        pull = self.precision @ away
        return -0.5 * float(away @ pull), -pull

    def hyperparameters(self, parameters: Array, noise_variance: float | None) -> Hyperparameters:
        """Kernel and noise variance of some parameters; the noise may be known."""
        if noise_variance is None:
            above = self.noise_unit * float(np.exp(min(parameters[-1], _LARGEST_NOISE)))
            noise_variance = above + self.noise_floor
        return Hyperparameters(self.kernel.with_theta(parameters[:-1]), noise_variance)


@dataclass(frozen=True, eq=False)
class HyperparameterPosterior:
    """Laplace's approximation of the posterior of kernel and noise: normal around the most probable parameters."""

    prior: Hyperprior
    rows: DistinctRows
    known_noise: float | None
    mode: Array
    known_precision: Array | None = None

    @property
    def best(self) -> Hyperparameters:
        """The most probable kernel and noise."""
        return self.prior.hyperparameters(self.mode, self.known_noise)

    def draws(self, n_samples: int, rng: np.random.Generator) -> Array:
        """Draws (n_samples, k + 1) of the kernel's ``theta`` and the logarithm of the noise variance."""
        values, vectors = np.linalg.eigh(self._precision())
        normal = rng.standard_normal((n_samples, len(values))) / np.sqrt(np.maximum(values, _LEAST_CURVATURE))
        drawn = [self.prior.hyperparameters(row, self.known_noise) for row in self.mode + normal @ vectors.T]
        return np.stack([np.append(one.kernel.theta, np.log(one.noise_variance)) for one in drawn])

    def _precision(self) -> Array:
        """Negative second derivatives of the log density: k + 2 gradients, as many as a search takes steps."""
        if self.known_precision is not None:
            return self.known_precision
        units = _STEP * np.eye(len(self.mode))
        gradient, *others = (self.log_density(self.mode + unit)[1] for unit in (np.zeros_like(self.mode), *units))
        hessian = (gradient - np.stack(others)) / _STEP
        return np.asarray((hessian + hessian.T) / 2)

    def log_density(self, parameters: Array) -> tuple[float, Array]:
        """Log posterior density of some parameters, and its gradient."""
        density, pull = self.prior.log_density(parameters)
        tried = replace(self, mode=parameters)
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # a step of the search may be too long
                value, by_kernel, by_noise = tried.best.log_likelihood_gradient(self.rows)
        except np.linalg.LinAlgError:
            return -_UNFIT, np.zeros_like(parameters)
        return value + density, np.append(by_kernel, by_noise * tried.noise_slope) + pull

    @property
    def noise_slope(self) -> float:
        """Derivative of the noise variance by its parameter; 0 of one that is known."""
        return self.best.noise_variance - self.prior.noise_floor if self.known_noise is None else 0.0


def prior_of(name: str, n: int) -> Hyperprior:
    """Prior of a kernel by its name, such as ``"degree_site + product"``.

    ``"auto"`` is degrees and sites where a table of all subsets is small, else a product.
    """
    if name == "auto":
        name = "degree_site" if n <= LARGEST_CUBE else "product"
    parts = [part.strip() for part in name.split("+")]
    unknown = [part for part in parts if part not in KERNELS]
    if unknown:
        raise ValueError(
            f"kernel={name!r} names {unknown[0]!r}; kernels are {', '.join(map(repr, KERNELS))}, sums of them such as "
            '"degree_site + product", a CubeKernel, or "auto".'
        )
    kernel = CubeKernel(tuple(_component(part, n, place) for place, part in enumerate(parts)))
    return prior_around(kernel, [_UNEQUAL_SPARSE if part == "sparse_product" else _UNEQUAL for part in parts])


def prior_around(kernel: CubeKernel, unequal: Sequence[float] = ()) -> Hyperprior:
    """The prior of the same kinds of components with other means; of a product, how ``unequal`` its sites may be."""
    parts = zip(kernel.components, unequal or [_UNEQUAL] * len(kernel.components), strict=True)
    blocks = [block for component, deviation in parts for block in _precisions(component, deviation)]
    return Hyperprior(kernel, block_diag(*blocks, np.full((1, 1), _NOISE_SD**-2)))


def _component(name: str, n: int, place: int) -> Component:
    """Prior mean of a component; later ones are weaker and their variances decrease more slowly with the degree."""
    slope = -np.log(n) - (2.3 if name == "sparse_product" else 0.3) if place == 0 else -1.2 / place
    first = np.log(0.7 / n) - 1.5 * place
    if name.endswith("product"):
        return Component(n, np.array([first - slope]), np.full(n, slope), np.empty(0))
    by_degree = np.append(0.0, first + slope * np.arange(n))
    sites = n if name.startswith("degree_site") else 0
    return Component(n, by_degree, np.zeros(sites), np.zeros(n * (n - 1) // 2 if name.endswith("pair") else 0))


def _precisions(component: Component, unequal: float) -> list[Array]:
    """Prior precisions of the blocks of a component's parameters; ``unequal``: deviation of the sites of a product."""
    n, blocks = component.n, []
    if len(component.by_degree) == 1:
        blocks += [np.full((1, 1), 1 / 9)]
        site = np.linalg.inv(unequal**2 * np.eye(n) + 1.0)  # deviations of sites, and a slope that all share
    else:
        blocks += [np.eye(1), _smooth(n)]
        site = np.eye(n) / 1.2**2
    if component.by_site.size:
        blocks += [site]
    if component.by_pair.size:
        blocks += [np.eye(component.by_pair.size) / 0.3**2]
    return blocks


def _smooth(n: int) -> Array:
    """Precision of logarithms at degrees 1 to n whose level, slope and curvature have deviations 3, 1.5 and .7."""
    rows = [np.eye(n)[:1] / 3, np.diff(np.eye(n), axis=0)[:1] / 1.5, np.diff(np.eye(n), n=2, axis=0) / 0.7]
    differences = np.concatenate([row for row in rows if row.size])
    return np.asarray(differences.T @ differences)


def most_probable(start: HyperparameterPosterior, *, max_steps: int = MAX_STEPS) -> HyperparameterPosterior:
    """Parameters of greatest posterior density given the same rows, by L-BFGS from a start.

    Rows are standardized. Each step costs a Cholesky factor and its inverse. A search that ends at ``max_steps`` warns.
    """
    found = by_quasi_newton(start.log_density, start.mode, max_steps=max_steps)
    mode = found.checked("the search for kernel and noise (its gradient)", _REMEDY)
    return replace(start, mode=mode)
