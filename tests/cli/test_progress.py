"""What the bars of a fit tell."""

import io

import pytest
from rich.console import Console
from rich.progress import Progress

from sparsact.cli.progress import Bars, RowsPerSecond
from sparsact.passes.progress import Stages


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
