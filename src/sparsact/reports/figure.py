"""A figure: its numbers as named columns, its drawing, and the style that all figures share."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, ParamSpec, TypeVar, cast
from xml.etree import ElementTree as ET
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Frame = dict[str, Sequence[Any]]


def rows(frame: Frame) -> Iterator[tuple[Any, ...]]:
    """Rows of a frame."""
    return zip(*frame.values(), strict=True)


def n_rows(frame: Frame) -> int:
    """Length of the columns."""
    return len(next(iter(frame.values())))


def plain(value: object) -> object:
    """A number of a frame as JSON holds it, to 8 digits; None, True, False and texts as they are.

    >>> plain(1 / 3), plain(np.int64(7)), plain(float("inf")), plain(None)
    (0.33333333, 7, 'inf', None)
    """
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, float):
        return value
    return float(f"{value:.8g}") if math.isfinite(value) else str(value)


# Okabe and Ito's palette, https://jfly.uni-koeln.de/color: blue and vermilion differ in lightness too.
BLUE, VERMILION, GREEN, SKY = "#0072B2", "#D55E00", "#009E73", "#56B4E9"
ORANGE, PURPLE = "#E69F00", "#CC79A7"
INK, GREY, PALE = "#1F2328", "#6E7781", "#D0D7DE"
COLOURS: Final = (BLUE, VERMILION, GREEN, INK, ORANGE, PURPLE, SKY, GREY)
PAPER_BLUES: Final = ["#B5D3E7", BLUE, "#002B45"]  # no white: one row shows
LONGEST_LABEL: Final = 60
NARROW: Final = 4.7 * 72  # points; three quarters of it are a phone's 330 pixels, where texts of 10 points can be read
FEW, SOME = 3.0, 60.0  # logarithmic axes that span less than this are labelled at each tick; at 2 and 5
_NO_XML: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]"
)  # what no XML may hold, names in data may

STYLE: Final[dict[Any, Any]] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10.5,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": PALE,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "text.parse_math": False,  # a column may be named "a$b$"
    "axes.formatter.use_mathtext": False,
    "svg.fonttype": "none",  # text that is found, read aloud and small; FONTS are of like widths
    "svg.hashsalt": "sparsact",
}

P = ParamSpec("P")
R = TypeVar("R")


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """A decorator of every function that draws. Matplotlib is loaded when it draws: experiments also run without it."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        from matplotlib import rc_context

        with rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn


def figure(width: float, height: float) -> Figure:
    """An empty figure, in inches. It belongs to no global state of matplotlib."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def panel(width: float, height: float, x: str = "", y: str = "", *, grid: Literal["", "x", "y", "both"] = "") -> Axes:
    """The axes of a new figure that holds nothing else, with their labels."""
    axes = figure(width, height).subplots()
    axes.set(xlabel=x, ylabel=y)
    if grid:
        axes.grid(visible=True, axis=grid)
    return axes


def panels(width: float, height: float, n_rows: int, n_columns: int, **layout: Any) -> list[Axes]:
    """The axes of a new figure, in a row or in a column."""
    return list(figure(width, height).subplots(n_rows, n_columns, **layout))


def legend_above(axes: Axes, ncols: int = 2) -> None:
    """The legend of axes, above their figure."""
    axes.figure.legend(*axes.get_legend_handles_labels(), fontsize=8.5, loc="outside upper center", ncols=ncols)


def width_for(labels: list[str]) -> float:
    """Width of a figure with labels down its left side, in inches."""
    return 5.2 + 0.08 * max((len(shortened(label)) for label in labels), default=0)


def shortened(label: str, longest: int = LONGEST_LABEL) -> str:
    """A label that leaves room for the figure; tables keep the whole of it."""
    return label if len(label) <= longest else label[: longest - 1] + "…"


def list_axis(axes: Axes, labels: list[str]) -> None:
    """Labels down the left side, the first on top."""
    axes.set_yticks(range(len(labels)), [shortened(label) for label in labels])
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=True, axis="x")


def scale(axes: Axes, *, log_x: float, log_y: float) -> None:
    """Make axes logarithmic, in the given bases, with labels that people read."""
    from matplotlib.ticker import FuncFormatter

    for axis, base, limits in ((axes.xaxis, log_x, axes.get_xlim), (axes.yaxis, log_y, axes.get_ylim)):
        if not base:
            continue
        axes.set_xscale("log", base=base) if axis is axes.xaxis else axes.set_yscale("log", base=base)
        low, high = limits()
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))  # the style has no mathematical text
        span = high / low if low > 0 else float("inf")
        digits = "" if base == 2 or span > SOME else "123456789" if span < FEW else "25"
        axis.set_minor_formatter(FuncFormatter(partial(_if_it_begins_with, digits)))


def _if_it_begins_with(digits: str, value: float, _: int | None) -> str:
    return f"{value:g}" if f"{value:e}"[0] in digits else ""


@styled
def to_svg(drawing: Figure) -> str:
    """A figure as one SVG element, the same bytes every time."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    text = io.StringIO()
    with warnings.catch_warnings():
        # The table next to the figure shows names whose script the figure's font lacks.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        # Figure.savefig would draw it once more, for its layout, which drawing computes anyway.
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        FigureCanvasSVG(drawing).print_svg(text, metadata=metadata)  # type: ignore[no-untyped-call]
    return lighter(_NO_XML.sub("\N{REPLACEMENT CHARACTER}", text.getvalue()[text.getvalue().index("<svg") :]))


SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
INHERITED: Final = "stroke-linejoin:round;stroke-linecap:butt;font-family:'DejaVu Sans',Verdana,sans-serif"
_LONG: Final = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
_NEEDLESS: Final = re.compile(r" ?font-family: [^;]*;|(?<=[:;]) |rotate\(-0 [^)]*\)")
_WIDTH: Final = re.compile(r'<svg [^>]*\bwidth="([0-9.]+)pt"')
_REFERENCE: Final = re.compile(r"((?:href=\"|url\()#)([\w-]+)")


def lighter(svg: str) -> str:
    """A drawing of matplotlib with hundredths of a point, short ids, and no groups and styles that say nothing."""
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", XLINK)
    ids = {name: f"i{k}" for k, name in enumerate(dict.fromkeys(name for _, name in _REFERENCE.findall(svg)))}
    root = ET.fromstring(_REFERENCE.sub(lambda found: found[1] + ids[found[2]], svg))  # noqa: S314 - our own drawing
    for element in root.iter():
        found = dict(element.items()) | {"id": ids.get(element.get("id", ""), "")}
        element.attrib.clear()
        element.attrib.update({key: short for key, value in found.items() if (short := _short(value))})
        element.text = element.text if element.tag in (f"{{{SVG}}}text", f"{{{SVG}}}tspan") else None
        element.tail = None
    _unwrap(root)
    root.set("style", INHERITED)
    return ET.tostring(root, encoding="unicode")


def _short(value: str) -> str:
    rounded = _LONG.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), value)
    return " ".join(_NEEDLESS.sub("", rounded).split())


def _unwrap(element: ET.Element) -> None:
    """Replace groups without attributes by what they hold, and drop the style sheet, which would hold for the page."""
    kept: list[ET.Element] = []
    for child in element:
        _unwrap(child)
        if child.tag == f"{{{SVG}}}g" and not child.attrib:
            kept += child
        elif child.tag != f"{{{SVG}}}style":
            kept.append(child)
    element[:] = kept


def with_own_names(svg: str, prefix: str) -> str:
    """An SVG whose ids cannot clash with another figure's on the same page."""
    return re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{prefix}-", svg)


@dataclass(frozen=True)
class Display:
    """A figure on the page. ``name`` is unique there, and becomes the name of saved files."""

    name: str
    title: str
    caption: str
    frame: Frame
    plot: Callable[[Frame], Figure]

    @property
    def figure(self) -> Figure:
        """A new drawing of the figure."""
        return self.plot(self.frame)

    @cached_property
    def svg(self) -> str:
        """The figure as one SVG element."""
        return to_svg(self.figure)

    @property
    def svg_alone(self) -> str:
        """The figure for a notebook: named for screen readers, its ids its own."""
        svg = with_own_names(self.svg, f"f{crc32(self.svg.encode()):x}")
        return svg.replace("<svg ", f'<svg role="img" aria-label="{self.title}" ', 1)

    @property
    def inline_svg(self) -> str:
        """The figure for this page: named for screen readers, its ids its own."""
        named = f'<svg role="img" aria-labelledby="{self.name}-title" aria-describedby="{self.name}-caption" '
        return with_own_names(self.svg, self.name).replace("<svg ", named, 1)

    @property
    def is_narrow(self) -> bool:
        """Whether a phone shows the whole of it, a little smaller; wider ones scroll there."""
        width = _WIDTH.search(self.svg)
        return width is not None and float(width[1]) <= NARROW

    @property
    def numbers(self) -> list[list[object]]:
        """Names of the columns, then the rows: what the page makes the table and the CSV of."""
        return [list(self.frame), *([plain(value) for value in row] for row in rows(self.frame))]


Source = TypeVar("Source")


@dataclass(frozen=True)
class Chart(Generic[Source]):
    """A kind of figure: ``frame`` makes its numbers of what is summarised, ``plot`` draws them.

    ``name`` is unique on its page and part of the names of saved files; ``caption`` says what marks and bars mean.
    """

    name: str
    title: str
    caption: str
    frame: Callable[[Source], Frame]
    plot: Callable[[Frame], Figure]

    def display(self, source: Source, *, prefix: str = "", note: str = "") -> Display:
        """The figure of a source; ``prefix`` is put before its name and ``note`` after its caption."""
        return self.drawn(self.frame(source), prefix=prefix, note=note)

    def drawn(self, frame: Frame, *, prefix: str = "", note: str = "") -> Display:
        """The figure of numbers that are known already."""
        caption = f"{self.caption} {note}".strip()
        return Display(prefix + self.name, self.title, caption, frame, self.plot)


def chart(
    name: str, title: str, frame: Callable[[Source], Frame], caption: str
) -> Callable[[Callable[[Frame], Axes]], Chart[Source]]:
    """A decorator that makes a kind of figure of a function that draws numbers and returns axes of the figure."""

    def decorated(draw: Callable[[Frame], Axes]) -> Chart[Source]:
        return Chart(name, title, caption, frame, styled(lambda numbers: cast("Figure", draw(numbers).figure)))

    return decorated
