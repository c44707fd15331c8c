"""LettersRegressor as a whole: what goes in, what is predicted, what is said about it, and its file."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from grids import few_of

import sparsact
from sparsact import LettersRegressor
from sparsact.learners.letters.alphabet import Alphabet
from sparsact.learners.letters.process import processes_by_fold
from sparsact.saving.modelfile import load

SIZES = (2, 5, 3, 4)  # sites with different numbers of letters


def planted(seed, m=150, sizes=SIZES, noise=0.05):
    """Rows of letters, their targets, and all cells with the function: a letter, a pair, and a site without effect."""
    rng = np.random.default_rng(seed)
    cells = np.indices(sizes).reshape(len(sizes), -1).T
    effects = rng.normal(size=sizes[1])
    f = effects[cells[:, 1]] + 2.0 * ((cells[:, 0] == 1) & (cells[:, 3] == 2))
    rows = rng.permutation(len(cells))[:m]
    return letters(cells[rows]), f[rows] + noise * rng.normal(size=len(rows)), letters(cells), f


def letters(codes):
    return np.array(list("BJOUXZ"))[codes]  # of no amino acid


@pytest.fixture(scope="module")
def fitted():
    X, y, cells, f = planted(0, m=80)
    return LettersRegressor(random_state=0).fit(X, y), X, y, cells, f


def test_the_planted_function_is_found(fitted):
    model, X, y, cells, f = fitted
    seen = {tuple(row) for row in X}
    new = np.array([tuple(row) not in seen for row in cells])
    assert np.mean((model.predict(cells)[new] - f[new]) ** 2) < 0.1 * f.var()
    assert np.mean((model.out_of_fold_ - y) ** 2) < 0.2 * y.var()


def test_the_variance_is_where_it_was_planted(fitted):
    model, _, _, _, f = fitted
    expected = sparsact.fourier.anova(f.reshape(SIZES))
    shared = [len(site) for site in model.letters_]
    frequencies = [[letter in "BJOUXZ"[:q] for letter in site] for site, q in zip(model.letters_, SIZES, strict=True)]
    assert shared == [5] * 4
    found = model.anova(frequencies)
    np.testing.assert_allclose(found.variance_by_degree(), expected.variance_by_degree(), atol=0.08 * f.var())
    assert found.variance_by_site()[2] < 0.01 * f.var()
    assert np.triu(found.variance_by_pair(), 1).argmax() == 3  # sites 0 and 3


@pytest.mark.grid
def test_noise_is_not_learned():
    """Out-of-fold predictions of pure noise are no better than the mean, but for luck."""
    rng = np.random.default_rng(5)
    X, y = rng.choice(list("BJOU"), (200, 4)), rng.normal(size=200)
    model = LettersRegressor(random_state=0).fit(X, y)
    assert np.mean((model.out_of_fold_ - y) ** 2) > 0.97 * y.var()
    assert model.predict(X).std() < 0.7 * y.std()


@pytest.fixture(scope="module")
def small():
    """A model of few rows, and the rows and cells."""
    X, y, cells, _ = planted(0, m=23)
    return LettersRegressor(random_state=0).fit(X, y), X, y, cells


def joined(rows):
    return ["".join(row) for row in rows]


FORMS = {
    "strings": joined,
    "an array of strings": lambda X: np.array(joined(X), dtype=object),
    "objects": lambda X: X.astype(object),
}


@pytest.mark.grid
@pytest.mark.parametrize("form", few_of(FORMS, ["strings"]))
def test_arrays_strings_and_lists_are_the_same(small, form):
    model, X, y, cells = small
    again = LettersRegressor(random_state=0).fit(FORMS[form](X), y)
    np.testing.assert_array_equal(again.predict(joined(cells)), model.predict(cells))


@pytest.mark.grid
def test_numbers_are_letters_of_their_site(small):
    _, X, y, cells = small
    numbers = np.vectorize("BJOUXZ".index)
    of_numbers = LettersRegressor(random_state=0).fit(numbers(X), y)
    assert [len(site) for site in of_numbers.letters_] == list(SIZES)  # numbers are not shared between sites
    assert of_numbers.letters_[2] == ("0", "1", "2")
    np.testing.assert_array_equal(of_numbers.predict(numbers(cells).astype(float)), of_numbers.predict(numbers(cells)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.grid
def test_letters_of_one_site_have_the_means_of_their_rows(seed):
    """Twenty rows each: predictions are nearer to the means than these are to the truth, by their standard error."""
    rng = np.random.default_rng(seed)
    places = np.repeat(np.arange(5), 20)
    y = rng.normal(size=5)[places] + 0.5 * rng.normal(size=100)
    letters = np.array(list("ACDEF"))
    found = LettersRegressor(random_state=0).fit(letters[places, None], y).predict(letters[:, None])
    means = y.reshape(5, 20).mean(axis=1)
    assert np.sqrt(np.mean((found - means) ** 2)) < 0.5 / np.sqrt(20)


@pytest.mark.grid
def test_weights_are_numbers_of_rows():
    X, y, _, _ = planted(1, m=40)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    weights[0] = 0
    weighted = LettersRegressor(random_state=0).fit(X, y, sample_weight=weights)
    repeated = LettersRegressor(random_state=0).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.predict(X[weights > 0]), repeated.predict(X[weights > 0]), rtol=1e-5)
    assert np.isnan(weighted.out_of_fold_[weights == 0]).all()
    np.testing.assert_allclose(np.repeat(weighted.out_of_fold_, weights), repeated.out_of_fold_, rtol=1e-4)


def test_a_file_predicts_the_same(fitted, tmp_path):
    model, _, _, cells, _ = fitted
    model.save(tmp_path / "m.sparsact")
    again = load(tmp_path / "m.sparsact")
    np.testing.assert_array_equal(again.predict(cells), model.predict(cells))
    assert (again.letters_, again.alphabet_, again.weights_) == (model.letters_, "plain", model.weights_)
    np.testing.assert_array_equal(again.prediction_intervals(cells, 0.8), model.prediction_intervals(cells, 0.8))


def test_intervals_are_as_wide_as_errors_of_rows_left_out(fitted):
    """The 73rd smallest of 80 errors: 73 is .9 times 81, rounded up."""
    model, X, y, _, _ = fitted
    low, high = model.prediction_intervals(X, 0.9).T
    np.testing.assert_allclose((low + high) / 2, model.predict(X))
    np.testing.assert_allclose(high - low, 2 * np.sort(np.abs(model.out_of_fold_ - y))[72])
    assert np.isinf(model.prediction_intervals(X[:1], 0.99)).all()  # 80 rows do not tell
    with pytest.raises(ValueError, match="`confidence`"):
        model.prediction_intervals(X, 1.0)


@pytest.mark.grid
def test_processes_on_grids_and_with_too_many_combinations():
    """The same predictions from conjugate gradients as from a matrix; few rows of a process still predict."""
    X, y, cells, f = planted(2, m=60)
    alphabet = Alphabet.of(X, "plain")
    codes, unit = alphabet.codes(X), y.std()

    def predicted(**options):
        rows = (y - y.mean()) / unit, np.ones(60), np.arange(60) % 5
        members, _ = processes_by_fold(alphabet.features, codes, *rows, np.random.default_rng(0), **options)
        return y.mean() + unit * np.mean([one.values(alphabet.codes(cells)) for one in members], axis=0)

    on_grid, dense = predicted(grid=True), predicted()
    np.testing.assert_allclose(on_grid, dense, atol=0.05 * f.std())
    fewer = predicted(most=45)
    assert (fewer != dense).any()
    assert np.mean((fewer - f) ** 2) < 0.3 * f.var()


@pytest.mark.grid
def test_amino_acids_at_sites_where_no_row_has_them():
    """A function of a property: the letter's features say what no row does."""
    from sparsact.learners.letters.alphabet import AMINO_ACIDS

    rng = np.random.default_rng(4)
    X = rng.choice(list(AMINO_ACIDS), (90, 2))
    value = np.vectorize(lambda letter: AMINO_ACIDS[letter][0])
    rows = X[:, 0] != "I"
    model = LettersRegressor(random_state=0).fit(X[rows], value(X[rows])[:, 0])
    assert model.alphabet_ == "amino acids"
    assert model.predict(["IA"])[0] == pytest.approx(4.5, abs=1.5)  # where the mean is about -.5
    assert LettersRegressor("plain", random_state=0).fit(X[:9], value(X[:9])[:, 0]).alphabet_ == "plain"


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (["AC", "ACD", "AC"], r"row 0, 'AC', has 2 letters, and row 1, 'ACD', has 3"),
        (["", ""], "without letters"),
        (np.zeros((4, 0)), r"`X` has no columns; pass one or more for each row\. .* 0 feature\(s\)"),
        (["AC", "AC", "AC"], "all rows have the same letters"),
        (np.arange(130).reshape(65, 2), "site 0 has 65 different letters, and at most 64"),
    ],
)
def test_rows_that_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        LettersRegressor().fit(X, np.arange(len(X)))


