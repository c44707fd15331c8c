"""``sparsact demo``: a real table, a fit of it, and the same commands for a table of one's own."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

from sparsact.cli.io import check_writable, why_no_report
from sparsact.cli.options import option, with_help
from sparsact.cli.terminal import say

OWN: Final = "sparsact fit TABLE.csv --target COLUMN --report report.html --out model.sparsact"


@with_help(
    folder=option("FOLDER", "Folder for the files; created if necessary."), force="Replace files of an earlier demo."
)
def demo(folder: Path = Path("demo"), force: bool = False, progress: bool | None = None) -> None:
    """Write the table of a fluorescent protein, fit it in seconds, and show the next commands.

    Each of the 8,192 rows is a variant: which of 13 mutations it has, and how bright it is. The model is a polynomial
    in combinations of up to four mutations.

    Example: sparsact demo
    """
    from sparsact.datasets import load_poelwijk
    from sparsact.passes.progress import showing

    table, report, model = (folder / f"protein{suffix}" for suffix in (".csv", ".html", ".sparsact"))
    if file := next((place for place in (folder, *folder.parents) if place.exists() and not place.is_dir()), None):
        raise ValueError(f"cannot make the folder {str(folder)!r}: {str(file)!r} is a file; choose another --folder.")
    folder.mkdir(parents=True, exist_ok=True)
    for path in (table, report, model):
        if path.exists() and not force:
            raise ValueError(f"{path} exists already; pass --force to replace it, or --folder for another place.")
        check_writable(path)

    import pyarrow as pa
    import pyarrow.csv

    from sparsact.fit.fit_table import fit_table

    pa.csv.write_csv(pa.table(load_poelwijk()), table)
    words = ["sparsact", "fit", str(table), "--target", "brightness"]
    with showing(progress) as show:
        result = fit_table(table, "brightness", degree=4, alpha=1.0, held_out_rows=True, progress=show)
    result.save(model)
    lacking = why_no_report()
    if not lacking:
        result.report(report, shlex.join([*words, "--degree", "4", "--alpha", "1"]))
    say(result)
    say(f"\nWritten: {table} (the table), {model} (the model), {lacking or f'{report} (open it in a browser)'}")
    say(f"Compare all models, in minutes: {shlex.join(words)}")
    say(f"Your own table: {OWN}")
