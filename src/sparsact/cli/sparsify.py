"""``sparsact sparsify``: what a model gains on this machine by computing only the units that are on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsact.cli.model_files import INPUTS_HELP
from sparsact.cli.terminal import say
from sparsact.cli.torch_model import MODEL_HELP

if TYPE_CHECKING:
    from torch import nn

    from sparsact.inference.batches import Batch
    from sparsact.inference.speed import Speed


def sparsify(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP, show_default=False)],
    inputs: Annotated[Path | None, typer.Option(metavar="FILE", help=INPUTS_HELP, show_default=False)] = None,
    text: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="In place of --inputs: a text, for a folder with a tokenizer.", show_default=False
        ),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Weights for the model, in safetensors.", show_default=False)
    ] = None,
    arguments: Annotated[
        str | None, typer.Option(metavar="JSON", help="Keyword arguments of the callable.", show_default=False)
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="NAME", help="auto, exact, certified, predictor, threshold or top_k.")
    ] = "auto",
    predictor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --method predictor: sketch, low_rank or lsh; sketch if not given.",
            show_default=False,
        ),
    ] = None,
    recall: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="With --method predictor: the share of active units that it is to find; 0.99 if no target is given.",
            show_default=False,
        ),
    ] = None,
    density: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="With predictor, threshold or top_k: the share of units that is computed at most.",
            show_default=False,
        ),
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="With threshold or top_k: the error of a block's output, as a share of its size, at most.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    batch_size: Annotated[int, typer.Option(min=1, metavar="N", help="Inputs that the model gets at once.")] = 1,
    time_limit: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="That the timing of auto may take.")
    ] = 20.0,
    n_threads: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Threads of torch; its own choice if not given.", show_default=False),
    ] = None,
) -> None:
    """Time what a PyTorch model gains by computing only the units that are on, block by block and end to end.

    auto, exact and certified return what the model returns, up to the order of summation; the others approximate, and
    tell what that costs. The model is not changed: in Python, sparsact.sparsify(model, method, inputs) does for your
    process what this command times. Importing MODEL runs the code of its module.

    Example: sparsact sparsify my_models:small --inputs tokens.npy --n-threads 1
    """
    from itertools import islice

    from sparsact.cli.model_files import batches_given
    from sparsact.cli.torch_model import load_model, torch_threads
    from sparsact.inference.sparsifying import BATCHES

    loaded = load_model(model, arguments, weights)
    targets = {"predictor": predictor, "recall": recall, "density": density, "error": error}
    options = {name: value for name, value in targets.items() if value is not None}
    with torch_threads(n_threads):
        shown = list(islice(batches_given(model, loaded, inputs, text, batch_size), BATCHES))
        _tell(*_sparsified(loaded, method, shown, time_limit, options), as_json)


def _sparsified(
    model: nn.Module, method: str, shown: list[Batch], time_limit: float, options: dict[str, Any]
) -> tuple[nn.Module, Speed]:
    from sparsact.inference import sparsify
    from sparsact.inference.speed import speed

    try:
        sparse = sparsify(model, method, shown, time_limit=time_limit, **options)
        return sparse, speed(sparse, shown)
    except (RuntimeError, TypeError, IndexError) as error:  # from the model's own code
        raise ValueError(f"the model cannot take these inputs: {type(error).__name__}: {error}") from error


def _tell(model: nn.Module, found: Speed, as_json: bool) -> None:
    from sparsact.inference import plan_of

    plan = plan_of(model)
    if as_json:
        typer.echo(json.dumps(plan.to_dict() | {"model": found.to_dict()}, allow_nan=False))
    else:
        say(f"{plan}\n{found}")
