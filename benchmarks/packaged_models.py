"""Trained models that pip installs, on real inputs: ``sparsify`` compared with float32, bfloat16 and int8 in PyTorch.

- *criscross* (``pip install criscross``): 38.5M weights, transformers over a guide of 23 and a window of 512 bases,
  ReLU; the inputs are the five pairs of the package, one at a time.
- *annalog* (``pip install annalog rdkit``): 4.1M weights, an encoder and a decoder of molecules written as text, ReLU,
  1 % of the units active; the inputs are molecules of common medicines. A step computes the whole prefix again, as its
  sampler does; the next token is the molecule's own, so that all sides compute the same.

Both packages contain their weights; one that is not installed is skipped with a note (``benchmarks.minilm`` measures
MiniLM). Dense sides: float32, bfloat16, and torch's dynamic int8 with one scale per output. Our sides: ``auto`` on the
float32 and on the bfloat16 model, and with ``weights="int8"``. Unit: milliseconds per input, medians over rounds; CPU
time on one thread, wall-clock time on more.

Targets: ``auto`` never below 0.98 of the speed of the same model dense, nor our fastest below 0.98 of the fastest dense
side; annalog 1.3 times as fast as float32; the speed-up that the plan forecasts within 15 % of the measured one.
"""

from __future__ import annotations

import csv
from argparse import Namespace
from copy import deepcopy
from functools import partial
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, Final

import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from benchmarks.figures import Figure
from benchmarks.harness import interleaved
from benchmarks.int8 import quantized_by_torch
from benchmarks.program import option, program
from sparsact.inference import plan_of, sparsify
from sparsact.inference.timing import working_seconds

Batches = list[tuple[Tensor, ...]]

MOLECULES: Final = (
    "CC(=O)Oc1ccccc1C(=O)O",  # acetylsalicylic acid
    "Cn1cnc2c1c(=O)n(C)c(=O)n2C",  # caffeine
    "CC(C)Cc1ccc(cc1)C(C)C(=O)O",  # ibuprofen
    "CC(=O)Nc1ccc(O)cc1",  # paracetamol
    "CCN(CC)CC(=O)Nc1c(C)cccc1C",  # lidocaine
    "CN(C)C(=N)NC(=N)N",  # metformin
    "CC(C)NCC(O)COc1cccc2ccccc12",  # propranolol
    "CCOC(=O)c1ccc(N)cc1",  # benzocaine
)


class Pairs(nn.Module):
    """Logits of criscross for guides (m, 23), windows (m, 512) and strands (m,)."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        model.epi_embeddor = nn.Identity()  # a layer without inputs, which nothing calls and torch cannot quantise
        self.model = model

    def forward(self, guide: Tensor, window: Tensor, strand: Tensor) -> Tensor:
        """Logits (m, 1)."""
        logits: Tensor = self.model(guide, window, strand, None)[0]
        return logits


class Sampler(nn.Module):
    """Logits of annalog step by step for a target (1, length), the prefix computed again at each step."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits (1, length, vocabulary) of what follows each prefix."""
        model, mask = self.model, self.model.make_src_mask(source)
        encoded = model.encoder(source, mask)
        prefixes = [target[:, : i + 1] for i in range(target.shape[1])]
        steps = [model.decoder(one, encoded, model.make_trg_mask(one), mask)[0][:, -1] for one in prefixes]
        return torch.stack(steps, dim=1)


def criscross() -> tuple[nn.Module, Batches]:
    """The model of the package and its sample pairs."""
    from criscross import encode_seq, sample_input_path
    from criscross.weights import load_default

    with Path(sample_input_path()).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    pairs: Batches = [
        (
            encode_seq(row["Guide_sequence"])[None],
            encode_seq(row["off_target_512nt"])[None],
            torch.tensor([int(row["strand_id"])]),
        )
        for row in rows
    ]
    return Pairs(load_default()[0]).eval(), pairs


