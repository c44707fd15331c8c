"""Model families of transformers: sparse blocks that the library finds, their density, and bounds on the speed-up.

Models are built from their configurations with random weights, and biases shifted so that 3 % and 10 % of the units
before each ReLU are on. Hooks on every module with a weight matrix count zeros, next to what ``measure`` reports. To
check one family with a new release of transformers: ``python -m benchmarks.models --only OPT``.
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import fmean, median
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.architectures import ARCHITECTURES, Architecture, Shown
from benchmarks.figures import Check, Figure
from benchmarks.program import option, program
from sparsact.inference import Measurement, measure
from sparsact.inference.batches import evaluating
from sparsact.inference.split_experts import split_experts

aten = torch.ops.aten
DENSITIES: Final = (0.03, 0.1)
MOSTLY_ZERO: Final = 0.6  # share of a layer's input, from which on `measure` must see it
RECTIFIERS: Final = {aten.relu, aten.relu_, aten.hardtanh, aten.hardtanh_, aten.clamp_min, aten.clamp_min_, aten.clamp}
PREFIX: Final = "models: "


def output_of(model: nn.Module, shown: Shown) -> Any:
    """What the model returns; models that draw numbers draw the same ones."""
    torch.manual_seed(4)
    return model(**shown)


class _Shift(TorchDispatchMode):
    """Lower what every ReLU reads of a module's output, and this module's bias, until a share of it is positive."""

    def __init__(self, density: float) -> None:
        super().__init__()
        self.density = density
        self.made: list[tuple[Tensor, Tensor, nn.Module]] = []  # outputs, inputs; held: no memory is used twice

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket in RECTIFIERS:
            address = args[0].untyped_storage().data_ptr()
            for made, given, module in reversed(self.made):
                if made.untyped_storage().data_ptr() == address:
                    self._lower(args[0], made, given, module)
                    break
        return func(*args, **(kwargs or {}))

    def _lower(self, read: Tensor, made: Tensor, given: Tensor, module: Any) -> None:
        values = read.flatten().sort().values
        shift = values[min(len(values) - 1, int((1 - self.density) * len(values)))]
        whole = read.numel() == made.numel()
        start = 0 if whole else read.storage_offset() - made.storage_offset()  # a half, of gate and up-projection
        rows = slice(start, None if whole else start + read.shape[-1])
        if module.bias is not None:
            module.bias[rows] -= shift
        elif module.weight.ndim == 2:  # a direction that has a product of 1 with every input
            inputs = given.reshape(-1, given.shape[-1])
            module.weight[rows] -= shift * torch.linalg.lstsq(inputs, torch.ones(len(inputs), 1), driver="gelsd")[0].T
        else:
            return
        read -= shift


def switch_off(model: nn.Module, shown: Shown, density: float) -> None:
    """Shift biases, or weights where there is no bias, to this density after each ReLU."""
    shift = _Shift(density)

    def keep(module: nn.Module, args: tuple[Any, ...], output: object) -> None:
        if isinstance(output, Tensor) and args:
            shift.made.append((output, args[0], module))

    with evaluating(model), split_experts(model), ExitStack() as stack:
        for module in model.modules():
            if isinstance(getattr(module, "weight", None), Tensor) and hasattr(module, "bias"):
                stack.callback(module.register_forward_hook(keep).remove)
        stack.enter_context(shift)
        output_of(model, shown)


def zeros_by_hooks(model: nn.Module, shown: Shown) -> dict[str, float]:
    """Share of exact zeros in what every module with a matrix or a kernel reads, embeddings left out."""
    zeros: Counter[str] = Counter()
    numbers: Counter[str] = Counter()

    def count(name: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        read = next((one for one in (*args, *kwargs.values()) if isinstance(one, Tensor)), None)
        if read is not None and read.is_floating_point():
            zeros[name] += _numbers_read(module, (read == 0).float())
            numbers[name] += _numbers_read(module, torch.ones_like(read))

    with evaluating(model), split_experts(model), ExitStack() as stack:
        for name, module in model.named_modules():
            weight = getattr(module, "weight", None)
            matrix = isinstance(weight, Tensor) and weight.ndim == 2 and not isinstance(module, nn.Embedding)
            if matrix or (isinstance(module, nn.Conv1d | nn.Conv2d) and not isinstance(module.padding, str)):
                hook = partial(count, name)
                stack.callback(module.register_forward_pre_hook(hook, with_kwargs=True).remove)
        output_of(model, shown)
    return {name: zeros[name] / numbers[name] for name in numbers if numbers[name]}


def _numbers_read(module: Any, ones: Tensor) -> int:
    """Sum of what a module reads; a convolution reads columns of its unfolded input, zeros for its padding."""
    if isinstance(module, nn.Conv1d | nn.Conv2d):
        sizes: tuple[Any, ...] = (module.kernel_size, module.dilation, module.padding, module.stride)
        if isinstance(module, nn.Conv1d):
            ones, sizes = ones[:, :, None], tuple((one, *size) for one, size in zip((1, 1, 0, 1), sizes, strict=True))
        ones = F.unfold(ones, *sizes)
    return int(ones.double().sum())


def measured_zeros(found: Measurement | None) -> dict[str, float]:
    """Share of exact zeros in the input of each layer that ``measure`` lists."""
    if found is None:
        return {}
    layers = {one.name: 1 - one.density for one in getattr(found, "layers", ())}
    return layers | {block.down: 1 - block.density for block in found.blocks}


def measured(model: nn.Module, shown: Shown) -> Measurement | None:
    """What ``measure`` finds; None if it says that there is no block."""
    torch.manual_seed(4)
    try:
        return measure(model, shown)
    except ValueError as error:
        if "must have a feed-forward block" not in str(error):
            raise
        return None


@dataclass(frozen=True)
class Survey:
    """A family at one density: what hooks count and what ``measure`` says."""

    counted: Mapping[str, float]
    found: Measurement | None

    @classmethod
    def of(cls, architecture: Architecture, density: float) -> Survey:
        """Of a model whose ReLUs leave this share of their units on."""
        model, shown = architecture.build(), architecture.shows()
        with quiet():
            switch_off(model, shown, density)
            return cls(zeros_by_hooks(model, shown), measured(model, shown))

    @property
    def mostly_zero(self) -> dict[str, float]:
        """Share of zeros of the layers whose inputs are mostly zero."""
        return {name: share for name, share in self.counted.items() if share >= MOSTLY_ZERO}

    @property
    def unseen(self) -> list[str]:
        """Layers among them for which ``measure`` has another share of zeros, or none."""
        seen = measured_zeros(self.found)
        return [name for name, share in self.mostly_zero.items() if abs(seen.get(name, -1.0) - share) > 1e-9]

    def figures(self, work: str, density: float) -> Iterator[Figure]:
        """Of a table's line; shares only of layers that are mostly zero."""
        if not self.mostly_zero:
            return
        seen, at = measured_zeros(self.found), f"at {density:.0%}"
        on = [1 - share for share in self.mostly_zero.values()]
        yield Figure(work, f"density by hooks {at}", fmean(on), "")
        yield Check(work, f"mostly zero layers that measure misses {at}", len(self.unseen), "", most=0)
        told = [1 - seen[name] for name in self.mostly_zero if name in seen]
        if told:
            yield Figure(work, f"density by measure {at}", fmean(told), "")
        blocks = [] if self.found is None else [one for one in self.found.blocks if one.exact]
        bounds = [found.speedup("certified") for one in blocks if (found := one.roofline())]
        if bounds:
            yield Figure(work, f"a block at most {at}", median(one or 1.0 for one in bounds), "x")


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings of models about themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def figures_of(architecture: Architecture) -> Iterator[Figure]:
    """A line of the table of models."""
    work = f"{PREFIX}{architecture.name}: {architecture.zeros}"
    densities = DENSITIES[1:] if architecture.is_dense else DENSITIES
    for i, density in enumerate(densities):
        survey = Survey.of(architecture, density)
        if not i:
            blocks = [] if survey.found is None else survey.found.blocks
            yield Figure(work, "blocks found", len(blocks), "")
            yield Figure(work, "with exact zeros", sum(one.exact for one in blocks), "")
            yield Figure(work, "layers with mostly zero inputs", len(survey.mostly_zero), "")
        yield from survey.figures(work, density)


@program(option("--only", default="", help="families whose names hold this"), repeats=1)
def main(arguments: Namespace) -> list[Figure]:
    """All families, or the first two in a quick run."""
    chosen = [one for one in ARCHITECTURES if arguments.only.lower() in one.name.lower()]
    return [figure for one in chosen[: 2 if arguments.quick else None] for figure in figures_of(one)]
