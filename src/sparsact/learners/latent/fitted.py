"""What a fitted measurement model says: expected measurements, latents, coefficients, and its file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sparsact.fourier import Spectrum
from sparsact.hypercube import Subset, subset_masks, subsets_of
from sparsact.learners.cube_gp.saving import posterior_arrays, read_posterior
from sparsact.learners.gp.kernel import Array
from sparsact.learners.latent.fitting import LatentFit
from sparsact.learners.latent.latents import Latent, PolynomialLatent, ProcessLatent
from sparsact.learners.latent.links import LINKS
from sparsact.learners.latent.measurement import FittedMeasurement, KnownCurve
from sparsact.learners.latent.selection import MOST_MONOMIALS, LatentCandidate
from sparsact.learners.on_cube import LEARNED, OnCube
from sparsact.saving import schema
from sparsact.saving.schema import ArrayField, Arrays, Checks, State
from sparsact.transaction import locked
from sparsact.validation.arrays import checked_reals


def _candidates(value: Any, name: str) -> list[LatentCandidate]:
    return [LatentCandidate(schema.as_str(a, name), schema.as_count(b, name), float(c)) for a, b, c in value]


_LEARNED: Final[Checks] = {
    **LEARNED,
    "n_censored_": schema.as_n_rows,
    "link_": schema.as_str,
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
    link_: str
    degree_: int
    n_iter_: int
    n_censored_: int
    candidates_: list[LatentCandidate]
    _fitted: LatentFit

    def predict(self, X: ArrayLike) -> Array:
        """Expected measured values, (m,): over the noise, the bounds and what the rows leave open of the latent."""
        bits = self._bits(X)
        return self._fitted.measurement.expected(*self._fitted.latent.moments(bits, curve_known=True))

    def predict_latent(self, X: ArrayLike, return_std: bool = False) -> Any:
        """The latent, (m,); with ``return_std`` also its standard deviations, (m,), as :meth:`standard_errors`."""
        mean, deviation = self._fitted.latent.moments(self._bits(X))
        return (mean, deviation) if return_std else mean

    def curve(self, latent: ArrayLike) -> Array:
        """What would be measured of latents (m,) without noise: the learned link, between the bounds."""
        check_is_fitted(self)
        return np.asarray(self._fitted.measurement.curve(checked_reals(latent, "`latent`")))

    @property
    def censoring_(self) -> tuple[float | None, float | None]:
        """Lower and upper bound of the targets, None where there is none."""
        check_is_fitted(self)
        lower, upper = self._fitted.measurement.bounds
        return (None if np.isinf(lower) else lower, None if np.isinf(upper) else upper)

    @property
    def noise_deviation_(self) -> float:
        """Standard deviation of the noise of y, or with the link ``"log"`` of log y."""
        check_is_fitted(self)
        return self._fitted.measurement.noise_deviation

    @property
    def subsets_(self) -> list[Subset]:
        """The latent polynomial's monomials but the empty one, by size, then lexicographic."""
        latent = self._fitted.latent
        if not isinstance(latent, PolynomialLatent):
            raise AttributeError("a latent process has every subset; name some in confidence_intervals.")
        return latent.subsets[1:]

    @property
    def spectrum_(self) -> Spectrum:
        """Fourier spectrum of the latent (of a process: of the posterior mean, n up to 20)."""
        check_is_fitted(self)
        latent = self._fitted.latent
        values, _ = latent.coefficients(None)
        if isinstance(latent, PolynomialLatent):
            return Spectrum.from_coefficients(values, latent.subsets, self.n_features_in_)
        return Spectrum.from_coefficients(values)

    def _coefficients(self, subsets: Iterable[Iterable[int]] | None) -> tuple[Array, Array]:
        """Coefficients and their standard errors, (N,)."""
        latent = self._fitted.latent
        if subsets is None:
            named = self.subsets_ if isinstance(latent, PolynomialLatent) else None
        else:
            named = self._named(subsets)
        return latent.coefficients(named)

    # ---- files ----

    @locked
    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, which :func:`sparsact.load` reads back."""
        check_is_fitted(self)
        one, latent = self._fitted.measurement, self._fitted.latent
        known = one.known
        if isinstance(latent, PolynomialLatent):
            own = {name: getattr(latent, name) for name in ("values", "covariance", "conditional")}
            own |= {"units": np.array([latent.shift, latent.unit])}
        else:
            own = posterior_arrays(latent.posterior)
        arrays = schema.add_prefix("latent", own) | {
            "curve": known.c,
            "units": np.array([one.noise_deviation, known.level, known.height, known.shift, known.unit]),
            "bounds": np.array(one.bounds),
            "freedom": np.array([self._freedom]),
        }
        tried = [[c.link, c.degree, c.log_likelihood] for c in self.candidates_]
        self._write(path, arrays, learned={"candidates_": tried})

    @classmethod
    def _from_file(cls, state: State, arrays: Arrays) -> Self:
        """The regressor that :meth:`save` wrote."""
        learner, read = cls._read(state, arrays, _ARRAYS)
        n, bounds = learner.n_features_in_, read["bounds"]
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
            if len(own["values"]) > MOST_MONOMIALS or learner.degree_ > n:
                raise ValueError(f"{len(own['values'])} monomials of degree {learner.degree_}")
            subsets = subsets_of(subset_masks(n, learner.degree_))
            kept = schema.read_arrays(_POLYNOMIAL, own, p=len(subsets))
            shift, unit = kept.pop("units").tolist()
            latent = PolynomialLatent(subsets, **kept, shift=shift, unit=unit)
        learner._fitted = LatentFit(latent, measurement, True, learner.n_iter_, learner._freedom)
        return learner
