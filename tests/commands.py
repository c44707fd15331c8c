"""Run the command in this process, and read what it says."""

import json

from sparsact.cli import main


def run(capsys, *words, main=main):
    status = main([str(word) for word in words])
    told = capsys.readouterr()
    return status, told.out, told.err


def fit_json(capsys, *words):
    status, out, err = run(capsys, "fit", *words, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)
