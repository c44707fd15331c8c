"""The order of subsets, by size and then lexicographically; formulas, tables and pictures of values in this order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sparsact import registry
from sparsact.hypercube import Masks, Subset, sizes
from sparsact.notebook import to_pandas

_REVERSED_BYTES: Final = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1), bitorder="little")


def subset_order(masks: Masks) -> NDArray[np.intp]:
    """Indices that sort masks (N, words) by size, then lexicographically; stable, ``N log N`` comparisons.

    >>> subset_order(np.array([[6], [9], [1], [0]], dtype=np.uint64))  # (1, 2), (0, 3), (0,), ()
    array([3, 2, 1, 0])
    """
    differing = masks[:, (masks != masks[:1]).any(axis=0)]  # few words, where coordinates are many
    return np.lexsort((*_tuple_ranks(differing).T[::-1], sizes(masks)))


def _tuple_ranks(masks: Masks) -> Masks:
    """Words that compare as the tuples do, among subsets of one size.

    Where two tuples first differ, the earlier one holds the smaller coordinate: read with coordinate 0 as the highest
    bit, its mask is the larger number. Complementing turns the comparison round.
    """
    mirrored = _REVERSED_BYTES[np.ascontiguousarray(masks, dtype="<u8").view(np.uint8)]
    return ~mirrored.view(">u8").astype(np.uint64)


def strongest(
    coefficients: NDArray[np.float64],
    sizes: NDArray[Any],
    masks_at: Callable[[NDArray[np.intp]], Masks],
    k: int,
    min_degree: int,
) -> NDArray[np.intp]:
    """Indices of the k coefficients of largest magnitude with ``|S| >= min_degree``; ties as :func:`subset_order`.

    Partitions instead of sorting, so that the cost is linear in the number of coefficients.
    """
    magnitude = np.where(sizes >= min_degree, np.abs(coefficients), -1.0)
    k = min(k, int(np.count_nonzero(magnitude >= 0)))
    if k <= 0:
        return np.empty(0, dtype=np.intp)
    least = np.partition(magnitude, -k)[-k]
    above = np.flatnonzero(magnitude > least)
    tied = np.flatnonzero(magnitude == least)
    # Nearly all of a table may be tied at zero: keep only the sizes that the missing ones can come from.
    missing = k - len(above)
    tied = tied[sizes[tied] <= np.partition(sizes[tied], missing - 1)[missing - 1]]
    chosen = np.concatenate([above, tied])
    order = np.lexsort((*_tuple_ranks(masks_at(chosen)).T[::-1], sizes[chosen], -magnitude[chosen]))
    return chosen[order[:k]]


def formula(terms: Sequence[tuple[Subset, float]], most: int) -> str:
    """The first ``most`` terms that are not zero, with dots where there are more.

    >>> formula([((), 2.0), ((0, 70), -1.0)], 4)
    '2 - 1 x0 x70'
    """
    some = [(subset, value) for subset, value in terms if value]
    text = " ".join(_term(subset, value) for subset, value in some[:most]).removeprefix("+ ") or "0"
    text = "-" + text[2:] if text.startswith("- ") else text
    return text + " + ..." * (len(some) > most)


def _term(subset: Subset, value: float) -> str:
    return " ".join(["-" if value < 0 else "+", f"{abs(value):.4g}", *(f"x{i}" for i in subset)])


class Shown:
    """A base of spectra and interactions, which list the largest of their stored values by ``top``."""

    _kind: ClassVar[str]  # by which the registry knows its picture
    _value: ClassVar[str]  # name of the column of values

    @property
    def subsets(self) -> list[Subset]:
        """Stored sets of coordinates."""
        raise NotImplementedError

    def top(self, k: int, /) -> list[tuple[Subset, float]]:
        """The largest values, strongest first."""
        raise NotImplementedError

    def to_frame(self, n_terms: int | None = None, feature_names: Sequence[str] | None = None) -> Any:
        """The largest values, by default all that are stored, as a ``pandas.DataFrame``; wants pandas.

        Columns are ``subset`` (a tuple of coordinates, or of their names), ``size``, and the values.
        """
        found = self.top(len(self.subsets) if n_terms is None else n_terms)
        rows = [
            {
                "subset": subset if feature_names is None else tuple(feature_names[i] for i in subset),
                "size": len(subset),
                self._value: value,
            }
            for subset, value in found
        ]
        return to_pandas(rows, ("subset", "size", self._value))

    def plot(self, **options: Any) -> Any:
        """Draw it, on new axes or on ``ax``: a :class:`~sparsact.SpectrumDisplay` or an ``InteractionsDisplay``.

        ``feature_names`` names the coordinates; other options go to the display's ``from_spectrum`` or
        ``from_interactions``. Wants matplotlib.
        """
        return getattr(registry.find(registry.DISPLAYS[self._kind]), f"from_{self._kind}")(self, **options)
