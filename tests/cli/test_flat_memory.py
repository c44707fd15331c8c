"""The memory of a fit does not grow with the rows."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

CHILD = """
import sys
from sparsact.cli import main
from sparsact.memory import peak_memory
status = main(sys.argv[1:])
print(peak_memory())
sys.exit(status)
"""


def peak(path, *words):
    """Most bytes that a process held at once that fitted the table."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHILD, "fit", str(path), "-t", "y", "-q", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("kind", ["bits", "numbers"])
def test_a_parquet_file_ten_times_larger_than_the_memory_allowed_is_fitted(tmp_path, kind):
    """Allowed is a tenth of the file, beyond what a table of three batches takes with all the libraries."""
    rng = np.random.default_rng(2)
    paths = []
    for n_rows in (200_000, 4_000_000):  # all in one row group, nothing packed
        X = rng.integers(0, 2, (n_rows, 12)).astype(float) if kind == "bits" else rng.normal(size=(n_rows, 12))
        columns = {f"c{i}": X[:, i] for i in range(12)} | {"y": X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n_rows)}
        paths.append(tmp_path / f"{n_rows}.parquet")
        options = {"row_group_size": n_rows, "compression": "none", "use_dictionary": False}
        pa.parquet.write_table(pa.table(columns), paths[-1], **options)
    words = ["--degree", "2", "--alpha", "1", "--model", "low-degree", "--resume", str(tmp_path / "s")]
    few, many = (peak(path, *words) for path in paths)
    assert many - few < paths[1].stat().st_size / 10
