"""The help of commands' parameters: a decorator that gives it, and the texts that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Annotated, Any, Final, TypeVar

from typer import Argument, Option
from typer.models import ParameterInfo

Command = TypeVar("Command", bound=Callable[..., None])


def option(metavar: str, text: str, *names: str, **limits: Any) -> ParameterInfo:
    """An option with a value, by default named as its parameter."""
    found: ParameterInfo = Option(*names, metavar=metavar, help=text, **limits)
    return found


def argument(metavar: str, text: str) -> ParameterInfo:
    """A word that stands in its place; it shows no default, which is none."""
    found: ParameterInfo = Argument(metavar=metavar, help=text, show_default=False)
    return found


SHARED: Final[dict[str, str | ParameterInfo]] = {
    "tables": argument(
        "TABLE...",
        "A .csv, .tsv (also .gz), .parquet (or .pq), .feather, .arrow or .npz file; several, or a quoted pattern "
        "such as 'parts/*.parquet', are one table, in the natural order of their names. '-' is a CSV table on stdin, "
        "copied to a temporary file while the command runs.",
    ),
    "learned_model": argument("MODEL", "A model that sparsact fit has written."),
    "separator": option("auto|CHARACTER", "Of text files: what separates columns, such as ';'."),
    "decimal": option("auto|.|,", "Of text files: the mark of decimals."),
    "as_json": Option("--json", help="Print one JSON object and nothing else."),
    "progress": Option("--progress/--no-progress", help="Show progress; by default on a terminal."),
    # ---- of PyTorch models ----
    "torch_model": argument(
        "MODEL",
        "package.module:callable, which returns a torch.nn.Module (importing the module runs its code), or a folder of "
        "a Hugging Face model: config.json and *.safetensors.",
    ),
    "inputs": option(
        "FILE",
        "An array in .npy (integers are tokens), or .safetensors whose tensors are keyword arguments. The first axis "
        "counts inputs.",
    ),
    "text": option("FILE", "In place of --inputs: a text, for a folder with a tokenizer."),
    "model_weights": option("FILE", "Weights for the model, in safetensors.", "--weights"),
    "arguments": option("JSON", "Keyword arguments of the callable."),
    "batch_size": option("N", "Inputs that the model gets at once.", min=1),
    "n_threads": option("N", "Threads of torch; its own choice if not given.", min=1),
}


def with_help(**own: str | ParameterInfo) -> Callable[[Command], Command]:
    """A decorator that gives the parameters of a command their help: its own, or the shared one of the name.

    A text alone is that of a flag, which is off by default.
    """

    def decorated(command: Command) -> Command:
        plain, parameters = signature(command, eval_str=True), []
        for one in plain.parameters.values():
            info = (SHARED | own).get(one.name)
            if isinstance(info, str):
                info = Option(f"--{one.name.replace('_', '-')}", help=info)
            parameters.append(one if info is None else one.replace(annotation=Annotated[one.annotation, info]))
        command.__dict__["__signature__"] = plain.replace(parameters=parameters)  # which typer reads
        return command

    return decorated
