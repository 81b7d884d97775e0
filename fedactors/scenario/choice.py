"""Fields whose value is a name from the registry, with that class's own options.

    algorithm: fedavg                              # short
    algorithm: {name: fedavg, global_lr: 2}        # with options

The named class validates its options itself; errors keep the full key path.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from fedactors import registry
from fedactors.errors import ScenarioError


class Choice:
    """Annotation of a field that takes a name of one registry kind: `Annotated[Any, Choice("models")]`.

    An `optional` one may also be null.
    """

    def __init__(self, kind: str, *, optional: bool = False) -> None:
        self.kind, self.optional = kind, optional

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        dump = core_schema.plain_serializer_function_ser_schema(lambda value: value and value.model_dump(mode="json"))
        return core_schema.with_info_plain_validator_function(self._resolve, serialization=dump)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        classes = [registry.lookup(self.kind, name) for name in registry.names(self.kind)]
        short = {"enum": registry.names(self.kind)}
        nothing: list[JsonSchemaValue] = [{"type": "null"}] if self.optional else []
        return {"anyOf": [short, *(handler(found.__pydantic_core_schema__) for found in classes), *nothing]}

    def _resolve(self, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, BaseModel) or (value is None and self.optional):
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
