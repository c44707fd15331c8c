"""Approximate choices of a layer's active units, side by side: recall, density, error of the output, bytes, seconds.

A layer of 1,024 inputs and 4,096 units whose inputs lie near a curved set of 24 dimensions, as those of trained layers
lie near few: sums of 24 hidden directions with weights that fall off, off the origin, with some noise in every
direction. Rows of weights lean towards hidden directions, and biases leave about 5 % of the units on. All figures are
of rows that neither fit nor calibration saw. One thread.

Predictors of the active set are asked for recalls of 95 and 99 %, top-k and threshold for output errors of 1 and 10 %.
Bytes: what the predictor holds, as a share of those of the layer that it spares; the share of units that it names has
to be read of the layer too. Seconds are of the choice for one row, by the predictor as it is.

Goal: for each recall the mean recall is reached within four standard errors; for each error, within a fifth.

    python -m benchmarks.predictors [--quick] [--out results/predictors.jsonl]
"""

from __future__ import annotations

from typing import Any, Final

import torch
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits
from torch import Tensor

from benchmarks.figures import Figure, options, report
from benchmarks.harness import interleaved
from sparsact.inference.block import Activation
from sparsact.inference.block_weights import BlockWeights
from sparsact.inference.predictors import Predictor, calibrate

DIMENSION: Final = 24
SETTINGS: Final[dict[str, list[dict[str, Any]]]] = {
    "sketch": [{}],
    "low_rank": [{"rank": 32}, {"rank": 64}],
    "lsh": [{}],
}


def planted(d: int, s: int, m: int) -> tuple[BlockWeights, Tensor]:
    """A layer, and m of its inputs."""
    draw = torch.Generator().manual_seed(2025)
    hidden = torch.linalg.qr(torch.randn(d, DIMENSION, generator=draw)).Q.T
    sizes = torch.arange(1, DIMENSION + 1) ** -0.5
    codes = torch.randn(m, DIMENSION, generator=draw) * sizes
    codes = codes + 0.5 * codes.roll(1, dims=1) * codes.sign()  # curved: directions depend on each other
    x = 4 * codes @ hidden + torch.randn(d, generator=draw) / d**0.5
    x = x + 0.3 * torch.randn(m, d, generator=draw) / d**0.5
    leaning = torch.randn(s, DIMENSION, generator=draw) @ hidden / DIMENSION**0.5
    weight = leaning + torch.randn(s, d, generator=draw) / d**0.5
    z = x @ weight.T
    bias = -z.quantile(0.95, dim=0) * (1 + 0.2 * torch.randn(s, generator=draw))
    down = torch.randn(d, s, generator=draw) / s**0.5
    return BlockWeights(weight, bias, None, None, down, Activation("relu", torch.relu, torch.zeros(s))), x


def asked(quick: bool) -> list[tuple[str, dict[str, float], dict[str, Any]]]:
    """Method, target and settings of each predictor."""
    sets = [
        (method, {"recall": recall}, setting)
        for recall in ((0.9,) if quick else (0.95, 0.99))
        for method, choices in SETTINGS.items()
        for setting in choices
    ]
    return sets + [(method, {"error": error}, {}) for error in (0.01, 0.1) for method in ("threshold", "top_k")]


def figures_of(work: str, predictor: Predictor, weights: BlockWeights, x: Tensor, repeats: int) -> list[Figure]:
    """What a predictor reached, and what it costs."""
    quality = predictor.quality
    reads = x[:1] if predictor.reads == "inputs" else weights.hidden(x[:1])
    seconds = interleaved({"call": lambda: predictor.active(reads)}, repeats)["call"]
    asked, error, found = predictor.target.get("recall"), predictor.target.get("error"), quality.recall
    recalls = (
        []
        if found is None
        else [Figure(work, "recall", found.value, "", least=asked and asked - 4 * found.standard_error)]
    )
    return [
        *recalls,
        Figure(work, "density", quality.density.value, ""),
        Figure(work, "output error", quality.output_error.value, "", most=error and 1.2 * error),
        Figure(work, "bytes", predictor.nbytes / weights.weight.nbytes, "of the layer's"),
        Figure.of(work, "seconds", seconds, "s"),
    ]


def beside(predictors: dict[str, Predictor]) -> None:
    """All qualities with their standard errors, a predictor a line."""
    columns = ("recall", "precision", "energy", "density", "active", "output_error")
    table = Table("predictor", *(name.replace("_", " ") for name in columns))
    for work, predictor in predictors.items():
        table.add_row(work, *(str(getattr(predictor.quality, name)) for name in columns))
    Console(width=160).print(table)


def main() -> int:
    """Calibrate, measure, print the table, keep the rows."""
    arguments = options(__doc__, repeats=15).parse_args()
    d, s, m = (96, 384, 800) if arguments.quick else (1024, 4096, 4096)
    torch.set_num_threads(1)
    weights, x = planted(d, s, m)
    figures, made = [], {}
    with threadpool_limits(1):
        for method, target, settings in asked(arguments.quick):
            options_of: dict[str, Any] = target | settings
            work = f"{d}x{s} {method} " + " ".join(f"{name}={value:g}" for name, value in options_of.items())
            made[work] = calibrate(weights, x, method=method, **options_of)
            figures += figures_of(work, made[work], weights, x, arguments.repeats)
    beside(made)
    return report("predictors", figures, arguments.out)


if __name__ == "__main__":
    raise SystemExit(main())
