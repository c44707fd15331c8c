"""Terms of polynomials chosen by the lasso in `fit_table`."""

import numpy as np
import pyarrow as pa
import pytest
from commands import fit_json, run
from sklearn.linear_model import Lasso
from sklearn.metrics import r2_score
from sklearn.preprocessing import PolynomialFeatures, scale

import sparsact as sa
from sparsact import LowDegreeRegressorCV
from sparsact.statistics.folds import deal

pytestmark = pytest.mark.usefixtures("few_rivals")
NAMES = tuple("abcdef")
RNG = np.random.default_rng(3)
BITS = RNG.integers(0, 2, (200, 6))
SIGNS = 1 - 2 * BITS
Y = (
    2 * SIGNS[:, 0]
    + SIGNS[:, 1]
    + 1.5 * SIGNS[:, 0] * SIGNS[:, 1]
    + SIGNS[:, 2] * SIGNS[:, 3]
    + RNG.normal(size=200) / 3
)


def table(**columns):
    return pa.table({name: BITS[:, i] for i, name in enumerate(NAMES)} | columns)


def test_the_lasso_matches_the_learner():
    result = sa.fit_table(table(y=Y), "y", lasso=True)
    theirs = LowDegreeRegressorCV(range(1, 7), solver="lasso").fit(BITS, Y)
    info = result.choices.low_degree
    assert (info.degree, info.alpha, info.penalty) == (theirs.degree_, theirs.alpha_, "lasso")
    np.testing.assert_allclose(result.model.coefficients_, theirs.coefficients_, atol=1e-9)
    assert info.n_monomials == np.count_nonzero(theirs.coefficients_) < len(theirs.subsets_)
    assert len(result.targets[0].terms) == info.n_monomials
    assert all(term.effect and term.low is None for term in result.targets[0].terms)
    assert "so they have no intervals" in str(result)


def test_the_lasso_takes_the_penalty_that_is_given_and_columns_of_numbers():
    numbers = table(z=RNG.normal(size=200), y=Y)
    result = sa.fit_table(numbers, "y", lasso=True, alpha=0.4, degree=2)
    assert result.choices.low_degree.alpha == 0.4
    assert result.domain == "real"
    assert {term.label for term in result.targets[0].terms} <= {"a", "b", "a × b", "c × d"}


def test_the_lasso_of_classes():
    result = sa.fit_table(table(y=np.where(Y > 0, "yes", "no")), "y", lasso=True, degree=2)
    assert result.model.solver_ == "lasso"
    assert result.confusion.accuracy > result.confusion.majority


@pytest.mark.grid
@pytest.mark.usefixtures("unrendered")
def test_few_terms_of_many_numbers_are_learned_by_the_lasso(tmp_path):
    """Among other models, of weighted rows; scored as scikit-learn's lasso of the same folds."""
    X, w = scale(RNG.normal(size=(150, 9))), RNG.uniform(0.5, 2, 150)
    y = X[:, 0] - X[:, 1] + X[:, 2] * X[:, 3] + RNG.normal(size=150)
    data = pa.table({f"z{i}": X[:, i] for i in range(9)} | {"w": w, "y": y})
    result = sa.fit_table(data, "y", weights="w", held_out_rows=True, folds=2)
    degree, alpha = result.choices.low_degree.degree, result.choices.low_degree.alpha
    assert (result.choices.kind, result.choices.name) == ("lasso", f"a lasso polynomial of degree {degree}")
    features = PolynomialFeatures(degree, interaction_only=True, include_bias=False).fit_transform(X)
    theirs = Lasso(alpha, tol=1e-10, max_iter=10_000)
    np.testing.assert_allclose(result.predict(data), theirs.fit(features, y, w).predict(features), atol=1e-5)
    folds, of_fold = deal(0, 150, 2, 0), []
    for k in range(2):
        seen, left = folds != k, folds == k
        predicted = theirs.fit(features[seen], y[seen], w[seen]).predict(features[left])
        of_fold.append(r2_score(y[left], predicted, sample_weight=w[left]))
    np.testing.assert_allclose(result.targets[0].r2.folds, of_fold, atol=1e-4)
    result.report(tmp_path / "r.html")
    assert "lasso penalty" in (tmp_path / "r.html").read_text()


def test_other_models_choose_their_own_terms():
    with pytest.raises(ValueError, match="lasso applies to low-degree models only, and model gp chooses its own"):
        sa.fit_table(table(y=Y), "y", model="gp", lasso=True)


@pytest.mark.grid
def test_the_command(tmp_path, capsys):
    path = tmp_path / "t.csv"
    pa.csv.write_csv(table(y=Y), path)
    found = fit_json(capsys, path, "--target", "y", "--lasso", "--degree", "2")
    assert found["penalty"] == "lasso"
    terms = [term["columns"] for term in found["targets"][0]["terms"]]
    assert ["c", "d"] in terms  # which do nothing by themselves
    assert len(terms) < 22  # products of two of six columns, and less
    model = tmp_path / "m.sparsact"
    assert run(capsys, "fit", path, "--target", "y", "--lasso", "--out", model)[0] == 0
    assert "lasso penalty" in run(capsys, "inspect", model)[1]
