"""How Sphinx builds the documentation: `make docs`."""

from __future__ import annotations

import doctest
import os
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.fileutil import copy_asset

import sparsact

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `benchmarks`
sys.path.insert(0, str(Path(__file__).parent))
from benchmark_list import benchmark_list
from bound_table import bound_table
from citations import initials, local_citations
from command_pages import command_pages
from contest_tables import CONTESTS
from decision_list import decision_list
from gain_tables import int8_gains, public_families, sparsify_gains
from headline_table import headline_table
from kept_figures import (
    grouped_contest,
    held_out_contest,
    measured,
    regression_contest,
    substitutions,
    tied_rows,
)
from memory_table import memory_table
from missed_targets import missed_targets
from mixture_table import mixture_families
from paper_figures import exact_degrees, rademacher
from public_names import add_lists
from routed_table import routed_table, routed_times
from router_tables import fault_table, router_table
from scaling_tables import scaling_tables
from theory_map import theory_map
from verdict_table import refuted_table, verdict_table

project = "sparsact"
author = "the sparsact developers"
copyright = "2026, the sparsact developers"  # noqa: A001 - Sphinx gives the name
version = release = sparsact.__version__

extensions = [
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "decisions/*"]
templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = f"sparsact {release}"
html_theme_options = {
    "navbar_center": ["header_links.html"],
    "navigation_with_keys": False,
    "primary_sidebar_end": [],
    "secondary_sidebar_items": {"[!g]**": ["page-toc"]},  # not of the gallery, whose code is wide
    "show_toc_level": 2,
    "use_edit_page_button": False,
}
html_static_path = ["_static"]
html_css_files = ["gallery.css"]
html_copy_source = html_show_sourcelink = html_use_index = False
html_sidebars = {"index": [], "[!g]**": ["pages.html"], "glossary": ["pages.html"]}  # the gallery lists its own
mathjax_path = "mathjax/tex-chtml.js"  # no page loads anything from elsewhere
mathjax3_config = {"options": {"enableMenu": False}}  # the menu would load more of MathJax
intersphinx_mapping = {  # wants a network
    name: (address, None)
    for name, address in {
        "python": "https://docs.python.org/3",
        "numpy": "https://numpy.org/doc/stable",
        "scipy": "https://docs.scipy.org/doc/scipy",
        "sklearn": "https://scikit-learn.org/stable",
        "torch": "https://docs.pytorch.org/docs/stable",
    }.items()
    if "READTHEDOCS" in os.environ
}
smartquotes = False  # a command that is copied from a page keeps its dashes and quotes
rst_epilog = substitutions()
rst_prolog = ".. role:: given\n"  # a number that a setting, a rule or a theorem gives, and nobody measured

autosummary_generate = True
add_lists()
autodoc_typehints = "none"  # numpy-style docstrings tell types and shapes
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # the template lists them
doctest_default_flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
# What pytest gives the examples of a docstring: the names of its module, and a folder of its own.
doctest_global_setup = """
import os, tempfile
import numpy as np
from sparsact.bounds import *
from sparsact.datasets import *
from sparsact_papers.data import *
from sparsact.fourier import *
from sparsact.hypercube import *
os.chdir(tempfile.mkdtemp())
"""
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "within_subsection_order": "gallery_style.in_order",
    "reset_modules": ("gallery_style.house_style",),
    "abort_on_example_error": True,
    "backreferences_dir": "gallery/uses",
    "doc_module": ("sparsact", "sparsact_papers"),
    "reference_url": {"sparsact": None},  # names in the code lead to their pages
    "image_srcset": ["2x"],
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": False,
}


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    """Put MathJax among the pages: what shows formulas, and none of its menus and languages."""
    package = find_spec("sphinx-mathjax-offline")
    if error is None and package is not None and package.origin is not None:
        source, target = Path(package.origin).parent / "static" / "mathjax", Path(app.outdir) / "_static" / "mathjax"
        fonts = Path("output", "chtml", "fonts", "woff-v2")
        copy_asset(source / "tex-chtml.js", target)
        copy_asset(source / fonts, target / fonts)


TABLES = {
    "benchmark_list": benchmark_list,
    "bound_table": bound_table,
    "commands": command_pages,
    "decision_list": decision_list,
    "deletion_table": partial(fault_table, "deletion_faults"),
    "fault_table": partial(fault_table, "mixture_faults"),
    "grouped_contest": grouped_contest,
    "headline_table": headline_table,
    "held_out_contest": held_out_contest,
    "int8_gains": int8_gains,
    "measured": measured,
    "memory_table": memory_table,
    "missed_targets": missed_targets,
    "mixture_families": mixture_families,
    "public_families": public_families,
    "regression_contest": regression_contest,
    "refuted_table": refuted_table,
    "routed_table": routed_table,
    "routed_times": routed_times,
    "router_table": router_table,
    "scaling_tables": scaling_tables,
    "sparsify_gains": sparsify_gains,
    "tied_rows": tied_rows,
    "verdict_table": verdict_table,
    **{name: contest.write for name, contest in CONTESTS.items()},
}
FIGURES = {"exact_degrees": exact_degrees, "rademacher": rademacher}


def write_tables(app: Sphinx) -> None:
    """Write what pages include: made from the command, the list of bounds, the stored rows and the theorems."""
    folder = Path(app.srcdir) / "api"
    for name, write in TABLES.items():
        write(folder / f"{name}.inc")
    for name, draw in FIGURES.items():
        draw(folder / f"{name}.png")
    theory_map(folder)


def setup(app: Sphinx) -> None:
    """Write included tables before the build, keep citations apart, and copy MathJax after it."""
    app.connect("builder-inited", write_tables)
    app.connect("source-read", initials)
    app.connect("autodoc-process-docstring", local_citations, priority=400)  # before numpydoc
    app.connect("build-finished", copy_mathjax)
