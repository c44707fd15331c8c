from itertools import combinations

import numpy as np
import pytest

from sparsact.hypercube import points
from sparsact.rademacher import exact_complexity
from sparsact.rademacher.exact import Units
from sparsact_papers.experiments import MissingRowsError, Outcome, Row, Rows, Scale
from sparsact_papers.paper_a.rademacher_claims import (
    judge_conjecture,
    judge_dense,
    judge_orthogonal,
    ratio_of,
    shares,
)
from sparsact_papers.paper_a.rademacher_complexity import EXPERIMENT, measure
from sparsact_papers.paper_a.rademacher_families import judge_blocks, judge_mean_sparsity

SQUARE = {"sample": "cube", "n": 2, "s": 3, "k": 1, "bias": 0.7, "draws": 5, "seed": 3}


def row(values, **parameters):
    chosen = {"sample": "cube", "n": 3, "s": 2, "k": 1, "bias": 1.0, "draws": 3, "seed": 0} | parameters
    return Row(str(chosen), EXPERIMENT.name, 1, chosen, values, 0, "", {}, {}, "")


def test_maxima_match_all_disjoint_sets():
    """Another route: every set of at most s pairwise disjoint halfspaces of the square, and the best unit on each."""
    found = measure(**SQUARE)
    signs = np.random.default_rng([3, 1]).choice([-1, 1], size=(5, 4))
    X = points(2).astype(float)
    units = Units(X, 1.0, 0.7 * np.sqrt(2))
    sets = units.sets
    for zeta, maxima in zip(signs, found["maxima"], strict=True):
        values = units.best(np.stack([zeta, -zeta]).astype(float))[0].max(axis=0)
        best = [0.0]
        for size in (1, 2, 3):
            disjoint = (c for c in combinations(range(len(sets)), size) if sets[list(c)].sum(axis=0).max() <= 1)
            best.append(max([best[-1], *(sum(values[j] for j in c) for c in disjoint)]))
        np.testing.assert_allclose(maxima, np.array(best[1:]) / 4, rtol=1e-9)
    assert found == measure(**SQUARE)


def test_all_signs_are_the_average_of_the_library():
    found = measure(**SQUARE | {"draws": None})
    expected = exact_complexity(points(2), [1, 2, 3], 1, B=0.7 * np.sqrt(2)).value
    np.testing.assert_allclose(np.mean(found["maxima"], axis=0), expected, rtol=1e-12)
    assert len(found["maxima"]) == 16
    assert (np.diff(found["conjecture"]) > 0).all()
    np.testing.assert_allclose(found["conjecture"][0], 1.7 * np.sqrt(2) / 2)


@pytest.mark.parametrize("s", [2, 3])
def test_the_dense_class_is_searched_without_its_shortcut(s):
    found = measure(sample="dense", n=2, s=s, k=s, bias=1.0, draws=6, seed=1)
    np.testing.assert_allclose(found["maxima"], s * np.array(found["one_unit"]), rtol=1e-12)
    one = row(found, sample="dense", n=2, s=s, k=s)
    assert judge_dense(Rows([one])).outcome is Outcome.HOLDS
    off = row(found | {"maxima": [0.9 * value for value in found["maxima"]]}, sample="dense", s=s)
    assert judge_dense(Rows([off])).outcome is Outcome.DOES_NOT_HOLD


def test_networks_on_orthogonal_points():
    """2 W R / sqrt(m) over (W R + B) sqrt(2 / m), with B = W R / sqrt(m); never above the exact maximum."""
    small, large = (measure(sample="orthogonal", n=m, s=2, k=1, bias=None, draws=3, seed=0) for m in (4, 32))
    for m, found in ((4, small), (32, large)):
        ratio = np.sqrt(2) / (1 + 1 / np.sqrt(m))
        np.testing.assert_allclose(np.array(found["reached"]) / found["conjecture"], ratio, rtol=1e-9)
        assert found["most_active"] == 1
        assert found["is_of_the_class"]
    assert (np.array(small["reached"]) <= np.array(small["exact"]) * (1 + 1e-6)).all()
    samples = [row(found, sample="orthogonal", n=m) for m, found in ((4, small), (32, large))]
    assert judge_orthogonal(Rows(samples[:1])).outcome is Outcome.HOLDS
    assert judge_orthogonal(Rows(samples)).outcome is Outcome.DOES_NOT_HOLD
    unknown = row(small | {"exact": []}, sample="orthogonal", n=4)
    assert judge_orthogonal(Rows([unknown])).outcome is Outcome.UNDECIDED
    outside = row(large | {"is_of_the_class": False}, sample="orthogonal", n=32)
    assert judge_orthogonal(Rows([samples[0], outside])).outcome is Outcome.HOLDS


