from __future__ import annotations

import json
from typing import Any

import pytest

from trio_agent._messages import TextContent, ThinkingContent
from trio_agent._stream_events import (
    StreamDone,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
)
from trio_agent.wire import WIRE_FORMATS

from .streams import CHAT, TIMESTAMP, decode, delta, message_of, own_stream, plain, run_lengths, sse


def own(name: str) -> Any:
    model, body = own_stream(name)
    return message_of(model, body)


def test_text_streams_as_one_block_and_the_end_carries_the_message() -> None:
    events = decode(CHAT, sse(delta(role="assistant", content=""), delta(content="Hel"), delta("stop", content="lo")))

    done = events.pop()
    assert events == [
        StreamStart(),
        TextStart(content_index=0),
        TextDelta(content_index=0, delta="Hel"),
        TextDelta(content_index=0, delta="lo"),
        TextEnd(content_index=0, content="Hello"),
    ]
    assert isinstance(done, StreamDone)
    assert plain(done.message) == {
        "role": "assistant",
        "content": [{"type": "text", "text": "Hello"}],
        "api": "openai-completions",
        "provider": "test",
        "model": "m-1",
        "usage": plain(done.message.usage) if done.message else None,
        "stopReason": "stop",
        "timestamp": TIMESTAMP,
        "responseId": "c1",
        "rawStopReason": "stop",
    }


def test_start_event_is_there_before_any_byte() -> None:
    decoder = WIRE_FORMATS[CHAT.api].decoder(CHAT, timestamp=0)

    assert decoder.feed(b"") == [StreamStart()]
    assert decoder.feed(b"") == []


def test_nothing_counts_after_done() -> None:
    body = sse(delta("stop", content="a")) + sse(delta("length", content="b"))

    assert message_of(CHAT, body).text == "a"


def test_first_id_and_first_other_model_name_the_answer() -> None:
    chunks = [
        {"id": "", "model": "", "choices": []},
        {"id": "c1", "model": "m-1", "choices": []},
        {"id": "c2", "model": "m-1-big", "choices": []},
        {"id": "c3", "model": "m-1-small", "choices": []},
    ]

    message = message_of(CHAT, sse(*chunks, delta("stop", content="a")))

    assert (message.model, message.response_id, message.response_model) == ("m-1", "c1", "m-1-big")


def test_unicode_text_comes_through_whole() -> None:
    message = own("chat-text")

    assert message.text == "Grüße \u2028aus\u0085 👩🏽‍🚀 Köln"
    assert message.response_model == "m-1-2024"


def test_same_reasoning_in_two_fields_is_shown_once() -> None:
    message = own("chat-reasoning")

    assert message.content == (
        ThinkingContent(thinking="Let me see.", thinking_signature="reasoning_content"),
        TextContent(text="Yes."),
    )


def test_text_and_thinking_stay_one_block_each_however_they_alternate() -> None:
    body = sse(delta(reasoning="a"), delta(content="1"), delta(reasoning="b"), delta("stop", content="2"))

    assert run_lengths(decode(CHAT, body)) == [
        "start",
        "thinking_start:0",
        "thinking_delta:0",
        "text_start:1",
        "text_delta:1",
        "thinking_delta:0",
        "text_delta:1",
        "thinking_end:0",
        "text_end:1",
        "done",
    ]


def test_reasoning_details_are_kept_for_replay_and_not_shown_twice() -> None:
    thinking, text = own("chat-reasoning-details").content

    assert thinking.thinking == "Thinking"
    assert json.loads(thinking.thinking_signature) == [
        {"type": "reasoning.text", "text": "Thinking", "signature": "SIG", "index": 0},
        {"type": "reasoning.encrypted", "data": "QUJD", "index": 1},
    ]
    assert text.text == "Done"


def test_readable_details_are_shown_where_there_is_no_other_reasoning() -> None:
    details = [{"type": "reasoning.summary", "summary": "So"}, {"type": "reasoning.unknown", "x": 1}, "junk", None]
    message = message_of(CHAT, sse(delta(reasoning_details=details), delta("stop", content="a")))

    assert message.content[0] == ThinkingContent(
        thinking="So", thinking_signature='[{"type":"reasoning.summary","summary":"So"}]'
    )


def test_encrypted_reasoning_alone_makes_an_empty_block_with_a_signature() -> None:
    body = sse(delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "QQ=="}]), delta("stop", content="a"))

    assert run_lengths(decode(CHAT, body))[1:3] == ["thinking_start:0", "text_start:1"]
    assert message_of(CHAT, body).content[0] == ThinkingContent(
        thinking="", thinking_signature='[{"type":"reasoning.encrypted","data":"QQ=="}]'
    )


def test_content_in_parts_is_told_apart() -> None:
    assert own("chat-parts").content == (ThinkingContent(thinking="Hmm"), TextContent(text="Answer"))


def test_refusals_are_text() -> None:
    body = sse(delta(refusal="I can't"), delta(refusal=" help."), delta("stop"))

    assert message_of(CHAT, body).text == "I can't help."


def test_halves_of_a_surrogate_pair_join_across_deltas() -> None:
    model, body = own_stream("chat-surrogate-halves")
    events = decode(model, body)

    assert [event.delta for event in events if isinstance(event, TextDelta)] == ["a ", "😀 b ", "c"]
    assert message_of(model, body).text == "a 😀 b c"


def test_raw_control_characters_and_bad_escapes_are_read() -> None:
    body = b'data: {"choices":[{"delta":{"content":"a\tb \\q c"},"finish_reason":"stop"}]}\n\n'

    assert message_of(CHAT, body).text == "a\tb \\q c"


def test_only_the_first_choice_is_the_answer() -> None:
    chunks = [
        {"choices": [{"index": 1, "delta": {"content": "other"}}, {"index": 0, "delta": {"content": "mine"}}]},
        {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}]},
        {"choices": [{"delta": {"content": "!"}, "finish_reason": "stop"}]},
    ]

    message = message_of(CHAT, sse(*chunks))

    assert (message.text, message.stop_reason) == ("mine!", "stop")


@pytest.mark.parametrize("chunk", [{"choices": None}, {}, {"choices": [None]}, {"choices": [{"delta": None}]}])
def test_chunks_without_a_delta_are_legal(chunk: dict[str, Any]) -> None:
    assert message_of(CHAT, sse(chunk, delta("stop", content="a"), chunk)).text == "a"


def test_half_a_pair_makes_no_event_of_its_own() -> None:
    halves = ['{"choices":[{"delta":{"content":"\\ud83d"}}]}', '{"choices":[{"delta":{"content":"\\ude00"}}]}']

    events = decode(CHAT, sse(*halves, delta("stop")))

    assert run_lengths(events) == ["start", "text_start:0", "text_delta:0", "text_end:0", "done"]


def test_parts_of_unknown_kinds_are_passed_over() -> None:
    parts = [{"type": "image_url"}, 7, None, "", "a", {"type": "text", "text": "b"}, {"type": "thinking"}]

    assert message_of(CHAT, sse(delta("stop", content=parts))).text == "ab"
