"""Messages of a transcript, their content blocks, usage and cost.

Frozen values whose JSON is that of the pi coding agent, so that transcripts are exchangeable: camelCase keys, tag
``role`` on messages and ``type`` on blocks. A field that pi always writes has no default here: ``omit_defaults`` would
drop it. Nothing is below this module; nothing that awaits, runs or talks to a model may enter it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

__all__ = [
    "AgentMessage",
    "AssistantContent",
    "AssistantMessage",
    "Cost",
    "ImageContent",
    "JsonObject",
    "JsonValue",
    "Message",
    "StopReason",
    "SystemMessage",
    "TextContent",
    "ThinkingContent",
    "ToolCall",
    "ToolDeclaration",
    "ToolRemoval",
    "ToolResultContent",
    "ToolResultMessage",
    "UnknownMessage",
    "Usage",
    "UserContent",
    "UserMessage",
]

T = TypeVar("T")

JsonValue: TypeAlias = Any
"""Any value that JSON can express; checked where it enters, not by the type."""

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object."""

StopReason: TypeAlias = Literal["stop", "length", "toolUse", "error", "aborted", "pending", "deferred"]
"""Why an answer ended. ``pending`` marks a message that is still streamed; ``deferred`` is only read from files."""


class Value(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of all values in a transcript."""


def written(default: T) -> T:
    """A field's default that is written all the same, because pi always writes the field."""
    return msgspec.field(default_factory=lambda: default)


class Block(Value, tag_field="type", gc=False, frozen=True, kw_only=True):
    """Base of the content blocks."""


class TextContent(Block, tag="text", gc=False, frozen=True, kw_only=True):
    """Visible text.

    Attributes:
        text: the text.
        text_signature: opaque datum of the provider, sent back with the text.
    """

    text: str
    text_signature: str | None = None


class ThinkingContent(Block, tag="thinking", gc=False, frozen=True, kw_only=True):
    """Reasoning of the model.

    Attributes:
        thinking: readable reasoning, possibly a summary, empty when only encrypted reasoning exists.
        thinking_signature: opaque datum of the provider, sent back with the block.
        redacted: the provider keeps the reasoning encrypted in the signature.
    """

    thinking: str
    thinking_signature: str | None = None
    redacted: bool | None = None


class ImageContent(Block, tag="image", gc=False, frozen=True, kw_only=True):
    """An image.

    Attributes:
        data: base64, without a ``data:`` prefix.
        mime_type: such as ``image/png``.
    """

    data: str
    mime_type: str


class ToolCall(Block, tag="toolCall", gc=True, frozen=True, kw_only=True):
    """The model asks for a tool.

    Attributes:
        id: identifies the call within its message; the result repeats it.
        name: of the tool.
        arguments: always an object; empty when there are none or they were not valid JSON.
        arguments_error: why the finished argument text was not a JSON object; such a call is answered, never run.
        thought_signature: opaque datum of the provider.
        namespace: of a tool that was loaded dynamically.
    """

    id: str
    name: str
    arguments: JsonObject
    arguments_error: str | None = None
    thought_signature: str | None = None
    namespace: str | None = None


UserContent: TypeAlias = TextContent | ImageContent
AssistantContent: TypeAlias = TextContent | ThinkingContent | ToolCall
ToolResultContent: TypeAlias = TextContent | ImageContent


class Cost(Value, gc=False, frozen=True, kw_only=True):
    """Price of one answer in USD.

    Attributes:
        input: for ``Usage.input``.
        output: for ``Usage.output``.
        cache_read: for ``Usage.cache_read``.
        cache_write: for ``Usage.cache_write``.
        total: the sum, or what the provider billed.
        total_from_provider: the total is the billed figure.
    """

    input: float
    output: float
    cache_read: float
    cache_write: float
    total: float
    total_from_provider: bool | None = None


class Usage(Value, gc=False, frozen=True, kw_only=True):
    """Tokens of one answer; ``input + cache_read + cache_write`` is the whole prompt.

    Attributes:
        input: prompt tokens neither read from nor written to a cache.
        output: generated tokens, reasoning included.
        cache_read: prompt tokens read from a cache.
        cache_write: prompt tokens written to a cache.
        total_tokens: the sum, or the provider's own total.
        cost: in USD.
        cache_write_1h: the part of ``cache_write`` that is kept for an hour.
        reasoning: the part of ``output`` spent on reasoning; ``None`` when the provider does not say.
    """

    input: int
    output: int
    cache_read: int
    cache_write: int
    total_tokens: int
    cost: Cost
    # "1H" is what the renaming rule would make of it.
    cache_write_1h: int | None = msgspec.field(default=None, name="cacheWrite1h")
    reasoning: int | None = None

    @classmethod
    def zero(cls) -> Usage:
        """The usage of an answer about which nothing is known."""
        return _ZERO_USAGE

    def __add__(self, other: Usage) -> Usage:
        a, b = self.cost, other.cost
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            total_tokens=self.total_tokens + other.total_tokens,
            cost=Cost(
                input=a.input + b.input,
                output=a.output + b.output,
                cache_read=a.cache_read + b.cache_read,
                cache_write=a.cache_write + b.cache_write,
                total=a.total + b.total,
            ),
            cache_write_1h=_add_optional(self.cache_write_1h, other.cache_write_1h),
            reasoning=_add_optional(self.reasoning, other.reasoning),
        )


