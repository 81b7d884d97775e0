"""What of devices' data would reach models without noise is refused an epsilon; what does not is accepted."""

import pytest

from fedactors import Scenario
from fedactors.errors import ScenarioError
from fedactors.registry import BUILTIN
from fedactors.simulation.checks.noiseless_uploads import noiseless_uploads
from fedactors.simulation.prepare import prepare
from tests.algorithms.test_runs import BASE, OPTIONS

CLIP = {"name": "clip", "norm": 0.5}
AT_SERVER = [CLIP, {"name": "gaussian", "multiplier": 1.0}]
SHARED = [CLIP, {"name": "gaussian", "multiplier": 1.0, "added": "clients", "over": 4}]
AGAINST_THE_SERVER = [CLIP, {"name": "gaussian", "multiplier": 1.0, "added": "clients"}]
GUESTS = [{"name": "phones", "count": 5}, {"name": "guests", "count": 5, "depart": "1s"}]
COPIES = {"iid": {"name": "iid", "samples": 50}, "clients": {"name": "clients", "clients": 2, "samples": 20}}


def private(changes=None, **server):
    """Return a small scenario whose privacy is accounted for; `changes` are of its other parts."""
    base = {**BASE["server"], "participation": "uniform", "uplink": AT_SERVER, "privacy": {"delta": 1e-5}, "data": None}
    return Scenario.model_validate({**BASE, **(changes or {}), "server": {**base, **server}})


