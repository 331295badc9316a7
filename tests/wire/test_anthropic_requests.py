from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from trio_agent._errors import TranscriptError
from trio_agent._messages import Message
from trio_agent._models import Model

from .transcripts import PNG, answer, body, call, request, result, system, thought, tool, user

CLAUDE = Model(
    id="claude-sonnet-4-5",
    api="anthropic-messages",
    provider="anthropic",
    base_url="https://api.anthropic.com",
    input=("text", "image"),
    max_tokens=64000,
)
THINKER = msgspec.structs.replace(CLAUDE, reasoning=True)
EPHEMERAL = {"type": "ephemeral"}


def wire(*messages: Message, by: Model = CLAUDE, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = body(by, *messages, **{"cache_retention": "none", **options})["messages"]
    return found


def test_smallest_request() -> None:
    made = request(CLAUDE, user("hi"), api_key="sk-1", cache_retention="none")

    assert made.url == "https://api.anthropic.com/v1/messages"
    assert json.loads(made.content()) == {
        "model": "claude-sonnet-4-5",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 64000,
        "stream": True,
    }
    assert made.headers == {
        "accept": "text/event-stream, application/json",
        "content-type": "application/json",
        "anthropic-version": "2023-06-01",
        "x-api-key": "sk-1",
    }


@pytest.mark.parametrize(
    "base", ["https://h.example", "https://h.example/", "https://h.example/v1", "https://h.example/v1/"]
)
def test_version_in_the_base_url_is_not_doubled(base: str) -> None:
    assert request(msgspec.structs.replace(CLAUDE, base_url=base), user("a")).url == "https://h.example/v1/messages"


def test_token_goes_as_a_bearer_where_the_server_wants_that() -> None:
    gateway = msgspec.structs.replace(CLAUDE, compat={"apiKeyHeader": "Authorization"})

    headers = request(gateway, user("a"), api_key="t").headers

    assert headers["authorization"] == "Bearer t"
    assert "x-api-key" not in headers


def test_length_has_a_default_where_the_model_is_unknown() -> None:
    unknown = Model(id="x", api=CLAUDE.api, provider="local")

    assert body(unknown, user("a"))["max_tokens"] == 8192


def test_marks_for_the_cache_are_on_system_last_tool_and_last_user_message() -> None:
    made = body(CLAUDE, system("S", tool("a"), tool("b")), user("q"), answer(CLAUDE, "x"), user("see", PNG))

    assert made["system"] == [{"type": "text", "text": "S", "cache_control": EPHEMERAL}]
    assert [declared.get("cache_control") for declared in made["tools"]] == [None, EPHEMERAL]
    assert made["messages"][0]["content"] == "q"
    assert [part.get("cache_control") for part in made["messages"][2]["content"]] == [None, EPHEMERAL]


def test_long_retention_is_an_hour_where_that_is_known() -> None:
    short_only = msgspec.structs.replace(CLAUDE, compat={"supportsLongCacheRetention": False})

    assert body(CLAUDE, user("a"), cache_retention="long")["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {**EPHEMERAL, "ttl": "1h"}}]}
    ]
    assert (
        body(short_only, user("a"), cache_retention="long")["messages"][0]["content"][0]["cache_control"] == EPHEMERAL
    )


def test_tools_are_not_marked_where_that_is_refused() -> None:
    fireworks = msgspec.structs.replace(CLAUDE, provider="fireworks", base_url="")

    assert "cache_control" not in body(fireworks, system("S", tool("a")), user("q"))["tools"][0]


@pytest.mark.parametrize(
    ("compat", "strict", "sent"),
    [({"supportsStrictTools": True}, True, True), ({"supportsStrictTools": True}, False, None), ({}, True, None)],
)
def test_strictness_is_asked_for_where_servers_take_it(compat: Any, strict: bool, sent: bool | None) -> None:
    declared = msgspec.structs.replace(tool("read"), strict=strict)

    [made] = body(msgspec.structs.replace(CLAUDE, compat=compat), system("", declared), user("a"))["tools"]

    assert made.get("strict") is sent


def test_answer_at_the_end_is_not_marked() -> None:
    assert body(CLAUDE, user("q"), answer(CLAUDE, "Pre"))["messages"][1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "Pre"}],
    }


