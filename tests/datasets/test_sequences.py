"""Columns of sequences and of mutations: recognised in one pass, encoded, and refused in one line."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from datasets.sequence_tables import RNG, WILD, letters_of, sequences, write

from sparsact.datasets import Encoding, open_table
from sparsact.datasets.sites import LetterString, Mutations
from sparsact.datasets.table_files import Parts
from sparsact.datasets.table_stream import TableSurvey, encoded_table


def test_strings_are_one_site_a_letter(tmp_path):
    texts = ["".join(RNG.choice(list("ACGT"), 3)) for _ in range(400)]
    table, X, letters = letters_of(write(tmp_path / "t.csv", g=texts, y=range(400)))
    (column,) = table.encoding.columns
    assert isinstance(column, LetterString)
    assert table.feature_names[:5] == ("g[1]=A", "g[1]=C", "g[1]=G", "g[1]=T", "g[2]=A")
    assert X.dtype == np.uint8
    assert ["".join(row) for row in letters] == texts
    assert [name for name, _ in table.encoding.sites] == ["g[1]", "g[2]", "g[3]"]


def test_places_that_do_not_vary_have_no_bits_and_two_letters_have_one(tmp_path):
    texts, _ = sequences()
    table, _, letters = letters_of(write(tmp_path / "t.csv", g=texts, y=range(len(texts))))
    assert table.feature_names == ("g[1]=M", "g[2]=D", "g[2]=K", "g[2]=W", "g[4]=V")
    assert ["".join(row) for row in letters] == [text[:2] + text[3] for text in texts]
    assert "g: strings of 5 letters; 3 sites vary." in table.encoding.notes


def test_mutations_have_a_bit_each(tmp_path):
    texts, lists = sequences()
    table, X, letters = letters_of(write(tmp_path / "t.csv", g=lists, y=range(len(texts))))
    assert table.feature_names == ("M1L", "K2D", "K2W", "A4V")
    assert ["".join(row) for row in letters] == [text[:2] + text[3] for text in texts]
    expected = [[t[0] == "L", t[1] == "D", t[1] == "W", t[3] == "V"] for t in texts]
    np.testing.assert_array_equal(X, expected)


@pytest.mark.parametrize("column", [0, 1])
def test_a_description_makes_the_column_again(tmp_path, column):
    table, X, _ = letters_of(write(tmp_path / "t.csv", g=sequences()[column], y=range(90)))
    again = Encoding.from_json(table.encoding.to_json())
    assert again == table.encoding
    np.testing.assert_array_equal(np.concatenate(list(encoded_table(tmp_path / "t.csv", again).points())), X)


@pytest.mark.parametrize("batch_rows", [7, 1000])
def test_batches_do_not_matter_and_a_state_goes_on(tmp_path, batch_rows):
    texts, lists = sequences()
    path = write(tmp_path / "t.csv", g=texts, h=lists, y=range(90))
    expected = open_table(path, "y").encoding
    assert {type(column) for column in expected.columns} <= {LetterString, Mutations}
    survey = TableSurvey.of(Parts.open(path), "y", None, batch_rows)
    batches = list(survey.batches())
    for batch in batches[: len(batches) // 2]:
        survey.add(batch)
    other = TableSurvey.of(Parts.open(path), "y", None, batch_rows)
    other.restore(*survey.state())
    for batch in batches[len(batches) // 2 :]:
        other.add(batch)
    assert other.encoding() == expected


def test_few_texts_are_sequences_only_if_they_fill_their_grid(tmp_path):
    grid = ["".join(one) for one in product("ACD", repeat=3)] * 3
    table = open_table(write(tmp_path / "a.csv", g=grid, y=range(81)), "y")
    assert isinstance(table.encoding.columns[0], LetterString)
    countries = ["USA", "GBR", "FRA", "DEU", "ITA", "ESP", "JPN", "CHN", "IND", "BRA"] * 8
    table = open_table(write(tmp_path / "b.csv", g=countries, y=range(80)), "y")
    assert table.encoding.columns[0].kind == "one-hot"


MANY = ["".join(RNG.choice(list("ACDEF"), 7)) for _ in range(90)]
SINGLES = [f"{'MKTAY'[i]}{i + 1}{c}" for i in range(5) for c in "CDEFGHILNPQRSVW"]
ODD = {
    "length": (MANY, {40: "ACD"}, "have 7 letters; others are row 41 ('ACD')"),
    "first of all": (MANY, {0: "ACD", 9: "n/a7"}, "have 7 letters; others are row 1 ('ACD'), row 10 ('n/a7')"),
    "mutations": (SINGLES, {20: "p.Met1fs", 21: "K2"}, "G45D; others are row 21 ('p.Met1fs'), row 22 ('K2')"),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("batch_rows", [7, 1000])
def test_odd_rows_are_named_where_nearly_all_are_sequences(tmp_path, kind, batch_rows):
    texts, slips, message = ODD[kind]
    texts = [slips.get(i, text) for i, text in enumerate(texts)]
    path = write(tmp_path / "t.csv", g=texts, a=["01"[i % 2] for i in range(len(texts))], y=range(len(texts)))
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace(")", r"\)") + "; correct these rows"):
        open_table(path, "y", batch_rows=batch_rows)
    assert open_table(path, "y", ignore=["g"]).encoding.source_columns == ["a"]


@pytest.mark.parametrize(("text", "named"), [("oops1", "row 6001 ('oops1')"), ("ACD", "row 6001 ('ACD')")])
def test_an_odd_row_behind_many_sequences_is_named(text, named):
    texts = ["".join(one) for one in product("ACDE", repeat=7)][:8000]
    texts[6000] = text
    with pytest.raises(ValueError, match="others are ") as refused:
        open_table(pa.table({"g": texts, "a": [0, 1] * 4000, "y": range(8000)}), "y")
    assert named in str(refused.value)


GRID = ["".join(one) for one in product("ACGT", repeat=3)] * 2


@pytest.mark.parametrize("other", [str.lower, str.swapcase, str.title, lambda text: text.replace("T", "U")])
def test_spellings_of_one_letter_are_one_site_in_the_fit_and_later(tmp_path, other):
    """Half of the rows spell their letters otherwise: the bits follow one alphabet, and the notes say so."""
    texts = [other(text) if i % 2 else text for i, text in enumerate(GRID)]
    table, X, _ = letters_of(write(tmp_path / "m.csv", g=texts, y=range(128)))
    plain, expected, _ = letters_of(write(tmp_path / "p.csv", g=GRID, y=range(128)))
    assert table.encoding.columns == plain.encoding.columns
    np.testing.assert_array_equal(X, expected)
    assert any(
        ("one letter" in note or "U is read as T" in note) and note[:3] == "g: " for note in table.encoding.notes
    )
    new = write(tmp_path / "n.csv", g=list(map(other, GRID)))
    np.testing.assert_array_equal(np.concatenate(list(encoded_table(new, plain.encoding).points())), expected)


def test_u_is_no_t_among_amino_acids(tmp_path):
    texts = ["".join(one) for one in product("KTLV", repeat=3)] * 2
    encoding = open_table(write(tmp_path / "t.csv", g=texts, y=range(128)), "y").encoding
    with pytest.raises(ValueError, match="row 1: letter 'U' of 'KUL' at place 2 is not among the letters"):
        list(encoded_table(write(tmp_path / "n.csv", g=["KUL"]), encoding).points())


def test_a_wild_type_with_a_letter_that_no_row_has_is_noted(tmp_path):
    path = write(tmp_path / "t.csv", g=GRID, y=range(128))
    assert not any("wild type" in note for note in surveyed(path, "act").notes)
    (note,) = [note for note in surveyed(path, "AXZ").notes if "wild type" in note]
    assert note == "warning: no row of g has the letter of the wild type at place 2 (X), 3 (Z); check it."


@pytest.mark.parametrize("batch_rows", [7, 1000])
@pytest.mark.parametrize("wild", ["MKTAY", "LDTVY"])
def test_sequences_give_way_to_their_sites_and_parts_to_sequences(tmp_path, batch_rows, wild):
    texts, _ = sequences(90)
    lists = [":".join(f"{w}{i + 1}{c}" for i, (w, c) in enumerate(zip(wild, t, strict=True)) if w != c) for t in texts]
    mutants = [one or "WT" for one in lists]
    sites = {f"p{i}": [text[i] for text in texts] for i in (0, 1, 3)}
    for columns, kept in (
        ({"g": texts, **sites}, [*sites]),
        ({**sites, "g": texts}, [*sites]),
        ({"g": texts, **sites, "m": mutants}, [*sites]),
        ({"g": texts, "m": mutants}, ["g"]),
        ({"m": mutants, "g": texts}, ["m"]),
        ({"g": texts, "h": list(map(str.lower, texts))}, ["g"]),
        ({"g": texts, "p": sites["p1"]}, ["g"]),
        ({"g": texts, "p": [*sites["p1"][1:], "W"]}, ["g", "p"]),
        ({"g": texts, "b": ["01"[text[0] == "M"] for text in texts]}, ["g"]),
    ):
        path = write(tmp_path / "t.csv", **columns, y=range(90))
        encoding = open_table(path, "y", batch_rows=batch_rows).encoding
        assert [column.name for column in encoding.columns] == kept
        gone = [name for name in columns if name not in kept]
        noted = [note for note in encoding.notes if "are equal or opposite" in note]
        assert len(noted) == bool(gone)
        assert all(f"{name} (see " in noted[0] for name in gone)


STRINGS = [f"{number:05b}" for number in RNG.permutation(64) % 32]


@pytest.mark.parametrize("batch_rows", [3, 1000])
@pytest.mark.parametrize("kind", ["text", "text of two lengths", "integers", "floats"])
@pytest.mark.parametrize("n_rows", [12, 64])
def test_bit_strings_that_lost_their_zeros_are_padded(kind, n_rows, batch_rows):
    """Bits, and the column that is kept beside copies of its bits, are as for the strings with all zeros."""
    texts = STRINGS[:n_rows]
    spelled = {
        "text": [text.lstrip("0") or "0" for text in texts],
        "text of two lengths": [text[1:] if text[0] == "0" and i % 2 else text for i, text in enumerate(texts)],
        "integers": list(map(int, texts)),
        "floats": list(map(float, texts)),
    }[kind]
    table = open_table(pa.table({"g": spelled, "y": range(n_rows)}), "y", batch_rows=batch_rows)
    X = np.concatenate([X for X, _ in table.batches()])
    np.testing.assert_array_equal(X, [list(map(int, text)) for text in texts])
    assert any("with leading zeros restored" in note for note in table.encoding.notes)
    again = Encoding.from_json(table.encoding.to_json())
    new = pa.table({"g": [1, 101]})
    assert next(iter(encoded_table(new, again).points())).tolist() == [[0, 0, 0, 0, 1], [0, 0, 1, 0, 1]]
    with pytest.raises(ValueError, match="row 2: 100000 is not a string of 5 bits"):
        list(encoded_table(pa.table({"g": [1, 100000]}), again).points())
    copies = pa.table({"b": [text[4] for text in texts], "g": spelled, "y": range(n_rows)})
    assert open_table(copies, "y", batch_rows=batch_rows).encoding.source_columns == ["g"]


@pytest.mark.parametrize("values", [[0, 1, 10, 100, 1000], [0, 1, 10, 11, 12], [1, 10, 11], [0, 1, 10, 11, -1]])
def test_numbers_that_are_no_lost_strings_stay_numbers(values):
    data = pa.table({"g": values * 9, "y": range(9 * len(values))})
    assert open_table(data, "y", domain="auto").encoding.columns[0].kind == "real"


def test_with_domain_real_digits_are_quantities():
    data = pa.table({"g": list(map(int, STRINGS)), "y": range(64)})
    assert open_table(data, "y", domain="real").encoding.columns[0].kind == "real"


def test_places_of_strings_that_are_the_same_in_every_row_are_left_out():
    texts = [f"0{text[:3]}1{text[3:]}" for text in STRINGS]
    table = open_table(pa.table({"g": texts, "c": ["0110"] * 64, "y": range(64)}), "y")
    assert table.feature_names == ("g[2]", "g[3]", "g[4]", "g[6]", "g[7]")
    assert "g: strings of 7 bits, one column for each of the 5 that vary." in table.encoding.notes
    assert "left out, since they are the same in every row: c." in table.encoding.notes
    X = np.concatenate([X for X, _ in table.batches()])
    np.testing.assert_array_equal(X, [list(map(int, text)) for text in STRINGS])
    again = Encoding.from_json(table.encoding.to_json())
    with pytest.raises(ValueError, match=r"row 2: bit 1 at place 1, where every row .* has 0"):
        list(encoded_table(pa.table({"g": ["0000100", "1000100"]}), again).points())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MXTAY", r"row 2: letter 'X' of 'MXTAY' at place 2 is not among the letters .* \(DKW\)"),
        ("MDTAYY", "row 2: 'MDTAYY' has 6 letters, and the training table has 5"),
    ],
)
def test_other_strings_are_refused(tmp_path, text, message):
    encoding = open_table(write(tmp_path / "t.csv", g=sequences()[0], y=range(90)), "y").encoding
    new = write(tmp_path / "n.csv", g=["MDTAY", text])
    with pytest.raises(ValueError, match=message):
        list(encoded_table(new, encoding).points())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("K2F", "row 2: 'K2F' has a mutation that is not among the mutations"),
        ("D2W", "row 2: 'D2W' has a mutation that is not among the mutations"),
        ("K3D", "row 2: 'K3D' has a mutation that is not among the mutations"),
        ("twelve", "row 2: 'twelve' is not a list of mutations such as A12V:G45D"),
    ],
)
def test_other_mutations_are_refused(tmp_path, text, message):
    encoding = open_table(write(tmp_path / "t.csv", g=sequences()[1], y=range(90)), "y").encoding
    new = write(tmp_path / "n.csv", g=["WT", text])
    with pytest.raises(ValueError, match=message):
        list(encoded_table(new, encoding).points())


@pytest.mark.parametrize(
    ("column", "wild_type", "message"),
    [
        (0, "MKTA", "the wild type has 4 letters, and the rows have 5"),
        (0, "XXXXX", "no row agrees with the wild type anywhere"),
        (0, "MKTAF", "at place 5 the wild type has F, and every row has Y"),
        (1, "MRTAY", "site 2 is K in mutation K2., and the wild type has R; check where its numbers begin"),
        (1, "MKT", "site 4 is A in mutation A4V, and the wild type has no such site"),
    ],
)
def test_a_wild_type_that_disagrees(tmp_path, column, wild_type, message):
    path = write(tmp_path / "t.csv", g=sequences()[column], y=range(90))
    with pytest.raises(ValueError, match=message):
        surveyed(path, wild_type)
    assert surveyed(path, WILD).columns[0].kind == ("letters", "mutations")[column]


def test_a_slip_among_few_sequences_is_noted_and_named_where_a_wild_type_is_given(tmp_path):
    grid = ["".join(one) for one in product("ACD", repeat=3)] * 3
    grid[40] = "AC"
    path = write(tmp_path / "t.csv", g=grid, y=range(81))
    (column,) = surveyed(path, None).columns
    assert column.kind == "one-hot"
    slip = "27 different texts have 3 letters; others are row 41 ('AC')"
    assert f"g is not read as sequences: {slip}." in surveyed(path, None).notes
    with pytest.raises(
        ValueError, match="no column holds sequences or mutations; column 'g': 27 different texts have 3"
    ):
        surveyed(path, "ACD")
    towns = ["Ulm", "Bonn", "Kiel", "Hof", "Trier", "Mainz", "Jena", "Celle", "Worms"] * 9
    assert not any(
        "sequences" in note for note in surveyed(write(tmp_path / "u.csv", g=towns, y=range(81)), None).notes
    )


def test_a_wild_type_without_sequences(tmp_path):
    with pytest.raises(ValueError, match="no column holds sequences or mutations; leave it out"):
        surveyed(write(tmp_path / "t.csv", a=[0, 1] * 9, y=range(18)), WILD)


def surveyed(path, wild_type):
    survey = TableSurvey.of(Parts.open(path), "y", None, 100, wild_type=wild_type)
    for batch in survey.batches():
        survey.add(batch)
    return survey.encoding()


def test_two_lengths_and_two_wild_types_are_one_line(tmp_path):
    texts = ["".join(RNG.choice(list("ACGT"), 3)) for _ in range(400)]
    texts[6] = "ACGT"
    with pytest.raises(ValueError, match=r"column 'g': 64 different texts have 3 letters; others are row 7 \('ACGT'\)"):
        open_table(write(tmp_path / "t.csv", g=texts, y=range(400)), "y")
    with pytest.raises(ValueError, match=r"site 12 of the wild type is A in some rows and G in 'G12V:A3D'; a site has"):
        open_table(write(tmp_path / "m.csv", g=["A12V:K2D", "WT", "G12V:A3D"] * 9, y=range(27)), "y")


def test_gaps_are_letters_and_blanks_at_the_ends_are_none(tmp_path):
    texts = ["".join(one) for one in product("AC-", repeat=3)] * 2
    table, X, letters = letters_of(write(tmp_path / "t.csv", g=[f"{one} " for one in texts], y=range(54)))
    assert ["".join(row) for row in letters] == texts
    _, again, _ = letters_of(write(tmp_path / "u.csv", g=texts, y=range(54)))
    np.testing.assert_array_equal(X, again)
    (found,) = encoded_table(pa.table({"g": ["  a-c "]}), table.encoding).points()
    assert table.encoding.letters(found).tolist() == [["A", "-", "C"]]
