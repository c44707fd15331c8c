"""Measure how sparse the activations of a trained model are, and what that could save."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import chain
from typing import Any, Final

import torch
from torch import Tensor, nn

from sparsact.inference.batches import Inputs, batches, call, evaluating, uncompiled
from sparsact.inference.block import Block
from sparsact.inference.find_blocks import blocks_or_reason
from sparsact.inference.layer_facts import check_model, other_forms
from sparsact.inference.layer_inputs import layer_inputs
from sparsact.inference.measurement import LEVELS, WINDOWS, BlockMeasurement, Measurement
from sparsact.inference.roofline import bytes_read
from sparsact.inference.sparse_linear import MAX_ROWS, MAX_SHARE
from sparsact.inference.split_experts import showing_all_experts, split_experts

CHUNK: Final = 1 << 22  # activations whose magnitudes are counted in one step


def measure(model: nn.Module, inputs: Inputs, blocks: Sequence[Block] | None = None) -> Measurement:
    """Measure the activation sparsity of a model on some inputs, layer by layer.

    The model runs on every batch in evaluation mode and without gradients. Exact zeros in what each layer reads are
    counted, and for each block which *units* are active, not exactly zero, for a row (a token, a point).

    Parameters
    ----------
    model : nn.Module
        Model that does not change, including the mode of every module.
    inputs : Tensor, mapping, tuple, or an iterable of these
        One batch, or several: positional or keyword arguments of the model. An iterator is consumed once.
    blocks : sequence of Block, optional
        By default all that :func:`~sparsact.inference.find_blocks` finds with the first batch, none if it finds none;
        an expert that no token chooses is measured on one token of each call of the first batch.

    Returns
    -------
    measurement : Measurement

    Raises
    ------
    ValueError
        If the model has no layer, ``inputs`` no batch, a block or every layer no rows, or an activation of a block is
        NaN or infinite.
    TypeError
        If ``inputs`` is none of the above, or ``model`` no ``nn.Module``, or compiled by TorchScript.

    Notes
    -----
    Memory does not grow with the number of inputs. A block that runs several times for an input is counted each time.

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
    check_model(model)
    with uncompiled(), split_experts(model):
        return _measured(model, inputs, blocks)


def _measured(model: nn.Module, inputs: Inputs, blocks: Sequence[Block] | None) -> Measurement:
    """The measurement of a model whose experts are modules of their own."""
    shown = batches(inputs)
    first = next(shown)
    find = blocks is None
    if blocks is None:
        blocks, _ = blocks_or_reason(model, first)
    elif not blocks:
        raise ValueError("`blocks` is empty; leave it out to search the model for blocks.")
    modules, layers = dict(model.named_modules()), layer_inputs(model)
    counters = [ActivationCounter(block.name, block.sizes(model)[1]) for block in blocks]
    n_batches = 0
    with evaluating(model), ExitStack() as hooks:
        for block, counter in zip(blocks, counters, strict=True):
            down = model.get_submodule(block.down)
            hooks.callback(down.register_forward_pre_hook(counter.count_input, with_kwargs=True).remove)
        for name, layer in layers.items():
            hooks.callback(modules[name].register_forward_pre_hook(layer.count_input, with_kwargs=True).remove)
        for batch in chain([first], shown):
            call(model, batch)
            n_batches += 1
        if find and not all(counter.calls for counter in counters):
            for counter in counters:
                counter.paused = counter.calls > 0
            for layer in layers.values():
                layer.paused = layer.numbers > 0
            with showing_all_experts(model):  # experts that no token chose get other experts' tokens
                call(model, first)
    unseen = [counter.name for counter in counters if not counter.calls]
    if unseen:
        raise ValueError(
            f"every block needs at least one row; {', '.join(map(repr, unseen))} got none (batches: {n_batches}): pass "
            "batches that are not empty, or only `blocks` that they reach."
        )
    if not (blocks or any(layer.numbers for layer in layers.values())):
        raise ValueError(
            f"`measure` needs linear layers or convolutions that run; none of the {len(layers)} here read a row: "
            + ("; ".join(other_forms(model)) or "pass batches that are not empty and reach them.")
        )
    model_bytes = bytes_read(model)
    places = {name: block.name for block in blocks for name in block.names}
    places |= {block.down: block.name for block in blocks}  # of two blocks that have it, the one that reads its input
    return Measurement(
        blocks=tuple(counter.measurement(model, block) for block, counter in zip(blocks, counters, strict=True)),
        n_batches=n_batches,
        model_bytes=model_bytes,
        token_bytes=bytes_read(model, batch=2) - model_bytes,
        layers=tuple(
            layer.measurement(name, modules[name], places.get(name), model_bytes) for name, layer in layers.items()
        ),
    )


