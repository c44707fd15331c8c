"""Every bound is listed once, says in its documentation how far it is proved, and takes the parameters it names."""

from __future__ import annotations

from inspect import getdoc
from math import inf, isfinite, log2

import pytest

import sparsact.bounds
from sparsact.bounds import BOUNDS
from sparsact.bounds.registry import MEANING
from sparsact.validation.parameters import check_named

SAID = {
    "proved": "*Proved*",
    "sharper": "*Sharper",
    "conjectured": "*Conjectured*",
    "up to constants": "*Up to constants*",
}
VALUES = {
    "n": 5, "s": 2, "k": 1, "m": 900, "degree": 3, "ambient": 20, "intrinsic": 3, "n_directions": 64, "cuts": 7, "p": 4,
    "W": 0.5, "B": 0.5, "R": 3.0, "C": 4.0, "L": 2.0, "epsilon": 0.5, "delta": 0.05, "rho": 0.75, "probability": 0.25,
    "tau": 0.125, "gamma": 0.25, "bucket_width": 0.5, "length": 10, "radius": 0.01, "p_modulus": 3, "q_modulus": 8,
    "noise_sensitivity": 0.01, "average_sensitivity": 2.0, "second_moment": 1.5, "complexity": lambda m: m**-0.5,
}  # fmt: skip


def given(entry):
    return {name: VALUES[name] for name in entry.parameters}


@pytest.mark.parametrize("entry", BOUNDS, ids=lambda entry: f"{entry.statement}-{entry.name}")
class TestEntry:
    def test_says_what_it_is(self, entry):
        assert f"*{entry.status.capitalize()}" in getdoc(entry.function)
        assert entry.status in MEANING
        assert entry.paper is None if entry.status == "sharper" else entry.paper or entry.status == "proved"

    def test_gives_a_number_that_means_something(self, entry):
        value = entry.function(**given(entry))
        for number in value if isinstance(value, tuple) else (value,):
            assert isfinite(number)
            assert number >= 0

    def test_its_logarithm_is_its_logarithm(self, entry):
        if entry.log2 is not None:
            assert entry.log2 is getattr(sparsact.bounds, entry.name).log2
            assert entry.log2(**given(entry)) == pytest.approx(log2(entry.function(**given(entry))))

    def test_a_constant_scales_a_shape(self, entry):
        if "c" in entry.constants and entry.status == "up to constants":
            assert entry.function(**given(entry), c=2.0) > entry.function(**given(entry))

    def test_every_parameter_is_checked(self, entry):
        for name in entry.parameters:
            if name == "complexity":
                continue
            for bad in (-2, float("nan")) if name != "degree" else (-2, 1.5):
                with pytest.raises(ValueError, match=rf"`{name}` must"):
                    entry.function(**given(entry) | {name: bad})

    def test_is_public_and_named(self, entry):
        assert getattr(sparsact.bounds, entry.name) is entry.function


def test_every_public_bound_is_listed():
    listed = {entry.name for entry in BOUNDS}
    others = {
        "BOUNDS",
        "BoundInfo",
        "NetworkSize",
        "StackSensitivity",
        "SufficientDegree",
        "UnexplainedVariance",
        "degree_for",
    }
    measures = {
        "expected_active_bound",
        "held_out_bound",
        "held_out_rows",
        "sensitivity_certificate",
        "sensitivity_from_activity",
        "stack_sensitivity",
        "unexplained_variance",
        "upper_confidence_bound",
    }
    assert set(sparsact.bounds.__all__) - listed == others | measures


def test_the_statements_that_the_papers_number():
    stated = " ".join(entry.statement for entry in BOUNDS)
    for number in (
        "Lemma 6",
        "Lemma 7",
        "Lemma 9",
        "Lemma 10",
        "Lemma 18",
        "Claim 2.1",
        "Conjecture 20",
        "Lemma B.1",
        "Lemma C.2",
    ):
        assert number in stated
    for number in ("8", "13", "14", "17", "19", "4.1", "4.2", "C.1", "D.1"):
        assert f"Theorem {number}" in stated


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"n": 0}, "`n` must be a whole number from 1"),
        ({"n": 2.5}, "`n` must be a whole number"),
        ({"s": 3, "k": 4}, "`k` must not exceed `s`"),
        ({"ambient": 2, "intrinsic": 3}, "`intrinsic` must not exceed `ambient`"),
        ({"epsilon": 0.0}, "`epsilon` must be positive"),
        ({"W": -1.0}, "`W` must be zero or positive"),
        ({"W": inf}, "`W` must be finite"),
        ({"delta": 1.0}, "`delta` must be above 0 and below 1"),
        ({"probability": 0.0}, "`probability` must be above 0 and at most 1"),
        ({"rho": 1.5}, r"`rho` must be in \[-1, 1\]"),
        ({"c": 0.0}, "`c` must be positive"),
    ],
)
def test_parameters_that_mean_nothing(parameters, told):
    with pytest.raises(ValueError, match=told):
        check_named(**parameters)
