"""Targets that are better learned as logarithms, by the likelihood of held-out rows and not by their skew."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import lognorm, norm, skew

import sparsact as sa
from sparsact.fit.logarithms import gain_of_logarithm

RNG = np.random.default_rng(4)
BITS = RNG.integers(0, 2, (240, 5)).astype(float)
FOLDS = np.arange(240) % 4
LOGS = BITS @ [2.0, 1.0, -1.0, 0.5, 0.0] + 0.3 * RNG.normal(size=240)


def test_the_gain_matches_both_densities_of_the_target():
    """By scipy's densities and least squares: the penalty of a clear function does next to nothing."""
    y, design = np.exp(LOGS), np.column_stack([np.ones(240), BITS])

    def by_others(values):
        found = np.empty(240)
        for fold in range(4):
            left = fold == FOLDS
            found[left] = design[left] @ np.linalg.lstsq(design[~left], values[~left], rcond=None)[0]
        return found, np.sqrt(np.mean((values - found) ** 2))

    (f, s), (g, t) = by_others(y), by_others(LOGS)
    expected = np.mean(lognorm.logpdf(y, t, scale=np.exp(g)) - norm.logpdf(y, f, s))
    assert expected > 1
    assert gain_of_logarithm(BITS, y, FOLDS) == pytest.approx(expected, rel=0.02)


def test_the_scale_of_the_target_does_not_matter():
    gains = [gain_of_logarithm(BITS, unit * np.exp(LOGS), FOLDS) for unit in (1.0, 1e-6, 1e9)]
    assert gains == pytest.approx([gains[0]] * 3)


def test_a_skewed_target_with_additive_effects_needs_no_logarithm():
    """A rare switch adds 60, frequent ones 5 each: far less skewed as a logarithm, and linear as it is."""
    switches = RNG.random((240, 7)) < [0.1, *[0.5] * 6]
    y = 3 + switches @ [60.0, *[5.0] * 6] + 0.2 * RNG.random(240)
    assert skew(y) > 1 > 2 * abs(skew(np.log(y)))
    assert gain_of_logarithm(switches, y, FOLDS) == 0


@pytest.mark.grid
def test_few_rows_that_span_decades_are_told():
    """All 32 combinations of five mutations, resistances in twofold steps: one row is 3 % of them."""
    cube = np.array(list(np.ndindex(2, 2, 2, 2, 2)))
    steps = np.round(cube @ [5.0, 4.0, 3.0, 2.0, 1.0] + 0.8 * RNG.normal(size=32))
    table = pd.DataFrame(cube).add_prefix("m").assign(mic=0.0625 * 2**steps)
    notes = sa.fit_table(table, "mic", model="low-degree", explain=False).encoding.notes
    assert [note for note in notes if "log_target=True" in note]
    learned = sa.fit_table(table, "mic", model="low-degree", log_target=True, explain=False)
    assert not [note for note in learned.encoding.notes if "log_target=True" in note]
