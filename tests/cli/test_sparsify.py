"""``sparsact sparsify``: what it prints of every method, and one line for every mistake."""

import json
import math

import numpy as np
import pytest
import torch
from commands import run
from grids import few_of
from safetensors.torch import save_file

import sparsact as sa

MODULE = """
import torch
from torch import nn

def block(units, activation=nn.ReLU, shift=1.0):
    model = nn.Sequential(nn.Linear(5, units), activation(), nn.Linear(units, 3))
    with torch.no_grad():
        model[0].weight.normal_(generator=torch.Generator().manual_seed(4)).div_(5**0.5)
        model[0].bias.fill_(-shift)
    return model

def make(units=23, half=False):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(29, 5), block(units))
    with torch.no_grad():
        model[0].weight.mul_(3)
    return model.bfloat16() if half else model

def of_points(shift=1.0):
    torch.manual_seed(0)
    return block(21, shift=shift)

def gelu():
    torch.manual_seed(0)
    return block(21, nn.GELU)

def two():
    torch.manual_seed(0)
    return nn.Sequential(block(19), nn.Linear(3, 5), block(22, nn.GELU))

class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = of_points()

    def forward(self, x, scale):
        return self.block(x * scale)

def double():
    return of_points().double()

def flat():
    return nn.Sequential(nn.Linear(5, 3))

def broken():
    raise KeyError("no such thing")

number = lambda: 3
"""
QUICK = ("--time-limit", "0.1", "--n-threads", "1")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with a module of its own name (modules are imported once a process) and inputs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made_for_tests_of_sparsify.py").write_text(MODULE)
    np.save("tokens.npy", np.random.default_rng(0).integers(29, size=(7, 17)).astype(np.int32))
    np.save("points.npy", np.random.default_rng(0).normal(size=(630, 5)))
    return tmp_path


def named(function):
    return f"made_for_tests_of_sparsify:{function}"


def refused(token):
    raise AssertionError(f"{token} is no JSON")


def told_by(capsys, *words):
    status, out, err = run(capsys, "sparsify", *words, "--json", *QUICK)
    assert (status, err) == (0, "")
    assert out.count("\n") == 1
    return json.loads(out, parse_constant=refused)


@pytest.mark.parametrize("method", ["auto", "exact", "certified"])
@pytest.mark.parametrize("half", [False, True])
def test_exact_methods_change_nothing(capsys, folder, method, half):
    arguments = json.dumps({"units": 24, "half": half})
    told = told_by(capsys, named("make"), "--inputs", "tokens.npy", "--arguments", arguments, "--method", method)
    (block,) = told["blocks"]
    assert block["block"] == "1"
    assert block["method"] in (("dense", "exact", "certified") if method == "auto" else (method,))
    assert 0 < block["density"] < 0.5
    assert block["quality"] is None
    assert set(block["seconds"] or ()) == ({"dense", "exact", "certified"} if method == "auto" else set())
    whole = told["model"]
    assert whole["batches"] == 7
    assert 0 < whole["low"] <= whole["speed_up"] <= whole["high"]
    assert min(whole["dense"], whole["sparse"]) > 0
    assert whole["difference"] < (0.03 if half else 1e-6)


@pytest.mark.parametrize("words", [["approximate", "--error", 0.1], ["approximate", "--density", 0.1]])
def test_approximations_tell_what_they_cost(capsys, folder, words):
    told = told_by(capsys, named("of_points"), "--inputs", "points.npy", "--batch-size", 10, "--method", *words)
    (block,) = told["blocks"]
    assert block["method"] == words[0]
    assert block["quality"].keys() == {"rows", "density", "output_error"}
    assert 0 <= told["model"]["difference"] < 1
    assert told["model"]["batches"] == 63


def test_the_density_matches_the_library(capsys, folder):
    told = told_by(capsys, named("of_points"), "--inputs", "points.npy", "--method", "exact", "--batch-size", 70)
    from made_for_tests_of_sparsify import of_points

    measured = sa.measure(of_points(), torch.from_numpy(np.load("points.npy")).float())
    assert told["blocks"][0]["density"] == pytest.approx(measured.density, rel=1e-6)
    assert told["blocks"][0]["bound"] == pytest.approx(measured.blocks[0].roofline().speedup("exact"), rel=1e-6)


