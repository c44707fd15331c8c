"""Mixtures of experts and a top-k layer, forward and backward: time compared with loops, masks and transformers.

Eight SwiGLU experts of 512 units, d = 256, two of them for each of 4,096 tokens; and a layer that keeps 32 of 2,048
units for 1,024 inputs. One thread, float32, other tokens in every round, so that the number of tokens per expert
changes. Unit: CPU seconds, medians of rounds in turns; the first rounds are left out.

Targets: at most 0.9 of the time of a loop over experts (each three ``nn.Linear``), at most the time of transformers'
grouped experts; the top-k layer at most the time of the dense layer of equal output, and 1.4 times as fast as ``topk``
and a mask. With balancing, ten seeds of a small task: Jain index at least 0.95 after 300 steps, no dead expert, an
error no larger than without (within two standard errors of the difference), next to transformers' layer and loss. If
CIFAR-10 and the text are there, a training step of each model of ``routed-layers``, without a target.

    python -m benchmarks.mixture --device cuda [--dtype bfloat16]  # larger sizes, wall-clock time, no targets
    python -m benchmarks.mixture --experts                         # the first comparison alone
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import mean, stdev
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.figures import CallSeconds, Check, Figure, unjudged
from benchmarks.harness import finished, interleaved
from benchmarks.program import option, program
from sparsact.layers import MixtureOfExperts, SparselyActivatedLayer, routing_losses, update_biases
from sparsact.routing import RoutingStatistics, SoftmaxTopK, TopK
from sparsact_papers.experiment import Scale
from sparsact_papers.practice.routed_layers import DENSE, IMAGES, MODELS, SIZES, TEXT, training_step, unmet

E, K = 8, 2
WARM: Final = 6  # rounds
LIMITS: Final = {torch.float32: 1e-5, torch.bfloat16: 5e-2}  # of differences


class Loop(nn.Module):
    """The same experts as written by hand."""

    def __init__(self, moe: MixtureOfExperts) -> None:
        super().__init__()
        routing: Any = moe.routing
        self.gate = nn.Parameter(routing.gate.detach().clone())
        weights = [(*up.chunk(2, 1), down) for up, down in zip(moe.up_weight, moe.down_weight, strict=True)]
        self.experts: Any = nn.ModuleList(nn.ModuleList(map(linear, each)) for each in weights)

    def choose(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and experts (m, k)."""
        weights, experts = (x.float() @ self.gate.float().T).softmax(-1).topk(K, -1)
        return (weights / weights.sum(-1, keepdim=True)).to(x.dtype), experts

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (m, d) of tokens (m, d)."""
        weights, experts = self.choose(x)
        y = torch.zeros_like(x)
        for e, (gate, up, down) in enumerate(self.experts):
            token, place = torch.where(experts == e)
            rows = x[token]
            y.index_add_(0, token, down(F.silu(gate(rows)) * up(rows)) * weights[token, place, None])
        return y


def linear(weight: Tensor) -> nn.Linear:
    """A layer with that weight (n, o)."""
    layer = nn.Linear(*weight.shape, bias=False)
    layer.weight.data = weight.detach().T.contiguous()
    return layer


class Transformers(Loop):
    """Mixtral's experts of transformers, on their grouped path."""

    def __init__(self, moe: MixtureOfExperts) -> None:
        from transformers import MixtralConfig
        from transformers.models.mixtral.modeling_mixtral import MixtralExperts

        super().__init__(moe)
        sizes: dict[str, Any] = {
            "hidden_size": moe.in_features,
            "intermediate_size": moe.n_units,
            "num_local_experts": E,
        }
        config = MixtralConfig(**sizes)
        config._experts_implementation = "grouped_mm"
        self.experts = MixtralExperts(config)
        self.experts.gate_up_proj.data = moe.up_weight.detach().transpose(1, 2).contiguous()
        self.experts.down_proj.data = moe.down_weight.detach().transpose(1, 2).contiguous()

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (m, d) of tokens (m, d)."""
        weights, experts = self.choose(x)
        out: Tensor = self.experts(x, experts, weights)
        return out


def step(call: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Outputs; the backward pass has run too."""
    y = call(x.clone().requires_grad_())
    y.square().sum().backward()
    return y.detach()