def test_the_interval_of_a_ratio_covers_it():
    """1000 samples: 930 or fewer of a 95 % interval have a chance below 1 %."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(1000):
        one = rng.uniform(0.5, 1.5, size=60)
        found = ratio_of(1.5 * one + rng.normal(0, 0.2, size=60), one)
        covered += found.low <= 1.5 <= found.high
    assert 930 < covered < 970


def test_a_share_is_of_all_signs_where_there_are_some():
    values = {"conjecture": [2.0, 4.0]}
    whole = row({"maxima": [[1.0, 5.0], [2.0, 7.0]]} | values, draws=None)
    some = row({"maxima": [[9.0, 9.0], [0.0, 0.0], [1.0, 1.0]]} | values)
    found = shares(Rows([whole, some]), "conjecture")
    assert [(found[(3, 1, 1.0), s].low, found[(3, 1, 1.0), s].high) for s in (1, 2)] == [(0.75, 0.75), (1.5, 1.5)]
    assert judge_conjecture(Rows([whole, some])).outcome is Outcome.DOES_NOT_HOLD
    assert judge_conjecture(Rows([some])).outcome is Outcome.UNDECIDED
    below = row({"maxima": [[1.0, 1.0], [1.1, 1.1], [0.9, 0.9]]} | values)
    assert judge_conjecture(Rows([below])).label == "consistent, slack 2"


def test_fewer_units_than_active_ones_are_another_case():
    pair = row({"maxima": [[9.0, 1.0]], "conjecture": [2.0, 4.0]}, k=2, draws=None)
    assert list(shares(Rows([pair]), "conjecture")) == [((3, 2, 1.0), 2)]


def test_the_full_run_draws_at_least_a_hundred_sign_vectors_on_the_3_cube():
    drawn = [
        task.parameters["draws"]
        for task in EXPERIMENT.tasks(Scale.FULL)
        if task.parameters["sample"] == "cube" and task.parameters["n"] == 3 and task.parameters["bias"] == 1.0
    ]
    assert sum(draws for draws in drawn if draws is not None) >= 100


def test_networks_on_repeated_directions():
    """The multiple of the conjecture is E max |S_c| / sqrt(r); a constant one would hold."""
    found = [
        row(
            measure(sample="directions", n=n, copies=100, s=n, k=1, bias=None, draws=None, seed=0),
            sample="directions", n=n, s=n, copies=100,
        )
        for n in (4, 256)
    ]  # fmt: skip
    sums = np.abs(2 * np.random.default_rng(0).binomial(100, 0.5, size=(4000, 4)) - 100).max(axis=1) / 10
    assert abs(found[0]["gathered / conjecture"] - sums.mean()) < 5 * sums.std() / np.sqrt(4000)  # 1 in 10^6 beyond
    assert found[0]["mean_active"] == 1
    assert found[1]["chain"] >= found[1]["gathered"] > 2 * found[1]["conjecture"]
    assert judge_mean_sparsity(Rows(found)).outcome is Outcome.DOES_NOT_HOLD
    constant = [one.with_values(gathered=one["conjecture"]) for one in found]
    assert judge_mean_sparsity(Rows(constant)).outcome is Outcome.HOLDS
    outside = [found[0].with_values(mean_active=1.1), found[1]]
    assert judge_mean_sparsity(Rows(outside)).outcome is Outcome.UNDECIDED


def test_networks_on_blocks():
    """At least what pairs built by hand reach: one for each block, or one for all."""
    values = measure(sample="blocks", n=4, blocks=2, s=4, k=1, bias=None, draws=3, seed=0)
    assert values["most_active"] == 1
    assert values["is_of_the_class"]
    assert (
        min(values["reached"]) >= max(1, 2 * 2 / np.sqrt(8)) - 1e-9
    )  # W R / sqrt(4) for each, 2 W R / sqrt(8) for all
    np.testing.assert_allclose(values["conjecture"], 3 * np.sqrt(4 / 8))
    one = row(values, sample="blocks", n=4, s=4, blocks=2)
    assert judge_blocks(Rows([one])).outcome is Outcome.CONSISTENT
    above = one.with_values(reached=[1.5 * values["conjecture"]] * 3)
    assert judge_blocks(Rows([above])).outcome is Outcome.DOES_NOT_HOLD
    with pytest.raises(MissingRowsError):
        judge_blocks(Rows([one.with_values(most_active=2)]))
    cubes = measure(sample="cubes", n=2, blocks=2, s=4, k=1, bias=None, draws=3, seed=0)
    assert cubes["most_active"] == 1
    assert len(cubes["reached"]) == 3
