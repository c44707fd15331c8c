"""A model that was saved and loaded is the same model; a file that was made up does no harm."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from math import comb

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from safetensors.numpy import save as to_bytes
from scipy.sparse import csr_array
from sklearn.model_selection import KFold, PredefinedSplit

import sparsact
from sparsact import LowDegreeClassifier, LowDegreeRegressor, LowDegreeRegressorCV
from sparsact.learners.contrasts import contrast_deviations
from sparsact.learners.low_degree.solvers.cells import CellSolver
from sparsact.learners.low_degree.solvers.solver import solvers
from sparsact.saving import modelfile
from sparsact.saving.modelfile import ModelFileError

rng = np.random.default_rng(0)
BITS = rng.integers(0, 2, (83, 6))
Y = rng.normal(size=(83, 2))
LABELS = rng.integers(0, 3, 83)

MODELS = {
    "cells": LowDegreeRegressor(2, solver="cells"),
    "moments": LowDegreeRegressor(2, 0.3, "moments", fit_intercept=False),
    "kernel": LowDegreeRegressor(3, solver="kernel"),
    "kernel with a penalty": LowDegreeRegressor(4, 0.5, "kernel"),
    "least norm": LowDegreeRegressor(5, solver="moments"),
    "correlation": LowDegreeRegressor(2, solver="correlation"),
    "lasso": LowDegreeRegressor(2, 0.05, "lasso"),
    "subsets": LowDegreeRegressor(subsets=[(1, 2), (0,), (3, 4, 5)]),
    "subsets of arrays": LowDegreeRegressor(subsets=[np.array([1, 2]), (np.int64(0),)]),
    "real": LowDegreeRegressor(2, 0.1, domain="real"),
    "degree 0": LowDegreeRegressor(0),
    "min_degree": LowDegreeRegressor(3, min_degree=2),
    "cv": LowDegreeRegressorCV((1, 2), (0.1, 1.0), 3),
    "cv of arrays": LowDegreeRegressorCV(np.array([1, 2]), np.array([0.1]), random_state=np.int64(5)),
    "cv by a splitter": LowDegreeRegressorCV((1, 2), (0.1,), KFold(4)),
    "cv by a list": LowDegreeRegressorCV((1, 2), (0.1,), list(KFold(3).split(BITS))),
    "cv predefined": LowDegreeRegressorCV((1, 2), (0.1,), PredefinedSplit(np.arange(83) % 3)),
    "cv real": LowDegreeRegressorCV((1, 2), (0.1,), 3, domain="real"),
}
STREAMED = [name for name in MODELS if not name.startswith("cv ") or name in ("cv of arrays", "cv real")]


def same(mine, theirs, X):
    assert type(mine) is type(theirs)
    for name in ("subsets_", "solver_", "solver_reason_", "domain_", "encoding_", "n_samples_seen_", "n_features_in_"):
        assert getattr(mine, name) == getattr(theirs, name), name
    if theirs.domain_ == "cube":
        weights = csr_array([[-1.0, 1.0, 0.0], [1.0, -1.0, 2.0]])
        assert_array_equal(*(contrast_deviations(one, X[:3], weights) for one in (mine, theirs)))
    for name in ("coefficients_", "intercept_", "r2_", "residual_variance_"):
        if hasattr(theirs, name):
            assert_array_equal(getattr(mine, name), getattr(theirs, name), name)
    assert_array_equal(mine.predict(X), theirs.predict(X))
    try:
        errors = theirs.standard_errors([()])
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 - each has its reasons
            mine.standard_errors([()])
    else:
        assert_array_equal(mine.standard_errors([()]), errors)
        assert_array_equal(mine.confidence_intervals(), theirs.confidence_intervals())


@pytest.mark.parametrize("statistic", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_round_trip(tmp_path, name, statistic):
    X = BITS + 0.5 if "real" in name else BITS
    for y in (Y, Y[:, :1]) if statistic else (Y[:, 0],):
        model = copy.deepcopy(MODELS[name]).fit(X, y, rng.random(83))
        model.save(tmp_path / "m", statistic=statistic)
        loaded = sparsact.load(tmp_path / "m")
        same(loaded, model, X)
        if "cv" in name:
            assert (loaded.degree_, loaded.alpha_, loaded.best_score_) == (
                model.degree_,
                model.alpha_,
                model.best_score_,
            )
            assert_array_equal(loaded.cv_results_["fold_mse"], model.cv_results_["fold_mse"])
        loaded.save(tmp_path / "again", statistic=statistic)
        same(sparsact.load(tmp_path / "again"), model, X)


@pytest.mark.parametrize("name", STREAMED)
def test_a_loaded_statistic_goes_on(tmp_path, name):
    X = BITS + 0.5 if "real" in name else BITS
    weights = rng.random(83)
    model = copy.deepcopy(MODELS[name]).partial_fit(X[:50], Y[:50], weights[:50])
    model.save(tmp_path / "m", statistic=True)
    loaded = sparsact.load(tmp_path / "m")
    for one in (model, loaded):
        one.partial_fit(X[50:], Y[50:], weights[50:])
    same(loaded, model, X)
    assert loaded.n_samples_seen_ == 83
    if not name.startswith("cv"):
        loaded = sparsact.load(tmp_path / "m")
        rest = copy.deepcopy(MODELS[name]).fit(X[50:], Y[50:], weights[50:])
        np.testing.assert_allclose(
            loaded.merge(rest).coefficients_, model.coefficients_, rtol=1e-9 if "real" in name else 0
        )


def test_many_rows_as_moments_go_on(tmp_path):
    X, y = rng.integers(0, 2, (70_000, 27)), rng.normal(size=70_000)
    model = LowDegreeRegressor(1).fit(X[:69_000], y[:69_000])
    model.save(tmp_path / "m", statistic=True)
    loaded = sparsact.load(tmp_path / "m")
    assert type(loaded.accumulator_.statistics[0]).__name__ == "Moments"
    assert_array_equal(
        loaded.partial_fit(X[69_000:], y[69_000:]).coefficients_, LowDegreeRegressor(1).fit(X, y).coefficients_
    )


def test_a_model_without_its_statistic_does_not_begin_anew(tmp_path):
    LowDegreeRegressor(2).fit(BITS, Y).save(tmp_path / "m")
    for change in (
        lambda model: model.partial_fit(BITS[:1], Y[:1]),
        lambda model: model.remove(BITS[:1], Y[:1]),
        lambda model: model.merge(LowDegreeRegressor(2).fit(BITS, Y)),
        lambda model: LowDegreeRegressor(2).fit(BITS, Y).merge(model),
        lambda model: model.save(tmp_path / "again", statistic=True),
    ):
        with pytest.raises(ValueError, match="statistic"):
            change(sparsact.load(tmp_path / "m"))
    fresh = sparsact.load(tmp_path / "m").fit(BITS[:30], Y[:30])
    assert_array_equal(fresh.coefficients_, LowDegreeRegressor(2).fit(BITS[:30], Y[:30]).coefficients_)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes", "Größe"])[LABELS],
        np.array(["no", "yes", "Größe"], dtype=object)[LABELS],
        LABELS.astype(np.int8),
        LABELS.astype(np.uint64),
        LABELS - 5,
        LABELS.astype(np.float32),
        LABELS > 0,
        LABELS[:, None][:, 0].tolist(),
    ],
    ids=lambda labels: str(getattr(labels, "dtype", "list")),
)
def test_labels(tmp_path, labels):
    model = LowDegreeClassifier(2).fit(BITS, labels)
    model.save(tmp_path / "m", statistic=True)
    loaded = sparsact.load(tmp_path / "m")
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.classes_.dtype.kind == model.classes_.dtype.kind or model.classes_.dtype.kind == "O"
    assert_array_equal(loaded.predict(BITS), model.predict(BITS))
    assert_array_equal(loaded.predict_proba(BITS), model.predict_proba(BITS))
    assert_array_equal(loaded.partial_fit(BITS, labels).coefficients_, model.partial_fit(BITS, labels).coefficients_)


def test_feature_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(BITS, columns=list("abcdeé"))
    LowDegreeRegressor(1).fit(frame, Y).save(tmp_path / "m")
    loaded = sparsact.load(tmp_path / "m")
    assert loaded.feature_names_in_.tolist() == list("abcdeé")
    loaded.predict(frame)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[list("bacdeé")])


@pytest.mark.parametrize("model", [LowDegreeRegressor(1), LowDegreeClassifier(1)])
def test_rows_refused_for_want_of_a_statistic_change_nothing(tmp_path, model):
    y = LABELS if isinstance(model, LowDegreeClassifier) else Y
    model.fit(BITS, y).save(tmp_path / "m", statistic=False)
    loaded = sparsact.load(tmp_path / "m")
    for X, wrong in ((BITS, y[:1].repeat(83, axis=0)), (BITS[:, :3], y)):
        with pytest.raises(ValueError, match="statistic"):
            loaded.partial_fit(X, wrong)
        assert_array_equal(loaded.predict(BITS), model.predict(BITS))


def test_conjugate_gradients(tmp_path, monkeypatch):
    monkeypatch.setitem(solvers(), "cells", CellSolver(max_cholesky=3))
    model = LowDegreeRegressor(3, solver="cells").fit(BITS, Y)
    model.save(tmp_path / "m")
    loaded = sparsact.load(tmp_path / "m")
    assert_array_equal(loaded.coefficients_, model.coefficients_)
    assert_array_equal(loaded.predict(BITS), model.predict(BITS))
    with pytest.raises(ValueError, match="fit"):
        loaded.standard_errors()


def test_more_monomials_than_rows_keep_the_rows(tmp_path):
    X = rng.integers(0, 2, (23, 70))
    model = LowDegreeRegressor(3).fit(X, Y[:23])
    assert len(model.subsets_) == sum(comb(70, d) for d in (1, 2, 3))
    model.save(tmp_path / "m")
    assert (tmp_path / "m").stat().st_size < 100_000
    assert_array_equal(sparsact.load(tmp_path / "m").predict(X), model.predict(X))


FORGED = """
import json, os, resource, sys
import numpy as np, sparsact
sparsact.LowDegreeRegressor
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

