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

from sparsact.statistics.conformal import kept_errors, reach

MOST_BITS: Final = 512  # whose pairs are kept
MOST_ERRORS: Final = 400  # of a target


@dataclass(frozen=True)
class TableDesign:
    """Which values occurred together, how far numbers reached, and how far held-out rows lay from their predictions.

    ``n_bits`` is the number of features that are bits. ``pairs`` is a text, a packed table (2, 2, n_bits, n_bits) of
    pairs of values that never occurred together; empty where all did. ``low`` and ``high`` are the ranges of the
    features that are numbers. ``errors`` are, for each target, sorted absolute errors of held-out rows, at most 400.
    """

    n_bits: int
    pairs: str = ""
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    errors: tuple[tuple[float, ...], ...] = ()

    @classmethod
    def of(
        cls, unseen: NDArray[np.bool_], low: NDArray[np.float64], high: NDArray[np.float64], errors: NDArray[np.float64]
    ) -> Self:
        """From a table (2, 2, n, n), ranges, and held-out errors (rows, targets)."""
        packed = b64encode(zlib.compress(np.packbits(unseen).tobytes(), 9)).decode() if unseen.any() else ""
        kept = tuple(tuple(kept_errors(of_target, MOST_ERRORS).tolist()) for of_target in errors.T)
        return cls(unseen.shape[-1], packed, tuple(low.tolist()), tuple(high.tolist()), kept)

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

    def reach(self, target: int, confidence: float) -> float:
        """Half of the width of an interval that holds a new row of the target with this probability, or more."""
        return reach(self.errors[target], confidence)

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Self:
        """From its fields as JSON holds them; a ValueError if they are no design's."""
        numbers = {name: tuple(map(float, found[name])) for name in ("low", "high")}
        errors = tuple(tuple(sorted(map(float, of_target))) for of_target in found["errors"])
        n_bits, pairs = found["n_bits"], found["pairs"]
        if type(n_bits) is not int or not isinstance(pairs, str) or not 0 <= n_bits <= (MOST_BITS if pairs else n_bits):
            raise ValueError(f"a design of {n_bits!r} bits")
        design = cls(n_bits, pairs, **numbers, errors=errors)
        _ = design.unseen
        return design
