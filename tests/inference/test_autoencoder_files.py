"""Files that are no autoencoder, or none that is understood: each is refused in a sentence."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from inference.saved_autoencoders import (  # noqa: E402
    CASES,
    LEFT,
    LINEAR,
    OLD,
    PLAIN,
    D,
    K,
    N,
    dictionary_learning,
    parameters,
    sae_lens,
)
from torch import nn  # noqa: E402

from sparsact.inference import Autoencoder, load_sae  # noqa: E402
from sparsact.saving import ModelFileError  # noqa: E402


def rejects(folder, match, kind=ModelFileError):
    with pytest.raises(kind, match=match):
        load_sae(folder)


def test_missing_and_damaged_files(tmp_path):
    rejects(tmp_path / "nowhere", "must be a folder with cfg.json and sae_weights.safetensors", FileNotFoundError)
    for name, (write, _, _) in CASES.items():
        folder = tmp_path / name
        folder.mkdir()
        write(folder, parameters())
        for path in folder.iterdir():
            whole = path.read_bytes()
            for part in (b"", whole[: len(whole) // 2], whole[:-1], b"\x80\x02}q\x00." + whole[:100]):
                path.write_bytes(part)
                rejects(folder, f"{path.name} must be whole")
            path.unlink()
            rejects(folder, "download all files", FileNotFoundError)
            path.write_bytes(whole)


@pytest.mark.parametrize("name", CASES)
def test_tensors_that_disagree_with_the_configuration(tmp_path, name):
    write, p = CASES[name][0], parameters()
    for wrong in (
        {"W_enc": p["W_enc"][:, :-1]},
        {"W_dec": p["W_dec"][:-1]},
        {"b_dec": p["b_dec"][:-1]},
        {"W_dec": p["W_dec"].double()},
        {"b_dec": p["b_dec"] * torch.nan},
    ):
        write(tmp_path, p | wrong)
        rejects(tmp_path, f"(W_dec|{next(iter(wrong))}) is")


@pytest.mark.parametrize(
    ("cfg", "names", "match"),
    [
        ({"architecture": "temporal"}, PLAIN, "architecture in .* must be one of"),
        ({"architecture": LEFT}, PLAIN, "architecture in .* must be one of"),
        ({"architecture": "standard", "normalize_activations": "layer_norm"}, PLAIN, 'has "layer_norm": fold'),
        ({"architecture": "standard", "d_sae": N + 1}, PLAIN, "W_dec is"),
        ({"architecture": "standard", "d_in": "24"}, PLAIN, "d_in in .* must be an integer"),
        ({"architecture": "standard", "new_way": True}, PLAIN, "has new_way too"),
        ({"architecture": "standard"}, f"{PLAIN} threshold", "threshold is"),
        ({"architecture": "jumprelu"}, PLAIN, "threshold is missing"),
        ({"architecture": "gated"}, PLAIN, "b_enc is"),
        ({"architecture": "topk"}, PLAIN, "k in .* must be an integer; got None"),
        ({"architecture": "topk", "k": N + 1}, PLAIN, "k in .* must lie between 1 and"),
        ({"architecture": "transcoder", "d_out": D, "apply_b_dec_to_input": True}, PLAIN, "apply_b_dec_to_input false"),
        (
            {"architecture": "standard", "apply_b_dec_to_input": "false"},
            PLAIN,
            "must be one of False, True",
        ),
        (
            OLD | {"activation_fn_str": "topk", "activation_fn_kwargs": [K]},
            PLAIN,
            "k in .* must be an integer; got None",
        ),
        (OLD | {"activation_fn_str": "tanh-relu"}, PLAIN, "must be one of relu, topk"),
        (OLD | {"finetuning_scaling_factor": True}, PLAIN, "finetuning_scaling_factor must be false"),
    ],
)
def test_configurations_that_are_refused(tmp_path, cfg, names, match):
    sae_lens(names, cfg)(tmp_path, parameters())
    rejects(tmp_path, match, (ValueError, TypeError))


def test_dictionaries_that_are_refused(tmp_path):
    dictionary_learning("IdentityDict", LINEAR)(tmp_path, parameters())
    rejects(tmp_path, "dict_class in .* must be one of", ValueError)
    dictionary_learning("BatchTopKSAE", f"{LINEAR} b_dec=b_dec")(tmp_path, parameters())
    rejects(tmp_path, "threshold is missing")
    dictionary_learning("AutoEncoderTopK", f"{LINEAR} b_dec=b_dec", k=torch.tensor(K))(tmp_path, parameters())
    config = json.loads((tmp_path / "config.json").read_text())
    config["trainer"]["k"] = K + 1
    (tmp_path / "config.json").write_text(json.dumps(config))
    rejects(tmp_path, "k must be one number")
    (tmp_path / "config.json").write_text("[1]")
    rejects(tmp_path, "config.json must be whole")


@pytest.mark.parametrize(
    "held",
    [
        [1.0],
        {"k": "9"},
        {"encoder.weight": torch.zeros(2, 3, 4)},
        {1: torch.zeros(2)},
        {"bias": torch.zeros(D).to_sparse()},
        {"bias": torch.zeros(D, device="meta")},
        {"bias": torch.zeros(D), "b_dec": torch.ones(D)},
    ],
)
def test_files_that_hold_something_else(tmp_path, held):
    CASES["AutoEncoder"][0](tmp_path, parameters())
    torch.save(held, tmp_path / "ae.pt")
    rejects(tmp_path, "ae.pt must be whole")


def test_damaged_arrays_that_are_compressed(tmp_path):
    np.savez_compressed(tmp_path / "params.npz", W_enc=np.random.default_rng(0).normal(size=(D, N)).astype(np.float32))
    whole = (tmp_path / "params.npz").read_bytes()
    for at in range(60, 160):
        (tmp_path / "params.npz").write_bytes(whole[:at] + b"\xff\xff" + whole[at + 2 :])
        rejects(tmp_path, "params.npz must be whole")


@pytest.mark.parametrize("names", ["b_enc", "W_enc b_enc", "W_dec threshold"])
def test_arrays_that_are_missing(tmp_path, names):
    p = parameters()
    np.savez(tmp_path / "params.npz", **{name: p[name].numpy() for name in names.split()})
    rejects(tmp_path, "is missing|is torch.float32")


def test_inputs_that_are_refused(tmp_path):
    CASES["SAELens top-k"][0](tmp_path, parameters())
    autoencoder = load_sae(tmp_path)
    for call in (autoencoder, autoencoder.encode):
        for x in (torch.zeros(3, D + 1), torch.zeros(3, D, dtype=torch.long), torch.tensor(0.0)):
            with pytest.raises(ValueError, match="activations must have shape"):
                call(x)
    with pytest.raises(ValueError, match="must lie between 1 and 9"):
        autoencoder.encode(torch.zeros(3, D), k=K + 1)
    for features in (
        (torch.tensor([[N]]), torch.ones(1, 1)),
        (torch.tensor([[-1]]), torch.ones(1, 1)),
        (torch.tensor([[0.0]]), torch.ones(1, 1)),
        (torch.tensor([[0]]), torch.ones(1, 2)),
        (torch.tensor(0), torch.tensor(1.0)),
        (torch.zeros(2, 0, dtype=torch.int64), torch.zeros(2, 0)),
    ):
        with pytest.raises(ValueError, match="features must be places"):
            autoencoder.decode(features)


def test_activations_without_thresholds_are_refused():
    with pytest.raises(TypeError, match=r"must be nn\.ReLU, Jump or Gate"):
        Autoencoder(nn.Linear(2, 3), nn.Linear(3, 2), nn.GELU())


def test_code_in_a_file_is_not_run(tmp_path):
    dictionary_learning("AutoEncoder", f"{LINEAR} bias=b_dec")(tmp_path, parameters())
    torch.save(nn.Linear(2, 3), tmp_path / "ae.pt")
    rejects(tmp_path, "ae.pt must be whole")
