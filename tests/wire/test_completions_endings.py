from __future__ import annotations

import json
from typing import Any

import pytest

from trio_agent._messages import ToolCall
from trio_agent._models import Model
from trio_agent.wire import WIRE_FORMATS

from .streams import CHAT, call, decode, delta, message_of, own_stream, plain, run_lengths, sse


def own(name: str) -> Any:
    model, body = own_stream(name)
    return message_of(model, body)


@pytest.mark.parametrize(
    ("word", "stop_reason"),
    [
        ("stop", "stop"),
        ("end", "stop"),
        ("eos_token", "stop"),
        ("never heard of", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("tool_calls", "stop"),
    ],
)
def test_stop_words_with_text(word: str, stop_reason: str) -> None:
    message = message_of(CHAT, sse(delta(word, content="a")))

    assert (message.text, message.stop_reason, message.raw_stop_reason) == ("a", stop_reason, word)


@pytest.mark.parametrize("word", ["content_filter", "network_error", "insufficient_system_resource", "error", "abort"])
def test_words_of_failure_keep_the_text(word: str) -> None:
    body = sse(delta(word, content="a"))

    message = message_of(CHAT, body)

    assert (message.text, message.stop_reason) == ("a", "error")
    assert message.error_message == f"Provider finish_reason: {word}"
    assert run_lengths(decode(CHAT, body))[-2:] == ["text_end:0", "error"]


def test_unknown_stop_word_without_content_is_an_error() -> None:
    message = message_of(CHAT, sse(delta("load")))

    assert (message.stop_reason, message.error_message) == ("error", "Provider finish_reason: load")


def test_stop_with_calls_is_tool_use() -> None:
    assert message_of(CHAT, sse(delta("stop", tool_calls=[call(0, "a", "f", "{}")]))).stop_reason == "toolUse"


def test_announced_call_that_never_came_is_an_error() -> None:
    message = message_of(CHAT, sse(delta("tool_calls", content="")))

    assert message.stop_reason == "error"
    assert message.error_message == "The model announced a tool call but sent none"


def test_length_leaves_the_calls_to_the_loop() -> None:
    message = message_of(CHAT, sse(delta("length", tool_calls=[call(0, "a", "f", '{"x": "cu')])))

    assert message.stop_reason == "length"
    assert message.tool_calls[0].arguments == {}
    assert message.tool_calls[0].arguments_error is not None


def test_cut_stream_keeps_its_text_and_is_an_error() -> None:
    message = own("chat-cut")

    assert (message.text, message.stop_reason) == ("The three causes are", "error")
    assert message.error_message == "Stream ended without finish_reason"
    assert message.tool_calls[0].arguments == {}


def test_call_without_an_id_in_a_failed_answer_gets_one() -> None:
    message = message_of(CHAT, sse(delta(tool_calls=[call(0, None, "f", "{")]), {"error": "gone"}))

    assert message.tool_calls[0].id.startswith("call_")


def test_server_without_finish_reasons_ends_with_the_stream() -> None:
    model = Model(id="m", api=CHAT.api, provider="x", compat={"supportsFinishReason": False})

    assert message_of(model, sse(delta(content="a"), done=False)).stop_reason == "stop"
    assert message_of(model, sse(delta(tool_calls=[call(0, "a", "f", "{}")]))).stop_reason == "toolUse"


def test_end_without_blank_line_or_done_is_complete() -> None:
    assert own("chat-no-blank-line-at-end").stop_reason == "stop"


@pytest.mark.parametrize(
    ("chunk", "text"),
    [
        ({"error": {"message": "boom", "code": 502}}, "boom (502)"),
        ({"error": {"message": "late", "type": "server_error"}}, "late (server_error)"),
        ({"error": "model crashed"}, "model crashed"),
        ({"object": "error", "message": "no", "type": "BadRequestError", "code": 400}, "no (BadRequestError, 400)"),
    ],
)
def test_error_within_a_stream_ends_it_with_what_the_server_says(chunk: dict[str, Any], text: str) -> None:
    message = message_of(CHAT, sse(delta(content="Half"), chunk, delta("stop", content=" more")))

    assert (message.text, message.stop_reason, message.error_message) == ("Half", "error", text)


def test_event_named_error_ends_the_stream() -> None:
    body = sse(delta(content="hi"), done=False) + b'event: error\ndata: {"message":"late","type":"server_error"}\n\n'

    assert message_of(CHAT, body).error_message == "late (server_error)"


def test_malformed_event_ends_the_stream() -> None:
    message = message_of(CHAT, sse(delta(content="hi"), "{not json}", delta("stop")))

    assert (message.text, message.stop_reason) == ("hi", "error")
    assert "malformed JSON" in str(message.error_message)


def test_oversized_event_ends_the_stream() -> None:
    body = sse(delta(content="hi"), delta("stop", content="x" * 2000))

    [*_, message] = decode(CHAT, body, max_event_size=1000)

    assert "more than 1000 bytes" in str(plain(message)["error"]["errorMessage"])


def test_whole_answer_in_place_of_a_stream_is_taken() -> None:
    body = {
        "id": "c1",
        "choices": [
            {
                "finish_reason": "tool_calls",
                "index": 0,
                "message": {"role": "assistant", "content": "Hi", "tool_calls": [call(None, "a", "f", '{"x":1}')]},
            }
        ],
        "usage": {"prompt_tokens": 4, "completion_tokens": 2},
    }

    message = message_of(CHAT, json.dumps(body, indent=1).encode())

    assert (message.text, message.stop_reason, message.usage.total_tokens) == ("Hi", "toolUse", 6)
    assert message.tool_calls == (ToolCall(id="a", name="f", arguments={"x": 1}),)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error":{"message":"error with status 200"}}', "error with status 200"),
        (b'{"detail":"nope"}', "nope"),
        (b"<html><body><h1>Login</h1></body></html>", "The server sent no event stream: Login"),
        (b"upstream gone", "The server sent no event stream: upstream gone"),
        (b"", "Stream ended without finish_reason"),
    ],
)
def test_body_that_is_no_stream_is_an_error_that_tells(body: bytes, text: str) -> None:
    assert message_of(CHAT, body).error_message == text


def test_lost_connection_ends_the_answer_with_what_arrived() -> None:
    decoder = WIRE_FORMATS[CHAT.api].decoder(CHAT, timestamp=0)
    decoder.feed(sse(delta(content="Half"), done=False))

    [event] = decoder.fail("peer closed connection")

    assert plain(event)["error"]["content"] == [{"type": "text", "text": "Half"}]
    assert plain(event)["error"]["errorMessage"] == "peer closed connection"
    assert decoder.finished
    assert decoder.fail("again") == []
    assert decoder.feed(sse(delta(content="more"))) == []
    assert decoder.finish() == []
