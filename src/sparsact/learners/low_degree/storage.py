"""Low-degree models as plain state and arrays, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from sparsact.hypercube import WORD
from sparsact.learners.low_degree.accumulator import Accumulator
from sparsact.learners.low_degree.choose import CVSelection
from sparsact.learners.low_degree.polynomial import Family, FittedPolynomial
from sparsact.learners.low_degree.solvers.kernel import Dual, KernelDesign
from sparsact.learners.low_degree.solvers.solver import Penalty, Solution, solvers
from sparsact.learners.points import Points
from sparsact.saving import modelfile
from sparsact.saving.schema import (
    ArrayField,
    Arrays,
    Checks,
    State,
    add_prefix,
    as_bool,
    as_count,
    as_encoding,
    as_n_rows,
    as_nonnegative,
    as_str,
    learned_state,
    params_of,
    read_arrays,
    read_classes,
    rebuild,
    restore_learned,
    strip_prefix,
    write_classes,
)
from sparsact.transaction import lock_of
from sparsact.validation.parameters import checked_positive


def _automatic(value: Any, name: str) -> tuple[int, str, float]:
    degree, reason, *alpha = value  # earlier versions chose no penalty
    return as_count(degree, name), as_str(reason, name), as_nonnegative(alpha[0], name) if alpha else 0.0


# What was learned besides the solution, and what each must be.
_LEARNED: Checks = {
    "n_features_in_": as_count,
    "_single_target": as_bool,
    "_automatic": _automatic,
    "rows_dealt_": as_n_rows,
    "table_encoding_": as_str,  # how the command encoded the columns of a table
}

_TARGETS = {"intercept": ArrayField("T"), "squared_error": ArrayField("T"), "target_squares": ArrayField("T")}
_DUAL = {
    "columns": ArrayField("n words", np.uint64),
    "weights": ArrayField("rows T"),
    "kernel": ArrayField("sizes"),
}
_COEF = {"coef": ArrayField("D T")}
_TERMS = {
    "variances": ArrayField("terms", optional=True),
    "identified": ArrayField("terms", np.bool_, optional=True),
}


class SavedLowDegree:
    """Saving and loading of a :class:`~sparsact.learners.low_degree.estimator.LowDegree`."""

    n_features_in_: int
    accumulator_: Accumulator

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
            solution: Solution = self._fitted  # type: ignore[attr-defined] # found now, if it has not been
            state, arrays = _solution_out(solution)
            state["params"] = params_of(self)
            if solution.choice is not None:
                state["params"]["cv"] = solution.choice.results["fold_mse"].shape[1]  # whatever split them: a number
            state |= self._known(arrays)
            if statistic:
                if "accumulator_" not in vars(self):
                    raise ValueError("this model was loaded without its statistic, so none can be saved; fit it again.")
                state["stream"] = self.accumulator_.state(arrays)
            modelfile.write(path, type(self).__name__, state, arrays)

    @classmethod
    def _from_file(cls, state: State, arrays: Arrays) -> Self:
        """The estimator that :meth:`save` wrote."""
        learner: Any = rebuild(cls, state, _LEARNED, optional=_LEARNED)
        n = learner.n_features_in_
        if learner.subsets is not None:
            Family.explicit(n, learner.subsets)
        for name, check in (("degrees", as_count), ("alphas", as_nonnegative)):
            values = getattr(learner, name, [])
            for value in () if isinstance(values, str) and values == "auto" else values:
                check(value, name)
        learner._solution = solution = _solution_in(state["solution"], arrays)
        n_targets = len(solution.polynomial.intercept)
        learner._restore_known(state, arrays, n_targets)
        if solution.choice is not None and getattr(learner, "cv", None) != solution.choice.results["fold_mse"].shape[1]:
            raise ValueError("held-out errors of other folds than cv deals")
        if learner._single and n_targets != 1:
            raise ValueError(f"{n_targets} functions where there is one")
        if solution.polynomial.family.n != n:
            raise ValueError(f"a solution of {solution.polynomial.family.n} columns where there are {n}")
        return cast("Self", learner)

    def _state(self, arrays: Arrays) -> State:
        """What the model has seen, unsolved; its arrays are put among the others. Empty before the first row."""
        if "accumulator_" not in vars(self):
            return {}
        return self._known(arrays) | {"stream": self.accumulator_.state(arrays)}

    def _restore(self, state: State, arrays: Arrays) -> None:
        """Let a new model of the same parameters have seen what :meth:`_state` wrote."""
        if state:
            restore_learned(self, state, _LEARNED, optional=_LEARNED)
            n_targets = as_count(state["stream"]["n_targets"], "n_targets", minimum=1)
            self._restore_known(state, arrays, n_targets)

    def _known(self, arrays: Arrays) -> State:
        """What the model knows besides its parameters, its statistic and its solution."""
        state = learned_state(self, _LEARNED)
        if hasattr(self, "classes_") and (labels := write_classes(self.classes_, arrays)) is not None:
            state["classes"] = labels
        return state

    def _restore_known(self: Any, state: State, arrays: Arrays, n_targets: int) -> None:
        """Take over the classes and the statistic."""
        if hasattr(self, "_targets"):
            self.classes_ = read_classes(state, arrays)
            if n_targets != (1 if self._single else len(self.classes_)):
                raise ValueError(f"{n_targets} functions of {len(self.classes_)} classes")
        if "stream" in state:
            self.accumulator_ = Accumulator.of_state(state["stream"], arrays, self.n_features_in_, n_targets)
            if self.accumulator_.n_folds != self._n_folds():
                raise ValueError(f"sums of {self.accumulator_.n_folds} folds where cv deals {self._n_folds()}")


def _solution_out(solution: Solution) -> tuple[State, Arrays]:
    polynomial, penalty = solution.polynomial, solution.penalty
    family, dual = polynomial.family, polynomial.dual
    _ = solution.residual_degrees_of_freedom  # so that the number of parameters is known
    arrays: Arrays = {name: getattr(solution, name) for name in ("squared_error", "target_squares")}
    arrays["intercept"] = polynomial.intercept
    names = ("solver", "reason", "n_rows", "total_weight", "unit", "parameters", "encoding")
    state: State = {name: getattr(solution, name) for name in names} | {"n": family.n, "span": family.degree_range}
    state["penalty"] = [penalty.kind, penalty.alpha, bool(penalty.fit_intercept)]
    if solution.choice is not None:
        state["choice"] = [solution.choice.degree, solution.choice.alpha, solution.choice.score]
        arrays |= add_prefix("cv", solution.choice.results)
    if family.degree_range is None:
        arrays["masks"] = family.masks
    if dual is not None:
        state["dual_rows"] = dual.points.n_rows
        arrays |= {"dual.columns": dual.points.columns, "dual.weights": dual.weights, "dual.kernel": dual.kernel}
        return {"solution": state}, arrays
    arrays["coef"] = polynomial.coef
    variances = solution.all_variances() if penalty.kind == "ridge" else None
    terms = {"variances": variances, "identified": solution.identified}
    return {"solution": state}, arrays | {name: values for name, values in terms.items() if values is not None}


def _solution_in(state: State, arrays: Arrays) -> Solution:
    n, penalty = int(state["n"]), _penalty(*state["penalty"])
    found = read_arrays(_TARGETS, arrays)
    T = len(found["intercept"])
    if "dual_rows" in state:
        rows = int(state["dual_rows"])
        parts = read_arrays(_DUAL, arrays, "dual.", n=n, words=-(-rows // WORD), rows=rows, T=T, sizes=n + 1)
        dual, coef = Dual(Points(parts["columns"], rows), parts["weights"], parts["kernel"]), None
    else:
        dual, coef = None, read_arrays(_COEF, arrays, T=T)["coef"]
    family = Family.of_file(n, state["span"], arrays, None if coef is None else len(coef))
    if coef is not None and len(coef) != len(family):
        raise ValueError(f"{len(coef)} coefficients of {len(family)} monomials")
    terms = read_arrays(_TERMS, arrays, terms=len(family) + 1)
    return Solution(
        FittedPolynomial(family, coef, found["intercept"], dual),
        str(state["solver"]),
        str(state["reason"]),
        found["squared_error"],
        found["target_squares"],
        as_n_rows(state["n_rows"], "n_rows"),
        as_nonnegative(state["total_weight"], "total_weight"),
        penalty,
        None if dual is None else KernelDesign(dual, family, penalty.fit_intercept),
        encoding=as_encoding(state["encoding"]),
        variances=terms.get("variances"),
        known_identified=terms.get("identified"),
        parameters=None if state["parameters"] is None else float(state["parameters"]),
        choice=_choice(state["choice"], arrays) if "choice" in state else None,
        unit=checked_positive(state["unit"], "the unit of targets"),
    )


def _penalty(kind: Any, alpha: Any, fit_intercept: Any) -> Penalty:
    if kind not in {solver.penalty for solver in solvers().values()}:
        raise ValueError(f"unknown penalty {kind!r}")
    return Penalty(kind, as_nonnegative(alpha, "alpha"), as_bool(fit_intercept, "fit_intercept"))


def _choice(state: list[Any], arrays: Arrays) -> CVSelection:
    degree, alpha, score = state
    return CVSelection(int(degree), float(alpha), float(score), strip_prefix("cv", arrays))