def test_the_table(capsys, folder):
    status, out, err = run(capsys, "sparsify", named("two"), "--inputs", "points.npy", "--method", "exact", *QUICK)
    assert (status, err) == (0, "")
    heading, first, second, *_, whole = out.splitlines()
    assert heading.split()[:2] == ["block", "method"]
    assert first.split()[:2] == ["0", "exact"]
    assert second.split()[:2] == ["2", "dense"]
    assert "its activation (gelu) is never exactly zero" in second
    assert whole.startswith("whole model: ")
    assert "times as fast" in whole


def test_a_model_left_dense_is_not_timed_against_itself(capsys, folder):
    status, out, err = run(capsys, "sparsify", named("gelu"), "--inputs", "points.npy", *QUICK)
    assert (status, err) == (0, "")
    assert [line for line in out.splitlines() if "whole model" in line] == ["whole model: left dense"]


def test_the_table_of_an_approximation_has_its_quality(capsys, folder):
    words = [named("of_points"), "--inputs", "points.npy", "--method", "approximate", "--density", 0.1]
    status, out, err = run(capsys, "sparsify", *words, *QUICK)
    assert (status, err) == (0, "")
    _, block, *_, quality, _ = out.splitlines()
    assert block.split()[:2] == ["0-2", "approximate"]
    assert quality.startswith("0-2, on 16 inputs held out: density 0.")  # a quarter of the 64 that are looked at
    assert "output error 0." in quality


def test_outputs_that_are_not_numbers(capsys, folder):
    points = np.load("points.npy")[:9]
    points[0, 2] = np.nan
    np.save("nan.npy", points)
    told = told_by(capsys, named("of_points"), "--inputs", "nan.npy", "--method", "certified")
    assert told["model"]["difference"] < 1e-6


def test_named_tensors_weights_and_units_that_are_all_off(capsys, folder):
    x = torch.randn(41, 5, generator=torch.Generator().manual_seed(0))
    save_file({"x": x, "scale": torch.ones(41, 1)}, "inputs.safetensors")
    from made_for_tests_of_sparsify import Named

    state = {name: value.clone() for name, value in Named().state_dict().items()}
    state["block.0.bias"] -= 1000
    save_file(state, "weights.safetensors")
    words = [named("Named"), "--inputs", "inputs.safetensors", "--method"]
    assert told_by(capsys, *words, "exact")["blocks"][0]["density"] > 0
    for method in ("exact", "certified"):
        (block,) = told_by(capsys, *words, method, "--weights", "weights.safetensors")["blocks"]
        assert block["density"] == 0
        assert math.isfinite(block["bound"])
    (block,) = told_by(capsys, *words, "approximate", "--density", 0.2, "--weights", "weights.safetensors")["blocks"]
    assert block["bound"] == pytest.approx((5 + 3) / 5)  # `up` is read, of `down` nothing


def test_threads_are_as_before(capsys, folder):
    before = torch.get_num_threads()
    words = [named("of_points"), "--inputs", "points.npy", "--method", "exact", "--n-threads", before + 1]
    assert run(capsys, "sparsify", *words)[0] == 0
    assert torch.get_num_threads() == before
    assert run(capsys, "sparsify", *words, "--density", "0.5")[0] == 2
    assert torch.get_num_threads() == before


def test_a_folder_of_hugging_face(capsys, folder):
    transformers = pytest.importorskip("transformers", reason="needs the extra hf")
    sizes = {"hidden_size": 8, "word_embed_proj_dim": 8, "ffn_dim": 24, "max_position_embeddings": 32}
    config = transformers.OPTConfig(vocab_size=29, **sizes, num_hidden_layers=2, num_attention_heads=2)
    torch.manual_seed(0)
    transformers.OPTForCausalLM(config).save_pretrained("opt")
    capsys.readouterr()
    told = told_by(capsys, "opt", "--inputs", "tokens.npy", "--method", "certified")
    assert [block["block"] for block in told["blocks"]] == ["model.decoder.layers.0", "model.decoder.layers.1"]
    assert [block["method"] for block in told["blocks"]] == ["certified"] * 2
    assert told["model"]["difference"] < 1e-5


