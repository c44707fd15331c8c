"""The method of each block of a model, its gain, and the errors of quantisation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite, nan
from typing import Any, Final, Self

from sparsact.inference.output_error import OutputQuality


@dataclass(frozen=True)
class BlockPlan:
    """The method by which a block is computed.

    Attributes
    ----------
    block : str
        Its name.
    method : str
        One of ``dense``, ``exact``, ``certified``, ``approximate``.
    reason : str
        Reason for the choice.
    density : float
        Mean share of units that are active for a sample input.
    rows : tuple of int
        Smallest, median and largest number of rows in the block's calls on the given inputs.
    share : float
        Share of these calls in which the block was computed by the method: 0 if they have too many rows, switch on too
        many units, or never reach the layers of the block.
    seconds : dict of str to float
        Median time of the block for the median number of rows, by each method that was timed on this machine; empty if
        none was. For a method that is not used for that many rows, the dense time.
    bound : float
        Bytes of weights that the dense block reads over the fewest bytes that the method can read.
    max_rows : int
        Largest number of rows in a call that uses the method.
    quality : OutputQuality or None
        Quality of an approximation, measured on inputs that it was not calibrated on.
    pays_below : float
        Density up to which the method, or ``exact`` where the block is dense, is faster than dense for calls of as many
        rows as those shown, estimated from its times and the bytes that more active units would read; NaN where nothing
        was timed. Calls of a higher density are computed densely.
    """

    block: str
    method: str
    reason: str
    density: float = nan
    seconds: dict[str, float] | None = None
    bound: float = 1.0
    max_rows: int = 0
    rows: tuple[int, int, int] | None = None
    share: float = 0.0
    quality: OutputQuality | None = None
    pays_below: float = nan

    @property
    def speed_up(self) -> float:
        """Time of the dense block over the time of the chosen method; NaN if they were not timed."""
        seconds = self.seconds or {}
        if "dense" not in seconds or self.method not in seconds:
            return nan
        return seconds["dense"] / seconds[self.method]

    @property
    def share_of_bound(self) -> float:
        """The speed-up over its bound."""
        return self.speed_up / self.bound


@dataclass(frozen=True)
class WholeModel:
    """Times of a whole model under its plan, dense and sparse in turns on the inputs shown.

    Attributes
    ----------
    dense, sparse : float
        Mean over batches of the median seconds of a batch over rounds.
    rounds : int
    low, high : float
        Smallest and largest ratio of a round; NaN in files of version 0.1.

    Examples
    --------
    >>> WholeModel(2e-3, 1e-3, 15).speed_up
    2.0
    """

    dense: float
    sparse: float
    rounds: int
    low: float = nan
    high: float = nan

    @classmethod
    def of(cls, rounds: Sequence[Sequence[float]], dense: float, sparse: float, **figures: Any) -> Self:
        """Of these times, with the spread of the ratio of the two times of each round."""
        ratios = [dense / sparse, *(one / other for one, other in rounds)]
        return cls(dense, sparse, len(rounds), min(ratios), max(ratios), **figures)

    @property
    def speed_up(self) -> float:
        """Time of the dense model over that of the sparse one."""
        return self.dense / self.sparse

    def __str__(self) -> str:
        spread = f" [{self.low:.2f}, {self.high:.2f}]" if self.low == self.low else ""
        return (
            f"whole model: {1e3 * self.dense:.3g} ms dense, {1e3 * self.sparse:.3g} ms sparse, {self.speed_up:.2f} "
            f"times as fast{spread} ({self.rounds} rounds)"
        )


@dataclass(frozen=True)
class LayerQuantization:
    r"""Effect of quantisation on one linear layer.

    Attributes
    ----------
    layer : str
        Its name.
    error : float
        :math:`\|y - y'\| / \|y\|` of its outputs over the inputs shown, y' quantised; NaN if it was not.
    reason : str
        Reason why it keeps float weights; empty if it was quantised.
    smoothed : bool
        Whether its inputs are scaled by powers of two before they are quantised, and its weights by their inverses,
        because a few inputs are much larger than the rest.

    Examples
    --------
    >>> import sparsact as sa
    >>> import torch
    >>> from torch import nn
    >>> model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
    >>> plan = sa.plan_of(sa.sparsify(model, "exact", torch.randn(20, 8), weights="int8"))
    >>> [(one.layer, 0 < one.error < 0.1) for one in plan.layers]
    [('0', True), ('2', True)]
    """

    layer: str
    error: float = nan
    reason: str = ""
    smoothed: bool = False


@dataclass(frozen=True)
class HeadPlan:
    """A head that computes the outputs that can be among the k largest.

    Attributes
    ----------
    layer : str
        Its name.
    k : int
    outputs : int
        Number of outputs of the layer.
    share : float
        Mean share of outputs that were computed on the given inputs.
    bound : float
        Bytes of weights that the dense head reads over the bytes that this head reads.

    Examples
    --------
    >>> print(HeadPlan("lm_head", 50, 50_272, 0.004, 3.94))
    head lm_head: the 50 largest of 50,272 outputs, 0.4% of them computed, bound 3.94
    """

    layer: str
    k: int
    outputs: int
    share: float
    bound: float

    def __str__(self) -> str:
        return (
            f"head {self.layer}: the {self.k} largest of {self.outputs:,} outputs, {self.share:.1%} of them computed, "
            f"bound {self.bound:.2f}"
        )


@dataclass(frozen=True)
class Plan:
    """Plans of all blocks of a model, its times, and the errors of quantisation on the inputs shown.

    In a quantised model, a block with the plan ``"dense"`` reads all integers; ``"exact"`` reads the integers of units
    whose code is not that of 0. Outputs are the same, except that int4 weights of the second layer are then grouped by
    unit. ``density`` is the share of such units, and ``seconds["float"]`` the time before quantisation.

    Attributes
    ----------
    choices : tuple of BlockPlan
        In the order of the model.
    whole : WholeModel or None
        None if ``"auto"`` left all blocks dense, and under other methods.
    left_dense : tuple of str
        Modules with weight matrices that form no block, such as experts or quantised layers, each with the reason.
    weights : {"keep", "int8", "int4"}
        Type of the integer weights, or ``"keep"`` for float weights.
    layers : tuple of LayerQuantization
        Every linear layer of a quantised model.
    block_errors : tuple of float
        Relative error of each quantised block's output for up to 32 single inputs.
    output_error, worst_output_error : float
        Error, by quantisation, of the logits that the model returns for the batches shown, or of all tensors if it
        names none so: the root mean square over their rows (tokens) and the largest of a row, both relative to the root
        mean square of the rows of the float model.
    head : HeadPlan or None
        Plan of a head that computes only its largest outputs.
    timed_on : str
        Threads and processor with which times were measured; empty in files of version 0.1.
    """

    choices: tuple[BlockPlan, ...]
    whole: WholeModel | None = None
    left_dense: tuple[str, ...] = ()
    weights: str = "keep"
    layers: tuple[LayerQuantization, ...] = ()
    block_errors: tuple[float, ...] = ()
    output_error: float = nan
    worst_output_error: float = nan
    head: HeadPlan | None = None
    timed_on: str = ""

    @property
    def is_dense(self) -> bool:
        """Whether all layers are left as they were."""
        return self.head is None and not self.is_quantized and all(one.method == "dense" for one in self.choices)

    @property
    def is_quantized(self) -> bool:
        """Whether the weights are integers."""
        return self.weights != "keep"

    @property
    def forecast(self) -> float:
        """Expected speed-up of the whole model over the dense one, on inputs like the ones given.

        As it was measured; 1 where all blocks are dense, NaN where the whole model was not timed.
        """
        if self.whole is not None:
            return self.whole.speed_up
        return 1.0 if self.is_dense else nan

    def to_dict(self) -> dict[str, Any]:
        """All figures, as JSON holds them; None where not measured or infinite."""
        rows = [asdict(one) | {"speed_up": one.speed_up, "share_of_bound": one.share_of_bound} for one in self.choices]
        whole = None if self.whole is None else finite(asdict(self.whole) | {"speed_up": self.whole.speed_up})
        blocks, forecast = [finite(row) for row in rows], finite(self.forecast)
        found = {"blocks": blocks, "left_dense": list(self.left_dense), "whole": whole, "forecast": forecast}
        found["timed_on"] = self.timed_on
        found |= {} if self.head is None else {"head": finite(asdict(self.head))}
        if not self.is_quantized:
            return found
        for block, error in zip(blocks, self.block_errors, strict=True):
            block["error"] = finite(error)
        layers = [finite(asdict(one)) for one in self.layers]
        errors = {name: finite(getattr(self, name)) for name in ("output_error", "worst_output_error")}
        return found | {"weights": self.weights, "layers": layers, **errors}

    def to_json(self) -> str:
        """:meth:`to_dict` as JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def __str__(self) -> str:
        """A table with units in its headings, a legend, and what was measured on the whole model."""
        headings = ("density %", "pays to %", "rows", "calls %", "dense µs", "sparse µs", "gain x", "bound x")
        lines = [_line("block", "method", headings, "why")]
        for one in self.choices:
            seconds = one.seconds or {}
            figures = (
                _formatted(100 * one.density, ".1f"),
                _formatted(100 * one.pays_below, ".0f"),
                _range(one.rows),
                f"{100 * one.share:.0f}",
                *(_formatted(1e6 * seconds.get(method, nan), ".0f") for method in ("dense", one.method)),
                _formatted(one.speed_up, ".2f"),
                _formatted(one.bound, ".2f"),
            )
            lines.append(_line(one.block, one.method, figures, one.reason))
        lines += LEGEND
        timed = self.timed_on and (self.whole or any(one.seconds for one in self.choices))
        lines += [f"times: measured with {self.timed_on}."] if timed else []
        measured = [(one.block, one.quality) for one in self.choices if one.quality]
        lines += [f"{block}, on {quality.rows} inputs held out: {quality}" for block, quality in measured]
        lines += [] if self.head is None else [str(self.head)]
        lines += [f"unchanged: {one}" for one in self.left_dense]
        lines += ["whole model: left dense"] if self.is_dense else [] if self.whole is None else [str(self.whole)]
        return "\n".join([*lines, *self._quantization()])

    def _quantization(self) -> list[str]:
        """Lines about the integers: errors, layers that keep floats, layers whose inputs are scaled."""
        if not self.is_quantized:
            return []
        errors = [one.error for one in self.layers if not one.reason]
        kept: dict[str, list[str]] = {}
        for one in self.layers:
            kept.setdefault(one.reason, []).append(one.layer)
        kept.pop("", None)
        summary = f"{self.weights} weights in {len(errors)} of {len(self.layers)} linear layers"
        if errors:
            summary += (
                f"; relative error of outputs: a layer's at most {max(errors):.2%}, "
                f"a block's at most {max(self.block_errors, default=nan):.2%}, the model's {self.output_error:.2%} on "
                f"average and {self.worst_output_error:.2%} in the worst row"
            )
        scaled = [one.layer for one in self.layers if one.smoothed]
        return [
            summary,
            *(f"float weights in {', '.join(names)}: {reason}" for reason, names in kept.items()),
            *([f"inputs scaled before they are quantised in {', '.join(scaled)}"] if scaled else []),
        ]


LEGEND: Final = (
    "density: active units; pays to: highest density at which the method is faster, blank if it was not timed.",
    "rows: in a call; calls: run sparsely; dense, sparse: median time of a call; gain: dense over sparse.",
    "bound: highest gain by bytes of weights; a block can gain more if only its sparse weights fit the cache.",
)


def refused(plan: BlockPlan, reason: str) -> BlockPlan:
    """The plan changed to dense, with the figures that were measured."""
    return replace(plan, method="dense", reason=reason, bound=1.0, max_rows=0, share=0.0, quality=None)


def finite(value: object) -> Any:
    """The value as JSON holds it: None in place of NaN and infinity."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return tuple(map(finite, value))
    return None if isinstance(value, float) and not isfinite(value) else value


def _line(block: str, method: str, figures: tuple[str, ...], reason: str) -> str:
    return f"{block:<32} {method:<11} {' '.join(f'{figure:>9}' for figure in figures)}  {reason}"


def _range(rows: tuple[int, int, int] | None) -> str:
    if rows is None:
        return ""
    return str(rows[0]) if rows[0] == rows[2] else f"{rows[0]}-{rows[2]}"


def _formatted(value: float, form: str) -> str:
    return "" if value != value else format(value, form)
