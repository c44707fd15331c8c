"""How a text file separates its columns and spells its numbers: sniffed in its first rows, undone cell by cell."""

from __future__ import annotations

import csv
import re
from codecs import getincrementaldecoder
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

BLOCK_BYTES: Final = 4 << 20
HEAD_BYTES: Final = 1 << 16  # that are sniffed: about a thousand rows
WINDOWS: Final = "not UTF-8, so it is read as Windows-1252; if letters are wrong, save it as UTF-8."
SEPARATORS: Final = ",;\t|"
# Missing whatever the column holds: Arrow's spellings, errors of spreadsheets, "not determined" and "not available".
NULLS: Final = (
    *pyarrow.csv.ConvertOptions().null_values,
    *("#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!", "n.d.", "N.D.", "n.a.", "N.A."),
)
_GROUPS: Final = "' \u00a0\u202f"  # between thousands, in either way to write decimals
_SIGN: Final = "^(?:[<>≤≥]=? ?)?[+-]?"


def _number(decimal: str, other: str) -> str:
    """A number with marks between its thousands or, where the mark of decimals is a comma, any number with one."""
    grouped, power = f"[1-9][0-9]{{0,2}}(?:[{other}{_GROUPS}][0-9]{{3}})+", "(?:[eEdD][+-]?[0-9]+)?$"
    return f"{_SIGN}(?:{grouped}(?:{decimal}[0-9]*)?" + (f"|[0-9]*,[0-9]+){power}" if decimal == "," else ")$")


_WRITTEN: Final = {",": _number(",", "."), ".": _number("[.]", ",")}
_POINT: Final = re.compile(rf"{_SIGN}[0-9,]*\.[0-9]+")


@dataclass(frozen=True)
class Dialect:
    """Separator of columns, mark of decimals (``"auto"``: sniffed) and encoding of a text file."""

    separator: str = "auto"
    decimal: str = "auto"
    encoding: str = "utf8"
    note: str = ""  # what a comma in numbers and bytes that are no UTF-8 were taken for

    def __post_init__(self) -> None:
        if self.separator == r"\t":  # as people spell it in a shell
            object.__setattr__(self, "separator", "\t")
        if self.separator != "auto" and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise ValueError(f"separator must be 'auto' or one character, such as ';'; got {self.separator!r}.")
        if self.decimal not in ("auto", *_WRITTEN):
            raise ValueError(f"decimal {self.decimal!r} is none of 'auto', '.', ','.")

    def refuse(self, name: str) -> None:
        """Raise if a separator or mark of decimals is named for something other than text."""
        for option in ("separator", "decimal"):
            if getattr(self, option) != "auto":
                remedy = "leave it out, and convert texts of numbers beforehand"
                raise ValueError(f"{option} applies to text files, and {name} is not one; {remedy}.")

    def of_file(self, path: Path, usual: str) -> Dialect:
        """The dialect of a file; what is ``"auto"`` is sniffed, ``usual`` is the separator that its name promises."""
        with pa.input_stream(str(path)) as file:
            head = file.read(HEAD_BYTES)
        encoding, guess = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf8", ""
        try:
            getincrementaldecoder(encoding)().decode(head)  # a character may be cut at the end
        except UnicodeDecodeError:
            encoding, guess = "cp1252", WINDOWS
        text = head.decode(encoding, errors="ignore")
        tried = (usual, *SEPARATORS) if self.separator == "auto" else (self.separator,)
        records = {one: _records(text, one, len(head) < HEAD_BYTES) for one in tried}
        even = [one for one in tried if len({*map(len, records[one])}) == 1 and len(records[one][0]) > 1]
        separator = tried[0] if tried[0] in even or not even else max(even, key=lambda one: len(records[one][0]))
        cells = [cell.strip() for record in records[separator][1:] for cell in record]
        decimal, note = _spelling(cells, separator) if self.decimal == "auto" else (self.decimal, "")
        return Dialect(separator, decimal, encoding, " ".join(f"{path.name}: {one}" for one in (guess, note) if one))

    def open(self, path: Path, convert: pyarrow.csv.ConvertOptions | None = None) -> pyarrow.csv.CSVStreamingReader:
        """A reader of blocks of rows."""
        return pyarrow.csv.open_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES, encoding=self.encoding),
            parse_options=pyarrow.csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
            convert_options=convert,
        )

    def plain(self, cells: pa.Array) -> pa.Array:
        """A column of text without blanks at its ends; numbers have a decimal point, no other marks, and ``E``."""
        letters = cells.buffers()[2]  # whose bytes tell at once that most columns hold no mark
        there = b"" if letters is None else letters.to_pybytes()
        if any(blank in there for blank in (b" ", b"\t", b"\xa0")):
            cells = pc.utf8_trim_whitespace(cells)
            cells = pc.if_else(pc.is_in(cells, pa.array(NULLS)), None, cells)
        if any(mark in there for mark in (b",", b"'", b" ", b"\xa0", b"\x80\xaf", *[b"."] * (self.decimal == ","))):
            bare = pc.replace_substring_regex(cells, f"[{'.' if self.decimal == ',' else ','}{_GROUPS}]", "")
            bare = pc.replace_substring(bare, ",", ".")
            cells = pc.if_else(pc.match_substring_regex(cells, _WRITTEN[self.decimal]), bare, cells)
        if b"D" in there or b"d" in there:  # of Fortran
            cells = pc.replace_substring_regex(cells, r"^([+-]?[0-9]*\.[0-9]*)[dD]([+-]?[0-9]+)$", r"\1E\2")
        return cells


SNIFFED: Final = Dialect()


def _records(text: str, separator: str, whole: bool) -> list[list[str]]:
    """The rows of the beginning of a file; the last one may be cut, and is left out."""
    try:
        found = [record for record in csv.reader(StringIO(text, newline=""), delimiter=separator) if record]
    except csv.Error:
        return []
    return found[: len(found) - (not whole and len(found) > 1)]


def _spelling(cells: list[str], separator: str) -> tuple[str, str]:
    """The mark of decimals, and a note that says what a comma in numbers means.

    ``3,28`` and ``1.234,5`` have a decimal comma, ``1,234.5`` has not; ``1,234`` alone has one where columns are
    separated otherwise. Beside numbers with a decimal point no comma is that of decimals.
    """
    commas = [cell for cell in cells if re.match(_WRITTEN[","], cell)]
    points = {cell for cell in cells if _POINT.fullmatch(cell)}.difference(() if separator == "," else commas)
    grouped = [cell for cell in cells if "," in cell and re.match(_WRITTEN["."], cell)]
    commas = [cell for cell in commas if "," in cell and (separator != "," or cell not in grouped)]
    if commas and not points:
        return ",", f"the comma of {commas[0]!r} is read as a decimal comma; if it is not, pass decimal='.'."
    if grouped:
        return ".", f"the comma of {grouped[0]!r} is read as a thousands separator; if it is not, pass decimal=','."
    return ".", ""
