"""Which kinds of model are tried on a table, and which of them is taken, by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.fit.candidate import Facts, Fit
from sparsact.fit.candidates import candidates
from sparsact.fit.scores import CandidateModel, Choices, CVCandidate, Selected
from sparsact.statistics.simplest import simplest

AS_GOOD: Final = "it is the simplest within a standard error of the best"
DOUBTED: Final = 20
FEW_ROWS: Final = 100
NEAR_ZERO: Final = 1e-12  # of the largest error, that of large penalties included: models this exact are equals


def kinds_to_try(facts: Facts) -> tuple[tuple[str, ...], str]:
    """Kinds of model in the order in which they are fitted, and why no others.

    Raises
    ------
    ValueError
        If the requested kind does not suit the table.
    """
    options, known = facts.options, candidates()
    if (asked := known.get(options.model)) is not None:
        n_targets = len(facts.table.encoding.targets)
        if n_targets > 1 and not asked.takes_targets:
            raise ValueError(
                f"{asked.name} takes one target, and {n_targets} are named; name one, or choose model low-degree."
            )
        if refusal := asked.refusal(facts):
            raise ValueError(refusal)
        wanted = ("low-degree", *asked.needs, asked.kind)
        return tuple(kind for kind in known if kind in wanted), f"model {options.model} was asked for"
    if given := options.given:
        return ("low-degree",), f"{' and '.join(given)} {'were' if len(given) > 1 else 'was'} given"
    kinds = tuple(kind for kind, each in known.items() if each.competes(facts))
    if options.weighted:
        kinds = tuple(kind for kind in kinds if known[kind].takes_weights)
        return kinds, "other kinds of model take no weights of rows"
    several = "with several targets only low-degree polynomials are compared; try model lsh too"
    return kinds, "" if any(known[kind].rank for kind in kinds) else several


def select_model(selected: Selected, fits: Mapping[str, Fit], reason: str, asked: str) -> Choices:
    """The outcome: the model asked for, or else the simplest that is as good as the best on held-out rows.

    ``reason`` says why there are no more fits. Errors are compared times the kinds' handicaps, in the order of their
    ranks, by :func:`.simplest`.
    """
    known, others = candidates(), []
    linear, one_function = selected.of_degree(1), len(selected.candidates[0].targets) == 1
    polynomial = "degree 1 (linear)"
    if selected.degree > 1:
        others.append(CandidateModel(polynomial, linear.r2, linear.rmse if one_function else None))
        polynomial = f"degree {selected.degree}"
    found: dict[str, CandidateModel] = {}
    for kind, fit in fits.items():
        rmse, name = fit.held_out.rmse(), polynomial if kind == "low-degree" else known[kind].name
        described = CandidateModel(name, fit.held_out.mean_r2, rmse[0] if len(rmse) == 1 else None, kind=kind)
        if known[kind].rank is None:
            others.insert(0, described)
        else:
            found[kind] = described
    handicaps = {kind: known[kind].handicap for kind in found}
    safer = "ensemble" if "ensemble" in fits else "gp"
    doubted = safer in fits and len(fits[safer].held_out.folds) < FEW_ROWS
    if doubted:  # of few rows, held-out errors say little
        handicaps[safer] = max(0.1, handicaps[safer] - DOUBTED / len(fits[safer].held_out.folds))
    kinds = sorted(found, key=lambda kind: known[kind].rank or 0)
    errors = np.array([_errors(found[kind]) * handicaps[kind] for kind in kinds])
    of_penalties = [_errors(candidate) for candidate in selected.candidates] if one_function else [np.ones(1)]
    rounding = NEAR_ZERO * float(max(np.mean(each) for each in [*errors, *of_penalties]))
    kind = asked if asked in found else kinds[simplest(errors, rounding)]
    winner = found.pop(kind)
    if asked == "auto" and found:
        rival = min(found.values(), key=lambda model: float(_errors(model).mean()))
        compared = _compared(winner, rival, is_safer=doubted and kind == safer)
        reason = f"{compared}, on the same {len(linear.r2.folds)} folds{f'; {reason}' * bool(reason)}"
    models = (replace(winner, chosen=True), *found.values(), *others)
    return Choices(reason, models, selected.candidates, kind, known[kind].terms_of)


def _compared(winner: CandidateModel, rival: CandidateModel, *, is_safer: bool) -> str:
    """Why a model was chosen and not the best of the others."""
    name, ahead = "R²", winner.r2.mean >= rival.r2.mean
    ours, theirs = f"{winner.r2.short}", f"{rival.r2.short}"
    if winner.rmse and rival.rmse and not ahead:  # folds differ much in their variance, or have no R2
        name, ahead = "RMSE", winner.rmse.mean <= rival.rmse.mean
        ours, theirs = f"{winner.rmse.mean:.4g}", f"{rival.rmse.mean:.4g}"
    if ahead:
        return f"held-out {name} {ours} against {theirs} of {rival.name}"
    why = f"with fewer than {FEW_ROWS} rows it is the safer one" if is_safer else AS_GOOD
    return f"{why}, held-out {name} {ours} against {theirs} of {rival.name}"


def _errors(model: CandidateModel | CVCandidate) -> NDArray[np.float64]:
    """Mean squared error of each fold; of several functions 1 - R2, where it is defined.

    R2 of single folds would give folds of little variance the most weight.
    """
    if model.rmse is None:
        return np.asarray(np.nan_to_num(1 - np.array(model.r2.folds), nan=0.0))
    return np.asarray(np.square(model.rmse.folds))
