"""A fit that is stopped, however often and wherever, goes on to the same bytes."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from commands import run
from grids import few_of

from sparsact.datasets.table_files import Parts
from sparsact.fit.candidates import candidates
from sparsact.fit.candidates.lsh import LSHCandidate
from sparsact.saving import modelfile

pytestmark = pytest.mark.usefixtures("few_rivals")

SIZES = (40, 21, 40, 40, 17, 23, 40, 40, 40, 30)  # rows per file; each file is a batch


def of_bits(rng, n_rows):
    bits = rng.integers(0, 2, (n_rows, 5))
    signs = 1.0 - 2 * bits
    y = 2 * signs[:, 0] * signs[:, 3] + signs[:, 1] + 0.1 * rng.normal(size=n_rows)
    kind = np.array(["red", "green", "blue"])[(bits[:, 0] + bits[:, 1])]
    return {f"bit{i}": bits[:, i] for i in range(5)} | {"y": y, "z": y**2 + bits[:, 2], "kind": kind}


def of_numbers(rng, n_rows):
    X = rng.uniform(-1, 1, (n_rows, 2))
    return {"a": X[:, 0], "b": X[:, 1], "bit": rng.integers(0, 2, n_rows), "y": np.abs(X[:, 0]) + X[:, 1] ** 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("parts")
    rng = np.random.default_rng(8)
    for number, n_rows in enumerate(SIZES):
        pa.csv.write_csv(pa.table(of_bits(rng, n_rows)), path / f"bits-{number}.csv")
        pa.parquet.write_table(pa.table(of_numbers(rng, n_rows)), path / f"numbers-{number}.parquet")
    return path


@pytest.fixture
def small(monkeypatch):
    """Hash tables are laid out on about 100 rows, so that a small table is read as a large one."""
    monkeypatch.setitem(candidates(), "lsh", LSHCandidate(most_rows=100))


class Interrupted:
    """Batches of tables; after every ``every`` batches a signal comes, as from the keyboard."""

    def __init__(self, monkeypatch):
        self.every, self.count = 0, 0
        real = Parts.batches

        def batches(parts, *args):
            for batch in real(parts, *args):
                self.count += 1
                if self.every and self.count % self.every == 0:
                    signal.raise_signal(signal.SIGINT)
                yield batch

        monkeypatch.setattr(Parts, "batches", batches)


CASES = {
    "bits": ("bits-*.csv", "-t", "y", "--ignore", "z", "--ignore", "kind"),
    "classes": ("bits-*.csv", "-t", "kind", "--ignore", "y", "--ignore", "z"),
    "targets": ("bits-*.csv", "-t", "y", "-t", "z", "--ignore", "kind"),
    "numbers": ("numbers-*.parquet", "-t", "y", "--domain", "real", "--model", "low-degree"),
    "tables": ("numbers-*.parquet", "-t", "y"),
}


EVERY = [pytest.param(case, 3, marks=pytest.mark.slow) for case in CASES]


@pytest.mark.parametrize(
    ("case", "every"), few_of([("bits", 8), ("targets", 6), ("tables", 11)], [("bits", 8)]) + EVERY
)
def test_a_fit_stopped_again_and_again_writes_the_same_bytes(capsys, monkeypatch, folder, tmp_path, small, case, every):
    """Ctrl-C after every ``every`` batches, in every pass over the rows."""
    pattern, *words = CASES[case]
    model, told = tmp_path / "m.sparsact", []
    signals = Interrupted(monkeypatch)
    arguments = ("fit", folder / pattern, *words, "--out", model, "--folds", "3")
    status, out, _ = run(capsys, *arguments, "--json")
    assert status == 0
    told.append(json.loads(out))
    whole = model.read_bytes()
    statistic = tmp_path / "m.statistic"
    signals.every = every
    model.unlink()
    stops = 0
    while (answer := run(capsys, *arguments, "--json", "--resume", statistic))[0] == 130:
        stops += 1
        assert answer[1] == ""
        assert answer[2].startswith("sparsact: stopped: ")
        assert "go on with: sparsact fit" in answer[2]
        assert answer[2].endswith(f"--resume {statistic}\n")  # no full stop: the line is copied
        assert statistic.is_file()
        assert stops < 200
    assert answer[0] == 0, answer[2]
    assert stops >= 3
    assert model.read_bytes() == whole
    assert not statistic.exists()
    told.append(json.loads(answer[1]))
    for other in told[1:]:  # scores, terms and choices are the same too
        assert {k: v for k, v in other.items() if k not in ("seconds", "peak_memory_bytes")} == {
            k: v for k, v in told[0].items() if k not in ("seconds", "peak_memory_bytes")
        }


@pytest.fixture
def stopped(capsys, monkeypatch, folder, tmp_path, small):
    """A statistic that Ctrl-C has left of a fit without --resume, its folder, and the words of the fit."""
    for number in range(len(SIZES)):
        (tmp_path / f"p{number}.csv").write_bytes((folder / f"bits-{number}.csv").read_bytes())
    words = ("fit", tmp_path / "p*.csv", "-t", "y", "--ignore", "z", "--ignore", "kind", "--model", "low-degree")
    words = (*words, "--out", tmp_path / "m")
    with monkeypatch.context() as patch:
        Interrupted(patch).every = 17
        status, _, err = run(capsys, *words)
    statistic = tmp_path / "m.statistic"
    assert (status, statistic.is_file(), (tmp_path / "m").exists()) == (130, True, False)
    assert f"--resume {statistic}" in err
    return statistic, tmp_path, words


def test_ctrl_c_leaves_a_statistic_beside_the_model_that_resume_takes(capsys, stopped):
    statistic, folder, words = stopped
    kind, state, _ = modelfile.read(statistic)
    assert kind == "FitStatistic"
    assert {name: one["rows"] for name, one in state["passes"].items()} == {"reading": 331, "choosing": 221}
    assert run(capsys, *words, "--resume", statistic)[0] == 0
    resumed = (folder / "m").read_bytes()
    assert run(capsys, *words)[0] == 0
    assert (folder / "m").read_bytes() == resumed


def test_a_statistic_is_no_model_and_says_how_to_go_on(capsys, stopped):
    statistic, folder, _ = stopped
    remedy = f"holds an unfinished fit, not a model; .*: sparsact fit ... --resume {statistic}$"
    with pytest.raises(modelfile.ModelFileError, match=remedy):
        modelfile.load(statistic)
    for words in (("inspect", statistic), ("predict", statistic, folder / "p0.csv", "--out", folder / "answers.csv")):
        status, out, err = run(capsys, *words)
        assert (status, out) == (2, "")
        assert err == f"sparsact: error: {statistic} " + err.partition(f"{statistic} ")[2]
        assert err.endswith(f"sparsact fit ... --resume {statistic}\n")
        assert "install" not in err


@pytest.mark.grid
def test_another_fit_or_another_file_is_refused_and_nothing_is_touched(capsys, stopped):
    statistic, folder, words = stopped
    before = statistic.read_bytes()

    def refusal(*given):
        status, out, err = run(capsys, *given, "--resume", statistic)
        assert (status, out, err.count("sparsact: error: ")) == (2, "", 1)
        assert statistic.read_bytes() == before
        return err

    assert "--degree was auto, now it is 2" in refusal(*words, "--degree", "2")
    assert "--report was not given, now it is given" in refusal(*words, "--report", folder / "r.html")
    assert "--random-state was 0, now it is 1" in refusal(*words, "--random-state", "1")
    assert "there are 3" in refusal("fit", *sorted(folder.glob("p[012].csv")), *words[2:])
    os.utime(folder / "p2.csv", ns=(5, 5))
    assert "p2.csv has changed since" in refusal(*words)
    run(capsys, *words, "--quiet")
    model = (folder / "m").read_bytes()
    (folder / "other").write_bytes(model)
    status, _, err = run(capsys, *words, "--resume", folder / "other")
    assert (status, "holds a LowDegreeRegressor, not the statistic of a fit" in err) == (2, True)
    assert (folder / "other").read_bytes() == (folder / "m").read_bytes() == model
    statistic.write_bytes(before[: len(before) // 2])
    before = statistic.read_bytes()
    assert "m.statistic is not a readable sparsact model" in refusal(*words)


def test_a_fit_with_an_option_that_is_gone_is_refused(capsys, stopped):
    statistic, _, words = stopped
    kind, state, arrays = modelfile.read(statistic)
    state["asked"]["options"]["--heredity"] = "weak"
    modelfile.write(statistic, kind, state, arrays)
    status, out, err = run(capsys, *words, "--resume", statistic)
    assert (status, out) == (2, "")
    assert "keeps another fit: --heredity was weak, which this version no longer has; undo that, or name another" in err


def test_a_statistic_behind_a_link_is_removed_and_the_link_stays(capsys, stopped):
    statistic, folder, words = stopped
    link = folder / "link"
    link.symlink_to(statistic)
    assert run(capsys, *words, "--quiet", "--resume", link)[0] == 0
    assert (link.is_symlink(), statistic.exists(), (folder / "m").is_file()) == (True, False, True)


@pytest.mark.parametrize("what", ["--out", "--resume"])
def test_a_full_disk_is_one_line_and_leaves_no_file(capsys, monkeypatch, stopped, what):
    """The limit on the size of a file stands for the disk; what was there before stays as it was."""
    statistic, folder, words = stopped
    statistic.unlink()
    model = folder / "m"
    model.write_bytes(b"earlier")
    here = sorted(folder.iterdir())
    given = (*words, "--resume", statistic, "--keep-every", "0") if what == "--resume" else words
    resource = pytest.importorskip("resource", reason="limits on files exist on Unix only")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        status, out, err = run(capsys, *given)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, previous)
    named = statistic if what == "--resume" else model
    assert (status, out) == (2, "")
    assert err.splitlines() == [
        f"{model} is there already and will be replaced.",
        f"sparsact: error: {named}: File too large; free some space and run this again.",
    ]
    assert sorted(folder.iterdir()) == here
    assert model.read_bytes() == b"earlier"


KILLED = """
import os, random, signal, sys, time
import sparsact.fit.fit, pyarrow.csv
from sparsact import LowDegreeRegressorCV
from sparsact.cli import main

