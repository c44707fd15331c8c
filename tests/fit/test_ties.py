"""Models that are as good as each other: the simplest is chosen, whatever the last bits of their errors say."""

import numpy as np
import pandas as pd
import pytest

import sparsact as sa
from sparsact.statistics.simplest import simplest

RNG = np.random.default_rng(8)
BITS = RNG.integers(0, 2, (240, 5))
NOISE = RNG.normal(size=240)
LINEAR = 2.0 * BITS[:, 0] - BITS[:, 3] + 0.5 * NOISE
PAIRS = LINEAR + 3.0 * BITS[:, 1] * BITS[:, 2]


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("last", [0.0, 1e-16, -1e-16])
def test_last_bits_decide_nothing(swap, last):
    first = np.array([0.4, 0.5, 0.3])
    errors = np.stack([first, first + last])[:: -1 if swap else 1]
    assert simplest(errors, rounding=1e-12) == 0


def test_a_tie_is_a_difference_within_its_standard_error():
    """By hand: differences (1, 0, 0, 0) have mean 1/4 and standard error 1/4; (1, 1, 0, 0) 1/2 and .29."""
    best = np.zeros(4)
    assert simplest(np.stack([[1.0, 0, 0, 0], best]), rounding=1e-12) == 0
    assert simplest(np.stack([[1.0, 1, 0, 0], best]), rounding=1e-12) == 1
    assert simplest(np.stack([best + 1e-9, best]), rounding=1e-12) == 1  # always worse, if by little


def table(y, order=slice(None)):
    return pd.DataFrame(BITS[order], columns=list("abcde")).assign(y=y[order])


def chosen(data, **options):
    result = sa.fit_table(data, "y", explain=False, **options)
    return result.choices.name


@pytest.mark.grid
@pytest.mark.usefixtures("few_rivals")
def test_a_linear_function_with_noise_is_linear():
    assert chosen(table(LINEAR)) == "degree 1"


@pytest.mark.grid
@pytest.mark.parametrize(("y", "name"), [(LINEAR, "degree 1"), (PAIRS, "degree 2")])
def test_the_same_choice_for_the_same_rows(y, name, tmp_path):
    """Scaled, rounded otherwise, permuted, or cut into files elsewhere."""
    order = np.random.default_rng(1).permutation(len(y))
    rounded = y + 1e-15 * np.random.default_rng(2).normal(size=len(y))
    options = {"model": "low-degree"}
    for data in (table(y), table(np.ldexp(y, 40)), table(np.ldexp(y, -60)), table(rounded), table(y, order)):
        assert chosen(data, **options) == name
    for cut in (100, 101):
        paths = [tmp_path / f"{cut}-{part}.csv" for part in range(2)]
        for path, rows in zip(paths, (slice(0, cut), slice(cut, None)), strict=True):
            table(y).iloc[rows].to_csv(path, index=False)
        assert chosen(paths, **options) == name
