"""Find the feed-forward blocks of any model from one traced forward pass."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from sparsact.inference.activations import NotAnActivation, activation
from sparsact.inference.batches import Batch, Inputs, batches, call, evaluating
from sparsact.inference.block import Activation, Block
from sparsact.inference.dataflow import DataflowTracer, TracedInput
from sparsact.inference.expression import Expression, Leaf, leaves, replay


@dataclass(frozen=True, eq=False)
class TracedCall:
    """A call of the linear layer ``down``: the roles of layers whose activations it reads, or why it reads none."""

    down: str
    up: str = ""
    gate: str | None = None
    activation: Activation | None = None
    like: Tensor = field(default_factory=lambda: torch.empty(0))  # (0, units), in the type of pre-activations
    why_not: str = ""

    @property
    def roles(self) -> tuple[str, str | None, str]:
        """The names of the layers, the same for two calls of one block."""
        return self.up, self.gate, self.down


def candidate(down: str, read: Tensor, follow: DataflowTracer) -> TracedCall:
    """The candidate whose last layer is ``down``, which is about to read the tensor ``read``."""
    trail = follow.trail(read)
    if trail is None or trail.expression is None:
        return TracedCall(down, why_not=f"{down} reads {trail.why_not}" if trail and trail.why_not else "")
    found = leaves(trail.expression)
    names = " and ".join(leaf.name for leaf in found)
    try:
        _check_layers(trail.expression, trail.origins)
        _check_replay(trail.expression, trail.origins, read)
        like = trail.origins[found[0]].values.new_empty(0, found[0].width)
        f, switch, up = activation(trail.expression, like)
    except NotAnActivation as error:
        return TracedCall(down, why_not=f"{down} reads {names}, but {error}")
    except RuntimeError as error:  # an operation that has no form for these shapes or types
        return TracedCall(
            down, why_not=f"{down} reads {names}, but what is between them is bound to this input: {error}"
        )
    return TracedCall(down, (up or switch).name, switch.name if up else None, f, like)


def _check_layers(expression: Expression, origins: dict[Leaf, TracedInput]) -> None:
    """One layer, or two that read the same numbers."""
    found = leaves(expression)
    if isinstance(expression, Leaf):
        raise NotAnActivation("nothing is between them")
    if len(found) > 2 or len({leaf.name for leaf in found}) < len(found):
        raise NotAnActivation("a block has one layer before its activation, or two")
    if len(found) == 2 and not _same(*(origins[leaf].source for leaf in found)):
        raise NotAnActivation("these do not read the same input")


def _same(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors are the same numbers in the same memory, in the same order."""
    if first.data_ptr() != second.data_ptr() or first.numel() != second.numel():
        return False
    return first.stride() == second.stride() or (first.is_contiguous() and second.is_contiguous())


def _check_replay(expression: Expression, origins: dict[Leaf, TracedInput], read: Tensor) -> None:
    """The expression gives what the model computed."""
    rows = (-1, read.shape[-1])
    again = replay(expression, {leaf: origins[leaf].values.reshape(rows) for leaf in leaves(expression)})
    again, once = again.to(read.device).double(), read.reshape(rows).double()
    rounding = 8 * torch.finfo(read.dtype).eps  # operations on vectors and on single numbers may round differently
    size = float(once.nan_to_num(0.0, 0.0, 0.0).abs().sum()) / max(once.numel(), 1)
    if not torch.allclose(again, once, rtol=rounding, atol=rounding * size, equal_nan=True):
        raise NotAnActivation("it reads them in another order, or what is between them depends on more than them")


def blocks_of(
    found: list[TracedCall], readers: list[Expression], shown: Iterable[tuple[str, Expression]]
) -> tuple[list[Block], list[str]]:
    """The blocks that all calls agree on, and why other candidates are none.

    Parameters
    ----------
    found : list of TracedCall
    readers : list of Expression
        Values that the model reads otherwise than number by number.
    shown : iterable of (str, Expression)
        Values that modules are given or give.
    """
    calls: defaultdict[str, list[TracedCall]] = defaultdict(list)
    for one in found:
        calls[one.down].append(one)
    reasons = list(dict.fromkeys(one.why_not for one in found if one.why_not))
    read: defaultdict[str, dict[Expression, None]] = defaultdict(dict)
    for reader in readers:
        for leaf in leaves(reader):
            read[leaf.name][reader] = None
    taken: set[str] = set()
    blocks = []
    for down, made in calls.items():
        first = made[0]
        if first.activation is None or not all(_agree(first, one) for one in made[1:]):
            if any(one.activation for one in made):
                reasons.append(f"{down} is called {len(made)} times and does not always read the same activations")
            continue
        before = {first.up, first.gate} - {None}
        if before & taken:
            reasons.append(f"{down} reads {first.up}, which is in another block already")
            continue
        taken |= {name for name in before if name}
        blocks.append(
            Block("", first.up, down, first.gate, first.activation, _private(first, read), _shown_to(first, shown))
        )
    return _named(blocks), reasons


