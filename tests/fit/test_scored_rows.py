"""Rows that are scored and not learned from: of a split, or a table of its own."""

from statistics import NormalDist

import numpy as np
import pyarrow.csv
import pytest
import scipy.stats
from commands import fit_json, run
from fit.row_tables import bits, signal, table
from sklearn.metrics import accuracy_score, r2_score, root_mean_squared_error

import sparsact as sa
from sparsact.datasets.splits import split_rows
from sparsact.datasets.table_files import Parts
from sparsact.fit.scored_table import r2_score as scored

pytestmark = pytest.mark.usefixtures("few_rivals")


@pytest.mark.grid
@pytest.mark.usefixtures("unrendered")
@pytest.mark.parametrize(("has_test", "scored"), [(True, "tst"), (False, "Valid")])
def test_a_split_learns_from_some_rows_and_scores_others(tmp_path, capsys, has_test, scored):
    """Results are as with separate tables; test rows are scored, or else validation rows."""
    rng = np.random.default_rng(13)
    X = bits(200)
    y = signal(X) + rng.normal(size=200)
    part = np.repeat(["train", "Valid", "tst" if has_test else "train"], [120, 50, 30])
    new = part == scored
    result = sa.fit_table(table(X, y=y, part=part), "y", model="low-degree", split="part")
    expected = sa.fit_table(table(X[~new], y=y[~new]), "y", model="low-degree", test=table(X[new], y=y[new]))
    np.testing.assert_array_equal(result.model.coefficients_, expected.model.coefficients_)
    assert result.test.targets[0].r2 == expected.test.targets[0].r2
    assert (result.n_rows, result.test.n_rows) == ((~new).sum(), new.sum())
    learned = ", ".join(f"{one} ({(part == one).sum()})" for one in ("train", "Valid") if one != scored)
    note = f"split by part: rows marked {learned} are fitted, rows marked {scored} ({new.sum()}) are scored."
    assert result.encoding.notes[0] == note
    assert "split='part'" in result.call
    pyarrow.csv.write_csv(table(X, y=y, part=part), tmp_path / "t.csv")
    words = ("fit", tmp_path / "t.csv", "--target", "y", "--model", "low-degree", "--split", "part")
    assert (
        f"on t.csv where part is {scored} ({new.sum()} rows): R² {result.test.targets[0].r2}" in run(capsys, *words)[1]
    )


def test_chosen_rows_come_in_batches_that_are_not_empty():
    data = table(bits(100), part=np.repeat(["train", "test", "train"], [33, 47, 20]), y=np.arange(100.0))
    chosen = split_rows(Parts.open(data), "part")
    for parts, rows in ((chosen.learned, [*range(33), *range(80, 100)]), (chosen.tested, [*range(33, 80)])):
        batches = list(parts.batches(["y"], 10))
        assert all(len(batch) for batch in batches)
        assert [v for batch in batches for v in batch.columns.column("y").to_pylist()] == rows
        assert [batch.overall for batch in batches] == np.cumsum([0, *map(len, batches)])[:-1].tolist()


@pytest.mark.grid
@pytest.mark.usefixtures("unrendered")
def test_a_test_table_is_scored_as_scikit_learn_scores_it(tmp_path, capsys):
    rng = np.random.default_rng(8)
    X, new = bits(200), bits(150, seed=9)
    data, other = table(X, y=signal(X) + rng.normal(size=200)), table(new, y=signal(new) + rng.normal(size=150))
    result = sa.fit_table(data, "y", model="low-degree", test=other)
    (target,) = result.test.targets
    predicted = result.predict(other)
    assert target.r2.value == pytest.approx(r2_score(other["y"], predicted), rel=1e-12)
    assert target.rmse == pytest.approx(root_mean_squared_error(other["y"], predicted), rel=1e-12)
    assert result.call.endswith("model='low-degree', test=data)")
    pyarrow.csv.write_csv(data, tmp_path / "t.csv")
    pyarrow.csv.write_csv(other, tmp_path / "new.csv")
    words = (tmp_path / "t.csv", "--target", "y", "--model", "low-degree", "--test", tmp_path / "new.csv")
    found = fit_json(capsys, *words)["test"]
    assert found["table"] == "new.csv"
    assert found["targets"][0]["r2"] == pytest.approx(target.r2.value, rel=1e-9)
    assert f"on new.csv (150 rows): R² {target.r2}, root mean squared error" in run(capsys, "fit", *words)[1]
    result.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert f"The 150 rows of the table, unused in fitting: R² {target.r2}." in page
    assert page.count("Predicted, actual and residual</h3>") == 2


@pytest.mark.grid
def test_the_interval_of_r2_matches_the_bootstrap_and_covers():
    rng = np.random.default_rng(10)
    actual = rng.normal(size=400)
    predicted = 0.8 * actual + 0.5 * rng.normal(size=400)
    found = scored(actual, predicted)
    many = scipy.stats.bootstrap(
        (actual, predicted), lambda a, p: r2_score(a, p), paired=True, vectorized=False, n_resamples=2_000,
        method="basic", rng=np.random.default_rng(0),
    ).confidence_interval  # fmt: skip
    np.testing.assert_allclose([found.low, found.high], [many.low, many.high], atol=0.02)
    truth, inside = 1 - (0.2**2 + 0.5**2), 0
    for _ in range(600):
        actual = rng.normal(size=200)
        found = scored(actual, 0.8 * actual + 0.5 * rng.normal(size=200))
        inside += found.low <= truth <= found.high
    assert 0.92 < inside / 600 < 0.98


def test_accuracy_has_wilsons_interval():
    X, new = bits(300), bits(90, seed=4)
    kinds = [
        np.where(signal(one) + np.random.default_rng(1).normal(size=len(one)) > 0, "on", "off") for one in (X, new)
    ]
    result = sa.fit_table(table(X, kind=kinds[0]), "kind", model="low-degree", test=table(new, kind=kinds[1]))
    right = accuracy_score(kinds[1], result.predict(table(new)))
    found, z = result.test.accuracy, NormalDist().inv_cdf(0.975)
    assert found.value == right
    for end in (found.low, found.high):  # shares at which the share that was seen is on the border of a normal test
        assert (right - end) ** 2 == pytest.approx(z**2 * end * (1 - end) / 90)
    assert f"accuracy {result.test.accuracy}" in str(result)


def test_a_test_table_may_lack_values():
    X = bits(100)
    other = table(X[:60], y=[None, *signal(X[1:60]).tolist()])
    result = sa.fit_table(table(X, y=signal(X)), "y", degree=2, test=other, drop_missing=True)
    assert (result.test.n_rows, result.n_rows) == (59, 100)
