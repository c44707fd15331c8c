"""One small file of every kind of model that the package writes, and what can be done with what is loaded."""

from __future__ import annotations

import warnings
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from hostile.mutations import Content

import sparsact as sa
from sparsact.fourier import Spectrum
from sparsact.learners import CompactPredictor
from sparsact.saving import modelfile

DSM = {"n_units": 12, "n_active": 3, "random_state": 2, "epochs": 2}
LSH = {"n_tables": 2, "random_state": 0}
TABLE = (
    '{"columns": [{"kind": "bit", "name": "a", "values": ["no", "yes"]}, {"kind": "bit string", "name": "b", '
    '"length": 2}, {"kind": "one-hot", "name": "c", "values": ["x", "y"]}], '
    '"targets": [{"kind": "real", "name": "t", "centre": 0.0, "scale": 1.0}], "notes": ["one"]}'
)
SEQUENCES = (
    '{"columns": [{"kind": "letters", "name": "g", "letters": ["AC", "G", "ACT"]}, {"kind": "mutations", "name": "m", '
    '"values": ["2KDW", "4AV"]}, {"kind": "bit", "name": "a", "values": ["no", "yes"]}], '
    '"targets": [{"kind": "real", "name": "t", "centre": 0.0, "scale": 1.0}], "notes": []}'
)


def _fitted() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    bits, reals, y = rng.integers(0, 2, (43, 5)), rng.normal(size=(43, 4)), rng.normal(size=(43, 2))
    labels = np.array(["low", "middle", "high"])[rng.integers(0, 3, 43)]
    W = np.where(rng.random((7, 5)) < 0.5, rng.integers(-3, 4, (7, 5)), 0).astype(float)
    network = [rng.normal(size=7), W, rng.integers(-1, 2, 7).astype(float)]
    low, cv = sa.LowDegreeRegressor, sa.LowDegreeRegressorCV
    with_table = low(2, solver="cells").fit(bits, y[:, 0])
    with_table.table_encoding_ = TABLE
    of_letters = sa.LettersRegressor(random_state=0).fit(bits, y[:, 0])
    of_letters.table_encoding_ = SEQUENCES
    return {
        "letters": of_letters,
        "dense network": sa.SparselyActivatedNetwork(*network),
        "sparse network": sa.SparselyActivatedNetwork(network[0], sp.csr_array(W), network[2]),
        "stack": sa.Stack(network[0][:3], [(W, network[2]), (rng.integers(-2, 3, (3, 7)), W[:3, 0], W[:3])]),
        "cells": with_table,
        "moments": low(2, 0.3, "moments").fit(bits, y),
        "kernel": low(3, solver="kernel").fit(bits[:11], y[:11]),
        "lasso": low(2, 0.05, "lasso").fit(bits, y[:, 0]),
        "subsets": low(subsets=[(1, 2), (0,), (3, 4)]).fit(bits, y[:, 0]),
        "ones": low(1).fit(np.ones((13, 5)), y[:13]),
        "real": low(2, 0.1, domain="real").fit(reals, y),
        "classifier": sa.LowDegreeClassifier(1).fit(bits, labels),
        "cross-validated": cv((1, 2), (0.1, 1.0), 3).fit(bits, y),
        "LSH": sa.LSHRegressor(**LSH).fit(reals, y),
        "LSH hyperplanes": sa.LSHRegressor(family="hyperplane", **LSH).fit(reals, y[:, 0]),
        "LSH compact": sa.LSHRegressor(base="trees", **LSH).fit(reals, y).predictor("float32"),
        "LSH classifier": sa.LSHClassifier(**LSH).fit(reals, labels),
        "DSM": sa.DSMRegressor(**DSM).fit(reals, y),
        "DSM trained": sa.DSMRegressor(solver="rmsprop", bottom="pca", activation="relu", **DSM).fit(reals, y[:, 0]),
        "DSM hashed": sa.DSMRegressor(router="hyperplane_lsh", **DSM).fit(reals, y),
        "DSM nearest": sa.DSMRegressor(router="nearest", **DSM).fit(reals, y),
        "sparsely activated": sa.SparselyActivatedRegressor(n_units=4, n_restarts=1, max_iter=9, random_state=0).fit(
            bits, y[:, 0]
        ),
        "sparse network of classes": sa.SparselyActivatedClassifier(
            n_units=4, n_restarts=1, max_iter=9, random_state=0
        ).fit(bits, labels),
        "Gaussian process": sa.CubeGPRegressor("degree_site_pair + product", random_state=0).fit(bits, y[:, 0]),
        "Gaussian process, cut": sa.CubeGPRegressor(sa.CubeKernel.product(1.0, [0.5] * 4)).fit(reals, y[:, 0]),
        "ensemble": sa.CubeEnsemble(y[:8, 0], {"gp": 0.5, "trees": 0.5}, np.abs(y[:, 1]), np.abs(y[:8, 1])),
        "latent polynomial": sa.LatentRegressor(degree=2, link="monotone").fit(bits, np.maximum(y[:, 0], 0)),
        "shared traits": sa.LatentRegressor(link=("two-state", "three-state")).fit(bits, y[:, [0, 0]]),
        "latent process": sa.LatentRegressor("gp", random_state=0).fit(reals, np.minimum(y[:, 0], 0.5)),
        "sparse spectrum": sa.SparseFourierRegressor(2, random_state=0).fit(bits, y[:, 0]),
    }


