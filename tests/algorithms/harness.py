"""Drives the halves of an algorithm in double precision, with any losses: what host and server do, without a fleet.

`gradients[i](y, step)` is the gradient that client i meets at y in local step `step` of the round; the server's own is
`central(y, step)`, and `losses[i](x)` is the loss that a trip of client i begins with. Local steps are the engine's own
(`descend`, `Descent`), and calls are made as the hosts and the server make them, so a test of an algorithm here is a
test of what runs.
"""

from types import MappingProxyType

import torch

from fedactors.engines.descent import Descent, descend
from fedactors.learning.algorithm import ClientResult, Round, TaskSetting
from fedactors.optim.client_optimizers import SGD, WHOLE


def vector(*values):
    return torch.tensor(values, dtype=torch.float64)


def local_sgd(x, lr, steps, gradient, correction=None, prox=0.0):
    """Return (y - x) after `steps` steps of LocalSGD from x."""
    y = x.clone()
    for step in range(steps if lr else 0):
        descend([y], [gradient(y, step).clone()], [x], None if correction is None else [correction], prox, lr)
    return y - x


def local_steps(optimizer, x, lr, steps, gradient, state, correction=None, prox=0.0, layers=WHOLE):
    """Return (y - x, state) after `steps` steps of any optimiser from x."""
    state = {name: state.get(name, torch.zeros_like(x)) for name in optimizer.holds}
    walk = Descent(optimizer, x, state, lr=lr, correction=correction, prox=prox, layers=layers)
    for step in range(steps if lr else 0):
        walk.step(gradient(walk.y, step).clone(), step + 1)
    return walk.y - x, walk.state


class Central:
    """The server's own loss."""

    def __init__(self, gradient=None):
        self.gradient_of = gradient

    def learn(self, x, lr, work, version, *, weight=1.0, correction=None, optimizer=None):
        if not work.wanted or (not lr and optimizer is None):
            return x

        def weighted(y, step):
            return weight * self.gradient_of(y, step)

        if optimizer is None:
            return x + local_sgd(x, lr, work.wanted, weighted, correction)
        slots = optimizer.start(x)
        for step in range(work.wanted):
            x, slots = optimizer.step(x, weighted(x, step), slots)
        return x

    def learn_and_sum(self, x, lr, work, version, *, weight, correction):
        if not work.wanted or not lr:
            return x, torch.zeros_like(x)
        moved = local_sgd(x, lr, work.wanted, lambda y, step: weight * self.gradient_of(y, step), correction)
        return x + moved, -moved / lr - work.wanted * correction

    def sample(self, x, work, version):
        return self.gradient_of(x, 0)

    def gradient(self, x):
        return self.gradient_of(x, 0)


