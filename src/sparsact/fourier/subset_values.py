"""Values of subsets: coefficients and interactions, as lists, formulas, tables and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from sparsact import registry
from sparsact.fourier.coefficients import DenseCoefficients, SparseCoefficients
from sparsact.hypercube import Subset, masks_of, subsets_of
from sparsact.notebook import to_pandas
from sparsact.validation.arrays import checked_subset


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


class SubsetValues:
    """A base of spectra and interactions: a value for each stored subset, and zero for the others."""

    _kind: ClassVar[str]  # by which the registry knows its picture
    _value: ClassVar[str]  # name of the column of values
    _least: ClassVar[int]  # size of the subsets in a table, at least
    storage: DenseCoefficients | SparseCoefficients

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return self.storage.n

    @property
    def subsets(self) -> list[Subset]:
        """Stored subsets as tuples of coordinates: a table in table order, else by size, then lexicographically."""
        return subsets_of(self.storage.masks())

    def items(self) -> Iterator[tuple[Subset, float]]:
        """Pairs of stored subset and value, in the order of :attr:`subsets`."""
        return zip(self.subsets, self.storage.coefficients.tolist(), strict=True)

    def __getitem__(self, subset: Iterable[int]) -> float:
        members = checked_subset(subset)
        masks_of([members], self.n)  # validates the coordinates
        return self.storage.coefficient(members)

    def _strongest(self, k: int, least_size: int) -> list[tuple[Subset, float]]:
        masks, values = self.storage.strongest(k, least_size)
        return list(zip(subsets_of(masks), values.tolist(), strict=True))

    def to_frame(self, n_terms: int | None = None, feature_names: Sequence[str] | None = None) -> Any:
        """The largest values, by default all that are stored, as a ``pandas.DataFrame``; wants pandas.

        Columns are ``subset`` (a tuple of coordinates, or of their names), ``size``, and the values.
        """
        found = self._strongest(len(self.subsets) if n_terms is None else n_terms, self._least)
        rows = [
            {
                "subset": subset if feature_names is None else tuple(feature_names[i] for i in subset),
                "size": len(subset),
                self._value: value,
            }
            for subset, value in found
        ]
        return to_pandas(rows, ("subset", "size", self._value))

    def plot(self, **options: object) -> Any:
        """Draw it, on new axes or on ``ax``: a :class:`~sparsact.SpectrumDisplay` or an ``InteractionsDisplay``.

        ``feature_names`` names the coordinates; other options go to the display's ``from_spectrum`` or
        ``from_interactions``. Wants matplotlib.
        """
        return getattr(registry.find(registry.DISPLAYS[self._kind]), f"from_{self._kind}")(self, **options)