def _add_optional(a: int | None, b: int | None) -> int | None:
    return None if a is None and b is None else (a or 0) + (b or 0)


_ZERO_USAGE = Usage(
    input=0,
    output=0,
    cache_read=0,
    cache_write=0,
    total_tokens=0,
    cost=Cost(input=0, output=0, cache_read=0, cache_write=0, total=0),
)


class ToolDeclaration(Value, gc=True, frozen=True, kw_only=True):
    """What a model is told about a tool.

    Attributes:
        name: by which the model calls it.
        description: for the model.
        parameters: JSON Schema of the arguments, an object schema.
        strict: the provider is to hold the model to the schema, if it can; the schema then has the form that this
            needs.
    """

    name: str
    description: str
    parameters: JsonObject
    strict: bool = False


class ToolRemoval(Value, gc=False, frozen=True, kw_only=True):
    """The name of a tool that may no longer be called."""

    name: str


class Diagnostic(Value, gc=True, frozen=True, kw_only=True):
    """A note of a provider that is no failure: a fallback taken, an input transformed.

    Attributes:
        type: kind of the note.
        timestamp: milliseconds since the epoch.
        error: name, message, stack and code of an error, if one was behind it.
        details: further data.
    """

    type: str
    timestamp: int
    error: JsonObject | None = None
    details: JsonValue | UnsetType = UNSET


class _Message(Value, tag_field="role", gc=False, frozen=True, kw_only=True):
    """Base of the messages."""


class SystemMessage(_Message, tag="system", gc=True, frozen=True, kw_only=True):
    """Instructions and tool declarations from one point of the transcript on.

    Attributes:
        content: base prompt when it leads the transcript, else added instructions.
        timestamp: milliseconds since the epoch.
        sections: named parts of the prompt; a later ``None`` removes one.
        tools_added: tools that may be called from here on.
        tools_removed: tools that may not be called from here on.
    """

    content: str | tuple[TextContent, ...]
    timestamp: int
    sections: dict[str, str | None] | None = None
    tools_added: tuple[ToolDeclaration, ...] | None = None
    tools_removed: tuple[ToolRemoval, ...] | None = None

    @classmethod
    def from_text(cls, content: str) -> SystemMessage:
        """A system message of this moment."""
        return cls(content=content, timestamp=_now_ms())


