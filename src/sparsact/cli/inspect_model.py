"""``sparsact inspect``: of what a model consists."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from sparsact.cli.terminal import shown, terminal


def inspect_model(
    context: typer.Context,
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A model of sparsact fit, or a saved network.", show_default=False),
    ],
    top: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many of the largest coefficients, or columns, to show.")
    ] = 20,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an HTML report here (networks only).", show_default=False)
    ] = None,
    time_limit: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Time for the certificate of a network.")
    ] = 20.0,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of what is estimated by sampling.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Show of what a model consists.

    Of a learned polynomial: its strongest interactions with 95 % intervals, its weight by degree and its influences. A
    coefficient belongs to a product of signs: a column's sign is +1 where its bit is 0 and -1 where its bit is 1.

    Of hash tables (LSH): how they are made, how full their buckets are, and which columns matter: by the slope of the
    linear trend, for columns as the model sees them (numbers standardised, bits as signs), and by the share of each
    column in the distance that makes rows neighbours.

    Of a sparsely activated network: its size, scale and certificate, how many units are on at once, and its weight by
    degree, exact or estimated.

    Example: sparsact inspect model.sparsact --top 10
    """
    from sparsact.cli.model_file import encoding_of, load_model, network_in

    learned = load_model(model, f"make one with sparsact fit TABLE --target COLUMN --out {model.name}")
    network = network_in(learned)
    if network is not None:
        from sparsact.cli.inspect_network import inspect_network

        words = context.obj or ["inspect"]
        return inspect_network(
            network, model.name, words, report=report, time_limit=time_limit, seed=seed, as_json=as_json
        )
    if report is not None:
        raise ValueError("a report of a learned model needs its table: use sparsact fit TABLE --report FILE.")
    encoding = encoding_of(learned, model)
    of_tables = hasattr(learned, "bucket_counts_")
    told = description_of_tables(learned, encoding) if of_tables else description(learned, encoding, top)
    if as_json:
        typer.echo(json.dumps(told, allow_nan=False))
    elif of_tables:
        _tell_of_tables(told, top)
    else:
        _tell(told)
    return None


def description_of_tables(model: Any, encoding: Any) -> dict[str, Any]:
    """An LSH model as JSON holds it."""
    import numpy as np

    from sparsact.cli.fitting.layout_findings import as_plain, column_weights, lsh_summary

    n_functions = int(model.table_.layout.n_targets)
    names = encoding.feature_names
    slopes = column_weights(model, names, np.ones(len(names)), np.ones(n_functions))
    shares = model.column_shares_.tolist()  # in the deviations of the rows, which only the fit knew
    weights = [replace(slope, shares=(share,)) for slope, share in zip(slopes, shares, strict=True)]
    tables = lsh_summary(model, tuple(weights))
    return {
        "kind": type(model).__name__,
        "rows": int(model.n_samples_seen_),
        "columns": list(names),
        "targets": list(encoding.target_names),
        "notes": list(encoding.notes),
        "layout": tables.layout,
        "fill": tables.fill,
        "lsh": as_plain(tables),
    }


def description(model: Any, encoding: Any, top: int) -> dict[str, Any]:
    """A polynomial as JSON holds it."""
    from sparsact.cli.fitting.findings import function_names, shares, terms

    names, described = encoding.feature_names, []
    for i, name in enumerate(function_names(encoding)):
        by_degree, by_column = shares(model, i, len(names))
        described.append(
            {
                "name": name,
                "terms": [[list(t.subset), t.coefficient, t.low, t.high] for t in terms(model, i, names, top)],
                "weight_by_degree": by_degree.tolist(),
                "influences": dict(zip(names, by_column.tolist(), strict=True)),
            }
        )
    return {
        "kind": type(model).__name__,
        "rows": int(model.n_samples_seen_),
        "columns": list(names),
        "notes": list(encoding.notes),
        "degree": int(model.degree_),
        "alpha": float(model.alpha),
        "solver": str(model.solver_),
        "solver_reason": str(model.solver_reason_),
        "targets": described,
    }


def _tell_of_tables(told: dict[str, Any], top: int) -> None:
    from rich.table import Table as Grid

    console = terminal()
    console.print(f"{told['kind']} learned from {told['rows']:,} rows of {len(told['columns'])} columns")
    console.print(shown(told["layout"]))
    console.print(shown(told["fill"]))
    grid = Grid("column", title=shown(", ".join(told["targets"])), title_justify="left")
    for heading in ("slope of the trend", "share of the local distance"):
        grid.add_column(heading, justify="right")
    ranked = sorted(told["lsh"]["columns"], key=lambda column: -sum(column["shares"]))
    for column in ranked[:top]:
        grid.add_row(shown(column["column"]), f"{column['trend']:.5g}", f"{sum(column['shares']):.2%}")
    console.print(grid)


def _tell(told: dict[str, Any]) -> None:
    from rich.table import Table as Grid

    console = terminal()
    console.print(
        f"{told['kind']} of degree {told['degree']}, ridge penalty {told['alpha']:g}, "
        f"learned from {told['rows']:,} rows of {len(told['columns'])} columns"
    )
    console.print(shown(f"solver {told['solver']}: {told['solver_reason']}"))
    for target in told["targets"]:
        grid = Grid("columns", title=shown(target["name"]), title_justify="left")
        for heading in ("coefficient", "low (95 %)", "high (95 %)"):
            grid.add_column(heading, justify="right")
        for subset, *numbers in target["terms"]:
            grid.add_row(shown(" × ".join(subset)), *("–" if x is None else f"{x:.5g}" for x in numbers))
        console.print(grid)
        weights = ", ".join(f"{degree}: {weight:.4g}" for degree, weight in enumerate(target["weight_by_degree"], 1))
        console.print(f"weight by degree, over all combinations of bits equally often  {weights}")
        ranked = sorted(target["influences"].items(), key=lambda pair: -pair[1])[:10]
        console.print(shown("influence, likewise  " + ", ".join(f"{name}: {value:.4g}" for name, value in ranked)))
