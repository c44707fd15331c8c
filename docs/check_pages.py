"""The built pages in a browser, without a network: ``python docs/check_pages.py docs/_build/html [PART_OF_NAME ...]``.

A page must load nothing from elsewhere, draw its formulas, fit a telephone's width and a length that is still scrolled,
and pass axe-core, light and dark. Of the pages of the API, which come from one template, every twentieth is looked at.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Route, sync_playwright

WIDTH, LENGTH = 400, 25_000  # CSS pixels
EVERY = 20
SIZES = """() => ({
    width: document.documentElement.scrollWidth,
    length: document.documentElement.scrollHeight,
    nameless: [...document.images].filter(image => !image.hasAttribute('alt')).length,
})"""


def looked_at(root: Path, parts: list[str]) -> list[Path]:
    """The pages to look at, in the order of their names."""
    pages = [path for path in sorted(root.rglob("*.html")) if "_static" not in path.parts]
    pages = [path for path in pages if not parts or any(part in str(path.relative_to(root)) for part in parts)]
    api = [path for path in pages if path.parent.name == "api"]
    left_out = set(api) - set(api[::EVERY])
    return [path for path in pages if path not in left_out]


def opened(browser: Browser, foreign: list[str], **options: Any) -> Page:
    """A page that can read files and nothing else."""

    def local(route: Route) -> None:
        if route.request.url.startswith(("file:", "data:", "blob:")):
            route.continue_()
        else:
            foreign.append(route.request.url)
            route.abort()

    page = browser.new_page(**options)
    page.route("**/*", local)
    return page


def shape(page: Page) -> Iterator[str]:
    """What is wrong with the page on a telephone."""
    page.wait_for_function("() => !document.querySelector('.math:not(:has(mjx-container))')", timeout=10_000)
    found = page.evaluate(SIZES)
    if found["width"] > WIDTH:
        yield f"{found['width']} px wide on a screen of {WIDTH}"
    if found["length"] > LENGTH:
        yield f"{found['length']:,} px long on a screen of {WIDTH}"
    if found["nameless"]:
        yield f"{found['nameless']} images without an alternative text"


def violations(page: Page, axe: str) -> Iterator[str]:
    """What axe-core finds."""
    page.evaluate(axe)
    for found in page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]:
        targets = [" ".join(map(str, node["target"])) for node in found["nodes"]]
        yield f"{found['id']}, {len(targets)} times: {found['help']}; first at {targets[0]}"


def main() -> None:
    """Print what is wrong, and fail if anything is."""
    root = Path(sys.argv[1]).resolve()
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    pages, wrong = looked_at(root, sys.argv[2:]), 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--allow-file-access-from-files"]
        )
        foreign: list[str] = []
        screens = [
            ("telephone", opened(browser, foreign, viewport={"width": WIDTH, "height": 800})),
            ("light", opened(browser, foreign, color_scheme="light", viewport={"width": 1400, "height": 900})),
            ("dark", opened(browser, foreign, color_scheme="dark", viewport={"width": 1400, "height": 900})),
        ]
        for path in pages:
            print(path.relative_to(root), end="\r", file=sys.stderr, flush=True)
            for name, page in screens:
                foreign.clear()
                page.goto(path.as_uri())
                found = list(shape(page) if name == "telephone" else violations(page, axe))
                for line in [*found, *(f"requests {url}" for url in dict.fromkeys(foreign))]:
                    wrong += 1
                    print(f"{path.relative_to(root)}, {name}: {line}", flush=True)
    if wrong:
        raise SystemExit(f"{wrong} faults on {len(pages)} pages")


if __name__ == "__main__":
    main()
