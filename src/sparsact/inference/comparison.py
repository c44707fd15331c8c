"""Compare a sparse model with the dense one on the same batches: loss, perplexity, outputs and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from math import exp, inf
from statistics import fmean, median
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from sparsact.inference.apply import bar_fast_paths, free_fast_paths, relative_difference
from sparsact.inference.batches import Batch, Inputs, batches, call, evaluating
from sparsact.inference.output_error import QualityEstimate
from sparsact.inference.plan import WholeModel, finite
from sparsact.inference.sparse_linear import SparseLinear
from sparsact.inference.timing import Side, clock_of, timed_rounds

Loss = Callable[[Any, Batch], Tensor]


@dataclass(frozen=True)
class ModelComparison:
    r"""Loss, perplexity and outputs of two models, with standard errors of paired differences over independent cases.

    Attributes
    ----------
    cases : int
        Entries of the first axis of the losses, over all batches: taken as independent.
    losses : int
        Number of losses averaged: tokens of a language model.
    dense_loss, sparse_loss : float
        Means over all of them.
    loss_change : QualityEstimate
        Sparse minus dense.
    dense_perplexity, sparse_perplexity : float
        exp of the mean losses.
    perplexity_ratio : QualityEstimate
        Sparse over dense, exp of the change.
    largest_difference : float
        Largest absolute difference between outputs.
    agreement : QualityEstimate
        Share of positions at which the largest entry of the last axis is at the same place.
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


def compare(model_dense: nn.Module, model_sparse: nn.Module, inputs: Inputs, loss: Loss) -> ModelComparison:
    """Compare the sparse model with the dense one, batch by batch.

    Parameters
    ----------
    model_dense, model_sparse : nn.Module
        Run in evaluation mode, without gradients.
    inputs : tensor, mapping, tuple, or iterable of these
        Batches for both.
    loss : callable
        ``loss(output, batch)``: a loss of every token or row, not averaged (``reduction="none"``), whose first axis
        runs over independent cases: texts, rows. One number per batch, an average, counts as one case.

    Returns
    -------
    comparison : ModelComparison
        Standard errors count cases, not tokens: tokens of one text depend on each other.

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
            if dense.shape != sparse.shape:
                raise ValueError(f"the two models return shapes {tuple(dense.shape)} and {tuple(sparse.shape)}.")
            differences = (dense.double() - sparse.double()).abs()
            largest = max(largest, float(differences.max()) if dense.numel() else 0.0)
            agreements.append(_summed(dense.argmax(-1) == sparse.argmax(-1)))
    return _comparison(torch.cat(losses), largest, torch.cat(agreements))


def _comparison(losses: Tensor, largest: float, agreements: Tensor) -> ModelComparison:
    """From rows of (sum of losses, their number) of both models, and of (agreeing positions, positions)."""
    dense, count, sparse, other = losses.T
    if not bool(losses.isfinite().all() and (count == other).all()):
        raise ValueError("the loss must be finite and have the same shape for both models; mask what has no target.")
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


def main_output(output: object) -> Tensor:
    """The tensor that a model returns, its ``logits`` or ``last_hidden_state``, or the first tensor of a tuple."""
    for name in ("logits", "last_hidden_state"):
        if isinstance(getattr(output, name, None), Tensor):
            return main_output(getattr(output, name))
    if isinstance(output, Tensor):
        return output
    if isinstance(output, tuple | list) and output:
        return main_output(output[0])
    raise TypeError(f"the model returns {type(output).__name__}, which holds no tensor of outputs.")


def _summed(values: Tensor) -> Tensor:
    """Sum and number of the values of each case, an entry of the first axis; (cases, 2) in float64."""
    table = values.detach().double().cpu()
    table = table.reshape(len(table), -1) if table.ndim else table.reshape(1, 1)
    return torch.stack([table.sum(1), torch.full((len(table),), float(table.shape[1]), dtype=torch.float64)], dim=1)


def _exp(value: float) -> float:
    return exp(value) if value < 709 else inf


ROUNDS: Final = 7


@dataclass(frozen=True)
class Speed(WholeModel):
    """Seconds per batch of the sparse and the dense model, and the difference of their outputs.

    Attributes
    ----------
    batches : int
    difference : float
        Largest :math:`|y' - y| / |y|` (norms, of finite numbers) of a tensor that the model returns, over the batches;
        infinite if the two are not finite at the same places.
    """

    batches: int = 1
    difference: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """All figures; an infinite difference is None."""
        return dict(finite(asdict(self) | {"speed_up": self.speed_up}))

    def __str__(self) -> str:
        together = super().__str__().removesuffix(")")
        return f"{together} of {self.batches} batches); outputs differ by {self.difference:.1g} of their size"


@contextmanager
def dense(model: nn.Module) -> Iterator[None]:
    """Compute the model densely within the context; its sparse layers are as they were afterwards.

    Parameters
    ----------
    model : nn.Module
        Model that :func:`sparsify` returned.

    Yields
    ------
    None
    """
    layers: list[Any] = [module for module in model.modules() if isinstance(module, SparseLinear)]
    if any(layer._sparse.alone is not None for layer in layers):
        raise ValueError("the dense model needs its float weights, now dropped: sparsify with keep_weights=True.")
    kinds = [type(layer) for layer in layers]
    for layer in layers:
        layer.__class__ = layer.dense_class
    free_fast_paths(model)
    try:
        yield
    finally:
        for layer, kind in zip(layers, kinds, strict=True):
            layer.__class__ = kind
        bar_fast_paths(model)


def speed(model: nn.Module, shown: Sequence[Batch], rounds: int = ROUNDS) -> Speed:
    """Time a sparsified model and the dense one in turns, and compare their outputs.

    Parameters
    ----------
    model : nn.Module
        As :func:`sparsify` returns it.
    shown : sequence of batches
    rounds : int
        How often each runs all batches, after one round that is not counted.

    Returns
    -------
    speed : Speed
        Times of both, their ratio with its spread, and the difference of outputs.
    """
    with evaluating(model):
        difference = max(_output_difference(model, batch) for batch in shown)
    found = paired_seconds(model, shown, rounds)
    times = [[fmean(side) for side in both] for both in found]
    return Speed.of(times, *map(median, zip(*times, strict=True)), batches=len(shown), difference=difference)


def paired_seconds(
    model: nn.Module, shown: Sequence[Batch], rounds: int, time_limit: float = inf
) -> list[list[list[float]]]:
    """Seconds of every batch in each round, of the dense model and of the sparse one."""
    calls = [partial(call, model, batch) for batch in shown]
    sides = [Side(within, lambda turn: calls) for within in (partial(dense, model), nullcontext)]
    with evaluating(model):
        return timed_rounds(sides, clock_of(model.parameters()), rounds, time_limit)


def _output_difference(model: nn.Module, batch: Batch) -> float:
    sparse = tree_leaves(call(model, batch))
    with dense(model):
        wanted = tree_leaves(call(model, batch))
    pairs = zip(sparse, wanted, strict=True)
    floats = [pair for pair in pairs if isinstance(pair[1], Tensor) and pair[1].is_floating_point()]
    return max((relative_difference(*pair) for pair in floats), default=0.0)
