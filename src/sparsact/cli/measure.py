"""``sparsact measure``: how sparse a model's activations are, and what that could save."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparsact import files
from sparsact.cli.model_files import INPUTS_HELP
from sparsact.cli.terminal import say
from sparsact.cli.torch_model import MODEL_HELP

if TYPE_CHECKING:
    from torch import nn

    from sparsact.inference import Measurement
    from sparsact.inference.batches import Batch


def measure(
    context: typer.Context,
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
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an HTML report here.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    batch_size: Annotated[int, typer.Option(min=1, metavar="N", help="Inputs that the model gets at once.")] = 32,
    n_threads: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Threads of torch; its own choice if not given.", show_default=False),
    ] = None,
) -> None:
    """Measure how many units of each feed-forward block of a PyTorch model are active.

    By block: the share of active units for a token, how it varies, units that are never active, the share that several
    tokens in a row need together, how small the other activations are, and by how much reading fewer bytes of weights
    could speed up the block and the whole model at most. Importing MODEL runs the code of its module; a folder of
    Hugging Face is read from disk alone, and no code in it is run.

    Example: sparsact measure my_models:small --inputs tokens.npy --report sparsity.html
    """
    from sparsact.cli.model_files import batches_given
    from sparsact.cli.outputs import check_report
    from sparsact.cli.torch_model import load_model, torch_threads

    check_report(report)
    loaded = load_model(model, arguments, weights)
    with torch_threads(n_threads):
        found = _measured(loaded, batches_given(model, loaded, inputs, text, batch_size))
    if report is not None:
        from sparsact.cli.terminal import command_line
        from sparsact.environment import versions
        from sparsact.reports.page import measurement_page

        files.write(report, measurement_page(found, model, versions(), command_line(context.obj or ["measure"])))
    say(found.to_json() if as_json else found)
    if report is not None and not as_json:
        say(f"report: {report}")


def _measured(model: nn.Module, batches: Iterator[Batch]) -> Measurement:
    from sparsact.inference import measure

    try:
        return measure(model, batches)
    except (RuntimeError, TypeError, IndexError) as error:  # from the model's own code
        raise ValueError(f"the model cannot take these inputs: {type(error).__name__}: {error}") from error
