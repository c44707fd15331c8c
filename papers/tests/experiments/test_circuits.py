import os
from math import isqrt

import numpy as np
import pytest
from reproduced import made_up

from sparsact.bounds.unexplained import krawtchouk
from sparsact.datasets import iwls2020
from sparsact.hypercube import bits_to_signs, characters, subset_masks, subsets_of
from sparsact_papers.experiments import Rows, Scale
from sparsact_papers.paper_a import circuits
from sparsact_papers.paper_a.circuits import EXPERIMENT

needs_data = pytest.mark.skipif(
    not os.environ.get("SPARSACT_DATA"), reason="SPARSACT_DATA does not name a folder with the real data"
)


def row(function, degree, seed, mse, predicted, n_train=1600, n_coefficients=17, **values):
    example = next(number for number, (kind, _) in circuits.EXAMPLES.items() if kind == function)
    parameters = {"example": example, "degree": degree, "n_train": n_train, "seed": seed}
    values = {
        "function": function,
        "n": circuits.EXAMPLES[example][1],
        "mse": mse,
        "predicted": predicted,
        "n_coefficients": n_coefficients,
        "weights": [0.3, 0.3, 0.1, 0.05],
        "weight_errors": [0.01, 0.01, 0.02, 0.04],
        "up_to_2": 0.6,
        "up_to_2_error": 0.01,
    } | values
    return made_up(circuits.EXPERIMENT, parameters, values)


def whole(bits):
    """Numbers whose lowest bit is in the first column."""
    return [sum(int(bit) << i for i, bit in enumerate(line)) for line in bits]


def signed(bits):
    n = bits.shape[1]
    return np.array([number - (number >> (n - 1) << n) for number in whole(bits)], dtype=object)


@needs_data
def test_examples_are_of_the_kinds_that_they_are_called_by():
    def halves(example):
        X, n = iwls2020(example).X, circuits.EXAMPLES[example][1]
        assert X.shape[1] == n
        return signed(X[:, : n // 2]), signed(X[:, n // 2 :])

    a, b = halves(9)
    assert (iwls2020(9).y == (a + b < 0)).all()
    for comparator in (30, 39):
        a, b = halves(comparator)
        assert (iwls2020(comparator).y == (a < b)).all()
    root = iwls2020(40)
    assert (root.y == [isqrt(number) & 1 for number in whole(root.X)]).all()
    product = iwls2020(20)
    low, high = whole(product.X[:, :8]), whole(product.X[:, 8:])
    # The multiplier's example is one bit of the product.
    bits = np.array([[a * b >> i & 1 for i in range(16)] for a, b in zip(low, high, strict=True)])
    assert (bits == product.y[:, None]).all(axis=0).any()
    parity, symmetric = iwls2020(circuits.PARITY), iwls2020(75)
    assert (parity.y == parity.X.sum(axis=1) % 2).all()
    assert (symmetric.y == (symmetric.X.sum(axis=1) >= 8)).all()


@needs_data
def test_estimated_weights_of_the_symmetric_function_meet_its_exact_spectrum():
    counts = np.array([float(value) for value in krawtchouk(16, 16)[:, 0]])  # C(16, j)
    share = counts / 2**16
    values = np.where(np.arange(17) >= 8, -1.0, 1.0)  # ex75 as signs, by the number of ones
    exact = (krawtchouk(16, 16) @ (share * values)) ** 2 / counts
    measured = circuits.measure(example=75, degree=1, n_train=3200, seed=0)
    exact_shares = exact[1:5] / exact[1:].sum()
    assert (np.abs(measured["weights"] - exact_shares) < 5 * np.array(measured["weight_errors"])).all()
    assert measured["up_to_2"] == pytest.approx(sum(measured["weights"][:2]))


@needs_data
def test_the_error_matches_least_squares_on_the_characters_and_is_the_same_twice():
    train, valid = iwls2020(20), iwls2020(20, "valid")
    chosen = np.random.default_rng([2, 1]).permutation(6400)[:700]
    subsets = subsets_of(subset_masks(16, 2))
    design, new = (characters(bits_to_signs(X), subsets) for X in (train.X[chosen], valid.X))
    coefficients = np.linalg.lstsq(design, 1 - 2 * train.y[chosen])[0]
    target = 1 - 2 * valid.y
    measured = circuits.measure(example=20, degree=2, n_train=700, seed=2)
    assert measured["mse"] == pytest.approx(np.mean((new @ coefficients - target) ** 2) / target.var())
    assert measured == circuits.measure(example=20, degree=2, n_train=700, seed=2)


def test_every_function_has_tasks_and_all_rows_are_drawn_once():
    tasks = circuits.EXPERIMENT.tasks(Scale.FULL)
    assert {task.parameters["example"] for task in tasks} == set(circuits.EXAMPLES)
    assert {task.parameters["seed"] for task in tasks if task.parameters["n_train"] == circuits.ALL} == {0}


def test_charts_draw_the_numbers_of_their_frames():
    rows = Rows(
        row(kind, degree, seed, 1.0 + degree, 1.1, weight_errors=[0.01, 0.02, 0.1, 0.4])
        for kind in ("adder", "parity")
        for degree in range(3)
        for seed in range(2)
    )
    weights, errors = (chart.frame(rows) for chart in EXPERIMENT.charts)
    assert weights["degree"] == [1, 2, 3, 1, 2, 3]  # the fourth is too uncertain to be drawn
    assert errors["error"][:3] == [1.0, 2.0, 3.0]
    for chart, frame in zip(EXPERIMENT.charts, (weights, errors), strict=True):
        assert len({len(column) for column in frame.values()}) == 1
        assert chart.plot(frame).axes
        assert not any(chart.frame(Rows([])).values())
