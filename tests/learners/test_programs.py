"""Programs of polynomials and of models on few bits: compiled C and ONNX give what ``predict`` gives, and no more."""

from functools import cache

import numpy as np
import pytest
from exported_models import onnx_values, values_in_c
from grids import few_of

import sparsact as sa
from sparsact.hypercube import points, signs_to_bits
from sparsact.learners.programs import MOST_BITS, Exportable

RNG = np.random.default_rng(5)
SIGNS = 1.0 - 2 * RNG.integers(0, 2, (160, 7))
REALS = RNG.normal(size=(150, 4))
Y = SIGNS[:, 0] * SIGNS[:, 3] + 0.5 * SIGNS[:, 6] * SIGNS[:, 1] * SIGNS[:, 2] - 2.0 + 0.1 * RNG.normal(size=160)


def bits(signs):
    return (1 - signs) / 2


FITS = {  # a model, and rows as it takes them
    "signs": lambda: (sa.LowDegreeRegressor(3).fit(SIGNS, Y), SIGNS),
    "bits": lambda: (sa.LowDegreeRegressor(2).fit(bits(SIGNS), Y), bits(SIGNS)),
    "kernel": lambda: (sa.LowDegreeRegressor(5, alpha=0.1, solver="kernel").fit(SIGNS, Y), SIGNS),
    "two targets": lambda: (sa.LowDegreeRegressor(2).fit(SIGNS, np.column_stack([Y, 1e6 * Y**2])), SIGNS),
    "lasso": lambda: (sa.LowDegreeRegressor(3, alpha=0.1, solver="lasso").fit(SIGNS, Y), SIGNS),
    "named subsets": lambda: (sa.LowDegreeRegressor(subsets=[(1, 2, 6), (0, 3), (5,)]).fit(SIGNS, Y), SIGNS),
    "a constant": lambda: (sa.LowDegreeRegressor(subsets=[]).fit(SIGNS, Y), SIGNS),
    "chosen": lambda: (sa.LowDegreeRegressorCV().fit(SIGNS, Y), SIGNS),
    "numbers": lambda: (sa.LowDegreeRegressor(3, domain="real").fit(REALS, np.prod(REALS[:, :3], axis=1)), REALS),
    "classes": lambda: (sa.LowDegreeClassifier(3).fit(SIGNS, np.digitize(Y, [-3, -2])), SIGNS),
    "two classes": lambda: (sa.LowDegreeClassifier(2).fit(bits(SIGNS), Y > -2), bits(SIGNS)),
    "sparse": lambda: (sa.SparseFourierRegressor(3, random_state=0).fit(bits(SIGNS), Y), bits(SIGNS)),
    "cuts of a sparse one": lambda: (sa.SparseFourierRegressor(2, random_state=0).fit(REALS, REALS[:, 0] > 0), REALS),
    "ensemble": lambda: (sa.CubeEnsemble(RNG.normal(size=2**7), {"a": 1.0}, [0.1]), bits(SIGNS)),
    "process": lambda: (sa.CubeGPRegressor(random_state=0).fit(SIGNS[:60], Y[:60]), SIGNS),
    "cuts of a process": lambda: (sa.CubeGPRegressor(random_state=0).fit(REALS[:60], REALS[:60, 1] ** 3), REALS),
}


@cache
def fitted(name):
    return FITS[name]()


def values_of(path, rows):
    n_targets = 3 if path.stem == "classes" else 2 if path.stem == "two_targets" else 1
    return values_in_c(path, "f", rows, n_targets) if path.suffix == ".c" else onnx_values(path, rows)


@pytest.mark.parametrize("kind", ["c", "onnx"])
@pytest.mark.parametrize("name", few_of(FITS, ["bits", "two targets", "numbers", "ensemble", "cuts of a process"]))
def test_a_program_gives_what_the_model_predicts(name, kind, tmp_path):
    model, rows = fitted(name)
    path = tmp_path / f"{name.replace(' ', '_')}.{kind}"
    model.export(path, name="f")
    predict = model.decision_function if isinstance(model, sa.LowDegreeClassifier) else model.predict
    expected = predict(rows).reshape(len(rows), -1)
    strange = np.repeat(rows[:1], 6, axis=0)
    strange[range(6), [0, -1] * 3] = np.repeat([np.nan, np.inf, 0.5], 2)
    strange = strange[: 4 if rows is REALS else 6]
    found, size = values_of(path, np.concatenate([rows, strange])), np.abs(expected).max()
    np.testing.assert_allclose(found[: len(rows)], expected, rtol=0, atol=0 if name == "ensemble" else 1e-13 * size)
    assert np.isnan(found[len(rows) :]).all()
    for row in strange:
        with pytest.raises(ValueError, match=r"."):
            model.predict(row[None])


def test_a_program_is_a_table_of_the_points_in_their_order(tmp_path):
    values = np.arange(32.0) ** 2
    model = sa.CubeEnsemble(values, {"a": 1.0}, [0.1])
    model.export(tmp_path / "table.c")
    assert values_in_c(tmp_path / "table.c", "table_predict", signs_to_bits(points(5)) * 1.0, 1)[:, 0].tolist() == [
        *values
    ]


def test_what_is_too_large_is_refused_in_one_line(tmp_path, monkeypatch):
    large = sa.CubeEnsemble(np.zeros(2 ** (MOST_BITS + 1)), {"a": 1.0}, [0.1])
    with pytest.raises(ValueError, match=r"at most 16 columns; this one has 17: distil it, sparsact.distil"):
        large.export(tmp_path / "model.c")
    monkeypatch.setattr("sparsact.learners.programs.MOST_PRODUCTS", 62)
    with pytest.raises(ValueError, match=r"at most 62 products of columns; this one has 63: lower `degree`"):
        fitted("signs")[0].export(tmp_path / "model.c")
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"must end with \.c or \.onnx"):
        fitted("signs")[0].export(tmp_path / "model.py")
    with pytest.raises(ValueError, match="not a name of a C function"):
        fitted("signs")[0].export(tmp_path / "model.c", name="a b")
    assert not list(tmp_path.iterdir())


def test_models_that_export_say_so():
    assert all(isinstance(fitted(name)[0], Exportable) for name in ("bits", "ensemble", "process", "sparse"))
    assert isinstance(sa.LSHRegressor(), Exportable)
    assert not isinstance(sa.DSMRegressor(), Exportable)
