import numpy as np
import pytest
from reproduced import made_up

from sparsact_papers.experiments import Outcome, Rows
from sparsact_papers.paper_a import fresh_sparsity as experiment

CLAIMS = {claim.name: claim for claim in experiment.EXPERIMENT.claims}


def test_silent_units_are_off_on_all_rows_and_the_worst_are_worse():
    found = {
        network: experiment.measure(network=network, m=200, fresh=4000, seed=3)
        for network in (experiment.RANDOM, experiment.WORST)
    }
    for row in found.values():
        assert row["rows"] == 0 < row["near"]
    rates = {network: row["fresh_rows"] / row["units"] for network, row in found.items()}
    assert rates[experiment.WORST] > 2 * rates[experiment.RANDOM] > 0


@pytest.mark.parametrize("network", [experiment.SPARSE, experiment.DENSE])
def test_units_of_trained_networks_are_counted_as_the_network_counts_them(network):
    row = experiment.measure(network=network, m=200, fresh=1000, seed=3)
    assert 0 < row["rows"] <= row["near"] <= row["units"]
    assert row == experiment.measure(network=network, m=200, fresh=1000, seed=3)
    if network == experiment.SPARSE:
        assert row["rows"] <= experiment.ACTIVE


def rows(power, over):
    made = []
    for seed in range(3):
        for m in (100, 400, 1600):
            silent = {"units": 32, "rows": 0.0, "near": 1.0, "fresh_rows": (1 + 0.1 * seed) * m**power}
            trained = {"units": 32, "rows": 2.0, "near": 2.0, "fresh_rows": over + 0.01 * seed}
            for network in (experiment.RANDOM, experiment.WORST, experiment.SPARSE, experiment.DENSE):
                values = silent if network in (experiment.RANDOM, experiment.WORST) else trained
                parameters = {"network": network, "m": m, "fresh": 10, "seed": seed}
                made.append(made_up(experiment.EXPERIMENT, parameters, values))
    return Rows(made)


@pytest.mark.parametrize(
    ("power", "outcome"), [(-1.0, Outcome.HOLDS), (-0.5, Outcome.DOES_NOT_HOLD), (-2.0, Outcome.DOES_NOT_HOLD)]
)
def test_silent_units_have_the_rate_or_not(power, outcome):
    assert CLAIMS["rate"].verdict(rows(power, 2.0)).outcome is outcome


@pytest.mark.parametrize(("over", "outcome"), [(3.9, Outcome.HOLDS), (4.5, Outcome.DOES_NOT_HOLD)])
def test_twice_the_active_units_is_the_limit(over, outcome):
    assert CLAIMS["trained"].verdict(rows(-1.0, over)).outcome is outcome


def test_the_largest_of_the_rows_is_exceeded_by_a_fresh_one_once_in_m_plus_1():
    """512 directions, 6 seeds: the mean ratio has a standard deviation of about 0.03 (see the kept rows)."""
    found = [experiment.measure(network=experiment.RANDOM, m=100, fresh=4000, seed=seed) for seed in range(20, 26)]
    assert np.mean([row["fresh_rows"] * 101 / row["units"] for row in found]) == pytest.approx(1, abs=0.2)
