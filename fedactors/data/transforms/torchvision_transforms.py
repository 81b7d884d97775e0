"""Transforms of `torchvision.transforms.v2`, by class name and arguments, apart for training and for test.

    transform: {train: [{name: RandomCrop, size: 28, padding: 2}, RandomHorizontalFlip], test: [], variants: 8}

Those that are not random are applied once, when the data are loaded. Of random ones, which only training data may have,
`variants` are made of each sample before the run, each from a stream of its own, by (seed, sample, variant). Which one
a local step sees is drawn anew for every step, from the stream of (seed, client, round). So an epoch shows a sample in
one of so many ways, and results do not depend on where a client is computed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, field_validator

from fedactors.data.base import Data, Float32, Info
from fedactors.errors import DataError, ScenarioError, suggestion
from fedactors.options import Options
from fedactors.streams import Purpose, Streams

_WHERE = "task.transform"
_BATCH = 256  # images at a time
_TIMED = 16  # images that are transformed to learn how long it takes
_CERTAIN = frozenset({"CenterCrop", "ConvertImageDtype", "Grayscale", "Identity", "LinearTransformation", "Normalize",
                      "Pad", "RGB", "Resize", "ToDtype", "ToImage", "ToPureTensor"})  # fmt: skip

Step = dict[str, Any]
Steps = Annotated[tuple[Step, ...], Field(strict=False)]


def _named(steps: Any) -> Any:
    """Return steps as mappings, the short form written out."""
    if not isinstance(steps, (list, tuple)):
        return steps
    return tuple({"name": step} if isinstance(step, str) else step for step in steps)


class TorchvisionTransforms(Options):
    """What is done to images before they are trained on, and before models are tested on them."""

    name: Literal["torchvision"] = "torchvision"
    train: Annotated[Steps, BeforeValidator(_named)] = ()
    """Transforms of training images: names of torchvision.transforms.v2, or mappings with `name` and arguments."""
    test: Annotated[Steps, BeforeValidator(_named)] = ()
    """Transforms of test and validation images; none of them may be random."""
    variants: Annotated[int, Field(ge=2, le=1000)] | None = None
    """In how many ways each training image is transformed, if transforms are random; all are kept in memory."""

    @field_validator("train", "test")
    @classmethod
    def _check_names(cls, steps: Any) -> Any:
        for step in steps:
            if not isinstance(step.get("name"), str):
                raise ValueError("each transform is a name, or a mapping with the key name")
        return steps

    def info(self, info: Info) -> Info:
        """Return what is known of the transformed data. Raises ScenarioError if a transform cannot be applied."""
        if len(info.input_shape) != 3 or len(info.inputs) > 1 or any(part.integer for part in info.inputs):
            raise ScenarioError(
                f'{_WHERE}: samples of "{info.name}" have the shape {info.input_shape} (accepted: images, of channels,'
                " height and width)"
            )
        self._check_random(info)
        one = np.full((1, *info.input_shape), 0.5, np.float32)
        shape, test_shape = (
            _applied(_composed(steps, which), one, f"{_WHERE}.{which}").shape[1:]
            for which, steps in (("train", self.train), ("test", self.test))
        )
        if shape != test_shape:
            raise ScenarioError(
                f"{_WHERE}: training images become {shape}, test images {test_shape} (accepted: one shape)"
            )
        inputs = tuple(part._replace(shape=shape) for part in info.inputs)
        return replace(info, input_shape=shape, inputs=inputs, variants=self.variants or 1)

    def seconds(self, info: Info) -> float:
        """Return about how many seconds the variants of the data take before each run, measured on a few images."""
        if self.variants is None:
            return 0.0
        transform = _composed(self.train, "train")
        few = np.full((_TIMED, *info.input_shape), 0.5, np.float32)
        _varied(transform, few[:1], 1, 0)  # the first call also makes what later ones find
        began = time.perf_counter()
        _varied(transform, few, 1, 0)
        return (time.perf_counter() - began) / _TIMED * info.train_size * self.variants

    def apply(self, data: Data, seed: int) -> Data:
        """Return the data, transformed. Raises DataError if a transform cannot be applied to a sample."""
        data = replace(data, test_x=self._of_test(data.test_x))
        if data.validation_x is not None:
            data = replace(data, validation_x=self._of_test(data.validation_x))
        if self.variants is None:
            central = None if data.central_x is None else self.of_training(data.central_x)
            return replace(data, x=self.of_training(data.x), central_x=central)
        variants = _varied(_composed(self.train, "train"), data.x, self.variants, seed)
        return replace(data, x=variants[: len(data.x)], variants=variants)

    def of_training(self, x: Float32) -> Float32:
        """Return further training images `(n, ...)` transformed, by transforms that are not random.

        Raises DataError if they cannot be.
        """
        return _applied(_composed(self.train, "train"), x, f"{_WHERE}.train")

    def _of_test(self, x: Float32) -> Float32:
        """Return images `(n, ...)` that models are evaluated on, transformed. Raises DataError if they cannot be."""
        return _applied(_composed(self.test, "test"), x, f"{_WHERE}.test")

    def _check_random(self, info: Info) -> None:
        """Raise ScenarioError if random transforms would be applied once only."""
        if found := _random(self.test):
            raise ScenarioError(f"{_WHERE}.test: {found} is random (accepted: {', '.join(sorted(_CERTAIN))})")
        found = _random(self.train)
        if found and self.variants is None:
            raise ScenarioError(
                f"{_WHERE}.train: {found} is random, and applied once it would make one fixed image (accepted:"
                " variants: N, of which each local step sees one)"
            )
        if self.variants and not found:
            raise ScenarioError(f"{_WHERE}.variants: no transform of training images is random (accepted: none)")
        if self.variants and info.central_size:
            raise ScenarioError(f"{_WHERE}.variants: found data of a central learner too (accepted: none of them)")


def _random(steps: Sequence[Step]) -> str:
    """Return the first transform that may be random, or nothing."""
    return next((step["name"] for step in steps if step["name"] not in _CERTAIN), "")


def _composed(steps: Sequence[Step], which: str) -> Callable[[Any], Any]:
    """Return the transforms as one. Raises ScenarioError if there is no such, or it does not take the arguments."""
    from torchvision.transforms import v2  # imports torch

    classes = {name: kind for name, kind in vars(v2).items() if isinstance(kind, type)}
    known = {name: kind for name, kind in classes.items() if issubclass(kind, v2.Transform)}
    made = []
    for place, step in enumerate(steps):
        where = f"{_WHERE}.{which}.{place}"
        if (name := step["name"]) not in known:
            raise ScenarioError(f'{where}: torchvision has no transform "{name}"{suggestion(name, known)}')
        try:
            made.append(known[name](**_arguments(step)))
        except (TypeError, ValueError, AttributeError) as error:
            raise ScenarioError(f"{where}: {name}: {' '.join(str(error).split())[:200]}") from error
    return v2.Compose(made) if made else lambda images: images


def _arguments(step: Step) -> dict[str, Any]:
    """Return the arguments of a transform; names of torchvision's and torch's constants become these."""
    import torch
    from torchvision.transforms import AutoAugmentPolicy, InterpolationMode

    made: dict[str, Callable[[Any], Any]] = {
        "interpolation": InterpolationMode, "policy": AutoAugmentPolicy, "dtype": lambda name: getattr(torch, name)
    }  # fmt: skip
    given = {key: value for key, value in step.items() if key != "name"}
    return {key: made[key](value) if key in made and isinstance(value, str) else value for key, value in given.items()}


def _applied(transform: Callable[[Any], Any], x: Float32, where: str) -> Float32:
    """Return all images transformed, some at a time."""
    if not len(x):
        return x
    starts = range(0, len(x), _BATCH)
    return _filled((_of(transform, x[at : at + _BATCH], where) for at in starts), len(x), where)


def _filled(parts: Iterable[Float32], count: int, where: str) -> Float32:
    """Return `parts`, of `count` images in all, in one array. Raises DataError if their shapes differ."""
    found: Float32 | None = None
    at = 0
    for part in parts:
        if found is None:
            found = np.empty((count, *part.shape[1:]), np.float32)
        elif part.shape[1:] != found.shape[1:]:
            raise DataError(
                f"{where}: images became {found.shape[1:]} and {part.shape[1:]} (accepted: one shape; CenterCrop,"
                " RandomCrop or Resize at the end)"
            )
        found[at : at + len(part)] = part
        at += len(part)
    assert found is not None, "no images"
    return found


def _varied(transform: Callable[[Any], Any], x: Float32, variants: int, seed: int) -> Float32:
    """Return `(variants * n, ...)` images: the first variant of all, then the second."""
    import torch

    streams = Streams(seed, Purpose.AUGMENTATION)
    where = f"{_WHERE}.train"

    def made() -> Iterator[Float32]:
        for variant in range(variants):
            for sample, image in enumerate(x):
                # as torch.manual_seed, which also writes down the stack, for GPUs that are not used here
                torch.default_generator.manual_seed(int(streams.of(sample, variant).integers(2**63)))
                yield _of(transform, image, where)[None]

    with torch.random.fork_rng(devices=[]):
        return _filled(made(), variants * len(x), where)


def _of(transform: Callable[[Any], Any], images: Float32, where: str) -> Float32:
    """Return images transformed. Raises DataError if that fails, or leaves something else than floats."""
    import torch

    try:
        found = transform(torch.from_numpy(np.ascontiguousarray(images)))
    except Exception as error:  # whatever a transform raises
        text = " ".join(str(error).split())[:200]
        raise DataError(f"{where}: an image of shape {images.shape[-3:]}: {type(error).__name__}: {text}") from error
    is_tensor = isinstance(found, torch.Tensor)
    if not is_tensor or found.ndim != images.ndim or not found.is_floating_point():
        kind = f"{found.dtype} of shape {tuple(found.shape)}" if is_tensor else type(found).__name__
        raise DataError(f"{where}: an image became {kind} (accepted: an image of floats)")
    array: Float32 = found.float().numpy()
    if not np.isfinite(array).all():
        raise DataError(f"{where}: an image became NaN or infinite (accepted: finite numbers)")
    return array
