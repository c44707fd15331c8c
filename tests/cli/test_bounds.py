"""``sparsact bounds``: the table, the JSON, a network's own numbers, and bad input."""

from __future__ import annotations

import json
from fractions import Fraction
from math import ceil, e
from re import fullmatch

import networks
import numpy as np
import pytest
from commands import run

from sparsact.bounds import average_sensitivity_bound, general_samples_explicit, sufficient_degree, uniform_samples
from sparsact.constructions import extremal
from sparsact.hypercube import points

SIZE = ("--n", 100, "--s", 64, "--k", 2, "--W", 1.5, "--B", 2)


def told(capsys, *words):
    status, out, err = run(capsys, "bounds", *words, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def values(answer):
    return {row["name"]: row["value"] for row in answer["bounds"]}


def test_json_holds_what_the_functions_give(capsys):
    answer = told(capsys, *SIZE, "--epsilon", 0.2)
    assert values(answer)["average_sensitivity_bound"] == average_sensitivity_bound(2, 1.5) == 36
    assert values(answer)["sufficient_degree"] == sufficient_degree(2, 1.5, 0.2, 64) == 143
    assert answer["parameters"]["R"] == 10
    assert answer["parameters"]["C"] == 2 * (15 + 2)
    assert values(answer)["junta_size"]["n_units"] == 64


def test_numbers_beyond_every_float(capsys):
    (row,) = (row for row in told(capsys, *SIZE)["bounds"] if row["name"] == "uniform_samples")
    assert row["value"] is None
    assert row["log2"] == pytest.approx(uniform_samples.log2(100, 64, 2, 1.5, 2.0, 0.1, 0.05))


def test_sizes_beyond_the_digits_that_python_writes(capsys):
    status, out, _ = run(capsys, "bounds", "--given", "p=20000")
    assert status == 0
    assert "2e+04 inputs, 3.98e+6020 units" in " ".join(out.replace("│", " ").split())  # 2^20,000
    for p, exponent in ((20_000, 20_000), (10**12, None)):
        (row,) = (row for row in told(capsys, "--given", f"p={p}")["bounds"] if row["name"] == "junta_size")
        assert (row["value"]["n_units"], row["log2"]) == (None, exponent)
    status, _, err = run(capsys, "bounds", "--n", 10**400)
    assert status != 0
    assert "`n` exceeds every float" in err


def test_more_parameters_more_bounds(capsys):
    few, more = told(capsys, "--k", 1, "--W", 2), told(capsys, *SIZE, "--given", "m=1000", "--given", "c=3")
    assert len(few["bounds"]) < len(more["bounds"])
    assert "sparse_complexity_conjecture" in values(more)
    assert {tuple(row["wants"]) for row in few["wanting"]} > {("n", "probability"), ("length", "tau")}
    wanted = [len(row["wants"]) for row in few["wanting"]]
    assert wanted == sorted(wanted)
    assert wanted[0] == 1
    plain = told(capsys, *SIZE)
    assert values(more)["average_sensitivity_bound_paper"] == pytest.approx(
        3 * values(plain)["average_sensitivity_bound_paper"]
    )


def test_paper_b(capsys):
    given = [
        word
        for pair in ("ambient=16", "intrinsic=2", "L=1", "n_directions=40", "bucket_width=0.5")
        for word in ("--given", pair)
    ]
    found = values(told(capsys, *given))
    assert found["table_size"] == pytest.approx(1600)
    assert found["bucket_diameter"] > 0.5


def test_the_table(capsys):
    status, out, err = run(capsys, "bounds", *SIZE)
    assert (status, err) == (0, "")
    for word in (
        "Theorem 8",
        "up to constants",
        "conjectured",
        "sharper: a theorem of this library",
        "e+",
        "more bounds need parameters (--given NAME=X):\n  average_sensitivity: degree enough (A)\n  length: ",
        "Theorem 19 without its",
    ):
        assert word in out, word


def test_bounds_that_ask_for_everything_are_marked(capsys):
    vacuous = {row["name"]: row["vacuous"] for row in told(capsys, *SIZE)["bounds"]}
    assert vacuous["sufficient_degree"]  # 359 of 100
    assert vacuous["uniform_samples"]
    assert not vacuous["average_sensitivity_bound"]
    assert "tail_bound" not in vacuous  # at degree 100 of 100, nothing lies above
    small = {row["name"]: row["vacuous"] for row in told(capsys, *SIZE, "--epsilon", 10)["bounds"]}
    assert not small["sufficient_degree"]
    assert not small["low_degree_samples"]
    assert ", vacuous" in run(capsys, "bounds", *SIZE)[1]


@pytest.mark.parametrize(
    ("given", "vacuous"),
    [
        (("degree=99",), {"tail_bound": False}),
        (("degree=1", "C=4"), {"tail_bound": True, "average_sensitivity_bound": False}),  # 18 of 16; 36 of 1,600
        (("degree=1", "C=4.5"), {"tail_bound": False}),
        (("C=0.5",), {"average_sensitivity_bound": True, "noise_sensitivity_bound": True}),  # 36 of 25
        (("C=34", "m=9"), {"sparse_complexity_conjecture": True, "dense_complexity_bound": False}),
        (("C=34", "m=100000"), {"sparse_complexity_conjecture": False, "sparse_complexity_bound_explicit": False}),
        (("m=4",), {"dense_complexity_bound": True}),  # 2 / sqrt(m) of s (W R + B)
        (("probability=0.999",), {"halfspace_sensitivity_bound": True}),  # .22 of n p (1 - p) = .1
        (("probability=0.5",), {"halfspace_sensitivity_bound": False}),  # 2.9 of 25
        (("length=9", "tau=0.01"), {"parity_queries": True}),
        (("length=20", "tau=0.01"), {"parity_queries": False}),
    ],
)
def test_bounds_that_say_nothing_are_marked(capsys, given, vacuous):
    found = told(capsys, *SIZE, *(word for pair in given for word in ("--given", pair)))["bounds"]
    assert {row["name"]: row["vacuous"] for row in found if row["name"] in vacuous} == vacuous


def test_rows_for_any_distribution_are_compared_with_a_memory_of_inputs(capsys):
    size = ("--s", 64, "--k", 1, "--W", 1, "--B", 0, "--epsilon", 0.5, "--n")
    marks = []
    for n in (10, 60):
        (row,) = (row for row in told(capsys, *size, n)["bounds"] if row["name"] == "general_samples_explicit")
        marks.append(row["vacuous"])
        memory = n * 2.0**n / (e * 0.5 * 0.05)  # C^2 = n
        assert row["vacuous"] == (row["value"] >= memory)
    assert marks == [True, False]


def test_a_known_variance_marks_more(capsys, tmp_path):
    """Index_3 has the variance 1/4 and average sensitivity below 11/4, where 4 W^2 = 13."""
    networks.index(3).save(tmp_path / "index.sparsact")
    known = told(capsys, tmp_path / "index.sparsact", "--k", 1, "--given", "degree=5")
    marks = {row["name"]: row["vacuous"] for row in known["bounds"]}
    assert known["measured"]["variance"] == pytest.approx(0.25)
    assert all(marks[name] for name in ("tail_bound", "average_sensitivity_bound", "noise_sensitivity_bound"))
    W, B = networks.index(3).scale()
    alone = told(capsys, "--n", 11, "--s", 8, "--k", 1, "--W", W, "--B", B, "--given", "degree=5")["bounds"]
    assert not any(row["vacuous"] for row in alone if row["name"] in ("tail_bound", "average_sensitivity_bound"))


def test_what_is_known_without_a_bound_is_attained_by_extremal_networks(capsys, tmp_path):
    """All weight lies on degree n, so that its average sensitivity is n times its variance, and also the bound."""
    extremal(2, 1, 1.0).save(tmp_path / "extremal.sparsact")
    told_of = told(capsys, tmp_path / "extremal.sparsact")
    rows = {row["name"]: row for row in told_of["bounds"]}
    assert rows["average_sensitivity_bound"]["value"] == pytest.approx(3 * told_of["measured"]["variance"])
    assert rows["average_sensitivity_bound"]["vacuous"]
    assert rows["noise_sensitivity_bound"]["value"] > told_of["measured"]["variance"] * (1 - 0.9**3) / 2
    assert rows["noise_sensitivity_bound"]["vacuous"]
    assert "tail_bound" not in rows  # nothing lies above degree n


def test_the_degree_of_a_network_is_the_one_that_was_found(capsys, tmp_path):
    networks.index(2).save(tmp_path / "index.sparsact")
    told_of = told(capsys, tmp_path / "index.sparsact")
    assert told_of["parameters"]["degree"] == told_of["measured"]["degree"]["degree"] == 2
    given = told(capsys, tmp_path / "index.sparsact", "--given", "degree=1")
    assert given["parameters"]["degree"] == 1


def test_an_epsilon_that_a_constant_meets_is_told_in_a_line(capsys, tmp_path):
    networks.index(3).save(tmp_path / "index.sparsact")
    assert told(capsys, *SIZE)["trivial"] is None
    network = told(capsys, tmp_path / "index.sparsact", "--k", 1, "--epsilon", 0.25)
    assert network["trivial"].startswith("epsilon = 0.25 is no less than the variance, 0.25: the mean of the network")
    size = told(capsys, *SIZE, "--epsilon", 2000)
    assert size["trivial"].startswith("epsilon = 2000 is no less than C^2, 1156: the function 0 is enough")
    assert all(row["vacuous"] for row in size["bounds"] if row["gives"].startswith("rows"))
    assert size["trivial"] in " ".join(run(capsys, "bounds", *SIZE, "--epsilon", 2000)[1].split())


@pytest.mark.parametrize("columns", ["80", "120"])
def test_every_number_of_the_table_has_four_digits(capsys, monkeypatch, columns):
    """In one format, and no line is longer than the terminal."""
    monkeypatch.setenv("COLUMNS", columns)
    lines = run(capsys, "bounds", *SIZE, "--given", "m=1000")[1].splitlines()
    assert max(map(len, lines)) <= int(columns)
    cells = [line.split("│")[-2].strip() for line in lines if line.startswith("│")]
    numbers = [cell for cell in cells if cell and "=" not in cell and "inputs" not in cell]
    assert len(numbers) > 15
    assert all(fullmatch(r"\d+(\.\d+)?(e[+-]\d+)?", number) for number in numbers)
    assert all(len(number.split("e")[0].replace(".", "").lstrip("0")) <= 4 for number in numbers), numbers


def test_a_network(capsys, tmp_path):
    network, path = networks.index(3), tmp_path / "index.sparsact"
    network.save(path)
    answer = told(capsys, path, "--k", 1, "--epsilon", 0.05)
    assert answer["parameters"]["n"] == 11
    assert answer["parameters"]["W"] == network.scale().W
    measured = answer["measured"]
    values_of = network(points(11))
    flipped = [network(points(11) * np.where(np.arange(11) == i, -1, 1)) for i in range(11)]
    sensitivity = sum(((values_of - other) ** 2).mean() for other in flipped) / 4
    assert measured["exact"]
    assert measured["average_sensitivity"] == {
        "value": pytest.approx(sensitivity),
        "standard_error": 0,
        "n_samples": 2048,
    }
    assert measured["degree"]["degree"] == 3
    assert measured["degree"]["worst_case"] == values(answer)["sufficient_degree"]
    status, out, _ = run(capsys, "bounds", path, "--k", 1)
    assert status == 0
    assert "noise sensitivity at rho = 0.9" in out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--k", 3, "--s", 2), "`k` must not exceed `s`; got k = 3, s = 2."),
        (("--epsilon", 0), "`epsilon` must be positive"),
        (("--W", "inf"), "`W` must be finite; got inf."),
        (("--given", "degree=-1"), "`degree` must be a whole number from 0 (a degree); got -1."),
        (("--delta", 2), "`delta` must be above 0 and below 1"),
        (("--given", "m"), "--given m is not NAME=NUMBER"),
        (("--given", "m=many"), "--given m=many is not NAME=NUMBER"),
        (("--given", "depth=3"), "no bound has a parameter 'depth'; there are B, C,"),
        (("--given", "tau=3"), "`tau` must be above 0 and at most 1"),
        (("nowhere.sparsact",), "no model 'nowhere.sparsact'; make one with network.save"),
    ],
)
def test_bad_input(capsys, words, line):
    status, out, err = run(capsys, "bounds", *words)
    assert (status, out) == (2, "")
    assert line in err
    assert err.count("\n") == 1