@pytest.mark.parametrize("data", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize(
    "user",
    [
        {"algorithm": "fsl"},
        {"algorithm": "fsl-p"},
        {"algorithm": "ds"},
        {"algorithm": {"name": "dsl", "server_lr": 0.05}},
        {"algorithm": "mixed-pt"},
        {"algorithm": "mixed-1w"},
        {"algorithm": "mixed-et"},
        {"pretraining": {"epochs": 1}},
    ],
    ids=str,
)
def test_samples_of_devices_at_the_server_have_no_noise(user, data):
    said = f'server.privacy: server.data "{data["name"]}" copies samples of devices'
    with pytest.raises(ScenarioError, match=said):
        prepare(private(data=data, **user))


def test_samples_of_no_device_are_the_servers_to_learn_from():
    """Some that no client holds; those of labels that are set apart; images of a font."""
    prepare(private(data={"name": "iid", "samples": 50, "copies": False}, algorithm="fsl"))
    apart = {**BASE["task"], "partition": "iid", "split": {"name": "labels", "central": [0]}}
    prepare(private({"task": apart}, data="central", algorithm="fsl"))
    prepare(private(data={"name": "glyphs", "font": "aileron"}, pretraining={"epochs": 1}))
    with pytest.raises(ScenarioError, match="copies samples of devices"):
        prepare(private(data={"name": "iid", "samples": 50}, algorithm="fsl"))


FEW = """from typing import ClassVar, Literal
from fedactors.options import Options


class Few(Options):
    name: Literal["few"] = "few"
    SAID

    def size(self, info):
        return 10

    def check(self):
        pass

    def draw(self, data, split, seed):
        return data.samples(split.of(0)[:10])
"""


@pytest.mark.parametrize(
    ("said", "accepted"),
    [
        ("", False),
        ("copies: ClassVar[bool] = True", False),
        ("copies: ClassVar[bool] = False", True),
        ("elsewhere: ClassVar[bool] = True", True),
    ],
)
def test_own_data_of_the_server_count_as_copies_unless_they_say_otherwise(said, accepted, tmp_path):
    """Nobody else knows where the samples of a class of the user's come from."""
    path = tmp_path / "few.py"
    path.write_text(FEW.replace("SAID", said))
    base = {**BASE["server"], "uplink": AT_SERVER, "privacy": {"delta": 1e-5}, "data": "few", "algorithm": "fsl"}
    scenario = Scenario.load({**BASE, "plugins": [str(path)], "server": base})
    if accepted:
        prepare(scenario)
    else:
        with pytest.raises(ScenarioError, match=r'server\.data "few" copies samples of devices'):
            prepare(scenario)


def test_samples_that_change_devices_are_of_no_device():
    """Reallocated in each round, a sample is in the updates of many devices, and none of their epsilons is its own."""
    partition = {**BASE["task"]["partition"], "reallocate": True}
    with pytest.raises(ScenarioError, match="gives the samples of a device to others in each round"):
        prepare(private({"task": {**BASE["task"], "partition": partition}}))


@pytest.mark.parametrize(
    ("server", "text"),
    [
        ({"divergence_threshold": 5.0}, "divergence_threshold ends the run by the losses of devices"),
        ({"stop": {"train_loss": 0.1}}, "stop.train_loss chooses the last model or the best one by the losses"),
        ({"stop": {"accuracy": 0.9, "train_loss": 0.1}}, "stop.train_loss chooses"),
        ({"stop": {"patience": 2, "metric": "train_loss"}}, "stop.metric chooses"),
        ({"bad_updates": "stop"}, "bad_updates: stop ends the run by what is in them"),
        ({"bad_updates": "quarantine"}, "bad_updates: quarantine sets updates aside by what is in them"),
    ],
)
def test_what_updates_or_losses_of_devices_decide_has_no_noise(server, text):
    with pytest.raises(ScenarioError, match=text):
        prepare(private(**server))


@pytest.mark.parametrize("stop", [{"accuracy": 0.9}, {"patience": 2}, {"loss": 0.1, "patience": 2}])
def test_the_test_set_may_decide(stop):
    """It is of no device; the losses of training are."""
    prepare(private(stop=stop))
    with pytest.raises(ScenarioError, match=r"stop\.train_loss chooses"):
        prepare(private(stop=stop | {"train_loss": 0.1}))


def test_what_a_departed_device_has_sent_does_not_leave_the_model_alone():
    """c without one device's sum, beside c with it, is that sum: no noise is in the difference."""
    said = '"scaffold" takes out of its state what a departed device has sent'
    for uplink in (AT_SERVER, SHARED, AGAINST_THE_SERVER):
        with pytest.raises(ScenarioError, match=said):
            prepare(private({"population": GUESTS}, algorithm="scaffold", uplink=uplink))
    prepare(private({"population": GUESTS}))  # FedAvg takes nothing back
    prepare(private(algorithm="scaffold"))  # nobody departs
    stays = {"membership": {"name": "vanilla", "departures": "include"}}
    prepare(private({"population": GUESTS}, algorithm="scaffold", **stays))


FEDEXP = """from typing import ClassVar, Literal

from fedactors.algorithms.fedavg import Averaging


class FedExP(Averaging):
    name: Literal["fedexp"] = "fedexp"
    changes: ClassVar[tuple[str, ...]] = ("delta",)
    SAID

    def upload(self, trip):
        return {"delta": trip.delta, "square": trip.delta.square().sum(-1, keepdim=True)}

    def aggregate(self, state, sums, round, central):
        delta = sums["delta"]
        eta = max(1.0, float(sums["square"]) / (2 * float(delta.square().sum()) + 1e-3))
        return {"x": state["x"] + eta * delta}
"""


def plugged(source, tmp_path, **server):
    """Return a private scenario with an algorithm of the user's."""
    path = tmp_path / "own_algorithm.py"
    path.write_text(source)
    base = {**BASE["server"], "data": None, "uplink": AT_SERVER, "privacy": {"delta": 1e-5}}
    return Scenario.load({**BASE, "plugins": [str(path)], "server": {**base, **server}})


def test_uploads_beside_the_changes_have_no_noise(tmp_path):
    """FedExP of a user's: squared norms of updates that are not clipped set the server's step."""
    with pytest.raises(ScenarioError, match=r'"fedexp" uploads square besides its changes \(delta\), without noise'):
        prepare(plugged(FEDEXP.replace("SAID", ""), tmp_path, algorithm="fedexp"))


def test_an_upload_that_no_data_can_change_may_be_said_to_be_so(tmp_path):
    """By the class that says what is uploaded: what a class below it uploads is another thing."""
    said = FEDEXP.replace("SAID", 'data_independent: ClassVar[tuple[str, ...]] = ("square",)')
    prepare(plugged(said, tmp_path, algorithm="fedexp"))
    below = (
        "class Other(FedExP):\n"
        '    name: Literal["other"] = "other"\n'
        '    changes: ClassVar[tuple[str, ...]] = ("delta",)\n\n'
        "    def upload(self, trip):\n"
        '        return {"delta": trip.delta, "square": trip.delta.abs().sum(-1, keepdim=True)}\n'
    )
    with pytest.raises(ScenarioError, match='"other" uploads square'):
        prepare(plugged(f"{said}\n\n{below}", tmp_path, algorithm="other"))


UPLOAD_MORE = {"fed-ams", "fed-lamb", "feddyn", "mixed-2w", "qfedavg"}


@pytest.mark.parametrize("name", sorted(BUILTIN["algorithms"]))
def test_what_data_can_change_is_a_change_that_gets_noise_or_the_algorithm_has_no_epsilon(name):
    data = {"name": "iid", "samples": 50, "copies": False}
    scenario = private(data=data, algorithm={"name": name, **OPTIONS.get(name, {})})
    if name in UPLOAD_MORE:
        with pytest.raises(
            ScenarioError, match=r"uploads more than|uploads size besides|needs updates to the last bit"
        ):
            prepare(scenario)
    else:
        assert noiseless_uploads(prepare(scenario)) == []