def test_letters_that_are_not_known(fitted):
    model = fitted[0]
    with pytest.raises(ValueError, match=r"row 1, site 2: letter 'Z' was not learned; the model knows B, J, O, U, X"):
        model.predict(["BBBB", "BBZB"])
    with pytest.raises(ValueError, match="expecting 4 features"):
        model.predict(["BBB"])
    with pytest.raises(ValueError, match=r"'B' is no amino acid, stop \(\*\) or gap \(-\); choose alphabet 'plain'"):
        LettersRegressor("amino acids").fit(["AB", "CD"], [1, 2])


@pytest.mark.grid
def test_a_new_quantity_is_the_nearest_one():
    rng = np.random.default_rng(11)
    X = np.column_stack([rng.choice([0.1, 0.5, 2.0], 40), rng.integers(3, size=40)])
    model = LettersRegressor(random_state=0).fit(X, X[:, 0] + X[:, 1])
    assert model.letters_ == [("0.1", "0.5", "2"), ("0", "1", "2")]
    np.testing.assert_array_equal(model.predict([[0.4, 1], [9.0, 2]]), model.predict([[0.5, 1], [2.0, 2]]))
    with pytest.raises(ValueError, match="row 1, site 1: letter '3' was not learned; the model knows 0, 1, 2"):
        model.predict([[0.4, 1], [0.5, 3]])


