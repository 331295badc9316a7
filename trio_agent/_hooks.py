"""Hooks: optional callables that a run asks at fixed points; one frozen details object in, one small decision out.

A hook that is ``None`` costs nothing. New facts become new fields of the details, never new parameters. All hooks are
awaited, except ``convert_to_llm``, which is pure. See the loop for when each one is asked, and for what happens when
one raises: a tool hook makes an error result, so that the tool does not run or its result does not leak; any other hook
ends the run with its exception after the transcript was closed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from trio_agent._agent_events import ToolResult
from trio_agent._messages import (
    AgentMessage,
    AssistantMessage,
    JsonObject,
    JsonValue,
    Message,
    ToolCall,
    ToolResultContent,
    ToolResultMessage,
    Usage,
)
from trio_agent._models import Model, ThinkingLevel
from trio_agent._transcript import Context

__all__ = [
    "BlockToolCall",
    "Hooks",
    "ReplaceArguments",
    "RequestDetails",
    "RequestUpdate",
    "ToolCallDetails",
    "ToolResultDetails",
    "ToolResultPatch",
    "TurnDecision",
    "TurnDetails",
    "TurnUpdate",
]


class RequestDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A request is about to be made.

    Attributes:
        context: what the run works on; the messages of this turn are already in it.
        model: that will be asked.
        thinking_level: that it will be asked for.
    """

    context: Context
    model: Model
    thinking_level: ThinkingLevel


class RequestUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """Changes for this request and the following ones of the run; what is ``UNSET`` stays.

    Attributes:
        context: replaces the run's context; tools that are new in it are declared in this request. The agent keeps its
            own transcript.
        model: asked from now on.
        thinking_level: from now on.
    """

    context: Context | UnsetType = UNSET
    model: Model | UnsetType = UNSET
    thinking_level: ThinkingLevel | UnsetType = UNSET


class ToolCallDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A call is valid and about to run.

    Attributes:
        assistant_message: that asks for it.
        tool_call: as the model wrote it.
        arguments: validated and converted; a copy that the hook may read but should replace, not change.
        context: what the run works on.
    """

    assistant_message: AssistantMessage
    tool_call: ToolCall
    arguments: JsonObject
    context: Context


class BlockToolCall(msgspec.Struct, frozen=True):
    """The call is not to run; its result is an error.

    Attributes:
        reason: text of the result; a standard sentence when empty.
        terminate: the answer needs no further request, if every result of its batch says so.
    """

    reason: str | None = None
    terminate: bool = False


class ReplaceArguments(msgspec.Struct, frozen=True):
    """The call is to run with these arguments; they are validated like those of the model.

    Attributes:
        arguments: a JSON object.
    """

    arguments: JsonObject


class ToolResultDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A tool ran and has a result, or failed.

    Attributes:
        assistant_message: that asked for it.
        tool_call: as the model wrote it.
        arguments: that the tool got.
        result: what it gave back, or the error result of its exception.
        is_error: the call failed.
        context: what the run works on.
    """

    assistant_message: AssistantMessage
    tool_call: ToolCall
    arguments: JsonObject
    result: ToolResult
    is_error: bool
    context: Context


class ToolResultPatch(msgspec.Struct, frozen=True, kw_only=True):
    """Fields that replace those of the result, whole, without merging; what is ``UNSET`` stays.

    Attributes:
        content: new content. Structured content that is not given along with it is dropped.
        details: new details; ``None`` means None.
        structured_content: new structured content.
        is_error: whether the call failed.
        usage: cost of the tool.
        terminate: the answer needs no further request, if every result of its batch says so.
    """

    content: str | tuple[ToolResultContent, ...] | UnsetType = UNSET
    details: JsonValue | UnsetType = UNSET
    structured_content: JsonValue | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET
    usage: Usage | UnsetType | None = UNSET
    terminate: bool | UnsetType = UNSET


class TurnDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A turn is complete.

    Attributes:
        message: its answer.
        tool_results: one for each call, in source order.
        context: what the run works on.
        new_messages: all that this run has added so far.
    """

    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...]
    context: Context
    new_messages: Sequence[AgentMessage]


class TurnUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """Changes for the next turn and the following ones of the run; what is ``UNSET`` stays.

    Attributes:
        context: replaces the run's context; the agent keeps its own transcript.
        messages: added at the start of the turn, before steering messages, and announced like them.
        model: asked from now on.
        thinking_level: from now on.
    """

    context: Context | UnsetType = UNSET
    messages: Sequence[AgentMessage] = ()
    model: Model | UnsetType = UNSET
    thinking_level: ThinkingLevel | UnsetType = UNSET


TurnDecision: TypeAlias = Literal["end", "continue"] | None
"""``"end"`` ends the run after this turn; ``"continue"`` guarantees one more request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """What a run asks, in the order of a turn.

    Attributes:
        transform_context: takes the context's messages and returns those to send; nothing is kept.
        convert_to_llm: takes them and returns messages that models understand; plain and pure. By default all others
            are left out.
        get_api_key: takes the provider and returns a key for this request, or ``None`` to look elsewhere.
        prepare_request: before every request; may change context, model and thinking level.
        before_tool_call: after validation; may block the call or replace its arguments.
        after_tool_call: after a tool ran or failed; may replace fields of the result.
        finish_turn: when the turn is complete, also one that failed or was aborted (its decision is then ignored).
        should_stop_after_turn: true ends the run; not asked after a failed or aborted answer.
        prepare_next_turn: when another turn follows; may change context, model and thinking level, and add messages.
        get_steering_messages: messages to take in at the next opportunity, for loops without an agent.
        get_follow_up_messages: messages to go on with when there is nothing else to do, for loops without an agent.
    """

    transform_context: Callable[[Sequence[AgentMessage]], Awaitable[Sequence[AgentMessage]]] | None = None
    convert_to_llm: Callable[[Sequence[AgentMessage]], Sequence[Message]] | None = None
    get_api_key: Callable[[str], Awaitable[str | None]] | None = None
    prepare_request: Callable[[RequestDetails], Awaitable[RequestUpdate | None]] | None = None
    before_tool_call: Callable[[ToolCallDetails], Awaitable[BlockToolCall | ReplaceArguments | None]] | None = None
    after_tool_call: Callable[[ToolResultDetails], Awaitable[ToolResultPatch | None]] | None = None
    finish_turn: Callable[[TurnDetails], Awaitable[TurnDecision]] | None = None
    should_stop_after_turn: Callable[[TurnDetails], Awaitable[bool]] | None = None
    prepare_next_turn: Callable[[TurnDetails], Awaitable[TurnUpdate | None]] | None = None
    get_steering_messages: Callable[[], Awaitable[Sequence[AgentMessage]]] | None = None
    get_follow_up_messages: Callable[[], Awaitable[Sequence[AgentMessage]]] | None = None
