import numpy as np
import pytest

from fedactors.data.partitions.sizes import LogNormal, Pareto
from fedactors.data.sets.synthetic_data import SyntheticData

SIGMA = np.arange(1, 61) ** -1.2


def clients_of(data):
    return [data.x[a:b] for a, b in zip(data.clients[:-1], data.clients[1:], strict=True)]


@pytest.mark.parametrize("samples", [100, LogNormal(cap=400), Pareto(cap=400)])
def test_data_are_what_they_announce(samples):
    option = SyntheticData(samples=samples)
    info, data = option.info(3, 12), option.load(3, 12)
    assert data.x.shape == (info.train_size, 60)
    assert data.test_x.shape == (info.test_size, 60)
    assert len(data.y) == info.train_size
    assert len(data.test_y) == info.test_size
    assert np.array_equal(np.diff(data.clients), info.client_sizes)
    assert data.x.dtype == np.float32
    assert data.y.dtype == np.int64
    assert set(data.y) <= set(range(10))


def test_nine_tenths_are_for_training():
    data = SyntheticData(samples=19).load(0, 3)
    assert np.diff(data.clients).tolist() == [17, 17, 17]  # floor(0.9 * 19)
    assert np.diff(data.test_clients).tolist() == [2, 2, 2]


def test_a_client_has_the_same_data_however_many_others_there_are():
    few, many = SyntheticData(samples=30).load(1, 3), SyntheticData(samples=30).load(1, 7)
    assert np.array_equal(few.x, many.x[: len(few.x)])
    assert np.array_equal(few.test_y, many.test_y[: len(few.test_y)])


def test_seeds_and_clients_have_data_of_their_own():
    a, b = (SyntheticData(samples=10).load(seed, 2) for seed in (0, 1))
    assert not np.array_equal(a.x, b.x)
    assert not np.array_equal(a.x[:9], a.x[9:])


def test_inputs_are_spread_as_the_covariance_says():
    x, _ = SyntheticData().client(0, 0, 20_000)
    np.testing.assert_allclose(x.var(axis=0), SIGMA, rtol=0.06)
    correlation = np.corrcoef(x.T) - np.eye(60)
    assert np.abs(correlation).max() < 0.04


def test_isotropic_inputs_are_alike_in_every_direction_and_models_still_differ():
    first, second = (SyntheticData(isotropic=True).client(0, k, 20_000) for k in (0, 1))
    for x, _ in (first, second):
        np.testing.assert_allclose(x.T @ x / len(x), np.eye(60), atol=0.05)
        assert np.abs(x.mean(0)).max() < 0.03
    shares = [np.bincount(y, minlength=10) / len(y) for _, y in (first, second)]
    assert np.abs(shares[0] - shares[1]).max() > 0.02


def means(option, clients=400):
    """Return the mean input of each client, averaged over the coordinates: B_k plus Normal(0, 1/60)."""
    return np.array([option.client(0, k, 20)[0].mean() for k in range(clients)])


@pytest.mark.parametrize(
    ("options", "deviation"),
    [
        ({"beta": 0.0}, 0.0),
        ({"beta": 2.0}, 2.0),
        ({"beta": 0.25}, 0.25),
        ({"beta": 0.25, "variance": True}, 0.5),
    ],
)
def test_beta_is_a_standard_deviation_unless_asked_otherwise(options, deviation):
    """Of 400 draws the standard deviation is known to 3.5 %; three times that is allowed."""
    expected = np.sqrt(deviation**2 + 1 / 60)
    assert means(SyntheticData(**options)).std() == pytest.approx(expected, rel=0.11)


def test_labels_follow_from_one_linear_model_per_client():
    """Labels are argmax(W x + b), without noise: a linear model fits a client's without an error."""
    x, y = SyntheticData().client(4, 2, 200)
    design = np.hstack([x, np.ones((200, 1))])
    weights = np.zeros((61, 10))
    for _ in range(3000):  # perceptron, multi-class
        guess = (design @ weights).argmax(axis=1)
        wrong = guess != y
        if not wrong.any():
            break
        weights += design[wrong].T @ (np.eye(10)[y[wrong]] - np.eye(10)[guess[wrong]])
    assert ((design @ weights).argmax(axis=1) == y).all()


def test_clients_differ_even_when_alpha_and_beta_are_zero_but_not_when_iid():
    """Inputs of an iid client have mean 0; of any other client Normal(B_k, 1) in each coordinate."""
    own = [SyntheticData(alpha=0.0, beta=0.0).client(0, k, 500)[0].mean(axis=0) for k in range(20)]
    same = [SyntheticData(iid=True).client(0, k, 500)[0].mean(axis=0) for k in range(20)]
    assert np.std(own) == pytest.approx(1, abs=0.1)
    assert np.abs(same).max() < 5 / np.sqrt(500)


def test_iid_clients_share_one_model():
    """A linear fit to one client's labels says most labels of another one, unless each has its own model."""
    assert transferred(SyntheticData(iid=True)) > 0.6
    assert transferred(SyntheticData(alpha=0.0, beta=0.0)) < 0.4


def transferred(option):
    """Return the accuracy on client 1 of a least-squares fit to client 0."""
    (x, y), (other_x, other_y) = option.client(0, 0, 6000), option.client(0, 1, 2000)
    weights = np.linalg.lstsq(np.hstack([x, np.ones((6000, 1))]), np.eye(10)[y], rcond=None)[0]
    guess = (np.hstack([other_x, np.ones((2000, 1))]) @ weights).argmax(axis=1)
    return (guess == other_y).mean()


def test_alpha_moves_no_label():
    """u_k adds u_k (sum_j x_j + 1) to the logits of all ten classes alike, so no label moves."""
    for client in range(3):
        (x, y), (same_x, same_y) = (SyntheticData(alpha=a).client(0, client, 50) for a in (0.0, 1.0))
        assert np.array_equal(x, same_x)
        assert np.array_equal(y, same_y)