POINTS = [named("of_points"), "--inputs", "points.npy", "--method"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([*POINTS, "fast"], "`method` must be one of auto, exact, certified, approximate; got"),
        ([*POINTS, "dense"], "`method` must be one of auto"),
        ([*POINTS, "exact", "--recall", 0.9], "No such option: --recall"),
        ([*POINTS, "exact", "--predictor", "lsh"], "No such option: --predictor"),
        ([*POINTS, "certified", "--density", 0.1], 'method="certified" takes no density'),
        ([*POINTS, "auto", "--error", 0.1], 'method="auto" takes no error'),
        ([*POINTS, "approximate"], "takes one target, density or error; got none"),
        (
            [*POINTS, "approximate", "--density", 0.1, "--error", 0.1],
            "takes one target, density or error; got density=0.1, error=0.1",
        ),
        ([*POINTS, "approximate", "--density", 0], "`density` must lie in (0, 1]; got 0"),
        ([*POINTS, "approximate", "--error", "nan"], "`error` must lie in (0, 1]; got nan"),
        ([named("make"), "--inputs", "few.npy", "--method", "approximate", "--density", 0.1], "sample inputs; got"),
        ([named("gelu"), "--inputs", "points.npy", "--method", "exact"], "(gelu) is never exactly zero"),
        ([named("gelu"), "--inputs", "points.npy", "--method", "certified"], "(gelu) is never exactly zero"),
        ([named("double"), "--inputs", "points.npy", "--method", "certified"], "proofs cover float32 and narrower"),
        ([named("of_points")], "either --inputs FILE or --text FILE"),
        ([named("of_points"), "--inputs", "points.npy", "--text", "a.txt"], "either --inputs FILE or --text FILE"),
        ([named("of_points"), "--inputs", "missing.npy"], "No such file or directory"),
        ([named("of_points"), "--inputs", "points.csv"], "must end in .npy or .safetensors"),
        ([named("of_points"), "--inputs", "empty.npy"], "at least one input along its first axis"),
        ([named("of_points"), "--inputs", "wide.npy"], "the model cannot take these inputs: RuntimeError"),
        ([named("make"), "--inputs", "negative.npy"], "the model cannot take these inputs: IndexError"),
        ([named("make"), "--inputs", "negative.npy"], "in self. Token ids must lie in 0 to 28"),
        ([named("Named"), "--inputs", "points.npy"], "the model cannot take these inputs: TypeError"),
        ([named("flat"), "--inputs", "points.npy"], "block"),
        ([named("broken"), "--inputs", "points.npy"], "KeyError: 'no such thing'"),
        ([named("number"), "--inputs", "points.npy"], "must return a torch.nn.Module, got int"),
        ([named("missing"), "--inputs", "points.npy"], "has no attribute 'missing'"),
        (["nothing", "--inputs", "points.npy"], "neither a folder nor package.module:callable"),
        ([named("of_points"), "--inputs", "points.npy", "--arguments", '{"depth": 2}'], "depth"),
        (
            [named("of_points"), "--inputs", "points.npy", "--weights", "damaged.safetensors"],
            "not a file of safetensors",
        ),
        ([named("of_points"), "--inputs", "points.npy", "--batch-size", 0], "--batch-size"),
        ([named("of_points"), "--inputs", "points.npy", "--time-limit", -1], "--time-limit"),
        ([named("of_points"), "--inputs", "points.npy", "--n-threads", 0], "--n-threads"),
        ([named("of_points"), "--text", "a.txt"], "pass token ids by --inputs ids.npy"),
        (["my_model.py:make", "--inputs", "points.npy"], "leave out .py: my_model:make."),
    ],
)
@pytest.mark.parametrize("form", few_of([[], ["--json"]], [["--json"]]), ids=["table", "json"])
def test_a_mistake_is_told_in_one_line(capsys, folder, words, says, form):
    np.save("empty.npy", np.zeros((0, 5)))
    np.save("wide.npy", np.zeros((2, 6)))
    np.save("few.npy", np.zeros((2, 3), dtype=int))
    np.save("negative.npy", np.array([[-1]]))
    (folder / "damaged.safetensors").write_bytes(b"nothing of the kind")
    status, out, err = run(capsys, "sparsify", *words, *form)
    assert (status, out) == (2, "")
    assert err.startswith("sparsact: error: ")
    assert err.count("\n") == 1
    assert says in err
