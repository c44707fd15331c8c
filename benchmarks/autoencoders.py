"""Sparse autoencoders of 24,576 features: ``sparsify`` and ``load_sae`` compared with plain PyTorch.

The autoencoders have 768 inputs and Gaussian weights and activations; one has ReLU and 0.5 % of its features on, the
other keeps the 32 largest features. Each is written to a file in the format of SAELens and read by ``load_sae``. Plain
PyTorch computes the encoder, the activation and the dense decoder; for the largest features it takes ``torch.topk`` and
those rows of the decoder. A call reconstructs 1, 16 or 256 new rows. Unit: times as fast as plain PyTorch.

Targets: with ReLU at least 3, 2.5 and 1.2 times as fast at 1, 16 and 256 rows; with the 32 largest 4, 3 and 2 times as
fast, with the same features. Roofline: the encoder's bytes over the bytes of its int8 copy, 4 times, at one row.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import torch
from safetensors.torch import save_file
from threadpoolctl import threadpool_limits
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.figures import Check, Figure
from benchmarks.harness import interleaved
from benchmarks.program import option, program
from sparsact.inference import Autoencoder, load_sae, sparsify
from sparsact.inference.timing import working_seconds

EDGE: Final = 2.5758  # of a standard normal number, above which .5 % are
LARGEST: Final = 32
BATCHES: Final = 4  # of different rows, which calls take in turns
BARS: Final = {"rectified": {1: 3.0, 16: 2.5, 256: 1.2}, "top 32": {1: 4.0, 16: 3.0, 256: 2.0}}


def tensors(d: int, n: int) -> dict[str, Tensor]:
    """Random weights, by the names of SAELens."""
    W_enc, W_dec = torch.randn(d, n) / d**0.5, torch.randn(n, d) / n**0.5
    return {"W_enc": W_enc, "b_enc": torch.full((n,), -EDGE), "W_dec": W_dec, "b_dec": torch.zeros(d)}


def read(given: dict[str, Tensor], kind: str) -> Autoencoder:
    """The autoencoder that ``load_sae`` reads from a file of these weights."""
    d, n = given["W_enc"].shape
    cfg = {"architecture": "topk", "k": LARGEST} if kind == "top 32" else {"architecture": "standard"}
    cfg |= {"d_in": d, "d_sae": n, "apply_b_dec_to_input": False, "normalize_activations": "none", "metadata": {}}
    with TemporaryDirectory() as folder:
        Path(folder, "cfg.json").write_text(json.dumps(cfg), encoding="utf-8")
        save_file(given, Path(folder, "sae_weights.safetensors"))
        return load_sae(folder)


def plain(given: dict[str, Tensor], kind: str) -> Callable[[Tensor], Tensor]:
    """The reconstruction as one writes it in torch, the encoder's weights as ``nn.Linear`` has them."""
    W, b, V, c = given["W_enc"].t().contiguous(), given["b_enc"], given["W_dec"], given["b_dec"]
    down = V.t().contiguous()

    def rectified(x: Tensor) -> Tensor:
        return F.linear(F.relu(F.linear(x, W, b)), down, c)

    def largest(x: Tensor) -> Tensor:
        values, places = torch.topk(F.linear(x, W, b), LARGEST, sorted=False)
        return torch.einsum("mk,mkd->md", values.relu(), V[places]) + c

    return largest if kind == "top 32" else rectified


def figures_of(kind: str, d: int, n: int, rows: int, repeats: int) -> Iterator[Figure]:
    """Times of all sides for calls of this many rows, and how far outputs differ."""
    given = tensors(d, n)
    batches = [torch.randn(rows, d) for _ in range(BATCHES)]
    by_hand, ours = plain(given, kind), read(given, kind)
    calls: dict[str, Callable[[Tensor], Tensor]] = {"torch": by_hand, "load_sae": ours}
    if kind == "rectified":
        model = nn.Sequential(nn.Linear(d, n), nn.ReLU(), nn.Linear(n, d)).eval()
        names = {"0.weight": given["W_enc"].t(), "0.bias": given["b_enc"]}
        model.load_state_dict(names | {"2.weight": given["W_dec"].t(), "2.bias": given["b_dec"]})
        calls["sparsify"] = sparsify(model, inputs=batches, time_limit=8)
    turns = {name: cycle(batches) for name in calls}
    sides = {name: lambda call=call, turn=turns[name]: call(next(turn)) for name, call in calls.items()}
    with torch.inference_mode():
        times = interleaved(sides, repeats, clock=working_seconds())
        wanted = by_hand(batches[0])
        difference = float((ours(batches[0]) - wanted).norm() / wanted.norm())
    threads = torch.get_num_threads()
    work = f"autoencoder {d}-{n}, {kind}, {rows} row{'s' * (rows > 1)}, {threads} thread{'s' * (threads > 1)}"
    for name, taken in times.items():
        yield Figure.of(work, f"{name}, seconds", taken, "s")
        if name != "torch":
            least = BARS[kind][rows] if name == "load_sae" else None
            yield Figure.ratio(work, f"{name}, times as fast", times["torch"], taken, least=least)
    yield Check(work, "load_sae, relative difference", difference, "", most=2e-6)


@program(option("--threads", nargs="+", type=int, default=[1, 2]), repeats=15, one_thread=False)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    d, n = (32, 512) if arguments.quick else (768, 24_576)
    found: list[Figure] = []
    for threads in arguments.threads:
        torch.manual_seed(2026)
        torch.set_num_threads(threads)
        with threadpool_limits(threads):
            for kind, bars in BARS.items():
                for rows in bars:
                    found += figures_of(kind, d, n, rows, arguments.repeats)
    return found
