"""What ``make demo`` shows: real data learned within minutes, a contest with scikit-learn, and reports in ``demo/``.

Run it as ``python examples/demo.py [FOLDER]``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from digits_contest import SIDES, bits_and_digits
from rich.console import Console
from rich.table import Table

from sparsact import SparselyActivatedRegressor
from sparsact.cli import main
from sparsact.constructions import indexing, uniform
from sparsact_papers.data import LowerEnvelope, random_subspace

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
console = Console()


def contest() -> None:
    """Both sides learn the same rows and are asked the same questions, each in a process of its own."""
    console.rule("Ten handwritten digits, 64 bits each, every pair of pixels")
    grid = Table("", "accuracy", "fit", "predict", "peak memory above the data")
    for side, name in SIDES.items():
        with console.status(f"{name} learns ..."):
            script = Path(__file__).with_name("digits_contest.py")
            result = subprocess.run(  # noqa: S603 # our own script
                [sys.executable, str(script), side],
                env=os.environ | ONE_THREAD,
                stdout=subprocess.PIPE,
                check=True,
            )
        found = json.loads(result.stdout)
        grid.add_row(
            name,
            f"{found['accuracy']:.2%}",
            f"{found['fit_seconds']:.3f} s",
            f"{found['predict_seconds']:.3f} s",
            f"{found['peak_bytes'] / 1e6:.0f} MB",
        )
    console.print(grid)


def fit(title: str, *words: str) -> Path:
    """Run ``sparsact fit`` on a table and give the path of its report."""
    console.rule(title)
    report = words[words.index("--report") + 1]
    status = main(["fit", *words, "--progress"])
    if status:
        raise SystemExit(status)
    return Path(report)


def protein(folder: Path) -> Path:
    """Which of 13 mutations make a protein bright, and which together: a table of yes/no columns, as a CSV file."""
    console.rule("8,192 variants of a fluorescent protein")
    if status := main(["demo", "--folder", str(folder), "--force", "--progress"]):
        raise SystemExit(status)
    return folder / "protein.html"


def numbers(folder: Path) -> Path:
    """Thirty columns of numbers that fill four dimensions, and a kinked function of them: a table for hash tables."""
    rng = np.random.default_rng(0)
    domain = random_subspace(30, 4, rng=rng)
    X = domain.sample(20_000, rng=rng)
    centres = domain.coordinates(domain.sample(16, rng=rng))
    y = LowerEnvelope(centres, rng.uniform(0, 0.5, 16))(domain.coordinates(X)) + 0.02 * rng.normal(size=len(X))
    np.savez(folder / "numbers.npz", x=X, y=y)
    out = ["--report", str(folder / "numbers.html"), "--out", str(folder / "numbers.sparsact")]
    title = "20,000 rows of 30 numbers that fill 4 dimensions"
    return fit(title, str(folder / "numbers.npz"), "--target", "y", *out)


def network(folder: Path) -> Path:
    """Learn the indexing function from rows, prove what the network switches on, and give the path of its report."""
    console.rule("A network of 16 units, one on at a time, learned from 2,000 rows")
    rng = np.random.default_rng(0)
    truth = indexing(4)
    X = uniform(truth.n)(2000, rng)
    model = SparselyActivatedRegressor(n_units=16, random_state=0).fit(X, truth(X))
    new = uniform(truth.n)(2000, rng)
    error = float(np.mean((model.predict(new) - truth(new)) ** 2) / truth(new).var())
    console.print(f"Error on 2,000 new rows, as a share of the variance: {error:.2g}")
    model.network_.save(folder / "network.sparsact")
    report = folder / "network.html"
    status = main(["inspect", str(folder / "network.sparsact"), "--report", str(report)])
    if status:
        raise SystemExit(status)
    return report


def run(folder: Path) -> None:
    """The whole demo; reports go to ``folder``."""
    folder.mkdir(exist_ok=True)
    reports = [protein(folder)]
    contest()
    bits, digits = bits_and_digits()
    np.savez(folder / "digits.npz", pixel=bits, digit=digits)
    out = ["--report", str(folder / "digits.html"), "--out", str(folder / "digits.sparsact")]
    how = ["--task", "classification", "--degree", "2", "--alpha", "1000"]
    reports.append(fit("The digits' report", str(folder / "digits.npz"), "--target", "digit", *how, *out))
    reports += [numbers(folder), network(folder)]
    console.rule("Done")
    for report in reports:
        console.print(f"Open [bold]{report}[/bold] in a browser.", soft_wrap=True)


if __name__ == "__main__":
    run(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
