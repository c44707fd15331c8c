"""Sharper statements than the paper's about frozen layers: against the best line, and in closed form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sparsact.experiments.claim import Claim, Verdict, every, within
from sparsact.experiments.interval import range_of
from sparsact.experiments.paper_b.frozen_claims import SPARSE, trained
from sparsact.experiments.paper_b.frozen_models import TARGETS
from sparsact.experiments.paper_b.frozen_pairs import DENSE, LINE, beats, common, depending_on_dense, ratios
from sparsact.experiments.rows import Rows

PLACE = "beyond the paper"
ACTIVE, WIDTH = 1024, 2048  # active units where training is judged, total width where closed forms are
Judge = Callable[[Rows], Verdict]


def solved(rows: Rows, target: str) -> Rows:
    """Rows of the closed form."""
    return rows.where(optimiser="ridge", target=target)


def judge_line(target: str, model: str, least: float, most: float) -> Judge:
    """Error over that of the best line, for every seed."""

    def judge(rows: Rows) -> Verdict:
        interval = range_of(ratios(trained(rows, target), model, LINE, at=ACTIVE))
        return within(interval, least=least, most=most, what=f"{model} / best line:")

    return judge


def judge_order(target: str) -> Judge:
    """DSM 25 % below DSM 50 % below dense, for every seed."""

    def judge(rows: Rows) -> Verdict:
        found = trained(rows, target)
        pairs = (("dsm-25", "dsm-50"), ("dsm-50", "dense-linear"))
        return every(
            *(within(range_of(ratios(found, *pair, at=ACTIVE)), most=1, what=" / ".join(pair)) for pair in pairs)
        )

    return judge


def judge_equal_width(target: str, model: str, least: float, most: float) -> Judge:
    """Closed form at equal total width: a DSM over ReLU without biases, for every seed."""

    def judge(rows: Rows) -> Verdict:
        interval = range_of(ratios(solved(rows, target), model, "dense-relu", at=WIDTH, by="width"))
        return within(interval, least=least, most=most, what=f"{model} / dense-relu:")

    return judge


def judge_solved(target: str) -> Judge:
    """Closed form at equal active units, against each kind of dense layer."""

    def judge(rows: Rows) -> Verdict:
        found = solved(rows, target)
        widths = common(found, (*DENSE, *SPARSE))
        return depending_on_dense(
            {kind: every(*(beats(found, model, kind, widths) for model in SPARSE)) for kind in DENSE}
        )

    return judge


def judge_hashed(target: str, models: Sequence[str], dense: str, least: float) -> Judge:
    """Closed form: random hash over dense at equal active units, for every seed and width."""

    def judge(rows: Rows) -> Verdict:
        found = solved(rows, target)
        verdicts = []
        for model in models:
            over = [ratio for at in common(found, (model, dense)) for ratio in ratios(found, model, dense, at=at)]
            verdicts.append(within(range_of(over), least=least, what=f"{model} / {dense}:"))
        return every(*verdicts)

    return judge


def _bar(name: str, statement: str, rule: str, judge: Judge) -> Claim:
    return Claim(
        name=name,
        place=PLACE,
        statement=statement,
        printed="",
        rule=rule,
        refuted_if="the ratio of errors is outside the limits on some seed, or significantly so in the mean "
        "where the rule is about means",
        judge=judge,
    )


def _of_target(target: str, ceiling: float) -> tuple[Claim, ...]:
    kind = TARGETS[target]
    line = (
        "holds if error / error of the best linear function lies within {} for every seed: RMSProp, 1024 active units"
    )
    return (
        _bar(
            f"{target}-linear-dense",
            f"A trained top layer over a linear frozen one is a linear predictor, and RMSProp finds the best ({kind}).",
            line.format("[0.98, 1.04]"),
            judge_line(target, "dense-linear", 0.98, 1.04),
        ),
        _bar(
            f"{target}-dsm-50",
            f"Top-k alone makes a linear layer non-linear: DSM 50 % ({kind}).",
            line.format("[0, 0.65]"),
            judge_line(target, "dsm-50", 0, 0.65),
        ),
        _bar(
            f"{target}-dsm-25",
            f"Top-k alone makes a linear layer non-linear: DSM 25 % ({kind}).",
            line.format("[0, 0.45]"),
            judge_line(target, "dsm-25", 0, 0.45),
        ),
        _bar(
            f"{target}-order",
            f"DSM 25 % beats DSM 50 %, which beats a linear dense layer ({kind}).",
            "holds if so for every seed: RMSProp, 1024 active units",
            judge_order(target),
        ),
        _bar(
            f"{target}-half-is-relu",
            f"DSM 50 % is as good as ReLU of the same total width: the upper half is about what is positive ({kind}).",
            "holds if their closed-form errors agree within 1 % for every seed, at total width 2048",
            judge_equal_width(target, "dsm-50", 0.99, 1.01),
        ),
        _bar(
            f"{target}-quarter-beats-relu",
            f"DSM 25 % beats ReLU without biases of the same total width ({kind}).",
            f"holds if the ratio of closed-form errors is {ceiling:.2f} at most for every seed, at total width 2048",
            judge_equal_width(target, "dsm-25", 0, ceiling),
        ),
        _bar(
            f"{target}-solved",
            f"With the best top layer too, DSM beats a dense layer at equal active units ({kind}).",
            (
                "for each kind of dense layer: holds if for both DSMs, at every number of active units, the 95 % "
                "interval of the mean ratio of errors lies below 1"
            ),
            judge_solved(target),
        ),
        _bar(
            f"{target}-hash-linear",
            f"A random hash over linear features is worse than the best linear function ({kind}).",
            "holds if the ratio of closed-form errors at equal active units is 1.003 at least for every seed and width",
            judge_hashed(target, ("random-hash-50", "random-hash-25"), "dense-linear", 1.003),
        ),
        _bar(
            f"{target}-hash-relu",
            f"A random hash over ReLU features is worse than the dense ReLU layer ({kind}).",
            "holds if the ratio of closed-form errors at equal active units is 1 at least for every seed and width",
            judge_hashed(target, ("random-hash-relu-50",), "dense-relu", 1.0),
        ),
    )


BARS = (*_of_target("polynomial", 0.8), *_of_target("hypercube", 0.5))
