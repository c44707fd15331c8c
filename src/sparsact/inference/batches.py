"""Inputs of a model: one batch or several, each a tensor, positional arguments or keyword arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from sparsact.inference.split_experts import showing_all_experts

Batch = Tensor | Mapping[str, Any] | tuple[Any, ...]
Inputs = Batch | Iterable[Batch]


def batches(inputs: Inputs) -> Iterator[Batch]:
    """The batches of ``inputs``: a tensor, a mapping or a tuple is one, anything else holds several, at least one."""
    if isinstance(inputs, Tensor | Mapping | tuple):
        yield inputs
        return
    if not isinstance(inputs, Iterable):
        raise TypeError(
            "`inputs` must be a tensor, a mapping of keyword arguments, a tuple of arguments, or an iterable of these; "
            f"got {type(inputs).__name__}."
        )
    seen = False
    for batch in inputs:
        seen = True
        if not isinstance(batch, Tensor | Mapping | tuple):
            remedy = "pass torch.as_tensor of an array, tuple(batch) of a list of arguments"
            remedy = 'tokenise it: tokenizer(text, return_tensors="pt")' if isinstance(batch, str) else remedy
            raise TypeError(
                "a batch must be a tensor, a mapping of keyword arguments or a tuple of arguments; "
                f"got {type(batch).__name__}: {remedy}."
            )
        yield batch
    if not seen:
        raise ValueError("`inputs` holds no batch; pass at least one.")


def tensors_in(tree: object) -> list[Tensor]:
    """The tensors in nested containers, such as a batch or what a model returns, in the order of its leaves."""
    leaves = tree_leaves(dict(tree) if isinstance(tree, Mapping) else tree)
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def numbers_and_nonzero(x: Tensor) -> tuple[int, int]:
    """How many numbers a tensor holds, and how many are not exactly 0; none of a nested or sparse one."""
    return (0, 0) if x.is_nested or x.layout is not torch.strided else (x.numel(), int(x.count_nonzero()))


def call(model: nn.Module, batch: Batch) -> Any:
    """The model's output for a batch; notes of an error say what may be wrong with the batch."""
    try:
        if isinstance(batch, Mapping):
            return model(**batch)
        return model(*batch) if isinstance(batch, tuple) else model(batch)
    except (RuntimeError, TypeError, IndexError) as error:
        for note in _mistakes(model, batch, error):
            error.add_note(note)
        raise


def _mistakes(model: nn.Module, batch: Batch, error: Exception) -> Iterator[str]:
    """What may be wrong with a batch that the model cannot take, each with its remedy."""
    tensors, weights = tensors_in(batch), list(model.parameters())
    if isinstance(batch, tuple) and isinstance(error, TypeError):
        yield f"A tuple ({len(batch)} items here) is the arguments of one call; pass batches as a list."
    places = [sorted({str(one.device) for one in some}) for some in (weights, tensors)]
    if set(places[1]) - set(places[0]):
        yield f"The model and the batch are on {' and '.join(map(', '.join, places))}: move one with .to(device)."
    floats = [one for one in tensors if one.is_floating_point()]
    dtypes = {one.dtype for one in weights if one.is_floating_point()}
    for wrong in {one.dtype for one in floats} - dtypes if len(dtypes) == 1 else ():
        remedy = "x.float()" if torch.float32 in dtypes else f"x.to({dtypes.pop()})"
        yield f"The batch holds {wrong} numbers, and the model's weights have another type: pass {remedy}."
    first = next((one for one in model.modules() if one._parameters), None)
    widths = {one.shape[-1:] for one in floats}
    if isinstance(first, nn.Linear) and widths and (first.in_features,) not in widths:
        yield f"The first layer reads rows of {first.in_features:,} numbers; pass inputs of this width."
    vocabulary = max((one.num_embeddings for one in model.modules() if isinstance(one, nn.Embedding)), default=0)
    ids = [one for one in tensors if one.numel() and one.dtype in (torch.int32, torch.int64)]
    beyond = vocabulary and any(int(one.max()) >= vocabulary or int(one.min()) < 0 for one in ids)
    if beyond and isinstance(error, IndexError):
        yield f"Token ids must lie in 0 to {vocabulary - 1:,}: pass ids by this model's own tokenizer."


@contextmanager
def uncompiled() -> Iterator[None]:
    """Run the Python code of models that ``torch.compile`` compiled: compiled code calls no hooks that come later."""
    if "torch._dynamo" not in sys.modules:  # nothing is compiled, and it loads slowly
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode, without gradients; each module returns to its mode afterwards."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes.items():
            module.training = training


@contextmanager
def observed(model: nn.Module, names: Iterable[str], seen: Callable[[str, Any, Any], object]) -> Iterator[None]:
    """Call ``seen(name, args, output)`` after each call of these modules; named arguments come after the others."""
    with ExitStack() as stack:
        stack.enter_context(showing_all_experts(model))
        for name in dict.fromkeys(names):

            def hook(
                module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: object, name: str = name
            ) -> None:
                seen(name, (*args, *kwargs.values()), output)

            stack.callback(model.get_submodule(name).register_forward_hook(hook, with_kwargs=True).remove)
        yield


def observe(
    model: nn.Module, names: Iterable[str], shown: Iterable[Batch], seen: Callable[[str, Any, Any], object]
) -> Any:
    """Run the model on batches in evaluation mode, and return the last output; ``seen`` as for :func:`observed`."""
    output = None
    with observed(model, names, seen), evaluating(model):
        for batch in shown:
            output = call(model, batch)
    return output
