"""Convolutions of 3 x 3 by Winograd's minimal filtering F(4 x 4, 3 x 3), with a quarter of the multiplications.

Lavin & Gray 2016, "Fast Algorithms for Convolutional Neural Networks", equation 8: a tile d of 6 x 6 values gives
A^T [(G g G^T) * (B^T d B)] A, 4 x 4 results; with the sums over channels, the product is one of matrices, tiles by
channels, in each of 36 places. The backward pass is the adjoint of each factor: the gradient of the kernel needs the
transformed image, which is kept, and both gradients need the transformed error. Transforming both sides is one product
with a Kronecker square.

The paper interpolates in 0, 1, -1, 2, -2 and infinity. The square roots of 1/2 and 2 in place of 1 and 2 have a
quarter of the error in float32: 1 to 2e-6 of the largest entry, hardly more than a direct convolution.

Shapes: B samples; images are (B, channels, height, width), kernels (outputs, inputs, 3, 3). Tiles are
(row within, column within, B, rows of tiles, columns of tiles, channels); tile (r, c) is that of the results from
(4 r, 4 c) on. Grids are (B, rows of tiles, columns of tiles).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod, sqrt
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from fedactors.engines.max_pooling import maxima, spread
from fedactors.models.layers import Conv, Shape

_OUT, _IN = 4, 6  # results and values of a tile along an axis
_POINTS = (0.0, sqrt(1 / 2), -sqrt(1 / 2), sqrt(2), -sqrt(2))  # and infinity
_CHANNELS, _PRODUCTS = 32, 2048  # inputs and outputs each, and their product, at least: transforms cost, too
_TILES = 4  # of an image at least: products of few rows are slow
_WASTE = 1.3  # results worked out for each one that is wanted, at most


def pays(layer: Conv, shape: Shape) -> bool:
    """Whether a convolution of images of `shape` is quicker this way: it has channels enough, and tiles fit."""
    channels = layer.inputs, layer.outputs
    if layer.kernel != 3 or min(channels) < _CHANNELS or prod(channels) < _PRODUCTS:
        return False
    tiles = prod(_grid(shape))
    return tiles >= _TILES and tiles * _OUT**2 <= _WASTE * prod(layer.output(shape)[1:])


def laid(weight: Tensor) -> Tensor:
    """Return a copy of a kernel with its places outermost in memory, which is how `forward` reads it."""
    return weight.permute(2, 3, 0, 1).clone(memory_format=torch.contiguous_format).permute(2, 3, 0, 1)


class Kept(NamedTuple):
    """What a backward pass needs of a forward pass; it can be used once."""

    image: Tensor  # (36, tiles, inputs), transformed
    kernel: Tensor  # (36, outputs, inputs), transformed
    results: Tensor  # (16, tiles, outputs)
    pairs: Tensor | None  # of the results as windows, if maxima were taken
    grid: tuple[int, int, int]
    layer: Conv
    sides: tuple[int, int]  # of the images convolved


def forward(layer: Conv, x: Tensor, weight: Tensor, *, pooled: bool) -> tuple[Tensor, Kept]:
    """Return the convolution of `x`, or its maxima of 2 x 2 if `pooled`; images have their channels last in memory."""
    a, g, b = _kronecker()
    samples, inputs, height, width = x.shape
    sides = layer.output((inputs, height, width))[1:]
    rows, columns = _grid((inputs, height, width))
    kernel = (g @ weight.permute(2, 3, 0, 1).reshape(9, -1)).view(-1, *weight.shape[:2])
    grid = samples, rows, columns
    image = (b @ _cut(x, layer.border, grid)).view(_IN**2, prod(grid), inputs)
    results = (a @ torch.bmm(image, kernel.mT).flatten(1)).view(_OUT**2, prod(grid), -1)
    if not pooled:
        kept = Kept(image, kernel, results, None, grid, layer, (height, width))
        return _placed(results.view(_OUT, _OUT, *grid, -1), sides), kept
    most, pairs = maxima(_windows(results))
    kept = Kept(image, kernel, results, pairs, grid, layer, (height, width))
    return _placed(most.view(2, 2, *grid, -1), [side // 2 for side in sides]), kept


def backward(errors: Tensor, kept: Kept, *, wanted: bool) -> tuple[Tensor, Tensor]:
    """Return the gradient of the kernel, and the errors of what was convolved, if they are `wanted`."""
    a, g, b = _kronecker()
    _take(errors, kept)
    product = (a.T @ kept.results.flatten(1)).view(_IN**2, *kept.results.shape[1:])
    slope = g.T @ torch.bmm(product.mT, kept.image).flatten(1)
    slope = slope.view(3, 3, *kept.kernel.shape[1:]).permute(2, 3, 0, 1)
    if not wanted:
        return slope, errors
    tiles = (b.T @ torch.bmm(product, kept.kernel).flatten(1)).view(_IN, _IN, *kept.grid, -1)
    return slope, _placed(_merged(tiles, kept.layer.border), kept.sides)


def _cut(x: Tensor, border: int, grid: tuple[int, int, int]) -> Tensor:
    """Return the tiles of 6 x 6 of images, which overlap, (36, tiles * channels)."""
    ends = [_OUT * count + 2 - border - side for count, side in zip(grid[1:], x.shape[2:], strict=True)]
    padded = pad(x.permute(0, 2, 3, 1), (0, 0, border, ends[1], border, ends[0]))
    sample, row, column, channel = padded.stride()
    shape = _IN, _IN, *grid, x.shape[1]
    tiles = padded.as_strided(shape, (row, column, sample, _OUT * row, _OUT * column, channel))
    return tiles.reshape(_IN**2, -1)


def _take(errors: Tensor, kept: Kept) -> None:
    """Write the errors, with zeros for those of results that nobody wanted, into the memory of the results."""
    (samples, rows, columns), pooled = kept.grid, kept.pairs is not None
    side = _OUT // (1 + pooled)
    missing = side * rows - errors.shape[2], side * columns - errors.shape[3]
    wide = errors.permute(0, 2, 3, 1)
    if any(missing):
        wide = pad(wide, (0, 0, 0, missing[1], 0, missing[0]))
    tiles = wide.view(samples, rows, side, columns, side, -1).permute(2, 4, 0, 1, 3, 5)
    if kept.pairs is None:
        kept.results.view(tiles.shape).copy_(tiles)
    else:
        spread(tiles.reshape(2, 2, -1), _windows(kept.results), kept.pairs)


def _windows(results: Tensor) -> Tensor:
    """Return results as windows, (2, 2, 2, 2, tiles * outputs): those of a tile, beside the same of all others."""
    return results.view(2, 2, 2, 2, -1)


def _grid(shape: Shape) -> tuple[int, int]:
    """Return the rows and columns of tiles of images (channels, height, width)."""
    return -(-shape[1] // _OUT), -(-shape[2] // _OUT)


def _placed(tiles: Tensor, sides: Sequence[int]) -> Tensor:
    """Return the images of these sides, (B, channels, height, width), that tiles make up."""
    side, _, samples, rows, columns, channels = tiles.shape
    placed = tiles.permute(2, 3, 0, 4, 1, 5).reshape(samples, side * rows, side * columns, channels)
    return placed[:, : sides[0], : sides[1]].contiguous().permute(0, 3, 1, 2)


def _merged(tiles: Tensor, border: int) -> Tensor:
    """Add what tiles of 6 x 6 have in common, and return a view of those values that are each one's own."""
    for _ in range(2):
        for place in range(border):
            tiles[place + _OUT, :, :, :-1] += tiles[place, :, :, 1:]
        for place in range(border + _OUT, _IN):
            tiles[place - _OUT, :, :, 1:] += tiles[place, :, :, :-1]
        tiles = tiles[border : border + _OUT].permute(1, 0, 2, 4, 3, 5)  # the same for columns
    return tiles


