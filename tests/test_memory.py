"""Free, total and peak memory, against psutil and against made-up control groups."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import psutil
import pytest

from sparsact import memory

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
MEMINFO = "MemTotal:       16000 kB\nMemFree:         300 kB\nMemAvailable:    9000 kB\n"
UNLIMITED = 9223372036854771712  # what version 1 says for no limit


@LINUX
def test_memory_equals_that_of_psutil(tmp_path):
    """Without control groups; between the two readings other processes may take or give a tenth of the machine."""
    assert memory.total_memory() == psutil.virtual_memory().total
    free = memory.free_memory(cgroup=tmp_path)
    assert abs(free - psutil.virtual_memory().available) < 0.1 * memory.total_memory()
    assert 0 <= memory.free_memory() <= memory.total_memory()


def told_by(code):
    """What a fresh interpreter prints, as numbers."""
    code = f"from sparsact.memory import peak_memory; {code}"
    return [
        int(n) for n in subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split()
    ]


@pytest.mark.grid
def test_the_peak_is_what_was_held_and_given_back():
    before, after = told_by("a = peak_memory(); held = b'1' * 200_000_000; del held; print(a, peak_memory())")
    assert before < 100e6
    assert 195e6 < after - before < 220e6


@pytest.mark.grid
@LINUX
def test_the_peak_of_a_child_is_its_own():
    """``ru_maxrss`` of a child begins with what its parent held when it started it."""
    held = np.ones(40_000_000)  # 320 MB
    assert told_by("print(peak_memory())")[0] < 100e6
    assert held.sum() == 40_000_000


def machine(folder, cgroup):
    """A made-up /proc with 9,000 KiB free, for a process in these control groups."""
    (folder / "self").mkdir(parents=True)
    (folder / "meminfo").write_text(MEMINFO)
    (folder / "self" / "cgroup").write_text(cgroup)
    return folder


def group(folder, limit, usage, droppable, version=2):
    names = {1: ("limit_in_bytes", "usage_in_bytes", "total_inactive_file"), 2: ("max", "current", "inactive_file")}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"memory.{names[version][0]}").write_text(f"{limit}\n")
    (folder / f"memory.{names[version][1]}").write_text(f"{usage}\n")
    (folder / "memory.stat").write_text(f"anon 12\n{names[version][2]} {droppable}\nactive_file 7\n")


def free(tmp_path):
    return memory.free_memory(tmp_path / "proc", tmp_path / "cgroup")


@LINUX
def test_without_control_groups_the_machine_decides(tmp_path):
    machine(tmp_path / "proc", "0::/\n")
    assert free(tmp_path) == 9000 * 1024


@LINUX
def test_a_container_of_version_2(tmp_path):
    machine(tmp_path / "proc", "0::/\n")
    group(tmp_path / "cgroup", 5_000_000, 1_000_000, 300_000)
    assert free(tmp_path) == 4_300_000
    group(tmp_path / "cgroup", "max", 1_000_000, 300_000)
    assert free(tmp_path) == 9000 * 1024


@LINUX
def test_the_tightest_group_above_the_process_decides(tmp_path):
    machine(tmp_path / "proc", "0::/slice/job/step\n")
    group(tmp_path / "cgroup" / "slice" / "job" / "step", "max", 1, 0)
    group(tmp_path / "cgroup" / "slice" / "job", 3_000_000, 500_000, 0)
    group(tmp_path / "cgroup" / "slice", 8_000_000, 600_000, 0)
    assert free(tmp_path) == 2_500_000


@LINUX
@pytest.mark.parametrize("seen_as", ["/docker/0123abcd", "/"])
def test_a_container_of_version_1(tmp_path, seen_as):
    """Its group has the host's path, which is not below the container's own mount."""
    machine(tmp_path / "proc", f"12:cpu,cpuacct:/\n4:memory:{seen_as}\n1:name=systemd:/a:b\n0::/\n")
    group(tmp_path / "cgroup" / "memory", 6_000_000, 2_000_000, 500_000, version=1)
    assert free(tmp_path) == 4_500_000
    group(tmp_path / "cgroup" / "memory", UNLIMITED, 2_000_000, 500_000, version=1)
    assert free(tmp_path) == 9000 * 1024


@LINUX
def test_a_group_above_its_limit_leaves_nothing(tmp_path):
    machine(tmp_path / "proc", "0::/\n")
    group(tmp_path / "cgroup", 1_000_000, 1_200_000, 100_000)
    assert free(tmp_path) == 0


@LINUX
@pytest.mark.parametrize("told", [None, "MemTotal: 16000 kB\n", "MemAvailable: much\n"])
def test_a_kernel_that_does_not_tell_gives_half_of_the_machine(tmp_path, told):
    (tmp_path / "proc").mkdir()
    if told is not None:
        (tmp_path / "proc" / "meminfo").write_text(told)
    assert free(tmp_path) == memory.total_memory() // 2


def test_pages_of_macos():
    told = (
        "Mach Virtual Memory Statistics: (page size of 4096 bytes)\n"
        "Pages free:                               70.\nPages active:                            900.\n"
        "Pages inactive:                           30.\nPages purgeable:                           5.\n"
    )
    assert memory.vm_stat_free(told) == 100 * 4096
