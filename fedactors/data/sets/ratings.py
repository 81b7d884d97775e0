"""Next-movie data from ratings: MovieLens as GroupLens ships it, and ratings that are made up with the same structure.

Source: Augenstein et al., 2022, section 5.3 and C.2.3. A user's movies, in order of time, become examples: the last
`history` movies seen, and the next one. Of the users, a share is central; the others are clients, of whom a share is
for testing and as many for validation, which are not used here. On MovieLens 1M that gives 3,865 clients.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from fedactors.data.base import Data, Float32, Info, InputPart, Int64
from fedactors.data.sets.mnist import VARIABLE
from fedactors.errors import DataError, ScenarioError
from fedactors.home import data_root
from fedactors.options import Options
from fedactors.paths import PathText
from fedactors.streams import Purpose, stream

_FILES = {"1m": ("ml-1m/ratings.dat", "::", 3952, 6040), "100k": ("ml-100k/u.data", "\t", 1682, 943)}
_USERS = -1  # entities of random streams; users are 0, 1, …
_GROUPS = -2


class Ratings(NamedTuple):
    """The ratings of all users, user after user, each user's in order of time."""

    users: int
    movies: int  # V
    user: Int64  # (n,), ascending, from 0
    movie: Int64  # (n,), from 0


class _NextMovie(Options):
    """What next-movie data sets share: how ratings become examples, and which client gets them."""

    name: str
    history: PositiveInt = 10
    """Movies of an example: the last ones seen."""
    central_share: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.2
    """Share of the users whose examples lie with the central learner."""
    test_share: Annotated[float, Field(gt=0.0, lt=0.5)] = 0.1
    """Share of the other users that are for testing; as many are for validation, and left out."""

    def ratings(self, seed: int) -> Ratings:
        """Return the ratings. Raises DataError if they cannot be read."""
        raise NotImplementedError

    def info(self, seed: int, clients: int) -> Info:
        """Return sizes; the ratings are read. Raises ScenarioError unless there is a device for each training user."""
        found, parts = self.ratings(seed), self._parts(seed)
        counts = np.maximum(np.bincount(found.user, minlength=found.users) - 1, 0)
        sizes = counts[parts.train]
        if len(sizes) != clients:
            raise ScenarioError(f'"{self.name}" has {len(sizes):,} training users, found {clients:,} devices')
        seen = np.bincount(np.unique(found.user * found.movies + found.movie) // found.movies, minlength=found.users)
        return Info(
            self.name,
            int(sizes.sum()),
            int(counts[parts.test].sum()),
            (self.history,),
            found.movies,
            client_sizes=sizes,
            central_size=int(counts[parts.central].sum()),
            client_rows=seen[parts.train],
            inputs=(InputPart("", (self.history,), integer=True),),
        )

    def load(self, seed: int, clients: int) -> Data:
        """Return the examples. Raises DataError if the ratings cannot be read."""
        found, parts = self.ratings(seed), self._parts(seed)
        x, y, user = _examples(found, self.history)
        train, test, central = (np.flatnonzero(np.isin(user, part)) for part in parts)
        bounds = np.concatenate([[0], np.cumsum(np.bincount(user, minlength=found.users)[parts.train])])
        of = (x[train], y[train], x[test], y[test], found.movies, bounds.astype(np.int64), None)
        return Data(*of, x[central], y[central])

    def _parts(self, seed: int) -> _Parts:
        """Return which users train, test and are central, each ascending."""
        order = stream(seed, Purpose.PARTITION, _USERS).permutation(self.ratings(seed).users)
        held = round(self.central_share * len(order))
        tested = round(self.test_share * (len(order) - held))
        rest = order[held:]
        return _Parts(np.sort(rest[2 * tested :]), np.sort(rest[:tested]), np.sort(order[:held]))


class _Parts(NamedTuple):
    train: Int64
    test: Int64
    central: Int64


class MovieLens(_NextMovie):
    """MovieLens 1M or 100k (Harper and Konstan 2015), from the files that GroupLens ships."""

    name: Literal["movielens"] = "movielens"
    size: Literal["1m", "100k"] = "1m"
    root: PathText | None = None
    """Folder that holds ml-1m/ratings.dat or ml-100k/u.data; else the environment variable FEDACTORS_DATA names it."""

    def check(self) -> None:
        """Look for the file. Raises DataError if it is missing."""
        self._path()

    def ratings(self, seed: int) -> Ratings:
        """Return the ratings, the same for every seed. Raises DataError if the file cannot be read."""
        _, separator, movies, _ = _FILES[self.size]
        path = self._path()
        return _read(path, path.stat().st_mtime_ns, separator, movies)

    def _path(self) -> Path:
        file = _FILES[self.size][0]
        given = data_root(self.root)
        path = Path(given).expanduser() / file if given else None
        if path is None or not path.is_file():
            where = f"{given} has no {file}" if given else "no folder given"
            ways = f'set "root" or the environment variable {VARIABLE} to a folder with {file}'
            ways += f", or fetch it: fedactors data fetch movielens-{self.size}"
            raise DataError(f"movielens: {where}; {ways}")
        return path


@lru_cache(maxsize=2)
def _read(path: Path, changed: int, separator: str, movies: int) -> Ratings:
    """Read lines of user, movie, rating and seconds, anew when the file has `changed`.

    Raises DataError, naming the line, if one is something else.
    """
    try:
        lines = path.read_text(encoding="latin-1").splitlines()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    rows = [_rating(path, number, line, separator, movies) for number, line in enumerate(lines, 1)]
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    table = table[np.lexsort((table[:, 1], table[:, 2], table[:, 0]))]
    names, users = np.unique(table[:, 0], return_inverse=True)
    return Ratings(len(names), movies, users.astype(np.int64), table[:, 1] - 1)


def _rating(path: Path, number: int, line: str, separator: str, movies: int) -> tuple[int, int, int]:
    """Return (user, movie, seconds) of a line."""
    try:
        user, movie, _, seconds = line.split(separator)
        found = int(user), int(movie), int(seconds)
    except ValueError:
        found = (0, 0, 0)
    if not 1 <= found[1] <= movies:
        accepted = separator.join(("user", f"movie (1 to {movies})", "rating", "seconds")).replace("\t", "\\t")
        raise DataError(f'{path}, line {number}: found "{line[:60]}", accepted: {accepted}')
    return found


class ClusteredRatings(_NextMovie):
    """Made-up ratings: every user likes one group of movies best, and some movies are seen by more than others."""

    name: Literal["clustered_ratings"] = "clustered_ratings"
    users: PositiveInt = 200
    movies: PositiveInt = 400
    groups: PositiveInt = 10
    """Groups of movies, of about equal size."""
    ratings_each: PositiveInt = 60
    """Movies that a user has seen on average; numbers are drawn by Poisson's law, at least 2."""
    loyalty: Annotated[float, Field(ge=0.0, le=1.0)] = 0.8
    """Chance that the next movie is of the user's own group."""

    def check(self) -> None:
        """Look for nothing: the ratings are made."""

    def ratings(self, seed: int) -> Ratings:
        """Return the ratings; those of one user do not depend on how many others there are."""
        return _made(self, seed)


@lru_cache(maxsize=4)
def _made(options: ClusteredRatings, seed: int) -> Ratings:
    draws = stream(seed, Purpose.DATASET, _GROUPS)
    group, liking = draws.integers(options.groups, size=options.movies), draws.pareto(1.5, options.movies) + 0.5
    movies = [_seen(options, stream(seed, Purpose.DATASET, user), group, liking) for user in range(options.users)]
    user = np.repeat(np.arange(options.users, dtype=np.int64), [len(seen) for seen in movies])
    return Ratings(options.users, options.movies, user, np.concatenate(movies))


def _seen(options: ClusteredRatings, draws: np.random.Generator, group: Int64, liking: NDArray[np.float64]) -> Int64:
    """Return the movies of one user in order, none twice."""
    count = min(max(2, int(draws.poisson(options.ratings_each))), options.movies)
    own = group == draws.integers(options.groups)
    weights = np.where(own, options.loyalty / max(liking[own].sum(), 1e-9), 0.0)
    weights += np.where(own, 0.0, (1 - options.loyalty) / max(liking[~own].sum(), 1e-9))
    chances = weights * liking + 1e-12
    return draws.choice(options.movies, count, replace=False, p=chances / chances.sum()).astype(np.int64)


def _examples(ratings: Ratings, history: int) -> tuple[Float32, Int64, Int64]:
    """Return (movies seen `(n, history)`, -1 where there are fewer; the next one `(n,)`; whose `(n,)`), in order."""
    begins = np.searchsorted(ratings.user, ratings.user)  # of each rating's user
    at = np.arange(len(ratings.user))
    later = at > begins
    places = at[later][:, None] - np.arange(history, 0, -1)
    seen = np.where(places >= begins[later][:, None], ratings.movie[np.maximum(places, 0)], -1)
    return seen.astype(np.float32), ratings.movie[later], ratings.user[later]
