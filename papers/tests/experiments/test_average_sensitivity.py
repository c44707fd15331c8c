import numpy as np
import pytest

from sparsact.bounds import average_sensitivity_bound_paper
from sparsact.fourier import Spectrum
from sparsact.hypercube import points
from sparsact_papers.common.networks import network_of, worst_network
from sparsact_papers.experiments import Row, Rows
from sparsact_papers.paper_a.average_sensitivity import (
    EXPERIMENT,
    growth,
    measure,
)


def row(model, varied, sensitivity, seed=0, lemma_9=50.0, sharper=4.0, **sizes):
    parameters = {"model": model, "n": 8, "s": 16, "k": 1, "varied": varied, "seed": seed} | sizes
    values = {"sensitivity": sensitivity, "lemma_9": lemma_9, "sharper": sharper}
    return Row(str(parameters), EXPERIMENT.name, 1, parameters, values, 0, "", {}, {}, "")


def sweep(name, power):
    sizes = (4, 8, 16)
    return [
        row("sparse", name, size**power * (1 + seed / 100), seed, **{name: size}) for size in sizes for seed in range(3)
    ]


def test_the_definition_agrees_with_the_spectrum():
    task = {"n": 7, "s": 13, "k": 3, "seed": 2}
    found = measure(model="sparse", varied="n", **task)
    np.testing.assert_allclose(
        found["sensitivity"], Spectrum.of(network_of("sparse", **task)).total_influence(), rtol=1e-12
    )
    assert found == measure(model="sparse", varied="n", **task)
    assert 0 < found["sensitivity"] < found["sharper"] < found["lemma_9"]


@pytest.mark.parametrize("k", [1, 2, 5])
def test_copies_of_the_pair_attain_the_sharper_bound(k):
    found = measure(model="copies", n=6, s=2 * k, k=k, varied="k", seed=0)
    np.testing.assert_allclose([found["sensitivity"], found["sharper"]], 4 * k**2)


def test_copies_of_parities_attain_it_too():
    found = measure(model="extremal", n=6, s=128, k=2, varied="degree", seed=0)
    np.testing.assert_allclose([found["sensitivity"], found["sharper"]], 16)


def test_growth_is_the_power():
    found = growth(Rows(sweep("n", 0.3)), "n")
    np.testing.assert_allclose([found.estimate, found.low, found.high], 0.3, atol=1e-9)


@pytest.mark.parametrize("k", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_the_search_stays_in_the_class_and_finds_no_less_than_the_copies(k):
    def share(network):
        W, B = network.scale()
        return Spectrum.of(network).total_influence() / average_sensitivity_bound_paper(5, 2 * k, k, W, B)

    found = worst_network(5, 2 * k, k, 0, share)
    assert found.n_active(points(5)).max() <= k
    assert share(found) >= share(network_of("copies", 5, 2 * k, k, 0))
