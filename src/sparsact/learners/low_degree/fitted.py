"""What a fitted low-degree model tells: coefficients, how sure they are, its spectrum, and values at new points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from sparsact.fourier import Spectrum
from sparsact.hypercube import Subset
from sparsact.kernels.dispatch import threads
from sparsact.learners.low_degree.aliases import agreeing, aliases
from sparsact.learners.low_degree.inference import confidence_intervals, standard_errors
from sparsact.learners.low_degree.normal_equations import normal_equations
from sparsact.learners.low_degree.polynomial import FittedPolynomial
from sparsact.learners.low_degree.solve import Solution
from sparsact.learners.low_degree.storage import SavedLowDegree
from sparsact.learners.low_degree.stream import Request, Stream
from sparsact.learners.points import Encoding, kernel_dtype, pack
from sparsact.transaction import lock_of
from sparsact.validation.estimators import checked_rows


class FittedLowDegree(SavedLowDegree, ABC):
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

    def identified(self, subsets: Iterable[Iterable[int]] | None = None) -> NDArray[np.bool_]:
        """Whether the rows determine the coefficients of ``subsets`` (default: ``subsets_``) without a penalty, (N,).

        They do not where another combination of coefficients gives the same values on all rows: constant or repeated
        columns, groups of one-hot columns, more monomials than distinct rows. The estimate is then one of many.

        Raises
        ------
        ValueError
            If the model was loaded without its statistic, and its file does not say.

        Notes
        -----
        Decided exactly for points of the cube, by elimination modulo two primes; within rounding for real columns, and
        where conjugate gradients solve.
        """
        known, places = self._fitted.identified, self._places(subsets)
        if known is None:
            statistic, family = self._statistic("what its rows determine"), self._polynomial.family
            known = normal_equations(statistic, family, fit_intercept=self._fitted.penalty.fit_intercept).identified
        return known[1:] if places is None else known[places]

    def aliases(self, subset: Iterable[int]) -> list[Subset]:
        """The other monomials, ``()`` for a constant among them, that agree up to sign with ``subset`` on all rows.

        Raises
        ------
        ValueError
            If the subset is not among the fitted monomials, or if the model was loaded without its statistic.

        Examples
        --------
        >>> from sparsact import LowDegreeRegressor
        >>> X = [[0, 1, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0]]
        >>> model = LowDegreeRegressor(1).fit(X, [1.0, 2.0, 1.5, 2.5])
        >>> model.aliases((0,)), model.aliases((2,)), model.identified()
        ([(1,)], [()], array([False, False, False]))
        """
        places, family = self._places([subset]), self._polynomial.family
        assert places is not None  # noqa: S101 - one subset is named
        dual = self._polynomial.dual
        if dual is None:
            found = aliases(self._statistic("which monomials agree"), family, int(places[0]))
        else:
            found = agreeing(dual.points, family, int(places[0]))
        everything = [(), *self.subsets_]
        return [everything[place] for place in found.tolist()]

    def _statistic(self, what: str) -> Any:
        """The statistic of all rows."""
        if "stream_" not in self.__dict__:
            raise ValueError(f"a model without its statistic does not know {what}; save it with statistic=True.")
        with lock_of(self):
            return self.stream_.settled(self._request()).total()

    @abstractmethod
    def _request(self) -> Request:
        """What the parameters ask of the statistic."""

    def standard_errors(self, subsets: Iterable[Iterable[int]] | None = None) -> NDArray[np.float64]:
        """Standard errors of the coefficients of ``subsets`` (default: ``subsets_``), (N,), or (T, N) for several.

        NaN where the rows do not determine the coefficient, with a penalty too; see :meth:`identified`.

        Raises
        ------
        ValueError
            If the rows do not exceed the parameters, so that the noise cannot be told from the function.
        """
        return np.asarray(self._squeezed(standard_errors(self._fitted, self._places(subsets))))

    def confidence_intervals(
        self, subsets: Iterable[Iterable[int]] | None = None, confidence: float = 0.95
    ) -> NDArray[np.float64]:
        """Student-t intervals of the coefficients of ``subsets`` (default: ``subsets_``), (N, 2) or (T, N, 2).

        NaN where the rows do not determine the coefficient; see :meth:`identified`.
        """
        return np.asarray(self._squeezed(confidence_intervals(self._fitted, self._places(subsets), confidence)))

    @property
    def _polynomial(self) -> FittedPolynomial:
        return self._fitted.polynomial

    def _values(self, X: ArrayLike) -> NDArray[np.float64]:
        """Values (m, T) of the polynomials at the rows of X."""
        check_is_fitted(self)
        solution = self._fitted  # asked for once: another thread may add rows meanwhile
        encoding, polynomial = solution.encoding, solution.polynomial
        finite = encoding is None  # on the cube, packing names the column and the row of a NaN
        rows = kernel_dtype(checked_rows(self, X, reset=False, dtype="numeric", ensure_all_finite=finite))
        if encoding is None:
            return polynomial.values_at_reals(rows.astype(np.float64), n_threads=threads(self.n_jobs))
        points = pack(rows, encoding, getattr(self, "feature_names_in_", None))
        return polynomial.values(points, n_threads=threads(self.n_jobs))

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
