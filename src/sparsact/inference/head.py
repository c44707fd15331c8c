"""The head of a language model, which computes only the logits of words that can be among the k largest.

It applies to calls of a few rows. A call of the model with ``labels`` gets all logits, and so does ``generate`` unless
it needs the largest alone: greedy, or sampling after its top-k filter. ``generate_batch`` is refused. What else reads
logits is not known here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from functools import partial, update_wrapper
from inspect import signature
from typing import Any, Final

import torch
from torch import Tensor, nn

from sparsact.inference.apply import Replacement
from sparsact.inference.batches import Batch, observe, tensors_in
from sparsact.inference.certified_screen import NARROW
from sparsact.inference.certified_top_k import BoundedOutputs
from sparsact.inference.layer_facts import LayerFacts, WeightRows, is_linear
from sparsact.inference.methods import SAMPLE
from sparsact.inference.plan import HeadPlan
from sparsact.inference.selectors import has_global_hooks, has_hooks
from sparsact.inference.sparse_linear import LayerState, Selector, SparseLinear, contiguous
from sparsact.inference.weight_cache import WeightCache
from sparsact.inference.weights import FloatWeights

GUARDED: Final = ("generate", "_get_logits_processor")  # of transformers, in whose place a guard stands
DIRECTIONS_COST: Final = 0.12  # of the bytes of the copy: coefficients along directions, and their products


class Logits(Enum):
    """Which logits the model that is running needs."""

    LARGEST = "largest"
    UNDECIDED = "undecided"
    ENOUGH = "the largest, as generate has found"
    ALL = "all"


NEEDED: Final[ContextVar[Logits]] = ContextVar("NEEDED", default=Logits.LARGEST)
CALLS: Final[ContextVar[tuple[Logits, ...]]] = ContextVar("CALLS", default=())  # what was needed before each that runs


@contextmanager
def needing(logits: Logits) -> Iterator[None]:
    """Logits that models need within the context."""
    token = NEEDED.set(logits)
    try:
        yield
    finally:
        NEEDED.reset(token)


@dataclass
class LargestOutputs(Selector):
    """Outputs that may be among the k largest of their row, exactly, and -infinity elsewhere; ties with the k-th stay.

    ``bounds`` are computed from the layer's weights.
    """

    k: int
    bounds: WeightCache[BoundedOutputs]

    def outputs(self, layer: SparseLinear, x: Tensor, rows: int) -> Tensor:
        """``x @ weight.T + bias``, or -infinity."""
        sparse = layer._sparse
        needed = NEEDED.get() in (Logits.LARGEST, Logits.ENOUGH) and not has_hooks(layer) and not has_global_hooks()
        screened = x.dtype in NARROW and self.k <= layer.out_features
        if not needed or not screened or not 0 < rows <= sparse.max_rows:
            return layer.dense(x)
        out = self.bounds.get(sparse.weight_version(layer)).fill(contiguous(x), rows, self.k)
        if out is None:
            return layer.dense(x)
        sparse.sparse_calls += 1
        return layer.shaped_like(x, out)


def sparse_head(model: nn.Module, k: int, shown: Sequence[Batch]) -> HeadPlan:
    """Let the head of a model compute only what can be among its k largest outputs.

    A ValueError is raised if no layer's outputs are what the model returns, or the layer cannot be screened.
    """
    name, inputs = head_of(model, shown)
    layer = model.get_submodule(name)
    weight, bias = WeightRows().of(layer)
    if isinstance(layer, SparseLinear):
        raise ValueError(f'head="top_k" needs a head of its own; {name} is a layer of a block: leave `head` out.')
    if not LayerFacts.of(layer).is_plain or weight.dtype not in NARROW or not weight.is_cpu or weight.is_inference():
        raise ValueError(
            f'head="top_k" takes a plain linear layer with float32, bfloat16 or float16 weights on the CPU; {name} is '
            f"{LayerFacts.of(layer).kind} with {weight.dtype} on {weight.device}: leave `head` out."
        )
    if not 1 <= k <= len(weight):
        raise ValueError(f"`k` must lie between 1 and {len(weight)}, the outputs of {name}; got {k}.")
    finite = inputs[inputs.isfinite().all(1)][-SAMPLE:].to(weight.dtype)
    tried: list[tuple[float, BoundedOutputs, Tensor | None]] = []
    for sample in (None, finite.clone()) if len(finite) else (None,):
        bounds = BoundedOutputs(weight.detach(), None if bias is None else bias.detach(), sample)
        out = bounds.fill(finite.contiguous(), len(finite), k) if len(finite) else None
        share = 1.0 if out is None else float((out > -torch.inf).float().mean())
        tried.append((share, bounds, sample))
    itemsize = weight.itemsize  # of the weights, over one byte of the copy
    share, bounds, sample = min(tried, key=lambda one: itemsize * one[0] + (one[2] is not None) * DIRECTIONS_COST)
    state = apply_head(model, name, k, shown[-1], sample)
    state.selector.bounds.set(bounds, state.weight_version(layer))
    return HeadPlan(name, k, len(weight), share, itemsize / (1 + itemsize * share))


def apply_head(model: nn.Module, name: str, k: int, batch: Batch, sample: Tensor | None = None) -> Any:
    """Make a layer the sparse head of a model, whose bounds are computed when they are first needed.

    A ValueError is raised if on the batch the model uses outputs that the layer leaves out.
    """
    bounds: WeightCache[BoundedOutputs] = WeightCache(partial(BoundedOutputs, sample=sample))
    state = LayerState(FloatWeights, LargestOutputs(k, bounds))
    Replacement({name: state}).apply(model)
    guard(model, k)
    if _is_read(model, name, batch):
        raise ValueError(
            f'head="top_k" needs a model that returns the outputs of {name} and computes nothing from them; other '
            "numbers change with the small ones here: leave `head` out."
        )
    return state


def head_of(model: nn.Module, shown: Sequence[Batch]) -> tuple[str, Tensor]:
    """The name of the linear layer whose outputs a model returns, and its inputs (rows, d) on the batches."""
    embeddings = getattr(model, "get_output_embeddings", lambda: None)()
    names = [
        name
        for name, one in model.named_modules()
        if is_linear(one) and (one is embeddings or not isinstance(embeddings, nn.Module))
    ]
    inputs: dict[str, list[Tensor]] = {}
    outputs: dict[str, Tensor] = {}

    def see(name: str, given: Any, output: Any) -> None:
        inputs.setdefault(name, []).append(given[0].flatten(0, -2).clone())
        outputs[name] = output.clone()

    returned = tensors_in(observe(model, names, shown, see))
    found = [name for name, out in outputs.items() if any(_is_returned(out, one) for one in returned)]
    if not found:
        raise ValueError(
            'head="top_k" needs a linear layer whose outputs the model returns as they are; of '
            f"{', '.join(names[-3:]) or 'no layer'} they are changed before, or not returned: leave `head` out."
        )
    return found[-1], torch.cat(inputs[found[-1]])


def _is_read(model: nn.Module, name: str, batch: Batch) -> bool:
    """Whether a model that is guarded computes anything from a layer's outputs where their largest are needed."""
    layer, shape = model.get_submodule(name), [torch.Size()]

    def largest_alone(module: nn.Module, given: Any, out: Tensor) -> Tensor:
        shape[0] = out.shape
        if NEEDED.get() is Logits.ALL:
            return out
        return out.masked_fill(out < out.amax(-1, keepdim=True), -torch.inf)

    with needing(Logits.ALL):
        before = tensors_in(observe(model, (), (batch,), lambda *_: None))
    with layer.register_forward_hook(largest_alone):
        after = tensors_in(observe(model, (), (batch,), lambda *_: None))

    def agree(new: Tensor, old: Tensor) -> bool:
        if new.shape != old.shape:
            return False
        if new.shape[-1:] == shape[0][-1:] and new.numel() == shape[0].numel():
            old = old.masked_fill(new == -torch.inf, -torch.inf)
        return torch.allclose(new, old, equal_nan=True)

    return len(before) != len(after) or not all(map(agree, after, before))


