"""ResNet-18 of torchvision as a user writes it; in a file of its own, which a scenario names."""

from torch import nn
from torchvision.models import resnet18


def network() -> nn.Module:
    """Return it with GroupNorm: peers that average parameters alone would lose the statistics of BatchNorm."""
    return resnet18(num_classes=10, norm_layer=lambda channels: nn.GroupNorm(32, channels))
