"""The environment of ``make sanitize``, and the proof that its kernels are the sanitized ones and do catch an error.

``sanitized.py environment ENV PACKAGE`` makes a virtual environment in which PACKAGE stands before every other copy of
the package, an editable installation included, whose finder would win over PYTHONPATH. ``sanitized.py canary PACKAGE``
fails unless the kernels come from PACKAGE and a read past the end of an array ends the process.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path


def environment(folder: str, package: str) -> None:
    """Make the environment: a ``.pth`` file lists the package, then the packages of this interpreter."""
    venv.create(folder, clear=True)
    (packages,) = Path(folder).glob("lib/python*/site-packages")
    papers = Path(__file__).parents[1] / "papers" / "src"
    lines = [str(Path(package).resolve()), str(papers), sysconfig.get_path("purelib")]
    (packages / "sanitized.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")


def canary(package: str) -> None:
    """Exit with a message unless the planted error is caught."""
    from sparsact.kernels import _native

    if not Path(_native.__file__).is_relative_to(Path(package).resolve()):
        sys.exit(f"sanitized kernels are needed, but {_native.__file__} was imported: look at the order of sys.path.")
    program = "from sparsact.kernels import _native; _native.read_past_the_end(24)"
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if process.returncode == 0 or "heap-buffer-overflow" not in process.stderr:
        sys.exit(f"AddressSanitizer missed a planted read past the end (exit status {process.returncode}).")


if __name__ == "__main__":
    {"environment": environment, "canary": canary}[sys.argv[1]](*sys.argv[2:])
