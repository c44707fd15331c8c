"""The gallery: every example runs by itself, and the built pages link to what is there."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))
SHOW = "ignore:FigureCanvasAgg is non-interactive"  # plt.show() where there is no window
links = runpy.run_path(str(ROOT / "docs" / "check_links.py"))


def run(arguments, **environment):
    """Run Python, and give what it prints; its errors are shown where it fails."""
    env = os.environ | {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"} | environment
    done = subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.mark.slow  # `make docs`, so `.ci/run`, runs them too
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_without_data(example, tmp_path):
    """In another process, without a warning and without any file of data."""
    printed = run(["-W", "error", "-W", SHOW, example], SPARSACT_DATA=str(tmp_path), MPLCONFIGDIR=str(tmp_path))
    assert printed
    if "SPARSACT_DATA" in example.read_text(encoding="utf-8"):
        assert "drawn: a " in printed


def test_gallery_is_in_order():
    """Every example has a place, and every place an example."""
    style = runpy.run_path(str(ROOT / "docs" / "gallery_style.py"))
    assert sorted(style["ORDER"]) == [path.name for path in EXAMPLES]
    assert [style["in_order"](name) for name in style["ORDER"]] == list(range(len(EXAMPLES)))
    with pytest.raises(ValueError, match="not in tuple"):
        style["in_order"]("plot_other.py")


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ("other.html", ""),
        ("other.html#here", ""),
        ("folder/deep.html", ""),
        ("#top", ""),
        ("a%20b.png", ""),
        ("https://docs.python.org/3/", ""),
        ("data:image/png;base64,AAAA", ""),
        ("missing.html", "no such file"),
        ("folder", "no such file"),
        ("other.html#there", "no such anchor"),
        ("#there", "no such anchor"),
        ("http://docs.python.org/3/", "not a well-formed https link"),
        ("javascript:void(0)", "not a well-formed https link"),
        ("https://example.org/", "example.org is not among the hosts of check_links.py"),
        ("//example.org/x.js", "not a well-formed https link"),
    ],
)
def test_links_are_judged(tmp_path, link, fault):
    (tmp_path / "folder").mkdir()
    (tmp_path / "a b.png").touch()
    (tmp_path / "index.html").write_text(f'<h1 id="top"></h1><p>&copy; <a href="{link}">x</a></p>', encoding="utf-8")
    (tmp_path / "other.html").write_text('<span id="here"></span>', encoding="utf-8")
    (tmp_path / "folder" / "deep.html").write_text('<a href="../index.html#top"><img src="../a b.png"></a>')
    assert list(links["broken"](tmp_path)) == ([f"index.html: {link}: {fault}"] if fault else [])


def test_letters_taken_for_numbers_are_told(tmp_path):
    (tmp_path / "index.html").write_text('<ol class="upperalpha simple" start="14"><li>Siegmund</li></ol>')
    assert [line.partition(":")[0] for line in links["broken"](tmp_path)] == ["index.html"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_documentation_builds_without_warnings_and_with_whole_links(tmp_path):
    """From a copy without anything that an earlier build has left: the gallery is run, and all links are followed."""
    pytest.importorskip("sphinx_gallery", reason="the documentation needs the extra docs")
    made = shutil.ignore_patterns("_build", "api", "gallery", "__pycache__")
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=made)
    for part in ("examples", "results", "README.md"):
        (tmp_path / part).symlink_to(ROOT / part)
    built = tmp_path / "html"
    command = ["-m", "sphinx", "--quiet", "--fail-on-warning", "-b", "html", tmp_path / "docs", built]
    run(command, SPARSACT_DATA=str(tmp_path / "none"))
    assert list(links["broken"](built)) == []
    assert len(list((built / "gallery").glob("plot_*.html"))) == len(EXAMPLES)
    assert len(list((built / "_images").glob("sphx_glr_plot_*_001.png"))) == len(EXAMPLES)
