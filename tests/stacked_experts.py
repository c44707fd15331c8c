"""Small models of transformers, and layers of this library, that keep all experts in one parameter a projection."""

from __future__ import annotations

import torch
import transformers
from torch import nn

from sparsact.layers import MixtureOfExperts

TOKENS = {"vocab_size": 11, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SIZES = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3}
IDS = 1 + torch.arange(14).reshape(2, 7) % 9  # 0 is padding, whose embedding is 0
SHOWN = [IDS[:1, :1], IDS[:, :3]]


def mixtral(activation="relu", **options):
    sizes = SIZES | {"num_local_experts": 3, "num_experts_per_tok": 2, "num_key_value_heads": 3} | options
    return transformers.MixtralForCausalLM(transformers.MixtralConfig(**TOKENS, **sizes, hidden_act=activation))


def qwen3(activation="relu"):
    sizes = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 40, "num_key_value_heads": 3}
    config = transformers.Qwen3MoeConfig(**TOKENS, **SIZES, **sizes, head_dim=8, hidden_act=activation)
    return transformers.Qwen3MoeForCausalLM(config)


def olmoe(activation="relu"):
    sizes = {"num_experts": 4, "num_experts_per_tok": 3, "num_key_value_heads": 3}
    return transformers.OlmoeForCausalLM(transformers.OlmoeConfig(**TOKENS, **SIZES, **sizes, hidden_act=activation))


def nemotron_h():
    """Experts without gates, of squared ReLU, and a shared one that is a block of its own."""
    sizes = {
        "n_routed_experts": 4,
        "moe_intermediate_size": 40,
        "moe_shared_expert_intermediate_size": 16,
        "n_group": 1,
    }
    sizes |= {"num_key_value_heads": 3, "head_dim": 8, "layers_block_type": ["moe", "full_attention"], "topk_group": 1}
    config = transformers.NemotronHConfig(**TOKENS, **{**SIZES, "num_hidden_layers": 2}, **sizes, num_experts_per_tok=2)
    return transformers.NemotronHForCausalLM(config)


class Mixture(nn.Module):
    """Layers of this library on embedded tokens."""

    def __init__(self, **options):
        super().__init__()
        self.embed = nn.Embedding(11, 12)
        self.layer = MixtureOfExperts(12, 20, n_experts=5, n_active=2, **options)
        self.head = nn.Linear(12, 7)

    def forward(self, ids):
        return self.head(self.layer(self.embed(ids)))


MODELS = {
    "mixtral": mixtral,
    "qwen3": qwen3,
    "olmoe": olmoe,
    "nemotron_h": nemotron_h,
    "relu and biases": lambda: Mixture(activation="relu", bias=True),
    "shared, and dropped tokens": lambda: Mixture(
        activation="squared_relu", n_shared=1, eval_capacity_factor=0.5, router="top_k"
    ),
    "no parameters of the router": lambda: Mixture(activation="relu", router="random_hash"),
}
N_BLOCKS = {"mixtral": 6, "qwen3": 8, "olmoe": 8, "nemotron_h": 5}
