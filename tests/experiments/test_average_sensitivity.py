import numpy as np
import pytest

from sparsact.experiments import Outcome, Row, Rows
from sparsact.experiments.paper_a.average_sensitivity import (
    EXPERIMENT,
    growth,
    judge_attained,
    judge_growth,
    judge_lemma,
    judge_our_growth,
    judge_sharper,
    measure,
)
from sparsact.experiments.paper_a.spectral_networks import network_of
from sparsact.fourier import Spectrum


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


@pytest.mark.parametrize(("sensitivity", "outcome"), [(3.9, Outcome.HOLDS), (60.0, Outcome.DOES_NOT_HOLD)])
@pytest.mark.parametrize("judge", [judge_lemma, judge_sharper])
def test_bounds_on_every_row(judge, sensitivity, outcome):
    assert judge(Rows([row("sparse", "n", sensitivity)])).outcome is outcome
    assert judge(Rows([row("sparse", "n", 1.0), row("sparse", "n", 60.0)])).outcome is Outcome.DOES_NOT_HOLD


@pytest.mark.parametrize(("sensitivity", "outcome"), [(4.0, Outcome.HOLDS), (3.5, Outcome.DOES_NOT_HOLD)])
def test_attained(sensitivity, outcome):
    assert judge_attained(Rows([row("copies", "k", sensitivity)])).outcome is outcome


def test_growth_is_the_power():
    found = growth(Rows(sweep("n", 0.3)), "n")
    np.testing.assert_allclose([found.estimate, found.low, found.high], 0.3, atol=1e-9)


@pytest.mark.parametrize(
    ("powers", "paper", "ours"),
    [
        ((-0.5, -0.1, 1.0), Outcome.HOLDS, Outcome.HOLDS),
        ((0.3, 0.1, 3.0), Outcome.HOLDS, Outcome.DOES_NOT_HOLD),
        ((0.7, -0.1, 5.0), Outcome.DOES_NOT_HOLD, Outcome.DOES_NOT_HOLD),
    ],
)
def test_powers_are_judged(powers, paper, ours):
    rows = Rows([row for name, power in zip("nsk", powers, strict=True) for row in sweep(name, power)])
    assert judge_growth(rows).outcome is paper
    assert judge_our_growth(rows).outcome is ours


def test_a_sweep_that_is_missing_leaves_growth_open():
    assert EXPERIMENT.claims[3].verdict(Rows(sweep("n", 0.1))).outcome is Outcome.UNDECIDED
