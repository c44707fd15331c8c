"""Tables of one benchmark: a line for each work, a column for each quantity, from the rows that are kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.table.cells import Rows
from benchmarks.table.kept import kept


@dataclass(frozen=True)
class Contest:
    """Works of a benchmark that begin with some words, and quantities by the headings of their columns.

    A column is a quantity and how its value is printed: ``{}``, or ``{percent}`` for a hundred times that. Works that
    lack the first quantity have no line. ``prefix`` is left out of their names.
    """

    benchmark: str
    works: tuple[str, ...]
    columns: dict[str, tuple[str, str]]
    first: str = "work"
    prefix: str = ""

    def write(self, path: Path) -> None:
        """Write the page that is nothing but this table."""
        rows = kept()
        table = [[self.first, *self.columns], *(self._line(rows, work) for work in self._found(rows))]
        page = [".. list-table::", "   :header-rows: 1", "   :class: compact", ""]
        for first, *rest in table:
            page += [f"   * - {first}", *(f"     - {cell}" for cell in rest)]
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join([*page, ""]), encoding="utf-8")

    def _found(self, rows: Rows) -> list[str]:
        (needed, _), *_ = self.columns.values()
        works = (
            work for (work, quantity), row in rows.items() if row["benchmark"] == self.benchmark and quantity == needed
        )
        return [work for work in works if work.startswith(self.works)]

    def _line(self, rows: Rows, work: str) -> list[str]:
        cells = []
        for quantity, form in self.columns.values():
            row = rows.get((work, quantity))
            cells.append(form.format(row["value"], percent=100 * row["value"]) if row else "")
        return [work.removeprefix(self.prefix), *cells]


H100 = "NVIDIA H100 80GB HBM3 d=4096 s=16384 torch.bfloat16 "
SHARE, PERCENT, SECONDS = "{:.3f}", "{percent:.1f} %", "{:.2g} s"
WITHOUT = ("process without floor", "polynomial without floor", "boosted trees")
CONTESTS = {
    "autoencoders_contest": Contest(
        "autoencoders",
        ("autoencoder ",),
        {
            "load_sae": ("load_sae, times as fast", "{:.1f}"),
            "sparsify": ("sparsify, times as fast", "{:.1f}"),
            "torch": ("torch, seconds", "{:.2g} s"),
        },
        first="inputs and features, kind, rows of a call",
        prefix="autoencoder ",
    ),
    "letters_contest": Contest(
        "letters",
        ("",),
        {
            "ours": ("LettersRegressor: variance left", SHARE),
            **{
                side: (f"{side}: variance left", SHARE)
                for side in ("LightGBM", "MLP 128-128", "MLP 256-256", "Hamming process")
            },
            "ours over the best": ("ours over the best peer", "{:.2f}"),
            "inside": ("inside of 95 % intervals", PERCENT),
            "our CPU seconds, most": ("seconds, most", "{:.0f}"),
        },
        "task, share of its rows",
    ),
    "distilled": Contest(
        "distil",
        ("",),
        {
            "error over the teacher's": ("error over the teacher's", "{:.2f}"),
            "teacher, us a row": ("a row of a batch, teacher", "{:.1f}"),
            "student, us a row": ("a row of a batch", "{:.1f}"),
            "teacher, seconds": ("seconds of the teacher's fits", "{:.0f}"),
            "students, seconds": ("seconds beside the teacher's", "{:.0f}"),
        },
        "table, teacher",
    ),
    "floors": Contest(
        "measurement_models",
        ("additive", "pairs"),
        {
            "coefficients inside": ("coefficients inside", PERCENT),
            "false interactions a fit": ("false interactions", "{:.2f}"),
            "comes out additive": ("comes out additive", "{percent:.0f} %"),
            **{side: (f"variance left: {side}", SHARE) for side in ("polynomial", "process", *WITHOUT)},
        },
        "latent, floor",
    ),
    "antibody": Contest(
        "measurement_models",
        ("CR6261",),
        {side: (f"variance left: {side}", SHARE) for side in ("process", "polynomial", *WITHOUT)},
        "antigen, rows",
    ),
    "sparse_fourier_runs": Contest(
        "sparse_fourier",
        ("",),
        {
            "found": ("found of 1.5 limits", PERCENT),
            "runs with a false term": ("runs with a false term", "{percent:.0f} %"),
            "seconds": ("seconds", SECONDS),
        },
        "columns",
    ),
    "cube_gp_times": Contest(
        "cube_gp",
        ("cube",),
        {
            "fit": ("seconds", SECONDS),
            "all deviations": ("seconds of all deviations", SECONDS),
            "coefficients inside": ("coefficients inside", PERCENT),
            "values inside": ("values inside", PERCENT),
        },
        "columns, rows, kernel",
    ),
    "cube_gp_wide": Contest(
        "cube_gp",
        ("wide",),
        {
            **{side: (f"{side}: variance left", SHARE) for side in ("all rows", "4,096 rows", "degree 3", "LightGBM")},
            "values inside": ("values inside", PERCENT),
            "measurements inside": ("measurements inside", PERCENT),
        },
        "target",
    ),
    "sparse_fourier_compared": Contest(
        "sparse_fourier",
        ("compared",),
        {
            name: (f"{side}: error", "{:.2g}")
            for name, side in {
                "this": "SparseFourierRegressor",
                "pursuit, given s": "OMP, given s",
                "skglm, MCP": "skglm, MCP",
                "LassoCV": "LassoCV",
                "boosted trees": "HistGradientBoosting",
                "largest terms of LightGBM's spectrum": "LightGBM, its spectrum",
            }.items()
        },
        "target",
    ),
    "planted": Contest(
        "planted",
        ("Index", *(f"{family}, n = 20" for family in ("gates", "rotated gates", "caps", "cells", "pairs"))),
        {
            name: (f"{side}: median error", "{:.2g}")
            for name, side in {
                "ours": "ours",
                "true active sets": "true active sets",
                "ten starts of L-BFGS": "ten starts of L-BFGS",
                "dense": "dense, best of 4",
                "boosted trees": "boosted trees",
                "low degree": "low degree, best of 7",
            }.items()
        }
        | {"seconds of ours": ("fit of ours", "{:.2g}")},
        "planted",
    ),
    "gpu_products": Contest(
        "gpu",
        (H100,),
        {
            name: (f"{quantity}, times dense", "{:.2g}")
            for name, quantity in {
                "``down``": "down, sparse_product",
                "``down``, each row its own units": "down, own sets",
                "``down`` in int8": "down, int8",
                "up-projection behind a gate": "up, active_dot",
                "block with dense ``up``": "block, down sparse",
            }.items()
        },
        "units active, rows",
        H100,
    ),
}
