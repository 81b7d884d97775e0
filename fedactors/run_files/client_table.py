"""What a run folder says of single clients, besides who they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedactors.run_files.tables import columns_of


def joules_of_clients(run: Path, clients: int) -> NDArray[np.float64] | None:
    """Return what each of so many clients has consumed, `(clients,)` J; None where that was not counted.

    It is known once a run has ended. Raises RunFolderError if the table cannot be read.
    """
    path = run / "clients.parquet"
    if not path.exists():
        return None
    table = columns_of(path)
    if "joules" not in table.column_names or table.num_rows != clients:
        return None
    found: NDArray[np.float64] = np.nan_to_num(table.column("joules").to_numpy().astype(np.float64), posinf=0, neginf=0)
    return found
