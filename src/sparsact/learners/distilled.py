"""The result of a distillation: the student, its errors beside the teacher's, and its time for a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.programs import Exportable

Array = NDArray[np.float64]
Function = Callable[[Array], Any]


class Measured(NamedTuple):
    """A number with the ends of its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


class DistillationTrial(NamedTuple):
    """A student that was tried: share of the targets in its labels, rows drawn, error to the truth, time for a row.

    The error is infinite where the student did not keep the limit of time.
    """

    student: str
    truth_share: float
    n_extra_rows: int
    error: float
    microseconds: float


@dataclass(frozen=True, eq=False)
class Distillation:
    """A student with its errors and times beside the teacher's; see :func:`distil`.

    Attributes
    ----------
    model : estimator
        The student, fitted to all rows that are not held out.
    student : str
        Its name.
    truth_share : float
        Share of the targets in its labels; the rest is the teacher's.
    error, teacher_error : Measured
        Root mean square errors of student and teacher to the truth, at the rows held out.
    ratio : Measured
        The first over the second; its interval pairs errors at the same rows.
    distance : Measured
        Root mean square difference of student and teacher.
    microseconds, teacher_microseconds : float
        Time for a row of a batch, measured here; the teacher's is NaN without a teacher.
    labels : ndarray of shape (m,)
        The teacher's prediction of each row by a fit without it.
    held_out : ndarray of intp
        Rows that neither has seen.
    trials : tuple of DistillationTrial
        What was tried, with errors at the rows that choose.
    answer : callable
        What :meth:`predictor` returns.
    """

    model: Any
    student: str
    truth_share: float
    error: Measured
    teacher_error: Measured
    ratio: Measured
    distance: Measured
    microseconds: float
    teacher_microseconds: float
    labels: Array
    held_out: NDArray[np.intp]
    trials: tuple[DistillationTrial, ...]
    answer: Function

    def predictor(self) -> Function:
        """Function from rows (m, d) to values (m,): that of hash tables or the network, else ``predict``."""
        return self.answer

    def export(self, path: str | Path, *, name: str | None = None, description: str = "") -> None:
        """Write the student as C99 or ONNX; see :meth:`LSHRegressor.export` and :meth:`LowDegreeRegressor.export`.

        Raises
        ------
        ValueError
            If the student has no program.
        """
        program = self.answer if isinstance(self.answer, Exportable) else self.model
        if not isinstance(program, Exportable):
            raise ValueError(
                f"a {type(program).__name__} has no program; pass `students` that have one, such as LSHRegressor."
            )
        program.export(path, name=name, description=description)

    def __str__(self) -> str:
        labels = f"{1 - self.truth_share:.0%} teacher, {self.truth_share:.0%} targets"
        tried = "  tried: {:<22} targets {:.0%}, {:,} rows drawn, error {:.4g}, {:.2g} us per row"
        slow = "  tried: {:<22} too slow"
        return "\n".join(
            [
                f"{self.student}, labels {labels}; root mean squared errors on {len(self.held_out):,} held-out rows:",
                f"  student error          {self.error}, {self.microseconds:.2g} us per row",
                f"  teacher error          {self.teacher_error}, {self.teacher_microseconds:.2g} us per row",
                f"  student / teacher      {self.ratio}",
                f"  student vs. teacher    {self.distance}",
                *(tried.format(*trial) if trial.error < inf else slow.format(*trial) for trial in self.trials),
            ]
        )


def root_mean(squares: Array, level: float) -> Measured:
    """Root of the mean of squares (m,), with an interval of its logarithm."""
    mean = float(squares.mean())
    reach = level * float(squares.std(ddof=1)) / (2 * mean * sqrt(len(squares))) if mean else 0.0
    return Measured(sqrt(mean), sqrt(mean) * exp(-reach), sqrt(mean) * exp(reach))


def root_ratio(ours: Array, theirs: Array, level: float) -> Measured:
    """Root of the ratio of the means of squares (m,) at the same rows."""
    if not theirs.any():
        return Measured(inf, inf, inf) if ours.any() else Measured(1.0, 1.0, 1.0)
    ratio = sqrt(float(ours.mean() / theirs.mean()))
    if not ratio:
        return Measured(0.0, 0.0, 0.0)
    reach = level * float((ours / ours.mean() - theirs / theirs.mean()).std(ddof=1)) / (2 * sqrt(len(ours)))
    return Measured(ratio, ratio * exp(-reach), ratio * exp(reach))
