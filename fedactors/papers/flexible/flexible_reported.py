"""The numbers that tables 3, 4 and 5 of Ruan et al. (AISTATS 2021) print."""

from __future__ import annotations

# points of accuracy (B - A, C - B) for |T| = 1 ... 8
TABLE_3: dict[tuple[str, str], list[tuple[float, float]]] = {
    ("MNIST", "IID"): [
        (-0.6, 0.3), (1.9, 0.1), (5.6, 0.1), (8.3, 0.7), (10.4, 2.6), (14.0, 2.2), (5.8, 1.9), (11.8, 2.4),
    ],
    ("MNIST", "NIID"): [
        (0.2, -0.3), (9.5, 1.8), (19.3, 1.6), (33.8, 3.3), (33.2, 3.2), (28.7, 6.2), (36.0, 3.6), (43.4, 6.9),
    ],
    ("EMNIST", "IID"): [
        (0.7, -0.6), (0.9, 0.1), (4.2, 0.7), (4.8, 1.0), (6.9, 1.1), (6.6, 1.2), (4.0, 1.5), (7.6, 1.2),
    ],
    ("EMNIST", "NIID"): [
        (-0.1, -0.7), (17.0, -2.0), (34.2, 1.8), (37.9, 4.8), (30.2, 2.5), (22.5, 3.0), (25.3, 2.2), (18.6, 1.8),
    ],
    ("SYNTHETIC", "IID"): [
        (-0.6, 0.5), (2.1, 0.1), (6.6, 0.0), (9.0, 0.7), (11.6, 3.0), (16.4, 2.5), (6.3, 1.9), (14.4, 2.8),
    ],
    ("SYNTHETIC", "NIID"): [
        (0.1, -0.4), (9.6, 1.5), (22.2, 1.8), (38.2, 3.2), (33.3, 3.9), (30.5, 7.9), (37.9, 4.5), (41.6, 8.0),
    ],
}  # fmt: skip

# rounds until the accuracy is back (fast, vanilla), by tau_0
TABLE_4 = {
    "MNIST": {10: (4, 4), 30: (22, 27), 50: (55, 63), 70: (59, 66)},
    "EMNIST": {10: (4, 3), 30: (11, 12), 50: (14, 19), 70: (21, 24)},
    "SYNTHETIC": {10: (1, 1), 30: (4, 6), 50: (7, 12), 70: (3, 8)},
}

_TAUS = range(10, 51, 5)
# rounds until excluding is no worse than including, by a of SYNTHETIC(a, a) and tau_0
TABLE_5 = {
    0.1: dict(zip(_TAUS, (2, 5, 3, 3, 9, 3, 10, 26, 40), strict=True)),
    0.5: dict(zip(_TAUS, (1, 3, 9, 14, 13, 7, 12, 36, 34), strict=True)),
    1.0: dict(zip(_TAUS, (10, 9, 27, 18, 34, 17, 28, 62, 77), strict=True)),
}
