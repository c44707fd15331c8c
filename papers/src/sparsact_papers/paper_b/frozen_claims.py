"""What Figures 1a, 2a, 3, 4 and Table 1 of paper B claim of frozen layers, and what holds beyond, within a seed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from sparsact_papers.claims import Claim, Verdict, every, needed, only_if, within
from sparsact_papers.intervals import mean_of, range_of
from sparsact_papers.paper_b.frozen_models import TARGETS
from sparsact_papers.results import Rows

LINE: Final = "line"  # the best linear function, as an opponent
DENSE: Final = {"dense-linear": "linear", "dense-relu": "ReLU without biases", "dense-relu-biased": "ReLU with biases"}


def ratios(
    rows: Rows, model: str, other: str, *, at: int, other_at: int | None = None, by: str = "active"
) -> list[float]:
    """Test error of one model over that of another, seed by seed; ``by`` tells what ``at`` counts."""
    ones = rows.where(model=model, **{by: at})
    if other == LINE:
        return [row["mse / linear_mse"] for row in needed(ones, f"{model} at {at} {by}")]
    pairs = needed(
        ones.paired(rows.where(model=other, **{by: other_at or at}), "seed"), f"{model} against {other} at {at} {by}"
    )
    return [one["mse"] / beside["mse"] for one, beside in pairs]


def common(rows: Rows, models: Sequence[str], by: str = "active") -> list[int]:
    """Widths that all the models have rows for, in ascending order."""
    found = set.intersection(*(set(rows.where(model=model).column(by)) for model in models))
    return needed(sorted(found), f"a width of all of {', '.join(models)}")


def beats(rows: Rows, model: str, other: str, widths: Sequence[int]) -> Verdict:
    """Whether one model has the smaller error at every number of active units: the 95 % interval of the mean ratio."""
    means = {at: mean_of(ratios(rows, model, other, at=at)) for at in widths}
    verdict = every(*(within(mean, most=1) for mean in means.values()))
    hardest = max(means, key=lambda at: means[at].estimate)
    best, worst = min(mean.estimate for mean in means.values()), means[hardest]
    told = f"{model} / {other}: {best:.3g} at best, {worst} at worst ({hardest} active, {worst.n} seeds)"
    return Verdict(verdict.outcome, told)


def depending_on_dense(verdicts: dict[str, Verdict]) -> Verdict:
    """One verdict from the verdicts against each kind of dense layer."""
    held = {kind: verdict for kind, verdict in verdicts.items() if verdict.outcome == "holds"}
    rest = [verdict for kind, verdict in verdicts.items() if kind not in held]
    if not held or not rest:
        return every(*verdicts.values())
    condition = f"the frozen dense layer is {' or '.join(DENSE[kind] for kind in held)}"
    return only_if(condition, every(*held.values()), every(*rest))


SPARSE: Final = ("dsm-50", "dsm-25")
PRINTED: Final = {  # Table 1: active units to the errors
    "dense-linear": {1024: 0.01015, 2048: 0.01009, 4096: 0.01046},
    "dsm-50": {1024: 0.01014, 2048: 0.007438, 4096: 0.006115},
    "dsm-25": {1024: 0.009655, 2048: 0.005054, 4096: 0.001799},
}
TABLE: Final = "; ".join(
    f"{18 * active} FLOPs: " + ", ".join(f"{column[active]:.4g}" for column in PRINTED.values())
    for active in PRINTED["dsm-50"]
)


def trained(rows: Rows, target: str) -> Rows:
    """Rows of RMSProp."""
    return rows.where(optimiser="rmsprop", target=target)


def against_dense(found: Rows, kinds: Sequence[str]) -> Verdict:
    """DSM against each kind of dense layer at equal active units."""
    widths = common(found, (*kinds, *SPARSE))
    return depending_on_dense({kind: every(*(beats(found, model, kind, widths) for model in SPARSE)) for kind in kinds})


def _judge_dense(rows: Rows, target: str) -> Verdict:
    found = trained(rows, target)
    return against_dense(found, needed([kind for kind in DENSE if found.where(model=kind)], "a dense layer"))


def _judge_width(rows: Rows, target: str) -> Verdict:
    found = trained(rows, target)
    widths = needed(common(found, SPARSE), "widths", 2)
    grown = [
        within(
            range_of(ratios(found, model, model, at=widths[-1], other_at=widths[0])),
            most=1,
            what=f"{model}, {widths[-1]} / {widths[0]} active:",
        )
        for model in SPARSE
    ]
    return every(*grown, beats(found, "dsm-25", "dsm-50", widths))


def _judge_hash(rows: Rows, target: str) -> Verdict:
    found, hashed = trained(rows, target), ("random-hash-50", "random-hash-25")
    widths = common(found, ("dense-linear", *hashed, *SPARSE))
    worse = [beats(found, "dense-linear", model, widths) for model in hashed]
    return every(*worse, *(beats(found, model, "dense-linear", widths) for model in SPARSE))


def _judge_order(rows: Rows, target: str) -> Verdict:
    found, widths = trained(rows, target), list(PRINTED["dsm-50"])
    return every(beats(found, "dsm-25", "dsm-50", widths), beats(found, "dsm-50", "dense-linear", widths))


def _judge_numbers(rows: Rows, target: str) -> Verdict:
    verdicts = []
    for model, column in PRINTED.items():
        for active, printed in column.items():
            found = needed(trained(rows, target).where(model=model, active=active), f"{model} at {active} active units")
            interval = mean_of(found.array("mse") / printed)
            verdicts.append(within(interval, least=0.8, most=1.25, what=f"{model}, {active}: measured / printed"))
    return every(*verdicts)


def _judge_less(rows: Rows, target: str) -> Verdict:
    found = trained(rows, target)
    return depending_on_dense(
        {
            kind: within(
                range_of(ratios(found, "dsm-25", kind, at=1024, other_at=4096)),
                most=1,
                what=f"dsm-25 at 1024 / {kind} at 4096 active:",
            )
            for kind in ("dense-linear", "dense-relu")
        }
    )


def _judge_flops(rows: Rows) -> Verdict:
    sparse = [row for row in rows.where(optimiser="rmsprop") if row["model"] in SPARSE and row["target"] != "projected"]
    found = needed(sparse, "a DSM with n = 8")
    bare = [row["flops"] / (18 * row["active"]) for row in found]
    whole = [row["flops_with_routing"] / (18 * row["active"]) for row in found]
    return only_if(
        "the choice of the units is not counted",
        within(range_of(bare), least=1, most=1, what="active units alone / dense:"),
        within(range_of(whole), least=0.95, most=1.05, what="with the choice / dense:"),
    )


def _figure(target: str, place: str) -> tuple[Claim, ...]:
    kind = TARGETS[target]
    return (
        Claim(
            name=f"{target}-beats-dense",
            place=place,
            statement=f"On a {kind}, DSM outperforms the dense model at the same number of activated units.",
            printed="a figure",
            rule="for each kind of frozen dense layer: holds if, at every number of active units, the 95 % interval "
            "of the mean ratio of errors lies below 1 for DSM 50 % and DSM 25 %; all trained by RMSProp",
            refuted_if="for each kind of dense layer some ratio of errors is significantly above 1",
            judge=partial(_judge_dense, target=target),
        ),
        Claim(
            name=f"{target}-improves",
            place=place,
            statement=f"On a {kind}, DSM improves as its total width increases.",
            printed="a figure",
            rule="holds if, for every seed, the error at the most active units is below that at the fewest, for DSM "
            "50 % and 25 %, and DSM 25 % beats DSM 50 % at every number of active units (95 % interval of the mean)",
            refuted_if="some seed errs more at the most active units, or DSM 25 % significantly errs more than DSM 50 "
            "%",
            judge=partial(_judge_width, target=target),
        ),
    )


def _of_target(target: str) -> tuple[Claim, ...]:
    kind = TARGETS[target]
    return (
        Claim(
            name=f"{target}-random-hash",
            place="Figure 4",
            statement=f"On a {kind}, random hash models do worse and DSMs better than dense at equal active units.",
            printed="a figure",
            rule="holds if so for every share and number of active units, by the 95 % interval of the mean ratio "
            "(RMSProp, linear features)",
            refuted_if="at some share and number of active units a random hash significantly errs less than dense, or "
            "a DSM more",
            judge=partial(_judge_hash, target=target),
        ),
        Claim(
            name=f"{target}-table-order",
            place="Table 1",
            statement=f"Errors fall from dense over DSM 50 % to DSM 25 % at equal active units ({kind}).",
            printed=TABLE,
            rule="holds if so at 1024, 2048 and 4096 active units, by the 95 % interval of the mean ratio over seeds",
            refuted_if="at some number of active units the order is significantly another",
            judge=partial(_judge_order, target=target),
        ),
        Claim(
            name=f"{target}-table-numbers",
            place="Table 1",
            statement=f"The errors themselves, if the target is a {kind}.",
            printed=TABLE,
            rule="holds if for all nine the 95 % interval of the mean of measured / printed lies within [0.8, 1.25]",
            refuted_if="one of the nine ratios is significantly outside the limits",
            judge=partial(_judge_numbers, target=target),
        ),
        Claim(
            name=f"{target}-table-less",
            place="Section A.3, FLOPs",
            statement=f"DSM with 18k FLOPs has a smaller error than the dense model with 73k ({kind}; with the choice "
            "of units it costs as much as that).",
            printed="0.009655 against 0.01046",
            rule="for each kind of dense layer: holds if DSM 25 % has the smaller error for every seed",
            refuted_if="for each kind of dense layer DSM 25 % has the larger error on some seed",
            judge=partial(_judge_less, target=target),
        ),
    )


CLAIMS: Final = (
    *_figure("polynomial", "Figure 1a"),
    *_figure("hypercube", "Figure 2a"),
    *_figure("projected", "Figure 3"),
    *_of_target("polynomial"),
    *_of_target("hypercube"),
    Claim(
        name="table-flops",
        place="Table 1",
        statement="Models of one row of Table 1 use the same FLOPs.",
        printed="18432, 36864, 73728 = 18 per active unit",
        rule="holds if a DSM's count is within 5 % of the dense one's, without and with what choosing the units costs",
        refuted_if="a DSM's count differs from the dense one's by more than the limit, even without the choice of "
        "units",
        judge=_judge_flops,
    ),
)


EQUIVALENT: Final = {"least": 0.8, "most": 1.25}  # the limits that are usual in tests of equivalence
ACTIVE, WIDTH = 1024, 2048  # active units where training is judged, total width where closed forms are


def solved(rows: Rows, target: str) -> Rows:
    """Rows of the closed form."""
    return rows.where(optimiser="ridge", target=target)


def _judge_line(rows: Rows, *, target: str, models: Sequence[str], limits: dict[str, float]) -> Verdict:
    found = trained(rows, target)
    over = {model: range_of(ratios(found, model, LINE, at=ACTIVE)) for model in models}
    return every(*(within(over[name], what=f"{name} / best line:", **limits) for name in over))


def _judge_equal_width(rows: Rows, *, target: str, model: str, limits: dict[str, float]) -> Verdict:
    interval = range_of(ratios(solved(rows, target), model, "dense-relu", at=WIDTH, by="width"))
    return within(interval, what=f"{model} / dense-relu:", **limits)


def _judge_hashed(rows: Rows, *, target: str, models: Sequence[str], dense: str) -> Verdict:
    found = solved(rows, target)
    verdicts = []
    for model in models:
        over = [ratio for at in common(found, (model, dense)) for ratio in ratios(found, model, dense, at=at)]
        verdicts.append(within(range_of(over), least=1.0, what=f"{model} / {dense}:"))
    return every(*verdicts)


def _solved_of(target: str) -> tuple[Claim, ...]:
    kind = TARGETS[target]
    return (
        Claim(
            name=f"{target}-linear-dense",
            statement=f"RMSProp above a linear frozen layer finds the best linear function ({kind}).",
            printed="Table 1: flat in the width",
            rule="error over the best linear function's; holds if within [{least:g}, {most:g}], the usual limits of "
            "equivalence, for every seed: RMSProp, 1024 active units".format(**EQUIVALENT),
            refuted_if="the ratio is outside the limits on some seed",
            judge=partial(_judge_line, target=target, models=("dense-linear",), limits=EQUIVALENT),
        ),
        Claim(
            name=f"{target}-top-k",
            statement=f"Top-k alone makes a linear layer non-linear: both DSMs beat the best linear function ({kind}).",
            rule="error over the best linear function's; holds if below 1 for every seed: RMSProp, 1024 active units",
            refuted_if="on some seed a DSM errs more than the best linear function",
            judge=partial(_judge_line, target=target, models=SPARSE, limits={"most": 1.0}),
        ),
        Claim(
            name=f"{target}-half-is-relu",
            statement="DSM 50 % is as good as ReLU of the same total width: the upper half is about what is positive "
            f"({kind}).",
            rule="ratio of closed-form errors; holds if within [{least:g}, {most:g}], the usual limits of equivalence, "
            "for every seed, at total width 2048".format(**EQUIVALENT),
            refuted_if="the ratio is outside the limits on some seed",
            judge=partial(_judge_equal_width, target=target, model="dsm-50", limits=EQUIVALENT),
        ),
        Claim(
            name=f"{target}-quarter-beats-relu",
            statement=f"DSM 25 % beats ReLU without biases of the same total width ({kind}).",
            rule="ratio of closed-form errors; holds if below 1 for every seed, at total width 2048",
            refuted_if="on some seed DSM 25 % errs more",
            judge=partial(_judge_equal_width, target=target, model="dsm-25", limits={"most": 1.0}),
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
                _judge_hashed, target=target, models=("random-hash-50", "random-hash-25"), dense="dense-linear"
            ),
        ),
        Claim(
            name=f"{target}-hash-relu",
            statement=f"A random hash over ReLU features is worse than the dense ReLU layer ({kind}).",
            rule="ratio of closed-form errors at equal active units; holds if 1 at least for every seed and width",
            refuted_if="at some seed and width the random hash errs less",
            judge=partial(_judge_hashed, target=target, models=("random-hash-relu-50",), dense="dense-relu"),
        ),
    )


BARS: Final = (*_solved_of("polynomial"), *_solved_of("hypercube"))
