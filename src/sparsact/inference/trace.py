"""Feed-forward blocks of any model, found by following one forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from sparsact.inference.block import Block
from sparsact.inference.candidates import TracedCall, blocks_of, candidate
from sparsact.inference.follow import Follow
from sparsact.inference.inputs import Batch, Inputs, batches, call, evaluating


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
        What the model is shown, see :mod:`sparsact.inference.inputs`; the first batch alone is used.

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


def _followed(model: nn.Module, layers: Mapping[str, nn.Linear], batch: Batch) -> tuple[Follow, list[TracedCall], int]:
    """One forward pass: what was read on its way, a candidate for each call of a linear layer, and layers that ran."""
    follow = Follow(batch)
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


def _shows(follow: Follow, name: str) -> Callable[..., None]:
    """A hook, before a module or after it, that notes what it is given or gives."""
    return lambda _, *values: follow.show(name, values)


@contextmanager
def _module_by_module() -> Iterator[None]:
    """Without compiled code, and without torch's fused path through an encoder, which calls no linear layer."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.compiler.set_stance("force_eager"), torch.jit.optimized_execution(False):  # type: ignore[attr-defined]
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
    need = "The model must have a feed-forward block: nn.Linear, an activation of each unit by itself, nn.Linear."
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
