"""Files whole or not at all, whatever stops the writer; streams as they are."""

import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from disks import small_files

from sparsact import files

BEGINNING = """
import sys, time
from sparsact.files import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("written", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "page.html"
    path.write_bytes(b"old")
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("content", ["a line\nand Größe\r\n", b"\0\xff", b""])
def test_content_comes_back_as_it_was(old, content):
    files.write(str(old), content)
    assert old.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert names(old.parent) == [old.name]


def test_until_the_end_of_the_block_the_old_file_is_there(old):
    with files.replacing(old) as file:
        file.write(b"new")
        file.flush()
        assert old.read_bytes() == b"old"
    assert old.read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError("x"), OSError("x"), KeyboardInterrupt()])
def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(old, error):
    def fail():
        with files.replacing(old) as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)) as raised:
        fail()
    assert raised.value is error
    assert old.read_bytes() == b"old"
    assert names(old.parent) == [old.name]


def test_a_killed_writer_leaves_the_old_file_and_a_trace_that_goes_in_time(old):
    writer = subprocess.Popen([sys.executable, "-c", BEGINNING, old], stdout=subprocess.PIPE)
    assert writer.stdout.readline() == b"written\n"
    writer.kill()
    writer.communicate()
    assert old.read_bytes() == b"old"
    (left,) = (old.parent / name for name in names(old.parent) if name != old.name)
    assert (left.name.startswith(".page.html."), left.suffix, left.read_bytes()) == (True, files.SUFFIX, b"half")
    other = old.parent / ".other.html.00000000.unfinished"
    other.write_bytes(b"")
    files.write(old, "new")
    assert left.exists()  # it may belong to another writer, who is still at work
    for path in (left, other):
        os.utime(path, (time.time() - files.ABANDONED - 60,) * 2)
    files.write(old, "newer")
    assert names(old.parent) == sorted([old.name, other.name])


def test_a_new_file_has_the_permissions_of_any_and_an_old_one_keeps_its_own(old):
    (old.parent / "plain").write_text("x")
    files.write(old.parent / "new", "x")
    assert (old.parent / "new").stat().st_mode == (old.parent / "plain").stat().st_mode
    for mode in (0o600, 0o640):
        old.chmod(mode)
        files.write(old, "x")
        assert stat.S_IMODE(old.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_may_not_be_written_is_not_replaced(old):
    old.chmod(0o400)
    with pytest.raises(PermissionError, match=r"page\.html"):
        files.write(old, "x")
    assert old.read_bytes() == b"old"


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_a_link(tmp_path, there):
    (tmp_path / "far").mkdir()
    target, link, second = tmp_path / "far" / "page.html", tmp_path / "link", tmp_path / "second"
    if there:
        target.write_bytes(b"old")
    link.symlink_to("far/page.html")
    second.symlink_to("link")
    files.write(second, "new")
    assert target.read_bytes() == b"new"
    assert link.is_symlink()
    assert second.is_symlink()
    assert names(tmp_path / "far") == ["page.html"]


@pytest.mark.parametrize("path", ["", "nowhere/page.html", "loop"])
def test_what_cannot_be_written_is_an_error_that_names_it(tmp_path, path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match=Path(path).parent.name or path or tmp_path.name):
        files.write(tmp_path / path, "x")
    assert names(tmp_path) == ["loop"]


def test_names_may_be_as_long_as_the_system_takes(tmp_path):
    for name in ("a" * 255, "é" * 127):
        files.write(tmp_path / name, name)
        assert (tmp_path / name).read_text() == name
    assert len(names(tmp_path)) == 2


def test_streams_are_written_as_they_are(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
    reader.start()
    files.write(fifo, "through")
    reader.join()
    files.write(os.devnull, "gone")
    assert read == [b"through"]
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no /dev/stdout here")
@pytest.mark.parametrize("to", ["pipe", "file"])
def test_stdout_is_written_as_it_is(tmp_path, to):
    code = "from sparsact import files; files.write('/dev/stdout', 'answer,'); print('and more')"
    with (tmp_path / "out").open("wb") as out:
        told = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE if to == "pipe" else out, check=True
        ).stdout
    assert (told or (tmp_path / "out").read_bytes()).endswith(b"and more\n")
    assert names(tmp_path) == ["out"]


def test_a_full_disk_is_told_with_the_name_and_the_remedy(old):
    with small_files(old.parent), pytest.raises(OSError, match="free some space") as raised:
        files.write(old, b"x" * 6_000)
    assert raised.value.filename == str(old)
    assert old.read_bytes() == b"old"
    assert names(old.parent) == [old.name]


def test_readers_see_one_whole_content_while_writers_take_turns(old):
    contents = [bytes([65 + i]) * (70_001 + i) for i in range(3)]
    files.write(old, contents[0])
    writers = [
        threading.Thread(target=lambda content=content: [files.write(old, content) for _ in range(15)])
        for content in contents
    ]
    for writer in writers:
        writer.start()
    seen = 0
    while any(writer.is_alive() for writer in writers):
        assert old.read_bytes() in contents
        seen += 1
    for writer in writers:
        writer.join()
    assert seen
    assert names(old.parent) == [old.name]
