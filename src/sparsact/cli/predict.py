"""``sparsact predict``: a model's answers for a new table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from math import isfinite, isnan
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import typer
from typer import Option

from sparsact.cli.io import PIPE, check_apart, check_writable, read_model, readable
from sparsact.cli.options import SHARED, option, with_help

if TYPE_CHECKING:
    import pyarrow as pa


@with_help(
    model=SHARED["learned_model"],
    id_column=option(
        "COLUMN",
        "Column with the names of rows. Default: the first column that the model does not use. Sequences are kept.",
        "--id",
    ),
    confidence=option("P", "Probability that a new measurement lies in its interval."),
    out=option("FILE", "A .csv, .parquet, .feather or .arrow file. Default: '-', CSV on stdout."),
    as_json=Option("--json", help="Print one JSON object instead, with the list 'rows'."),
)
def predict(
    context: typer.Context,
    model: Path,
    tables: list[str],
    id_column: str | None = None,
    confidence: float = 0.95,
    out: Path | None = None,
    separator: str = "auto",
    decimal: str = "auto",
    as_json: bool = False,
    progress: bool | None = None,
) -> None:
    """Predict the target for every row of a table, in the same order.

    Columns are found by name and encoded exactly as in the training table. Each row keeps its name and its sequence. A
    numeric target gets an interval: the posterior interval of a Gaussian process, or else one from the errors on
    held-out rows. Column 'outside' says how a row differs from the training rows: two of its values never occurred
    together, or a number is out of range. A row with an unseen letter or a missing value gets no prediction, and
    'outside' says so.

    Names of classes are written unchanged. Import them into a spreadsheet as text, because "=" begins a formula there.

    Example: sparsact predict model.sparsact new.csv --out predicted.csv
    """
    from sparsact.datasets import encoded_table
    from sparsact.datasets.dialect import Dialect
    from sparsact.datasets.table_files import Parts, files
    from sparsact.fit.predict import predicted_pieces
    from sparsact.passes.progress import Stages, showing

    out = None if out == Path(PIPE) else out
    check_writable(out, (".csv", ".parquet", ".feather", ".arrow"))
    tables = context.with_resource(readable(tables))
    if as_json and out is not None:
        raise ValueError("--json prints, and --out writes a file; choose one of them.")
    paths = files(tables)
    check_apart({"--out": out}, [model, *paths])
    learned, encoding = read_model(model, paths)
    opened = encoded_table(Parts.open(tables, Dialect(separator, decimal)), encoding)
    shown = False if out is None else progress
    n_rows = n_unread = 0
    writer = _writer(out, as_json)
    with showing(shown) as show, Stages(show).stage("predicting", opened.n_rows) as on_rows, writer as write:
        for piece in predicted_pieces(learned, opened, id_column, confidence):
            write(piece)
            on_rows(len(piece))
            n_rows, n_unread = n_rows + len(piece), n_unread + piece[encoding.target_names[0]].null_count
    if n_unread:
        typer.echo(f"{n_unread:,} of {n_rows:,} rows have no prediction; column 'outside' says why.", err=True)


@contextmanager
def _writer(out: Path | None, as_json: bool) -> Iterator[Callable[[pa.Table], None]]:
    """Something that takes tables one after the other and writes them as one file, whole or not at all."""
    import sys

    import pyarrow.csv
    import pyarrow.ipc
    import pyarrow.parquet

    from sparsact.files import replacing

    kind: Any = _JsonWriter if as_json else pyarrow.csv.CSVWriter
    if out is not None and out.suffix.lower() != ".csv":
        kind = pyarrow.parquet.ParquetWriter if out.suffix.lower() == ".parquet" else pyarrow.ipc.new_file
    with nullcontext(sys.stdout.buffer) if out is None else replacing(out) as file, ExitStack() as opened:
        writers: list[Any] = []

        def write(piece: pa.Table) -> None:
            if not writers:
                writers.append(opened.enter_context(kind(file, piece.schema)))
            writers[0].write_table(piece)

        yield write


class _JsonWriter(AbstractContextManager["_JsonWriter"]):
    """Writes tables one after the other as one JSON object, which holds the list of their rows."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        self._file, self._before = file, '{"rows": ['

    def write_table(self, piece: pa.Table) -> None:
        """Write the rows of a table, each on a line."""
        for row in piece.to_pylist():
            plain = {name: _json_value(value) for name, value in row.items()}
            self._file.write(f"{self._before}{json.dumps(plain, allow_nan=False)}".encode())
            self._before = ",\n"

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            before = self._before.rstrip(",\n")
            self._file.write(f"{before}]}}\n".encode())


def _json_value(value: Any) -> Any:
    """A cell as JSON holds it, which has no infinities and no NaN: the texts inf and -inf, and null."""
    if not isinstance(value, float) or isfinite(value):
        return value
    return None if isnan(value) else str(value)
