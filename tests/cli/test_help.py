"""The help of the command, and how it names what is missing."""

import io
import os
import subprocess
import sys
from shutil import which

import numpy as np
import pytest
from commands import run
from grids import few_of
from typer.main import get_command

from sparsact.cli import main
from sparsact.cli.app import app
from sparsact.cli.fit import MODELS
from sparsact.fit.options import OPTIONS


def test_debug_lets_errors_pass(monkeypatch):
    monkeypatch.setenv("SPARSACT_DEBUG", "1")
    with pytest.raises(FileNotFoundError):
        main(["fit", "missing.csv", "--target", "y"])


@pytest.mark.parametrize("command", [[], ["demo"], ["fit"], ["predict"], ["inspect"], ["suggest"]])
def test_every_command_has_help_with_an_example(capsys, command):
    status, out, _ = run(capsys, *command, "--help")
    assert status == 0
    assert not command or f"Example: sparsact {command[0]}" in out


def test_help_shows_no_value_after_a_flag(capsys):
    """No flag takes a value, but typer writes the type ``<bool>`` there."""
    for words in (("--help",), ("fit", "--help"), ("reproduce", "--help")):
        out = run(capsys, *words)[1]
        assert "--help" in out
        assert "bool" not in out


def test_the_help_of_fit_is_short_and_names_every_model(capsys, monkeypatch):
    """At 80 columns; every kind of model is a row of the table, and every option stands in a panel."""
    monkeypatch.setenv("COLUMNS", "80")
    out = run(capsys, "fit", "--help")[1]
    assert len(out.splitlines()) <= 105
    assert {line.split()[0] for line in out.splitlines() if line[:2] == "  " and line[2:3].strip()} >= set(MODELS)
    assert set(MODELS) == set(OPTIONS["model"])
    found = get_command(app).commands["fit"].params
    assert [one.name for one in found if one.param_type_name == "option" and not one.rich_help_panel] == []


def test_a_command_of_a_package_that_is_not_installed(capsys, monkeypatch):
    monkeypatch.setattr("sparsact.cli.app.PlainGroup.get_command", lambda *_: None)
    status, _, err = run(capsys, "reproduce", "--list")
    assert status == 2
    assert "part of sparsact-papers, which is not installed: pip install ./papers in a clone." in err


def test_a_bare_command_shows_its_help(capsys):
    status, out, err = run(capsys)
    assert (status, err) == (0, "")
    assert "inspect" in out


def of_process(*words, **environment):
    """What a fresh process writes into a pipe."""
    clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    command = [sys.executable, "-m", "sparsact", *words]
    return subprocess.run(command, env=clean | environment, capture_output=True, check=True).stdout


@pytest.mark.parametrize(("name", "extra"), [("ascii", ""), ("cp1252", "²±×"), ("utf-8", "²±×╭─")])
def test_signs_that_a_stream_lacks_become_ascii(name, extra, tmp_path, monkeypatch):
    bits = np.random.default_rng(2).integers(0, 2, (90, 4))
    np.savez(tmp_path / "t.npz", x=bits, y=bits[:, 0] * bits[:, 3] + 0.1 * bits[:, 1])
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding=name, write_through=True))
    assert main(["fit", str(tmp_path / "t.npz"), "--target", "y", "--model", "low-degree"]) == main(["--help"]) == 0
    out = written.getvalue().decode(name)
    assert {sign for sign in "²±×╭─" if sign in out} == set(extra)
    assert "\\" not in out


@pytest.mark.grid
def test_pipes_get_eighty_columns_and_colour_on_demand_only():
    out = of_process("fit", "--help").decode()
    assert max(map(len, out.splitlines())) == 80
    assert "\x1b" not in out + of_process("fit", "--help", NO_COLOR="1").decode()
    assert "\x1b[1m" in of_process("fit", "--help", FORCE_COLOR="1").decode()


@pytest.mark.grid
@pytest.mark.parametrize("shell", few_of(["bash", "zsh", "fish"], ["bash"]))
def test_the_shell_completes_commands(shell):
    """The scripts that ``--install-completion`` writes ask it to complete ``sparsact me``."""
    asked = {"COMP_WORDS": "sparsact me", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "sparsact me"}
    asked |= {"_SPARSACT_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    found = of_process(**asked).decode()
    assert "measure" in found
    assert "sparsify" not in found
    script = of_process(_SPARSACT_COMPLETE=f"source_{shell}").decode()
    assert f"complete_{shell}" in script
    if which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)
