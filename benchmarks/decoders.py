"""How fast are the decoders of the wire formats, without a network?

Unit: milliseconds a MB of an answer's body, so that 1000 over a figure is MB a second; of an answer of D text deltas,
from its bytes to stream events. "64 kB" feeds the body in pieces of that size, "events" each server-sent event by
itself, as servers send them. Beside it: the same body split at its blank lines, and the JSON of each event decoded by
msgspec into plain objects. A delta costs the same at the end of a long answer as at its beginning if the whole grows
with an exponent of 1.

Not shown: folding the events into a message, and handing them on; see ``sse``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial

import msgspec

from benchmarks._harness import Benchmark, Case, Plan, Unit, timed
from trio_agent import Model, StreamDone, TextDelta
from trio_agent.wire import WIRE_FORMATS

__all__ = ["BENCHMARK"]

_PIECE = "word "
_READ = 64 * 1024


def _event(data: object, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def _completions(deltas: int) -> list[bytes]:
    def chunk(delta: object, finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return _event(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion.chunk",
                "created": 1_700_000_000,
                "model": "some-model",
                "choices": [choice],
            }
        )

    return [*[chunk({"content": _PIECE})] * deltas, chunk({}, "stop"), b"data: [DONE]\n\n"]


def _anthropic(deltas: int) -> list[bytes]:
    def event(name: str, **data: object) -> bytes:
        return _event({"type": name, **data}, name)

    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "some-model", "content": []}
    delta = event("content_block_delta", index=0, delta={"type": "text_delta", "text": _PIECE})
    return [
        event("message_start", message={**message, "stop_reason": None, "usage": usage}),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        *[delta] * deltas,
        event("content_block_stop", index=0),
        event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": deltas}),
        event("message_stop"),
    ]


def _decode(model: Model, pieces: Sequence[bytes], deltas: int) -> None:
    decoder = WIRE_FORMATS[model.api].decoder(model, timestamp=0)
    seen = 0
    last: object = None
    for piece in pieces:
        for last in decoder.feed(piece):
            seen += type(last) is TextDelta
    assert seen == deltas
    assert type(last) is StreamDone


def _by_hand(body: bytes) -> None:
    decode = msgspec.json.decode
    for event in body.split(b"\n\n"):
        _, _, data = event.rpartition(b"data: ")
        if data and data != b"[DONE]":
            decode(data)


def cases(plan: Plan) -> Iterable[Case]:
    for api, make in (("openai-completions", _completions), ("anthropic-messages", _anthropic)):
        model = Model(id="some-model", api=api, provider="loopback", base_url="http://localhost")
        for size in plan.sizes(1000, 10_000):
            events = make(size)
            body = b"".join(events)
            reads = [body[start : start + _READ] for start in range(0, len(body), _READ)]
            for how, pieces in (("64 kB", reads), ("events", events)):
                megabytes = len(body) / 1e6
                yield Case(
                    series=f"{api}, {how}",
                    size=size,
                    per=megabytes,
                    ours=timed(partial(_decode, model, pieces, size), plan.clock),
                    bare=timed(partial(_by_hand, body), plan.clock),
                )


BENCHMARK = Benchmark(name="decoders", unit=Unit("ms a MB", 1e3), cases=cases, growth_from=1000)
