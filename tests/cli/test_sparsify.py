"""``sparsact sparsify``: what it prints, and one line for every mistake."""

import json

import numpy as np
import pytest
from commands import run

MODULE = """
import torch
from torch import nn

def make(activation="ReLU"):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 23), getattr(nn, activation)(), nn.Linear(23, 3))
    with torch.no_grad():
        model[0].bias.sub_(1)
    return model
"""


@pytest.fixture
def given(tmp_path, monkeypatch):
    (tmp_path / "made_for_tests_of_sparsify.py").write_text(MODULE)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(37, 5)).astype(np.float32))
    monkeypatch.chdir(tmp_path)
    return ["made_for_tests_of_sparsify:make", "--inputs", "x.npy"]


def test_one_object_of_the_plan_and_the_whole_model(capsys, given):
    status, out, err = run(capsys, "sparsify", *given, "--method", "exact", "--threads", 1, "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    (block,) = told["blocks"]
    assert (block["method"], block["max_rows"]) == ("exact", 16)
    assert 0 < block["density"] < 0.5
    assert told["model"]["batches"] == 37
    assert told["model"]["difference"] < 1e-5


def test_a_table_for_people(capsys, given):
    status, out, err = run(capsys, "sparsify", *given, "--time-limit", 0, "--threads", 1)
    assert (status, err) == (0, "")
    assert "0-2" in out
    assert "whole model:" in out


MISTAKES = {
    "method": (["--method", "fast"], "must be one of auto"),
    "option of another method": (["--method", "exact", "--recall", 0.9], "takes no options; got recall"),
    "never zero": (["--method", "exact", "--arguments", '{"activation": "GELU"}'], "never exactly zero"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_one_line_for_every_mistake(name, capsys, given):
    words, message = MISTAKES[name]
    status, out, err = run(capsys, "sparsify", *given, *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err
