"""Many effects at once: q-values, intervals that hold for all, and the ceiling that replicates show."""

from dataclasses import replace
from itertools import combinations
from math import prod

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats

import sparsact as sa
from sparsact.fit.explain import q_values, terms
from sparsact.fit.scores import noise_ceiling

NAMES = "abcdef"


def table(bits, y):
    return pa.table({name: bits[:, i] for i, name in enumerate(NAMES)} | {"y": y})


def step_up(p):
    """Benjamini and Hochberg's q-values by their definition: the least level at which an effect is rejected."""
    p, m = np.asarray(p), len(p)
    found = np.empty(m)
    for i in range(m):
        found[i] = min(min(1.0, m * threshold / np.sum(p <= threshold)) for threshold in p if threshold >= p[i])
    return found


def test_q_values_and_joint_intervals_match_the_t_tests():
    rng = np.random.default_rng(8)
    bits = rng.integers(0, 2, (113, 6))
    monomials = [subset for size in range(3) for subset in combinations(range(6), size)]
    design = np.array([[prod(1 - 2 * row[i] for i in subset) for subset in monomials] for row in bits])
    y = design[:, 1] + 0.3 * design[:, 7] + 0.2 * design[:, 9] + rng.normal(0, 1, 113)
    result = sa.fit_table(table(bits, y), "y", degree=2, alpha=0.0)
    found = terms(result.model, 0, replace(result.encoding, design=None))  # by the model alone
    coefficients, rest, *_ = np.linalg.lstsq(design, y)
    freedom = 113 - len(monomials)
    error = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * rest / freedom)
    p = 2 * scipy.stats.t.sf(np.abs(coefficients) / error, freedom)[1:]
    q = dict(zip(monomials[1:], step_up(p), strict=True))
    wide = scipy.stats.t.ppf(1 - 0.05 / len(p) / 2, freedom) * error
    for term, wider in zip(found, result.targets[0].terms, strict=True):
        subset = tuple(NAMES.index(name) for name in term.subset)
        assert wider.low <= term.low < term.high <= wider.high
        assert wider.q_value >= term.q_value
        place = monomials.index(subset)
        assert term.q_value == pytest.approx(q[subset], rel=1e-6)
        assert term.significant == (q[subset] <= 0.05)
        expected = coefficients[place] + wide[place] * np.array([-1, 1])
        assert (term.joint_low, term.joint_high) == pytest.approx(expected, rel=1e-8)
        assert sorted(np.array(term.joint) / (-2) ** len(subset)) == pytest.approx(expected, rel=1e-8)
    told = result.to_dict()["targets"][0]["terms"][0]
    assert told["q_value"] == result.targets[0].terms[0].q_value


def test_few_discoveries_are_false():
    """Over 60 tables with three true effects among 21: the mean share of false ones is below 5 %, and all are found."""
    shares, found, covered = [], 0, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        bits = rng.integers(0, 2, (150, 6))
        s = 1 - 2 * bits
        y = s[:, 0] + 0.8 * s[:, 1] * s[:, 2] - 0.6 * s[:, 3] + rng.normal(size=150)
        model = sa.LowDegreeRegressor(2).fit(bits, y)
        q, _ = q_values(model, 0, np.arange(21))
        truth = {(0,): 1.0, (1, 2): 0.8, (3,): -0.6}
        named = {subset for subset, value in zip(model.subsets_, q, strict=True) if value <= 0.05}
        shares.append(len(named - truth.keys()) / max(1, len(named)))
        found += len(named & truth.keys())
        bounds = model.confidence_intervals(None, 1 - 0.05 / 21)
        true = np.array([truth.get(subset, 0.0) for subset in model.subsets_])
        covered += bool(((bounds[:, 0] <= true) & (true <= bounds[:, 1])).all())
    assert np.mean(shares) < 0.05 + 2 * np.std(shares) / np.sqrt(60)
    assert found == 180
    assert covered >= 54


def test_changes_of_letters_are_tested_though_the_bits_of_a_site_are_not_identified():
    """With a bit for each of three letters their coefficients are open, and differences of two letters are not."""
    bits = np.random.default_rng(1).integers(0, 2, (60, 6))
    kinds = np.array(["u", "v", "w"])[bits[:, 0] + bits[:, 1]]
    y = bits[:, 2] + np.random.default_rng(2).normal(size=60)
    data = pa.table({"kind": kinds, "c": bits[:, 2], "y": y})
    result = sa.fit_table(data, "y", degree=1, alpha=0.0)
    X = np.column_stack([np.ones(60), kinds == "u", kinds == "w", bits[:, 2] == 0])
    found = {term.label: (term.effect, term.q_value is not None) for term in result.targets[0].terms}
    least_squares = np.linalg.lstsq(X, y, rcond=None)[0][1:]
    expected = dict(zip(("kind=v→u", "kind=v→w", "c=1→0"), least_squares, strict=True))
    assert {label: effect for label, (effect, _) in found.items()} == pytest.approx(expected)
    assert all(tested for _, tested in found.values())


