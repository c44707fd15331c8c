"""What each target of a fitted model consists of: terms with intervals, influences of columns, held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Encoding
from sparsact.datasets.columns import Classes, Real
from sparsact.fit.scores import Confusion, FoldScores
from sparsact.fit.sums import Prediction, as_numbers, class_numbers, values
from sparsact.hypercube import Subset

TERMS_KEPT = 200
TERMS_EXPLAINED = 20  # whose aliases are looked for
LARGEST_CUBE = 24
ROWS_FLIPPED = 200_000  # predictions for the influences
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Term:
    r"""The effect of a set of columns on the target, with its 95 % interval where one is known.

    The ``effect`` is in the table's own coding: what switching all bits of the set S from 0 to 1 changes in the fitted
    polynomial f beyond what the smaller sets change, averaged over all settings of the other bits, equally often,

    .. math:: \mathbb{E}_{x} \sum_{U \subseteq S} (-1)^{|S \setminus U|} f(x_{U \to 1,\, S \setminus U \to 0})
        = (-2)^{\text{bits in } S}\, \hat f(S).

    A column of numbers of the set goes up by one unit instead; other columns of numbers stay at 0. The ``coefficient``
    :math:`\hat f(S)`, from ``low`` to ``high``, belongs to the product of the columns in which a bit is a sign, +1
    where it is 0 and -1 where it is 1.

    A coefficient that the rows do not identify has no interval: other products, among them the ``aliases``, which equal
    its product up to sign on every row, can take its place. An effect is ``significant`` if its interval for all
    effects of the polynomial together (confidence 1 - 0.05 / number of effects, Bonferroni's rule) excludes 0.
    """

    subset: tuple[str, ...]
    coefficient: float
    low: float | None = None
    high: float | None = None
    identified: bool = True
    aliases: tuple[str, ...] = ()
    significant: bool = False
    n_bits: int = field(kw_only=True)

    @property
    def effect(self) -> float:
        """What the columns change together, beyond what smaller sets of them change."""
        return self.coefficient * self._factor

    @property
    def effect_low(self) -> float | None:
        """Lower end of the effect's 95 % interval."""
        return self._scaled(self.high if self.n_bits % 2 else self.low)

    @property
    def effect_high(self) -> float | None:
        """Upper end of the effect's 95 % interval."""
        return self._scaled(self.low if self.n_bits % 2 else self.high)

    def _scaled(self, end: float | None) -> float | None:
        return None if end is None else end * self._factor

    @property
    def _factor(self) -> int:
        factor: int = (-2) ** self.n_bits
        return factor

    @property
    def label(self) -> str:
        """Columns of the product, for people."""
        return " × ".join(self.subset)

    @property
    def bounds(self) -> str:
        """The interval, or why there is none; of the aliases three."""
        if self.identified:
            if self.low is None:
                return ""
            mark = "" if self.significant else "   not significant"
            return f"   [{self.effect_low:+.4g}, {self.effect_high:+.4g}]{mark}"
        more = f" and {len(self.aliases) - 3} more" if len(self.aliases) > 3 else ""
        same = f": same as {', '.join(self.aliases[:3])}{more}" if self.aliases else ""
        return f"   not identified by these rows{same}"

    def to_dict(self) -> dict[str, Any]:
        """Columns, coefficient and effect with their intervals, as JSON holds them."""
        of_coefficient = {"coefficient": self.coefficient, "low": self.low, "high": self.high}
        of_effect = {"effect": self.effect, "effect_low": self.effect_low, "effect_high": self.effect_high}
        return {"columns": list(self.subset)} | of_coefficient | of_effect | {"significant": self.significant}


@dataclass(frozen=True)
class TargetResult:
    """One target (or one class): how well it is predicted, and what the polynomial holds.

    ``weights[j]`` is the sum of squared coefficients of degree ``j + 1``, where the rows are the whole cube; else it is
    empty, as squares of coefficients are then no shares of a variance. ``influences`` are, column by column, the mean
    square over the rows of the part of the polynomial that holds it (empty where some column is a real number);
    ``actual`` and ``predicted`` are held-out rows, or a sample; ``predicted`` is None where none was made.
    """

    name: str
    r2: FoldScores
    linear_r2: FoldScores
    variance: float
    actual: NDArray[np.float64]
    predicted: NDArray[np.float64] | None
    weights: tuple[float, ...] = ()
    terms: tuple[Term, ...] = ()
    influences: tuple[tuple[str, float], ...] = ()

    @property
    def learned(self) -> bool:
        """Whether the held-out R2 is above 0, the R2 of the mean, by more than its spread."""
        return self.r2.mean > self.r2.deviation

    def to_dict(self, n_terms: int) -> dict[str, Any]:
        """As JSON holds it, with the largest terms only."""
        return {
            "name": self.name,
            **self.r2.to_dict(),
            "terms": [term.to_dict() for term in self.terms[:n_terms]],
            "not_identified": {t.label: list(t.aliases) for t in self.terms[:n_terms] if not t.identified},
            "weight_by_degree": list(self.weights),
            "influences": dict(self.influences),
        }

    def lines(self, n_terms: int) -> list[str]:
        """The largest terms, for a person."""
        known = "   [95 % interval]" if any(term.low is not None or not term.identified for term in self.terms) else ""
        found = [f"    effect  columns{known}"] if self.terms else []
        found += [f"{term.effect:>+10.4g}  {term.label}{term.bounds}" for term in self.terms[:n_terms]]
        if any(not term.identified for term in self.terms[:n_terms]):
            found.append(
                "Other products can take the place of those that are not identified, with the same predictions here."
            )
        return found


def terms(
    model: Any, target: int, encoding: Encoding, n_terms: int = TERMS_KEPT, n_explained: int = 0
) -> tuple[Term, ...]:
    """The largest coefficients of a target, by absolute value, with their intervals where the fit allows them.

    Of the first ``n_explained`` those that the rows do not identify have the products that equal theirs up to sign.
    """
    coef, subsets, names = coefficients(model, target), model.subsets_, encoding.feature_names
    signs = sign_features(model, encoding)
    largest = np.argsort(-np.abs(coef), kind="stable")[:n_terms]
    chosen = [subsets[i] for i in largest]
    bounds_of_all = intervals(model, target, chosen, 1 - (1 - CONFIDENCE) / max(1, len(subsets)))
    found = zip(
        chosen, largest, intervals(model, target, chosen), bounds_of_all, identification(model, chosen), strict=True
    )

    def label(subset: Subset) -> tuple[str, ...]:
        return tuple(names[i] for i in subset)

    return tuple(
        Term(
            label(subset),
            float(coef[place]),
            *bounds,
            bool(known),
            tuple(" × ".join(label(other)) or "a constant" for other in model.aliases(subset))
            if rank < n_explained and not known
            else (),
            widest[0] is not None and widest[1] is not None and not widest[0] <= 0 <= widest[1],
            n_bits=sum(signs[i] for i in subset),
        )
        for rank, (subset, place, bounds, widest, known) in enumerate(found)
    )


def sign_features(model: Any, encoding: Encoding) -> list[bool]:
    """Of each feature whether it is a bit that the polynomial takes as a sign, not as a number."""
    if model.domain_ == "real" and not encoding.real:
        return [False] * len(encoding.feature_names)  # bits that the caller wants as numbers, 0 and 1
    return [not isinstance(column, Real) for column in encoding.columns for _ in column.features]


def identification(model: Any, subsets: list[Subset]) -> NDArray[np.bool_]:
    """Whether the rows identify the coefficients; taken for granted of a file that does not say."""
    try:
        return np.asarray(model.identified(subsets))
    except ValueError:  # a file of an earlier version, without its statistic
        return np.ones(len(subsets), dtype=bool)


def coefficients(model: Any, target: int) -> NDArray[np.float64]:
    """Coefficients of one target, in the order of ``subsets_``."""
    return np.asarray(np.atleast_2d(model.coefficients_)[target])


def intervals(
    model: Any, target: int, subsets: list[Subset], confidence: float = CONFIDENCE
) -> list[tuple[float | None, float | None]]:
    """Confidence intervals of some coefficients; of None where nothing is left to judge by."""
    try:
        bounds = np.asarray(model.confidence_intervals(subsets, confidence))
    except ValueError:  # as many parameters as rows
        return [(None, None)] * len(subsets)
    of_target = bounds if bounds.ndim == 2 else bounds[target]
    return [(float(low), float(high)) if np.isfinite(low + high) else (None, None) for low, high in of_target]


def shares(model: Any, target: int, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums of squared coefficients: by degree from 1, and by column."""
    squares, subsets = coefficients(model, target) ** 2, model.subsets_
    sizes = np.array([len(subset) for subset in subsets])
    members = np.array([i for subset in subsets for i in subset], dtype=np.intp)
    by_degree: NDArray[Any] = np.bincount(sizes, squares, minlength=2)[1:]
    by_column: NDArray[Any] = np.bincount(members, np.repeat(squares, sizes), minlength=n)
    return by_degree, by_column


def covers_cube(model: Any) -> bool:
    """Whether every point of the cube was seen, and all equally often: squared coefficients are then shares."""
    n = model.n_features_in_
    if model.domain_ == "real" or n > LARGEST_CUBE or model.n_samples_seen_ < 2**n:
        return False
    rows = model.accumulator_.total().as_points()
    rows.deduplicate()
    weights = rows.weights.take(np.flatnonzero(rows.weights.nonzero())).to_float()
    return bool(len(weights) == 2**n and (weights == weights[0]).all())


def influences(model: Any, points: NDArray[Any]) -> NDArray[np.float64]:
    r"""Mean square, over rows of the table, of the part of each function that holds a column, (functions, columns).

    That part is :math:`(f(x) - f(x^i)) / 2`, with bit i of x flipped; over all points of the cube, equally often, its
    mean square is the influence of column i.
    """
    n = points.shape[1]
    points = points[: max(1, ROWS_FLIPPED // n)]
    whole = values(model, points)
    found = np.empty((whole.shape[1], n))
    for i in range(n):
        flipped = points.copy()
        flipped[:, i] = 1 - points[:, i] if model.encoding_ == "bits" else -points[:, i]
        found[:, i] = (((whole - values(model, flipped)) / 2) ** 2).mean(axis=0)
    return found


def scored_targets(
    encoding: Encoding, held_out: Prediction, r2: Sequence[FoldScores], linear_r2: Sequence[FoldScores]
) -> tuple[TargetResult, ...]:
    """Every target (or class) with its scores and its held-out rows."""
    actual = as_numbers(encoding.targets[0], held_out.actual).reshape(len(held_out.actual), -1)
    return tuple(
        TargetResult(
            name=name,
            r2=r2[i],
            linear_r2=linear_r2[i],
            variance=float(actual[:, i].var()) or 1.0,
            actual=actual[:, i],
            predicted=None if held_out.predicted is None else held_out.predicted[:, i],
        )
        for i, name in enumerate(function_names(encoding))
    )


def explained(
    targets: Sequence[TargetResult],
    model: Any,
    encoding: Encoding,
    points: NDArray[Any],
    found_terms: tuple[Term, ...] | None = None,
) -> tuple[TargetResult, ...]:
    """The targets with terms, those of a polynomial if none are given; of columns of bits also with influences."""
    of_bits = found_terms is not None or model.domain_ != "real"
    by_column = influences(model, points) if of_bits else None
    names = encoding.feature_names
    whole_cube = covers_cube(model) if found_terms is None else len(points) == len(model.X_train_) == 2 ** len(names)
    found = []
    for i, target in enumerate(targets):
        weights: tuple[float, ...] = ()
        if whole_cube:
            of_terms = found_terms is None
            by_degree = shares(model, i, len(names))[0] if of_terms else model.spectrum_.weight_by_degree()[1:]
            weights = tuple(by_degree.tolist())
        of_columns = () if by_column is None else tuple(zip(names, by_column[i].tolist(), strict=True))
        of_target = found_terms
        if of_target is None:
            of_target = terms(model, i, encoding, n_explained=TERMS_EXPLAINED)
        found.append(replace(target, weights=weights, terms=of_target, influences=of_columns))
    return tuple(found)


def function_names(encoding: Encoding) -> tuple[str, ...]:
    """Names of the fitted functions: the targets; of two classes the second, which is the positive one; else each."""
    target = encoding.targets[0]
    if not isinstance(target, Classes):
        return encoding.target_names
    return target.values if len(target.values) > 2 else target.values[1:]


def confusion(held_out: Prediction, encoding: Encoding) -> Confusion | None:
    """Actual against predicted classes, where the target is one of classes."""
    target = encoding.targets[0]
    if not isinstance(target, Classes) or held_out.predicted is None:
        return None
    n = len(target.values)
    pairs = held_out.actual[:, 0].astype(np.intp) * n + class_numbers(held_out.predicted)
    return Confusion(target.values, np.bincount(pairs, minlength=n * n).reshape(n, n))
