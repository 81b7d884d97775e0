"""Plugins that a scenario names itself: known to it alone, shipped to every process, kept with the run."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from fedactors import Scenario, registry, run
from fedactors.cli.main import main
from fedactors.errors import RunFolderError, ScenarioError
from fedactors.run_files.files import lines_of
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import resume
from fedactors.simulation.verify import verify
from fedactors.study.runs import folder_of

EXAMPLE = Path(__file__).parents[1] / "examples/fedactors-example"
FILES = ["clipped", "daily", "fastest", "half_precision", "moons", "plain_loop", "two_layers"]

HEAD = """
from typing import Literal
import numpy as np
from fedactors.algorithms.fedavg import Averaging
from fedactors.clock.selections.base import Selection, UniformSelector
from fedactors.options import Options

"""
SCALED = (
    HEAD
    + """
class Scaled(Averaging):
    name: Literal["scaled"] = "scaled"
    factor: float = 1.0

    def upload(self, trip):
        return {"delta": trip.delta * self._factor(trip)}

    def _factor(self, trip):
        return 1.0
"""
)
BASE = {
    "name": "own",
    "seed": 3,
    "plugins": ["mine.py"],
    "task": {"dataset": "digits", "model": "logistic", "partition": "iid"},
    "population": [{"name": "devices", "count": 8}],
    "server": {"rounds": 2, "cohort": 4, "algorithm": "scaled", "local": {"epochs": 1, "batch": 50}},
}


def written(folder, code=SCALED, **changes):
    folder.mkdir(exist_ok=True)
    (folder / "mine.py").write_text(code)
    file = folder / "own.yaml"
    file.write_text(yaml.safe_dump({**BASE, **changes}))
    return file


@pytest.fixture
def all_kinds(tmp_path):
    """The example package's files as plugins of one scenario, without its entry points."""
    for name in FILES:
        shutil.copy(EXAMPLE / f"fedactors_example/{name}.py", tmp_path)
    shutil.copy(EXAMPLE / "shops.txt", tmp_path)
    said = yaml.safe_load((EXAMPLE / "moons.yaml").read_text())
    said["server"]["rounds"] = 3
    file = tmp_path / "moons.yaml"
    file.write_text(yaml.safe_dump({**said, "plugins": [f"{name}.py" for name in FILES]}))
    return file


@pytest.mark.slow
def test_every_kind_is_found_and_the_bits_are_the_same_on_ray(all_kinds):
    """One of each kind of the example; engines are made on the actors."""
    scenario = Scenario.load(all_kinds)
    assert {kind: sorted(found) for kind, found in scenario.own.items()} == {
        "algorithms": ["clipped"],
        "formats": ["daily"],
        "selection": ["fastest"],
        "datasets": ["moons"],
        "engines": ["plain-loop"],
        "models": ["two-layers"],
        "update_transforms": ["half-precision"],
    }
    assert verify(scenario, [("local", 1), ("ray", 2)])["equal"]


def test_an_engine_of_ones_own_is_timed_for_a_forecast(all_kinds, capsys):
    assert main(["check", str(all_kinds), "--forecast", "--fleet", "local"]) == 0
    assert "in this process" in capsys.readouterr().out


def test_a_scenario_knows_its_own_plugins_only(tmp_path):
    one = Scenario.load(written(tmp_path / "one"))
    other = Scenario.load(written(tmp_path / "other", SCALED.replace("return 1.0", "return 0.0")))
    assert type(one.server.algorithm) is not type(other.server.algorithm)
    assert "scaled" not in registry.names("algorithms")
    with pytest.raises(ScenarioError, match='no algorithms named "scaled"'):
        Scenario.load(written(tmp_path / "third", plugins=[]))
    still = run(other, tmp_path / "still", fleet="local", report=False)
    moves = run(one, tmp_path / "moves", fleet="local", report=False)
    assert not still.state["x"].any()
    assert moves.state["x"].any()