@pytest.mark.grid
def test_signs_of_a_process_are_as_sure_as_they_say():
    """With effects drawn from the prior, wrong signs among significant ones are at most half of the q-value."""
    wrong = named = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        coefficients = rng.normal(size=64) * 0.5 ** np.array([bin(i).count("1") for i in range(64)])
        bits = np.array([[(i >> j) & 1 for j in range(6)] for i in range(64)])
        signs = np.array([[(-1.0) ** (np.bitwise_count(np.array(i & k))) for k in range(64)] for i in range(64)])
        rows = rng.permutation(64)[:48]
        y = (signs @ coefficients)[rows] + 0.3 * rng.normal(size=48)
        result = sa.fit_table(table(bits[rows], y), "y", model="gp", folds=2)
        for term in result.targets[0].terms:
            if term.significant:
                true = coefficients[sum(1 << NAMES.index(name) for name in term.subset)]
                named, wrong = named + 1, wrong + (true * term.coefficient < 0)
    assert named > 30
    assert wrong / named < 0.025 + 2 * np.sqrt(0.025 / named)


# ---- the ceiling ----


def test_the_ceiling_follows_from_an_analysis_of_variance():
    """By the mean square within points; with the mean square between them it gives the F statistic of scipy."""
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2, (80, 3))
    y = bits @ [1.0, 2.0, 3.0] + rng.normal(size=80)
    found = noise_ceiling(bits.astype(np.uint8), y, np.ones(80))
    points = [y[(bits == point).all(axis=1)] for point in np.unique(bits, axis=0)]
    within = sum((len(one) - 1) * one.var(ddof=1) for one in points if len(one) > 1) / found.degrees_of_freedom
    between = sum(len(one) * (one.mean() - y.mean()) ** 2 for one in points) / (len(points) - 1)
    assert between / within == pytest.approx(scipy.stats.f_oneway(*points).statistic)
    assert found.degrees_of_freedom == 80 - len(points)
    assert found.r2.value == pytest.approx(1 - within / y.var())


def test_the_interval_of_the_ceiling_covers():
    rng, inside, bits = np.random.default_rng(4), 0, np.repeat(np.eye(8, dtype=np.uint8), 6, axis=0)
    f = np.repeat(np.arange(8.0), 6)
    for _ in range(400):
        y = f + rng.normal(size=48)
        found = noise_ceiling(bits, y, np.ones(48))
        inside += found.r2.low <= 1 - 1 / y.var() <= found.r2.high
    assert 0.92 < inside / 400 < 0.98


def test_weights_count_in_the_ceiling():
    """Rows of half of the deviation and four times the weight have the ceiling of equal rows."""
    rng = np.random.default_rng(5)
    bits = np.repeat(np.eye(50, dtype=np.uint8), 40, axis=0)
    sigma = np.where(rng.random(2000) < 0.5, 0.5, 1.0)
    y = np.repeat(rng.normal(size=50), 40) + sigma * rng.normal(size=2000)
    w = sigma**-2 / np.mean(sigma**-2)
    expected = 1 - (1 / np.mean(sigma**-2)) / np.average((y - np.average(y, weights=w)) ** 2, weights=w)
    assert noise_ceiling(bits, y, w).r2.value == pytest.approx(expected, abs=0.01)


def test_the_summary_tells_the_ceiling_where_there_are_replicates():
    rng = np.random.default_rng(6)
    bits = rng.integers(0, 2, (200, 4))
    y = bits[:, 0] + 0.5 * rng.normal(size=200)
    result = sa.fit_table(table(np.hstack([bits, bits[:, :2]]), y), "y", model="low-degree")
    ceiling = result.targets[0].ceiling
    assert f"noise ceiling: R² {ceiling.r2} at most, by {ceiling.degrees_of_freedom} replicates" in str(result)
    assert ceiling.r2.low < result.scores.r2["y"].mean < ceiling.r2.high
    few = sa.fit_table(table(np.hstack([bits, bits[:, :2]])[:20], y[:20]), "y", model="low-degree")
    assert few.targets[0].ceiling is None
    copied = sa.fit_table(table(np.tile(bits, (2, 2))[:, :6], np.tile(bits[:, 0] * 1.0, 2)), "y", model="low-degree")
    assert copied.targets[0].ceiling is None