@cache
class Contents(dict[str, Content]):
    """Contents by name; short where a failing example is told."""

    def __repr__(self) -> str:
        return f"{len(self)} contents"


def originals(folder: Path) -> Contents:
    """What the file of every kind of model holds."""
    contents = Contents()
    for name, model in _fitted().items():
        path = folder / "original.sparsact"
        options = {"statistic": True} if "statistic" in signature(model.save).parameters else {}
        model.save(path, **options)
        contents[name] = Content(*modelfile.read(path))
    return contents


def use(model: Any) -> None:
    """Ask a model for all that a user would ask; only a ValueError may come of it."""
    if isinstance(model, sa.Stack):
        questions = [lambda: model(_rows(model.n)), lambda: model.n_active(_rows(model.n)), lambda: repr(model)]
        if model.n <= 12:
            questions += [model.certify, lambda: Spectrum.of(model), lambda: sa.bounds.stack_sensitivity(model)]
    elif isinstance(model, sa.SparselyActivatedNetwork):
        questions = [
            lambda: model(_rows(model.n)),
            lambda: model.n_active(_rows(model.n)),
            model.scale,
            lambda: repr(model),
        ]
        if model.n <= 12:
            questions += [model.certify, lambda: Spectrum.of(model), model.dead_units]
    elif isinstance(model, CompactPredictor):
        rows = _rows(model.n_features_in_)
        questions = [lambda: model(rows), lambda: model(rows[0] - 0.25), lambda: model.nbytes]
    else:
        rows = _rows(model.n_features_in_)
        answers = (len(rows), *((2,) if np.ndim(getattr(model, "intercept_", 0.0)) else ()))
        y = model.classes_[:1].repeat(len(rows)) if hasattr(model, "classes_") else np.zeros(answers)
        questions = [
            lambda: model.predict(rows),
            lambda: model.predict(rows - 0.25),
            lambda: repr(model),
            lambda: getattr(model, "coefficients_", None),
            lambda: getattr(model, "subsets_", None),
            lambda: getattr(model, "n_samples_seen_", None),
            lambda: getattr(model, "spectrum_", None) and None,
            lambda: _encoding(model),
            lambda: getattr(model, "partial_fit", model.predict)(
                *((rows, y) if hasattr(model, "partial_fit") else (rows,))
            ),
            lambda: model.predict(rows),
        ]
    for question in questions:
        try:
            question()
        except ValueError:
            pass
        except MemoryError as error:
            assert "max_memory" in str(error)  # noqa: PT017 - the plan says before it starts what it would need


def load_and_use(path: Path) -> bool:
    """Whether a file is a model; if it is, every question is put to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        try:
            model = sa.load(path)
        except modelfile.ModelFileError as error:
            assert str(path) in str(error)  # noqa: PT017 - it may also be a model
            return False
        use(model)
        return True


def _encoding(model: Any) -> None:
    if hasattr(model, "table_encoding_"):
        from sparsact.cli.io import encoding_of

        encoding_of(model, Path("hostile.sparsact"))


def _rows(n: int) -> np.ndarray[Any, Any]:
    return np.tile([[1.0], [0.0], [1.0]], (1, n)) if 0 < n < 10**6 else np.ones((1, 1))
