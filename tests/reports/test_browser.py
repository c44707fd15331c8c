"""The page of both papers in a real browser: nothing fails, filters filter, downloads are files, nothing overflows."""

import csv
import shutil
from pathlib import Path

import pytest
from reproduced import PAGE_PARTS

from sparsact_papers.page import PagePart, write

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.grid,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: on Debian, apt-get install chromium"),
]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    write(PAGE_PARTS, "sparsact reproduce", path)
    return path.as_uri()


@pytest.fixture
def page(browser, address, request):
    shown = browser.new_page(viewport={"width": getattr(request, "param", 1600), "height": 900})
    errors = []
    shown.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    shown.on("pageerror", lambda error: errors.append(str(error)))
    shown.on("request", lambda asked: errors.append(asked.url) if asked.url.startswith("http") else None)
    shown.goto(address)
    yield shown
    assert errors == []
    shown.close()


of_any_width = pytest.mark.parametrize("page", [400, 1600], indirect=True)


def visible(page, selector):
    return [element for element in page.query_selector_all(selector) if element.is_visible()]


@of_any_width
def test_every_claim_and_figure_is_shown(page):
    claims = sum(len(part.verdicts) for part in PAGE_PARTS)
    assert len(visible(page, ".claims tbody tr")) == claims
    assert len(visible(page, "section.experiment")) == len(PAGE_PARTS)
    assert visible(page, "figure svg")
    assert page.text_content("#filter-count") == f"{claims} claims"


@of_any_width
def test_nothing_is_wider_than_the_window(page):
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@of_any_width
def test_filters_leave_what_fits(page):
    page.select_option("#filter-outcome", "does not hold")
    rows = visible(page, ".claims tbody tr")
    wanted = [v for part in PAGE_PARTS for _, v in part.verdicts if v.outcome.value == "does not hold"]
    assert 0 < len(rows) == len(wanted) < sum(len(part.verdicts) for part in PAGE_PARTS)
    assert all("does not hold" in row.text_content() for row in rows)
    page.select_option("#filter-outcome", "")
    page.fill("#filter-text", "no such words")
    assert visible(page, ".claims tbody tr") == []
    assert visible(page, "section.experiment") == []


def test_the_numbers_of_a_figure_can_be_saved(page, tmp_path):
    for kind, start in (("CSV", "series,"), ("SVG", "<?xml")):
        with page.expect_download() as saving:
            page.focus(f"figure button:has-text('{kind}')")
            page.keyboard.press("Enter")
        target = tmp_path / saving.value.suggested_filename
        saving.value.save_as(target)
        assert Path(target).suffix == f".{kind.lower()}"
        assert target.read_text(encoding="utf-8").startswith(start)
        if kind == "CSV":
            with target.open(newline="", encoding="utf-8") as file:
                names, *lines = csv.reader(file)
    figures = (figure for part in PAGE_PARTS for figure in PagePart(part).figures)
    frame = next(figure.frame for figure in figures if target.stem == figure.name)
    assert names == list(frame)
    written = dict(zip(names, zip(*lines, strict=True), strict=True))
    for name, values in frame.items():
        if all(isinstance(value, float) for value in values):
            assert [float(text) for text in written[name]] == pytest.approx(values, rel=1e-7)


def test_numbers_are_shown_when_they_are_opened(page):
    assert page.query_selector("figure table") is None
    page.click("figure summary")
    page.wait_for_selector("figure table tbody td")
    assert page.text_content("figure th") == "series"


def test_the_keyboard_reaches_the_findings_first(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.wait_for_url("**#main")


def test_every_control_and_figure_has_a_name(page):
    assert page.evaluate("""[...document.querySelectorAll("select, input")].every(c => c.labels.length === 1)""")
    named = """[...document.querySelectorAll("figure svg")].every(
        s => s.getAttribute("role") === "img" && document.getElementById(s.getAttribute("aria-labelledby")))"""
    assert page.evaluate(named)


def test_dark_and_printed_pages_can_be_read(page):
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(media="print", color_scheme="light")
    assert dark != page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert not visible(page, ".links")
    assert visible(page, "figure svg")
