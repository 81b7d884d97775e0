"""The key `plugins` of a scenario: Python files of the user, read before everything else in it is validated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, ValidationInfo
from pydantic_core import InitErrorDetails, PydanticCustomError

from fedactors.errors import ScenarioError
from fedactors.own_code.own_plugins import load_plugins

PluginFile = Annotated[str, Field(pattern=r"^.+\.py$")]


def plugins_in(data: Any, info: ValidationInfo) -> dict[str, dict[str, Any]]:
    """Return what the plugins of a scenario's data define, by kind and name.

    Raises ValidationError at the key of a file that cannot be used. A list that is not one of files defines nothing
    here, and is refused when the scenario is validated.
    """
    files = data.get("plugins") if isinstance(data, dict) else None
    if not isinstance(files, list) or not all(isinstance(one, str) and one.endswith(".py") for one in files):
        return {}
    folder = Path((info.context or {}).get("folder") or ".")
    try:
        return load_plugins(files, folder)
    except ScenarioError as error:
        problem = PydanticCustomError("value_error", "{message}", {"message": str(error)})
        details = InitErrorDetails(type=problem, loc=("plugins",), input=files)
        raise ValidationError.from_exception_data("Scenario", [details]) from error
