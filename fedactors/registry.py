"""Names that a scenario may use, and the classes behind them.

Adding an algorithm, a data set or a policy of our own is one file and one line here. Third parties add theirs
through an entry point in the group `fedactors.<kind>`, without touching this repository:

    [project.entry-points."fedactors.algorithms"]
    fedfoo = "my_package.fedfoo:FedFoo"

A scenario may also name Python files of the user's own, `plugins: [mine.py]`. What they define is known while that
scenario is read and prepared (`in_scope`), and to no other one; see `fedactors.own_plugins`.

Formats of recordings are no choice of a scenario, but come in the same way: `fedactors.formats`, instances of
`fedactors.traces.format_registry.Format`.

Classes are `Options`: their fields are what a user may write. They are imported when named, not before, and must
be importable without torch and ray, so that checking and replaying a scenario stays light.

Engines have no options: a scenario gives their name only, and they are imported where local steps are taken. They are
subclasses of `fedactors.engines.base.Engine`, listed in the order in which they are tried where no engine is named.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any

from fedactors.errors import ScenarioError, suggestion
from fedactors.plugin_checks import check

BUILTIN: dict[str, dict[str, str]] = {
    "algorithms": {
        "ditto": "fedactors.algorithms.ditto:Ditto",
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
        "sgd": "fedactors.optim.client_optimizers:SGD",
        "momentum": "fedactors.optim.client_optimizers:ClientMomentum",
        "adam": "fedactors.optim.client_optimizers:ClientAdam",
        "adamw": "fedactors.optim.client_optimizers:ClientAdamW",
        "amsgrad": "fedactors.optim.client_optimizers:AMSGrad",
        "lamb": "fedactors.optim.client_optimizers:Lamb",
    },
    "engines": {
        "dense_gram": "fedactors.engines.dense_gram:DenseGramEngine",
        "cuda_graph": "fedactors.engines.cuda_graph:CudaGraphEngine",
        "dense_batched": "fedactors.engines.dense_batched:DenseBatchedEngine",
        "conv_sequential": "fedactors.engines.conv_sequential:ConvSequentialEngine",
        "sequential": "fedactors.engines.sequential:SequentialEngine",
        "vmap": "fedactors.engines.vmap:VmapEngine",
    },
    "losses": {
        "cross_entropy": "fedactors.models.task_losses:CrossEntropyLoss",
        "nll": "fedactors.models.task_losses:NllLoss",
        "multi_margin": "fedactors.models.task_losses:MultiMarginLoss",
        "mse": "fedactors.models.task_losses:MseLoss",
        "l1": "fedactors.models.task_losses:L1Loss",
        "huber": "fedactors.models.task_losses:HuberLoss",
        "smooth_l1": "fedactors.models.task_losses:SmoothL1Loss",
        "poisson_nll": "fedactors.models.task_losses:PoissonLoss",
        "bce": "fedactors.models.task_losses:BceLoss",
        "multi_label": "fedactors.models.task_losses:MultiLabelLoss",
        "ctc": "fedactors.models.task_losses:CtcLoss",
        "torch": "fedactors.models.task_losses:TorchLoss",
    },
    "aggregations": {
        "mean": "fedactors.algorithms.aggregation:MeanAggregation",
        "median": "fedactors.algorithms.aggregation:MedianAggregation",
        "trimmed_mean": "fedactors.algorithms.aggregation:TrimmedMeanAggregation",
        "krum": "fedactors.algorithms.aggregation:KrumAggregation",
        "multi_krum": "fedactors.algorithms.aggregation:MultiKrumAggregation",
        "geometric_median": "fedactors.algorithms.aggregation:GeometricMedianAggregation",
    },
    "participation": {
        "samples": "fedactors.algorithms.participation:SampleWeights",
        "uniform": "fedactors.algorithms.participation:UniformWeights",
        "examples": "fedactors.algorithms.participation:ExampleWeights",
        "A": "fedactors.algorithms.participation:SchemeA",
        "B": "fedactors.algorithms.participation:SchemeB",
        "C": "fedactors.algorithms.participation:SchemeC",
    },
    "membership": {
        "vanilla": "fedactors.algorithms.objective:Vanilla",
        "fast-reboot": "fedactors.algorithms.objective:FastReboot",
    },
    "schedules": {
        "constant": "fedactors.optim.schedule:ConstantRate",
        "cosine": "fedactors.optim.schedule:CosineRate",
        "exponential": "fedactors.optim.schedule:ExponentialRate",
        "multistep": "fedactors.optim.schedule:MultiStepRate",
        "polynomial": "fedactors.optim.schedule:PolynomialRate",
        "ruan": "fedactors.optim.schedule:RuanRate",
        "step": "fedactors.optim.schedule:StepRate",
        "staircase": "fedactors.optim.schedule:StaircaseRate",
    },
    "timing": {
        "synchronous": "fedactors.clock.timings.base:Synchronous",
        "fedasync": "fedactors.clock.timings.fedasync:FedAsync",
        "fedbuff": "fedactors.clock.timings.fedbuff:FedBuff",
        "semi-synchronous": "fedactors.clock.timings.semi_synchronous:SemiSynchronous",
    },
    "staleness": {
        "constant": "fedactors.clock.timings.staleness:ConstantStaleness",
        "polynomial": "fedactors.clock.timings.staleness:PolynomialStaleness",
        "hinge": "fedactors.clock.timings.staleness:HingeStaleness",
    },
    "selection": {
        "uniform": "fedactors.clock.selections.base:UniformSelection",
        "samples": "fedactors.clock.selections.base:SampleSelection",
        "round-robin": "fedactors.clock.selections.base:RoundRobinSelection",
        "power-of-choice": "fedactors.clock.selections.power_of_choice:PowerOfChoice",
        "oort": "fedactors.clock.selections.oort:Oort",
    },
    "behaviours": {
        "access_point": "fedactors.clock.behaviours.access_point:AccessPoint",
        "battery": "fedactors.clock.behaviours.battery:Battery",
        "diurnal": "fedactors.clock.behaviours.diurnal:Diurnal",
    },
    "datasets": {
        "celeba": "fedactors.data.sets.celeba:CelebA",
        "cifar10": "fedactors.data.sets.cifar:Cifar10",
        "digits": "fedactors.data.sets.digits:Digits",
        "emnist": "fedactors.data.sets.emnist:Emnist",
        "clustered_ratings": "fedactors.data.sets.ratings:ClusteredRatings",
        "movielens": "fedactors.data.sets.ratings:MovieLens",
        "languages": "fedactors.data.sets.languages:Languages",
        "texts": "fedactors.data.sets.texts:Texts",
        "mnist": "fedactors.data.sets.mnist:Mnist",
        "synthetic": "fedactors.data.sets.synthetic_data:SyntheticData",
        "torch": "fedactors.data.user.torch_data:TorchData",
        "fashion_mnist": "fedactors.data.sets.torchvision_sets:TorchvisionImages",
        "kmnist": "fedactors.data.sets.torchvision_sets:TorchvisionImages",
        "cifar100": "fedactors.data.sets.torchvision_sets:TorchvisionImages",
        "svhn": "fedactors.data.sets.torchvision_sets:TorchvisionImages",
        "stl10": "fedactors.data.sets.torchvision_sets:TorchvisionImages",
        "image_folder": "fedactors.data.user.image_folder:ImageFolderData",
        "leaf": "fedactors.data.user.leaf:LeafData",
        "tff": "fedactors.data.user.tff:TffData",
        "hugging_face": "fedactors.data.user.hugging_face:HuggingFaceData",
        "csv": "fedactors.data.user.table_data:TableData",
        "parquet": "fedactors.data.user.table_data:TableData",
    },
    "models": {
        "logistic": "fedactors.models.paper_models:Logistic",
        "least_squares": "fedactors.models.paper_models:LeastSquares",
        "mlp": "fedactors.models.paper_models:Mlp",
        "2nn": "fedactors.models.paper_models:TwoNN",
        "mcmahan_2nn": "fedactors.models.paper_models:TwoNN",
        "mcmahan_cnn": "fedactors.models.paper_models:McmahanCnn",
        "fsl_emnist": "fedactors.models.paper_models:FslEmnist",
        "fsl_cifar": "fedactors.models.paper_models:FslCifar",
        "lamb_mlp": "fedactors.models.paper_models:LambMlp",
        "lamb_cnn": "fedactors.models.paper_models:LambCnn",
        "char_gru": "fedactors.models.mixed_models:CharGru",
        "dual_encoder": "fedactors.models.mixed_models:DualEncoder",
        "smile_fc": "fedactors.models.mixed_models:SmileFc",
        "lamb_cifar_cnn": "fedactors.models.paper_models:LambCifarCnn",
        "resnet9": "fedactors.models.paper_models:ResNet9",
        "torch": "fedactors.models.user_models:TorchModel",
        "torchvision": "fedactors.models.user_models:TorchvisionModel",
    },
    "partitions": {
        "iid": "fedactors.data.partitions.partition:IidPartition",
        "classes": "fedactors.data.partitions.partition:ClassPartition",
        "dirichlet": "fedactors.data.partitions.dirichlet:DirichletPartition",
        "quantity": "fedactors.data.partitions.quantity:QuantityPartition",
        "shards": "fedactors.data.partitions.shards:ShardPartition",
        "natural": "fedactors.data.partitions.natural:NaturalPartition",
    },
    "splits": {
        "labels": "fedactors.data.partitions.label_split:LabelSplit",
        "pooled": "fedactors.data.partitions.pooled:Pooled",
    },
    "update_transforms": {
        "adaptive-clip": "fedactors.transforms.adaptive_clip:AdaptiveClip",
        "clip": "fedactors.transforms.update_clipping:ClipUpdates",
        "gaussian": "fedactors.transforms.gaussian:GaussianNoise",
        "laplace": "fedactors.transforms.laplace:LaplaceNoise",
        "lowrank": "fedactors.transforms.lowrank:LowRank",
        "mask": "fedactors.transforms.mask:Mask",
        "quantize": "fedactors.transforms.quantize:Quantize",
        "randomk": "fedactors.transforms.randomk:RandomK",
        "signs": "fedactors.transforms.signs:Signs",
        "topk": "fedactors.transforms.topk:TopK",
        "tree": "fedactors.transforms.tree_noise:TreeNoise",
    },
    "transforms": {"torchvision": "fedactors.data.transforms.torchvision_transforms:TorchvisionTransforms"},
    "server_data": {
        "iid": "fedactors.data.server.server_data:IidServerData",
        "central": "fedactors.data.server.server_data:CentralServerData",
        "clients": "fedactors.data.server.server_data:ClientServerData",
        "glyphs": "fedactors.data.server.glyphs:GlyphServerData",
        "stl10": "fedactors.data.server.stl:Stl10ServerData",
    },
}


Own = Mapping[str, Mapping[str, Any]]  # by kind, then by name

_NO_OWN: Own = MappingProxyType({})
_own: ContextVar[Own] = ContextVar("_own", default=_NO_OWN)

_LONGEST_NAME = 60  # that a message shows whole


@contextmanager
def in_scope(own: Own) -> Iterator[None]:
    """Make classes of the user's files known, within the context and this thread only."""
    token = _own.set(own)
    try:
        yield
    finally:
        _own.reset(token)