def annalog() -> tuple[nn.Module, Batches]:
    """The model of the package, and molecules that it copies."""
    from annalog import SMILESModelHandler

    folder = files("annalog") / "ckpt_and_vocab"
    vocabulary = str(folder / "stereo_experiment_vocab_ttf.pkl")
    found = SMILESModelHandler(vocabulary, vocabulary, str(folder / "Lev_extended.pt"), device="cpu")
    tokens = [found.SRC.process([found.SRC.preprocess(one)]) for one in MOLECULES]
    return Sampler(found.model).eval(), [(one, one[:, :-1]) for one in tokens]


def in_bfloat16(model: nn.Module) -> nn.Module:
    """A copy in bfloat16, numbers that modules keep as plain attributes included."""
    model = deepcopy(model).bfloat16()
    for module in model.modules():
        for name, value in vars(module).items():
            if isinstance(value, Tensor) and value.is_floating_point():
                setattr(module, name, value.bfloat16())
    return model


def figures_of(name: str, model: nn.Module, batches: Batches, threads: int, arguments: Any) -> list[Figure]:
    """All sides on as many threads."""
    work = f"{name}, {threads} thread{'s' * (threads > 1)}"
    narrow = in_bfloat16(model)
    dense = {"float32": model, "bfloat16": narrow, "int8": quantized_by_torch(deepcopy(model))}
    ours = {
        "float32": sparsify(deepcopy(model), "auto", batches, time_limit=arguments.time_limit),
        "bfloat16": sparsify(deepcopy(narrow), "auto", batches, time_limit=arguments.time_limit),
        "int8": sparsify(deepcopy(model), "auto", batches, weights="int8", time_limit=arguments.time_limit),
    }
    for kind, one in ours.items():
        print(f"{work}, {kind}\n{plan_of(one)}\n", flush=True)
    models = {f"dense {kind}": one for kind, one in dense.items()} | {f"auto {kind}": one for kind, one in ours.items()}
    sides = {side: partial(run, one, batches) for side, one in models.items()}
    with torch.inference_mode():
        times = interleaved(sides, arguments.repeats, clock=working_seconds())
    figures = [
        Figure.of(work, side, [1e3 * one / len(batches) for one in seconds], "ms") for side, seconds in times.items()
    ]
    least = 0.98
    for kind in dense:
        pair = times[f"dense {kind}"], times[f"auto {kind}"]
        figures.append(Figure.ratio(work, f"auto, times as fast as dense {kind}", *pair, least=least))
        before = times["dense float32" if kind == "int8" else f"dense {kind}"]
        measured = median(a / b for a, b in zip(before, pair[1], strict=True))
        error = abs(plan_of(ours[kind]).forecast / measured - 1)
        figures.append(Figure(work, f"error of the forecast, {kind}", error, "", most=0.15))
    best_dense, best = (min((median(times[f"{side} {kind}"]), kind) for kind in dense) for side in ("dense", "auto"))
    quantity = f"auto ({best[1]}), times as fast as the fastest dense ({best_dense[1]})"
    pair = times[f"dense {best_dense[1]}"], times[f"auto {best[1]}"]
    figures.append(Figure.ratio(work, quantity, *pair, least=least))
    goal = 1.3 if name == "annalog" else None
    quantity = f"auto ({best[1]}), times as fast as dense float32"
    return [*figures, Figure.ratio(work, quantity, times["dense float32"], pair[1], least=goal)]


def run(model: nn.Module, batches: Batches) -> None:
    """Compute all batches."""
    for batch in batches:
        model(*batch)


MODELS: Final = {"criscross": criscross, "annalog": annalog}


@program(
    option("--models", nargs="+", choices=MODELS, default=list(MODELS)),
    option("--threads", nargs="+", type=int, default=[1, 2]),
    repeats=7,
    one_thread=False,
)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    arguments.time_limit, arguments.repeats = (0.2, 1) if arguments.quick else (20.0, arguments.repeats)
    figures = []
    for name in arguments.models:
        if find_spec(name) is None or (name == "annalog" and find_spec("rdkit") is None):
            print(f"{name} is left out: its package is not installed")
            continue
        for threads in arguments.threads[: 1 if arguments.quick else None]:
            torch.set_num_threads(threads)
            with threadpool_limits(threads):
                model, batches = MODELS[name]()
                figures += figures_of(name, model, batches[: 1 if arguments.quick else None], threads, arguments)
    return figures
