"""A regression on a table. `python regression.py` writes the table, one of scikit-learn's, as diabetes.csv."""

from sklearn.datasets import load_diabetes
from torch import Tensor, nn


class Tabular(nn.Module):
    def __init__(self, features: int = 10) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.layers = nn.Sequential(nn.Linear(features, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, x: Tensor) -> Tensor:
        return 150 + 50 * self.layers(self.norm(x))


if __name__ == "__main__":
    load_diabetes(as_frame=True, scaled=False).frame.to_csv("diabetes.csv", index=False)
