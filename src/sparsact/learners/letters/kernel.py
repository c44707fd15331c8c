r"""Product kernels over sites with letters: for each site a kernel between its letters, learned from features.

Between letters a and b of one site,

.. math:: k(a, b) = s + (1 - s) \big[ (1 - h) \, e^{-|z_a - z_b|^2 / 2} + h \, [a = b] \big], \qquad
          z_a = \lambda \circ \phi_a + e_a,

with features :math:`\phi_a` of the letter, learned scales :math:`\lambda`, small free deviations e, a share h that
every letter has for itself, and a share s that does not depend on the site. The covariance of two rows is the variance
of the function times the product over the sites.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from sparsact.learners.gp.kernel import Array, Codes

# Normal priors of the parameters, by mean and precision; targets have variance 1.
VARIANCE: Final = (0.0, 0.25)  # logarithm of the variance
NOISE: Final = (-1.5, 0.25)  # logarithm of the noise variance
SHARED: Final = (0.0, 0.0)  # logit of s
NUGGET: Final = (-2.0, 0.5)  # logit of h
SCALES: Final = (np.log(0.35), 1.0)  # logarithm of lambda
DEVIATION: Final = 0.15  # standard deviation of e
PLAIN_DEVIATION: Final = 0.5  # the same where each letter is a feature of its own, and nothing else is known of it
FIRST_NOISE: Final = np.log(0.2)
SITES_APART: Final = 4.0  # at which rows may differ while s begins at a half
LEAST_NOISE: Final = 1e-5
LEAST: Final = np.finfo(np.float64).tiny  # of a kernel: the logarithm of 0 is no number


class SiteKernel:
    """The kernel between the letters of one site, (q, q), from features (q, F) and 2 + F + q F parameters."""

    def __init__(self, features: Array, theta: Array) -> None:
        q, n_features = features.shape
        self.shared, self.nugget = expit(theta[0]), expit(theta[1])
        self.scaled = features * np.exp(theta[2 : 2 + n_features])
        self.places = self.scaled + theta[2 + n_features :].reshape(q, n_features)
        squares = (self.places**2).sum(axis=1)
        apart = np.maximum(squares[:, None] + squares - 2 * self.places @ self.places.T, 0.0)
        np.fill_diagonal(apart, 0.0)
        self.near = np.exp(-0.5 * apart)
        self.own = (1 - self.nugget) * self.near + self.nugget * np.eye(q)
        self.kernel = self.shared + (1 - self.shared) * self.own

    def pullback(self, by_kernel: Array) -> Array:
        """Derivatives by the parameters, from the symmetric derivatives by the kernel's entries."""
        s, h = self.shared, self.nugget
        by_shared = (by_kernel * (1 - self.own)).sum() * s * (1 - s)
        by_own = (1 - s) * by_kernel
        by_nugget = (np.trace(by_own) - (by_own * self.near).sum()) * h * (1 - h)
        pull = (1 - h) * by_own * self.near
        by_places = 2 * (pull @ self.places - pull.sum(axis=1)[:, None] * self.places)
        by_scales = (by_places * self.scaled).sum(axis=0)
        return np.concatenate([[by_shared, by_nugget], by_scales, by_places.ravel()])


