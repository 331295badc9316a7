"""Ids of calls are unique within an answer, whatever the server sent."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from builder_events import (
    call,
    fold,
    message,
    start,
)

from trio_agent import (
    AssistantMessage,
    AssistantMessageEvent,
    StreamDone,
    StreamError,
    TextContent,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)


def dealt(*ids: str, end_ids: Sequence[str] | None = None) -> list[AssistantMessageEvent]:
    """Calls that all open before any closes, as Chat Completions servers send them."""
    ends = ids if end_ids is None else end_ids
    return [
        start,
        *[ToolCallStart(content_index=i, id=call_id, name="read") for i, call_id in enumerate(ids)],
        *[ToolCallDelta(content_index=i, delta=f'{{"n":{i}}}') for i in range(len(ids))],
        *[ToolCallEnd(content_index=i, tool_call=call(call_id, n=i)) for i, call_id in enumerate(ends)],
    ]


def ids_of(message: AssistantMessage) -> list[str]:
    return [call.id for call in message.tool_calls]


@pytest.mark.parametrize(
    ("sent", "unique"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a"], ["a", "a_2"]),
        (["a", "a", "b", "a"], ["a", "a_2", "b", "a_3"]),
        (["a", "a_2", "a"], ["a", "a_2", "a_3"]),
        (["a", "a", "a_2"], ["a", "a_2", "a_2_2"]),
        (["call_1|fc_1", "call_1|fc_1"], ["call_1|fc_1", "call_1_2|fc_1_2"]),
    ],
)
def test_duplicate_ids_are_made_unique_everywhere(sent: list[str], unique: list[str]) -> None:
    whole = message(*[call(call_id, n=i) for i, call_id in enumerate(sent)])
    for end in (StreamDone(reason="toolUse"), StreamDone(reason="toolUse", message=whole)):
        builder, events = fold(*dealt(*sent), end)

        assert [event.id for event in events if isinstance(event, ToolCallStart)] == unique
        assert [event.tool_call.id for event in events if isinstance(event, ToolCallEnd)] == unique
        assert ids_of(events[len(sent)].partial) == unique
        assert ids_of(events[-2].partial) == unique
        assert ids_of(builder.result()) == unique
        assert [made.arguments for made in builder.result().tool_calls] == [{"n": i} for i in range(len(sent))]
        if isinstance(events[-1], StreamDone) and events[-1].message is not None:
            assert ids_of(events[-1].message) == unique


@pytest.mark.parametrize("reason", ["done", "error", "fail"])
def test_calls_that_never_closed_have_unique_ids_too(reason: str) -> None:
    builder, _ = fold(*dealt("a", "a")[:-2])
    match reason:
        case "done":
            builder.add(StreamDone(reason="toolUse"))
        case "error":
            builder.add(StreamError(reason="error"))
        case _:
            builder.fail("aborted", "stopped")

    assert ids_of(builder.result()) == ["a", "a_2"]


def test_an_event_with_a_duplicate_id_is_not_changed_itself() -> None:
    sent = dealt("a", "a")
    _, events = fold(*sent)

    assert sent[2] == ToolCallStart(content_index=1, id="a", name="read")
    assert events[2] == ToolCallStart(content_index=1, id="a_2", name="read")
    assert events[2].partial.tool_calls[1].id == "a_2"


def test_an_id_that_comes_at_the_end_only_is_made_unique_there() -> None:
    builder, events = fold(*dealt("", "a", "", end_ids=["a", "a", "b"]), StreamDone(reason="toolUse"))

    assert [event.id for event in events[1:4]] == ["", "a", ""]
    assert ids_of(events[6].partial) == ["", "a", ""]
    assert ids_of(events[7].partial) == ["a_2", "a", ""]
    assert ids_of(builder.result()) == ["a_2", "a", "b"]


def test_an_id_that_changes_at_the_end_is_the_later_one() -> None:
    builder, events = fold(*dealt("a", "b", end_ids=["x", "x"]), StreamDone(reason="toolUse"))

    assert ids_of(events[4].partial) == ["a", "b"]
    assert ids_of(builder.result()) == ["x", "x_2"]


def test_an_end_without_an_id_leaves_the_id_of_the_start() -> None:
    builder, events = fold(*dealt("a", "a", end_ids=["", ""]), StreamDone(reason="toolUse"))

    assert [event.tool_call.id for event in events[5:7]] == ["a", "a_2"]
    assert ids_of(builder.result()) == ["a", "a_2"]


@pytest.mark.parametrize("closed", [True, False])
def test_a_call_that_never_got_an_id_is_given_one(closed: bool) -> None:
    sent = dealt("", "", "")
    whole = message(*[call("", n=i) for i in range(3)])
    for end in (StreamDone(reason="toolUse"), StreamDone(reason="toolUse", message=whole)):
        builder, events = fold(*(sent if closed else sent[:-3]), end)

        made = ids_of(builder.result())
        assert len(set(made)) == 3
        assert all(re.fullmatch("[a-zA-Z0-9_-]+", call_id) for call_id in made)
        if closed:
            assert [event.tool_call.id for event in events if isinstance(event, ToolCallEnd)] == made


def test_given_ids_are_the_same_for_the_same_stream() -> None:
    results = [fold(*dealt("", ""), StreamDone(reason="toolUse"))[0].result() for _ in range(2)]

    assert results[0] == results[1]


def test_a_whole_message_without_blocks_has_unique_ids() -> None:
    whole = message(TextContent(text="t"), call("a"), call("a"), call("a_2"), call(""), call(""))
    builder, _ = fold(StreamDone(reason="toolUse", message=whole))

    made = ids_of(builder.result())
    assert made[:3] == ["a", "a_2", "a_2_2"]
    assert len(set(made)) == 5
    assert all(made)


def test_a_whole_message_whose_blocks_were_renamed_by_others_is_left_alone() -> None:
    whole = message(TextContent(text="t"), call("a"), call("a_2"))
    end = StreamDone(reason="toolUse", message=whole)
    builder, events = fold(*dealt("a", "a_2"), end)

    assert builder.result().content == whole.content
    assert events[-1] == end
    assert events[-1].message is whole


def test_ids_of_other_answers_play_no_part() -> None:
    for _ in range(2):
        builder, _ = fold(*dealt("a"), StreamDone(reason="toolUse"))
        assert ids_of(builder.result()) == ["a"]
