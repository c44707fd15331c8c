"""Values of sets of coordinates as a table and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from sparsact import registry
from sparsact.hypercube import Subset
from sparsact.notebook import to_pandas


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

        ``feature_names`` names the coordinates; other options are those of the display's ``from_spectrum`` or
        ``from_interactions``. Wants matplotlib.
        """
        return getattr(registry.find(registry.DISPLAYS[self._kind]), f"from_{self._kind}")(self, **options)
