"""Choose a method for each block by its time on this machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from math import nan
from statistics import median
from typing import Any, Final

from sparsact.inference.apply import PlannedBlock, Replacement
from sparsact.inference.block_profile import BlockProfile
from sparsact.inference.method_times import Times, block_output, time_methods
from sparsact.inference.methods import certified_replacement, exact_replacement
from sparsact.inference.sparse_linear import MAX_SHARE

MAX_TIME_RATIO: Final = 0.95  # to the dense time, of a method that may be chosen
DRIFT: Final = 1.25  # times the density of the sample, up to which calls are computed by the method chosen in any case
BATCHES: Final = (1, 4, 16, 64)  # rows of a call for which methods are timed, besides the sizes of the calls shown


def fastest(profiles: Sequence[BlockProfile], time_limit: float) -> list[PlannedBlock]:
    """Every block by the exact method that is fastest on this machine, or densely where none is faster.

    Methods are timed on the median number of rows of the calls shown, then on 1, 4, 16 and 64 rows and on the most,
    as far as they are faster on fewer.
    """
    blocks = [TimedBlock(i, one, _exact_candidates(one)) for i, one in enumerate(profiles)]
    runs = [partial(block_output, one.model, one.block) for one in profiles]
    samples = [one.sample for one in profiles]
    kinds = kinds_of(profiles)

    def time_all(rows: Sequence[int], tried: Sequence[dict[str, Replacement]], share: float) -> None:
        alike = [(kind, m, *found) for kind, m, found in zip(kinds, rows, tried, strict=True)]
        times = time_methods(profiles[0].model, runs, tried, samples, rows, share * time_limit, alike)
        for block, m, found in zip(blocks, rows, tried, strict=True):
            if found or not block.times:
                block.times[m] = times, tuple(found)

    time_all([one.rows for one in profiles], [one.candidates for one in blocks], 1 / 3)
    most = [max(one.rows_per_call) for one in profiles]
    for batch in (*([rows] * len(blocks) for rows in BATCHES), most):
        tried = [block.to_time(m) for block, m in zip(blocks, batch, strict=True)]
        if any(tried):
            rows = [min(m, len(sample)) for m, sample in zip(batch, samples, strict=True)]
            time_all(rows, tried, 1 / 8)
    return [block.decided() for block in blocks]


@dataclass
class TimedBlock:
    """A block of number ``index``, the replacements to choose from, and times by rows with the methods timed."""

    index: int
    profile: BlockProfile
    candidates: dict[str, Replacement]
    times: dict[int, tuple[Times, tuple[str, ...]]] = field(default_factory=dict)

    def to_time(self, rows: int) -> dict[str, Replacement]:
        """What to time on a number of rows: what is faster on fewer, and ``certified`` while nothing else is faster."""
        if rows in self.times or rows > len(self.profile.sample):
            return {}
        fewer = [m for m in self.times if m < rows]
        best = self.fastest(max(fewer)) if fewer else "certified"
        if best is None:
            return {}
        return {name: one for name, one in self.candidates.items() if best == "certified" or name == "exact"}

    def fastest(self, rows: int) -> str | None:
        """The fastest method for a number of rows; None if none is faster than dense."""
        times, methods = self.times[rows]
        faster = [name for name in methods if times.is_faster(name, self.index, MAX_TIME_RATIO)]
        return min(faster, key=lambda name: median(times.ratios(name, self.index))) if faster else None

    def seconds(self, rows: int) -> dict[str, float]:
        """Median times for a number of rows, by method."""
        times, methods = self.times[rows]
        return {name: times.median(name, self.index) for name in ("dense", *methods)}

    def decided(self) -> PlannedBlock:
        """The block under the method chosen, limited to the rows and the density at which it is faster."""
        profile, typical = self.profile, self.profile.rows
        seconds = self.seconds(typical)
        if obstacle := profile.obstacle("exact"):
            return profile.dense(obstacle, {"dense": seconds["dense"]})
        best = {rows: self.fastest(rows) for rows in sorted(self.times)}
        pays_below = profile.pays_below("exact", typical, seconds) if "exact" in seconds else nan
        if not any(best.values()):
            reason = f"more than {MAX_SHARE:.0%} of its units are active"
            reason = "no exact method is faster on this machine" if self.candidates else reason
            return profile.dense(reason, seconds, pays_below=pays_below)
        shares = [profile.pays_below(name, rows, self.seconds(rows)) for rows, name in best.items() if name]
        share = max(min(shares), DRIFT * profile.density)
        max_rows = max(rows for rows, name in best.items() if name)
        max_rows = sys.maxsize if max_rows >= BATCHES[-1] else max_rows  # seconds per row no longer change
        screened = [rows for rows, _ in takewhile(lambda one: one[1] == "certified", best.items())]
        method = "certified" if screened else "exact"
        self.candidates[method].set_limits(max_rows, share, max(screened, default=0))
        if typical > max_rows:
            seconds[method] = seconds["dense"]  # as calls of this many rows are computed
            few = "one row" if max_rows == 1 else f"at most {max_rows} rows"
            reason = f"faster for calls of {few}"
        else:
            reason, pays_below = "fastest here", share
            if screened and typical > screened[-1]:
                seconds["certified"] = seconds["exact"]  # as they are computed
        figures: dict[str, Any] = {"seconds": seconds, "max_rows": max_rows, "pays_below": pays_below}
        return profile.planned(self.candidates[method], method, reason, **figures)


def kinds_of(profiles: Sequence[BlockProfile]) -> list[int]:
    """Numbers that are equal for blocks of the same sizes, operations and dtype, with densities within a half."""
    firsts: list[tuple[Any, float]] = []
    found = []
    for one in profiles:
        shape = *one.sizes, one.block.gate is None, one.block.activation.name, one.sample.dtype
        alike = (
            i
            for i, (other, density) in enumerate(firsts)
            if shape == other and max(one.density, density) <= 1.5 * min(one.density, density) + 1e-3
        )
        kind = next(alike, len(firsts))
        if kind == len(firsts):
            firsts.append((shape, one.density))
        found.append(kind)
    return found


def _exact_candidates(profile: BlockProfile) -> dict[str, Replacement]:
    """The replacements to time, by method."""
    model, block = profile.model, profile.block
    if profile.obstacle("exact") or profile.density > MAX_SHARE:
        return {}
    found = {"exact": exact_replacement(model, block, device=profile.device, max_rows=sys.maxsize)}
    if not profile.obstacle("certified"):
        found["certified"] = certified_replacement(model, block, profile.sample.float(), sys.maxsize)
        found["certified"].layers[block.down] = found["exact"].layers[block.down]  # one copy, not two
    return found
