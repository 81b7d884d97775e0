"""Fields whose value is a name from the registry, with that class's own options.

    algorithm: fedavg                              # short
    algorithm: {name: fedavg, global_lr: 2}        # with options

The named class validates its options itself; errors keep the full key path. Kinds without options have a name only.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from fedactors import registry
from fedactors.errors import ScenarioError, suggestion


class Choice:
    """Annotation of a field that takes a name of one registry kind: `Annotated[Any, Choice("models")]`."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        dump = core_schema.plain_serializer_function_ser_schema(lambda value: value.model_dump(mode="json"))
        return core_schema.with_info_plain_validator_function(self._resolve, serialization=dump)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        classes = [registry.lookup(self.kind, name) for name in registry.names(self.kind)]
        short = {"enum": registry.names(self.kind)}
        described = [found.__get_pydantic_json_schema__(found.__pydantic_core_schema__, handler) for found in classes]
        return {"anyOf": [short, *described]}

    def _resolve(self, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, BaseModel):
            return value
        options = {"name": value} if isinstance(value, str) else value
        if not isinstance(options, dict) or not isinstance(options.get("name"), str):
            accepted = ", ".join(registry.names(self.kind))
            raise PydanticCustomError(
                "choice",
                "must be a name or a mapping with the key name; accepted names: {names}",
                {"names": accepted},
            )
        try:
            found = registry.lookup(self.kind, options["name"])
        except ScenarioError as error:
            raise PydanticCustomError("choice", "{message}", {"message": str(error)}) from error
        return found.model_validate(options, context=info.context)


class RegisteredName:
    """Annotation of a field that takes a name of one registry kind and no options: `Annotated[str, RegisteredName(…)]`.

    The class behind the name is not imported. The field may be null.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._known)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"enum": registry.names(self.kind)}, {"type": "null"}]}

    def _known(self, value: Any) -> str | None:
        accepted = registry.names(self.kind)
        if value is not None and value not in accepted:
            hint = suggestion(value, accepted)
            raise PydanticCustomError(
                "name", 'no {kind} named "{value}"{hint}', {"kind": self.kind, "value": str(value), "hint": hint}
            )
        return value if value is None else str(value)
