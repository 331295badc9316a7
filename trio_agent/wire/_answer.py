"""Answer: the blocks of one answer as they arrive, the events they make, and the message they become.

All decoders write here, so that what is the same for every format is said once: blocks are opened, grown and closed
under their index; half of a surrogate pair waits for the other half; ids of calls are unique; what a stop reason means
beside the calls that came with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from trio_agent._messages import (
    AssistantContent,
    AssistantMessage,
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
)
from trio_agent.wire._ids import short_hash
from trio_agent.wire._json import finish_arguments, scrub_text

__all__ = ["Answer", "OpenBlock"]

_Kind: TypeAlias = Literal["text", "thinking", "toolcall"]


class OpenBlock:
    """A block of an answer.

    Attributes:
        kind: of the block.
        index: its content index.
        parts: what it holds: text, reasoning, or argument text.
        id: of a call, as far as the server has sent it.
        name: of the called tool, as far as the server has sent it.
        signature: opaque datum of the provider.
        redacted: the reasoning is only in the signature.
        final: the content, once the block is closed.
    """

    __slots__ = ("final", "half", "id", "index", "kind", "name", "parts", "redacted", "signature")

    def __init__(self, kind: _Kind, index: int, call_id: str, name: str) -> None:
        self.kind: _Kind = kind
        self.index = index
        self.parts: list[str] = []
        self.id = call_id
        self.name = name
        self.signature: str | None = None
        self.redacted: bool | None = None
        self.final: AssistantContent | None = None
        self.half = ""

    @property
    def text(self) -> str:
        """What has arrived."""
        return "".join(self.parts)

    def content(self) -> AssistantContent:
        """The block as it stands."""
        if self.final is not None:
            return self.final
        signature = None if self.signature is None else scrub_text(self.signature)
        if self.kind == "text":
            return TextContent(text=self.text, text_signature=signature)
        if self.kind == "thinking":
            return ThinkingContent(thinking=self.text, thinking_signature=signature, redacted=self.redacted)
        arguments, error = finish_arguments(self.text)
        return ToolCall(
            id=self.id, name=self.name, arguments=arguments, arguments_error=error, thought_signature=signature
        )


class Answer:
    """One answer in the making.

    Args:
        model: who answers.
        timestamp: of the request, in milliseconds since the epoch.
        aliases: tool names on the wire that stand for others.
    """

    __slots__ = (
        "_aliases", "_ids", "_model", "_timestamp", "blocks", "events", "finished", "provider_cost", "raw_stop_reason",
        "response_id", "response_model", "usage",
    )  # fmt: skip

    def __init__(self, model: Model, *, timestamp: int, aliases: Mapping[str, str]) -> None:
        self._model = model
        self._timestamp = timestamp
        self._aliases = aliases
        self._ids: set[str] = set()
        self.blocks: list[OpenBlock] = []
        self.events: list[AssistantMessageEvent] = [StreamStart()]
        self.finished = False
        self.usage: Usage | None = None
        self.provider_cost: float | None = None
        self.raw_stop_reason: str | None = None
        self.response_id: str | None = None
        self.response_model: str | None = None

    def take_events(self) -> list[AssistantMessageEvent]:
        """The events since the last call."""
        events = self.events
        self.events = []
        return events

    def identify(self, response_id: object, model: object) -> None:
        """Record what the server calls the answer and itself; the first of each that says something counts."""
        if self.response_id is None and isinstance(response_id, str) and response_id:
            self.response_id = scrub_text(response_id)
        if self.response_model is None and isinstance(model, str) and model and model != self._model.id:
            self.response_model = scrub_text(model)

    def open(self, kind: _Kind, *, call_id: str = "", name: str = "") -> OpenBlock:
        """Open the next block; a call with what is known of it."""
        if call_id:
            call_id = self._unique(scrub_text(call_id))
        block = OpenBlock(kind, len(self.blocks), call_id, self.tool_name(name))
        self.blocks.append(block)
        if kind == "text":
            self.events.append(TextStart(content_index=block.index))
        elif kind == "thinking":
            self.events.append(ThinkingStart(content_index=block.index))
        else:
            self.events.append(ToolCallStart(content_index=block.index, id=block.id, name=block.name))
        return block

    def tool_name(self, name: str) -> str:
        """The tool's own name."""
        return self._aliases.get(name) or scrub_text(name)

    def name_call(self, block: OpenBlock, call_id: str) -> None:
        """Give an open call the id that it was opened without."""
        block.id = self._unique(scrub_text(call_id))

    def _unique(self, call_id: str) -> str:
        # Some servers give all calls of an answer one id; results could not be told apart.
        unique, attempt = call_id, 1
        while unique in self._ids:
            attempt += 1
            unique = f"{call_id}_{attempt}"
        self._ids.add(unique)
        return unique

    def add(self, block: OpenBlock, delta: str) -> None:
        """Grow an open block, as the server did: an empty delta is an event, too."""
        if block.half or not delta.isascii():
            delta = self._join_halves(block, delta)
            if not delta:
                return
        block.parts.append(delta)
        if block.kind == "text":
            self.events.append(TextDelta(content_index=block.index, delta=delta))
        elif block.kind == "toolcall":
            self.events.append(ToolCallDelta(content_index=block.index, delta=delta))
        else:
            self.events.append(ThinkingDelta(content_index=block.index, delta=delta))

    def _join_halves(self, block: OpenBlock, delta: str) -> str:
        # Servers that count UTF-16 units cut between the escapes of a pair. The first half waits for the second.
        delta = block.half + delta
        block.half = ""
        if "\ud800" <= delta[-1] <= "\udbff":
            block.half = delta[-1]
            delta = delta[:-1]
        return scrub_text(delta)

    def close(self, block: OpenBlock) -> None:
        """Close a block; closing it again does nothing."""
        if block.final is not None:
            return
        self._ensure_id(block)
        block.final = content = block.content()
        self.events.append(_end_event(block.index, content))

    def _ensure_id(self, block: OpenBlock) -> None:
        if block.kind == "toolcall" and not block.id:
            # Made of what is known, not at random: the same bytes give the same message.
            block.id = self._unique(f"call_{short_hash(f'{self.response_id}:{self._timestamp}:{block.index}')}")

    def complete(self, reason: Literal["stop", "length", "toolUse"]) -> None:
        """End the answer: close what is open and decide what the reason comes to.

        Calls that came with ``stop`` are to be run. ``toolUse`` without a call is the end if there is text, and
        otherwise an error, or a loop that believes the label would ask for ever.
        """
        self.close_all()
        kinds = {block.kind for block in self.blocks}
        if reason == "stop" and "toolcall" in kinds:
            reason = "toolUse"
        elif reason == "toolUse" and "toolcall" not in kinds:
            if not any(block.kind == "text" and block.text.strip() for block in self.blocks):
                self.fail("The model announced a tool call but sent none")
                return
            reason = "stop"
        self.finished = True
        self.events.append(StreamDone(reason=reason, message=self._message(reason, None)))

    def close_all(self) -> None:
        """Close what is open, in content order."""
        for block in self.blocks:
            self.close(block)

    def fail(self, error_message: str) -> None:
        """End the answer as failed, with what has arrived; blocks that are open get no end event."""
        if self.finished:
            return
        self.finished = True
        for block in self.blocks:
            self._ensure_id(block)
        error_message = scrub_text(error_message)
        self.events.append(StreamError(reason="error", message=self._message("error", error_message)))

    def _message(self, reason: StopReason, error_message: str | None) -> AssistantMessage:
        return AssistantMessage(
            content=tuple([block.content() for block in self.blocks]),
            api=self._model.api,
            provider=self._model.provider,
            model=self._model.id,
            usage=self._priced_usage(),
            stop_reason=reason,
            timestamp=self._timestamp,
            error_message=error_message,
            response_model=self.response_model,
            response_id=self.response_id,
            raw_stop_reason=scrub_text(self.raw_stop_reason or "") or None,
        )

    def _priced_usage(self) -> Usage:
        if self.usage is None:
            return Usage.zero()
        usage = self._model.price(self.usage)
        if self.provider_cost is None:
            return usage
        cost = msgspec.structs.replace(usage.cost, total=self.provider_cost, total_from_provider=True)
        return msgspec.structs.replace(usage, cost=cost)


def _end_event(index: int, content: AssistantContent) -> AssistantMessageEvent:
    if isinstance(content, TextContent):
        return TextEnd(content_index=index, content=content.text, content_signature=content.text_signature)
    if isinstance(content, ToolCall):
        return ToolCallEnd(content_index=index, tool_call=content)
    return ThinkingEnd(
        content_index=index,
        content=content.thinking,
        content_signature=content.thinking_signature,
        redacted=content.redacted,
    )
