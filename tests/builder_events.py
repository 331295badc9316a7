"""Helpers for tests of the message builder: folding, short messages, and one event of each kind."""

from __future__ import annotations

from typing import Any

from trio_agent import (
    AssistantContent,
    AssistantMessage,
    AssistantMessageEvent,
    Cost,
    Model,
    StreamDone,
    StreamError,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCall,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from trio_agent.lowlevel import MessageBuilder

MODEL = Model(id="m", api="a", provider="p")
USAGE = Usage(
    input=1,
    output=2,
    cache_read=0,
    cache_write=0,
    total_tokens=3,
    cost=Cost(input=0, output=0, cache_read=0, cache_write=0, total=0),
)


def new_builder() -> MessageBuilder:
    return MessageBuilder(MODEL, timestamp=5)


def fold(*events: AssistantMessageEvent) -> tuple[MessageBuilder, list[Any]]:
    builder = new_builder()
    return builder, [builder.add(event) for event in events]


def message(
    *content: AssistantContent,
    stop_reason: Any = "pending",
    error_message: str | None = None,
    usage: Usage | None = None,
) -> AssistantMessage:
    return AssistantMessage(
        content=content,
        api="a",
        provider="p",
        model="m",
        usage=usage or Usage.zero(),
        stop_reason=stop_reason,
        timestamp=5,
        error_message=error_message,
    )


def call(call_id: str = "c", name: str = "read", **arguments: Any) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


Events = tuple[AssistantMessageEvent, AssistantMessageEvent, AssistantMessageEvent]

text_start, text_delta, text_end = (
    TextStart(content_index=0),
    TextDelta(content_index=0, delta="a"),
    TextEnd(content_index=0, content="a"),
)
think_start, think_delta, think_end = (
    ThinkingStart(content_index=0),
    ThinkingDelta(content_index=0, delta="h"),
    ThinkingEnd(content_index=0, content="h"),
)
call_start, call_delta, call_end = (
    ToolCallStart(content_index=0, id="c", name="read"),
    ToolCallDelta(content_index=0, delta="{}"),
    ToolCallEnd(content_index=0, tool_call=call()),
)
start, done, error = StreamStart(), StreamDone(reason="stop"), StreamError(reason="error")
blocks: dict[str, Events] = {
    "text": (text_start, text_delta, text_end),
    "thinking": (think_start, think_delta, think_end),
    "toolcall": (call_start, call_delta, call_end),
}
