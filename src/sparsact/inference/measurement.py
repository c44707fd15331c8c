"""What is known of a model's activations after :func:`~sparsact.inference.measure`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sparsact.inference.block_measurement import BlockMeasurement, finite
from sparsact.inference.measurement_table import table
from sparsact.inference.roofline import METHODS, amdahl
from sparsact.inference.tally import WINDOWS


@dataclass(frozen=True, eq=False)
class Measurement:
    """Activation sparsity of a model, and what it could save.

    Attributes
    ----------
    blocks : tuple of BlockMeasurement
    n_batches : int
    model_bytes : int
        Bytes of parameters that the model reads for one token: see :func:`~sparsact.inference.roofline.bytes_read`.
    token_bytes : int
        How many of these are rows of embeddings, read for each token of a batch.
    """

    blocks: tuple[BlockMeasurement, ...]
    n_batches: int
    model_bytes: int
    token_bytes: int

    @property
    def density(self) -> float:
        """Mean of the blocks' densities."""
        return sum(block.density for block in self.blocks) / len(self.blocks)

    def bound(self, method: str, *, batch: int = 1) -> float | None:
        """The most that the whole model can be faster by a method of ``METHODS`` in all blocks where it applies.

        Parameters
        ----------
        method : str
            ``"oracle"``, ``"exact"`` or ``"certified"``.
        batch : int
            1, or 4, 16 or 64 consecutive rows at once.

        Returns
        -------
        bound : float or None
            By Amdahl's law, from the bytes of all parameters. None if no sequence was that long.
        """
        found = [block.roofline(batch=batch) for block in self.blocks]
        saved = [one.saved(method) for one in found if one is not None]
        if len(saved) < len(found):
            return None
        return amdahl(self.model_bytes + (batch - 1) * self.token_bytes, sum(saved))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""
        return {
            "n_batches": self.n_batches,
            "model_bytes": self.model_bytes,
            "token_bytes": self.token_bytes,
            "bounds": {
                str(batch): {method: finite(self.bound(method, batch=batch)) for method in METHODS}
                for batch in (1, *WINDOWS)
            },
            "blocks": [block.to_dict() for block in self.blocks],
        }

    def to_json(self) -> str:
        """:meth:`to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def __str__(self) -> str:
        return table(self)
