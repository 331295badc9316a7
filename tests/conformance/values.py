"""From the JSON of a scenario to the values of the library."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from trio_agent import (
    UNSET,
    AssistantMessage,
    ImageContent,
    Model,
    SystemMessage,
    TextContent,
    ToolResult,
    ToolResultMessage,
    Usage,
    UserMessage,
)

from .scenario import JsonObject

__all__ = [
    "ASSISTANT_DEFAULTS",
    "ScriptedError",
    "canonical_json",
    "keep_last",
    "role_of",
    "roles",
    "to_message",
    "to_messages",
    "to_model",
    "to_result",
    "to_result_content",
    "tool_declaration",
]

TIMESTAMP: Final = 1
"""Timestamp of every message: observations leave timestamps out."""

ZERO_USAGE: Final[JsonObject] = msgspec.to_builtins(Usage.zero())

ASSISTANT_DEFAULTS: Final[JsonObject] = {
    "role": "assistant",
    "content": [],
    "api": "scripted",
    "provider": "scripted",
    "model": "model-a",
    "usage": ZERO_USAGE,
    "stopReason": "stop",
    "timestamp": TIMESTAMP,
}
"""What an assistant message needs beyond what a scenario says."""


class ScriptedError(Exception):
    """A failure that a scenario asks for in a tool, a hook or a listener."""


def to_model(value: str | JsonObject) -> Model:
    if isinstance(value, str):
        value = {"id": value, "provider": "scripted"}
    return Model(id=value["id"], provider=value["provider"], api="scripted")


def tool_declaration(key: str, spec: JsonObject) -> JsonObject:
    """The JSON of what a model is told about a tool of a scenario."""
    name = spec.get("name", key)
    return {
        "name": name,
        "description": spec.get("description", f"Tool {name}"),
        "parameters": spec.get("parameters", {"type": "object", "properties": {}}),
    }


def to_messages(values: Iterable[str | JsonObject], tools: JsonObject) -> list[Any]:
    return [to_message(value, tools) for value in values]


def to_message(value: str | JsonObject, tools: JsonObject) -> Any:
    """One message of a scenario, with the defaults of the format.

    Args:
        value: a string is a user message.
        tools: definitions by key, for system messages that declare some of them.
    """
    if isinstance(value, str):
        return UserMessage(content=value, timestamp=TIMESTAMP)
    match value["role"]:
        case "user":
            return msgspec.convert({**value, "timestamp": TIMESTAMP}, UserMessage)
        case "system":
            return _system_message(value, tools)
        case "assistant":
            return _assistant_message(value)
        case "toolResult":
            filled = {"isError": False, **value, "content": _blocks(value["content"]), "timestamp": TIMESTAMP}
            return msgspec.convert(filled, ToolResultMessage)
        case role:
            fields = {key: field for key, field in value.items() if key != "role"}
            return _own_type(role, tuple(fields))(**fields)


def _system_message(value: JsonObject, tools: JsonObject) -> SystemMessage:
    filled = {"content": "", **value, "timestamp": TIMESTAMP}
    if "toolsAdded" in value:
        filled["toolsAdded"] = [tool_declaration(key, tools[key]) for key in value["toolsAdded"]]
    if "toolsRemoved" in value:
        filled["toolsRemoved"] = [{"name": name} for name in value["toolsRemoved"]]
    return msgspec.convert(filled, SystemMessage)


def _assistant_message(value: JsonObject) -> AssistantMessage:
    content = _blocks(value["content"])
    calls = any(block["type"] == "toolCall" for block in content)
    filled = {**ASSISTANT_DEFAULTS, "stopReason": "toolUse" if calls else "stop", **value, "content": content}
    return msgspec.convert(filled, AssistantMessage)


def _blocks(content: str | list[JsonObject]) -> list[JsonObject]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


@cache
def _own_type(role: str, fields: tuple[str, ...]) -> type[msgspec.Struct]:
    """A message type of the application, as an application would define it for itself."""
    return msgspec.defstruct(
        role.title(), [(field, Any) for field in fields], tag=role, tag_field="role", frozen=True, kw_only=True
    )


def role_of(message: Any) -> str:
    return str(type(message).__struct_config__.tag)


def roles(messages: Iterable[Any]) -> list[str]:
    return [role_of(message) for message in messages]


def keep_last(messages: Sequence[Any], count: int) -> list[Any]:
    """All system messages, then the last others."""
    others = [message for message in messages if role_of(message) != "system"]
    kept = others[-count:] if count else []
    return [message for message in messages if role_of(message) == "system"] + kept


def to_result(value: JsonObject, arguments: JsonObject, nested: list[JsonObject]) -> ToolResult:
    """What a scripted tool returns or reports.

    Args:
        value: of the script.
        arguments: as they are now, for a result that echoes them.
        nested: outcomes of the nested calls so far, for a result that shows them.
    """
    details = {"nested": list(nested)} if value.get("nestedDetails") else value.get("details", {})
    usage = value.get("usage")
    return ToolResult(
        content=_result_content(value, arguments),
        details=details,
        structured_content=value.get("structuredContent", UNSET),
        is_error=value.get("isError", False),
        terminate=value.get("terminate", False),
        usage=None if usage is None else msgspec.convert(usage, Usage),
    )


def _result_content(value: JsonObject, arguments: JsonObject) -> tuple[TextContent | ImageContent, ...]:
    if value.get("omitContent"):
        return ()
    if "content" in value:
        return to_result_content(value["content"])
    text = canonical_json(arguments) if value.get("echoArgs") else value.get("text", "")
    return (TextContent(text=text),)


def to_result_content(blocks: list[JsonObject]) -> tuple[TextContent | ImageContent, ...]:
    return msgspec.convert(blocks, tuple[TextContent | ImageContent, ...])


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and without spaces; a whole number has no fraction, as in the reference."""
    return json.dumps(_whole(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value