def own(kind: str) -> Mapping[str, Any]:
    """Return what the files of the scenario at hand add to `kind`, by name."""
    return _own.get().get(kind, {})


def names(kind: str) -> list[str]:
    """Return every name of `kind` that can be used here, ours, the scenario's and installed plugins', sorted."""
    return sorted({*BUILTIN[kind], *own(kind), *_plugins(kind)})


def lookup(kind: str, name: str) -> type[Any]:
    """Return the class called `name` among `kind`.

    Raises ScenarioError if there is none, or if a plugin cannot be imported.
    """
    if name in BUILTIN[kind]:
        return at_path(BUILTIN[kind][name])
    if name in own(kind):
        mine: type[Any] = own(kind)[name]
        return mine
    plugins = _plugins(kind)
    if name not in plugins:
        shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
        raise ScenarioError(f'no {kind} named "{shown}"{suggestion(shown, names(kind))}')
    return _load(kind, plugins[name])


def at_path(path: str) -> type[Any]:
    """Return the class at `module:Class`."""
    module, _, attribute = path.partition(":")
    found: type[Any] = getattr(importlib.import_module(module), attribute)
    return found


def plugins(kind: str) -> list[EntryPoint]:
    """Return the entry points of installed packages that add to `kind`, sorted by name."""
    return sorted(entry_points(group=f"fedactors.{kind}"), key=lambda point: point.name)


def load(kind: str, point: EntryPoint) -> Any:
    """Import what an entry point names. Raises ScenarioError, with its name, if that fails for any reason."""
    try:
        return point.load()
    except (Exception, SystemExit) as error:
        raise ScenarioError(f"{called(kind, point)} cannot be imported: {type(error).__name__}: {error}") from error


def called(kind: str, point: EntryPoint) -> str:
    """Return what to call a plugin in a message: its name, where it is, and the package that brings it."""
    package = f" of the package {point.dist.name}" if point.dist else ""
    return f'plugin "{point.name}" ({point.value}){package} among {kind}'


def _plugins(kind: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in plugins(kind)}


def _load(kind: str, point: EntryPoint) -> type[Any]:
    """Return the class of a plugin. Raises ScenarioError if it cannot be one of `kind`."""
    found: type[Any] = load(kind, point)
    check(kind, found, called(kind, point), point.name)
    return found
