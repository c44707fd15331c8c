"""What a layer costs, with routing and without."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Flops:
    """Operations of a forward pass; a multiplication and an addition count as one each, biases and activations not.

    Attributes
    ----------
    routing : int
        Choosing the units: what the router counts, and pre-activations that only the choice needs.
    active : int
        The units that are on: the count of Table 1 of paper B, which leaves routing out.
    dense : int
        The same layer with every unit on, and no router.

    Examples
    --------
    >>> cost = Flops(routing=64, active=288, dense=4608)
    >>> cost.total
    352
    """

    routing: int
    active: int
    dense: int

    @property
    def total(self) -> int:
        """What the sparse layer really costs: routing and active units."""
        return self.routing + self.active
