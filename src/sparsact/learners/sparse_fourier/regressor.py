"""SparseFourierRegressor: the few significant monomials among all of low degree, from examples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sparsact.fourier import Spectrum
from sparsact.hypercube import Subset, subsets_of
from sparsact.kernels.dispatch import blas_threads, threads
from sparsact.learners.constraints import DOMAIN, N_JOBS, SHARE, SIZE, whole
from sparsact.learners.low_degree import LowDegreeRegressor
from sparsact.learners.low_degree.saving import read_solution, solution_state
from sparsact.learners.on_cube import LEARNED, OnCube
from sparsact.learners.points import Encoding, Points, unpack
from sparsact.learners.programs import ExportedFunction, ProgramSource, RowSymbols, program_of_polynomials
from sparsact.learners.sparse_fourier.integer_sample import IntegerSample
from sparsact.learners.sparse_fourier.search import SearchOptions, TermSearch
from sparsact.saving import schema
from sparsact.saving.schema import Arrays, Checks, State

Array = NDArray[np.float64]

LARGEST_DEGREE: Final = 6
MOST_TERMS: Final = 500
_LEARNED: Final[Checks] = {
    **LEARNED,
    "threshold_": schema.as_nonnegative,
    "n_monomials_": schema.as_n_rows,
    "n_iter_": schema.as_count,
    "certified_": schema.as_bool,
}


@dataclass(eq=False, repr=False)
class SparseFourierRegressor(OnCube, ExportedFunction, RegressorMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn ships no types
    r"""Least squares on the significant monomials, which are found among all of degree at most d.

    .. math:: f(x) = \hat f(\emptyset) + \sum_{S \in A} \hat f(S)\, \chi_S(x), \qquad \chi_S(x) = \prod_{i \in S} x_i,

    with a set A of few subsets that random examples choose: orthogonal matching pursuit over all
    :math:`D = \sum_{s=1}^{d} \binom{n}{s}` monomials, without a matrix of them. For n up to 1,000 columns at degree 3.

    Parameters
    ----------
    degree : int, default=3
        Largest size of a monomial, from 1 to 6.
    significance : float, default=0.05
        Probability of choosing any monomial that is not in the function. Half of it goes to t-tests of all monomials in
        the model (Bonferroni), and half to tests of chosen terms against others that they might stand in for.
    validation_fraction : float, default=None
        Share of the rows to hold out. They choose no monomial; ``held_out_`` is the least squares on these rows alone.
    certify : bool, default=True
        Stop only when a scan of all rows and all monomials finds none to add. Otherwise, the last scan of a large
        problem may use a tenth of the rows, and weak monomials are missed.
    max_terms : int, default=500
        Largest number of monomials; at most a quarter of the number of rows.
    domain : {"auto", "cube", "real"}, default="auto"
        ``"cube"``: X must be signs (+1, -1), bits (0, 1) or bool; bit 1 is sign -1. ``"real"``: column i becomes the
        sign -1 above its median ``cuts_[i]`` (where there is no such value, above the next smaller one), else +1.
        ``"auto"``: the cube if the values allow it.
    random_state : int, RandomState or None, default=None
        Seed of the held-out rows and of the rounding of targets to 20 bits in the search.
    n_jobs : int, default=None
        Threads of the native kernels, as in joblib; None follows threadpoolctl. The result does not depend on it.
    verbose : int, default=0
        Print a line for each round.

    Attributes
    ----------
    coefficients_, intercept_ : ndarray of shape (s,), float
        Coefficients of ``subsets_``, and that of the empty subset: least squares on all rows.
    subsets_ : list of tuples
        The monomials chosen, by size, then lexicographic.
    spectrum_ : Spectrum
        The fitted function.
    variables_ : ndarray of int
        Columns that occur in ``subsets_``.
    threshold_ : float
        Least significant t-statistic of a monomial of ``degree`` columns. Smaller monomials have a lower one.
    n_monomials_ : int
        D, the number of monomials considered: of the columns that are neither constant nor equal, up to sign, to one
        before. An effect that several columns might have is that of the first.
    polynomial_ : LowDegreeRegressor
        The least squares on ``subsets_``; it takes further rows by ``partial_fit`` and ``merge``.
    held_out_ : LowDegreeRegressor or None
        The same on the held-out rows. They did not choose monomials, so selection does not bias it.
    certified_ : bool
        Whether the last scan was of all rows and found nothing.
    n_iter_ : int
        Scans.
    encoding_ : str
        ``"signs"`` or ``"bits"``; None for columns that were cut at ``cuts_``.
    n_features_in_ : int
        Columns.

    Notes
    -----
    A monomial of coefficient c is found with probability .95 if
    :math:`|c| \ge (\tau + 1.64)\, \sigma / \sqrt{m}` for uniform rows, where :math:`\tau` is ``threshold_`` (about
    :math:`\sqrt{2 \ln(2 D / \alpha)}`) and :math:`\sigma` the deviation of the noise. A scan takes :math:`m D`
    products, 128 of them by one lookup of AVX2 (results/benchmarks.jsonl, benchmark sparse_fourier). Memory is about
    :math:`2.5\, m n` bytes, beside a fixed number of candidates.

    There are no weights of rows: sums of monomials are counts. There is no ``partial_fit`` or ``merge`` either: the
    search needs all rows at once, since residuals of one model say nothing of the next. Update ``polynomial_`` instead.
    Standard errors and intervals of the model itself come from the rows that chose its monomials. For weak
    monomials they are too narrow; the intervals of ``held_out_`` are not.

    References
    ----------
    .. [1] Y. C. Pati, R. Rezaiifar, P. S. Krishnaprasad, "Orthogonal matching pursuit", Asilomar 1993.

    Examples
    --------
    Three of the 41,727 monomials of degree at most 3 in 63 columns:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1, 1], size=(800, 63))
    >>> y = 3 * X[:, 5] - 2 * X[:, 1] * X[:, 40] + X[:, 2] * X[:, 30] * X[:, 62] + rng.normal(size=800)
    >>> SparseFourierRegressor(random_state=0).fit(X, y).subsets_
    [(5,), (1, 40), (2, 30, 62)]
    """

    degree: int = 3
    _: KW_ONLY
    significance: float = 0.05
    validation_fraction: float | None = None
    certify: bool = True
    max_terms: int = MOST_TERMS
    domain: str = "auto"
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _LEARNED, _CONTENT = _LEARNED, "polynomial_"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [whole(1, LARGEST_DEGREE)],
        "significance": [SHARE],
        "validation_fraction": [SHARE, None],
        "certify": ["boolean"],
        "max_terms": [SIZE],
        "domain": DOMAIN,
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    @blas_threads(0)  # small products
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Find the monomials of rows X (m, n) and targets y (m,), and fit them."""
        self._validate_params()
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1, size=4))
        points, targets, _ = self._rows_to_fit(X, y, None)
        held = self._held_out(len(targets), rng)
        terms, critical = self._search(*((points, targets) if held is None else (points[~held], targets[~held])), rng)
        self.polynomial_ = self._refit(points, targets, terms, critical)
        self.polynomial_._fitted.frequencies = unpack(points, "bits").mean(axis=0)  # sums of few products lack them
        self.held_out_ = (
            None
            if held is None
            else _least_squares(points[held], targets[held], self.subsets_, self.encoding_ or "bits")
        )
        return self

    def _search(self, points: Points, y: Array, rng: np.random.Generator) -> tuple[list[Subset], Array]:
        """Choose the monomials; and the least significant t by size.

        Columns that are constant or equal, up to sign, to one before have no effect of their own, and are left out.
        """
        kept = np.flatnonzero(points.first_alike() == np.arange(points.n))
        kept = kept if len(kept) else np.arange(1)  # in a table of constants, one column is searched for nothing
        distinct = Points(points.columns[kept], points.n_rows)
        sample = IntegerSample.of(distinct, y, rng=rng, n_threads=threads(self.n_jobs))
        most = min(int(self.max_terms), len(y) // 4)
        options = SearchOptions(int(self.degree), float(self.significance), most, bool(self.certify), self._report)
        search = TermSearch(sample, options)
        found = search.run()
        self.threshold_, self.n_monomials_ = float(found.critical[-1]), search.n_monomials
        self.n_iter_, self.certified_ = found.n_rounds, found.certified
        return [tuple(kept[list(subset)].tolist()) for subset in subsets_of(found.masks)], found.critical

    def _refit(self, points: Points, y: Array, terms: list[Subset], critical: Array) -> LowDegreeRegressor:
        """Least squares on the terms, from exact sums; terms that are not significant there are left out."""
        while True:
            model = _least_squares(points, y, terms, self.encoding_ or "bits")
            if not terms or model._fitted.residual_degrees_of_freedom <= 0:
                return model
            terms = model.subsets_
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.abs(model.coefficients_) / model.standard_errors() / critical[list(map(len, terms))]
            weakest = int(np.nanargmin(share)) if np.isfinite(share).any() else 0
            if not share[weakest] < 1 - 1e-3:
                return model
            del terms[weakest]

    def _held_out(self, m: int, rng: np.random.Generator) -> NDArray[np.bool_] | None:
        """Rows that are held out."""
        if self.validation_fraction is None:
            return None
        number = round(float(self.validation_fraction) * m)
        if not 0 < number < m:
            raise ValueError(
                f"validation_fraction = {self.validation_fraction:g} holds out {number} of {m} rows; both parts need "
                "rows: pass another fraction, or more rows."
            )
        held = np.zeros(m, dtype=bool)
        held[rng.permutation(m)[:number]] = True
        return held

    def predict(self, X: ArrayLike) -> Array:
        """Predicted targets, (m,)."""
        points = self._points(X)
        return np.asarray(self.polynomial_._fitted.polynomial.values(points, n_threads=threads(self.n_jobs))[:, 0])

    @property
    def coefficients_(self) -> Array:
        """Coefficients of ``subsets_``, (s,)."""
        check_is_fitted(self)
        return self.polynomial_.coefficients_

    @property
    def intercept_(self) -> float:
        """Coefficient of the empty subset."""
        check_is_fitted(self)
        return float(self.polynomial_.intercept_)

    @property
    def subsets_(self) -> list[Subset]:
        """The monomials, in the order of ``coefficients_``: by size, then lexicographic."""
        check_is_fitted(self)
        return self.polynomial_.subsets_

    @property
    def spectrum_(self) -> Spectrum:
        """Fourier spectrum of the fitted function; over the signs of the cuts, for real columns."""
        check_is_fitted(self)
        return cast("Spectrum", self.polynomial_.spectrum_)

    @property
    def frequencies_(self) -> Array:
        """Share of rows in which each column is bit 1 (sign -1), (n_features,)."""
        check_is_fitted(self)
        return self.polynomial_.frequencies_

    @property
    def variables_(self) -> NDArray[np.intp]:
        """Columns that occur in ``subsets_``, in ascending order."""
        return np.array(sorted({i for subset in self.subsets_ for i in subset}), dtype=np.intp)

    def standard_errors(self, subsets: Iterable[Iterable[int]] | None = None) -> Array:
        """Standard errors of the coefficients of ``subsets`` (default: ``subsets_``), (N,), in the model chosen."""
        check_is_fitted(self)
        return self.polynomial_.standard_errors(subsets)

    def confidence_intervals(self, subsets: Iterable[Iterable[int]] | None = None, confidence: float = 0.95) -> Array:
        """Student-t intervals of the coefficients of ``subsets`` (default: ``subsets_``), (N, 2).

        From the rows held out, if there are any; ``coefficients_`` come from all rows, and are not their centres.
        """
        check_is_fitted(self)
        model = self.polynomial_ if self.held_out_ is None else self.held_out_
        return model.confidence_intervals(subsets, confidence)

    def _program(self) -> ProgramSource:
        check_is_fitted(self)
        inputs = RowSymbols(self.n_features_in_, self.encoding_, self.cuts_)
        return program_of_polynomials(inputs, self.subsets_, self.coefficients_, self.intercept_)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, which :func:`sparsact.load` reads back."""
        arrays: Arrays = {}
        solutions: dict[str, State] = {}
        for name in ("polynomial", "held_out"):
            if (model := getattr(self, name + "_", None)) is not None:
                solutions[name], parts = solution_state(model._fitted)
                arrays |= schema.add_prefix(name, parts)
        self._write(path, arrays, **solutions)

    @classmethod
    def _from_file(cls, state: State, arrays: Arrays) -> Self:
        """The regressor that :meth:`save` wrote."""
        learner, _ = cls._read(state, arrays, {})
        n = learner.n_features_in_
        for name in ("polynomial", "held_out"):
            setattr(learner, name + "_", _of_file(name, n, state, arrays))
        if learner.polynomial_ is None:
            raise ValueError("no polynomial")
        return learner

    def _report(self, line: str) -> None:
        if self.verbose:
            print(f"{type(self).__name__}: {line}")


def _least_squares(points: Points, y: Array, subsets: list[Subset], encoding: Encoding) -> LowDegreeRegressor:
    """Least squares on some monomials, for rows as users write them."""
    return LowDegreeRegressor(LARGEST_DEGREE, subsets=subsets, domain="cube").fit(unpack(points, encoding), y)


def _of_file(name: str, n: int, state: State, arrays: Arrays) -> LowDegreeRegressor | None:
    """The least squares of a file, by its name there."""
    if name not in state:
        return None
    solution = read_solution(state[name]["solution"], schema.strip_prefix(name, arrays))
    family = solution.polynomial.family
    if family.n != n or len(solution.polynomial.intercept) != 1 or solution.encoding is None:
        raise ValueError(f"a {name} that is not one function of {n} columns of the cube")
    model = LowDegreeRegressor(LARGEST_DEGREE, subsets=family.subsets, domain="cube")
    model.n_features_in_, model._single_target, model._solution = n, True, solution
    return model
