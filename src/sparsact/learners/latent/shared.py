"""Fitted traits that several targets share: from rows and targets to energies, expected measurements, and files."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import characters, subset_masks, subsets_of
from sparsact.learners.gp.kernel import Array
from sparsact.learners.latent import newton
from sparsact.learners.latent.latents import Latent, LatentFit, Traits, squeezed
from sparsact.learners.latent.links import Sigmoid
from sparsact.learners.latent.targets import Targets, expected_clipped, expected_exponential
from sparsact.learners.latent.traits import SharedTarget, TraitProblem, fractions, traits_of
from sparsact.saving import schema
from sparsact.saving.schema import ArrayField, Arrays

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_ARRAYS: Final = {
    "values": ArrayField("k p", finite=True),
    "covariance": ArrayField("k p k p", finite=True),
    "conditional": ArrayField("k p k p", finite=True),
    "units": ArrayField("t 3", finite=True),
    "bounds": ArrayField("t 2"),
    "freedom": ArrayField("1", nonnegative=True),
}


@dataclass(frozen=True, eq=False)
class SharedMeasurement:
    """Links of T targets, their noise, levels and heights (T, 3), and bounds (T, 2), infinite where there is none."""

    links: tuple[str, ...]
    units: Array
    bounds: Array

    @property
    def noise_deviation(self) -> Array:
        """Deviations (T,) of noise."""
        return self.units[:, 0].copy()

    def _means(self, t: int, traits: Array) -> Array:
        """Means of a target (or its logarithm) at its traits (m, j)."""
        return np.asarray(self.units[t, 1] + self.units[t, 2] * fractions(self.links[t], traits).value)

    def curve(self, latent: Array) -> Array:
        """Targets without noise at traits (m, K) or (m,), (m, T) or (m,)."""
        places = traits_of(self.links)
        n_traits = 1 + max(map(max, places))
        f = latent[:, None] if latent.ndim == 1 else latent
        if f.ndim != 2 or f.shape[1] != n_traits:
            raise ValueError(f"`latent` must have a column for each of {n_traits} traits; got shape {latent.shape}.")
        means = [self._means(t, f[:, traits]) for t, traits in enumerate(places)]
        values = [np.exp(mean) if link == "log" else mean for link, mean in zip(self.links, means, strict=True)]
        return squeezed(np.clip(np.stack(values, axis=1), *self.bounds.T))

    def expected(self, means: Array, covariances: Array) -> Array:
        """Expected targets, (m, T) or (m,), of normal traits, noise and bounds included."""
        found = []
        for t, traits in enumerate(traits_of(self.links)):
            own = covariances[:, traits][:, :, traits]
            jitter = 1e-12 * (1 + np.trace(own, axis1=1, axis2=2))
            factor = np.linalg.cholesky(own + jitter[:, None, None] * np.eye(len(traits)))
            expectation = expected_exponential if self.links[t] == "log" else expected_clipped
            noise, bounds = np.full(len(means), self.units[t, 0]), (self.bounds[t, 0], self.bounds[t, 1])
            total = np.zeros(len(means))
            for nodes in product(range(len(_NODES)), repeat=len(traits)):
                at = self._means(t, means[:, traits] + factor @ _NODES[list(nodes)])
                total += np.prod(_WEIGHTS[list(nodes)] / _WEIGHTS.sum()) * expectation(at, noise, bounds)
            found.append(total)
        return squeezed(np.stack(found, axis=1))


def fitted_traits(
    bits: Array,
    targets: list[tuple[NDArray[np.intp], Targets]],
    links: tuple[str, ...],
    degree: int,
    alpha: float | None,
    max_iter: int,
) -> LatentFit[SharedMeasurement]:
    """Traits of products of up to ``degree`` columns of bits (m, n), from the rows that have each target."""
    weights = np.zeros(len(bits))
    measured, units = [], []
    for link, traits, (rows, raw) in zip(links, traits_of(links), targets, strict=True):
        weights[rows] += raw.weights
        own = raw.logarithms() if link == "log" else raw
        centre, scale = own.centre_and_scale()
        units.append((centre, scale))
        measured.append(SharedTarget(link, traits, rows, own.standardized(centre, scale)))
    subsets = subsets_of(subset_masks(bits.shape[1], degree))
    monomials = characters(1 - 2 * bits, subsets)
    to_cube = np.eye(len(subsets))  # from monomials less their means
    to_cube[0, 1:] = -np.average(monomials[:, 1:], axis=0, weights=weights)
    monomials[:, 1:] += to_cube[0, 1:]
    sizes = np.array([len(subset) for subset in subsets])
    penalty = np.full((1 + max(map(max, traits_of(links))), len(subsets)), 1.0 if alpha is None else alpha)
    penalty[:, 0] = Sigmoid.place_unit**-2
    K, n = len(penalty), penalty.size
    problem = TraitProblem(monomials, sizes, measured, penalty, np.zeros((len(links), 2)))
    solved, information = problem.fitted(max_iter, learns_penalty=alpha is None)
    (b, measurements), (centres, scales) = problem.parts(solved.value), np.array(units).T

    def spread(covariance: Array) -> Array:
        parts = covariance[:n, :n].reshape(K, len(subsets), K, len(subsets))
        return np.ascontiguousarray(np.einsum("ip,kplq,jq->kilj", to_cube, parts, to_cube, optimize="greedy"))

    covariance, conditional = newton.inverse(information), newton.inverse(information[:n, :n])
    latent = Traits(subsets, np.ascontiguousarray(b @ to_cube.T), spread(covariance), spread(conditional))
    noise = 1 / measurements[:, 0]
    level, height = measurements[:, 1] * noise, measurements[:, 2] * noise
    measurement = SharedMeasurement(
        links,
        np.stack([scales * noise, centres + scales * level, scales * height], axis=1),
        np.array([raw.bounds for _, raw in targets]),
    )
    freedom = max(sum(one.targets.measured for one in measured) - n - 2 * len(links), 1.0)
    return LatentFit(latent, measurement, solved.converged, solved.steps, freedom)


# ---- files ----


def shared_arrays(latent: Latent, measurement: SharedMeasurement, freedom: float) -> Arrays:
    """The arrays of a file."""
    own = {name: getattr(latent, name) for name in ("values", "covariance", "conditional")}
    return own | {"units": measurement.units, "bounds": measurement.bounds, "freedom": np.array([freedom])}


def read_shared(
    links: tuple[str, ...], n: int, degree: int, steps: int, arrays: Arrays
) -> LatentFit[SharedMeasurement]:
    """The fit that :func:`shared_arrays` wrote."""
    subsets = subsets_of(subset_masks(n, degree))
    k = 1 + max(map(max, traits_of(links)))
    read = schema.read_arrays(_ARRAYS, arrays, k=k, p=len(subsets), t=len(links))
    units, bounds, freedom = read["units"], read["bounds"], float(read["freedom"][0])
    if not ((units[:, ::2] > 0).all() and (bounds[:, 0] < bounds[:, 1]).all() and freedom):
        raise ValueError("units, bounds or degrees of freedom that are none")
    latent = Traits(subsets, *(read[name] for name in ("values", "covariance", "conditional")))
    return LatentFit(latent, SharedMeasurement(links, units, bounds), True, steps, freedom)
