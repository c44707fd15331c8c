"""``sparsact inspect``: of what a model consists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer


def inspect_model(
    context: typer.Context,
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A model of sparsact fit, or a saved network.", show_default=False),
    ],
    top: Annotated[int, typer.Option(min=1, metavar="N", help="How many of the largest coefficients to show.")] = 20,
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

    Of hash tables: how many buckets, how often a new input misses one, and which columns the directions take.

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
        raise ValueError("a report of a learned polynomial needs its table: use sparsact fit TABLE --report FILE.")
    hashed = hasattr(learned, "table_")
    describe, tell = (hash_description, _tell_hashed) if hashed else (description, _tell)
    told = describe(learned, encoding_of(learned, model), top)
    if as_json:
        typer.echo(json.dumps(told, allow_nan=False))
    else:
        tell(told)
    return None


def hash_description(model: Any, encoding: Any, top: int) -> dict[str, Any]:
    """A model by hashing as JSON holds it."""
    shares = dict(zip(encoding.feature_names, model.column_shares_.tolist(), strict=True))
    ranked = sorted(shares.items(), key=lambda pair: -pair[1])[:top]
    return {
        "kind": type(model).__name__,
        "rows": int(model.n_samples_seen_),
        "columns": list(encoding.feature_names),
        "notes": list(encoding.notes),
        "tables": int(model.n_tables),
        "hashes": int(model.n_hashes_),
        "width": float(model.width_),
        "degree": int(model.degree),
        "alpha": float(model.alpha_),
        "directions": str(model.directions_),
        "buckets": int(model.n_buckets_),
        "miss_rate": float(model.miss_rate_),
        "column_shares": dict(ranked),
    }


def _tell_hashed(told: dict[str, Any]) -> None:
    learned = f"learned from {told['rows']:,} rows of {len(told['columns'])} columns"
    typer.echo(f"{told['kind']} of {told['tables']} tables, {learned}")
    typer.echo(
        f"{told['hashes']} directions ({told['directions']}), cells {told['width']:.3g} wide, polynomials of degree "
        f"{told['degree']}, ridge penalty {told['alpha']:g}"
    )
    typer.echo(f"{told['buckets']:,} buckets, miss rate {told['miss_rate']:.2%}")
    shares = ", ".join(f"{name} {share:.3f}" for name, share in told["column_shares"].items())
    typer.echo(f"columns in the directions: {shares}")


def description(model: Any, encoding: Any, top: int) -> dict[str, Any]:
    """A model as JSON holds it."""
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


def _tell(told: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    console = Console(highlight=False)
    console.print(
        f"{told['kind']} of degree {told['degree']}, ridge penalty {told['alpha']:g}, "
        f"learned from {told['rows']:,} rows of {len(told['columns'])} columns"
    )
    console.print(f"solver {told['solver']}: {told['solver_reason']}")
    for target in told["targets"]:
        grid = Grid("columns", title=Text(target["name"]), title_justify="left")
        for heading in ("coefficient", "low (95 %)", "high (95 %)"):
            grid.add_column(heading, justify="right")
        for subset, *numbers in target["terms"]:
            grid.add_row(Text(" × ".join(subset)), *("–" if x is None else f"{x:.5g}" for x in numbers))
        console.print(grid)
        weights = ", ".join(f"{degree}: {weight:.4g}" for degree, weight in enumerate(target["weight_by_degree"], 1))
        console.print(f"weight by degree  {weights}")
        ranked = sorted(target["influences"].items(), key=lambda pair: -pair[1])[:10]
        console.print(Text("influence  " + ", ".join(f"{name}: {value:.4g}" for name, value in ranked)))
