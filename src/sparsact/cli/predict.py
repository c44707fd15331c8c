"""``sparsact predict``: a model's answers for a new table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsact.cli.io import check_apart, check_writable
from sparsact.cli.options import ShowProgress, Tables

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


def predict(
    context: typer.Context,
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model that sparsact fit has written.", show_default=False)
    ],
    tables: Tables,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A .csv, .parquet, .feather or .arrow file; '-', and by default, CSV on stdout."
        ),
    ] = None,
    progress: ShowProgress = None,
) -> None:
    """Predict the target for every row of a table, in the order of the rows.

    Columns are found by name and become bits or numbers exactly as they did in the table that was learned from; other
    columns, the target among them, are not looked at.

    CSV holds names of classes as they were learned: import them into a spreadsheet as text, where "=" begins a formula.

    Example: sparsact predict model.sparsact new.csv --out predicted.csv
    """
    import numpy as np

    from sparsact.cli.io import PIPE, read_model, readable
    from sparsact.cli.progress import bars
    from sparsact.datasets import encoded_table
    from sparsact.datasets.parts import files
    from sparsact.fit.progress import Stages
    from sparsact.fit.sums import answers

    out = None if out == Path(PIPE) else out
    check_writable(out, (".csv", ".parquet", ".feather", ".arrow"))
    tables = context.with_resource(readable(tables))
    check_apart({"--out": out}, [model, *files(tables)])
    learned, encoding = read_model(model)
    opened = encoded_table(tables, encoding)
    shown = False if out is None else progress
    with bars(shown) as show, Stages(show).stage("predicting", opened.n_rows) as on_rows, _writer(out) as write:
        header = np.empty((0, len(encoding.feature_names)), dtype=np.uint8)
        write(columns(answers(learned, encoding, header), encoding.target_names))
        for X in opened.points():
            write(columns(answers(learned, encoding, X), encoding.target_names))
            on_rows(len(X))


def columns(predicted: NDArray[Any], names: Sequence[str]) -> pa.Table:
    """Predictions as columns of a table."""
    import pyarrow as pa

    return pa.table(dict(zip(names, predicted.T if predicted.ndim == 2 else [predicted], strict=True)))


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
