"""One decoding step in the shape of Gemma 3n, which keeps 5 % of its gates on: time compared with the dense model.

Weights are random (``transformers``): hidden size 1,024, gates of 8,192, five layers with the cutoff and one without,
and a head of 8,000 or 24,000 words, which stays dense (195 million parameters with the larger). One token a step; dense
and sparse take turns on the same weights in float32. In int8 our dense layers are compared with our sparse blocks. The
zeros that ``measure`` reports are compared with counts of exact zeros before each down-projection.

Targets: float32 1.5 times as fast as dense, int8 1.25 times, ``measure`` within one percentage point. Roofline: bytes
of all linear layers over bytes of a step that skips 95 % of the up- and down-projections of five layers.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from copy import deepcopy
from itertools import cycle
from typing import Any, Final

import torch
from torch import Tensor, nn
from transformers.models.gemma3n import configuration_gemma3n, modeling_gemma3n

from benchmarks.figures import Check, Figure
from benchmarks.harness import interleaved
from benchmarks.int8 import dense_quantized
from benchmarks.program import option, program
from sparsact.inference import find_blocks, measure, sparsify

ON: Final = 0.05
GOALS: Final = {"float32": 1.5, "int8": 1.25}


def model_of(d: int, s: int, vocabulary: int) -> Any:
    """Five layers with the cutoff, and one without."""
    config = configuration_gemma3n.Gemma3nTextConfig(
        vocab_size=vocabulary,
        vocab_size_per_layer_input=256,
        hidden_size=d,
        hidden_size_per_layer_input=d // 16,
        intermediate_size=[s] * 6,
        num_hidden_layers=6,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=d // 8,
        layer_types=["sliding_attention"] * 5 + ["full_attention"],
        activation_sparsity_pattern=[1 - ON] * 5 + [0.0],
        num_kv_shared_layers=0,
        laurel_rank=d // 32,
        altup_num_inputs=2,
        tie_word_embeddings=False,
    )
    return modeling_gemma3n.Gemma3nForCausalLM(config).eval()


def densities(model: nn.Module, ids: Tensor) -> dict[str, float]:
    """Shares of exact numbers other than 0 in what each down-projection receives."""
    found: dict[str, float] = {}
    for name, module in model.named_modules():
        if name.endswith("down_proj"):

            def see(_: nn.Module, given: tuple[Tensor, ...], name: str = name) -> None:
                found[name] = float((given[0] != 0).float().mean())

            module.register_forward_pre_hook(see)
    model(input_ids=ids, use_cache=False)
    return found


def figures_of(sizes: tuple[int, int, int], repeats: int) -> list[Figure]:
    """A step of one token by every side."""
    model = model_of(*sizes)
    ids = [torch.randint(0, 256, (1, 1)) for _ in range(8)]
    n_weights = sum(one.weight.numel() for one in model.modules() if isinstance(one, nn.Linear))
    skipped = 2 * 5 * sizes[0] * sizes[1] * (1 - ON)
    work = f"Gemma 3n, {sum(p.numel() for p in model.parameters()) / 1e6:.0f}M, a head of {sizes[2]:,} words"
    with torch.inference_mode():
        truth = densities(deepcopy(model), torch.cat(ids, 1))
        seen = {one.name: one.density for one in measure(model, torch.cat(ids, 1)).layers}
        wrong = max(abs(seen[name] - density) for name, density in truth.items())
        float32, integers, sparse_integers = (deepcopy(model, {id(p): p for p in model.parameters()}) for _ in range(3))
        dense_quantized(integers, "int8")
        sparsify(float32, "exact", ids)
        sparsify(sparse_integers, "exact", ids, weights="int8", blocks=find_blocks(sparse_integers, ids[0]))
        sides = {"dense": model, "sparse": float32, "own dense int8": integers, "sparse int8": sparse_integers}
        wanted, got = (
            torch.cat([one(input_ids=step, use_cache=False).logits for step in ids]) for one in (model, float32)
        )
        turns = {name: cycle(ids) for name in sides}
        calls: dict[str, Callable[[], Any]] = {
            name: lambda one=one, turn=turns[name]: one(input_ids=next(turn), use_cache=False)
            for name, one in sides.items()
        }
        times = interleaved(calls, repeats)
    return [
        Check(work, "measure, most wrong about a layer", 100 * wrong, "points", most=1),
        Check(work, "logits, relative difference", float((got - wanted).norm() / wanted.norm()), "", most=2e-6),
        *(Figure.of(work, f"{name}, ms", taken.scaled(1e3), "ms") for name, taken in times.items()),
        Figure(work, "roofline, times as fast", n_weights / (n_weights - skipped), "x"),
        Figure.ratio(work, "float32, times as fast", times["dense"], times["sparse"], least=GOALS["float32"]),
        Figure.ratio(work, "int8, times as fast", times["own dense int8"], times["sparse int8"], least=GOALS["int8"]),
    ]


@program(option("--threads", type=int, default=1), repeats=25)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    torch.manual_seed(2026)
    shapes = [(128, 256, 300)] if arguments.quick else [(1024, 8192, 8_000), (1024, 8192, 24_000)]
    return [figure for sizes in shapes for figure in figures_of(sizes, arguments.repeats)]
