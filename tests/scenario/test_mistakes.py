"""Every mistake gives one clear message and exit code 2: never a traceback, never a run."""

import copy
from pathlib import Path

import pytest
import yaml

from fedactors import Scenario
from fedactors.cli.main import main

QUICKSTART = Path(__file__).parents[2] / "scenarios/quickstart.yaml"
GOOD = yaml.safe_load(QUICKSTART.read_text())
GOOD["population"] = [{"name": "phones", "count": 20}, {"name": "tablets", "count": 10}]
GOOD["server"]["cohort"] = 5

# (what is set, at which path) -> words the message must hold
WRONG = {
    "unknown key at the top": (("sever", {}), ["sever: unknown key", 'did you mean "server"?']),
    "unknown key in a section": (("server.deadlin", "5s"), ["server.deadlin", 'did you mean "deadline"?']),
    "unknown key in a group": (
        ("population.1.cout", 3),
        ["population.1.cout (group tablets)", 'did you mean "count"?'],
    ),
    "a count as others call it": (("population.1.num_clients", 3), ["(group tablets)", 'did you mean "count"?']),
    "a cohort as others call it": (("server.clients_per_round", 3), ['did you mean "cohort"? accepted: ']),
    "a batch as others call it": (("server.local.batch_size", 3), ['did you mean "batch"?']),
    "a rate as others call it": (
        ("server.schedule", {"name": "constant", "learning_rate": 0.1}),
        ['server.schedule.learning_rate: unknown key; did you mean "lr"?'],
    ),
    "unknown option of an algorithm": (
        ("server.algorithm", {"name": "fedavg", "global_rate": 1}),
        ["server.algorithm.global_rate", "global_lr"],
    ),
    "unknown algorithm": (("server.algorithm", "fedagv"), ["server.algorithm", 'did you mean "fedavg"?']),
    "unknown data set": (("task.dataset", "digit"), ["task.dataset", 'did you mean "digits"?']),
    "unknown model": (("task.model", "mpl"), ["task.model", 'did you mean "mlp"?']),
    "unknown partition": (("task.partition", "idd"), ["task.partition", 'did you mean "iid"?']),
    "a mapping for a name": (
        ("population.1.availability", {"name": {"name": []}}),
        ["population.1.availability", "does not match any of", "'trace'"],
    ),
    "unknown scheme": (("server.participation", "D"), ["server.participation", "accepted"]),
    "unknown schedule": (("server.schedule", {"name": "stairs", "lr": 1.0}), ['did you mean "staircase"?']),
    "unknown availability": (("population.0.availability", "sometimes"), ["population.0.availability", "always"]),
    "a choice without a name": (("server.algorithm", {"global_lr": 1}), ["server.algorithm", "name"]),
    "a missing section": (("task", None), ["task"]),
    "a missing count": (("population.0", {"name": "phones"}), ["population.0.count", "required"]),
    "no group": (("population", []), ["population", "1 or more entries"]),
    "no frozen tensors": (
        ("server.uplink", [{"name": "mask", "frozen": []}]),
        ["server.uplink.0.frozen: found [], should have 1 or more entries"],
    ),
    "one tensor in place of a list": (
        ("server.uplink", [{"name": "mask", "frozen": "1.bias"}]),
        ["server.uplink.0.frozen: found '1.bias', should be a list"],
    ),
    "a word in place of options": (
        ("server.privacy", True),
        ["server.privacy: found True, should be keys with values"],
    ),
    "a level in place of levels": (
        ("server.stop", {"reach": 0.9, "accuracy": 0.8}),
        ["server.stop.reach: found 0.9, should be keys with values"],
    ),
    "no levels beside a level": (
        ("server.stop", {"reach": None, "accuracy": 0.8}),
        ["server.stop.reach: found None, should be keys with values"],
    ),
    "a spread of rates from a table": (
        ("population.0.network", {"table": {"path": "links.csv"}, "spread": 0.5}),
        ["population.0.network (group phones)", "spread changes nothing", "accepted: without spread"],
    ),
    "a spread of recorded rates": (
        ("population.0.network", {"trace": {"down": {"path": "a.csv"}, "up": {"path": "b.csv"}}, "spread": 0.5}),
        ["population.0.network (group phones)", "spread changes nothing", "accepted: without spread"],
    ),
    "a table beside recorded rates": (
        (
            "population.0.network",
            {
                "trace": {"down": {"path": "a.csv"}, "up": {"path": "b.csv"}},
                "table": {"path": "links.csv"},
            },
        ),
        ["population.0.network (group phones)", "table changes nothing", "accepted: without table"],
    ),
    "a group of nobody": (("population.0.count", 0), ["population.0.count", "found 0", "greater than or equal to 1"]),
    "a count in quotes": (("population.0.count", "20"), ["population.0.count", "found '20'", "integer"]),
    "a broken count": (("population.0.count", 2.5), ["population.0.count", "2.5"]),
    "two groups of one name": (("population.1.name", "phones"), ['two groups are called "phones"']),
    "a duration without a unit": (("server.deadline", 90), ["server.deadline", "has no unit", '"90s"']),
    "a duration in unknown units": (("server.deadline", "3 fortnights"), ["server.deadline", "fortnights"]),
    "a negative duration": (("server.deadline", "-5s"), ["server.deadline", "cannot be read"]),
    "a deadline of nothing": (("server.deadline", 0), ["deadline must be longer than 0"]),
    "a deadline nobody can meet": (("server.deadline", "1ms"), ["server.deadline", "no device can", "at least"]),
    "a rate without time": (
        ("population.0.network", {"down": "2 MB", "up": "1 MB/s"}),
        ["population.0.network.down", "is not a rate"],
    ),
    "a rate of nothing": (("population.0.network", {"down": "0 MB/s", "up": "1 MB/s"}), ["at least one byte"]),
    "no time per sample": (("population.0.compute", {"per_sample": 0}), ["per_sample must be longer than 0"]),
    "a negative spread": (("population.0.compute", {"per_sample": "1ms", "spread": -1.0}), ["spread", "found -1.0"]),
    "more clients than devices": (("server.cohort", 31), ["server.cohort", "31", "30 devices"]),
    "a cohort of nobody": (("server.cohort", 0), ["server.cohort: found '0' (accepted: a number"]),
    "a cohort in words": (("server.cohort", "everyone"), ["server.cohort", "'everyone'"]),
    "a quorum beyond the cohort": (("server.quorum", 6), ["quorum 6", "5 clients asked"]),
    "over-selection of all": (("server", {"rounds": 1, "over_selection": 3}), ["over_selection needs a cohort"]),
    "epochs and steps": (("server.local", {"epochs": 1, "steps": 5}), ["either epochs or steps"]),
    "neither epochs nor steps": (("server.local", {"batch": 5}), ["either epochs or steps"]),
    "no learning rate": (("server.schedule", "constant"), ["server.schedule.lr", "required"]),
    "a negative learning rate": (
        ("server.schedule", {"name": "constant", "lr": -0.1}),
        ["found -0.1", "greater than 0"],
    ),
    "an infinite learning rate": (("server.schedule", {"name": "constant", "lr": float("inf")}), ["finite"]),
    "a seed below zero": (("seed", -1), ["seed", "found -1"]),
    "a name that is a path": (("name", "../evil"), ["name", "'../evil'"]),
    "more classes than there are": (("task.partition", {"name": "classes", "classes": 11}), ["11"]),
    "more samples than there are": (
        ("task.partition", {"name": "iid", "samples": 10_000}),
        ["task.partition.samples", "300,000", "1,437"],
    ),
    "a natural partition of pooled data": (
        ("task.partition", "natural"),
        ["task.partition", "does not come by client"],
    ),
    "a trace that is not there": (
        ("population.0.availability", {"name": "trace", "path": "nowhere.csv"}),
        ["no trace at", "nowhere.csv", "FEDACTORS_TRACES"],
    ),
    "a looped departure": (
        ("population.0.availability", {"name": "trace", "path": "x", "offset": "random", "at_end": "depart"}),
        ["offset: random", "loops"],
    ),
    "a model that does not fit the images": (("task.model", "lamb_cnn"), ["lamb_cnn", "at least 5 x 5"]),
    "actors of none": (("cluster", {"actors": 0}), ["cluster.actors", "found 0"]),
    "batches larger than all data, dropped": (
        ("server.local", {"epochs": 1, "batch": 5000, "drop_last": True}),
        ["server.local", "no client has a single step"],
    ),
    "an unknown precision": (("precision", "fp16"), ["precision", "'fp16'", "'bf16'"]),
    "a format of GPUs on the CPU": (
        ("precision", "tf32"),
        ["tf32 is a format of GPUs", "cluster.gpus_per_actor above 0, or fp32 or bf16"],
    ),
    "yes for a flag": (("population.0.deadline_aware", "sure"), ["population.0.deadline_aware", "'sure'"]),
}


