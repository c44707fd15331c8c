"""Predictors of coefficients alone: equal to the model's predictions, from files, in C, in ONNX, and within limits."""

import pickle
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from exported_models import COMPILER, shipped_values
from hashed_rows import families, model, rows

import sparsact
from sparsact.kernels import dispatch, hashing
from sparsact.kernels.bucket_statistics import features
from sparsact.learners import CompactPredictor
from sparsact.learners.lsh.inputs import InputRules
from sparsact.learners.lsh.prediction_limits import Ends
from sparsact.saving.modelfile import ModelFileError, read, write

X, Y = rows(m=600)
QUERIES = rows(m=300, seed=3)[0]  # some fall into empty buckets
TOLERANCE = {"float32": 1e-6 * Y.std(), "float64": 1e-12 * Y.std()}
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


@cache
def fitted(**options):
    """A model that is fitted once: no test changes it."""
    return model(**options).fit(X, Y)


def plain(n_columns):
    return InputRules(np.zeros(n_columns), np.empty(0, np.int64))


@dtypes
@families
def test_a_compact_predictor_predicts_as_its_model(options, dtype):
    learner = fitted(**options)
    predict = learner.predictor(dtype)
    assert isinstance(predict, CompactPredictor)
    assert predict.dtype == dtype
    known = (learner.apply(QUERIES) >= 0).any(axis=1)
    assert known.any()
    np.testing.assert_allclose(predict(QUERIES)[known], learner.predict(QUERIES)[known], rtol=0, atol=TOLERANCE[dtype])
    assert predict(QUERIES[0]) == predict(QUERIES)[0]


@dtypes
@families
def test_native_and_reference_kernels_give_the_same_bits(options, dtype):
    learner = fitted(**options)
    found = []
    for kernels in ("native", "reference"):
        with dispatch.using(kernels):
            found.append(learner.predictor(dtype)(QUERIES))
    np.testing.assert_array_equal(*found)


def test_it_takes_little_more_than_its_coefficients_and_stays_as_it_is():
    learner = model(n_tables=16, bucket_width=0.3).fit(*rows(m=4000))
    predict = learner.predictor("float32")
    before, coefficients = predict(QUERIES), sum(table.storage.coefficients.nbytes for table in predict.model.tables)
    assert coefficients < predict.nbytes < 1.7 * coefficients
    learner.remove(*(part[:500] for part in rows(m=4000)))
    np.testing.assert_array_equal(predict(QUERIES), before)


@pytest.mark.parametrize("dtype", [None, "float32"])
def test_the_first_query_has_nothing_to_make(dtype, monkeypatch):
    predict, expected = fitted().predictor(dtype), fitted().predict(QUERIES[:1])
    for kernel in ("BucketPredictor", "CompactPredictor", "RowPredictor"):
        monkeypatch.delattr(dispatch.chosen, kernel, raising=False)
    assert predict(QUERIES[0]) == pytest.approx(expected[0], rel=1e-5)


@pytest.mark.grid
def test_weights_that_are_no_counts_keep_their_digits():
    learner = model().fit(X, Y, np.linspace(0.1, 3.3, len(X)))
    predict = learner.predictor("float32")
    assert predict.model.tables[0].storage.weights.dtype == np.float32
    np.testing.assert_allclose(predict(X), learner.predict(X), rtol=0, atol=TOLERANCE["float32"])


@pytest.mark.parametrize("targets", [1, 2])
def test_a_file_is_mapped_into_memory_and_shared_by_threads(targets, tmp_path):
    learner = model().fit(X, np.column_stack([Y, -Y])[:, :targets] if targets > 1 else Y)
    predict = learner.predictor("float32")
    predict.save(tmp_path / "predictor")
    again = sparsact.load(tmp_path / "predictor")
    assert isinstance(again.model.tables[0].storage.coefficients, np.memmap)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(again, [QUERIES] * 16):
            np.testing.assert_array_equal(found, predict(QUERIES))


def change(name, make):
    return lambda arrays: arrays | {name: make(arrays[name])}


@pytest.mark.parametrize(
    "changed",
    [
        change("table0.starts", lambda starts: starts[::-1].copy()),
        change("table0.starts", lambda starts: starts + np.uint32(1)),
        change("table0.starts", lambda starts: starts[:-1]),
        change("table0.tags", lambda tags: tags[:-1]),
        change("table0.coefficients", lambda own: own[:, :-1]),
        change("table0.weights", lambda own: own.astype(np.float64)),
        change("table0.offsets", lambda own: own[:-1]),
        change("trend", lambda own: own[:-1]),
    ],
)
def test_a_file_that_leads_nowhere_is_refused(changed, tmp_path):
    fitted().predictor("float32").save(tmp_path / "predictor")
    kind, state, arrays = read(tmp_path / "predictor")
    write(tmp_path / "bad", kind, state, changed(arrays))
    with pytest.raises(ModelFileError, match="lacks something"):
        sparsact.load(tmp_path / "bad")


