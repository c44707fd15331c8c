"""What the prose says: its examples run and print what they claim, and every path that it names is there."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from types import ModuleType, SimpleNamespace

import pytest
from grids import few_of, grid
from page_blocks import not_run, not_run_in_markdown, sessions
from prose import measured_in
from source_figures import FIGURE, Paragraph, paragraphs

import sparsact
from sparsact.cli import main

ROOT = Path(__file__).parents[1]
PROSE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/decisions/*.md")]
PAGES = sorted([*ROOT.glob("docs/*.rst"), *ROOT.glob("docs/papers_of_our_own/*.rst")])
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")
HOSTED = {  # where links of the README lead, which also stands on a package index
    re.compile(r"\]\(https://raw\.githubusercontent\.com/sparsact/sparsact/main/([^)]+)\)"): "{}",
    re.compile(r"\]\(https://github\.com/sparsact/sparsact/blob/main/([^)]+)\)"): "{}",
    re.compile(r"\]\(https://sparsact\.readthedocs\.io/en/latest/([^)]+)\.html\)"): "docs/{}.rst",
}
FOLDERS = "src|papers|benchmarks|tests|docs|examples"
NAMED = re.compile(rf"(?<![\w./-])(?:(?:{FOLDERS})/[\w./-]*[\w/]|(?:kernels|learners)/[\w./-]+|[\w-]+\.(?:hpp|py|txt))")
LISTING = re.compile(r"^\.\. code-block:: python\n   :caption: (\S+)\n\n((?:(?:   .*)?\n)+)", re.MULTILINE)
LENIENT = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
SOURCES = [
    ROOT,
    *(path for name in ("src", "papers/src", "benchmarks") for path in (ROOT / name).rglob("*") if path.is_dir()),
]

DEAR = {
    "cube_gp.rst",
    "feed_forward.rst",
    "for_fast_regression.rst",
    "for_model_builders.rst",
    "for_inference_engineers.rst",
    "experiments.rst",
    "for_scientists.rst",
    "inference.rst",
    "letters.rst",
    "lsh.rst",
    "lsh_cells.rst",
    "lsh_updates.rst",
    "quickstart.rst",
    "recipes.rst",
}  # 2 to 10 s each
QUICK = [page for page in PAGES if page.name not in DEAR]

WITH_EXAMPLES = "constructions certificate fourier inference layers learners routing"
RECORDS = {  # made by functions and classes whose examples show them
    "Activation",
    "Anova",
    "Block",
    "BlockMeasurement",
    "BlockPlan",
    "Certificate",
    "Collisions",
    "Distillation",
    "FitResult",
    "Measurement",
    "Plan",
    "Router",
    "RoutingCollapseWarning",
    "StackCertificate",
    "StackLayer",
    "TablePlan",
    "TopFeatures",
}


@pytest.mark.usefixtures("unrendered")
@pytest.mark.parametrize("page", few_of(PAGES, QUICK), ids=lambda page: page.name)
def test_examples_of_a_page(page, tmp_path, monkeypatch, capsys):
    """A listing with a caption is a file that the examples find; sessions at the console come last, on files left."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    text = page.read_text(encoding="utf-8")
    if "transformers" in text:  # which takes the folder tests/datasets for the library of that name
        monkeypatch.setattr("transformers.trainer.is_datasets_available", lambda: False)
    for name, body in LISTING.findall(text):
        Path(name).write_text(dedent(body), encoding="utf-8")
        monkeypatch.delitem(sys.modules, Path(name).stem, raising=False)
    assert doctest.testfile(str(page), module_relative=False, optionflags=LENIENT).failed == 0
    for command, output in sessions(text):
        program, *words = shlex.split(command)
        assert program == "sparsact"
        capsys.readouterr()
        failed = main(words)
        # Without a terminal the forecast and a line for each stage go to stderr; pages show what a terminal keeps.
        # Files to be replaced come from the examples, which have run before.
        notes = r"(?m)^(Comparing all kinds .*|[A-Za-z ]+ \.\.\.|.* will be replaced\.)\n"
        printed = re.sub(notes, "", "".join(capsys.readouterr()))
        assert bool(failed) == ("sparsact: error:" in output), printed
        assert doctest.OutputChecker().check_output(output, printed, LENIENT), f"{command}\n{printed}"


CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_what_a_contributor_is_told_to_run_is_there():
    """Targets of make, scripts of CI, and tests by their names."""
    told = re.findall(r"(?:^|`)(?:make|\.venv/bin/make) ([a-z][a-z -]*)", CONTRIBUTING, re.MULTILINE)
    wanted = {target for words in told for target in words.split("  ")[0].split()}
    targets = re.findall(r"^([a-z -]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"test", "lint", "types", "docs"} <= wanted <= {target for line in targets for target in line.split()}
    scripts = re.findall(r"(?<!\w)\.ci/\w+", CONTRIBUTING)
    assert ".ci/run" in scripts
    assert [name for name in scripts if not (ROOT / name).is_file()] == []


def test_what_a_contributor_is_told_to_change_is_there():
    """Tests and tables of the code by their names, and the folders that take new files."""
    names = {*re.findall(r"`(test_\w+)`", CONTRIBUTING), *re.findall(r"`([A-Z_]{4,})`", CONTRIBUTING)} - {"NAME"}
    defined = re.compile(r"^ *(?:def (test_\w+)\(|([A-Z_]{4,})\b[^=\n]* = )|\b(SPARSACT_\w+)", re.MULTILINE)
    files = [path for folder in ("src", "papers", "benchmarks", "tests", "docs") for path in (ROOT / folder).rglob("*")]
    found = {
        name
        for path in files
        if path.suffix in (".py", ".hpp")
        for match in defined.findall(path.read_text(encoding="utf-8"))
        for name in match
    }
    assert {"KINDS", "BUDGETS", "test_thresholds_of_activations"} <= names <= found
    new = re.findall(r"([\w./]+)/(?:test_)?NAME\w*\.\w+", CONTRIBUTING)
    places = (ROOT, ROOT / "src" / "sparsact")
    assert {"routing", "fit/candidates", "src/native"} <= set(new)
    folders = [one.replace("paper_X", "paper_a") for one in new]
    assert [one for one in folders if not any((place / one).is_dir() for place in places)] == []


@grid(page=PAGES)
def test_every_block_of_output_is_run(page):
    """Output stands behind ``>>>`` or in a session ``$ sparsact ...``; other blocks are commands or code."""
    assert list(not_run(page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", [ROOT / "README.md", ROOT / "papers" / "README.md"], ids=["README", "papers"])
def test_every_block_of_output_of_a_readme_is_run(path):
    assert list(not_run_in_markdown(path.read_text(encoding="utf-8"))) == []


PLANTED = {
    "text": ".. code-block:: text\n\n   R² 0.9\n",
    "no language": ".. code-block::\n\n   R² 0.9\n",
    "literal": "It prints::\n\n    R² 0.9\n",
    "output of a command": ".. code-block:: sh\n\n   sparsact fit a.csv --target y\n   R² 0.9\n",
    "output of Python": ".. code-block:: python\n\n   print(r2)\n   R² 0.9\n",
    "console in a list": "- So:\n\n  .. code-block:: console\n\n     $ sparsact fit a.csv\n     R² 0.9\n",
    "console without a command": ".. code-block:: console\n\n   R² 0.9\n   $ sparsact fit a.csv\n",
    "console with options": ".. code-block:: console\n   :caption: a\n\n   $ sparsact fit a.csv\n   R² 0.9\n",
}


@pytest.mark.parametrize("page", PLANTED.values(), ids=PLANTED)
def test_output_that_nothing_runs_is_seen(page):
    assert len(list(not_run(page))) == 1


def test_output_that_something_runs_is_left_alone():
    page = ".. code-block:: console\n\n   $ sparsact fit a.csv\n   R² 0.9\n\n>>> 1\n1\n\n.. math::\n\n   x\n"
    assert list(not_run(page)) == []
    assert list(not_run_in_markdown("```python\nprint(1)\n```\n\n```text\n1\n```\n")) == []
    assert len(list(not_run_in_markdown("```text\n1\n```\n\n```\n1\n```\n\n```sh\nmake demo\nR² 0.9\n```\n"))) == 3


@grid(path=PROSE)
def test_links_lead_somewhere(path):
    targets = LINK.findall(path.read_text(encoding="utf-8"))
    assert [target for target in targets if not (path.parent / target).exists()] == []


@grid(path=[*PROSE, *PAGES])
def test_paths_named_in_prose_exist(path):
    """Paths from the root, from the package, or (a bare file name) from anywhere below src."""
    page = path.read_text(encoding="utf-8")
    text = "\n".join(part for part in re.findall(r"`([^`\n]+)`", page))
    named = {name for name in NAMED.findall(text) if "NAME" not in name}
    made = {"docs/_build", "docs/api", *(name for name, _ in LISTING.findall(page))}  # by `make docs`, by the reader
    assert {name for name in named - made if not any((folder / name).exists() for folder in SOURCES)} == set()


def test_links_of_the_readme():
    """They are absolute, for the page stands on a package index too, and lead to files that are here."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert LINK.findall(text) == []
    named = [path.format(name) for address, path in HOSTED.items() for name in address.findall(text)]
    assert len(named) == len(re.findall(r"\]\((?!\S+/issues\))", text))
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_citations_agree():
    """The page of citations, the README and the file for machines name the same papers."""
    page = (ROOT / "docs" / "cite.rst").read_text(encoding="utf-8")
    machines = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    entries = re.findall(r"@inproceedings{.*?^ *}$", page, re.MULTILINE | re.DOTALL)
    assert len(entries) == 2
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for entry in entries:
        fields = dict(re.findall(r"(\w+) += {(.*)}", entry))
        assert f'title: "{fields["title"]}"' in machines
        assert f"*{fields['title']}*" in readme
        for author in fields["author"].split(" and "):
            family, given = author.split(", ")
            assert f"{{family-names: {family}, given-names: {given}}}" in machines
    for version in (re.search(r"version = {(.*?)}", page), re.search(r"^version: (.*)", machines, re.MULTILINE)):
        assert version[1] == sparsact.__version__


@pytest.fixture
def kept_figures(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    return import_module("kept_figures")


def texts_of(kept_figures):
    """Every figure as it is printed, by its name."""
    lines = (line.removeprefix(".. |").split("| replace:: ") for line in kept_figures.substitutions().splitlines())
    return dict(lines)


def test_every_figure_stands_on_a_page(kept_figures):
    """Every name between bars is a row that is kept; every row that has a name is shown, in the README by its text."""
    inserted = re.compile(r"(?<![|\w`])\|([a-z]\w+(?:\s\w+)+)\|(?![|\w`])")
    named = {" ".join(name.split()) for page in PAGES for name in inserted.findall(page.read_text(encoding="utf-8"))}
    texts, readme = texts_of(kept_figures), (ROOT / "README.md").read_text(encoding="utf-8")
    assert named <= texts.keys()
    assert {name for name in texts.keys() - named if texts[name] not in readme} == set()


@grid(page=PAGES)
def test_no_measured_number_is_written_by_hand(page):
    """A page takes what was measured from the rows, by a name between bars; ``:given:`` marks what nobody measured."""
    assert list(measured_in(page.read_text(encoding="utf-8"))) == []


def test_measured_numbers_of_the_readme_match_the_rows(kept_figures):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    spreads = re.findall(r"\d[\d.]*(?: times)? \[[\d.]+, [\d.]+\]", text)
    assert spreads
    assert {*spreads, *(words for _, words in measured_in(text))} <= set(texts_of(kept_figures).values())


def test_measured_numbers_are_seen():
    """What the search takes for a measured number, and what it leaves alone."""
    text = (
        "It is 2.5 times as fast, takes 12 ms or 3 to 4 minutes, has R² 0.91, of 20 s n rows\n\n``3 s`` :given:`5 %`."
    )
    assert [words for _, words in measured_in(text)] == ["2.5 times", "12 ms", "3 to 4 minutes", "R² 0.91"]


@pytest.fixture(scope="module")
def rows_kept():
    """(file, benchmark) of all rows of ``results``; of a file of another form, its name twice."""
    rows = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "results").glob("*.jsonl")}
    return {
        (name, json.loads(line).get("benchmark", name)) for name, text in rows.items() for line in text.splitlines()
    }


def tells(path):
    """Whether a source may have figures, before it is taken apart."""
    text = re.sub(r"\n\s*(?:#|//)?", " ", path.read_text(encoding="utf-8"))
    return FIGURE.search(" ".join(text.split())) or "(results/" in text


@pytest.mark.parametrize("folder", ["src/sparsact", "src/native", "papers/src"])
def test_figures_of_the_source_name_their_rows(folder, rows_kept):
    """A measured figure in a docstring or comment stands beside ``(results/FILE.jsonl, benchmark NAME)``."""
    files = [path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".cpp", ".hpp"}]
    found = [(path.name, one) for path in filter(tells, files) for one in paragraphs(path)]
    assert files
    assert [(name, one.line, one.figures) for name, one in found if one.figures and not one.sources] == []
    assert {source for _, one in found for source in one.sources} <= rows_kept


FIGURES_OF_A_SOURCE = {
    "It is twice as fast, takes 12 ms, or two seconds with 1.9 GB.": [
        "twice as fast",
        "12 ms",
        "two seconds",
        "1.9 GB",
    ],
    "About 2e11 products a second; weights are binned 20 times as slowly.": [
        "2e11 products a second",
        "20 times as slowly",
    ],
    "It takes 1.4 times the bytes, and has a standard error of 3 %.": ["1.4 times the bytes", "error of 3 %"],
    "``8 * m`` bytes, 3 times as many rows, some seconds, s < 2**15, :math:`2 s`.": [],
    "An example:\n\n>>> print('3 ms')\n3 ms": [],
}


@pytest.mark.parametrize("text", FIGURES_OF_A_SOURCE)
def test_figures_of_a_source_are_seen(text):
    assert Paragraph(1, text).figures == FIGURES_OF_A_SOURCE[text]


def test_paragraphs_of_a_source(tmp_path):
    """Comments of lines that follow each other are one; a source counts for its own paragraph."""
    source = '"""First.\n\nIt takes 3 ms\n(results/a.jsonl, benchmark b).\n"""\n# Takes\n# 4 ms.\n\nx = 1  # 5 MB\n'
    (tmp_path / "a.py").write_text(source)
    (tmp_path / "a.cpp").write_text("int x;  // takes 6 ms\n// (results/c.jsonl, benchmark d)\n")
    found = [(one.figures, one.sources) for name in ("a.py", "a.cpp") for one in paragraphs(tmp_path / name)]
    assert [one for one in found if one != ([], [])] == [
        (["3 ms"], [("a", "b")]),
        (["4 ms"], []),
        (["5 MB"], []),
        (["6 ms"], [("c", "d")]),
    ]


def shown(thing):
    """Whether a function, a class or one of its methods has an example."""
    members = vars(thing).values() if inspect.isclass(thing) else ()
    return any(">>>" in (inspect.getdoc(one) or "") for one in (thing, *members))


@pytest.mark.parametrize("name", ["", *WITH_EXAMPLES.split()])
def test_public_names_have_examples(name):
    module = importlib.import_module(f"sparsact.{name}".rstrip("."))
    public = [getattr(module, one) for one in module.__all__]
    things = [one for one in public if inspect.isclass(one) or inspect.isfunction(one)]
    assert {one.__name__ for one in things if not shown(one)} <= RECORDS
    assert not {one.__name__ for one in things if one.__name__ in RECORDS and ">>>" in (inspect.getdoc(one) or "")}


def test_citations_of_a_docstring_become_a_list(monkeypatch):
    """Those of its module too; an initial stays one, for ``N.`` begins a list."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    module = ModuleType("cited", ".. [B] B. Author, Title,\n   Section 3.")
    monkeypatch.setitem(sys.modules, "cited", module)
    lines = ["Of [B]_ and [1]_.", "", "Returns", "-------", "int", "    N. of all.", "", "References", "----------"]
    lines += [".. [1] A. Author,", "   Other title.", "", "Examples", "--------"]
    thing = SimpleNamespace(__module__="cited")
    import_module("citations").local_citations(None, "function", "f", thing, None, lines)
    assert lines[:6] == ["Of [B] and [1].", "", "Returns", "-------", "int", r"    \N. of all."]
    assert lines[7:9] == ["References", "----------"]
    assert lines[9:11] == ["- [B] B. Author, Title, Section 3.", r"- [1] \A. Author, Other title."]
    assert lines[-3:] == ["Examples", "--------", ""]
