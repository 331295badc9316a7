from __future__ import annotations

import json
from typing import Any

import pytest

from trio_agent._messages import TextContent, ThinkingContent, ToolCall

from .streams import (
    CLAUDE,
    block_delta,
    block_start,
    block_stop,
    decode,
    message_of,
    named,
    own_stream,
    run_lengths,
    start,
    stop_reason,
)


def own(name: str) -> Any:
    model, body = own_stream(name)
    return message_of(model, body)


def text_block(index: int, text: str) -> list[dict[str, Any]]:
    return [block_start(index, "text", text=""), block_delta(index, "text_delta", text=text), block_stop(index)]


def test_usage_is_the_last_value_of_each_field() -> None:
    usage = own("messages-text").usage

    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (12, 9, 100, 7)
    assert (usage.cache_write_1h, usage.total_tokens) == (3, 128)


def test_thinking_text_and_calls_keep_order_and_signatures() -> None:
    message = own("messages-thinking-and-calls")

    assert message.content == (
        ThinkingContent(thinking="Let me see", thinking_signature="SIG=="),
        ThinkingContent(thinking="[Reasoning redacted]", thinking_signature="ENC", redacted=True),
        TextContent(text="Reading"),
        ToolCall(id="toolu_a", name="read", arguments={"path": "ä.txt"}),
        ToolCall(id="toolu_b", name="time", arguments={}),
    )
    assert (message.stop_reason, message.raw_stop_reason, message.usage.reasoning) == ("toolUse", "tool_use", 4)


def test_blocks_end_when_the_server_ends_them() -> None:
    model, body = own_stream("messages-thinking-and-calls")

    assert run_lengths(decode(model, body)) == [
        "start",
        "thinking_start:0",
        "thinking_delta:0",
        "thinking_end:0",
        "thinking_start:1",
        "thinking_end:1",
        "text_start:2",
        "text_delta:2",
        "text_end:2",
        "toolcall_start:3",
        "toolcall_delta:3*3",
        "toolcall_end:3",
        "toolcall_start:4",
        "toolcall_end:4",
        "done",
    ]


def test_blocks_of_the_servers_own_tools_are_skipped_without_a_gap() -> None:
    message = own("messages-server-blocks")

    assert message.content == (TextContent(text="Searching. "), TextContent(text="Found."))


def test_interleaved_blocks_grow_by_their_index() -> None:
    body = named(
        start(),
        block_start(0, "text", text=""),
        block_start(1, "tool_use", id="a", name="f", input={}),
        block_delta(1, "input_json_delta", partial_json='{"x":'),
        block_delta(0, "text_delta", text="Hi"),
        block_delta(1, "input_json_delta", partial_json="1}"),
        block_stop(1),
        block_stop(0),
        stop_reason("tool_use"),
    )

    assert message_of(CLAUDE, body).content == (TextContent(text="Hi"), ToolCall(id="a", name="f", arguments={"x": 1}))


def test_input_in_the_start_counts_only_without_deltas() -> None:
    body = named(
        start(),
        block_start(0, "tool_use", id="a", name="f", input={"x": 1}),
        block_stop(0),
        block_start(1, "tool_use", id="b", name="f", input={"x": 1}),
        block_delta(1, "input_json_delta", partial_json='{"x":2}'),
        block_stop(1),
        stop_reason("tool_use"),
    )

    assert [call.arguments for call in message_of(CLAUDE, body).tool_calls] == [{"x": 1}, {"x": 2}]
    assert run_lengths(decode(CLAUDE, body))[1:4] == ["toolcall_start:0", "toolcall_delta:0", "toolcall_end:0"]


def test_text_in_the_start_of_a_block_is_kept() -> None:
    body = named(
        start(), block_start(0, "text", text="Hel"), block_delta(0, "text_delta", text="lo"), stop_reason("end_turn")
    )

    assert message_of(CLAUDE, body).text == "Hello"


def test_blocks_left_open_are_closed_at_the_end() -> None:
    message = own("messages-cut-by-limit")

    assert message.stop_reason == "length"
    assert message.tool_calls[0].arguments == {}
    assert message.tool_calls[0].arguments_error is not None


def test_delta_without_a_start_opens_its_block() -> None:
    body = named(start(), block_delta(0, "text_delta", text="Hi"), stop_reason("end_turn"))

    assert message_of(CLAUDE, body).text == "Hi"


def test_thinking_in_the_start_of_a_block_is_kept() -> None:
    block = block_start(0, "thinking", thinking="Hm", signature="S")
    body = named(start(), block, block_delta(0, "signature_delta", signature="IG"), stop_reason("end_turn"))

    assert message_of(CLAUDE, body).content == (ThinkingContent(thinking="Hm", thinking_signature="SIG"),)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_delta", "index": 0},
        {"type": "content_block_start", "index": 5},
        {"type": "message_start"},
        {"type": "message_delta", "usage": None},
        {"type": "brand_new"},
        block_delta(7, "input_json_delta", partial_json="{}"),
        block_stop(7),
    ],
    ids=json.dumps,
)
def test_events_that_say_nothing_change_nothing(event: dict[str, Any]) -> None:
    body = named(start(), event, *text_block(0, "Hi"), event, stop_reason("end_turn"))

    assert message_of(CLAUDE, body).text == "Hi"


