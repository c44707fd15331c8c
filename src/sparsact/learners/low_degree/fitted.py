"""Reports of a fitted low-degree model: coefficients, their standard errors, its spectrum, and values at new points."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t
from sklearn.utils.validation import check_is_fitted

from sparsact.fourier import Spectrum
from sparsact.hypercube import Subset
from sparsact.kernels.dispatch import threads
from sparsact.learners.low_degree.accumulator import Accumulator, FitSpec
from sparsact.learners.low_degree.choose import Automatic
from sparsact.learners.low_degree.distinct_points import agreeing
from sparsact.learners.low_degree.interpretation import coefficients, standard_errors, total_effects
from sparsact.learners.low_degree.polynomial import Family, FittedPolynomial, Solution
from sparsact.learners.low_degree.redundant_columns import warn_of_columns_alike
from sparsact.learners.low_degree.saving import read_solution, solution_state
from sparsact.learners.low_degree.solvers.kernel import DualPolynomial
from sparsact.learners.low_degree.solvers.solver import LowDegreeStatistic
from sparsact.learners.points import Encoding, dense_blocks, numeric_rows, pack
from sparsact.learners.programs import ExportedFunction, ProgramSource, RowSymbols, program_of_polynomials
from sparsact.saving import modelfile, schema
from sparsact.saving.schema import Arrays, Checks, State
from sparsact.transaction import lock_of
from sparsact.validation.arrays import places_of
from sparsact.validation.parameters import checked_probability


def _automatic(value: Any, name: str) -> Automatic:
    degree, reason, *alpha = value  # earlier versions chose no penalty
    penalty = schema.as_nonnegative(alpha[0], name) if alpha else 0.0
    return Automatic(schema.as_count(degree, name), schema.as_str(reason, name), penalty)


# What was learned besides the solution, and what each must be.
_LEARNED: Final[Checks] = {
    "n_features_in_": schema.as_count,
    "_single_target": schema.as_bool,
    "_automatic": _automatic,
    "rows_dealt_": schema.as_n_rows,
    "table_encoding_": schema.as_str,  # how the command encoded the columns of a table
}


class FittedLowDegree(ExportedFunction):
    """Reading side of the low-degree estimators."""

    n_features_in_: int
    n_jobs: int | None
    subsets: Sequence[Sequence[int]] | None
    accumulator_: Accumulator
    _solution: Solution | None = None  # found when it is first needed

    @property
    @abstractmethod
    def _fitted(self) -> Solution:
        """The solution, found when it is first needed."""

    @property
    @abstractmethod
    def _single(self) -> bool:
        """Whether there is one function, so that no axis counts the targets."""

    @abstractmethod
    def _n_folds(self) -> int:
        """Folds that rows are dealt to."""

    def _squeezed(self, values: NDArray[np.float64]) -> Any:
        """Values with targets first, without that axis for a single function."""
        return values[0] if self._single else values

    @property
    def coefficients_(self) -> NDArray[np.float64]:
        """Coefficients of ``subsets_``, (D,), or (T, D) for several functions."""
        return np.asarray(self._squeezed(self._polynomial.coef.T))

    @property
    def intercept_(self) -> Any:
        """Coefficient of the empty subset, a float, or (T,) for several functions."""
        return self._squeezed(self._polynomial.intercept)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        r"""Total effect of each column on the predictions, as a share of their variance, (n_features,).

        Half the mean squared change of the prediction when column i alone is redrawn from its own values:
        :math:`\mathbb{E}(f(x) - f(x_i', x_{-i}))^2 / (2 \operatorname{Var} f)`, under the distribution of the fitted
        rows and their weights; the mean over several functions. It is what permutation importance estimates. Over all
        points of the cube, equally often, it is the influence of the column over the variance, so that the importances
        sum to 1 or more, and to 1 where there are no interactions.

        Raises
        ------
        AttributeError
            If the model was loaded without its statistic, or if the rows are gone and the kept sums lack a product.

        Notes
        -----
        Found when it is first asked for, by about ``degree`` predictions of the distinct rows or, where the rows are
        gone, by quadratic forms in their sums.
        """
        solution = self._fitted
        if solution.importances is None:
            try:
                statistic = self._statistic("the distribution of its rows")
                solution.importances = total_effects(solution.polynomial, statistic, n_threads=threads(self.n_jobs))
            except ValueError as error:  # tools that look for the attribute know this error only
                raise AttributeError(f"no feature_importances_: {error}") from error
        return solution.importances.copy()

    @property
    def subsets_(self) -> list[Subset]:
        """The monomials, in the order of ``coefficients_``: by size, then lexicographic."""
        return self._polynomial.family.subsets

    @property
    def spectrum_(self) -> Spectrum | list[Spectrum]:
        """Fourier spectrum, or a list of one a function, with names of columns; warns of constant or equal columns."""
        if self.domain_ == "real":
            raise AttributeError('a model of real columns has no spectrum over the cube; fit with domain="cube".')
        names = getattr(self, "feature_names_in_", None)
        warn_of_columns_alike(self._fitted, names)
        family, columns = self._polynomial.family, np.vstack([self._polynomial.intercept, self._polynomial.coef]).T
        spectra = [Spectrum.from_coefficients(one, family.with_empty, family.n).named(names) for one in columns]
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
        """The solver: ``"cells"``, ``"moments"``, ``"kernel"``, ``"dense"``, ``"correlation"`` or ``"lasso"``."""
        return self._fitted.solver

    @property
    def solver_reason_(self) -> str:
        """One sentence: what was chosen and why."""
        return self._fitted.reason

    @property
    def n_samples_seen_(self) -> int:
        """Rows of non-zero weight seen so far."""
        return self.accumulator_.n_rows if "accumulator_" in self.__dict__ else self._fitted.n_rows

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
        known, places = self._fitted.design.identified, self._places(subsets)
        if known is None:
            statistic, family = self._statistic("what its rows determine"), self._polynomial.family
            known = statistic.normal_equations(family, fit_intercept=self._fitted.penalty.fit_intercept).identified
        return known[places]

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
        (place,), family = self._places([subset]).tolist(), self._polynomial.family
        if isinstance(self._polynomial, DualPolynomial):
            equal = agreeing(self._polynomial.points, family.with_empty, place)
        else:
            equal = self._statistic("which monomials agree").aliases(family, place)
        everything = [(), *self.subsets_]
        return [everything[other] for other in np.flatnonzero(equal).tolist() if other != place]

    def _statistic(self, what: str) -> LowDegreeStatistic:
        """The statistic of all rows."""
        if "accumulator_" not in self.__dict__:
            raise ValueError(f"a model without its statistic does not know {what}; save it with statistic=True.")
        with lock_of(self):
            return self.accumulator_.resolved(self._spec()).total()

    @abstractmethod
    def _spec(self) -> FitSpec:
        """What the parameters ask of the statistic."""

    def standard_errors(self, subsets: Iterable[Iterable[int]] | None = None) -> NDArray[np.float64]:
        r"""Standard errors of the coefficients of ``subsets`` (default: ``subsets_``), (N,), or (T, N) for several.

        NaN where the rows do not determine the coefficient, with a penalty too; see :meth:`identified`.

        Raises
        ------
        ValueError
            If the rows do not exceed the parameters, so that noise and function cannot be separated.

        Notes
        -----
        The covariance is :math:`\sigma^2 (G + \alpha I)^{-1} G (G + \alpha I)^{-1}`, with :math:`\sigma^2` the weighted
        squared residual over the rows minus the effective parameters. Weights are taken as precisions (a row of weight
        2 has half the variance); with ridge the errors belong to the shrunken estimate, bias not counted.
        """
        return np.asarray(self._squeezed(standard_errors(self._fitted, self._places(subsets))))

    def confidence_intervals(
        self, subsets: Iterable[Iterable[int]] | None = None, confidence: float = 0.95
    ) -> NDArray[np.float64]:
        """Student-t intervals of the coefficients of ``subsets`` (default: ``subsets_``), (N, 2) or (T, N, 2).

        NaN where the rows do not determine the coefficient; see :meth:`identified`.

        Raises
        ------
        ValueError
            If ``confidence`` is not strictly between 0 and 1, and as :meth:`standard_errors`.
        """
        checked_probability(confidence, "`confidence`")
        solution, places = self._fitted, self._places(subsets)
        error = standard_errors(solution, places)
        coef = coefficients(solution.polynomial)[places].T
        reach = t.ppf((1 + confidence) / 2, max(solution.residual_degrees_of_freedom, 1.0)) * error
        return np.asarray(self._squeezed(np.stack([coef - reach, coef + reach], axis=-1)))

    @property
    def _polynomial(self) -> FittedPolynomial:
        return self._fitted.polynomial

    def _values(self, X: ArrayLike) -> NDArray[np.float64]:
        """Values (m, T) of the polynomials at the rows of X."""
        check_is_fitted(self)
        solution = self._fitted  # read once: another thread may add rows meanwhile
        encoding, polynomial = solution.encoding, solution.polynomial
        finite = encoding is None  # on the cube, packing names the column and the row of a NaN
        rows = numeric_rows(self, X, reset=False, ensure_all_finite=finite)
        if encoding is None:
            of_blocks = (block.astype(np.float64) for block in dense_blocks(rows))
            return np.concatenate([polynomial.values_at_reals(B, n_threads=threads(self.n_jobs)) for B in of_blocks])
        points = pack(rows, encoding, getattr(self, "feature_names_in_", None))
        return polynomial.values(points, n_threads=threads(self.n_jobs))

    def _places(self, subsets: Iterable[Iterable[int]] | None) -> NDArray[np.intp]:
        """Places in ``[(), *subsets_]`` of some subsets; of all but the empty one by default."""
        if subsets is None:
            return np.arange(1, len(self._polynomial.family) + 1)
        return places_of([tuple(sorted(subset)) for subset in subsets], [(), *self.subsets_])

    # ---- files ----

    def _program(self) -> ProgramSource:
        check_is_fitted(self)
        inputs = RowSymbols(self.n_features_in_, self.encoding_)
        return program_of_polynomials(inputs, self.subsets_, self.coefficients_, self.intercept_)

    def save(self, path: str | Path, *, statistic: bool = False) -> None:
        """Write the fitted model to one file: safetensors with a JSON header and a digest of everything.

        Parameters
        ----------
        path : path-like
            The file; it is replaced whole or not at all.
        statistic : bool, default=False
            Also keep the additive statistic, so that a loaded model can go on with ``partial_fit`` and ``merge``.
        """
        with lock_of(self):
            solution = self._fitted  # found now, if it has not been
            state, arrays = solution_state(solution)
            state["params"] = schema.params_of(self)
            if solution.choice is not None:
                state["params"]["cv"] = solution.choice.results["fold_mse"].shape[1]  # whatever split them: a number
            if statistic and "accumulator_" not in vars(self):
                raise ValueError("this model was loaded without its statistic, so none can be saved; fit it again.")
            seen, sums = self.state() if statistic else self._known()
            modelfile.write(path, type(self).__name__, state | seen, arrays | sums)

    @classmethod
    def _from_file(cls, state: State, arrays: Arrays) -> Self:
        """The estimator that :meth:`save` wrote."""
        learner: Self = schema.rebuild(cls, state, _LEARNED, optional=_LEARNED)
        n = learner.n_features_in_
        Family.explicit(n, learner.subsets or ())
        for name, check in (("degrees", schema.as_count), ("alphas", schema.as_nonnegative)):
            values = getattr(learner, name, [])
            for value in () if isinstance(values, str) and values == "auto" else values:
                check(value, name)
        learner._solution = solution = read_solution(state["solution"], arrays)
        n_targets = len(solution.polynomial.intercept)
        learner._restore_known(state, arrays, n_targets)
        if solution.choice is not None and getattr(learner, "cv", None) != solution.choice.results["fold_mse"].shape[1]:
            raise ValueError("held-out errors of other folds than cv deals")
        if learner._single and n_targets != 1:
            raise ValueError(f"{n_targets} functions where there is one")
        if solution.polynomial.family.n != n:
            raise ValueError(f"a solution of {solution.polynomial.family.n} columns where there are {n}")
        return learner

    def state(self) -> tuple[State, Arrays]:
        """Return what the model has seen, unsolved, as JSON and arrays; nothing before the first row."""
        if "accumulator_" not in vars(self):
            return {}, {}
        (stream, sums), (known, labels) = self.accumulator_.state(), self._known()
        return known | {"stream": stream}, sums | labels

    def restore(self, state: State, arrays: Arrays) -> None:
        """Restore what :meth:`state` returned in a new model of the same parameters."""
        if state:
            schema.restore_learned(self, state, _LEARNED, optional=_LEARNED)
            n_targets = schema.as_count(state["stream"]["n_targets"], "n_targets", minimum=1)
            self._restore_known(state, arrays, n_targets)

    def _known(self) -> tuple[State, Arrays]:
        """What the model knows besides its parameters, its statistic and its solution."""
        return schema.learned_state(self, _LEARNED), {}

    def _restore_known(self, state: State, arrays: Arrays, n_targets: int) -> None:
        """Restore what :meth:`_known` returned, and the statistic."""
        if "stream" in state:
            self.accumulator_ = Accumulator.of_state(state["stream"], arrays, self.n_features_in_, n_targets)
            if self.accumulator_.n_folds != self._n_folds():
                raise ValueError(f"sums of {self.accumulator_.n_folds} folds where cv deals {self._n_folds()}")
