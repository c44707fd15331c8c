"""HTML representations: well-formed tables whose cells are the numbers of the object, every text escaped."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import nn

import sparsact as sa


def cells(thing):
    """Rows of text of the one table; a name that is taken for a tag makes it no XML, or has children."""
    root = ET.fromstring(thing._repr_html_())
    table = root if root.tag == "table" else root.find("table")
    assert [part.tag for part in table] == ["caption", "thead", "tbody"]
    assert all(not len(cell) for row in table.iter("tr") for cell in row)
    caption, *rows = table[0].text, *([cell.text or "" for cell in row] for row in table.iter("tr"))
    assert len({len(row) for row in rows}) == 1
    return caption, rows


def test_a_spectrum():
    caption, rows = cells(sa.fourier.Spectrum.of({(): 0.5, (0, 2): -2.0}, n=3))
    assert "3 coordinates, degree 2" in caption
    assert [[text.strip() for text in row] for row in rows[1:]] == [["x0 x2", "-2"], ["1", "0.5"]]


def test_a_certificate():
    certificate = sa.certify(sa.constructions.indexing(2))
    caption, rows = cells(certificate)
    assert caption == str(certificate)
    found = dict(map(tuple, rows))
    assert (found["max_active"], found["exact"]) == (str(certificate.max_active), "True")


def test_a_fit_whose_names_are_tags():
    bits = np.random.default_rng(0).integers(0, 2, (80, 2))
    names = ["<script>a</script>", "b & c"]
    table = pa.table({name: bits[:, i] for i, name in enumerate(names)} | {"<y>": bits[:, 0] ^ bits[:, 1]})
    result = sa.fit_table(table, "<y>", degree=2, alpha=0.0, folds=2)
    assert "<script>" not in result._repr_html_()
    caption, rows = cells(result)
    assert caption == result.verdict
    assert rows[1][1] == "80, 2"
    term = next(row for row in rows if row[0] == "effect of " + " × ".join(names))
    assert float(term[1].split()[0]) == pytest.approx(-2)  # 0 - 1 - 1 + 0, over the four settings


def test_a_measurement():
    torch.manual_seed(0)
    model = nn.Sequential()
    for name, module in {"up": nn.Linear(6, 20), "<relu>": nn.ReLU(), "down": nn.Linear(20, 4)}.items():
        model.add_module(name, module)
    measurement = sa.measure(model.eval(), torch.randn(33, 6))
    caption, (head, block) = cells(measurement)
    assert "1 blocks" in caption
    assert dict(zip(head, block, strict=True))["density"] == f"{measurement.blocks[0].density:.2%}"
