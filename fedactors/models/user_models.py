"""Models of the user's own: any `torch.nn.Module`, and those of torchvision.

    model: {name: torch, factory: "nets.py:Net", arguments: {width: 32}}
    model: {name: torchvision, arch: resnet18}

The module is made once when a scenario is prepared, to see its parameters and what it answers; this imports torch.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import Field

from fedactors.arguments import Arguments
from fedactors.errors import DataError, suggestion
from fedactors.models.layers import Model, Shape
from fedactors.models.module_layer import BufferPolicy, InputSpec, ModuleMaker
from fedactors.options import Options
from fedactors.own_code.user_code import Reference
from fedactors.paths import ScenarioPath

Inputs = tuple[InputSpec, ...]


class _Module(Options):
    """What models of both kinds may say."""

    weights: ScenarioPath | None = None
    """Trained weights to start from, relative to the scenario: a file of safetensors, or of torch.save with a
    state_dict; or the folder of a run, whose last model it is."""
    buffers: BufferPolicy = "average"
    """What becomes of buffers such as BatchNorm's statistics: averaged like parameters; kept as they are on the server;
    or each client's own."""
    trainable: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Patterns (fnmatch) of the parameters that are trained, by name; the others are frozen. By default what the module
    says."""

    def _described(self, maker: ModuleMaker, inputs: Inputs) -> Model:
        from fedactors.models.module_description import described

        weights = self.weights.path if self.weights else None
        return described(maker, inputs, weights=weights, policy=self.buffers, trainable=self.trainable)


class TorchModel(_Module):
    """A module of the user: `factory` is called with `arguments` and returns it."""

    name: Literal["torch"] = "torch"
    factory: Reference
    """A class or function, `nets.py:Net` (relative to the scenario) or `package.module:Net`."""
    arguments: Arguments = Field(default_factory=dict)
    """Keyword arguments of the factory."""

    def build(self, input_shape: Shape, classes: int) -> Model:
        """Return the model for samples of `input_shape`. Raises DataError if it cannot be made or does not fit."""
        return self.describe((InputSpec("", input_shape),), classes)

    def describe(self, inputs: Inputs, classes: int) -> Model:
        """Return the model for samples of several parts, or of identifiers. Raises DataError as `build` does."""
        return self._described(ModuleMaker(self.factory, json.dumps(self.arguments, sort_keys=True)), inputs)


class TorchvisionModel(_Module):
    """A model of `torchvision.models.list_models()`."""

    name: Literal["torchvision"] = "torchvision"
    arch: str = Field(min_length=1)
    num_classes: int | Literal["auto"] = "auto"
    """Outputs; `auto` takes the number of labels of the data."""
    arguments: Arguments = Field(default_factory=dict)
    """Further keyword arguments of the model."""

    def build(self, input_shape: Shape, classes: int) -> Model:
        """Return the model for images of `input_shape`. Raises DataError if there is none or it does not fit."""
        return self.describe((InputSpec("", input_shape),), classes)

    def describe(self, inputs: Inputs, classes: int) -> Model:
        """Return the model for samples of `inputs`. Raises DataError as `build` does."""
        from torchvision.models import list_models

        if self.arch not in (known := list_models()):
            raise DataError(f'torchvision has no model "{self.arch}"{suggestion(self.arch, known)}')
        outputs = classes if self.num_classes == "auto" else self.num_classes
        arguments = {"name": self.arch, "weights": None, "num_classes": outputs, **self.arguments}
        factory = Reference(f"torchvision:{self.arch}", "torchvision.models", "get_model", None)
        return self._described(ModuleMaker(factory, json.dumps(arguments, sort_keys=True)), inputs)
