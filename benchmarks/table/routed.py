"""LSHRegressor beside its rivals, Theorem 4.1's learner, and the exact top k."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.table.cells import Line, Rows, spread, times, verdict

TOP_K: Final = "top-k d=8 t=4,096 k=1,024 m=1,024"
OURS, OVER = "LSHRegressor: RMSE", "LSHRegressor: RMSE over the best rival's"


def regression(rows: Rows) -> Iterator[Line]:
    """LSHRegressor at its defaults beside the best tuned rival of each table."""
    for table in [work for work, quantity in rows if quantity == OURS and (work, OVER) in rows]:
        errors = {
            quantity.removesuffix(": RMSE"): row["value"]
            for (work, quantity), row in rows.items()
            if work == table and quantity.endswith(": RMSE")
        }
        ours, over = errors["LSHRegressor"], rows[table, OVER]
        rivals = sorted((error, name) for name, error in errors.items() if not name.startswith("LSH"))
        bar = "-" if over.get("most") is None else f"at most {over['most']:g}x"
        best = "; ".join(f"{name} {error:.3f}" for error, name in rivals[:2])
        yield (f"LSHRegressor, {table}: RMSE", best, bar, f"{ours:.3f}: {times(over)}")


def slopes(rows: Rows) -> Iterator[Line]:
    """The rate of Theorem 4.1."""
    found = [
        (work, quantity, row) for (work, quantity), row in rows.items() if str(quantity).startswith("slope of the")
    ]
    for work, quantity, row in found:
        bar = f"{row['least']:.3f} to {row['most']:.3f}" if row.get("least") is not None else "-"
        yield (f"Theorem 4.1's learner, {work}: {quantity}", "-", bar, f"{row['value']:.3f}{verdict(row)}")


def top_k(rows: Rows) -> Iterator[Line]:
    """Exact top-k beside torch's."""
    for name in ("select + dot", "product + select + dot"):
        ratio = rows[TOP_K, f"{name}: times as fast"]
        ours, theirs = (spread(rows[TOP_K, f"{name}: {side}, seconds"]) for side in ("ours", "torch"))
        what = f"exact top-k, {name}, d = 8, t = 4,096, k = 1,024, batch 1,024"
        yield (what, "torch.topk + gather", "2x", f"{times(ratio)} ({ours} against {theirs})")


SECTIONS: Final = (regression, slopes, top_k)
