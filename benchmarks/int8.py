"""``sparsify(model, weights="int8")`` compared with int8 in PyTorch and other libraries, one token at a time.

First ten blocks of 1024 inputs and 4096 units with ReLU in a row, so that every weight is read from memory; one input;
3, 10 and 27 % of the units active. Then one decoding step of a model with the shape of OPT-125M, all its layers
quantised, 5 % active: 1, 8 or 16 tokens, 64 keys and values per layer and token, logits. All sides take turns on the
same weights. With one thread seconds are CPU time, because other work on the machine would slow the sides unevenly.

- *float32*: the model as it is, and ``sparsify(model, "certified")``.
- *torch int8*: ``torch.ao.quantization.quantize_dynamic`` with one scale per output; our outputs must equal its
  outputs. Its library FBGEMM chooses its instructions itself; ``FBGEMM_ENABLE_INSTRUCTIONS=AVX2`` with
  ``SPARSACT_ISA=avx2`` compares both on AVX2.
- *own dense int8*: the kernels of this library, reading all weights.
- *ONNX Runtime int8*, *OpenVINO int8*, *llama.cpp q8_0*: the same step, if they are installed; see
  ``benchmarks.runtimes``. Errors of the logits are against float32.

Last, without a target, single tokens through a Mixtral of random weights, whose experts torch leaves in float32.

Targets: blocks at least 1.5, 1.4 and 1.2 times as fast as torch int8 (3.0, 2.6 and 2.0 on AVX2), 1.6, 1.4 and 1.2 times
as fast as own dense int8; the step 1.6 times as fast as torch int8, 1.35 times as ONNX Runtime and 1.15 times as
llama.cpp, with several tokens at least as fast as the fastest dense side. Roofline: the bytes of the weights that are
read, at the speed of ``numpy.dot`` on as many bytes.
"""

from __future__ import annotations

import time
import warnings
from argparse import Namespace
from collections.abc import Callable
from copy import deepcopy
from importlib.util import find_spec
from statistics import median
from typing import Any, Final

import torch
from scipy.stats import norm
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.figures import CallSeconds, Figure
from benchmarks.harness import interleaved, seconds_of_reading
from benchmarks.program import option, program
from benchmarks.runtimes import in_others
from benchmarks.sparsify import TimedModel, sharing
from sparsact import kernels
from sparsact.inference import find_blocks, sparsify
from sparsact.inference.quantizing import alone_on

TORCH_GOALS: Final = {"avx2": {0.03: 3.0, 0.1: 2.6, 0.27: 2.0}, "avx512": {0.03: 1.5, 0.1: 1.4, 0.27: 1.2}}
DENSE_GOALS: Final = {0.03: 1.6, 0.1: 1.4, 0.27: 1.2}
STEP_GOALS: Final = {
    8: {"torch int8": 1.6, "ONNX Runtime int8": 1.35, "llama.cpp q8_0": 1.15},
    4: {"ONNX Runtime int4": 1.35, "llama.cpp q4_0": 1.15},
}
BATCHES: Final = (8, 16)
BYTES_A_WEIGHT: Final = {8: 1, 4: (4 + 8 / 32) / 8}  # with its share of a group's multiplier


def quantized_by_torch(model: nn.Module) -> nn.Module:
    """The model with torch's dynamically quantised layers, one scale per output."""
    config = torch.ao.quantization.per_channel_dynamic_qconfig
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.ao.quantization.quantize_dynamic(model, {nn.Linear: config})


def dense_quantized(model: nn.Module, weights: str) -> nn.Module:
    """The model with all weights quantised and read by the kernels of the library."""
    names = [name for name, module in model.named_modules() if type(module) is nn.Linear]
    alone_on(model, names, weights, "cpu").apply(model)
    return model


def blocks(density: float, sizes: tuple[int, int, int], repeats: int) -> list[Figure]:
    """Blocks read from memory, by every side."""
    d, s, count = sizes
    model = TimedModel(d, s, count).eval()
    model.switch_on(density)
    inputs = torch.randn(64, d)
    dense, sparse, certified = (sharing(model) for _ in range(3))
    by_torch = quantized_by_torch(model)
    sparsify(sparse, "exact", list(inputs.split(1)), weights="int8")
    sparsify(certified, "certified", list(inputs.split(1)))
    sides = {
        "float32": model,
        "certified float32": certified,
        "torch int8": by_torch,
        "own dense int8": dense_quantized(dense, "int8"),
        "sparse int8": sparse,
    }
    x = inputs[:1]
    with torch.inference_mode():
        for one, two, three in zip(by_torch(x), dense(x), sparse(x), strict=True):
            if not (torch.equal(one, two) and torch.equal(two, three)):
                raise AssertionError("outputs differ from those of torch's quantised layers")
        calls: dict[str, Callable[[], object]] = {name: (lambda side=side: side(x)) for name, side in sides.items()}
        ups: Any = model.blocks
        active = float(torch.cat([(block[0](inputs) > 0).float() for block in ups]).mean())
        calls["reading"] = seconds_of_reading(2 * d * s * count)
        times = interleaved(calls, repeats, clock=_clock())
    work = f"{count} x {d}-{s}, {density:.0%} active"
    isa = kernels.dispatch.native.isa() if kernels.backend() == "native" else ""
    goals = {"own dense int8": DENSE_GOALS[density]}
    if isa in TORCH_GOALS:
        goals["torch int8"] = TORCH_GOALS[isa][density]
    return _compared(work, "sparse int8", times, 1 / count, (1 + active) / 2, goals)