def test_blank_texts_and_what_they_leave_empty_are_left_out() -> None:
    assert wire(user(" "), user("", "x", "\n"), answer(CLAUDE, " "), user("", "")) == [
        {"role": "user", "content": [{"type": "text", "text": "x"}]}
    ]


@pytest.mark.parametrize("messages", [[], [system()], [user(" ")], [answer(CLAUDE, "x", stop_reason="error")]])
def test_request_with_nothing_to_send_is_refused_here(messages: list[Message]) -> None:
    with pytest.raises(TranscriptError, match="nothing to send"):
        request(CLAUDE, *messages)


def test_signed_redacted_and_unsigned_reasoning() -> None:
    [message] = wire(
        answer(CLAUDE, thought("a", "SIG"), thought("[Reasoning redacted]", "ENC", redacted=True), thought("b"), "ok")
    )

    assert message["content"] == [
        {"type": "thinking", "thinking": "a", "signature": "SIG"},
        {"type": "redacted_thinking", "data": "ENC"},
        {"type": "text", "text": "b"},
        {"type": "text", "text": "ok"},
    ]


def test_unsigned_reasoning_stays_reasoning_where_the_server_allows_it() -> None:
    lenient = msgspec.structs.replace(CLAUDE, compat={"allowEmptySignature": True})

    [message] = wire(answer(lenient, thought("b"), "ok"), by=lenient)

    assert message["content"][0] == {"type": "thinking", "thinking": "b", "signature": ""}


def test_results_of_a_turn_are_one_message_before_the_user() -> None:
    messages = wire(answer(CLAUDE, call("a"), call("b")), result("b", "B1", "B2"), result("a", "A"), user("go on"))

    assert messages[1:] == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "A", "is_error": False},
                {"type": "tool_result", "tool_use_id": "b", "content": "B1\nB2", "is_error": False},
            ],
        },
        {"role": "user", "content": "go on"},
    ]


@pytest.mark.parametrize("is_error", [True, False])
def test_results_are_never_empty(is_error: bool) -> None:
    [_, message] = wire(answer(CLAUDE, call("a")), result("a", "", is_error=is_error))

    assert message["content"][0]["content"] == "(no tool output)"


def test_images_stand_in_results_but_not_in_error_results() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBOR"}}
    [_, message] = wire(
        answer(CLAUDE, call("a"), call("b"), call("c")),
        result("a", "A", PNG),
        result("b", PNG),
        result("c", "boom", PNG, is_error=True),
    )

    assert message["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": [{"type": "text", "text": "A"}, image],
            "is_error": False,
        },
        {
            "type": "tool_result",
            "tool_use_id": "b",
            "content": [{"type": "text", "text": "(see attached image)"}, image],
            "is_error": False,
        },
        {
            "type": "tool_result",
            "tool_use_id": "c",
            "content": "boom\n(image attached after the tool results)",
            "is_error": True,
        },
        {"type": "text", "text": "Images from the error result of tool call c (read):"},
        image,
    ]


def test_schemas_keep_only_what_their_root_may_have() -> None:
    parameters = {"$schema": "x", "anyOf": [], "$defs": {"X": {}}, "additionalProperties": False, "required": ["path"]}

    [declared] = body(CLAUDE, system("", tool("read", **parameters)), user("a"), cache_retention="none")["tools"]

    assert declared == {
        "name": "read",
        "description": "To read",
        "eager_input_streaming": True,
        "input_schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
            "additionalProperties": False,
            "$defs": {"X": {}},
        },
    }


