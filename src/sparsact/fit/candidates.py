"""Which kinds of model are tried on a table, and which of them is taken, by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from sparsact.fit.choose import Selected
from sparsact.fit.ensemble import EnsembleCandidate
from sparsact.fit.gp_candidate import ProcessCandidate
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.kind import CandidateKind, Facts
from sparsact.fit.latent_candidate import MeasurementCandidate
from sparsact.fit.layout import LSHCandidate
from sparsact.fit.letters_candidate import LettersCandidate
from sparsact.fit.network_candidate import NetworkCandidate
from sparsact.fit.scores import CandidateModel, Choices, CVCandidate
from sparsact.fit.sparse_candidate import LassoCandidate, SparseCandidate
from sparsact.fit.tree_candidate import TreesCandidate

CLASSES: Final[tuple[type[CandidateKind], ...]] = (  # in the order in which they are fitted
    LSHCandidate,
    SparseCandidate,
    LassoCandidate,
    ProcessCandidate,
    LettersCandidate,
    MeasurementCandidate,
    TreesCandidate,
    NetworkCandidate,
    EnsembleCandidate,
)
KINDS: Final = {each.kind: each() for each in CLASSES}

DOUBTED, FEW_ROWS = 20, 100
NEAR_ZERO: Final = 1e-12  # of the largest error, that of large penalties included: models this exact are equals


def kinds_to_try(facts: Facts) -> tuple[tuple[str, ...], str]:
    """Kinds of model besides polynomials, in the order in which they are fitted, and why no others.

    Raises
    ------
    ValueError
        If the kind that is asked for is of other tables.
    """
    options = facts.options
    if (asked := KINDS.get(options.model)) is not None:
        n_targets = len(facts.table.encoding.targets)
        if n_targets > 1 and options.model != "lsh":
            raise ValueError(
                f"{asked.name} has one target, and {n_targets} are named; name one of them, or choose model low-degree."
            )
        if refusal := asked.refusal(facts):
            raise ValueError(refusal)
        wanted = (*asked.needs, asked.kind)
        return tuple(kind for kind in KINDS if kind in wanted), f"model {options.model} was asked for"
    if options.model != "auto":
        return (), f"model {options.model} was asked for"
    if given := options.given:
        return (), f"{' and '.join(given)} {'were' if len(given) > 1 else 'was'} given"
    kinds = tuple(kind for kind, each in KINDS.items() if each.competes(facts))
    if options.weighted:
        kinds = tuple(kind for kind in kinds if KINDS[kind].takes_weights)
        return kinds, "other kinds of model take no weights of rows"
    several = "several functions of bits are learned, of which low-degree polynomials are made; model lsh tries another"
    return kinds, several if kinds == (TreesCandidate.kind,) else ""


def select_model(selected: Selected, scores: Mapping[str, HeldOutScores], reason: str, asked: str) -> Choices:
    """The outcome: the model asked for, or else the best held-out R2; of equals the polynomial.

    ``scores`` are those of other kinds of model; ``reason`` says why there are no more of them.
    """
    best, linear = selected.of_degree(selected.degree), selected.of_degree(1)
    name, others = "degree 1 (linear)", []
    if best.degree > 1:
        name, others = f"degree {best.degree}", [CandidateModel(name, linear.r2, linear.rmse)]
    found = {"low-degree": CandidateModel(name, best.r2, best.rmse)}
    for kind, held_out in scores.items():
        rmse = held_out.rmse()
        described = CandidateModel(KINDS[kind].name, held_out.mean_r2, rmse[0] if len(rmse) == 1 else None, kind=kind)
        if kind == TreesCandidate.kind:
            others.insert(0, described)
        else:
            found[kind] = described
    handicaps = {kind: KINDS[kind].handicap for kind in scores}
    safer = "ensemble" if "ensemble" in scores else "gp"
    if safer in scores and len(scores[safer].folds) < FEW_ROWS:  # of few rows, held-out errors say little
        handicaps[safer] = max(0.1, handicaps[safer] - DOUBTED / len(scores[safer].folds))
    errors = {kind: _error(model) * handicaps.get(kind, 1.0) for kind, model in found.items()}
    rounding = NEAR_ZERO * max(*errors.values(), *map(_error, selected.candidates))
    kind = asked if asked in found else min(errors, key=lambda kind: max(errors[kind], rounding))
    winner = found.pop(kind)
    if asked == "auto" and found:
        rival = min(found.values(), key=_error)
        reason = f"; {reason}" * bool(reason)
        compared = f"held-out R² {winner.r2.mean:.3f} against {rival.r2.mean:.3f}"
        if winner.rmse and rival.rmse and winner.r2.mean < rival.r2.mean:  # folds differ much in their variance
            compared = f"held-out RMSE {winner.rmse.mean:.4g} against {rival.rmse.mean:.4g}"
        reason = f"{compared} of {rival.name}, on the same {len(best.r2.folds)} folds{reason}"
    models = (replace(winner, chosen=True), *found.values(), *others)
    return Choices(reason, models, selected.candidates, kind, "" if kind == "low-degree" else KINDS[kind].terms_of)


def _error(model: CandidateModel | CVCandidate) -> float:
    """Mean squared error on held-out rows, of several functions 1 - R2.

    R2 of single folds would give folds of little variance the most weight.
    """
    return 1 - model.r2.mean if model.rmse is None else float(np.mean(np.square(model.rmse.folds)))
