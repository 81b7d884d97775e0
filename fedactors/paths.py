"""Paths in scenarios: relative to the scenario's own folder, wherever the command is typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema


class ScenarioPath:
    """A file or folder that a scenario names; `path` is absolute, `text` what the user wrote.

    In a pydantic model the annotation is the class itself. The folder comes with the validation context, as `folder`;
    without one, the current folder counts.
    """

    def __init__(self, text: str, folder: Path) -> None:
        self.text = text
        self.path = (folder / Path(text).expanduser()).absolute()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"ScenarioPath({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScenarioPath) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(
            _validated,
            serialization=core_schema.plain_serializer_function_ser_schema(str),
            metadata={"pydantic_js_functions": [lambda schema, _: {"type": "string"}]},
        )


def _validated(value: Any, info: ValidationInfo) -> ScenarioPath:
    if isinstance(value, ScenarioPath):
        return value
    if not isinstance(value, str) or not value or "\0" in value:
        raise PydanticCustomError("value_error", "must be the path of a file or folder")
    return ScenarioPath(value, Path((info.context or {}).get("folder") or "."))
