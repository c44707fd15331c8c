"""A sparse model beside the dense one, on the same batches: loss, perplexity and outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import exp
from typing import Any

import torch
from torch import Tensor, nn

from sparsact.inference.estimate import Estimate
from sparsact.inference.inputs import Batch, Inputs, batches, call, evaluating

Loss = Callable[[Any, Batch], Tensor]


@dataclass(frozen=True)
class Comparison:
    r"""What a change of a model changes; every standard error is of the paired difference, over independent cases.

    Attributes
    ----------
    cases : int
        Entries of the first axis of the losses, over all batches: taken as independent.
    losses : int
        Numbers averaged: tokens of a language model.
    dense_loss, sparse_loss : float
        Means over all of them.
    loss_change : Estimate
        Sparse minus dense.
    dense_perplexity, sparse_perplexity : float
        exp of the mean losses.
    perplexity_ratio : Estimate
        Sparse over dense, exp of the change.
    largest_difference : float
        Of any number of the outputs.
    agreement : Estimate
        Share of places at which the largest entry of the last axis is the same one.
    """

    cases: int
    losses: int
    dense_loss: float
    sparse_loss: float
    loss_change: Estimate
    dense_perplexity: float
    sparse_perplexity: float
    perplexity_ratio: Estimate
    largest_difference: float
    agreement: Estimate

    def to_dict(self) -> dict[str, Any]:
        """All figures, as JSON spells them."""
        return asdict(self)


def compare(model_dense: nn.Module, model_sparse: nn.Module, inputs: Inputs, loss: Loss) -> Comparison:
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
    comparison : Comparison
        Standard errors count cases, not tokens: those of one text depend on each other.

    Raises
    ------
    ValueError
        If the outputs of the two differ in shape, or a loss is not finite.
    """
    rows: list[Tensor] = []
    largest = 0.0
    with evaluating(model_dense), evaluating(model_sparse):
        for batch in batches(inputs):
            outputs = call(model_dense, batch), call(model_sparse, batch)
            largest = max(largest, _largest_difference(*map(main_output, outputs)))
            rows.append(_cases(outputs, batch, loss))
    dense, sparse, count, agreeing, places = torch.cat(rows).T
    change = Estimate.ratio(sparse - dense, count)
    means = [float(total.sum() / count.sum()) for total in (dense, sparse)]
    return Comparison(
        len(count),
        int(count.sum()),
        *means,
        change,
        *(exp(mean) for mean in means),
        Estimate(exp(change.value), exp(change.value) * change.standard_error),
        largest,
        Estimate.ratio(agreeing, places),
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


def _cases(outputs: tuple[Any, Any], batch: Batch, loss: Loss) -> Tensor:
    """Per case: sums of both losses, how many they are, places of the same argmax, places; (cases, 5) in float64."""
    dense, sparse = (loss(output, batch).detach().double().cpu() for output in outputs)
    if dense.shape != sparse.shape or not bool(dense.isfinite().all() and sparse.isfinite().all()):
        raise ValueError("the loss must be finite and of the same shape for both models; mask what has no target.")
    cases = len(dense) if dense.ndim else 1
    same = (main_output(outputs[0]).argmax(-1) == main_output(outputs[1]).argmax(-1)).cpu()
    if same.numel() % cases:
        raise ValueError(f"the loss has {cases} cases, by its first axis, but outputs of {same.numel()} places.")
    same = same.reshape(cases, -1).double()
    dense, sparse = dense.reshape(cases, -1), sparse.reshape(cases, -1)
    sizes = [torch.full((cases,), float(table.shape[1]), dtype=torch.float64) for table in (dense, same)]
    return torch.stack([dense.sum(1), sparse.sum(1), sizes[0], same.sum(1), sizes[1]], dim=1)