@dtypes
@pytest.mark.parametrize(("kind", "rounding"), [("c", 1e-13), ("onnx", 1e-11)])
@families
def test_exported_programs_are_equal_to_the_predictor(options, kind, rounding, dtype, tmp_path):
    predict = fitted(**options).predictor(dtype)
    values = shipped_values(kind, predict, QUERIES, tmp_path)
    np.testing.assert_allclose(values[:, 0], predict(QUERIES), rtol=rounding, atol=rounding)


@pytest.mark.grid
@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_exported_c_of_several_targets_is_clean_under_sanitizers(tmp_path):
    learner = model().fit(X, np.column_stack([Y, 1e6 + Y]))
    learner.export(tmp_path / "two.c", name="both")
    driver = tmp_path / "main.c"
    driver.write_text('#include "two.c"\n#include <stdio.h>\nint main(void) { double x[5], y[2];\n'
                      "while (scanf(\"%lf%lf%lf%lf%lf\", x, x + 1, x + 2, x + 3, x + 4) == 5)\n"
                      '{ both(x, y); printf("%.17g %.17g\\n", y[0], y[1]); } return 0; }\n')  # fmt: skip
    flags = ["-std=c99", "-g", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"]
    built = subprocess.run([COMPILER, *flags, str(driver), "-o", str(tmp_path / "main")], capture_output=True)
    if built.returncode:
        pytest.skip("the compiler has no sanitizers")
    far = np.concatenate([QUERIES, 1e300 * QUERIES[:2]])
    text = "\n".join(" ".join(map(repr, map(float, row))) for row in far)
    ran = subprocess.run([tmp_path / "main"], input=text, capture_output=True, text=True, check=True)
    values = np.array([line.split() for line in ran.stdout.splitlines()], dtype=float)
    np.testing.assert_allclose(values[:-2], learner.predictor("float32")(QUERIES), rtol=1e-13)
    assert len(values) == len(far)


def test_bad_exports_and_queries_have_one_clear_line(tmp_path):
    learner = fitted()
    with pytest.raises(ValueError, match=r"must end with \.c or \.onnx"):
        learner.export(tmp_path / "model.py")
    with pytest.raises(ValueError, match="not a name of a C function"):
        learner.export(tmp_path / "my-model.c")
    with pytest.raises(ValueError, match="`dtype`"):
        learner.predictor("float16")
    with pytest.raises(ValueError, match="a query needs 5 numbers"):
        learner.predictor("float32")([1.0, 2.0])
    with pytest.raises(ValueError, match="must be finite"):
        learner.predictor("float32")([1.0, 2.0, 3.0, 4.0, np.inf])


def test_errors_of_the_first_tables_equal_errors_of_models_without_the_row():
    """For each prefix of the tables, against a table from which the row was really removed."""
    x, y = X[:60], Y[:60]
    learner = model(n_tables=4, bucket_width=2.0).fit(x, y)
    left = np.array([y[row] - without_row(learner, x, y, row) for row in range(len(x))])  # (rows, prefixes)
    np.testing.assert_allclose(learner.table_errors_, np.sqrt(np.mean(left**2, axis=0)) / y.std(), rtol=1e-9)


def without_row(learner, x, y, row):
    """Values at a row, by the first 1, 2, ... tables of a model that never saw it."""
    model = learner.blank().partial_fit(np.delete(x, row, 0), np.delete(y, row))
    return [first_tables_by_hand(model, n_tables, x[[row]])[0] for n_tables in range(1, 5)]


@pytest.mark.grid
def test_the_frontier_measures_held_out_rows_and_limits_choose_on_it(tmp_path):
    x, y = rows(m=3000)
    learner = model(n_tables=8, bucket_width=0.5, degree="auto", directions="auto").fit(x[:2500], y[:2500])
    frontier = learner.frontier(x[2500:], y[2500:])
    assert {(p.n_tables, p.dtype) for p in frontier.points} == {
        (n, dtype) for n in (1, 2, 4, 8) for dtype in ("float32", "float64")
    }
    whole = next(p for p in frontier.points if p.n_tables == 8 and p.dtype == "float64")
    expected = np.sqrt(np.mean((learner.predictor("float64")(x[2500:]) - y[2500:]) ** 2)) / y[2500:].std()
    assert whole.error == pytest.approx(expected, rel=1e-9)
    limit = (frontier.points[0].nbytes + whole.nbytes) // 2
    small = learner.predictor(max_bytes=limit)
    assert small.nbytes <= limit
    np.testing.assert_allclose(
        small(x), first_tables_by_hand(learner, len(small.model.tables[0].hashes.seeds), x), atol=1e-5
    )
    assert all(p.query_microseconds > p.microseconds > 0 for p in frontier.points if p.n_tables < 8)
    slowest = sorted(p.query_microseconds for p in frontier.points)[3]
    within = [p for p in frontier.points if p.query_microseconds <= slowest]
    assert frontier.best(max_microseconds=slowest).error == min(p.error for p in within)
    learner.export(tmp_path / "small.c", max_bytes=limit)
    assert (tmp_path / "small.c").exists()
    for limits in ({"max_bytes": 100}, {"max_microseconds": 1e-9}):
        with pytest.raises(ValueError, match="no size of this model is within"):
            learner.predictor(**limits)
    with pytest.raises(ValueError, match="needs X and y, or neither"):
        learner.frontier(x)


def test_stages_may_be_left_away():
    x, y = rows(m=3000)
    learner = model(n_tables=4, n_stages=2, columns="all").fit(x[:2500], y[:2500])
    found = {(p.n_stages, p.n_tables): p.error for p in learner.frontier(x[2500:], y[2500:], dtype="float64").points}
    assert found.keys() == {(1, 4), (2, 1), (2, 2), (2, 4)}
    layout, stage = learner.table_.layout, learner._fixed.stages[0]
    first = layout.level + (x[2500:] - layout.hashes.centre) @ layout.trend + stage.values(x[2500:])
    errors = np.clip(first[:, 0], y[:2500].min(), y[:2500].max()) - y[2500:]
    assert found[1, 4] == pytest.approx(np.sqrt(np.mean(errors**2)) / y[2500:].std(), rel=1e-9)
    without = learner.frontier(dtype="float64").points
    assert {(p.n_stages, p.n_tables) for p in without} == found.keys()
    for point in without:  # rows left out of fit tell much the same as new ones
        assert point.error == pytest.approx(found[point.n_stages, point.n_tables], rel=0.5)
    both = learner.predict(x[2500:]) - y[2500:]
    assert found[2, 4] == pytest.approx(np.sqrt(np.mean(both**2)) / y[2500:].std(), rel=1e-9)


def first_tables_by_hand(learner, n_tables, x):
    """The weighted average over the first tables, bucket by bucket."""
    compiled, places = learner._snapshot().model, learner.apply(x)[:, :n_tables]
    table = compiled.tables[0]
    phi = features(hashing.places(x, table.hashes).V[:, :n_tables], table.degree)
    weights = np.where(places >= 0, table.storage.weights[places], 0.0)
    values = np.einsum("mtd,mtd->mt", phi, table.storage.coefficients[places][..., 0])
    return (
        compiled.level[0]
        + ((x - compiled.centre) @ compiled.trend)[:, 0]
        + (weights * values).sum(1) / np.maximum(weights.sum(1), 1e-9)
    )


def test_the_errors_of_fit_are_saved_and_frontiers_are_frames(tmp_path):
    learner = fitted()
    learner.save(tmp_path / "model")
    again = sparsact.load(tmp_path / "model")
    np.testing.assert_array_equal(again.table_errors_, learner.table_errors_)
    frontier = again.frontier()
    whole = [p.error for p in frontier.points if (p.n_stages, p.n_tables) == (learner.n_stages_, 3)]
    assert whole == [learner.table_errors_[-1]] * 2
    pytest.importorskip("pandas")
    assert list(frontier.to_frame()["nbytes"]) == [point.nbytes for point in frontier.points]


@cache
def whole_model():
    """Two stages, columns, clipping and a backup for misses, put together by hand, and what it gives at a row."""
    kept = np.array([4, 0, 2])
    stage, last, coarse = (
        model(n_tables=n_tables, bucket_width=width, random_state=seed).fit(X[:, kept], Y)._predictor.model
        for seed, (n_tables, width) in enumerate([(3, 2.0), (2, 0.4), (2, 6.0)])
    )
    low, high = np.quantile(Y, [0.1, 0.9])[:, None]
    whole = replace(stage, tables=(stage.tables[0], last.tables[0]), columns=kept, backup=coarse.tables[0])
    own = [replace(stage, tables=(part.tables[0],)) for part in (stage, last, coarse)]
    linear = stage.level + (QUERIES[:, kept] - stage.centre) @ stage.trend
    first, second, backup = (part.line_and_tables(np.ascontiguousarray(QUERIES[:, kept])) for part in own)
    missed = (second[1] == 0)[:, None]
    assert 0 < missed.sum() < len(QUERIES)
    expected = first[0] + np.where(missed, backup[0], second[0]) - linear
    return whole, Ends(low, high), np.clip(expected, low, high)


@dtypes
@pytest.mark.parametrize("kind", ["memory", "file", "c", "onnx"])
def test_stages_columns_clipping_and_backup_are_shipped(kind, dtype, tmp_path):
    compiled, ends, expected = whole_model()
    predict = CompactPredictor(compiled.compact(dtype), ends, plain(X.shape[1]), single=False)
    values = shipped_values(kind, predict, QUERIES, tmp_path)
    np.testing.assert_allclose(values, expected, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("options", [{"degree": 2}, {"degree": 0}, {"family": "euclidean", "n_hashes": 3}])
def test_a_row_alone_has_the_bits_of_a_batch_and_a_pickle_predicts(options):
    learner = fitted(**options)
    for predict in (learner.predictor(), *(learner.predictor(dtype=dtype) for dtype in TOLERANCE)):
        whole = predict(QUERIES)
        assert [predict(x) for x in QUERIES] == whole.tolist()
        again = pickle.loads(pickle.dumps(predict))
        assert [again(x[None])[0] for x in QUERIES[:9]] == whole[:9].tolist()
        with pytest.raises(ValueError, match="finite"):
            predict(np.full(QUERIES.shape[1], np.inf))
