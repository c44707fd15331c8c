"""Estimators within scikit-learn: sparse matrices, monomials in a pipeline, tables of Arrow, routed weights."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from grids import grid
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, check_cv
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

import sparsact as sa
from sparsact import LowDegreeClassifier, LowDegreeRegressor, LowDegreeRegressorCV, Monomials

RNG = np.random.default_rng(17)
BITS = RNG.integers(0, 2, (211, 7)).astype(float)
REAL = np.where(RNG.random((211, 7)) < 0.3, RNG.normal(size=(211, 7)), 0.0)
Y = BITS[:, 0] * 2 - (BITS[:, 1] != BITS[:, 4]) + REAL[:, 2] * REAL[:, 3] + RNG.normal(scale=0.1, size=211)
WEIGHTS = RNG.integers(0, 3, 211).astype(float)


# ---- sparse matrices ----


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array, sp.coo_array])
@pytest.mark.parametrize("X", [BITS, REAL, 1 - 2 * BITS, BITS.astype(bool)], ids=["bits", "numbers", "signs", "bool"])
def test_a_sparse_matrix_gives_the_same_bits(X, kind):
    dense, sparse = (LowDegreeRegressor(2).fit(rows, Y, WEIGHTS) for rows in (X, kind(X)))
    assert sparse.encoding_ == dense.encoding_
    assert_array_equal(sparse.coefficients_, dense.coefficients_)
    assert_array_equal(sparse.predict(kind(X)), dense.predict(X))


def test_streams_and_choices_of_sparse_rows():
    for X in (BITS, REAL):
        assert_array_equal(*(LowDegreeRegressor("auto").fit(rows, Y).predict(X) for rows in (X, sp.csr_array(X))))
        found = []
        for rows in (X, sp.csr_array(X)):
            model = LowDegreeRegressor(2).partial_fit(rows[:100], Y[:100]).partial_fit(rows[100:], Y[100:])
            model.remove(rows[:31], Y[:31])
            cv = LowDegreeRegressorCV((1, 2), (0.1, 9.0), cv=KFold(3)).fit(rows, Y)
            labels = LowDegreeClassifier(2, 1.0).fit(rows, Y > 0)
            found.append([model.coefficients_, cv.coefficients_, labels.predict_proba(rows)])
        for dense, sparse in zip(*found, strict=True):
            assert_array_equal(dense, sparse)


WIDE = 30_000  # columns; a block then has 128 rows


@pytest.mark.parametrize("X", [BITS, REAL], ids=["bits", "numbers"])
@pytest.mark.grid
def test_blocks_of_a_wide_sparse_matrix_are_the_whole(X):
    columns = np.arange(7) * (WIDE // 7)
    wide = sp.csc_array((211, WIDE)).tolil()
    wide[:, columns] = X
    subsets = [(0,), (4,), (0, 1), (2, 3), (1, 4)]
    named = [tuple(columns[list(subset)].tolist()) for subset in subsets]
    narrow = LowDegreeRegressor(subsets=subsets).fit(X, Y, WEIGHTS)
    model = LowDegreeRegressor(subsets=named).fit(wide.tocsr(), Y, WEIGHTS)
    assert_allclose(model.coefficients_, narrow.coefficients_, rtol=1e-9)
    assert_allclose(model.predict(wide.tocsc()), narrow.predict(X), rtol=1e-9)


def test_errors_name_the_place_in_a_sparse_matrix():
    X = sp.lil_array((211, WIDE))
    for wrong, said in ((2, r"2\.0 at column 3, row 150"), (np.nan, r"nan at column 3, row 150.*SimpleImputer")):
        X[150, 3] = wrong
        with pytest.raises(ValueError, match=f"holds {said}"):
            LowDegreeRegressor(domain="cube").fit(X.tocsc(), Y)


@pytest.mark.grid
def test_a_large_sparse_table_never_becomes_dense():
    """As float64 it would take 800 MB: the peak of allocated memory stays below a tenth of that."""
    import tracemalloc

    X = sp.random_array((100_000, 1000), density=0.002, format="csr", rng=np.random.default_rng(0))
    X.data[:] = 1
    y = np.asarray(X[:, :5].sum(axis=1))
    tracemalloc.start()
    model = LowDegreeRegressor(subsets=[(i,) for i in range(9)]).fit(X, y)
    model.predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80e6
    assert_allclose(model.coefficients_, [-0.5] * 5 + [0] * 4, atol=1e-12)


def test_the_default_one_hot_encoder_feeds_the_learners():
    texts = np.array(["a", "b", "c"])[RNG.integers(0, 3, (90, 4))]
    y = (texts[:, 0] == "b") * 2.0 + (texts[:, 1] == texts[:, 2])
    model = make_pipeline(OneHotEncoder(), LowDegreeRegressor(2, 1e-6)).fit(texts, y)
    assert model.score(texts, y) > 0.999
    again = make_pipeline(OneHotEncoder(sparse_output=False), LowDegreeRegressor(2, 1e-6)).fit(texts, y)
    assert_array_equal(model.predict(texts), again.predict(texts))


# ---- monomials ----


@grid(
    X=[BITS, REAL, 1 - 2 * BITS, sp.csr_array(BITS), sp.csc_array(REAL)],
    options=[{"degree": 3}, {"degree": 3, "min_degree": 2}, {"subsets": [(0, 2), (5,)]}],
)
def test_ridge_of_monomials_is_the_low_degree_regressor(X, options):
    ours = LowDegreeRegressor(alpha=0.7, **options).fit(X, Y, WEIGHTS)
    theirs = make_pipeline(Monomials(**options), Ridge(0.7)).fit(X, Y, ridge__sample_weight=WEIGHTS)
    assert theirs[0].subsets_ == ours.subsets_
    assert (theirs[0].domain_, theirs[0].encoding_) == (ours.domain_, ours.encoding_)
    assert_allclose(theirs.predict(X), ours.predict(X), rtol=1e-9, atol=1e-10)


def test_monomials_of_numbers_and_signs_are_polynomial_features():
    for X in (REAL, 1 - 2 * BITS):
        theirs = PolynomialFeatures(3, interaction_only=True, include_bias=False).fit(X)
        ours = Monomials(3).fit(X)
        assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-14)
        assert_array_equal(ours.get_feature_names_out(), theirs.get_feature_names_out())
    assert_array_equal(Monomials(3).fit_transform(BITS), Monomials(3).fit_transform(1 - 2 * BITS))


def test_monomials_keep_the_encoding_of_the_first_rows_and_name_their_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(BITS[:, :3], columns=["a", "b", "c"], index=range(3, 214))
    made = Monomials(2).set_output(transform="pandas").fit(frame)
    found = made.transform(frame[:5])
    assert list(found.columns) == ["a", "b", "c", "a b", "a c", "b c"]
    assert list(found.index) == [3, 4, 5, 6, 7]
    assert_array_equal(found["a b"], (1 - 2 * BITS[:5, 0]) * (1 - 2 * BITS[:5, 1]))
    assert_array_equal(made.transform(frame[:1] * 0), 1)  # a single row of zeros is bits, since the fitted rows were
    with pytest.raises(ValueError, match=r"column 'b', row 0, where bits 0/1"):
        made.transform(frame[:1].assign(b=-1.0))
    with pytest.raises(ValueError, match="feature names"):
        made.transform(frame.rename(columns={"a": "z"}))


def test_monomials_beyond_memory_are_counted_not_listed():
    """2,500 + 3,123,750 of two + 2,601,042,500 of three columns; a degree that fits is named."""
    with pytest.raises(MemoryError, match=r"^2,604,168,750 monomials of 2,500 columns need .* GiB; degree=2 fits\.$"):
        Monomials(3).fit(np.eye(3, 2500, dtype=np.int8))


def test_the_matrix_of_monomials_is_refused_where_memory_does_not_hold_it():
    """45 * 1,225 numbers of 8 bytes, twice."""
    made = Monomials(2, min_degree=2).fit(np.eye(3, 50, dtype=np.int8))
    made._max_memory = 2 * 8 * 45 * 1225 - 1
    assert made.transform(np.zeros((44, 50))).shape == (44, 1225)
    with pytest.raises(MemoryError, match=r"45 rows of 1,225 monomials need about .* pass fewer rows at once"):
        made.transform(np.zeros((45, 50)))


def test_few_monomials_of_many_columns_take_little_memory():
    n = 10**6
    rows = sp.csr_array((np.full(3, 2.0), ([0, 1, 2], [0, 5, n - 1])), shape=(4, n))
    made = Monomials(subsets=[(n - 1, 0), (5,)], domain="real").fit(rows)
    assert made.subsets_ == [(5,), (0, n - 1)]


# ---- tables of other libraries ----


class Stream:
    """What exports an Arrow stream, and nothing else."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


