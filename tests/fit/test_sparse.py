"""Sparse polynomials as models of a table: where they are tried, chosen, described and kept."""

import numpy as np
import pandas as pd
import pytest
from commands import fit_json
from sklearn.metrics import r2_score

import sparsact as sa
from sparsact.fit.candidates.sparse import PRODUCTS, degrees_to_scan
from sparsact.hypercube import n_subsets

pytestmark = pytest.mark.usefixtures("few_rivals")

N, M = 22, 500
PLANTED = {(3,): 1.0, (5, 17): -2.0, (0, 8, 20): 1.5, (11, 12, 13): 0.5}


def planted(m, seed, noise=0.3):
    """Bits, a number that four products of columns hold, and its sign."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (m, N))
    y = sum(c * (1 - 2 * bits[:, list(S)]).prod(axis=1) for S, c in PLANTED.items()) + noise * rng.normal(size=m)
    table = pd.DataFrame(bits, columns=[f"b{i}" for i in range(N)])
    return table.assign(y=y, side=np.where(y > 0, "up", "down"))


@pytest.fixture(scope="module")
def chosen():
    return sa.fit_table(planted(M, 1), "y", ignore="side", folds=2)


@pytest.mark.grid
def test_terms_beyond_the_reach_of_all_products_are_found(chosen):
    """Triples of 22 columns are 1,540: more than the rows, and the polynomial of all pairs explains a third."""
    assert chosen.choices.kind == "sparse"
    sparse, polynomial = chosen.choices.models[:2]
    assert sparse.r2.mean > 0.9 > 0.8 > polynomial.r2.mean
    assert set(chosen.model.subsets_) == set(PLANTED)
    fresh = planted(500, 2, noise=0)
    assert r2_score(fresh["y"], chosen.predict(fresh)) > 0.99
    assert " by a sparse polynomial of degree 3; " in chosen.verdict
    assert "Intervals of weak terms are therefore slightly too narrow" in str(chosen)


@pytest.mark.grid
def test_effects_match_the_planted_ones(chosen):
    effects = {term.subset: term for term in chosen.targets[0].terms}
    assert set(effects) == {tuple(f"b{i}" for i in S) for S in PLANTED}
    for S, coefficient in PLANTED.items():
        term = effects[tuple(f"b{i}" for i in S)]
        assert term.significant
        assert term.effect == pytest.approx((-2) ** len(S) * coefficient, rel=0.1)


@pytest.mark.grid
def test_the_page_tells_how_terms_were_chosen(chosen, tmp_path):
    chosen.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "by a sparse polynomial of degree 3;" in page
    assert "The terms were chosen on these rows" in page
    assert "b5 × b17" in page
    assert "<dt>degree</dt><dd>3, of the largest product that was chosen</dd>" in page


def test_two_classes(tmp_path, capsys):
    planted(900, 4).drop(columns="y").to_csv(tmp_path / "t.csv", index=False)
    found = fit_json(capsys, tmp_path / "t.csv", "--target", "side", "--model", "sparse", "--folds", 3)
    assert found["kind"] == "sparse"
    assert found["accuracy"] > 0.85
    assert found["why"] == "you chose model sparse"


def test_nothing_to_find(capsys):
    rng = np.random.default_rng(6)
    table = pd.DataFrame(rng.integers(0, 2, (300, 12))).add_prefix("b").assign(y=rng.normal(size=300))
    result = sa.fit_table(table, "y", model="sparse")
    assert not result.learned
    assert result.targets[0].terms == ()
    assert result.model.intercept_ == pytest.approx(table["y"].mean())


@pytest.mark.grid
def test_rows_of_ones_alone_are_bits():
    table = pd.DataFrame({"a": [0, 1, 1, 1, 1], "y": [0.0, 1.0, 2.0, 3.0, 4.0]})
    for model in ("auto", "sparse", "gp"):
        result = sa.fit_table(table, "y", model=model)  # outside of one fold, every bit is 1
        assert np.isfinite(result.predict(table)).all()


@pytest.mark.grid
def test_held_out_rows_are_predicted_by_searches_without_their_fold(chosen):
    table, target = planted(M, 1), chosen.targets[0]
    assert sorted(target.actual) == sorted(table["y"])
    assert r2_score(target.actual, target.predicted) == pytest.approx(target.r2.mean, abs=0.01)


def test_degrees_within_reach():
    for n, m in ((3, 50), (15, 26_000), (60, 5_000), (300, 20_000), (1000, 20_000), (5000, 130_000)):
        for degree in degrees_to_scan(n, m):
            assert degree <= n
            assert degree == 1 or n_subsets(n, degree, 1) * m <= PRODUCTS


def test_what_sparse_polynomials_refuse():
    table = planted(60, 5).assign(level=np.linspace(0, 1, 60), z=0.5, three=list("abc") * 20)
    table.loc[:30, "z"] = 1.0
    with pytest.raises(ValueError, match="a sparse polynomial takes one target, got 2"):
        sa.fit_table(table, ["y", "z"], ignore=["side", "three"], model="sparse")
    with pytest.raises(ValueError, match="there are columns of numbers"):
        sa.fit_table(table, "y", ignore=["side", "z", "three"], model="sparse")
    with pytest.raises(ValueError, match="there are more than two classes"):
        sa.fit_table(table, "three", ignore=["side", "z", "y", "level"], model="sparse")
    with pytest.raises(ValueError, match="degree 2 applies to low-degree models only, and model sparse"):
        sa.fit_table(table, "y", ignore=["side", "z", "three", "level"], model="sparse", degree=2)
