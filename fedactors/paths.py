"""Paths in scenarios: relative to the scenario's own folder, wherever the command is typed; possible names of files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

_LONGEST_NAME = 255  # bytes of one name, in every common file system
_LONGEST_PATH = 4000  # bytes; Linux has 4,095, with the folder that a relative path starts from


def impossible(path: str) -> str:
    """Return why no file can have such a path; empty if one can."""
    if "\0" in path:
        return "a path cannot hold the character NUL"
    size = len(path.encode(errors="surrogatepass"))
    if size > _LONGEST_PATH:
        return f"a path of {size:,} bytes (accepted: at most {_LONGEST_PATH:,})"
    longest = max((len(name.encode(errors="surrogatepass")) for name in path.split("/")), default=0)
    if longest > _LONGEST_NAME:
        return f"a name of {longest:,} bytes in a path (accepted: at most {_LONGEST_NAME})"
    return ""


def _possible(path: str) -> str:
    if problem := impossible(path):
        raise PydanticCustomError("value_error", "{problem}", {"problem": problem})
    return path


PathText = Annotated[str, AfterValidator(_possible)]  # a path that files can have


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
    if not isinstance(value, str) or not value:
        raise PydanticCustomError("value_error", "must be the path of a file or folder")
    _possible(value)
    try:
        return ScenarioPath(value, Path((info.context or {}).get("folder") or "."))
    except RuntimeError:  # of `expanduser`
        name = Path(value).parts[0]
        raise PydanticCustomError("value_error", "no home folder {name}", {"name": name}) from None