NUMBERS = np.random.default_rng(12).integers(3, size=(23, 2))
ARRAYS = {kind: NUMBERS.astype(kind) for kind in ("int64", "float64", "float32", "str")}
ARRAYS["objects"] = (NUMBERS * 1.0).astype(object)
FRAMES = {
    kind: pd.DataFrame(NUMBERS, columns=["a", "b"]).astype(kind) for kind in ("Int8", "Float64", "category", "object")
}
FRAMES["mixed"] = pd.DataFrame({"a": NUMBERS[:, 0] * 1.0, "b": NUMBERS[:, 1].astype(str)})


@cache
def of_numbers(kind):
    y = NUMBERS[:, 0] - 2.0 * NUMBERS[:, 1]
    return LettersRegressor(random_state=0).fit((ARRAYS | FRAMES)[kind], y)


@pytest.mark.parametrize("kind", few_of(["float64", "str", "Int8", "mixed"], ["mixed"]))
@pytest.mark.grid
def test_equal_numbers_are_one_letter(kind):
    """Whatever their type: floats, whole numbers, texts, objects, categories and nullable types."""
    model = of_numbers(kind)
    assert model.letters_ == [("0", "1", "2")] * 2
    for X in (ARRAYS if kind in ARRAYS else FRAMES).values():
        np.testing.assert_array_equal(model.predict(X), of_numbers("int64").predict(NUMBERS))


@pytest.fixture(scope="module")
def of_two_columns():
    """A model of columns s and t."""
    rng = np.random.default_rng(13)
    X = pd.DataFrame({"s": rng.integers(2, size=23), "t": rng.choice(list("ACG"), 23)})
    return LettersRegressor(random_state=0).fit(X, rng.normal(size=23))


@pytest.mark.parametrize(
    "kind", ["string", "Int64", "UInt8", "Float64", "boolean", "category", "object", "datetime64[ns]"]
)
def test_a_missing_letter_is_refused_with_its_row(kind, of_two_columns):
    """In each type of column that may lack a value, when fitted and when predicted."""
    rng = np.random.default_rng(13)
    X = pd.DataFrame({"s": pd.Series(rng.integers(2, size=23)).astype(kind), "t": rng.choice(list("ACG"), 23)})
    y, gap = rng.normal(size=23), X.copy()
    gap.loc[5, "s"] = None
    with pytest.raises(ValueError, match="row 5, column 's', has no letter"):
        LettersRegressor().fit(gap, y)
    with pytest.raises(ValueError, match="row 5, column 's', has no letter"):
        of_two_columns.predict(gap)


@pytest.mark.parametrize(
    "rows", [["AC", "GT", None], [["A", "C"], ["G", "T"], ["A", None]], [[0, 1.0], [1, 0], [0, np.nan]]]
)
def test_a_missing_letter_of_rows_without_names(rows):
    with pytest.raises(ValueError, match=r"row 2(, column 1,)? has no letter: (None|nan)"):
        LettersRegressor().fit(rows, [1.0, 2.0, 3.0])


@pytest.mark.grid
@pytest.mark.parametrize("factor", few_of([1e-7, 1e5], [1e-7]))
def test_a_common_factor_of_precisions_changes_nothing(factor):
    rng = np.random.default_rng(14)
    X = rng.choice(list("BJO"), (23, 3))
    y, weights = (X[:, 0] == "B") + 0.1 * rng.normal(size=23), rng.uniform(0.5, 2.0, 23)
    one, other = (LettersRegressor(random_state=0).fit(X, y, weights * c).predict(X) for c in (1.0, factor))
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


@pytest.mark.grid
def test_a_constant_target_and_too_large_a_decomposition():
    X = np.random.default_rng(6).choice(list("BJOUACDE"), (30, 8))
    model = LettersRegressor(random_state=0).fit(X, np.full(30, 7.0))
    np.testing.assert_allclose(model.predict(X), 7.0, atol=0.2)
    with pytest.raises(ValueError, match=r"1.68e\+07 combinations of letters, and at most 4,194,304"):
        model.anova()
