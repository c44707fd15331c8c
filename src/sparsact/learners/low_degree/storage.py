"""Low-degree models as plain state and arrays, and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sparsact import storage
from sparsact.hypercube import WORD, n_words
from sparsact.learners.low_degree.dual import Dual
from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.polynomial import FittedPolynomial
from sparsact.learners.low_degree.solve import CVSelection, Penalty, Solution
from sparsact.learners.low_degree.stored import listed, spanned
from sparsact.learners.low_degree.stream_storage import stream_in, stream_out
from sparsact.learners.points import Points
from sparsact.learners.stored import (
    Arrays,
    State,
    classes_in,
    encoding_named,
    expect,
    flag,
    number,
    plain,
    remade,
    rows_in,
    take_columns,
    text,
    whole,
)
from sparsact.validation.parameters import checked_positive


def _degree_and_reason(value: Any, name: str) -> tuple[int, str]:
    degree, reason = value
    return whole(degree, name), text(reason, name)


# What was learned beside the solution, and what each must be.
_LEARNED: dict[str, Callable[[Any, str], Any]] = {
    "n_features_in_": whole,
    "_single_target": flag,
    "_automatic": _degree_and_reason,
    "rows_dealt_": rows_in,
    "table_encoding_": text,  # how the command encoded the columns of a table
}


def save_learner(learner: Any, path: str | Path, *, statistic: bool) -> None:
    """Write a fitted low-degree estimator; the solution is found first, if it has not been."""
    solution = learner._fitted
    state, arrays = _solution_out(solution)
    state["params"] = {name: plain(value) for name, value in learner.get_params(deep=False).items()}
    if solution.choice is not None:
        state["params"]["cv"] = solution.choice.results["fold_mse"].shape[1]  # whatever split them: so many folds
    state |= _known_out(learner, arrays)
    if statistic:
        if "stream_" not in learner.__dict__:
            raise ValueError("this model was loaded without its statistic, so none can be saved; fit it again.")
        state["stream"] = stream_out(learner.stream_, arrays)
    storage.write(path, type(learner).__name__, state, arrays)


def statistic_out(learner: Any, arrays: Arrays) -> State:
    """What a learner has seen so far, unsolved, as state; its arrays are put among the others. None before any row."""
    if not learner._begun():
        return {}
    return _known_out(learner, arrays) | {"stream": stream_out(learner.stream_, arrays)}


def statistic_in(learner: Any, state: State, arrays: Arrays) -> None:
    """Let a new learner of the same parameters have seen what :func:`statistic_out` wrote."""
    if state:
        take_columns(learner, state["stream"]["n"], state)
        _known_in(learner, state, arrays, whole(state["stream"]["n_targets"], "n_targets", least=1))


def _known_out(learner: Any, arrays: Arrays) -> State:
    """What a learner knows beside its parameters, its statistic and its solution."""
    state: State = {"learned": {name: plain(getattr(learner, name)) for name in _LEARNED if hasattr(learner, name)}}
    if hasattr(learner, "feature_names_in_"):
        state["feature_names"] = [str(name) for name in learner.feature_names_in_]
    if hasattr(learner, "classes_"):
        classes = learner.classes_
        if classes.dtype.kind in "OUS":
            state["classes"] = [str(label) for label in classes]
        else:
            arrays["classes"] = classes
    return state


def load_learner(make: Any, state: State, arrays: Arrays) -> Any:
    """The estimator that :func:`save_learner` wrote; ``make`` is its class."""
    learner = remade(make, state)
    n = learner.n_features_in_
    if learner.subsets is not None:
        Family.listed(n, learner.subsets)
    for name, check in (("degrees", whole), ("alphas", number)):
        for value in getattr(learner, name, []):
            check(value, name)
    learner._solution = solution = _solution_in(state["solution"], arrays)
    n_targets = len(solution.polynomial.intercept)
    _known_in(learner, state, arrays, n_targets)
    if solution.choice is not None and getattr(learner, "cv", None) != solution.choice.results["fold_mse"].shape[1]:
        raise ValueError("held-out errors of other folds than cv deals")
    if learner._single and n_targets != 1:
        raise ValueError(f"{n_targets} functions where there is one")
    if solution.polynomial.family.n != n:
        raise ValueError(f"a solution of {solution.polynomial.family.n} columns where there are {n}")
    return learner


def _known_in(learner: Any, state: State, arrays: Arrays, n_targets: int) -> None:
    for name, value in state["learned"].items():
        setattr(learner, name, _LEARNED[name](value, name))
    if hasattr(learner, "_targets"):
        learner.classes_ = classes_in(state, arrays)
        if n_targets != (1 if learner._single else len(learner.classes_)):
            raise ValueError(f"{n_targets} functions of {len(learner.classes_)} classes")
    if "stream" in state:
        learner.stream_ = stream_in(state["stream"], arrays, learner.n_features_in_, n_targets)
        if learner.stream_.n_folds != learner._n_folds():
            raise ValueError(f"sums of {learner.stream_.n_folds} folds where cv deals {learner._n_folds()}")


def _solution_out(solution: Solution) -> tuple[State, Arrays]:
    polynomial, penalty = solution.polynomial, solution.penalty
    arrays: Arrays = {
        "intercept": polynomial.intercept,
        "squared_error": solution.squared_error,
        "target_squares": solution.target_squares,
    }
    _ = solution.residual_degrees_of_freedom  # settles the number of parameters
    family = polynomial.family
    state: State = {
        "n": family.n,
        "span": family.span,
        "solver": solution.solver,
        "reason": solution.reason,
        "n_rows": solution.n_rows,
        "total_weight": solution.total_weight,
        "unit": solution.unit,
        "penalty": [penalty.kind, penalty.alpha, bool(penalty.fit_intercept)],
        "parameters": solution.parameters,
        "encoding": solution.encoding,
    }
    if solution.choice is not None:
        state["choice"] = [solution.choice.degree, solution.choice.alpha, solution.choice.score]
        arrays |= {f"cv.{name}": values for name, values in solution.choice.results.items()}
    if family.span is None:
        arrays["masks"] = family.masks
    if polynomial.dual is not None:
        dual = polynomial.dual
        arrays |= {"dual.columns": dual.points.columns, "dual.weights": dual.weights, "dual.kernel": dual.kernel}
        state["dual_rows"] = dual.points.n_rows
    else:
        arrays["coef"] = polynomial.coef
    if polynomial.dual is None and solution.identified is not None:
        arrays["identified"] = solution.identified
    if penalty.kind == "ridge" and solution.cells is None and polynomial.dual is None:
        arrays["variances"] = solution.unscaled_variances(np.arange(len(family) + 1))
    return {"solution": state}, arrays


def _solution_in(state: State, arrays: Arrays) -> Solution:
    n, span = int(state["n"]), state["span"]
    intercept = expect(arrays, "intercept", np.float64, (None,))
    shape = intercept.shape
    dual, coef = None, None
    if "dual_rows" in state:
        rows = int(state["dual_rows"])
        columns = expect(arrays, "dual.columns", np.uint64, (n, -(-rows // WORD)))
        weights = expect(arrays, "dual.weights", np.float64, (rows, *shape))
        dual = Dual(Points(columns, rows), weights, expect(arrays, "dual.kernel", np.float64, (n + 1,)))
    else:
        coef = expect(arrays, "coef", np.float64, (None, *shape))
    if span is None:
        family = listed(n, expect(arrays, "masks", np.uint64, (None, n_words(n))))
    else:
        family = spanned(n, span, None if coef is None else len(coef))
    if coef is not None and len(coef) != len(family):
        raise ValueError(f"{len(coef)} coefficients of {len(family)} monomials")
    return Solution(
        FittedPolynomial(family, coef, intercept, dual),
        str(state["solver"]),
        str(state["reason"]),
        expect(arrays, "squared_error", np.float64, shape),
        expect(arrays, "target_squares", np.float64, shape),
        rows_in(state["n_rows"], "n_rows"),
        number(state["total_weight"], "total_weight"),
        _penalty(*state["penalty"]),
        encoding=encoding_named(state["encoding"]),
        variances=expect(arrays, "variances", np.float64, (len(family) + 1,)) if "variances" in arrays else None,
        said_identified=expect(arrays, "identified", np.bool_, (len(family) + 1,)) if "identified" in arrays else None,
        parameters=None if state["parameters"] is None else float(state["parameters"]),
        choice=_choice(state["choice"], arrays) if "choice" in state else None,
        unit=checked_positive(state["unit"], "the unit of targets"),
    )


def _penalty(kind: Any, alpha: Any, fit_intercept: Any) -> Penalty:
    if kind not in ("ridge", "lasso", "correlation"):
        raise ValueError(f"unknown penalty {kind!r}")
    return Penalty(kind, number(alpha, "alpha"), flag(fit_intercept, "fit_intercept"))


def _choice(state: list[Any], arrays: Arrays) -> CVSelection:
    degree, alpha, score = state
    results = {name.removeprefix("cv."): values for name, values in arrays.items() if name.startswith("cv.")}
    return CVSelection(int(degree), float(alpha), float(score), results)
