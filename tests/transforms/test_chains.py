"""Lists of transforms: bytes by hand, order, what is left out, what is refused, what clients keep."""

from itertools import product

import pytest
import torch

from fedactors.errors import ScenarioError
from fedactors.transforms.adaptive_clip import AdaptiveClip
from fedactors.transforms.chain import Chain
from fedactors.transforms.gaussian import GaussianNoise
from fedactors.transforms.laplace import LaplaceNoise
from fedactors.transforms.lowrank import LowRank
from fedactors.transforms.mask import Mask
from fedactors.transforms.quantize import Quantize
from fedactors.transforms.randomk import RandomK
from fedactors.transforms.signs import Signs
from fedactors.transforms.topk import TopK
from fedactors.transforms.update_clipping import ClipUpdates
from tests.transforms.vectors import draws, layout, normal

LAYOUT = layout((100, 9), (100,))  # 1,000 values


def chain(*transforms, way="uplink", of=LAYOUT):
    return Chain(way, transforms, of)


@pytest.mark.parametrize(
    ("transforms", "expected"),
    [
        ((), 4000),
        ((TopK(share=0.01),), 10 * 4 + 13),  # ten values, and ten places of 10 bits: 12.5 bytes
        ((RandomK(share=0.01),), 10 * 4 + 8),  # and a seed
        ((Quantize(bits=8),), 1000 + 4),
        ((Quantize(bits=3),), 375 + 4),
        ((Signs(),), 125 + 4),
        ((LowRank(rank=2),), 4 * (2 * (100 + 9) + 100)),
        ((LowRank(rank=50),), 4000),  # factors would be larger
        ((ClipUpdates(norm=1.0),), 4000),
        ((Mask(frozen=["1"]),), 3600),
        ((Mask(frozen=["0"]), Quantize(bits=8)), 104),
        ((TopK(share=0.01), Quantize(bits=8)), 27),  # 80 + 100 + 32 bits: 26.5 bytes
        ((Signs(), TopK(share=0.01)), 18),  # 10 + 100 + 32 bits: 17.75 bytes
        ((Signs(), TopK(share=0.01, error_feedback=True)), 57),  # with sums of signs: 320 + 100 + 32 bits
        ((TopK(share=0.01), Quantize(bits=8), ClipUpdates(norm=1.0), GaussianNoise(multiplier=1.1)), 27),
        ((TopK(share=0.01), ClipUpdates(norm=1.0), GaussianNoise(multiplier=1.1, added="clients")), 4000),
        ((AdaptiveClip(), GaussianNoise(multiplier=1.1)), 4001),  # a bit says whether the update was short
        ((AdaptiveClip(), GaussianNoise(multiplier=1.1, added="clients")), 4001),
        ((AdaptiveClip(), LowRank(rank=2)), 4 * (2 * (100 + 9) + 100) + 1),
    ],
)
def test_bytes_by_hand(transforms, expected):
    assert chain(*transforms).bytes == expected


@pytest.mark.parametrize("order", [1, 2])
def test_no_update_is_longer_than_its_clip(order):
    rows = normal(6, 1000) * torch.tensor([[0.0], [1e-3], [1.0], [5.0], [1e3], [1e20]])
    sent, _ = chain(ClipUpdates(norm=2.0, order=order)).sent("delta", rows, {}, draws(6))
    assert sent.norm(p=order, dim=1).max() <= 2.0 * (1 + 1e-5)
    assert torch.equal(sent[:2], rows[:2])  # those that are short stay as they are
    torch.testing.assert_close(sent[3] / sent[3].norm(), rows[3] / rows[3].norm())


@pytest.mark.parametrize("size", [1e-25, 1.0, 1e25, 1e30, 1e36])
def test_norms_are_right_where_squares_are_no_numbers(size):
    """Squares of 1e25 and 1e-25 are no 32-bit numbers. Clips keep the direction, the others what they can."""
    rows = normal(2, 40) * size
    norm = min(1e-4 * size, 1e30)
    for clip in (ClipUpdates(norm=norm), ClipUpdates(norm=norm, order=1), AdaptiveClip(initial=norm)):
        sent, _ = chain(clip, of=layout((4, 10))).sent("delta", rows, {}, draws(2), {"uplink.delta.0.told": norm})
        expected = rows.double() / rows.double().norm(p=getattr(clip, "order", 2), dim=1, keepdim=True)
        torch.testing.assert_close(sent.double() / norm, expected, rtol=1e-5, atol=1e-5)
    sent, _ = chain(Quantize(bits=16), of=layout((4, 10))).sent("delta", rows, {}, draws(2))
    torch.testing.assert_close(sent / size, rows / size, rtol=0, atol=1e-3)
    flat = torch.ones(2, 40) * size  # of rank 1
    low = LowRank(rank=1, error_feedback=False)
    sent, _ = chain(low, of=layout((4, 10))).sent("delta", flat, {"uplink.delta.0.q": torch.zeros(2, 10)}, draws(2))
    torch.testing.assert_close(sent / flat, torch.ones(2, 40), rtol=1e-4, atol=0)


def test_frozen_parts_do_not_travel_and_do_not_count():
    rows = normal(2, 1000)
    sent, _ = chain(ClipUpdates(norm=0.5), Mask(frozen=["0"])).sent("delta", rows, {}, draws(2))
    assert not sent[:, :900].any()
    torch.testing.assert_close(sent[:, 900:].norm(dim=1), torch.full((2,), 0.5))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("transform", [TopK(share=0.01), RandomK(share=0.01), Signs(), ClipUpdates(norm=1.0)])
