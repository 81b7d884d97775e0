"""checkpoint/model.json: which tensors the model of a run is made of, so that its vector can be taken apart.

{"tensors": [{"name", "shape"}, …], "fixed": {name: SHA-256}}: `tensors` lie in the flat vector in this order; `fixed`
are the other parameters and saved buffers of a module of the user. Only of those is torch imported.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fedactors.models.layers import Model
from fedactors.models.module_layer import module_of
from fedactors.models.personal import tensor_names
from fedactors.run_files.files import CHECKPOINT, object_of, problem
from fedactors.run_files.writing import inner_folder, write

_FILE = "model.json"


def write_layout(run: Path, model: Model) -> None:
    """Write the layout of a run's model into the folder `run`. Raises OSError if the disk does not take it."""
    inner_folder(run / CHECKPOINT)
    write(run / CHECKPOINT / _FILE, json.dumps(_layout(model), indent=1) + "\n")


def refuse_other_layout(run: Path, model: Model) -> None:
    """Raise RunFolderError if `model` is not made of the tensors of the model that the run in the folder `run` had."""
    path = run / CHECKPOINT / _FILE
    if not path.exists():
        raise problem(path, "not there", f"the folder of a run; `fedactors resume {run}` writes it")
    if object_of(path) != _layout(model):
        raise problem(
            path,
            "the run's model had other tensors, or other values that are not trained, than its scenario makes now",
            "code and weights as they were; `fedactors export --run-code` uses the copies of the code in the folder",
        )


def _layout(model: Model) -> dict[str, Any]:
    names = zip(tensor_names(model), model.tensors, strict=True)
    return {"tensors": [{"name": name, "shape": list(spec.shape)} for name, spec in names], "fixed": _fixed(model)}


def _fixed(model: Model) -> dict[str, str]:
    module = module_of(model)
    if module is None:
        return {}
    from fedactors.models.trained_weights import fixed_values

    return fixed_values(module)