def timed(sides: dict[str, Callable[[Tensor], Tensor]], batches: list[Tensor]) -> dict[str, CallSeconds]:
    """CPU seconds of each side on each batch but the first ones; on a GPU, seconds until it is done."""
    turns = {name: iter(batches) for name in sides}
    steps = {name: lambda call=call, its=turns[name]: step(call, next(its)) for name, call in sides.items()}
    clock = finished if batches[0].is_cuda else time.process_time
    return interleaved(steps, len(batches) - WARM, warm_up=WARM, clock=clock)


def products(moe: MixtureOfExperts, x: Tensor) -> Tensor:
    """The experts' products alone, each as many tokens: what no side can do without."""
    for up, down in zip(moe.up_weight.detach(), moe.down_weight.detach(), strict=True):
        rows = x[: len(x) * K // E].detach()
        z = rows @ up
        hidden = z[:, : moe.n_units].contiguous()
        y = hidden @ down
        rows.T @ z, hidden.T @ y, z @ up.T, y @ down.T  # the gradients'
    return x


def experts(m: int, d: int, h: int, repeats: int) -> list[Figure]:
    """The mixture against the loop and transformers."""
    moe = MixtureOfExperts(d, h, router=SoftmaxTopK(E, K, load_balance=0, z_loss=0))
    sides: dict[str, Any] = {"ours": moe, "loop": Loop(moe), "transformers": Transformers(moe)}
    x = torch.randn(m, d)
    y, *others = (step(side, x) for side in sides.values())
    error = max(float((other - y).abs().max() / y.abs().max()) for other in others)
    sides["products alone"] = partial(products, moe)
    times = timed(sides, [torch.randn(m, d) for _ in range(repeats + WARM)])
    on = "" if x.is_cuda else f", {torch.backends.cpu.get_cpu_capability()}"
    work = f"{E} experts of {h}, {K} active, d={d}, {m:,} tokens{on}"
    return [
        *(Figure.of(work, f"{name}, seconds", its, "s") for name, its in times.items()),
        Figure.ratio(work, "loop, times as fast", times["loop"], times["ours"], least=1 / 0.9),
        Figure.ratio(work, "transformers, times as fast", times["transformers"], times["ours"], least=1),
        Figure.ratio(work, "loop, times as fast, products alone", times["loop"], times["products alone"]),
        Check(work, "largest difference over the largest output", error, "", most=LIMITS[x.dtype]),
    ]


def top_k(m: int, d: int, t: int, k: int, repeats: int) -> list[Figure]:
    """The top-k layer against the dense layer, and against a mask by hand."""
    layer = SparselyActivatedLayer(d, t, d, router=TopK(k))

    def dense(x: Tensor) -> Tensor:
        return F.linear(F.relu(F.linear(x, layer.up_weight, layer.up_bias)), layer.down_weight.T, layer.down_bias)

    def mask(x: Tensor) -> Tensor:
        z = F.linear(x, layer.up_weight, layer.up_bias)
        on = torch.zeros_like(z).scatter(1, z.topk(k, -1).indices, 1.0)
        return F.linear(F.relu(z) * on, layer.down_weight.T, layer.down_bias)

    x = torch.randn(m, d)
    error = float((step(layer, x) - step(mask, x)).abs().max())
    times = timed({"ours": layer, "dense": dense, "mask": mask}, [torch.randn(m, d) for _ in range(repeats + WARM)])
    work = f"{k} of {t:,} units, d={d}, {m:,} inputs"
    limit = None if x.dtype == torch.bfloat16 else 1e-4  # where many numbers are equal, and either may be chosen
    return [
        *(Figure.of(work, f"{name}, seconds", its, "s") for name, its in times.items()),
        Figure.ratio(work, "dense, times as fast", times["dense"], times["ours"], least=1),
        Figure.ratio(work, "topk and mask, times as fast", times["mask"], times["ours"], least=1.4),
        Check(work, "largest difference from the mask", error, "", most=limit),
    ]


def trained(seed: int, weight: float, steps: int, bias_rate: float | None = None, peer: bool = False) -> Any:
    """Error on fresh inputs of a mixture trained on a curved function, and the load of its experts there.

    The peer is the layer of transformers with its own balancing loss, k times ours, from the same parameters.
    """
    from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

    generator = torch.Generator().manual_seed(seed)
    teacher = [torch.randn(*shape, generator=generator) for shape in ((12, 48), (48, 12))]

    def batch(m: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(m, 12, generator=generator) + 0.7  # to one side of 0, where few experts are preferred
        return x, torch.sin(x @ teacher[0]) @ teacher[1] / 7

    gate: dict[str, Any] = {} if bias_rate is None else {"router": "sigmoid", "bias_rate": bias_rate}
    moe = MixtureOfExperts(12, 24, n_experts=E, n_active=K, generator=generator, **gate)
    model: Any = Transformers(moe) if peer else moe
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(steps):
        x, y = batch(256)
        with routing_losses(moe, weight=weight) as losses:
            loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        balancing = weight / K * load_balancing_loss_func((x @ model.gate.T,), E, K) if peer else losses.total
        (loss + balancing).backward()
        optimizer.step()
        if bias_rate is not None:
            update_biases(moe)
    if peer:
        moe.routing.load_state_dict({"gate": model.gate})
    x, y = batch(4096)
    with torch.no_grad():
        return float(F.mse_loss(model.eval()(x), y)), RoutingStatistics.of(moe.eval().route(x))


# Weight of the loss, rate of the biases, None for a softmax gate without, and whether by transformers.
BALANCED: Final = {
    "loss of weight 0.01": (0.01, None, False),
    "loss of weight 0.04": (0.04, None, False),
    "biases at rate 0.01": (0.0, 0.01, False),
    "transformers, loss as of weight 0.01": (0.01, None, True),
    "transformers, loss as of weight 0.04": (0.04, None, True),
}


def balance(steps: int, seeds: int) -> list[Figure]:
    """Load with each way of balancing, and what it adds to the error of the same gate without, over seeds."""
    gates = {gate: [trained(seed, 0.0, steps, gate) for seed in range(seeds)] for gate in (None, 0.0)}
    work = f"{E} experts trained {steps} steps"
    figures = [Figure.of(work, "Jain index without balancing", [its.jain_index for _, its in gates[None]], "")]
    for name, (weight, rate, peer) in BALANCED.items():
        runs = [trained(seed, weight, steps, rate, peer) for seed in range(seeds)]
        jain = tuple(its.jain_index for _, its in runs)
        plain = gates[None if rate is None else 0.0]
        excess = [run[0] - other[0] for run, other in zip(runs, plain, strict=True)]
        surely = mean(excess) - 2 * stdev(excess) / seeds**0.5
        dead = float(sum(its.dead_share for _, its in runs))
        figures += [
            Figure(work, f"{name}: Jain index, least of seeds", min(jain), "", None if peer else 0.95, None, jain),
            Figure(work, f"{name}: dead experts", dead, "", most=None if peer else 0),
            Figure.of(work, f"{name}: excess error", excess, ""),
            Figure(work, f"{name}: excess, two standard errors off", surely, "", most=None if peer else 0),
        ]
    return figures


def training_steps(repeats: int, quick: bool) -> list[Figure]:
    """A step of each model of the experiment ``routed-layers`` at its full size, against that of the dense layer."""
    sizes, figures = SIZES[Scale.SMOKE if quick else Scale.FULL], []
    for data in () if unmet() else (IMAGES, TEXT):
        steps = {model: training_step(data, model, **sizes) for model in MODELS[data]}
        for model, its in (seconds := interleaved(steps, repeats, clock=time.process_time)).items():
            figures.append(Figure.of(data, f"{model}, CPU seconds of a step", its, "s"))
            figures.append(Figure.ratio(data, f"{model}, times the dense layer's", its, seconds[DENSE]))
    return figures


@program(
    option("--device", choices=("cpu", "cuda"), default="cpu"),
    option("--dtype", choices=("float32", "bfloat16"), default="float32", help="on a GPU"),
    option("--experts", action="store_true", help="compare the mixture of experts alone"),
    repeats=11,
)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    quick, on_gpu = arguments.quick, arguments.device == "cuda"
    m, d, h, t = (64, 32, 48, 96) if quick else (16_384, 1024, 2048, 8192) if on_gpu else (4096, 256, 512, 2048)
    torch.manual_seed(2022)
    if on_gpu:
        torch.set_default_dtype(getattr(torch, arguments.dtype))
    with torch.device(arguments.device):
        figures = experts(m, d, h, arguments.repeats)
        for width in () if arguments.experts else (d, 2 * d):
            figures += top_k(m // 4, width, t, 32, arguments.repeats)
        if not (on_gpu or arguments.experts):
            figures += balance(*((10, 2) if quick else (300, 10)))
            figures += training_steps(arguments.repeats, quick)
    if not on_gpu:
        return figures
    device = f"{torch.cuda.get_device_name()} torch.{arguments.dtype}"
    return [replace(each, work=f"{device} {each.work}") for each in unjudged(figures)]