TABLES = {"n_tables": 2, "degree": 1, "directions": "principal", "n_stages": 1, "random_state": 0}
NAMES = [f"c{i}" for i in range(7)]
TABLE = pa.table({name: BITS[:, i].astype(int) for i, name in enumerate(NAMES)})


@pytest.mark.parametrize("kind", ["table", "stream", "reader"])
def test_estimators_take_what_exports_an_arrow_stream(kind):
    made = {"table": lambda: TABLE, "stream": lambda: Stream(TABLE), "reader": TABLE.to_reader}[kind]
    expected = LowDegreeRegressor(2).fit(BITS, Y)
    for model in (LowDegreeRegressor(2), LowDegreeRegressorCV((2,), (0.0,))):
        model.fit(made(), Y)
        assert list(model.feature_names_in_) == NAMES
        assert_array_equal(model.predict(made()), expected.predict(BITS))
    assert_array_equal(Monomials(2).fit(made()).transform(made()), Monomials(2).fit_transform(BITS))
    for model in (sa.LSHRegressor(**TABLES), sa.DSMRegressor(9, 4, random_state=0)):
        assert_array_equal(clone(model).fit(made(), Y).predict(made()), model.fit(BITS, Y).predict(BITS))


def test_tables_of_arrow_are_told_apart_by_their_columns():
    model = LowDegreeRegressor(1).fit(TABLE, Y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(Stream(TABLE.select(NAMES[::-1])))
    texts = TABLE.set_column(2, "c2", pa.array(["x"] * len(TABLE)))
    with pytest.raises(ValueError, match="texts, such as 'x'"):
        model.fit(Stream(texts), Y)


@pytest.mark.parametrize("kind", ["stream", "reader"])
def test_fit_table_takes_what_exports_an_arrow_stream(kind):
    table = TABLE.append_column("y", pa.array(Y))
    options = {"target": "y", "degree": 1, "alpha": 0.0, "folds": 2, "explain": False}
    result = sa.fit_table(Stream(table) if kind == "stream" else table.to_reader(max_chunksize=50), **options)
    expected = sa.fit_table(table, **options)
    assert_array_equal(result.model.coefficients_, expected.model.coefficients_)


# ---- routed metadata ----


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


ESTIMATORS = {
    "LowDegreeRegressor": LowDegreeRegressor(1),
    "LowDegreeRegressorCV": LowDegreeRegressorCV((1,), (0.0, 9.0), cv=3),
    "LowDegreeClassifier": LowDegreeClassifier(1),
    "LSHRegressor": sa.LSHRegressor(**TABLES),
    "LSHClassifier": sa.LSHClassifier(2, degree=1, directions="principal", random_state=0),
    "DSMRegressor": sa.DSMRegressor(9, 4, random_state=0),
    "SparselyActivatedRegressor": sa.SparselyActivatedRegressor(n_restarts=1, max_iter=5, random_state=0),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_weights_are_routed_through_a_pipeline_and_a_search(name, routing):
    model = clone(ESTIMATORS[name])
    y = (Y > 0).astype(int) if "Classifier" in name else Y
    requested = clone(model).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(make_pipeline(StandardScaler().set_fit_request(sample_weight=False), requested), {}, cv=3)
    search.fit(REAL, y, sample_weight=WEIGHTS)
    scaled = StandardScaler().fit_transform(REAL)
    expected = clone(model).fit(scaled, y, sample_weight=WEIGHTS)
    assert_allclose(search.predict(REAL), expected.predict(scaled), rtol=1e-12)
    train, test = next(check_cv(3, y, classifier=is_classifier(model)).split(REAL, y))
    scaler = StandardScaler().fit(REAL[train])
    part = clone(model).fit(scaler.transform(REAL[train]), y[train], sample_weight=WEIGHTS[train])
    score = part.score(scaler.transform(REAL[test]), y[test], sample_weight=WEIGHTS[test])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(score, rel=1e-9)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_weights_of_partial_fit_can_be_requested(name, routing):
    model = clone(ESTIMATORS[name])
    if hasattr(model, "partial_fit"):
        request = model.set_partial_fit_request(sample_weight=True).get_metadata_routing()
        assert request.partial_fit.requests["sample_weight"] is True
