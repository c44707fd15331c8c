"""Low-degree models as plain state and arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sparsact import storage
from sparsact.learners.exact_sum import ExactSum
from sparsact.learners.low_degree.cells import Cells
from sparsact.learners.low_degree.dual import Dual
from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.moments import Moments
from sparsact.learners.low_degree.polynomial import Polynomial
from sparsact.learners.low_degree.real import RealStatistic
from sparsact.learners.low_degree.rows import Rows
from sparsact.learners.low_degree.solve import Penalty, Solution
from sparsact.learners.low_degree.stream import Stream
from sparsact.learners.points import Encoding, Points

State = dict[str, Any]
Arrays = dict[str, NDArray[Any]]
_LEARNED = (
    "n_features_in_",
    "_single_target",
    "degree_",
    "alpha_",
    "best_score_",
    "rows_dealt_",
    "table_encoding_",  # how the command encoded the columns of a table
)


def save_learner(learner: Any, path: str | Path, *, statistic: bool) -> None:
    """Write a fitted low-degree estimator; the solution is found first, if it has not been."""
    solution = learner._fitted
    state, arrays = _solution_out(solution)
    state["params"] = {name: _plain(value) for name, value in learner.get_params(deep=False).items()}
    if hasattr(learner, "cv_results_"):
        state["params"]["cv"] = learner.cv_results_["fold_mse"].shape[1]  # whatever split them: so many folds
        arrays |= {f"cv.{name}": values for name, values in learner.cv_results_.items()}
    state["learned"] = {name: _plain(getattr(learner, name)) for name in _LEARNED if hasattr(learner, name)}
    if hasattr(learner, "feature_names_in_"):
        state["feature_names"] = [str(name) for name in learner.feature_names_in_]
    if hasattr(learner, "classes_"):
        classes = learner.classes_
        if classes.dtype.kind in "OUS":
            state["classes"] = [str(label) for label in classes]
        else:
            arrays["classes"] = classes
    if statistic:
        if "stream_" not in learner.__dict__:
            raise ValueError("this model was loaded without its statistic, so none can be saved; fit it again.")
        state["stream"] = _stream_out(learner.stream_, arrays)
    storage.write(path, type(learner).__name__, state, arrays)


def load_learner(make: Any, state: State, arrays: Arrays) -> Any:
    """The estimator that :func:`save_learner` wrote; ``make`` is its class."""
    learner = make(**state["params"])
    for name, value in state["learned"].items():
        if name not in _LEARNED:
            raise ValueError(f"unknown attribute {name!r}")
        setattr(learner, name, value)
    results = {name.removeprefix("cv."): values for name, values in arrays.items() if name.startswith("cv.")}
    if results:
        learner.cv_results_ = results
    if "feature_names" in state:
        learner.feature_names_in_ = np.array(state["feature_names"], dtype=object)
    if "classes" in state or "classes" in arrays:
        learner.classes_ = np.array(state["classes"]) if "classes" in state else arrays["classes"]
    if "stream" in state:
        learner.stream_ = _stream_in(state["stream"], arrays)
    learner._solution = _solution_in(state["solution"], arrays)
    return learner


def _plain(value: Any) -> Any:
    """A parameter as JSON spells it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple | range | set | frozenset):
        return [_plain(item) for item in value]
    return value


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
        "penalty": [penalty.kind, penalty.alpha, bool(penalty.fit_intercept)],
        "parameters": solution.parameters,
        "encoding": solution.encoding,
    }
    if family.span is None:
        arrays["masks"] = family.masks
    if polynomial.dual is not None:
        dual = polynomial.dual
        arrays |= {"dual.columns": dual.points.columns, "dual.weights": dual.weights, "dual.kernel": dual.kernel}
        state["dual_rows"] = dual.points.n_rows
    else:
        arrays["coef"] = polynomial.coef
    if penalty.kind == "ridge" and solution.cells is None and polynomial.dual is None:
        arrays["variances"] = solution.unscaled_variances(np.arange(len(family) + 1))
    return {"solution": state}, arrays


