"""Retries of real responses: what the driver makes of statuses and headers, and connections that had gone."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from trio_agent import (
    ContextOverflowError,
    ModelError,
    ModelHTTPError,
    OverloadedError,
    RateLimitError,
    RetryPolicy,
    StreamDone,
    StreamOptions,
    TextDelta,
)
from trio_agent.providers import ModelClient

from .conftest import OpenClient
from .raw_server import (
    HELLO,
    HELLO_REPLY,
    KEY,
    Request,
    ask,
    failing,
    head,
    model_at,
    raw,
    serving,
)

HOST = "http://model.test"
SLOW_DOWN = b'{"error": {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}}'


@pytest.fixture(params=["httpx", "httpx2"])
def package(request: pytest.FixtureRequest) -> ModuleType:
    """An HTTP client's package."""
    name: str = request.param
    pytest.importorskip(name)
    return importlib.import_module(name)


def in_memory(package: ModuleType, *responses: tuple[int, dict[str, str], bytes], **settings: Any) -> ModelClient:
    """A client whose requests get these responses in order, without a socket."""
    waiting = list(responses)

    async def answer(request: Any) -> Any:
        status, headers, body = waiting.pop(0)
        return package.Response(status, headers=headers, content=body)

    http_client = package.AsyncClient(transport=package.MockTransport(answer))
    return ModelClient(http_client=http_client, **settings)


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after": "7"}, SLOW_DOWN, 7),
        ({"Retry-After": "1.5"}, b"", 1.5),
        ({"retry-after-ms": "2500", "retry-after": "9"}, SLOW_DOWN, 2.5),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:47 GMT", "date": "Sun, 06 Nov 1994 08:49:37 GMT"}, SLOW_DOWN, 10),
        ({"retry-after": "Sun Nov  6 08:49:47 1994", "date": "Sun, 06 Nov 1994 08:49:37 GMT"}, SLOW_DOWN, 10),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:47", "date": "Sun, 06 Nov 1994 08:49:37 GMT"}, SLOW_DOWN, 10),
        ({}, b'{"error": {"message": "Please try again in 1m2.5s."}}', 62.5),
        ({}, b'{"error": {"code": 429, "message": "quota exceeded", "details": [{"retryDelay": "34s"}]}}', 34),
        ({"retry-after": "soon"}, SLOW_DOWN, 0.5),
        ({}, SLOW_DOWN, 0.5),
    ],
)
async def test_a_rate_limit_is_waited_for_on_the_clock_of_trio(
    package: ModuleType, autojump_clock: MockClock, headers: dict[str, str], body: bytes, seconds: float
) -> None:
    policy = RetryPolicy(jitter=0, max_server_delay=65)
    client = in_memory(package, (429, headers, body), (200, {}, HELLO), retries=policy)

    events = await ask(client, model_at(HOST))

    assert isinstance(events[-1], StreamDone)
    assert trio.current_time() == seconds


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 520, 529])
async def test_passing_statuses_are_tried_again(package: ModuleType, autojump_clock: MockClock, status: int) -> None:
    client = in_memory(package, (status, {}, b"{}"), (200, {}, HELLO))

    assert isinstance((await ask(client, model_at(HOST)))[-1], StreamDone)


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (429, SLOW_DOWN, RateLimitError, True),
        (429, b'{"error": {"message": "No money left", "code": "insufficient_quota"}}', RateLimitError, False),
        (529, b'{"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}', OverloadedError, True),
        (503, b"<html><body>503 Service Unavailable</body></html>", OverloadedError, True),
        (500, b'{"error": "the model is currently experiencing high demand"}', OverloadedError, True),
        (500, b"", ModelHTTPError, True),
        (400, b'{"error": {"message": "bad", "type": "invalid_request_error"}}', ModelHTTPError, False),
        (401, b"{}", ModelHTTPError, False),
        (400, b'{"error": {"message": "x", "code": "context_length_exceeded"}}', ContextOverflowError, False),
        (413, b"", ContextOverflowError, False),
        (500, b'{"error": "the request exceeds the available context size"}', ContextOverflowError, False),
        (
            400,
            b'{"error":{"code":400,"message":"request (900 tokens) is too long","type":"exceed_context_size_error"}}',
            ContextOverflowError,
            False,
        ),
    ],
)
async def test_a_status_and_a_body_make_a_typed_error(
    package: ModuleType, status: int, body: bytes, kind: type[ModelHTTPError], retryable: bool
) -> None:
    client = in_memory(package, (status, {"x-request-id": "req_1"}, body), retries=None)

    with pytest.raises(ModelHTTPError) as caught:
        await ask(client, model_at(HOST))

    error = caught.value
    assert type(error) is kind
    assert (error.status, error.provider, error.request_id) == (status, "openai", "req_1")
    assert error.retryable is retryable
    assert str(error).startswith(str(status))


