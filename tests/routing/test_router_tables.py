"""The tables of routers and of faults: every router and every test is there, and choices read what the table says."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from routed import inputs, state_of

from sparsact import routing

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))
router_tables = import_module("router_tables")
FAULTS = ("mixture_faults", "deletion_faults")

CASES = [
    (case, training)
    for one in router_tables.routers()
    for case in (one, *one.get("case", ()))
    for training in (False, True)
    if case.get("training", training) is training
]


def test_the_table_has_every_router_once():
    records = [one["record"]["router"] for one in router_tables.routers()]
    assert sorted(records) == sorted(routing.ROUTERS)
    assert [one["kind"] for one in router_tables.routers()] == [routing.ROUTERS[name].__name__ for name in records]


def test_routers_of_the_table_choose_among_as_many_units():
    for one in router_tables.routers():
        columns = 64 if one["kind"] == "TopK" else router_tables.COLUMNS
        width = routing.from_dict(one["record"]).width(columns)
        assert width == {"NGramHash": 60}.get(one["kind"], 64), one["kind"]  # the largest two primes that fit


def differ(one, other):
    return not np.allclose(one, other, rtol=1e-9, atol=1e-12)


def what_is_read(router, training):
    """Which inputs a choice depends on, found by changes of the others and by leaving later ones out."""
    x, other, state = inputs(), inputs(seed=8), state_of(router)
    m = len(x)
    whole = router(x, state, training=training).dense()
    changed = {"later": False, "earlier": False, "itself": False}
    for cut in range(1, m):
        later = router(np.r_[x[:cut], other[cut:]], state, training=training).dense()
        earlier = router(np.r_[other[:cut], x[cut:]], state, training=training).dense()
        short = router(x[:cut], state, training=training).dense()
        changed["later"] |= differ(later[:cut], whole[:cut])
        changed["earlier"] |= differ(earlier[cut:], whole[cut:]) or differ(short, whole[:cut])
        changed["itself"] |= differ(later[cut:], whole[cut:])
    return changed


@pytest.mark.parametrize(
    ("case", "training"), CASES, ids=[f"{case['record']['router']}-{training}" for case, training in CASES]
)
def test_a_choice_reads_what_the_table_says(case, training):
    changed = what_is_read(routing.from_dict(case["record"]), training)
    assert changed["itself"]
    assert next(reads for reads, does in changed.items() if does) == case["reads"]


def functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("table", FAULTS)
def test_every_fault_has_tests_that_exist(table):
    faults = router_tables.faults(table)
    assert len({one["fault"] for one in faults}) == len(faults)
    for one in faults:
        assert one["tests"], one["fault"]
        for test in one["tests"]:
            file, _, name = test.partition("::")
            assert name.startswith("test_"), test
            assert name in functions(ROOT / file), test


@pytest.mark.parametrize("name", ["routers", *FAULTS])
def test_tables_are_written(name, tmp_path):
    if name == "routers":
        router_tables.router_table(tmp_path / "table.inc")
    else:
        router_tables.fault_table(name, tmp_path / "table.inc")
    rows = router_tables.routers() if name == "routers" else router_tables.faults(name)
    assert (tmp_path / "table.inc").read_text(encoding="utf-8").count("   * - | ") == 1 + len(rows)
