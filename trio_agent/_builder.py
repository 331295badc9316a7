"""MessageBuilder folds the events of one stream into its assistant message.

Rules of the protocol, all of them here. A block is opened once under its ``content_index``, grows while it is open, and
is closed once; blocks may interleave. After ``done`` or ``error`` nothing may come. What breaks these rules is the
fault of the other side and raises ``RemoteProtocolError``. Two things are tolerated: block events before ``start``, and
indices that leave gaps (the message then holds the blocks in the order of their indices).

Cost. Folding an event is independent of what has arrived. Each part of a block remembers at which event it came, so
that any event can later say what the message looked like: it holds the builder and a number. The builder never holds an
event: that would make a cycle through a slot that the collector does not look into.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from typing import Any, TypeAlias, TypeVar, cast

import msgspec

from trio_agent._errors import RemoteProtocolError
from trio_agent._messages import (
    AssistantContent,
    AssistantMessage,
    JsonObject,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
)
from trio_agent._models import Model
from trio_agent._stream_events import (
    AssistantMessageEvent,
    StreamDone,
    StreamError,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    _Bound,
)

__all__ = ["MessageBuilder", "parse_arguments"]

_E = TypeVar("_E", bound=Any)
_bind = cast("Any", _Bound).__dict__["_bound"].__set__
_NEVER = 1 << 62
_Delta: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta
_NAMES = {TextDelta: "text", ThinkingDelta: "thinking", ToolCallDelta: "tool call"}
_BlockEvent: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta | TextEnd | ThinkingEnd | ToolCallEnd


def parse_arguments(text: str) -> tuple[JsonObject, str | None]:
    """Read the finished argument text of a call, once.

    Returns:
        The arguments, and why the text was no JSON object (the arguments are then ``{}``). An empty text and ``null``
        mean ``{}``.
    """
    stripped = text.strip()
    if not stripped or stripped == "null":
        return {}, None
    try:
        value = msgspec.json.decode(stripped)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as exc:
        return {}, f"the arguments are not valid JSON ({exc})"
    if not isinstance(value, dict):
        return {}, f"the arguments must be a JSON object, not {type(value).__name__}"
    return cast("JsonObject", value), None


class _Block:
    # `parts[k]` arrived at moment `moments[k]`; a closed block has its final value instead.
    __slots__ = ("arguments", "closed_at", "final", "id", "kind", "moments", "name", "opened_at", "parts")

    def __init__(self, kind: type[_Delta], opened_at: int, call_id: str = "", name: str = "") -> None:
        self.kind = kind
        self.opened_at = opened_at
        self.closed_at = _NEVER
        self.id = call_id
        self.name = name
        self.parts: list[str] = []
        self.moments: list[int] = []
        self.final: AssistantContent | None = None
        self.arguments: tuple[int, JsonObject] = (0, {})

    def text_at(self, moment: int) -> str:
        return "".join(self.parts[: bisect_right(self.moments, moment)])

    def at(self, moment: int) -> AssistantContent:
        if self.final is not None and self.closed_at <= moment:
            return self.final
        if self.kind is TextDelta:
            return TextContent(text=self.text_at(moment))
        if self.kind is ThinkingDelta:
            return ThinkingContent(thinking=self.text_at(moment))
        return ToolCall(id=self.id, name=self.name, arguments=self._complete_arguments(moment))

    def _complete_arguments(self, moment: int) -> JsonObject:
        text = self.text_at(moment)
        return parse_arguments(text)[0] if text.rstrip().endswith("}") else {}


class MessageBuilder:
    """Folds stream events into one ``AssistantMessage``.

    Plain functions only; the builder neither awaits nor does I/O. It keeps everything that arrived until it is dropped;
    events that it returned keep it alive.

    Args:
        model: who answers; names the message's api, provider and model.
        timestamp: of the request, in milliseconds since the epoch.
        thinking_level: recorded in the message.
    """

    __slots__ = ("_base", "_blocks", "_moment", "_open", "_result", "started")

    def __init__(self, model: Model, *, timestamp: int, thinking_level: str | None = None) -> None:
        self._base = AssistantMessage(
            content=(),
            api=model.api,
            provider=model.provider,
            model=model.id,
            usage=Usage.zero(),
            stop_reason="pending",
            timestamp=timestamp,
            thinking_level=thinking_level,
        )
        self._blocks: dict[int, _Block] = {}
        self._open: dict[int, _Block] = {}
        self._moment = 0
        self._result: AssistantMessage | None = None
        self.started = False
        """Whether the ``start`` event has arrived."""

    @property
    def finished(self) -> bool:
        """Whether ``done`` or ``error`` has arrived, or :meth:`fail` was called."""
        return self._result is not None

    @property
    def partial(self) -> AssistantMessage:
        """The message as it is now; the final one when finished."""
        return self._result or self.partial_at(self._moment)

    def add(self, event: _E) -> _E:
        """Fold one event.

        Returns:
            An equal event with its lazy ``partial``; the one that was given is left alone.

        Raises:
            RemoteProtocolError: the event is not legal here; the builder is unchanged and can still be failed.
        """
        if self._result is not None:
            raise RemoteProtocolError(f"{_tag(event)!r} arrived after the answer had ended")
        moment = self._moment + 1
        kind = type(event)
        if kind is TextDelta or kind is ToolCallDelta or kind is ThinkingDelta:
            index, delta = event.content_index, event.delta
            block = self._open.get(index)
            if block is None or block.kind is not kind:
                raise self._illegal(event)
            block.parts.append(delta)
            block.moments.append(moment)
            event = cast("_E", kind(content_index=index, delta=delta))
        else:
            self._fold(event, moment)
            event = copy.copy(event)
        self._moment = moment
        _bind(event, (self, moment))
        return event

    def _fold(self, event: AssistantMessageEvent, moment: int) -> None:
        match event:
            case TextStart() | ThinkingStart():
                self._opening(event, _Block(TextDelta if type(event) is TextStart else ThinkingDelta, moment))
            case ToolCallStart():
                self._opening(event, _Block(ToolCallDelta, moment, event.id, event.name))
            case TextEnd():
                signature = event.content_signature
                self._closing(event, TextDelta, moment, TextContent(text=event.content, text_signature=signature))
            case ThinkingEnd():
                thinking = ThinkingContent(
                    thinking=event.content,
                    thinking_signature=event.content_signature,
                    redacted=event.redacted,
                )
                self._closing(event, ThinkingDelta, moment, thinking)
            case ToolCallEnd():
                self._closing(event, ToolCallDelta, moment, event.tool_call)
            case StreamStart():
                if self.started:
                    raise RemoteProtocolError("the answer started twice")
                self.started = True
            case StreamDone():
                self._finish(event.message, event.reason, event.usage, None)
            case StreamError():
                self._finish(event.message, event.reason, event.usage, event.error_message)
            case _:
                raise RemoteProtocolError(f"{event!r} is no stream event")

    def _opening(self, event: TextStart | ThinkingStart | ToolCallStart, block: _Block) -> None:
        index = event.content_index
        if index in self._blocks:
            raise RemoteProtocolError(f"{_tag(event)!r} opened content index {index} a second time")
        self._blocks[index] = self._open[index] = block

    def _closing(
        self, event: TextEnd | ThinkingEnd | ToolCallEnd, kind: type[_Delta], moment: int, final: AssistantContent
    ) -> None:
        block = self._open.get(event.content_index)
        if block is None or block.kind is not kind:
            raise self._illegal(event)
        del self._open[event.content_index]
        block.final = final
        block.closed_at = moment

    def _illegal(self, event: _BlockEvent) -> RemoteProtocolError:
        index = event.content_index
        block = self._blocks.get(index)
        state = "was never opened" if block is None else f"is a {_NAMES[block.kind]} block"
        if block is not None and index not in self._open:
            state += " that is already closed"
        return RemoteProtocolError(f"{_tag(event)!r} arrived for content index {index}, which {state}")

    def _finish(
        self, message: AssistantMessage | None, reason: StopReason, usage: Usage | None, error_message: str | None
    ) -> None:
        if message is not None:
            self._result = msgspec.structs.replace(
                message, stop_reason=reason, thinking_level=self._base.thinking_level or message.thinking_level
            )
            return
        self._result = msgspec.structs.replace(
            self._base,
            content=self._final_content(),
            usage=usage or self._base.usage,
            stop_reason=reason,
            error_message=error_message,
        )

    def _final_content(self) -> tuple[AssistantContent, ...]:
        return tuple([self._finished_block(self._blocks[index]) for index in sorted(self._blocks)])

    def _finished_block(self, block: _Block) -> AssistantContent:
        if block.final is not None:
            return block.final
        if block.kind is ToolCallDelta:
            arguments, error = parse_arguments("".join(block.parts))
            return ToolCall(id=block.id, name=block.name, arguments=arguments, arguments_error=error)
        return block.at(self._moment)

    def fail(self, reason: StopReason, error_message: str) -> AssistantMessage:
        """End the message as failed (``error``) or stopped (``aborted``), keeping what arrived.

        Blocks that were open are kept as they are; an open call keeps the arguments that were complete JSON.
        """
        partial = self.partial_at(self._moment)
        self._moment += 1
        self._result = msgspec.structs.replace(partial, stop_reason=reason, error_message=error_message)
        return self._result

    def result(self) -> AssistantMessage:
        """The final message.

        Raises:
            RemoteProtocolError: the stream has not ended.
        """
        if self._result is None:
            raise RemoteProtocolError("the stream ended before the answer was complete")
        return self._result

    def partial_at(self, moment: int) -> AssistantMessage:
        """The message as it was when the moment's event had been folded; events call it for their ``partial``."""
        if self._result is not None and moment >= self._moment:
            return self._result
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        content = tuple([block.at(moment) for block in blocks if block.opened_at <= moment])
        return msgspec.structs.replace(self._base, content=content)

    def arguments_at(self, moment: int, content_index: int) -> JsonObject:
        """A tolerant reading of a call's arguments at a moment; see ``ToolCallDelta.partial_arguments``.

        The text is read again only when it has grown by an eighth since the last reading, so reading at every delta
        stays linear; between two readings the earlier one is returned.
        """
        block = self._blocks[content_index]
        text = block.text_at(moment)
        length, arguments = block.arguments
        if length <= len(text) < length + max(64, length >> 3) and length:
            return arguments
        arguments = _read_tolerantly(text, arguments if length <= len(text) else {})
        block.arguments = (len(text), arguments)
        return arguments


def _read_tolerantly(text: str, last: JsonObject) -> JsonObject:
    try:
        import jiter
    except ImportError:
        arguments, error = parse_arguments(text)
        return last if error else arguments
    if not text.strip():
        return {}
    try:
        value = jiter.from_json(text.encode("utf-8", "replace"), partial_mode="trailing-strings")
    except ValueError:
        return last
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _tag(event: object) -> str:
    return str(getattr(getattr(event, "__struct_config__", None), "tag", type(event).__name__))
