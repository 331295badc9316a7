"""JSON values by the types that JSON Schema names. Nothing of the library is below."""

from __future__ import annotations

from typing import TypeGuard

from trio_agent._messages import JsonObject, JsonValue

__all__ = ["is_array", "is_object", "json_type", "same_json"]


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[JsonValue]]:
    """Whether a value is a JSON array."""
    return isinstance(value, list)


def json_type(value: JsonValue) -> str:
    """The name of a value's type; a float without a fraction is an integer, as JSON Schema has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if is_array(value) else "object"


def same_json(a: JsonValue, b: JsonValue) -> bool:
    """Whether two scalars are the same JSON value: 1 is 1.0, but ``true`` is not 1."""
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
