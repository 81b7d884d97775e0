"""A Transformer encoder that reads the eight rows of an image as a sequence."""

import torch
from torch import Tensor, nn


class RowEncoder(nn.Module):
    def __init__(self, width: int = 32, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.rows = nn.Linear(8, width)
        self.places = nn.Parameter(torch.randn(8, width) * 0.1)
        block = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(self.rows(x.squeeze(1)) + self.places).mean(1))
