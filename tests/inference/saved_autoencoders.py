"""Autoencoders in the files of other libraries, and what these libraries compute, in plain torch."""

import json
from functools import partial

import numpy as np
import torch
from safetensors.torch import save_file

D, N, OUT, K = 24, 200, 17, 9


def parameters(out=D, seed=0):
    """Random tensors by the names of SAELens; about 5 % of features are on."""
    normal = partial(torch.randn, generator=torch.Generator().manual_seed(seed))
    return {
        "W_enc": normal(D, N) / D**0.5,
        "b_enc": normal(N) * 0.3 - 2.0,
        "W_dec": normal(N, out),
        "b_dec": normal(out),
        "threshold": normal(N) * 0.3,  # some below 0
        "b_gate": normal(N) * 0.3 - 2.0,
        "r_mag": normal(N) * 0.3,
        "b_mag": normal(N) * 0.3,
        "W_skip": normal(out, D),
    }


def sae_lens(names, cfg):
    def write(folder, p):
        said = {"d_in": D, "d_sae": N, "apply_b_dec_to_input": False, "normalize_activations": "none"}
        said |= {"metadata": {"hook_name": "blocks.0.hook_resid_pre"}} | cfg
        (folder / "cfg.json").write_text(json.dumps({key: one for key, one in said.items() if one != "left out"}))
        save_file({name: p[name].contiguous() for name in names.split()}, folder / "sae_weights.safetensors")

    return write


def dictionary_learning(dict_class, names, **more):
    """``names`` are pairs, of the file's and SAELens's; weights of ``nn.Linear`` are transposed."""

    def write(folder, p):
        trainer = {"dict_class": dict_class, "activation_dim": D, "dict_size": N, "lr": 1e-3} | (
            {"k": int(more["k"])} if "k" in more else {}
        )
        (folder / "config.json").write_text(json.dumps({"trainer": trainer, "buffer": {"ctx_len": 128}}))
        pairs = [pair.split("=") for pair in names.split()]
        held = {name: p[one].t().contiguous() if name.endswith(".weight") else p[one] for name, one in pairs}
        torch.save(held | more, folder / "ae.pt")

    return write


def gemma_scope(folder, p):
    names = "W_enc", "b_enc", "W_dec", "b_dec", "threshold"
    np.savez(folder / "params.npz", **{name: p[name].numpy() for name in names})


# ---- what the libraries compute: features of x, and reconstructions ----


def less(p, x, centred):
    return x - p["b_dec"] if centred else x


def standard(p, x, centred=False):
    return (less(p, x, centred) @ p["W_enc"] + p["b_enc"]).relu()


def top_k(p, x, centred=False):
    values, places = (less(p, x, centred) @ p["W_enc"] + p["b_enc"]).topk(K, dim=-1)
    return torch.zeros(*x.shape[:-1], N).scatter_(-1, places, values.relu())


def jump(p, x, centred=False, threshold=None):
    z = less(p, x, centred) @ p["W_enc"] + p["b_enc"]
    return z.relu() * (z > (p["threshold"] if threshold is None else threshold))


def gated(p, x, centred=False):
    x = less(p, x, centred)
    on = (x @ p["W_enc"] + p["b_gate"] > 0).float()
    return on * (x @ (p["W_enc"] * p["r_mag"].exp()) + p["b_mag"]).relu()


def decoded(p, f):
    return f @ p["W_dec"] + p["b_dec"]


def rescaled_top_k(p, x, centred=False):
    values, places = ((x @ p["W_enc"] + p["b_enc"]) * p["W_dec"].norm(dim=-1)).topk(K, dim=-1)
    return torch.zeros(*x.shape[:-1], N).scatter_(-1, places, values.relu())


def unit_norms(p, x, centred=True):
    return standard(p, x, centred) * p["W_dec"].norm(dim=-1)


PLAIN = "W_enc b_enc W_dec b_dec"
LINEAR = "encoder.weight=W_enc encoder.bias=b_enc decoder.weight=W_dec"
FLAT = "W_enc=W_enc b_enc=b_enc W_dec=W_dec b_dec=b_dec"
LEFT = "left out"
OLD = {"metadata": LEFT, "hook_point": "blocks.0.hook_resid_pre", "lr": 1e-3, "finetuning_scaling_factor": False}
CASES = {  # how it is written, features, whether activations are centred
    "SAELens standard": (sae_lens(PLAIN, {"architecture": "standard"}), standard, False),
    "SAELens standard, centred": (
        sae_lens(PLAIN, {"architecture": "standard", "apply_b_dec_to_input": True}),
        standard,
        True,
    ),
    "SAELens top-k": (sae_lens(PLAIN, {"architecture": "topk", "k": K}), top_k, False),
    "SAELens top-k, rescaled": (
        sae_lens(PLAIN, {"architecture": "topk", "k": K, "rescale_acts_by_decoder_norm": True}),
        rescaled_top_k,
        False,
    ),
    "SAELens jump": (sae_lens(f"{PLAIN} threshold", {"architecture": "jumprelu"}), jump, False),
    "SAELens gated": (
        sae_lens("W_enc b_gate r_mag b_mag W_dec b_dec", {"architecture": "gated", "apply_b_dec_to_input": True}),
        gated,
        True,
    ),
    "SAELens 3": (
        sae_lens(PLAIN, OLD | {"apply_b_dec_to_input": LEFT, "normalize_activations": False}),
        standard,
        True,
    ),
    "SAELens 5, top-k": (
        sae_lens(PLAIN, OLD | {"activation_fn_str": "topk", "activation_fn_kwargs": {"k": K}}),
        top_k,
        False,
    ),
    "AutoEncoder": (dictionary_learning("AutoEncoder", f"{LINEAR} bias=b_dec"), unit_norms, True),
    "AutoEncoderNew": (dictionary_learning("AutoEncoderNew", f"{LINEAR} decoder.bias=b_dec"), standard, False),
    "AutoEncoderTopK": (
        dictionary_learning("AutoEncoderTopK", f"{LINEAR} b_dec=b_dec", k=torch.tensor(K), threshold=torch.tensor(0.2)),
        top_k,
        True,
    ),
    "BatchTopKSAE": (
        dictionary_learning("BatchTopKSAE", f"{LINEAR} b_dec=b_dec", k=torch.tensor(K), threshold=torch.tensor(0.2)),
        lambda p, x, centred: jump(p, x, centred, 0.2),
        True,
    ),
    "MatryoshkaBatchTopKSAE": (
        dictionary_learning(
            "MatryoshkaBatchTopKSAE",
            FLAT,
            k=torch.tensor(K),
            threshold=torch.tensor(-1.0),
            group_sizes=torch.tensor([N // 2, N // 2]),
        ),
        standard,
        True,
    ),
    "JumpReluAutoEncoder": (
        dictionary_learning("JumpReluAutoEncoder", f"{FLAT} threshold=threshold"),
        jump,
        False,
    ),
    "GatedAutoEncoder": (
        dictionary_learning(
            "GatedAutoEncoder",
            "encoder.weight=W_enc decoder.weight=W_dec decoder_bias=b_dec gate_bias=b_gate r_mag=r_mag mag_bias=b_mag",
        ),
        gated,
        True,
    ),
    "Gemma Scope": (gemma_scope, jump, False),
}
