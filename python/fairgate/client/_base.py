"""What the generated documents are made of."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

__all__ = ["Input", "Model", "Tagged", "Value"]


class Model(BaseModel):
    """A document of the API. Members that this version does not know are left out: a run may be newer."""

    # Members that are keywords of Python have an underscore here: `from_` is `from` of the document.
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, protected_namespaces=())


class Input(Model):
    """A document that is also sent. A misspelt member is refused where it is written."""

    @model_validator(mode="before")
    @classmethod
    def _has_known_members(cls, data: Any, info: ValidationInfo) -> Any:
        # What a run sends is JSON.
        if info.mode == "python" and isinstance(data, dict):
            known = {name for field, of in cls.model_fields.items() for name in (field, of.alias)}
            for name in data:
                if name not in known:
                    raise ValueError(f"{cls.__name__} has no `{name}`; it has {', '.join(cls.model_fields)}")
        return data


class Tagged(Model):
    """A document with an entity tag."""

    etag: str = Field(default="", exclude=True)
    """Names what was read, for `if_match`: then a change is made only if nobody else has made one since."""


def _value(value: Any) -> Any:
    """Return the number or flag of a state variable, which the document has with its kind."""
    if value == "unset":
        return None
    if isinstance(value, dict) and len(value) == 1:
        return next(iter(value.values()))
    return value


# A count, a length or a state; a time in nanoseconds; true or false; None if there is no value yet.
Value = Annotated[int | bool | None, BeforeValidator(_value)]
