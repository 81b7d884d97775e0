"""The plans of a run folder in columns: compared many at a time, and one of them as a row where it is wanted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors.plan import Tier
from fedactors.run_files.files import TIERS, damaged
from fedactors.run_files.tables import ORDER_COLUMNS, PLAN_COLUMNS, columns_of
from fedactors.run_files.tier_table import tiers_of

CLIENT = "client "  # begins the key of an order among a plan's
_AT_ONCE = 1_024  # plans that are compared at a time

Row = dict[str, Any]


class RecordedPlans:
    """The plans in `folder` in the order of their versions, with the tier and the orders of each.

    Orders may be in any order. Raises RunFolderError if a table cannot be read, or if an order or a tier is of no plan.
    """

    def __init__(self, folder: Path) -> None:
        plans, versions = _by_version(folder / "plans.parquet", PLAN_COLUMNS)
        orders, of_orders = _by_version(folder / "orders.parquet", ORDER_COLUMNS)
        last = np.append(versions[1:] != versions[:-1], np.ones(min(1, len(versions)), bool))  # of a version
        self._plans, versions = plans.filter(last) if not last.all() else plans, versions[last]
        if len(strange := of_orders[~np.isin(of_orders, versions)]):
            raise damaged(folder / "orders.parquet", f"orders without a plan, or without {strange[0]}")
        self._orders = orders.set_column(
            orders.column_names.index("outcome"), "outcome", orders.column("outcome").cast("string")
        )
        self._begins = np.append(np.searchsorted(of_orders, versions), len(of_orders))
        self._tiers = _tiers(folder, versions)

    def __len__(self) -> int:
        return len(self._plans)

    def row(self, number: int) -> Row:
        """Return a plan with its tier; its orders by client, and by trip of those asked again, are among the keys."""
        found: Row = self._plans.slice(number, 1).to_pylist()[0]
        if number in self._tiers:
            found |= self._tiers[number]._asdict()
        trips: Counter[int] = Counter()
        for order in self._orders_of(number, number + 1).to_pylist():
            client = order.pop("client")
            trips[client] += 1
            name = f"{CLIENT}{client}, trip {trips[client]}" if trips[client] > 1 else f"{CLIENT}{client}"
            found[name] = order
        return found

    def unlike(self, other: RecordedPlans) -> Iterator[tuple[int, Row, Row]]:
        """Yield the number and both rows of every plan whose columns are not the same in two runs."""
        both = min(len(self), len(other))
        for first in range(0, both, _AT_ONCE):
            last = min(first + _AT_ONCE, both)
            if self._same(other, first, last):
                continue
            for number in range(first, last):
                if not self._same(other, number, number + 1):
                    yield number, self.row(number), other.row(number)

    def _same(self, other: RecordedPlans, first: int, last: int) -> bool:
        """Whether some plans and their orders have the same columns, and the same tiers."""
        mine, theirs = (np.diff(one._begins[first : last + 1]) for one in (self, other))
        if not np.array_equal(mine, theirs):
            return False
        if any(self._tiers.get(number) != other._tiers.get(number) for number in range(first, last)):
            return False
        plans = self._plans.slice(first, last - first), other._plans.slice(first, last - first)
        orders = self._orders_of(first, last), other._orders_of(first, last)
        return bool(plans[0].equals(plans[1]) and orders[0].equals(orders[1]))

    def _orders_of(self, first: int, last: int) -> Any:
        begin, end = self._begins[first], self._begins[last]
        return self._orders.slice(begin, end - begin)


def _tiers(folder: Path, versions: NDArray[np.int64]) -> dict[int, Tier]:
    """Return the tiers by the number of their plan among `versions`, ascending; none where a run has no edges."""
    found = dict(tiers_of(folder))
    numbers = {version: number for number, version in enumerate(versions.tolist())} if found else {}
    if strange := found.keys() - numbers.keys():
        raise damaged(folder / TIERS, f"a tier of round {min(strange) + 1}, which plans.parquet does not have")
    return {numbers[version]: tier for version, tier in found.items()}


def _by_version(path: Path, columns: tuple[str, ...]) -> tuple[Any, NDArray[np.int64]]:
    """Return a table sorted by version, rows of a version in the order of the file, and its versions."""
    table = columns_of(path, columns)
    if table.column("version").null_count:
        raise damaged(path, "a row without a version")
    versions = np.asarray(table.column("version").to_numpy())
    if (versions[1:] >= versions[:-1]).all():
        return table, versions
    order = np.argsort(versions, kind="stable")
    return table.take(order), versions[order]
