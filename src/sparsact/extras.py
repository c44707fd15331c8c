"""Optional packages, the extras that bring them, and what to type where one is missing."""

from __future__ import annotations

from typing import Final

EXTRAS: Final = {
    "array_api_compat": "torch",
    "dask": "dask",
    "distributed": "dask",
    "jinja2": "report",
    "markupsafe": "report",
    "matplotlib": "report",
    "pyarrow": "table",
    "rich": "cli",
    "torch": "torch",
    "transformers": "hf",
    "triton": "gpu",
    "typer": "cli",
}


def install(extra: str) -> str:
    """The commands that install an extra: from the package index, and in a clone.

    >>> print(install("report"))
    pip install "sparsact[report]", or in a clone pip install ".[report]"
    """
    return f'pip install "sparsact[{extra}]", or in a clone pip install ".[{extra}]"'  # cmd.exe knows no other quotes


def missing(what: str, *packages: str) -> str:
    """Message that ``what`` needs packages of one extra, and how to install them.

    >>> print(missing("a report", "jinja2", "matplotlib"))
    a report needs jinja2, matplotlib, not installed here: pip install "sparsact[report]", or in a clone
    pip install ".[report]".
    """
    return f"{what} needs {', '.join(packages)}, not installed here: {install(EXTRAS[packages[0]])}."
