"""Rules of the house: one binding for each name, constants that are final, folders that stay small."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from areas import AREAS, areas_of
from grids import few_of
from journeys import JOURNEYS, counted, of_sources, parsed

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "sparsact"


def overloaded(node):
    return "overload" in map(ast.unparse, node.decorator_list)


def bound_names(body):
    """Names that the statements of a module bind at its top level, in order; overloads of a function bind once."""
    for node in body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                stored = (n for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
                yield from (name.id for name in stored)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.ClassDef | ast.FunctionDef) and not overloaded(node):
            yield node.name


def packages():
    for folder in (SOURCE, ROOT / "papers" / "src", ROOT / "benchmarks"):
        yield from folder.rglob("*.py")


def test_no_module_binds_a_name_twice():
    """A second binding replaces the first for all code above it: constants, functions and classes alike."""
    for path in packages():
        times = Counter(bound_names(parsed(path).body))
        assert [name for name, count in times.items() if count > 1] == [], path.relative_to(ROOT)


def test_constants_are_final():
    """So that mypy refuses a second binding, in a branch or from another module too."""
    for path in packages():
        for node in parsed(path).body:
            if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name):
                variable = isinstance(node.value, ast.Call) and ast.unparse(node.value.func).endswith("TypeVar")
                constant = re.fullmatch("_*[A-Z][A-Z0-9_]+", target.id) and not variable
                assert not constant, f"{path.relative_to(ROOT)}:{node.lineno}: {target.id} is not Final"


# Most lines of each folder, and the share of imports in the library's code. Lower them when you make a folder smaller;
# a change that makes one larger names in a decision record what it replaced and the row in results/ that pays for it.
BUDGETS = {
    "src/sparsact": 76_770,
    "papers/src": 17_392,
    "benchmarks": 9_053,
}
IMPORTS = 0.1221
# Words that make a reader look back for what they stand for, and how many are left: the number may only fall.
PHRASES = r"\b(those of|of which|so many|asks for)\b"
PHRASES_LEFT = 2


def test_the_house_stays_small():
    for folder, most_lines in BUDGETS.items():
        lengths = [len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / folder).rglob("*.py")]
        assert sum(lengths) <= most_lines, folder
        assert max(lengths) <= 350, folder
    assert of_sources(SOURCE)["share of imports in code"] <= IMPORTS


FILES = {  # that a journey runs through at most
    "LowDegreeRegressor.fit": 23,
    "sparsact fit t.csv --target y": 106,
    "sparsify": 24,
    "LSHRegressor.fit": 28,
    "LSHRegressor.partial_fit": 16,
    "LSHRegressor.predict": 8,
}


@pytest.mark.parametrize("journey", few_of(FILES, [name for name in FILES if "sparsact fit" not in name]))
def test_a_journey_stays_short(journey):
    """A reader who follows it opens no more files than today; who takes one out lowers the number."""
    assert counted(JOURNEYS[journey])["files"] <= FILES[journey]


def test_every_test_belongs_to_one_area():
    """`make test-tables`, `test-torch` and `test-theory` together run what `make test` runs."""
    files = [path for folder in (SOURCE, ROOT / "benchmarks") for path in folder.rglob("*.py")]
    files += (ROOT / "tests").rglob("test_*.py")
    assert [(path.relative_to(ROOT), areas_of(path)) for path in files if len(areas_of(path)) != 1] == []
    assert [place for places in AREAS.values() for place in places if not place.exists()] == []


def test_sentences_name_their_subject():
    """Line ends, and the marks of comments at the next line's start, count as blanks."""
    texts = [re.sub(r"\s+(# )?", " ", path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")]
    found = [phrase.lower() for text in texts for phrase in re.findall(PHRASES, text, re.IGNORECASE)]
    assert len(found) <= PHRASES_LEFT, Counter(found)
