"""Packages whose section of the API lists all that they export: a new name is listed by its ``__all__`` alone."""

from __future__ import annotations

from importlib import import_module
from inspect import getdoc, isclass, isfunction
from typing import Final

PACKAGES: Final = ("sparsact.bounds", "sparsact.routing")


def listed(package: str) -> list[str]:
    """The public classes and functions of a package."""
    module = import_module(package)
    return [name for name in module.__all__ if isclass(getattr(module, name)) or isfunction(getattr(module, name))]


def add_lists() -> None:
    """Put the list into the docstring of each package, where autosummary finds the names that need a page."""
    for package in PACKAGES:
        module = import_module(package)
        lines = [getdoc(module) or "", "", ".. autosummary::", "   :toctree: api", "   :nosignatures:", ""]
        module.__doc__ = "\n".join([*lines, *(f"   {name}" for name in listed(package))])