def test_a_bad_update_stays_bad_and_the_others_good(transform, value):
    rows = normal(3, 1000)
    rows[1, 7] = value
    made = chain(transform)
    kept = {name: torch.zeros(3, length) for name, length in made.keeps(["delta"]).items()}
    sent, _ = made.sent("delta", rows, kept, draws(3))
    assert sent.isfinite().all(1).tolist() == [True, False, True]


FED_BACK = [
    TopK(share=0.02, error_feedback=True),
    RandomK(share=0.02, error_feedback=True),
    Quantize(bits=8, error_feedback=True),
    Quantize(bits=4, scale="max", error_feedback=True),
    Signs(),
]
PAIRS = [  # random-k draws among all values
    pair for pair in product(FED_BACK, repeat=2) if pair[1].name != "randomk" or pair[0].name in ("quantize", "signs")
]


@pytest.mark.parametrize("way", ["uplink", "downlink"])
@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda one: one.name)
def test_no_pair_feeds_back_more_than_it_left_out(first, second, way):
    """Sum of what was sent and of both e is the sum of updates; a place that is not charged is not sent.

    Of updates of norm 32 (1,000 normal values), |e| stays below 320: the 2 % of places that random-k sends wait for 50
    messages, 32 sqrt(50) = 226.
    """
    made = chain(first, second, way=way)
    kept = {name: torch.zeros(1, length) for name, length in made.keeps(["delta"]).items()}
    total, arrived = torch.zeros(1, 1000), torch.zeros(1, 1000)
    for round in range(40):
        update = normal(1, 1000, seed=round)
        sent, kept = made.sent("delta", update, kept, draws(1, round))
        assert int(sent.count_nonzero()) <= made.wires[-1].values
        assert len(sent.abs().unique()) <= 2 ** made.wires[-1].bits + 1
        assert all(float(error.norm()) < 320 for error in kept.values())
        total, arrived = total + update, arrived + sent
    torch.testing.assert_close(arrived + sum(kept.values()), total, rtol=1e-4, atol=1e-4)


def test_what_clients_keep_is_named_by_way_vector_and_place():
    made = chain(ClipUpdates(norm=1.0), TopK(share=0.1, error_feedback=True), of=layout((3, 4), (5,)))
    assert made.keeps(["delta", "control"]) == {"uplink.delta.1.error": 17, "uplink.control.1.error": 17}


def test_noise_has_the_size_that_is_said():
    """Server: z S w; clients: z S / sqrt(over). 60,000 values: a deviation is right to 1 % (3.4 sigma)."""
    of = layout((60_000,))
    server = chain(ClipUpdates(norm=2.0), GaussianNoise(multiplier=1.5), of=of)
    found = server.received("delta", torch.zeros(60_000), draws(1), largest=0.1)
    assert float(found.std()) == pytest.approx(0.3, rel=0.01)
    rows = torch.zeros(1, 60_000)
    clients = chain(ClipUpdates(norm=2.0), GaussianNoise(multiplier=1.5, added="clients", over=9), of=of)
    assert float(clients.sent("delta", rows, {}, draws(1))[0].std()) == pytest.approx(1.0, rel=0.01)
    laplace = chain(ClipUpdates(norm=2.0, order=1), LaplaceNoise(multiplier=1.5), of=of)
    found = laplace.received("delta", torch.zeros(60_000), draws(1), largest=0.1)
    assert float(found.abs().mean()) == pytest.approx(0.3, rel=0.015)  # E |Laplace(b)| = b
    assert torch.equal(server.sent("delta", rows, {}, draws(1))[0], rows)  # clients add nothing themselves


def test_draws_are_those_of_a_client_and_a_round():
    one, other = draws(3, round=4).uniform(10), draws(2, round=4).uniform(10)
    assert torch.equal(one[:2], other)
    assert not torch.equal(one, draws(3, round=5).uniform(10))


@pytest.mark.parametrize(
    ("transforms", "way", "text"),
    [
        ((GaussianNoise(multiplier=1.0),), "uplink", "server.uplink.0: gaussian with a multiplier needs updates that"),
        ((ClipUpdates(norm=1.0), LaplaceNoise(multiplier=1.0)), "uplink", "norm: 1.0, order: 1"),
        ((GaussianNoise(deviation=1.0), TopK(share=0.1)), "uplink", "server.uplink.1: gaussian before it is applied"),
        ((TopK(share=0.1), LowRank()), "uplink", "server.uplink.1: lowrank takes whole matrices"),
        ((LowRank(), Quantize()), "uplink", "server.uplink.1: quantize works on entries"),
        ((TopK(share=0.1), RandomK(share=0.1)), "uplink", "server.uplink.1: randomk draws among all"),
        ((Quantize(bits=4, error_feedback=True),), "uplink", "server.uplink.0: levels of the norm of 1,000 values"),
        ((ClipUpdates(norm=1.0),), "downlink", "server.downlink.0: clip is for updates"),
        ((Mask(frozen=["bias"]),), "uplink", 'server.uplink.0: no tensor matches "bias"'),
        ((Mask(frozen=["*"]),), "uplink", "server.uplink.0: nothing would travel"),
    ],
)
def test_what_does_not_go_together_is_refused(transforms, way, text):
    with pytest.raises(ScenarioError, match=text.replace("(", r"\(").replace("*", r"\*")):
        chain(*transforms, way=way)
