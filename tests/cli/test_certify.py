"""``sparsact certify`` as a person or a machine runs it."""

import ctypes
import json
import sys

import numpy as np
import pytest
from commands import process, run
from random_networks import random_network

import sparsact
from sparsact.constructions import indexing, parity
from sparsact.network import SparselyActivatedNetwork
from sparsact.stack import Stack


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("networks")
    indexing(3).save(path / "index.sparsact")
    parity(range(3), 3, signs=True).save(path / "parity.sparsact")
    random_network("reals", 30, 30, np.random.default_rng(0)).save(path / "real.sparsact")
    Stack([1.0, -1.0], [([[1, 1], [-1, -1]], [1, 1]), ([[2, 2], [-1, -1]], [1, -1])]).save(path / "stack.sparsact")
    X = 1 - 2 * np.random.default_rng(0).integers(0, 2, (31, 3))
    sparsact.LowDegreeRegressor(degree=1).fit(X, X[:, 0]).save(path / "model.sparsact")
    return path


def test_a_verdict_with_its_witness(capsys, folder):
    status, out, err = run(capsys, "certify", folder / "index.sparsact")
    assert (status, err) == (0, "")
    first, witness, counts, took = out.splitlines()
    assert (
        first == "At most 1 of 8 units is active at any point of {-1,1}^11: proved by enumeration of all 2,048 points."
    )
    signs = [1 if sign == "+" else -1 for sign in witness.removeprefix("witness, 1 active: ")]
    assert indexing(3).n_active(np.array([signs]))[0] == 1
    assert counts == "inputs by active units  0: 1,024, 1: 1,024"
    assert took.startswith("took ")


def test_json_is_a_certificate(capsys, folder):
    status, out, err = run(capsys, "certify", folder / "index.sparsact", "--method", "milp", "--json")
    assert (status, err) == (0, "")
    certificate = sparsact.Certificate.from_json(out)
    assert (certificate.max_active, certificate.exact, certificate.method) == (1, True, "milp")


def test_layers_of_a_stack(capsys, folder):
    status, out, err = run(capsys, "certify", folder / "stack.sparsact")
    assert (status, err) == (0, "")
    assert [line for line in out.splitlines() if line.endswith(":")] == ["layer 1:", "layer 2:", "all layers:"]
    assert out.count("At most 1 of 2 units is active") == 2
    assert out.count("At most 2 of 4 units are active") == 1
    found = json.loads(run(capsys, "certify", folder / "stack.sparsact", "--json", "--method", "milp")[1])
    parts = [sparsact.Certificate.from_json(json.dumps(part)) for part in (*found["layers"], found["whole"])]
    assert [(part.max_active, part.n_units) for part in parts] == [(1, 2), (1, 2), (2, 4)]
    sampled = json.loads(run(capsys, "certify", folder / "stack.sparsact", "--json", "--samples", 64)[1])
    assert {part["method"] for part in sampled["layers"]} == {"sampled"}
    status, _, err = run(capsys, "certify", folder / "stack.sparsact", "--quadratic-lift")
    assert (status, "leave out --quadratic-lift" in err) == (2, True)


def test_over_a_quadratic_lift(capsys, folder):
    parity = folder / "parity.sparsact"
    assert run(capsys, "certify", parity)[1].startswith("At most 3 of 4 units are active at any point")
    out = run(capsys, "certify", parity, "--quadratic-lift")[1]
    assert out.startswith("At most 1 of 4 units is active at any lifted point x(y), y in {-1,1}^3")


def test_time_that_runs_out_leaves_an_interval(capsys, folder):
    status, out, _ = run(capsys, "certify", folder / "real.sparsact", "--time-limit", "0")
    assert status == 0
    assert out.startswith("Between ")
    assert "the time limit came first" in out


def test_samples(capsys, folder):
    words = ("--samples", 200, "--at-most", 1, "--confidence", 0.9, "--random-state", 3)
    status, out, _ = run(capsys, "certify", folder / "index.sparsact", *words)
    assert status == 0
    most = f"{1 - 0.1 ** (1 / 200):.3g}"  # none of 200 samples: (1 - p)^200 = 1 - confidence
    assert out.startswith(f"With confidence 0.9, more than 1 of 8 units are active with probability at most {most}")
    told = json.loads(run(capsys, "certify", folder / "index.sparsact", *words, "--json")[1])
    assert (told["n_samples"], told["at_most"], told["exceeded"], told["confidence"]) == (200, 1, 0, 0.9)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.sparsact"], "no model"),
        (["."], "is a folder"),
        (["model.sparsact"], "holds a LowDegreeRegressor"),
        (["index.sparsact", "--method", "guess"], "`method` must be one of"),
        (["index.sparsact", "--at-most", "1"], "--samples N"),
        (["index.sparsact", "--method", "sampled"], "--samples N"),
        (["index.sparsact", "--method", "milp", "--samples", "9"], "pass one of the two"),
        (["index.sparsact", "--samples", "9", "--at-most", "9"], "`max_active`"),
        (["index.sparsact", "--samples", "9", "--confidence", "2"], "`confidence`"),
        (["index.sparsact", "--samples", "0"], "--samples"),
        (["index.sparsact", "--time-limit", "-1"], "`time_limit`"),
        (["index.sparsact", "--quadratic-lift"], "m * m coordinates"),
        (["real.sparsact", "--method", "enumeration"], "method='milp'"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys, folder, words, message):
    status, out, err = run(capsys, "certify", folder / words[0], *words[1:])
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert message in err


@pytest.mark.skipif(sys.platform == "win32", reason="C's streams are reached another way there")
def test_what_a_solver_prints_is_kept_off_stdout(capfd, folder, monkeypatch):
    plain = SparselyActivatedNetwork.certify

    def noisy(network, *words, **options):
        ctypes.CDLL(None).puts(b"a remark of the solver")
        return plain(network, *words, **options)

    monkeypatch.setattr(SparselyActivatedNetwork, "certify", noisy)
    status, out, err = run(capfd, "certify", folder / "index.sparsact", "--json")
    assert status == 0
    assert json.loads(out)["max_active"] == 1
    assert "a remark of the solver" in err


@pytest.mark.grid
def test_the_installed_command_and_its_help(capsys, folder):
    assert process("certify", folder / "index.sparsact").stdout.startswith("At most 1 of 8 units")
    assert "--quadratic-lift" in run(capsys, "certify", "--help")[1]
