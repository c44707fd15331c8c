"""The forecast of a fit's time: when it is made, and how far measured fits are from it."""

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from rich.progress import Progress as Drawn

import sparsact as sa
from sparsact.fit.forecast import LONG, SPREAD, seconds
from sparsact.passes.bars import Bars
from sparsact.passes.progress import Stages

ROWS = Path(__file__).parents[2] / "results" / "landscapes.jsonl"
SIZES = {"BDBC": 2_560, "CR6261 h1": 1_812, "CR6261 h9": 1_812, "LLVM": 1_024, "S309": 32_768, "x264": 1_152}  # in all


def notes(m, **options):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 2, (m, 3)), columns=list("abc")).assign(y=rng.normal(size=m))
    said = []
    sa.fit_table(table, "y", explain=False, progress=lambda now: said.append(now.note), **options)
    return [note for note in said if note]


def test_measured_fits_are_near_the_forecast():
    """Fits of landscapes, whose seconds have no part in the forecast: three in four long fits are within its factor."""
    near = []
    for row in map(json.loads, ROWS.read_text(encoding="utf-8").splitlines()):
        whole = 8_192 if row["table"].startswith("eqFP611") else SIZES[row["table"]]
        expected = seconds(round(row["rows"] * (whole if row["rows"] < 1 else 1)), of_numbers=False)
        if row["side"] == "sparsact" and max(expected, row["seconds"]) > LONG:
            near.append(1 / SPREAD <= row["seconds"] / expected <= SPREAD)
    assert len(near) > 20
    assert np.mean(near) >= 0.75


@pytest.mark.grid
@pytest.mark.usefixtures("few_rivals")
def test_long_fits_are_announced_with_a_remedy():
    (note,) = notes(1_100)
    assert note.startswith("Comparing all kinds of model on 1,100 rows takes ")
    assert note.endswith("model low-degree alone takes seconds.")
    assert notes(300) == notes(1_100, model="low-degree") == notes(1_100, degree=2) == []


def test_bars_print_the_note_above_them():
    text = StringIO()
    with Drawn(console=Console(file=text, width=200), auto_refresh=False) as bars:
        Stages(Bars(bars)).say("A sentence.")
        Stages(Bars(bars)).say("")
        assert bars.tasks == []
    assert text.getvalue().strip() == "A sentence."