def _agree(first: TracedCall, other: TracedCall) -> bool:
    """Whether two calls are of one block: of the same layers, with the same activation between."""
    if first.roles != other.roles or not first.activation or not other.activation:
        return False
    numbers = torch.linspace(-8, 8, 65, dtype=first.like.dtype, device=first.like.device)
    probes = numbers[:, None].expand(-1, first.like.shape[-1])
    values, others = first.activation.function(probes), other.activation.function(probes)
    return torch.allclose(values, others, rtol=0.0, atol=0.0, equal_nan=True)


def _private(block: TracedCall, read: Mapping[str, Iterable[Expression]]) -> bool:
    """Whether all that was read of the block's layers stays what it is when pre-activations of off units change."""
    thresholds = block.activation.zero_below if block.activation else None
    if thresholds is None:
        return False
    readers = dict.fromkeys([*read[block.up], *read[block.gate or block.up]])
    return not any(_tells_apart(reader, block, thresholds) for reader in readers)


def _shown_to(block: TracedCall, shown: Iterable[tuple[str, Expression]]) -> tuple[str, ...]:
    """Names of the modules whose hooks would see pre-activations of off units."""
    thresholds = block.activation.zero_below if block.activation else None
    if thresholds is None:
        return ()
    own = {block.up, block.gate or block.up}
    seen = [(name, value) for name, value in shown if own & {leaf.name for leaf in leaves(value)}]
    return tuple(dict.fromkeys(name for name, value in seen if _tells_apart(value, block, thresholds)))


def _tells_apart(reader: Expression, block: TracedCall, thresholds: Tensor) -> bool:
    """Whether an expression depends on pre-activations of units that are off."""
    found = leaves(reader)
    values = []
    for step in (0.0, 1.0, 30.0):
        off = torch.where(thresholds.isfinite(), thresholds - step * (1 + thresholds.abs()), 0.0).expand(2, -1)
        given = dict.fromkeys(found, torch.ones_like(off))
        given |= {leaf: torch.full_like(off, step - 2) for leaf in found if leaf.name == block.up}
        values.append(given | {leaf: off for leaf in found if leaf.name == (block.gate or block.up)})
    first, *rest = [replay(reader, given) for given in values]
    return not all(torch.equal(first, other) for other in rest)


def _named(blocks: list[Block]) -> list[Block]:
    """Blocks with the names of the modules that hold them; with those of their layers where that is not enough."""
    holders = [block.holder for block in blocks]
    named = []
    for block, holder in zip(blocks, holders, strict=True):
        clear = holder and holders.count(holder) == 1
        start = len(holder) + 1 if holder else 0
        layers = f"{block.up[start:]}-{block.down[start:]}"
        named.append(replace(block, name=holder if clear else f"{holder}.{layers}".lstrip(".")))
    return named


def find_blocks(model: nn.Module, inputs: Inputs) -> list[Block]:
    r"""The feed-forward blocks of a model, in the order in which they run on the first batch of ``inputs``.

    A block is two layers of the class ``nn.Linear`` with an activation between, :math:`V f(W x + b) + c`, or three,
    :math:`V (f(G x + a) \odot (W x + b)) + c`. It is found by what the model computes: of which layers' outputs, and
    by which operations, the input of a linear layer was made. Names and classes of modules play no part. What was
    found is computed again on other numbers, to see that it is an activation and where it is 0.

    Parameters
    ----------
    model : nn.Module
        Is run once in evaluation mode, and left as it was.
    inputs : tensor, mapping, tuple or an iterable of these
        What the model is shown, see :mod:`sparsact.inference.batches`; the first batch alone is used.

    Returns
    -------
    blocks : list of Block
        Not empty. A layer may be ``down`` of one block and ``up`` of the next; blocks that would give it one role
        twice, or that are not computed in the same way whenever their layers run, are left out.

    Raises
    ------
    ValueError
        If there is no block, with what came nearest; or if parameters are on the ``meta`` device.

    Notes
    -----
    One forward pass, and per block some 300 evaluations of its activation. What decides by numbers taken out of
    tensors (``item``) is seen only as it went on this batch. Left out are layers with a forward of their own (as of
    LoRA) or with parametrized, pruned or quantised weights: another weight than theirs would be read.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> [block] = find_blocks(model, torch.randn(5, 3))
    >>> block.up, block.activation.name, block.down, block.activation.zero_below.tolist()
    ('0', 'relu', '2', [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    """
    layers = {name: module for name, module in model.named_modules() if _is_plain(module)}
    if any(parameter.is_meta for parameter in model.parameters()):
        raise ValueError(
            "The model must hold numbers; some of its parameters are on the meta device, which holds shapes alone: "
            "load its weights first."
        )
    batch = next(batches(inputs))
    with evaluating(model):
        follow, found, ran = _followed(model, layers, batch)
        blocks, reasons = blocks_of(found, follow.readers, follow.shown)
    if not blocks:
        raise ValueError(_no_block(model, layers, ran, reasons))
    return blocks


