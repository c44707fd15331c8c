import os

import pytest

from sparsact_papers.data import load_tinyshakespeare


@pytest.mark.skipif(
    not os.environ.get("SPARSACT_DATA"), reason="SPARSACT_DATA does not name a folder with the real data"
)
def test_the_real_text_has_the_known_length_and_characters():
    """As A. Karpathy's nanoGPT states them in data/shakespeare_char/prepare.py."""
    found = load_tinyshakespeare()
    assert len(found.text) == 1_115_394
    assert len(set(found.text)) == 65
    assert found.text.startswith("First Citizen:\n")
    assert found.licence == "public domain"


def test_a_folder_of_ones_own(tmp_path):
    (tmp_path / "text").mkdir()
    path = tmp_path / "text" / "tinyshakespeare.txt"
    with pytest.raises(FileNotFoundError, match=r"no text/tinyshakespeare.txt in .*; set SPARSACT_DATA"):
        load_tinyshakespeare(tmp_path)
    path.write_text("To be, or nöt", encoding="utf-8")
    assert load_tinyshakespeare(tmp_path).text == "To be, or nöt"
    path.write_bytes("nöt".encode("latin-1"))
    with pytest.raises(ValueError, match=r"not UTF-8 text.*fetch it again"):
        load_tinyshakespeare(tmp_path)
    path.write_text("")
    with pytest.raises(ValueError, match="is empty"):
        load_tinyshakespeare(tmp_path)
