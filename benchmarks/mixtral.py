"""Experts of a Mixtral block after ``replace_experts``: training and inference time compared with transformers.

The block has d = 1,024 and eight SwiGLU experts of 2,048 units, two of them for each token: Mixtral-8x7B's block at a
quarter of its width. The other side is the same block with the default experts of transformers, which are torch's
grouped products. A training step is forward and backward with fresh gradients, ``zero_grad(set_to_none=True)``; a turn
takes two, because a step finds the memory that the one before has freed. Unit: CPU seconds on one thread, wall-clock
seconds on more, medians of rounds in turns.

Targets: training at most 1.2, 1, 0.95 and 0.95 times as long as transformers with 1, 64, 1,024 and 4,096 tokens;
inference with one token at most as long. The floor is timed too: the matrix products alone, in memory that exists. The
environment chooses the instruction sets of both sides (``SPARSACT_ISA``, ``ATEN_CPU_CAPABILITY``).

    python -m benchmarks.mixtral --threads 2
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn

from benchmarks.figures import Check, Figure
from benchmarks.harness import interleaved
from benchmarks.program import option, program
from sparsact.layers import replace_experts

E, K = 8, 2
STEPS: Final = 2  # of training in a turn
READS: Final = 20  # tokens of inference in a turn
MOST: Final = {1: 1.2, 64: 1.0, 1024: 0.95, 4096: 0.95}  # times transformers' time, by tokens


def mixtral_block(d: int) -> Any:
    """A block whose experts transformers computes as in a model."""
    from transformers import MixtralConfig
    from transformers.models.mixtral.modeling_mixtral import MixtralModel, MixtralSparseMoeBlock

    sizes: dict[str, Any] = {"hidden_size": d, "intermediate_size": 2 * d, "num_local_experts": E}
    config = MixtralConfig(**sizes, num_experts_per_tok=K, num_hidden_layers=0, vocab_size=8)
    MixtralModel(config)  # sets the experts' implementation of the configuration
    block: Any = MixtralSparseMoeBlock(config)
    for parameter in block.parameters():
        nn.init.normal_(parameter, std=0.02)
    return block


def train(block: Any, x: Tensor, gradient: Tensor) -> list[Any]:
    """Gradients at the inputs and at the parameters, of the last of several steps."""
    for _ in range(STEPS):
        block.zero_grad(set_to_none=True)
        x = x.detach().requires_grad_()
        block(x).backward(gradient)
    return [each.grad for each in (x, *block.parameters())]


@torch.no_grad()
def read(block: Any, tokens: Tensor) -> None:
    """Outputs of one token after another, which take different experts."""
    for x in tokens:
        block(x)


class ProductsAlone:
    """Products of matrices of a step, with as many tokens for each expert that has any."""

    def __init__(self, experts: Any, m: int) -> None:
        self.up, self.down = experts.gate_up_proj.detach(), experts.down_proj.detach()
        self.of_up, self.of_down = torch.zeros_like(self.up), torch.zeros_like(self.down)
        self.taken, (_, w, d) = min(E, m * K), self.up.shape
        self.rows = [torch.randn(m * K // self.taken, n) for n in (d, w, w // 2, d)]
        self.found = [torch.empty_like(each) for each in self.rows]
        self.operations = 6 * m * K * d * (w + w // 2)

    def __call__(self) -> None:
        """Compute them as often as a turn does."""
        (x, z, hidden, y), (of_x, new_z, of_hidden, new_y) = self.rows, self.found
        for e in [*range(self.taken)] * STEPS:
            torch.mm(x, self.up[e].T, out=new_z)
            torch.mm(hidden, self.down[e].T, out=new_y)
            torch.mm(y.T, hidden, out=self.of_down[e])
            torch.mm(y, self.down[e], out=of_hidden)
            torch.mm(z.T, x, out=self.of_up[e])
            torch.mm(z, self.up[e], out=of_x)


def training(theirs: Any, ours: Any, x: Tensor, most: float, turns: Callable[..., Any]) -> list[Figure]:
    """Figures of a step of training."""
    gradient = torch.randn_like(x)
    pairs = zip(train(ours, x, gradient), train(theirs, x, gradient), strict=True)
    error = max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)
    products = ProductsAlone(theirs.experts, x.shape[1])
    times = turns(
        {
            "ours": partial(train, ours, x, gradient),
            "transformers": partial(train, theirs, x, gradient),
            "products alone": products,
        }
    )
    peer, alone = times["transformers"], times["products alone"]
    work, speeds = _work(x), [products.operations * STEPS / seconds / 1e9 for seconds in alone]
    return [
        *(Figure.of(work, f"training, {name}", [t / STEPS for t in its], "s") for name, its in times.items()),
        Figure.ratio(work, "training, times as fast as transformers", peer, times["ours"], least=1 / most),
        Figure.ratio(work, "products alone, times as fast as transformers", peer, alone),
        Figure.of(work, "speed of the products alone", speeds, "GFLOP/s"),
        Check(work, "largest difference of a gradient over its largest number", error, "", most=1e-4),
    ]


def inference(theirs: Any, ours: Any, tokens: Tensor, turns: Callable[..., Any]) -> list[Figure]:
    """Figures of passes of one token each, without gradients."""
    times = turns({"ours": partial(read, ours, tokens), "transformers": partial(read, theirs, tokens)})
    x, quantity = tokens[0], "inference, times as fast as transformers"
    return [
        *(Figure.of(_work(x), f"inference, {name}", its.scaled(1 / READS), "s") for name, its in times.items()),
        Figure.ratio(_work(x), quantity, times["transformers"], times["ours"], least=1),
    ]


def _work(x: Tensor) -> str:
    n_threads, (_, m, d) = torch.get_num_threads(), x.shape
    on = f"{torch.backends.cpu.get_cpu_capability()}, {n_threads} thread{'s' * (n_threads > 1)}"
    return f"Mixtral block of {E} experts of {2 * d:,}, d={d:,}, {m:,} tokens, {on}"


@program(option("--threads", type=int, default=1, help="of both sides (default 1)"), repeats=9)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    clock = time.process_time if arguments.threads == 1 else time.perf_counter
    turns = partial(interleaved, repeats=arguments.repeats, clock=clock)
    d = 32 if arguments.quick else 1024
    torch.manual_seed(2023)
    theirs, ours = mixtral_block(d), mixtral_block(d)
    ours.load_state_dict(theirs.state_dict())
    replace_experts(ours)
    figures = inference(theirs, ours, torch.randn(READS, 1, 1, d), turns)
    for m, most in MOST.items():
        figures += training(theirs, ours, torch.randn(1, m, d), most, turns)
    return figures
