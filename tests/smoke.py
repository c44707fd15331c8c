"""Whether an installed sparsact works: run it as ``python smoke.py`` in an environment that holds nothing else.

Needs no test library. Fails where the kernels are not native, or where what only extras bring is imported.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import sparsact

EXTRAS = ("matplotlib", "jinja2", "psutil", "torch", "array_api_compat", "dask")


def main() -> None:
    """Fit, save, load, predict and certify."""
    told = subprocess.run([sys.executable, "-m", "sparsact", "--version"], capture_output=True, text=True, check=True)
    version = importlib.metadata.version("sparsact")
    assert told.stdout.startswith(f"sparsact {version}, kernels: native"), told.stdout
    assert (Path(sparsact.__file__).parent / "py.typed").is_file()
    bits = np.random.default_rng(0).integers(0, 2, (97, 5))
    y = (1 - 2 * bits[:, 0]) * (1 - 2 * bits[:, 3]) + 0.5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "t.npz", x=bits, y=y)
        words = ["fit", str(folder / "t.npz"), "--target", "y", "--out", str(folder / "m.sparsact"), "--quiet"]
        subprocess.run([sys.executable, "-m", "sparsact", *words], check=True)
        assert np.allclose(sparsact.load(folder / "m.sparsact").predict(bits), y)
    assert sparsact.constructions.parity((0, 2), 5).certify().exact
    loaded = [name for name in EXTRAS if name in sys.modules]
    assert not loaded, loaded
    print(told.stdout.strip(), "works.")


if __name__ == "__main__":
    main()