@pytest.mark.parametrize(("word", "status", "attempts"), [("true", 400, 2), ("false", 503, 1)])
async def test_a_server_may_say_whether_to_try_again(
    package: ModuleType, autojump_clock: MockClock, word: str, status: int, attempts: int
) -> None:
    seen: list[int] = []

    async def count(response: object) -> None:
        seen.append(1)

    refusal = (status, {"x-should-retry": word}, b"{}")
    client = in_memory(package, refusal, refusal, on_response=count, retries=RetryPolicy(attempts=2))

    with pytest.raises(ModelHTTPError):
        await ask(client, model_at(HOST))

    assert len(seen) == attempts


@pytest.mark.parametrize(
    "error",
    [
        b'data: {"error": {"message": "Overloaded", "code": 502}}\n\n',
        b'event: error\ndata: {"error": {"message": "upstream", "type": "server_error"}}\n\n',
    ],
)
async def test_an_overload_within_a_stream_is_tried_again_if_nothing_was_said(
    package: ModuleType, autojump_clock: MockClock, error: bytes
) -> None:
    client = in_memory(package, (200, {}, error), (200, {}, HELLO))

    events = await ask(client, model_at(HOST))

    assert "".join(event.delta for event in events if isinstance(event, TextDelta)) == "Hello"


async def test_a_wait_beyond_the_bound_fails_at_once(package: ModuleType, autojump_clock: MockClock) -> None:
    client = in_memory(package, (429, {"retry-after": "3600"}, SLOW_DOWN))

    with pytest.raises(RateLimitError, match=r"asks to wait 3600 s, .* 60 s\. 429: slow down"):
        await ask(client, model_at(HOST))

    assert trio.current_time() == 0


async def test_a_server_that_recovers_is_seen_as_one_answer(open_client: OpenClient) -> None:
    fast = RetryPolicy(base_delay=0.01)
    replies = failing("500 Oops"), failing("429 Slow", SLOW_DOWN, "retry-after: 0"), HELLO_REPLY
    async with serving(*replies) as server, open_client(retries=fast) as client:
        events = await ask(client, model_at(server))

    assert isinstance(events[-1], StreamDone)
    assert len(server.requests) == 3
    # The bodies of failures are read, but their connections are not trusted any more.
    assert [request.body for request in server.requests] == [server.requests[0].body] * 3


# -- kept connections that have gone -----------------------------------------------------------------------------------


def dropping_every_second(reply: Callable[..., Any]) -> Callable[..., Any]:
    """Hangs up when a kept connection brings its second request, as servers do whose idle time is over."""
    used: set[int] = set()

    async def drop(stream: trio.SocketStream, request: Request) -> None:
        if request.connection in used:
            await stream.aclose()
        else:
            used.add(request.connection)
            await reply(stream, request)

    return drop