class UserMessage(_Message, tag="user", gc=False, frozen=True, kw_only=True):
    """What the user says.

    Attributes:
        content: a text, or blocks in order.
        timestamp: milliseconds since the epoch.
    """

    content: str | tuple[UserContent, ...]
    timestamp: int

    @classmethod
    def from_text(cls, content: str) -> UserMessage:
        """A user message of this moment."""
        return cls(content=content, timestamp=_now_ms())


class AssistantMessage(_Message, tag="assistant", gc=True, frozen=True, kw_only=True):
    """What the model said.

    Attributes:
        content: blocks in the order in which they were opened; ``content_index`` of stream events counts them.
        api: wire format that produced it, such as ``openai-completions``.
        provider: such as ``openai``.
        model: id of the requested model.
        usage: zeros when unknown.
        stop_reason: why it ended.
        timestamp: milliseconds since the epoch, when the request was made.
        error_message: what went wrong, for ``error`` and ``aborted``.
        thinking_level: the level the loop asked for.
        duration_ms: milliseconds from the request to the end of the answer.
        response_model: id the server reported when it is another one.
        response_id: the server's id of the answer.
        raw_stop_reason: the provider's own word.
        provider_thinking_level: the provider's own word for the effort.
        diagnostics: notes of the provider that are no failures.
        end_turn: read from files and kept.
        deferred: read from files and kept.
    """

    content: tuple[AssistantContent, ...]
    api: str
    provider: str
    model: str
    usage: Usage
    stop_reason: StopReason
    timestamp: int
    error_message: str | None = None
    thinking_level: str | None = None
    duration_ms: float | None = None
    response_model: str | None = None
    response_id: str | None = None
    raw_stop_reason: str | None = None
    provider_thinking_level: str | None = None
    diagnostics: tuple[Diagnostic, ...] | None = None
    end_turn: bool | None = None
    deferred: JsonValue = None

    @property
    def text(self) -> str:
        """All visible text, the blocks joined without a separator."""
        return "".join([block.text for block in self.content if type(block) is TextContent])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls in source order."""
        return tuple([block for block in self.content if type(block) is ToolCall])


class ToolResultMessage(_Message, tag="toolResult", gc=True, frozen=True, kw_only=True):
    """The result of one tool call.

    Attributes:
        tool_call_id: the id of the call.
        tool_name: the name in the call.
        content: for the model.
        is_error: the call failed.
        timestamp: milliseconds since the epoch.
        details: for people and programs, never sent to a model.
        usage: cost of the tool itself.
        duration_ms: how long the tool ran, in milliseconds; absent when it did not run.
        nested_calls: read from files and kept, never sent to a model.
    """

    tool_call_id: str
    tool_name: str
    content: tuple[ToolResultContent, ...]
    is_error: bool
    timestamp: int
    details: JsonValue | UnsetType = UNSET
    usage: Usage | None = None
    duration_ms: float | None = None
    nested_calls: JsonValue = None

    @property
    def text(self) -> str:
        """All text of the result, the blocks joined without a separator."""
        return "".join([block.text for block in self.content if type(block) is TextContent])


class UnknownMessage:
    """A message of a role that nobody registered, kept and written back byte for byte.

    Attributes:
        role: its role.
        raw: its JSON.
    """

    __slots__ = ("raw", "role")
    __match_args__ = ("role", "raw")

    def __init__(self, role: str, raw: bytes) -> None:
        self.role = role
        self.raw = raw

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnknownMessage) and (self.role, self.raw) == (other.role, other.raw)

    def __hash__(self) -> int:
        return hash((self.role, self.raw))

    def __repr__(self) -> str:
        return f"UnknownMessage(role={self.role!r}, raw={self.raw!r})"


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage
"""A message that models understand."""

if TYPE_CHECKING:
    AgentMessage: TypeAlias = Message | UnknownMessage | msgspec.Struct
    """A message of a transcript: for models, an own tagged Struct of the application, or of an unknown role."""
else:
    AgentMessage = Any


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
