"""Values of subsets: coefficients and interactions, as lists, formulas, tables and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any, ClassVar, Self

from sparsact import registry
from sparsact.fourier.coefficients import DenseCoefficients, SparseCoefficients
from sparsact.hypercube import Subset, masks_of, subsets_of
from sparsact.notebook import html_table, to_pandas
from sparsact.validation.arrays import checked_subset


def names_of(subset: Subset, feature_names: Sequence[str] | None) -> list[str]:
    """Names of the coordinates of a subset, by default ``x0``, ``x1`` and so on."""
    return [f"x{i}" if feature_names is None else feature_names[i] for i in subset]


def formula(terms: Sequence[tuple[Subset, float]], most: int, feature_names: Sequence[str] | None = None) -> str:
    """The first ``most`` terms that are not zero, with dots where there are more.

    >>> formula([((), 2.0), ((0, 70), -1.0)], 4)
    '2 - 1 x0 x70'
    """
    some = [(subset, value) for subset, value in terms if value]
    words = (("-" if c < 0 else "+", f"{abs(c):.4g}", *names_of(subset, feature_names)) for subset, c in some[:most])
    text = " ".join(word for term in words for word in term).removeprefix("+ ") or "0"
    text = "-" + text[2:] if text.startswith("- ") else text
    return text + " + ..." * (len(some) > most)


class SubsetValues:
    """A base of spectra and interactions: a value for each stored subset, and zero for the others."""

    _kind: ClassVar[str]  # by which the registry knows its picture
    _value: ClassVar[str]  # name of the column of values
    _least: ClassVar[int]  # size of the subsets in a table, at least
    storage: DenseCoefficients | SparseCoefficients
    feature_names: tuple[str, ...] | None = None

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
        """The largest values, by default all that are stored, as a ``pandas.DataFrame``; needs pandas.

        Columns are ``subset`` (a tuple of coordinates, or of their names), ``size``, and the values. ``feature_names``
        are by default the spectrum's own, if it has some.
        """
        feature_names = self.feature_names if feature_names is None else feature_names
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

    def named(self, feature_names: Sequence[str] | None) -> Self:
        """The same with names of its coordinates, which formulas, tables and pictures show; None: as it is.

        >>> from sparsact.fourier import Spectrum
        >>> Spectrum.of({(0, 2): 3.0}, n=3).named(["age", "sex", "dose"]).restrict({1: -1})
        <Spectrum on 2 coordinates, degree 2: 3 age dose>
        """
        if feature_names is None:
            return self
        if len(feature_names) != self.n:
            raise ValueError(f"{self.n} coordinates need as many names; got {len(feature_names)}.")
        found = copy(self)
        object.__setattr__(found, "feature_names", tuple(map(str, feature_names)))  # of a frozen dataclass
        return found

    def _repr_html_(self) -> str:
        caption = f"{repr(self).strip('<>').partition(': ')[0]}: the largest {self._value}s"
        found = self._strongest(10, 0)
        rows = ((" ".join(names_of(subset, self.feature_names)) or "1", f"{value:.4g}") for subset, value in found)
        return html_table(caption, ("monomial" if self._least == 0 else "subset", self._value), rows)

    def plot(self, **options: object) -> Any:
        """Draw it, on new axes or on ``ax``: a :class:`~sparsact.SpectrumDisplay` or an ``InteractionsDisplay``.

        ``feature_names`` names the coordinates, by default as the spectrum does; other options go to the display's
        ``from_spectrum`` or ``from_interactions``. Wants matplotlib.
        """
        options = {"feature_names": self.feature_names} | options
        return getattr(registry.find(registry.DISPLAYS[self._kind]), f"from_{self._kind}")(self, **options)
