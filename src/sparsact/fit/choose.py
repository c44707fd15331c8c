"""Which kinds of model are tried on a table, and which of them is taken, by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.fit.candidate import Facts
from sparsact.fit.candidates import candidates
from sparsact.fit.degrees import Selected
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.scores import CandidateModel, Choices, CVCandidate
from sparsact.statistics.simplest import simplest

AS_GOOD: Final = "it is the simplest within a standard error of the best"
DOUBTED: Final = 20
FEW_ROWS: Final = 100
NEAR_ZERO: Final = 1e-12  # of the largest error, that of large penalties included: models this exact are equals


def kinds_to_try(facts: Facts) -> tuple[tuple[str, ...], str]:
    """Kinds of model besides polynomials, in the order in which they are fitted, and why no others.

    Raises
    ------
    ValueError
        If the requested kind does not suit the table.
    """
    options, known = facts.options, candidates()
    if (asked := known.get(options.model)) is not None:
        n_targets = len(facts.table.encoding.targets)
        if n_targets > 1 and options.model != "lsh":
            raise ValueError(
                f"{asked.name} takes one target, and {n_targets} are named; name one, or choose model low-degree."
            )
        if refusal := asked.refusal(facts):
            raise ValueError(refusal)
        wanted = (*asked.needs, asked.kind)
        return tuple(kind for kind in known if kind in wanted), f"model {options.model} was asked for"
    if options.model != "auto":
        return (), f"model {options.model} was asked for"
    if given := options.given:
        return (), f"{' and '.join(given)} {'were' if len(given) > 1 else 'was'} given"
    kinds = tuple(kind for kind, each in known.items() if each.competes(facts))
    if options.weighted:
        kinds = tuple(kind for kind in kinds if known[kind].takes_weights)
        return kinds, "other kinds of model take no weights of rows"
    several = "with several targets only low-degree polynomials are compared; try model lsh too"
    return kinds, "" if any(known[kind].rank is not None for kind in kinds) else several


def select_model(selected: Selected, scores: Mapping[str, HeldOutScores], reason: str, asked: str) -> Choices:
    """The outcome: the model asked for, or else the simplest that is as good as the best on held-out rows.

    ``scores`` holds the held-out scores of other kinds of model; ``reason`` says why there are no more of them. Errors
    are compared times the kinds' handicaps, in the order of their ranks, by :func:`.simplest`.
    """
    known = candidates()
    ranks = {"low-degree": 0} | {kind: each.rank for kind, each in known.items() if each.rank is not None}
    best, linear = selected.of_degree(selected.degree), selected.of_degree(1)
    name, others = "degree 1 (linear)", []
    one_function = len(best.targets) == 1
    if best.degree > 1:
        name = f"degree {best.degree}"
        others.append(CandidateModel("degree 1 (linear)", linear.r2, linear.rmse if one_function else None))
    found = {"low-degree": CandidateModel(name, best.r2, best.rmse if one_function else None)}
    for kind, held_out in scores.items():
        rmse = held_out.rmse()
        described = CandidateModel(known[kind].name, held_out.mean_r2, rmse[0] if len(rmse) == 1 else None, kind=kind)
        if kind not in ranks:
            others.insert(0, described)
        else:
            found[kind] = described
    handicaps = {kind: known[kind].handicap for kind in scores}
    safer = "ensemble" if "ensemble" in scores else "gp"
    doubted = safer in scores and len(scores[safer].folds) < FEW_ROWS
    if doubted:  # of few rows, held-out errors say little
        handicaps[safer] = max(0.1, handicaps[safer] - DOUBTED / len(scores[safer].folds))
    kinds = sorted(found, key=ranks.__getitem__)
    errors = np.array([_errors(found[kind]) * handicaps.get(kind, 1.0) for kind in kinds])
    of_penalties = [_errors(candidate) for candidate in selected.candidates] if one_function else [np.ones(1)]
    rounding = NEAR_ZERO * float(max(np.mean(each) for each in [*errors, *of_penalties]))
    kind = asked if asked in found else kinds[simplest(errors, rounding)]
    winner = found.pop(kind)
    if asked == "auto" and found:
        rival = min(found.values(), key=lambda model: float(_errors(model).mean()))
        compared = _compared(winner, rival, is_safer=doubted and kind == safer)
        reason = f"{compared}, on the same {len(best.r2.folds)} folds{f'; {reason}' * bool(reason)}"
    models = (replace(winner, chosen=True), *found.values(), *others)
    return Choices(reason, models, selected.candidates, kind, "" if kind == "low-degree" else known[kind].terms_of)


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
