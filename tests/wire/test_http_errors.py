from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from trio_agent._messages import Usage
from trio_agent._models import Model
from trio_agent.wire import (
    describe_error,
    is_context_overflow,
    is_overflow_text,
    is_retryable_status,
    is_retryable_text,
    read_error,
)

from .transcripts import answer


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (
            401,
            {"error": {"message": "Incorrect API key", "type": "invalid_request_error", "code": "invalid_api_key"}},
            "401: Incorrect API key (invalid_request_error, invalid_api_key)",
        ),
        (
            529,
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            "529: Overloaded (overloaded_error)",
        ),
        (503, [{"error": {"code": 503, "message": "Busy.", "status": "UNAVAILABLE"}}], "503: Busy. (UNAVAILABLE)"),
        (400, {"detail": "bad request"}, "400: bad request"),
        (400, {"detail": {"error": {"message": "deep"}}}, "400: deep"),
        (
            400,
            {"object": "error", "message": "no", "type": "BadRequestError", "code": 400},
            "400: no (BadRequestError)",
        ),
        (404, {"error": "model 'x' not found"}, "404: model 'x' not found"),
        (
            403,
            {"success": False, "errors": [{"code": 10000, "message": "Authentication error"}]},
            "403: Authentication error (10000)",
        ),
        (400, {"message": "just message"}, "400: just message"),
        (
            402,
            {"error": {"message": "Provider error", "metadata": {"raw": "upstream text"}}},
            "402: Provider error: upstream text",
        ),
        (500, {"error": {}}, '500: {"error":{}}'),
        (500, "text", "500: text"),
        (500, 7, "500: 7"),
    ],
)
def test_bodies_of_every_shape_are_readable(status: int, body: Any, text: str) -> None:
    assert read_error(status, json.dumps(body).encode()).text == text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "502 status code (no body)"),
        (b" \n", "502 status code (no body)"),
        (b"<html><head><title>x</title></head><body><h1>502 Bad Gateway</h1><hr></body></html>", "502 Bad Gateway"),
        (b"plain\n  text", "502: plain text"),
        (b"\xff\xfe", "502: \ufffd\ufffd"),
        (b'{"error": {"message": "cut of', '502: {"error": {"message": "cut of'),
    ],
)
def test_bodies_that_are_no_json(body: bytes, text: str) -> None:
    assert read_error(502, body).text == text


def test_deep_wrapping_is_not_followed_for_ever() -> None:
    body: Any = {"message": "x"}
    for _ in range(20):
        body = {"error": body}

    assert read_error(500, json.dumps(body).encode()).text.startswith('500: {"error":')


def test_long_text_is_cut() -> None:
    text = read_error(500, b"x" * 10_000).text

    assert text.endswith("... [truncated 6000 chars]")


def test_what_the_user_sent_is_not_repeated() -> None:
    finding = {"loc": ["body", "messages", 0], "msg": "field required", "input": "secret prompt"}

    assert read_error(422, json.dumps({"detail": [finding, finding]}).encode()).text == (
        "422: body.messages.0: field required; body.messages.0: field required"
    )
    assert "secret" not in read_error(422, json.dumps({"why": "x", "input": "secret prompt"}).encode()).text


def test_key_is_not_repeated() -> None:
    body = b'{"error":{"message":"Invalid key sk-1234"}}'

    assert read_error(401, body, secrets=["", "sk-1234"]).text == "401: Invalid key ***"


def test_error_of_too_many_levels_is_named_so() -> None:
    body: Any = {"x": 1}
    for _ in range(5000):
        body = {"x": body}

    assert describe_error(body) == "an error of too many levels"


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        ({"message": "x", "details": [{"@type": "g/Help"}, {"@type": "g/RetryInfo", "retryDelay": "34s"}]}, 34),
        ({"message": "Please try again in 7.66s."}, 7.66),
        ({"message": "Please try again in 20ms."}, 0.02),
        ({"message": "Please try again in 1m30s."}, 90),
        ({"message": "Please try again in 2m"}, 120),
        ({"message": "Please try again later"}, None),
        ({"message": "try again in a while"}, None),
        ({"message": "try again in 1.2.3s"}, None),
    ],
)
def test_wait_named_in_the_body(error: dict[str, Any], seconds: float | None) -> None:
    assert read_error(429, json.dumps({"error": error}).encode()).retry_after == pytest.approx(seconds)


