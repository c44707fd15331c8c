"""Measure how sparse the activations of a trained model are, and what that could save."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from sparsact.inference.batches import Batch, Inputs, batches, call, evaluating
from sparsact.inference.block import Block
from sparsact.inference.measurement import BlockMeasurement, Measurement
from sparsact.inference.roofline import bytes_read
from sparsact.inference.tally import ActivationCounter


def measure(model: nn.Module, inputs: Inputs, blocks: Sequence[Block] | None = None) -> Measurement:
    """Activation sparsity of a model's feed-forward blocks on some inputs, layer by layer.

    The model runs on every batch in evaluation mode and without gradients. What goes into each block's ``down`` layer
    is counted: a unit is *active* for a row (a token, a point) where it is not exactly zero there.

    Parameters
    ----------
    model : nn.Module
        Left as it was, the mode of every module included.
    inputs : Tensor, mapping, tuple, or an iterable of these
        One batch, or several: positional or keyword arguments of the model. An iterator is consumed once.
    blocks : sequence of Block, optional
        Which blocks; all that :func:`~sparsact.inference.find_blocks` finds with the first batch if not given.

    Returns
    -------
    measurement : Measurement

    Raises
    ------
    ValueError
        If the model has no block, ``inputs`` no batch, a block no rows, or an activation is NaN or infinite.
    TypeError
        If ``inputs`` is none of the above.

    Notes
    -----
    Costs a forward pass of every batch and about a dozen passes over each activation. Memory grows with the number of
    units and one batch, not with the number of inputs. A block that runs several times for one input is counted each
    time.

    Examples
    --------
    Units that are on for positive x, for negative x, and always:

    >>> import torch
    >>> model = nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> _ = model[0].weight.data.copy_(torch.tensor([[1.0], [-1.0], [0.0]]))
    >>> _ = model[0].bias.data.copy_(torch.tensor([0.0, 0.0, 1.0]))
    >>> found = measure(model, torch.tensor([[2.0], [-3.0], [5.0]]))
    >>> round(found.density, 3), found.blocks[0].active_rows.tolist()
    (0.667, [2, 1, 3])
    """
    shown = batches(inputs)
    first = next(shown)
    if blocks is None:
        from sparsact.inference.find_blocks import find_blocks

        with _devices_told(model, first):
            blocks = find_blocks(model, first)
    if not blocks:
        raise ValueError("`blocks` holds no block to measure; leave it out to find the blocks of the model.")
    tallies = [ActivationCounter(block.name, block.sizes(model)[1]) for block in blocks]
    n_batches = 0
    with ExitStack() as stack:
        stack.enter_context(evaluating(model))
        for block, tally in zip(blocks, tallies, strict=True):
            stack.enter_context(_counted(model.get_submodule(block.down), tally))
        for batch in chain([first], shown):
            with _devices_told(model, batch):
                call(model, batch)
            n_batches += 1
    unseen = [tally.name for tally in tallies if not tally.n_rows]
    if unseen:
        raise ValueError(
            f"every block must see at least one row; {', '.join(map(repr, unseen))} saw none (batches: {n_batches}): "
            "pass batches that are not empty, or only `blocks` that they reach."
        )
    return Measurement(
        blocks=tuple(BlockMeasurement.of(model, b, t) for b, t in zip(blocks, tallies, strict=True)),
        n_batches=n_batches,
        model_bytes=bytes_read(model),
        token_bytes=bytes_read(model, batch=2) - bytes_read(model),
    )


@contextmanager
def _counted(down: nn.Module, tally: ActivationCounter) -> Iterator[None]:
    """Whatever goes into a layer is counted."""

    def count(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tally.add(args[0] if args else kwargs["input"])

    handle = down.register_forward_pre_hook(count, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def _devices_told(model: nn.Module, batch: Batch) -> Iterator[None]:
    """An error of torch's tells on which devices the model and the batch are, if they differ."""
    try:
        yield
    except RuntimeError as error:
        of_model = {str(parameter.device) for parameter in model.parameters()}
        of_batch = {str(tensor.device) for tensor in _tensors(batch)}
        if of_batch - of_model:
            places = " and ".join(", ".join(sorted(names)) for names in (of_model, of_batch))
            error.add_note(f"The model and the batch are on {places}: move one with .to(device).")
        raise


def _tensors(batch: Any) -> Iterator[Tensor]:
    if isinstance(batch, torch.Tensor):
        yield batch
    elif isinstance(batch, dict | tuple | list):
        for part in batch.values() if isinstance(batch, dict) else batch:
            yield from _tensors(part)
