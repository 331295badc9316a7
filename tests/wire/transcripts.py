"""Short ways to write transcripts in tests of requests."""

from __future__ import annotations

import json
from typing import Any

from trio_agent._messages import (
    AssistantContent,
    AssistantMessage,
    ImageContent,
    Message,
    StopReason,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolDeclaration,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from trio_agent._models import Model, StreamOptions
from trio_agent.wire import WIRE_FORMATS, WireRequest

PNG = ImageContent(data="iVBOR", mime_type="image/png")


def system(content: str = "S", *tools: ToolDeclaration) -> SystemMessage:
    return SystemMessage(content=content, timestamp=0, tools_added=tools or None)


def tool(name: str, **parameters: Any) -> ToolDeclaration:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, **parameters}
    return ToolDeclaration(name=name, description=f"To {name}", parameters=schema)


def user(*content: str | TextContent | ImageContent) -> UserMessage:
    [first, *_] = content
    if len(content) == 1 and isinstance(first, str):
        return UserMessage(content=first, timestamp=1)
    blocks = tuple([TextContent(text=item) if isinstance(item, str) else item for item in content])
    return UserMessage(content=blocks, timestamp=1)


def call(call_id: str, name: str = "read", **arguments: Any) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def thought(text: str, signature: str | None = None, *, redacted: bool | None = None) -> ThinkingContent:
    return ThinkingContent(thinking=text, thinking_signature=signature, redacted=redacted)


def answer(by: Model, *content: str | AssistantContent, stop_reason: StopReason = "stop") -> AssistantMessage:
    return AssistantMessage(
        content=tuple([TextContent(text=item) if isinstance(item, str) else item for item in content]),
        api=by.api,
        provider=by.provider,
        model=by.id,
        usage=Usage.zero(),
        stop_reason=stop_reason,
        timestamp=2,
    )


def result(call_id: str, *content: str | ImageContent, name: str = "read", is_error: bool = False) -> ToolResultMessage:
    blocks = tuple([TextContent(text=item) if isinstance(item, str) else item for item in content])
    return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=blocks, is_error=is_error, timestamp=3)


def request(model: Model, *messages: Message, **options: Any) -> WireRequest:
    return WIRE_FORMATS[model.api].encode(model, messages, StreamOptions(**options))


def body(model: Model, *messages: Message, **options: Any) -> dict[str, Any]:
    """The body as the server reads it."""
    decoded: dict[str, Any] = json.loads(request(model, *messages, **options).content().decode("utf-8"))
    return decoded
