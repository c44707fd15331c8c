"""The examples of the README run, and print what it says; blocks there and on some pages stand alone."""

from __future__ import annotations

import ast
import builtins
import doctest
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from grids import few_of
from pyarrow.csv import write_csv

import sparsact
from sparsact.cli import main

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def fenced(language):
    """The fenced blocks of one language, each with the block of text that follows it (its output) or None."""
    blocks = FENCED.findall(README.read_text(encoding="utf-8"))
    following = [*blocks[1:], ("", "")]
    return [
        (body, after if kind == "text" else None)
        for (spoken, body), (kind, after) in zip(blocks, following, strict=True)
        if spoken == language
    ]


def commands():
    """The words of each command of the library, in order; `demo`, which writes the table, has tests of its own."""
    lines = [shlex.split(line) for block, _ in fenced("sh") for line in block.splitlines()]
    return [words for program, *words in lines if program == "sparsact" and words != ["demo"]]


@pytest.fixture
def protein(tmp_path, monkeypatch):
    """A few rows of the table of `make demo`, in the folder where the examples run."""
    monkeypatch.chdir(tmp_path)
    Path("demo").mkdir()
    table = pa.table(sparsact.datasets.load_poelwijk())
    table = table.take(np.random.default_rng(0).permutation(len(table))[:500])
    write_csv(table, "demo/protein.csv")
    return table


FIRST, *SHORT = fenced("python")


def printed_by(code, **names):
    with redirect_stdout(StringIO()) as printed:
        exec(compile(code, "README.md", "exec"), names)
    return printed.getvalue()


@pytest.mark.grid
@pytest.mark.usefixtures("unrendered", "few_rivals")
def test_the_first_example_runs(protein):
    """On a part of the rows and with few rivals, so that it prints as many lines."""
    code, output = FIRST
    adapted = code.replace("sa.datasets.load_poelwijk()", "protein")
    assert adapted != code
    assert printed_by(adapted, protein=protein).count("\n") == output.count("\n") > 0
    assert [words[0] for words in commands()] == ["fit", "predict"]
    for words in commands():
        assert main(words) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("unrendered", "protein")
def test_the_first_example_prints_what_it_says():
    code, output = FIRST
    assert printed_by(code) == output
    for words in commands():
        assert main(words) == 0


@pytest.mark.parametrize(
    ("code", "output"), few_of(SHORT, SHORT[2:]), ids=["regression", "trained", "layers", "theory"]
)
def test_a_short_example_prints_what_it_says(code, output, tmp_path):
    """In a fresh process and an empty folder."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (output, "")


def blocks(page):
    """The code of each block of a page: examples on lines that follow each other."""
    parts = re.split(r"\n\s*\n", page)
    codes = ["".join(example.source for example in doctest.DocTestParser().get_examples(part)) for part in parts]
    return [code for code in codes if code]


def borrowed(code):
    """The names that a block uses and neither imports nor binds."""
    nodes = list(ast.walk(ast.parse(code)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    bound |= {alias.asname or alias.name.split(".")[0] for node in nodes for alias in getattr(node, "names", [])}
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return {node.id for node in names} - bound - vars(builtins).keys()


N_BLOCKS = {
    "quickstart": 6,
    "for_scientists": 9,
    "experiments": 7,
    "for_theorists": 9,
    "for_model_builders": 12,
    "for_fast_regression": 10,
    "for_inference_engineers": 6,
    "my_models": 2,
}


@pytest.mark.parametrize("page", N_BLOCKS)
def test_each_block_of_a_page_stands_alone(page):
    """It may read files that an earlier one has written."""
    found = blocks((ROOT / "docs" / f"{page}.rst").read_text(encoding="utf-8"))
    assert len(found) == N_BLOCKS[page]
    assert [borrowed(code) for code in found] == [set()] * len(found)


def test_a_block_that_needs_another_is_seen():
    page = ">>> import numpy as np\n>>> a = np.ones(3)\n\nText.\n\n>>> [b for b in a]\n[1]\n>>> print(np.e, c)\n"
    assert [borrowed(code) for code in blocks(page)] == [set(), {"a", "np", "c"}]
