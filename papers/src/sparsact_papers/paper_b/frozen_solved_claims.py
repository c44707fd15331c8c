"""Sharper statements than the paper's about frozen layers: against the best line, and in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sparsact_papers.claims import Claim, Verdict, every, within
from sparsact_papers.intervals import range_of
from sparsact_papers.paper_b.frozen_claims import (
    DENSE,
    LINE,
    SPARSE,
    against_dense,
    common,
    ratios,
    trained,
)
from sparsact_papers.paper_b.frozen_models import TARGETS
from sparsact_papers.results import Rows

EQUIVALENT = {"least": 0.8, "most": 1.25}  # the limits that are usual in tests of equivalence
ACTIVE, WIDTH = 1024, 2048  # active units where training is judged, total width where closed forms are


def solved(rows: Rows, target: str) -> Rows:
    """Rows of the closed form."""
    return rows.where(optimiser="ridge", target=target)


def judge_line(rows: Rows, *, target: str, models: Sequence[str], limits: dict[str, float]) -> Verdict:
    """Error over that of the best line, for every seed."""
    found = trained(rows, target)
    over = {model: range_of(ratios(found, model, LINE, at=ACTIVE)) for model in models}
    return every(*(within(over[name], what=f"{name} / best line:", **limits) for name in over))


def judge_equal_width(rows: Rows, *, target: str, model: str, limits: dict[str, float]) -> Verdict:
    """Closed form at equal total width: a DSM over ReLU without biases, for every seed."""
    interval = range_of(ratios(solved(rows, target), model, "dense-relu", at=WIDTH, by="width"))
    return within(interval, what=f"{model} / dense-relu:", **limits)


def judge_hashed(rows: Rows, *, target: str, models: Sequence[str], dense: str) -> Verdict:
    """Closed form: random hash over dense at equal active units, for every seed and width."""
    found = solved(rows, target)
    verdicts = []
    for model in models:
        over = [ratio for at in common(found, (model, dense)) for ratio in ratios(found, model, dense, at=at)]
        verdicts.append(within(range_of(over), least=1.0, what=f"{model} / {dense}:"))
    return every(*verdicts)


def _of_target(target: str) -> tuple[Claim, ...]:
    kind = TARGETS[target]
    return (
        Claim(
            name=f"{target}-linear-dense",
            statement=f"RMSProp above a linear frozen layer finds the best linear function ({kind}).",
            printed="Table 1: flat in the width",
            rule="error over the best linear function's; holds if within [{least:g}, {most:g}], the usual limits of "
            "equivalence, for every seed: RMSProp, 1024 active units".format(**EQUIVALENT),
            refuted_if="the ratio is outside the limits on some seed",
            judge=partial(judge_line, target=target, models=("dense-linear",), limits=EQUIVALENT),
        ),
        Claim(
            name=f"{target}-top-k",
            statement=f"Top-k alone makes a linear layer non-linear: both DSMs beat the best linear function ({kind}).",
            rule="error over the best linear function's; holds if below 1 for every seed: RMSProp, 1024 active units",
            refuted_if="on some seed a DSM errs more than the best linear function",
            judge=partial(judge_line, target=target, models=SPARSE, limits={"most": 1.0}),
        ),
        Claim(
            name=f"{target}-half-is-relu",
            statement="DSM 50 % is as good as ReLU of the same total width: the upper half is about what is positive "
            f"({kind}).",
            rule="ratio of closed-form errors; holds if within [{least:g}, {most:g}], the usual limits of equivalence, "
            "for every seed, at total width 2048".format(**EQUIVALENT),
            refuted_if="the ratio is outside the limits on some seed",
            judge=partial(judge_equal_width, target=target, model="dsm-50", limits=EQUIVALENT),
        ),
        Claim(
            name=f"{target}-quarter-beats-relu",
            statement=f"DSM 25 % beats ReLU without biases of the same total width ({kind}).",
            rule="ratio of closed-form errors; holds if below 1 for every seed, at total width 2048",
            refuted_if="on some seed DSM 25 % errs more",
            judge=partial(judge_equal_width, target=target, model="dsm-25", limits={"most": 1.0}),
        ),
        Claim(
            name=f"{target}-solved",
            statement=f"With the best top layer too, DSM beats a dense layer at equal active units ({kind}).",
            rule="for each kind of dense layer: holds if for both DSMs, at every number of active units, the 95 % "
            "interval of the mean ratio of errors lies below 1",
            refuted_if="for each kind of dense layer some mean ratio of errors is significantly above 1",
            judge=lambda rows: against_dense(solved(rows, target), tuple(DENSE)),
        ),
        Claim(
            name=f"{target}-hash-linear",
            statement=f"A random hash over linear features is worse than the best linear function ({kind}).",
            rule="ratio of closed-form errors at equal active units; holds if 1 at least for every seed and width",
            refuted_if="at some seed and width the random hash errs less",
            judge=partial(
                judge_hashed, target=target, models=("random-hash-50", "random-hash-25"), dense="dense-linear"
            ),
        ),
        Claim(
            name=f"{target}-hash-relu",
            statement=f"A random hash over ReLU features is worse than the dense ReLU layer ({kind}).",
            rule="ratio of closed-form errors at equal active units; holds if 1 at least for every seed and width",
            refuted_if="at some seed and width the random hash errs less",
            judge=partial(judge_hashed, target=target, models=("random-hash-relu-50",), dense="dense-relu"),
        ),
    )


BARS = (*_of_target("polynomial"), *_of_target("hypercube"))
