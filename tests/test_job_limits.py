"""Cores and memory of a job: what files of control groups say, worked by hand, and what this process is bound to."""

import os
import subprocess
import sys
from math import inf

import pytest

from fedactors.job_limits import allowed_bytes, allowed_cores, group_folders, usable_cores, usable_memory

MB = 2**20


@pytest.mark.parametrize(
    ("text", "cores"),
    [("200000 100000", 2.0), ("150000 100000", 1.5), ("50000 100000", 0.5), ("max 100000", inf), ("-1 100000", inf)],
)
def test_a_quota_is_so_many_microseconds_in_each_period(text, cores):
    assert allowed_cores(text) == cores


def test_a_limit_on_memory_is_in_bytes():
    assert allowed_bytes("max\n") == inf
    assert allowed_bytes("1073741824\n") == 2**30
    assert allowed_bytes("9223372036854771712\n") == 2**63 - 4096  # no limit, in the first version


def test_the_folders_of_a_job_of_slurm():
    text = "0::/system.slice/slurmstepd.scope/job_7\n"
    assert [str(one) for one in group_folders(text, "memory")] == [
        "system.slice/slurmstepd.scope/job_7",
        "system.slice/slurmstepd.scope",
        "system.slice",
        ".",
    ]


def test_the_folders_of_a_container_in_the_first_version():
    """Each controller has a tree of its own; the container sees its group at the root, under no longer path."""
    text = "9:memory:/docker/ab\n4:cpu,cpuacct:/docker/ab\n3:cpuset:/docker/ab\n1:name=systemd:/docker/ab\n"
    assert [str(one) for one in group_folders(text, "cpu")] == ["cpu/docker/ab", "cpu/docker", "cpu"]
    assert [str(one) for one in group_folders(text, "memory")] == ["memory/docker/ab", "memory/docker", "memory"]


def test_a_group_above_that_of_the_container_is_looked_for_at_the_root():
    assert [str(one) for one in group_folders("0::/../../pod\n", "cpu")] == ["."]


def lay(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_the_lowest_limit_of_a_group_and_those_above_it_counts(tmp_path, monkeypatch):
    """Eight cores by affinity; 3 by the quota of the job, 5 above it: 3. Memory: 300 MB above the 400 MB of the job."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    lay(tmp_path, {
        "proc/self/cgroup": "0::/user/job\n",
        "sys/fs/cgroup/user/job/cpu.max": "300000 100000\n",
        "sys/fs/cgroup/user/cpu.max": "500000 100000\n",
        "sys/fs/cgroup/user/job/memory.max": f"{400 * MB}\n",
        "sys/fs/cgroup/user/memory.max": f"{300 * MB}\n",
        "sys/fs/cgroup/memory.max": "max\n",
    })  # fmt: skip
    assert usable_cores(tmp_path) == 3
    assert usable_memory(tmp_path) == 300 * MB


def test_the_first_version_of_control_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    lay(tmp_path, {
        "proc/self/cgroup": "9:memory:/docker/ab\n4:cpu,cpuacct:/docker/ab\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "250000\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{200 * MB}\n",
    })  # fmt: skip
    assert usable_cores(tmp_path) == 3  # the half core counts as one
    assert usable_memory(tmp_path) == 200 * MB


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"proc/self/cgroup": ""},
        {"proc/self/cgroup": "odd\n"},
        {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cpu.max": "odd",
            "sys/fs/cgroup/memory.max": "odd",
        },
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "100000 0"},
    ],
)
def test_files_that_are_not_there_or_odd_set_no_limit(files, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {2, 5})
    lay(tmp_path, files)
    assert usable_cores(tmp_path) == 2
    assert usable_memory(tmp_path) == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_a_system_without_affinity_has_the_cores_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    assert usable_cores(tmp_path) == os.cpu_count()


def test_there_is_at_least_one_core(tmp_path):
    lay(tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "10000 100000"})
    assert usable_cores(tmp_path) == 1


def test_a_process_that_is_bound_to_one_core_has_one():
    """`taskset -c N`, as Slurm binds its jobs."""
    core = str(max(os.sched_getaffinity(0)))
    code = "from fedactors.job_limits import usable_cores; print(usable_cores())"
    done = subprocess.run(["taskset", "-c", core, sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"1\n"