async def test_a_kept_connection_that_had_gone_is_no_failure(
    open_client: OpenClient, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(dropping_every_second(HELLO_REPLY)) as server, open_client() as client:
        with caplog.at_level(logging.DEBUG, logger="trio_agent"):
            for _ in range(3):
                assert isinstance((await ask(client, model_at(server)))[-1], StreamDone)

    assert server.connections == 3
    assert len(server.requests) == 5
    assert sum("no response" in message for message in caplog.messages) == 2


async def test_it_is_tried_only_once_more(open_client: OpenClient) -> None:
    async def hang_up(stream: trio.SocketStream, request: Request) -> None:
        await stream.aclose()

    async with serving(HELLO_REPLY, hang_up) as server, open_client() as client:
        await ask(client, model_at(server))
        with pytest.raises(Exception, match="Connection error"):
            await ask(client, model_at(server))

    assert len(server.requests) == 3


async def test_a_new_connection_that_is_dropped_is_a_failure(open_client: OpenClient) -> None:
    async def hang_up(stream: trio.SocketStream, request: Request) -> None:
        await stream.aclose()

    async with serving(hang_up) as server, open_client() as client:
        with pytest.raises(Exception, match="Connection error"):
            await ask(client, model_at(server))

    assert len(server.requests) == 1


async def test_a_kept_connection_that_breaks_within_the_answer_is_not_asked_again(open_client: OpenClient) -> None:
    broken = raw(head("200 OK", "transfer-encoding: chunked"), close=True)
    async with serving(HELLO_REPLY, broken) as server, open_client() as client:
        await ask(client, model_at(server))
        events = await ask(client, model_at(server))

    assert not isinstance(events[-1], StreamDone)
    assert len(server.requests) == 2


# -- nothing leaks -----------------------------------------------------------------------------------------------------


async def test_logs_hold_sizes_and_times_but_no_key_and_no_text(
    open_client: OpenClient, caplog: pytest.LogCaptureFixture
) -> None:
    echo = b'{"error": {"message": "bad key ' + KEY.encode() + b'", "input": "a private question"}}'
    with caplog.at_level(logging.DEBUG):
        async with serving(HELLO_REPLY, failing("500 Oops", echo)) as server, open_client() as client:
            await ask(client, model_at(server))
            with pytest.raises(ModelHTTPError):
                await ask(client, model_at(server))

    ours = [record for record in caplog.records if record.name == "trio_agent.providers"]
    assert [vars(record).get("status") for record in ours if "response" in record.getMessage()] == [200, 500]
    assert {vars(record)["provider"] for record in ours} == {"openai"}
    everything = "\n".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records)
    for secret in (KEY, "private question", "Hel"):
        assert secret not in everything


async def test_hooks_see_requests_and_responses_without_keys(open_client: OpenClient) -> None:
    seen: list[Any] = []

    async def on_request(request: Any) -> dict[str, Any]:
        seen.append(request)
        return {**request.body, "seed": 7}

    async def on_response(response: Any) -> None:
        seen.append(response)

    async with (
        serving(HELLO_REPLY) as server,
        open_client(on_request=on_request, on_response=on_response) as client,
    ):
        await ask(client, model_at(server, headers={"x-extra": f"also {KEY}"}))

    request, response = seen
    assert request.url == f"{server.url}/v1/chat/completions"
    assert request.headers["authorization"] == "***"
    assert request.headers["x-extra"] == "***"
    assert KEY not in repr(seen)
    assert server.requests[0].body["seed"] == 7
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert response.status == 200
    assert response.headers["content-type"] == "text/event-stream"


@pytest.mark.parametrize("key", ["sk-with\nnewline-in-it", "sk-ünicode-key-here", "sk-\x00-null-in-the-key"])
async def test_a_key_that_is_none_is_refused_and_not_shown(open_client: OpenClient, key: str) -> None:
    async with open_client() as client:
        with pytest.raises(ModelError, match="characters that no key has") as caught:
            await ask(client, model_at(HOST), StreamOptions(api_key=key))

    assert key not in f"{caught.value!r} {caught.value.__cause__!r} {caught.value.__context__!r}"


@pytest.mark.parametrize("value", ["secret\r\nx-other: 1", "secret ü"])
async def test_a_header_that_http_forbids_is_refused_and_not_shown(open_client: OpenClient, value: str) -> None:
    async with serving(HELLO_REPLY) as server, open_client() as client:
        with pytest.raises(ModelError, match="one of its headers is not allowed") as caught:
            await ask(client, model_at(server, headers={"x-note": value}))

    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
