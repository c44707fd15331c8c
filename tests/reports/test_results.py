"""What a result shows by itself: tables as text, HTML and frames, and the figures of its page."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from summaries import summary, target

from sparsact import registry
from sparsact.fit.page import fit_page
from sparsact.fit.scores import Confusion
from sparsact.reports.figure import to_svg

TWO = (target(), target("size", r2=(0.5, 0.6, 0.4, 0.55, 0.45)))
CONFUSION = Confusion(("high", "low"), np.array([[30, 5], [2, 63]]))
TABLES = {
    "scores": summary().scores,
    "scores of two targets": summary(TWO).scores,
    "scores of classes": replace(summary(), confusion=CONFUSION).scores,
    "choices": summary().choices,
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_the_same_as_text_as_html_and_as_a_frame(name):
    table = TABLES[name]
    frame, html = table.to_frame(), ET.fromstring(table._repr_html_())
    caption, *lines = str(table).splitlines()
    assert html[0].text == caption == table.caption
    assert len({len(line) for line in lines}) == 1
    cells = [["".join(cell.itertext()) for cell in row] for row in html.iter("tr")]
    assert cells[0] == list(frame)
    for line, row in zip(lines, cells, strict=True):
        assert re.split(r"\s{2,}", line.strip()) == row
    for row, (_, numbers) in zip(cells[1:], frame.iterrows(), strict=True):
        for text, number in zip(row, numbers, strict=True):
            if isinstance(number, float) and np.isfinite(number):
                assert float(text.replace("−", "-")) == pytest.approx(number, rel=1e-3)


def test_scores_match_the_targets():
    frame = TABLES["scores of two targets"].to_frame()
    assert list(frame["target"]) == ["brightness", "size"]
    np.testing.assert_allclose(frame["r2"], [np.mean([0.81, 0.84, 0.8, 0.83, 0.85]), 0.5])
    np.testing.assert_allclose(frame["r2_deviation"][1], np.std([0.5, 0.6, 0.4, 0.55, 0.45], ddof=1))
    assert "Accuracy 93.0%; always naming the most frequent class 65.0%." in str(TABLES["scores of classes"])


def test_the_model_that_was_chosen_is_marked():
    choices = TABLES["choices"]
    frame = choices.to_frame()
    assert list(frame["name"]) == [model.name for model in choices.models]
    assert frame["chosen"].tolist() == [model.chosen for model in choices.models]
    assert choices.caption == f"Chosen: {choices.name}, because {choices.reason}."


def drawing(html):
    """What is drawn, whatever the names of its parts."""
    return re.sub(r'(id="|href="#|url\(#|aria-[a-z]+=")[^")]*', "", html)


@pytest.mark.grid
def test_figures_match_the_page():
    result = summary(TWO)
    page = drawing(fit_page(result, None))
    for name, of_target in ((None, None), ("interactions", "size"), ("residuals", "size"), ("scores", None)):
        svg = to_svg(result.plot(name, of_target))
        assert drawing(svg).partition(">")[2] in page
    assert to_svg(result.plot()) == to_svg(result.plot("interactions", "brightness"))


def test_without_effects_the_first_figure_is_of_scores():
    result = summary((replace(target(), terms=()),))
    assert to_svg(result.plot()) == to_svg(result.plot("scores"))


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("heat",), "this fit has no figure 'heat'; it has interactions, "),
        ((None, "weight"), "the fit has no target 'weight'; it has brightness, size"),
    ],
)
def test_a_wrong_name_is_answered_with_all_names(words, error):
    with pytest.raises(ValueError, match=error):
        summary(TWO).plot(*words)


@pytest.mark.grid
def test_html_holds_the_verdict_and_the_strongest_effects_with_their_picture():
    result = summary()
    root = ET.fromstring(result._repr_html_())
    assert root.find("table")[0].text == result.verdict
    (svg,) = root.iter("{http://www.w3.org/2000/svg}svg")
    assert (svg.get("role"), svg.get("aria-label")) == ("img", "Strongest effects")
    assert drawing(to_svg(result.plot())).partition(">")[2] in drawing(result._repr_html_())
    other = summary(names=("a", "b", "d"))
    ids = [set(re.findall(r'id="([^"]+)"', one._repr_html_())) for one in (result, other)]
    assert ids[0] & ids[1] == set()
    assert repr(result) == str(result)


def test_without_matplotlib_there_is_the_table_and_a_remedy(monkeypatch):
    def find(place):
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

    monkeypatch.setattr(registry, "find", find)
    assert [part.tag for part in ET.fromstring(summary()._repr_html_())] == ["table"]
    with pytest.raises(
        ImportError, match=r'a figure needs matplotlib, not installed here: pip install "sparsact\[report'
    ):
        summary().plot()
