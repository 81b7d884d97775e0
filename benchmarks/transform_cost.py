"""What a transform costs a client: processor time and bytes of one message, for models of three sizes.

    python -m benchmarks.transform_cost

One thread. The time is that of a chunk of 16 clients, random numbers included, over 16; the least of several repeats.
"""

from __future__ import annotations

import argparse
import time

import torch

from fedactors.models.layers import Flatten, Model, Relu, dense, stack
from fedactors.streams import Purpose
from fedactors.transforms.base import UpdateTransform
from fedactors.transforms.chain import Chain
from fedactors.transforms.draws import SenderDraws
from fedactors.transforms.gaussian import GaussianNoise
from fedactors.transforms.laplace import LaplaceNoise
from fedactors.transforms.lowrank import LowRank
from fedactors.transforms.quantize import Quantize
from fedactors.transforms.randomk import RandomK
from fedactors.transforms.signs import Signs
from fedactors.transforms.topk import TopK
from fedactors.transforms.update_clipping import ClipUpdates
from fedactors.transforms.wire import layout_of

CLIENTS = 16
CHAINS: dict[str, tuple[UpdateTransform, ...]] = {
    "topk 1 %": (TopK(share=0.01),),
    "topk 1 %, error feedback": (TopK(share=0.01, error_feedback=True),),
    "randomk 1 %": (RandomK(share=0.01),),
    "quantize 8 bits": (Quantize(bits=8),),
    "signs, error feedback": (Signs(),),
    "lowrank 2, error feedback": (LowRank(rank=2),),
    "clip": (ClipUpdates(norm=1.0),),
    "clip, gaussian at clients": (ClipUpdates(norm=1.0), GaussianNoise(multiplier=1.0, added="clients")),
    "clip, laplace at clients": (ClipUpdates(norm=1.0, order=1), LaplaceNoise(multiplier=1.0, added="clients")),
    "topk 1 %, quantize, clip": (TopK(share=0.01, error_feedback=True), Quantize(bits=8), ClipUpdates(norm=1.0)),
}


def models() -> list[Model]:
    """Return softmax regression and two multilayer perceptrons, of 7,850, 199,210 and 1,863,690 parameters."""
    return [
        stack("logistic", (1, 28, 28), Flatten(), dense(10)),
        stack("2nn", (1, 28, 28), Flatten(), dense(200), Relu(), dense(200), Relu(), dense(10)),
        stack("wide", (1, 28, 28), Flatten(), dense(1024), Relu(), dense(1024), Relu(), dense(10)),
    ]


def microseconds(chain: Chain, parameters: int, repeats: int) -> float:
    """Return the least processor time of a message, in us."""
    rows = torch.randn(CLIENTS, parameters, generator=torch.Generator().manual_seed(0))
    kept = {name: torch.zeros(CLIENTS, length) for name, length in chain.keeps(["delta"]).items()}
    found = []
    for repeat in range(repeats):
        draws = SenderDraws(0, Purpose.UPLINK, range(CLIENTS), [repeat] * CLIENTS)
        began = time.process_time()
        _, kept = chain.sent("delta", rows, kept, draws)
        found.append(time.process_time() - began)
    return min(found) / CLIENTS * 1e6


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description="Measure what transforms of updates cost a client.")
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    sizes = models()
    print("| transform | " + " | ".join(f"{model.parameters:,} values: us | bytes" for model in sizes) + " |")
    print("|---" * (1 + 2 * len(sizes)) + "|")
    for name, transforms in CHAINS.items():
        cells = []
        for model in sizes:
            layout = layout_of(model, torch.zeros(0, dtype=torch.int64).numpy())
            chain = Chain("uplink", transforms, layout)
            cells += [f"{microseconds(chain, model.parameters, repeats):,.0f}", f"{chain.bytes:,}"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
