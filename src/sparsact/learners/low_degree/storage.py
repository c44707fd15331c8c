"""Low-degree models as plain state and arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sparsact import storage
from sparsact.hypercube import WORD, n_words
from sparsact.learners.exact_sum import MOST_DIGIT, MOST_PLACES, ExactSum
from sparsact.learners.low_degree.cells import MAX_N, Cells
from sparsact.learners.low_degree.dual import Dual
from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.moments import Moments
from sparsact.learners.low_degree.plan import available_memory
from sparsact.learners.low_degree.polynomial import Polynomial
from sparsact.learners.low_degree.real import RealStatistic
from sparsact.learners.low_degree.rows import Rows
from sparsact.learners.low_degree.solve import Choice, Penalty, Solution
from sparsact.learners.low_degree.stream import Batch, Stream
from sparsact.learners.points import Encoding, Points

State = dict[str, Any]
Arrays = dict[str, NDArray[Any]]
_LEARNED = (
    "n_features_in_",
    "_single_target",
    "rows_dealt_",
    "table_encoding_",  # how the command encoded the columns of a table
)


def save_learner(learner: Any, path: str | Path, *, statistic: bool) -> None:
    """Write a fitted low-degree estimator; the solution is found first, if it has not been."""
    solution = learner._fitted
    state, arrays = _solution_out(solution)
    state["params"] = {name: _plain(value) for name, value in learner.get_params(deep=False).items()}
    if solution.choice is not None:
        state["params"]["cv"] = solution.choice.results["fold_mse"].shape[1]  # whatever split them: so many folds
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
    family = _listed(n, expect(arrays, "masks", np.uint64, (None, n_words(n)))) if span is None else _spanned(n, span)
    if coef is not None and len(coef) != len(family):
        raise ValueError(f"{len(coef)} coefficients of {len(family)} monomials")
    return Solution(
        Polynomial(family, coef, intercept, dual),
        str(state["solver"]),
        str(state["reason"]),
        expect(arrays, "squared_error", np.float64, shape),
        expect(arrays, "target_squares", np.float64, shape),
        int(state["n_rows"]),
        float(state["total_weight"]),
        Penalty(*state["penalty"]),
        encoding=_encoding(state["encoding"]),
        variances=expect(arrays, "variances", np.float64, (len(family) + 1,)) if "variances" in arrays else None,
        parameters=None if state["parameters"] is None else float(state["parameters"]),
        choice=_choice(state["choice"], arrays) if "choice" in state else None,
    )


def _choice(state: list[Any], arrays: Arrays) -> Choice:
    degree, alpha, score = state
    results = {name.removeprefix("cv."): values for name, values in arrays.items() if name.startswith("cv.")}
    return Choice(int(degree), float(alpha), float(score), results)


def _encoding(name: Any) -> Encoding | None:
    if name not in ("signs", "bits", None):
        raise ValueError(f"unknown encoding {name!r}")
    return cast("Encoding | None", name)


def _spanned(n: int, span: tuple[int, int]) -> Family:
    low, high = (int(size) for size in span)
    if not 0 <= low <= n or not high <= n or Family.count(n, high, low) * 8.0 * n_words(n) > available_memory():
        raise ValueError(f"degrees {low} to {high} of {n} coordinates, more than memory holds")
    return Family.full(n, high, low)


def _listed(n: int, masks: NDArray[np.uint64]) -> Family:
    _check_bits(masks, n)
    return Family(n, masks, None)


def _check_bits(words: NDArray[np.uint64], n: int) -> None:
    """Refuse packed words that name coordinates beyond the n there are."""
    if n % WORD and (words[:, -1] >> np.uint64(n % WORD)).any():
        raise ValueError(f"coordinates beyond the {n} there are")


def expect(arrays: Arrays, name: str, dtype: Any, shape: tuple[int | None, ...]) -> NDArray[Any]:
    """An array of a file, of the dtype and shape (None: any length) that it must have."""
    array = arrays[name]
    fits = array.ndim == len(shape) and all(due in (None, is_) for due, is_ in zip(shape, array.shape, strict=True))
    if array.dtype != dtype or not fits:
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}")
    return array


def _stream_out(stream: Stream, arrays: Arrays) -> State:
    statistics = [_statistic_out(s, f"statistic.{fold}", arrays) for fold, s in enumerate(stream.statistics)]
    return {
        "n": stream.n,
        "n_targets": stream.n_targets,
        "n_folds": stream.n_folds,
        "domain": stream.domain,
        "encoding": stream.encoding,
        "statistics": statistics,
        "undecided": [_batch_out(batch, f"undecided.{i}", arrays) for i, batch in enumerate(stream.undecided)],
    }


def _stream_in(state: State, arrays: Arrays) -> Stream:
    n, n_targets, n_folds = int(state["n"]), int(state["n_targets"]), int(state["n_folds"])
    if state["domain"] not in ("cube", "real", None) or len(state["statistics"]) not in (0, n_folds):
        raise ValueError("a statistic of no known kind")
    statistics = [
        _statistic_in(one, f"statistic.{fold}", n, n_targets, arrays) for fold, one in enumerate(state["statistics"])
    ]
    stream = Stream(n, n_targets, n_folds, state["domain"], _encoding(state["encoding"]), statistics)
    stream.undecided = [_batch_in(sign, f"undecided.{i}", stream, arrays) for i, sign in enumerate(state["undecided"])]
    return stream


def _batch_out(batch: Batch, name: str, arrays: Arrays) -> int:
    """Rows of ones that wait to be told bits or signs; all but the sign is arrays."""
    parts = {"y": batch.y, "weights": batch.weights, "folds": batch.folds}
    arrays |= {f"{name}.{part}": values for part, values in parts.items() if values is not None}
    return batch.sign


def _batch_in(sign: Any, name: str, stream: Stream, arrays: Arrays) -> Batch:
    y = expect(arrays, f"{name}.y", np.float64, (None, stream.n_targets))
    weights, folds = (
        expect(arrays, f"{name}.{part}", dtype, (len(y),)) if f"{name}.{part}" in arrays else None
        for part, dtype in (("weights", np.float64), ("folds", np.intp))
    )
    outside = folds is not None and len(folds) > 0 and not 0 <= folds.min() <= folds.max() < stream.n_folds
    if sign not in (1, -1) or outside or (folds is None) != (stream.n_folds == 1):
        raise ValueError("rows of no known kind")
    return Batch(y, weights, folds, sign)


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
        return _real_in(state, name, n, n_targets, arrays)
    statistic: Cells | Rows | Moments
    if state["kind"] == "rows":
        statistic = Rows(n, n_targets)
        statistic.codes = expect(arrays, f"{name}.codes", np.uint64, (None, n_words(n)))
        _check_bits(statistic.codes, n)
    elif state["kind"] == "moments":
        family = _listed(n, expect(arrays, f"{name}.masks", np.uint64, (None, n_words(n))))
        span = None if state["span"] is None else (int(state["span"][0]), int(state["span"][1]))
        if span is not None and not np.array_equal(_spanned(n, span).masks, family.masks):
            raise ValueError(f"masks that are not all subsets of sizes {span}")
        statistic = Moments(Family(n, family.masks, span), n_targets)
    else:
        if n > MAX_N:
            raise ValueError(f"cells of {n} coordinates")
        statistic = Cells(n, n_targets)
    statistic.totals.n_rows = int(state["n_rows"])
    for part, sums in _sums(statistic).items():
        shape = (
            (*sums.shape[:-1], len(statistic.codes)) if isinstance(statistic, Rows) and "." not in part else sums.shape
        )
        limbs = expect(arrays, f"{name}.{part}", np.int64, (None, *shape))
        if limbs.size and (limbs.max() > MOST_DIGIT or limbs.min() < -MOST_DIGIT):
            raise ValueError(f"{part} is not a normalised sum")
        base = int(state["base"][part])
        if abs(base) > MOST_PLACES or len(limbs) > MOST_PLACES:
            raise ValueError(f"{part} is beyond any double")
        sums.replace(base, limbs)
    return statistic


def _real_in(state: State, name: str, n: int, n_targets: int, arrays: Arrays) -> RealStatistic:
    family = _listed(n, expect(arrays, f"{name}.masks", np.uint64, (None, n_words(n))))
    real = RealStatistic(family, n_targets)
    for part in _REAL:
        setattr(real, part, expect(arrays, f"{name}.{part}", np.float64, getattr(real, part).shape))
    real.weight, real.n_rows = float(state["weight"]), int(state["n_rows"])
    return real


def _sums(statistic: Cells | Rows | Moments) -> Mapping[str, ExactSum]:
    weight, sums, squares = statistic.totals.parts()
    return {
        "weights": statistic.weights,
        "sums": statistic.sums,
        "total.weight": weight,
        "total.sums": sums,
        "total.squares": squares,
    }
