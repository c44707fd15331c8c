"""Pages of the command's options, from the command itself, so that they cannot grow old."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path
from typing import Any

from typer.main import get_command

from sparsact.cli.app import app
from sparsact.cli.fit import MODELS


def command_pages(path: Path) -> None:
    """Write one section a command, to be included by ``cli.rst``."""
    group: Any = get_command(app)
    sections = [_section(name, command) for name, command in group.commands.items()]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(sections), encoding="utf-8")


def _section(name: str, command: Any) -> str:
    title = f"sparsact {name}"
    text, _, example = cleandoc(command.help).partition("Example: ")
    lines = [title, "-" * len(title), "", text.strip(), "", ".. code-block:: sh", "", f"   {example.strip()}", ""]
    lines += [".. list-table::", "   :widths: 35 65", ""]
    for parameter in command.params:
        lines += [f"   * - ``{_spelling(parameter)}``", f"     - {_meaning(parameter)}"]
    if name == "fit":
        lines += ["", ".. list-table::", "   :widths: 15 50 35", "   :header-rows: 1", ""]
        for model, (what, when) in {"model": ("what it is", "auto compares it for"), **MODELS}.items():
            lines += [f"   * - {model}", f"     - {what}", f"     - {when}"]
    return "\n".join([*lines, ""])


def _spelling(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar)
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    if parameter.is_flag:
        return names
    return f"{names} {parameter.metavar}"


def _meaning(parameter: Any) -> str:
    told = (parameter.help or "").replace("*", r"\*")
    return f"{told} Required." if parameter.required and parameter.param_type_name == "option" else told
