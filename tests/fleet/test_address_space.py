"""The size of Ray's object store under a limit on address space."""

import os
import resource

import pytest

from fedactors.errors import ClusterError
from fedactors.fleet.ray import address_space
from fedactors.fleet.ray.address_space import store_within_limit

GB = 2**30


@pytest.fixture
def limited(monkeypatch):
    """Return a function that gives this process a limit in GiB, as far as it can tell; it has 100 GB of memory free."""

    def to(gigabytes, memory=200):
        monkeypatch.setattr(resource, "getrlimit", lambda kind: (gigabytes * GB, gigabytes * GB))
        monkeypatch.setattr(os, "sysconf", {"SC_AVPHYS_PAGES": 100, "SC_PAGE_SIZE": GB}.__getitem__)
        monkeypatch.setattr(address_space, "usable_memory", lambda: memory * GB)

    return to


def test_without_a_limit_ray_chooses(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY,) * 2)
    assert store_within_limit(None) is None
    assert store_within_limit(7) == 7


def test_under_a_limit_the_store_takes_what_is_left(limited):
    limited(8)
    assert store_within_limit(None) == 3 * GB
    assert store_within_limit(2 * GB) == 2 * GB
    limited(80)
    assert store_within_limit(None) == 30 * GB, "Ray's own choice"
    limited(80, memory=20)
    assert store_within_limit(None) == 6 * GB, "of what the job may use"


@pytest.mark.parametrize(("store", "words"), [(None, "Ray needs 5.5 GB"), (2 * GB, "a smaller cluster.object_store")])
def test_a_limit_without_room_is_refused(store, words, limited):
    limited(5)
    with pytest.raises(ClusterError, match=words) as refused:
        store_within_limit(store)
    assert "found a limit of 5.4 GB (accepted: a higher limit, see `ulimit -v`" in str(refused.value)
