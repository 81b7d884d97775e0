"""Speeches from the plays of Shakespeare, client by client, and an LSTM that foresees the next character."""

import os
from collections import Counter
from pathlib import Path

import torch
from torch import Tensor, nn

LENGTH = 32  # characters of a window
LEAST = 60  # windows of a client


def load(speakers: int = 16) -> dict[str, list[dict[str, object]]]:
    text = (Path(os.environ["FEDACTORS_DATA"]) / "tinyshakespeare" / "input.txt").read_text()
    numbers = {character: number for number, character in enumerate(sorted(set(text)))}
    lines: dict[str, list[str]] = {}
    for block in text.split("\n\n"):
        speaker, _, speech = block.partition(":\n")
        lines.setdefault(speaker.strip(), []).append(speech)
    most = [name for name, _ in Counter({name: len("\n".join(said)) for name, said in lines.items()}).most_common()]
    found: dict[str, list[dict[str, object]]] = {"train": [], "test": []}
    for name in most[:speakers]:
        ids = torch.tensor([numbers[character] for character in "\n".join(lines[name])])
        windows = ids[: len(ids) // (LENGTH + 1) * (LENGTH + 1)].view(-1, LENGTH + 1)[:LEAST]
        for place, window in enumerate(windows):
            part = "test" if place % 6 == 5 else "train"
            found[part].append({"text": window[:-1], "speaker": name, "label": window[1:]})
    return found


class CharLSTM(nn.Module):
    def __init__(self, characters: int = 65, units: int = 48) -> None:
        super().__init__()
        self.table = nn.Embedding(characters, 16)
        self.lstm = nn.LSTM(16, units, batch_first=True)
        self.out = nn.Linear(units, characters)

    def forward(self, text: Tensor) -> Tensor:
        return self.out(self.lstm(self.table(text))[0])
