"""The result of a measurement: per block, for the whole model, and as a table."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.inference.layer_measurement import LayerMeasurement, outside_of_blocks
from sparsact.inference.plan import finite
from sparsact.inference.roofline import METHODS, Roofline, amdahl, counted_twice, roofline
from sparsact.notebook import html_table

WINDOWS: Final = (4, 16, 64)  # consecutive rows
LEVELS: Final = (0.0, *(10 ** (k / 10) for k in range(-40, 11)))  # of a row's root mean square
SMALL: Final = LEVELS[21]  # 1 % of a row's root mean square


@dataclass(frozen=True, eq=False)
class BlockMeasurement:
    r"""Activation statistics of one block: how many and which units are active, and the sizes of the other values.

    Attributes
    ----------
    name, down : str
        As in :class:`~sparsact.inference.Block`.
    up, gate : str or None
    activation : str
        Its name.
    exact : bool
        Whether units are exactly zero when they are off.
    n_inputs, n_units, n_outputs : int
    dtype : str
        Dtype of the weights of ``down``.
    itemsize : int
        Bytes per weight.
    rows_by_active : ndarray of shape (n_units + 1,), int64
        Number of rows with 0, 1, ..., n_units active units.
    active_rows : ndarray of shape (n_units,), int64
        Number of rows in which each unit was active.
    windows : dict of int to int
        Number of disjoint groups of 4, 16 and 64 consecutive rows of one sequence.
    unions : dict of int to float or None
        Mean share of units that are active anywhere in such a group. None if no sequence is that long.
    calls : int
        Calls of the block.
    rows : tuple of int
        Smallest and largest number of rows in a call.
    share_few : float
        Share of calls that ``"exact"`` and ``"certified"`` would compute sparsely: at most 16 rows, which switch on at
        most four tenths of the units on average. ``"auto"`` finds its own limit of rows.
    share_within : ndarray of shape (len(LEVELS),)
        Share of activations with :math:`|h_j| \le t \cdot \mathrm{rms}(h)` for each t of ``LEVELS``, where
        rms is the root of the mean of the squares of the row h. For t = 0 this is 1 minus the density.
    energy_within : ndarray of shape (len(LEVELS),)
        Share of :math:`\|h\|^2` that these activations hold, averaged over rows that are not zero; at most t².
    screened : bool
        Whether a screen can prove units inactive; false with a cutoff for each row, as in Gemma 3n.
    """

    name: str
    up: str | None
    down: str
    gate: str | None
    activation: str
    exact: bool
    n_inputs: int
    n_units: int
    n_outputs: int
    dtype: str
    itemsize: int
    rows_by_active: NDArray[np.int64]
    active_rows: NDArray[np.int64]
    windows: dict[int, int]
    unions: dict[int, float | None]
    calls: int
    rows: tuple[int, int]
    share_few: float
    share_within: NDArray[np.float64]
    energy_within: NDArray[np.float64]
    screened: bool = True

    @property
    def levels(self) -> tuple[float, ...]:
        """``LEVELS``: multiples of a row's root mean square, from 0 up."""
        return LEVELS

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows_by_active.sum())

    @property
    def density(self) -> float:
        """Mean share of active units."""
        return int(self.active_rows.sum()) / (self.n_rows * self.n_units)

    @property
    def frequency(self) -> NDArray[np.float64]:
        """Share of rows in which each unit is active."""
        return self.active_rows / self.n_rows

    @property
    def n_dead(self) -> int:
        """Number of units that are active in no row."""
        return int((self.active_rows == 0).sum())

    @property
    def n_always(self) -> int:
        """Number of units that are active in every row."""
        return int((self.active_rows == self.n_rows).sum())

    @property
    def n_zero_rows(self) -> int:
        """Number of rows without an active unit."""
        return int(self.rows_by_active[0])

    @property
    def share_small(self) -> float:
        """Share of activations within 1 % of their row's root mean square of zero, zeros included."""
        return float(self.share_within[LEVELS.index(SMALL)])

    def density_quantile(self, q: float) -> float:
        """The smallest density that a share ``q`` of the rows does not exceed, exactly.

        A ValueError is raised if ``q`` is not above 0 and at most 1.
        """
        if not 0 < q <= 1:
            raise ValueError(f"a quantile needs 0 < q <= 1, got {q}.")
        rows = math.ceil(q * self.n_rows * (1 - 1e-12))  # 0.07 * 100 is 7 in spite of rounding
        return int(np.searchsorted(self.rows_by_active.cumsum(), rows)) / self.n_units

    def roofline(self, *, batch: int = 1, layer: str | None = None) -> Roofline | None:
        """Bytes read for one row, or for 4, 16 or 64 consecutive rows at once; None if no sequence was that long.

        ``layer`` names one of the block's layers to count alone.
        """
        density = self.density if batch == 1 else self.unions[batch]
        if density is None:
            return None
        sizes, gated = (self.n_inputs, self.n_units, self.n_outputs), self.gate is not None
        if layer is not None:
            switches = layer == (self.gate or self.up)
            width = self.n_outputs if layer == self.down else self.n_inputs
            sizes, gated = (width * switches, self.n_units, width * (not switches)), False
        zeros, thresholds = self.exact, self.screened
        return roofline(
            *sizes, gated=gated, itemsize=self.itemsize, density=density, zeros=zeros, thresholds=thresholds
        )

    def to_dict(self) -> dict[str, Any]:
        """All figures, as JSON holds them: ``rows_by_active`` as pairs (active units, rows), infinities as None."""
        occurring = np.flatnonzero(self.rows_by_active)
        return {
            **{name: getattr(self, name) for name in SCALARS},
            "density_quantiles": {str(q): self.density_quantile(q) for q in (0.05, 0.25, 0.5, 0.75, 0.95)},
            "rows_by_active": [[int(k), int(self.rows_by_active[k])] for k in occurring],
            "active_rows": self.active_rows.tolist(),
            "windows": {str(w): n for w, n in self.windows.items()},
            "unions": {str(w): density for w, density in self.unions.items()},
            "levels": list(LEVELS),
            "share_within": self.share_within.tolist(),
            "energy_within": self.energy_within.tolist(),
            "roofline": {str(batch): _bytes_and_speedups(self.roofline(batch=batch)) for batch in (1, *WINDOWS)},
        }


