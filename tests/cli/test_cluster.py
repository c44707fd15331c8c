"""`sparsact fit --cluster`: the files of a table summed by other processes, the model file of one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from commands import run


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for i, m in enumerate((37, 90, 1, 64)):
        X = rng.integers(0, 2, (m, 5))
        frame = pd.DataFrame(X, columns=list("abcde")).assign(y=2.0 * X[:, 1] * X[:, 4] + rng.normal(size=m))
        frame["kind"] = np.where(frame.y > 1, "high", np.where(frame.y > 0, "middle", "low"))
        frame.to_parquet(tmp_path / f"part-{i}.parquet")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("--target", "y", "--ignore", "kind"),
        ("--target", "y", "--ignore", "kind", "--degree", "2", "--alpha", "0.5"),
        ("--target", "kind", "--ignore", "y"),
        ("--target", "y", "--ignore", "kind", "--report"),
    ],
)
def test_the_same_model_file(words, folder, capsys):
    if words[-1] == "--report":
        words = (*words, folder / "report.html")
    told = {}
    for name, more in (("one", ()), ("two", ("--cluster", "local:2"))):
        status, told[name], err = run(
            capsys, "fit", folder / "part-*.parquet", *words, "--out", folder / name, "--no-progress", *more
        )
        assert (status, err) == (0, "")
    assert (folder / "one").read_bytes() == (folder / "two").read_bytes()
    assert told["one"].splitlines()[0] == told["two"].splitlines()[0]


def test_an_address_that_is_none(folder, capsys):
    for address in ("nowhere", "local:", "local:0", "local:-1", "http://a:1"):
        status, _, err = run(capsys, "fit", folder / "part-0.parquet", "-t", "y", "--cluster", address)
        assert status == 2
        assert "is neither local:N" in err
