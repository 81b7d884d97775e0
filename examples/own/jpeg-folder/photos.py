"""A network for small photographs. `python photos.py` cuts two photographs of scikit-learn into a folder of JPEGs."""

from pathlib import Path

from PIL import Image
from sklearn.datasets import load_sample_images
from torch import Tensor, nn

SIDE = 40


class Net(nn.Module):
    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, width, 5, stride=2)
        self.second = nn.Conv2d(width, 2 * width, 3, stride=2)
        self.norm = nn.GroupNorm(2, 2 * width)
        self.head = nn.Linear(2 * width, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.gelu(self.norm(self.second(nn.functional.gelu(self.first(x)))))
        return self.head(x.mean((2, 3)))


def cut(root: Path) -> None:
    both = load_sample_images()
    for name, photo in zip(both.filenames, both.images, strict=True):
        height, width = photo.shape[0] // SIDE, photo.shape[1] // SIDE
        for place in range(height * width):
            row, column = divmod(place, width)
            part = "test" if place % 5 == 4 else "train"
            folder = root / part / Path(name).stem
            folder.mkdir(parents=True, exist_ok=True)
            patch = photo[row * SIDE : (row + 1) * SIDE, column * SIDE : (column + 1) * SIDE]
            Image.fromarray(patch).save(folder / f"{place:03}.jpg")


if __name__ == "__main__":
    cut(Path("photos"))
