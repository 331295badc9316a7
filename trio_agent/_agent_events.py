"""The events of a run, in the order of the loop: run, turn, message and tool execution, each opened and closed.

Frozen values with pi's JSON. The loop sends them, listeners, watchers and sinks see them; handling one is a barrier.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from trio_agent._messages import (
    AgentMessage,
    AssistantMessage,
    JsonObject,
    JsonValue,
    ToolResultContent,
    ToolResultMessage,
    Usage,
    Value,
    written,
)
from trio_agent._stream_events import AssistantMessageEvent

__all__ = [
    "AgentEnd",
    "AgentEvent",
    "AgentStart",
    "MessageEnd",
    "MessageStart",
    "MessageUpdate",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolExecutionUpdate",
    "ToolResult",
    "TurnEnd",
    "TurnStart",
]


class ToolResult(Value, gc=True, frozen=True):
    """What a tool gives back.

    Attributes:
        content: for the model: a text, or text and image blocks in order.
        details: for people and programs, never sent to a model; any JSON value.
        structured_content: the result as JSON; in events and outcomes only, not in the transcript.
        is_error: the tool says that it failed. Calls fail in other ways, too: the end event and the message tell.
        terminate: the answer needs no further request, if every result of its batch says so.
        usage: cost of the tool itself.
    """

    content: str | tuple[ToolResultContent, ...] = written(())
    details: JsonValue | UnsetType = UNSET
    structured_content: JsonValue | UnsetType = UNSET
    is_error: bool = False
    terminate: bool = False
    usage: Usage | None = None


class _Event(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="type", gc=False):
    """Base of the agent events.

    Not tracked by the garbage collector: an event refers to messages, and nothing in a message refers to an event.
    """


class AgentStart(_Event, tag="agent_start", frozen=True, kw_only=True):
    """A run begins."""


class AgentEnd(_Event, tag="agent_end", frozen=True, kw_only=True):
    """A run ends; nothing follows.

    Attributes:
        messages: all that the run added to the transcript, in order.
    """

    messages: tuple[AgentMessage, ...]


class TurnStart(_Event, tag="turn_start", frozen=True, kw_only=True):
    """A turn begins: messages that go in, one answer, the results of its tools."""


class TurnEnd(_Event, tag="turn_end", frozen=True, kw_only=True):
    """A turn ends.

    Attributes:
        message: its answer; ``None`` when a hook, a listener or a cancellation ended the turn before there was one.
        tool_results: one for each call of the answer, in source order.
    """

    message: AssistantMessage | None
    tool_results: tuple[ToolResultMessage, ...]


class MessageStart(_Event, tag="message_start", frozen=True, kw_only=True):
    """A message begins; an assistant message is still empty."""

    message: AgentMessage


class MessageUpdate(_Event, tag="message_update", frozen=True, kw_only=True):
    """A block of the streamed answer was opened, grew, or was closed.

    Attributes:
        assistant_message_event: what happened.
    """

    assistant_message_event: AssistantMessageEvent

    @property
    def message(self) -> AssistantMessage:
        """The message so far, exact for this event; built when read, not part of the JSON."""
        return self.assistant_message_event.partial


class MessageEnd(_Event, tag="message_end", frozen=True, kw_only=True):
    """A message is complete and in the transcript."""

    message: AgentMessage


class ToolExecutionStart(_Event, tag="tool_execution_start", frozen=True, kw_only=True):
    """A call is about to be prepared.

    Attributes:
        tool_call_id: of the call.
        tool_name: as the model wrote it.
        args: the arguments as the model wrote them.
    """

    tool_call_id: str
    tool_name: str
    args: JsonObject


class ToolExecutionUpdate(_Event, tag="tool_execution_update", frozen=True, kw_only=True):
    """A running tool reports progress.

    Attributes:
        tool_call_id: of the call.
        tool_name: as the model wrote it.
        args: the arguments as the model wrote them.
        partial_result: what the tool reported.
    """

    tool_call_id: str
    tool_name: str
    args: JsonObject
    partial_result: ToolResult


class ToolExecutionEnd(_Event, tag="tool_execution_end", frozen=True, kw_only=True):
    """A call has its result.

    Attributes:
        tool_call_id: of the call.
        tool_name: as the model wrote it.
        result: the result, after the hooks.
        is_error: the call failed.
        duration_ms: how long the tool ran, in milliseconds; absent when it did not run.
    """

    tool_call_id: str
    tool_name: str
    result: ToolResult
    is_error: bool
    duration_ms: float | None = None


AgentEvent: TypeAlias = (
    AgentStart
    | AgentEnd
    | TurnStart
    | TurnEnd
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
)
"""One event of a run."""
