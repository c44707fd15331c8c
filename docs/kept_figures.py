"""Figures of the kept rows: named values for the prose, the table of what was measured, the bars that were missed."""

from __future__ import annotations

from pathlib import Path

from benchmarks.table import HEAD, lines, newest
from benchmarks.table.routed import OVER, regression

ROWS = Path(__file__).parents[1] / "results" / "benchmarks.jsonl"
FIT, TRAINED = "n=20 d=3 m=100,000", "4 layers of 512, 4096 units, 3.2% active"
PARITY = "parity of 4 among 12, m = 1,000"

# What a page writes between bars, to the row that it stands for and how it is printed.
FIGURES: dict[str, tuple[str, str, str]] = {
    "kin40k ours": ("kin40k", "LSHRegressor: RMSE", "{:.3f}"),
    "kin40k network": ("kin40k", "MLP: RMSE", "{:.3f}"),
    "kin40k boosting": ("kin40k", "CatBoost: RMSE", "{:.3f}"),
    "terrain over": ("terrain, 2-d", OVER, "{:.2f}"),
    "roll over": ("swiss roll in 50-d", OVER, "{:.2f}"),
    "cones over": ("cones", OVER, "{:.2f}"),
    "cones speed": ("cones", "rows a second over RBFInterpolator's", "{:.0f}"),
    "pol ours": ("pol", "LSHRegressor: RMSE", "{:.3f}"),
    "pol boosting": ("pol", "CatBoost: RMSE", "{:.3f}"),
    "pol network": ("pol", "MLP: RMSE", "{:.3f}"),
    "noise ours": ("photovoltaics + 194", "LSHRegressor: RMSE", "{:.3f}"),
    "noise boosting": ("photovoltaics + 194", "CatBoost: RMSE", "{:.3f}"),
    "fit speed": (FIT, "fit, times as fast", "{:.0f}"),
    "fit memory": (FIT, "memory, share of theirs", "{:.0%}"),
    "planted ours": ("Index_4, m = 800", "ours: share below 1 %", "{:.0%}"),
    "planted dense": ("Index_4, m = 800", "dense, best of 4: share below 1 %", "{:.0%}"),
    "planted low degree": ("Index_4, m = 800", "low degree, best of 7: share below 1 %", "{:.0%}"),
    "parity ours": (PARITY, "ours: share below 1 %", "{:.0%}"),
    "parity low degree": (PARITY, "low degree, best of 7: share below 1 %", "{:.0%}"),
    "screen speed": ("2048x8192 bfloat16 Gaussian", "block, times as fast", "{:.1f}"),
    "whole speed": (TRAINED, "auto, times as fast", "{:.2f}"),
    "whole bound": (TRAINED, "Amdahl bound of the methods chosen", "{:.2f}"),
}  # fmt: skip


def substitutions() -> str:
    """What Sphinx puts in the place of each name: ``.. |name| replace:: value``."""
    rows = newest(ROWS)
    return "\n".join(
        f".. |{name}| replace:: {form.format(rows[work, quantity]['value'])}"
        for name, (work, quantity, form) in FIGURES.items()
    )


def measured(path: Path) -> None:
    """Write the table of what was measured, to be included by ``benchmarks.rst``."""
    _write_table(path, [34, 20, 14, 32], list(lines(newest(ROWS))))


def regression_contest(path: Path) -> None:
    """Write the table of LSHRegressor beside its rivals, to be included by ``lsh.rst``."""
    _write_table(path, [30, 30, 14, 26], [HEAD, *regression(newest(ROWS))])


def missed_bars(path: Path) -> None:
    """Write the table of the bars that the newest rows miss, to be included by ``limits.rst``."""
    cells = [("benchmark and work", "quantity", "bar", "measured")]
    for row in newest(ROWS).values():
        if row.get("met") is False:
            bar = f"at least {row['least']:g}" if row.get("least") is not None else f"at most {row['most']:g}"
            cells.append((f"{row['benchmark']}: {row['work']}", row["quantity"], bar, f"{row['value']:.3g}"))
    _write_table(path, [44, 26, 15, 15], cells)


def _write_table(path: Path, widths: list[int], cells: list[tuple[str, str, str, str]]) -> None:
    """Write a page that is nothing but a table."""
    page = [".. list-table::", "   :header-rows: 1", f"   :widths: {' '.join(map(str, widths))}", ""]
    for first, *rest in cells:
        page += [f"   * - {first}", *(f"     - {cell}" for cell in rest)]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*page, ""]), encoding="utf-8")
