"""Calibrate predictors for one block, or all blocks of a model, and measure their quality."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import isinf
from typing import Any, Final

import torch
from torch import Tensor, nn

from sparsact.inference.batches import Inputs, batches
from sparsact.inference.block import Block
from sparsact.inference.block_weights import BlockWeights
from sparsact.inference.comparison import Loss, compare
from sparsact.inference.predictors.collect import checked_sample, collect_inputs, split
from sparsact.inference.predictors.conformal import level_for_density, level_for_recall
from sparsact.inference.predictors.low_rank import LowRank
from sparsact.inference.predictors.lsh import LSH
from sparsact.inference.predictors.magnitude import Threshold, TopKActivations
from sparsact.inference.predictors.masked_model import Approximated
from sparsact.inference.predictors.predictor import ActivityPredictor, Graded, Predictor
from sparsact.inference.predictors.sketch import Sketch
from sparsact.inference.quality import Quality
from sparsact.validation.parameters import checked_option, checked_share

FROM_INPUTS: Final[dict[str, Callable[..., Graded]]] = {kind.name: kind.fit for kind in (Sketch, LowRank, LSH)}
FROM_ACTIVATIONS: Final = {kind.name: kind for kind in (Threshold, TopKActivations)}


def calibrate(
    weights: BlockWeights,
    x: Tensor,
    *,
    method: str = "sketch",
    recall: float | None = None,
    density: float | None = None,
    error: float | None = None,
    random_state: int = 0,
    **settings: Any,
) -> Predictor:
    r"""An approximate selection of a block's units, calibrated to a target on sample inputs and measured on others.

    Parameters
    ----------
    weights : BlockWeights
        The block, as :meth:`BlockWeights.of` takes it from a model.
    x : Tensor of shape (m, d)
        Inputs of the block, as :func:`collect_inputs` gathers them; at least 40 rows, and for a recall at least
        4 (1 / (1 - recall) - 1) with a unit on.
    method : str
        ``"sketch"``, ``"low_rank"`` and ``"lsh"`` predict the units that are on from the block's inputs;
        ``"threshold"`` and ``"top_k"`` leave out small activations, of GELU and SiLU as well.
    recall : float in (0, 1], optional
        Mean share of an input's active units to predict, in expectation over new inputs that are exchangeable with
        the sample's; for the first three methods. At 1 none is missed on the rows calibrated on, which promises
        nothing for new ones.
    density : float in (0, 1], optional
        Largest share of units computed on the sample.
    error : float in (0, 1], optional
        :math:`\sqrt{\sum \|V h' - V h\|^2 / \sum \|V h\|^2}` on the sample, at most; for the last two methods.
    random_state : int, default=0
        Seed of the split of the rows, and of the hashes.
    **settings
        ``screen`` of the sketch; ``rank`` of the low-rank map; ``n_hashes`` and ``n_tables`` (at most) of the LSH.

    Returns
    -------
    predictor : Predictor
        With its :class:`Quality` on a quarter of the rows, which neither fit nor calibration saw.

    Raises
    ------
    ValueError
        If the target does not suit the method, the rows are too few or not finite, no unit is ever on, the activation
        has no exact zeros though the method predicts them, or no setting reaches the recall.

    Notes
    -----
    Tokens of one text are not exchangeable with those of another: sample inputs should come from as many texts as new
    ones will, and standard errors that count rows as independent are then too small.

    Examples
    --------
    >>> import torch
    >>> from sparsact.inference.block import Activation
    >>> draw = torch.Generator().manual_seed(7)
    >>> W, V = torch.randn(24, 8, generator=draw), torch.randn(5, 24, generator=draw)
    >>> relu = Activation("relu", torch.relu, torch.zeros(24))
    >>> block = BlockWeights(W, torch.zeros(24), None, None, V, relu)
    >>> predictor = calibrate(block, torch.randn(400, 8, generator=draw), method="low_rank", rank=8, recall=1.0)
    >>> predictor.quality.recall.value, predictor.quality.rows
    (1.0, 100)
    """
    target = _checked_target(method, recall=recall, density=density, error=error)
    rows = checked_sample(x, weights)
    if method in FROM_INPUTS:
        _ = weights.threshold  # raises if there is none
    fitted, calibrated, held_out, shares = split(rows, target, fits=method in FROM_INPUTS, random_state=random_state)
    with torch.no_grad():
        if method in FROM_INPUTS:
            rule: ActivityPredictor = _fitted_rule(method, weights, fitted, calibrated, target, random_state, settings)
        else:
            rule = _magnitude_rule(method, weights, calibrated, target, settings)
        return Predictor(rule, Quality.of(rule, weights, held_out), shares, target)


def _fitted_rule(
    method: str,
    weights: BlockWeights,
    fitted: Tensor,
    calibrated: Tensor,
    target: dict[str, float],
    random_state: int,
    settings: dict[str, Any],
) -> Graded:
    if method == "lsh":  # the number of hyperplanes is chosen for the recall
        settings = {"recall": target.get("recall", 0.9), **settings}
    rule = FROM_INPUTS[method](weights, fitted, random_state=random_state, **settings)
    unit_levels = rule.unit_levels(calibrated)
    if "density" in target:
        return rule.with_level(level_for_density(unit_levels, target["density"]))
    on = weights.on(weights.pre_activations(calibrated))
    level = level_for_recall(unit_levels, on, target["recall"])
    if isinf(level):
        reached = float((unit_levels.isfinite() & on).sum() / on.sum())
        raise ValueError(
            f"recall {target['recall']:g} is out of reach of {rule.to_dict()}: all of it finds {reached:.3g} of the "
            "active units; allow more tables (n_tables), fewer hyperplanes (n_hashes), or less recall."
        )
    exact = target["recall"] == 1 and method != "lsh"
    return rule.with_level(max(level, 0.0) if exact else level)  # at 0 a score without error decides without error


def _magnitude_rule(
    method: str, weights: BlockWeights, rows: Tensor, target: dict[str, float], settings: dict[str, Any]
) -> ActivityPredictor:
    if settings:
        raise TypeError(f"{method} takes no settings; got {', '.join(settings)}.")
    kind = FROM_ACTIVATIONS[method]
    if "density" in target:
        return kind.for_density(weights, rows, target["density"])
    return kind.for_error(weights, rows, target["error"])


def _checked_target(method: str, **targets: float | None) -> dict[str, float]:
    """The one target that was given, checked against the method."""
    checked_option(method, "`method`", FROM_INPUTS | FROM_ACTIVATIONS)
    given = {name: float(value) for name, value in targets.items() if value is not None}
    suits = ("recall", "density") if method in FROM_INPUTS else ("density", "error")
    if len(given) != 1 or not given.keys() <= set(suits):
        got = ", ".join(f"{name}={value:g}" for name, value in given.items()) or "none"
        raise ValueError(f"{method} takes one target, {' or '.join(suits)}; got {got}.")
    ((name, value),) = given.items()
    checked_share(value, f"`{name}`")
    return given


def calibrate_blocks(
    model: nn.Module,
    blocks: Iterable[Block],
    inputs: Inputs,
    *,
    held_out: Inputs | None = None,
    loss: Loss | None = None,
    limit: int = 4096,
    random_state: int = 0,
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
    limit, random_state : int
        As for :func:`collect_inputs`; ``random_state`` also seeds the split.
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
    rows = collect_inputs(model, chosen, inputs, limit, random_state=random_state)
    predictors = {}
    for block in chosen:
        try:
            predictors[block] = calibrate(
                BlockWeights.of(model, block), rows.pop(block), random_state=random_state, **how
            )
        except ValueError as error:
            raise ValueError(f"block {block.name!r}: {error}") from error
    if held_out is None or loss is None:
        return predictors
    kept = list(batches(held_out))
    return {
        block: replace(predictor, effect=compare(model, Approximated(model, {block: predictor}), kept, loss))
        for block, predictor in predictors.items()
    }
