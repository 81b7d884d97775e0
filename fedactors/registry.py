"""Names that a scenario may use, and the classes behind them.

Adding an algorithm, a data set or a policy of our own is one file and one line here. Third parties add theirs
through an entry point in the group `fedactors.<kind>`, without touching this repository:

    [project.entry-points."fedactors.algorithms"]
    fedfoo = "my_package.fedfoo:FedFoo"

Formats of recordings are no choice of a scenario, but come in the same way: `fedactors.formats`, instances of
`fedactors.traces.formats.Format`.

Classes are `Options`: their fields are what a user may write. They are imported when named, not before, and must
be importable without torch and ray, so that checking and replaying a scenario stays light.
"""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from fedactors.errors import ScenarioError, suggestion

BUILTIN: dict[str, dict[str, str]] = {
    "algorithms": {
        "ds": "fedactors.algorithms.data_sharing:DataSharing",
        "dsl": "fedactors.algorithms.data_sharing:DSL",
        "fed-ams": "fedactors.algorithms.fed_ams:FedAMS",
        "fed-lamb": "fedactors.algorithms.fed_lamb:FedLAMB",
        "fed-sgd": "fedactors.algorithms.fed_sgd:FedSGD",
        "fedadagrad": "fedactors.algorithms.fedopt:FedAdagrad",
        "fedadam": "fedactors.algorithms.fedopt:FedAdam",
        "fedavg": "fedactors.algorithms.fedavg:FedAvg",
        "fedavgm": "fedactors.algorithms.fedopt:FedAvgM",
        "feddyn": "fedactors.algorithms.feddyn:FedDyn",
        "fednova": "fedactors.algorithms.fednova:FedNova",
        "fedprox": "fedactors.algorithms.fedprox:FedProx",
        "fedyogi": "fedactors.algorithms.fedopt:FedYogi",
        "fsl": "fedactors.algorithms.fsl:FSL",
        "fsl-p": "fedactors.algorithms.fsl_p:FSLp",
        "mixed-1w": "fedactors.algorithms.one_way:OneWay",
        "mixed-2w": "fedactors.algorithms.two_way:TwoWay",
        "mixed-et": "fedactors.algorithms.example_transfer:ExampleTransfer",
        "mixed-pt": "fedactors.algorithms.parallel_training:ParallelTraining",
        "scaffold": "fedactors.algorithms.scaffold:Scaffold",
    },
    "optimizers": {
        "sgd": "fedactors.learning.optimizers:SGD",
        "momentum": "fedactors.learning.optimizers:Momentum",
        "adam": "fedactors.learning.optimizers:Adam",
        "amsgrad": "fedactors.learning.optimizers:AMSGrad",
        "lamb": "fedactors.learning.optimizers:Lamb",
    },
    "participation": {
        "samples": "fedactors.algorithms.participation:Samples",
        "uniform": "fedactors.algorithms.participation:Uniform",
        "examples": "fedactors.algorithms.participation:Examples",
        "A": "fedactors.algorithms.participation:SchemeA",
        "B": "fedactors.algorithms.participation:SchemeB",
        "C": "fedactors.algorithms.participation:SchemeC",
    },
    "membership": {
        "vanilla": "fedactors.algorithms.objective:Vanilla",
        "fast-reboot": "fedactors.algorithms.objective:FastReboot",
    },
    "schedules": {
        "constant": "fedactors.algorithms.schedule:Constant",
        "staircase": "fedactors.algorithms.schedule:Staircase",
    },
    "timing": {
        "synchronous": "fedactors.clock.timing:Synchronous",
        "fedasync": "fedactors.clock.fedasync:FedAsync",
        "fedbuff": "fedactors.clock.fedbuff:FedBuff",
        "semi-synchronous": "fedactors.clock.semi_synchronous:SemiSynchronous",
    },
    "staleness": {
        "constant": "fedactors.clock.staleness:Constant",
        "polynomial": "fedactors.clock.staleness:Polynomial",
        "hinge": "fedactors.clock.staleness:Hinge",
    },
    "selection": {
        "uniform": "fedactors.clock.selection:Uniform",
        "samples": "fedactors.clock.selection:Samples",
        "round-robin": "fedactors.clock.selection:RoundRobin",
        "power-of-choice": "fedactors.clock.power_of_choice:PowerOfChoice",
        "oort": "fedactors.clock.oort:Oort",
    },
    "datasets": {
        "celeba": "fedactors.learning.celeba:CelebA",
        "cifar10": "fedactors.learning.cifar:Cifar10",
        "digits": "fedactors.learning.digits:Digits",
        "emnist": "fedactors.learning.emnist:Emnist",
        "clustered_ratings": "fedactors.learning.ratings:ClusteredRatings",
        "movielens": "fedactors.learning.ratings:MovieLens",
        "languages": "fedactors.learning.languages:Languages",
        "texts": "fedactors.learning.texts:Texts",
        "mnist": "fedactors.learning.mnist:Mnist",
        "synthetic": "fedactors.learning.synthetic:Synthetic",
    },
    "models": {
        "logistic": "fedactors.learning.models:Logistic",
        "least_squares": "fedactors.learning.models:LeastSquares",
        "mlp": "fedactors.learning.models:Mlp",
        "2nn": "fedactors.learning.models:TwoNN",
        "mcmahan_2nn": "fedactors.learning.models:TwoNN",
        "mcmahan_cnn": "fedactors.learning.models:McmahanCnn",
        "fsl_emnist": "fedactors.learning.models:FslEmnist",
        "fsl_cifar": "fedactors.learning.models:FslCifar",
        "lamb_mlp": "fedactors.learning.models:LambMlp",
        "lamb_cnn": "fedactors.learning.models:LambCnn",
        "char_gru": "fedactors.learning.mixed_models:CharGru",
        "dual_encoder": "fedactors.learning.mixed_models:DualEncoder",
        "smile_fc": "fedactors.learning.mixed_models:SmileFc",
        "lamb_cifar_cnn": "fedactors.learning.models:LambCifarCnn",
        "resnet9": "fedactors.learning.models:ResNet9",
    },
    "partitions": {
        "iid": "fedactors.learning.partition:Iid",
        "classes": "fedactors.learning.partition:Classes",
        "dirichlet": "fedactors.learning.partition:Dirichlet",
        "natural": "fedactors.learning.partition:Natural",
    },
    "splits": {
        "labels": "fedactors.learning.label_split:LabelSplit",
        "pooled": "fedactors.learning.pooled:Pooled",
    },
    "server_data": {
        "iid": "fedactors.learning.server_data:IidServerData",
        "central": "fedactors.learning.server_data:CentralServerData",
        "clients": "fedactors.learning.server_data:ClientServerData",
        "glyphs": "fedactors.learning.glyphs:GlyphServerData",
        "stl10": "fedactors.learning.stl:Stl10ServerData",
    },
}


