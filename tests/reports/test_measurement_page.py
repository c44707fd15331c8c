"""The page of a model's activations: its numbers are the measurement's, and it stands alone."""

import re

import pytest
import torch
from measured import passing
from torch import nn

import sparsact as sa
from sparsact.inference.block import Activation, Block
from sparsact.reports.measurement_figures import CHARTS, measurement_figures
from sparsact.reports.page import measurement_page

FRAMES = {chart.name: chart.frame for chart in CHARTS}


def measured(n_layers=3, n_rows=70):
    """Layers of growing bias; the last one is dead, and the first has no zeros."""
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(5, 13), nn.ReLU(), nn.Linear(13, 5)) for _ in range(n_layers)]
    layers[0][1] = nn.GELU()
    with torch.no_grad():
        layers[-1][0].bias -= 100
    relu, gelu = Activation("relu", torch.relu, torch.zeros(13)), Activation("gelu", nn.functional.gelu, None)
    blocks = [Block(f"{i}", f"{i}.0", f"{i}.2", None, relu if i else gelu) for i in range(n_layers)]
    return sa.measure(nn.Sequential(*layers), torch.randn(2, n_rows, 5), blocks)


def page_of(measurement, name="a <b>model</b>"):
    return measurement_page(measurement, name, (("sparsact", "0"),), "sparsact measure m:f --inputs x.npy")


@pytest.fixture(scope="module")
def page():
    return page_of(measured())


@pytest.mark.grid
def test_the_page_stands_alone_and_escapes_names(page):
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)
    assert "a &lt;b&gt;model&lt;/b&gt;" in page
    assert "<b>model" not in page
    assert page.count("<figure") == len(CHARTS)


def test_the_page_tells_what_was_measured(page):
    measurement = measured()
    for block in measurement.blocks:
        assert f"{100 * block.density:.2f} %" in page
        assert f"{block.roofline().dense:,}" in page
    assert f"{measurement.bound('certified'):.2f}×" in page
    assert "unbounded" in page  # the oracle of the dead layer
    assert "13 dead of 13" in page


def test_frames_hold_the_numbers_of_the_layers():
    measurement = measured()
    first, _, dead = measurement.blocks
    by_layer = FRAMES["density-by-layer"](measurement)
    assert by_layer["mean density"] == [block.density for block in measurement.blocks]
    over = FRAMES["density-over-rows"](measurement)
    ends = [share for name, share in zip(over["layer"], over["share of rows"], strict=True) if name == first.name]
    assert ends[-1] == 1
    ranked = FRAMES["unit-frequency"](measurement)
    alive = [block for block in measurement.blocks if block is not dead]
    assert len(ranked["layer"]) == sum(block.n_units - block.n_dead for block in alive) + 1
    assert ranked["share of rows"][-1] is None
    assert FRAMES["union-density"](measurement)["consecutive rows"] == (1, 4, 16, 64) * 3
    bounds = FRAMES["speedup-bounds"](measurement)
    assert bounds["exact"] == [
        None,
        *(b.roofline().speedup("exact") for b in measurement.blocks[1:]),
        bounds["exact"][-1],
    ]
    assert bounds["layer"][-1] == "whole model"


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_every_figure_labels_its_axes(chart):
    for axes in chart.plot(chart.frame(measured())).axes:
        assert axes.get_xlabel()
        assert axes.get_ylabel() or axes.get_yticklabels()[0].get_text() == "0"  # a list of layers


@pytest.mark.grid
def test_many_layers_are_drawn_in_part_and_the_page_says_so():
    drawn = {figure.name: figure for figure in measurement_figures(measured(n_layers=8, n_rows=5))}
    assert len(set(drawn["union-density"].frame["layer"])) == 6
    assert drawn["union-density"].caption.endswith("6 of 8 layers.")
    assert len(drawn["density-by-layer"].frame["layer"]) == 8
    assert "layers." not in drawn["density-by-layer"].caption


@pytest.mark.grid
def test_one_dead_layer_and_one_row_make_a_page():
    model, block = passing(4)
    assert "(the model)" in page_of(sa.measure(model, -torch.ones(1, 4), [block]))


@pytest.mark.grid
def test_the_page_is_the_same_every_time(page):
    assert page_of(measured()) == page
