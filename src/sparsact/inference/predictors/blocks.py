"""Predictors for the blocks of a model, each with what it alone does to the model's loss."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from torch import nn

from sparsact.inference.block import Block
from sparsact.inference.comparison import Loss, compare
from sparsact.inference.inputs import Inputs, batches
from sparsact.inference.predictors.approximated import Approximated
from sparsact.inference.predictors.calibrate import calibrate
from sparsact.inference.predictors.collect import collect_inputs
from sparsact.inference.predictors.rule import Predictor
from sparsact.inference.weights import BlockWeights


def calibrate_blocks(
    model: nn.Module,
    blocks: Iterable[Block],
    inputs: Inputs,
    *,
    held_out: Inputs | None = None,
    loss: Loss | None = None,
    limit: int = 4096,
    seed: int = 0,
    **how: Any,
) -> dict[Block, Predictor]:
    """A predictor for each block, calibrated on what the model shows it.

    Parameters
    ----------
    model : nn.Module
        Run in evaluation mode; left as it is.
    blocks : iterable of Block
        Blocks of the model.
    inputs : tensor, mapping, tuple, or iterable of these
        Batches whose rows are sampled.
    held_out : the same, optional
        Other batches, on which the effect on the model is measured: the change of loss and of perplexity.
    loss : callable, optional
        ``loss(output, batch)``, as :func:`sparsact.inference.comparison.compare` takes it; with ``held_out``.
    limit, seed : int
        Of the sample, as :func:`collect_inputs` takes them; the seed also of the split.
    **how
        Method, target and settings, as :func:`calibrate` takes them.

    Returns
    -------
    predictors : dict of Block to Predictor
        With ``effect`` where there is a loss: that of this block alone. That of all at once is
        ``compare(model, Approximated(model, predictors), held_out, loss)``.

    Raises
    ------
    ValueError
        If one of ``held_out`` and ``loss`` comes without the other, or :func:`calibrate` refuses a block.

    Notes
    -----
    The effect costs two passes over ``held_out`` for each block.
    """
    if (held_out is None) != (loss is None):
        raise ValueError("the effect on a model needs both `held_out` batches and a `loss`; one is missing.")
    chosen = list(blocks)
    rows = collect_inputs(model, chosen, inputs, limit, seed=seed)
    predictors = {}
    for block in chosen:
        try:
            predictors[block] = calibrate(BlockWeights.of(model, block), rows.pop(block), seed=seed, **how)
        except ValueError as error:
            raise ValueError(f"block {block.name!r}: {error}") from error
    if held_out is None or loss is None:
        return predictors
    kept = list(batches(held_out))
    return {
        block: replace(predictor, effect=compare(model, Approximated(model, {block: predictor}), kept, loss))
        for block, predictor in predictors.items()
    }
