"""A progress that keeps what is noted during a run."""

from fedactors.simulation.progress import Silent


class Noting(Silent):
    """Shows nothing; `notes` has the texts, in order."""

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)
