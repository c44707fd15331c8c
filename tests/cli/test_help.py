"""The help of the command, and how it names what is missing."""

import pytest
from commands import run

from sparsact.cli import main


def test_debug_lets_errors_pass(monkeypatch):
    monkeypatch.setenv("SPARSACT_DEBUG", "1")
    with pytest.raises(FileNotFoundError):
        main(["fit", "missing.csv", "--target", "y"])


@pytest.mark.parametrize("command", [[], ["fit"], ["predict"], ["inspect"]])
def test_every_command_has_help_with_an_example(capsys, command):
    status, out, _ = run(capsys, *command, "--help")
    assert status == 0
    assert not command or f"Example: sparsact {command[0]}" in out


def test_help_shows_no_value_after_a_flag(capsys):
    """As no flag takes one; typer writes the type ``<bool>`` there."""
    for words in (("--help",), ("fit", "--help"), ("reproduce", "--help")):
        out = run(capsys, *words)[1]
        assert "--help" in out
        assert "bool" not in out


def test_a_command_of_a_package_that_is_not_installed(capsys, monkeypatch):
    monkeypatch.setattr("sparsact.cli.app.PlainGroup.get_command", lambda *_: None)
    status, _, err = run(capsys, "reproduce", "--list")
    assert status == 2
    assert "part of sparsact-papers, not installed here: pip install sparsact-papers, or ./papers of a checkout." in err


def test_a_bare_command_shows_its_help(capsys):
    status, out, err = run(capsys)
    assert (status, err) == (0, "")
    assert "inspect" in out
