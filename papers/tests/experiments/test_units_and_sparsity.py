import numpy as np
import pytest
from reproduced import made_up

from sparsact_papers.common.learners import DENSE, SPARSE
from sparsact_papers.experiments import Outcome, Rows
from sparsact_papers.paper_a import units_and_sparsity as experiment

SIZES = {"s": (4, 8, 16), "k": (1, 2, 4), "n": (12, 24, 48)}


def rows(powers):
    """Errors and sensitivities that are powers of each size, times a factor of the seed, in every sweep."""
    cells = {tuple({**experiment.CENTRE, varied: size}.items()) for varied, sizes in SIZES.items() for size in sizes}
    made = []
    for cell in sorted(cells):
        for seed in range(3):
            for learner, steeper in ((SPARSE, 0), (DENSE, 1)):
                value = (1 + seed) * np.prod([size ** powers[name] for name, size in cell]) * dict(cell)["s"] ** steeper
                values = {"m": 1, "share": float(value), "sensitivity": float(value)}
                made.append(made_up(experiment.EXPERIMENT, {**dict(cell), "learner": learner, "seed": seed}, values))
    return Rows(made)


@pytest.mark.parametrize("varied", SIZES)
def test_the_power_matches_the_curve(varied):
    found = experiment.power(rows({"s": 0.25, "k": 1.5, "n": -0.5}), varied, "share")
    assert found.estimate == pytest.approx({"s": 0.25, "k": 1.5, "n": -0.5}[varied])
    assert found.n == 3


def test_the_dense_class_is_compared_by_the_difference_of_powers():
    claim = next(claim for claim in experiment.EXPERIMENT.claims if claim.name == "dense")
    assert claim.verdict(rows({"s": 0.25, "k": 1.5, "n": -0.5})).outcome is Outcome.HOLDS


def test_samples_are_in_proportion_and_both_learners_see_the_same():
    found = [experiment.measure(n=12, s=4, k=2, learner=learner, seed=1) for learner in experiment.LEARNERS]
    assert found[0]["m"] == 6 * 2 * 4 * 12
    assert found[0]["sensitivity"] == found[1]["sensitivity"] > 0
    assert found[0] == experiment.measure(n=12, s=4, k=2, learner=experiment.LEARNERS[0], seed=1)
