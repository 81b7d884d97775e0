"""Sums move as a few vectors for each host, however many clients there are: counted, and with the same bits."""

import pytest

import fedactors
from fedactors import Scenario
from fedactors.fleet.local import LocalFleet
from fedactors.simulation import runner


def scenario(clients, **server):
    return Scenario.model_validate(
        {
            "name": "many",
            "task": {
                "dataset": {"name": "synthetic", "samples": 5},
                "model": "logistic",
                "partition": "natural",
            },
            "population": [{"name": "phones", "count": clients, "compute": {"per_sample": "1ms"}}],
            "server": {"rounds": 2, "local": {"steps": 1, "batch": 2}, "evaluate_every": 2, **server},
        }
    )


class SeveralHosts(LocalFleet):
    """A local fleet that has several hosts."""

    def __init__(self, hosts):
        super().__init__()
        self.hosts = hosts

    def startable_hosts(self):
        return [] if self._started else [0] * self.hosts


def run(folder, made, hosts, monkeypatch):
    monkeypatch.setattr(runner, "open_fleet", lambda *args, **options: SeveralHosts(hosts))
    return fedactors.run(made, folder, fleet="local", report=False)


def check(tmp_path, monkeypatch, clients, **server):
    made = scenario(clients, **server)
    found = [run(tmp_path / str(hosts), made, hosts, monkeypatch) for hosts in (1, 3, 7)]
    vectors = 2 if made.server.algorithm.unweighted else 1  # SCAFFOLD sends its control variates besides
    model = found[0].state["x"].nbytes * vectors
    for hosts, result in zip((1, 3, 7), found, strict=True):
        assert result.summary["digests"] == found[0].summary["digests"]
        for row in result.metrics:
            assert row["heard"] == clients
            assert hosts * model <= row["bytes_reduced"] <= (1 if hosts == 1 else 4 * hosts) * model
    return found


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold"])
def test_a_round_moves_a_model_for_each_host(tmp_path, monkeypatch, algorithm):
    check(tmp_path, monkeypatch, 1_000, algorithm=algorithm)


@pytest.mark.slow
def test_a_round_of_a_hundred_thousand_clients_moves_a_model_for_each_host(tmp_path, monkeypatch):
    check(tmp_path, monkeypatch, 100_000)
