"""``sparsact inspect``: what a model consists of; of a network also its certificate, activity and spectrum."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from sparsact import files
from sparsact.cli.inspect_network import print_network, summarised
from sparsact.cli.io import check_report, encoding_of, load_model, network_in
from sparsact.cli.options import argument, option, with_help
from sparsact.cli.terminal import as_options, grid, shown, terminal
from sparsact.fit.member_names import shares_in_words
from sparsact.fit.term import CONSTANT, Term
from sparsact.reports.numbers import probability, signed_format

if TYPE_CHECKING:
    from sparsact.datasets import Encoding
    from sparsact.fit.candidates.network import Network
    from sparsact.learners.low_degree.estimator import LowDegree
    from sparsact.learners.lsh.estimator import LSHModel

Described = tuple[dict[str, Any], Callable[[], None]]  # as JSON holds it, and a function that prints it


@with_help(
    model=argument("MODEL", "A model of sparsact fit, or a saved network."),
    top=option("N", "Number of effects, or columns, to show, the strongest first.", min=1),
    report=option("FILE", "Write an HTML report here (networks only)."),
    reference=option(
        "'A=1,B=0'|SEQUENCE|A12V:G45D|TABLE",
        "Also show the effects of changes from this row, or from the first row of a table. Columns not named keep the "
        "wild type of the fit, or else the most frequent letter; bits are 0.",
    ),
    contrast=option(
        "A B",
        "Show instead the prediction with A minus the prediction with B: two mutations, sequences or values such as "
        "'A=1'. Other columns have the values of --reference.",
    ),
    measure=option(
        "uniform|data",
        "Distribution for variances of a polynomial. uniform: all combinations equally likely; data: each column with "
        "its own frequencies, independently.",
    ),
    time_limit=option("SECONDS", "Time limit for the certificate of a network.", min=0),
    random_state=option("N", "Seed of estimates by sampling.", min=0),
)
def inspect_model(
    context: typer.Context,
    model: Path,
    top: int = 20,
    report: Path | None = None,
    reference: str | None = None,
    contrast: tuple[str, str] | None = None,
    measure: str = "uniform",
    time_limit: float = 20.0,
    random_state: int = 0,
    as_json: bool = False,
) -> None:
    """Show a model's effects, or the size and activity of a network.

    Polynomials, Gaussian processes and ensembles: the strongest effects with 95 % intervals; for a polynomial also its
    weight by degree and the influence of each column. The effect of one column is the change of the prediction when the
    column switches from 0 to 1, averaged over all settings of the others. The effect of two columns is how much
    switching one on changes the effect of the other. With letters, effects belong to one letter or a pair of them.

    Hash tables (LSH): the layout, how full the buckets are, and for each column its slope in the linear trend (numbers
    standardised, bits as signs) and its share of the distance between rows.

    Sparsely activated networks: the size, the scale, the certificate, the number of active units, and the weight by
    degree, exact or estimated.

    Example: sparsact inspect model.sparsact --top 10
    """
    learned = load_model(model, f"make one with sparsact fit TABLE --target COLUMN --out {model.stem}.sparsact")
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
    from sparsact.datasets.columns import LogReal
    from sparsact.fit import effects
    from sparsact.fit.reading import LOGARITHMS

    encoding = encoding_of(learned, model)
    changes: dict[str, list[dict[str, Any]]] = {}
    if contrast is not None:
        changes = {"contrasts": effects.contrast(learned, encoding, *contrast, reference)}
    elif reference is not None:
        changes = {"reference_effects": effects.reference_effects(learned, encoding, reference, top=top)}
    found, show = described(learned, encoding, top, measure)
    if as_json:
        names = {"columns": list(encoding.feature_names), "notes": list(map(as_options, encoding.notes))}
        typer.echo(json.dumps({"kind": type(learned).__name__, **names, **found, **changes}, allow_nan=False))
        return
    if any(isinstance(one, LogReal) for one in encoding.targets):
        terminal().print(shown(LOGARITHMS))
    if contrast is not None:
        for one in changes["contrasts"]:
            known = one["low"] is not None
            bounds = f"   95 % interval [{one['low']:+.5g}, {one['high']:+.5g}]" if known else ""
            terminal().print(shown(f"{one['target']}: {' against '.join(contrast)}  {one['value']:+.5g}{bounds}"))
    else:
        show()
        _print_from_reference(changes.get("reference_effects", []))


def described(model: object, encoding: Encoding, top: int, measure: str = "uniform") -> Described:
    """What a model that was learned from a table consists of."""
    from sparsact.fit.candidates.network import Network
    from sparsact.fourier.measure import DATA, UNIFORM
    from sparsact.learners.low_degree.estimator import LowDegree
    from sparsact.learners.lsh.estimator import LSHModel
    from sparsact.validation.parameters import checked_option

    if checked_option(measure, "measure", (UNIFORM, DATA)) == DATA and not isinstance(model, LowDegree):
        raise ValueError("--measure data needs a polynomial (model low-degree or sparse); leave it out.")
    if isinstance(model, LowDegree):
        return _of_polynomial(model, encoding, top, measure)
    if isinstance(model, LSHModel):
        return _of_tables(model, encoding, top)
    return _of_units(model, encoding, top) if isinstance(model, Network) else _of_function(model, encoding, top)


def _of_function(model: Any, encoding: Encoding, top: int) -> Described:
    """A Gaussian process, an ensemble, a measurement model or a model of letters: its strongest effects."""
    from sparsact.datasets.columns import Real

    target = {"name": encoding.target_names[0], "terms": [term.to_dict() for term in terms_of(model, encoding, top)]}
    found: dict[str, Any]
    if hasattr(model, "weights_"):
        found = {"weights": model.weights_}
        text = ": " + shares_in_words(model.weights_)
    elif hasattr(model, "link_"):
        found = {"latent": model.latent, "link": model.link_, "bounds": model.censoring_}
        found |= {"censored_rows": int(model.n_censored_), "noise": float(model.noise_deviation_)}
        text = f": latent {model.latent}, link {model.link_}, bounds {model.censoring_}, noise {found['noise']:.3g}"
    else:
        found = {"noise_variance": model.noise_variance_, "rows": len(model.X_train_)}
        text = f" and {len(model.X_train_):,} distinct rows, noise of deviation {model.noise_variance_**0.5:.4g}"
    if hasattr(model, "letters_"):
        names, numbers = [name for name, _ in encoding.sites], [c.name for c in encoding.columns if isinstance(c, Real)]
        found["sites"] = {name: list(known) for name, known in zip([*names, *numbers], model.letters_, strict=True)}
        found["sites"] |= {name: sorted(found["sites"][name], key=float) for name in numbers}

    def show() -> None:
        terminal().print(shown(f"{type(model).__name__} of {len(encoding.feature_names)} columns{text}"))
        for site, known in found.get("sites", {}).items():
            terminal().print(shown(f"  {site}: {', '.join(known)}"))
        if encoding.real:
            terminal().print("  no effects, since columns are numbers; model low-degree reports effects.")
        else:
            _print_terms(target)

    return found | {"targets": [target]}, show


def terms_of(model: Any, encoding: Encoding, top: int) -> list[Term]:
    """The strongest effects, and the constant; of letters from the reference of the fit."""
    from sparsact.fit.candidates.gp import gp_terms
    from sparsact.fit.effects import listed_terms
    from sparsact.fit.explain import constant
    from sparsact.fit.reference import has_reference

    if encoding.real:  # numbers of few values have no effects of letters
        return []
    if has_reference(encoding):
        return list(listed_terms(model, encoding, 0, top))
    return [*gp_terms(model, encoding, top), constant(model, 0)]


def _of_units(model: Network, encoding: Encoding, top: int) -> Described:
    """Units of a network that was learned from a table; of the largest network for more than two classes."""
    from sparsact.fit.candidates.network import network_info

    found = network_info(model, encoding.feature_names)

    def show() -> None:
        terminal().print(f"{type(model).__name__} of {len(encoding.feature_names)} columns: {found.size}")
        table = grid(["columns with the largest weights"], ("output weight",), title=", ".join(encoding.target_names))
        for unit in found.units[:top]:
            table.add_row(shown(", ".join(unit.columns)), f"{unit.output:+.5g}")
        terminal().print(table)

    return found.to_dict(), show


def _of_tables(model: LSHModel, encoding: Encoding, top: int) -> Described:
    """The buckets of an LSH model, and the columns that they look at."""
    from sparsact.fit.candidates.lsh_details import column_weights, layout_info

    names, targets = encoding.feature_names, list(encoding.target_names)
    units = np.ones(int(model.table_.layout.n_targets))  # deviations of rows and targets are not kept
    tables = layout_info(model, column_weights(model, names, np.ones(len(names)), units))

    def show() -> None:
        _print_learned(model, encoding)
        for line in tables.lines():
            terminal().print(shown(line))
        numbers = ("slope of the trend", "share of the local distance")
        table = grid(["column"], numbers, title=", ".join(targets))
        for column in sorted(tables.columns, key=lambda column: -column.share)[:top]:
            table.add_row(shown(column.column), f"{column.trend:.5g}", f"{column.share:.2%}")
        terminal().print(table)

    found = {"rows": int(model.n_samples_seen_), "targets": targets, "layout": tables.layout, "fill": tables.fill}
    return found | tables.to_dict(), show


def _of_polynomial(model: LowDegree, encoding: Encoding, top: int, measure: str) -> Described:
    """The terms of a polynomial; of sites with letters from the reference of the fit."""
    from sparsact.fit.candidates.letters import components, frequencies
    from sparsact.fit.effects import Background, listed_terms
    from sparsact.fit.explain import constant, function_names, shares, terms
    from sparsact.fit.reference import has_reference
    from sparsact.fit.scores import LowDegreeInfo
    from sparsact.fourier.measure import DATA

    info, of_letters = LowDegreeInfo.of(model), has_reference(encoding)
    names, targets, functions = encoding.feature_names, [], function_names(encoding)
    of_sites = []
    if encoding.has_letters:
        at = Background.of(model, encoding)
        even = [np.ones(len(known)) for known in at.letters]
        of_sites = components(at, frequencies(model, at) if measure == DATA else even, len(functions))
    for i, name in enumerate(functions):
        by_degree, by_column = shares(model, i, measure)
        if of_sites:
            names = tuple(site for site, _ in encoding.sites)
            by_degree, by_column = of_sites[i].variance_by_degree(), of_sites[i].variance_by_site()
        found = [*(listed_terms(model, encoding, i, top) if of_letters else terms(model, i, encoding, top))]
        found += [] if of_letters else [constant(model, i)]
        influences = dict(zip(names, by_column.tolist(), strict=True))
        listed, weights = [term.to_dict() for term in found], by_degree.tolist()
        targets.append({"name": name, "terms": listed, "weight_by_degree": weights, "influences": influences})

    def show() -> None:
        _print_learned(model, encoding, f" of degree {info.degree}, {info.penalty} penalty {info.alpha:g},")
        for target in targets:
            _print_terms(target)
            weights = ", ".join(f"{d}: {weight:.4g}" for d, weight in enumerate(target["weight_by_degree"], 1))
            often = "all combinations equally frequent" if measure == "uniform" else "values as frequent as in the rows"
            terminal().print(f"variance by degree ({often})  {weights}")
            ranked = sorted(target["influences"].items(), key=lambda pair: -pair[1])[:10]
            shares = ", ".join(f"{name}: {one:.4g}" for name, one in ranked)
            terminal().print(shown(f"variance of the terms with a column  {shares}"))

    return {"rows": int(model.n_samples_seen_), **info.to_dict(), "measure": measure, "targets": targets}, show


def _print_learned(model: LSHModel | LowDegree, encoding: Encoding, described: str = "") -> None:
    rows, columns = int(model.n_samples_seen_), len(encoding.feature_names)
    terminal().print(f"{type(model).__name__}{described} learned from {rows:,} rows of {columns} columns")


def _print_terms(target: dict[str, Any]) -> None:
    table = grid(["columns"], ("effect", "low (95 %)", "high (95 %)", "q", "rows"), title=target["name"])
    effects = [(term["effect"], term["effect_low"], term["effect_high"]) for term in target["terms"]]
    spec = signed_format(effects)
    for term, numbers in zip(target["terms"], effects, strict=True):
        table.add_row(
            shown(" × ".join(term["columns"]) or CONSTANT),
            *("–" if x is None else f"{x:{spec}}" for x in numbers),
            probability(term["q_value"]),
            "–" if term["rows"] is None else f"{term['rows']:,}",
        )
    terminal().print(table)


def _print_from_reference(effects: list[dict[str, Any]]) -> None:
    for name in dict.fromkeys(row["target"] for row in effects):
        heads = ("at the reference", "low (95 %)", "high (95 %)", "averaged")
        table = grid(["changes from the reference"], heads, title=name)
        own = [row for row in effects if row["target"] == name]
        spec = signed_format((row["at_reference"], row["low"], row["high"]) for row in own)
        for row in own:
            values = (row[what] for what in ("at_reference", "low", "high", "averaged"))
            numbers = ("–" if value is None else f"{value:{spec}}" for value in values)
            table.add_row(shown(" × ".join(row["columns"])), *numbers)
        terminal().print(table)
