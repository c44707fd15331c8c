"""Every link of the built pages, checked without a network: ``python docs/check_links.py docs/_build/html``.

A link to a page of ours must find the file, and the anchor in it. A link to elsewhere must be https, to a host that is
listed here: what stands there is not asked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

HOSTS = {
    "docs.dask.org",
    "docs.python.org",
    "github.com",  # threads that tables of faults cite
    "jfly.uni-koeln.de",
    "pydata-sphinx-theme.readthedocs.io",
    "scikit-learn.org",
    "sphinx-gallery.github.io",
    "www.sphinx-doc.org",
}
LETTERED = re.compile("alpha|roman")
PLACES = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src", "iframe": "src"}


@dataclass
class Page(HTMLParser):
    """What a page links to, and the anchors that it has."""

    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    lettered: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    @classmethod
    def of(cls, path: Path) -> Page:
        """Read a file."""
        page = cls()
        page.feed(path.read_text(encoding="utf-8"))
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the link and the anchor of an element."""
        found = dict(attrs)
        self.anchors.update(name for name in (found.get("id"), found.get("name")) if name)
        link = found.get(PLACES.get(tag, ""))
        if link is not None:
            self.links.append(link)
        self.lettered += tag == "ol" and LETTERED.search(found.get("class") or "") is not None


def broken(folder: Path) -> Iterator[str]:
    """What is wrong with the pages of a folder, a line each."""
    root = folder.resolve()
    pages = {path: Page.of(path) for path in sorted(root.rglob("*.html")) if "_static" not in path.parts}
    for path, page in pages.items():
        name = path.relative_to(root)
        if page.lettered:
            yield f"{name}: a list of letters: reST takes N. at the beginning for a number; write \\N."
        for link in dict.fromkeys(page.links):
            wrong = fault(path, link, pages)
            if wrong:
                yield f"{name}: {link}: {wrong}"


def fault(path: Path, link: str, pages: dict[Path, Page]) -> str:
    """What is wrong with one link of a page, or nothing."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return elsewhere(parts)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return "no such file"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return "no such anchor"
    return ""


def elsewhere(parts: SplitResult) -> str:
    """What is wrong with a link to another host, or nothing."""
    if parts.scheme == "data":
        return ""
    if parts.scheme != "https" or " " in parts.geturl():
        return "not a well-formed https link"
    return "" if parts.hostname in HOSTS else f"{parts.hostname} is not among the hosts of {Path(__file__).name}"


def main() -> None:
    """Print what is wrong, and fail if anything is."""
    found = list(broken(Path(sys.argv[1])))
    print("\n".join(found))
    if found:
        raise SystemExit(f"{len(found)} broken links")


if __name__ == "__main__":
    main()
