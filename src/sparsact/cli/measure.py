"""``sparsact measure``: how sparse a model's activations are, and what that could save."""

from __future__ import annotations

from pathlib import Path

import typer

from sparsact import files
from sparsact.cli.io import check_report
from sparsact.cli.options import SHARED, option, with_help
from sparsact.cli.terminal import command_line, say


@with_help(
    model=SHARED["torch_model"], weights=SHARED["model_weights"], report=option("FILE", "Write an HTML report here.")
)
def measure(
    context: typer.Context,
    model: str,
    inputs: Path | None = None,
    text: Path | None = None,
    weights: Path | None = None,
    arguments: str | None = None,
    report: Path | None = None,
    as_json: bool = False,
    batch_size: int = 1,
    n_threads: int | None = None,
) -> None:
    """Measure how many units are active in each feed-forward block of a PyTorch model.

    For each block it prints the share of units that a token activates, units that are never active, the share that
    several consecutive tokens need together, and upper bounds on the speed-up of the block and of the whole model.
    Other layers, such as convolutions, follow with the share of nonzero inputs and the reason why they compute densely.
    Importing MODEL runs the code of its module; a Hugging Face folder is only read, and no code in it is run.

    Example: sparsact measure my_models:small --inputs tokens.npy --report sparsity.html
    """
    from sparsact.cli.torch_model import batches_given, errors_of_model, load_model, torch_threads
    from sparsact.inference import measure as measured

    check_report(report)
    loaded = load_model(model, arguments, weights)
    with torch_threads(n_threads), errors_of_model():
        found = measured(loaded, batches_given(model, loaded, inputs, text, batch_size))
    if report is not None:
        from sparsact.environment import versions
        from sparsact.reports.page import measurement_page

        files.write(report, measurement_page(found, model, versions(), command_line(context.obj or ["measure"])))
    say(found.to_json() if as_json else found)
    if report is not None and not as_json:
        say(f"report: {report}")
