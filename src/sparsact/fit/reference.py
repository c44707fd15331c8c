"""Effects from a named reference, such as a wild type: at the reference, and averaged over all settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparsact.datasets import Encoding, encoded_table
from sparsact.datasets.columns import Bit
from sparsact.datasets.sites import BitString
from sparsact.datasets.table_files import resolve
from sparsact.datasets.unseen_rows import bit_values
from sparsact.fourier import Spectrum, interactions
from sparsact.hypercube import bits_to_signs, n_subsets

Reference = str | Path | Mapping[str, Any]


def reference_signs(encoding: Encoding, reference: Reference) -> NDArray[np.int8]:
    """Signs of the features at a reference: ``"a=1,b=0"`` (or a mapping), or the first row of a table."""
    odd = [column.name for column in encoding.columns if not isinstance(column, Bit | BitString)]
    if odd:
        raise ValueError(f"a reference names one of two values in each column, and {odd[0]!r} has more; leave it out.")
    if isinstance(reference, Path) or (isinstance(reference, str) and "=" not in reference):
        X = next(iter(encoded_table(reference, encoding, batch_rows=1).points()), None)
        if X is None or not len(X):
            raise ValueError(f"{reference} has no row; its first row is the reference.")
        return bits_to_signs(X[0])
    if isinstance(reference, str):
        pairs = [piece.partition("=")[::2] for piece in reference.split(",")]
        reference = {name.strip(): value.strip() for name, value in pairs}
    named = {resolve([name], encoding.source_columns, "column")[0]: str(value) for name, value in reference.items()}
    bits = []
    for column in (one for one in encoding.columns if isinstance(one, Bit | BitString)):
        zero = column.zeros if isinstance(column, BitString) else column.values[0]
        bits.append(column.encode(pa.array([named.get(column.name, zero)]), 0)[0])
    return bits_to_signs(np.concatenate(bits))


def reference_effects(
    model: object, encoding: Encoding, reference: Reference, *, order: int = 2, top: int | None = None
) -> list[dict[str, Any]]:
    """What changing columns from a reference does: alone and, beyond that, together; the largest first.

    Parameters
    ----------
    model : estimator
        Of columns of two values, with a ``spectrum_``.
    encoding : Encoding
        Of the table that it was learned from.
    reference : str, path or mapping
        ``"a=1,b=0"``, or ``{"a": 1, "b": 0}``: other columns have their value 0. Or a table, whose first row it is.
    order : int
        The most columns that are changed together.
    top : int, optional
        How many sets of columns to list.

    Returns
    -------
    rows : list of dict
        ``target``; ``columns``, each with its values before and after; ``at_reference``, the epistasis of the set (for
        one column, the difference) with all others as in the reference; ``averaged``, the same averaged over all
        settings of the others. Both are exact for the model. Suits ``pandas.DataFrame``.

    Raises
    ------
    ValueError
        If a column or value is unknown, or some column has more than two values.
    """
    signs, found = reference_signs(encoding, reference), []
    values = bit_values(encoding)
    spectra = getattr(model, "spectrum_", None)
    if spectra is None:
        raise ValueError(f"a {type(model).__name__} has no spectrum; choose model low-degree, sparse or gp.")
    for name, spectrum in zip(encoding.target_names, spectra if isinstance(spectra, list) else [spectra], strict=True):
        largest = min(order, Spectrum.of(spectrum).n)
        here = interactions(spectrum, "Moebius", order=largest, reference=signs)
        averaged = interactions(spectrum, "BII", order=largest, reference=signs)
        listed = n_subsets(here.n, largest, 1)  # larger sets are stored as zeros, if at all
        for subset, effect in here.top(listed if top is None else min(top, listed)):
            pairs = (values[i][:: int(signs[i])] for i in subset)  # before and after
            changes = [f"{before}→{after.rpartition('=')[2]}" for before, after in pairs]
            row = {"target": name, "columns": changes, "at_reference": effect, "averaged": averaged[subset]}
            found.append(row)
    return found
