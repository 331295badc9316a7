"""MessageBuilder: which moves are legal, and what the message is at every moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from builder_events import (
    MODEL,
    USAGE,
    blocks,
    call,
    call_delta,
    call_end,
    call_start,
    done,
    error,
    fold,
    message,
    new_builder,
    start,
    text_delta,
    text_end,
    text_start,
)

from trio_agent import (
    AssistantMessageEvent,
    RemoteProtocolError,
    StreamDone,
    StreamError,
    StreamStart,
    TextContent,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingContent,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCall,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from trio_agent.lowlevel import MessageBuilder

NAMES = {"text": "text", "thinking": "thinking", "toolcall": "tool call"}

# Moves


@pytest.mark.parametrize(
    "events",
    [
        [start, done],
        [start, error],
        [error],
        [done],
        [start, text_start, done],
        [start, text_start, text_end, done],
        [start, text_start, text_delta, text_delta, text_end, done],
        [start, *blocks["thinking"], error],
        [start, call_start, call_delta, call_end, done],
        [start, call_start, call_end, done],
        [start, call_start, call_delta, error],
        [text_start, text_delta, start, text_end, done],
        [text_start, text_delta, text_end, done],
        [start, TextStart(content_index=7), TextDelta(content_index=7, delta="a"), text_start, done],
    ],
)
def test_legal_moves(events: Sequence[AssistantMessageEvent]) -> None:
    builder, _ = fold(*events)

    assert builder.finished
    assert builder.result().stop_reason in {"stop", "error"}


@pytest.mark.parametrize("kind", blocks)
@pytest.mark.parametrize("move", [1, 2])
def test_a_block_that_was_never_opened_cannot_move(kind: str, move: int) -> None:
    event = blocks[kind][move]

    with pytest.raises(RemoteProtocolError, match="arrived for content index 0, which was never opened"):
        fold(start, event)


@pytest.mark.parametrize("first", blocks)
@pytest.mark.parametrize("second", blocks)
def test_an_index_is_opened_once(first: str, second: str) -> None:
    for before in (blocks[first][:1], blocks[first]):
        with pytest.raises(RemoteProtocolError, match="_start' opened content index 0 a second time"):
            fold(start, *before, blocks[second][0])


@pytest.mark.parametrize("opened", blocks)
@pytest.mark.parametrize("moved", blocks)
@pytest.mark.parametrize("move", [1, 2])
def test_a_block_moves_only_as_what_it_was_opened_as(opened: str, moved: str, move: int) -> None:
    event = blocks[moved][move]
    if opened == moved:
        fold(start, blocks[opened][0], event)
        return

    with pytest.raises(RemoteProtocolError, match=f"arrived for content index 0, which is a {NAMES[opened]} block$"):
        fold(start, blocks[opened][0], event)


@pytest.mark.parametrize("kind", blocks)
@pytest.mark.parametrize("move", [1, 2])
def test_a_closed_block_cannot_move(kind: str, move: int) -> None:
    with pytest.raises(RemoteProtocolError, match=f"which is a {NAMES[kind]} block that is already closed$"):
        fold(start, *blocks[kind], blocks[kind][move])


@pytest.mark.parametrize("end", [done, error])
@pytest.mark.parametrize(
    "late", [start, text_start, text_delta, text_end, call_start, call_delta, call_end, done, error]
)
def test_nothing_comes_after_the_end(end: AssistantMessageEvent, late: AssistantMessageEvent) -> None:
    builder, _ = fold(start, text_start, end)
    before = builder.result()

    with pytest.raises(RemoteProtocolError, match=f"'{late.__struct_config__.tag}' arrived after the answer had ended"):
        builder.add(late)
    assert builder.result() is before


def test_nothing_comes_after_a_failure() -> None:
    builder, _ = fold(start, text_start)
    builder.fail("aborted", "Request was aborted")

    with pytest.raises(RemoteProtocolError, match="after the answer had ended"):
        builder.add(text_delta)


def test_an_answer_starts_once() -> None:
    with pytest.raises(RemoteProtocolError, match="started twice"):
        fold(start, text_start, StreamStart())


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="'text' is no stream event"):
        new_builder().add("text")


@pytest.mark.parametrize(
    "illegal", [call_delta, call_end, text_start, start, TextDelta(content_index=3, delta="x"), None]
)
def test_an_illegal_move_changes_nothing(illegal: Any) -> None:
    builder, events = fold(start, text_start, text_delta)

    with pytest.raises(RemoteProtocolError):
        builder.add(illegal)

    assert builder.partial == message(TextContent(text="a"))
    assert builder.add(TextDelta(content_index=0, delta="b")).partial == message(TextContent(text="ab"))
    assert events[-1].partial == message(TextContent(text="a"))
    assert builder.fail("error", "broken").content == (TextContent(text="ab"),)


def test_a_refused_opening_takes_no_call_id() -> None:
    builder, _ = fold(start, text_start)
    with pytest.raises(RemoteProtocolError):
        builder.add(ToolCallStart(content_index=0, id="c", name="read"))

    assert builder.add(ToolCallStart(content_index=1, id="c", name="read")).id == "c"


def test_a_stream_that_has_not_ended_has_no_result() -> None:
    builder, _ = fold(start, *blocks["text"])

    assert not builder.finished
    with pytest.raises(RemoteProtocolError, match="ended before the answer was complete"):
        builder.result()


def test_a_builder_knows_whether_the_answer_has_started() -> None:
    builder = new_builder()
    builder.add(text_start)
    assert not builder.started
    builder.add(start)
    assert builder.started


# Messages


def test_the_message_names_model_time_and_thinking_level() -> None:
    builder = MessageBuilder(MODEL, timestamp=5, thinking_level="high")
    expected = msgspec.structs.replace(message(), thinking_level="high")

    assert builder.partial == expected
    builder.add(done)
    assert builder.result() == msgspec.structs.replace(expected, stop_reason="stop")


def test_interleaved_blocks_are_kept_apart_by_their_index() -> None:
    builder, _ = fold(
        start,
        TextStart(content_index=0),
        ToolCallStart(content_index=2, id="c", name="read"),
        TextDelta(content_index=0, delta="a"),
        ThinkingStart(content_index=1),
        ToolCallDelta(content_index=2, delta='{"n":'),
        ThinkingDelta(content_index=1, delta="h"),
        TextDelta(content_index=0, delta="b"),
        ToolCallDelta(content_index=2, delta="1}"),
        ThinkingEnd(content_index=1, content="h"),
        ToolCallEnd(content_index=2, tool_call=call(n=1)),
        TextEnd(content_index=0, content="ab"),
        StreamDone(reason="toolUse", usage=USAGE),
    )

    assert builder.result() == message(
        TextContent(text="ab"), ThinkingContent(thinking="h"), call(n=1), stop_reason="toolUse", usage=USAGE
    )


def test_gaps_between_indices_close() -> None:
    builder, _ = fold(start, TextStart(content_index=9), ThinkingStart(content_index=4), done)

    assert builder.result().content == (ThinkingContent(thinking=""), TextContent(text=""))


def test_the_end_of_a_block_stands_where_it_differs_from_the_deltas() -> None:
    builder, events = fold(
        start,
        text_start,
        text_delta,
        TextEnd(content_index=0, content="other", content_signature="s"),
        ThinkingStart(content_index=1),
        ThinkingEnd(content_index=1, content="[Reasoning redacted]", content_signature="e", redacted=True),
        ToolCallStart(content_index=2, id="", name=""),
        ToolCallEnd(content_index=2, tool_call=ToolCall(id="c", name="read", arguments={}, thought_signature="t")),
    )

    assert builder.partial.content == (
        TextContent(text="other", text_signature="s"),
        ThinkingContent(thinking="[Reasoning redacted]", thinking_signature="e", redacted=True),
        ToolCall(id="c", name="read", arguments={}, thought_signature="t"),
    )
    assert events[2].partial.content == (TextContent(text="a"),)
    assert events[6].partial.tool_calls == (call("", ""),)


def test_a_whole_message_at_the_end_stands() -> None:
    whole = message(TextContent(text="whole"), stop_reason="pending", usage=USAGE)
    ends = (StreamDone(reason="length", message=whole), StreamError(reason="aborted", message=whole))
    for end in ends:
        builder, events = fold(start, text_start, text_delta, end)

        assert builder.result() == msgspec.structs.replace(whole, stop_reason=end.reason)
        assert events[-1].partial == builder.result()
        assert events[-2].partial == message(TextContent(text="a"))


def test_the_level_that_the_loop_asked_for_is_recorded_in_a_whole_message() -> None:
    whole = msgspec.structs.replace(message(), thinking_level="low")
    builder = MessageBuilder(MODEL, timestamp=5, thinking_level="high")
    builder.add(StreamDone(reason="stop", message=whole))
    unasked, _ = fold(StreamDone(reason="stop", message=whole))

    assert builder.result().thinking_level == "high"
    assert unasked.result().thinking_level == "low"


def test_a_failure_keeps_what_arrived_however_it_is_told() -> None:
    events: list[AssistantMessageEvent] = [
        start,
        *blocks["text"],
        ToolCallStart(content_index=1, id="c", name="read"),
        ToolCallDelta(content_index=1, delta='{"path": "/'),
        ToolCallStart(content_index=2, id="d", name="read"),
        ToolCallDelta(content_index=2, delta='{"n": 1}'),
    ]
    by_event, _ = fold(*events, StreamError(reason="error", error_message="reset"))
    by_call, _ = fold(*events)
    returned = by_call.fail("error", "reset")

    assert returned == by_call.result() == by_event.result()
    assert returned == message(
        TextContent(text="a"), call("c"), call("d", n=1), stop_reason="error", error_message="reset"
    )


# Partial messages


def test_old_events_keep_their_partial() -> None:
    builder, events = fold(
        start,
        text_start,
        TextDelta(content_index=0, delta="a"),
        ToolCallStart(content_index=1, id="c", name="read"),
        TextDelta(content_index=0, delta="b"),
        ToolCallDelta(content_index=1, delta="{}"),
        TextEnd(content_index=0, content="AB"),
        ToolCallEnd(content_index=1, tool_call=call(x=1)),
    )
    expected = [
        message(),
        message(TextContent(text="")),
        message(TextContent(text="a")),
        message(TextContent(text="a"), call()),
        message(TextContent(text="ab"), call()),
        message(TextContent(text="ab"), call()),
        message(TextContent(text="AB"), call()),
        message(TextContent(text="AB"), call(x=1)),
    ]

    assert [event.partial for event in events] == expected
    assert [event.partial for event in reversed(events)] == expected[::-1]

    ended = builder.add(StreamDone(reason="toolUse", usage=USAGE))
    assert [event.partial for event in events] == expected
    assert ended.partial == builder.partial == builder.result()


@pytest.mark.parametrize("read_first", [True, False])
def test_old_events_keep_their_partial_after_a_failure(read_first: bool) -> None:
    builder, events = fold(start, text_start, text_delta, TextDelta(content_index=0, delta="b"))
    expected = [message(*content) for content in ((), (TextContent(text=""),), (TextContent(text="a"),))]
    if read_first:
        assert [event.partial for event in events[:3]] == expected

    builder.fail("aborted", "Request was aborted")

    assert [event.partial for event in events[:3]] == expected
    assert events[3].partial == message(TextContent(text="ab"))
    assert builder.partial == message(
        TextContent(text="ab"), stop_reason="aborted", error_message="Request was aborted"
    )


@pytest.mark.parametrize("event", [start, *blocks["text"], *blocks["toolcall"], done])
def test_an_equal_event_is_handed_out_and_the_given_one_left_alone(event: AssistantMessageEvent) -> None:
    before = blocks["toolcall" if event in blocks["toolcall"] else "text"]
    builder, _ = fold(*before[: before.index(event)] if event in before else ())

    handed_out = builder.add(event)

    assert handed_out == event
    assert handed_out.partial == builder.partial
    with pytest.raises(RuntimeError, match="was not folded"):
        _ = event.partial


def test_an_event_may_be_part_of_two_streams() -> None:
    event = TextDelta(content_index=0, delta="b")
    one, other = new_builder(), new_builder()
    one.add(TextStart(content_index=0))
    for shared in (TextStart(content_index=0), TextDelta(content_index=0, delta="a")):
        other.add(shared)

    first, second = one.add(event), other.add(event)

    assert first == second == event
    assert first.partial.text == "b"
    assert second.partial.text == "ab"
