"""What can be fetched: whose it is, under which licence, and what to cite."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fedactors.errors import UsageError, suggestion


class PublicSource(NamedTuple):
    """A data set or recording as its authors publish it."""

    about: str
    licence: str
    citation: str


_FLASH = (
    "Yang et al.: Characterizing Impacts of Heterogeneity in Federated Learning upon Large-Scale Smartphone Data,"
    " WWW 2021"
)

DATA: dict[str, PublicSource] = {
    "mnist": PublicSource(
        "handwritten digits, 12 MB",
        "not stated by the authors",
        "LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition, Proc. IEEE 1998",
    ),
    "fashion_mnist": PublicSource(
        "articles of clothing, 31 MB",
        "MIT",
        "Xiao, Rasul, Vollgraf: Fashion-MNIST, arXiv:1708.07747, 2017",
    ),
    "kmnist": PublicSource(
        "cursive Japanese characters, 21 MB",
        "CC BY-SA 4.0",
        "Clanuwat et al.: Deep Learning for Classical Japanese Literature, arXiv:1812.01718, 2018",
    ),
    "emnist": PublicSource(
        "handwritten letters and digits, 540 MB",
        "not stated by the authors; made from NIST Special Database 19",
        "Cohen, Afshar, Tapson, van Schaik: EMNIST, arXiv:1702.05373, 2017",
    ),
    "cifar10": PublicSource(
        "small photographs of 10 classes, 170 MB",
        "not stated by the authors",
        "Krizhevsky: Learning Multiple Layers of Features from Tiny Images, 2009",
    ),
    "cifar100": PublicSource(
        "small photographs of 100 classes, 170 MB",
        "not stated by the authors",
        "Krizhevsky: Learning Multiple Layers of Features from Tiny Images, 2009",
    ),
    "svhn": PublicSource(
        "house numbers, 250 MB",
        "for non-commercial use only",
        "Netzer et al.: Reading Digits in Natural Images with Unsupervised Feature Learning, 2011",
    ),
    "stl10": PublicSource(
        "photographs of 10 classes, 2.6 GB",
        "not stated by the authors",
        "Coates, Lee, Ng: An Analysis of Single-Layer Networks in Unsupervised Feature Learning, AISTATS 2011",
    ),
    "celeba": PublicSource(
        "faces, 1.4 GB; needs gdown, as it lies on Google Drive",
        "for non-commercial research only",
        "Liu, Luo, Wang, Tang: Deep Learning Face Attributes in the Wild, ICCV 2015",
    ),
    "movielens-1m": PublicSource(
        "ratings of films, 6 MB",
        "GroupLens: for research, no redistribution; see the README in it",
        "Harper, Konstan: The MovieLens Datasets, ACM TiiS 2015",
    ),
    "movielens-100k": PublicSource(
        "ratings of films, 5 MB",
        "GroupLens: for research, no redistribution; see the README in it",
        "Harper, Konstan: The MovieLens Datasets, ACM TiiS 2015",
    ),
}

TRACES: dict[str, PublicSource] = {
    "flash": PublicSource(
        "charging, WiFi, screen and lock of 1,000 phones (and of the first 60, which scenarios here use)",
        "BSD-2-Clause (the repository)",
        _FLASH,
    ),
    "flash-devices": PublicSource(
        "how fast phones compute and send",
        "BSD-2-Clause (the repository)",
        _FLASH,
    ),
    "fedscale": PublicSource(
        "speed and links of 9,242 devices",
        "MIT (the repository, FedFetch)",
        "Lai et al.: FedScale, ICML 2022",
    ),
    "fcc": PublicSource(
        "links at home (Measuring Broadband America), as Pensieve cut them",
        "MIT (the repository)",
        "Mao, Netravali, Alizadeh: Neural Adaptive Video Streaming with Pensieve, SIGCOMM 2017",
    ),
    "hsdpa": PublicSource(
        "3G links in Norway, on bus, ferry and metro",
        "not stated; a full citation is asked for",
        "Riiser, Vigmostad, Griwodz, Halvorsen: Commute Path Bandwidth Traces from 3G Networks, MMSys 2013",
    ),
    "irish-5g": PublicSource(
        "5G links in Ireland",
        "GPL-3.0 (the repository); a citation is asked for",
        "Raca et al.: Beyond Throughput, the Next Generation: a 5G Dataset, MMSys 2020",
    ),
    "lanl": PublicSource(
        "nodes of a cluster, up and down, 1995 to 2005",
        "LGPL-3.0 (the repository)",
        "Schroeder, Gibson: A large-scale study of failures in high-performance computing systems, DSN 2006",
    ),
    "latency": PublicSource(
        "round trips between 227 cities",
        "MIT (the repository)",
        "the repository github.com/sacs-epfl/plexus",
    ),
    "mahimahi": PublicSource(
        "cellular links in the USA",
        "GPL-3.0 (the repository)",
        "Netravali et al.: Mahimahi: Accurate Record-and-Replay for HTTP, USENIX ATC 2015",
    ),
    "spot": PublicSource(
        "spot instances, up and preempted",
        "not stated; a citation is asked for",
        "Wu et al.: Can't Be Late: Optimizing Spot Instance Savings under Deadlines, NSDI 2024",
    ),
}


def check_names(kind: str, wanted: Iterable[str], known: dict[str, PublicSource]) -> None:
    """Raise UsageError for the first name that is not known."""
    for name in wanted:
        if name not in known:
            raise UsageError(f'{kind} fetch: no "{name}"{suggestion(name, known)}')
