import gzip
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError

from fedactors.data.readers.image_parquet import ParquetImages
from fedactors.data.sets.cifar import Cifar10
from fedactors.data.sets.emnist import Emnist
from fedactors.data.sets.mnist import VARIABLE
from fedactors.errors import DataError
from tests.data.test_datasets import SHARED, idx

real_cifar, real_emnist = (
    pytest.mark.skipif(
        not (SHARED / name).is_dir(), reason=f"no {name} in {SHARED}; FEDACTORS_SHARED names the folder above"
    )
    for name in ("cifar10", "emnist-balanced")
)


def pictures(n, side=28, channels=1, seed=0):
    """Return random images, `(n, channels, side, side)`."""
    return np.random.default_rng(seed).integers(0, 256, (n, channels, side, side), dtype=np.uint8)


def encoded(image, kind="PNG"):
    buffer = io.BytesIO()
    Image.fromarray(image[0] if len(image) == 1 else image.transpose(1, 2, 0)).save(buffer, kind)
    return buffer.getvalue()


def write_parquet(path, images, labels, column="image", struct=True):
    cells = [{"bytes": encoded(i), "path": None} if struct else encoded(i) for i in images]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())]) if struct else pa.binary()
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({column: pa.array(cells, kind), "label": pa.array(labels)}), path)
    return path


def write_nist(root, images, labels, split="balanced", packed=True):
    """Write the four files as NIST does: images on their side, letters counted from 1, gzipped."""
    raw = root / "EMNIST" / "raw"
    raw.mkdir(parents=True)
    for part in ("train", "test"):
        lying = images[:, 0].transpose(0, 2, 1)
        for kind, array in (("images-idx3", lying), ("labels-idx1", labels + (split == "letters"))):
            name = f"emnist-{split}-{part}-{kind}-ubyte"
            content = idx(array)
            if packed:
                (raw / f"{name}.gz").write_bytes(gzip.compress(content))
            else:
                (raw / name).write_bytes(content)
    return raw


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("split", ["balanced", "letters"])
def test_nist_images_are_set_upright_and_labels_count_from_0(tmp_path, packed, split):
    images, labels = pictures(6), np.array([3, 0, 25, 1, 1, 9])
    write_nist(tmp_path, images, labels, split, packed)
    option = Emnist(root=str(tmp_path), split=split)
    info, data = option.info(0, 1), option.load(0, 1)
    assert np.array_equal(data.x, images.astype(np.float32) / 255)
    assert data.test_y.tolist() == labels.tolist()
    assert (info.train_size, info.input_shape, info.classes) == (6, (1, 28, 28), data.classes)


def test_torchvision_reads_the_same_nist_files(tmp_path):
    from torchvision.datasets import EMNIST

    images, labels = pictures(4), np.array([0, 46, 7, 7])
    write_nist(tmp_path, images, labels, packed=False)
    theirs, ours = EMNIST(tmp_path, split="balanced", train=True), Emnist(root=str(tmp_path)).load(0, 1)
    assert np.array_equal(theirs.data.numpy().transpose(0, 2, 1) / np.float32(255), ours.x[:, 0])
    assert theirs.targets.tolist() == ours.y.tolist()


def test_images_in_parquet_stay_as_they_are(tmp_path):
    images, labels = pictures(5), np.array([4, 0, 2, 46, 4])
    for part in ("train", "test"):
        write_parquet(tmp_path / "data" / f"{part}-00000-of-00001.parquet", images, labels)
    data = Emnist(root=str(tmp_path)).load(0, 1)
    assert np.array_equal(data.x, images.astype(np.float32) / 255)
    assert data.y.tolist() == labels.tolist()


@given(st.sets(st.integers(0, 11), max_size=12), st.booleans())
def test_any_rows_of_any_shards_are_found(tmp_path_factory, rows, struct):
    folder = tmp_path_factory.mktemp("shards")
    images, labels = pictures(12, 4, 3), np.arange(12)
    cuts = [(0, 5), (5, 6), (6, 12)]
    files = tuple(write_parquet(folder / f"{a}.parquet", images[a:b], labels[a:b], "img", struct) for a, b in cuts)
    source, wanted = ParquetImages(files, files, "RGB", 4), np.array(sorted(rows), dtype=np.int64)
    pixels, found = source.read(lambda labels: wanted, train=True)
    assert np.array_equal(pixels, images[wanted])
    assert np.array_equal(found, wanted)
    assert np.array_equal(source.labels()[1], labels)


@given(st.integers(1, 47), st.none() | st.integers(1, 40), st.none() | st.integers(1, 40))
def test_what_is_kept_is_what_was_announced(small_emnist, classes, train_limit, test_limit):
    option = Emnist(root=small_emnist, classes=classes, train_limit=train_limit, test_limit=test_limit)
    info = option.info(0, 1)
    if info.train_size == 0:
        return
    data = option.load(0, 1)
    assert data.y.max(initial=0) < classes == data.classes
    assert len(data.y) == min(info.train_size, train_limit or 99)
    assert info.class_counts == tuple(np.bincount(data.y, minlength=classes))


@pytest.fixture(scope="module")
def small_emnist(tmp_path_factory):
    root = tmp_path_factory.mktemp("emnist")
    labels = np.random.default_rng(0).integers(0, 47, 30)
    for part in ("train", "test"):
        write_parquet(root / f"{part}.parquet", pictures(30), labels)
    return str(root)


