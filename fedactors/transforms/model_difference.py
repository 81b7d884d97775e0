"""Differences on the downlink: Gruntkowska, Tyurin and Richtarik, EF21-P and Friends, 2023, Algorithm 1 (EF21-P); the
same messages as those of the server in DoubleSqueeze: Tang et al. 2019.

    downlink: [{name: difference}, {name: topk, share: 0.02}]

    w_0 <- x_0, sent whole ;  server, after round t:  send C(x_{t+1} - w_t) ;  w_{t+1} <- w_t + C(x_{t+1} - w_t)

w is the model that all clients have, and that they start from; C is the rest of the list. What C leaves out is in the
next difference again, so nothing else has to be fed back (x_{t+1} - w_t is DoubleSqueeze's v + delta). C must bring w
closer to x: compression that overshoots, such as random entries scaled up, is refused.

A client that has w of version b and starts from version t is sent the t - b messages in between, or the whole w_t if
that is less; so is one that has never completed a download. Adding the messages in their order gives w_t to the bit.
"""  # noqa: D205 - the citation takes two lines

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from fedactors.transforms.base import Given, UpdateTransform

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.base import Vectors


class Difference(UpdateTransform):
    """Makes messages of the downlink differences from the model that clients have."""

    down: ClassVar[bool] = True
    differs: ClassVar[bool] = True

    name: Literal["difference"] = "difference"

    def apply(self, rows: Tensor, kept: Vectors, given: Given) -> tuple[Tensor, dict[str, Tensor]]:
        """Change nothing: rows are differences already, as the server makes them of what it has sent."""
        return rows, {}
