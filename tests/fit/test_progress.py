"""What a fit shows of its progress, and where."""

import io
import sys

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from rich.progress import Progress

import sparsact as sa
from sparsact.passes import progress
from sparsact.passes.bars import Bars, RowsPerSecond
from sparsact.passes.progress import Stages, showing

STAGES = ["reading ...", "choosing ...", "summing up ..."]


def fit(**options):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 2, (40, 3)), columns=list("abc")).assign(y=rng.normal(size=40))
    return sa.fit_table(table, "y", degree=1, **options)


def test_rows_of_an_earlier_run_move_the_bar_but_are_no_speed():
    clock = [100.0]
    with Progress(console=Console(file=io.StringIO()), get_time=lambda: clock[0], auto_refresh=False) as bars:
        with Stages(Bars(bars)).stage("reading", 1000) as bar:
            bar.resume(600)
            clock[0] += 10
            bar(50)
            (task,) = bars.tasks
            assert (task.completed, task.total, task.percentage) == (650, 1000, pytest.approx(65))
            assert RowsPerSecond().render(task).plain == "5 rows/s"
        assert bars.tasks[0].finished


def test_a_script_is_silent_unless_it_asks(capsys):
    """A notebook too: a prompt whose stderr is no terminal."""
    fit()
    assert capsys.readouterr() == ("", "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "ps1", ">>> ", raising=False)
        fit()
    assert capsys.readouterr() == ("", "")
    fit(progress=True)
    assert capsys.readouterr() == ("", "\n".join([*STAGES, ""]))


@pytest.mark.parametrize("has_rich", [True, False])
def test_a_prompt_on_a_terminal_has_bars_unless_it_refuses(monkeypatch, has_rich):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    fit()
    assert terminal.getvalue() == ""  # a script in the terminal
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    fit(progress=False)
    assert terminal.getvalue() == ""
    if not has_rich:
        monkeypatch.setattr(progress, "find_spec", lambda name: None)
    fit()
    assert ("━" in terminal.getvalue()) == has_rich
    assert (terminal.getvalue() == "\n".join([*STAGES, ""])) == (not has_rich)


def test_lines_may_wait_for_a_note(capsys):
    """The command's lines do so if its stderr is a file; a process may have no stderr."""
    with showing(None) as shown:
        stages = Stages(shown)
        with stages.stage("reading"):
            stages.say("It takes 5 minutes.")
        with stages.stage("choosing") as rows:
            rows(10)
    assert capsys.readouterr() == ("", "It takes 5 minutes.\nchoosing ...\n")
    with pytest.MonkeyPatch.context() as patch, showing(True) as shown:
        patch.setattr(sys, "stderr", None)
        Stages(shown).say("It takes 5 minutes.")
    assert capsys.readouterr() == ("", "")


def test_progress_is_no_word():
    with pytest.raises(TypeError, match="`progress` is True, False, None or a function of a Progress; got 'yes'"):
        fit(progress="yes")
