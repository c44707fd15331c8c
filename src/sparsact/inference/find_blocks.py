"""Find the feed-forward blocks of any model from one traced forward pass."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from sparsact.inference.activation import Expression, Leaf, NotAnActivation, activation, evaluate, leaves
from sparsact.inference.batches import Batch, Inputs, batches, call, evaluating
from sparsact.inference.block import Block
from sparsact.inference.dataflow import DataflowTracer, TracedInput
from sparsact.inference.layer_facts import LayerFacts, WeightRows, other_forms
from sparsact.inference.split_experts import showing_all_experts, split_experts


def find_blocks(model: nn.Module, inputs: Inputs) -> list[Block]:
    r"""The feed-forward blocks of a model, in the order in which they run on the first batch of ``inputs``.

    A block is two layers of the class ``nn.Linear`` (or ``Conv1D`` of transformers) with an activation between,
    :math:`V f(W x + b) + c`, or three, :math:`V (f(G x + a) \odot (W x + b)) + c`, of which the first two may be the
    halves of one layer's output. It is found by what the model computes: from which layers' outputs, and
    by which operations, the input of a linear layer was made. Names and classes of modules play no part. The operations
    found are evaluated on other numbers, to check that they are an activation and to find where it is 0.

    Parameters
    ----------
    model : nn.Module
        Is run once in evaluation mode, and left as it was.
    inputs : tensor, mapping, tuple or an iterable of these
        See :mod:`sparsact.inference.batches`; only the first batch is used.

    Returns
    -------
    blocks : list of Block
        Not empty. A layer may be ``down`` of one block and ``up`` of the next; blocks that would give it one role
        twice, or that are not computed in the same way whenever their layers run, are left out. Blocks of experts that
        a model stacks in one parameter have the names under which ``sparsify`` and ``measure`` split them.

    Raises
    ------
    ValueError
        If there is no block, with what came nearest; or if parameters are on the ``meta`` device.

    Notes
    -----
    One forward pass, and per block some 300 evaluations of its activation. Branches that depend on numbers taken out of
    tensors (``item``) are seen only as this batch takes them. Left out are layers with a forward of their own (such as
    LoRA's) or with parametrized, pruned or quantised weights, which compute with another weight than they hold.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> [block] = find_blocks(model, torch.randn(5, 3))
    >>> block.up, block.activation.name, block.down, block.activation.zero_below.tolist()
    ('0', 'relu', '2', [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    """
    if any(parameter.is_meta for parameter in model.parameters()):
        raise ValueError(
            "The model must hold numbers; some of its parameters are on the meta device, which holds shapes alone: "
            "load its weights first."
        )
    batch = next(batches(inputs))
    with split_experts(model), evaluating(model), showing_all_experts(model):
        layers = {name: module for name, module in model.named_modules() if LayerFacts.of(module).is_plain}
        tracer, calls, n_run = _trace(model, layers, batch)
        blocks, reasons = _blocks(calls, tracer)
        if not blocks:
            raise NoBlockError(_no_block(model, layers, n_run, reasons))
    return blocks


class NoBlockError(ValueError):
    """A model has no block."""


@dataclass(frozen=True, eq=False)
class TracedCall:
    """A call of the linear layer ``down``: the block that it completes, or the reason why it completes none."""

    down: str
    block: Block | None = None  # without a name, and not yet known whether it is private
    like: Tensor = field(default_factory=lambda: torch.empty(0))  # (0, units), in the type of pre-activations
    reason: str = ""


def _trace(
    model: nn.Module, layers: Mapping[str, nn.Module], batch: Batch
) -> tuple[DataflowTracer, list[TracedCall], int]:
    """One traced forward pass: the tracer, each call of a linear layer, and how many of these layers ran."""
    tracer = DataflowTracer(batch)
    calls: list[TracedCall] = []
    names = {module: name for name, module in model.named_modules()}
    plain, ran = set(layers.values()), set()

    def before_layer(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        with tracer.pause():
            calls.append(_traced_call(names[layer], args[0] if args else kwargs["input"], tracer))

    def after_layer(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> None:
        ran.add(layer)
        with tracer.pause():
            tracer.record_layer(names[layer], args[0] if args else kwargs["input"], output)

    def around_module(module: nn.Module, *values: object) -> None:
        tracer.record_module(names[module], values)

    with ExitStack() as stack:
        for module in names:
            before, after = (before_layer, after_layer) if module in plain else (around_module, around_module)
            stack.callback(module.register_forward_pre_hook(before, with_kwargs=True).remove)
            stack.callback(module.register_forward_hook(after, with_kwargs=True).remove)
        stack.enter_context(_module_by_module())
        stack.enter_context(tracer)
        try:
            outputs = call(model, batch)
        except Exception as error:
            error.add_note("Raised as the model ran on the first batch of `inputs`, in evaluation mode.")
            raise
    tracer.record_outputs(outputs)
    return tracer, calls, len(ran)


@contextmanager
def _module_by_module() -> Iterator[None]:
    """Without compiled code, and without torch's fused path through an encoder, which calls no linear layer."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with ExitStack() as stack:
            stack.enter_context(torch.jit.optimized_execution(False))  # type: ignore[attr-defined]
            if "torch._dynamo" in sys.modules:  # else nothing is compiled, and it loads slowly
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def _traced_call(down: str, read: Tensor, tracer: DataflowTracer) -> TracedCall:
    """The call of the layer ``down``, which is about to read the tensor ``read``."""
    found = tracer.provenance(read)
    if found is None or found.expression is None:
        return TracedCall(down, reason=f"{down} reads {found.reason}" if found and found.reason else "")
    inner = leaves(found.expression)
    names = " and ".join(dict.fromkeys(leaf.name for leaf in inner))
    try:
        _check_layers(found.expression, found.origins)
        _check_evaluation(found.expression, found.origins, read)
        like = found.origins[inner[0]].values.new_empty(0, inner[0].width)
        f, switch, up = activation(found.expression, like)
    except NotAnActivation as error:
        return TracedCall(down, reason=f"{down} reads {names}, but {error}")
    except RuntimeError as error:  # an operation that has no form for these shapes or types
        return TracedCall(
            down, reason=f"{down} reads {names}, but what is between them is bound to this input: {error}"
        )
    block = Block("", (up or switch).name, down, switch.name if up else None, f)
    if up and up.start is not None and switch.start is not None:
        up_rows, gate_rows = (WeightRows(start, start + up.width) for start in (up.start, switch.start))
        block = replace(block, up_rows=up_rows, gate_rows=gate_rows)
    return TracedCall(down, block, like)


def _check_layers(expression: Expression, origins: dict[Leaf, TracedInput]) -> None:
    """One layer, or two that read the same numbers."""
    found = leaves(expression)
    if isinstance(expression, Leaf):
        raise NotAnActivation("nothing is between them")
    if len(found) > 2 or len({(leaf.name, leaf.start) for leaf in found}) < len(found):
        raise NotAnActivation("a block has one layer before its activation, or two")
    if any(leaf.start is not None for leaf in found) and (len(found) < 2 or len({leaf.name for leaf in found}) > 1):
        raise NotAnActivation("half of what a layer returns is no gate without the other half")
    if len(found) == 2 and not _same_numbers(*(origins[leaf].source for leaf in found)):
        raise NotAnActivation("these do not read the same input")


def _same_numbers(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors are the same numbers in the same memory, in the same order."""
    if first.data_ptr() != second.data_ptr() or first.numel() != second.numel():
        return False
    return first.stride() == second.stride() or (first.is_contiguous() and second.is_contiguous())


def _check_evaluation(expression: Expression, origins: dict[Leaf, TracedInput], read: Tensor) -> None:
    """The expression must give what the model computed."""
    rows = (-1, read.shape[-1])
    values = {leaf: origins[leaf].values.reshape(rows) for leaf in leaves(expression)}
    again = evaluate(expression, values, as_traced=True)
    again, once = again.to(read.device).double(), read.reshape(rows).double()
    rounding = 8 * torch.finfo(read.dtype).eps  # operations on vectors and on single numbers may round differently
    size = float(once.nan_to_num(0.0, 0.0, 0.0).abs().sum()) / max(once.numel(), 1)
    if not torch.allclose(again, once, rtol=rounding, atol=rounding * size, equal_nan=True):
        raise NotAnActivation("it reads them in another order, or what is between them depends on more than them")


def _blocks(calls: list[TracedCall], tracer: DataflowTracer) -> tuple[list[Block], list[str]]:
    """The blocks that all calls agree on, and why other layers form none."""
    calls_of: defaultdict[str, list[TracedCall]] = defaultdict(list)
    for one in calls:
        calls_of[one.down].append(one)
    reasons = list(dict.fromkeys(one.reason for one in calls if one.reason))
    readers: defaultdict[str, dict[Expression, None]] = defaultdict(dict)
    for reader in tracer.readers:
        for leaf in leaves(reader):
            readers[leaf.name][reader] = None
    taken: set[str] = set()
    blocks = []
    for down, made in calls_of.items():
        first = made[0].block
        if first is None or not all(_agree(first, one.block, made[0].like) for one in made[1:]):
            if any(one.block for one in made):
                reasons.append(f"{down} is called {len(made)} times and does not always read the same activations")
            continue
        inner = {first.up, first.switch}
        if inner & taken:
            reasons.append(f"{down} reads {first.up}, which is in another block already")
            continue
        taken |= inner
        read = readers[first.up] | readers[first.switch]
        private = first.exact and not any(_depends_on_off_units(one, first) for one in read)
        shown_to = dict.fromkeys(
            name
            for name, value in tracer.module_values
            if inner & {leaf.name for leaf in leaves(value)} and _depends_on_off_units(value, first)
        )
        blocks.append(replace(first, private=private, readers=tuple(shown_to)))
    return _named(blocks), reasons


def _agree(first: Block, other: Block | None, like: Tensor) -> bool:
    """Whether two calls are of one block: of the same layers, with the same activation between."""
    if other is None or (first.up, first.gate, first.up_rows) != (other.up, other.gate, other.up_rows):
        return False
    numbers = torch.linspace(-8, 8, 65, dtype=like.dtype, device=like.device)
    probes = numbers[:, None].expand(-1, like.shape[-1])
    values, others = first.activation.function(probes), other.activation.function(probes)
    return torch.allclose(values, others, rtol=0.0, atol=0.0, equal_nan=True)


def _depends_on_off_units(reader: Expression, block: Block) -> bool:
    """Whether an expression changes with pre-activations of units that are off; False without thresholds."""
    thresholds, up_start = block.activation.zero_below, block.up_rows and block.up_rows.start
    if thresholds is None:
        return False
    found = leaves(reader)
    ups = [leaf for leaf in found if leaf.name == block.up and (up_start is None or leaf.start == up_start)]
    switches = [leaf for leaf in found if leaf.name == block.switch and (up_start is None or leaf.start != up_start)]
    values = []
    for step in (0.0, 1.0, 30.0):
        off = torch.where(thresholds.isfinite(), thresholds - step * (1 + thresholds.abs()), 0.0).expand(2, -1)
        given = dict.fromkeys(found, torch.ones_like(off))
        given |= dict.fromkeys(ups, torch.full_like(off, step - 2))
        values.append(given | dict.fromkeys(switches, off))
    first, *rest = [evaluate(reader, given) for given in values]
    return not all(torch.equal(first, other) for other in rest)


def _named(blocks: list[Block]) -> list[Block]:
    """Blocks named after the modules that hold them, and after their layers where that is ambiguous."""
    holders = [block.holder for block in blocks]
    named = []
    for block, holder in zip(blocks, holders, strict=True):
        start = len(holder) + 1 if holder else 0
        layers = f"{block.up[start:]}-{block.down[start:]}"
        unique = holder and holders.count(holder) == 1
        named.append(replace(block, name=holder if unique else f"{holder}.{layers}".lstrip(".")))
    return named


def _no_block(model: nn.Module, layers: Mapping[str, nn.Module], n_run: int, reasons: list[str]) -> str:
    """Why there is no block: the need, the fact and the remedy."""
    need = "The model must have a feed-forward block: nn.Linear, an activation of each unit alone, nn.Linear."
    fact = f" It has {len(layers)} plain nn.Linear, {n_run} ran on the first batch, and no two are such a pair."
    left = other_forms(model)
    if left:
        fact += f" Left as they are: {'; '.join(left)}."
    if reasons:
        fact += " Nearest: " + "; ".join(reasons[:5]) + "."
    return need + fact + " Show it inputs on which such layers run, or write those layers as plain nn.Linear."
