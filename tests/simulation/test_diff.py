"""Plans of two runs are compared in columns, and the rows of a plan made only where columns differ."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedactors.errors import RunFolderError
from fedactors.run_files.tables import ORDER_COLUMNS, PLAN_COLUMNS
from fedactors.simulation.inspect import recorded_plans
from fedactors.simulation.inspect.difference import _parting_plans
from fedactors.simulation.inspect.recorded_plans import RecordedPlans
from tests.examples import drawn

INTEGERS = pa.int64()
PLAN_TYPES = {"arrived": pa.list_(INTEGERS), "departed": pa.list_(INTEGERS)}
ORDER_TYPES = {"outcome": pa.dictionary(pa.int8(), pa.string())}


def plan(version, **more):
    return {**dict.fromkeys(PLAN_COLUMNS, 0), "version": version, "arrived": [], "departed": [], **more}


def order(version, client, **more):
    return {**dict.fromkeys(ORDER_COLUMNS, 0), "version": version, "client": client, "outcome": "complete", **more}


def written(folder, plans, orders):
    for name, rows, columns, types in (
        ("plans.parquet", plans, PLAN_COLUMNS, PLAN_TYPES),
        ("orders.parquet", orders, ORDER_COLUMNS, ORDER_TYPES),
    ):
        schema = pa.schema([(column, types.get(column, INTEGERS)) for column in columns])
        pq.write_table(pa.Table.from_pylist(rows, schema), Path(folder) / name)


def by_client(plans, orders):
    """Return one row for each plan, with the columns of its orders by client and trip: what a comparison is of."""
    rows = {one["version"]: dict(one) for one in plans}
    trips = Counter()
    for one in orders:
        asked = one["version"], one["client"]
        trips[asked] += 1
        name = f"client {one['client']}" + (f", trip {trips[asked]}" if trips[asked] > 1 else "")
        rows[one["version"]][name] = {key: value for key, value in one.items() if key != "client"}
    return [rows[version] for version in sorted(rows)]


def expected(one, other):
    rows = by_client(*one), by_client(*other)
    for number, (left, right) in enumerate(zip(*rows, strict=False)):
        apart = {k: [left.get(k), right.get(k)] for k in {**left, **right} if left.get(k) != right.get(k)}
        if apart:
            return {"equal_rounds": number, "first": {"round": number + 1, "apart": apart}}
    return {"equal_rounds": min(map(len, rows)), "first": None}


@st.composite
def runs(draw):
    """Return plans and orders of two runs that are alike but for a few rows, in which orders may be anywhere."""
    asked = draw(st.lists(st.lists(st.integers(0, 3), max_size=4), min_size=1, max_size=6))
    found = []
    for _ in range(2):
        rounds = draw(st.integers(max(1, len(asked) - 1), len(asked)))
        plans = [plan(k, arrived=draw(st.sampled_from([[], [], [], [2]]))) for k in range(rounds)]
        orders = [
            order(k, c, up=draw(st.sampled_from([0, 0, 0, 0, 7])), outcome=draw(st.sampled_from(["complete", "late"])))
            if draw(st.integers(0, 5)) == 0
            else order(k, c)
            for k in range(rounds)
            for c in asked[k]
        ]
        found.append((plans, draw(st.permutations(orders)) if draw(st.booleans()) else orders))
    return found


@pytest.mark.parametrize("at_once", [2, 1_024])
@drawn(100)
@given(runs())
def test_columns_part_where_rows_do(at_once, both):
    with TemporaryDirectory() as one, TemporaryDirectory() as other, pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorded_plans, "_AT_ONCE", at_once)
        for folder, tables in zip((one, other), both, strict=True):
            written(folder, *tables)
        assert _parting_plans(RecordedPlans(Path(one)), RecordedPlans(Path(other))) == expected(*both)


def test_rows_are_made_of_the_first_plan_that_differs_alone(tmp_path, monkeypatch):
    """5,000 plans of two orders, of which one differs, in plan 4,000."""
    plans = [plan(k) for k in range(5_000)]
    orders = [order(k, c, outcome="late" if k % 3 else "complete") for k in range(5_000) for c in (3, 5)]
    changed = [{**one, "up": 9} if (one["version"], one["client"]) == (4_000, 5) else one for one in orders]
    for name, rows in (("one", orders), ("other", changed)):
        (tmp_path / name).mkdir()
        written(tmp_path / name, plans, rows)
    made, row = [], RecordedPlans.row
    monkeypatch.setattr(RecordedPlans, "row", lambda self, number: made.append(number) or row(self, number))
    found = _parting_plans(*(RecordedPlans(tmp_path / name) for name in ("one", "other")))
    assert (found["equal_rounds"], list(found["first"]["apart"])) == (4_000, ["client 5"])
    assert made == [4_000, 4_000]


def test_an_order_of_no_plan_is_named(tmp_path):
    written(tmp_path, [plan(0), plan(1)], [order(0, 1), order(7, 1)])
    with pytest.raises(RunFolderError, match=r"orders\.parquet: damaged: orders without a plan, or without 7$"):
        RecordedPlans(tmp_path)
