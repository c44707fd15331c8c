"""What a fitted low-degree model tells: coefficients, how sure they are, its spectrum, and values at new points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from sparsact.fourier import Spectrum
from sparsact.hypercube import Subset
from sparsact.kernels.threads import threads
from sparsact.learners.door import validated
from sparsact.learners.low_degree.inference import confidence_intervals, standard_errors
from sparsact.learners.low_degree.polynomial import Polynomial
from sparsact.learners.low_degree.solve import Solution
from sparsact.learners.low_degree.storage import save_learner
from sparsact.learners.low_degree.stream import Stream
from sparsact.learners.points import Encoding, kernel_dtype, pack


class FittedLowDegree(ABC):
    """Reading side of the low-degree estimators."""

    n_features_in_: int
    n_jobs: int | None
    stream_: Stream

    @property
    @abstractmethod
    def _fitted(self) -> Solution:
        """The solution, found when it is first asked for."""

    @property
    @abstractmethod
    def _single(self) -> bool:
        """Whether there is one function, so that no axis counts the targets."""

    def _squeezed(self, values: NDArray[np.float64]) -> Any:
        """Values with targets first, without that axis for a single function."""
        return values[0] if self._single else values

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Coefficients of ``subsets_``, (D,), or (T, D) for several functions."""
        return np.asarray(self._squeezed(self._polynomial.coef.T))

    @property
    def intercept_(self) -> Any:
        """Coefficient of the empty subset, a float, or (T,) for several functions."""
        return self._squeezed(self._polynomial.intercept)

    @property
    def subsets_(self) -> list[Subset]:
        """The monomials, in the order of ``coef_``: by size, then lexicographic."""
        return self._polynomial.family.subsets

    @property
    def spectrum_(self) -> Spectrum | list[Spectrum]:
        """Fourier spectrum of the fitted function, or a list of one a function."""
        if self.domain_ == "real":
            raise AttributeError('a model of real columns has no spectrum over the cube; fit with domain="cube".')
        family, intercept = self._polynomial.family, self._polynomial.intercept
        spectra = [
            Spectrum.from_coefficients(np.concatenate([intercept[t : t + 1], column]), family.with_empty, family.n)
            for t, column in enumerate(self._polynomial.coef.T)
        ]
        return spectra[0] if self._single else spectra

    @property
    def domain_(self) -> str:
        """``"cube"`` or ``"real"``: what the fitted rows are."""
        return "real" if self.encoding_ is None else "cube"

    @property
    def encoding_(self) -> Encoding | None:
        """``"signs"`` or ``"bits"``: how points of the cube were written when the model was fitted; None for reals."""
        return self._fitted.encoding

    @property
    def solver_(self) -> str:
        """The route taken: ``"cells"``, ``"moments"``, ``"kernel"``, ``"dense"``, ``"correlation"`` or ``"lasso"``."""
        return self._fitted.solver

    @property
    def solver_reason_(self) -> str:
        """One sentence: what was chosen and why."""
        return self._fitted.reason

    @property
    def n_samples_seen_(self) -> int:
        """Rows of non-zero weight seen so far."""
        return self.stream_.n_rows if "stream_" in self.__dict__ else self._fitted.n_rows

    def standard_errors(self, subsets: Iterable[Iterable[int]] | None = None) -> NDArray[np.float64]:
        """Standard errors of the coefficients of ``subsets`` (default: ``subsets_``), (N,), or (T, N) for several.

        Raises
        ------
        ValueError
            If the rows do not exceed the parameters, so that the noise cannot be told from the function.
        """
        return np.asarray(self._squeezed(standard_errors(self._fitted, self._places(subsets))))

    def confidence_intervals(
        self, subsets: Iterable[Iterable[int]] | None = None, confidence: float = 0.95
    ) -> NDArray[np.float64]:
        """Student-t intervals of the coefficients of ``subsets`` (default: ``subsets_``), (N, 2) or (T, N, 2)."""
        return np.asarray(self._squeezed(confidence_intervals(self._fitted, self._places(subsets), confidence)))

    def save(self, path: str | Path, *, statistic: bool = False) -> None:
        """Write the fitted model to one file: safetensors with a JSON header and a digest of everything.

        Parameters
        ----------
        path : path-like
            The file; it is replaced whole or not at all.
        statistic : bool, default=False
            Also keep the additive statistic, so that a loaded model can go on with ``partial_fit`` and ``merge``.
        """
        save_learner(self, path, statistic=statistic)

    @property
    def _polynomial(self) -> Polynomial:
        return self._fitted.polynomial

    def _values(self, X: ArrayLike) -> NDArray[np.float64]:
        """Values (m, T) of the polynomials at the rows of X."""
        check_is_fitted(self)
        encoding = self.encoding_
        finite = encoding is None  # on the cube, packing names the column and the row of a NaN
        rows = kernel_dtype(validated(self, X, reset=False, dtype="numeric", ensure_all_finite=finite))
        if encoding is None:
            return self._polynomial.values_at_reals(rows.astype(np.float64), n_threads=threads(self.n_jobs))
        points = pack(rows, encoding, getattr(self, "feature_names_in_", None))
        return self._polynomial.values(points, n_threads=threads(self.n_jobs))

    def _places(self, subsets: Iterable[Iterable[int]] | None) -> NDArray[np.intp] | None:
        """Places in ``[(), *subsets_]`` of the subsets asked for; None for all but the empty one."""
        if subsets is None:
            return None
        place = {subset: i + 1 for i, subset in enumerate(self.subsets_)} | {(): 0}
        asked = [tuple(sorted(subset)) for subset in subsets]
        missing = [subset for subset in asked if subset not in place]
        if missing:
            raise ValueError(f"subset {missing[0]} is not among the fitted monomials; see subsets_.")
        return np.array([place[subset] for subset in asked], dtype=np.intp)