def put(data, path, value):
    *steps, last = path.split(".")
    for step in steps:
        data = data[int(step)] if isinstance(data, list) else data[step]
    if value is None:
        del data[last]
    elif isinstance(data, list):
        data[int(last)] = value
    else:
        data[last] = value


@pytest.fixture
def file(tmp_path):
    return tmp_path / "scenario.yaml"


def told(capsys, *arguments):
    """Run the command line and return what it says; it must be bad input, told without a traceback."""
    assert main(list(map(str, arguments))) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("fedactors: ")
    assert "Traceback" not in err
    assert "pydantic" not in err
    return err


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_scenario_is_told(name, file, capsys, monkeypatch):
    monkeypatch.delenv("FEDACTORS_TRACES", raising=False)
    (path, value), words = WRONG[name]
    data = copy.deepcopy(GOOD)
    put(data, path, value)
    file.write_text(yaml.safe_dump(data, sort_keys=False))
    said = told(capsys, "check", file)
    for word in (str(file), *words):
        assert word in said, said
    assert told(capsys, "run", file, "--out", file.parent / "run") == said
    assert not (file.parent / "run").exists()


def test_a_good_one_is_not_refused(file, capsys):
    file.write_text(yaml.safe_dump(GOOD))
    assert main(["check", str(file)]) == 0
    assert "the scenario is sound" in capsys.readouterr().out