@cache
def _kronecker() -> tuple[Tensor, Tensor, Tensor]:
    """Return A^T, G and B^T, each in a Kronecker product with itself: (16, 36), (36, 9) and (36, 36)."""
    a, g, b = (torch.kron(matrix, matrix).float() for matrix in transforms())
    return a, g, b


def transforms() -> tuple[Tensor, Tensor, Tensor]:
    """Return A^T, (4, 6), G, (6, 3), and B^T, (6, 6), in float64.

    Column i of A^T and row i of G hold the powers of point i, the latter divided by the product of its distances from
    the other ones; row i of B^T holds the coefficients of the polynomial that is 0 in these. The last ones belong to
    infinity: leading coefficients, and the polynomial that is 0 in all points.
    """
    points = torch.tensor(_POINTS, dtype=torch.float64)
    a, g, b = (points.new_zeros(shape) for shape in ((_OUT, _IN), (_IN, 3), (_IN, _IN)))
    for place, point in enumerate(points):
        others = torch.cat([points[:place], points[place + 1 :]])
        a[:, place] = point ** torch.arange(_OUT)
        g[place] = point ** torch.arange(3) / (point - others).prod()
        b[place] = _polynomial(others)
    a[-1, -1] = g[-1, -1] = 1
    b[-1] = _polynomial(points)
    return a, g, b


def _polynomial(roots: Tensor) -> Tensor:
    """Return the coefficients, constant first, of the polynomial with these roots and a leading 1, (6,)."""
    found = roots.new_zeros(_IN)
    found[0] = 1
    for root in roots:
        found = found.roll(1) - root * found
    return found
