"""A small ReLU transformer trained with an L1 penalty: tokens per second after ``sparsify``, and before.

It learns tinyshakespeare from the folder ``SPARSACT_DATA``; without the text the benchmark prints a note and ends. A
checkpoint stays in the user's cache, so that a second run does not train again. Then both sides decode passages of the
validation text, one token at a time with a cache of keys and values, one sequence, one thread. The next character is
the true one, so that both sides compute the same and spend no time on drawing. Unit: tokens/s, medians over rounds in
turns.

The Amdahl bound counts bytes: the parameters that a token reads, and the part that the chosen methods skip at the
measured density, without keys and values. It is 1 where ``auto`` keeps every block dense. It holds for a model that
only waits for memory; arithmetic, attention over the cache, norms and Python's calls take time that sparsity does not
save, and their share is larger in smaller models.

Target: ``auto`` reaches at least 0.7 of the bound, with the outputs of the dense model to 1e-5 of their size.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any, Final

import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.figures import Check, Figure
from benchmarks.program import checkpoints, option, program
from sparsact.inference import Measurement, Plan, measure, plan_of, sparsify
from sparsact.inference.comparison import speed
from sparsact.inference.roofline import METHODS, amdahl
from sparsact_papers.data import load_tinyshakespeare
from sparsact_papers.training import ActivationPenalty, CharacterText, Recipe, Transformer, train, training_progress

HEAD: Final = 64  # width of a head of attention
PASSAGES: Final = 4  # decoded in a round, each of a whole context


class Decoder(nn.Module):
    """A transformer that reads one passage a token at a time, as generation does."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (1, length, vocabulary) of tokens (1, length)."""
        model: Any = self.model
        length = tokens.shape[1]
        heads = [block.attention.n_heads for block in model.blocks]
        width = model.tokens.embedding_dim
        seen = [torch.empty(2, 1, count, length, width // count) for count in heads]
        return torch.cat([self.step(tokens[:, i : i + 1], i, seen) for i in range(length)], dim=1)

    def step(self, token: Tensor, place: int, seen: list[Tensor]) -> Tensor:
        """Logits (1, 1, vocabulary) of the token (1, 1) at a place; ``seen`` holds keys and values of those before."""
        model: Any = self.model  # a module's attributes have no types of their own
        x = model.tokens(token) + model.places.weight[place]
        for layer, cache in zip(model.blocks, seen, strict=True):
            x = x + _attended(layer.attention, layer.attention_norm(x), cache, place)
            x = x + layer.feed_forward(layer.feed_forward_norm(x))
        return model.logits(model.norm(x))


def _attended(attention: Any, x: Tensor, cache: Tensor, place: int) -> Tensor:
    """What :class:`Attention` returns at a place; ``cache`` holds keys and values of those before, and gets its own."""
    heads = attention.projections(x).view(1, 1, 3, attention.n_heads, -1).permute(2, 0, 3, 1, 4)
    cache[..., place : place + 1, :] = heads[1:]
    key, value = cache[..., : place + 1, :]
    found = F.scaled_dot_product_attention(heads[0], key, value)
    return attention.out(found.transpose(1, 2).reshape(x.shape))


def trained(text: CharacterText, told: Namespace) -> tuple[Transformer, float]:
    """The model, and its validation loss."""
    recipe = Recipe(told.steps, batch=8, context=told.context, warmup=told.steps // 5, evaluate_every=25, windows=16)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        heads = max(1, told.width // HEAD)
        model = Transformer(len(text.characters), told.width, told.layers, heads, told.hidden, told.context)
    blocks = model.feed_forward_blocks()
    folder = f"{told.width}-{told.layers}-{told.hidden}-{told.context}-{told.steps}-{told.l1:g}"
    with training_progress(told.steps) as progress:
        penalty = ActivationPenalty(model, blocks, told.l1)
        checkpoint = told.checkpoints / folder
        rows = train(model, text, recipe, blocks=blocks, penalty=penalty, checkpoint=checkpoint, progress=progress)
    return model.eval(), rows[-1].loss


def bound(found: Measurement, plan: Plan) -> float:
    """The most that the methods of a plan can gain for a token of the whole model, from the bytes that they read."""
    pairs = zip(found.blocks, plan.choices, strict=True)
    floors = [(block.roofline(), choice.method) for block, choice in pairs if choice.method != "dense"]
    saved = [floor.saved(method) for floor, method in floors if floor is not None]
    return amdahl(found.model_bytes, sum(saved))


def figures_of(model: Transformer, text: CharacterText, told: Namespace) -> list[Figure]:
    """Measure a trained model, sparsify it, and decode with it and without."""
    passages = list(text.windows(PASSAGES, told.context)[0].split(1))
    found = measure(model, text.windows(16, told.context)[0])
    sparsify(model, "auto", text.windows(16, told.context)[0], time_limit=told.time_limit)
    plan, timed = plan_of(model), speed(Decoder(model), passages, told.repeats)
    print(f"{plan}\n{timed}")
    most = bound(found, plan)
    with torch.no_grad():
        whole, each = (model(passages[0]), Decoder(model)(passages[0]))
    work = f"{told.layers} layers of {told.width}, {told.hidden} units, {found.density:.1%} active"
    return [
        *(Figure(work, f"density of block {i}", block.density, "") for i, block in enumerate(found.blocks)),
        Figure(work, "dense", told.context / timed.dense, "tokens/s"),
        Figure(work, "auto", told.context / timed.sparse, "tokens/s"),
        Check(work, "difference of auto's logits from dense", timed.difference, "", most=1e-5),
        Check(
            work, "difference of decoding from one forward", float((each - whole).norm() / whole.norm()), "", most=1e-5
        ),
        Figure(
            work,
            "auto, times as fast",
            timed.speed_up,
            "x",
            least=0.97,
            samples=(timed.low, timed.speed_up, timed.high),
        ),
        Figure(work, "Amdahl bound of the methods chosen", most, "x"),
        *(Figure(work, f"Amdahl bound of {name} in all blocks", found.bound(name) or 1.0, "x") for name in METHODS[1:]),
        Figure(work, "share of the bound", timed.speed_up / most, "", least=0.7),
    ]


SIZES: Final = {  # by default, and with --quick
    "width": (512, 64),
    "layers": (4, 2),
    "hidden": (4096, 256),
    "context": (64, 32),
    "steps": (150, 20),
}
TIME_LIMITS: Final = (30.0, 0.5)  # seconds


@program(
    *(
        option(f"--{name}", type=int, help=f"default {usual}; {quick} with --quick")
        for name, (usual, quick) in SIZES.items()
    ),
    option("--l1", type=float, default=0.2, help="strength of the penalty on activations"),
    option("--time-limit", type=float, help="seconds for the timing of auto; default 30"),
    option("--checkpoints", type=Path, default=checkpoints("trained"), help="folder of trained models"),
    repeats=9,
    one_thread=False,  # training takes all
)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    for name, (usual, quick) in {**SIZES, "time_limit": TIME_LIMITS}.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, quick if arguments.quick else usual)
    try:
        text = CharacterText.of(load_tinyshakespeare().text)
    except FileNotFoundError as missing:
        print(f"trained: left out, for {missing}")
        return []
    model, loss = trained(text, arguments)
    torch.set_num_threads(1)
    with threadpool_limits(1):
        figures = figures_of(model, text, arguments)
    return [Figure(f"{arguments.steps} steps, L1 {arguments.l1:g}", "validation loss", loss, "nats"), *figures]
