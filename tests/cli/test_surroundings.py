"""Odd surroundings: little memory, few descriptors, terminals of other encodings, closed streams, no HOME, pipes.

Each command is a process of its own, as a user starts it: it works, or there is one message.
"""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from fedactors.cli.main import main

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "scenarios/quickstart.yaml"
SMALL = ["--set", "server.rounds=2", "--fleet", "local"]
MB = 2**20


def environment(**changes):
    """Return this process's variables, with changes; None removes one."""
    merged = {**os.environ, "PYTHONPATH": str(ROOT), **changes}
    return {name: value for name, value in merged.items() if value is not None}


def started(*words, limit=None, seconds=240, **more):
    """Return (exit code, stdout, stderr) of a command, as bytes; `limit` is a kind of resource and its limit."""
    more.setdefault("env", environment())
    if limit:
        more["preexec_fn"] = lambda: resource.setrlimit(limit[0], (limit[1], limit[1]))
    command = [sys.executable, "-m", "fedactors", *words]
    done = subprocess.run(command, capture_output=True, timeout=seconds, check=False, **more)
    return done.returncode, done.stdout, done.stderr


def assert_works_or_one_message(found):
    code, _, said = found
    assert b"Traceback" not in said
    messages = [line for line in said.splitlines() if b"fedactors: " in line or b"Error" in line or b"error" in line]
    assert code in (0, 1, 2)
    assert len(messages) == bool(code), said.decode()


@pytest.mark.parametrize("megabytes", [60, pytest.param(800, marks=pytest.mark.slow)])
def test_a_small_address_space(megabytes, tmp_path):
    found = started(
        "run", str(QUICKSTART), *SMALL, "--out", str(tmp_path / "run"), limit=(resource.RLIMIT_AS, megabytes * MB)
    )
    assert found[0] == 1  # torch alone takes more
    assert b"out of memory" in found[2] or b"Memory allocation" in found[2]
    assert_works_or_one_message(found)


@pytest.mark.slow
def test_a_check_needs_little_address_space():
    assert started("check", str(QUICKSTART), limit=(resource.RLIMIT_AS, 400 * MB))[0] == 0


@pytest.mark.slow
def test_a_run_needs_few_descriptors(tmp_path):
    found = started("run", str(QUICKSTART), *SMALL, "--out", str(tmp_path / "run"), limit=(resource.RLIMIT_NOFILE, 40))
    assert found[0] == 0, found[2]


@pytest.mark.slow
@pytest.mark.parametrize("limit", [(resource.RLIMIT_NOFILE, 40), (resource.RLIMIT_AS, 4500 * MB)])
def test_ray_with_too_little(limit, tmp_path):
    words = ["run", str(QUICKSTART), "--set", "server.rounds=2", "--actors", "1", "--out", str(tmp_path / "run")]
    found = started(*words, limit=limit)
    assert_works_or_one_message((found[0], b"", b"\n".join(other_than_a_retry(found[2]))))


@pytest.mark.slow
@pytest.mark.parametrize("gigabytes", [6, 8])
def test_ray_makes_do_with_a_limited_address_space(gigabytes, tmp_path):
    words = ["run", str(QUICKSTART), "--set", "server.rounds=2", "--actors", "1", "--out", str(tmp_path / "run")]
    code, _, said = started(*words, limit=(resource.RLIMIT_AS, gigabytes * 1024 * MB))
    assert code == 0, said
    assert b"Ray" not in said


@pytest.mark.slow
def test_too_little_address_space_for_ray_is_told_before_it_starts(tmp_path):
    words = ["run", str(QUICKSTART), "--set", "server.rounds=2", "--actors", "1", "--out", str(tmp_path / "run")]
    code, _, said = started(*words, limit=(resource.RLIMIT_AS, 4500 * MB), seconds=60)
    assert code == 2, said
    assert said.count(b"\n") == 1
    assert said.startswith(b"fedactors: Ray needs 5.5 GB of address space, found a limit of 4.7 GB (accepted: a higher")
    assert not (tmp_path / "run").exists()


def other_than_a_retry(said):
    return [line for line in said.splitlines() if not line.startswith(b"Ray did not start")]


