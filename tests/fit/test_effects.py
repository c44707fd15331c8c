"""Effects in the table's own coding are differences of the fitted polynomial, by brute force."""

from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pyarrow as pa
import pytest

import sparsact as sa
from sparsact.fit.term import Term


def subsets(members):
    return [chosen for size in range(len(members) + 1) for chosen in combinations(members, size)]


def difference(f, on, off, others):
    """The difference of f over all of the columns that ``on`` and ``off`` give, averaged over rows of the others.

    All on, less the same with one of them off, plus the same with two off and so on.
    """
    total = 0
    for rest in others:
        for switched in subsets(on):
            total += (-1) ** (len(on) - len(switched)) * f(rest | off | {i: on[i] for i in switched})
    return total / len(others)


def test_an_effect_is_the_mean_difference_of_the_polynomial_over_the_cube():
    """Exactly, for every subset of five columns; column 3 is a number, which goes up by one from anywhere."""
    rng = np.random.default_rng(2)
    coefficients = {subset: Fraction(int(rng.integers(-99, 99)), 7) for subset in subsets(range(5))}

    def f(row):  # bits as signs, column 3 as it is
        x = {i: value if i == 3 else 1 - 2 * value for i, value in row.items()}
        return sum(value * prod(x[i] for i in subset) for subset, value in coefficients.items())

    start = Fraction(5, 3)
    for subset, value in coefficients.items():
        term = Term(tuple(map(str, subset)), value, value - 3, value + 1, n_bits=len(set(subset) - {3}))
        free = [i for i in range(5) if i not in subset]
        others = [dict(zip(free, row, strict=True)) for row in product(*[(0,) if i == 3 else (0, 1) for i in free])]
        on = {i: start + 1 if i == 3 else 1 for i in subset}
        off = {i: start if i == 3 else 0 for i in subset}
        assert term.effect == difference(f, on, off, others)
        scaled = [(-2) ** term.n_bits * end for end in (value - 3, value, value + 1)]
        assert (term.effect_low, term.effect_high) == (min(scaled), max(scaled))


@pytest.mark.grid
@pytest.mark.parametrize(
    ("options", "numbers"), [({}, ["n"]), ({"ignore": ("n", "kind")}, []), ({"domain": "real"}, ["n"])]
)
def test_effects_of_a_fit_are_differences_of_its_predictions(options, numbers):
    rng = np.random.default_rng(4)
    bits, n = rng.integers(0, 2, (97, 3)), rng.normal(3, 2, 97)
    kind = rng.choice(["red", "green", "blue"], 97)
    columns = {"a": bits[:, 0], "b": bits[:, 1], "c": np.where(bits[:, 2], "yes", "no"), "kind": kind, "n": n}
    y = bits[:, 0] - 3 * bits[:, 1] * bits[:, 2] + n * bits[:, 0] + 2 * (kind == "red") + rng.normal(0, 0.1, 97)
    result = sa.fit_table(pa.table(columns | {"y": y}), "y", model="low-degree", degree=2, **options)
    names = result.encoding.feature_names

    def f(row):
        point = [row[name] if name in numbers else 1 - 2 * row[name] for name in names]
        coded = np.array([point]) if numbers else (1 - np.array([point])) // 2
        return result.model.predict(coded.astype(np.float64 if numbers else np.uint8))[0]

    assert len(result.targets[0].terms) == (28 if numbers else 6)
    for term in result.targets[0].terms:
        free = [name for name in names if name not in term.subset]
        rows = product(*[(0,) if name in numbers else (0, 1) for name in free])
        others = [dict(zip(free, row, strict=True)) for row in rows]
        on, off = dict.fromkeys(term.subset, 1), dict.fromkeys(term.subset, 0)
        assert term.effect == pytest.approx(difference(f, on, off, others), abs=1e-9)


def test_bits_that_are_taken_as_numbers_have_the_others_at_zero():
    bits = np.array(list(product((0, 1), repeat=3)) * 2)
    y = 1 + 2 * bits[:, 0] + 3 * bits[:, 1] * bits[:, 2]
    table = pa.table({"a": bits[:, 0], "b": bits[:, 1], "c": bits[:, 2], "y": y})
    result = sa.fit_table(table, "y", degree=2, domain="real", alpha=0.0)
    found = {term.label: round(term.effect, 9) + 0.0 for term in result.targets[0].terms}
    assert found == {"a": 2, "b": 0, "c": 0, "a × b": 0, "a × c": 0, "b × c": 3}