def test_words_of_the_server_are_kept_apart() -> None:
    body = {"error": {"type": "a", "code": "b", "status": "c", "message": "m"}}

    assert read_error(400, json.dumps(body).encode()).words == ("a", "b", "c")
    assert describe_error(body) == "m (a, b, c)"


def test_words_that_the_message_has_are_not_said_again() -> None:
    assert describe_error({"message": "context_length_exceeded: too long", "code": "context_length_exceeded"}) == (
        "context_length_exceeded: too long"
    )


@pytest.mark.parametrize(
    "text",
    [
        "prompt is too long: 213462 tokens > 200000 maximum",
        '413 {"error":{"type":"request_too_large"}}',
        "Input length (265330) exceeds model's maximum context length (262144).",
        "400: x (context_length_exceeded)",
        "the request exceeds the available context size, try increasing it",
        "The answer reached the end of the context window (model_context_window_exceeded)",
    ],
)
def test_overflow_is_recognised_and_never_retried(text: str) -> None:
    assert is_overflow_text(text)
    assert not is_retryable_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "429 too many requests: rate limit, too many tokens",
        "ThrottlingException: Too many tokens, please wait before trying again.",
        "exceeds the limit of 100 images",
        "400 status code (no body)",
    ],
)
def test_other_limits_are_no_overflow(text: str) -> None:
    assert not is_overflow_text(text)


def test_cerebras_says_overflow_by_silence() -> None:
    assert is_overflow_text("400 status code (no body)", provider="cerebras")


@pytest.mark.parametrize(
    "text",
    [
        "529: Overloaded (overloaded_error)",
        "Stream ended without finish_reason",
        "Anthropic stream ended before message_stop",
        "502 Bad Gateway",
        "boom (502)",
        "late (server_error)",
        "peer closed connection without sending complete message body (incomplete chunked read)",
        "Server disconnected without sending a response.",
        "All connection attempts failed",
        "[Errno -2] Name or service not known",
        "Provider finish_reason: insufficient_system_resource",
        "ReadTimeout",
    ],
)
def test_failures_that_pass_are_worth_another_try(text: str) -> None:
    assert is_retryable_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "401: Incorrect API key",
        "429: You exceeded your current quota (insufficient_quota)",
        "req_429x",
        "request id 5003abc",
        "Provider finish_reason: content_filter",
        "The model refused to complete the request (cyber)",
        "billing hard limit",
        '"code":"1308" limit',
    ],
)
def test_failures_that_stay_are_not(text: str) -> None:
    assert not is_retryable_text(text)


def test_statuses_that_speak_for_another_try() -> None:
    assert [
        status for status in (400, 401, 404, 408, 409, 413, 422, 429, 500, 503, 529) if is_retryable_status(status)
    ] == [
        408,
        409,
        429,
        500,
        503,
        529,
    ]


@pytest.mark.parametrize(
    ("stop_reason", "tokens", "window", "expected"),
    [
        ("stop", (90, 5, 20), 100, True),
        ("stop", (90, 5, 5), 100, False),
        ("stop", (90, 5, 20), 0, False),
        ("length", (99, 0, 0), 100, True),
        ("length", (99, 1, 0), 100, False),
        ("length", (80, 0, 0), 100, False),
    ],
)
def test_silent_overflow_shows_in_the_usage(
    stop_reason: Any, tokens: tuple[int, int, int], window: int, expected: bool
) -> None:
    usage = msgspec.structs.replace(Usage.zero(), input=tokens[0], output=tokens[1], cache_read=tokens[2])
    message = msgspec.structs.replace(
        answer(Model(id="m", api="a", provider="p"), stop_reason=stop_reason), usage=usage
    )

    assert is_context_overflow(message, context_window=window) is expected


def test_overflow_in_the_error_text_of_an_answer() -> None:
    failed = msgspec.structs.replace(
        answer(Model(id="m", api="a", provider="cerebras"), stop_reason="error"),
        error_message="400 status code (no body)",
    )

    assert is_context_overflow(failed)
