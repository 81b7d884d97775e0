"""Progress that is also logged elsewhere, round by round: TensorBoard and MLflow, each an extra of the package."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from fedactors.extras import needed
from fedactors.simulation.progress import Progress

Figures = Mapping[str, float]


class Tracker(Protocol):
    """Somewhere to log to."""

    def log(self, round: int, figures: Figures) -> None:
        """Log the figures of a round."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


class TensorBoard:
    """Event files in `folder`, for `tensorboard --logdir`. Raises UsageError if tensorboard is not installed."""

    def __init__(self, folder: Path) -> None:
        needed("tensorboard", "tensorboard")
        self._writer = needed("torch.utils.tensorboard", "tensorboard").SummaryWriter(str(folder))

    def log(self, round: int, figures: Figures) -> None:
        """Log the figures of a round."""
        for name, value in figures.items():
            self._writer.add_scalar(name, value, round)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()


class MLflow:
    """A run at the tracking server or store at `uri`. Raises UsageError if mlflow is not installed."""

    def __init__(self, uri: str, name: str, parameters: Mapping[str, Any]) -> None:
        self._client = needed("mlflow", "mlflow").MlflowClient(tracking_uri=uri)
        experiment = self._client.get_experiment_by_name("fedactors")
        number = experiment.experiment_id if experiment else self._client.create_experiment("fedactors")
        self._run = self._client.create_run(number, run_name=name).info.run_id
        for key, value in parameters.items():
            self._client.log_param(self._run, key, str(value)[:500])

    def log(self, round: int, figures: Figures) -> None:
        """Log the figures of a round."""
        for name, value in figures.items():
            self._client.log_metric(self._run, name, value, step=round)

    def close(self) -> None:
        """Write what is left."""
        self._client.set_terminated(self._run)


class Tracked:
    """Shows progress, and logs every row of metrics to trackers, which are made when the run begins."""

    def __init__(self, shown: Progress, makers: Sequence[Callable[[], Tracker]]) -> None:
        self.note = shown.note
        self._shown = shown
        self._makers = makers
        self._trackers: list[Tracker] = []

    @contextmanager
    def over(self, name: str, rounds: int) -> Iterator[None]:
        """Show progress while the context lasts, and close the trackers at its end."""
        with ExitStack() as stack:
            for maker in self._makers:
                self._trackers.append(maker())
                stack.callback(self._trackers[-1].close)
            stack.enter_context(self._shown.over(name, rounds))
            yield

    def round(self, row: Mapping[str, Any]) -> None:
        """Log a row, and show it."""
        for tracker in self._trackers:
            tracker.log(row["round"], numbers(row))
        self._shown.round(row)


def numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the figures of a row of metrics under flat names: "outcomes/partial"."""
    found: dict[str, float] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            found |= {f"{key}/{inner}": float(number) for inner, number in value.items() if _is_number(number)}
        elif key != "round" and _is_number(value):
            found[key] = float(value)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def flat(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a scenario under their key paths: ("server.rounds", 60)."""
    items = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else None
    if items is None:
        yield path, data
        return
    for key, value in items:
        yield from flat(value, f"{path}.{key}" if path else str(key))
