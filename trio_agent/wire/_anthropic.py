"""Decoder of Anthropic's Messages, as Anthropic and its imitators stream them.

The server opens and closes each block itself. Blocks that its own tools make (searches, code, fallbacks) are no content
of ours: they are skipped with all that belongs to them, so the index on the wire is not the content index.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from trio_agent._messages import JsonObject, JsonValue
from trio_agent._models import Model
from trio_agent.wire._answer import OpenBlock
from trio_agent.wire._decoder import NO_ALIASES, Decoder
from trio_agent.wire._http_errors import describe_error
from trio_agent.wire._json import as_object, as_text, decode_event, quote
from trio_agent.wire._sse import MAX_EVENT_SIZE, ServerSentEvent
from trio_agent.wire._usage import count, make_usage

__all__ = ["AnthropicDecoder"]

_STOP_REASONS: Final[Mapping[str, Literal["stop", "length", "toolUse"]]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "toolUse",
}
_REFUSAL: Final = "The model refused to complete the request"
_FAILURES: Final[Mapping[str, str]] = {
    "pause_turn": "The provider paused its own turn (pause_turn), which cannot be continued from here",
    "sensitive": "The provider withheld the answer as sensitive",
    "model_context_window_exceeded": "The answer reached the end of the context window (model_context_window_exceeded)",
}
_REDACTED: Final = "[Reasoning redacted]"
_USAGE_FIELDS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation",
    "output_tokens_details",
)
_OPENING_DELTAS: Final[Mapping[str, Literal["text", "thinking"]]] = {"text_delta": "text", "thinking_delta": "thinking"}


class _Block(msgspec.Struct, gc=False):
    type: JsonValue = None
    text: JsonValue = None
    thinking: JsonValue = None
    signature: JsonValue = None
    data: JsonValue = None
    id: JsonValue = None
    name: JsonValue = None
    input: JsonValue = None


class _Delta(msgspec.Struct, gc=False):
    type: JsonValue = None
    text: JsonValue = None
    thinking: JsonValue = None
    signature: JsonValue = None
    partial_json: JsonValue = None
    stop_reason: JsonValue = None
    stop_details: JsonValue = None


class _MessageStart(msgspec.Struct, gc=False):
    id: JsonValue = None
    model: JsonValue = None
    content: list[_Block] | None = None
    stop_reason: JsonValue = None
    stop_details: JsonValue = None
    usage: JsonValue = None


class _Event(msgspec.Struct, gc=False):
    type: JsonValue = None
    index: JsonValue = None
    message: _MessageStart | str | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: JsonValue = None
    error: JsonValue = None


_event_decoder: Final = msgspec.json.Decoder(_Event)
_message_decoder: Final = msgspec.json.Decoder(_MessageStart)
_any_decoder: Final = msgspec.json.Decoder(JsonValue)


class AnthropicDecoder(Decoder):
    """Turns the body of a Messages answer into stream events."""

    def __init__(
        self,
        model: Model,
        *,
        timestamp: int,
        aliases: Mapping[str, str] = NO_ALIASES,
        max_event_size: int = MAX_EVENT_SIZE,
    ) -> None:
        super().__init__(model, timestamp=timestamp, aliases=aliases, max_event_size=max_event_size)
        # By index on the wire; None for a block that is skipped.
        self._open: dict[int | None, OpenBlock | None] = {}
        self._inputs: dict[int, JsonObject] = {}
        self._started = False
        self._stop_reason: str | None = None
        self._stop_details: JsonValue = None
        self._usage: JsonObject = {}

    def _on_event(self, event: ServerSentEvent) -> None:  # noqa: C901 -- a flat table of the protocol's events
        data = decode_event(event.data, _event_decoder)
        index = data.index if type(data.index) is int else None
        match data.type or event.name:
            case "content_block_delta":
                if data.delta is not None:
                    self._on_delta(index, data.delta)
            case "content_block_start":
                if data.content_block is not None:
                    self._on_block_start(index, data.content_block)
            case "content_block_stop":
                self._close(index)
            case "message_start":
                if isinstance(data.message, _MessageStart):
                    self._on_message(data.message)
            case "message_delta":
                if data.delta is not None:
                    self._on_stop_reason(data.delta)
                self._on_usage(data.usage)
            case "message_stop":
                self._on_stop()
            case kind:
                if kind == "error" or data.error:
                    self._answer.fail(describe_error(decode_event(event.data, _any_decoder)))

    def _on_message(self, message: _MessageStart) -> None:
        self._answer.identify(message.id, message.model)
        self._on_usage(message.usage)
        if self._started:
            # Proxies that join two answers start twice; what was begun goes on.
            return
        self._started = True
        # With programmatic tool calling the whole message may be in its start.
        for number, block in enumerate(message.content or ()):
            self._on_block_start(number, block)
            self._close(number)
        self._on_stop_reason(message)

    def _on_block_start(self, index: int | None, block: _Block) -> None:
        self._close(index)
        answer = self._answer
        opened: OpenBlock | None = None
        match block.type:
            case "text":
                opened = answer.open("text")
                if text := as_text(block.text):
                    answer.add(opened, text)
            case "thinking":
                opened = answer.open("thinking")
                if text := as_text(block.thinking):
                    answer.add(opened, text)
                opened.signature = as_text(block.signature) or None
            case "redacted_thinking":
                opened = answer.open("thinking")
                opened.parts.append(_REDACTED)
                opened.signature = as_text(block.data)
                opened.redacted = True
            case "tool_use":
                opened = answer.open("toolcall", call_id=as_text(block.id), name=as_text(block.name))
                self._inputs[opened.index] = as_object(block.input)
            case _:
                pass
        self._open[index] = opened

    def _on_delta(self, index: int | None, delta: _Delta) -> None:
        try:
            block = self._open[index]
        except KeyError:
            kind = _OPENING_DELTAS.get(as_text(delta.type))
            if kind is None:
                return
            # A proxy left the start away.
            block = self._open[index] = self._answer.open(kind)
        if block is None:
            return
        match delta.type:
            case "text_delta" if block.kind == "text":
                self._answer.add(block, as_text(delta.text))
            case "input_json_delta" if block.kind == "toolcall":
                self._answer.add(block, as_text(delta.partial_json))
            case "thinking_delta" if block.kind == "thinking":
                self._answer.add(block, as_text(delta.thinking))
            case "signature_delta":
                block.signature = (block.signature or "") + as_text(delta.signature)
            case _:
                # Citations, and what is yet to be invented.
                pass

    def _close(self, index: int | None) -> None:
        block = self._open.pop(index, None)
        if block is None:
            return
        given = self._inputs.pop(block.index, None)
        if given and not block.text.strip():
            # A proxy put the whole input into the start.
            self._answer.add(block, quote(given))
        self._answer.close(block)

    def _on_stop_reason(self, source: _Delta | _MessageStart) -> None:
        if isinstance(source.stop_reason, str) and source.stop_reason:
            self._stop_reason = source.stop_reason
            self._stop_details = source.stop_details

    def _on_usage(self, usage: JsonValue) -> None:
        if not isinstance(usage, dict):
            return
        # Cumulative: a value replaces the one before, null and absence keep it.
        members = as_object(usage)
        self._usage.update({name: members[name] for name in _USAGE_FIELDS if members.get(name) is not None})
        known = self._usage
        long_lived = as_object(known.get("cache_creation")).get("ephemeral_1h_input_tokens")
        thought = as_object(known.get("output_tokens_details")).get("thinking_tokens")
        self._answer.usage = make_usage(
            fresh=count(known.get("input_tokens")),
            output=count(known.get("output_tokens")),
            cache_read=count(known.get("cache_read_input_tokens")),
            cache_write=count(known.get("cache_creation_input_tokens")),
            cache_write_1h=None if long_lived is None else count(long_lived),
            reasoning=None if thought is None else count(thought),
        )

    def _on_stop(self) -> None:
        answer = self._answer
        for index in tuple(self._open):
            self._close(index)
        reason = answer.raw_stop_reason = self._stop_reason
        if reason is not None and reason in _STOP_REASONS:
            answer.complete(_STOP_REASONS[reason])
            return
        answer.close_all()
        if reason is None:
            answer.fail("Anthropic stream ended without a stop reason")
        elif reason == "refusal":
            answer.fail(_refusal(self._stop_details))
        else:
            answer.fail(_FAILURES.get(reason, f"Unhandled stop reason: {reason}"))

    def _on_end(self) -> None:
        self._answer.fail("Anthropic stream ended before message_stop")

    def _on_plain_body(self, body: bytes) -> None:
        message = decode_event(body, _message_decoder)
        if message.content is None:
            self._answer.fail(describe_error(decode_event(body, _any_decoder)))
        else:
            self._on_message(message)
            self._on_stop()


def _refusal(details: JsonValue) -> str:
    explanation, category = as_object(details).get("explanation"), as_object(details).get("category")
    text = f"{_REFUSAL}: {explanation}" if isinstance(explanation, str) and explanation else _REFUSAL
    return f"{text} ({category})" if isinstance(category, str) and category else text
