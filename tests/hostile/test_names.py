"""Names of columns and classes that a page, a terminal, a figure or a spreadsheet could obey: all are only shown."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
from commands import run
from grids import few_of
from hostile.names import NASTY

import sparsact as sa
from sparsact.cli.terminal import say, shown, terminal

pytestmark = pytest.mark.usefixtures("few_rivals")
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
COLUMNS = NASTY[:8]  # of features; the rest are classes, targets and files
PROGRAM = files("sparsact.reports").joinpath("templates", "page.js").read_text(encoding="utf-8").strip()
DRAWING = re.compile(r"<svg.*?</svg>", re.DOTALL)


class Page(HTMLParser):
    """Collects elements, attributes that are programs, links, and texts."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.programs, self.data, self.links, self.texts = set(), [], [], [], []
        self.script = None  # what the text of an open script is added to
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.programs += [name for name, value in attrs if name.startswith("on") or "javascript:" in (value or "")]
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href")]
        if tag == "script":
            self.script = self.data if ("type", "application/json") in attrs else self.programs

    handle_startendtag = handle_starttag

    def handle_endtag(self, tag):
        if tag == "script":
            self.script = None

    def handle_data(self, data):
        (self.texts if self.script is None else self.script).append(data)


def harmless(path, *names):
    """A page that names all of these, with no program but its own, numbers that are JSON and figures that are XML."""
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    assert not {"img", "iframe", "object", "base"} & page.tags
    assert [program.strip() for program in page.programs] == [PROGRAM]
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in page.links)
    text = "".join(page.texts)
    for name in names:
        assert name in text
    drawings = DRAWING.findall(html)
    assert len(drawings) == len([json.loads(numbers) for numbers in page.data])
    for drawing in drawings:
        assert not any(element.tag.endswith(("script", "foreignObject")) for element in ET.fromstring(drawing).iter())


def table(path, columns, target, answers):
    """A table of bits, a column a name; the target is what is told."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (len(answers), len(columns)))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, target])
        writer.writerows([*row, answer] for row, answer in zip(X.tolist(), answers, strict=True))
    return path


def quiet(out):
    """The text, after a look that nothing in it would be obeyed."""
    assert not OBEYED.search(out)
    return out


@pytest.mark.grid
@pytest.mark.parametrize("target", few_of([NASTY[0], NASTY[9], NASTY[11]], [NASTY[0]]))
def test_columns_and_targets(capsys, tmp_path, target):
    columns = [name for name in COLUMNS if name != target]
    data = table(tmp_path / "t.csv", columns, target, (np.arange(90) % 7).tolist())
    model, page, out = tmp_path / "m", tmp_path / "p.html", tmp_path / "out.csv"
    status, told, err = run(capsys, "fit", data, "--target", target, "--degree", 1, "--report", page, "--out", model)
    assert (status, err) == (0, "")
    quiet(told)
    harmless(page, *columns, target)
    status, told, err = run(capsys, "inspect", model)
    assert (status, err) == (0, "")
    assert "[red]x[/red]"[:4] in quiet(told) or "[red]x[/red]" not in columns
    assert run(capsys, "predict", model, data, "--out", out) == (0, "", "")
    with out.open(encoding="utf-8", newline="") as file:
        assert next(csv.reader(file)) == [target, f"{target}_low", f"{target}_high", "outside"]


@pytest.mark.grid
def test_classes_in_pages_terminals_and_spreadsheets(capsys, tmp_path):
    labels = [name for name in NASTY if name == name.strip()][-7:]
    answers = [labels[i % len(labels)] for i in range(10 * len(labels))]
    data = table(tmp_path / "t.csv", ["a", "b", "c"], "kind", answers)
    model, page = tmp_path / "m", tmp_path / "p.html"
    words = ("fit", data, "--target", "kind", "--degree", 1, "--report", page, "--out", model)
    status, told, err = run(capsys, *words)
    assert (status, err) == (0, "")
    quiet(told)
    harmless(page)
    status, told, err = run(capsys, "inspect", model)
    assert (status, err) == (0, "")
    quiet(told)
    status, _, err = run(capsys, "predict", model, data, "--out", tmp_path / "out.csv")
    assert (status, err) == (0, "")
    text = (tmp_path / "out.csv").read_text(encoding="utf-8")
    predicted = [row[0] for row in csv.reader(io.StringIO(text, newline=""))]
    assert predicted[0] == "kind"
    assert set(predicted[1:]) <= set(labels)
    assert all(line.startswith('"') for line in text.splitlines() if line[:1] in ("=", "+", "-", "@", '"'))


@pytest.mark.parametrize("name", ["$x$ <script>.sparsact", "[red]x[bold].sparsact", "=1+\x1b[2J.sparsact"])
def test_names_of_files(capsys, tmp_path, name):
    net = sa.SparselyActivatedNetwork([1.0, -1.0], [[1, 1, 0], [-1, -1, 2]], [0.0, 0.5])
    net.save(tmp_path / name)
    page = tmp_path / "page.html"
    status, told, err = run(capsys, "inspect", tmp_path / name, "--report", page)
    assert (status, err) == (0, "")
    assert shown(name) in quiet(told)
    harmless(page)
    (tmp_path / name).write_bytes(b"no model")
    status, _, err = run(capsys, "inspect", tmp_path / name)
    assert status == 2
    assert shown(name) in quiet(err)


@pytest.mark.parametrize("name", NASTY)
def test_a_terminal_shows_all_and_obeys_nothing(capsys, name):
    say(name)
    terminal().print(shown(name), soft_wrap=True)
    for line in quiet(capsys.readouterr().out).splitlines():
        assert line == shown(name)
    assert json.loads(json.dumps(name)) == name
