"""Base of everything a user may write in a scenario: strict, frozen, and closed to unknown keys."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError

from fedactors.errors import suggestion
from fedactors.option_texts import option_texts

BEGINNERS = {  # what settings are called elsewhere, and here
    "clients_per_round": ("cohort",),
    "num_clients_per_round": ("cohort",),
    "num_clients": ("count", "cohort"),
    "num_devices": ("count",),
    "number": ("count",),
    "size": ("count",),
    "num_rounds": ("rounds",),
    "learning_rate": ("lr", "schedule"),
    "server_learning_rate": ("global_lr",),
    "server_lr": ("global_lr",),
    "batch_size": ("batch", "local"),
    "local_epochs": ("epochs", "local"),
    "num_epochs": ("epochs", "local"),
    "local_steps": ("steps", "local"),
    "strategy": ("algorithm",),
}


class Options(BaseModel):
    """A frozen set of options; an unknown key or a value of the wrong type is an error, never ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe each option by the text below it in its class."""
        found = handler(schema)
        properties = handler.resolve_ref_schema(found).get("properties", {})
        for name, text in option_texts(cls).items():
            if name in properties:
                properties[name].setdefault("description", text)
        return found

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, data: Any) -> Any:
        """Name every unknown key, with the closest one that exists."""
        unknown = [key for key in data if key not in cls.model_fields] if isinstance(data, dict) else []
        if unknown:
            raise ValidationError.from_exception_data(cls.__name__, [cls._unknown(key, data[key]) for key in unknown])
        return data

    @classmethod
    def _unknown(cls, key: object, value: Any) -> InitErrorDetails:
        meant = next((own for own in BEGINNERS.get(str(key), ()) if own in cls.model_fields), None)
        accepted = ", ".join(sorted(cls.model_fields))
        hint = f'; did you mean "{meant}"? accepted: {accepted}' if meant else suggestion(key, cls.model_fields)
        return InitErrorDetails(
            type=PydanticCustomError("unknown_key", "unknown key{hint}", {"hint": hint}),
            loc=(str(key),),
            input=value,
        )

    def has_default(self, option: str) -> bool:
        """Whether an option has the value that it has where it is not written."""
        found: bool = getattr(self, option) == type(self).model_fields[option].default
        return found