def _compared(
    work: str, ours: str, times: dict[str, CallSeconds], scale: float, share: float, goals: dict[str, float]
) -> list[Figure]:
    """Times of each side, ratios to our sparse one, and the time of reading ``share`` of all bytes."""
    reading = times.pop("reading")
    figures = [Figure.of(work, f"{name}, us", values.scaled(1e6 * scale), "us") for name, values in times.items()]
    figures.append(Figure(work, f"bandwidth floor of {ours}, us", 1e6 * scale * share * median(reading), "us"))
    for name, values in times.items():
        if name != ours:
            quantity = f"{ours}, times as fast as {name}"
            figures.append(Figure.ratio(work, quantity, values, times[ours], least=goals.get(name)))
    return figures


class Layer(nn.Module):
    """A decoder layer of OPT: attention over keys and values of the past, then a block with ReLU."""

    def __init__(self, d: int, s: int) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(d, d) for _ in range(4))
        self.attention_norm, self.norm = nn.LayerNorm(d), nn.LayerNorm(d)
        self.fc1, self.fc2 = nn.Linear(d, s), nn.Linear(s, d)

    def forward(self, x: Tensor, past: Tensor) -> Tensor:
        """Tokens (rows, d) after the layer; ``past`` is (2, rows * heads, length, head size)."""
        z = self.attention_norm(x)
        q, k, v = (layer(z).view(past.shape[1], 1, past.shape[3]) for layer in (self.q, self.k, self.v))
        keys, values = torch.cat([past[0], k], dim=1), torch.cat([past[1], v], dim=1)
        seen = F.softmax(q @ keys.transpose(1, 2) * past.shape[3] ** -0.5, dim=-1) @ values
        x = x + self.out(seen.view(x.shape))
        return x + self.fc2(F.relu(self.fc1(self.norm(x))))


class DecodingStep(nn.Module):
    """One step of a model with the shape of OPT, from the embedded token to logits."""

    def __init__(self, d: int, s: int, layers: int, vocabulary: int, density: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(d, s) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)
        with torch.no_grad():
            for layer in self.layers:
                up: Any = layer.fc1
                up.weight.normal_().div_(d**0.5)
                up.bias.fill_(float(norm.ppf(density)))

    def forward(self, x: Tensor, past: Tensor) -> Tensor:
        """Logits (rows, vocabulary) of tokens (rows, d), ``past`` (layers, 2, rows * heads, length, head size)."""
        for layer, seen in zip(self.layers, past, strict=True):
            x = layer(x, seen)
        return self.head(self.norm(x))


def decoding(bits: int, repeats: int, quick: bool) -> list[Figure]:
    """A step of the decoder by every side, the weights in 8 or 4 bits, and errors of the logits against float32."""
    d, s, layers, vocabulary = (128, 512, 2, 300) if quick else (768, 3072, 12, 50272)
    model = DecodingStep(d, s, layers, vocabulary, 0.05).eval()
    steps = _steps(model, 1, 4)
    dense, sparse, sparse8, certified = (deepcopy(model, {id(p): p for p in model.parameters()}) for _ in range(4))
    kind, by_torch = f"int{bits}", quantized_by_torch(model)
    sparsify(sparse, "exact", steps, weights=kind, blocks=find_blocks(sparse, steps[0]))
    sides: dict[str, Callable[..., Any]] = {"torch int8": by_torch, f"own dense {kind}": dense_quantized(dense, kind)}
    if bits == 8:
        sparsify(certified, "certified", steps)
        sides |= {"float32": model, "certified float32": certified}
    else:
        sides["sparse int8"] = sparsify(sparse8, "exact", steps, weights="int8", blocks=find_blocks(sparse8, steps[0]))
    sides |= {f"sparse {kind}": sparse, **in_others(model, steps[0], bits)}
    weights = sum(layer.weight.numel() for layer in model.modules() if isinstance(layer, nn.Linear))
    work = f"OPT shape, {layers} x {d}-{s}, 5% active, threads: {torch.get_num_threads()}"
    with torch.inference_mode():
        if bits == 8 and not all(torch.equal(by_torch(*step), sparse(*step)) for step in steps):
            raise AssertionError("logits differ from those of torch's quantised layers")
        exact, figures = torch.cat([model(*step) for step in steps]), []
        for name, side in sides.items():
            error = torch.cat([torch.as_tensor(side(*step)) for step in steps]) - exact
            figures.append(Figure(work, f"{name}, relative error of logits", float(error.norm() / exact.norm()), ""))
        calls: dict[str, Callable[[], object]] = {
            name: (lambda side=side: [side(*step) for step in steps]) for name, side in sides.items()
        }
        calls["reading"] = seconds_of_reading(int(BYTES_A_WEIGHT[bits] * weights))
        times = interleaved(calls, repeats, clock=_clock())
    share = len(steps) * (1 - 0.95 * layers * d * s / weights)
    figures += _compared(work, f"sparse {kind}", times, 1 / len(steps), share, STEP_GOALS[bits])
    return figures + [figure for rows in BATCHES for figure in _of_rows(model, rows, bits, repeats, work)]