FORMAT = """
from fedactors.traces import format_registry
from fedactors.traces.formats import native

mine = format_registry.Format("csv", format_registry.AVAILABILITY, "mine", native)
"""
BROKEN_KINDS = [
    ("1 +", r"cannot be imported: .*mine.py, line 1: SyntaxError"),
    ("import no_such_module", r"mine.py, line 1, on import: ModuleNotFoundError"),
    ("X = 3", "mine.py: defines nothing that can be used"),
    (SCALED.replace('"scaled"', '"fedavg"'), 'mine.py, line 9: Scaled: there is already "fedavg" among algorithms'),
    (FORMAT, 'there is already "csv" among formats'),
    (SCALED + SCALED.replace("class Scaled", "class Again"), 'Again: there is already "scaled" among algorithms'),
    (HEAD + 'class Odd(Options):\n    name: Literal["odd"] = "odd"\n', "line 8: Odd has a name and is of no kind"),
    (HEAD + "class Odd:\n    name = 'odd'\n    def build(self): ...\n", "Odd is not a class of fedactors.options"),
]


@pytest.mark.parametrize(("code", "said"), BROKEN_KINDS)
def test_a_file_that_cannot_be_used_is_told_with_its_line(tmp_path, capsys, code, said):
    assert main(["check", str(written(tmp_path, code))]) == 2
    told = capsys.readouterr().err
    assert re.search(said, told), told
    assert re.match(r"fedactors: \S+own.yaml, line \d+: plugins: ", told)
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("plugins", "said"),
    [("mine.py", "should be a list"), (["gone.py"], "no file"), (["mine.txt"], "plugins.0: ")],
)
def test_a_wrong_list_is_told(tmp_path, capsys, plugins, said):
    assert main(["check", str(written(tmp_path, plugins=plugins))]) == 2
    assert said in capsys.readouterr().err


RENAMED = (
    SCALED.replace('{"delta": trip.delta', '{"g": trip.delta')
    + """
    def aggregate(self, state, sums, round, central):
        return {"x": state["x"] + sums["g"]}
"""
)


def test_an_upload_says_which_of_it_are_changes_before_they_are_transformed(tmp_path, capsys):
    server = {**BASE["server"], "uplink": [{"name": "clip", "norm": 1.0}]}
    assert main(["check", str(written(tmp_path, RENAMED, server=server))]) == 2
    told = capsys.readouterr().err
    assert 'server.uplink: "scaled" says what clients upload, and not which of that are changes' in told
    named = RENAMED.replace("    factor:", '    changes = ("g",)\n    factor:')
    scenario = Scenario.load(written(tmp_path, named, server=server))
    moved = run(scenario, tmp_path / "run", fleet="local", report=False).state["x"]
    assert np.abs(moved).max() > 0


BROKEN = SCALED.replace("return 1.0", "return 1.0 / (trip.steps.max() < 3).item()  # mine")  # two steps are tried
SELECTS = (
    SCALED
    + """
class Bad(Selection):
    name: Literal["bad"] = "bad"
    def start(self, clients):
        return _Bad()

class _Bad(UniformSelector):
    def choose(self, candidates, count, version, random):
        return candidates[None / 2]
"""
)


def test_an_error_at_a_client_shows_the_users_lines_first(tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["run", str(written(tmp_path, BROKEN)), "--fleet", "local", "--out", str(out)]) == 1
    lines = capsys.readouterr().err.partition("FleetError: ")[2].splitlines()
    file = tmp_path / "mine.py"
    assert lines[:4] == [
        f"{file}, line 17, in _factor: ZeroDivisionError: float division by zero",
        "    return 1.0 / (trip.steps.max() < 3).item()  # mine",
        "  called from mine.py, line 14, in upload",
        '    return {"delta": trip.delta * self._factor(trip)}',
    ]
    assert re.match(r"client \d+ in local step \d of \d+, host .*, process \d+", lines[4])
    assert lines[5] == "round 1"
    assert len(lines) == 7, "and the virtual time: no pages of a framework"
    assert [row["cause"] for row in lines_of(out / "faults.jsonl")] == ["UserCallError"]


