"""Small streams for tests: how to write one, and how to read one through a decoder and the builder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from trio_agent._builder import MessageBuilder
from trio_agent._messages import AssistantMessage
from trio_agent._models import Model
from trio_agent._stream_events import AssistantMessageEvent, StreamDone, StreamError, StreamStart
from trio_agent.wire import WIRE_FORMATS

DATA = Path(__file__).parent / "data"
CHAT = Model(id="m-1", api="openai-completions", provider="test", base_url="https://llm.example/v1")
CLAUDE = Model(id="claude-x", api="anthropic-messages", provider="anthropic", base_url="https://api.anthropic.com")
TIMESTAMP = 1_700_000_000_000

OWN_STREAMS = sorted(path.stem for path in DATA.glob("*.sse"))


def own_stream(name: str) -> tuple[Model, bytes]:
    """A stream of this repository, and a model that speaks its format."""
    return (CHAT if name.startswith("chat-") else CLAUDE), (DATA / f"{name}.sse").read_bytes()


def decode(model: Model, chunks: bytes | Iterable[bytes], **options: Any) -> list[AssistantMessageEvent]:
    """All events of a body that arrives in these pieces."""
    decoder = WIRE_FORMATS[model.api].decoder(model, timestamp=TIMESTAMP, **options)
    events: list[AssistantMessageEvent] = []
    for chunk in [chunks] if isinstance(chunks, bytes) else chunks:
        events += decoder.feed(chunk)
    return events + decoder.finish()


def checked(model: Model, events: list[AssistantMessageEvent]) -> AssistantMessage:
    """The message of the events, after the protocol's own rules were found kept."""
    assert isinstance(events[0], StreamStart)
    *body, last = events
    assert isinstance(last, StreamDone | StreamError)
    assert not any(isinstance(event, StreamDone | StreamError) for event in body)
    builder = MessageBuilder(model, timestamp=TIMESTAMP)
    for event in body:
        builder.add(event)
    assert last.message is not None
    folded = builder.partial
    if isinstance(last, StreamDone):
        assert folded.content == last.message.content
    else:
        assert len(folded.content) == len(last.message.content)
    builder.add(last)
    assert builder.result() == last.message
    return last.message


def message_of(model: Model, body: bytes, **options: Any) -> AssistantMessage:
    """The message that a body comes to."""
    return checked(model, decode(model, body, **options))


def run_lengths(events: Iterable[AssistantMessageEvent]) -> list[str]:
    """Events in short: tag, content index, and how many of the same follow one another."""
    runs: list[tuple[str, int]] = []
    for event in events:
        tag = str(event.__struct_config__.tag)
        index = getattr(event, "content_index", None)
        name = tag if index is None else f"{tag}:{index}"
        if runs and runs[-1][0] == name:
            runs[-1] = (name, runs[-1][1] + 1)
        else:
            runs.append((name, 1))
    return [name if count == 1 else f"{name}*{count}" for name, count in runs]


def plain(value: object) -> Any:
    """A value as it stands in JSON."""
    return msgspec.json.decode(msgspec.json.encode(value))


def sse(*data: Any, done: bool = True) -> bytes:
    """A body of Chat Completions events."""
    lines = [item if isinstance(item, str) else json.dumps(item) for item in data]
    return "".join(f"data: {line}\n\n" for line in [*lines, *(["[DONE]"] if done else [])]).encode()


def delta(finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    """A Chat Completions chunk."""
    return {"id": "c1", "choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]}


def call(
    index: int | None = None, call_id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    """A fragment of a call."""
    function = {"name": name, "arguments": arguments}
    fragment = {"index": index, "id": call_id, "function": {k: v for k, v in function.items() if v is not None}}
    return {key: value for key, value in fragment.items() if value is not None}


def named(*events: dict[str, Any], stop: bool = True) -> bytes:
    """A body of Anthropic events."""
    all_events = [*events, *([{"type": "message_stop"}] if stop else [])]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in all_events).encode()


def start(**message: Any) -> dict[str, Any]:
    """The first event of an Anthropic stream."""
    return {"type": "message_start", "message": {"id": "msg_1", "model": "claude-x", "content": [], **message}}


def block_start(index: int, kind: str, **block: Any) -> dict[str, Any]:
    """An Anthropic block opens."""
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **block}}


def block_delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    """An Anthropic block grows."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def block_stop(index: int) -> dict[str, Any]:
    """An Anthropic block is complete."""
    return {"type": "content_block_stop", "index": index}


def stop_reason(reason: str | None, usage: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """The event that says why an Anthropic answer ends."""
    return {"type": "message_delta", "delta": {"stop_reason": reason, **fields}, "usage": usage or {}}
