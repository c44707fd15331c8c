"""Auxiliary losses and load of all routed layers of a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import log2
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor, nn

from sparsact.routing.expert_gates import InputChoice
from sparsact.routing.selection import Selection
from sparsact.routing.statistics import RoutingStatistics
from sparsact.validation.parameters import checked_number

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

WEIGHT: Final = 0.01


@dataclass(frozen=True, eq=False)
class RoutingLosses:
    """Choices of the routed layers of a model, and the losses that balance them; see :func:`routing_losses`.

    Attributes
    ----------
    weight : float
        Weight of the sum of the auxiliary losses in ``total``.
    layers : dict of str to torch.nn.Module
        The routed layers of the model by name, and experts that :func:`replace_experts` has replaced.
    selections : dict of str to list of Selection
        Selections of each layer, one for each call.
    group : torch.distributed.ProcessGroup or None
        Processes whose tokens count together in ``total``.

    Examples
    --------
    Zero logits of four experts are an even load in probability; with one choice each, the balancing loss is 1:

    >>> from sparsact.layers import MixtureOfExperts
    >>> layer = MixtureOfExperts(2, 3, n_experts=4, n_active=1, z_loss=0.0)
    >>> with routing_losses(layer, weight=0.5) as losses:
    ...     _ = layer(torch.zeros(8, 2))
    >>> round(losses.total.item(), 6), len(losses.selections[""])
    (0.5, 1)
    """

    weight: float
    layers: dict[str, Any]
    selections: dict[str, list[Selection]]
    group: ProcessGroup | None = None
    _before: list[Tensor] | None = field(default=None, repr=False)  # counts of earlier parts, of each run
    _pooled: list[Tensor] = field(default_factory=list, repr=False)

    @property
    def total(self) -> Tensor:
        r"""Term for the training loss: ``weight`` times the sum of the auxiliary losses of all layers and runs."""
        runs, counts, loads = self._runs, self._counts(), self._loads()
        losses = [self._loss(*run) for run in zip(*zip(*runs, strict=True), counts, loads, strict=True)]
        return self.weight * torch.stack([loss.to(losses[0]) for loss in losses]).sum()

    @property
    def _runs(self) -> list[tuple[str, Selection]]:
        return [(name, selection) for name, its in self.selections.items() for selection in its]

    def _counts(self) -> list[Tensor]:
        """Choices of each run's experts, of all processes."""
        runs = [selection for _, selection in self._runs]
        if not runs:
            raise RuntimeError("no routed layer has run yet; call the model within `with routing_losses(model)`.")
        if self.group is None:
            return [selection.counts for selection in runs]
        if len(self._pooled) != len(runs):  # once: other processes wait for it
            counts = torch.cat([selection.counts.to(runs[0].counts) for selection in runs])
            torch.distributed.all_reduce(counts, group=self.group)
            self._pooled[:] = torch.split(counts, [selection.n_units for selection in runs])
        return self._pooled

    def _loads(self) -> list[Tensor]:
        """The same with earlier parts."""
        counts = self._counts()
        if self._before is None:
            return counts
        if [*map(len, self._before)] != [*map(len, counts)]:
            fact = "the earlier part ran another model"
            if len(self._before) != len(counts):
                fact = f"layers ran {len(self._before)} times in the earlier part and {len(counts)} times in this one"
            raise RuntimeError(f"{fact}; run the same model in each.")
        return [own + before.to(own) for own, before in zip(counts, self._before, strict=True)]

    def _loss(self, name: str, selection: Selection, counts: Tensor, load: Tensor) -> Tensor:
        layer, logits = self.layers[name], selection.logits
        if selection.auxiliary_loss is None:
            raise RuntimeError(
                f"layer {name!r} keeps its model's router and has no loss of its own; add the loss that the model "
                "returns with output_router_logits=True."
            )
        learns = logits is not None and any(parameter.requires_grad for parameter in layer.routing.parameters())
        if torch.is_grad_enabled() and layer.training and learns and not logits.requires_grad:
            raise RuntimeError(
                f"the auxiliary loss of layer {name!r} carries no gradient, as it was computed under torch.no_grad or "
                "a reentrant checkpoint; pass use_reentrant=False to torch.utils.checkpoint."
            )
        loss: Tensor = selection.auxiliary_loss
        if load is not selection.counts and isinstance(layer.routing.router, InputChoice):
            n_processes = 1 if self.group is None else torch.distributed.get_world_size(self.group)
            own = counts.to(loss.device), load.to(loss.device)
            loss = layer.routing.router.pooled_loss(selection, *own, n_processes)
        return loss

    @property
    def statistics(self) -> dict[str, RoutingStatistics]:
        """Load, drops, entropy and Jain index of each layer that has run."""
        sums = {name: map(RoutingStatistics.of, its) for name, its in self.selections.items() if its}
        return {name: sum(rest, start=next(rest)) for name, rest in sums.items()}

    def __str__(self) -> str:
        lines = []
        for name, its in self.statistics.items():
            bits = f"entropy {its.entropy:.2f} of at most {log2(len(its.counts)):.2f} bits"
            lines.append(f"{name or type(self.layers[name]).__name__}: {its}, {bits}")
        return "\n".join(lines)


