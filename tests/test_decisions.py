"""The list of decision records: each record has one subject, and a title."""

import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def decision_list(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    return import_module("decision_list")


def test_every_record_has_exactly_one_subject(decision_list):
    """Add a new record to ``docs/decisions/subjects.toml``."""
    listed = Counter(number for numbers in decision_list.subjects().values() for number in numbers)
    assert listed == Counter(list(decision_list.records()))


def test_the_page_lists_every_record_in_order(decision_list, tmp_path):
    decision_list.decision_list(tmp_path / "list.inc")
    page = (tmp_path / "list.inc").read_text(encoding="utf-8")
    links = re.findall(r"^- `(\d{4}) [^`<]+ <\S+/((\d{4})-\S+\.md)>`__$", page, re.MULTILINE)
    assert all(number == of_file for number, _, of_file in links)
    assert {name for _, name, _ in links} == {path.name for path in decision_list.records().values()}
    assert all(numbers == sorted(numbers) for numbers in decision_list.subjects().values())