ENCODINGS = {
    "cp1252": {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"},
    "ascii": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": None},
}


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Return the folder of a short run, whose scenario has a name that no ASCII terminal can show."""
    folder = tmp_path_factory.mktemp("played")
    (folder / "s.yaml").write_text(
        QUICKSTART.read_text().replace("name: phones", "name: téléphones").replace("../traces", str(ROOT / "traces"))
    )
    assert main(["run", str(folder / "s.yaml"), *SMALL, "--out", str(folder / "run")]) == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["run", "s.yaml", *SMALL, "--out", "run-ENCODING"], marks=pytest.mark.slow),
        ["check", "s.yaml"],
        pytest.param(["report", "run"], marks=pytest.mark.slow),
        ["watch", "run"],
        ["traces", "describe", str(ROOT / "traces/campus.csv")],
    ],
)
def test_terminals_of_other_encodings(words, encoding, played):
    words = [word.replace("ENCODING", encoding) for word in words]
    code, said, complaint = started(*words, cwd=played, env=environment(**ENCODINGS[encoding]))
    assert code == 0, complaint
    said.decode(encoding)


@pytest.mark.slow
def test_names_of_files_with_odd_bytes(played):
    odd = os.fsencode(played) + b"/odd\xff\xe9"
    os.makedirs(odd, exist_ok=True)
    scenario = odd + b"/s\xff.yaml"
    Path(os.fsdecode(scenario)).write_text((played / "s.yaml").read_text())
    for encoding in ENCODINGS.values():
        command = [sys.executable, "-m", "fedactors", "check", scenario]
        done = subprocess.run(command, capture_output=True, check=False, env=environment(**encoding))
        assert done.returncode == 0, done.stderr
        done = subprocess.run(
            [*command[:4], scenario + b"x"], capture_output=True, check=False, env=environment(**encoding)
        )
        assert done.returncode == 2
        assert b"Traceback" not in done.stderr


@pytest.mark.slow
def test_without_a_home(tmp_path):
    found = started("run", str(QUICKSTART), *SMALL, "--out", str(tmp_path / "run"), env=environment(HOME=None))
    assert found[0] == 0, found[2]


RUN = f"run {QUICKSTART} {' '.join(SMALL)}"
REPLAY = f"replay {QUICKSTART} --set server.rounds=2"


@pytest.mark.parametrize(
    ("words", "closed"),
    [
        (REPLAY, "2>&- 1>&- <&-"),
        *(pytest.param(REPLAY, closed, marks=pytest.mark.slow) for closed in ("2>&-", "1>&-", "<&-")),
        *(pytest.param(RUN, closed, marks=pytest.mark.slow) for closed in ("2>&-", "2>&- 1>&- <&-")),
    ],
)
def test_closed_streams(words, closed, tmp_path):
    command = f"{sys.executable} -m fedactors {words} --out {tmp_path / 'run'} {closed}"
    done = subprocess.run(["bash", "-c", command], env=environment(), timeout=120, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run/summary.json").read_text())["plans"] == 2


@pytest.mark.slow
def test_stderr_that_nobody_reads_any_more(tmp_path):
    command = f"set -o pipefail; {sys.executable} -m fedactors {RUN} --out {tmp_path / 'run'} 2>&1 >/dev/null | true"
    done = subprocess.run(["bash", "-c", command], env=environment(), timeout=120, check=False)
    assert done.returncode == 0
    assert json.loads((tmp_path / "run/summary.json").read_text())["plans"] == 2


@pytest.mark.parametrize(
    "form",
    [
        "{python} -m fedactors check - < {file}",
        pytest.param("cat {file} | {python} -m fedactors check /dev/stdin", marks=pytest.mark.slow),
        "{python} -m fedactors check <(cat {file})",
    ],
)
def test_a_scenario_through_a_pipe(form, tmp_path):
    text = QUICKSTART.read_text().replace("../traces", str(ROOT / "traces"))
    (tmp_path / "s.yaml").write_text(text)
    command = form.format(python=sys.executable, file=tmp_path / "s.yaml")
    done = subprocess.run(["bash", "-c", command], env=environment(), cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"the scenario is sound" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{"HOME": None}, {"HOME": "/proc"}, {"TMPDIR": "LONG"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}],
    ids=["no HOME", "HOME read-only", "long TMPDIR", "LC_ALL=C"],
)
def test_ray_in_odd_surroundings(changes, tmp_path):
    long = tmp_path / ("long" * 20)
    long.mkdir()
    changes = {name: str(long) if value == "LONG" else value for name, value in changes.items()}
    words = ["run", str(QUICKSTART), "--set", "server.rounds=2", "--actors", "1", "--out", str(tmp_path / "run")]
    found = started(*words, env=environment(**changes))
    assert found[0] == 0, found[2].decode(errors="replace")


@pytest.mark.slow
def test_auto_beside_a_local_run_is_no_cluster(tmp_path):
    """A Ray that was started for one run is not joined by another, and the refusal takes seconds."""
    words = [
        sys.executable,
        "-m",
        "fedactors",
        "run",
        str(QUICKSTART),
        "--set",
        "server.rounds=100000",
        "--actors",
        "1",
    ]
    with subprocess.Popen(
        [*words, "--out", str(tmp_path / "one")], stderr=subprocess.DEVNULL, env=environment()
    ) as one:
        try:
            metrics = tmp_path / "one/metrics.jsonl"
            for _ in range(1200):
                if metrics.exists() and metrics.stat().st_size:
                    break
                one.poll()
                with pytest.raises(subprocess.TimeoutExpired):
                    one.wait(0.1)
            else:
                pytest.fail("the first run has no rounds")
            small = ["--set", "server.rounds=2", "--address", "auto"]
            code, _, said = started("run", str(QUICKSTART), *small, "--out", str(tmp_path / "two"), seconds=60)
        finally:
            one.terminate()
            one.wait()
    assert code == 2, said
    (message,) = said.decode().splitlines()
    assert message.startswith("fedactors: no Ray cluster at auto")


def test_names_of_others_do_not_steer_a_terminal(tmp_path, capsys):
    """They are shown with the numbers of their control characters, in errors as in what is printed."""
    steering, shown = "\x1b]0;owned\x07x", r"\x1b]0;owned\x07x"
    (tmp_path / "wrong.csv").write_text(f"device,on_s,off_s\n{steering},5,3\n")
    assert main(["traces", "describe", str(tmp_path / "wrong.csv")]) == 2
    (tmp_path / "repaired.csv").write_text(f"device,on_s,off_s\n{steering},1,5\n{steering},2,7\n")
    assert main(["traces", "describe", str(tmp_path / "repaired.csv")]) == 0
    text = QUICKSTART.read_text().replace("name: phones", f"name: {json.dumps(steering)}")
    (tmp_path / "s.yaml").write_text(text.replace("../traces", str(ROOT / "traces")))
    assert main(["check", str(tmp_path / "s.yaml")]) == 0
    told = capsys.readouterr()
    assert f'device "{shown}"' in told.err
    assert f'device "{shown}"' in told.out
    assert f"60 {shown}" in told.out
    assert not {"\x1b", "\x07"} & {*told.out, *told.err}