def test_an_error_at_the_server_names_the_worker(tmp_path, capsys):
    code = SCALED + "    def aggregate(self, state, sums, round, central):\n"
    code += "        return {'x': state['x']} if round.heard < 3 else state['y']\n"  # two clients are tried
    assert main(["run", str(written(tmp_path, code)), "--fleet", "local", "--out", str(tmp_path / "run")]) == 1
    told = capsys.readouterr().err
    assert "line 19, in aggregate: KeyError: 'y'" in told
    assert "in ServerWorker.aggregate, process" in told


def test_an_error_of_the_clock_is_bad_input_for_check_and_a_fault_of_a_run(tmp_path, capsys):
    file = written(tmp_path, SELECTS)
    changed = ["--set", "server.selection=bad"]
    assert main(["check", str(file), *changed]) == 2
    assert "in choose: TypeError" in capsys.readouterr().err
    assert main(["run", str(file), *changed, "--fleet", "local", "--out", str(tmp_path / "run")]) == 1
    assert "UserCodeError: " in capsys.readouterr().err


def test_a_run_goes_on_with_the_same_code_only(tmp_path, capsys):
    file, out = written(tmp_path), tmp_path / "run"
    whole = run(Scenario.load(file), tmp_path / "whole", fleet="local", report=False)
    run(Scenario.load(file), out, fleet="local", report=False, stop_after=1)
    written(tmp_path, SCALED + "# another\n")
    with pytest.raises(RunFolderError, match=r"mine.py \(SHA-256 \w+, now \w+\) .*--changed-code"):
        resume(out, fleet="local", report=False)
    written(tmp_path)
    assert resume(out, fleet="local", report=False, stop_after=1).summary["digests"]
    written(tmp_path, SCALED + "# another\n")
    assert main(["resume", str(out), "--fleet", "local", "--changed-code"]) == 0
    assert "other code than before" in capsys.readouterr().err
    written(tmp_path, SCALED + "# another\n")
    again = resume(out, fleet="local", report=False)
    assert again.summary["digests"]["model"] == whole.summary["digests"]["model"]
    written(tmp_path, SCALED.replace("return 1.0", "return np.random.rand()"))
    with pytest.raises(
        ScenarioError, match=r"scenario.yaml: server.algorithm: mine.py, Scaled.upload: draws random numbers"
    ):
        resume(out, fleet="local", report=False, changed_code=True)


def test_files_of_references_count_as_well(tmp_path):
    (tmp_path / "nets.py").write_text("from torch import nn\n\ndef net():\n    return nn.Linear(64, 10)\n")
    code = "from torch import nn\n\ndef net():\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))\n"
    (tmp_path / "nets.py").write_text(code)
    task = {**BASE["task"], "model": {"name": "torch", "factory": "nets.py:net"}}
    file = written(tmp_path, task=task)
    run(Scenario.load(file), tmp_path / "run", fleet="local", report=False, stop_after=1)
    (tmp_path / "nets.py").write_text(code + "# another\n")
    with pytest.raises(RunFolderError, match=r"nets\.py"):
        resume(tmp_path / "run", fleet="local", report=False)


def test_what_a_file_imports_from_beside_it_counts_as_well(tmp_path):
    """A resumed run refuses another helper, and a study takes its runs for others."""
    code = SCALED.replace("return 1.0", "return FACTOR").replace("import numpy as np", "from helper import FACTOR")
    (tmp_path / "helper.py").write_text("FACTOR = 1.0\n")
    file, out = written(tmp_path, code), tmp_path / "run"
    before = Scenario.load(file)
    run(before, out, fleet="local", report=False, stop_after=1)
    assert [path.name.split("-")[0] for path in sorted((out / "code").glob("*.py"))] == ["helper", "mine"]
    (tmp_path / "helper.py").write_text("FACTOR = 0.0\n")
    with pytest.raises(RunFolderError, match=r"helper\.py \(SHA-256 \w+, now \w+\)"):
        resume(out, fleet="local", report=False)
    after = Scenario.load(file)
    assert folder_of(before, tmp_path) != folder_of(after, tmp_path)
    assert not run(after, tmp_path / "still", fleet="local", report=False).state["x"].any()


