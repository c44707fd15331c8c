"""Arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer


def file_option(text: str) -> typer.models.OptionInfo:
    """An option that takes a file, and by default none."""
    option: typer.models.OptionInfo = typer.Option(metavar="FILE", help=text, show_default=False)
    return option


Tables = Annotated[
    list[str],
    typer.Argument(
        metavar="TABLE...",
        help="A .csv, .tsv (also .gz), .parquet (or .pq), .feather, .arrow or .npz file; several, or a quoted pattern "
        "such as 'parts/*.parquet', are one table, in the natural order of their names. '-' is a CSV table on stdin, "
        "copied to a temporary file while the command runs.",
        show_default=False,
    ),
]
Separator = Annotated[
    str, typer.Option(metavar="auto|CHARACTER", help="Of text files: what separates columns, such as ';'.")
]
Decimal = Annotated[str, typer.Option(metavar="auto|.|,", help="Of text files: the mark of decimals.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
ShowProgress = Annotated[
    bool | None, typer.Option("--progress/--no-progress", help="Show progress; by default on a terminal.")
]

# ---- of PyTorch models ----

TorchModel = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="package.module:callable, which returns a torch.nn.Module (importing the module runs its code), or a "
        "folder of a Hugging Face model: config.json and *.safetensors.",
        show_default=False,
    ),
]
INPUTS_HELP: Final = (
    "An array in .npy (integers are tokens), or .safetensors whose tensors are keyword arguments. The first axis "
    "counts inputs."
)
Inputs = Annotated[Path | None, file_option(INPUTS_HELP)]
Text = Annotated[Path | None, file_option("In place of --inputs: a text, for a folder with a tokenizer.")]
Weights = Annotated[Path | None, file_option("Weights for the model, in safetensors.")]
Arguments = Annotated[
    str | None, typer.Option(metavar="JSON", help="Keyword arguments of the callable.", show_default=False)
]
BatchSize = Annotated[int, typer.Option(min=1, metavar="N", help="Inputs that the model gets at once.")]
TorchThreads = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Threads of torch; its own choice if not given.", show_default=False),
]
