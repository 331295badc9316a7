"""However the network cuts a body, the events are the same."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trio_agent._stream_events import StreamDone, StreamError

from .streams import OWN_STREAMS, checked, decode, own_stream


@pytest.mark.parametrize("name", OWN_STREAMS)
def test_events_do_not_depend_on_the_cuts(name: str) -> None:
    model, body = own_stream(name)
    whole = decode(model, body)
    checked(model, whole)
    cuts = random.Random(name)  # noqa: S311

    assert decode(model, [body[i : i + 1] for i in range(len(body))]) == whole
    assert decode(model, [b"", body, b""]) == whole
    assert decode(model, re.split(rb"(?<=\n\n)", body)) == whole
    for _ in range(20):
        places = sorted(cuts.sample(range(len(body)), cuts.randrange(1, 12)))
        pieces = [body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)]
        assert decode(model, pieces) == whole


@pytest.mark.parametrize("name", OWN_STREAMS)
def test_stream_cut_short_anywhere_is_complete_or_an_error(name: str) -> None:
    model, body = own_stream(name)
    complete = checked(model, decode(model, body))

    for end in range(len(body)):
        message = checked(model, decode(model, body[:end]))
        if message.stop_reason != "error":
            # Only what follows the answer may be missing: usage and the closing marks.
            assert message.content == complete.content
            assert message.stop_reason == complete.stop_reason


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_streams_end_in_one_event_and_never_raise(data: st.DataObject) -> None:
    model, body = own_stream(data.draw(st.sampled_from(OWN_STREAMS)))
    damaged = bytearray(body)
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(damaged)))
        match data.draw(st.sampled_from(["drop", "insert", "repeat", "flip"])):
            case "drop":
                del damaged[place : place + data.draw(st.integers(1, 80))]
            case "insert":
                damaged[place:place] = data.draw(st.binary(max_size=20))
            case "repeat":
                damaged[place:place] = damaged[max(0, place - data.draw(st.integers(1, 200))) : place]
            case _:
                if place < len(damaged):
                    damaged[place] = data.draw(st.integers(0, 255))

    events = decode(model, bytes(damaged))

    assert isinstance(events[-1], StreamDone | StreamError)
    checked(model, events)


# Those with LF only, and no event that is cut.
JSON_STREAMS = [name for name in OWN_STREAMS if name not in ("chat-legacy-cr", "chat-comments-crlf", "chat-cut")]
KEYS = (
    *("choices", "delta", "index", "id", "function", "arguments", "name", "tool_calls", "content", "type", "text"),
    *("message", "error", "usage", "thinking", "reasoning", "reasoning_details", "finish_reason", "stop_reason"),
    *("content_block", "partial_json", "input", "model"),
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=15,
)


def paths(value: Any, prefix: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where in a JSON value something stands."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield (*prefix, key)
        yield from paths(member, (*prefix, key))


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_events_with_one_member_of_another_kind_never_raise(data: st.DataObject) -> None:
    model, body = own_stream(data.draw(st.sampled_from(JSON_STREAMS)))
    lines = body.decode().split("\n")
    number = data.draw(st.sampled_from([n for n, line in enumerate(lines) if line.startswith("data: {")]))
    event = json.loads(lines[number].removeprefix("data: "))
    *parents, last = data.draw(st.sampled_from(list(paths(event))))
    holder = event
    for key in parents:
        holder = holder[key]
    holder[last] = data.draw(JSON_VALUES | st.sampled_from([10**400, -1, 2**63, [[[]]], "\ud83d"]))
    lines[number] = f"data: {json.dumps(event)}"

    events = decode(model, "\n".join(lines).encode())

    assert isinstance(events[-1], StreamDone | StreamError)
    checked(model, events)


@settings(max_examples=200, deadline=None)
@given(values=st.lists(JSON_VALUES, max_size=5), name=st.sampled_from(["chat-text", "messages-text"]))
def test_events_of_any_shape_never_raise(values: list[object], name: str) -> None:
    model, _ = own_stream(name)
    body = "".join(f"data: {json.dumps(value)}\n\n" for value in values).encode()

    checked(model, decode(model, body))