SCALARS: Final = (
    *("name", "up", "down", "gate", "activation", "exact", "n_inputs", "n_units", "n_outputs", "dtype", "itemsize"),
    *("calls", "rows", "share_few", "n_rows", "density", "n_dead", "n_always", "n_zero_rows"),
)


def _bytes_and_speedups(found: Roofline | None) -> dict[str, Any] | None:
    if found is None:
        return None
    read = {"dense": found.dense} | {method: getattr(found, method) for method in METHODS}
    return {"bytes": read, "speedup": {method: finite(found.speedup(method)) for method in METHODS}}


HEADINGS: Final = ("block", "units", "density", "5-95 %", "dead", "union of 16", "|h| <= 1 %", *METHODS)


def times(speedup: float | None) -> str:
    """A speed-up as text.

    >>> times(1.9417), times(None), times(math.inf)
    ('1.94x', '-', 'unbounded')
    """
    if speedup is None:
        return "-"
    return f"{speedup:.2f}x" if math.isfinite(speedup) else "unbounded"


def _cells(block: BlockMeasurement) -> tuple[str, ...]:
    found, union = block.roofline(), block.unions[16]
    return (
        block.name or "(the model)",
        f"{block.n_units:,}",
        f"{block.density:.2%}",
        f"{block.density_quantile(0.05):.2%}-{block.density_quantile(0.95):.2%}",
        f"{block.n_dead:,}",
        "-" if union is None else f"{union:.2%}",
        f"{block.share_small:.2%}",
        *(times(found.speedup(method) if found else None) for method in METHODS),
    )