@dataclass(frozen=True, eq=False)
class LetterKernel:
    """A product kernel and the variance of the noise, as one vector of parameters.

    Parameters
    ----------
    features : tuple of ndarray of shape (q_i, F_i)
        Features of the letters of each site.
    theta : ndarray of shape (k,)
        Logarithms of the variance and of the noise variance; then for each site the logits of s and h, logarithms of
        the scales, and the deviations.
    """

    features: tuple[Array, ...]
    theta: Array

    @classmethod
    def start(cls, features: Sequence[Array], n_apart: float = 0.0, noise: float = FIRST_NOISE) -> Self:
        """Where the search begins: the means of the prior, with noise of this logarithm, which is less.

        Where rows differ at ``n_apart`` sites, more than four, the share s of each is larger, so that rows correlate as
        with four: else rows of many sites would not, and nothing could be learned from one about another.
        """
        theta = prior(features)[0]
        theta[1] = noise
        kernel = cls(tuple(features), theta)
        theta[kernel._ends[:-1]] = np.log(max(1.0, n_apart / SITES_APART * 2 - 1))
        return kernel

    def with_theta(self, theta: Array) -> Self:
        """The same features with other parameters."""
        return type(self)(self.features, theta)

    def with_noise_times(self, factor: float) -> Self:
        """The same kernel with less or more noise."""
        theta = self.theta.copy()
        theta[1] += np.log(factor)
        return self.with_theta(theta)

    @property
    def variance(self) -> float:
        """Prior variance of the function."""
        return float(np.exp(self.theta[0]))

    @property
    def noise_variance(self) -> float:
        """Variance of the noise of a row of weight 1."""
        return float(np.exp(self.theta[1])) + LEAST_NOISE

    @property
    def _ends(self) -> NDArray[np.intp]:
        """Where the parameters of each site begin, and the end of the last."""
        return np.cumsum([2] + [2 + features.shape[1] + features.size for features in self.features])

    @cached_property
    def site_kernels(self) -> tuple[SiteKernel, ...]:
        """The kernel of each site."""
        pieces = zip(self.features, self._ends, self._ends[1:], strict=False)
        return tuple(SiteKernel(features, self.theta[start:end]) for features, start, end in pieces)

    @property
    def factors(self) -> list[Array]:
        """Kernels (q_i, q_i) between the letters of each site, with ones on the diagonal."""
        return [site.kernel for site in self.site_kernels]

    def matrix(self, points: Codes) -> Array:
        """Covariances (m, m) of rows of letters (m, n), in Fortran order."""
        return np.asfortranarray(self.covariance(points, points))

    def covariance(self, one: Codes, other: Codes, dtype: type[np.floating] = np.float64) -> NDArray[Any]:
        """Covariances (m, m') of the function at rows of letters (m, n) and (m', n), in some precision.

        Logarithms are added up: the value at the most frequent letter of each site and, for every other letter of a
        row, m' differences. Variants with few mutations cost few additions, whatever the number of sites.
        """
        common = _most_frequent(one, self.features)
        logarithms = [np.log(np.maximum(factor, LEAST)) for factor in self.factors]
        rows = [(of_site - of_site[c]).astype(dtype) for of_site, c in zip(logarithms, common, strict=True)]
        differences = np.concatenate([of_site.take(b, axis=1) for of_site, b in zip(rows, other.T, strict=True)])
        product: NDArray[Any] = _others(one, common, self.features, dtype) @ differences
        product += sum(of_site[c, b] for of_site, c, b in zip(logarithms, common, other.T, strict=True)).astype(dtype)
        np.exp(product, out=product)
        product *= dtype(self.variance)
        return product

    def pullback(self, points: Codes, lower: Array, covariance: NDArray[np.float32]) -> list[Array]:
        """Derivatives by the logarithm of the variance (1,), and by the parameters of each site.

        The function depends on the ``covariance`` (m, m) of rows of letters (m, n); ``lower`` has its derivatives by
        the covariance, on and below the diagonal. Single precision: m**2 multiplications for each letter of a site.
        """
        pull = lower.astype(np.float32)
        pull += pull.T
        pull[np.diag_indices(len(pull))] = lower.diagonal()
        pull *= covariance
        found = [np.array([pull.sum(dtype=np.float64)])]
        common, totals = _most_frequent(points, self.features), pull.sum(axis=1)
        by_letter = np.asarray(_others(points, common, self.features, np.float32).T @ pull)  # pull is symmetric
        ends = np.cumsum([0, *map(len, self.features)])
        for number, (site, c) in enumerate(zip(self.site_kernels, common, strict=True)):
            sums = by_letter[ends[number] : ends[number + 1]]
            sums[c] = totals - sums.sum(axis=0)
            indicators = (points[:, number, None] == np.arange(len(sums))).astype(np.float32)
            found.append(site.pullback((sums @ indicators).astype(np.float64) / site.kernel))
        return found


def _most_frequent(points: Codes, features: Sequence[Array]) -> NDArray[np.intp]:
    """The most frequent letter of each site."""
    counts = (np.bincount(of_site, minlength=len(one)) for of_site, one in zip(points.T, features, strict=True))
    return np.array([int(of_site.argmax()) for of_site in counts])


def _others(points: Codes, common: NDArray[np.intp], features: Sequence[Array], dtype: type[np.floating]) -> csr_array:
    """An indicator of each letter of each site, (m, letters of all sites), but 0 for the common ones."""
    ends = np.cumsum([0, *map(len, features)])
    rare = points != common
    starts = np.concatenate([[0], np.cumsum(rare.sum(axis=1))])
    places = (points + ends[:-1])[rare]
    return csr_array((np.ones(len(places), dtype), places, starts), shape=(len(points), int(ends[-1])))


def prior(features: Sequence[Array]) -> tuple[Array, Array]:
    """Means and precisions (k,) of the normal prior of the parameters."""
    pieces = [VARIANCE, NOISE]
    for of_site in features:
        deviation = DEVIATION if of_site.shape[1] < len(of_site) else PLAIN_DEVIATION
        pieces += [SHARED, NUGGET, *[SCALES] * of_site.shape[1], *[(0.0, deviation**-2)] * of_site.size]
    means, precisions = np.array(pieces).T
    return means.copy(), precisions.copy()
