"""Pages of the command's options, from the command itself, so that they cannot grow old."""

from __future__ import annotations

import re
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
    text, _, example = (part.strip() for part in cleandoc(command.help).partition("Example: "))
    lines = [title, "-" * len(title), "", _literal(text), "", ".. code-block:: sh", "", f"   {example}", ""]
    panels: dict[str | None, list[Any]] = {}
    for parameter in command.params:
        panels.setdefault(getattr(parameter, "rich_help_panel", None), []).append(parameter)
    for panel, parameters in panels.items():
        lines += [f".. rubric:: {_literal(panel)}", ""] if panel else []
        for parameter in parameters:
            lines += [f"``{_spelling(parameter)}``", f"  {_meaning(parameter)}", ""]
    if name == "fit":
        lines += [".. rubric:: Models", ""]
        for model, (what, when) in MODELS.items():
            lines += [f"``--model {model}``", f"  {what[0].upper()}{what[1:]}.{_compared(when)}", ""]
    return "\n".join([*lines, ""])


def _compared(when: str) -> str:
    """When ``--model auto`` compares a model, as a sentence."""
    if not when:
        return ""
    return f" ``auto`` compares it for {when}."


def _spelling(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar)
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    if parameter.is_flag:
        return names
    return f"{names} {parameter.metavar}"


def _meaning(parameter: Any) -> str:
    told = _literal((parameter.help or "").replace("*", r"\*"))
    return f"{told} Required." if parameter.required and parameter.param_type_name == "option" else told


def _literal(text: str) -> str:
    """The text with names of options as literals, which no line breaks."""
    return re.sub(r"(?<![\w`-])--[a-z][a-z-]*(?: [A-Z]{2,}\b)?", r"``\g<0>``", text)
