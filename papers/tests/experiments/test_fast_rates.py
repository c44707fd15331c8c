import numpy as np
import pytest
from reproduced import made_up

from sparsact.hypercube import points
from sparsact_papers.experiments import Outcome, Rows
from sparsact_papers.paper_a import fast_rates as experiment

CLAIMS = {claim.name: claim for claim in experiment.EXPERIMENT.claims}


def test_a_decision_list_is_a_one_sparse_network_of_the_first_minus():
    values = np.array([0.5, -2.0, 3.0, 1.5, -1.0, 0.25])
    network, X = experiment.decision_list(values), points(6)
    first = np.where((X == -1).any(axis=1), np.argmax(X == -1, axis=1), -1)
    np.testing.assert_array_equal(network(X), np.where(first < 0, 0.0, values[first]))
    assert network.n_active(X).max() == 1
    np.testing.assert_array_equal(np.bincount(first + 1), [1, 32, 16, 8, 4, 2, 1])


def test_the_error_on_lists_counts_cells_without_a_row():
    """Mean of 256 lists: it has a standard deviation of about 0.06 of the expectation (failure below 1e-5)."""
    m, p = 300, 2.0 ** -np.arange(1, 25)
    found = [experiment.measure(family=experiment.LISTS, n=24, s=24, noise=0.0, m=m, seed=i) for i in range(8)]
    assert {row["train"] for row in found} == {0.0}
    assert np.mean([row["share"] for row in found]) == pytest.approx((p * (1 - p) ** m).sum(), rel=0.3)


def rows(power, *, noise=0.0, family=experiment.FAMILIES[0], scale=1.0):
    made = [
        made_up(
            experiment.EXPERIMENT,
            {"family": family, "n": 16, "s": 4, "noise": noise, "m": m, "seed": seed},
            {"share": scale * (1 + 0.1 * seed) * m**power, "train": 0.0},
        )
        for seed in range(4)
        for m in (100, 200, 400, 800, 1600)
    ]
    return Rows(made)


@pytest.mark.parametrize(("power", "outcome"), [(-0.5, Outcome.DOES_NOT_HOLD), (-1.0, Outcome.HOLDS)])
def test_the_rules_tell_the_two_rates_apart(power, outcome):
    assert CLAIMS["faster"].verdict(rows(power)).outcome is outcome
    assert CLAIMS["noise"].verdict(rows(power, noise=experiment.NOISE)).outcome is outcome
    assert CLAIMS["attained"].verdict(rows(power, family=experiment.LISTS)).outcome is outcome


def test_a_faster_fall_is_not_the_rate_of_the_lists_and_errors_above_rounding_are_no_recovery():
    assert CLAIMS["attained"].verdict(rows(-2.0, family=experiment.LISTS)).outcome is Outcome.DOES_NOT_HOLD
    assert CLAIMS["faster"].verdict(rows(-2.0)).outcome is Outcome.HOLDS
    many = [rows(-1.0, family=family) for family in experiment.FAMILIES]
    assert CLAIMS["recovered"].verdict(Rows(row for one in many for row in one)).outcome is Outcome.DOES_NOT_HOLD
