"""Logs to a tracking server or a store of MLflow."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fedactors.errors import UsageError
from fedactors.extras import needed
from fedactors.simulation.tracking.base import Figures
from fedactors.simulation.tracking.mlflow_server import NONE_YET, refusal
from fedactors.simulation.tracking.run_ids import RunIds

_EXPERIMENT = "fedactors"
_OF_EACH_ROUND = "virtual_seconds"  # a figure that no round lacks
_LONGEST = 500  # characters of a parameter
_TOGETHER = 100  # parameters, or metrics, in one request: as many as MLflow takes
_ACCEPTED = "a folder, or the address of a server that runs; databases such as sqlite: pip install mlflow"
_AT_ONCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}


class MLflow:
    """A run at the tracking server, or in the store, at `uri`; a store in a folder is made if there is none.

    A run in `folder` that goes on is the one that it was there, of which rounds that are logged already are left out:
    nothing that is logged can be taken back. Raises UsageError if mlflow is not installed, or if nothing that it can
    log to is there.
    """

    name = "MLflow"

    def __init__(self, uri: str, folder: Path, parameters: Mapping[str, Any]) -> None:
        self._mlflow = needed("mlflow", "mlflow")
        self._ids = RunIds(folder)
        self._run_name = folder.name
        self._parameters = parameters
        self._run = ""
        self._logged = 0  # rounds that are there already
        if urlsplit(uri).scheme in ("", "file"):
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # MLflow 3 wants to be asked for it
        try:
            with _without_patience():
                _refuse(uri)
                self._client = self._mlflow.MlflowClient(tracking_uri=uri)
                experiment = self._client.get_experiment_by_name(_EXPERIMENT)
                self._experiment = experiment and experiment.experiment_id
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(f"--mlflow {uri}: {_first_sentence(error)} (accepted: {_ACCEPTED})") from None

    def begin(self) -> None:
        """Go on with the run, or create one with the parameters."""
        if run := self._existing():
            self._run = run
            self._client.update_run(run, status="RUNNING")
            self._logged = max((one.step for one in self._client.get_metric_history(run, _OF_EACH_ROUND)), default=0)
            return
        self._create()
        self._ids.keep(self.name, self._run)

    def _existing(self) -> str:
        """Return the id of the run as it is known there; empty if it is not, or has been deleted."""
        if not (known := self._ids.of(self.name)):
            return ""
        try:
            found = self._client.get_run(known)
        except self._mlflow.MlflowException as error:
            if error.error_code != NONE_YET:
                raise
            return ""
        return known if found.info.lifecycle_stage == "active" else ""

    def _create(self) -> None:
        experiment = self._experiment or self._client.create_experiment(_EXPERIMENT)
        self._run = self._client.create_run(experiment, run_name=self._run_name).info.run_id
        entities = needed("mlflow.entities", "mlflow")
        params = (entities.Param(key, str(value)[:_LONGEST]) for key, value in self._parameters.items())
        while some := list(islice(params, _TOGETHER)):
            self._client.log_batch(self._run, params=some)

    def log(self, round: int, figures: Figures) -> None:
        """Log the figures of a round."""
        if round <= self._logged:
            return
        metric = needed("mlflow.entities", "mlflow").Metric
        now = int(time.time() * 1000)
        metrics = (metric(name, value, now, round) for name, value in figures.items())
        while some := list(islice(metrics, _TOGETHER)):
            self._client.log_batch(self._run, metrics=some)

    def close(self) -> None:
        """End the run."""
        self._client.set_terminated(self._run)


def _refuse(uri: str) -> None:
    """Raise UsageError, with what was answered, if `uri` is the address of a server that takes no runs."""
    if urlsplit(uri).scheme in ("http", "https") and (why := refusal(uri, _EXPERIMENT)):
        raise UsageError(f"--mlflow {uri}: {why} (accepted: {_ACCEPTED})")


@contextmanager
def _without_patience() -> Iterator[None]:
    """Have a server answer at once or not at all: MLflow tries for minutes, unless the user has said otherwise."""
    ours = {name: value for name, value in _AT_ONCE.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


def _first_sentence(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text.partition(". ")[0][:300]
