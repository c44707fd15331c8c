"""Outputs of processes, latent models, letters, sparse Fourier, choices of hash tables, and every candidate."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import numpy as np
from outputs import Array, item, labels, rows

import sparsact as sa


@cache
def noisy_rows(n_rows: int, n: int) -> tuple[Array, Array, Array]:
    """Bits, a target of effects up to third degree with noise, and other bits to predict at."""
    rng = np.random.default_rng(n_rows + n)
    X, asked = rng.integers(0, 2, (n_rows, n)), rng.integers(0, 2, (29, n))
    s = 1.0 - 2 * X
    y = s @ rng.normal(size=n) / 2 + s[:, 0] * s[:, 2] - 0.7 * s[:, 1] * s[:, 3] * s[:, 4]
    return X, y + 0.3 * rng.normal(size=n_rows), asked


# ---- processes on the cube ----


def posterior(model: Any, asked: Array) -> dict[str, Any]:
    """Means and deviations at some points, the noise, and the strongest coefficients with their errors."""
    mean, deviation = model.predict(asked, return_std=True)
    found = {"mean": mean, "deviation": deviation, "noise": model.noise_variance_}
    if asked.shape[1] <= 20:
        found["weights"] = model.spectrum_.weight_by_degree()
        found["intervals"] = model.confidence_intervals([(0,), (0, 2), (1, 3, 4)])
    return found


@item(tolerance=1e-3)
def processes() -> Iterator[tuple[str, Any]]:
    X, y, asked = noisy_rows(210, 7)
    for kernel in ("auto", "product", "sparse_product", "degree", "degree_site_pair", "degree_site + product"):
        yield kernel, posterior(sa.CubeGPRegressor(kernel, random_state=0).fit(X, y), asked)
    weights = np.random.default_rng(2).integers(1, 6, len(X)) * 1.0
    yield "weighted", posterior(sa.CubeGPRegressor("product", random_state=0).fit(X, y, weights), asked)
    few = sa.CubeGPRegressor("product", random_state=0, n_hyperparameter_rows=90)
    yield "refined on all rows", posterior(few.fit(X, y), asked)
    drawn = sa.CubeGPRegressor("product", random_state=0).fit(X, y)
    yield "draws", drawn.sample_y(asked, n_samples=3, random_state=0)
    parts = drawn.variance_decomposition()
    yield "decomposed", [one.draws.mean(axis=0) for one in (parts.by_degree, parts.shares, parts.influences)]


@item(tolerance=1e-2)
def processes_of_many_rows() -> Iterator[tuple[str, Any]]:
    X, y, asked = noisy_rows(4900, 13)
    cube = sa.CubeGPRegressor("product", random_state=0, n_hyperparameter_rows=150).fit(X, y)
    yield "by transforms", posterior(cube, asked)
    X, y, asked = noisy_rows(1300, 23)
    wide = sa.CubeGPRegressor("product", random_state=0, n_hyperparameter_rows=130, max_inducing=110).fit(X, y)
    yield "more columns than a transform takes", posterior(wide, asked)
    X, y, asked = noisy_rows(4300, 22)
    inducing = sa.CubeGPRegressor("product", random_state=0, n_hyperparameter_rows=90, max_inducing=60, refine=False)
    yield "by inducing points", posterior(inducing.fit(X, y), asked)


# ---- measurement models ----


@item(tolerance=1e-3)
def latent() -> Iterator[tuple[str, Any]]:
    X, f, asked = noisy_rows(190, 6)
    targets = {"identity": f, "log": np.exp(f / 2), "sigmoid": 3 / (1 + np.exp(-f)), "monotone": np.arcsinh(2 * f)}
    for link, y in targets.items():
        for kind, n_rows in (("low-degree", 190), ("gp", 80)):
            model = sa.LatentRegressor(kind, link=link, random_state=0).fit(X[:n_rows], y[:n_rows])
            yield f"{kind}, {link}", measured(model, asked)
    floor = float(np.quantile(f, 0.3))
    censored = sa.LatentRegressor(degree=2, random_state=0, censoring=(floor, None)).fit(X, np.maximum(f, floor))
    yield "censored", measured(censored, asked)
    noticed = sa.LatentRegressor(degree=1, random_state=0).fit(X, np.maximum(f, floor))
    yield "floor that is noticed", {"bounds": noticed.censoring_, **measured(noticed, asked)}


def measured(model: Any, asked: Array) -> dict[str, Any]:
    latent_values, errors = model.predict_latent(asked, return_std=True)
    return {
        "values": model.predict(asked), "latent": latent_values, "errors": errors, "noise": model.noise_deviation_,
        "subsets": len(model.subsets_) if hasattr(model, "subsets_") else None,
    }  # fmt: skip


# ---- letters ----


@cache
def sequences(n_rows: int, alphabet: str, length: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(n_rows)
    codes = rng.integers(0, len(alphabet), (n_rows, length))
    effects, pairs = rng.normal(size=(length, len(alphabet))), rng.normal(size=(len(alphabet), len(alphabet)))
    y = effects[np.arange(length), codes].sum(axis=1) + pairs[codes[:, 0], codes[:, 1]]
    return np.array(list(alphabet))[codes], y + 0.2 * rng.normal(size=n_rows)


@item(tolerance=3e-3)
def letters() -> Iterator[tuple[str, Any]]:
    kinds = {"protein": ("ACDEFGHIKLMNPQRSTVWY", 140, 3), "dna": ("ACGT", 90, 4)}
    for name, (alphabet, n_rows, length) in kinds.items():
        X, y = sequences(n_rows, alphabet, length)
        model = sa.LettersRegressor(random_state=0).fit(X[20:], y[20:])
        yield name, {
            "values": model.predict(X[:20]), "intervals": model.prediction_intervals(X[:20]), "weights": model.weights_
        }  # fmt: skip


def on_the_grid(n_rows: int, log_noise: float, log_signal: float) -> Any:
    """Dual coefficients and residual of rows of a grid of 20 x 20 x 20 letters, solved without a matrix."""
    from sparsact.learners.letters.alphabet import features_of
    from sparsact.learners.letters.kernel import LetterKernel
    from sparsact.learners.letters.process import dual_coefficients, system_of

    alphabet = "ACDEFGHIKLMNPQRSTVWY"
    features = tuple(features_of(list(alphabet), True) for _ in range(3))
    rng = np.random.default_rng(n_rows)
    codes = np.indices((20, 20, 20)).reshape(3, -1).T[rng.permutation(8000)[:n_rows]]
    theta = LetterKernel.start(features).theta.copy()
    theta[1] = log_noise
    place = 2
    for one in features:
        theta[place : place + 2] = log_signal, -4.0
        place += 2 + one.shape[1] + one.size
    kernel = LetterKernel.start(features).with_theta(theta)
    y = rng.normal(size=20)[codes[:, 0]] + rng.normal(size=20)[codes[:, 1]]
    y = (y - y.mean()) / y.std()
    alpha = dual_coefficients(system_of(kernel, codes, np.ones(n_rows)), y, np.ones((1, n_rows), bool))[0]
    return kernel.covariance(codes[:300], codes) @ np.asarray(alpha)


@item(tolerance=2e-2)
def letters_on_a_grid() -> Iterator[tuple[str, Any]]:
    yield "3,000 rows", on_the_grid(3000, -2.0, 1.0)
    yield "ill-conditioned", on_the_grid(1500, -6.0, 2.0)


# ---- ensembles, sparse Fourier, networks of unknown size, PAC ----


@item(tolerance=1e-6)
def sparse_fourier() -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, (420, 31))
    s = 1.0 - 2 * X
    y = 2 * s[:, 3] - 1.5 * s[:, 4] * s[:, 9] + s[:, 0] * s[:, 11] * s[:, 30] + 0.4 * rng.normal(size=len(X))
    for name, options in {"as it comes": {}, "degree 2": {"degree": 2}, "not certified": {"certify": False}}.items():
        model = sa.SparseFourierRegressor(random_state=0, **options).fit(X, y)
        yield name, {
            "subsets": [list(map(int, subset)) for subset in model.subsets_], "coef": model.coefficients_,
            "intervals": model.confidence_intervals(), "values": model.predict(X[:17]),
        }  # fmt: skip


@item(tolerance=1e-3)
def networks_of_unknown_size() -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng(6)
    X = rng.integers(0, 2, (900, 9))
    s = 1.0 - 2 * X
    y = np.where(X[:, 0] == 1, s[:, 3] * s[:, 4], 2 * s[:, 5]) + 0.1 * rng.normal(size=len(X))
    for name, options in {
        "auto": {"n_units": "auto"}, "two active": {"n_units": 9, "max_active": 2},
        "bounded": {"n_units": 8, "max_weight": 1.5, "max_bias": 1.0},
    }.items():  # fmt: skip
        model = sa.SparselyActivatedRegressor(n_restarts=2, max_iter=60, random_state=0, **options).fit(X, y)
        yield name, {"loss": model.loss_, "values": model.predict(X[:23]), "units": model.network_.s}
    classifier = sa.SparselyActivatedClassifier(8, n_restarts=2, max_iter=40, random_state=0).fit(X, y > 0)
    yield "classes", classifier.predict_proba(X[:23])


@item(tolerance=1e-6)
def pac() -> Any:
    X, y, asked = noisy_rows(2000, 8)
    found = sa.pac_learn(1 - 2 * X, np.clip(y, -4, 4), epsilon=1.0, delta=0.1, y_range=(-4, 4))
    return {"bound": found.error_bound, "values": found.predict(1 - 2 * asked)}


# ---- hash tables: what default settings choose, stages, trees, updates ----


@cache
def reals(n_rows: int, n: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(n_rows * n)
    X, asked = rng.normal(size=(n_rows, n)), rng.normal(scale=1.3, size=(31, n))
    y = np.abs(X[:, 0]) + np.sin(2 * X[:, 1]) + 0.3 * X[:, 0] * X[:, 1]
    return X, y + 0.1 * rng.normal(size=n_rows), asked


@item(tolerance=1e-4)
def hash_tables() -> Iterator[tuple[str, Any]]:
    X, y, asked = reals(700, 3)
    kinds: dict[str, dict[str, Any]] = {
        "chosen": {}, "stages": {"n_stages": 3}, "trees": {"base": "trees"}, "constant": {"base": "constant"},
        "one column": {"columns": "all", "n_tables": 4, "n_hashes": 2, "bucket_width": 1.0},
        "nan outside": {"extrapolate": "nan"}, "nearest": {"fallback": "nearest", "min_count": 4},
    }  # fmt: skip
    for name, options in kinds.items():
        model = sa.LSHRegressor(random_state=0, **options).fit(X, y)
        yield name, chosen(model, asked)
    X, y, asked = reals(1100, 9)
    yield "columns left out", chosen(sa.LSHRegressor(random_state=0).fit(X, y), asked)
    few, target, _ = reals(40, 4)
    yield "few rows", chosen(sa.LSHRegressor(random_state=0).fit(few, target), asked[:, :4])
    X, y, asked = reals(4300, 2)
    yield "thousands of rows", chosen(sa.LSHRegressor(random_state=0).fit(X, y), asked)
    X, y, asked = reals(640, 5)
    alike = np.column_stack([X, X[:, 2] + 0.02 * X[:, 3], X[:, 4] + 0.2 * X[:, 3]])
    model = sa.LSHRegressor(random_state=0).fit(alike, y)
    yield "near duplicates", [list(map(int, pair)) for pair in model.near_duplicates_]


@item(tolerance=1e-4)
def hash_tables_of_mixed_columns() -> Iterator[tuple[str, Any]]:
    import pandas as pd

    X, y, _ = reals(800, 3)
    rng = np.random.default_rng(7)
    kinds = rng.integers(0, 12, len(X))
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        kind=pd.Categorical.from_codes(kinds, [f"kind {i}" for i in range(12)]),
        colour=pd.Categorical(np.array(["red", "green", "blue"])[rng.integers(0, 3, len(X))]),
    )
    table.loc[rng.random(len(X)) < 0.1, "b"] = np.nan
    y = y + np.sin(kinds)
    for base in ("linear", "trees"):
        model = sa.LSHRegressor(random_state=0, base=base).fit(table[100:], y[100:])
        yield (
            base,
            {"values": model.predict(table[:100]), "shipped": np.asarray(model.predictor("float64")(table[:100]))},
        )


def chosen(model: Any, asked: Array) -> dict[str, Any]:
    return {
        "values": model.predict(asked), "intervals": model.predict_interval(asked), "width": model.bucket_width_,
        "tables": model.n_tables_, "hashes": model.n_hashes_, "degree": model.degree_, "stages": model.n_stages_,
        "columns": [int(one) for one in model.columns_],
    }  # fmt: skip


@item(tolerance=1e-4)
def hash_tables_in_use() -> Iterator[tuple[str, Any]]:
    X, y, asked = reals(600, 3)
    model = sa.LSHRegressor(random_state=0).fit(X[:400], y[:400])
    for i in range(0, 200, 7):
        model.partial_fit(X[400 + i : 407 + i], y[400 + i : 407 + i])
    yield "updated", model.remove(X[:50], y[:50]).predict(asked)
    moved = sa.LSHRegressor(random_state=0).partial_fit(X[:300], y[:300], adapt=True)
    for i in range(6):
        moved.partial_fit(X[300:] + 2, np.cos(3 * X[300:, 2]) + i, adapt=True)
    yield "adapted", {"times": moved.n_adaptations_, "values": moved.predict(asked + 2)}
    yield "drift", [model.drift(X[:90] + shift).p_value for shift in (0.0, 1.5)]
    for dtype in ("float64", "float32"):
        yield f"predictor, {dtype}", np.asarray(model.predictor(dtype)(asked))
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        yield "loaded", sa.load(Path(folder) / "model").predict(asked)
    kinds = sa.LSHClassifier(random_state=0).fit(rows()[1], labels())
    yield "classes", kinds.predict_proba(asked @ np.ones((3, 4)) / 3)


# ---- every candidate for a table ----


@item(tolerance=1e-2)
def candidates() -> Iterator[tuple[str, Any]]:
    import pandas as pd

    X, y, asked = noisy_rows(260, 6)
    names = list("abcdef")
    table, new = pd.DataFrame(X, columns=names).assign(y=y), pd.DataFrame(asked, columns=names)
    for model in ("low-degree", "sparse", "gp", "latent", "ensemble"):
        yield model, of_result(sa.fit_table(table, "y", model=model, folds=4), new)
    numbers, target, outside = reals(240, 3)
    columns = list("uvw")
    real = pd.DataFrame(numbers, columns=columns).assign(y=target)
    yield "lsh", of_result(sa.fit_table(real, "y", model="lsh", folds=4), pd.DataFrame(outside, columns=columns))
    letters, effect = sequences(130, "ACGT", 3)
    texts = pd.DataFrame({"s": ["".join(row) for row in letters], "y": effect})
    yield "letters", of_result(sa.fit_table(texts, "y", model="letters", folds=4), texts[:19])


@item(tolerance=0.2)  # hundreds of steps of training amplify the last bit of a product: 0.05 between two processors
def trained_candidate() -> Any:
    import pandas as pd

    X, y, asked = noisy_rows(260, 6)
    names = list("abcdef")
    result = sa.fit_table(pd.DataFrame(X, columns=names).assign(y=y), "y", model="network", folds=4)
    return of_result(result, pd.DataFrame(asked, columns=names))


def of_result(result: Any, new: Any) -> dict[str, Any]:
    score = result.scores.r2["y"]
    strongest = sorted(result.targets[0].terms, key=lambda term: -abs(term.effect))[:4]
    return {
        "score": [score.mean, score.deviation], "values": np.ravel(result.predict(new)),
        "terms": [[term.effect, term.effect_low, term.effect_high] for term in strongest],
        "labels": [term.label for term in strongest], "count": len(result.targets[0].terms),
    }  # fmt: skip


# ---- numbers that decide ----


@item(tolerance=0.0)
def constants() -> Iterator[tuple[str, Any]]:
    """Every number that a module of ``learners`` or ``fit`` binds in upper case, as it is after the import.

    What a number of rows at once or a limit of memory does to results is nothing, as it must be; so the numbers
    themselves are kept. A second binding of a name shows here, and a changed default is renewed on purpose.
    """
    for folder in map(import_module, ("sparsact.fit", "sparsact.learners")):
        for found in sorted(walk_packages(folder.__path__, f"{folder.__name__}."), key=lambda found: found.name):
            own = vars(import_module(found.name)).items()
            numbers = {key: value for key, value in own if key.lstrip("_").isupper() and is_number(value)}
            if numbers:
                yield found.name.removeprefix("sparsact."), numbers


def is_number(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(is_number, value))
    return isinstance(value, int | float) and not isinstance(value, bool)
