"""Arguments of a call: checked against what the tool declares, and brought into the form its body takes.

Two kinds of tools, one interface: ``SignatureArguments`` makes the typed values of a function's parameters,
``SchemaArguments`` checks any JSON Schema. Pure logic; ``_tools.py`` is above. jsonschema is imported when a schema is
first needed and not before.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol, cast

import msgspec

from trio_agent._errors import ToolArgumentsError, ToolDefinitionError
from trio_agent._messages import JsonObject
from trio_agent._signature import Signature

__all__ = ["Arguments", "BoundArguments", "SchemaArguments", "SignatureArguments"]


class BoundArguments(msgspec.Struct):
    """Arguments that fit.

    Attributes:
        value: what the body of the tool takes; it shares nothing mutable with anything else.
    """

    _source: JsonObject
    value: Any
    _arguments: JsonObject | None = None

    @property
    def arguments(self) -> JsonObject:
        """The arguments as JSON, coerced: a fresh object, copied from the source when it is first asked for."""
        arguments = self._arguments
        if arguments is None:
            arguments = self._arguments = msgspec.to_builtins(self._source)
        return cast("JsonObject", arguments)


class Arguments(Protocol):
    """What a tool declares about its arguments."""

    @property
    def schema(self) -> JsonObject:
        """JSON Schema of the arguments, the same object each time."""
        ...

    def bind(self, tool_name: str, arguments: JsonObject) -> BoundArguments:
        """Check the arguments and bring them into the form the body takes.

        Raises:
            ToolArgumentsError: they do not fit; its text is for the model.
        """
        ...


class SignatureArguments:
    """The parameters of a function."""

    def __init__(self, signature: Signature) -> None:
        self._struct = signature.struct

    @cached_property
    def schema(self) -> JsonObject:
        """JSON Schema of the parameters."""
        (schema,), components = msgspec.json.schema_components([self._struct])
        root: JsonObject = dict(components.pop(schema["$ref"].rpartition("/")[2]))
        root.pop("title", None)
        if components:
            root["$defs"] = components
        return root

    def bind(self, tool_name: str, arguments: JsonObject) -> BoundArguments:
        """See ``Arguments.bind``."""
        try:
            return BoundArguments(arguments, msgspec.convert(arguments, self._struct))
        except msgspec.ValidationError as exc:
            raise ToolArgumentsError(_failure(tool_name, [str(exc)], arguments)) from None


class SchemaArguments:
    """Arguments described by a JSON Schema."""

    def __init__(self, tool_name: str, schema: JsonObject) -> None:
        import jsonschema
        from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as exc:
            raise ToolDefinitionError(f"tool {tool_name!r}: parameters: {exc.message} at {exc.json_path}") from exc
        self.schema = schema
        self._validator = jsonschema.Draft202012Validator(schema, registry=REGISTRY)

    def bind(self, tool_name: str, arguments: JsonObject) -> BoundArguments:
        """See ``Arguments.bind``."""
        problems = [
            f"{'.'.join(map(str, error.absolute_path)) or 'root'}: {error.message}"
            for error in self._validator.iter_errors(arguments)
        ]
        if problems:
            raise ToolArgumentsError(_failure(tool_name, problems, arguments))
        return BoundArguments(arguments, msgspec.to_builtins(arguments))


def _failure(tool_name: str, problems: list[str], arguments: object) -> str:
    received = msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()
    lines = "\n".join(f"  - {problem}" for problem in problems)
    return f'Validation failed for tool "{tool_name}":\n{lines}\n\nReceived arguments:\n{received}'[:1500]
