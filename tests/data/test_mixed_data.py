"""The data of mixed federated learning in the formats users have: texts, MovieLens, CelebA; and stand-ins."""

import re
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from fedactors.data.partitions.pooled import Pooled
from fedactors.data.sets.celeba import CelebA, _clients
from fedactors.data.sets.languages import Languages
from fedactors.data.sets.made_text import MadeText
from fedactors.data.sets.ratings import ClusteredRatings, MovieLens, _examples
from fedactors.data.sets.texts import Texts, read
from fedactors.errors import DataError, ScenarioError

PLAY = "First:\nabcabcabcabc\n\nSecond:\nxyzxyzxyz\nxyz\n\nFirst:\nabcabcabc\n"


def texts_of(data, options, rows):
    """Return pieces as text again."""
    characters = options._cut().characters
    return ["".join(characters[int(c)] for c in (*x, y[-1])) for x, y in zip(data.x[rows], data.y[rows], strict=True)]


def test_speakers_of_a_play_are_clients_and_pieces_do_not_overlap(tmp_path):
    (tmp_path / "play.txt").write_text(PLAY)
    (tmp_path / "central.txt").write_text("ccbbaa" * 10)
    options = Texts(federated=str(tmp_path / "play.txt"), central=str(tmp_path / "central.txt"), length=3, least=2)
    data, info = options.load(0, 2), options.info(0, 2)
    assert info.client_sizes.tolist() == np.diff(data.clients).tolist() == [4, 2]
    assert texts_of(data, options, slice(0, 4)) == ["abca", "bcab", "cabc", "\nabc"]
    assert texts_of(data, options, slice(4, 6)) == ["xyzx", "yzxy"]
    assert np.array_equal(data.y[:, :-1], data.x[:, 1:])
    assert (info.central_size, len(data.central_y)) == (13, 13)
    assert data.test_central.tolist() == [False, False, True, True]
    assert info.classes == data.classes == 7
    few = Texts(federated=str(tmp_path / "play.txt"), length=3, vocabulary=4)
    assert few.info(0, 2).classes == 4
    assert few.load(0, 2).x.max() == 3


def test_a_byte_order_mark_is_no_part_of_a_text(tmp_path):
    (tmp_path / "play.txt").write_text(PLAY)
    (tmp_path / "marked.txt").write_text("\ufeff" + PLAY, encoding="utf-8")
    assert read(tmp_path / "marked.txt") == read(tmp_path / "play.txt")


def test_a_folder_holds_one_client_per_file(tmp_path):
    for name, text in (("b", "bb" * 20), ("a", "aa" * 30), ("short", "s")):
        (tmp_path / f"{name}.txt").write_text(text)
    options = Texts(federated=str(tmp_path), length=4)
    assert options.info(0, 2).client_sizes.tolist() == [11, 7]  # a tenth of 12 and 8 pieces are for testing
    with pytest.raises(DataError, match="smaller length"):
        Texts(federated=str(tmp_path), length=1000).info(0, 2)
    with pytest.raises(DataError, match="no such file or folder"):
        Texts(federated=str(tmp_path / "nowhere")).check()
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"b\.txt cannot be read"):
        Texts(federated=str(tmp_path), length=5).info(0, 2)


def test_tiny_shakespeare_has_its_speakers(shared):
    options = Texts(federated=str(shared / "data/tinyshakespeare/input.txt"), length=100, least=9)
    info = options.info(0, 0)
    assert info.classes == 65
    assert 100 < len(info.client_sizes) <= 141
    assert len(read(shared / "data/tinyshakespeare/input.txt")) == 299


def test_a_made_up_text_stands_in_for_a_central_corpus(tmp_path):
    """As long as wanted, by Zipf's law, another language than the clients', and the same for every seed."""
    made = MadeText(characters=50_000, words=300)
    words = re.findall(r"[a-z]+", made.text().lower())
    assert len(made.text()) == 50_000
    counts = sorted(Counter(words).values(), reverse=True)
    assert counts[0] / counts[9] == pytest.approx(10, rel=0.4)
    (tmp_path / "play.txt").write_text(PLAY)
    options = Texts(federated=str(tmp_path / "play.txt"), central={"characters": 50_000}, length=3)
    assert options.info(0, 2).central_size == options.info(7, 2).central_size == 12_500 - 1_250
    assert np.array_equal(options.load(0, 2).central_x, options.load(7, 2).central_x)


def test_a_pool_holds_both_sources_at_one_client():
    data, info = Languages().load(1, 4), Languages().info(1, 4)
    pool, known = Pooled().apply(data), Pooled().info(info)
    assert len(pool.y) == known.train_size == len(data.y) + len(data.central_y)
    assert pool.clients.tolist() == [0, len(pool.y)]
    assert known.client_sizes.tolist() == [len(pool.y)]
    assert np.array_equal(pool.x, np.concatenate([data.x, data.central_x]))
    assert (known.central_size, pool.central_x) == (0, None)
    assert np.array_equal(pool.test_central, data.test_central)


def test_languages_are_markov_chains_and_a_client_does_not_depend_on_the_others():
    options = Languages(characters=5, length=30, samples=6, test=400, central=10, concentration=0.3)
    few, many = options.load(4, 2), options.load(4, 7)
    assert np.array_equal(few.x, many.x[:12])
    assert np.array_equal(few.test_x, many.test_x)
    for language, rows in ((0, ~few.test_central), (1, few.test_central)):
        counts = np.zeros((5, 5))
        np.add.at(counts, (few.test_x[rows].astype(int), few.test_y[rows]), 1)
        found = counts / np.maximum(counts.sum(1, keepdims=True), 1)
        often = counts.sum(1) > 500
        np.testing.assert_allclose(found[often], options.law(4, language)[often], atol=0.06)
        assert often.any()


