"""``sparsact sparsify``: what a model gains on this machine by computing only the units that are on."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import typer

from sparsact.cli.options import SHARED, option, with_help
from sparsact.cli.terminal import say


@with_help(
    model=SHARED["torch_model"],
    weights=SHARED["model_weights"],
    method=option("NAME", "auto, exact, certified or approximate."),
    density=option("SHARE", "With approximate: largest share of units to keep."),
    error=option("SHARE", "With approximate: largest relative error of a block's output."),
    time_limit=option("SECONDS", "Time limit for the measurements of auto.", min=0),
)
def sparsify(
    model: str,
    inputs: Path | None = None,
    text: Path | None = None,
    weights: Path | None = None,
    arguments: str | None = None,
    method: str = "auto",
    density: float | None = None,
    error: float | None = None,
    as_json: bool = False,
    batch_size: int = 1,
    time_limit: float = 20.0,
    n_threads: int | None = None,
) -> None:
    """Measure how much faster a PyTorch model runs when it computes only its active units, per block and in total.

    auto, exact and certified return the same outputs up to the order of summation; approximate changes them and reports
    the error. The model on disk is not changed: in Python, sparsact.sparsify(model, method, inputs) makes the change
    that this command times. Importing MODEL runs the code of its module.

    Example: sparsact sparsify my_models:small --inputs tokens.npy --n-threads 1
    """
    from sparsact import inference
    from sparsact.cli.torch_model import batches_given, errors_of_model, load_model, torch_threads
    from sparsact.inference.comparison import speed
    from sparsact.inference.sparsifying import BATCHES

    loaded = load_model(model, arguments, weights)
    with torch_threads(n_threads):
        shown = list(islice(batches_given(model, loaded, inputs, text, batch_size), BATCHES))
        with errors_of_model():
            sparse = inference.sparsify(loaded, method, shown, time_limit=time_limit, density=density, error=error)
            found = speed(sparse, shown)
    plan = inference.plan_of(sparse)
    if as_json:
        typer.echo(json.dumps(plan.to_dict() | {"model": found.to_dict()}, allow_nan=False))
    else:  # timed once more, beside the outputs: one figure
        say(plan if plan.is_dense else replace(plan, whole=found))
