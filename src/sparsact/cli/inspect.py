"""``sparsact inspect``: what a model consists of; of a network also its certificate, activity and spectrum."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsact import files
from sparsact.cli.inspect_network import print_network, summarised
from sparsact.cli.io import check_report
from sparsact.cli.options import AsJson
from sparsact.cli.terminal import grid, shown, terminal
from sparsact.fit.term import CONSTANT

if TYPE_CHECKING:
    pass


def inspect_model(
    context: typer.Context,
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A model of sparsact fit, or a saved network.", show_default=False),
    ],
    top: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many of the strongest effects, or columns, to show.")
    ] = 20,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an HTML report here (networks only).", show_default=False)
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="'A=1,B=0'|TABLE",
            help="Also show what changes from this row do, such as a wild type: columns that are not named are 0. Or "
            "from the first row of a table.",
            show_default=False,
        ),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Time for the certificate of a network.")
    ] = 20.0,
    random_state: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of what is estimated by sampling.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Show what a model consists of.

    Of a Gaussian process, or of an ensemble and its weights: its strongest effects with 95 % posterior intervals. Of a
    learned polynomial: its strongest effects with 95 % intervals, its weight by degree and its influences. An effect is
    what switching the columns on together changes, beyond what fewer of them change, averaged over all settings of the
    others; where sites have letters, that of a letter or two, averaged over the letters of the others.

    Of hash tables (LSH): how they are made, how full their buckets are, and which columns matter: by the slope of the
    linear trend, for columns as the model sees them (numbers standardised, bits as signs), and by the share of each
    column in the distance that makes rows neighbours.

    Of a sparsely activated network: its size, scale and certificate, how many units are on at once, and its weight by
    degree, exact or estimated.

    Example: sparsact inspect model.sparsact --top 10
    """
    from sparsact.cli.io import encoding_of, load_model, network_in

    learned = load_model(model, f"make one with sparsact fit TABLE --target COLUMN --out {model.name}")
    network = network_in(learned)
    if network is not None and not hasattr(learned, "table_encoding_"):
        check_report(report)
        summary = summarised(network, model.name, context.obj or ["inspect"], time_limit, random_state)
        if report is not None:
            from sparsact.reports.page import network_page

            files.write(report, network_page(summary))
        if as_json:
            found = {"kind": "SparselyActivatedNetwork", **asdict(summary), "scale": summary.scale._asdict()}
            typer.echo(json.dumps(found, allow_nan=False))
        else:
            print_network(summary, report)
        return
    if report is not None:
        raise ValueError("a report of a learned model needs its table: use sparsact fit TABLE --report FILE.")
    encoding = encoding_of(learned, model)
    from_reference: dict[str, Any] = {}
    if reference is not None:
        from sparsact.fit.reference import reference_effects

        from_reference["reference_effects"] = reference_effects(learned, encoding, reference, top=top)
    if not hasattr(learned, "n_samples_seen_") and network is None:
        _show_function(learned, encoding, top, as_json, from_reference)
        return
    if not hasattr(learned, "n_samples_seen_"):
        _show_units(learned, encoding, top, as_json)
        return
    of_tables = hasattr(learned, "bucket_counts_")
    content = {
        "kind": type(learned).__name__,
        "rows": int(learned.n_samples_seen_),
        "columns": list(encoding.feature_names),
        "notes": list(encoding.notes),
        **(description_of_tables(learned, encoding) if of_tables else description(learned, encoding, top)),
        **from_reference,
    }
    if as_json:
        typer.echo(json.dumps(content, allow_nan=False))
    elif of_tables:
        _print_tables(content, top)
    else:
        _print_model(content)
        _print_from_reference(from_reference)


def _show_function(model: Any, encoding: Any, top: int, as_json: bool, from_reference: dict[str, Any]) -> None:
    """What a Gaussian process, an ensemble, a measurement model or a model of letters is, and its strongest effects."""
    terms, columns = terms_of(model, encoding, top), list(encoding.feature_names)
    target = {"name": encoding.target_names[0], "terms": [term.to_dict() for term in terms]}
    found: dict[str, Any]
    if hasattr(model, "weights_"):
        found = {"weights": model.weights_}
        described = ": " + ", ".join(f"{name} {weight:.3g}" for name, weight in model.weights_.items() if weight)
    elif hasattr(model, "link_"):
        found = {"latent": model.latent, "link": model.link_, "bounds": model.censoring_}
        found |= {"censored_rows": int(model.n_censored_), "noise": float(model.noise_deviation_)}
        described = (
            f": latent {model.latent}, link {model.link_}, bounds {model.censoring_}, noise {found['noise']:.3g}"
        )
    else:
        found = {"noise_variance": model.noise_variance_, "rows": len(model.X_train_)}
        described = f" and {len(model.X_train_):,} distinct rows, noise of deviation {model.noise_variance_**0.5:.4g}"
    if hasattr(model, "letters_"):
        found["sites"] = {name: list(known) for (name, _), known in zip(encoding.sites, model.letters_, strict=True)}
    if as_json:
        found = {"columns": columns, "notes": list(encoding.notes), **found, "targets": [target], **from_reference}
        typer.echo(json.dumps({"kind": type(model).__name__, **found}, allow_nan=False))
        return
    terminal().print(shown(f"{type(model).__name__} of {len(columns)} columns{described}"))
    for site, known in found.get("sites", {}).items():
        terminal().print(shown(f"  {site}: {', '.join(known)}"))
    if terms:
        _print_terms(target)
    else:
        terminal().print("no effects: the sites have more combinations of letters than are evaluated")
    _print_from_reference(from_reference)


