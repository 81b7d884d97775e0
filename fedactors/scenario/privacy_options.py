"""Whether the privacy of users is accounted for."""

from __future__ import annotations

from pydantic import Field

from fedactors.options import Options


class PrivacyOptions(Options):
    """Accounts for noise of `uplink` in every round: epsilon of the device that was heard most, at this delta."""

    delta: float = Field(gt=0.0, lt=1.0)
    """Well below one over the number of users, such as 1e-5."""
