"""Training for sparse activations: they are penalised, or only the k largest are kept; and counts of active units.

>>> from sparsact.inference import find_blocks
>>> model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
>>> X = torch.randn(10, 4, generator=torch.manual_seed(0))
>>> with ActivationPenalty(model, find_blocks(model, X), 0.1) as penalty:
...     loss = model(X).square().mean() + penalty.loss()
>>> loss.requires_grad
True
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

import torch
from torch import Tensor, nn

from sparsact.inference.block import Block
from sparsact.validation.parameters import checked_positive, checked_size

RARE: Final = 1e-3  # share of inputs below which a unit is rarely active


@dataclass(frozen=True, eq=False)
class UnitCounts:
    """How often each unit of a block was on.

    Attributes
    ----------
    counts : Tensor of shape (units,), int64
        Inputs for which the unit's activation was not zero.
    n_inputs : int
        Number of inputs.
    """

    counts: Tensor
    n_inputs: int

    @property
    def density(self) -> float:
        """Mean share of units that are on."""
        return int(self.counts.sum()) / (self.n_inputs * len(self.counts))

    @property
    def dead(self) -> int:
        """Number of units that were on for no input."""
        return int((self.counts == 0).sum())

    @property
    def rare(self) -> int:
        """Number of units that were on for some inputs, but for less than one in a thousand."""
        return int(((self.counts > 0) & (self.counts < RARE * self.n_inputs)).sum())


@contextmanager
def unit_counts(model: nn.Module, blocks: Sequence[Block]) -> Iterator[Callable[[], list[UnitCounts]]]:
    """Count active units while the model is called; the value returns the counts so far, one per block.

    Parameters
    ----------
    model : nn.Module
        Called within the ``with`` block.
    blocks : sequence of Block
        Blocks whose units are counted.

    Yields
    ------
    counts : callable
        Without arguments; a :class:`UnitCounts` for each block.
    """
    counts: list[Tensor | int] = [0] * len(blocks)
    seen = [0] * len(blocks)

    def add(place: int, hidden: Tensor) -> None:
        on = hidden.detach().reshape(-1, hidden.shape[-1]) != 0
        counts[place] = counts[place] + on.sum(dim=0)
        seen[place] += len(on)

    def found() -> list[UnitCounts]:
        for block, n in zip(blocks, seen, strict=True):
            if not n:
                raise ValueError(f"block {block.name!r} has seen no input; call the model first.")
        return [UnitCounts(torch.as_tensor(one), n) for one, n in zip(counts, seen, strict=True)]

    with activation_hooks(model, blocks, add):
        yield found


@contextmanager
def activation_hooks(
    model: nn.Module, blocks: Sequence[Block], hook: Callable[[int, Tensor], Tensor | None]
) -> Iterator[None]:
    """Call ``hook(i, activations)`` with the activations (..., units) of block i, the input of ``down``.

    A tensor that it returns replaces them.
    """

    def forward_pre_hook(i: int, _: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        changed = hook(i, args[0])
        return None if changed is None else (changed, *args[1:])

    with ExitStack() as handles:
        for i, block in enumerate(blocks):
            down = block.linears(model)["down"]
            handles.callback(down.register_forward_pre_hook(partial(forward_pre_hook, i)).remove)
        yield


class SparsityRegularizer(ABC):
    """A context that observes or changes the activations of blocks, the inputs of ``down``, and adds to the loss."""

    def __init__(self, model: nn.Module, blocks: Sequence[Block]) -> None:
        if not blocks:
            raise ValueError(f"{type(self).__name__} needs the blocks whose activations it is about; got none.")
        self.model, self.blocks = model, tuple(blocks)
        self._hooks = ExitStack()

    def __enter__(self) -> Self:
        self._hooks.enter_context(activation_hooks(self.model, self.blocks, self._on_activations))
        return self

    def __exit__(self, *_: Any) -> None:
        self._hooks.close()

    @abstractmethod
    def _on_activations(self, i: int, hidden: Tensor) -> Tensor | None:
        """Observe the activations (..., units) of block i; a tensor that is returned replaces them."""

    @abstractmethod
    def loss(self) -> Tensor:
        """What training adds to the loss for the calls since the last time."""


class ActivationPenalty(SparsityRegularizer):
    r"""L1 on activations: :math:`\lambda \sum_\ell \mathbb{E} |h^\ell_j|`, a mean over inputs and units of each block.

    Parameters
    ----------
    model : nn.Module
    blocks : sequence of Block
    strength : float
        :math:`\lambda`, above 0.

    Notes
    -----
    Calls without gradients, such as in an evaluation, are not collected.
    """

    def __init__(self, model: nn.Module, blocks: Sequence[Block], strength: float) -> None:
        super().__init__(model, blocks)
        self.strength = checked_positive(strength, "`strength`")
        self._means: dict[int, list[Tensor]] = {}

    def __exit__(self, *_: Any) -> None:
        super().__exit__()
        self._means = {}

    def _on_activations(self, i: int, hidden: Tensor) -> None:
        if torch.is_grad_enabled():
            self._means.setdefault(i, []).append(hidden.abs().mean())

    def loss(self) -> Tensor:
        """The strength times the sum over blocks, of the mean over the calls of each.

        Raises
        ------
        ValueError
            If a block was not called with gradients since the last time.
        """
        for place, block in enumerate(self.blocks):
            if place not in self._means:
                raise ValueError(f"block {block.name!r} was not called; call the model within the context, then this.")
        total = torch.stack([torch.stack(means).mean() for means in self._means.values()]).sum()
        self._means = {}
        return self.strength * total

    def __repr__(self) -> str:
        return f"ActivationPenalty(strength={self.strength!r})"


class TopKTraining(SparsityRegularizer):
    """Keep the activations of each input that are largest in absolute value; the others are 0, without gradient.

    Applies to every call within the context, evaluations included.

    Parameters
    ----------
    model : nn.Module
    blocks : sequence of Block
    n_active : int
        Units per input that each block keeps, fewer than it has.
    """

    def __init__(self, model: nn.Module, blocks: Sequence[Block], n_active: int) -> None:
        super().__init__(model, blocks)
        self.n_active = checked_size(n_active, "`n_active`")
        for block in self.blocks:
            units = block.sizes(model)[1]
            if self.n_active >= units:
                raise ValueError(f"block {block.name!r} has {units} units: `n_active` = {n_active} leaves none out.")

    def _on_activations(self, i: int, hidden: Tensor) -> Tensor:
        kept = hidden.detach().abs().topk(self.n_active, dim=-1).indices
        return hidden * torch.zeros_like(hidden).scatter(-1, kept, 1.0)

    def loss(self) -> Tensor:
        """0: the model itself is changed."""
        return torch.zeros((), device=next(self.model.parameters()).device)

    def __repr__(self) -> str:
        return f"TopKTraining(n_active={self.n_active!r})"
