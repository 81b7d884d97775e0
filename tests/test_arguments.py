"""Arguments for code of the user: what arrives is what was written, and all else is one message with its key."""

import math
from datetime import date

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from fedactors.arguments import Arguments
from fedactors.errors import ScenarioError
from fedactors.scenario.model import Scenario
from tests.data.user.scenes import SMALL

ADAPTER = TypeAdapter(Arguments)
WRONG = [
    ({"sizes": {0: 5}}, "sizes: key 0 is a number (accepted: texts)"),
    ({"a": [{"b": {True: 1}}]}, "a.0.b: key True is a bool"),
    ({"since": date(2024, 1, 1)}, "since: found a date (accepted: texts, numbers, true"),
    ({"sizes": np.int64(3)}, "sizes: found a int64"),
    ({"names": {"cat"}}, "names: found a set"),
    ({"rates": [0.1, math.inf]}, "rates.1: found inf (accepted: finite numbers)"),
]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_what_json_cannot_say_is_refused(given, said):
    with pytest.raises(ValidationError) as error:
        ADAPTER.validate_python(given)
    assert said in str(error.value)


def test_what_json_can_say_comes_as_it_is():
    given = {"a": [1, 2.5, None], "b": {"c": True, "d": {}}, "e": "text"}
    assert ADAPTER.validate_python(given) == given
    assert ADAPTER.validate_python({"a": (1, (2, 3))}) == {"a": [1, [2, 3]]}


@pytest.mark.parametrize("place", ["dataset", "model", "loss", "metrics", "behaviour"])
def test_all_code_of_the_user_has_such_arguments(tmp_path, place):
    (tmp_path / "own.py").write_text("def made(**arguments): pass\n")
    own = {"factory": "own.py:made", "arguments": {"sizes": {0: 5}}}
    named = {"name": "torch", **own}
    task = {"dataset": "digits", "model": "logistic", "partition": "iid"}
    data = SMALL | {"task": task}
    if place == "metrics":
        task["metrics"] = [{"name": "mine", "higher_is_better": True, **own}]
    elif place == "behaviour":
        process = {"name": "process", "behaviour": "own.py:made", "arguments": own["arguments"]}
        data["population"] = [{"name": "phones", "count": 4, "availability": process}]
    else:
        task[place] = named
    with pytest.raises(ScenarioError, match="sizes: key 0 is a number") as error:
        Scenario.from_data(data, "own.yaml", folder=tmp_path)
    assert "arguments" in str(error.value)
    assert len(str(error.value).splitlines()) == 1
