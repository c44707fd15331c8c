"""``sparsact.sparsify(model, "auto")`` compared with the dense model at every density: it should never be slower.

The models have several feed-forward blocks in a row, so that each block's weights have left the cache when it runs
again; one input at a time, one thread; 0 to 100 % of the units active. Both models share their weights and run in
turns. Unit: times as fast as dense; on one thread from CPU time. Further measurements:

- *overhead*: extra time per call of a block of 16 inputs and 32 units, whose products take next to no time, by the
  exact and the certified method.
- *compiled*: the same model under ``torch.compile`` (inductor), dense and sparse, in turns with the two that are not.
- *encoder*: ``nn.TransformerEncoder``, which torch computes by a fast path of its own. The dense side keeps it; the
  layers that ``auto`` changes lose it, and must be faster nevertheless.
- *rows*: calls of 1, 4, 16 and 64 rows, and prompts of 512 rows before single ones, at 1, 5, 10 and 27 % active.

Targets: ``auto`` never below 0.97 of the dense speed, 0.95 for prompts, above 1 in the encoder; overhead below 6 us;
compiled sparse faster than compiled dense at 10 % of the units or fewer, and no slower than sparse without compiling.

Roofline: the bound in each block's plan, from the bytes of weights that its method reads.
"""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from itertools import product
from statistics import median
from typing import Any, Final

import torch
from scipy.stats import norm
from torch import Tensor, nn

from benchmarks.figures import Figure
from benchmarks.harness import first_and_later, interleaved
from benchmarks.program import option, program
from sparsact.inference import plan_of, sparsify
from sparsact.inference.timing import working_seconds

DENSITIES: Final = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
ROW_DENSITIES: Final = (0.01, 0.05, 0.1, 0.27)
SIZES: Final = ((64, 256, 64), (256, 1024, 24), (512, 2048, 16), (2048, 8192, 4))  # inputs, units, blocks
QUICK: Final = ((16, 64, 3), (24, 80, 2))
SAMPLE: Final = 64  # inputs that the model is shown, one a batch as it is called


class TimedModel(nn.Module):
    """Blocks side by side on one input, so that every one has the density that is asked for."""

    def __init__(self, d: int, s: int, blocks: int) -> None:
        super().__init__()
        made: Any = [nn.Sequential(nn.Linear(d, s), nn.ReLU(), nn.Linear(s, d)) for _ in range(blocks)]
        self.blocks = nn.ModuleList(made)
        with torch.no_grad():
            for block in made:
                block[0].weight.normal_().div_(d**0.5)

    def switch_on(self, density: float) -> None:
        """Let so many units be on for a standard normal input."""
        bias = float(norm.ppf(density)) if 0 < density < 1 else 1e3 * (2 * density - 1)
        with torch.no_grad():
            blocks: Any = self.blocks
            for block in blocks:
                block[0].bias.fill_(bias)

    def forward(self, x: Tensor) -> list[Tensor]:
        """What every block makes of the input."""
        return [block(x) for block in self.blocks]


def sharing(model: TimedModel) -> TimedModel:
    """A dense model with the very same parameters."""
    return deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})


def never_slower(d: int, s: int, blocks: int, dtype: torch.dtype, repeats: int) -> list[Figure]:
    """Auto beside dense at every density."""
    model = TimedModel(d, s, blocks).to(dtype).eval()
    twin = sharing(model)
    inputs = torch.randn(SAMPLE, d).to(dtype)
    figures = []
    for density in DENSITIES:
        model.switch_on(density)
        sparsify(model, "auto", list(inputs.split(1)))
        plan = plan_of(model)
        times = interleaved(
            {"dense": lambda: _run(twin, inputs), "auto": lambda: _run(model, inputs)}, repeats, clock=working_seconds()
        )
        methods = Counter(choice.method for choice in plan.choices)
        work = f"{blocks} x {d}-{s} {str(dtype).removeprefix('torch.')} {density:.0%} active"
        told = ", ".join(f"{count} {name}" for name, count in methods.most_common())
        figures.append(Figure.ratio(work, f"auto ({told})", times["dense"], times["auto"], least=0.97))
        figures.append(Figure(work, "bound of the plan", median(choice.bound for choice in plan.choices), "x"))
    return figures


def sparsifying(d: int, s: int, blocks: int) -> Callable[[], object]:
    """``sparsify`` of a model, each time of another copy."""
    model, inputs = TimedModel(d, s, blocks).eval(), list(torch.randn(SAMPLE, d).split(1))
    model.switch_on(0.03)
    twins = [sharing(model) for _ in range(99)]
    return lambda: sparsify(twins.pop(), "auto", inputs)


def overhead(repeats: int) -> list[Figure]:
    """Microseconds that a call of a sparse block takes more than a dense one."""
    model = TimedModel(16, 32, 1).eval()
    twin = sharing(model)
    model.switch_on(0.1)
    inputs = torch.randn(SAMPLE, 16)
    figures = []
    for method in ("exact", "certified"):
        sparsify(model, method, list(inputs.split(1)))
        times = interleaved(
            {"dense": lambda: _run(twin, inputs), "sparse": lambda: _run(model, inputs)},
            4 * repeats,
            clock=working_seconds(),
        )
        more = [1e6 * (one - other) / CALLS for one, other in zip(times["sparse"], times["dense"], strict=True)]
        figures.append(Figure.of("16-32 float32", f"{method}, overhead of a call", more, "us", most=6))
    return figures


