"""Groups, weights, deviations, missing values and logarithms of `fit_table`, and what it refuses of these."""

from copy import copy

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
import scipy.stats
from fit.row_tables import NAMES, bits, signal, table
from sklearn.metrics import mean_absolute_percentage_error, r2_score
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import PolynomialFeatures

import sparsact as sa
from sparsact.datasets.table_files import Parts
from sparsact.fit.candidates import candidates, gp
from sparsact.fit.options import FitOptions
from sparsact.fit.row_columns import RowColumns
from sparsact.learners import CubeGPRegressor, LowDegreeRegressor

pytestmark = pytest.mark.usefixtures("few_rivals")


class Folds:
    """The split of a fit, for scikit-learn."""

    def __init__(self, folds):
        self.folds = folds

    def split(self, X, y=None, groups=None):
        for fold in np.unique(self.folds):
            yield np.flatnonzero(self.folds != fold), np.flatnonzero(self.folds == fold)

    def get_n_splits(self, X=None, y=None, groups=None):
        return len(np.unique(self.folds))


def folds_of(data, **options):
    found = RowColumns.of(Parts.open(data), FitOptions(("y",), **options))
    return np.array([found.fold_of[str(name)] for name in data["plate"].to_pylist()]), found


# ---- groups ----


def left_out(X, y, folds, weights=None):
    """Rows of each fold, and what a process of the others predicts of them; its search begins at that of all rows."""
    X, weights = X.astype(bool), np.ones(len(y)) if weights is None else weights
    options = {"n_hyperparameter_rows": gp.HYPERPARAMETER_ROWS, "domain": "cube", "random_state": 0}
    process = CubeGPRegressor("degree_site", warm_start=True, **options).fit(X, y, weights)
    for fold in range(folds.max() + 1):
        train, test = folds != fold, folds == fold
        yield test, copy(process).fit(X[train], y[train], weights[train]).predict(X[test])


@pytest.mark.grid
def test_groups_are_held_out_whole_by_every_model(monkeypatch):
    """Scores of the linear model and of the process are scikit-learn's on the same split of the groups."""
    monkeypatch.setitem(candidates(), "gp", gp.ProcessCandidate(kernels=("degree_site",)))
    rng = np.random.default_rng(0)
    X, plate = bits(), np.array([f"p{i}" for i in rng.integers(0, 13, 300)])
    y = signal(X) + rng.normal(0, 1, 13)[np.unique(plate, return_inverse=True)[1]] + 0.1 * rng.normal(size=300)
    data = table(X, plate=plate, y=y)
    folds, _ = folds_of(data, groups="plate", folds=4)
    for name in set(plate):
        assert len(set(folds[plate == name])) == 1
    sizes = np.bincount(folds)
    assert len(sizes) == 4
    assert np.ptp(sizes) <= np.bincount(np.unique(plate, return_inverse=True)[1]).max()
    result = sa.fit_table(data, "y", groups="plate", folds=4)
    assert "plate" not in result.encoding.feature_names
    expected = cross_val_score(LowDegreeRegressor(1), X, y, cv=Folds(folds))
    linear = next(c for c in result.choices.candidates if (c.degree, c.alpha) == (1, 0.0))
    np.testing.assert_allclose(linear.r2.folds, expected, rtol=1e-9)
    process = next(model for model in result.choices.models if "Gaussian" in model.name)
    expected = [r2_score(y[test], predicted) for test, predicted in left_out(X, y, folds)]
    np.testing.assert_allclose(process.r2.folds, expected, rtol=1e-6)


@pytest.mark.grid
def test_groups_show_what_rows_alone_hide():
    """A column that names the plate predicts rows of known plates, and says nothing of new ones."""
    rng = np.random.default_rng(2)
    plates = rng.integers(0, 2, (20, 6))
    which = rng.integers(0, 20, 400)
    y = rng.normal(size=20)[which] + 0.05 * rng.normal(size=400)
    data = table(plates[which], plate=which, y=y)
    by_row, by_plate = (
        sa.fit_table(data, "y", model="gp", **how) for how in ({"ignore": "plate"}, {"groups": "plate"})
    )
    assert by_row.scores.r2["y"].mean > 0.9
    assert by_plate.scores.r2["y"].mean < 0.5


