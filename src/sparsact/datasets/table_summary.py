"""What is kept, with a model, of the rows that it was learned from: pairs of values seen, ranges, held-out errors."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from sparsact.statistics.held_out_rows import HeldOutRows

MOST_BITS: Final = 512  # whose pairs are kept


@dataclass(frozen=True)
class TableDesign:
    """Which values occurred together, how far numbers reached, and how far held-out rows lay from their predictions.

    ``n_bits`` is the number of features that are bits. ``pairs`` is a text, a packed table (2, 2, n_bits, n_bits) of
    pairs of values that never occurred together; empty where all did. ``low`` and ``high`` are the ranges of the
    features that are numbers. ``rows``, a text too, holds the held-out rows with their errors, if any.
    """

    n_bits: int
    pairs: str = ""
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    rows: str = ""

    @classmethod
    def of(
        cls,
        unseen: NDArray[np.bool_],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        held_out: HeldOutRows | None = None,
    ) -> Self:
        """From a table (2, 2, n, n), ranges, and held-out rows."""
        packed = b64encode(zlib.compress(np.packbits(unseen).tobytes(), 9)).decode() if unseen.any() else ""
        rows = "" if held_out is None else held_out.to_text()
        return cls(unseen.shape[-1], packed, tuple(low.tolist()), tuple(high.tolist()), rows)

    @cached_property
    def unseen(self) -> NDArray[np.bool_] | None:
        """Whether values of two bits never occurred together, (2, 2, n, n) for i < j; None if all did."""
        if not self.pairs:
            return None
        n = self.n_bits
        size = ceil(4 * n * n / 8)
        try:
            data = zlib.decompressobj().decompress(b64decode(self.pairs, validate=True), size)
        except (ValueError, zlib.error) as error:
            raise ValueError(f"a table of pairs that cannot be read: {error}") from error
        if len(data) != size:
            raise ValueError(f"a table of pairs of {len(data)} bytes, where {n} bits have {size}")
        table = np.unpackbits(np.frombuffer(data, np.uint8), count=4 * n * n)
        return table.reshape(2, 2, n, n).astype(bool)

    @cached_property
    def held_out(self) -> HeldOutRows | None:
        """Held-out rows with their errors; None if there are none."""
        return HeldOutRows.from_text(self.rows) if self.rows else None

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Self:
        """From its fields as JSON holds them; a ValueError if they are no design's."""
        numbers = {name: tuple(map(float, found[name])) for name in ("low", "high")}
        n_bits, pairs, rows = found["n_bits"], found["pairs"], found.get("rows", "")
        if errors := [sorted(map(float, of_target)) for of_target in found.get("errors", ())]:  # an earlier version's
            held_out = np.transpose(errors)
            rows = HeldOutRows(np.empty((len(held_out), 0), bool), 0 * held_out, held_out, len(held_out)).to_text()
        texts = isinstance(pairs, str) and isinstance(rows, str)
        if type(n_bits) is not int or not texts or not 0 <= n_bits <= (MOST_BITS if pairs else n_bits):
            raise ValueError(f"a design of {n_bits!r} bits")
        design = cls(n_bits, pairs, **numbers, rows=rows)
        _ = design.unseen
        if design.held_out is not None and design.held_out.bits.shape[1] not in (0, n_bits):
            raise ValueError("a design with held-out rows of other columns")
        return design
