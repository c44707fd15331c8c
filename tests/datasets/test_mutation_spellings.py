"""Lists of mutations in the spellings of the field, HGVS among them."""

import numpy as np
import pyarrow as pa
import pytest
from datasets.sequence_tables import letters_of, sequences, write

from sparsact.datasets import open_table
from sparsact.datasets.columns import OneHot
from sparsact.datasets.sites import Mutations, mutations
from sparsact.datasets.table_stream import encoded_table


def test_lists_of_mutations():
    assert mutations("A12V") == [(12, "A", "V")]
    assert mutations("A12V,G45-; K7*") == [(12, "A", "V"), (45, "G", "-"), (7, "K", "*")]
    assert mutations("wt") == mutations("") == []
    assert mutations("A12V:A12D") is None  # two letters at one site
    assert mutations("12V") is mutations("P12345") is mutations("p.Met1fs") is mutations("p.Met1_Lys3del") is None


@pytest.mark.parametrize(
    "text",
    [
        *("M01A:K2D", "M1A_K2D", "M1_A_K2_D", "m1a:k2d", "M1A|K02D", "p.[Met1Ala;Lys2Asp]", "p.[(Met1Ala;Lys2Asp)]"),
        *("NP_000001.1:p.[Met1Ala;Lys2Asp]", "p.M1A;K2D", "p.[Met1Ala;Lys2Asp;Thr3=]", "M1A:K2D:T3T"),
    ],
)
def test_two_mutations_in_the_spellings_of_the_field(text):
    assert mutations(text) == [(1, "M", "A"), (2, "K", "D")]


@pytest.mark.parametrize("text", ["_wt", "_WT", "WT", "wild-type", "p.=", "p.(=)", "_sy", "p.Met1=", "p.(Met1=)", "="])
def test_no_mutation_in_the_spellings_of_the_field(text):
    assert mutations(text) == []


def test_stops_and_deletions_of_a_residue():
    assert mutations("p.Trp24Ter") == mutations("p.Trp24*") == [(24, "W", "*")]
    assert mutations("p.Phe508del") == [(508, "F", "-")]


@pytest.mark.parametrize(
    "other",
    [
        lambda one: one.replace("K2", "K02"),
        lambda one: one.replace(":", "_"),
        lambda one: {"WT": "p.="}.get(one, f"p.[{one.replace(':', ';')}]"),
        str.lower,
    ],
)
def test_columns_of_such_spellings_are_the_same_mutations(tmp_path, other):
    _, lists = sequences()
    plain, X, _ = letters_of(write(tmp_path / "t.csv", g=lists, y=range(90)))
    table, again, _ = letters_of(write(tmp_path / "m.csv", g=list(map(other, lists)), y=range(90)))
    assert table.encoding == plain.encoding
    np.testing.assert_array_equal(again, X)
    new = encoded_table(tmp_path / "m.csv", plain.encoding)
    np.testing.assert_array_equal(np.concatenate(list(new.points())), X)


def test_names_of_samples_in_lower_case_are_no_mutations(tmp_path):
    names = [f"s{i // 9 + 1}{'abcdefghi'[i % 9]}" for i in range(81)]
    path = write(tmp_path / "t.csv", g=names, a=[0, 1, 1] * 27, y=range(81))
    assert open_table(path, "y").encoding.source_columns == ["a"]


MUTANTS = ["A1G", "C2D", "E3F", "G4H", "K5L", "M6N", "P7Q", "R8S"]


@pytest.mark.parametrize("texts", [MUTANTS, ["WT", *MUTANTS[:2]], ["wild type", "B1J", "B1O"]])
def test_few_single_mutants_are_mutations(texts):
    table = open_table(pa.table({"g": texts * 9, "y": range(9 * len(texts))}), "y")
    (column,) = table.encoding.columns
    assert isinstance(column, Mutations)
    ((X, _),) = table.batches()
    assert [[column.features[i] for i in np.flatnonzero(row)] for row in X[: len(texts)]] == [
        [text] if text[1].isdigit() else [] for text in texts
    ]


@pytest.mark.parametrize(
    "texts",
    {
        "few": MUTANTS[:7],
        "no residues": [*MUTANTS[:7], "B9J"],
        "names of shelves": [f"{letter}1{letter}" for letter in "ACDEFGHI"],
        "two wild types": [*MUTANTS, "D1E"],
        "lower case": [text.lower() for text in MUTANTS],
    }.values(),
)
def test_other_few_names_stay_categories(texts):
    (column,) = open_table(pa.table({"g": texts * 9, "y": range(9 * len(texts))}), "y").encoding.columns
    assert isinstance(column, OneHot)