def _is_returned(out: Tensor, returned: Tensor) -> bool:
    """Whether the model returned these numbers, perhaps in another dtype or with rows in another shape."""
    same = returned.is_floating_point() and out.numel() == returned.numel() and out.shape[-1] == returned.shape[-1]
    return same and torch.equal(out.flatten().to(returned.dtype), returned.flatten())


@dataclass
class GenerateGuard:
    """``generate`` of a model: all logits, until it is known that their largest are enough."""

    model: nn.Module

    def __post_init__(self) -> None:
        update_wrapper(self, getattr(type(self.model), GUARDED[0]))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the model generates."""
        custom = kwargs.get("custom_generate") is not None  # it may read logits itself
        with needing(Logits.ALL if custom else Logits.UNDECIDED):
            return getattr(type(self.model), GUARDED[0])(self.model, *args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what the wrapper has of the function, which cannot be pickled."""
        return GenerateGuard, (self.model,)


@dataclass
class ProcessorGuard:
    """``_get_logits_processor`` of a model, which ``generate`` calls once it knows what reads the logits."""

    model: nn.Module
    k: int
    warned: bool = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The processors; some models ask several times, and once all logits are needed they are to the end."""
        if NEEDED.get() is Logits.LARGEST:
            raise ValueError(
                'head="top_k" needs generate, which says what reads the logits; generate_batch reads them in another '
                "thread: call generate, or sparsify without `head`."
            )
        found = getattr(type(self.model), GUARDED[1])(self.model, *args, **kwargs)
        if NEEDED.get() is not Logits.ALL:
            config: Any = kwargs["generation_config"] if "generation_config" in kwargs else args[0]
            reason = needs_all_logits(config, found, self.k)
            NEEDED.set(Logits.ALL if reason else Logits.ENOUGH)
            if reason and not self.warned:
                self.warned = True
                warnings.warn(f"the head computes all logits, not the {self.k} largest: {reason}", stacklevel=3)
        return found


def needs_all_logits(config: Any, processors: Sequence[Any], k: int) -> str:
    """Why ``generate`` needs more than the k largest logits; empty if it does not."""
    mode = config.get_generation_mode().value
    if mode not in ("greedy_search", "sample"):
        return f"generate runs {mode}"
    if config.output_scores or config.output_logits:
        return "generate returns scores or logits"
    for one in processors:
        kind = type(one).__name__
        if mode == "sample" and kind == "TopKLogitsWarper":
            return "" if one.top_k <= k else f"it samples from the {one.top_k} largest"
        if mode == "greedy_search" or kind != "TemperatureLogitsWarper":
            return f"{kind} reads them"
    return "it samples from all words" if mode == "sample" else ""


@dataclass(frozen=True)
class LabelsGuard:
    """Hooks before and after a call of a module: all logits for a call with labels, which computes a loss."""

    place: int

    def before(self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Set what the call needs."""
        given = kwargs.get("labels", args[self.place] if len(args) > self.place else None)
        CALLS.set((*CALLS.get(), NEEDED.get()))
        if given is not None:
            NEEDED.set(Logits.ALL)

    def after(self, module: nn.Module, args: Any, output: Any) -> None:
        """Set what was needed before it."""
        *before, needed = CALLS.get()
        CALLS.set(tuple(before))
        NEEDED.set(needed)


def guard(model: nn.Module, k: int) -> None:
    """Let the models of transformers that a model is or holds use all logits where the largest are not enough."""
    for module in model.modules():
        if all(callable(getattr(type(module), name, None)) for name in GUARDED):
            guards: tuple[Callable[..., Any], ...] = (GenerateGuard(module), ProcessorGuard(module, k))
            vars(module).update(zip(GUARDED, guards, strict=True))
        parameters = list(signature(type(module).forward).parameters)
        if "labels" in parameters:
            labels = LabelsGuard(parameters.index("labels") - 1)
            module.register_forward_pre_hook(labels.before, with_kwargs=True)
            module.register_forward_hook(labels.after, always_call=True)


def unguard(module: nn.Module) -> None:
    """Undo :func:`guard` for one module."""
    for name in GUARDED:
        if isinstance(vars(module).get(name), GenerateGuard | ProcessorGuard):
            del vars(module)[name]
    for hooks in (module._forward_pre_hooks, module._forward_hooks):
        for key in [key for key, hook in hooks.items() if isinstance(getattr(hook, "__self__", None), LabelsGuard)]:
            del hooks[key]
            module._forward_pre_hooks_with_kwargs.pop(key, None)
            module._forward_hooks_always_called.pop(key, None)
