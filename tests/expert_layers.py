"""Small mixtures of experts, and inputs for them."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from sparsact.layers import MixtureOfExperts

n, hidden, o, experts = 7, 6, 5, 4


NAMES = {
    "top_k": {"n_active": 3, "capacity_factor": 0.8},
    "top_k all": {"router": "top_k", "normalise": "all", "n_active": 2},
    "sigmoid": {"n_active": 2, "scale": 2.5},
    "expert_choice": {"n_active": 2, "causal": False},
    "switch": {"capacity_factor": 0.9},
    "block_top1": {"n_active": 2},
    "hash_table": {"n_tokens": 3, "n_active": 2, "route_features": n},
    "hyperplane_lsh": {"n_active": 2},
    "learned_lsh": {"n_active": 2},
    "tree": {},
    "random_hash": {"n_active": 3},
}


GATES = ["top_k", "top_k all", "sigmoid", "switch"]


ACTIVATIONS = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "squared_relu": lambda z: torch.relu(z) ** 2,
    "swiglu": lambda z: F.silu(z[..., :hidden]) * z[..., hidden:],
    "reglu": lambda z: torch.relu(z[..., :hidden]) * z[..., hidden:],
    "geglu": lambda z: F.gelu(z[..., :hidden]) * z[..., hidden:],
}


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def layer(name="top_k", **options):
    options = {"router": name, "n_experts": experts, "generator": seeded(5), "dtype": torch.float64} | (
        NAMES[name] | options
    )
    return MixtureOfExperts(n, hidden, **options)


def inputs(*lead, dtype=torch.float64, seed=11):
    return torch.randn(*lead, n, generator=seeded(seed)).to(dtype)
