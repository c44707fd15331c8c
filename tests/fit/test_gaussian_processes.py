"""Gaussian processes as models of a table: where they are tried, chosen, described and kept."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from commands import run
from sklearn.metrics import r2_score

import sparsact as sa
from sparsact.fit.candidates import candidates
from sparsact.fit.candidates.gp import TERMS, ProcessCandidate
from sparsact.fourier import Spectrum
from sparsact.hypercube import points

N = 9


def landscape(seed, n=N):
    """All points of a function with coefficients of all sizes, smaller ones for larger sets; and its spectrum."""
    rng, X = np.random.default_rng(seed), points(n)
    sizes = (X < 0).sum(axis=1)
    coefficients = rng.normal(size=2**n) * 0.45**sizes * (sizes > 0)
    f = Spectrum.from_coefficients(coefficients)
    table = pd.DataFrame((1 - X) // 2, columns=[f"b{i}" for i in range(n)])
    return table.assign(y=f(X) + 0.1 * rng.normal(size=2**n)), f


@pytest.fixture(scope="module")
def chosen():
    table, _ = landscape(0)
    return sa.fit_table(table.sample(frac=0.4, random_state=0), "y", model="gp", folds=3)


@pytest.mark.grid
def test_a_smooth_landscape_is_predicted_by_a_process(chosen):
    assert chosen.choices.kind == "gp"
    process, polynomial = chosen.choices.models[:2]
    assert process.r2.mean > polynomial.r2.mean
    table, f = landscape(0)
    others = table.drop(table.sample(frac=0.4, random_state=0).index)
    assert r2_score(f(1 - 2 * others.drop(columns="y").to_numpy()), chosen.predict(others)) > 0.8
    assert " by a Gaussian process; " in chosen.verdict
    assert "posterior means with 95 % posterior intervals" in str(chosen)


def n_held(result, f):
    """Number of the forty terms whose interval holds the coefficient of the function."""
    held, terms = 0, result.targets[0].terms
    assert len(terms) == TERMS
    for term in terms:
        subset = tuple(int(name[1:]) for name in term.subset)
        assert term.coefficient == pytest.approx(result.model.spectrum_[subset])
        assert term.effect == pytest.approx((-2) ** len(subset) * term.coefficient)
        held += term.low <= f[subset] <= term.high
    return held


def test_effects_are_scaled_coefficients_and_their_intervals_hold_them(chosen):
    """At 95 %, fewer than 31 of forty hold with probability below 1e-4."""
    assert n_held(chosen, landscape(0)[1]) >= 31


@pytest.mark.grid
def test_intervals_of_many_landscapes_hold_the_coefficients():
    held = 0
    for seed in range(8):
        table, f = landscape(seed)
        held += n_held(sa.fit_table(table.sample(frac=0.5, random_state=0), "y", model="gp"), f)
    assert held >= 283


@pytest.mark.usefixtures("unrendered")
def test_the_page_and_the_command_tell_what_is_special(chosen, tmp_path, capsys):
    chosen.save(tmp_path / "model.sparsact")
    chosen.report(tmp_path / "page.html")
    assert "posterior means" in (tmp_path / "page.html").read_text()
    code, said, _ = run(capsys, "inspect", tmp_path / "model.sparsact", "--top", 4)
    assert code == 0
    assert f"{N} columns and {len(chosen.model.X_train_)} distinct rows" in " ".join(said.split())


def test_held_out_rows_are_predicted_by_processes_without_their_fold(chosen):
    target = chosen.targets[0]
    assert r2_score(target.actual, target.predicted) == pytest.approx(target.r2.mean, abs=0.02)
    assert target.r2.mean < 1 - 0.001


@pytest.mark.grid
def test_weights_of_a_whole_cube_match_the_spectrum(chosen):
    assert chosen.targets[0].weights == ()
    result = sa.fit_table(landscape(0, 7)[0], "y", model="gp", folds=2)
    coefficients = dict(result.model.spectrum_.items())
    expected = [sum(c**2 for S, c in coefficients.items() if len(S) == size) for size in range(1, 8)]
    assert result.targets[0].weights == pytest.approx(expected)


@pytest.mark.grid
def test_many_rows_are_sampled(monkeypatch):
    monkeypatch.setitem(candidates(), "gp", ProcessCandidate(most_rows=100))
    result = sa.fit_table(landscape(1)[0], "y", model="gp", folds=2)
    assert len(result.model.X_train_) == 100
    assert len(result.targets[0].actual) == 100


def test_what_processes_refuse():
    table = landscape(2)[0].head(64).assign(z=0.5, kind=["a", "b"] * 32, level=np.linspace(0, 1, 64))
    table.loc[:30, "z"] = 1.0
    with pytest.raises(ValueError, match="a Gaussian process takes one target, got 2"):
        sa.fit_table(table, ["y", "z"], ignore=["kind", "level"], model="gp")
    with pytest.raises(ValueError, match="there are columns of numbers"):
        sa.fit_table(table, "y", ignore=["kind", "z"], model="gp")
    with pytest.raises(ValueError, match=r"needs numbers to predict .*, but these are classes; choose model sparse"):
        sa.fit_table(table, "kind", ignore=["y", "z", "level"], model="gp")
    wide = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (50, 65))).add_prefix("c").assign(y=np.arange(50.0))
    with pytest.raises(ValueError, match="at most 64 columns of bits, but there are 65"):
        sa.fit_table(wide, "y", model="gp")


@pytest.mark.grid
def test_more_columns_than_a_spectrum_has(tmp_path):
    """Posterior effects of one and two columns, by covariances with the rows; the same from the file."""
    rng, n = np.random.default_rng(4), 26
    bits = rng.integers(0, 2, (150, n))
    signs = 1 - 2 * bits
    y = 2.0 * signs[:, 3] - 1.5 * signs[:, 7] + signs[:, 3] * signs[:, 20] + 0.1 * rng.normal(size=150)
    table = pd.DataFrame(bits).add_prefix("b").assign(y=y)
    result = sa.fit_table(table.head(120), "y", model="gp")
    first = result.targets[0].terms[:3]
    assert [term.subset for term in first] == [("b3",), ("b7",), ("b3", "b20")]
    for term, truth in zip(first, (2.0, -1.5, 1.0), strict=True):
        assert term.low < truth < term.high
    assert r2_score(y[120:], result.predict(table.tail(30))) > 0.8
    assert result.targets[0].posterior_shares == ()
    result.save(tmp_path / "model.sparsact")
    again = sa.load(tmp_path / "model.sparsact")
    np.testing.assert_allclose(again.predict(bits[120:].astype(bool)), result.predict(table.tail(30)), rtol=1e-12)


@pytest.mark.grid
def test_many_rows_of_more_columns_take_inducing_points(monkeypatch):
    """Held-out rows are predicted from the other folds, without a fit to each."""

    def process(kernel, **options):
        model = sa.CubeGPRegressor(kernel, max_inducing=60, **options)
        model._most_direct_rows = 100
        return model

    monkeypatch.setitem(candidates(), "gp", ProcessCandidate(process, most_dense_rows=100))
    rng, n = np.random.default_rng(5), 24
    bits = rng.integers(0, 2, (400, n))
    signs = 1 - 2 * bits
    y = 2.0 * signs[:, 3] + signs[:, 3] * signs[:, 20] + 0.5 * rng.normal(size=400)
    result = sa.fit_table(pd.DataFrame(bits).add_prefix("b").assign(y=y), "y", model="gp", folds=4)
    assert result.model.n_inducing_ == 60
    (target,) = result.targets
    errors = np.asarray(target.actual) - np.asarray(target.predicted)
    assert 0.2 < np.mean(errors**2) < 0.4  # the noise has .25; fitted rows err less
    assert [term.subset for term in target.terms[:2]] == [("b3",), ("b3", "b20")]
    assert target.terms[1].low < 1.0 < target.terms[1].high


def test_rows_that_processes_learn_from_are_bounded_by_the_size_of_the_cube():
    assert [ProcessCandidate().rows_for(n) for n in (10, 16, 18, 20, 21, 64)] == [
        30_000,
        30_000,
        8_192,
        2_048,
        12_000,
        12_000,
    ]


def test_the_posterior_shares_of_degrees_match_the_process():
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2, (60, 5))
    table = pa.table({name: bits[:, i] for i, name in enumerate("abcde")} | {"y": bits[:, 0] + rng.normal(size=60)})
    result = sa.fit_table(table, "y", model="gp")
    shares = result.model.variance_decomposition(200).shares
    found = np.array(result.targets[0].posterior_shares)
    np.testing.assert_array_equal(found[:, 0], shares.mean()[: len(found)])
    np.testing.assert_array_equal(found[:, 1:], shares.interval()[: len(found)])
    assert (shares.interval()[len(found) :, 1] < 0.001).all()
    assert result.to_dict()["targets"][0]["posterior_shares"][0]["low"] == found[0, 1]
