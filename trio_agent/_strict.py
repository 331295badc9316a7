"""The form of a schema that providers demand for strict decoding: closed objects, every property required.

A property that may be left out becomes one that may be null; coercion drops such a null again, so that the tool sees no
difference. Pure; ``_tools.py`` is above.
"""

from __future__ import annotations

from trio_agent._errors import ToolDefinitionError
from trio_agent._json_values import is_array, is_object, json_type
from trio_agent._messages import JsonObject, JsonValue
from trio_agent._schema_nodes import type_names

__all__ = ["strict_schema"]


def strict_schema(schema: JsonObject, tool_name: str) -> JsonObject:
    """The strict form of a schema.

    Raises:
        ToolDefinitionError: the schema has an object with free keys, which has no strict form.
    """
    strict = _strict(schema, tool_name, "root")
    assert is_object(strict)  # a schema that is a dict stays one
    return strict


def _strict(schema: JsonValue, tool_name: str, path: str) -> JsonValue:
    if not is_object(schema):
        return schema
    strict = {key: rule for key, rule in schema.items() if key != "default"}
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if is_array(parts := schema.get(keyword)):
            strict[keyword] = [_strict(part, tool_name, f"{path}.{keyword}.{i}") for i, part in enumerate(parts)]
    if "items" in schema:
        strict["items"] = _strict(schema["items"], tool_name, f"{path}.items")
    for keyword in ("$defs", "definitions"):
        if is_object(definitions := schema.get(keyword)):
            strict[keyword] = {name: _strict(part, tool_name, f"{path}.{name}") for name, part in definitions.items()}
    if "object" in type_names(schema) or "properties" in schema:
        _close(strict, tool_name, path)
    return strict


def _close(schema: JsonObject, tool_name: str, path: str) -> None:
    properties = schema.get("properties", {})
    free = schema.get("additionalProperties", bool(not properties and path != "root"))
    if free not in (False, True) or (free is True and not properties) or "patternProperties" in schema:
        raise ToolDefinitionError(
            f"tool {tool_name!r}: strict=True, but the object at {path} has free keys; "
            "declare its properties (a dataclass instead of a dict) or leave strict out"
        )
    required = schema.get("required", ())
    schema["properties"] = {
        name: part if name in required else _nullable(part)
        for name, rule in properties.items()
        for part in [_strict(rule, tool_name, f"{path}.{name}")]
    }
    schema["required"] = list(properties)
    schema["additionalProperties"] = False


def _nullable(schema: JsonValue) -> JsonValue:
    if not is_object(schema):
        return schema
    names = type_names(schema)
    if "null" in names or any("null" in type_names(part) for part in schema.get("anyOf", ()) if is_object(part)):
        return schema
    if not names or "const" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    nullable: JsonObject = {**schema, "type": [*names, "null"]}
    if is_array(members := schema.get("enum")) and not any(json_type(member) == "null" for member in members):
        nullable["enum"] = [*members, None]
    return nullable
