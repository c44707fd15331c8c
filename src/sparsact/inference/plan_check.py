"""Check a plan on the whole model as it is served, and give up what gains nothing there."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import Final

from torch import nn

from sparsact.inference.apply import PlannedBlock, Replacement, free_fast_paths
from sparsact.inference.batches import Batch, call, evaluating
from sparsact.inference.comparison import paired_seconds
from sparsact.inference.plan import WholeModel, refused
from sparsact.inference.timing import clock_of

MIN_SPEED_UP: Final = 1.02  # of the whole model: less is not worth the copies of weights, and may be noise
MAX_SLOWDOWN: Final = 0.99  # where no call shown is computed sparsely, so that nothing can be gained on them
ROUNDS: Final = 15


def is_worthwhile(whole: WholeModel, any_sparse: bool) -> bool:
    """Whether a model of these times should stay sparse."""
    return whole.speed_up >= (MIN_SPEED_UP if any_sparse else MAX_SLOWDOWN)


def checked(
    model: nn.Module, planned: Sequence[PlannedBlock], shown: Sequence[Batch], limit: float
) -> tuple[list[PlannedBlock], WholeModel | None]:
    """The planned blocks that make the whole model faster, and its times; None if all are left dense.

    If the model is not faster, the half of the blocks that promised least is made dense, and then the rest.
    """
    planned = list(planned)
    for attempt in range(2):
        if not any(replacement.layers for replacement, _ in planned):
            break
        whole, any_sparse = measured(model, [one for one, _ in planned], shown, limit)
        if is_worthwhile(whole, any_sparse):
            return planned, whole
        gains = sorted(plan.speed_up for replacement, plan in planned if replacement.layers)
        least = gains[len(gains) // 2] if attempt == 0 and len(gains) > 1 else float("inf")
        planned = [_dense_unless(model, one, one[1].speed_up >= least, whole) for one in planned]
        free_fast_paths(model)
    return planned, None


def _dense_unless(model: nn.Module, one: PlannedBlock, keep: bool, whole: WholeModel) -> PlannedBlock:
    replacement, plan = one
    if keep or not replacement.layers:
        return one
    replacement.remove(model)
    return Replacement(), refused(
        plan, f"the whole model runs {whole.speed_up:.2f} times as fast with the chosen blocks"
    )


def measured(
    model: nn.Module, replacements: Sequence[Replacement], shown: Sequence[Batch], limit: float
) -> tuple[WholeModel, bool]:
    """Times of the whole model on as many batches as ``limit`` allows, and whether any call was computed sparsely."""
    states = [state for one in replacements for state in one.layers.values()]
    with evaluating(model):
        call(model, shown[0])
        clock = clock_of(model.parameters())
        begin = clock.mark()
        call(model, shown[0])
        n_batches = int(limit / (2 * 5 * max(clock.seconds(begin, clock.mark()), 1e-9)))
    some = shown[: max(1, min(n_batches, len(shown)))]
    for state in states:
        state.calls = state.sparse_calls = 0
    rounds = paired_seconds(model, some, ROUNDS, limit)
    # Means over batches of their medians over rounds: most calls are too short for another process to come between.
    dense, sparse = (fmean(map(median, zip(*(times[side] for times in rounds), strict=True))) for side in range(2))
    whole = WholeModel.of([[sum(side) for side in both] for both in rounds], dense, sparse)
    return whole, any(state.sparse_calls for state in states)
