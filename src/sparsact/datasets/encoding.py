"""The encoding of a table: frozen and stored with the model, so that a new table is read exactly alike."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparsact.datasets.columns import Classes, Column, Points, Real, column_of


@dataclass(frozen=True)
class Encoding:
    """Columns that are features, columns that are targets, and what the reader was asked to do with them.

    Features come in the order of the file. ``notes`` are sentences for people.
    """

    columns: tuple[Column, ...]
    targets: tuple[Real | Classes, ...]
    notes: tuple[str, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name of every column of X."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def target_names(self) -> tuple[str, ...]:
        """Name of every target."""
        return tuple(target.name for target in self.targets)

    @property
    def real(self) -> bool:
        """Whether some feature is a number that is not a bit."""
        return any(isinstance(column, Real) for column in self.columns)

    @property
    def source_columns(self) -> list[str]:
        """Columns of the file that hold the features."""
        return [column.name for column in self.columns]

    def points(self, batch: pa.RecordBatch, first_row: int) -> Points:
        """X of a batch: bits (m, n) as uint8; with real columns, float64 in which a bit is its sign, 1 - 2 * bit."""
        signs = self.real
        return np.concatenate([_part(column, batch, first_row, signs=signs) for column in self.columns], axis=1)

    def answers(self, batch: pa.RecordBatch, first_row: int) -> NDArray[np.float64]:
        """Targets of a batch: shape (m,), or (m, T) where there are several."""
        pieces = [target.encode(batch.column(target.name), first_row) for target in self.targets]
        return pieces[0][:, 0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)

    def to_json(self) -> str:
        """Text from which :meth:`from_json` makes an equal encoding."""
        described = {
            "columns": [{"kind": column.kind, **asdict(column)} for column in self.columns],
            "targets": [{"kind": target.kind, **asdict(target)} for target in self.targets],
            "notes": list(self.notes),
        }
        return json.dumps(described, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Encoding:
        """Inverse of :meth:`to_json`; a ValueError if the text is not what that wrote."""
        try:
            described = json.loads(text)
            columns = tuple(column_of(column) for column in described["columns"])
            targets = tuple(column_of(target) for target in described["targets"])
            notes = tuple(str(note) for note in described["notes"])
        except (LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"an encoding lacks something: {error}") from error
        one = [target for target in targets if isinstance(target, Real | Classes)]
        if not one or len(one) < len(targets) or (len(one) > 1 and not all(isinstance(t, Real) for t in one)):
            raise ValueError("an encoding has targets that are no targets")
        return cls(columns, tuple(one), notes)


def _part(column: Column, batch: pa.RecordBatch, first_row: int, *, signs: bool) -> Points:
    part = column.encode(batch.column(column.name), first_row)
    return 1.0 - 2.0 * part if signs and not isinstance(column, Real) else part
