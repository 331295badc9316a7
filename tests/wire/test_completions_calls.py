from __future__ import annotations

from typing import Any

import pytest

from trio_agent._messages import TextContent, ToolCall
from trio_agent._stream_events import (
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)

from .streams import CHAT, call, decode, delta, message_of, own_stream, run_lengths, sse


def own(name: str) -> Any:
    model, body = own_stream(name)
    return message_of(model, body)


def calls_of(*deltas: dict[str, Any]) -> list[tuple[str, str, Any]]:
    message = message_of(CHAT, sse(*[delta(tool_calls=[fragment]) for fragment in deltas], delta("tool_calls")))
    return [(c.id, c.name, c.arguments_error or c.arguments) for c in message.tool_calls]


def test_calls_interleave_by_index_and_keep_their_ids_and_names() -> None:
    message = own("chat-parallel-calls")

    assert message.content == (
        TextContent(text="Both."),
        ToolCall(id="call_a", name="read", arguments={"path": "ä.txt"}),
        ToolCall(id="call_b", name="add", arguments={"a": 1, "b": [2, 3]}),
    )
    assert message.stop_reason == "toolUse"


def test_call_events_carry_what_the_server_sent() -> None:
    events = decode(CHAT, sse(delta(tool_calls=[call(0, "a", "f", "")]), delta("tool_calls", tool_calls=[call(0)])))

    assert events[1:-1] == [
        ToolCallStart(content_index=0, id="a", name="f"),
        ToolCallDelta(content_index=0, delta=""),
        ToolCallDelta(content_index=0, delta=""),
        ToolCallEnd(content_index=0, tool_call=ToolCall(id="a", name="f", arguments={})),
    ]


def test_ends_come_after_the_last_chunk_in_content_order() -> None:
    model, body = own_stream("chat-parallel-calls")

    assert run_lengths(decode(model, body))[-4:] == ["text_end:0", "toolcall_end:1", "toolcall_end:2", "done"]


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        (
            [call(None, "a", "f", '{"x":'), call(None, None, None, "1}"), call(None, "b", "f", '{"x":2}')],
            [("a", "f", {"x": 1}), ("b", "f", {"x": 2})],
        ),
        (
            [call(0, "a", "f", '{"x":1}'), call(0, "b", "f", '{"x":2}'), call(0, "", "", "")],
            [("a", "f", {"x": 1}), ("b", "f", {"x": 2})],
        ),
        (
            [call(0, "a", "f", ""), call(0, "a", "f", '{"x"'), call(0, "a", "f", ":1}"), call(0, "a", "f", "")],
            [("a", "f", {"x": 1})],
        ),
        ([call(0, "", "f", '{"x":'), call(0, "a", "", "1}")], [("a", "f", {"x": 1})]),
        ([call(0, "a", None, '{"x":'), call(0, None, "f", "1}")], [("a", "f", {"x": 1})]),
        ([call(3, "a", "f", {"x": 1}), call(0, "b", "g", None)], [("a", "f", {"x": 1}), ("b", "g", {})]),
        ([call(0, "a", "f", "null"), call(1, "b", "g", "  ")], [("a", "f", {}), ("b", "g", {})]),
        (
            [call(0, "same", "f", '{"x":1}'), call(1, "same", "f", '{"x":2}')],
            [("same", "f", {"x": 1}), ("same_2", "f", {"x": 2})],
        ),
        (
            [call(None, "same", "f", '{"x":1}'), call(None, "same", "f", '{"x":2}')],
            [("same", "f", {"x": 1}), ("same_2", "f", {"x": 2})],
        ),
        ([call(0, "a", "f", "{}"), {"index": 0, "function": None}], [("a", "f", {})]),
    ],
    ids=[
        "without index",
        "one index for all",
        "everything repeated",
        "late id",
        "late name",
        "objects for text",
        "null and blank",
        "one id for all",
        "one id for all, no index",
        "no function",
    ],
)
def test_fragments_find_their_call(deltas: list[dict[str, Any]], expected: list[tuple[str, str, Any]]) -> None:
    assert calls_of(*deltas) == expected


def test_calls_without_any_id_get_ids_of_their_own() -> None:
    deltas = [call(None, None, "f", '{"x":1}'), call(None, None, "f", '{"x":2}'), call(None, None, "g", "{}")]

    got = calls_of(*deltas)

    assert [(name, arguments) for _, name, arguments in got] == [("f", {"x": 1}), ("f", {"x": 2}), ("g", {})]
    assert len({call_id for call_id, _, _ in got}) == 3
    assert all(call_id.startswith("call_") for call_id, _, _ in got)
    assert calls_of(*deltas) == got


def test_call_without_id_and_arguments_begins_where_another_name_comes() -> None:
    got = calls_of(call(0, None, "f", "{}"), call(0, None, "f", ""), call(0, None, "g", ""))

    assert [(name, arguments) for _, name, arguments in got] == [("f", {}), ("g", {})]


def test_missing_fragments_are_passed_over() -> None:
    body = sse(delta(tool_calls=[None, call(0, "a", "f", "{}"), None]), delta("tool_calls"))

    assert message_of(CHAT, body).tool_calls == (ToolCall(id="a", name="f", arguments={}),)


def test_malformed_arguments_spoil_one_call_only() -> None:
    first, second = calls_of(call(0, "a", "f", '{"x": 1, "y": }'), call(1, "b", "g", '{"ok":true}'))

    assert "not valid JSON" in first[2]
    assert '{"x": 1, "y": }' in first[2]
    assert second == ("b", "g", {"ok": True})


@pytest.mark.parametrize("text", ["[1]", '"text"', "12", "NaN", '{"a":NaN}', "{'a': 1}", '{"a":1}{"a":2}'])
def test_arguments_that_are_no_object_are_never_made_one(text: str) -> None:
    [(_, _, error)] = calls_of(call(0, "a", "f", text))

    assert isinstance(error, str)


def test_half_a_pair_in_arguments_is_left_out() -> None:
    assert calls_of(call(0, "a", "f", '{"t":"\\ud83d\\ude00 \\ud83d x"}')) == [("a", "f", {"t": "😀  x"})]


def test_aliases_are_undone_in_calls() -> None:
    body = sse(delta("tool_calls", tool_calls=[call(0, "a", "files_read_x1", "{}")]))

    message = message_of(CHAT, body, aliases={"files_read_x1": "files.read"})

    assert message.tool_calls[0].name == "files.read"
