import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from grids import few_of
from summaries import classes, hashed, summary, target

from sparsact.fit.scores import FoldScores
from sparsact.reports.figure import Display


def fit_page(result):
    with TemporaryDirectory() as folder:
        result.report(path := Path(folder) / "page.html")
        return path.read_text(encoding="utf-8")


VOID = {"meta", "path", "use", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """Checks that tags nest, and collects what a test asks about."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.text = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        attributes = dict(attrs)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [(tag, name, value) for name, value in attrs if name in ("href", "src", "xlink:href", "action")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def regression():
    return fit_page(summary())


@pytest.fixture(scope="module")
def classification():
    return fit_page(classes())


@pytest.fixture(scope="module")
def hash_tables():
    return fit_page(hashed())


@pytest.fixture(params=few_of(["regression", "classification", "hash_tables"], ["regression"]))
def html(request):
    return request.getfixturevalue(request.param)


@pytest.mark.grid
def test_the_page_is_well_formed_and_ids_are_unique(html):
    page = Page(html)
    assert html.startswith("<!DOCTYPE html>")
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("h1") == 1


def test_the_page_loads_nothing(html):
    for tag, name, value in Page(html).links:
        assert value.startswith("#") or (tag == "image" and value.startswith("data:image/")), (tag, name, value[:60])
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)
    assert not re.search(r"https?://", re.sub(r'xmlns(:\w+)?="[^"]*"', "", html))


def test_every_figure_has_a_name_a_caption_its_numbers_and_two_files(html):
    page = Page(html)
    n_figures = page.tags.count("figure")
    assert n_figures >= 5
    assert page.tags.count("svg") == page.tags.count("figcaption") == n_figures
    assert page.tags.count("button") == 2 * n_figures
    for name in re.findall(r'aria-(?:labelledby|describedby)="([^"]+)"', html):
        assert name in page.ids


DRAWING, NUMBERS = (
    re.compile(r"<svg .*?</svg>", re.DOTALL),
    re.compile(r'<script type="application/json">(.*?)</script>'),
)


def test_every_figure_and_its_numbers_are_on_the_page_once(html):
    drawings, numbers = DRAWING.findall(html), NUMBERS.findall(html)
    assert len(drawings) == len(numbers) == Page(html).tags.count("figure")
    for drawing in drawings:
        assert ET.fromstring(drawing).tag == "{http://www.w3.org/2000/svg}svg"
    for rows in map(json.loads, numbers):
        assert len({len(row) for row in rows}) == 1
    assert len(NUMBERS.sub("", DRAWING.sub("", html))) < 30_000  # the frame of the page, which holds no second copy


def test_numbers_match_the_frame_to_eight_digits():
    frame = {"name": ["a", "<b>"], "value": [1 / 3, np.float64(-2e-9)], "n": [np.int64(3), None]}
    assert Display("x", "", "", frame, lambda frame: None).numbers == [
        ["name", "value", "n"],
        ["a", 0.33333333, 3],
        ["<b>", -2e-9, None],
    ]


def test_the_contents_lead_to_every_section(html):
    page = Page(html)
    targets = {value[1:] for tag, name, value in page.links if tag == "a"}
    assert targets <= set(page.ids)
    assert targets >= set(re.findall(r'<h2 id="([^"]+)"', html))


@pytest.mark.parametrize(
    "heading",
    [
        "Held-out error against the baselines",
        "Predicted, actual and residual",
        "Error of polynomials by degree",
        "Weight by degree",
        "Strongest effects",
        "Influence of each column",
        "What was chosen, and why",
        "The data",
        "Time and memory",
        "sa.fit_table(&#34;proteins.csv&#34;, &#34;brightness&#34;)",
        "8 cells hold every row",
        "by cross-validation over 0, 1, 10",
        "210 MB",
    ],
)
def test_a_regression_has_every_section(regression, heading):
    assert heading in regression


@pytest.mark.grid
def test_a_classification_tells_accuracy_and_every_class(classification):
    assert f"{(50 + 61 + 40) / 166:.2%}" in classification  # the diagonal of 166 rows
    assert "Confusion of held-out rows" in classification
    for name in ("cat", "dog", "eel"):
        assert f"class {name}" in classification


@pytest.mark.grid
@pytest.mark.parametrize(
    "told",
    [
        " by hash tables (LSH); linear model 0.412.",
        "because held-out R² 0.826 against 0.412 of degree 1 (linear), on the same 5 folds",
        "Bucket load",
        "Error against cost",
        "Columns that matter",
        "Coverage of prediction intervals",
        "1,440 buckets (0.3 MB), half of the rows in buckets of at most 35",
        "a new row misses 2.4% of its buckets, and all of them in 0.10% of cases",
        "2 hash tables, grids of width 0.625",
        "root mean squared error 2.08",
        "chosen from 8 by the error on rows left out, on 8,192 rows, the whole table",
    ],
)
def test_a_fit_of_hash_tables_tells_what_they_hold(hash_tables, told):
    assert told in hash_tables
    assert "What it consists of" not in hash_tables
    assert "monomials" not in hash_tables


@pytest.mark.grid
@pytest.mark.usefixtures("unrendered")
def test_classes_of_hash_tables_have_a_page_too():
    page = fit_page(hashed(classes().confusion))
    Page(page)
    assert "Confusion of held-out rows" in page
    assert "Bucket load" in page


def test_tables_that_taught_nothing_are_not_said_to():
    part = hashed()
    noise = type(part.targets[0])(**(vars(part.targets[0]) | {"r2": FoldScores((-0.2, 0.1, -0.1))}))
    told = type(part)(**(vars(part) | {"targets": (noise,)})).verdict
    assert "It does not predict held-out rows, but degree " in told
    assert told.endswith("choose model low-degree.")


@pytest.mark.grid
def test_names_from_the_data_are_text_and_never_markup():
    names = ("<script>alert(1)</script>", "a & b", '"q" $x_1$')
    for told in (summary([target("<img src=x onerror=alert(1)>", names)], names=names), hashed(names=names)):
        html = fit_page(told)
        page = Page(html)
        assert page.tags.count("script") == 1 + page.tags.count("figure")
        assert "<script>alert" not in html
        assert "img" not in page.tags
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
        assert '"q" $x_1$' in "".join(page.text)


@pytest.mark.usefixtures("unrendered")
def test_a_page_of_several_targets_names_each():
    html = fit_page(summary([target("h1"), target("h9")]))
    Page(html)
    assert "How well it predicts: h1" in html
    assert "How well it predicts: h9" in html


def all_scored(folds):
    """A summary in which every model has these R2."""
    scores, told = FoldScores(folds), summary([target(r2=folds)])
    candidates = tuple(replace(each, r2=scores) for each in told.choices.candidates)
    models = tuple(replace(each, r2=scores) for each in told.choices.models)
    return replace(told, choices=replace(told.choices, candidates=candidates, models=models))


@pytest.mark.usefixtures("unrendered")
def test_the_page_says_plainly_when_nothing_was_learned(regression):
    html = fit_page(all_scored((-0.002, 0.001, -0.001, 0.0005, -0.003)))
    assert "Nothing of degree ≤ 3 was found in these columns" in html
    assert 'class="verdict nothing"' in html
    assert "Nothing of degree" not in regression


@pytest.mark.usefixtures("unrendered")
def test_folds_that_differ_are_uncertain_and_not_nothing():
    """The mean of the folds, .34, is below their deviation; a linear model that is sure is named instead."""
    folds = (0.9, 0.8, 0.7, -1.2, 0.5)
    verdict = summary([target(r2=folds)]).verdict
    assert verdict.startswith(
        "Held-out R² 0.340 ± 0.873 by a polynomial of degree 2; linear model 0.412. It does not predict"
    )
    assert verdict.endswith("the best of all models compared is degree 1 (linear), R² 0.412 ± 0.019.")
    told = all_scored(folds)
    assert not told.learned
    assert "This may be chance; the best of all models" in told.verdict
    assert "what follows may describe noise" in fit_page(told)


def test_a_verdict_begins_with_the_scores():
    assert summary([target("h1"), target("h9")]).verdict == (
        "Held-out R² 0.826 ± 0.021 for h1 (linear model 0.412), 0.826 ± 0.021 for h9 (linear model 0.412) by a "
        "polynomial of degree 2."
    )
    assert classes().verdict == (
        f"Held-out accuracy {(50 + 61 + 40) / 166:.1%} by a polynomial of degree 2; {67 / 166:.1%} by always naming "
        "the most frequent class. R² of the class indicators is 0.826 ± 0.021; "
        "predicting the class frequencies gives 0."
    )


@pytest.mark.usefixtures("unrendered")
def test_a_page_has_no_empty_chapter():
    bare = replace(target(), terms=(), weights=(), influences=())
    html = fit_page(summary([bare]))
    assert "What it consists of" not in html
    assert re.search(r"<h2[^>]*>[^<]*</h2>\s*(<h2|$)", html) is None
    assert re.search(r'<div class="figures">\s*</div>', html) is None


@pytest.mark.grid
def test_the_same_summary_gives_the_same_bytes(regression):
    assert fit_page(summary()) == regression


@pytest.mark.grid
def test_names_in_any_script_and_few_rows_are_drawn_without_a_warning():
    names = ("遺伝子", "ген", "γονίδιο")
    fit_page(summary([target("収量", names, n_held_out=40)], names=names))


@pytest.mark.grid
def test_a_fit_of_one_column_and_one_fold_is_drawn():
    lonely = target(names=("a",), r2=(0.5,), n_held_out=3)
    lonely = type(lonely)(**(vars(lonely) | {"linear_r2": FoldScores((0.4,)), "weights": (0.0,)}))
    Page(fit_page(summary([lonely], names=("a",))))
    assert np.isfinite(lonely.r2.deviation)
