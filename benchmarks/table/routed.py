"""LSHRegressor, Theorem 4.1's learner, and the exact top k."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.table.cells import Line, Rows, spread, times, verdict

TOP_K = "top-k d=8 t=4,096 k=1,024 m=1,024"
LSH = "f on a 4-dim subspace of R^64, m=65,536"
TRIES = ("noise 0.02 in x", "noise 0.1 in y", "a curved 4-manifold", "six directions for four")


def lsh(rows: Rows) -> Iterator[Line]:
    """LSHRegressor on the hidden Lipschitz function."""
    name = "LSHRegressor, 1-Lipschitz f on 4 dimensions in 64, m = 65,536"
    of = {quantity: row for (work, quantity), row in rows.items() if work == LSH}
    ours, theirs = of["LSHRegressor: RMSE"]["value"], of["8-NN: RMSE"]["value"]
    name += f", degree {of['LSHRegressor: degree']['value']:.0f}"
    ratio = of["RMSE over that of 8-NN"]
    yield (
        name + ", RMSE",
        "8-NN",
        "at most 0.70x",
        f"{times(ratio)} ({ours:.4f} against {theirs:.4f})",
    )
    rivals = {
        quantity.removesuffix(": RMSE"): row["value"]
        for quantity, row in of.items()
        if quantity.endswith(": RMSE") and not quantity.startswith(("LSH", "8-NN", "1-NN", "Theorem"))
    }
    best, ratio = min(rivals, key=lambda rival: rivals[rival]), of["RMSE over the best other's"]
    measured = f"{times(ratio)} (best: {best}, {rivals[best]:.4f})"
    yield ("the same", "the best of " + ", ".join(rivals), "at most 0.85x", measured)
    ratios = [
        of[f"LSHRegressor of degree 1: RMSE over {rival}"]["value"] for rival in ("that of 8-NN", "the best other's")
    ]
    yield (
        "the same, at the default degree 1",
        "8-NN; the best of the others",
        "-",
        f"{ratios[0]:.2f}x; {ratios[1]:.2f}x",
    )
    ratio = of["predictions/s over those of 8-NN"]
    speeds = [of[f"{side}: predictions/s"]["value"] / 1e3 for side in ("LSHRegressor", "8-NN")]
    measured = f"{times(ratio)} ({speeds[0]:,.0f}k against {speeds[1]:,.0f}k)"
    yield ("the same, predictions/s", "8-NN", "at least 4x", measured)
    row = of["LSHRegressor: fit"]
    yield ("the same, fit at a given width", "-", "5 s", spread(row) + verdict(row))
    for quantity, bar in (("a query by predictor()", "10 us"), ("a query by predict", "60 us")):
        yield (f"the same, {quantity}", "-", bar, spread(of[quantity], "us", 1e6) + verdict(of[quantity]))
    ratios = [(work, rows[work, "RMSE over that of 8-NN"]) for work in TRIES]
    measured = ", ".join(f"{work}: {times(row)}" for work, row in ratios)
    yield ("the same, harder", "8-NN", "below 1x", measured)


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


SECTIONS = (lsh, slopes, top_k)
