"""MessageBuilder folds the events of one stream into its assistant message.

Rules of the protocol, all of them here. A block is opened once under its ``content_index``, grows while it is open, and
is closed once; blocks may interleave. After ``done`` or ``error`` nothing may come. What breaks these rules is the
fault of the other side and raises ``RemoteProtocolError``. Two things are tolerated: block events before ``start``, and
indices that leave gaps (the message then holds the blocks in the order of their indices).

Ids of calls are unique within the answer, whatever the server sent: results could not be told apart otherwise. A call
gets its unique id where it first shows one, so that its events, the partial messages and the final one agree; a call
that never got an id is given one when it ends. Ids of other answers play no part.

Cost. Folding an event is independent of what has arrived. Each part of a block remembers at which event it came, so
that any event can later say what the message looked like: it holds the builder and a number. The builder never holds an
event: that would make a cycle through a slot that the collector does not look into.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import msgspec

from trio_agent._block import Block, Delta, parse_arguments
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
    Bound,
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
)

__all__ = ["MessageBuilder", "parse_arguments"]

_E = TypeVar("_E", bound=Any)
_bind = cast("Any", Bound).__dict__["_bound"].__set__
_NAMES = {TextDelta: "text", ThinkingDelta: "thinking", ToolCallDelta: "tool call"}
_BlockEvent: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta | TextEnd | ThinkingEnd | ToolCallEnd


class MessageBuilder:
    """Folds stream events into one ``AssistantMessage``.

    Plain functions only; the builder neither awaits nor does I/O. It keeps everything that arrived until it is dropped;
    events that it returned keep it alive.

    Args:
        model: who answers; names the message's api, provider and model.
        timestamp: of the request, in milliseconds since the epoch.
        thinking_level: recorded in the message.
    """

    __slots__ = ("_base", "_blocks", "_ids", "_moment", "_open", "_result", "finished", "started")

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
        self._blocks: dict[int, Block] = {}
        self._open: dict[int, Block] = {}
        # Every id in use, and how many calls have asked for it.
        self._ids: dict[str, int] = {}
        self._moment = 0
        self._result: AssistantMessage | None = None
        self.started = False
        """Whether the ``start`` event has arrived."""
        self.finished = False
        """Whether ``done`` or ``error`` has arrived, or :meth:`fail` was called."""

    @property
    def partial(self) -> AssistantMessage:
        """The message as it is now; the final one when finished."""
        return self._result or self.partial_at(self._moment)

    def add(self, event: _E) -> _E:
        """Fold one event.

        Returns:
            An equal event with its lazy ``partial``, in which calls carry their ids as in the message; the one that was
            given is left alone.

        Raises:
            RemoteProtocolError: the event is not legal here; the builder is unchanged and can still be failed.
        """
        if self.finished:
            raise RemoteProtocolError(f"{_tag(event)!r} arrived after the answer had ended")
        folded: Any  # and no cast: it would be a call for each event
        moment = self._moment + 1
        kind = type(event)
        if kind is TextDelta or kind is ToolCallDelta or kind is ThinkingDelta:
            index, delta = event.content_index, event.delta
            block = self._open.get(index)
            if block is None or block.kind is not kind:
                raise self._illegal(event)
            block.parts.append(delta)
            block.moments.append(moment)
            folded = kind(content_index=index, delta=delta)
        else:
            fold = _FOLDS.get(kind)
            if fold is None:
                raise RemoteProtocolError(f"{event!r} is no stream event")
            folded = fold(self, event, moment).__copy__()
        self._moment = moment
        _bind(folded, (self, moment))
        return folded  # type: ignore[no-any-return]

    def _start(self, event: StreamStart, _moment: int) -> StreamStart:
        if self.started:
            raise RemoteProtocolError("the answer started twice")
        self.started = True
        return event

    def _open_text(self, event: TextStart, moment: int) -> TextStart:
        self._opening(event, Block(TextDelta, moment))
        return event

    def _open_thinking(self, event: ThinkingStart, moment: int) -> ThinkingStart:
        self._opening(event, Block(ThinkingDelta, moment))
        return event

    def _open_call(self, event: ToolCallStart, moment: int) -> ToolCallStart:
        block = Block(ToolCallDelta, moment, sent_id=event.id, name=event.name)
        self._opening(event, block)
        block.id = self._unique_id(event.id) if event.id else ""
        return event if block.id == event.id else msgspec.structs.replace(event, id=block.id)

    def _close_text(self, event: TextEnd, moment: int) -> TextEnd:
        block = self._closing(event, TextDelta, moment)
        block.final = TextContent(text=event.content, text_signature=event.content_signature)
        return event

    def _close_thinking(self, event: ThinkingEnd, moment: int) -> ThinkingEnd:
        block = self._closing(event, ThinkingDelta, moment)
        block.final = ThinkingContent(
            thinking=event.content, thinking_signature=event.content_signature, redacted=event.redacted
        )
        return event

    def _close_call(self, event: ToolCallEnd, moment: int) -> ToolCallEnd:
        block = self._closing(event, ToolCallDelta, moment)
        call = event.tool_call
        call_id = self._final_id(block, event.content_index, call.id)
        if call.id != call_id:
            call = msgspec.structs.replace(call, id=call_id)
            event = msgspec.structs.replace(event, tool_call=call)
        block.final = call
        return event

    def _opening(self, event: TextStart | ThinkingStart | ToolCallStart, block: Block) -> None:
        index = event.content_index
        if index in self._blocks:
            raise RemoteProtocolError(f"{_tag(event)!r} opened content index {index} a second time")
        self._blocks[index] = self._open[index] = block

    def _closing(self, event: TextEnd | ThinkingEnd | ToolCallEnd, kind: type[Delta], moment: int) -> Block:
        block = self._open.get(event.content_index)
        if block is None or block.kind is not kind:
            raise self._illegal(event)
        del self._open[event.content_index]
        block.closed_at = moment
        return block

    def _final_id(self, block: Block, index: int, sent_id: str) -> str:
        # The server may send the id only at the end, or another one than before, or none at all.
        if sent_id and sent_id not in (block.sent_id, block.id):
            block.sent_id = sent_id
            return self._unique_id(sent_id)
        return block.id or self._made_id(index)

    def _unique_id(self, sent_id: str) -> str:
        if sent_id not in self._ids:
            self._ids[sent_id] = 1
            return sent_id
        while True:
            self._ids[sent_id] += 1
            # A Responses id is a call id and an item id joined by a bar, and both must differ.
            unique = "|".join([f"{part}_{self._ids[sent_id]}" for part in sent_id.split("|")])
            if unique not in self._ids:
                self._ids[unique] = 1
                return unique

    def _made_id(self, index: int) -> str:
        # Not at random: the same stream at the same time gives the same message.
        return self._unique_id(f"call_{self._base.timestamp}_{index}")

    def _illegal(self, event: _BlockEvent) -> RemoteProtocolError:
        index = event.content_index
        block = self._blocks.get(index)
        state = "was never opened" if block is None else f"is a {_NAMES[block.kind]} block"
        if block is not None and index not in self._open:
            state += " that is already closed"
        return RemoteProtocolError(f"{_tag(event)!r} arrived for content index {index}, which {state}")

    def _end(self, event: StreamDone | StreamError, _moment: int) -> StreamDone | StreamError:
        message = event.message
        if message is not None:
            content = self._with_unique_ids(message.content)
            if content != message.content:
                message = msgspec.structs.replace(message, content=content)
                event = msgspec.structs.replace(event, message=message)
            level = self._base.thinking_level or message.thinking_level
            self.finished = True
            self._result = msgspec.structs.replace(message, stop_reason=event.reason, thinking_level=level)
            return event
        if isinstance(event, StreamError):
            content, error_message = self._content_at(self._moment), event.error_message
        else:
            content, error_message = self._final_content(), None
        self.finished = True
        self._result = msgspec.structs.replace(
            self._base,
            content=content,
            usage=event.usage or self._base.usage,
            stop_reason=event.reason,
            error_message=error_message,
        )
        return event

    def _with_unique_ids(self, content: tuple[AssistantContent, ...]) -> tuple[AssistantContent, ...]:
        # The message of a whole answer repeats the ids that the server sent. Its calls are the blocks' calls in the
        # same order; a stream function that sends no blocks has calls here that no event has shown.
        shown: defaultdict[str, deque[str]] = defaultdict(deque)
        for _, block in sorted(self._blocks.items()):
            if block.kind is ToolCallDelta:
                shown[block.sent_id].append(block.final.id if isinstance(block.final, ToolCall) else block.id)
        taken: set[str] = set()
        blocks = list(content)
        for position, call in enumerate(blocks):
            if type(call) is ToolCall:
                call_id = shown[call.id].popleft() if shown[call.id] else call.id
                if not call_id:
                    call_id = self._made_id(position)
                elif call_id in taken:
                    call_id = self._unique_id(call_id)
                self._ids.setdefault(call_id, 1)
                taken.add(call_id)
                if call_id != call.id:
                    blocks[position] = msgspec.structs.replace(call, id=call_id)
        return tuple(blocks)

    def _final_content(self) -> tuple[AssistantContent, ...]:
        return tuple([self._finished_block(index, block) for index, block in sorted(self._blocks.items())])

    def _finished_block(self, index: int, block: Block) -> AssistantContent:
        if block.final is not None:
            return block.final
        if block.kind is ToolCallDelta:
            arguments, error = parse_arguments(block.text_at(self._moment))
            call_id = self._final_id(block, index, "")
            return ToolCall(id=call_id, name=block.name, arguments=arguments, arguments_error=error)
        return block.at(self._moment)

    def fail(self, reason: StopReason, error_message: str) -> AssistantMessage:
        """End the message as failed (``error``) or stopped (``aborted``), keeping what arrived.

        Blocks that were open are kept as they are; an open call keeps the arguments that were complete JSON. An
        ``error`` event without a message does the same.
        """
        partial = self.partial_at(self._moment)
        self._moment += 1
        self.finished = True
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
        if not self._blocks:
            return self._base
        return msgspec.structs.replace(self._base, content=self._content_at(moment))

    def _content_at(self, moment: int) -> tuple[AssistantContent, ...]:
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        return tuple([block.at(moment) for block in blocks if block.opened_at <= moment])

    def arguments_at(self, moment: int, content_index: int) -> JsonObject:
        """A reading of a call's arguments at a moment; see ``ToolCallDelta.partial_arguments``."""
        return self._blocks[content_index].arguments_at(moment)


_FOLDS: dict[type, Callable[[MessageBuilder, Any, int], Any]] = {
    StreamStart: MessageBuilder._start,
    TextStart: MessageBuilder._open_text,
    TextEnd: MessageBuilder._close_text,
    ThinkingStart: MessageBuilder._open_thinking,
    ThinkingEnd: MessageBuilder._close_thinking,
    ToolCallStart: MessageBuilder._open_call,
    ToolCallEnd: MessageBuilder._close_call,
    StreamDone: MessageBuilder._end,
    StreamError: MessageBuilder._end,
}


def _tag(event: object) -> str:
    return str(getattr(getattr(event, "__struct_config__", None), "tag", type(event).__name__))