def test_eager_streaming_is_asked_for_as_the_server_takes_it() -> None:
    unknown = Model(id="x", api=CLAUDE.api, provider="local")
    older = msgspec.structs.replace(unknown, compat={"supportsEagerToolInputStreaming": False})
    messages: list[Message] = [system("", tool("read")), user("a")]

    assert "eager_input_streaming" not in body(unknown, *messages)["tools"][0]
    assert "anthropic-beta" not in request(unknown, *messages).headers
    assert request(older, *messages).headers["anthropic-beta"] == "fine-grained-tool-streaming-2025-05-14"


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"type": "auto"}),
        ("required", {"type": "any"}),
        ({"type": "tool", "name": "read"}, {"type": "tool", "name": "read"}),
        ({"type": "function", "function": {"name": "read"}}, {"type": "tool", "name": "read"}),
        ({"type": "any", "disable_parallel_tool_use": True}, {"type": "any", "disable_parallel_tool_use": True}),
    ],
)
def test_tool_choice_of_any_api_is_understood(choice: Any, sent: Any) -> None:
    assert body(CLAUDE, user("a"), tool_choice=choice)["tool_choice"] == sent


def test_only_the_user_id_of_the_metadata_is_sent() -> None:
    assert body(CLAUDE, user("a"), metadata={"user_id": "u", "x": 1})["metadata"] == {"user_id": "u"}
    assert "metadata" not in body(CLAUDE, user("a"), metadata={"x": 1})


def test_thinking_by_a_budget_on_top_of_the_answer() -> None:
    made = request(THINKER, user("a"), reasoning="low", max_tokens=1000, temperature=0.5)

    # The answer keeps 1024 tokens of the 3048.
    assert made.body["thinking"] == {"type": "enabled", "budget_tokens": 2024, "display": "summarized"}
    assert made.body["max_tokens"] == 3048
    assert "temperature" not in made.body
    assert made.headers["anthropic-beta"] == "interleaved-thinking-2025-05-14"


def test_budget_shrinks_into_a_small_model_and_is_left_out_when_too_small() -> None:
    small = msgspec.structs.replace(THINKER, max_tokens=4096)
    tiny = msgspec.structs.replace(THINKER, max_tokens=1500)

    assert body(small, user("a"), reasoning="high")["thinking"]["budget_tokens"] == 4096 - 1024
    assert body(tiny, user("a"), reasoning="high")["thinking"] == {"type": "disabled"}


def test_thinking_by_effort() -> None:
    adaptive = msgspec.structs.replace(THINKER, id="claude-opus-4-7", thinking_level_map={"xhigh": "xhigh"})

    made = request(adaptive, user("a"), reasoning="xhigh", temperature=1.0)

    assert made.body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert made.body["output_config"] == {"effort": "xhigh"}
    assert "temperature" not in made.body
    assert "anthropic-beta" not in made.headers
    assert body(adaptive, user("a"), reasoning="minimal")["output_config"] == {"effort": "low"}
    assert "temperature" not in body(adaptive, user("a"), temperature=1.0)


def test_thinking_off_is_said_where_it_can_be() -> None:
    always = msgspec.structs.replace(THINKER, thinking_level_map={"off": None})

    assert body(THINKER, user("a"), temperature=0.0)["thinking"] == {"type": "disabled"}
    assert body(THINKER, user("a"), temperature=0.0)["temperature"] == 0
    assert "thinking" not in body(always, user("a"))
    assert "thinking" not in body(CLAUDE, user("a"), reasoning="high")


def test_betas_of_the_user_replace_ours() -> None:
    assert (
        request(THINKER, user("a"), reasoning="low", headers={"Anthropic-Beta": "x"}).headers["anthropic-beta"] == "x"
    )
    assert (
        "anthropic-beta" not in request(THINKER, user("a"), reasoning="low", headers={"anthropic-beta": None}).headers
    )
