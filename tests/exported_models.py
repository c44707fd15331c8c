"""What exported models give, for the tests of predictors: C by the compiler there is, ONNX by ONNX Runtime."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import sparsact

COMPILER = shutil.which("cc") or shutil.which("gcc")


def shared_library(path):
    """An exported file, compiled without a warning and loaded."""
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    library = path.with_suffix(".so")
    command = [COMPILER, "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O2"]
    subprocess.run([*command, "-shared", "-fPIC", str(path), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def values_in_c(path, name, queries, n_targets):
    """Values (m, targets) of an exported function."""
    function = getattr(shared_library(path), name)
    values = np.empty((len(queries), n_targets))
    for query, value in zip(np.ascontiguousarray(queries), values, strict=True):
        function(query.ctypes.data_as(ctypes.c_void_p), value.ctypes.data_as(ctypes.c_void_p))
    return values


def shipped_values(kind, predict, queries, folder):
    """Values (m, targets) of a compact predictor at rows: from memory, its file, C or ONNX."""
    n_targets = len(predict.model.level)
    if kind in ("c", "onnx"):
        path, is_plain = folder / f"model.{kind}", isinstance(queries, np.ndarray) and queries.dtype == np.float64
        predict.export(path)
        table = queries if is_plain else predict.numbers(queries)
        return values_in_c(path, "model_predict", table, n_targets) if kind == "c" else onnx_values(path, table)
    if kind == "file":
        predict.save(folder / "predictor")
        predict = sparsact.load(folder / "predictor")
    return predict(queries).reshape(len(queries), n_targets)


def onnx_values(path, queries):
    """Values (m, targets) of an exported graph, which has to be a valid one."""
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    onnx.checker.check_model(onnx.load(path), full_check=True)
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {"X": queries})[0]