def use(path):
    try:
        model = sparsact.load(path)
        X = np.zeros((70, model.n_features_in_), dtype=np.int8)
        model.predict(X), model.coefficients_
        model.partial_fit(X, np.zeros((70, 2)))
        model.predict(X), model.coefficients_
    except sparsact.saving.modelfile.ModelFileError as error:
        return 0 if path in str(error) else 7

for path in sys.argv[1:]:
    child = os.fork()
    if not child:
        try:
            status = use(path) or 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
            status = 1
        os._exit(status)
    print(os.waitpid(child, 0)[1])
"""


def forge(path, model, change):
    """The model's file with something changed, and a digest that fits."""
    model.save(path, statistic=True)
    kind, state, arrays = modelfile.read(path)
    change(state, arrays)
    header = {"schema": modelfile.SCHEMA, "kind": kind, "version": "0", "state": state}
    header["digest"] = modelfile._digest(header, arrays)
    path.write_bytes(to_bytes(arrays, metadata={"sparsact": json.dumps(header)}))


def put(container, name, value):
    return lambda state, arrays: {"state": state, "arrays": arrays, "solution": state["solution"]}[container].update(
        {name: value}
    )


CELLS, LISTED, KERNEL = MODELS["cells"], MODELS["subsets"], MODELS["kernel"]
FORGERIES = {
    "a list of attributes": (CELLS, put("state", "learned", [1, 2])),
    "no parameters": (CELLS, put("state", "params", None)),
    "a strange parameter": (CELLS, put("state", "params", {"os": "system"})),
    "a state that is a list": (CELLS, put("state", "solution", [])),
    "masks beyond the columns": (LISTED, put("arrays", "masks", np.full((3, 1), 2**63, dtype=np.uint64))),
    "masks of floats": (LISTED, put("arrays", "masks", np.ones((3, 1)))),
    "masks of more words": (LISTED, put("arrays", "masks", np.ones((3, 5), dtype=np.uint64))),
    "coefficients of float32": (CELLS, put("arrays", "coef", np.ones((21, 2), dtype=np.float32))),
    "coefficients without targets": (CELLS, put("arrays", "coef", np.ones(21))),
    "intercepts of other targets": (CELLS, put("arrays", "intercept", np.ones(7))),
    "an absurd span": (KERNEL, put("solution", "span", [1, 10**9])),
    "an absurd n": (KERNEL, put("solution", "n", 10_000)),
    "an absurd number of columns": (CELLS, put("solution", "n", 10**12)),
    "more rows than there are": (KERNEL, put("solution", "dual_rows", 10**9)),
    "kernel of other length": (KERNEL, put("arrays", "dual.kernel", np.ones(2))),
    "limbs of another type": (CELLS, put("arrays", "statistic.0.weights", np.ones((1, 64), dtype=np.int32))),
    "limbs at the limit": (CELLS, put("arrays", "statistic.0.weights", np.full((1, 64), 2**63 - 1))),
    "codes of other rows": (KERNEL, put("arrays", "statistic.0.codes", np.ones((5, 1), dtype=np.uint64))),
    "codes beyond the columns": (KERNEL, put("arrays", "statistic.0.codes", np.full((47, 1), 2**60, dtype=np.uint64))),
}


