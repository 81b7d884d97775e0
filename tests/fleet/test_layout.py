"""Where actors go: hosts spread, GPUs shared, the server and the central learner apart where there is room."""

from hypothesis import given
from hypothesis import strategies as st

from fedactors.fleet.chunk_placement import by_kind, ranges, spread
from fedactors.fleet.layout import Node, Want, further_kinds, layout, room, table

BESIDE = [Want(), Want(), Want()]  # server, evaluator, central learner


def nodes(*sizes):
    return [Node(f"n{number}", *size) for number, size in enumerate(sizes)]


def test_hosts_spread_over_nodes():
    placed, _ = layout(nodes((4,), (4,)), [Want(2)] * 4, BESIDE)
    assert sorted(placed) == [0, 0, 1, 1]


def test_the_server_and_the_central_learner_get_nodes_of_their_own_where_hosts_leave_some():
    placed, (server, _, central) = layout(nodes((4,), (2,), (4,), (2,)), [Want(1)] * 8, BESIDE)
    assert {server, central} == {1, 3}
    assert set(placed) == {0, 2}
    placed, (server, _, _) = layout(nodes((4,), (2,)), [Want(1)] * 4, BESIDE)
    assert (set(placed), server) == ({0}, 1)
    placed, (server, _, _) = layout(nodes((4,), (2,)), [Want(1)] * 6, BESIDE)
    assert set(placed) == {0, 1}, "hosts come first"


KINDS = [Want(1, resources={"arm": 1}), Want(1, resources={"phone": 1})]
FREE = Node("new", 4, resources={"arm": 8, "phone": 8})


def test_hosts_for_a_node_that_joins_fit_and_are_of_each_kind():
    taken = Node("old", 0)
    assert further_kinds([taken, FREE], KINDS, [0, 1], [0, 1], None) == [0, 1, 0, 1], "a core is counted once"
    assert further_kinds([taken, FREE], KINDS, [0, 1], [0, 1, 0, 1], 4) == [0, 1]
    assert further_kinds([taken, FREE], KINDS, [0], [0, 1], 2) == [1], "the one of kind 1 was lost"
    assert further_kinds([taken, FREE], KINDS, [0, 1], [0, 1], 2) == []
    assert further_kinds([taken], KINDS, [0], [0, 1], 2) == []
    assert further_kinds([Node("phones", 2, resources={"phone": 8})], KINDS, [0], [0, 1], None) == [1, 1]


def test_several_hosts_share_a_gpu_and_a_fraction_lies_on_one():
    two = nodes((8, 2), (8, 0))
    assert room(two, Want(1, 0.5)) == 4
    assert room(two, Want(1, 0.4)) == 4, "0.2 of each GPU are left, and are not enough"
    assert room(two, Want(1, 2)) == 1
    assert layout(two, [Want(1, 0.5)] * 4, BESIDE)[0] == [0] * 4
    assert layout(two, [Want(1, 0.5)] * 5, BESIDE) is None
    assert layout(two, [Want(1, 0.5)] * 3, [Want(gpus=1.0), *BESIDE[1:]]) is None, "one GPU and a half are taken"
    assert layout(two, [Want(1, 0.5)] * 2, [Want(gpus=1.0), *BESIDE[1:]])[1][0] == 0


def test_a_class_of_hosts_goes_where_its_resource_is():
    two = [Node("a", 4), Node("b", 4, resources={"arm": 2.0})]
    assert layout(two, [Want(1), Want(1, resources={"arm": 1}), Want(1, resources={"arm": 1})], BESIDE)[0][1:] == [1, 1]
    assert layout(two, [Want(1, resources={"arm": 1})] * 3, BESIDE) is None


def test_the_table_says_who_is_where():
    said = table(
        nodes((4,), (2,)), [("client host", 0, Want(1, 0.5)), ("client host", 0, Want(1, 0.5)), ("server", 1, Want())]
    )
    assert said.splitlines()[1:] == [
        "  n0               2 client hosts (1 CPU, 0.5 GPU each)",
        "  n1               1 server",
    ]


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 3)), min_size=1, max_size=5),
    st.integers(0, 12),
    st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0, 2.0]),
)
def test_what_fits_is_placed_and_nothing_is_given_twice(sizes, count, gpus):
    there, want = nodes(*sizes), Want(1, gpus)
    found = layout(there, [want] * count, BESIDE)
    assert (found is not None) == (count <= room(there, want))
    for place in found[0] if found else ():
        assert there[place].room(want)
        there[place].take(want)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=200), st.integers(1, 9), st.integers(0, 3))
def test_ranges_are_in_order_and_about_equal(costs, hosts, tries):
    places = ranges(costs, hosts, tries)
    turns = [(place - tries) % hosts for place in places]
    assert turns == sorted(turns)
    load = [sum(c for c, p in zip(costs, places, strict=True) if p == host) for host in range(hosts)]
    assert max(load) <= sum(costs) / hosts + max(costs)


def test_chunks_of_a_kind_go_to_hosts_of_that_kind():
    assert by_kind([0, 1, 0], [0, 1, 1]) == [([0, 2], [0]), ([1], [1, 2])]
    assert by_kind([2], [0, 1]) == [([0], [0, 1])], "a host of the kind was lost: any will do"
    assert sorted(spread([3, 1, 2], 2, 0)) == [0, 1, 1]


def test_cores_kept_for_the_central_learner_are_left_by_the_hosts():
    """Six hosts of two nodes of four cores would take three of each; a learner that wants two comes first then."""
    kept = [Want(), Want(), Want(2)]
    placed, (_, _, central) = layout(nodes((4,), (4,)), [Want(1)] * 6, kept)
    assert placed.count(central) == 2
    assert len(placed) == 6
    assert layout(nodes((4,), (4,)), [Want(1)] * 7, kept) is None
