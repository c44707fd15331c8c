"""Additive statistics as plain state and arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import WORD, n_words
from sparsact.learners.exact_sum import LIMB_BITS, MOST_DIGIT, MOST_PLACES, ExactSum
from sparsact.learners.low_degree.cells import MAX_N, Cells
from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.moments import Moments
from sparsact.learners.low_degree.plan import available_memory
from sparsact.learners.low_degree.real import NO_TARGET, RealStatistic
from sparsact.learners.low_degree.rows import DistinctPoints
from sparsact.learners.low_degree.stream import Batch, Stream
from sparsact.saving.schema import (
    ArrayField,
    Arrays,
    State,
    as_count,
    as_encoding,
    as_n_rows,
    as_nonnegative,
    check_array,
    read_arrays,
)

MAX_EXPONENT = LIMB_BITS * MOST_PLACES
_BATCH = {
    "y": ArrayField("m T", finite=True),
    "weights": ArrayField("m", finite=True, nonnegative=True, optional=True),
    "folds": ArrayField("m", np.intp, optional=True),
}
_REAL = {
    "feature_mean": ArrayField("D"),
    "target_mean": ArrayField("T"),
    "gram": ArrayField("D D"),
    "rhs": ArrayField("D T"),
    "target_squares": ArrayField("T"),
    "exponents": ArrayField("T", np.int64),
}


def stream_out(stream: Stream, arrays: Arrays) -> State:
    """A stream as state; its arrays are put among the others."""
    statistics = [statistic_out(s, f"statistic.{fold}", arrays) for fold, s in enumerate(stream.statistics)]
    return {
        "n": stream.n,
        "n_targets": stream.n_targets,
        "n_folds": stream.n_folds,
        "domain": stream.domain,
        "encoding": stream.encoding,
        "statistics": statistics,
        "undecided": [_batch_out(batch, f"undecided.{i}", arrays) for i, batch in enumerate(stream.undecided)],
    }


def stream_in(state: State, arrays: Arrays, n: int, n_targets: int) -> Stream:
    """The stream that :func:`stream_out` wrote, of n columns and so many targets."""
    if (state["n"], state["n_targets"]) != (n, n_targets):
        raise ValueError("the sums are of other columns or targets than the solution")
    n_folds = as_count(state["n_folds"], "n_folds", minimum=1)
    kind = "real" if state["domain"] == "real" else "cube"
    if state["domain"] not in ("cube", "real", None) or (state["encoding"] is None) == (state["domain"] == "cube"):
        raise ValueError("a statistic of no known kind")
    if len(state["statistics"]) != (0 if state["domain"] is None else n_folds):
        raise ValueError("a statistic is missing or too many")
    if any((one["kind"] == "real") != (kind == "real") for one in state["statistics"]):
        raise ValueError(f"a statistic is not of {kind} columns")
    statistics = [
        statistic_in(one, f"statistic.{fold}", n, n_targets, arrays) for fold, one in enumerate(state["statistics"])
    ]
    stream = Stream(n, n_targets, n_folds, state["domain"], as_encoding(state["encoding"]), statistics)
    stream.undecided = [_batch_in(sign, f"undecided.{i}", stream, arrays) for i, sign in enumerate(state["undecided"])]
    return stream


def _batch_out(batch: Batch, name: str, arrays: Arrays) -> int:
    """Rows of ones that wait to be told bits or signs; all but the sign is arrays."""
    parts = {"y": batch.y, "weights": batch.weights, "folds": batch.folds}
    arrays |= {f"{name}.{part}": values for part, values in parts.items() if values is not None}
    return batch.sign


def _batch_in(sign: Any, name: str, stream: Stream, arrays: Arrays) -> Batch:
    found = read_arrays(_BATCH, arrays, f"{name}.", T=stream.n_targets)
    folds = found.get("folds")
    outside = folds is not None and len(folds) > 0 and not 0 <= folds.min() <= folds.max() < stream.n_folds
    if sign not in (1, -1) or outside or (folds is None) != (stream.n_folds == 1):
        raise ValueError("rows of no known kind")
    return Batch(found["y"], found.get("weights"), folds, sign)


def statistic_out(statistic: Any, name: str, arrays: Arrays) -> State:
    """A statistic as state; its arrays are put among the others, under its name."""
    if isinstance(statistic, RealStatistic):
        arrays |= {f"{name}.{part}": getattr(statistic, part) for part in _REAL}
        arrays[f"{name}.masks"] = statistic.family.masks
        return {"kind": "real", "weight": statistic.weight, "n_rows": statistic.n_rows}
    state: State = {"n_rows": statistic.totals.n_rows, "base": {}}
    statistic.digest()
    if isinstance(statistic, DistinctPoints):
        statistic.join()
        state["kind"] = "rows"
        arrays[f"{name}.codes"] = statistic.codes
    elif isinstance(statistic, Moments):
        state["kind"], state["span"] = "moments", statistic.family.span
        arrays[f"{name}.masks"] = statistic.family.masks
    else:
        state["kind"] = "cells"
    for part, sums in _sums(statistic).items():
        sums.normalize()
        state["base"][part] = sums.base
        arrays[f"{name}.{part}"] = sums.limbs
    return state


def statistic_in(state: State, name: str, n: int, n_targets: int, arrays: Arrays) -> Any:
    """The statistic that :func:`statistic_out` wrote."""
    if state["kind"] == "real":
        return _real_in(state, name, n, n_targets, arrays)
    statistic: Cells | DistinctPoints | Moments
    if state["kind"] == "rows":
        statistic = DistinctPoints(n, n_targets)
        statistic.codes = check_array(arrays, f"{name}.codes", np.uint64, (None, n_words(n)))
        check_bits(statistic.codes, n)
    elif state["kind"] == "moments":
        family = listed(n, check_array(arrays, f"{name}.masks", np.uint64, (None, n_words(n))))
        span = None if state["span"] is None else (int(state["span"][0]), int(state["span"][1]))
        if span is not None and not np.array_equal(spanned(n, span).masks, family.masks):
            raise ValueError(f"masks that are not all subsets of sizes {span}")
        if 8.0 * len(family) ** 2 > available_memory():
            raise ValueError(f"moments of {len(family)} subsets")
        statistic = Moments(Family(n, family.masks, span), n_targets)
    elif state["kind"] != "cells":
        raise ValueError("a statistic of no known kind")
    else:
        if n > MAX_N or arrays[f"{name}.weights"].shape[-1:] != (2**n,):
            raise ValueError(f"cells of {n} coordinates")
        statistic = Cells(n, n_targets)
    statistic.totals.n_rows = as_n_rows(state["n_rows"], "n_rows")
    for part, sums in _sums(statistic).items():
        shape = (
            (*sums.shape[:-1], len(statistic.codes))
            if isinstance(statistic, DistinctPoints) and "." not in part
            else sums.shape
        )
        limbs = check_array(arrays, f"{name}.{part}", np.int64, (None, *shape))
        if limbs.size and (limbs.max() > MOST_DIGIT or limbs.min() < -MOST_DIGIT):
            raise ValueError(f"{part} is not a normalised sum")
        base = int(state["base"][part])
        if abs(base) > MOST_PLACES or len(limbs) > MOST_PLACES:
            raise ValueError(f"{part} is beyond any double")
        sums.replace(base, limbs)
    weight, means = statistic.totals.total_weight(), statistic.totals.sums.to_float()
    if not np.isfinite([weight, *means]).all() or (weight <= 0 if statistic.totals.n_rows else weight != 0):
        raise ValueError("a weight of rows that are there is none, or sums are beyond any double")
    return statistic


def _real_in(state: State, name: str, n: int, n_targets: int, arrays: Arrays) -> RealStatistic:
    family = listed(n, check_array(arrays, f"{name}.masks", np.uint64, (None, n_words(n))))
    real = RealStatistic(family, n_targets)
    vars(real).update(read_arrays(_REAL, arrays, f"{name}.", D=len(family), T=n_targets))
    outside = (real.exponents > MAX_EXPONENT) | (real.exponents < -MAX_EXPONENT)
    if (outside & (real.exponents != NO_TARGET)).any():
        raise ValueError("targets beyond any double")
    real.weight, real.n_rows = as_nonnegative(state["weight"], "weight"), as_n_rows(state["n_rows"], "n_rows")
    return real


def _sums(statistic: Cells | DistinctPoints | Moments) -> Mapping[str, ExactSum]:
    weight, sums, squares = statistic.totals.parts()
    return {
        "weights": statistic.weights,
        "sums": statistic.sums,
        "total.weight": weight,
        "total.sums": sums,
        "total.squares": squares,
    }


def spanned(n: int, span: tuple[int, int], due: int | None = None) -> Family:
    """All subsets of those sizes, unless there are more than memory holds, or not as many as are due."""
    low, high = (as_count(size, "span") for size in span)
    if not low <= n or not high <= n:
        raise ValueError(f"degrees {low} to {high} of {n} coordinates")
    count = Family.count(n, high, low)
    if due not in (None, count) or 8.0 * n_words(n) * count > available_memory():
        raise ValueError(f"{count} subsets of {low} to {high} of {n} coordinates, where there are {due or 'fewer'}")
    return Family.full(n, high, low)


def listed(n: int, masks: NDArray[np.uint64]) -> Family:
    """The family of masks that name coordinates there are."""
    check_bits(masks, n)
    if not masks.any(axis=1).all() or len(np.unique(masks, axis=0)) < len(masks):
        raise ValueError("a subset is empty, or stands twice")
    return Family(n, masks, None)


def check_bits(words: NDArray[np.uint64], n: int) -> None:
    """Refuse packed words that name coordinates beyond the n there are."""
    if n % WORD and (words[:, -1] >> np.uint64(n % WORD)).any():
        raise ValueError(f"coordinates beyond the {n} there are")
