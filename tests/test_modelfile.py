"""The file format: what was written comes back, and nothing else comes in."""

from __future__ import annotations

import json
import os
import pickle

import numpy as np
import pytest
from safetensors.numpy import save as to_bytes

import sparsact
from sparsact.saving import modelfile
from sparsact.saving.modelfile import ModelFileError

STATE = {"name": "Größe", "list": [1, 2.5, None, True], "nested": {"x": 1e-300}}
ARRAYS = {
    "a": np.arange(6.0).reshape(2, 3),
    "bits": np.array([True, False]),
    "empty": np.zeros((0, 5), dtype=np.int64),
    "words": np.array([2**64 - 1, 0], dtype=np.uint64),
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.sparsact"
    modelfile.write(path, "Kind", STATE, ARRAYS)
    return path


def forged(path, state, arrays, kind, schema=modelfile.SCHEMA):
    """A file whose digest is right, whatever it holds."""
    header = {"schema": schema, "kind": kind, "version": "0", "state": state}
    header["digest"] = modelfile._digest(header, arrays)
    path.write_bytes(to_bytes(arrays, metadata={"sparsact": json.dumps(header)}))


def test_round_trip(file):
    kind, state, arrays = modelfile.read(file)
    assert (kind, state) == ("Kind", STATE)
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


def test_the_same_model_is_the_same_file(file, tmp_path):
    again = tmp_path / "again"
    modelfile.write(again, "Kind", STATE, dict(reversed(ARRAYS.items())))
    assert again.read_bytes() == file.read_bytes()


def test_arrays_of_any_layout(tmp_path):
    arrays = {"t": np.arange(12.0).reshape(3, 4).T, "strided": np.arange(10)[::3]}
    modelfile.write(tmp_path / "x", "Kind", {}, arrays)
    for name, array in modelfile.read(tmp_path / "x")[2].items():
        np.testing.assert_array_equal(array, arrays[name])


def test_every_truncation_is_refused(file):
    content = file.read_bytes()
    for length in sorted({0, 1, 7, 8, 9, 64, len(content) // 2, *range(len(content) - 70, len(content))}):
        file.write_bytes(content[:length])
        with pytest.raises(ModelFileError, match=r"model.sparsact"):
            modelfile.read(file)
    file.write_bytes(content + b"\0")
    with pytest.raises(ModelFileError, match=r"model.sparsact"):
        modelfile.read(file)


def test_every_flipped_bit_is_refused(file):
    content = file.read_bytes()
    for place in range(0, len(content), 3):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        file.write_bytes(changed)
        try:
            kind, state, arrays = modelfile.read(file)
        except ModelFileError as error:
            assert "model.sparsact" in str(error)  # noqa: PT017 - a flip may also hit what means nothing, as below
        else:  # white space or the spelling of the header: nothing that was written has changed
            assert (kind, state) == ("Kind", STATE)
            for name, array in ARRAYS.items():
                np.testing.assert_array_equal(arrays[name], array)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello, this is no model\n",
        b"\x89PNG\r\n\x1a\n" + bytes(99),
        pickle.dumps({"a": 1}),
        (2**63).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"{}",
        to_bytes({"x": np.zeros(3)}),
        to_bytes({"x": np.zeros(3)}, metadata={"format": "pt"}),
        to_bytes({"x": np.zeros(3)}, metadata={"sparsact": "not json"}),
        to_bytes({"x": np.zeros(3)}, metadata={"sparsact": "[]"}),
        to_bytes({"x": np.zeros(3)}, metadata={"sparsact": "17"}),
        to_bytes({"x": np.zeros(3)}, metadata={"sparsact": "{}"}),
        to_bytes({"x": np.zeros(3)}, metadata={"sparsact": "[" * 100_000}),
        to_bytes({}, metadata={"sparsact": '{"digest": 1, "schema": 1, "kind": "Kind", "state": {}}'}),
    ],
    ids=range(14),
)
def test_what_is_no_model(tmp_path, content):
    path = tmp_path / "thing.bin"
    path.write_bytes(content)
    for open_it in (modelfile.read, sparsact.load):
        with pytest.raises(ModelFileError, match=r"thing.bin"):
            open_it(path)


def test_a_header_that_claims_more_than_there_is(tmp_path):
    path = tmp_path / "huge.bin"
    for shape, end in [([2**40, 2**20], 2**63 - 1), ([2**40], 8 * 2**40), ([-1], 8), ([2**63, 4], 0), ([3], 8)]:
        header = json.dumps({"x": {"dtype": "F64", "shape": shape, "data_offsets": [0, end]}}).encode()
        path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
        with pytest.raises(ModelFileError, match=r"huge.bin"):
            modelfile.read(path)


def test_another_schema_or_kind(tmp_path):
    path = tmp_path / "other.bin"
    forged(path, {}, {}, "LowDegreeRegressor", schema=99)
    with pytest.raises(ModelFileError, match=r"other.bin has schema 99, this version reads 1"):
        sparsact.load(path)
    forged(path, {}, {}, "Perceptron")
    with pytest.raises(ModelFileError, match=r"other.bin holds a 'Perceptron'"):
        sparsact.load(path)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no model .*nowhere"):
        sparsact.load(tmp_path / "nowhere")
    with pytest.raises(OSError, match="model"):
        modelfile.write(tmp_path / "no folder" / "model", "Kind", {}, {})
    with pytest.raises(OSError, match=tmp_path.name):
        sparsact.load(tmp_path)


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace", "pathlib.Path.open"])
def test_a_failed_write_leaves_the_old_file(file, monkeypatch, step):
    def fail(*_, **__):
        raise OSError("no space left")

    before = file.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(step, fail)
        with pytest.raises(OSError, match="no space"):
            modelfile.write(file, "Kind", {"new": 1}, {})
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    with pytest.raises(ValueError, match=r"JSON|float"):
        modelfile.write(file, "Kind", {"x": float("nan")}, {})
    assert file.read_bytes() == before


def test_permissions_match_any_new_file(file):
    plain = file.parent / "plain"
    plain.write_text("x")
    assert file.stat().st_mode == plain.stat().st_mode


def test_an_existing_file_is_replaced(file):
    modelfile.write(str(file), "Kind", {"new": 1}, {})
    assert modelfile.read(str(file))[1] == {"new": 1}
    assert os.listdir(file.parent) == [file.name]  # noqa: PTH208 - no temporary file is left


def test_loading_runs_no_pickle(file, monkeypatch):
    def fail(*_, **__):
        raise AssertionError("unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, fail)
    assert modelfile.read(file)[0] == "Kind"
