"""Places that cannot be written to, for tests: disks without room, folders without permission."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager, suppress

import pytest


@contextmanager
def small_files(folder, room=3000):
    """A limit of the size of every file: the system writes as much as there is room for, then refuses."""
    resource = pytest.importorskip("resource", reason="no limit of a file's size on this system")
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, most[1]))
    try:
        yield folder
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)


@contextmanager
def small_disk(folder, prepare=lambda: None):
    """A file system of 64 KB; a file ``other`` fills what ``prepare`` leaves free."""
    with _mounted(folder):
        prepare()
        with suppress(OSError):
            (folder / "other").write_bytes(bytes(1 << 17))
        yield folder


@contextmanager
def read_only(folder, prepare=lambda: None):
    """A folder into which nobody may write; for root, who may everywhere, a file system that takes nothing."""
    if os.geteuid():
        prepare()
        folder.chmod(0o500)
        yield folder
        folder.chmod(0o700)
        return
    with _mounted(folder):
        prepare()
        subprocess.run([shutil.which("mount"), "-o", "remount,ro", folder], check=True)
        yield folder


@contextmanager
def _mounted(folder):
    """A file system of its own in the memory."""
    words = [shutil.which("mount") or "mount", "-t", "tmpfs", "-o", "size=64k", "sparsact", folder]
    if shutil.which("mount") is None or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system needs the rights of root")
    try:
        yield
    finally:
        subprocess.run([shutil.which("umount"), folder], check=True)
