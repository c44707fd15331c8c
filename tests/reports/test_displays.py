"""Pictures in scikit-learn's style: what they draw is what they were given, on the axes that they were given."""

import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from matplotlib.figure import Figure
from summaries import summary

import sparsact as sa
from sparsact.fourier import Spectrum, anova, interactions
from sparsact.reports.effect_figures import interactions_chart
from sparsact.reports.fit_figures import weights_chart

SPECTRUM = Spectrum.of({(): 3.0, (0,): 0.5, (1, 2): -2.0, (0, 1, 2): 0.25}, n=3)
NAMES = ("gly", "ala", "val")


@pytest.fixture
def axes():
    return Figure().subplots()


def dots(axes):
    return [line.get_xdata()[0] for line in axes.lines if line.get_marker() in ("o", "s") and len(line.get_xdata())]


def test_a_spectrum_shows_its_largest_coefficients(axes):
    found = SPECTRUM.plot(n_terms=2, feature_names=NAMES, ax=axes)
    assert isinstance(found, sa.SpectrumDisplay)
    assert (found.ax_, found.figure_) == (axes, axes.figure)
    assert dots(axes) == [-2.0, 0.5]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ala × val", "gly"]


def test_an_estimator_shows_its_intervals(axes):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (60, 3)), columns=NAMES)
    model = sa.LowDegreeRegressor(2).fit(X, X["gly"] + rng.normal(size=60))
    found = sa.SpectrumDisplay.from_estimator(model, ax=axes)
    top = model.spectrum_.top(6, min_degree=1)
    np.testing.assert_array_equal(found.values, [value for _, value in top])
    bounds = model.confidence_intervals([subset for subset, _ in top])
    np.testing.assert_array_equal(np.transpose([found.low, found.high]), bounds)
    bars = [line.get_xdata() for line in axes.lines if line.get_linewidth() == 2.2]
    np.testing.assert_array_equal(bars, bounds)
    assert found.labels[0] == " × ".join(NAMES[i] for i in top[0][0])
    whole = sa.LowDegreeRegressor(3).fit(X[:4], rng.normal(size=4))  # nothing left to judge by
    assert set(sa.SpectrumDisplay.from_estimator(whole).low) == {None}


def test_interactions_are_a_heat_map_or_a_network(axes):
    found = interactions(SPECTRUM, "BII", order=2)
    shown = found.plot(feature_names=NAMES, ax=axes)
    expected = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            expected[i, j] = found[(i,)] if i == j else found[(i, j)]
    np.testing.assert_array_equal(shown.values, expected)
    np.testing.assert_array_equal(axes.images[0].get_array(), expected)
    assert axes.images[0].get_clim() == (-np.abs(expected).max(), np.abs(expected).max())
    network = shown.plot(kind="network").ax_
    n_pairs = sum(expected[i, j] != 0 for i, j in [(0, 1), (0, 2), (1, 2)])
    assert len(network.lines) == n_pairs
    assert [text.get_text() for text in network.texts] == list(NAMES)
    widest = max(network.lines, key=lambda line: line.get_linewidth())
    assert {round(x, 6) for x in widest.get_xdata()} == {round(np.sin(2 * np.pi * i / 3), 6) for i in (1, 2)}
    with pytest.raises(ValueError, match="`kind` is 'heatmap' or 'network'; got 'ring'"):
        shown.plot(kind="ring")


def test_variance_by_degree_has_the_bands_of_the_posterior(axes):
    found = sa.VarianceDisplay.from_spectrum(SPECTRUM, ax=axes)
    np.testing.assert_allclose(found.shares, np.array([0.25, 4.0, 0.0625]) / 4.3125)
    assert [bar.get_height() for bar in axes.patches] == pytest.approx(found.shares)
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (40, 4))
    model = sa.CubeGPRegressor(random_state=0).fit(X, X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=40))
    shown = sa.VarianceDisplay.from_estimator(model)
    shares = model.variance_decomposition().shares
    m = len(shown.shares)
    np.testing.assert_array_equal(shown.shares, shares.mean()[:m])
    np.testing.assert_array_equal(np.transpose([shown.low, shown.high]), shares.interval()[:m])
    (segments,) = (c.get_segments() for c in shown.ax_.collections)
    np.testing.assert_allclose([s[:, 1] for s in segments], shares.interval()[:m])


def test_figures_of_the_report_are_the_same_pictures():
    target = summary().targets[0]
    (axes, *_) = interactions_chart.plot(interactions_chart.frame(target)).axes
    ranked = sorted(target.terms, key=lambda term: -abs(term.coefficient))
    assert dots(axes)[: len(ranked)] == [term.effect for term in ranked]
    (axes,) = weights_chart.plot(weights_chart.frame(target)).axes
    assert [bar.get_height() for bar in axes.patches] == [weight / target.variance for weight in target.weights]


def test_frames_hold_what_is_listed(monkeypatch):
    frame = SPECTRUM.to_frame(feature_names=NAMES)
    assert frame.columns.tolist() == ["subset", "size", "coefficient"]
    assert frame.iloc[1].tolist() == [("ala", "val"), 2, -2.0]
    found = interactions(SPECTRUM, "SII", order=2)
    listed = dict(zip(found.to_frame()["subset"], found.to_frame()["value"], strict=True))
    assert listed == dict(found.top(len(found.subsets)))
    bits = np.random.default_rng(2).integers(0, 2, (50, 3))
    table = pa.table({name: bits[:, i] for i, name in enumerate(NAMES)} | {"y": bits[:, 0] - bits[:, 2]})
    result = sa.fit_table(table, "y", degree=1)
    terms = result.to_frame()
    assert terms.to_dict("records")[0] == {"target": "y"} | result.targets[0].terms[0].to_dict()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="`to_frame` needs the package pandas: pip install pandas"):
        SPECTRUM.to_frame()


def test_letters_share_columns_or_stand_in_their_cells(axes):
    values = [[0.0, 3.0, 6.0], [0.0, 1.0, 2.0]]
    found = anova(values).plot(letters=["BA", "ABC"], feature_names=["x", "y"], ax=axes)
    assert isinstance(found, sa.LettersDisplay)
    columns, cells = found.table()
    assert columns == ["A", "B", "C"]
    np.testing.assert_allclose(cells, [[-1, 1, np.nan], [-2, 0, 2]])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "y"]
    apart = sa.LettersDisplay.from_anova(anova(values), letters=[["red", "blue"], ["low", "high", "mid"]])
    assert apart.table()[0] == []
    assert {text.get_text() for text in apart.ax_.texts} == {"red", "blue", "low", "high", "mid"}
    with pytest.raises(ValueError, match=r"2 sites of \[1, 3\] letters are named, but effects have \[2, 3\]"):
        anova(values).plot(letters=["A", "ABC"])


@pytest.mark.grid
def test_letters_of_a_regressor():
    X = [a + b for a in "ACGT" for b in "AC"]
    model = sa.LettersRegressor(random_state=0).fit(X, [float("ACGT".index(text[0])) for text in X])
    drawn = sa.LettersDisplay.from_estimator(model)
    np.testing.assert_allclose(drawn.effects[0], model.anova().component((0,)))
    assert drawn.letters == [list(site) for site in model.letters_]


def test_variances_of_components(axes):
    """By hand: of 3 x 2 cells, equally frequent."""
    found = anova([[0.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(sa.VarianceDisplay.from_anova(found, ax=axes).shares, [0.6, 0.4])
    np.testing.assert_allclose(sa.InteractionsDisplay.from_anova(found).values, [[0.2, 0.4], [0.4, 0.4]])