def _steps(model: DecodingStep, rows: int, count: int) -> list[tuple[Tensor, Tensor]]:
    """Tokens, and keys and values of the past, as the model takes them."""
    d = model.head.in_features
    past = len(model.layers), 2, rows * d // 64, 64, 64
    return [(torch.randn(rows, d), torch.randn(*past)) for _ in range(count)]


def _of_rows(model: DecodingStep, rows: int, bits: int, repeats: int, work: str) -> list[Figure]:
    """A step of several tokens by the method ``"auto"``, as fast as the fastest dense side or faster."""
    steps = _steps(model, rows, 2)
    dense8, dense4, sparse = (deepcopy(model, {id(p): p for p in model.parameters()}) for _ in range(3))
    sparsify(sparse, "auto", steps, weights=f"int{bits}", blocks=find_blocks(sparse, steps[0]))
    sides: dict[str, Callable[..., Any]] = {
        "float32": model,
        "torch int8": quantized_by_torch(model),
        "own dense int8": dense_quantized(dense8, "int8"),
        "own dense int4": dense_quantized(dense4, "int4"),
    }
    calls: dict[str, Callable[[], object]] = {
        name: (lambda side=side: [side(*step) for step in steps])
        for name, side in {**sides, f"sparse int{bits}": sparse}.items()
    }
    with torch.inference_mode():
        times = interleaved(calls, repeats, clock=_clock())
    work = f"{work}, {rows} rows"
    figures = [Figure.of(work, f"{name}, ms", found.scaled(500), "ms") for name, found in times.items()]
    fastest = min(sides, key=lambda name: median(times[name]))
    ours, quantity = f"sparse int{bits}", f"sparse int{bits}, times as fast as the fastest dense side, {fastest}"
    return [*figures, Figure.ratio(work, quantity, times[fastest], times[ours], least=1.0)]


def _clock() -> Callable[[], float]:
    """Of the work of all threads, if there is one; else of the wall."""
    return time.process_time if torch.get_num_threads() == 1 else time.perf_counter


def experts(repeats: int, quick: bool) -> list[Figure]:
    """Single tokens through a Mixtral of transformers, whose stacked experts torch leaves in float32."""
    if find_spec("transformers") is None:
        print("int8: experts left out, for transformers is not installed")
        return []
    from transformers import MixtralConfig, MixtralForCausalLM

    d, h, layers = (48, 96, 2) if quick else (768, 1536, 4)
    config = MixtralConfig(
        vocab_size=512, hidden_size=d, intermediate_size=h, num_hidden_layers=layers, num_attention_heads=12,
        num_key_value_heads=4, num_local_experts=8, num_experts_per_tok=2, pad_token_id=0,
    )  # fmt: skip
    model = MixtralForCausalLM(config).eval()
    tokens = list(torch.randint(1, 512, (24, 1)).split(1))
    sides = {"transformers": model, "torch int8": quantized_by_torch(model)}
    sides |= {name: sparsify(model, "auto", tokens, weights=name, copy=True) for name in ("int8", "int4")}
    calls: dict[str, Callable[[], object]] = {
        name: (lambda side=side: [side(one) for one in tokens]) for name, side in sides.items()
    }
    with torch.inference_mode():
        times = interleaved(calls, repeats, clock=_clock())
    work = f"Mixtral, {layers} x 8 experts of {d}-{h}, 2 active"
    return [
        Figure.ratio(work, f"{ours}, times as fast as {other}", times[other], times[ours])
        for ours in ("int8", "int4")
        for other in ("transformers", "torch int8")
    ]


@program(option("--threads", type=int, default=1), repeats=15)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    torch.manual_seed(2027)
    figures = []
    for density in DENSE_GOALS:
        sizes = (64, 256, 2) if arguments.quick else (1024, 4096, 10)
        figures += blocks(density, sizes, arguments.repeats)
    figures += decoding(8, arguments.repeats, arguments.quick)
    figures += experts(arguments.repeats, arguments.quick)
    return figures
