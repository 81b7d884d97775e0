"""What an algorithm is: its base class, `base`, and what its methods are given, `inputs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedactors.learning.algorithm.base import Algorithm as Algorithm
from fedactors.learning.algorithm.inputs import UNKNOWN as UNKNOWN
from fedactors.learning.algorithm.inputs import CentralData as CentralData
from fedactors.learning.algorithm.inputs import ClientResult as ClientResult
from fedactors.learning.algorithm.inputs import Round as Round
from fedactors.learning.algorithm.inputs import TaskSetting as TaskSetting

if TYPE_CHECKING:
    from fedactors.learning.algorithm.inputs import Vectors as Vectors
