import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.func import vmap

from fedactors.models.dropout import dropped, hashed, key, mask

WORD, LONG = 2**32 - 1, 2**64 - 1
longs = st.integers(-(2**63), 2**63 - 1)


def reference(index, key, layer, step):
    """The same hash in unbounded integers: splitmix64 of key, step and layer, then lowbias32 of the index."""
    z = (key + (64 * step + layer + 1) * 0x9E3779B97F4A7C15) & LONG
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & LONG
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & LONG
    z ^= z >> 31
    x = index ^ (z & WORD)
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & WORD
    x ^= z >> 32
    x = ((x ^ (x >> 15)) * 0x846CA68B) & WORD
    return x ^ (x >> 16)


@given(longs, st.integers(0, 63), st.integers(0, 2**26), st.integers(0, WORD))
def test_hash_is_the_one_described_whether_the_step_is_a_number_or_a_tensor(key, layer, step, index):
    expected = reference(index, key, layer, step)
    for counted in (step, torch.tensor(step)):
        words = torch.tensor([index]).to(torch.int32)
        assert hashed(words, torch.tensor(key), layer, counted).item() & WORD == expected


def test_bits_of_the_finaliser_are_those_published():
    """splitmix64 seeded with 0 begins with 0xE220A8397B1DCDAF (Vigna's reference implementation)."""
    from fedactors.models.dropout import _GOLDEN, _splitmix

    assert _splitmix(torch.tensor(_GOLDEN)).item() & LONG == 0xE220A8397B1DCDAF


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.9])
def test_the_share_kept_is_the_rate_asked(rate):
    """Over 400,000 elements the share is known to sqrt(r (1 - r) / n); four times that is allowed."""
    kept = mask(400_000, rate, torch.tensor(11), 2, 0).double().mean().item()
    assert kept == pytest.approx(1 - rate, abs=4 * (rate * (1 - rate) / 400_000) ** 0.5)


def test_dropped_activations_keep_their_mean():
    x = torch.full((50, 400), 2.0)
    out = dropped(x, 0.25, torch.tensor(5), 0, 3)
    assert set(out.unique().tolist()) == {0.0, torch.tensor(2 / 0.75).item()}
    assert out.mean().item() == pytest.approx(2.0, abs=0.05)


def chi_square(a, b):
    """Return the statistic of independence of two masks, which has one degree of freedom."""
    n = a.numel()
    table = torch.tensor([[(x & y).sum() for y in (b, ~b)] for x in (a, ~a)], dtype=torch.float64)
    expected = table.sum(1, keepdim=True) * table.sum(0, keepdim=True) / n
    return ((table - expected) ** 2 / expected).sum().item()


COORDINATES = [(5, 2, 7), (6, 2, 7), (-5, 2, 7), (5 + 2**32, 2, 7), (5, 3, 7), (5, 2, 8), (5, 8, 2)]


@pytest.mark.parametrize("shift", [0, 1, 64, 1024])
def test_masks_of_other_keys_layers_and_steps_are_independent(shift):
    """Chi-square with one degree of freedom exceeds 15 with probability 1e-4; shifts find moved copies."""
    masks = [mask(60_000, 0.5, torch.tensor(k), layer, step) for k, layer, step in COORDINATES]
    for i, a in enumerate(masks):
        for b in masks[:i]:
            assert chi_square(a[shift:], b[: len(b) - shift]) < 15


@pytest.mark.parametrize("shift", [1, 2, 3, 64, 4096])
def test_elements_of_a_mask_are_independent_of_their_neighbours(shift):
    kept = mask(200_000, 0.5, torch.tensor(123), 1, 0)
    assert chi_square(kept[shift:], kept[:-shift]) < 15


def test_words_fill_their_range_evenly():
    """256 buckets of the leading byte: chi-square has the mean 255 and the standard deviation 22.6."""
    words = hashed(torch.arange(256_000, dtype=torch.int32), torch.tensor(9), 0, 0)
    counts = torch.bincount((words >> 24) & 0xFF, minlength=256).double()
    assert abs(((counts - 1000) ** 2 / 1000).sum().item() - 255) < 5 * 22.6


@given(st.lists(longs, min_size=1, max_size=5), st.integers(1, 4))
def test_a_row_has_the_same_mask_alone_and_in_a_cohort(keys, batch):
    keys, steps = torch.tensor(keys), torch.arange(len(keys))
    x = torch.ones(len(keys), batch, 3, 5)
    together = vmap(lambda x, key, step: dropped(x, 0.4, key, 1, step))(x, keys, steps)
    for row in range(len(keys)):
        assert torch.equal(together[row], dropped(x[row], 0.4, keys[row], 1, row))


def test_a_short_batch_has_the_masks_of_the_samples_that_it_has():
    x = torch.ones(8, 3, 4)
    assert torch.equal(dropped(x, 0.5, torch.tensor(1), 0, 0)[:5], dropped(x[:5], 0.5, torch.tensor(1), 0, 0))


def test_rate_zero_drops_nothing():
    x = torch.rand(4, 100)
    assert torch.equal(dropped(x, 0.0, torch.tensor(1), 0, 0), x)


def test_gradients_pass_where_activations_do():
    x = torch.ones(20, 10, requires_grad=True)
    out = dropped(x, 0.5, torch.tensor(1), 0, 0)
    out.sum().backward()
    assert torch.equal(x.grad, out)


def test_keys_are_named_streams():
    assert key(3, 1, 2) == key(3, 1, 2)
    assert len({key(seed, client, round) for seed in (0, 1) for client in (0, 1) for round in (0, 1)}) == 8
    assert torch.tensor(key(3, 1, 2)).dtype == torch.int64


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_masks_have_the_same_bits_on_cuda():
    keys, steps = torch.tensor([3, -9, 2**62]), torch.tensor([0, 5, 1000])
    masks = vmap(lambda key, step: hashed(torch.arange(100_000, dtype=torch.int32, device=key.device), key, 7, step))
    assert torch.equal(masks(keys, steps), masks(keys.cuda(), steps.cuda()).cpu())