@pytest.mark.slow
@real_emnist
def test_the_real_cut_of_emnist_is_upright_and_found_below_the_root(monkeypatch):
    monkeypatch.setenv(VARIABLE, str(SHARED))
    option = Emnist(classes=45)
    info, data = option.info(0, 1), option.load(0, 1)
    assert (info.train_size, info.test_size, info.class_counts) == (15_300, 2_700, (340,) * 45)
    assert data.x.shape == (15_300, 1, 28, 28)
    seven = data.x[data.y == 7].mean(axis=0)[0]  # its bar is above, not on the left
    assert seven[4:10].sum() > 1.5 * seven[18:24].sum()
    assert seven[:, 4:14].sum() < seven[:, 14:24].sum()


def test_sizes_are_the_published_ones_where_there_is_no_file():
    info = Emnist(root="/nowhere", classes=45, test_limit=10_000).info(0, 1)
    assert (info.train_size, info.test_size, info.class_counts) == (108_000, 10_000, (2_400,) * 45)
    assert Emnist(root="/nowhere", classes=45).info(0, 1).test_size == 18_000
    assert Emnist(split="byclass", root="/nowhere").info(0, 1).train_size == 697_932
    limited = Cifar10(root="/nowhere", train_limit=40_000).info(0, 1)
    assert (limited.train_size, limited.class_counts) == (40_000, None)
    with pytest.raises(DataError, match=r"only its files tell how large 10 labels are; set \"root\""):
        Emnist(split="byclass", root="/nowhere", classes=10).info(0, 1)


def test_more_labels_than_the_split_has_are_refused():
    with pytest.raises(ValidationError, match=r"classes: found 48, accepted: at most 47 of balanced"):
        Emnist(classes=48)


@pytest.mark.parametrize(
    ("option", "layouts"),
    [(Emnist, r"EMNIST/raw/emnist-balanced-.*parquet"), (Cifar10, r"cifar-10-batches-py/.*parquet")],
)
def test_what_was_looked_for_is_said(option, layouts, monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(DataError, match=rf'no folder given; set "root" .* FEDACTORS_DATA .*{layouts}'):
        option().check()
    with pytest.raises(DataError, match=rf"{tmp_path.name} has none of its files; .*{layouts}"):
        option(root=str(tmp_path)).load(0, 1)


def broken(tmp_path, what):
    """Return a folder of two Parquet files, of which the training file is broken in one way."""
    images, labels = pictures(2), np.array([0, 1])
    write_parquet(tmp_path / "test.parquet", images, labels)
    path = tmp_path / "train.parquet"
    if what == "bytes":
        path.write_bytes(b"PAR1 no, not really")
    elif what == "rename":
        write_parquet(path, images, labels, column="picture")
    elif what == "labels":
        write_parquet(path, images, ["a", "b"])
    elif what == "null":
        write_parquet(path, images, [0, None])
    elif what == "range":
        write_parquet(path, images, [0, 47])
    elif what == "side":
        write_parquet(path, pictures(2, 27), labels)
    elif what == "image":
        cells = pa.array([encoded(images[0]), encoded(images[1])[:60]])
        pq.write_table(pa.table({"img": cells, "label": labels}), path)
    elif what == "shard":
        write_parquet(tmp_path / "train-00001-of-00003.parquet", images, labels)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("bytes", r"train.parquet cannot be read: .*; accepted: a Parquet file"),
        ("rename", r"has no column of images; found picture: struct.*, label: int64; accepted: img or image"),
        ("labels", r'train.parquet: column "label" is string; accepted: integers'),
        ("null", r"train.parquet: 1 rows have no label"),
        ("range", r'"emnist": found labels from 0 to 47, accepted 0 to 46'),
        ("side", r"train.parquet, row 0: found 27 x 27 pixels; accepted: a PNG or JPEG image of 28 x 28"),
        ("image", r"train.parquet, row 1: .*; accepted: a PNG or JPEG image"),
        ("shard", r"has no train-00000-of-00003.parquet, train-00002-of-00003.parquet; accepted: all 3"),
        ("nothing", r"has test\*.parquet but no train\*.parquet; accepted: both"),
    ],
)
def test_broken_parquet_is_told_with_file_and_row(tmp_path, what, message):
    with pytest.raises(DataError, match=message):
        Emnist(root=broken(tmp_path, what)).load(0, 1)


def damage(raw: Path, what: str):
    images = raw / "emnist-balanced-train-images-idx3-ubyte.gz"
    whole = gzip.decompress(images.read_bytes())
    if what == "missing":
        images.unlink()
    elif what == "packed":
        images.write_bytes(images.read_bytes()[:-20])
    elif what == "short":
        images.write_bytes(gzip.compress(whole[:-1]))
    elif what == "empty":
        images.write_bytes(gzip.compress(b""))
    elif what == "magic":
        images.write_bytes(gzip.compress(idx(np.zeros(300))))
    elif what == "fewer":
        images.write_bytes(gzip.compress(idx(np.zeros((2, 28, 28)))))


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("missing", r"raw has no emnist-balanced-train-images-idx3-ubyte \(or .gz\); accepted: all four"),
        ("packed", r"idx3-ubyte.gz cannot be read: "),
        ("short", r"idx3-ubyte.gz: found 2,367 bytes, accepted: 2,368, as its header says"),
        ("empty", r"idx3-ubyte.gz: found 0 bytes, accepted: IDX"),
        (
            "magic",
            r"found magic number 2049, accepted: IDX, unsigned bytes with 3 axes \(magic number 2051\)",
        ),
        ("fewer", r"found images of shape \(2, 28, 28\), accepted \(3, 28, 28\)"),
    ],
)
def test_broken_nist_files_are_named(tmp_path, what, message):
    damage(write_nist(tmp_path, pictures(3), np.array([0, 1, 2])), what)
    with pytest.raises(DataError, match=message):
        Emnist(root=str(tmp_path)).load(0, 1)
