"""The fleet in this process: what was handed out is done when the call returns, so nothing is handed out ahead."""

import fedactors
from fedactors.simulation.progress import Silent
from tests.fleet.test_central import scenario


class Watched(Silent):
    """Notes how many rounds are in flight when one is told of."""

    def __init__(self, pipelines):
        self.pipelines, self.others = pipelines, []

    def round(self, row):
        self.others.append(self.pipelines[-1].in_flight)


def test_a_round_that_is_done_is_told_before_the_next_one_begins(tmp_path, pipelines):
    watched = Watched(pipelines)
    fedactors.run(scenario("fedavg", rounds=6), tmp_path / "run", fleet="local", progress=watched, report=False)
    assert watched.others == [0] * 6
