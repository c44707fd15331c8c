"""The outputs whose digests are compared: of low-degree learners, hash tables, networks and spectra."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import sparsact as sa

Array = np.ndarray[Any, Any]
ITEMS: dict[str, Callable[[], Any]] = {}
TOLERANCES: dict[str, float] = {}


def item(*, tolerance: float = 1e-7) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """An output by the name of the function; of a generator of pairs, several. Numbers may move by ``tolerance``."""

    def kept(function: Callable[[], Any]) -> Callable[[], Any]:
        ITEMS[function.__name__], TOLERANCES[function.__name__] = function, tolerance
        return function

    return kept


def outputs(names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """The outputs of the named items, each by its name."""
    for name in names:
        value = ITEMS[name]()
        if isinstance(value, Iterator):
            yield from ((f"{name}: {part}", output) for part, output in value)
        else:
            yield name, value


# ---- rows that the items share ----


@cache
def rows(n_rows: int = 300, n: int = 8, seed: int = 0) -> tuple[Array, Array, Array]:
    """Bits, real columns, and three targets of both."""
    rng = np.random.default_rng(seed)
    bits, reals = rng.integers(0, 2, (n_rows, n)), rng.normal(size=(n_rows, 4))
    s = 1.0 - 2 * bits
    y = [s[:, 0] * s[:, 3] + 0.5 * s[:, 1], 2 * s[:, 2] - s[:, 5] * s[:, 6] * s[:, 7], np.abs(reals[:, 0])]
    return bits, reals, np.stack(y, axis=1) + 0.2 * rng.normal(size=(n_rows, 3))


def labels() -> Array:
    bits, _, y = rows()
    return np.array(["low", "middle", "high"])[(y[:, 0] > 0).astype(int) + bits[:, 2]]


def arrays_of_file(model: Any, **options: Any) -> dict[str, Array]:
    """The arrays that a model writes to its file, by name."""
    from safetensors.numpy import load_file

    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model", **options)
        return dict(load_file(Path(folder) / "model"))


def fitted(model: Any) -> dict[str, Any]:
    """What a low-degree model has learned."""
    return {
        "coef": model.coefficients_,
        "intercept": model.intercept_,
        "errors": model.standard_errors() if model.solver_ != "kernel" else None,
        "residual variance": model.residual_variance_,
        "solver": model.solver_,
    }


# ---- low degree ----


@item()
def low_degree() -> Iterator[tuple[str, Any]]:
    bits, reals, y = rows()
    few, low = slice(0, 40), sa.LowDegreeRegressor
    weights = np.random.default_rng(1).uniform(0, 2, len(bits))
    yield "cells", fitted(low(2, solver="cells").fit(bits, y[:, 0]))
    yield "cells, ridge, targets", fitted(low(3, 0.7, "cells").fit(bits, y))
    yield "cells by conjugate gradients", low(6, 0.5, "cells").fit(*wide_rows(13)).coefficients_
    yield "moments", fitted(low(2, 0.3, "moments").fit(bits, y))
    yield "kernel", fitted(low(4, solver="kernel").fit(bits[few], y[few]))
    yield "kernel, ridge", fitted(low(5, 0.4, "kernel").fit(bits[few], y[few]))
    yield "correlation", low(2, solver="correlation").fit(bits, y).coefficients_
    yield "lasso", low(2, 0.05, "lasso").fit(bits, y[:, 0]).coefficients_
    yield "subsets", fitted(low(subsets=[(1, 2), (0,), (5, 6, 7)]).fit(bits, y))
    yield "weighted", fitted(low(2, 0.1).fit(bits, y, weights))
    yield "real columns", fitted(low(2, 0.1, domain="real").fit(reals, y))
    yield "without intercept", fitted(low(2, 0.1, fit_intercept=False).fit(1 - 2 * bits, y))
    yield "intervals", low(2).fit(bits, y).confidence_intervals()
    one_hot = np.concatenate([bits[:, :3], np.eye(4, dtype=int)[np.arange(len(bits)) % 4]], axis=1)
    unclear = low(2).fit(one_hot, y[:, 0])
    yield "not identified", {"identified": unclear.identified(), "coef": unclear.coefficients_}
    streamed = low(2, 0.1).fit(bits[:100], y[:100]).partial_fit(bits[100:], y[100:])
    streamed.merge(low(2, 0.1).fit(bits[few], y[few])).remove(bits[10:30], y[10:30])
    yield "streamed, merged, forgotten", fitted(streamed)
    yield "statistic", arrays_of_file(streamed, statistic=True)
    yield "degree chosen", [(model := low("auto").fit(*wide_rows(9))).degree_, model.coefficients_]
    chosen = sa.LowDegreeRegressorCV((1, 2, 3), (0.1, 1.0, 10.0)).fit(bits, y)
    yield (
        "cross-validated",
        {**chosen.cv_results_, "chosen": [chosen.degree_, chosen.alpha_], "coef": chosen.coefficients_},
    )
    model = sa.LowDegreeClassifier(2, 0.5).fit(bits, labels())
    yield "classifier", {"coef": model.coefficients_, "classes": model.predict(bits)}
    sizes = 10.0 ** np.random.default_rng(3).integers(-120, 120, len(bits))
    yield "targets of all sizes", low(1, solver="cells").fit(bits, y[:, 0] * sizes).coefficients_


@cache
def wide_rows(n: int) -> tuple[Array, Array]:
    X = np.random.default_rng(n).integers(0, 2, (9000, n))
    return X, (X[:, 0] ^ X[:, 4]) + 0.5 * X[:, 2] + 0.1 * np.random.default_rng(n + 1).normal(size=len(X))


@item()
def exact_sums() -> Any:
    from sparsact.statistics.exact_sum import ExactSum

    rng = np.random.default_rng(4)
    one, other = (ExactSum.of(rng.normal(size=(2, 50)) * 10.0 ** rng.integers(-200, 200, 50)) for _ in range(2))
    one.merge(other)
    one.normalize()
    total = ExactSum(one.base, one.limbs.sum(axis=-1))
    return {"sums": one.to_float(), "total": total.to_float(), "residues": one.modulo(8_388_593)}


# ---- hash tables, units ----


@item()
def lsh() -> Iterator[tuple[str, Any]]:
    _, X, y = rows()
    asked = np.random.default_rng(5).normal(scale=2, size=(70, 4))
    LSH = sa.LSHRegressor
    kinds = {
        "as it comes": {}, "degree 2": {"degree": 2}, "hyperplane": {"family": "hyperplane"},
        "euclidean": {"family": "euclidean", "degree": 0},
        "gradients": {"directions": "gradients"}, "rare buckets left out": {"min_count": 3, "fallback": "mean"},
    }  # fmt: skip
    for name, options in kinds.items():
        model = LSH(random_state=0, **options).fit(X, y)
        yield name, {"values": model.predict(asked), "buckets": model.bucket_counts_, "misses": model.miss_rate_}
    model = LSH(4, random_state=0).fit(X, y)
    yield "bucket sums", arrays_of_file(model)
    parts = [model.blank().partial_fit(X[i::3], y[i::3]) for i in range(3)]
    yield "merged", parts[0].merge(parts[1]).merge(parts[2]).predict(asked)
    yield "removed", model.remove(X[:90], y[:90]).predict(asked)
    yield "classifier", sa.LSHClassifier(random_state=0).fit(X, labels()).predict_proba(asked)


@item()
def plans() -> Any:
    from sparsact.learners import estimate_support, plan_table

    support = estimate_support(np.random.default_rng(6).geometric(0.3, 90))
    return [vars(plan_table(2, 0.3, ambient=20)), vars(support)]


@item()
def dsm() -> Iterator[tuple[str, Any]]:
    _, X, y = rows()
    kinds: dict[str, dict[str, Any]] = {
        "ridge": {}, "pca": {"bottom": "pca", "activation": "relu", "bias": True}, "nearest": {"router": "nearest"},
        "hyperplanes": {"router": "hyperplane_lsh"}, "hash": {"router": "random_hash"},
        "trained": {"solver": "rmsprop", "epochs": 3, "learning_rate": 1e-3},
    }  # fmt: skip
    for name, options in kinds.items():
        model = sa.DSMRegressor(32, 8, random_state=0, **options).fit(X, y)
        yield name, {"coef": model.coefficients_, "values": model.predict(X[::3])}


@item()
def sparsely_activated() -> Any:
    bits, _, y = rows()
    model = sa.SparselyActivatedRegressor(n_units=5, n_restarts=2, max_iter=40, random_state=0).fit(bits, y[:, 0])
    net = model.network_
    return {"u": net.u, "W": net.W, "b": net.b, "loss": model.loss_}


# ---- networks ----


@cache
def network(n: int = 9, s: int = 14) -> Any:
    from sparsact.constructions import random_network

    return random_network(n, s, 2, rng=np.random.default_rng(7))


@item()
def networks() -> Iterator[tuple[str, Any]]:
    import scipy.sparse as sp

    from sparsact import constructions as made

    net, X = network(), 1.0 - 2 * rows(200, 9, 8)[0]
    csr = sa.SparselyActivatedNetwork(net.u, sp.csr_array(net.W), net.b)
    yield "dense", {"values": net(X), "active": net.n_active(X), "scale": list(net.scale())}
    yield "sparse", {"values": csr(X), "active": csr.n_active(X)}
    gated, rounding = made.gated(rows()[2][:4], 2), made.rounding([1, 2, 0, 3], 3, 8)
    junta = made.junta([1, -1, -1, 1, 2, 0, 1, 5], (1, 4, 6), 9)
    for name, one in {"gated": gated, "rounding": rounding, "junta": junta, "indexing": made.indexing(3)}.items():
        W = one.W.toarray() if sp.issparse(one.W) else one.W
        yield name, {"u": one.u, "W": W, "b": one.b}


@item()
def certificates() -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng
    for name, options in {"automatic": {}, "enumerated": {"method": "enumeration"}, "milp": {"method": "milp"}}.items():
        yield name, json.loads(sa.certify(network(), **options).to_json())
    yield "sampled", json.loads(sa.certify(network(20, 9), "sampled", rng=rng(0)).to_json())
    lift = sa.Lift([(0,), (1,), (0, 1), (0, 2), (1, 2), (3,), (2, 3), (0, 3), (1, 3)], 4)
    yield "lifted", json.loads(sa.certify(network(), inputs=lift).to_json())


@item()
def spectra() -> Iterator[tuple[str, Any]]:
    from sparsact.fourier import Halfspace, Spectrum, estimate_influences, estimate_weight_by_degree, walsh_hadamard

    table = np.random.default_rng(9).normal(size=2**9)
    yield "walsh-hadamard", walsh_hadamard(table)
    for name, one in {"of a table": Spectrum.of(table), "of a network": Spectrum.of(network())}.items():
        cut = one.restrict({2: 1, 5: -1}).noise(0.7)
        yield name, {
            "coefficients": one.coefficients, "weights": one.weight_by_degree(), "influences": one.influences(),
            "noise": [one.noise_stability(0.3), one.noise_sensitivity(0.8)], "restricted": cut.coefficients,
        }  # fmt: skip
    yield "top", [[list(subset), value] for subset, value in Spectrum.of(table).top(12)]
    half = Halfspace([3, 1, 4, 1, 5, 9, 2, 6], 2)
    yield "halfspace", [half.mean(), half.influences(), half.weight_by_degree(4), half.noise_sensitivity(0.5)]
    wide = network(40, 9)
    for function in (estimate_influences, estimate_weight_by_degree):
        found = function(wide, wide.n, n_samples=500, rng=np.random.default_rng(1))
        yield f"{function.__name__}", vars(found) if hasattr(found, "__dict__") else list(found)