def _solution_in(state: State, arrays: Arrays) -> Solution:
    n, span = int(state["n"]), state["span"]
    dual = None
    if "dual_rows" in state:
        points = Points(arrays["dual.columns"], int(state["dual_rows"]))
        dual = Dual(points, arrays["dual.weights"], arrays["dual.kernel"])
    coef = None if dual else arrays["coef"]
    family = (
        Family(n, arrays["masks"], None) if span is None else _spanned(n, span, None if coef is None else len(coef))
    )
    if coef is not None and len(coef) != len(family):
        raise ValueError(f"{len(coef)} coefficients of {len(family)} monomials")
    return Solution(
        Polynomial(family, coef, arrays["intercept"], dual),
        str(state["solver"]),
        str(state["reason"]),
        arrays["squared_error"],
        arrays["target_squares"],
        int(state["n_rows"]),
        float(state["total_weight"]),
        Penalty(*state["penalty"]),
        encoding=_encoding(state["encoding"]),
        variances=arrays.get("variances"),
        parameters=state["parameters"],
    )


def _encoding(name: Any) -> Encoding | None:
    if name not in ("signs", "bits", None):
        raise ValueError(f"unknown encoding {name!r}")
    return cast("Encoding | None", name)


def _spanned(n: int, span: tuple[int, int], size: int | None) -> Family:
    low, high = span
    if size is not None and Family.count(n, high, low) != size:  # before building what may be absurdly large
        raise ValueError(f"{size} monomials do not span degrees {low} to {high} of {n} coordinates")
    return Family.full(n, high, low)


def _stream_out(stream: Stream, arrays: Arrays) -> State:
    statistics = [_statistic_out(s, f"statistic.{fold}", arrays) for fold, s in enumerate(stream.statistics)]
    return {
        "n": stream.n,
        "n_targets": stream.n_targets,
        "n_folds": stream.n_folds,
        "domain": stream.domain,
        "encoding": stream.encoding,
        "statistics": statistics,
    }


def _stream_in(state: State, arrays: Arrays) -> Stream:
    statistics = [
        _statistic_in(one, f"statistic.{fold}", int(state["n"]), int(state["n_targets"]), arrays)
        for fold, one in enumerate(state["statistics"])
    ]
    return Stream(
        int(state["n"]), int(state["n_targets"]), int(state["n_folds"]), state["domain"], state["encoding"], statistics
    )


_REAL = ("feature_mean", "target_mean", "gram", "rhs", "target_squares")


def _statistic_out(statistic: Any, name: str, arrays: Arrays) -> State:
    if isinstance(statistic, RealStatistic):
        arrays |= {f"{name}.{part}": getattr(statistic, part) for part in _REAL}
        arrays[f"{name}.masks"] = statistic.family.masks
        return {"kind": "real", "weight": statistic.weight, "n_rows": statistic.n_rows}
    state: State = {"n_rows": statistic.totals.n_rows, "base": {}}
    if isinstance(statistic, Rows):
        statistic.join()
        state["kind"] = "rows"
        arrays[f"{name}.codes"] = statistic.codes
    elif isinstance(statistic, Moments):
        statistic.digest()
        state["kind"], state["span"] = "moments", statistic.family.span
        arrays[f"{name}.masks"] = statistic.family.masks
    else:
        state["kind"] = "cells"
    for part, sums in _sums(statistic).items():
        sums.normalize()
        state["base"][part] = sums.base
        arrays[f"{name}.{part}"] = sums.limbs
    return state


def _statistic_in(state: State, name: str, n: int, n_targets: int, arrays: Arrays) -> Any:
    if state["kind"] == "real":
        real = RealStatistic(Family(n, arrays[f"{name}.masks"], None), n_targets)
        for part in _REAL:
            setattr(real, part, arrays[f"{name}.{part}"])
        real.weight, real.n_rows = float(state["weight"]), int(state["n_rows"])
        return real
    statistic: Cells | Rows | Moments
    if state["kind"] == "rows":
        statistic = Rows(n, n_targets)
        statistic.codes = arrays[f"{name}.codes"]
    elif state["kind"] == "moments":
        masks, span = arrays[f"{name}.masks"], state["span"]
        statistic = Moments(Family(n, masks, None) if span is None else _spanned(n, span, len(masks)), n_targets)
    else:
        statistic = Cells(n, n_targets)
    statistic.totals.n_rows = int(state["n_rows"])
    for part, sums in _sums(statistic).items():
        limbs = arrays[f"{name}.{part}"]
        if state["kind"] != "rows" and limbs.shape[1:] != sums.shape:
            raise ValueError(f"{part} has shape {limbs.shape[1:]} where {sums.shape} is due")
        sums.base, sums.limbs = int(state["base"][part]), limbs
    return statistic


def _sums(statistic: Cells | Rows | Moments) -> Mapping[str, ExactSum]:
    weight, sums, squares = statistic.totals.parts()
    return {
        "weights": statistic.weights,
        "sums": statistic.sums,
        "total.weight": weight,
        "total.sums": sums,
        "total.squares": squares,
    }
