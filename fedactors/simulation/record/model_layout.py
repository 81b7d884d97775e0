"""checkpoint/model.json: which tensors the model of a run is made of, so that its vector can be taken apart."""

from __future__ import annotations

import json
from pathlib import Path

from fedactors.models.layers import Model
from fedactors.run_files.files import CHECKPOINT, object_of, problem
from fedactors.run_files.writing import inner_folder, write


def write_layout(run: Path, model: Model) -> None:
    """Write the layout of a run's model into the folder `run`. Raises OSError if the disk does not take it."""
    from fedactors.models.trained_weights import LAYOUT, layout

    inner_folder(run / CHECKPOINT)
    write(run / CHECKPOINT / LAYOUT, json.dumps(layout(model), indent=1) + "\n")


def refuse_other_layout(run: Path, model: Model) -> None:
    """Raise RunFolderError if `model` is not made of the tensors of the model that the run in the folder `run` had."""
    from fedactors.models.trained_weights import LAYOUT, layout

    path = run / CHECKPOINT / LAYOUT
    if not path.exists():
        raise problem(path, "not there", f"the folder of a run; `fedactors resume {run}` writes it")
    if object_of(path) != layout(model):
        raise problem(
            path,
            "the run's model had other tensors, or other values that are not trained, than its scenario makes now",
            "code and weights as they were; `fedactors export --run-code` uses the copies of the code in the folder",
        )
