"""One traced call of a linear layer: whether what it reads was computed by a block, and by which."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from sparsact.inference.activation import NotAnActivation, activation, without_rows
from sparsact.inference.block import Block
from sparsact.inference.dataflow import DataflowTracer, TracedInput
from sparsact.inference.expression import Expression, Given, Leaf, Source, evaluate, leaves, subexpressions
from sparsact.inference.layer_facts import WeightRows


@dataclass(frozen=True, eq=False)
class TracedCall:
    """A call of the linear layer ``down``: the block that it completes, or the reason why it completes none."""

    down: str
    block: Block | None = None  # without a name, and not yet known whether it is private
    like: Tensor = field(default_factory=lambda: torch.empty(0))  # (0, units), in the type of pre-activations
    factors: tuple[Expression, ...] = ()  # that the activation leaves out
    reason: str = ""
    numbers: int = 0  # that it read
    nonzero: int = 0


def traced_call(down: str, read: Tensor, tracer: DataflowTracer) -> TracedCall:
    """The call of the layer ``down``, which is about to read the tensor ``read``."""
    found = tracer.provenance(read)
    if found is None or found.expression is None:
        return TracedCall(down, reason=f"{down} reads {found.reason}" if found and found.reason else "")
    names = " and ".join(dict.fromkeys(leaf.name for leaf in leaves(found.expression)))
    like = next(origin.values for source, origin in found.origins.items() if isinstance(source, Leaf))
    try:
        rest, factors = without_rows(found.expression, like)
        _check_layers(rest, found.origins)
        _check_evaluation(found.expression, found.origins, read)
        switch = leaves(rest)[0]
        like = found.origins[switch].values.new_empty(0, switch.width)
        f, switch, up = activation(rest, factors, like, read.shape[:-1].numel())
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
    return TracedCall(down, block, like, tuple(one for one in factors if not isinstance(one, Given)))


def _check_layers(expression: Expression, origins: dict[Source, TracedInput]) -> None:
    """One layer, or two that read the same numbers."""
    found = leaves(expression)
    if isinstance(expression, Leaf):
        raise NotAnActivation("nothing is between them")
    if not found or Given in map(type, subexpressions(expression)):
        raise NotAnActivation("what is between them depends on other numbers of the input")
    if len(found) > 2 or len({(leaf.name, leaf.start) for leaf in found}) < len(found):
        raise NotAnActivation("a block has one or two layers before its activation")
    if any(leaf.start is not None for leaf in found) and (len(found) < 2 or len({leaf.name for leaf in found}) > 1):
        raise NotAnActivation("half of a layer's output is a gate only with the other half")
    if len(found) == 2 and not _same_numbers(*(origins[leaf].source for leaf in found)):
        raise NotAnActivation("these do not read the same input")


def _same_numbers(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors are the same numbers in the same memory, in the same order."""
    if first.data_ptr() != second.data_ptr() or first.numel() != second.numel():
        return False
    return first.stride() == second.stride() or (first.is_contiguous() and second.is_contiguous())


def _check_evaluation(expression: Expression, origins: dict[Source, TracedInput], read: Tensor) -> None:
    """The expression must give what the model computed."""
    values = {source: origin.values.reshape(-1, source.width) for source, origin in origins.items()}
    again = evaluate(expression, values)[expression]
    again, once = again.to(read.device).double(), read.reshape(-1, read.shape[-1]).double()
    if again.shape != once.shape or any(leaf.width != once.shape[-1] for leaf in leaves(expression)):
        raise NotAnActivation("it has another number of units")
    rounding = 8 * torch.finfo(read.dtype).eps  # operations on vectors and on single numbers may round differently
    size = float(once.nan_to_num(0.0, 0.0, 0.0).abs().sum()) / max(once.numel(), 1)
    if not torch.allclose(again, once, rtol=rounding, atol=rounding * size, equal_nan=True):
        raise NotAnActivation("it reads them in another order, or other values are used between them")
