"""A sparse model compared with the dense one on the same batches: loss, perplexity, outputs and time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import exp, inf
from typing import Any

import torch
from torch import Tensor, nn

from sparsact.inference.batches import Batch, Inputs, batches, call, evaluating
from sparsact.inference.quality import QualityEstimate

Loss = Callable[[Any, Batch], Tensor]


@dataclass(frozen=True)
class ModelComparison:
    r"""What a change of a model changes; every standard error is of the paired difference, over independent cases.

    Attributes
    ----------
    cases : int
        Entries of the first axis of the losses, over all batches: taken as independent.
    losses : int
        Numbers averaged: tokens of a language model.
    dense_loss, sparse_loss : float
        Means over all of them.
    loss_change : QualityEstimate
        Sparse minus dense.
    dense_perplexity, sparse_perplexity : float
        exp of the mean losses.
    perplexity_ratio : QualityEstimate
        Sparse over dense, exp of the change.
    largest_difference : float
        Of any number of the outputs.
    agreement : QualityEstimate
        Share of places at which the largest entry of the last axis is the same one.
    """

    cases: int
    losses: int
    dense_loss: float
    sparse_loss: float
    loss_change: QualityEstimate
    dense_perplexity: float
    sparse_perplexity: float
    perplexity_ratio: QualityEstimate
    largest_difference: float
    agreement: QualityEstimate

    def to_dict(self) -> dict[str, Any]:
        """All figures, as JSON spells them."""
        return asdict(self)


def compare(model_dense: nn.Module, model_sparse: nn.Module, inputs: Inputs, loss: Loss) -> ModelComparison:
    """The sparse model beside the dense one, batch by batch.

    Parameters
    ----------
    model_dense, model_sparse : nn.Module
        Run in evaluation mode, without gradients.
    inputs : tensor, mapping, tuple, or iterable of these
        Batches for both.
    loss : callable
        ``loss(output, batch)``: a loss of every token or row, not averaged (``reduction="none"``), whose first axis
        runs over independent cases: texts, rows. A single number a batch, an average, counts as one case.

    Returns
    -------
    comparison : ModelComparison
        Standard errors count cases, not tokens: those of one text depend on each other.

    Raises
    ------
    ValueError
        If the outputs of the two differ in shape, or a loss is not finite.
    """
    losses: list[Tensor] = []
    agreements: list[Tensor] = []
    largest = 0.0
    with evaluating(model_dense), evaluating(model_sparse):
        for batch in batches(inputs):
            outputs = call(model_dense, batch), call(model_sparse, batch)
            losses.append(torch.cat([_summed(loss(outputs[0], batch)), _summed(loss(outputs[1], batch))], dim=1))
            dense, sparse = map(main_output, outputs)
            largest = max(largest, _largest_difference(dense, sparse))
            agreements.append(_summed(dense.argmax(-1) == sparse.argmax(-1)))
    return _comparison(torch.cat(losses), largest, torch.cat(agreements))


def _comparison(losses: Tensor, largest: float, agreements: Tensor) -> ModelComparison:
    """From rows of (sum of losses, their number) of both models, and of (agreeing places, places)."""
    dense, count, sparse, other = losses.T
    if not bool(losses.isfinite().all() and (count == other).all()):
        raise ValueError("the loss must be finite and of the same shape for both models; mask what has no target.")
    change = QualityEstimate.ratio(sparse - dense, count)
    before, after = (float(total.sum() / count.sum()) for total in (dense, sparse))
    ratio = _exp(change.value)
    return ModelComparison(
        cases=len(count),
        losses=int(count.sum()),
        dense_loss=before,
        sparse_loss=after,
        loss_change=change,
        dense_perplexity=_exp(before),
        sparse_perplexity=_exp(after),
        perplexity_ratio=QualityEstimate(ratio, ratio * change.standard_error),
        largest_difference=largest,
        agreement=QualityEstimate.ratio(*agreements.T),
    )


def main_output(output: Any) -> Tensor:
    """The tensor that a model returns, its ``logits`` or ``last_hidden_state``, or the first tensor of a tuple."""
    for name in ("logits", "last_hidden_state"):
        if isinstance(getattr(output, name, None), Tensor):
            return main_output(getattr(output, name))
    if isinstance(output, Tensor):
        return output.detach()
    if isinstance(output, tuple | list) and output:
        return main_output(output[0])
    raise TypeError(f"the model returns {type(output).__name__}, in which no tensor of outputs was found.")


def _largest_difference(dense: Tensor, sparse: Tensor) -> float:
    if dense.shape != sparse.shape:
        raise ValueError(f"the two models return shapes {tuple(dense.shape)} and {tuple(sparse.shape)}.")
    return float((dense.double() - sparse.double()).abs().max()) if dense.numel() else 0.0


def _summed(values: Tensor) -> Tensor:
    """Per case, an entry of the first axis: the sum of its values, and how many they are; (cases, 2) in float64."""
    table = values.detach().double().cpu()
    table = table.reshape(len(table), -1) if table.ndim else table.reshape(1, 1)
    return torch.stack([table.sum(1), torch.full((len(table),), float(table.shape[1]), dtype=torch.float64)], dim=1)


def _exp(value: float) -> float:
    return exp(value) if value < 709 else inf
