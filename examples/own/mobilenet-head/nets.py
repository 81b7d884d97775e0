"""MobileNetV3 for images of digits. `python nets.py` trains it on eight of the ten digits, and saves its weights."""

from functools import partial

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torchvision.models import mobilenet_v3_small


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        whole = mobilenet_v3_small(norm_layer=partial(nn.BatchNorm2d, momentum=0.1))
        self.features, self.head = whole.features, nn.Linear(576, 10)

    def train(self, mode: bool = True) -> "Net":
        super().train(mode)
        if not self.features[0][0].weight.requires_grad:
            self.features.eval()  # a frozen body normalises by the statistics that it has
        return self

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.interpolate(x.expand(-1, 3, -1, -1), size=32)
        return self.head(self.features(x).mean((2, 3)))


def pretrain(steps: int = 100) -> None:
    torch.manual_seed(0)
    images, labels = (torch.from_numpy(part) for part in load_digits(return_X_y=True))
    known = labels < 8
    images, labels = images[known].float().view(-1, 1, 8, 8) / 16, labels[known]
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.002)
    for _ in range(steps):
        chosen = torch.randint(len(labels), (32,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images[chosen]), labels[chosen]).backward()
        optimizer.step()
    torch.save(net.state_dict(), "digits-0-to-7.pt")


if __name__ == "__main__":
    pretrain()
