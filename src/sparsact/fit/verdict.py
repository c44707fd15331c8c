"""What a fit has found, in one or two sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sparsact.fit.choices import Choices
    from sparsact.fit.scores import Confusion
    from sparsact.fit.target_result import TargetResult

FEW_ROWS: Final = 200
LEAST_SHARE: Final = 0.1  # of the variance, that is not called nothing even if the folds differ by more


@dataclass(frozen=True)
class Finding:
    """What was chosen, how well it predicts each target (or the classes), and from how many rows."""

    choices: Choices
    targets: Sequence[TargetResult]
    confusion: Confusion | None
    n_rows: int

    @property
    def learned(self) -> bool:
        """Whether any target is predicted better than by a constant.

        Of classes, a better accuracy or a better R2 will do: where one class is frequent, a model may know which rows
        are the likelier ones, and yet rightly never name the rare class.
        """
        return (self.confusion is not None and self.confusion.learned) or any(target.learned for target in self.targets)

    @property
    def verdict(self) -> str:
        """The finding in one or two sentences."""
        best = max(self.choices.candidates, key=lambda candidate: candidate.r2.mean)
        degree = None if self.choices.low_degree is None else self.choices.low_degree.degree
        known = [model for model in self.choices.models if model.r2.known]
        promising = max(known, key=lambda model: model.r2.mean, default=self.choices.models[0])
        name = self.choices.name[:1].upper() + self.choices.name[1:]
        ending = "" if self.choices.kind == "lsh" else "s"
        does, does_not = f"{name} predict{ending}", f"{name} do{'es' * bool(ending)} not predict"
        rows = f"rows that {'it has' if ending else 'they have'} not seen"
        if self.learned:
            return f"{does} {rows}: {self._scores()}."
        if best.degree != degree and best.r2.mean > best.r2.deviation:
            remedy = "model low-degree" if degree is None else f"degree {best.degree}"
            return (
                f"{does_not} {rows}: {self._scores()}. "
                f"Degree {best.degree} does, with held-out R² {best.r2}: choose {remedy}."
            )
        few = f" {self.n_rows} rows are few: more of them may show more." if self.n_rows < FEW_ROWS else ""
        if promising.r2.mean > LEAST_SHARE:
            is_sure = promising.r2.mean > promising.r2.deviation
            finding = f"{does_not} {rows}" if is_sure else "It is uncertain whether anything was found"
            much = "" if is_sure else ", and the folds differ by as much"
            highest = f"Of all models compared {promising.name} has the highest R², {promising.r2}{much}"
            return f"{finding}: {self._scores()}. {highest}.{few}"
        others = [model.name for model in self.choices.models if model.kind not in ("low-degree", "trees")]
        listed = " or ".join(filter(None, [", ".join(others[:-1]), *others[-1:]]))
        also = f", nor by {listed}," if listed else ""
        return (
            f"Nothing of degree ≤ {self.choices.highest_tried}{also} was found in these columns: {self._scores()}.{few}"
        )

    def _scores(self) -> str:
        if self.confusion is not None:
            return (
                f"held-out accuracy {self.confusion.accuracy:.1%}, against {self.confusion.majority:.1%} for always "
                f"naming the most frequent class, and R² {self.targets[0].r2} of the classes' indicators, where their "
                "frequencies give 0"
            )
        scores = [
            f"R² {target.r2}{of_target(self.targets, target)} (linear model {target.linear_r2.short}{self._trees()})"
            for target in self.targets
        ]
        return "held-out " + "; ".join(scores) + ", where predicting the mean gives 0"

    def _trees(self) -> str:
        """The score of boosted trees, for one target."""
        trees = next((model for model in self.choices.models if model.kind == "trees"), None)
        return f", boosted trees {trees.r2.short}" if trees and len(self.targets) == 1 else ""


def of_target(targets: Sequence[TargetResult], target: TargetResult) -> str:
    """Of which target something is said, where there are several."""
    return f" for {target.name}" if len(targets) > 1 else ""
