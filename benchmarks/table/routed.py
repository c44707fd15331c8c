"""LSHRegressor beside its rivals, Theorem 4.1's learner, and the exact top k."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.regression_tasks import TABLES, TIES
from benchmarks.table.cells import Line, Rows, spread, times, verdict

TOP_K: Final = "top-k d=8 t=4,096 k=1,024 m=1,024"
OURS, AUTO = "LSHRegressor: RMSE", "LSHRegressor, base auto: RMSE"
OVER, AUTO_OVER = (f"{side} over the best rival's" for side in (OURS, AUTO))


def regression(rows: Rows) -> Iterator[Line]:
    """LSHRegressor at its defaults beside the best tuned rivals of each table."""
    for table in _tables(rows, OVER):
        if TABLES[table].kind != "held out" and not TABLES[table].group:
            yield _beside_rivals(rows, table, OURS, OVER)


def held_out(rows: Rows) -> Iterator[Line]:
    """LSHRegressor with the base that it chooses beside the best rivals of tables that no choice was made with."""
    for table in _tables(rows, AUTO_OVER):
        if TABLES[table].kind == "held out" and not TABLES[table].group:
            yield _beside_rivals(rows, table, AUTO, AUTO_OVER)


def grouped(rows: Rows) -> Iterator[Line]:
    """LSHRegressor beside its rivals where whole groups are left out."""
    for ours, over in ((OURS, OVER), (AUTO, AUTO_OVER)):
        for table in _tables(rows, over):
            if TABLES[table].group:
                yield _beside_rivals(rows, table, ours, over)


def _tables(rows: Rows, over: str) -> list[str]:
    return [str(work) for work, quantity in rows if quantity == over]


def _beside_rivals(rows: Rows, table: str, ours: str, over: str) -> Line:
    errors = {
        quantity.removesuffix(": RMSE"): row["value"]
        for (work, quantity), row in rows.items()
        if work == table and quantity.endswith(": RMSE")
    }
    ratio = rows[table, over]
    rivals = sorted((error, name) for name, error in errors.items() if not name.startswith("LSH"))
    bar = "-" if ratio.get("most") is None else f"at most {ratio['most']:g}x"
    best = "; ".join(f"{name} {error:.3f}" for error, name in rivals[:2])
    return (ours.replace(": RMSE", f", {table}: RMSE"), best, bar, f"{rows[table, ours]['value']:.3f}: {times(ratio)}")


def ties(rows: Rows) -> Iterator[tuple[str, ...]]:
    """What ties the test rows of each measured table to those learned from."""
    for table in [work for work, quantity in rows if quantity == TIES["seen"]]:
        seen, neighbours, runs, order = (rows[table, words]["value"] for words in TIES.values())
        yield (table, f"{seen:.1%}", f"{neighbours:.1%}", f"{runs:z.2f}", f"{order:z.2f}")


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
