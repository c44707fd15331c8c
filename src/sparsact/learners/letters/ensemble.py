"""The ensemble of a :class:`~sparsact.LettersRegressor`: processes and networks, their curves and weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.gp.kernel import Array, Codes
from sparsact.learners.gp.posterior import Posterior
from sparsact.learners.letters.boosted import LetterTrees, fitted_boosted
from sparsact.learners.letters.perceptrons import Perceptrons, fitted_perceptrons
from sparsact.learners.letters.process import processes_by_fold
from sparsact.learners.stacking import stacking_weights
from sparsact.statistics.distinct_rows import distinct_rows
from sparsact.statistics.folds import deal_at_random, out_of_fold
from sparsact.statistics.isotonic import isotonic_curve

MARGIN: Final = 0.05  # of the range, beyond which the logit takes the range to end
SKEW: Final = 0.05  # of the standard deviation, where the inverse hyperbolic sine turns from linear to logarithmic
FEW_ROWS: Final = 1_000
FOLDS: Final = 5
DRAWS: Final = 10  # of rows, with replacement: their mean is smoother than one isotonic regression
FOLDS_OF_MANY: Final = 3  # of processes: a third of many rows is no loss

Warp = Callable[[Array], Array]
Model = Posterior | Perceptrons | LetterTrees


def as_given(y: Array) -> Array:
    """Targets as they are."""
    return y


def asinh(y: Array, linear: float = SKEW) -> Array:
    """Logarithms of the distances from the median, linear near it: for targets with a few far from the rest."""
    return np.asarray(np.arcsinh((y - np.median(y)) / (linear * y.std() or 1.0)))


def logit(y: Array) -> Array:
    """Logits of places in the range: for targets that pile up at both of its ends."""
    share = MARGIN + (1 - 2 * MARGIN) * (y - y.min()) / (np.ptp(y) or 1.0)
    return np.asarray(np.log(share / (1 - share)))


NETWORKS: Final = "networks"
TREES: Final = {"trees of 8 leaves": 8, "trees of 31 leaves": 31}
SCORES: Final[dict[str, Warp]] = {  # each of targets that are warped
    "process": as_given,
    "process of asinh": asinh,
    "process of logit": logit,
    NETWORKS: as_given,
}
SCORES_OF_QUANTITIES: Final[dict[str, Warp]] = dict.fromkeys(("process", NETWORKS, *TREES), as_given)
Members = tuple[tuple[str, bool], ...]
MEMBERS: Final[Members] = (  # what is weighted: scores in the units of y, and isotonic regressions on scores
    ("process", False),
    ("process", True),
    ("process of asinh", True),
    ("process of logit", True),
    ("networks", False),
    ("networks", True),
)
MEMBERS_OF_QUANTITIES: Final[Members] = (("process", True), *((name, False) for name in SCORES_OF_QUANTITIES))
# Options of software and machines set run times nearly without noise: from .2 and in 36 steps no kernel gets there.
PRECISE: Final = {"steps": 120, "first_noise": float(np.log(0.01))}
REWEIGHTINGS: Final = 5  # after which weights differ by less than a hundredth


@dataclass(frozen=True, eq=False)
class MemberScore:
    """The mean of models of targets less ``centre``, divided by ``scale``."""

    models: Sequence[Model]
    centre: float
    scale: float

    def values(self, codes: Codes) -> Array:
        """Predictions (m,) for rows of letters (m, n)."""
        return np.asarray(self.centre + self.scale * np.mean([one.values(codes) for one in self.models], axis=0))


def scored(
    fit: Callable[[Array], tuple[Sequence[Model], Array]], y: Array, weights: Array
) -> tuple[MemberScore, Array]:
    """Models of standardized targets, and values (m,) of each row by models that have not seen its fold."""
    centre = float(np.average(y, weights=weights))
    scale = float(np.sqrt(np.average((y - centre) ** 2, weights=weights))) or 1.0
    models, left_out = fit((y - centre) / scale)
    return MemberScore(models, centre, scale), centre + scale * left_out


@dataclass(frozen=True, eq=False)
class LetterEnsemble:
    """Weighted members, each a score or an isotonic regression on one.

    Parameters
    ----------
    scores : dict of MemberScore
        By the names in ``SCORES``, or in ``SCORES_OF_QUANTITIES``.
    curves : sequence of pairs of ndarray
        Knots and values of each of the members; empty where the score is taken as it is.
    weights : ndarray
        Weights of the members: none negative, with sum 1.
    codes : ndarray of shape (m, n)
        Letters of the rows.
    unit : float
        Unit of predictions: a power of two that keeps squares of targets from overflow.
    """

    scores: dict[str, MemberScore]
    curves: tuple[tuple[Array, Array], ...]
    weights: Array
    codes: Codes
    unit: float = 1.0

    @property
    def members(self) -> Members:
        """Scores that are weighted, and whether by a curve."""
        return MEMBERS_OF_QUANTITIES if TREES.keys() <= self.scores.keys() else MEMBERS

    def values(self, codes: Codes) -> Array:
        """Predictions (m,) for rows of letters (m, n)."""
        scores = {name: score.values(codes) for name, score in self.scores.items()}
        members = [
            np.interp(scores[name], *curve) if len(curve[0]) else scores[name]
            for (name, _), curve in zip(self.members, self.curves, strict=True)
        ]
        return np.asarray(self.unit * (np.stack(members, axis=1) @ self.weights))


def merged_rows(codes: Codes, y: Array, weights: Array) -> tuple[Codes, NDArray[np.intp], Array]:
    """Rows of the same letters as one: these (k, n), which of them each row is, (m,), and their total weights (k,).

    A letter that one of them alone has is unknown without it. So that no fold leaves the letter out, up to ``FOLDS``
    stand for such a row where it was measured several times. Equal targets are one measurement with a weight.
    """
    distinct, of_row, total = distinct_rows(codes, weights)
    alone = np.any([np.bincount(letters)[letters] == 1 for letters in distinct.T], axis=0)
    if len(distinct) == 1 or len(distinct) > FEW_ROWS or not alone.any():
        return distinct, of_row, total
    _, rank, _ = distinct_rows(np.stack([of_row, y], axis=1), weights)  # by rows, then by targets
    part = np.where(alone[of_row], rank % FOLDS, 0)
    keys, of_row, total = distinct_rows(np.stack([of_row, part], axis=1), weights)
    return distinct[keys[:, 0]], of_row, total


def fitted_ensemble(
    features: Sequence[Array],
    codes: Codes,
    y: Array,
    weights: Array,
    rng: np.random.Generator,
    *,
    quantities: bool = False,
) -> tuple[LetterEnsemble, Array]:
    """The ensemble of distinct rows in random order, and predictions (m,) of each row that have not seen its target.

    For these a row's scores come from members without its fold, and curves and weights from the other folds' scores.
    """
    scores: dict[str, MemberScore] = {}
    left_out: dict[str, Array] = {}
    folds = deal_at_random(len(y), FOLDS, rng)
    of_processes = folds if len(y) < FEW_ROWS else deal_at_random(len(y), FOLDS_OF_MANY, rng)
    settings: dict[str, Any] = PRECISE if quantities else {}
    processes = partial(processes_by_fold, features, codes, weights=weights, folds=of_processes, rng=rng, **settings)
    networks = partial(fitted_perceptrons, features, codes, weights=weights, folds=folds, rng=rng)
    boosted = partial(fitted_boosted, features, codes, weights=weights, folds=folds, rng=rng)
    special = {NETWORKS: networks} | {name: partial(boosted, leaves=leaves) for name, leaves in TREES.items()}
    for name, warp in (SCORES_OF_QUANTITIES if quantities else SCORES).items():
        scores[name], left_out[name] = scored(special.get(name, processes), warp(y), weights)

    def curve_of_others(score: Array, _: int, rows: NDArray[np.bool_]) -> Array:
        return np.interp(score[rows], *isotonic(score[~rows], y[~rows], weights[~rows], rng))

    curves, columns = [], []
    for name, curved in MEMBERS_OF_QUANTITIES if quantities else MEMBERS:
        score = left_out[name]
        curves.append(isotonic(score, y, weights, rng) if curved else (np.empty(0), np.empty(0)))
        columns.append(out_of_fold(folds, partial(curve_of_others, score)) if curved else score)
    predicted = np.stack(columns, axis=1)
    weighted = robust_weights if quantities else member_weights
    predictions = out_of_fold(
        folds, lambda _, rows: predicted[rows] @ weighted(predicted[~rows], y[~rows], weights[~rows])
    )
    return LetterEnsemble(scores, tuple(curves), weighted(predicted, y, weights), codes), predictions


def member_weights(predicted: Array, y: Array, weights: Array) -> Array:
    """Weights of members by their predictions (m, k) of rows that they have not seen."""
    root = np.sqrt(weights / weights.mean())
    return stacking_weights(root[:, None] * predicted, root * y, np.ones(predicted.shape[1]))


def robust_weights(predicted: Array, y: Array, weights: Array) -> Array:
    """The same by Huber's loss, which turns from square to linear at the median error, by reweighted least squares.

    A few configurations that no member predicts would else decide alone.
    """
    found = member_weights(predicted, y, weights)
    for _ in range(REWEIGHTINGS):
        errors = np.abs(predicted @ found - y)
        middle = float(np.median(errors)) or float(errors.max()) or 1.0
        found = member_weights(predicted, y, weights * middle / np.maximum(errors, middle))
    return found


def isotonic(scores: Array, y: Array, weights: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Knots and values of a mean of isotonic regressions of y on scores, each of rows drawn with replacement.

    Between knots the mean is linear, and constant beyond the ends: ``np.interp`` evaluates it.
    """
    order = np.lexsort((y, scores))
    rank = np.argsort(order)  # draws in this order are quick to sort
    scores, y, weights = scores[order], y[order], weights[order]
    draws = (np.sort(rank[rng.integers(0, len(y), len(y))]) for _ in range(DRAWS))
    curves = [isotonic_curve(scores[rows], y[rows], weights[rows]) for rows in draws]
    knots = np.unique(np.concatenate([x for x, _ in curves]))
    return knots, np.mean([np.interp(knots, x, values) for x, values in curves], axis=0)
