"""The examples of the README run, and print what it says."""

from __future__ import annotations

import re
import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.csv import write_csv

import sparsact
from sparsact.cli import main

README = Path(__file__).parents[1] / "README.md"
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


def run_python(adapted, **given):
    """Each block of Python, one after another: whether it was changed, what it prints, and what it is to print."""
    names: dict[str, object] = {**given}
    for code, output in fenced("python"):
        with redirect_stdout(StringIO()) as printed:
            exec(compile(adapted(code), "README.md", "exec"), names)
        yield adapted(code) != code, printed.getvalue(), output or ""


@pytest.mark.grid
@pytest.mark.usefixtures("unrendered", "few_rivals")
def test_the_examples_run(protein, monkeypatch, capsys):
    """A tenth of the rows, few rivals: what depends on neither is printed as it stands, of the rest as many lines."""
    changes = {"sa.datasets.load_poelwijk()": "protein", "5000": "500", "4000": "400", "4900": "490"}
    pattern = re.compile("|".join(map(re.escape, changes)))
    seen = []
    for changed, printed, output in run_python(
        lambda code: pattern.sub(lambda found: changes[found[0]], code), protein=protein
    ):
        assert (printed.count("\n"), changed or printed) == (output.count("\n"), changed or output)
        seen.append(changed)
    assert seen == [True]
    assert [words[0] for words in commands()] == ["fit", "predict"]
    for words in commands():
        assert main(words) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("unrendered", "protein")
def test_the_examples_print_what_it_says():
    for _, printed, output in run_python(str):
        assert printed == output
    for words in commands():
        assert main(words) == 0