@contextmanager
def routing_losses(
    model: nn.Module, *, weight: float = WEIGHT, group: ProcessGroup | None = None, earlier: RoutingLosses | None = None
) -> Iterator[RoutingLosses]:
    r"""Collect the auxiliary losses of all routed layers of a model that runs within a ``with`` statement.

    .. math:: \mathrm{total} = w \sum_{\mathrm{layers}} \ell, \qquad
              \ell = \lambda E \sum_i f_i P_i + \mu\, \mathbb{E}_x \big(\log \textstyle\sum_i e^{(Gx)_i}\big)^2

    for learned gates (:class:`~sparsact.routing.SoftmaxTopK`); other routers have no loss, or one of their own.

    Parameters
    ----------
    model : torch.nn.Module
        Model with at least one routed layer.
    weight : float, default=0.01
        w. With :math:`\lambda = 1` and :math:`\mu = 0.1` of the gates, balancing weighs 0.01 as in Switch transformers,
        and the z-loss 0.001 as in ST-MoE.
    group : torch.distributed.ProcessGroup, default=None
        Processes that balance the load of their tokens together, such as ``torch.distributed.group.WORLD``: f counts
        all tokens, and the mean over processes, which ``DistributedDataParallel`` takes, has the loss and gradient of
        one process with the whole batch. None: each process balances its own tokens.
    earlier : RoutingLosses, default=None
        Losses of the previous part, under gradient accumulation: f counts the tokens of all parts so far.

    Yields
    ------
    losses : RoutingLosses
        Add ``losses.total`` to the training loss; ``print(losses)`` reports the load. A layer that runs several times
        counts each time, but not when ``torch.utils.checkpoint`` runs it again in the backward pass.

    Raises
    ------
    ValueError
        If the model has no routed layer.
    RuntimeError
        If ``total`` is read before a layer has run, or if the earlier part ran another model.

    Notes
    -----
    Under gradient accumulation, multiply the total of each part by its share of the step's tokens without padding. The
    z-loss, ``sequence_balance`` and their gradients then add up to the whole batch's. The first term, a product of two
    means, adds up only if all parts have the same f. A part has its own f, or with ``earlier`` the f of all parts so
    far, as in [1]_ and Megatron-LM, so that the last part has the whole batch's. Selections that
    ``forward_with_selection`` returns are not collected. With a ``group``, all processes must run the layers equally
    often and read ``total``, which sums the counts of all layers at once. Losses of routers without a learned gate, and
    ``statistics``, cover one process only.

    References
    ----------
    .. [1] Z. Qiu et al., "Demons in the Detail: On Implementing Load Balancing Loss for Training Specialized
       Mixture-of-Expert Models", 2025.

    Examples
    --------
    >>> from sparsact.layers import MixtureOfExperts
    >>> model = nn.Sequential(nn.Linear(3, 8), MixtureOfExperts(8, 16, n_experts=4, n_active=2))
    >>> x = torch.randn(20, 3)
    >>> with routing_losses(model) as losses:
    ...     loss = model(x).square().mean()
    >>> (loss + losses.total).backward()
    >>> losses.statistics["1"].counts.sum()
    np.int64(40)

    Two parts of a step, of 15 and of 5 tokens:

    >>> losses = None
    >>> for part in x.split(15):
    ...     with routing_losses(model, earlier=losses) as losses:
    ...         loss = model(part).square().mean()
    ...     ((loss + losses.total) * len(part) / len(x)).backward()
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"`model` must be a torch.nn.Module; got {type(model).__name__}.")
    layers: dict[str, Any] = {name: layer for name, layer in model.named_modules() if hasattr(layer, "selections")}
    if not layers:
        raise ValueError(f"{type(model).__name__} has no routed layer; build it with a layer of sparsact.layers.")
    if not isinstance(earlier, RoutingLosses | None):
        raise TypeError(f"`earlier` must be what routing_losses yields; got {type(earlier).__name__}.")
    before = None if earlier is None else earlier._loads()
    losses = RoutingLosses(checked_number(weight, "`weight`"), layers, {name: [] for name in layers}, group, before)
    outer = {name: layer.selections for name, layer in layers.items()}
    for name, layer in layers.items():
        layer.selections = losses.selections[name]
    try:
        yield losses
    finally:
        for name, layer in layers.items():
            layer.selections = outer[name]
