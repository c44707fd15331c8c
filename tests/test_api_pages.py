"""The API pages: every public name is listed, and its docstring says what goes in and what comes out."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from inspect import getdoc, isclass, isfunction, signature
from pathlib import Path
from types import ModuleType

from grids import grid

import sparsact

DOCS = Path(__file__).parents[1] / "docs"
sys.path.append(str(DOCS))
public_names = import_module("public_names")
PAGES = sorted(DOCS.glob("api_*.rst"))
SECTION = re.compile(r"^\.\. currentmodule:: (\S+)$(.*?)(?=^\.\. currentmodule|\Z)", re.MULTILINE | re.DOTALL)
LISTED = {
    module: re.findall(r"^   (\w+)$", body, re.MULTILINE)
    for page in PAGES
    for module, body in SECTION.findall(page.read_text(encoding="utf-8"))
} | {package: public_names.listed(package) for package in public_names.PACKAGES}
ELSEWHERE = {  # public to the package alone: tables that its own code reads, and kernels that layers and learners call
    "sparsact.routing": {"EMPTY", "ROUTERS"},
    "sparsact.bounds": {"BOUNDS"},
    "sparsact_papers.experiments": {"MissingRowsError", "chosen", "measure"},
    "sparsact.kernels": {
        *("ActiveCounts", "active_units", "count_active", "flip_differences", "flip_squares", "gather_dot"),
        *("gather_sum", "max_threads", "network_values", "ranked_gram", "scatter_outer", "subsets_in_order"),
        *("top_k", "top_k_dot", "top_k_masked"),
    },
}
EVERYTHING = [getattr(import_module(module), name) for module, names in LISTED.items() for name in names]
FUNCTIONS = [thing for thing in EVERYTHING if isfunction(thing)]


def test_every_public_package_has_a_section():
    packages = {name for name in sparsact.__all__ if isinstance(getattr(sparsact, name), ModuleType)}
    assert {f"sparsact.{name}" for name in packages} - {"sparsact.certificate"} <= set(LISTED)


def test_every_section_has_its_names_once():
    """On the page, or from ``__all__`` of the package."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = re.findall(r"^\.\. automodule:: (\S+)", text, re.MULTILINE)
    assert len(set(shown)) == len(shown)
    on_pages = [module for module, _ in SECTION.findall(text)]
    assert set(shown) - set(on_pages) == set(public_names.PACKAGES)
    assert not set(on_pages) & set(public_names.PACKAGES)


@grid(module=LISTED)
def test_every_public_name_is_listed(module):
    """Where a package re-exports a name of another one, one page is enough."""
    anywhere = {name for names in LISTED.values() for name in names}
    promised = getattr(import_module(module), "__all__", [])
    missing = {
        name
        for name in promised
        if name not in anywhere and not isinstance(getattr(import_module(module), name), ModuleType)
    }
    assert missing - {"__version__"} == ELSEWHERE.get(module, set()) - anywhere


@grid(module=LISTED)
def test_every_listed_name_exists(module):
    assert [name for name in LISTED[module] if not hasattr(import_module(module), name)] == []
    assert len(set(LISTED[module])) == len(LISTED[module])


@grid(function=FUNCTIONS)
def test_a_function_says_what_goes_in_and_what_comes_out(function):
    text, given = getdoc(function), signature(function)
    if given.parameters:
        assert "Parameters\n----------\n" in text
        said = text.partition("Parameters\n----------\n")[2]
        named = {
            word.strip("* ")
            for line in re.findall(r"^([\w*, ]+?) ?(?::|$)", said, re.MULTILINE)
            for word in line.split(",")
        }
        assert {parameter.lstrip("*") for parameter in given.parameters} <= named
    if given.return_annotation not in (None, "None"):
        assert "Returns\n-------\n" in text or "Yields\n------\n" in text


@grid(module=LISTED)
def test_a_class_and_its_methods_say_what_they_are(module):
    for name in LISTED[module]:
        thing = getattr(import_module(module), name)
        if isclass(thing):
            assert getdoc(thing), name
            for method, value in vars(thing).items():
                if isfunction(value) and not method.startswith("_"):
                    assert getdoc(getattr(thing, method)), f"{name}.{method}"
