"""The trained model of a run: its tensors by name, as a torch module, or as a file; runs that were written before."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedactors import bits, registry
from fedactors.errors import RunFolderError, ScenarioError, naming
from fedactors.models.layers import Model
from fedactors.models.personal import personal_positions
from fedactors.own_code.user_code import CODE, copies_preferred, may_use_copies
from fedactors.own_code.user_errors import user_errors
from fedactors.report.notebook import RunPlots
from fedactors.run_files.best_model import BEST
from fedactors.run_files.files import CHECKPOINT, METRICS, SCENARIO, damaged, objects_in, problem, whole_lines
from fedactors.run_files.records import read
from fedactors.run_files.tensors import tensors_of
from fedactors.run_files.writer_note import scenario_folder
from fedactors.run_files.writing import writable, write
from fedactors.scenario.loading import validate
from fedactors.scenario.model import Scenario
from fedactors.simulation.checks.prepare_task import model_of
from fedactors.simulation.record.model_layout import refuse_other_layout
from fedactors.simulation.record.recorded_scenario import scenario_data
from fedactors.simulation.resume import client_state_files
from fedactors.simulation.resume.checkpoint import checkpoints, header_of

if TYPE_CHECKING:
    from torch import Tensor, nn

_LAST = Path(CHECKPOINT) / "model.safetensors"
State = Mapping[str, NDArray[np.float32]]


class TrainedRun(RunPlots):
    """What has a run folder with a trained model.

    The model is `best`, that of the best round where `server.stop` says what is good, or else the last one; or that of
    a `client`, by number: the server's with what the client keeps under `server.personal`, or under Ditto its own.
    """

    if TYPE_CHECKING:  # fields of one class, read from the folder by the other

        @property
        def scenario(self) -> Scenario:
            """The scenario, every default shown."""

        @property
        def state(self) -> State:
            """The server's last state by name; `x` is the model."""

    def state_dict(self, *, best: bool = False, client: int | None = None) -> dict[str, Tensor]:
        """Return the tensors of the model as torch has them, for `load_state_dict` of the module that was trained.

        Frozen parameters and other buffers are among them. Tensors of a model of fedactors are called by number and
        name of the layer, "3.weight", as in the equivalent `torch.nn.Sequential`. Raises RunFolderError if there is no
        such model, or the code of the module gives other tensors now; UsageError if code or data are not there.
        """
        return self.module(best=best, client=client).state_dict()

    def module(self, *, best: bool = False, client: int | None = None) -> nn.Module:
        """Return the model as a new torch module in evaluation mode: the user's own, or one like a model of fedactors.

        Raises as `state_dict`.
        """
        from fedactors.models.trained_weights import trained_module

        if best and client is not None:
            raise RunFolderError("found best=True and client=… (accepted: one of them: clients keep their last values)")
        path = self._path / (BEST if best else _LAST)
        vector = (self._best() if best else self.state).get("x")
        if vector is None or vector.shape != (self._model.parameters,):
            raise damaged(path, f"x is not the {self._model.parameters:,} values of the model")
        if client is not None:
            vector = self._of_client(client, vector)
        return trained_module(self._model, vector)

    @cached_property
    def _model(self) -> Model:
        """The description of the model. Raises as `state_dict`."""
        scenario = self.scenario
        bits.choose(scenario.cluster.bits)  # what is drawn for frozen parameters is drawn as in the run
        with bits.one_thread(), naming(scenario.source), registry.in_scope(scenario.own), user_errors(ScenarioError):
            model = model_of(scenario.task, scenario.task.info(scenario.seed, scenario.devices), scenario.seed)
        refuse_other_layout(self._path, model)
        return model

    def _best(self) -> State:
        path = self._path / BEST
        if not path.exists():
            raise problem(path, "not there", "a run whose server.stop names a measure")
        return tensors_of(path)

    def _of_client(self, client: int, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the values of the model that a client would use, from those of the server; `(parameters,)` each."""
        from fedactors.learning.client_evaluation import client_model
        from fedactors.learning.own_models import OWN

        scenario = self.scenario
        if isinstance(client, bool) or not isinstance(client, int | np.integer) or not 0 <= client < scenario.devices:
            raise RunFolderError(f"{self._path}: no client {client!r} (accepted: 0 to {scenario.devices - 1})")
        positions = personal_positions(self._model, scenario.server.personal)
        if not len(positions) and OWN not in scenario.server.algorithm.keeps:
            raise RunFolderError(
                f"{self._path}: clients keep no model (accepted: a run with server.personal, or of ditto)"
            )
        return client_model(vector, _kept_by(self._path, client), positions)


def _kept_by(run: Path, client: int) -> dict[str, NDArray[np.float32]] | None:
    """Return what a client keeps at the last checkpoint of a run; None if it never took part."""
    shards = [path for last in checkpoints(run)[:1] for path in sorted(last.glob("clients-*.safetensors"))]
    shards = [path for path in shards if int(path.stem.partition("-")[2]) <= client]
    return dict(client_state_files.load(shards[-1:])).get(client)


@dataclass(frozen=True)
class RecordedRun(TrainedRun):
    """A run folder that was written before."""

    folder: Path
    summary: Mapping[str, Any]

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario, every default shown.

        Raises UsageError if it cannot be read, code that it names is gone, or is in the run folder alone and not to be
        executed.
        """
        saved = checkpoints(self.folder)
        folder = Path(header_of(saved[0]).folder) if saved else scenario_folder(self.folder)
        inside = folder.resolve().is_relative_to(self.folder.resolve())
        if inside and (self.folder / CODE).exists() and not may_use_copies():
            raise problem(self.folder / SCENARIO, "its code lies in the run folder itself", "`export --run-code`")
        with copies_preferred(self.folder) if may_use_copies() else nullcontext():
            return validate(scenario_data(self.folder), str(self.folder / SCENARIO), folder=folder)

    @cached_property
    def state(self) -> State:
        """The server's last state. Raises RunFolderError if there is none: of a replay, or of a run that was killed."""
        path = self.folder / _LAST
        if not path.exists():
            raise problem(
                path, "not there", f"a run that has ended; `fedactors resume {self.folder}`; a replay has none"
            )
        return tensors_of(path)

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """All rows of metrics. Raises RunFolderError if they cannot be read."""
        path = self.folder / METRICS
        return list(objects_in(path, whole_lines(path)))


def load_run(folder: str | Path) -> RecordedRun:
    """Return a run folder of `run` or `replay`. Raises RunFolderError if it is none, or is damaged."""
    return RecordedRun(Path(folder), read(folder, tables=False).summary)


def export(run: TrainedRun, out: Path, *, best: bool = False, client: int | None = None) -> None:
    """Write the tensors of `run.state_dict` to the file `out`, by its ending as safetensors, or as `torch.save` does.

    Raises ScenarioError if it ends otherwise; RunFolderError if it cannot be written; and what `state_dict` raises.
    """
    import torch
    from safetensors.torch import save

    if out.suffix not in (".safetensors", ".pt", ".pth"):
        raise ScenarioError(f'--out: found "{out}" (accepted: a file that ends in .safetensors, .pt or .pth)')
    if out.resolve().is_relative_to((run._path / CHECKPOINT).resolve()):
        raise ScenarioError(f'--out: "{out}" lies among the checkpoints of the run (accepted: another folder)')
    found = run.state_dict(best=best, client=client)
    if out.suffix == ".safetensors":
        if odd := [name for name, value in found.items() if not isinstance(value, torch.Tensor)]:
            raise ScenarioError(f"--out: {odd[0]} is no tensor (accepted: a file that ends in .pt or .pth)")
        content = save({name: value.clone().contiguous() for name, value in found.items()})
    else:
        torch.save(found, file := BytesIO())
        content = file.getvalue()
    with writable(out):
        write(out, content)
