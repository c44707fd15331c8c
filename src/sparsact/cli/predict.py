"""``sparsact predict``: a model's answers for a new table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sparsact.cli.io import PIPE, check_apart, check_writable, read_model, readable
from sparsact.cli.options import SHARED, option, with_help

if TYPE_CHECKING:
    import pyarrow as pa


@with_help(
    model=SHARED["learned_model"],
    id_column=option(
        "COLUMN",
        "Column that names the rows, by default the first that the model does not use; sequences are kept.",
        "--id",
    ),
    confidence=option("P", "Probability with which a new measurement lies in its interval."),
    out=option("FILE", "A .csv, .parquet, .feather or .arrow file; '-', and by default, CSV on stdout."),
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
    progress: bool | None = None,
) -> None:
    """Predict the target for every row of a table, in the order of the rows.

    Columns are found by name and become bits or numbers exactly as they did in the table that was learned from. Each
    row keeps its name and its sequence, and a target of numbers has an interval: of a Gaussian process its posterior's,
    else as wide as errors on held-out rows were. Column 'outside' says why a row lies outside of the rows that were
    learned from: two values never occurred together there, or a number is beyond its range. A row with a letter that
    was never seen, or without a value, has no prediction, and 'outside' says so.

    CSV holds names of classes as they were learned: import them into a spreadsheet as text, where "=" begins a formula.

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
    check_apart({"--out": out}, [model, *files(tables)])
    learned, encoding = read_model(model)
    opened = encoded_table(Parts.open(tables, Dialect(separator, decimal)), encoding)
    shown = False if out is None else progress
    n_rows = n_unread = 0
    with showing(shown) as show, Stages(show).stage("predicting", opened.n_rows) as on_rows, _writer(out) as write:
        for piece in predicted_pieces(learned, opened, id_column, confidence):
            write(piece)
            on_rows(len(piece))
            n_rows, n_unread = n_rows + len(piece), n_unread + piece[encoding.target_names[0]].null_count
    if n_unread:
        typer.echo(f"{n_unread:,} of {n_rows:,} rows have no prediction; column 'outside' says why.", err=True)


@contextmanager
def _writer(out: Path | None) -> Iterator[Callable[[pa.Table], None]]:
    """Something that takes tables one after the other and writes them as one file, whole or not at all."""
    import sys

    import pyarrow.csv
    import pyarrow.ipc
    import pyarrow.parquet

    from sparsact.files import replacing

    kind: Any = pyarrow.csv.CSVWriter
    if out is not None and out.suffix.lower() != ".csv":
        kind = pyarrow.parquet.ParquetWriter if out.suffix.lower() == ".parquet" else pyarrow.ipc.new_file
    with nullcontext(sys.stdout.buffer) if out is None else replacing(out) as file, ExitStack() as opened:
        writers: list[Any] = []

        def write(piece: pa.Table) -> None:
            if not writers:
                writers.append(opened.enter_context(kind(file, piece.schema)))
            writers[0].write_table(piece)

        yield write