def _followed(
    model: nn.Module, layers: Mapping[str, nn.Linear], batch: Batch
) -> tuple[DataflowTracer, list[TracedCall], int]:
    """One forward pass: what was read on its way, a candidate for each call of a linear layer, and layers that ran."""
    follow = DataflowTracer(batch)
    found: list[TracedCall] = []
    names: dict[nn.Module, str] = {layer: name for name, layer in layers.items()}
    ran = set()

    def before(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        with follow.pause():
            found.append(candidate(names[layer], _argument(args, kwargs), follow))

    def after(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> None:
        ran.add(layer)
        with follow.pause():
            follow.begin(names[layer], _argument(args, kwargs), output)

    with ExitStack() as stack:
        for name, module in model.named_modules():
            if module not in names:
                stack.callback(module.register_forward_pre_hook(_shows(follow, name), with_kwargs=True).remove)
                stack.callback(module.register_forward_hook(_shows(follow, name), with_kwargs=True).remove)
        for layer in layers.values():
            stack.callback(layer.register_forward_pre_hook(before, with_kwargs=True).remove)
            stack.callback(layer.register_forward_hook(after, with_kwargs=True).remove)
        stack.enter_context(_module_by_module())
        stack.enter_context(follow)
        try:
            outputs = call(model, batch)
        except Exception as error:
            error.add_note("Raised as the model ran on the first batch of `inputs`, in evaluation mode.")
            raise
    follow.end(outputs)
    return follow, found, len(ran)


def _shows(follow: DataflowTracer, name: str) -> Callable[..., None]:
    """A hook, before a module or after it, that notes what it is given or gives."""
    return lambda _, *values: follow.show(name, values)


@contextmanager
def _module_by_module() -> Iterator[None]:
    """Without compiled code, and without torch's fused path through an encoder, which calls no linear layer."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with ExitStack() as stack:
            stack.enter_context(torch.jit.optimized_execution(False))  # type: ignore[attr-defined]
            if "torch._dynamo" in sys.modules:  # else nothing is compiled, and to load it takes two seconds
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def _argument(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tensor:
    """The one argument of a linear layer, by place or by name."""
    argument: Tensor = args[0] if args else kwargs["input"]
    return argument


def _is_plain(module: nn.Module) -> bool:
    """Whether a module computes what ``nn.Linear`` does, of the weight that it holds."""
    if not isinstance(module, nn.Linear) or type(module).forward is not nn.Linear.forward or "forward" in vars(module):
        return False
    weight = module._parameters.get("weight")
    return type(weight) is nn.Parameter and weight.is_floating_point() and weight.layout == torch.strided


def _no_block(model: nn.Module, layers: Mapping[str, nn.Linear], ran: int, reasons: list[str]) -> str:
    """Why there is no block: the need, the fact and the remedy."""
    need = "The model must have a feed-forward block: nn.Linear, an activation of each unit alone, nn.Linear."
    fact = f" It has {len(layers)} plain nn.Linear, of which {ran} ran on the first batch, and no such pair."
    other = {_path(type(m)) for m in model.modules() if _like_linear(m) and not _is_plain(m)}
    if other:
        fact += f" Linear layers of another class are not looked at: {', '.join(sorted(other))}."
    if reasons:
        fact += " Nearest: " + "; ".join(reasons[:5]) + "."
    return need + fact + " Show it inputs on which such layers run, or write those layers as plain nn.Linear."


def _path(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _like_linear(module: nn.Module) -> bool:
    """Whether a module that is no container looks like a linear layer of another class."""
    named = any("Linear" in base.__name__ for base in type(module).__mro__)
    weight = getattr(module, "weight", None)
    matrix = isinstance(weight, Tensor) and weight.ndim == 2 and not isinstance(module, nn.Embedding)
    return (named or matrix) and not isinstance(module, nn.Bilinear)
