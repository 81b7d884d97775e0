"""Make the synthetic recordings behind scenarios/ruan-emerging.yaml and scenarios/papers/flexible/*-emerging.yaml.

`python make_ruan.py` writes them beside itself.

Ruan et al. (AISTATS 2021), Table 2, print the mean and deviation of the share of epochs that a Raspberry Pi finished
before a deadline, beside a competitor for its processor or behind a weak link. Nothing was recorded here. These files
hold what such a Pi may have had, and participation emerges from them, from the model's steps and from the deadline:

    share.csv   of the processor left over, a row for each of T0 … T90: alone, a device just finishes all epochs
    links.csv   bytes/s, a row for each of Thi, Tmi, Tlo: slow transfers leave less of the round for training, and in
                some stretches there is no link at all. Rates fit the transfers of one model: the MLP of 159,010
                parameters in links.csv, softmax regressions of 610 and 1,970 parameters in links-610.csv and
                links-1970.csv

A stretch lasts four rounds of 100 s. Values are the quantiles of a Beta law with the wanted moments, shuffled, so that
the moments over the whole recording are exact. The deviation is a little larger than the wanted one, because a round
that straddles two stretches sees their mean.
"""

from pathlib import Path

import numpy as np
from scipy.stats import beta

from fedactors.clock.laws import TABLE_2
from fedactors.plan import SECOND
from fedactors.traces.formats import native
from fedactors.traces.series import BYTES_PER_SECOND, PPM, SeriesRow, build

HERE = Path(__file__).parent
ROUND, STRETCH, PIECES = 100 * SECOND, 400 * SECOND, 600
WIDER = 1.045  # of the deviation: sqrt of 1 / (3/4 + 1/4 * 2/3)
PARAMETERS = {  # of the model that a file of links is for
    "links": 159_010,  # MLP 784-200-10
    "links-610": 610,  # softmax regression, 60 features
    "links-1970": 1970,  # softmax regression, 14 x 14 pixels
}
BOTH_WAYS = 2 * 4  # bytes of a parameter in float32, down and up


def quantiles(mean: float, sd: float, count: int) -> np.ndarray:
    """Return `count` values in (0, 1) with this mean and deviation."""
    size = mean * (1 - mean) / sd**2 - 1
    return beta.ppf((np.arange(count) + 0.5) / count, mean * size, (1 - mean) * size)


def row(name: str, values: np.ndarray, seed: int) -> SeriesRow:
    """Return `values` in an order drawn by `seed`, each for one stretch."""
    shuffled = np.random.Generator(np.random.Philox(seed)).permutation(values)
    return SeriesRow(name, np.arange(PIECES) * STRETCH, np.rint(shuffled).astype(np.int64), PIECES * STRETCH)


def shares() -> list[SeriesRow]:
    """Return what is left of the processor beside each competitor, in parts per million."""
    found = []
    for number, (name, (mean, sd, inactive)) in enumerate(TABLE_2.items()):
        if not inactive:
            values = quantiles(mean, WIDER * sd, PIECES) if sd else np.ones(PIECES)
            found.append(row(name, 10**6 * values, number))
    return found


def links(parameters: int) -> list[SeriesRow]:
    """Return links, in bytes/s, over which a model of so many parameters takes the wanted share of a round."""
    found = []
    for number, (name, (mean, sd, inactive)) in enumerate(TABLE_2.items()):
        if not inactive:
            continue
        dead = round(PIECES * inactive)
        m1 = mean / (1 - inactive)
        sd1 = ((mean**2 + sd**2) / (1 - inactive) - m1**2) ** 0.5
        busy = quantiles(1 - m1, WIDER * sd1, PIECES - dead)  # share of the round that transfers take
        rates = np.concatenate((np.zeros(dead), parameters * BOTH_WAYS / (busy * ROUND / SECOND)))
        found.append(row(name, np.minimum(rates, 10**8), number))
    return found


def main() -> None:
    """Write all files."""
    head = "# synthetic: made by make_ruan.py, not recorded\n"
    native.write(build(shares(), PPM), HERE / "share.csv", head)
    for name, parameters in PARAMETERS.items():
        native.write(build(links(parameters), BYTES_PER_SECOND), HERE / f"{name}.csv", head)


if __name__ == "__main__":
    main()