def test_a_run_folder_is_audited_where_the_files_are_not(tmp_path, capsys):
    code = SCALED.replace("return 1.0", "return helper.FACTOR").replace("import numpy as np", "import helper")
    file, out = written(tmp_path / "there", code), tmp_path / "run"
    (tmp_path / "there/helper.py").write_text("FACTOR = 1.0\n")
    run(Scenario.load(file), out, fleet="local", report=False)
    shutil.rmtree(tmp_path / "there")
    assert main(["audit", str(out)]) == 2
    assert "names Python code of a user: mine.py (accepted: --run-code" in capsys.readouterr().err
    assert main(["audit", str(out), "--run-code"]) == 0, capsys.readouterr().err


def test_an_audit_executes_no_code_of_a_folder_unasked(tmp_path, capsys):
    """Not even a file that lies where the scenario of the folder says."""
    out = tmp_path / "run"
    run(Scenario.load(written(tmp_path)), out, fleet="local", report=False)
    (out / "mine.py").write_text("raise SystemExit('executed')\n")
    assert main(["audit", str(out)]) == 2
    assert "executed" not in capsys.readouterr().err


def test_a_model_of_a_file_is_audited_without_the_file(tmp_path, capsys):
    there = tmp_path / "there"
    there.mkdir()
    (there / "nets.py").write_text(
        "from torch import nn\n\ndef net():\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))\n"
    )
    task = {**BASE["task"], "model": {"name": "torch", "factory": "nets.py:net"}}
    server = {**BASE["server"], "algorithm": "fedavg"}
    run(
        Scenario.load(written(there, task=task, server=server, plugins=[])),
        tmp_path / "run",
        fleet="local",
        report=False,
    )
    shutil.rmtree(there)
    assert main(["audit", str(tmp_path / "run")]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("kind", ["algorithm", "dataset", "model", "selection"])
def test_what_new_writes_runs_at_once(tmp_path, kind):
    assert main(["new", kind, "my-own", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"my_own.py", "my-own.yaml"}
    assert "tarter" not in (tmp_path / "my_own.py").read_text()
    scenario = Scenario.load(tmp_path / "my-own.yaml", ["server.rounds=3"])
    prepare(scenario)
    found = run(scenario, tmp_path / "run", fleet="local", report=False)
    assert found.metrics[-1]["loss"] < found.metrics[0]["loss"]


def test_new_overwrites_nothing(tmp_path, capsys):
    assert main(["new", "algorithm", "fedavg", "--out", str(tmp_path)]) == 2
    assert main(["new", "algorithm", "Mine!", "--out", str(tmp_path)]) == 2
    (tmp_path / "mine.py").write_text("keep")
    assert main(["new", "algorithm", "mine", "--out", str(tmp_path)]) == 2
    assert (tmp_path / "mine.py").read_text() == "keep"
    assert len(capsys.readouterr().err.splitlines()) == 3


METHODS = """
    mu: float = 0.1

    def start(self, x):
        return {"x": x, "m": x * 0}

    def upload(self, trip):
        return {"delta": trip.delta}

    @property
    def prox(self):
        return self.mu

    def aggregate(self, state, sums, round, central):
        m = state["m"] + self._scaled(sums)
        return {"x": state["x"] + m, "m": m}

    def _scaled(self, sums):
        return sums["delta"]
"""
ALGORITHM = (
    HEAD.replace("algorithms.fedavg import Averaging", "learning.algorithm import Algorithm")
    + 'class Scaled(Algorithm):\n    name: Literal["scaled"] = "scaled"\n    _m: object = None\n'
    + METHODS
)
NO_ALGORITHMS = {
    "a misspelt method": (
        ("def aggregate", "def agregate"),
        r'mine.py, line \d+: Scaled: nothing calls agregate; did you mean "aggregate"\?',
    ),
    "a method in place of a property": (
        ("    @property\n", ""),
        r"Scaled: prox is a method \(accepted: a property, with @property above its def\)",
    ),
    "another signature": (("upload(self, trip)", "upload(self, trip, config)"), r"missing 1 .*argument: 'config'"),
    "no server half": (("def aggregate", "def _aggregate"), "Scaled does not say how it aggregates"),
    "a vector that is left out": ((', "m": m}', "}"), r"mine.py, line \d+, in aggregate: KeyError: 'm'"),
    "no model": (
        ('{"x": state["x"] + m, "m": m}', '{"m": m}'),
        r"Scaled.aggregate: returned a dictionary with m \(acc",
    ),
    "one client's shape": (
        ("trip.delta}", "trip.delta.mean()}"),
        r"Scaled.upload: returned delta as a Tensor of shape \(\), torch.float32 \(accepted: .* \(2, any\)",
    ),
    "no names of what is sent": (
        ('{"delta": trip.delta}', "trip.delta"),
        r"Scaled.upload: returned a Tensor of shape \(2, 650\), torch.float32 \(accepted: a dictionary",
    ),
    "nothing that is returned": (('return {"x": state', '{"x": state'), "Scaled.aggregate: returned nothing"),
    "a model of float64": (('state["x"] + m,', 'state["x"].double(),'), "returned x as a Tensor of .* torch.float64"),
    "a model with gradients": (('state["x"] + m,', 'state["x"].requires_grad_(),'), "float32 with gradients"),
    "the length of all clients": (
        ("trip.delta}", "trip.delta / trip.delta.norm()}"),
        r"Scaled.upload: a row depends on the rows beside it \(accepted: .* trip.delta.norm\(dim=-1, keepdim=True\)",
    ),
    "a trip that is changed": (("trip.delta}", "trip.delta.mul_(2)}"), "Scaled: upload changes delta in place"),
    "state in a field": (
        ('m = state["m"]', 'self.m = state["m"]; m = state["m"]'),
        r'line \d+, in aggregate: "m" cannot be set: options stay as they are \(accepted: state in what',
    ),
    "state in the object": (
        ('return sums["delta"]', "self._m = sums['delta'] + (0 if self._m is None else self._m); return self._m"),
        r"Scaled.aggregate: returned something else when it was called again .* \(accepted: .*: state in what start",
    ),
    "state in the file": (
        (
            '(self, sums):\n        return sums["delta"]',
            '(self, sums, seen=[]):\n        seen.append(sums["delta"])\n        return sum(seen)',
        ),
        "Scaled.aggregate: returned something else when it was called again",
    ),
    "random numbers of torch": (
        ('state["x"] + m,', "state['x'] + m.clone().normal_(),"),
        r"Scaled.aggregate: draws random numbers from torch \(accepted: .* no random",
    ),
    "random numbers of numpy": (
        ("trip.delta}", "trip.delta * np.random.rand()}"),
        "draws random numbers from numpy.random",
    ),
    "random numbers of a new generator": (
        ("trip.delta}", "trip.delta * np.random.default_rng().random()}"),
        "Scaled.upload: returned something else when it was called again",
    ),
}


@pytest.mark.parametrize("case", NO_ALGORITHMS)
def test_check_tries_an_algorithm(tmp_path, capsys, case):
    (old, new), said = NO_ALGORITHMS[case]
    assert old in ALGORITHM
    assert main(["check", str(written(tmp_path, ALGORITHM.replace(old, new)))]) == 2
    told = capsys.readouterr().err
    assert re.search(said, told), told


def test_an_asynchronous_server_says_what_an_algorithm_lacks(tmp_path, capsys):
    server = {"rounds": 2, "algorithm": "scaled", "timing": {"name": "fedbuff", "concurrency": 4, "buffer": 2}}
    server["local"] = BASE["server"]["local"]
    assert main(["check", str(written(tmp_path, ALGORITHM, server=server))]) == 2
    assert "a method undefined(self, mixing) of Scaled that returns an empty text" in capsys.readouterr().err
    code = ALGORITHM + "\n    def undefined(self, mixing):\n        return ''\n"
    assert main(["check", str(written(tmp_path, code, server=server))]) == 0, capsys.readouterr().err


def test_a_helper_that_a_property_calls_may_be_called_nearly_as_ours(tmp_path):
    code = ALGORITHM.replace("return self.mu", "return [self.corrections() for _ in '1'][0]")
    helper = "\n    def corrections(self):\n        return 0.1\n"
    Scenario.load(written(tmp_path, code + helper))
    with pytest.raises(ScenarioError, match='nothing calls corrections; did you mean "correction"'):
        Scenario.load(written(tmp_path, ALGORITHM + helper))


def test_check_says_sound_to_an_algorithm_that_keeps_something(tmp_path, capsys):
    code = ALGORITHM.replace('"scaled"\n', '"scaled"\n    keeps: ClassVar[tuple[str, ...]] = ("k",)\n').replace(
        "import Literal", "import ClassVar, Literal"
    )
    code += "\n    def keep(self, trip):\n        return {'k': trip.kept['k'] + trip.delta}\n"
    assert main(["check", str(written(tmp_path, code))]) == 0, capsys.readouterr().err
    assert main(["check", str(written(tmp_path, code.replace("{'k': trip", "{'j': trip")))]) == 2
    assert "Scaled.keep: returned j without k (accepted: all of keeps: k)" in capsys.readouterr().err
    short = code.replace("trip.kept['k'] + trip.delta", "trip.delta.mean(1, keepdim=True)")
    assert main(["check", str(written(tmp_path, short))]) == 2
    assert "returned k as" in capsys.readouterr().err


DISTILLED = """
    def added_loss(self, outputs, labels, global_outputs):
        gap = outputs - global_outputs
        return gap.square().sum(1)
"""
NO_LOSSES = {
    "a line that fails": ("gap.square()", "gap.sqare()", r"mine.py, line \d+, in added_loss: AttributeError: .*sqare"),
    "classes that are not there": (
        "gap.square().sum(1)",
        "outputs[:, 7] + outputs[:, 10]",
        r"mine.py, line \d+, in added_loss: IndexError: .*10",
    ),
    "one number": (
        ".sum(1)",
        ".sum()",
        r"mine.py, Scaled: added_loss of algorithm scaled returned shape \(\) for 2 samples"
        r" \(accepted: a tensor of shape \(2,\), a number for each sample\)",
    ),
    "a number for each class": (".sum(1)", "", r"returned shape \(2, 10\) for 2 samples"),
    "a change in place": (
        "outputs - global_outputs",
        "global_outputs.sub_(outputs)",
        r"added_loss of algorithm scaled changes global_outputs in place \(accepted: return new tensors\)",
    ),
    "a change of labels": ("gap.square()", "(labels.zero_()[:, None] + gap)", "changes labels in place"),
    "another signature": ("labels, global_outputs", "labels, theirs, lr", "missing 1 .*argument: 'lr'"),
    "random numbers": (
        "gap.square()",
        "(gap + gap.clone().detach().normal_())",
        r"mine.py, Scaled.added_loss: draws random numbers from torch \(accepted: what follows from outputs",
    ),
    "a misspelt name": ("def added_loss", "def add_loss", r'nothing calls add_loss; did you mean "added_loss"\?'),
}


def test_check_says_sound_to_an_algorithm_that_adds_a_loss(tmp_path, capsys):
    assert main(["check", str(written(tmp_path, SCALED + DISTILLED))]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("case", NO_LOSSES)
def test_check_tries_what_an_algorithm_adds_to_the_loss(tmp_path, capsys, case):
    old, new, said = NO_LOSSES[case]
    assert old in DISTILLED
    assert main(["check", str(written(tmp_path, SCALED + DISTILLED.replace(old, new)))]) == 2
    told = capsys.readouterr().err
    assert re.search(said, told), told
    assert len(told.splitlines()) == 1


SEQUENCES = {
    "dataset": {"name": "languages"},
    "model": {"name": "char_gru", "embedding": 3, "units": 4},
    "partition": "natural",
}


def test_check_tries_it_with_outputs_and_labels_of_the_scenarios_shapes(tmp_path, capsys):
    """A rule for sequences is refused for digits, and one for classes for sequences."""
    places = "outputs.gather(2, labels[:, :, None]).mean((1, 2))"
    by_place = SCALED + DISTILLED.replace("gap.square().sum(1)", places)
    assert main(["check", str(written(tmp_path, by_place, task=SEQUENCES))]) == 0, capsys.readouterr().err
    assert main(["check", str(written(tmp_path, by_place))]) == 2
    assert main(["check", str(written(tmp_path, SCALED + DISTILLED, task=SEQUENCES))]) == 2
    assert "returned shape (2, " in capsys.readouterr().err
