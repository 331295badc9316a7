"""What a tool promises about its structured result, and whether a result keeps it. ``_results.py`` is above."""

from __future__ import annotations

from functools import cached_property
from types import UnionType
from typing import Annotated, Any, Final, Protocol, Union, get_args, get_origin

import msgspec
from msgspec import inspect as types

from trio_agent._agent_events import ToolResult
from trio_agent._checker import Checker, check_schema
from trio_agent._json_schema import decode_extra, type_schema
from trio_agent._messages import ImageContent, JsonObject, JsonValue, TextContent
from trio_agent._schema import reworded
from trio_agent._signature import NO_DEFAULT, Annotation, is_path, subtypes

__all__ = ["Output", "SchemaOutput", "promised_output"]

_NOT_STRUCTURED: Final[tuple[Annotation, ...]] = (
    NO_DEFAULT,
    Any,
    object,
    str,
    bytes,
    bytearray,
    None,
    type(None),
    ToolResult,
    TextContent,
    ImageContent,
)


class Output(Protocol):
    """What a tool promises about its structured result."""

    @property
    def schema(self) -> JsonObject:
        """JSON Schema of the result."""
        ...

    def problems(self, value: JsonValue) -> list[str]:
        """What is wrong with a result, one line each, with its path."""
        ...


class SchemaOutput:
    """A result described by a JSON Schema.

    Raises:
        ToolDefinitionError: it is none.
    """

    def __init__(self, tool_name: str, schema: JsonObject) -> None:
        check_schema(schema, f"tool {tool_name!r}: output_schema")
        self.schema = schema
        self._checker = Checker(schema)

    def problems(self, value: JsonValue) -> list[str]:
        """See ``Output.problems``."""
        return self._checker.problems(value)


class TypeOutput:
    """A result described by a type. msgspec checks it; the schema is for those who ask and for the words of errors."""

    def __init__(self, annotation: Annotation) -> None:
        self._annotation = annotation

    @property
    def schema(self) -> JsonObject:
        """JSON Schema of the type."""
        return self._schema

    @cached_property
    def _schema(self) -> JsonObject:
        return type_schema(self._annotation)

    def problems(self, value: JsonValue) -> list[str]:
        """See ``Output.problems``."""
        try:
            msgspec.convert(value, self._annotation, str_keys=True, dec_hook=decode_extra)
        except msgspec.ValidationError as exc:
            return Checker(self.schema).problems(value) or [reworded(exc)]
        return []


def promised_output(annotation: Annotation) -> TypeOutput | None:
    """What the annotation of a function's result promises; nothing, if that may be text, blocks or no JSON at all."""
    bare: Any = annotation
    if get_origin(bare) is Annotated:
        bare = get_args(bare)[0]
    alternatives = get_args(bare) if get_origin(bare) in {Union, UnionType} else (bare,)
    if any(alternative in _NOT_STRUCTURED for alternative in alternatives):
        return None
    try:
        parts = list(subtypes(types.type_info(annotation)))
    except (TypeError, NameError):
        return None
    if any(
        isinstance(part, types.CustomType | types.ExtType) and not is_path(getattr(part, "cls", 0)) for part in parts
    ):
        return None
    if any(getattr(part, "cls", 0) in _NOT_STRUCTURED for part in parts):
        return None
    return TypeOutput(annotation)
