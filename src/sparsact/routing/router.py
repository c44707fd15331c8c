"""The router contract: hyperparameters in, an input's units out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsact.routing.selection import Selection

State = Mapping[str, Any]


@dataclass(frozen=True)
class Router(ABC):
    """A rule that chooses units for an input; a frozen record of hyperparameters.

    What a rule needs beyond them (random directions, a learned gate, centres) is its *state*: a mapping of names to
    arrays. A layer keeps the state as parameters and buffers and passes it in; ``router(x)`` makes it from the seed.

    The same code serves NumPy arrays and torch tensors (:mod:`sparsact.routing.namespace`).
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
        """The most units that an input switches on."""

    def initial_state(self, in_features: int, *, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """Fresh state for inputs of ``in_features`` columns; empty for a rule that needs none."""
        return {}

    @abstractmethod
    def select(self, x: Any, state: State, *, training: bool = False) -> Selection:
        """Units for each row of ``x`` (m, in_features). Arrays are trusted here."""

    @abstractmethod
    def flops(self, in_features: int) -> int:
        """Multiplications and additions (each counts as one) that routing one input costs, comparisons included."""

    def __call__(self, x: Any, state: State | None = None) -> Selection:
        """Units for each row of ``x``: the public door, which checks it."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """``{"router": name, ...hyperparameters}``, as JSON spells it; :func:`sparsact.routing.from_dict` reads it."""
        return {"router": self.name, **asdict(self)}