def test_message_that_is_whole_in_its_start_is_taken() -> None:
    content = [{"type": "text", "text": "Rolling"}, {"type": "tool_use", "id": "a", "name": "roll", "input": {"p": 1}}]
    message = message_of(CLAUDE, named(start(content=content, stop_reason="tool_use")))

    assert message.content == (TextContent(text="Rolling"), ToolCall(id="a", name="roll", arguments={"p": 1}))
    assert message.stop_reason == "toolUse"


def test_second_start_changes_nothing() -> None:
    second = start(content=[{"type": "text", "text": "no"}]) | {"x": 1}
    body = named(start(), *text_block(0, "one"), second, *text_block(1, "two"), stop_reason("end_turn"))

    message = message_of(CLAUDE, body)

    assert message.content == (TextContent(text="one"), TextContent(text="two"))


def test_names_of_events_may_be_missing() -> None:
    events = [start(), *text_block(0, "Hi"), stop_reason("end_turn"), {"type": "message_stop"}]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()

    assert message_of(CLAUDE, body).text == "Hi"


def test_types_may_be_missing_where_there_are_names() -> None:
    body = b'event: message_start\ndata: {"message":{}}\n\nevent: error\ndata: {"message":"no"}\n\n'

    assert message_of(CLAUDE, body).error_message == "no"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("end_turn", "stop"), ("stop_sequence", "stop"), ("max_tokens", "length"), ("tool_use", "stop")],
)
def test_stop_reasons_with_text(reason: str, expected: str) -> None:
    assert message_of(CLAUDE, named(start(), *text_block(0, "Hi"), stop_reason(reason))).stop_reason == expected


@pytest.mark.parametrize("reason", ["pause_turn", "sensitive", "model_context_window_exceeded", "brand_new_reason"])
def test_other_stop_reasons_are_errors_that_name_them_and_keep_the_text(reason: str) -> None:
    message = message_of(CLAUDE, named(start(), *text_block(0, "Half"), stop_reason(reason)))

    assert (message.text, message.stop_reason, message.raw_stop_reason) == ("Half", "error", reason)
    assert reason in str(message.error_message)


def test_end_turn_with_a_call_is_tool_use() -> None:
    body = named(
        start(), block_start(0, "tool_use", id="a", name="f", input={}), block_stop(0), stop_reason("end_turn")
    )

    assert message_of(CLAUDE, body).stop_reason == "toolUse"


def test_refusal_says_why() -> None:
    assert own("messages-refusal").error_message == "The model refused to complete the request (cyber)"
    explained = stop_reason("refusal", stop_details={"explanation": "Not this.", "category": None})

    message = message_of(CLAUDE, named(start(), explained))

    assert message.error_message == "The model refused to complete the request: Not this."


def test_error_event_keeps_what_arrived() -> None:
    message = own("messages-overloaded")

    assert (message.text, message.stop_reason) == ("The three causes are", "error")
    assert message.error_message == "Overloaded (overloaded_error)"
    assert message.usage.input == 10
    model, body = own_stream("messages-overloaded")
    assert run_lengths(decode(model, body))[-2:] == ["text_delta:0", "error"]


def test_stream_without_its_closing_event_is_cut() -> None:
    message = message_of(CLAUDE, named(start(), *text_block(0, "Hi"), stop_reason("end_turn"), stop=False))

    assert (message.text, message.error_message) == ("Hi", "Anthropic stream ended before message_stop")


def test_end_without_any_stop_reason_is_an_error() -> None:
    message = message_of(CLAUDE, named(start(), *text_block(0, "Hi")))

    assert (message.text, message.error_message) == ("Hi", "Anthropic stream ended without a stop reason")


def test_whole_answer_in_place_of_a_stream_is_taken() -> None:
    body = {
        "id": "msg_1",
        "type": "message",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 4, "output_tokens": 2},
    }

    message = message_of(CLAUDE, json.dumps(body).encode())

    assert (message.text, message.stop_reason, message.usage.total_tokens) == ("Hi", "stop", 6)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"type":"error","error":{"type":"api_error","message":"no"}}', "no (api_error)"),
        (b"<html>Gateway</html>", "The server sent no event stream: Gateway"),
        (b"", "Anthropic stream ended before message_stop"),
    ],
)
def test_body_that_is_no_stream_is_an_error_that_tells(body: bytes, text: str) -> None:
    assert message_of(CLAUDE, body).error_message == text
