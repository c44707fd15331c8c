"""``sparsact measure``: models and inputs by name, what it prints, and one line for every mistake."""

import json

import numpy as np
import pytest
import torch
from commands import run
from safetensors.torch import save_file

import sparsact as sa

MODULE = """
import torch
from torch import nn

def make(width=13, half=False):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(29, 5), nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, 3)))
    return model.bfloat16() if half else model

def of_points():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 13), nn.ReLU(), nn.Linear(13, 3))

class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = of_points()

    def forward(self, x, scale):
        return self.block(x * scale)

def flat():
    return nn.Sequential(nn.Linear(5, 3))

def broken():
    raise KeyError("no such thing")

number = lambda: 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with a module of its own name (modules are imported once a process) and inputs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made_for_tests_of_measure.py").write_text(MODULE)
    np.save("tokens.npy", np.random.default_rng(0).integers(29, size=(7, 17)).astype(np.int32))
    np.save("points.npy", np.random.default_rng(0).normal(size=(19, 5)))
    return tmp_path


def named(function):
    return f"made_for_tests_of_measure:{function}"


def measured(capsys, *words):
    status, out, err = run(capsys, "measure", *words, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def test_the_command_tells_what_the_library_measures(capsys, folder):
    told = measured(capsys, named("make"), "--inputs", "tokens.npy", "--batch-size", 4, "--n-threads", 1)
    from made_for_tests_of_measure import make

    tokens = torch.from_numpy(np.load("tokens.npy")).long()
    expected = sa.measure(make(), list(tokens.split(4))).to_dict()
    assert told == json.loads(json.dumps(expected))
    assert (told["n_batches"], told["blocks"][0]["n_rows"]) == (2, 7 * 17)


def test_both_commands_pass_one_input_per_call(capsys, folder):
    assert measured(capsys, named("make"), "--inputs", "tokens.npy")["n_batches"] == 7
    status, out, _ = run(capsys, "sparsify", named("make"), "--inputs", "tokens.npy", "--method", "exact", "--json")
    assert (status, json.loads(out)["model"]["batches"]) == (0, 7)


def test_arguments_and_types_of_weights(capsys, folder):
    told = measured(capsys, named("make"), "--inputs", "tokens.npy", "--arguments", '{"width": 11, "half": true}')
    (block,) = told["blocks"]
    assert (block["n_units"], block["dtype"]) == (11, "bfloat16")
    assert measured(capsys, named("of_points"), "--inputs", "points.npy")["blocks"][0]["n_rows"] == 19


def test_weights_replace_the_weights_of_the_callable(capsys, folder):
    from made_for_tests_of_measure import of_points

    state = of_points().state_dict()
    state["0.bias"] = torch.full((13,), -1000.0)
    save_file(state, "weights.safetensors")
    told = measured(capsys, named("of_points"), "--inputs", "points.npy", "--weights", "weights.safetensors")
    assert told["blocks"][0]["n_dead"] == 13
    del state["2.bias"]
    save_file(state, "weights.safetensors")
    status, out, err = run(
        capsys, "measure", named("of_points"), "--inputs", "points.npy", "--weights", "weights.safetensors"
    )
    assert (status, out) == (2, "")
    assert "the weights in 'weights.safetensors' are not this model's" in err
    assert "2.bias" in err


def test_named_tensors_are_keyword_arguments(capsys, folder):
    x = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    save_file({"x": x, "scale": torch.ones(7, 1)}, "inputs.safetensors")
    told = measured(capsys, named("Named"), "--inputs", "inputs.safetensors", "--batch-size", 3)
    assert (told["n_batches"], told["blocks"][0]["n_rows"]) == (3, 7)


@pytest.mark.grid
def test_the_report_is_written_and_named(capsys, folder):
    status, out, err = run(capsys, "measure", named("make"), "--inputs", "tokens.npy", "--report", "page.html")
    assert (status, err) == (0, "")
    assert "whole model: at most " in out
    assert out.rstrip().endswith("report: page.html")
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "--report page.html" in page
    assert named("make") in page


def test_threads_are_as_before(capsys, folder):
    before = torch.get_num_threads()
    measured(capsys, named("of_points"), "--inputs", "points.npy", "--n-threads", before + 1)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing", "--inputs", "points.npy"], "neither a folder nor package.module:callable"),
        (["no_such_module_here:make", "--inputs", "points.npy"], "No module named 'no_such_module_here'"),
        ([named("missing"), "--inputs", "points.npy"], "has no attribute 'missing'"),
        ([named("broken"), "--inputs", "points.npy"], "KeyError: 'no such thing'"),
        ([named("number"), "--inputs", "points.npy"], "must return a torch.nn.Module, got int"),
        ([named("make"), "--inputs", "points.npy", "--arguments", "[1]"], "must be a JSON object"),
        ([named("make"), "--inputs", "points.npy", "--arguments", "{"], "must be a JSON object"),
        ([named("make"), "--inputs", "points.npy", "--arguments", '{"depth": 2}'], "depth"),
        ([named("of_points")], "either --inputs FILE or --text FILE"),
        ([named("of_points"), "--inputs", "points.npy", "--text", "a.txt"], "either --inputs FILE or --text FILE"),
        ([named("of_points"), "--inputs", "missing.npy"], "No such file or directory"),
        ([named("of_points"), "--inputs", "points.csv"], "must end in .npy or .safetensors"),
        ([named("of_points"), "--inputs", "objects.npy"], "not an array of numbers"),
        ([named("of_points"), "--inputs", "words.npy"], "must hold integers or floats, got <U1"),
        ([named("of_points"), "--inputs", "empty.npy"], "at least one input along its first axis"),
        ([named("of_points"), "--inputs", "damaged.npy"], "not an array of numbers"),
        ([named("of_points"), "--inputs", "damaged.safetensors"], "not a file of safetensors"),
        (
            [named("of_points"), "--inputs", "uneven.safetensors"],
            "share their first axis, of inputs; got a (2,), b (3,)",
        ),
        ([named("of_points"), "--inputs", "wide.npy"], "the model cannot take these inputs: RuntimeError"),
        ([named("make"), "--inputs", "negative.npy"], "the model cannot take these inputs: IndexError"),
        ([named("of_points"), "--inputs", "nan.npy"], "NaN or infinite"),
        (
            [named("of_points"), "--inputs", "points.npy", "--weights", "damaged.safetensors"],
            "not a file of safetensors",
        ),
        ([named("of_points"), "--inputs", "points.npy", "--report", "page.txt"], "must end in .html"),
        (["bare", "--inputs", "points.npy"], "must hold config.json and *.safetensors"),
        (["bare", "--inputs", "points.npy", "--arguments", "{}"], "--arguments apply to a callable"),
    ],
)
def test_a_mistake_is_told_in_one_line(capsys, folder, words, says):
    (folder / "bare").mkdir()
    np.save("objects.npy", np.array([{}], dtype=object))
    np.save("words.npy", np.array(["a"]))
    np.save("empty.npy", np.zeros((0, 5)))
    np.save("wide.npy", np.zeros((2, 6)))
    np.save("negative.npy", np.array([[-1]]))
    np.save("nan.npy", np.full((2, 5), np.nan))
    for name in ("damaged.npy", "damaged.safetensors"):
        (folder / name).write_bytes(b"nothing of the kind")
    save_file({"a": torch.zeros(2), "b": torch.zeros(3)}, "uneven.safetensors")
    status, out, err = run(capsys, "measure", *words)
    assert (status, out) == (2, "")
    assert err.startswith("sparsact: error: ")
    assert err.count("\n") == 1
    assert says in err


def test_a_model_without_a_block_has_its_layers_listed(capsys, folder):
    told = measured(capsys, named("flat"), "--inputs", "points.npy", "--report", "page.html")
    assert told["blocks"] == []
    assert [layer["density"] for layer in told["layers"]] == [1.0]
    page = (folder / "page.html").read_text()
    assert "Layers in no block" in page
    assert "the input has no exact zeros" in page
    assert "<figure" not in page


def test_a_folder_of_hugging_face(capsys, folder):
    transformers = pytest.importorskip("transformers", reason="needs the extra hf")
    config = transformers.OPTConfig(
        vocab_size=29,
        hidden_size=8,
        ffn_dim=24,
        word_embed_proj_dim=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=512,
    )
    torch.manual_seed(0)
    transformers.OPTForCausalLM(config).save_pretrained("opt")
    capsys.readouterr()
    told = measured(capsys, "opt", "--inputs", "tokens.npy", "--batch-size", 3)
    assert [block["n_units"] for block in told["blocks"]] == [24, 24]
    assert [block["n_rows"] for block in told["blocks"]] == [7 * 17] * 2
    assert 0 < told["blocks"][0]["density"] < 1
    assert told["blocks"][0]["dtype"] == "float32"
    (folder / "text.txt").write_text("a b c " * 517)
    status, _, err = run(capsys, "measure", "opt", "--text", "text.txt")
    assert (status, err.count("\n")) == (2, 1)
    assert "has no tokenizer" in err
    tokenizers = pytest.importorskip("tokenizers", reason="needs the extra hf")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 5, "b": 6, "c": 7}, unk_token="a"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained("opt")
    told = measured(capsys, "opt", "--text", "text.txt", "--batch-size", 2)
    assert (told["n_batches"], told["blocks"][0]["n_rows"]) == (2, 3 * 512)
