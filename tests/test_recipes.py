"""The recipe for MLflow, whose forty packages the tests do not install: a stand-in writes down what is logged."""

import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from test_docs import LISTING, ROOT, dedent

import sparsact as sa


@pytest.mark.usefixtures("few_rivals", "unrendered")
def test_a_fit_is_logged(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "recipes.rst").read_text(encoding="utf-8")
    code = dedent(dict(LISTING.findall(page))["log_fit.py"])
    logged = {}
    mlflow = SimpleNamespace(
        start_run=nullcontext,
        log_params=logged.update,
        log_metric=lambda name, value: logged.update({name: value}),
        log_artifact=lambda path: logged.update({path: Path(path).stat().st_size}),
    )
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.chdir(tmp_path)
    bits = np.random.default_rng(3).integers(0, 2, (150, 4))
    y = bits[:, 0] ^ bits[:, 2]
    np.savez("t.npz", x=bits, y=y)
    names = {}
    exec(compile(code, "log_fit.py", "exec"), names)
    names["log_fit"]("t.npz", "y")
    assert logged.pop("r2") == pytest.approx(1)
    assert min(logged.pop("model.sparsact"), logged.pop("fit.html")) > 1000
    assert logged == {"rows": 150, "columns": 4}
    assert np.allclose(sa.load("model.sparsact").predict(bits), y)