def test_a_list_is_not_called_too_short_for_a_wrong_entry(file, capsys):
    data = copy.deepcopy(GOOD)
    data["server"]["timing"] = {"name": "hierarchical", "edges": [{"name": "north", "deadline": "0s"}]}
    file.write_text(yaml.safe_dump(data, sort_keys=False))
    said = told(capsys, "check", file)
    assert "server.timing.edges.0.deadline: found '0s', should be greater than 0" in said
    assert "entries" not in said


def test_the_line_is_named(file, capsys):
    lines = QUICKSTART.read_text().replace("deadline:", "deadlin:")
    file.write_text(lines)
    number = next(n for n, line in enumerate(lines.splitlines(), 1) if "deadlin:" in line)
    assert f"{file}, line {number}: server.deadlin: unknown key" in told(capsys, "check", file)


TEXTS = {
    "nothing": ("", "a scenario is a mapping"),
    "a list": ("- 1\n- 2\n", "a scenario is a mapping"),
    "broken brackets": ("task: [1, 2\nname: x\n", "not valid YAML"),
    "a tab": ("task:\n\tdataset: digits\n", "not valid YAML"),
    "a key twice": ("name: a\nseed: 1\nname: b\n", 'line 3: the key "name" is given twice'),
    "an object": ("name: !!python/object/apply:os.system ['true']\n", "not valid YAML"),
    "a nul": ("name: \0\n", "not valid YAML"),
    "laughs": (
        "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{c}: &{c} [{','.join(['*' + chr(ord(c) - 1)] * 10)}]\n" for c in "bcdefgh"),
        "more entries than a scenario can have",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_that_is_no_scenario_is_told(name, file, capsys):
    text, words = TEXTS[name]
    file.write_text(text)
    assert words in told(capsys, "check", file)


def test_bytes_that_are_no_text(file, capsys):
    file.write_bytes(b"name: \xff\xfe")
    assert "not UTF-8" in told(capsys, "check", file)


def test_files_that_cannot_be_read(tmp_path, capsys):
    assert "no such scenario file" in told(capsys, "check", tmp_path / "none.yaml")
    assert f"{tmp_path}: is a folder, not a scenario file (accepted: " in told(capsys, "check", tmp_path)
    assert ".: is a folder, not a scenario file (accepted: " in told(capsys, "check", "")
    assert "cannot be read: not a file" in told(capsys, "check", "/dev/null")


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("server.deadline", "accepted: key.path=value"),
        ("server.deadlne=2s", 'did you mean "deadline"?'),
        ("population.laptops.count=3", 'no group "laptops"'),
        ("population.7.count=3", 'no group "7"'),
        ("seed.x=3", "leads into a value that has no keys"),
        ("server.deadline=[", "not valid YAML"),
    ],
)
def test_a_wrong_override_is_told(override, words, capsys):
    assert words in told(capsys, "check", QUICKSTART, "--set", override)


