"""The events of one streamed answer: a start, blocks that may interleave, then one end.

Stream functions and wire decoders make them, :class:`~trio_agent.lowlevel.MessageBuilder` folds them. They are values
and carry deltas; what the message looked like at an event is the lazy ``partial``, which the builder binds to the event
and which is no part of the event's JSON or equality.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

import msgspec

from trio_agent._messages import AssistantMessage, JsonObject, ToolCall, Usage

__all__ = [
    "AssistantMessageEvent",
    "StreamDone",
    "StreamError",
    "StreamStart",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "ThinkingDelta",
    "ThinkingEnd",
    "ThinkingStart",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallStart",
]


class PartialSource(Protocol):
    """Where a bound event finds the message as it was at that event."""

    def partial_at(self, moment: int, /) -> AssistantMessage:
        """The message as it was at that moment."""
        ...

    def arguments_at(self, moment: int, content_index: int, /) -> JsonObject:
        """The best reading of a call's arguments at that moment."""
        ...


class Bound:
    """Where a builder leaves in an event what its ``partial`` needs."""

    # A slot of a plain base class is no field of the Struct: it is not encoded, compared or shown. The source must not
    # refer back to the event, as the collector does not look through this slot.
    __slots__ = ("_bound",)
    _bound: tuple[PartialSource, int]


class _Event(Bound, msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="type"):
    """Base of the stream events."""

    @property
    def partial(self) -> AssistantMessage:
        """The message as it was at this event, exact also when read later; costs nothing if not read.

        Raises:
            RuntimeError: the event was not folded by a builder; events that an agent, a loop or a builder handed out
                always have a partial message.
        """
        bound: tuple[PartialSource, int] | None = getattr(self, "_bound", None)
        if bound is None:
            raise RuntimeError(f"{type(self).__name__} was not folded by a MessageBuilder and has no partial message")
        source, moment = bound
        return source.partial_at(moment)


class StreamStart(_Event, tag="start", frozen=True, kw_only=True):
    """The answer begins; its message is empty."""


class TextStart(_Event, tag="text_start", frozen=True, kw_only=True):
    """A text block opens, empty."""

    content_index: int


class TextDelta(_Event, tag="text_delta", frozen=True, kw_only=True):
    """More text for an open block."""

    content_index: int
    delta: str


class TextEnd(_Event, tag="text_end", frozen=True, kw_only=True):
    """A text block is complete.

    Attributes:
        content: the whole text; it stands even where it differs from the sum of the deltas.
        content_signature: becomes the block's ``text_signature``.
    """

    content_index: int
    content: str
    content_signature: str | None = None


class ThinkingStart(_Event, tag="thinking_start", frozen=True, kw_only=True):
    """A thinking block opens, empty."""

    content_index: int


class ThinkingDelta(_Event, tag="thinking_delta", frozen=True, kw_only=True):
    """More reasoning for an open block."""

    content_index: int
    delta: str


class ThinkingEnd(_Event, tag="thinking_end", frozen=True, kw_only=True):
    """A thinking block is complete.

    Attributes:
        content: the whole reasoning; it stands even where it differs from the sum of the deltas.
        content_signature: becomes the block's ``thinking_signature``.
        redacted: becomes the block's ``redacted``.
    """

    content_index: int
    content: str
    content_signature: str | None = None
    redacted: bool | None = None


class ToolCallStart(_Event, tag="toolcall_start", frozen=True, kw_only=True):
    """A tool call opens, with arguments ``{}``.

    Attributes:
        id: of the call; empty if the server has not sent it yet.
        name: of the tool; empty if the server has not sent it yet.
    """

    content_index: int
    id: str
    name: str


class ToolCallDelta(_Event, tag="toolcall_delta", frozen=True, kw_only=True):
    """More of the JSON text of an open call's arguments."""

    content_index: int
    delta: str

    @property
    def partial_arguments(self) -> JsonObject:
        """A tolerant preview of the arguments so far.

        Open strings are kept as far as they go and half tokens are left out; a number may still grow. Of texts longer
        than 1024 characters the last eighth may be missing. Where the text is no JSON, the last good reading stands.
        Needs the extra ``partial``; without it this is the last reading that was complete JSON, else ``{}``.
        """
        bound: tuple[PartialSource, int] | None = getattr(self, "_bound", None)
        if bound is None:
            return {}
        source, moment = bound
        return source.arguments_at(moment, self.content_index)


class ToolCallEnd(_Event, tag="toolcall_end", frozen=True, kw_only=True):
    """A tool call is complete.

    Attributes:
        tool_call: the call as it stands in the message.
    """

    content_index: int
    tool_call: ToolCall


class StreamDone(_Event, tag="done", frozen=True, kw_only=True):
    """The answer is complete.

    Attributes:
        reason: why it ended.
        message: the whole message; without it the folded blocks are the message.
        usage: tokens, where there is no message to carry them.
    """

    reason: Literal["stop", "length", "toolUse"]
    message: AssistantMessage | None = None
    usage: Usage | None = None


class StreamError(_Event, tag="error", frozen=True, kw_only=True):
    """The answer failed or was stopped.

    Attributes:
        reason: ``error`` or ``aborted``.
        message: what had arrived, JSON key ``error``; without it the folded blocks are the message.
        error_message: what went wrong, where there is no message to carry it.
        usage: tokens, where there is no message to carry them.
    """

    reason: Literal["error", "aborted"]
    message: AssistantMessage | None = msgspec.field(default=None, name="error")
    error_message: str | None = None
    usage: Usage | None = None


AssistantMessageEvent: TypeAlias = (
    StreamStart
    | TextStart
    | TextDelta
    | TextEnd
    | ThinkingStart
    | ThinkingDelta
    | ThinkingEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | StreamDone
    | StreamError
)
"""One event of a streamed answer."""
