"""ReLU in place of a smoother activation, so that units can be exactly off."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import nn

from sparsact.inference.block import Block

GRID = (-9.0, -3.0, -1.5, -1.0, -0.5, -0.1, 0.0, 0.1, 0.5, 1.0, 1.5, 3.0, 9.0)  # activations are told apart here


def with_relu(model: nn.Module, blocks: Sequence[Block]) -> nn.Module:
    """A copy of a model whose blocks have ReLU; a short fine-tuning by :func:`train` then wins back what this loses.

    Parameters
    ----------
    model : nn.Module
        Left as it is.
    blocks : sequence of Block
        Their activations must be modules of their own (``nn.GELU()``), not functions that a forward calls.

    Returns
    -------
    model : nn.Module
        The copy. Its layers have the same names; find its blocks anew for their new activation.

    Raises
    ------
    ValueError
        If the activation of a block is not one module; names the block.

    Notes
    -----
    The module is found by its values: it has no parameters, and does on a grid of numbers what the block's activation
    does.
    """
    changed = deepcopy(model)
    for block in blocks:
        holder, _, child = _activation_of(model, block).rpartition(".")
        setattr(changed.get_submodule(holder), child, nn.ReLU())
    return changed


def _activation_of(model: nn.Module, block: Block) -> str:
    """Name in the model of the module that is the block's activation."""
    prefix = f"{block.holder}." if block.holder else ""
    names: list[str] = [prefix + name for name, _ in model.get_submodule(block.holder).named_modules() if name]
    same = [name for name in names if _has_the_values(model.get_submodule(name), block)]
    if len(same) > 1:  # several in a row, as in nn.Sequential: the one between the layers
        same = [name for name in same if names.index(block.switch) < names.index(name) < names.index(block.down)]
    if len(same) != 1:
        raise ValueError(
            f"the activation ({block.activation.name}) of block {block.name!r} must be one module to be replaced; "
            f"found {len(same)}: if its forward calls a function, write relu there."
        )
    return same[0]


@torch.no_grad()
def _has_the_values(module: nn.Module, block: Block) -> bool:
    if any(True for _ in module.children()) or any(True for _ in (*module.parameters(), *module.buffers())):
        return False
    thresholds = block.activation.zero_below
    z = torch.tensor(GRID)[:, None] if thresholds is None else torch.tensor(GRID)[:, None] + thresholds.float().cpu()
    wanted = block.activation.function(z if thresholds is None else z.to(thresholds))
    training = module.training
    module.eval()  # dropout is the identity then
    try:
        values = module(z.to(wanted))
    except (TypeError, ValueError, RuntimeError, NotImplementedError):  # it takes something else than one tensor
        return False
    finally:
        module.train(training)
    return isinstance(values, torch.Tensor) and values.shape == wanted.shape and torch.equal(values, wanted)