def test_overrides_reach_groups_by_name_and_options_of_a_plain_name(capsys):
    changes = ["population.phones.count=50", "server.algorithm.global_lr=2", "server.deadline=2min"]
    arguments = [word for change in changes for word in ("--set", change)]
    assert main(["check", str(QUICKSTART), *arguments]) == 0
    assert "50 phones" in capsys.readouterr().out


def test_an_override_reaches_options_of_a_default_that_the_file_does_not_name(file, capsys):
    bare = {**GOOD, "server": {key: value for key, value in GOOD["server"].items() if key in ("rounds", "deadline")}}
    file.write_text(yaml.safe_dump(bare))
    changes = ["server.schedule.lr=0.2", "server.algorithm.global_lr=2"]
    server = Scenario.load(file, changes).server
    assert (server.schedule.name, server.schedule.lr) == ("constant", 0.2)
    assert (server.algorithm.name, server.algorithm.global_lr) == ("fedavg", 2)
    assert "the key name" in told(capsys, "check", file, "--set", "server.data.samples=3")


@pytest.mark.parametrize("number", ["1e-3", "1E-3", "1.e-3", ".1e-2", "+1e-3", "0.001"])
def test_numbers_may_be_written_as_programs_write_them(number):
    scenario = Scenario.load(QUICKSTART, [f"server.schedule.lr={number}"])
    assert scenario.server.schedule.lr == 0.001


def test_a_run_folder_that_is_not_empty_is_refused(tmp_path, capsys):
    (tmp_path / "something").touch()
    said = told(capsys, "run", QUICKSTART, "--fleet", "local", "--out", tmp_path)
    assert "not empty (accepted: another folder: --out DIR, in Python out=…)" in said
    assert "found a file" in told(capsys, "replay", QUICKSTART, "--out", tmp_path / "something")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rnu", "x"], 'no command "rnu"; did you mean "run"?'),
        (["run", "x", "--actors", "0"], "accepted: a whole number"),
        (["run", "x", "--fleet", "cloud"], "cloud"),
        (["run"], "SCENARIO"),
        (["replay", "x", "y"], "unrecognized"),
    ],
)
def test_a_wrong_command_line_is_told(arguments, words, capsys):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert words in capsys.readouterr().err