kills, longest, whole, words = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4:]
random.seed(4)

def begin(words):
    child = os.fork()
    if not child:
        os._exit(main(words))
    return child

assert not os.waitpid(begin([*words[:words.index("--resume")], "--out", whole]), 0)[1]

killed = 0
while killed < kills:
    child = begin(words)
    time.sleep(random.uniform(0, longest))
    os.kill(child, signal.SIGKILL)
    killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    if os.path.exists(words[-1]):  # it was done before: the bytes so far are judged, and it begins anew
        print(hash(open(words[-1], "rb").read()))
        os.unlink(words[-1])
os.waitpid(begin(words), 0)
print(hash(open(words[-1], "rb").read()))
"""


@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.grid
def test_kill_9_at_any_moment_changes_nothing(folder, tmp_path, kills):
    words = [
        "fit",
        str(folder / "bits-*.csv"),
        "-t",
        "y",
        "--ignore",
        "z",
        "--ignore",
        "kind",
        "-q",
        "--model",
        "low-degree",
    ]
    # BLAS rounds by its number of threads, which tests before this one may have set here.
    environment = os.environ | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    statistic, model = tmp_path / "s", tmp_path / "m"
    words += ["--resume", str(statistic), "--keep-every", "0", "--out", str(model)]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(kills), "0.3", str(tmp_path / "whole"), *words],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(set(done.stdout.split())) == 1
    assert model.read_bytes() == (tmp_path / "whole").read_bytes()
    assert {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")} == {"whole", "m"}