def test_fewer_groups_than_folds_are_a_fold_each():
    X = bits()
    data = table(X, y=signal(X) + np.random.default_rng(2).normal(size=300), plate=[*"AAB"] * 100)
    result = sa.fit_table(data, "y", groups="plate", model="low-degree")
    asked = sa.fit_table(data, "y", groups="plate", model="low-degree", folds=2)
    assert result.scores.r2["y"].folds == asked.scores.r2["y"].folds
    assert len(asked.scores.r2["y"].folds) == 2
    note = "plate holds 2 groups, so there are as many folds, not 5."
    assert (note in result.encoding.notes, note in asked.encoding.notes) == (True, False)


def test_the_seed_deals_equal_groups():
    data = table(bits(), plate=np.arange(300) // 10, y=signal(bits()))
    dealt = [tuple(folds_of(data, groups="plate", random_state=seed)[0]) for seed in (0, 0, 1)]
    assert dealt[0] == dealt[1] != dealt[2]


# ---- weights ----


@pytest.mark.parametrize("option", ["sigma", "weights"])
def test_weights_match_weighted_least_squares(option):
    """Coefficients, intervals and scores by fold, by scikit-learn and by formulas."""
    rng = np.random.default_rng(3)
    X, sigma = bits(), rng.uniform(0.2, 3, 300)
    y = signal(X) + sigma * rng.normal(size=300)
    data = table(X, own=sigma if option == "sigma" else 7 / sigma**2, y=y)
    result = sa.fit_table(data, "y", degree=2, alpha=0.0, **{option: "own"})
    design = PolynomialFeatures(2, interaction_only=True).fit_transform(1 - 2 * X)
    w = 1 / sigma**2
    gram = design.T @ (w[:, None] * design)
    expected = np.linalg.solve(gram, design.T @ (w * y))
    model = result.model
    np.testing.assert_allclose(np.concatenate([[model.intercept_], model.coefficients_]), expected, rtol=1e-9)
    error = np.sqrt(np.diag(np.linalg.inv(gram)) * (w * (y - design @ expected) ** 2).sum() / (300 - 22))
    reach = scipy.stats.t.ppf(0.975, 300 - 22) * error[1]
    ends = [expected[1] - reach, expected[1] + reach]
    np.testing.assert_allclose(model.confidence_intervals([(0,)])[0], ends, rtol=1e-9)
    term = next(term for term in result.targets[0].terms if term.subset == ("a",))
    assert reach <= (term.high - term.low) / 2 < 1.3 * reach  # held-out rows agree


@pytest.mark.grid
def test_weighted_models_are_compared_on_weighted_errors(monkeypatch):
    monkeypatch.setitem(candidates(), "gp", gp.ProcessCandidate(kernels=("degree_site",)))
    rng = np.random.default_rng(4)
    X, sigma = bits(120), rng.uniform(0.2, 3, 120)
    y = signal(X) + sigma * rng.normal(size=120)
    data = table(X, se=sigma, plate=np.arange(120) // 4, y=y)
    result = sa.fit_table(data, "y", sigma="se", groups="plate")
    assert [model.name for model in result.choices.models if model.name.startswith("a ")] == [
        "a lasso polynomial",
        "a Gaussian process",
    ]
    without = "a sparse polynomial, a measurement model, boosted trees, an ensemble of models"
    assert result.choices.reason.endswith(f"since they take no row weights: {without}")
    folds, _ = folds_of(data, groups="plate")
    w = sigma**-2 / np.mean(sigma**-2)
    expected = [r2_score(y[test], found, sample_weight=w[test]) for test, found in left_out(X, y, folds, w)]
    process = next(model for model in result.choices.models if "Gaussian" in model.name)
    np.testing.assert_allclose(process.r2.folds, expected, rtol=1e-6)


@pytest.mark.grid
def test_equal_deviations_change_nothing():
    X = bits(100)
    y = signal(X) + np.random.default_rng(5).normal(size=100)
    plain = sa.fit_table(table(X, y=y), "y", model="low-degree")
    equal = sa.fit_table(table(X, y=y, se=np.full(100, 0.25)), "y", model="low-degree", sigma="se")
    np.testing.assert_allclose(equal.model.coefficients_, plain.model.coefficients_, rtol=1e-12)
    assert equal.choices.candidates[3].r2 == plain.choices.candidates[3].r2


@pytest.mark.grid
def test_variances_are_squares_of_deviations():
    rng = np.random.default_rng(11)
    X, sigma = bits(150), rng.uniform(0.2, 3, 150)
    y = signal(X) + sigma * rng.normal(size=150)
    data = table(X, y=y, noise=sigma, spread=sigma**2)
    one, other = (
        sa.fit_table(data, "y", model="low-degree", columns=list(NAMES), **how)
        for how in ({"sigma": "noise"}, {"variance": "spread"})
    )
    np.testing.assert_allclose(other.model.coefficients_, one.model.coefficients_, rtol=1e-9)
    assert "weights of rows: 1 / spread, divided by their mean." in other.encoding.notes


@pytest.mark.grid
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_of_weight_0_are_left_out_and_errors_of_0_have_a_floor(tmp_path, suffix):
    rng = np.random.default_rng(12)
    X, own = bits(150), rng.uniform(0.2, 3, 150)
    y = signal(X) + own * rng.normal(size=150)
    zero = rng.random(150) < 0.1
    data = table(X, y=y, own=np.where(zero, 0.0, own))
    write = pyarrow.csv.write_csv if suffix == "csv" else pyarrow.parquet.write_table
    write(data, path := tmp_path / f"t.{suffix}")
    how = {"model": "low-degree", "degree": 2, "alpha": 0.0}
    weighted = sa.fit_table(path, "y", weights="own", test=data, **how)
    expected = sa.fit_table(table(X[~zero], y=y[~zero], own=own[~zero]), "y", weights="own", **how)
    np.testing.assert_allclose(weighted.model.coefficients_, expected.model.coefficients_, rtol=1e-12)
    assert f"left out, since their weight own is 0: {zero.sum()} of 150 rows." in weighted.encoding.notes
    assert weighted.n_rows == weighted.test.n_rows == (~zero).sum()
    floor = np.quantile(own[~zero], 0.25)
    for option in ("sigma", "variance"):
        found = sa.fit_table(path, "y", **{option: "own"}, **how)
        filled = table(X, y=y, own=np.where(zero, floor, own))
        expected = sa.fit_table(filled, "y", **{option: "own"}, **how)
        np.testing.assert_allclose(found.model.coefficients_, expected.model.coefficients_, rtol=1e-9)
        assert any(f"own is 0 in {zero.sum()} of 150 rows; there it counts as" in note for note in found.encoding.notes)
        assert found.n_rows == 150


# ---- missing values ----


@pytest.mark.grid
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_that_lack_a_value_are_left_out(tmp_path, suffix):
    """The model is that of the other rows; the note counts what was left out."""
    rng = np.random.default_rng(6)
    X, y = bits(200).astype(object), signal(bits(200)) + 0.1 * rng.normal(size=200)
    gaps = rng.random((200, 3)) < 0.05
    X[gaps[:, 0], 0], X[gaps[:, 1], 4] = None, None
    y = np.where(gaps[:, 2], np.nan, y)
    data = {name: pa.array(X[:, i].tolist(), pa.int64()) for i, name in enumerate(NAMES)} | {"y": y}
    write = pyarrow.csv.write_csv if suffix == "csv" else pyarrow.parquet.write_table
    path = tmp_path / f"t.{suffix}"
    write(pa.table(data), path)
    with pytest.raises(ValueError, match="the value is missing"):
        sa.fit_table(path, "y")
    there = ~gaps.any(axis=1)
    result = sa.fit_table(path, "y", model="low-degree", drop_missing=True)
    whole = sa.fit_table(table(bits(200)[there], y=y[there]), "y", model="low-degree")
    assert result.n_rows == there.sum()
    np.testing.assert_array_equal(result.model.coefficients_, whole.model.coefficients_)
    counts = dict(zip("aey", gaps.sum(axis=0), strict=True))
    first = max(counts, key=counts.get)
    note = f"left out, since a value is missing: {200 - there.sum()} of 200 rows, which lack {first} ({counts[first]})"
    assert result.encoding.notes[0].startswith(note)


# ---- logarithms ----


def test_logarithms_are_learned_and_brought_back(tmp_path):
    rng = np.random.default_rng(7)
    X = bits(200)
    y = np.exp(3 + 0.5 * signal(X) + 0.1 * rng.normal(size=200))
    result = sa.fit_table(table(X, y=y), "y", degree=2, alpha=0.0, log_target=True)
    logs = sa.fit_table(table(X, y=np.log(y)), "y", degree=2, alpha=0.0)
    np.testing.assert_array_equal(result.model.coefficients_, logs.model.coefficients_)
    np.testing.assert_allclose(result.predict(table(X)), np.exp(logs.predict(table(X))), rtol=1e-12)
    target = result.targets[0]
    expected = mean_absolute_percentage_error(np.exp(target.actual), np.exp(target.predicted))
    assert target.relative_error == pytest.approx(expected, rel=1e-12)
    assert 0.05 < target.relative_error < 0.12
    result.save(tmp_path / "m.sparsact")
    found = sa.predict_table(sa.load(tmp_path / "m.sparsact"), table(X))
    plain = sa.predict_table(logs, table(X))
    few = sa.fit_table(table(X[:15], y=y[:15]), "y", degree=1, log_target=True)
    assert sa.predict_table(few, table(X))["y_low"].null_count == 200  # 15 errors bound 95 % of no rows
    for name in ("y", "y_low", "y_high"):
        np.testing.assert_allclose(found[name], np.exp(plain[name]), rtol=1e-12)


# ---- bad input ----

X, Y = bits(40), signal(bits(40)).astype(float)
REFUSED = {
    "one group": ({"groups": "g"}, {"g": ["x"] * 40}, "column 'g' holds one group; held-out groups need at least 2"),
    "no such": ({"groups": "plat"}, {"plate": [1] * 40}, "no column 'plat' in the table; did you mean 'plate'?"),
    "group lacks": ({"groups": "g"}, {"g": [None, *"xyzuv" * 7, *"xyzu"]}, "column 'g', row 1: the value is missing"),
    "sigma < 0": (
        {"sigma": "s"},
        {"s": [1.0] * 20 + [-2.0] + [1.0] * 19},
        "column 's', row 21: -2, where standard dev",
    ),
    "sigma 0": ({"variance": "s"}, {"s": [0.0] * 40}, "column 's' is 0 in every row, which says nothing of the rows"),
    "weights 0": ({"weights": "s"}, {"s": [0] * 40}, "column 's' is 0 in every row, so no row has a weight"),
    "no split": ({"split": "s"}, {"s": [*"abcd"] * 10}, "column 's' holds 'a', 'b', 'c', 'd'; a split needs rows to"),
    "one part": ({"split": "s"}, {"s": ["test"] * 40}, "column 's' holds 'test'; a split needs rows to fit and"),
    "split lacks": ({"split": "s"}, {"s": ["test", None] * 20}, "column 's', row 2: the value is missing"),
    "two tests": (
        {"split": "s", "test": table(X, y=Y)},
        {"s": ["test"] * 40},
        "split and test both choose rows to score",
    ),
    "sigma lacks": ({"sigma": "s"}, {"s": [1.0] * 9 + [np.nan] + [1.0] * 30}, "column 's', row 10: the value is miss"),
    "weights < 0": ({"weights": "s"}, {"s": [-1.0] * 40}, "column 's', row 1: -1, where weights must be positive"),
    "both": ({"weights": "s", "variance": "s"}, {"s": [1.0] * 40}, "weights and variance all set the weights of rows"),
    "target": ({"sigma": "y"}, {}, "column 'y' is a target"),
    "lsh": ({"sigma": "s", "model": "sparse"}, {"s": [1.0] * 40}, "model sparse takes no row weights"),
    "log": ({"log_target": True}, {}, r"column 'y', row \d+: -?\d has no logarithm; set log_target=False"),
    "test": ({"test": table(X)}, {}, "the table has no column 'y', the target, which its scores need"),
    "test lacks": ({"test": pa.table({"y": Y})}, {}, "the table has no column 'a', which the model needs"),
    "test constant": (
        {"test": table(X, y=[1.0] * 40), "model": "low-degree"},
        {},
        "target 'y' is constant in the table",
    ),
    "all missing": (
        {"drop_missing": True},
        {"e2": [np.nan] * 40},
        r"every row has a missing value \(e2 \(40\)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_in_one_line(case):
    options, columns, message = REFUSED[case]
    with pytest.raises(ValueError, match=message) as refused:
        sa.fit_table(table(X, y=Y, **columns), "y", **options)
    assert "\n" not in str(refused.value)
