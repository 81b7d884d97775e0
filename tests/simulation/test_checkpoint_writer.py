"""When a checkpoint is due: every so many rounds, at the latest after five minutes, one after the other."""

import threading
from types import SimpleNamespace

from fedactors.simulation.resume import checkpoint_writer
from fedactors.simulation.resume.checkpoint_writer import CheckpointWriter


def test_when_a_checkpoint_is_due(tmp_path, monkeypatch):
    now, may_end = [0.0], threading.Event()
    monkeypatch.setattr(checkpoint_writer, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(checkpoint_writer, "save", lambda *given: may_end.wait(10))
    writer = CheckpointWriter(tmp_path, 25, 0, 2, print)
    assert [writer.due(plans) for plans in (24, 25)] == [False, True]
    writer.begin(SimpleNamespace(plans=25), lambda: None)
    assert not writer.due(50), "the last one is still being written"
    may_end.set()
    writer.finish()
    assert [writer.due(plans) for plans in (49, 50, 51)] == [False, True, True]
    now[0] = 300.0
    assert not writer.due(26)
    now[0] = 300.1
    assert writer.due(26)
    writer.begin(SimpleNamespace(plans=26), lambda: None)
    writer.finish()
    assert not writer.due(27), "five minutes count from the last one"
    writer.close()


def test_without_a_number_of_rounds_only_the_one_at_the_end_is_written(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(checkpoint_writer, "time", SimpleNamespace(monotonic=lambda: now[0]))
    writer = CheckpointWriter(tmp_path, None, 0, 2, print)
    now[0] = 1000.0
    assert not writer.due(100)
    writer.close()
