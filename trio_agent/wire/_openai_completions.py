"""Decoder of Chat Completions, as OpenAI and the many servers that imitate it stream them.

One text block and one thinking block a message, however they alternate; calls by their index, else by their id. All
blocks stay open until the stream ends: only then is it known that nothing more belongs to them. Which server does what
is in the comments where it matters; what a server is *sent* is :mod:`trio_agent.wire._openai_completions_request`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from trio_agent._messages import JsonObject, JsonValue
from trio_agent._models import Model
from trio_agent.wire._answer import OpenBlock
from trio_agent.wire._compat import completions_compat
from trio_agent.wire._decoder import NO_ALIASES, Decoder
from trio_agent.wire._http_errors import describe_error
from trio_agent.wire._json import as_list, as_object, as_text, decode_event
from trio_agent.wire._reasoning_details import ReasoningDetails
from trio_agent.wire._sse import MAX_EVENT_SIZE, ServerSentEvent
from trio_agent.wire._tool_call_deltas import CallDelta, CallDeltas
from trio_agent.wire._usage import chat_usage, openrouter_cost

__all__ = ["CompletionsDecoder"]

_REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_text")
_STOP_REASONS: Final[Mapping[str, Literal["stop", "length", "toolUse"]]] = {
    "stop": "stop",
    "end": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "toolUse",
    "tool_call": "toolUse",
    "tool_use": "toolUse",
    "function_call": "toolUse",
}
_FAILURES: Final = frozenset(
    {"abort", "content_filter", "error", "insufficient_system_resource", "network_error", "safety"}
)


class _Delta(msgspec.Struct, gc=False):
    content: JsonValue = None
    reasoning_content: JsonValue = None
    reasoning: JsonValue = None
    reasoning_text: JsonValue = None
    reasoning_details: JsonValue = None
    refusal: JsonValue = None
    tool_calls: list[CallDelta | None] | None = None


class _Choice(msgspec.Struct, gc=False):
    index: JsonValue = None
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: JsonValue = None
    usage: JsonValue = None


class _Chunk(msgspec.Struct, gc=False):
    id: JsonValue = None
    model: JsonValue = None
    object: JsonValue = None
    choices: list[_Choice | None] | None = None
    usage: JsonValue = None
    error: JsonValue = None
    x_groq: JsonValue = None


_chunk_decoder: Final = msgspec.json.Decoder(_Chunk)
_any_decoder: Final = msgspec.json.Decoder(JsonValue)


class CompletionsDecoder(Decoder):
    """Turns the body of a Chat Completions answer into stream events."""

    def __init__(
        self,
        model: Model,
        *,
        timestamp: int,
        aliases: Mapping[str, str] = NO_ALIASES,
        max_event_size: int = MAX_EVENT_SIZE,
    ) -> None:
        super().__init__(model, timestamp=timestamp, aliases=aliases, max_event_size=max_event_size)
        self._text: OpenBlock | None = None
        self._thinking: OpenBlock | None = None
        self._thinking_field: str | None = None
        self._details = ReasoningDetails()
        self._calls = CallDeltas(self._answer)
        self._finish_reason: str | None = None

    def _on_event(self, event: ServerSentEvent) -> None:
        if event.data.startswith(b"[DONE]"):
            self._on_end()
            return
        chunk = decode_event(event.data, _chunk_decoder)
        self._on_chunk(chunk)
        if chunk.error or chunk.object == "error" or event.name == "error":
            self._answer.fail(describe_error(decode_event(event.data, _any_decoder)))

    def _on_chunk(self, chunk: _Chunk) -> None:
        answer = self._answer
        if answer.response_id is None or answer.response_model is None:
            answer.identify(chunk.id, chunk.model)
        usage = chunk.usage
        for choice in chunk.choices or ():
            # With n > 1 the choices alternate; only the first is the answer.
            if choice is None or choice.index not in (0, None):
                continue
            if choice.delta is not None:
                self._on_delta(choice.delta)
            elif choice.message is not None and not answer.blocks:
                # A server that does not stream sends all at once. (Perplexity repeats the message beside the deltas.)
                self._on_delta(choice.message)
            if choice.finish_reason and isinstance(choice.finish_reason, str):
                self._finish_reason = choice.finish_reason
            usage = usage or choice.usage  # Moonshot
        if not usage and chunk.x_groq:
            usage = as_object(chunk.x_groq).get("usage")
        if usage and isinstance(usage, dict):
            self._on_usage(as_object(usage))

    def _on_usage(self, usage: JsonObject) -> None:
        # Usage is cumulative where it comes more than once (Perplexity): the last one counts, nothing is summed.
        self._answer.usage = chat_usage(usage)
        if self._model.provider == "openrouter" or "openrouter.ai" in self._model.base_url:
            self._answer.provider_cost = openrouter_cost(usage)

    def _on_delta(self, delta: _Delta) -> None:
        content = delta.content
        if delta.reasoning_content or delta.reasoning or delta.reasoning_text or delta.reasoning_details:
            self._on_reasoning(delta)
        if content:
            if type(content) is str:
                self._answer.add(self._text or self._open_text(), content)
            else:
                self._on_parts(as_list(content))
        if delta.refusal and isinstance(delta.refusal, str):
            self._answer.add(self._text or self._open_text(), delta.refusal)
        if delta.tool_calls:
            for call in delta.tool_calls:
                if call is not None:
                    self._calls.add(call)

    def _open_text(self) -> OpenBlock:
        self._text = self._answer.open("text")
        return self._text

    def _add_thinking(self, text: str) -> None:
        if self._thinking is None:
            self._thinking = self._answer.open("thinking")
        self._answer.add(self._thinking, text)

    def _on_reasoning(self, delta: _Delta) -> None:
        shown = ""
        for field in _REASONING_FIELDS:
            text = getattr(delta, field)
            if text and isinstance(text, str):
                # Some servers send the same text in two fields.
                shown = text
                self._thinking_field = self._thinking_field or field
                break
        readable = self._details.add(delta.reasoning_details)
        if shown or readable:
            self._add_thinking(shown or readable)
        elif self._details and self._thinking is None:
            # Encrypted reasoning makes a block without text: its signature has to be sent back.
            self._thinking = self._answer.open("thinking")

    def _on_parts(self, parts: list[JsonValue]) -> None:
        # Mistral: `[{"type": "thinking", "thinking": [{"type": "text", ...}]}, {"type": "text", ...}]`.
        for part in parts:
            members = as_object(part)
            if members.get("type") == "thinking":
                for text in _texts(members.get("thinking")):
                    self._add_thinking(text)
            else:
                for text in _texts([part]):
                    self._answer.add(self._text or self._open_text(), text)

    def _on_end(self) -> None:
        answer = self._answer
        if self._thinking is not None:
            self._thinking.signature = self._details.signature() or self._thinking_field
        reason = answer.raw_stop_reason = self._finish_reason
        if reason is None and completions_compat(self._model).supports_finish_reason:
            answer.close_all()
            answer.fail("Stream ended without finish_reason")
        elif reason is None:
            answer.complete("stop")
        elif reason in _STOP_REASONS:
            answer.complete(_STOP_REASONS[reason])
        elif answer.blocks and reason not in _FAILURES:
            # A word that nobody knows yet is no reason to lose an answer.
            answer.complete("stop")
        else:
            answer.close_all()
            answer.fail(f"Provider finish_reason: {reason}")

    def _on_plain_body(self, body: bytes) -> None:
        chunk = decode_event(body, _chunk_decoder)
        self._on_chunk(chunk)
        if chunk.error or not chunk.choices:
            self._answer.fail(describe_error(decode_event(body, _any_decoder)))
        else:
            self._on_end()


def _texts(value: JsonValue) -> list[str]:
    parts = [value] if isinstance(value, str) else as_list(value)
    texts = [part if isinstance(part, str) else as_text(as_object(part).get("text")) for part in parts]
    return [text for text in texts if text]