def written(folder, ratings, separator, file):
    """Write ratings as GroupLens does, in no order."""
    lines = [
        separator.join(map(str, (user + 1, movie + 1, 3, 1000 + at)))
        for at, (user, movie) in enumerate(zip(ratings.user, ratings.movie, strict=True))
    ]
    (folder / file).parent.mkdir(parents=True)
    (folder / file).write_text("\n".join(lines[::-1]) + "\n")


@pytest.mark.parametrize(
    ("size", "separator", "file"), [("1m", "::", "ml-1m/ratings.dat"), ("100k", "\t", "ml-100k/u.data")]
)
def test_movielens_files_give_what_went_into_them(tmp_path, size, separator, file):
    made = ClusteredRatings(users=30, movies=50, ratings_each=12)
    written(tmp_path, made.ratings(1), separator, file)
    read = MovieLens(size=size, root=str(tmp_path))
    assert np.array_equal(read.ratings(1).movie, made.ratings(1).movie)
    clients = 30 - 6 - 2 * 2
    one, other = made.load(1, clients), read.load(1, clients)
    assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("x", "y", "test_x", "central_y"))
    info = read.info(1, clients)
    assert np.array_equal(info.client_sizes, np.diff(other.clients))
    for client in range(clients):
        mine = slice(other.clients[client], other.clients[client + 1])
        named = {*other.x[mine].ravel().astype(int).tolist(), *other.y[mine].tolist()} - {-1}
        assert len(named) == info.client_rows[client]
    (tmp_path / file).write_text(f"1{separator}9999{separator}3{separator}5\n")
    with pytest.raises(DataError, match=r"line 1.*accepted"):
        MovieLens(size=size, root=str(tmp_path), history=3)._parts(1)


def test_examples_are_the_last_movies_seen_and_the_next():
    ratings = ClusteredRatings(users=2, movies=9, ratings_each=4).ratings(0)
    x, y, user = _examples(ratings, 3)
    for client in range(2):
        seen = ratings.movie[ratings.user == client].tolist()
        expected = [([-1] * 3 + seen[:at])[-3:] for at in range(1, len(seen))]
        assert x[user == client].tolist() == expected
        assert y[user == client].tolist() == seen[1:]


def test_movielens_1m_has_the_papers_users():
    """6,040 users, a fifth central; of 4,832 a tenth for testing and for validation: 3,865 or 3,866 train."""
    parts = ClusteredRatings(users=6040, movies=30, ratings_each=2)._parts(0)
    assert (len(parts.central), len(parts.test), len(parts.train)) == (1208, 483, 3866)
    with pytest.raises(ScenarioError, match="3,866 training users"):
        ClusteredRatings(users=6040, movies=30, ratings_each=2).info(0, 10)
    with pytest.raises(DataError, match=r"ratings\.dat"):
        MovieLens(root="/nowhere").check()


@pytest.fixture
def faces(tmp_path):
    """CelebA's folder in little: 40 persons of five images and one of two; every other face smiles, and is red."""
    folder = tmp_path / "celeba"
    (folder / "img_align_celeba").mkdir(parents=True)
    persons = [person for person in range(1, 41) for _ in range(5)] + [99, 99]
    names = [f"{row:06}.jpg" for row in range(1, len(persons) + 1)]
    smiles = [row % 2 == 0 for row in range(len(persons))]
    for name, smile in zip(names, smiles, strict=True):
        Image.new("RGB", (178, 218), (255, 0, 0) if smile else (0, 0, 255)).save(folder / "img_align_celeba" / name)
    heads = "Male Smiling Young"
    rows = [f"{name} -1 {'1' if smile else '-1'}  1" for name, smile in zip(names, smiles, strict=True)]
    (folder / "list_attr_celeba.txt").write_text("\n".join([str(len(names)), heads, *rows]) + "\n")
    people = [f"{name} {person}" for name, person in zip(names, persons, strict=True)]
    (folder / "identity_CelebA.txt").write_text("\n".join(people) + "\n")
    return tmp_path


def test_celeba_keeps_smiles_at_clients_and_the_rest_central(faces):
    options = CelebA(root=str(faces), side=8)
    info, data = options.info(0, 12), options.load(0, 12)
    assert len(info.client_sizes) == 12  # 36 persons in threes
    assert np.array_equal(np.diff(data.clients), info.client_sizes)
    assert (data.y == 1).all()
    assert (data.central_y == 0).all()
    assert info.central_size == len(data.central_y) == 180 - len(data.y)
    assert len(data.test_y) == info.test_size == 20
    assert np.array_equal(data.test_central, data.test_y == 0)
    assert data.x[:, 0].min() > 0.9  # red
    assert data.central_x[:, 2].min() > 0.9  # blue
    few = CelebA(root=str(faces), side=8, persons=5).info(0, 7)
    assert (len(few.client_sizes), few.test_size) == (7, 20), "one of 36 persons is left over"
    (faces / "celeba/identity_CelebA.txt").write_text("000001.jpg\n")
    with pytest.raises(DataError, match="line 1: found 1 words"):
        CelebA(root=str(faces), side=9, persons=2).info(0, 12)
    with pytest.raises(DataError, match="celeba"):
        CelebA(root=str(faces / "celeba")).check()


def test_celeba_has_the_papers_clients():
    """9,343 persons of five images or more, and some of fewer: 8,408 train, three to a client, and 935 test."""
    person = np.concatenate([np.repeat(np.arange(9343), 5), np.repeat(np.arange(9343, 10177), 4)])
    client = _clients(person, 3)
    assert len(np.unique(client[client >= 0])) == 2802
    assert (client == -1).sum() == 5 * 935
    assert (client == -2).sum() == 4 * 834 + 5 * 2
