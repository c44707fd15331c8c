"""Find the feed-forward blocks of any model from one traced forward pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from sparsact.inference.activation import Probes, without_rows
from sparsact.inference.batches import Batch, Inputs, batches, call, evaluating, numbers_and_nonzero, uncompiled
from sparsact.inference.block import Block
from sparsact.inference.dataflow import DataflowTracer
from sparsact.inference.expression import Expression, Given, evaluate, leaves, subexpressions
from sparsact.inference.layer_facts import LayerFacts, check_model, other_forms
from sparsact.inference.sparse_linear import MAX_SHARE
from sparsact.inference.split_experts import showing_all_experts, split_experts
from sparsact.inference.traced_call import TracedCall, traced_call


def find_blocks(model: nn.Module, inputs: Inputs) -> list[Block]:
    r"""The feed-forward blocks of a model, in the order in which they run on the first batch of ``inputs``.

    A block is two layers of the class ``nn.Linear`` (or ``Conv1D`` of transformers) with an activation between,
    :math:`V f(W x + b) + c`, or three, :math:`V (f(G x + a) \odot (W x + b)) + c`, where one layer may compute both G
    and W. It is found by which operations made the input of a linear layer, not by names and classes of modules. These
    may be elementwise, a batch norm in evaluation mode included, or along the units, which then must leave some exactly
    0: a top-k, or a cutoff by mean and deviation.

    A layer that ends no such block is one alone, without ``up``, if at most 40 % of its input on the first batch is not
    exactly 0, wherever the zeros come from: up to there the columns of the other inputs are read faster than all.

    Parameters
    ----------
    model : nn.Module
        Model that runs once in evaluation mode and does not change.
    inputs : tensor, mapping, tuple or an iterable of these
        See :mod:`sparsact.inference.batches`; only the first batch is used.

    Returns
    -------
    blocks : list of Block
        Not empty. A layer may be ``down`` of one block and ``up`` of the next; blocks that would give it one role
        twice, or that are not computed in the same way whenever their layers run, are left out. A block whose
        activation has zeros but no threshold (hardshrink) is its ``down`` alone.

    Raises
    ------
    ValueError
        If there is no block (the message says what came nearest), or if parameters are on the ``meta`` device.
    TypeError
        If ``model`` is no ``nn.Module``, or compiled by TorchScript.

    Notes
    -----
    Branches that depend on numbers taken out of tensors (``item``) are seen only as this batch takes them. Left out are
    layers with a forward of their own (such as LoRA's) or with parametrized, pruned or quantised weights.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> [block] = find_blocks(model, torch.randn(5, 3))
    >>> block.up, block.activation.name, block.down, block.activation.zero_below.tolist()
    ('0', 'relu', '2', [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    """
    blocks, why_none = blocks_or_reason(model, next(batches(inputs)))
    if not blocks:
        raise ValueError(why_none)
    return blocks


def blocks_or_reason(model: nn.Module, batch: Batch) -> tuple[list[Block], str]:
    """The blocks of a model on a batch, and if there are none the need, what came nearest and the remedy."""
    check_model(model)
    if any(parameter.is_meta for parameter in model.parameters()):
        raise ValueError(
            "The model must hold numbers; some of its parameters are on the meta device, which holds shapes alone: "
            "load its weights first."
        )
    with split_experts(model), evaluating(model), showing_all_experts(model):
        layers = {name: module for name, module in model.named_modules() if LayerFacts.of(module).is_plain}
        tracer, calls, n_run = _trace(model, layers, batch)
        blocks, reasons = _blocks(calls, tracer)
        return blocks, "" if blocks else _no_block(model, layers, n_run, reasons, list(tracer.products))


def _trace(
    model: nn.Module, layers: Mapping[str, nn.Module], batch: Batch
) -> tuple[DataflowTracer, list[TracedCall], int]:
    """One traced forward pass: the tracer, each call of a linear layer, and how many of these layers ran."""
    names = {module: name for name, module in model.named_modules()}
    plain, ran = set(layers.values()), set()
    tracer = DataflowTracer(batch, _parameters_elsewhere(names, plain))
    calls: list[TracedCall] = []

    def before_layer(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        with tracer.pause():
            read = args[0] if args else kwargs["input"]
            numbers, nonzero = numbers_and_nonzero(read)
            calls.append(replace(traced_call(names[layer], read, tracer), numbers=numbers, nonzero=nonzero))

    def after_layer(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> None:
        ran.add(layer)
        with tracer.pause():
            tracer.record_layer(names[layer], args[0] if args else kwargs["input"], output)

    def around_module(module: nn.Module, *values: object) -> None:
        tracer.record_module(names[module], values)

    scripted = {module for module in names if isinstance(module, torch.jit.ScriptModule)}  # they take no hooks
    within = {one for module in scripted for one in module.children()}
    tracer.unseen = [name for module, name in names.items() if module in scripted - within]
    with ExitStack() as stack:
        for module in filter(lambda one: one not in scripted, names):
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


def _parameters_elsewhere(names: Mapping[nn.Module, str], plain: set[nn.Module]) -> dict[int, str]:
    """Names of the parameters that no plain linear layer holds, by address."""
    held = {one.data_ptr() for layer in plain for one in layer.parameters(recurse=False)}
    return {
        parameter.untyped_storage().data_ptr(): f"{name}.{key}".lstrip(".")
        for module, name in names.items()
        for key, parameter in module.named_parameters(recurse=False)
        if parameter.data_ptr() not in held
    }


@contextmanager
def _module_by_module() -> Iterator[None]:
    """Without compiled code, and without torch's fused path through an encoder, which calls no linear layer."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with ExitStack() as stack:
            stack.enter_context(torch.jit.optimized_execution(False))  # type: ignore[attr-defined]
            stack.enter_context(uncompiled())
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


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
        first, why = made[0].block, ""
        few = 0 < sum(one.nonzero for one in made) <= MAX_SHARE * sum(one.numbers for one in made)
        if first and all(_agree(first, one.block, made[0].like) for one in made[1:]):
            inner = {name for name in (first.up, first.gate) if name}
            if inner & taken:
                why = f"{down} reads {first.up}, which belongs to another block"
            elif first.exact or not few:
                taken |= inner
                blocks.append(_with_readers(made[0], first, inner, readers, tracer))
                continue
        elif any(one.block for one in made):
            why = f"{down} is called {len(made)} times and does not always read the same activations"
        if few:
            blocks.append(Block.of_zeros(down, first.activation.name if first else "unknown"))
        elif why:
            reasons.append(why)
    return _named(blocks), reasons


def _with_readers(
    made: TracedCall,
    block: Block,
    inner: set[str],
    readers: Mapping[str, dict[Expression, None]],
    tracer: DataflowTracer,
) -> Block:
    """The block of a call, with all readers of the pre-activations of ``inner``, its layers before the activation."""
    read = dict.fromkeys([*(reader for name in inner for reader in readers[name]), *made.factors])
    private = block.exact and not any(_depends_on_off_units(one, block, made.like) for one in read)
    shown_to = dict.fromkeys(
        name
        for name, value in tracer.module_values
        if inner & {leaf.name for leaf in leaves(value)}
        and (block.activation.zeros_elsewhere or _depends_on_off_units(value, block, made.like))
    )
    shown_to |= dict.fromkeys(tracer.unseen)
    return replace(block, private=private, readers=tuple(shown_to))


def _agree(first: Block, other: Block | None, like: Tensor) -> bool:
    """Whether two calls belong to one block: they use the same layers, with the same activation between."""
    if other is None or (first.up, first.gate, first.up_rows) != (other.up, other.gate, other.up_rows):
        return False
    numbers = torch.linspace(-8, 8, 65, dtype=like.dtype, device=like.device)
    probes = torch.cat([numbers[:, None].expand(-1, like.shape[-1]), Probes(like, like.shape[-1])(9, 7)])
    values, others = first.activation.function(probes), other.activation.function(probes)
    return torch.allclose(values, others, rtol=0.0, atol=0.0, equal_nan=True)


def _depends_on_off_units(reader: Expression, block: Block, like: Tensor) -> bool:
    """Whether an expression changes with pre-activations of units that are off; True if that is not known."""
    thresholds, start = block.activation.zero_below, block.up_rows and block.up_rows.start
    try:
        rest, factors = without_rows(reader, like)
    except RuntimeError:  # also of a recursion that is too deep
        return True
    parts = [rest, *(one for one in factors if not isinstance(one, Given))]
    if any(Given in map(type, subexpressions(one)) for one in parts) or not (block.gate or thresholds is not None):
        return True
    large = torch.finfo(like.dtype).max ** 0.5  # a norm may be clipped at any size
    alike: list[list[tuple[Tensor, Tensor]]] = []  # values of switch and up that differ where units are off
    if block.gate:
        g, u = (Probes(like, like.shape[-1])(7, seed) for seed in (8, 9))
        is_off = block.activation.function(g) == 0
        alike += [[(g, u), *((g, torch.where(is_off, one, u)) for one in (1 - u, large * u))]]
    if thresholds is not None:
        below = [thresholds - step * (1 + thresholds.abs()) for step in (0.0, 1.0, 30.0, large)]
        off = [torch.where(thresholds.isfinite(), one, 0.0).expand(2, -1) for one in below]
        alike += [[(one, torch.full_like(one, i)) for i, one in enumerate(off)]]
        on, up = (Probes(like, like.shape[-1])(2, seed).abs() for seed in (8, 9))
        is_on = (torch.arange(on.shape[-1], device=on.device) % 2 == 0) | ~thresholds.isfinite()
        alike += [[(torch.where(is_on, on, one), torch.where(is_on, up, float(i))) for i, one in enumerate(off)]]

    def values(part: Expression, switch: Tensor, up: Tensor) -> Tensor:
        given = {leaf: switch.new_ones(len(switch), leaf.width) for leaf in leaves(part)}
        for leaf in given:
            if leaf.name in (block.up, block.gate):
                is_up = leaf.name == block.up and block.gate and (start is None or leaf.start == start)
                given[leaf] = up if is_up else switch
        result: Tensor = evaluate(part, given)[part]
        return result

    for part in filter(leaves, parts):
        for pairs in alike:
            first, *others = [values(part, *pair) for pair in pairs]
            if not all(torch.equal(first, other) for other in others):
                return True
    return False


def _named(blocks: list[Block]) -> list[Block]:
    """Blocks named after the modules that hold them, and after their layers where that is ambiguous."""
    holders = [block.holder if block.up is not None else block.down for block in blocks]
    named = []
    for block, holder in zip(blocks, holders, strict=True):
        start = len(holder) + 1 if holder else 0
        layers = f"{(block.up or '')[start:]}-{block.down[start:]}"
        unique = block.up is None or (holder and holders.count(holder) == 1)
        named.append(replace(block, name=holder if unique else f"{holder}.{layers}".lstrip(".")))
    return named


def _no_block(
    model: nn.Module, layers: Mapping[str, nn.Module], n_run: int, reasons: list[str], products: list[str]
) -> str:
    """Why there is no block: the need, the fact and the remedy."""
    need = "The model must have a feed-forward block: nn.Linear, an activation of each unit alone, nn.Linear; or "
    need += f"an nn.Linear with at least {1 - MAX_SHARE:.0%} zeros in its input."
    fact = f" It has {len(layers)} plain nn.Linear, {n_run} ran on the first batch, and none are such."
    left = other_forms(model)
    if left:
        fact += f" Left as they are: {'; '.join(left)}."
    if products:
        fact += f" It also multiplies by parameters of other modules: {', '.join(products[:5])}."
    if reasons:
        fact += " Nearest: " + "; ".join(reasons[:5]) + "."
    return need + fact + " Pass inputs that reach such layers, or write the layers as plain nn.Linear."