class ActivationCounter:
    """Counts of the active units of one block, over rows; their size does not depend on the number of inputs.

    Attributes as in :class:`BlockMeasurement`, and the sums behind its shares: ``union_active`` adds up the
    units that are active anywhere in a window, ``within`` counts activations by magnitude (above one of ``LEVELS`` and
    at most the next, as multiples of their row's root mean square), ``squares`` adds up the squares of these multiples.
    """

    def __init__(self, name: str, n_units: int) -> None:
        self.name, self.n_units = name, n_units
        self.rows_by_active = torch.zeros(n_units + 1, dtype=torch.int64)
        self.active_rows = torch.zeros(n_units, dtype=torch.int64)
        self.windows = dict.fromkeys(WINDOWS, 0)
        self.union_active = dict.fromkeys(WINDOWS, 0)
        self.within = torch.zeros(len(LEVELS) + 1, dtype=torch.int64)
        self.squares = torch.zeros(len(LEVELS) + 1, dtype=torch.float64)
        self.paused = False
        self.calls = self.few = self.min_rows = self.max_rows = 0

    def count_input(self, layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A hook that counts the input of a linear layer, (..., time, n_units) or (n_units,).

        A ValueError is raised if a number is NaN or infinite: it is neither active nor zero.
        """
        activation: Tensor = args[0] if args else kwargs["input"]
        if self.paused or not activation.numel():
            return
        finite = torch.isfinite(activation)
        if not finite.all():
            raise ValueError(
                f"the activations of block {self.name!r} must be finite to be counted; {int((~finite).sum()):,} of "
                f"{activation.numel():,} are NaN or infinite: check the weights and inputs."
            )
        sequences = activation.detach()
        time = sequences.shape[-2] if sequences.ndim > 1 else 1
        sequences = sequences.reshape(-1, time, self.n_units)
        active = sequences != 0
        self._count_active(active)
        self._count_call(active.flatten(0, 1))
        for rows in torch.split(sequences.flatten(0, 1), max(1, CHUNK // self.n_units)):
            self._count_magnitudes(rows)

    def _count_active(self, active: Tensor) -> None:
        """Count booleans of shape (sequences, time, n_units)."""
        n_active = active.sum(-1).flatten()
        self.rows_by_active += torch.bincount(n_active, minlength=self.n_units + 1).cpu()
        self.active_rows += active.sum((0, 1)).cpu()
        for width in WINDOWS:
            whole = active.shape[1] // width
            groups = active[:, : whole * width].reshape(len(active), whole, width, self.n_units)
            self.windows[width] += whole * len(active)
            self.union_active[width] += int(groups.any(2).sum())

    def _count_call(self, active: Tensor) -> None:
        """Count booleans of shape (rows, n_units) as one call; few if exact methods apply by default."""
        rows = len(active)
        self.min_rows = min(self.min_rows or rows, rows)
        self.max_rows = max(self.max_rows, rows)
        self.calls += 1
        self.few += rows <= MAX_ROWS and int(active.sum()) <= MAX_SHARE * active.numel()

    def _count_magnitudes(self, rows: Tensor) -> None:
        """Count activations of shape (rows, n_units) by multiple of their row's root mean square."""
        size = rows.abs().to(torch.promote_types(rows.dtype, torch.float32))
        largest = size.amax(-1, keepdim=True)
        size = size / largest.where(largest > 0, 1)  # so that no square overflows; 0 stays 0
        scale = size.square().mean(-1, keepdim=True).sqrt()
        multiple = (size / scale.where(scale > 0, 1)).flatten()
        place = torch.bucketize(multiple, torch.tensor(LEVELS, dtype=size.dtype, device=size.device))
        length = len(LEVELS) + 1
        self.within += torch.bincount(place, minlength=length).cpu()
        self.squares += torch.bincount(place, multiple.square().double(), minlength=length).cpu()

    def measurement(self, model: nn.Module, block: Block) -> BlockMeasurement:
        """The measurement of the block, from at least one row."""
        weight = block.linears(model)["down"].weight
        n_inputs, n_units, n_outputs = block.sizes(model)
        counts, squares = self.within.numpy(), self.squares.numpy()
        return BlockMeasurement(
            name=block.name,
            up=block.up,
            down=block.down,
            gate=block.gate,
            activation=block.activation.name,
            exact=block.exact,
            n_inputs=n_inputs,
            n_units=n_units,
            n_outputs=n_outputs,
            dtype=str(weight.dtype).removeprefix("torch."),
            itemsize=weight.itemsize,
            rows_by_active=self.rows_by_active.numpy(),
            active_rows=self.active_rows.numpy(),
            windows=dict(self.windows),
            unions={w: self.union_active[w] / n / n_units if n else None for w, n in self.windows.items()},
            calls=self.calls,
            rows=(self.min_rows, self.max_rows),
            share_few=self.few / self.calls if block.exact else 0.0,
            share_within=counts.cumsum()[:-1] / counts.sum(),
            energy_within=squares.cumsum()[:-1] / (squares.sum() or 1),
            screened=block.up is None or block.activation.zero_below is not None,
        )
