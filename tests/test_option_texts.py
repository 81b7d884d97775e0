"""The text below an option describes it in the schema, as pydantic's own option for that would."""

from pydantic import BaseModel, ConfigDict, create_model

from fedactors.option_texts import option_texts
from fedactors.options import Options


class Base(Options):
    rate: float = 0.1
    """Step of a client."""
    rounds: int = 1
    """How many rounds
    are run."""
    name: str = ""


class Derived(Base):
    rate: float = 0.2
    most: int = 3
    """The most."""

    @property
    def text(self):
        """Not an option."""


class ByPydantic(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)
    rate: float = 0.1
    """Step of a client."""
    rounds: int = 1
    """How many rounds
    are run."""
    name: str = ""


def test_texts_are_those_that_pydantic_finds():
    found = {name: field.description for name, field in ByPydantic.model_fields.items() if field.description}
    assert option_texts(Base) == found == {"rate": "Step of a client.", "rounds": "How many rounds\nare run."}


def test_texts_are_inherited_but_for_options_that_are_declared_anew():
    assert option_texts(Derived) == {"rounds": "How many rounds\nare run.", "most": "The most."}


def test_a_class_without_source_has_none_of_its_own():
    assert option_texts(create_model("Made", __base__=Base, more=(int, 1))) == option_texts(Base)


def test_the_schema_has_them():
    properties = Derived.model_json_schema()["properties"]
    assert {key: field.get("description") for key, field in properties.items()} == {
        "rate": None, "rounds": "How many rounds\nare run.", "name": None, "most": "The most.",
    }  # fmt: skip
