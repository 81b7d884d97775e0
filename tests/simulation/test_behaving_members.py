"""Devices that behave in whole runs: who is a member, whom is evaluated, and the windows that a timeline shows."""

import textwrap

import pyarrow.parquet as pq
import pytest

import fedactors
from fedactors.plan import SECOND
from fedactors.run_files.tables import rows_of
from fedactors.scenario.model import Scenario
from fedactors.simulation.inspect.audit import audit
from fedactors.simulation.prepare import prepare
from fedactors.simulation.replay import replay

NAMES = ("client", "sampled", "on", "off")
PEOPLE = """
from fedactors.clock.behaviours.base import Behaviour


class Guest(Behaviour):
    # number k arrives at 10 (k + 1) s, is off from 35 s to 55 s, and departs at 100 s if k is 0

    arrives = True

    def play(self, device):
        yield device.timeout(f"{10 * (device.number + 1)} s")
        device.arrive()
        yield device.timeout(35 * 10**9 - device.now)
        device.off()
        yield device.timeout("20 s")
        device.on()
        yield device.timeout("45 s")
        if device.number == 0:
            device.depart()
"""


@pytest.fixture
def made(tmp_path):
    (tmp_path / "people.py").write_text(textwrap.dedent(PEOPLE), encoding="utf-8")
    data = {
        "name": "guests",
        "task": {"dataset": "digits", "model": "logistic", "partition": {"name": "iid", "samples": 20}},
        "population": [
            {"name": "hosts", "count": 2, "compute": {"per_sample": "100ms"}},
            {
                "name": "guests",
                "count": 2,
                "availability": {"name": "process", "behaviour": "people.py:Guest"},
                "compute": {"per_sample": "100ms"},
            },
        ],
        "server": {
            "rounds": 12,
            "deadline": "10s",
            "close_early": False,
            "cohort": "all",
            "participation": {"name": "B", "weights": "fixed"},
            "local": {"epochs": 1, "batch": 10},
            "evaluation": {"clients": "all", "every": 1, "on": "test"},
        },
    }
    return Scenario.from_data(data, "guests.yaml", folder=tmp_path)


def test_who_is_evaluated_and_weighed_follows_what_behaviours_do(made, tmp_path):
    """Rounds of 10 s. Client 2 belongs from 10 s until 100 s, client 3 from 20 s on.

    A round evaluates those who belong when it closes, at 10 s, 20 s, and so on. Each share is one over the members
    when it opens: two until 10 s, three until 20 s, then four, and three from 100 s on.
    """
    result = fedactors.run(made, tmp_path / "run", fleet="local")
    assert [row["clients_evaluated"] for row in result.metrics] == [3, *[4] * 8, 3, 3, 3]
    plans = list(prepare(made).clock())
    assert [plan.closed for plan in plans] == [10 * SECOND * k for k in range(1, 13)]
    weights = {}
    for version, _, _, weight in rows_of(tmp_path / "run/weights.parquet", ("version", "client", "base", "weight")):
        weights.setdefault(version, set()).add(weight)
    members = [2, 3, *[4] * 8, 3, 3]
    assert [weights[version] for version in range(12)] == [{1 / count} for count in members]
    table = pq.read_table(tmp_path / "run/clients.parquet").to_pydict()
    assert table["arrive"] == [0, 0, 10 * SECOND, 20 * SECOND]
    assert table["depart"][2] == 100 * SECOND
    assert table["depart"][3] == table["depart"][0] > 10**18
    assert audit(tmp_path / "run")["sound"]


def test_the_windows_of_devices_that_behave_are_those_that_were_seen(made, tmp_path):
    """On from their arrival, off from 35 s to 55 s, and gone or on until the end."""
    replay(made, tmp_path / "replay")
    found = rows_of(tmp_path / "replay/windows.parquet", NAMES)
    rows = {client: list(zip(on, off, strict=True)) for client, _, on, off in found}
    end = 120 * SECOND
    assert rows[0] == [(0, end)]
    assert rows[2] == [(10 * SECOND, 35 * SECOND), (55 * SECOND, 100 * SECOND)]
    assert rows[3] == [(20 * SECOND, 35 * SECOND), (55 * SECOND, end)]