def compiled(d: int, s: int, blocks: int, method: str, repeats: int, quick: bool) -> list[Figure]:
    """The model compiled, sparse and dense, beside the two as they are."""
    figures = []
    for density in (0.01, 0.1):
        torch.compiler.reset()
        model = TimedModel(d, s, blocks).eval()
        model.switch_on(density)
        twin = sharing(model)
        inputs = torch.randn(SAMPLE, d)
        sparsify(model, method, list(inputs.split(1)))
        backend = "aot_eager" if quick else "inductor"
        models: dict[str, Any] = {"dense": twin, "sparse": model}
        models |= {f"compiled {name}": torch.compile(one, backend=backend) for name, one in models.items()}
        times = interleaved(
            {name: partial(_run, one, inputs) for name, one in models.items()}, repeats, clock=working_seconds()
        )
        work = f"{blocks} x {d}-{s} float32 {density:.0%} active, {method}"
        for name in ("compiled dense", "sparse"):
            shown = f"compiled sparse against {name}"
            figures.append(Figure.ratio(work, shown, times[name], times["compiled sparse"], least=1.0))
    return figures


def encoder(d: int, s: int, layers: int, repeats: int) -> list[Figure]:
    """Auto against the fast path of torch in an encoder, one token at a time, 3 % of the units active."""
    layer = nn.TransformerEncoderLayer(d, nhead=d // 16, dim_feedforward=s, dropout=0, batch_first=True)
    model = nn.TransformerEncoder(layer, layers).eval()
    with torch.no_grad():
        up: Any
        for up in (one.linear1 for one in model.layers):
            up.weight.normal_().div_(d**0.5)
            up.bias.fill_(float(norm.ppf(0.03)))
    twin = deepcopy(model)
    inputs = torch.randn(SAMPLE, 1, d)
    sparsify(model, "auto", list(inputs.split(1)))
    times = interleaved(
        {"dense": lambda: _run(twin, inputs), "auto": lambda: _run(model, inputs)}, repeats, clock=working_seconds()
    )
    sparse = sum(choice.method != "dense" for choice in plan_of(model).choices)
    work = f"TransformerEncoder, {layers} x {d}-{s} float32 3% active"
    return [
        Figure.ratio(work, f"auto ({sparse} sparse)", times["dense"], times["auto"], least=1.0),
        Figure(work, "bound of the plan", median(choice.bound for choice in plan_of(model).choices), "x"),
    ]


def several_rows(d: int, s: int, blocks: int, repeats: int) -> list[Figure]:
    """Auto for calls of several rows, shown as many, and for a prompt of 512 rows, shown single ones."""
    model = TimedModel(d, s, blocks).eval()
    twin = sharing(model)
    figures = []
    for density, rows in product(ROW_DENSITIES, (1, 4, 16, 64)):
        model.switch_on(density)
        inputs = torch.randn(max(SAMPLE, 4 * rows), d)
        sparsify(model, "auto", list(inputs.split(rows)), time_limit=4)
        shown = list(inputs[: 4 * rows].split(rows))
        shapes = {f"{rows} rows": (shown, 0.97)} | ({"512 rows": ([torch.randn(512, d)], 0.95)} if rows == 1 else {})
        for shape, (batches, least) in shapes.items():
            sides = {name: partial(_run_all, one, batches) for name, one in (("dense", twin), ("auto", model))}
            times = interleaved(sides, repeats, clock=working_seconds())
            work = f"{blocks} x {d}-{s}, {shape}, {density:.0%} active, {torch.get_num_threads()} threads"
            title = "auto, shown single rows" if shape == "512 rows" else "auto"
            figures.append(Figure.ratio(work, title, times["dense"], times["auto"], least=least))
        figures.append(Figure(work, "pays up to", median(one.pays_below for one in plan_of(model).choices), ""))
    return figures


CALLS: Final = 16  # of the model in a measurement, each with another input


def _run(model: nn.Module, inputs: Tensor) -> None:
    _run_all(model, inputs[:CALLS].split(1))


def _run_all(model: nn.Module, batches: Sequence[Tensor]) -> None:
    with torch.inference_mode():
        for batch in batches:
            model(batch)


def figures_of(part: str, repeats: int, quick: bool) -> list[Figure]:
    """The figures of one part."""
    if part == "overhead":
        d, s, blocks = QUICK[0] if quick else SIZES[1]
        work = f"{blocks} x {d}-{s} float32"
        return overhead(repeats) + first_and_later(work, "sparsify", 3, sparsifying, d, s, blocks)
    if part == "rows":
        return several_rows(*(QUICK[0] if quick else SIZES[2]), repeats)
    if part == "compiled":
        sizes = product(QUICK[:1] if quick else SIZES[1:3], ("exact", "certified"))
        return [one for (d, s, n), method in sizes for one in compiled(d, s, n, method, repeats, quick)]
    if part == "density":
        kinds = product(QUICK if quick else SIZES, (torch.float32, torch.bfloat16))
        return [one for size, dtype in kinds for one in never_slower(*size, dtype, repeats)]
    shapes = ((32, 128, 2),) if quick else ((256, 1024, 6), (512, 2048, 6), (768, 3072, 12))
    return [one for shape in shapes for one in encoder(*shape, repeats)]


PARTS: Final = ("overhead", "compiled", "rows", "density", "encoder")


@program(
    option("--parts", nargs="+", choices=PARTS, default=PARTS), option("--threads", type=int, default=1), repeats=9
)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    torch.manual_seed(2026)
    return [one for part in arguments.parts for one in figures_of(part, arguments.repeats, arguments.quick)]
