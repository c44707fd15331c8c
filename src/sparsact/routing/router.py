"""The router contract: hyperparameters in, an input's units out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsact.checks import checked_generator
from sparsact.routing.inputs import Shapes, checked_inputs, checked_state, like
from sparsact.routing.namespace import namespace
from sparsact.routing.seeds import hash_generator
from sparsact.routing.selection import Selection

State = Mapping[str, Any]


@dataclass(frozen=True)
class Router(ABC):
    """A rule that chooses units for an input; a frozen record of hyperparameters.

    What a rule needs beyond them (random directions, a learned gate, centres) is its *state*: a mapping of names to
    arrays. A layer keeps the state as parameters and buffers and passes it in; ``router(x)`` makes it from the seed.

    The same code serves NumPy arrays and torch tensors (:mod:`sparsact.routing.namespace`). It decides in float32 at
    least, whatever the precision of ``x``; ``weights`` have the precision of ``x``.
    """

    name: ClassVar[str]
    trainable: ClassVar[tuple[str, ...]] = ()
    #: Whether the rule looks at the width's own pre-activations (top-k) or at the input of the layer (hashes, gates).
    routes_on: ClassVar[str] = "inputs"

    @abstractmethod
    def width(self, in_features: int) -> int:
        """Number of units to choose from, for inputs of ``in_features`` columns."""

    @abstractmethod
    def n_active(self, in_features: int) -> int:
        """The most units that an input switches on, out of training."""

    def state_shapes(self, in_features: int) -> Shapes:
        """Shape of every entry of the state, None where any length will do; empty for a rule that needs none."""
        return {}

    def initial_state(self, in_features: int, *, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """Fresh state for inputs of ``in_features`` columns, float64.

        What is to be learned is drawn from ``rng``. A hash is one with its seed: it draws from that, and not from
        ``rng``, so that the same router hashes alike wherever it is used, and never with the numbers of the data.
        """
        return {}

    @abstractmethod
    def select(self, x: Any, state: State, *, training: bool = False) -> Selection:
        """Units for each row of ``x`` (m, in_features). Arrays are trusted here."""

    @abstractmethod
    def flops(self, in_features: int) -> int:
        """Multiplications and additions (each counts as one) that routing one input costs, comparisons included."""

    def __call__(self, x: Any, state: State | None = None, *, training: bool = False) -> Selection:
        """Units for each row of ``x``: the public door, which checks it.

        Parameters
        ----------
        x : array-like or torch.Tensor of shape (m, in_features)
            Finite numbers; integers count as float64. It is left unchanged. m may be 0.
        state : mapping of names to arrays, default=None
            Of the shapes that :meth:`state_shapes` tells. None for a fresh one, made from the router's seed.
        training : bool, default=False
            Whether a learner asks, who may need another answer than a user (the soft choice of a tree).

        Raises
        ------
        ValueError
            If ``x`` or the state is not what is asked, or if scores overflow.
        """
        x = checked_inputs(x)
        d = x.shape[1]
        if state is None:
            fresh = self.initial_state(d, rng=hash_generator(getattr(self, "seed", 0)))
            state = {entry: like(array, x) for entry, array in fresh.items()}
        else:
            state = checked_state(state, self.state_shapes(d), x, type(self).__name__)
        with np.errstate(over="ignore", invalid="ignore"):
            selection = self.select(x, state, training=training)
        if selection.logits is not None and not namespace(x).isfinite(selection.logits).all():
            raise ValueError(f"scores of {type(self).__name__} overflow; scale `x` down.")
        return selection

    def to_dict(self) -> dict[str, Any]:
        """``{"router": name, ...hyperparameters}``, as JSON spells it; :func:`sparsact.routing.from_dict` reads it."""
        return {"router": self.name, **asdict(self)}


def unit_rows(rng: np.random.Generator, n: int, d: int) -> NDArray[np.float64]:
    """Start of what is learned: n rows of d normal numbers with variance 1 / d, so that scores are of the order 1."""
    rows: NDArray[np.float64] = checked_generator(rng).standard_normal((n, d)) / np.sqrt(d)
    return rows