def terms_of(model: Any, encoding: Any, top: int) -> list[Any]:
    """The strongest effects, and the constant; of letters in the mean over all combinations, equally often."""
    from sparsact.fit.candidates.gp import gp_terms
    from sparsact.fit.candidates.letters import components, mean_of_letters, terms_of_letters
    from sparsact.fit.explain import constant

    sites, found = components(model, encoding)
    if found:
        return [*terms_of_letters(found[0], sites, top), mean_of_letters(found[0])]
    if hasattr(model, "letters_"):
        return []  # more combinations than are evaluated
    return [*gp_terms(model, encoding, top), constant(model, 0)]


def _show_units(model: Any, encoding: Any, top: int, as_json: bool) -> None:
    """Units of a network that was learned from a table; of the largest network for more than two classes."""
    from sparsact.fit.candidates.network import network_info

    found = network_info(model, encoding.feature_names)
    if as_json:
        names = {"columns": list(encoding.feature_names), "notes": list(encoding.notes)}
        typer.echo(json.dumps({"kind": type(model).__name__, **names, "network": asdict(found)}, allow_nan=False))
        return
    console = terminal()
    console.print(f"{type(model).__name__} of {len(encoding.feature_names)} columns: {found.size}")
    table = grid(["columns that weigh most"], ("output weight",), title=", ".join(encoding.target_names))
    for unit in found.units[:top]:
        table.add_row(shown(", ".join(unit.columns)), f"{unit.output:+.5g}")
    console.print(table)


def description_of_tables(model: Any, encoding: Any) -> dict[str, Any]:
    """An LSH model as JSON holds it."""
    import numpy as np

    from sparsact.fit.candidates.lsh_details import column_weights, layout_info

    names = encoding.feature_names
    units = np.ones(int(model.table_.layout.n_targets))  # deviations of rows and targets are not kept
    tables = layout_info(model, column_weights(model, names, np.ones(len(names)), units))
    targets = list(encoding.target_names)
    return {"targets": targets, "layout": tables.layout, "fill": tables.fill, **tables.to_dict()}


def description(model: Any, encoding: Any, top: int) -> dict[str, Any]:
    """A polynomial as JSON holds it; of sites with letters its components."""
    from sparsact.fit.candidates.letters import are_identified, components, mean_of_letters, terms_of_letters
    from sparsact.fit.explain import constant, function_names, shares, terms
    from sparsact.fit.scores import LowDegreeInfo

    (sites, of_letters), names, described = components(model, encoding), encoding.feature_names, []
    for i, name in enumerate(function_names(encoding)):
        by_degree, by_column = shares(model, i, len(names))
        found: list[Any] = [*terms(model, i, encoding, top), constant(model, i)]
        if of_letters:
            names = tuple(site for site, _ in sites)
            by_degree, by_column = of_letters[i].variance_by_degree(), of_letters[i].variance_by_site()
            if not are_identified(model, found[:-1]):
                found = [*terms_of_letters(of_letters[i], sites, top), mean_of_letters(of_letters[i])]
        influences = dict(zip(names, by_column.tolist(), strict=True))
        listed, weights = [term.to_dict() for term in found], by_degree.tolist()
        described.append({"name": name, "terms": listed, "weight_by_degree": weights, "influences": influences})
    return {**LowDegreeInfo.of(model).to_dict(), "targets": described}


def _print_tables(content: dict[str, Any], top: int) -> None:
    console = terminal()
    console.print(f"{content['kind']} learned from {content['rows']:,} rows of {len(content['columns'])} columns")
    console.print(shown(content["layout"]))
    console.print(shown(content["fill"]))
    numbers = ("slope of the trend", "share of the local distance")
    table = grid(["column"], numbers, title=", ".join(content["targets"]))
    ranked = sorted(content["lsh"]["columns"], key=lambda column: -column["share"])
    for column in ranked[:top]:
        table.add_row(shown(column["column"]), f"{column['trend']:.5g}", f"{column['share']:.2%}")
    console.print(table)


def _print_terms(target: dict[str, Any]) -> None:
    table = grid(["columns"], ("effect", "low (95 %)", "high (95 %)", "q"), title=target["name"])
    for term in target["terms"]:
        numbers = [term[name] for name in ("effect", "effect_low", "effect_high")]
        q_value = "–" if term["q_value"] is None else f"{term['q_value']:.2g}"
        table.add_row(
            shown(" × ".join(term["columns"]) or CONSTANT),
            *("–" if x is None else f"{x:+.5g}" for x in numbers),
            q_value,
        )
    terminal().print(table)


def _print_from_reference(found: dict[str, Any]) -> None:
    for name in dict.fromkeys(row["target"] for row in found.get("reference_effects", ())):
        table = grid(["changes from the reference"], ("at the reference", "averaged"), title=name)
        for row in found["reference_effects"]:
            if row["target"] == name:
                numbers = (f"{row[what]:+.5g}" for what in ("at_reference", "averaged"))
                table.add_row(shown(" × ".join(row["columns"])), *numbers)
        terminal().print(table)


def _print_model(content: dict[str, Any]) -> None:
    console = terminal()
    console.print(
        f"{content['kind']} of degree {content['degree']}, {content['penalty']} penalty {content['alpha']:g}, "
        f"learned from {content['rows']:,} rows of {len(content['columns'])} columns"
    )
    console.print(shown(f"solver {content['solver']}: {content['solver_reason']}"))
    for target in content["targets"]:
        _print_terms(target)
        weights = ", ".join(f"{degree}: {weight:.4g}" for degree, weight in enumerate(target["weight_by_degree"], 1))
        console.print(f"weight by degree, over all combinations equally often  {weights}")
        ranked = sorted(target["influences"].items(), key=lambda pair: -pair[1])[:10]
        console.print(shown("influence, likewise  " + ", ".join(f"{name}: {value:.4g}" for name, value in ranked)))
