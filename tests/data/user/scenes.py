"""A small scenario around any `task`, in a folder of its own with the user's files."""

import yaml

from fedactors.scenario.model import Scenario

SMALL = {
    "name": "small",
    "task": {},
    "population": [{"name": "phones", "count": 4}],
    "server": {"rounds": 2, "local": {"epochs": 1, "batch": 4}},
}


def scene(folder, task, count=4, **server):
    """Write and load the scenario of `task`."""
    said = SMALL | {"task": task, "population": [{"name": "phones", "count": count}]}
    said["server"] = said["server"] | server
    (folder / "small.yaml").write_text(yaml.safe_dump(said, sort_keys=False))
    return Scenario.load(folder / "small.yaml")
