"""``predict_table``: a fitted model's answers for another table, with identifiers, intervals, and rows to doubt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparsact.datasets.columns import Classes, Encoding
from sparsact.datasets.sites import BitString, LetterString, Mutations
from sparsact.datasets.table_files import Data, Parts, resolve
from sparsact.datasets.table_stream import Table, encoded_table
from sparsact.datasets.unseen_rows import outside, readable
from sparsact.fit.result import FitResult
from sparsact.fit.table_model import FromTable, TableModel, brought_back
from sparsact.validation.parameters import checked_probability

OUTSIDE: Final = "outside"


def predict_table(
    model: FitResult | FromTable, data: Data, *, id_column: str | None = None, confidence: float = 0.95
) -> pa.Table:
    """Predict every row of a table by a model that :func:`sparsact.fit_table` has fitted.

    Parameters
    ----------
    model : FitResult or estimator
        The result of :func:`sparsact.fit_table`, or a model of it that was saved and loaded.
    data : what :func:`sparsact.fit_table` takes
        Columns are found by name and encoded as in the fit.
    id_column : str, optional
        Column that names the rows. By default the first that is neither learned from nor a target, if there is one.
    confidence : float
        Probability with which a new measurement lies in its interval.

    Returns
    -------
    table : pyarrow.Table
        The column that names the rows, columns of sequences, a column for each target, for targets of numbers
        ``<target>_low`` and ``<target>_high``, and ``outside``: why a row lies outside of the rows that were learned
        from, as two values never occurred together there, or a number is beyond its range; empty for other rows, and
        null of a model of an earlier version, which does not know. A row with a letter that was never seen, or
        without a value, has null for its predictions, and ``outside`` says why. ``to_pandas()`` makes it a frame.

    Raises
    ------
    ValueError
        If a column is missing.

    Notes
    -----
    Intervals of a Gaussian process come from its posterior. Intervals of other models are as wide as held-out errors
    were where about the same value was predicted: right on average over rows like the fit's, too narrow for rows
    ``outside``. They are null where held-out rows are too few.

    Examples
    --------
    >>> import sparsact as sa
    >>> table = {"a": [0, 1, 0, 1] * 9, "b": [0, 0, 1, 1] * 9, "y": [0, 1, 1, 2] * 9}
    >>> result = sa.fit_table(pa.table(table), "y", degree=1, alpha=0.0)
    >>> found = sa.predict_table(result, pa.table({"name": ["new"], "a": [1], "b": [1]}))
    >>> found.column_names
    ['name', 'y', 'y_low', 'y_high', 'outside']
    >>> found["name"].to_pylist(), found["outside"].to_pylist(), round(found["y"][0].as_py(), 6)
    (['new'], [''], 2.0)
    """
    if isinstance(model, FitResult):
        learned, encoding = model.model, model.encoding
    else:
        learned, encoding = model, Encoding.from_json(model.table_encoding_)
    return pa.concat_tables(predicted_pieces(learned, encoded_table(data, encoding), id_column, confidence))


def predicted_pieces(model: object, table: Table, id_column: str | None, confidence: float) -> Iterator[pa.Table]:
    """An empty piece of the table of predictions, then the rows in batches."""
    checked_probability(confidence, "`confidence`")
    encoding, parts = table.encoding, table.parts
    named = _row_names(encoding, parts, id_column)
    nothing = np.empty((0, len(encoding.feature_names)), dtype=np.float64 if encoding.real else np.uint8)
    learned = TableModel(model, encoding)
    head = _predicted(learned, nothing, confidence)
    begun = False
    for batch in parts.batches([*encoding.source_columns, *named]):
        names = {name: batch.columns.column(name) for name in named}
        with batch:
            X, _, reasons = readable(encoding, batch)
        predicted = _predicted(learned, X, confidence)
        if not begun:
            yield pa.table({name: column.slice(0, 0) for name, column in names.items()} | head)
            begun = True
        yield pa.table(names | (_with_reasons(predicted, reasons, len(batch), encoding) if reasons else predicted))
    if not begun:
        yield pa.table({name: pa.array([], pa.string()) for name in named} | head)


def _row_names(encoding: Encoding, parts: Parts, id_column: str | None) -> list[str]:
    """The column that names the rows, if there is one, and columns of sequences."""
    own = {*encoding.target_names, _free(OUTSIDE, encoding)}
    own |= {_free(f"{name}_{end}", encoding) for name in encoding.target_names for end in ("low", "high")}
    sequences = [one.name for one in encoding.columns if isinstance(one, LetterString | Mutations | BitString)]
    if id_column is None:
        taken = own.union(encoding.source_columns, *(source.unread for source in parts.sources))
        found = [name for name in parts.names if name not in taken][:1]
    elif own & {*(found := resolve([id_column], parts.names, "column"))}:
        raise ValueError(f"column {id_column!r} cannot name the rows, since the predictions use that name.")
    return list(dict.fromkeys([*found, *(name for name in sequences if name not in own)]))


def _predicted(learned: TableModel, X: NDArray[Any], confidence: float) -> dict[str, pa.Array]:
    """Predictions, intervals and doubts as columns."""
    columns: dict[str, pa.Array] = {}
    encoding = learned.encoding
    if isinstance(encoding.targets[0], Classes):
        columns[encoding.target_names[0]] = pa.array(learned.answers(X))
    else:
        found = learned.values(X)
        ends = learned.intervals(X, found, confidence)
        for i, (name, own) in enumerate(zip(encoding.target_names, brought_back(encoding, found).T, strict=True)):
            columns[name] = pa.array(own)
            for end, bounds in zip(("low", "high"), ends, strict=True):
                own, unknown = brought_back(encoding, bounds)[:, i], ~np.isfinite(bounds[:, i])
                columns[_free(f"{name}_{end}", encoding)] = pa.array(own, pa.float64(), mask=unknown)
    doubts = [None] * len(X) if encoding.design is None else outside(encoding, encoding.design, X)
    return columns | {_free(OUTSIDE, encoding): pa.array(doubts, pa.string())}


def _with_reasons(
    columns: dict[str, pa.Array], reasons: dict[int, str], n_rows: int, encoding: Encoding
) -> dict[str, pa.Array]:
    """Columns of all rows; where a row could not be read, null except for the reason."""
    places = np.full(n_rows, -1)
    places[np.delete(np.arange(n_rows), list(reasons))] = np.arange(n_rows - len(reasons))
    whole = {name: column.take(pa.array(places, mask=places < 0)) for name, column in columns.items()}
    outside_name = _free(OUTSIDE, encoding)
    why = pa.array([reasons.get(row) for row in range(n_rows)], pa.string())
    return whole | {outside_name: pc.coalesce(whole[outside_name], why)}


def _free(name: str, encoding: Encoding) -> str:
    """A name that no target has."""
    while name in encoding.target_names:
        name += "_"
    return name