# What a class of a kind must be able to do; whatever else it has to be, it says when it is used.
_ABLE = {
    "algorithms": ("start", "upload", "aggregate", "payload"),
    "datasets": ("info", "check", "load"),
    "models": ("build",),
    "optimizers": ("start", "step"),
    "participation": ("weights",),
    "partitions": ("sizes", "split"),
    "schedules": ("rate",),
    "selection": ("start",),
    "server_data": ("size", "check", "draw"),
}


def names(kind: str) -> list[str]:
    """Return every name of `kind` that can be used here, ours and installed plugins', sorted."""
    return sorted({*BUILTIN[kind], *_plugins(kind)})


def lookup(kind: str, name: str) -> type[Any]:
    """Return the class called `name` among `kind`.

    Raises ScenarioError if there is none, or if a plugin cannot be imported.
    """
    if name in BUILTIN[kind]:
        module, _, attribute = BUILTIN[kind][name].partition(":")
        found: type[Any] = getattr(importlib.import_module(module), attribute)
        return found
    plugins = _plugins(kind)
    if name not in plugins:
        raise ScenarioError(f'no {kind} named "{name}"{suggestion(name, names(kind))}')
    return _load(kind, plugins[name])


def plugins(kind: str) -> list[EntryPoint]:
    """Return the entry points of installed packages that add to `kind`, sorted by name."""
    return sorted(entry_points(group=f"fedactors.{kind}"), key=lambda point: point.name)


def load(kind: str, point: EntryPoint) -> Any:
    """Import what an entry point names. Raises ScenarioError, with its name, whatever goes wrong in there."""
    try:
        return point.load()
    except Exception as error:
        raise ScenarioError(f"{called(kind, point)} cannot be imported: {type(error).__name__}: {error}") from error


def called(kind: str, point: EntryPoint) -> str:
    """Return what to call a plugin in a message: its name, where it is, and the package that brings it."""
    package = f" of the package {point.dist.name}" if point.dist else ""
    return f'plugin "{point.name}" ({point.value}){package} among {kind}'


def _plugins(kind: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in plugins(kind)}


def _load(kind: str, point: EntryPoint) -> type[Any]:
    """Return the class of a plugin. Raises ScenarioError if it cannot be one of `kind`."""
    found, who = load(kind, point), called(kind, point)
    if not (isinstance(found, type) and hasattr(found, "model_fields")):
        raise ScenarioError(f"{who} is not a class of fedactors.options.Options (accepted: a subclass of it)")
    if "name" not in found.model_fields:
        raise ScenarioError(f'{who} has no field name (accepted: name: Literal["{point.name}"] = "{point.name}")')
    default = found.model_fields["name"].default
    if default != point.name and point.name not in getattr(found.model_fields["name"].annotation, "__args__", ()):
        raise ScenarioError(f'{who} calls itself "{default}" (accepted: the name of its entry point)')
    lacking = [method for method in _ABLE.get(kind, ()) if not callable(getattr(found, method, None))]
    if lacking:
        raise ScenarioError(f"{who} cannot do {', '.join(lacking)} (accepted: a class that can, as those built in)")
    return found