@dataclass(frozen=True, eq=False)
class Measurement:
    """Activation sparsity of a model, and the largest speed-up that it allows.

    Attributes
    ----------
    blocks : tuple of BlockMeasurement
    n_batches : int
    model_bytes : int
        Bytes of parameters that the model reads for one token: see :func:`~sparsact.inference.roofline.bytes_read`.
    token_bytes : int
        Bytes among them that are rows of embeddings, read for each token of a batch.
    layers : tuple of LayerMeasurement
        All linear layers and convolutions, inside and outside of blocks.
    """

    blocks: tuple[BlockMeasurement, ...]
    n_batches: int
    model_bytes: int
    token_bytes: int
    layers: tuple[LayerMeasurement, ...] = ()

    @property
    def density(self) -> float:
        """Mean of the blocks' densities; NaN without blocks."""
        return sum(block.density for block in self.blocks) / len(self.blocks) if self.blocks else math.nan

    def bound(self, method: str, *, batch: int = 1) -> float | None:
        """Largest possible speed-up of the whole model by a method of ``METHODS`` in all blocks where it applies.

        Parameters
        ----------
        method : str
            ``"oracle"``, ``"exact"`` or ``"certified"``.
        batch : int
            1, or 4, 16 or 64 consecutive rows at once.

        Returns
        -------
        bound : float or None
            By Amdahl's law, from the bytes of all parameters. None if no sequence was that long. A layer that ends one
            block and begins the next counts once: the oracle reads only what is active for both, and the other methods
            save what the better of the two blocks saves.
        """
        found = [block.roofline(batch=batch) for block in self.blocks]
        saved = sum(one.saved(method) for one in found if one is not None)
        if None in found:
            return None
        begun = {name: block for block in self.blocks for name in (block.up, block.gate) if name}
        for ended in self.blocks:
            if ended.down in begun:
                shared = [one.roofline(batch=batch, layer=ended.down) for one in (ended, begun[ended.down])]
                saved -= counted_twice(method, *(one for one in shared if one is not None))
        return amdahl(self.model_bytes + (batch - 1) * self.token_bytes, saved)

    def to_dict(self) -> dict[str, Any]:
        """All figures, as JSON holds them."""
        return {
            "n_batches": self.n_batches,
            "model_bytes": self.model_bytes,
            "token_bytes": self.token_bytes,
            "bounds": {
                str(batch): {method: finite(self.bound(method, batch=batch)) for method in METHODS}
                for batch in (1, *WINDOWS)
            },
            "blocks": [block.to_dict() for block in self.blocks],
            "layers": [layer.to_dict() for layer in self.layers],
        }

    def to_json(self) -> str:
        """:meth:`to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @property
    def _whole(self) -> str:
        """The largest bound of a method of sparsify, in words."""
        bounds = {method: self.bound(method) or 1.0 for method in ("exact", "certified")}
        best = max(bounds, key=lambda method: bounds[method])
        read = f"{self.model_bytes:,} bytes of parameters a row"
        most = f"{bounds[best]:.2f} times" if math.isfinite(bounds[best]) else "any number of times"
        return f"whole model: at most {most} as fast, by {best} ({read})"

    def __str__(self) -> str:
        outside = outside_of_blocks(self.layers)
        if not self.blocks:
            return "\n".join(["Exact methods apply to no layer of this model.", *outside])
        lines = [HEADINGS, *map(_cells, self.blocks)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        form = "  ".join([f"{{:<{widths[0]}}}", *(f"{{:>{width}}}" for width in widths[1:])])
        text = "\n".join(form.format(*line) for line in lines)
        rows = [count for block in self.blocks for count in block.rows]
        sizes = (
            f"{min(rows):,} to {max(rows):,} rows" if min(rows) < max(rows) else f"{rows[0]:,} row{'s' * (rows[0] > 1)}"
        )
        few = sum(block.share_few * block.calls for block in self.blocks) / sum(block.calls for block in self.blocks)
        return (
            f"{text}\n|h| <= 1 %: share of activations below 1 % of their row's root mean square, zeros "
            f"included.\n{', '.join(METHODS)}: upper bound on the speed-up of a block, one row at a time, by bytes of "
            "weights. A block can gain more if only its sparse weights fit the cache, or if its input is sparse too.\n"
            f"Calls have {sizes}. exact and certified would compute {few:.0%} of them sparsely (at most 16 rows with "
            "few active units); auto finds its own limit of rows.\n"
            + "".join(f"{line}\n" for line in outside)
            + self._whole
        )

    def _repr_html_(self) -> str:
        caption = f"Activation sparsity of {len(self.blocks)} blocks; {self._whole}"
        return html_table(caption, HEADINGS, map(_cells, self.blocks))
