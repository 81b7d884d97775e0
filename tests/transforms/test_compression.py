"""Laws of compression: unbiased by enumeration, contraction, feedback's telescoping sum, PowerSGD written again."""

from itertools import combinations

import numpy as np
import pytest
import torch
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import _orthogonalize

from fedactors.streams import Purpose
from fedactors.transforms.draws import shared_normal
from fedactors.transforms.lowrank import LowRank, orthogonal
from fedactors.transforms.quantize import Quantize
from fedactors.transforms.randomk import RandomK
from fedactors.transforms.signs import Signs
from fedactors.transforms.topk import TopK
from fedactors.transforms.wire import Wire
from tests.transforms.vectors import Chosen, draws, given, layout, normal, zeros

WIDE = layout((40, 30), (30,), (8, 3, 5, 5))


def test_topk_keeps_what_torch_finds_largest():
    rows = normal(5, WIDE.size)
    sent, kept = TopK(share=0.01).apply(rows, {}, given(WIDE, 5))
    assert kept == {}
    for row, found in zip(rows, sent, strict=True):
        by_size = sorted(range(len(row)), key=lambda place: -abs(float(row[place])))
        largest = set(by_size[: round(0.01 * len(row))])
        assert set(found.nonzero()[:, 0].tolist()) == largest
        assert all(found[place] == row[place] for place in largest)


def test_randomk_is_unbiased_over_all_choices():
    """All 10 pairs of 5 places: each is as likely, so their plain mean is the expectation."""
    row, small = normal(1, 5), layout((5,))
    transform = RandomK(share=0.4)
    pairs = [torch.tensor([pair]) for pair in combinations(range(5), 2)]
    known = given(small)
    found = [transform.apply(row, {}, known._replace(draws=Chosen(pair)))[0] for pair in pairs]
    torch.testing.assert_close(torch.stack(found).mean(0), row)


@pytest.mark.slow
def test_randomk_draws_each_place_as_often():
    places = draws(20_000).chosen(6, 2)
    counts = np.bincount(places.flatten().numpy(), minlength=6)
    assert all(len(set(pair)) == 2 for pair in places.tolist())
    deviation = np.sqrt(20_000 * 1 / 3 * 2 / 3)
    assert np.abs(counts - 20_000 / 3).max() < 4.5 * deviation


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("scale", ["l2", "max"])
def test_quantisation_is_unbiased_over_all_draws(bits, scale):
    """Rounding goes up where u < the fraction: over u = (i + 1/2) / n, all as likely, the mean is right to 1/(2n)."""
    row, count = normal(1, 12), 4096
    u = ((torch.arange(count) + 0.5) / count)[:, None].expand(count, 12)
    transform = Quantize(bits=bits, scale=scale)
    sent, _ = transform.apply(row.expand(count, 12), {}, given(layout((12,)))._replace(draws=Chosen(u)))
    unit = float(row.norm() if scale == "l2" else row.abs().max()) / (2 ** (bits - 1) - 1)
    assert (sent.double().mean(0) - row[0]).abs().max() < unit / (2 * count) + 1e-6


def test_quantised_values_are_levels_and_fit_their_bits():
    row = normal(1, 500)
    sent, _ = Quantize(bits=4).apply(row, {}, given(layout((500,))))
    levels = sent / (row.norm() / 7)
    torch.testing.assert_close(levels, levels.round())
    assert levels.abs().max() <= 7
    zero, _ = Quantize(bits=4).apply(torch.zeros(1, 500), {}, given(layout((500,))))
    assert not zero.any()


def test_the_variance_of_quantisation_is_below_the_bound_of_the_paper():
    """Lemma 3.1 (iii): E |Q(v) - v|^2 <= min(n / s^2, sqrt(n) / s) |v|^2."""
    row, n, levels = normal(1, 64), 64, 7
    sent, _ = Quantize(bits=4).apply(row.expand(2000, n), {}, given(layout((n,)), 2000))
    error = (sent - row).square().sum(1).mean()
    assert error <= min(n / levels**2, np.sqrt(n) / levels) * row.square().sum()


def test_signs_worked_by_hand():
    """P = (3, -1, 0, 2): |p|_1 / 4 = 1.5; zero counts as positive; what is left is p minus that."""
    transform, rows = Signs(), torch.tensor([[3.0, -1.0, 0.0, 2.0]])
    small = layout((4,))
    sent, kept = transform.apply(rows, zeros(transform, small), given(small))
    assert sent.tolist() == [[1.5, -1.5, 1.5, 1.5]]
    assert kept["error"].tolist() == [[1.5, 0.5, -1.5, 0.5]]
    sparse, _ = Signs(error_feedback=False).apply(rows, {}, given(small, wire=Wire(3)))
    assert sparse.tolist() == [[2.0, -2.0, 0.0, 2.0]]


ALL = [
    TopK(share=0.02, error_feedback=True),
    RandomK(share=0.2, error_feedback=True),
    Quantize(bits=4, error_feedback=True),
    Signs(),
    LowRank(rank=2),
]


