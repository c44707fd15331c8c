"""Intervals by held-out rows: effects that rest on few rows, widths that follow the predicted value."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
from commands import run

import sparsact as sa
from sparsact.datasets import Encoding
from sparsact.datasets.table_summary import TableDesign
from sparsact.fit.effects import Background
from sparsact.fit.term import Term
from sparsact.statistics.conformal import LocalErrors
from sparsact.statistics.held_out_rows import CoefficientError, HeldOutRows


def random_rows(m, n, *, n_fitted=None, seed=0):
    rng = np.random.default_rng(seed)
    bits = rng.random((m, n)) < 0.3
    return HeldOutRows(bits, rng.normal(size=(m, 2)), rng.normal(size=(m, 2)), n_fitted or m)


@pytest.mark.parametrize("subset", [(), (2,), (0, 3), (0, 1, 2, 3, 4)])
def test_errors_of_a_coefficient_are_sums_over_its_cells(subset):
    """By a loop over all cells; some cells of the largest set are empty."""
    rows = random_rows(23, 6)
    errors, n_cells, share = rows.errors[:, 1], 2 ** len(subset), len({tuple(row) for row in rows.bits}) / 23
    distance = variance = spread = 0.0
    for cell in product((False, True), repeat=len(subset)):
        own = errors[[tuple(row) == cell for row in rows.bits[:, list(subset)]]]
        of_cell = max(1.0, n_cells / 23) * np.mean(errors**2)
        if count := len(own):
            unseen = max(0.0, 1 - count * share / 2 ** (6 - len(subset)))
            distance += (-1) ** sum(cell) * unseen * own.mean() / n_cells
            of_cell = unseen * (np.sum(own**2) + np.mean(errors**2)) / (count + 1) / count
        variance, spread = variance + of_cell / n_cells**2, spread + of_cell**2 / max(1, count) / n_cells**4
    found = rows.coefficient_error(subset, 1)
    assert found.distance == pytest.approx(max(0.0, distance**2 - variance) ** 0.5)
    assert (found.deviation, found.freedom) == pytest.approx((variance**0.5, variance**2 / spread))
    assert rows.n_on(subset) == sum(all(row[i] for i in subset) for row in rows.bits)


def test_a_sample_of_the_rows_counts_no_cells_and_errs_as_all_rows_would():
    rows, part = random_rows(200, 40), random_rows(200, 40, n_fitted=800)
    whole, found = (one.coefficient_error((0, 1)) for one in (rows, part))
    assert part.n_on((0, 1)) is None
    assert found == pytest.approx((whole.distance, whole.deviation / 2, whole.freedom))


def test_a_missed_corner_is_in_the_distance_of_each_of_its_effects():
    """Errors of 1 in one of 32 combinations of five columns: each product of these is off by 1 / 32, no other one."""
    rng = np.random.default_rng(2)
    bits = rng.random((3_000, 16)) < 0.5
    errors = bits[:, :5].all(axis=1).astype(float)[:, None]
    rows = HeldOutRows(bits, 0 * errors, errors, 3_000)
    for subset in [(0,), (1, 4), (0, 1, 2, 3, 4)]:
        assert rows.coefficient_error(subset).distance == pytest.approx(1 / 32, abs=0.012)  # 4 errors
    assert rows.coefficient_error((5, 6)).distance < 0.012


def test_a_complete_cube_leaves_nothing_open():
    bits = np.array(list(product((False, True), repeat=4)) * 2)
    rows = HeldOutRows(bits, np.zeros((32, 1)), np.random.default_rng(1).normal(size=(32, 1)), 32)
    assert rows.coefficient_error((0, 2))[:2] == pytest.approx((0.0, 0.0))


def test_errors_of_any_size_and_of_none():
    rows = random_rows(31, 3)
    largest, none = (HeldOutRows(rows.bits, rows.predicted, rows.errors * size, 31) for size in (1e300, 0.0))
    assert largest.coefficient_error((0,)).deviation == pytest.approx(1e300 * rows.coefficient_error((0,)).deviation)
    assert none.coefficient_error((0, 1)) == (0.0, 0.0, np.inf)
    assert rows.coefficient_error((0,), target=2) is None


def test_an_interval_matches_a_t_distribution_and_is_never_narrower_than_the_models():
    term = Term(("a",), 1.0, 1 - 1.96, 1 + 1.96, q_value=0.3, joint_low=-3.0, joint_high=5.0, n_bits=1, n_rows=7)
    assert term.widened(CoefficientError(0.0, 0.0, np.inf), 20) is term
    weak = term.widened(CoefficientError(0.0, 1e-3, 5.0), 1)
    assert (weak.low, weak.joint_high) == (pytest.approx(term.low, abs=1e-4), 5.0)
    assert weak.q_value == pytest.approx(2 * scipy.stats.norm.sf(1.0), rel=1e-3)
    wide = term.widened(CoefficientError(0.0, 2.0, 3.0), 20)
    assert wide.high == pytest.approx(1 + 2 * scipy.stats.t.ppf(0.975, 3))
    assert wide.joint_high == pytest.approx(1 + 2 * scipy.stats.t.ppf(1 - 0.05 / 40, 3))
    assert wide.q_value == pytest.approx(2 * scipy.stats.t.sf(0.5, 3))
    both = term.widened(CoefficientError(3.0, 4.0, 10.0), 20)
    assert both.high == pytest.approx(1 + 5 * scipy.stats.t.ppf(0.975, 10 * (5 / 4) ** 4))


def test_rows_travel_as_a_text_and_nonsense_is_refused():
    rows = random_rows(19, 11, n_fitted=40)
    back = HeldOutRows.from_text(rows.to_text())
    for name in ("bits", "predicted", "errors", "n_fitted"):
        np.testing.assert_array_equal(getattr(back, name), getattr(rows, name))
    few = HeldOutRows(rows.bits, rows.predicted, rows.errors, 5).to_text()
    nothing = HeldOutRows(rows.bits, rows.predicted, rows.errors * np.nan, 19).to_text()
    for text in ("", "?", rows.to_text()[:40], "eJwDAAAAAAE=", few, nothing):
        with pytest.raises(ValueError, match="held-out rows"):
            HeldOutRows.from_text(text)


def test_the_design_of_an_earlier_version_has_one_width():
    old = {"n_bits": 3, "pairs": "", "low": [], "high": [], "errors": [[1.0, 3.0, 2.0, 4.0]]}
    design = TableDesign.from_dict(old)
    reached = [design.held_out.reach(0, np.array([-9.0, 9.0]), p).tolist() for p in (0.2, 0.21, 0.8, 0.81)]
    assert reached == [[one] * 2 for one in (1.0, 2.0, 4.0, np.inf)]
    assert design.held_out.coefficient_error((0,)) is None


def test_widths_follow_the_predicted_value():
    """Noise of 5 % of the value: each fifth of 4,000 new rows is inside in 92 to 98 % (5 errors: 1e-4 each)."""
    rng = np.random.default_rng(4)
    predicted, new = (np.exp(rng.uniform(0, 3, size)) for size in (2_000, 4_000))
    local = LocalErrors(predicted, 0.05 * predicted * rng.normal(size=2_000))
    inside = np.abs(0.05 * new * rng.normal(size=4_000)) <= local.reach(new, 0.95)
    for part in np.array_split(new.argsort(), 5):
        assert 0.92 < inside[part].mean() < 0.98
    assert np.isinf(LocalErrors(predicted[:9], predicted[:9]).reach(new[:2], 0.95)).all()
    assert (LocalErrors(predicted, 0 * predicted).reach(new, 0.95) == 0).all()
    far, near = (LocalErrors(predicted, size * predicted).reach(new, 0.95) for size in (1e306, 1.0))
    np.testing.assert_allclose(far / 1e306, near)


@pytest.fixture(scope="module")
def one_row(tmp_path_factory):
    """Columns a and b meet in one row of 140, whose target is far from all others."""
    rng = np.random.default_rng(3)
    bits = rng.random((140, 6)) < 0.3
    bits[:, 1] &= ~bits[:, 0]
    bits[17, :2] = True
    y = bits @ [0.0, 0.2, 2.0, -3.0, 0, 0] + 0.2 * rng.normal(size=140)
    y[17] += 7
    path = tmp_path_factory.mktemp("one") / "t.csv"
    text = "\n".join(",".join(map(str, [*row.astype(int), value])) for row, value in zip(bits, y, strict=True))
    path.write_text(f"a,b,c,d,e,f,y\n{text}\n")
    return path


@pytest.mark.parametrize("model", ["low-degree", "sparse"])
def test_one_row_proves_no_interaction(one_row, tmp_path, capsys, model):
    out = str(tmp_path / "m.sparsact")
    words = [str(one_row), "--target", "y", "--model", model, "--degree", "2"][: 5 if model == "sparse" else None]
    status, text, _ = run(capsys, "fit", *words, "--out", out)
    assert status == 0
    assert "rests on" in text
    found = json.loads(run(capsys, "inspect", out, "--json", "--top", "60")[1])["targets"][0]["terms"]
    pair = next((term for term in found if term["columns"] == ["a", "b"]), None)
    assert pair is None or (pair["rows"] == 1 and not pair["significant"] and pair["effect_low"] < 0)
    alone = next(term for term in found if term["columns"] == ["d"])
    assert alone["significant"]
    assert "rows" in run(capsys, "inspect", out)[1]


def test_rows_and_widths_are_saved_with_the_table(one_row):
    result = sa.fit_table(one_row, "y", model="low-degree", degree=2)
    design = Encoding.from_json(result.model.table_encoding_).design
    data = np.loadtxt(one_row, delimiter=",", skiprows=1)
    np.testing.assert_array_equal(design.held_out.bits, data[:, :6] == 1)
    np.testing.assert_allclose(design.held_out.predicted + design.held_out.errors, data[:, 6:], rtol=1e-12)
    found = sa.predict_table(result, pa.table({name: data[:, i] for i, name in enumerate("abcdef")}))
    width = (found["y_high"].to_numpy() - found["y_low"].to_numpy()) / 2
    np.testing.assert_allclose(width, design.held_out.reach(0, found["y"].to_numpy(), 0.95))


@pytest.fixture(scope="module")
def of_letters():
    """A polynomial of five sites of letters, at its most frequent letters."""
    rng = np.random.default_rng(7)
    X = rng.choice(list("AAACG"), (90, 5))
    table = pa.table({"seq": list(map("".join, X)), "y": (X == "C").sum(axis=1) + rng.normal(size=90)})
    return sa.fit_table(table, "y", model="low-degree", degree=1, wild_type="AAAAA", folds=3)


def with_errors(result, errors):
    """The reference of a fit whose held-out rows are its own, with other errors, and their letters (m, sites)."""
    design = result.encoding.design
    rows = replace(design.held_out, errors=errors)
    encoding = replace(result.encoding, design=replace(design, rows=rows.to_text()))
    return Background.of(result.model, encoding), encoding.codes(rows.bits)


@pytest.mark.parametrize("changes", [((1, 1),), ((4, 2),), ((0, 1), (3, 2))])
def test_the_distance_of_an_effect_is_a_sum_over_settings_of_its_sites(of_letters, changes):
    """By a loop over all settings: a point that is a row is known, and one without rows has the error of all rows."""
    errors = np.random.default_rng(8).normal(3.0, 1.0, (90, 1)) * np.arange(90)[:, None] / 45
    background, codes = with_errors(of_letters, errors)
    sites, n_cells, distance, variance = [site for site, _ in changes], 2 ** len(changes), 0.0, 0.0
    for made in product((False, True), repeat=len(changes)):
        point = background.codes.copy()
        for (site, letter), change in zip(changes, made, strict=True):
            point[site] = letter if change else point[site]
        here = (codes[:, sites] == point[sites]).all(axis=1)
        own = errors[here, 0]
        if (codes == point).all(axis=1).any():
            continue
        if here.any():
            distance += (-1) ** (len(changes) - sum(made)) * own.mean()
            variance += (np.sum(own**2) + np.mean(errors**2)) / (len(own) + 1) / len(own)
        else:
            variance += max(1.0, n_cells / 90) * np.mean(errors**2)
    expected = max(0.0, distance**2 - variance) ** 0.5
    assert background.distance(changes, 0) == pytest.approx(expected)
    own = background.deviations(*background.batch([changes]))[0, 0]
    assert background.effect_deviations([changes], 0)[0] == pytest.approx(np.hypot(own, expected))


def test_what_a_model_has_missed_of_a_letter_widens_its_effect_alone(of_letters):
    """Errors of 9 in the rows with one letter, and of .1 in all: the distance is 9 but for its noise, others none."""
    rows = of_letters.encoding.codes(of_letters.encoding.design.held_out.bits)
    noise = 0.1 * np.random.default_rng(9).normal(size=(90, 1))
    background, _ = with_errors(of_letters, noise + 9.0 * (rows[:, [2]] == 1))
    assert background.distance(((2, 1),), 0) == pytest.approx(9.0, rel=0.1)
    assert background.distance(((2, 2),), 0) < 0.5
    assert background.distance(((2, 1),), 1) == 0.0  # a target without errors