class Federation:
    """Clients, a server and the state of one algorithm between rounds."""

    def __init__(
        self, algorithm, x, gradients, *, steps=1, lr=0.1, central=None, own=1, setting=None, members=None,
        layers=WHOLE, shares=None, losses=None,
    ):  # fmt: skip
        self.algorithm, self.gradients, self.steps, self.lr = algorithm, gradients, steps, lr
        self.central, self.layers = Central(central), layers
        self.shares = shares
        self.losses = [lambda x: 1.0] * len(gradients) if losses is None else losses
        count = len(gradients) if members is None else members
        base = {"clients": count, "cohort": count, "samples": count, "central": own, "epochs": None, "steps": steps}
        self.setting = TaskSetting(**{**base, **(setting or {})})
        self.members, self.kept, self.version = count, {}, 0
        self.state = algorithm.start(x)

    @property
    def x(self):
        return self.state["x"]

    def round(self, clients=None, steps=None, weights=None, arrived=(), departed=()):
        """Play a round with `clients` (all by default) doing `steps` each; weights are uniform by default."""
        clients = list(range(len(self.gradients))) if clients is None else list(clients)
        steps = [self.steps] * len(clients) if steps is None else list(steps)
        weights = [1 / max(len(clients), 1)] * len(clients) if weights is None else list(weights)
        sent = {name: self.state[name] for name in self.algorithm.sends}
        facts = Round(
            self.version, len(clients), sum(weights), self.lr, self.setting, self.members, tuple(arrived),
            tuple(departed), steps=sum(steps),
        )  # fmt: skip
        found = self.algorithm.contribute(self.state, facts, self.central)
        if self.algorithm.centre == "before":
            sent |= found
        sums, fresh = {}, {}
        for client, done, weight in sorted(zip(clients, steps, weights, strict=True)):
            trip = self.trip(client, done, sent)
            for name, value in self.algorithm.upload(trip).items():
                share = value * (1.0 if name in self.algorithm.unweighted else weight)
                sums[name] = sums[name] + share if name in sums else share
            fresh[client] = self.algorithm.keep(trip)
        if self.algorithm.keeps and arrived:
            self.state = self.algorithm.members_changed(self.state, facts._replace(departed=()), ())
            facts = facts._replace(members=self.members + len(arrived), arrived=())
        state = {**self.state, **(found if self.algorithm.centre == "beside" else {})}
        act = self.algorithm.aggregate if sums else None
        self.state = act(state, sums, facts, self.central) if act else self.algorithm.idle(state, facts, self.central)
        self.kept |= fresh
        if self.algorithm.keeps and departed:
            departed_states = [self.kept.pop(client) for client in departed if client in self.kept]
            self.state = self.algorithm.members_changed(self.state, facts, departed_states)
        self.members += len(arrived) - len(departed)
        self.version += 1
        return self.state["x"]

    def trip(self, client, steps, sent):
        """Return the trip of one client, as its host would."""
        x, algorithm = sent["x"], self.algorithm
        kept = self.kept.get(client, {name: torch.zeros_like(x) for name in algorithm.keeps})
        if algorithm.scales_by_share:
            sent = {**sent, "share": vector(self.shares[client])}
        correction = algorithm.correction(MappingProxyType(sent), kept)
        optimizer, gradient = algorithm.optimizer(self.setting), self.met_by(client)
        pull = {"correction": correction, "prox": algorithm.prox_of(sent)}
        if isinstance(optimizer, SGD):
            delta, state = local_sgd(x, self.lr, steps, gradient, **pull), {}
        else:
            state = algorithm.moments(sent, kept)
            delta, state = local_steps(optimizer, x, self.lr, steps, gradient, state, **pull, layers=self.layers)
        gradient = -local_sgd(x, 1.0, min(steps, 1), self.gradients[client]) if algorithm.wants_gradient else None
        own = None
        if algorithm.own_pull is not None:
            start = self.kept[client]["own"] if client in self.kept else x
            pull = {"correction": algorithm.own_pull * (start - x), "prox": algorithm.own_pull}
            own = start + local_sgd(start, self.lr, steps, self.met_by(client), **pull)
        loss = vector(self.losses[client](x)) if algorithm.wants_start_loss else None
        return ClientResult(x, delta, sent, steps, self.lr, kept, gradient, state, None, own, start_loss=loss)

    def met_by(self, client):
        """Return the gradient that a client follows: its own, weighted, and the central one if it was sent samples."""
        algorithm = self.algorithm

        def followed(y, step):
            own = algorithm.loss_weight * self.gradients[client](y, step)
            if algorithm.centre != "at clients":
                return own
            return own + algorithm.central_share * self.central.gradient_of(y, step)

        return followed

    def mean_kept(self, name, members):
        """Return the mean over `members` clients of what they keep; those never heard keep zeros."""
        return sum((kept[name] for kept in self.kept.values()), torch.zeros_like(self.x)) / members


def linear(*slope):
    """Return the gradient of <a, x>."""
    a = vector(*slope)
    return lambda y, step: a


def quadratic(matrix, target):
    """Return the gradient of (y - target)^T A (y - target) / 2."""
    return lambda y, step: matrix @ (y - target)


def noisy(gradient, seed, size=0.3):
    """Return `gradient` with noise that depends on the step only: the same batches for whoever asks."""

    def stochastic(y, step):
        draws = torch.Generator().manual_seed(1000 * seed + step)
        return gradient(y, step) + size * torch.randn(y.shape, dtype=torch.float64, generator=draws)

    return stochastic


def problem(clients, dim=4, seed=0, shared=False, spread=1.0):
    """Return (gradients, matrices, targets) of random strongly convex quadratics."""
    draws = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=draws)

    def curvature():
        root = normal(dim, dim)
        return root @ root.T / dim + 0.5 * torch.eye(dim, dtype=torch.float64)

    one = curvature()
    matrices = [one if shared else curvature() for _ in range(clients)]
    targets = [spread * normal(dim) for _ in range(clients)]
    return [quadratic(a, b) for a, b in zip(matrices, targets, strict=True)], matrices, targets


def minimiser(matrices, targets):
    """Return argmin of the plain mean of the quadratics."""
    return torch.linalg.solve(sum(matrices), sum(a @ b for a, b in zip(matrices, targets, strict=True)))


def close(found, expected, rtol=1e-10):
    torch.testing.assert_close(found, expected, rtol=rtol, atol=1e-12)
