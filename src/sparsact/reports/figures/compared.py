"""Held-out R2 of a model by hashing beside other models and the mean."""

from __future__ import annotations

from sparsact.reports.figures.scores import plot
from sparsact.reports.frame import Frame
from sparsact.reports.hash_summary import HashedTarget

__all__ = ["frame", "plot"]


def frame(target: HashedTarget) -> Frame:
    """Mean, standard deviation and every fold of each model's R2."""
    models = {"hash tables": target.r2, **dict(target.others)}
    columns: Frame = {
        "model": [*models, "mean"],
        "mean R2": [*(spread.mean for spread in models.values()), 0.0],
        "standard deviation": [*(spread.deviation for spread in models.values()), 0.0],
    }
    folds = zip(*(spread.folds for spread in models.values()), strict=True)
    return columns | {f"fold {i + 1}": [*values, 0.0] for i, values in enumerate(folds)}
