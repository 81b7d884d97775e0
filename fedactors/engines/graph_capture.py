"""Records steps as CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable

import torch

WARM_UP = 3  # runs before a recording, in which libraries choose kernels and take what memory they keep

Step = Callable[[], None]


class GraphCapture:
    """Records steps as CUDA graphs; what passes between kernels shares memory, as no two of them run at once.

    That memory is freed with the last graph that used it; new recordings need a new `GraphCapture`.
    """

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, step: Step) -> Step:
        """Return the replay of `step`, which is run a few times."""
        here = torch.cuda.current_stream()
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(here)
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP):
                step()
        here.wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            step()
        return graph.replay
