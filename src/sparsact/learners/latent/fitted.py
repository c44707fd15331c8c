"""What a fitted measurement model says: expected measurements, latents, coefficients, and its file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sparsact.fourier import Spectrum
from sparsact.hypercube import Subset, n_subsets, subset_masks, subsets_of
from sparsact.learners.cube_gp.saving import posterior_arrays, read_posterior
from sparsact.learners.gp.kernel import Array
from sparsact.learners.latent.latents import Latent, LatentFit, PolynomialLatent, ProcessLatent
from sparsact.learners.latent.links import LINKS
from sparsact.learners.latent.measurement import FittedMeasurement, KnownCurve
from sparsact.learners.latent.selection import MOST_COLUMNS, MOST_MONOMIALS, LatentCandidate
from sparsact.learners.latent.shared import SharedMeasurement, read_shared, shared_arrays
from sparsact.learners.latent.traits import SHARING
from sparsact.learners.on_cube import LEARNED, OnCube
from sparsact.learners.points import unpack
from sparsact.saving import schema
from sparsact.saving.schema import ArrayField, Arrays, Checks, State
from sparsact.transaction import locked
from sparsact.validation.arrays import checked_reals


def _candidates(value: Any, name: str) -> list[LatentCandidate]:
    return [LatentCandidate(schema.as_str(a, name), schema.as_count(b, name), float(c)) for a, b, c in value]


def _links(value: Any, name: str) -> str | tuple[str, ...]:
    """A link, or the ones of targets that share traits."""
    links = tuple(schema.as_strs(value, name)) if isinstance(value, list) else schema.as_str(value, name)
    if isinstance(links, tuple) and not (links and set(links) <= set(SHARING)):
        raise ValueError(f"links {str(links)[:40]}")
    return links


_LEARNED: Final[Checks] = {
    **LEARNED,
    "n_censored_": schema.as_n_rows,
    "link_": _links,
    "degree_": schema.as_count,
    "n_iter_": schema.as_count,
    "candidates_": _candidates,
}
_POLYNOMIAL: Final = {
    "values": ArrayField("p", finite=True),
    "covariance": ArrayField("p p", finite=True),
    "conditional": ArrayField("p p", finite=True),
    "units": ArrayField("2", finite=True),
}
_ARRAYS: Final = {
    "curve": ArrayField("k", finite=True),
    "units": ArrayField("5", finite=True),
    "bounds": ArrayField("2"),
    "freedom": ArrayField("1", nonnegative=True),
}


class FittedLatent(OnCube):
    """Reading side of :class:`LatentRegressor`."""

    _LEARNED, _CONTENT = _LEARNED, "_fitted"

    latent: str
    link_: str | tuple[str, ...]
    degree_: int
    n_iter_: int
    n_censored_: int
    candidates_: list[LatentCandidate]
    _fitted: LatentFit[FittedMeasurement] | LatentFit[SharedMeasurement]

    def predict(self, X: ArrayLike) -> Array:
        """Expected measured values, (m,) or (m, T): over the noise, the bounds and what rows leave open of latents."""
        bits = unpack(self._points(X), "bits")  # raises before a fit
        return self._fitted.expected(bits)

    def predict_latent(self, X: ArrayLike, return_std: bool = False) -> Any:
        """The latent, (m,), or K traits (m, K); with ``return_std`` also their standard deviations."""
        mean, deviation = self._fitted.latent.moments(unpack(self._points(X), "bits"))
        return (mean, deviation) if return_std else mean

    def curve(self, latent: ArrayLike) -> Array:
        """What would be measured of latents (m,) or traits (m, K) without noise: the links, between the bounds."""
        check_is_fitted(self)
        return np.asarray(self._fitted.measurement.curve(checked_reals(latent, "`latent`")))

    @property
    def censoring_(self) -> Any:
        """Lower and upper bound of the targets, None where there is none; of several targets a list of these."""
        check_is_fitted(self)
        bounds = np.atleast_2d(self._fitted.measurement.bounds).tolist()
        found = [(None if np.isinf(lower) else lower, None if np.isinf(upper) else upper) for lower, upper in bounds]
        return found[0] if len(found) == 1 else found

    @property
    def noise_deviation_(self) -> Any:
        """Standard deviation of the noise of y, or with the link ``"log"`` of log y; (T,) of several targets."""
        check_is_fitted(self)
        noise = self._fitted.measurement.noise_deviation
        return np.asarray(noise).item() if np.size(noise) == 1 else noise

    @property
    def subsets_(self) -> list[Subset]:
        """The monomials of a latent polynomial, or of each trait, but the empty one, by size, then lexicographic."""
        latent = self._fitted.latent
        if isinstance(latent, ProcessLatent):
            raise AttributeError("a latent process has all subsets; name some in confidence_intervals.")
        return latent.subsets[1:]

    @property
    def spectrum_(self) -> Spectrum | list[Spectrum]:
        """Fourier spectrum of the latent (of a process: of the posterior mean, n up to 20); of traits a list."""
        check_is_fitted(self)
        latent = self._fitted.latent
        values, _ = latent.coefficients(None)
        if isinstance(latent, ProcessLatent):
            return Spectrum.from_coefficients(values)
        each = np.atleast_2d(values)
        spectra = [Spectrum.from_coefficients(own, latent.subsets, self.n_features_in_) for own in each]
        return spectra[0] if len(spectra) == 1 else spectra

    def _coefficients(self, subsets: Iterable[Iterable[int]] | None) -> tuple[Array, Array]:
        """Coefficients and their standard errors, (N,) or (K, N)."""
        latent = self._fitted.latent
        if subsets is None:
            named = None if isinstance(latent, ProcessLatent) else self.subsets_
        else:
            named = self._named(subsets)
        return latent.coefficients(named)

    # ---- files ----

    @locked
    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, which :func:`sparsact.load` reads back."""
        check_is_fitted(self)
        tried = [[c.link, c.degree, c.log_likelihood] for c in self.candidates_]
        self._write(path, self._own_arrays(), learned={"candidates_": tried})

    def _own_arrays(self) -> Arrays:
        one, latent = self._fitted.measurement, self._fitted.latent
        if isinstance(one, SharedMeasurement):
            return schema.add_prefix("shared", shared_arrays(latent, one, self._freedom))
        known = one.known
        if isinstance(latent, ProcessLatent):
            own = posterior_arrays(latent.posterior)
        else:
            own = {name: getattr(latent, name) for name in ("values", "covariance", "conditional")}
            own |= {"units": np.array([getattr(latent, name) for name in ("shift", "unit")])}
        return schema.add_prefix("latent", own) | {
            "curve": known.c,
            "units": np.array([one.noise_deviation, known.level, known.height, known.shift, known.unit]),
            "bounds": np.array(one.bounds),
            "freedom": np.array([self._freedom]),
        }

    @classmethod
    def _from_file(cls, state: State, arrays: Arrays) -> Self:
        """The regressor that :meth:`save` wrote."""
        shares = isinstance(state["learned"]["link_"], list)
        learner, read = cls._read(state, arrays, {} if shares else _ARRAYS)
        n = learner.n_features_in_
        if not isinstance(learner.link_, str):
            if learner.degree_ > n or (learner.degree_ > 1 and n_subsets(n, learner.degree_) > MOST_MONOMIALS):
                raise ValueError(f"traits of degree {learner.degree_}")
            own = schema.strip_prefix("shared", arrays)
            learner._fitted = read_shared(learner.link_, n, learner.degree_, learner.n_iter_, own)
            learner._freedom = learner._fitted.freedom
            return learner
        bounds = read["bounds"]
        noise, level, height, shift, unit = read["units"].tolist()
        link = LINKS.get("identity" if learner.link_ == "log" else learner.link_)
        if link is None or len(read["curve"]) != link().n_parameters:
            raise ValueError(f"a link {learner.link_!r} of {len(read['curve'])} parameters")
        if not (noise > 0 and height > 0 and unit > 0 and bounds[0] < bounds[1]) or not read["freedom"][0]:
            raise ValueError("units, bounds or degrees of freedom that are none")
        known = KnownCurve(link(), read["curve"], level, height, shift, unit)
        measurement = FittedMeasurement(learner.link_, known, noise, (float(bounds[0]), float(bounds[1])))
        own, learner._freedom = schema.strip_prefix("latent", arrays), float(read["freedom"][0])
        latent: Latent
        if learner.latent == "gp":
            latent = ProcessLatent(read_posterior(n, own))
        else:
            if len(own["values"]) > MOST_COLUMNS + 1 or learner.degree_ > n:
                raise ValueError(f"{len(own['values'])} monomials of degree {learner.degree_}")
            subsets = subsets_of(subset_masks(n, learner.degree_))
            kept = schema.read_arrays(_POLYNOMIAL, own, p=len(subsets))
            shift, unit = kept.pop("units").tolist()
            latent = PolynomialLatent(subsets, **kept, shift=shift, unit=unit)
        learner._fitted = LatentFit(latent, measurement, True, learner.n_iter_, learner._freedom)
        return learner