def test_the_largest_value_follows_the_norm(capsys):
    """C = k (W R + B), and the bounds of any distribution take it."""
    _, out, _ = run(capsys, "bounds", "--n", 4, "--s", 8, "--k", 1, "--W", 1, "--B", 1, "--given", "R=100", "--json")
    found = {row["name"]: row["value"] for row in json.loads(out)["bounds"]}
    assert json.loads(out)["parameters"]["C"] == 101
    assert found["general_samples_explicit"] == general_samples_explicit(4, 8, 1, 1.0, 1.0, 100.0, 0.1, 0.05)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--W", 1.0), "the network has W = 1; leave --W out."),
        (("--k", 1), "--k 1, but some input switches on 2 units; leave --k out."),
        (("--k", 2, "--given", "k=3"), "k is 2 and 3; give it once."),
    ],
)
def test_parameters_that_contradict_the_network(capsys, tmp_path, words, line):
    extremal(3, 2, 1.0).save(tmp_path / "extremal.sparsact")
    status, out, err = run(capsys, "bounds", tmp_path / "extremal.sparsact", *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert line in err


def test_another_size_than_the_networks(capsys, tmp_path):
    networks.index(2).save(tmp_path / "index.sparsact")
    status, _, err = run(capsys, "bounds", tmp_path / "index.sparsact", "--n", 7, "--k", 1)
    assert status == 2
    assert "--n 7, but the network has n = 6; leave --n out." in err


def test_a_model_that_is_no_network(capsys, tmp_path):
    from sparsact import LowDegreeRegressor

    LowDegreeRegressor(1).fit([[1, -1], [-1, 1], [1, 1]], [1.0, 2.0, 3.0]).save(tmp_path / "model.sparsact")
    status, _, err = run(capsys, "bounds", tmp_path / "model.sparsact")
    assert status == 2
    assert "model.sparsact holds a LowDegreeRegressor; a SparselyActivatedNetwork is needed." in err


@pytest.mark.parametrize(
    ("W", "B", "epsilon"), [(1e308, 2, 0.1), (3, 1e308, 1e-320), (5e-324, 5e-324, 1e308), (1e200, 0, 5e-324)]
)
@pytest.mark.parametrize("others", [("--delta", 1e-320), ("--rho", -1, "--given", "L=5e-324", "--given", "c=1e-320")])
def test_the_ends_of_the_floats_have_bounds_too(capsys, W, B, epsilon, others):
    size = ("--n", 100, "--s", 64, "--k", 2, "--W", W, "--B", B, "--epsilon", epsilon)
    found = values(told(capsys, *size, *others, "--given", "intrinsic=3", "--given", "ambient=7"))
    assert found["sufficient_degree"] == sufficient_degree(2, W, epsilon, 64)
    assert sufficient_degree(2, W, epsilon) == max(0, ceil(16 * Fraction(W) ** 2 / Fraction(epsilon)) - 1)