@pytest.mark.parametrize("transform", ALL, ids=lambda one: one.name)
def test_what_was_sent_and_what_is_left_is_the_sum_of_updates(transform):
    """Telescoping: sum_t C(p_t) + e_T = sum_t u_t, for three clients and twelve messages."""
    kept, total, arrived = zeros(transform, WIDE, 3), torch.zeros(3, WIDE.size), torch.zeros(3, WIDE.size)
    for round in range(12):
        update = normal(3, WIDE.size, seed=round)
        sent, kept = transform.apply(update, kept, given(WIDE, 3, round))
        total += update
        arrived += sent
        assert not torch.equal(sent, update)
    torch.testing.assert_close(arrived + kept["error"], total, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("transform", ALL, ids=lambda one: one.name)
def test_a_row_does_not_depend_on_the_rows_beside_it(transform):
    rows = normal(4, WIDE.size)
    together, _ = transform.apply(rows, zeros(transform, WIDE, 4), given(WIDE, 4))
    again, _ = transform.apply(rows[:2], zeros(transform, WIDE, 2), given(WIDE, 2))
    torch.testing.assert_close(together[:2], again, rtol=1e-6, atol=1e-6)


def powersgd(matrix, error, q):
    """Return (what arrives, error, Q) of Algorithm 1 with one worker, by numpy's QR in place of Gram and Schmidt."""
    whole = matrix + error
    p, _ = np.linalg.qr(whole @ q)
    q = whole.T @ p
    return p @ q.T, whole - p @ q.T, q


def test_lowrank_is_powersgd():
    """Ten steps, in double precision: P Q^T is a projection on the columns of P, whatever their signs."""
    transform, only = LowRank(rank=3), layout((20, 15))
    kept = {name: value.double() for name, value in zeros(transform, only).items()}
    q = shared_normal(3, Purpose.UPLINK, 45).double().reshape(15, 3).numpy()
    error = np.zeros((20, 15))
    for round in range(10):
        update = normal(1, 300, seed=round).double()
        sent, kept = transform.apply(update, kept, given(only, round=round))
        expected, error, q = powersgd(update.reshape(20, 15).numpy(), error, q)
        np.testing.assert_allclose(sent.reshape(20, 15).numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(kept["error"].reshape(20, 15).numpy(), error, rtol=1e-5, atol=1e-6)


def test_columns_are_made_orthogonal_as_torch_does_it():
    columns = normal(3, 20, 4).double()
    expected = columns.clone()
    _orthogonalize(expected, epsilon=1e-8)
    found = orthogonal(columns)
    torch.testing.assert_close(found @ found.transpose(1, 2), expected @ expected.transpose(1, 2), rtol=1e-6, atol=1e-6)


def test_a_matrix_of_low_rank_arrives_whole():
    transform, only = LowRank(rank=2, error_feedback=False), layout((12, 9), (5,))
    matrix = normal(1, 12, 2) @ normal(1, 2, 9, seed=1)
    rows = torch.cat([matrix.flatten(1), normal(1, 5)], 1)
    sent, _ = transform.apply(rows, zeros(transform, only), given(only))
    torch.testing.assert_close(sent, rows, rtol=1e-4, atol=1e-4)
    assert torch.equal(sent[:, -5:], rows[:, -5:])  # a vector travels as it is


def messages(updates, transform, only):
    """Return what arrives of updates that one sender sends one after the other, `(messages, values)`."""
    kept, found = zeros(transform, only), []
    for round, update in enumerate(updates):
        sent, kept = transform.apply(update, kept, given(only, round=round))
        found.append(sent)
    return torch.cat(found)


def test_a_matrix_that_once_did_not_change_travels_again_beside_one_that_did():
    transform, two = LowRank(rank=2, error_feedback=False), layout((20, 20), (20, 20))
    one = (normal(1, 20, 2) @ normal(1, 2, 20, seed=1)).flatten(1)
    still = torch.zeros_like(one)
    sent = messages([torch.cat([still, one], 1), torch.cat([one, still], 1), torch.cat([one, one], 1)], transform, two)
    torch.testing.assert_close(sent[0, 400:], one[0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(sent[1], torch.cat([one, still], 1)[0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(sent[2], torch.cat([one, one], 1)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("norm", [1e15, 1e4, 1.0, 1e-4, 1e-8, 1e-20, 1e-30])
@pytest.mark.parametrize("rank", [1, 2, 4, 8])
def test_a_matrix_of_a_lower_rank_arrives_whole_whatever_its_norm(rank, norm):
    """Its product with Q has columns that those before them span: nothing is left of them but what is rounded off."""
    transform, only = LowRank(rank=rank, error_feedback=False), layout((30, 20))
    row = (normal(1, 30, 1) @ normal(1, 1, 20, seed=1)).flatten(1)
    row = row / row.norm() * norm
    sent = messages([row] * 4, transform, only) / norm
    torch.testing.assert_close(sent, (row / norm).expand(4, -1), rtol=1e-5, atol=1e-6)


def test_a_bad_number_in_a_matrix_is_not_lost():
    transform, only = LowRank(rank=2), layout((12, 9))
    for bad in (float("nan"), float("inf")):
        row = normal(1, 108)
        row[0, 40] = bad
        assert not transform.apply(row, zeros(transform, only), given(only))[0].isfinite().all()
