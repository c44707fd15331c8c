"""``sparsact sparsify``: what a model gains on this machine by computing only the units that are on."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from typing import Annotated

import typer

from sparsact.cli.options import Arguments, AsJson, BatchSize, Inputs, Text, TorchModel, TorchThreads, Weights
from sparsact.cli.terminal import say


def sparsify(
    model: TorchModel,
    inputs: Inputs = None,
    text: Text = None,
    weights: Weights = None,
    arguments: Arguments = None,
    method: Annotated[str, typer.Option(metavar="NAME", help="auto, exact, certified or approximate.")] = "auto",
    density: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="With approximate: the largest share of units that is kept.",
            show_default=False,
        ),
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="With approximate: the largest error of a block's output, as a share of its size.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    batch_size: BatchSize = 1,
    time_limit: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="That the timing of auto may take.")
    ] = 20.0,
    n_threads: TorchThreads = None,
) -> None:
    """Time what a PyTorch model gains by computing only the units that are on, block by block and end to end.

    auto, exact and certified return what the model returns, up to the order of summation; approximate
    tells what it costs. The model is not changed: in Python, sparsact.sparsify(model, method, inputs) does for your
    process what this command times. Importing MODEL runs the code of its module.

    Example: sparsact sparsify my_models:small --inputs tokens.npy --n-threads 1
    """
    from sparsact.cli.torch_model import batches_given, errors_of_model, load_model, torch_threads
    from sparsact.inference import plan_of
    from sparsact.inference import sparsify as sparsified
    from sparsact.inference.comparison import speed
    from sparsact.inference.sparsifying import BATCHES

    loaded = load_model(model, arguments, weights)
    with torch_threads(n_threads):
        shown = list(islice(batches_given(model, loaded, inputs, text, batch_size), BATCHES))
        with errors_of_model():
            sparse = sparsified(loaded, method, shown, time_limit=time_limit, density=density, error=error)
            found = speed(sparse, shown)
    plan = plan_of(sparse)
    if as_json:
        typer.echo(json.dumps(plan.to_dict() | {"model": found.to_dict()}, allow_nan=False))
    else:
        say(f"{replace(plan, whole=None)}\n{found}")  # timed once more, beside the outputs: one figure
