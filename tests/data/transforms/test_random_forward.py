"""A module of the user that augments in its `forward`, in training mode: drawn anew, the same bits at each run."""

from fedactors.simulation.runner import run
from tests.data.user.scenes import scene

MODULES = """
import torch
from torch import nn

class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(64, 10)
    def forward(self, x):
        return self.out(x.flatten(1))

class Flipping(Plain):
    def forward(self, x):
        if self.training:
            flipped = torch.rand(len(x), 1, 1, 1, device=x.device) < 0.5
            x = torch.where(flipped, x.flip(-1), x)
        return super().forward(x)
"""


def digests(folder, module, out):
    (folder / "nets.py").write_text(MODULES)
    model = {"name": "torch", "factory": f"nets.py:{module}"}
    scenario = scene(folder, {"dataset": "digits", "model": model, "partition": "iid"})
    return run(scenario, folder / out, fleet="local", report=False).summary["digests"]


def test_random_flips_in_forward_change_the_training_and_repeat(tmp_path):
    first, again = (digests(tmp_path, "Flipping", out) for out in ("a", "b"))
    assert first == again
    plain = digests(tmp_path, "Plain", "c")
    assert plain["plans"] == first["plans"]
    assert plain["model"] != first["model"]
