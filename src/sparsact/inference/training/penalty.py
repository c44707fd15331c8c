"""Training that makes activations sparse: an L1 penalty on them, or only the k largest kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Self

import torch
from torch import Tensor, nn

from sparsact.checks import checked_positive, checked_size
from sparsact.inference.block import Block
from sparsact.inference.training.activity import watching


class Inducement(ABC):
    """What is done to the activations of blocks while it is entered, and what it adds to the loss.

    Any model will do: the inputs of the ``down`` layers of its blocks are watched. Call the model within its context.
    """

    def __init__(self, model: nn.Module, blocks: Sequence[Block]) -> None:
        if not blocks:
            raise ValueError(f"{type(self).__name__} needs the blocks whose activations it is about; got none.")
        self.model, self.blocks = model, tuple(blocks)
        self._watching = ExitStack()

    def __enter__(self) -> Self:
        self._watching.enter_context(watching(self.model, self.blocks, self._look))
        return self

    def __exit__(self, *_: Any) -> None:
        self._watching.close()

    @abstractmethod
    def _look(self, place: int, hidden: Tensor) -> Tensor | None:
        """See the activations (..., units) of a block, and change them or not."""

    @abstractmethod
    def loss(self) -> Tensor:
        """What training adds for the calls since it was asked last."""


class ActivationPenalty(Inducement):
    r"""L1 on activations: :math:`\lambda \sum_\ell \mathbb{E} |h^\ell_j|`, a mean over inputs and units of each block.

    Parameters
    ----------
    model : nn.Module
    blocks : sequence of Block
    strength : float
        :math:`\lambda`, above 0.

    Notes
    -----
    Calls without gradients, such as those of an evaluation, are not collected.

    Examples
    --------
    .. code-block:: python

        with ActivationPenalty(model, find_blocks(model, inputs), 0.1) as penalty:
            loss = model(**batch).loss + penalty.loss()
    """

    def __init__(self, model: nn.Module, blocks: Sequence[Block], strength: float) -> None:
        super().__init__(model, blocks)
        self.strength = checked_positive(strength, "`strength`")
        self._means: dict[int, list[Tensor]] = {}

    def __exit__(self, *_: Any) -> None:
        super().__exit__()
        self._means = {}

    def _look(self, place: int, hidden: Tensor) -> None:
        if torch.is_grad_enabled():
            self._means.setdefault(place, []).append(hidden.abs().mean())

    def loss(self) -> Tensor:
        """The strength times the sum over blocks; a block that was called several times counts by its mean.

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


class TopKTraining(Inducement):
    """Only the k activations of each input that are largest in absolute value; the others are 0, and get no gradient.

    It holds for every call within the context, evaluations too: what is measured is the model that is trained.

    Parameters
    ----------
    model : nn.Module
    blocks : sequence of Block
    k : int
        Units that an input keeps in each block, fewer than there are.
    """

    def __init__(self, model: nn.Module, blocks: Sequence[Block], k: int) -> None:
        super().__init__(model, blocks)
        self.k = checked_size(k, "`k`")
        for block in self.blocks:
            units = block.sizes(model)[1]
            if self.k >= units:
                raise ValueError(f"block {block.name!r} has {units} units, of which `k` = {k} leaves none out.")

    def _look(self, place: int, hidden: Tensor) -> Tensor:
        kept = hidden.detach().abs().topk(self.k, dim=-1).indices
        return hidden * torch.zeros_like(hidden).scatter(-1, kept, 1.0)

    def loss(self) -> Tensor:
        """0: the choice is made in the model itself."""
        return torch.zeros((), device=next(self.model.parameters()).device)

    def __repr__(self) -> str:
        return f"TopKTraining(k={self.k!r})"
