"""Measurement models of a table: when a bound is noticed, what competes, what is said, and what is kept."""

import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from commands import run
from grids import few_of

import sparsact as sa
from sparsact.fit.candidates import candidates
from sparsact.fit.candidates.latent import MeasurementCandidate
from sparsact.fit.options import FitOptions
from sparsact.reports.latent_figures import latent_chart, latent_frame

pytestmark = pytest.mark.usefixtures("few_rivals", "unrendered")


def behind_floor(share, seed=0, m=400, n=6):
    """An additive latent of columns of bits; y is pinned at a floor that hides a share of the rows."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (m, n))
    f = (1 - 2 * bits) @ np.array([2.0, -1.5, 1.0, 0.8, 0.5, 0.0])[:n]
    y = f + 0.3 * rng.normal(size=m)
    floor = np.quantile(y, share)
    return pd.DataFrame(bits, columns=list("abcdef")[:n]).assign(y=np.maximum(y, floor)), f, floor


@pytest.fixture(scope="module")
def fitted():
    table, _, _ = behind_floor(0.6)
    return sa.fit_table(table, "y", held_out_rows=True, folds=3)


@pytest.mark.grid
def test_a_floor_is_noticed_and_its_latent_chosen(fitted):
    _, _, floor = behind_floor(0.6)
    assert fitted.choices.kind == "latent"
    assert any("60% of the rows have 'y' at exactly" in note and "lowest" in note for note in fitted.encoding.notes)
    assert fitted.model.censoring_ == (floor, None)
    assert fitted.model.n_censored_ == 240
    assert "behind a floor at" in str(fitted)
    assert fitted.to_dict()["latent"]["bounds"] == (floor, None)


def test_an_additive_latent_has_no_significant_interaction(fitted):
    terms = {term.subset: term for term in fitted.targets[0].terms}
    for name, coefficient in zip("abcd", (2.0, -1.5, 1.0, 0.8), strict=True):
        term = terms[(name,)]
        assert term.significant
        assert abs(term.coefficient - coefficient) < term.high - term.low  # twice the reach of the interval
        assert term.effect == pytest.approx(-2 * term.coefficient)
    assert not any(term.significant for term in terms.values() if len(term.subset) > 1)


def test_polynomials_take_the_same_floor_for_interactions():
    """Why the measurement model is there."""
    table, _, _ = behind_floor(0.6)
    other = sa.fit_table(table, "y", model="low-degree")
    assert any(term.significant for term in other.targets[0].terms if len(term.subset) > 1)


@pytest.mark.grid
def test_no_bound_no_measurement_model():
    table, f, _ = behind_floor(0.6, m=60, n=4)
    table["y"] = f + np.random.default_rng(1).normal(size=len(f))
    result = sa.fit_table(table, "y", explain=False, folds=2)
    assert result.details.to_dict() == {}
    assert "a measurement model" not in [model.name for model in result.choices.models]
    asked = sa.fit_table(table, "y", link="monotone", explain=False, folds=2)
    assert "a measurement model" in [model.name for model in asked.choices.models]


@pytest.mark.grid
@pytest.mark.parametrize("n", few_of([5, 23], [23]))
def test_a_target_that_fits_better_as_a_logarithm_is_noted_and_its_logarithm_tried(n):
    """A product of factors is additive in its logarithm, whatever the number of columns."""
    rng = np.random.default_rng(8)
    bits = rng.integers(0, 2, (150, n))
    y = np.exp(3 + bits[:, :4] @ [1.5, -1.0, 0.7, 0.5] + 0.03 * rng.normal(size=150))
    result = sa.fit_table(pd.DataFrame(bits).add_prefix("c").assign(y=y), "y", explain=False, folds=2)
    assert any("its logarithm fits better" in note and "log_target=True" in note for note in result.encoding.notes)
    assert any(model.name == "a measurement model" for model in result.choices.models)
    latent = sa.fit_table(pd.DataFrame(bits).add_prefix("c").assign(y=y), "y", link="log", model="latent", folds=2)
    assert latent.model.degree_ == 1
    found = {term.subset[0]: term.effect for term in latent.targets[0].terms[:4]}
    assert found == pytest.approx({"c0": 1.5, "c1": -1.0, "c2": 0.7, "c3": 0.5}, abs=0.1)
    plain = sa.fit_table(pd.DataFrame(bits).add_prefix("c").assign(y=np.log(y)), "y", degree=1)
    assert not any("log_target=True" in note for note in plain.encoding.notes)


def test_the_report_draws_latent_and_measured(fitted, tmp_path):
    fitted.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Latent value and measurement" in page
    details = fitted.details
    frame = latent_frame((fitted.model, details.X, details.y, details.y == details.y.min()))
    assert frame["point"].count("at a bound") == 240
    assert frame["point"].count("measured") == 160
    axes = latent_chart.plot(frame).axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["measured", "at a bound", "without noise"]
    curve = np.array([y for y, point in zip(frame["measured"], frame["point"], strict=True) if point == "curve"])
    assert curve.min() == fitted.model.censoring_[0]
    assert (np.diff(curve) >= 0).all()


@pytest.mark.grid
def test_the_command_takes_link_and_bounds(tmp_path, capsys):
    table, _, floor = behind_floor(0.5, m=100)
    table.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "model.sparsact"
    words = [
        "fit",
        tmp_path / "t.csv",
        "--target",
        "y",
        "--censor",
        f"{float(floor)!r},",
        "--link",
        "auto",
        "--folds",
        2,
        "--out",
        out,
    ]
    said = json.loads(run(capsys, *words, "--model", "latent", "--json")[1])
    assert said["kind"] == "latent"
    assert said["latent"]["bounds"] == [pytest.approx(floor), None]
    predicted = pd.read_csv(StringIO(run(capsys, "predict", out, tmp_path / "t.csv")[1]))
    assert predicted[["y", "y_low"]].min(axis=None) >= floor
    assert type(sa.load(out)).__name__ == "LatentRegressor"


@pytest.mark.parametrize(
    ("censor", "expected"),
    [("auto", "auto"), ("none", "none"), ("7,", (7.0, None)), (",1.5", (None, 1.5)), ((0, 1), (0.0, 1.0))],
)
def test_bounds_are_spelled(censor, expected):
    assert FitOptions(target=("y",), censor=censor).censor == expected


@pytest.mark.parametrize("censor", ["7", "low,high", ",", "2,1", (1, 2, 3)])
def test_other_bounds_are_refused(censor):
    with pytest.raises(ValueError, match="censor"):
        FitOptions(target=("y",), censor=censor)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"model": "gp", "link": "log"}, "link and censor apply to measurement models, and model gp has neither"),
        ({"degree": 2, "censor": "0,"}, "link and censor apply to measurement models, and degree is given"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, line):
    with pytest.raises(ValueError, match=line):
        FitOptions(target=("y",), **options)


@pytest.mark.grid
def test_a_floor_that_leaves_a_fold_nothing_is_only_noted():
    table, _, _ = behind_floor(0.5, m=100)
    table["y"] = 0.0
    table.loc[:2, "y"] = [1.0, 2.0, 3.0]
    folds = sa.fit_table(table, "y", folds=2)
    assert any("97% of the rows have 'y' at exactly 0" in note for note in folds.encoding.notes)


@pytest.mark.grid
def test_tables_that_have_no_latent_are_refused():
    table, _, _ = behind_floor(0.5, m=60)
    with pytest.raises(ValueError, match=r"a measurement model needs a target of numbers, but these are classes"):
        sa.fit_table(table.assign(y=np.where(table["a"] > 0, "yes", "no")), "y", model="latent")
    with pytest.raises(ValueError, match=r"a measurement model fits one function of columns of bits"):
        sa.fit_table(table.assign(f=np.random.default_rng(0).normal(size=60)), "y", model="latent")
    with pytest.raises(ValueError, match=r"link and censor need one target of numbers"):
        sa.fit_table(table.assign(f=np.random.default_rng(0).normal(size=60)), "y", link="log")
    with pytest.raises(ValueError, match=r"no row is at the lower bound -99"):
        sa.fit_table(table, "y", model="latent", censor=(-99.0, None))


@pytest.mark.parametrize("floor", [100.0, 0.1 + 0.2, 7])
@pytest.mark.grid
def test_folds_of_a_log_link_know_floor_and_degree_of_the_whole(floor, monkeypatch):
    """The score is that of the model that is returned, and the report has all rows at the floor."""
    fits, degrees = [], {"low-degree": [], "gp": []}

    class Noted(sa.LatentRegressor):
        def fit(self, *rows):
            fits.append((super().fit(*rows).censoring_, self.link_))
            degrees[self.latent].append((self.degree, self.degree_))
            return self

    monkeypatch.setitem(candidates(), "latent", MeasurementCandidate(Noted))
    table, f, _ = behind_floor(0.5, m=120)
    table["y"] = np.maximum(np.exp(0.4 * f) * floor, floor)
    result = sa.fit_table(table, "y", model="latent", link="log", censor=(floor, None), folds=2)
    assert set(fits) == {((float(floor), None), "log")}
    for (requested, chosen), *of_folds in degrees.values():
        assert requested == "auto"
        assert of_folds == [(chosen, chosen)] * 2
    assert result.model.censoring_ == (floor, None)
    at_floor = (table["y"] == floor).sum()
    assert result.model.n_censored_ == at_floor > 0


@pytest.mark.grid
def test_floors_of_tables_in_single_precision_are_recognised():
    table, f, _ = behind_floor(0.5, m=120)
    table["y"] = np.maximum(f, 0.3).astype(np.float32)
    result = sa.fit_table(table, "y", model="latent", censor=(0.3, None), folds=2)
    assert result.model.n_censored_ == (f <= 0.3).sum()


@pytest.mark.grid
def test_limits_in_a_table_are_a_floor_for_the_bound_that_their_note_names(tmp_path):
    """Rows written as '<0.5', and rows measured below, give the model of a table that was clipped by hand."""
    table, _, _ = behind_floor(0.0, m=120, n=3)
    clipped = table.assign(y=np.maximum(table["y"], 0.5))
    written = table.assign(y=["<0.5" if y < 0.5 and i % 3 else repr(y) for i, y in enumerate(table["y"].tolist())])
    written.to_csv(tmp_path / "t.csv", index=False)
    options = {"model": "latent", "censor": "0.5,", "folds": 2, "explain": False}
    found, expected = sa.fit_table(tmp_path / "t.csv", "y", **options), sa.fit_table(clipped, "y", **options)
    np.testing.assert_array_equal(found.predict(table), expected.predict(table))
    assert found.model.n_censored_ == (table["y"] < 0.5).sum()
    notes = "\n".join(found.encoding.notes)
    assert "values such as '<0.5' are read as their limit; censor='0.5,' makes it a bound" in notes
    assert "of the rows have 'y' beyond the bounds of censor" in notes
    assert "beyond the bounds" not in "\n".join(expected.encoding.notes)


@pytest.mark.grid
@pytest.mark.usefixtures("one_rival")
def test_many_sites_that_saturate_together_are_learned_behind_a_sigmoid():
    """25 additive switches behind a logistic curve with noise: its effects have intervals, and it predicts better."""
    rng = np.random.default_rng(3)
    bits, effects = rng.integers(0, 2, (300, 25)), rng.normal(size=25)
    y = 1 / (1 + np.exp(-1.5 * (bits - 0.5) @ effects)) + 0.05 * rng.normal(size=300)
    result = sa.fit_table(pd.DataFrame(bits).add_prefix("c").assign(y=y), "y", folds=2)
    assert (result.choices.kind, result.model.link_) == ("latent", "sigmoid")
    assert "it predicts held-out rows best" in result.choices.reason
    known = {term.subset[0]: term for term in result.targets[0].terms if len(term.subset) == 1}
    shown = np.array([[known[f"c{i}"].effect_low, known[f"c{i}"].effect_high] for i in range(25)])
    inside = (shown[:, 0] <= 1.5 * effects) & (1.5 * effects <= shown[:, 1])
    assert inside.sum() >= 19  # of 25 intervals of 95 %, seven miss with probability 1.7e-4
    few = pd.DataFrame(bits[:, :20]).add_prefix("c").assign(y=y)
    assert "latent" not in {model.kind for model in sa.fit_table(few, "y", folds=2, explain=False).choices.models}