@pytest.fixture(scope="module")
def harm(tmp_path_factory):
    """What each forged file does to a process of its own with 4 GiB: its exit status, and what it said."""
    folder = tmp_path_factory.mktemp("forged")
    paths = {name: folder / f"{place}.sparsact" for place, name in enumerate(FORGERIES)}
    for name, (model, change) in FORGERIES.items():
        forge(paths[name], copy.deepcopy(model).fit(BITS, Y), change)
    run = [sys.executable, "-u", "-c", FORGED, *map(str, paths.values())]
    done = subprocess.run(run, capture_output=True, text=True, timeout=100, check=True)
    return dict(zip(FORGERIES, done.stdout.split(), strict=True)), done.stderr


@pytest.mark.grid
@pytest.mark.parametrize("name", FORGERIES)
def test_a_file_that_was_made_up(harm, name):
    """Its digest is right and its content absurd: it is refused by name, or harmless."""
    status, said = harm
    assert status[name] == "0", said[-3000:]


def test_every_flipped_bit_of_a_model_is_refused(tmp_path):
    path = tmp_path / "m"
    LowDegreeRegressor(1).fit(BITS, Y).save(path)
    content = path.read_bytes()
    for place in range(7, len(content), 29):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        try:
            loaded = sparsact.load(path)
        except ModelFileError as error:
            assert str(path) in str(error)  # noqa: PT017 - a flip may also hit what means nothing
        else:
            same(loaded, LowDegreeRegressor(1).fit(BITS, Y), BITS)


@pytest.mark.parametrize("model", [LowDegreeRegressor(1), LowDegreeRegressorCV((1,), (0.1,), 3)])
def test_rows_of_ones_are_kept(model, tmp_path):
    """They may be bits or signs, which only later rows tell."""
    model.fit(np.ones((13, 6)), Y[:13], np.arange(13.0)).save(tmp_path / "m", statistic=True)
    loaded = sparsact.load(tmp_path / "m")
    assert loaded.n_samples_seen_ == 12
    same(loaded.partial_fit(BITS, Y), model.partial_fit(BITS, Y), BITS)
