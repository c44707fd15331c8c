"""The help of commands' parameters: a decorator that gives it, and the texts that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from typer import Argument, Option
from typer.models import OptionInfo, ParameterInfo

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
        ".csv, .tsv (also .gz), .parquet (or .pq), .feather, .arrow or .npz. Several files, or a quoted pattern such "
        "as 'parts/*.parquet', form one table, sorted by name; '-' reads CSV from stdin.",
    ),
    "learned_model": argument("MODEL", "A model written by sparsact fit."),
    "separator": option("CHARACTER", "Cell separator, such as ';'."),
    "decimal": option("MARK", "Decimal mark, '.' or ','."),
    "as_json": Option("--json", help="Print one JSON object, nothing else."),
    "progress": Option("--progress/--no-progress", help="Show a progress bar. Default: on a terminal."),
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
    "text": option("FILE", "A text instead of --inputs, if the folder has a tokenizer."),
    "model_weights": option("FILE", "Weights to load, a .safetensors file.", "--weights"),
    "arguments": option("JSON", "Keyword arguments of the callable."),
    "batch_size": option("N", "Inputs in one call of the model.", min=1),
    "n_threads": option("N", "Threads of torch; by default torch decides.", min=1),
}


def panel(title: str, **own: str | ParameterInfo) -> dict[str, ParameterInfo]:
    """Parameters whose help stands in a panel of this title; a text alone is that of a flag."""
    found = {name: _flag(name, info) if isinstance(info, str) else copy(info) for name, info in own.items()}
    for info in found.values():
        info.rich_help_panel = title
    return found


def _flag(name: str, text: str) -> ParameterInfo:
    info: ParameterInfo = Option(f"--{name.replace('_', '-')}", help=text)
    return info


def with_help(**own: str | ParameterInfo) -> Callable[[Command], Command]:
    """A decorator that gives the parameters of a command their help: its own, or the shared one of the name.

    A text alone is that of a flag, which is off by default.
    """

    def decorated(command: Command) -> Command:
        plain, parameters = signature(command, eval_str=True), []
        for one in plain.parameters.values():
            info = (SHARED | own).get(one.name)
            if isinstance(info, str):
                info = _flag(one.name, info)
            if (
                isinstance(info, OptionInfo)
                and isinstance(one.default, str | int | float | Path)
                and one.default is not False
            ):
                info = copy(info)
                info.help, info.show_default = f"{info.help} Default: {one.default}.", False
            parameters.append(one if info is None else one.replace(annotation=Annotated[one.annotation, info]))
        command.__dict__["__signature__"] = plain.replace(parameters=parameters)  # which typer reads
        return command

    return decorated
