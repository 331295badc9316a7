"""What servers and networks do wrong, on real sockets: every fault is one error, and nothing of it is left."""

from __future__ import annotations

import gzip
import importlib.metadata
import zlib

import pytest
import trio

from trio_agent import (
    AssistantMessage,
    AssistantMessageEvent,
    Model,
    ModelConnectionError,
    ModelError,
    ModelHTTPError,
    ModelTimeoutError,
    StreamDone,
    StreamError,
    StreamOptions,
    StreamStart,
    TextDelta,
)
from trio_agent.providers._http import _user_agent

from .conftest import OpenClient
from .raw_server import (
    CHUNKED,
    CONTEXT,
    END,
    FINISH,
    HELLO_REPLY,
    OPTIONS,
    Request,
    ask,
    chunk,
    delta,
    failing,
    head,
    model_at,
    raw,
    serving,
    streamed,
)


def failure_of(events: list[AssistantMessageEvent]) -> AssistantMessage:
    last = events[-1]
    assert isinstance(last, StreamError)
    assert last.message is not None
    return last.message


async def test_an_answer_arrives_event_by_event_and_the_request_is_what_the_format_says(
    open_client: OpenClient,
) -> None:
    async with serving(HELLO_REPLY) as server, open_client() as client:
        events = await ask(client, model_at(server))

    assert isinstance(events[0], StreamStart)
    assert [event.delta for event in events if isinstance(event, TextDelta)] == ["Hel", "lo"]
    assert isinstance(events[-1], StreamDone)
    [request] = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {OPTIONS.api_key}"
    assert request.headers["user-agent"].startswith("trio-agent/")
    assert request.headers["accept-encoding"] == "identity"
    assert request.body["messages"] == [{"role": "user", "content": "a private question"}]


async def test_a_copy_of_the_package_that_nobody_installed_asks_without_its_version(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    _user_agent.cache_clear()
    try:
        async with serving(HELLO_REPLY) as server, open_client() as client:
            events = await ask(client, model_at(server))
    finally:
        _user_agent.cache_clear()

    assert isinstance(events[-1], StreamDone)
    assert server.requests[0].headers["user-agent"] == "trio-agent"


async def test_events_of_one_read_are_received_together(open_client: OpenClient) -> None:
    sends, may_send = trio.open_memory_channel[None](10)
    pieces = [
        chunk(delta("a") + delta("b")),
        chunk(delta("c")) + chunk(delta("d")) + chunk(delta("e")),
        chunk(delta("f")),
        chunk(FINISH) + END,
    ]

    async def reply(stream: trio.SocketStream, request: Request) -> None:
        await stream.send_all(head("200 OK", CHUNKED))
        for piece in pieces:
            await may_send.receive()
            await stream.send_all(piece)

    sizes: list[int] = []
    async with (
        serving(reply) as server,
        open_client() as client,
        client(model_at(server), CONTEXT, OPTIONS) as events,
    ):
        while received := await events.receive_some():  # type: ignore[attr-defined]
            sizes.append(len(received))
            sends.send_nowait(None)

    # The start is there with the head; the first delta opens the block, and the last read closes it. Of three chunks
    # the first one does not wait for the others.
    assert sizes == [1, 3, 1, 2, 1, 2]


async def test_a_body_that_ends_early_keeps_what_had_arrived(open_client: OpenClient) -> None:
    cut = raw(head("200 OK", CHUNKED), chunk(delta("Hel")), close=True)
    async with serving(cut) as server, open_client() as client:
        message = failure_of(await ask(client, model_at(server)))

    assert message.text == "Hel"
    assert (message.error_message or "").startswith("Connection error: ")


async def test_a_stream_that_ends_without_an_end_is_an_error(open_client: OpenClient) -> None:
    async with serving(streamed(delta("Hel"))) as server, open_client() as client:
        message = failure_of(await ask(client, model_at(server)))

    assert message.text == "Hel"
    assert message.error_message == "Stream ended without finish_reason"


async def test_a_server_that_stalls_in_the_middle_times_out(open_client: OpenClient) -> None:
    async def stall(stream: trio.SocketStream, request: Request) -> None:
        await stream.send_all(head("200 OK", CHUNKED) + chunk(delta("Hel")))
        await trio.sleep_forever()

    async with serving(stall) as server, open_client() as client:
        options = StreamOptions(api_key="", timeout=0.1)
        message = failure_of(await ask(client, model_at(server), options))

    assert message.text == "Hel"
    assert message.error_message == "Request timed out: the server was silent for 0.1 s"


async def test_a_server_that_never_begins_times_out(open_client: OpenClient) -> None:
    async def sleep(stream: trio.SocketStream, request: Request) -> None:
        await trio.sleep_forever()

    async with serving(sleep) as server, open_client(idle_timeout=0.1) as client:
        with pytest.raises(ModelTimeoutError, match=r"silent for 0\.1 s") as caught:
            await ask(client, model_at(server))

    assert caught.value.retryable


async def test_headers_that_come_slowly_are_waited_for(open_client: OpenClient) -> None:
    async def slow(stream: trio.SocketStream, request: Request) -> None:
        for byte in head("200 OK", CHUNKED):
            await stream.send_all(bytes([byte]))
            await trio.lowlevel.checkpoint()
        await stream.send_all(chunk(delta("Hello")) + chunk(FINISH) + END)

    async with serving(slow) as server, open_client() as client:
        assert isinstance((await ask(client, model_at(server)))[-1], StreamDone)


@pytest.mark.parametrize("pieces", [(), (head("200 OK", CHUNKED), chunk(delta("Hel")))])
async def test_a_reset_connection_is_a_connection_error(open_client: OpenClient, pieces: tuple[bytes, ...]) -> None:
    async def reset(stream: trio.SocketStream, request: Request) -> None:
        for piece in pieces:
            await stream.send_all(piece)
            await trio.sleep(0.05)  # until the client has read it: a reset overtakes what is under way
        linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
        stream.socket.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, linger)
        await stream.aclose()

    async with serving(reset) as server, open_client() as client:
        if pieces:
            assert failure_of(await ask(client, model_at(server))).text == "Hel"
        else:
            with pytest.raises(ModelConnectionError, match=r"^Connection error: .+"):
                await ask(client, model_at(server))


async def test_nobody_at_the_address_is_a_connection_error(open_client: OpenClient) -> None:
    async with serving(HELLO_REPLY) as server:
        pass
    async with open_client() as client:
        with pytest.raises(ModelConnectionError, match=r"Connection error: .*refused") as caught:
            await ask(client, model_at(server))

    assert caught.value.retryable


@pytest.mark.parametrize("reply", [b"\x00\x01\x02 garbage\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n"])
async def test_something_that_is_no_http_is_a_connection_error(open_client: OpenClient, reply: bytes) -> None:
    async with serving(raw(reply, close=True)) as server, open_client() as client:
        with pytest.raises(ModelConnectionError):
            await ask(client, model_at(server))


async def test_garbage_in_a_stream_is_an_error_of_the_answer(open_client: OpenClient) -> None:
    async with serving(streamed(delta("Hel"), b"data: {broken\n\n")) as server, open_client() as client:
        assert failure_of(await ask(client, model_at(server))).text == "Hel"


async def test_a_page_of_html_with_status_200_is_readable(open_client: OpenClient) -> None:
    page = b"<html><head><title>x</title></head><body><h1>Sign in</h1> to the guest network</body></html>"
    reply = raw(head("200 OK", f"content-length: {len(page)}", content_type="text/html") + page)
    async with serving(reply) as server, open_client() as client:
        message = failure_of(await ask(client, model_at(server)))

    assert message.error_message == "The server sent no event stream: Sign in to the guest network"


async def test_a_compressed_answer_is_read_although_none_was_asked_for(open_client: OpenClient) -> None:
    body = gzip.compress(delta("Hel") + delta("lo") + FINISH)
    reply = raw(head("200 OK", f"content-length: {len(body)}", "content-encoding: gzip") + body)
    async with serving(reply) as server, open_client() as client:
        last = (await ask(client, model_at(server)))[-1]

    assert isinstance(last, StreamDone)
    assert last.message is not None
    assert last.message.text == "Hello"


# The client's own generators are left suspended when its decompression fails in the midst of them.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_compressed_answer_that_is_broken_is_an_error(open_client: OpenClient) -> None:
    body = zlib.compress(delta("Hello"))[:-3] + b"\xff" * 40
    reply = raw(head("200 OK", f"content-length: {len(body)}", "content-encoding: gzip") + body)
    async with serving(reply) as server, open_client() as client:
        assert "Connection error" in (failure_of(await ask(client, model_at(server))).error_message or "")


async def test_a_line_of_fifty_megabytes_is_refused_and_closes_the_connection(open_client: OpenClient) -> None:
    piece = chunk(b"x" * 1_000_000)

    async def endless(stream: trio.SocketStream, request: Request) -> None:
        await stream.send_all(head("200 OK", CHUNKED) + chunk(b"data: "))
        for _ in range(50):
            await stream.send_all(piece)

    async with serving(endless) as server, open_client() as client:
        message = failure_of(await ask(client, model_at(server)))
        await server.all_closed.wait()

    assert "event" in (message.error_message or "")


async def test_a_long_line_within_the_limit_arrives(open_client: OpenClient) -> None:
    text = "x" * 10_000_000
    async with serving(streamed(delta(text), FINISH)) as server, open_client() as client:
        last = (await ask(client, model_at(server)))[-1]

    assert isinstance(last, StreamDone)
    assert last.message is not None
    assert last.message.text == text


async def test_an_error_body_that_stalls_does_not_hold_up_the_error(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trio_agent.providers._reading._ERROR_BODY_SECONDS", 0.1)

    async def stall(stream: trio.SocketStream, request: Request) -> None:
        await stream.send_all(head("500 Oops", CHUNKED) + chunk(b"the database is "))
        await trio.sleep_forever()

    async with serving(stall) as server, open_client() as client:
        with pytest.raises(ModelHTTPError, match=r"^500: the database is$"):
            await ask(client, model_at(server))


async def test_an_endless_error_body_is_cut(open_client: OpenClient) -> None:
    async def endless(stream: trio.SocketStream, request: Request) -> None:
        await stream.send_all(head("500 Oops", CHUNKED))
        while True:
            await stream.send_all(chunk(b"x" * 60_000))

    async with serving(endless) as server, open_client() as client:
        with pytest.raises(ModelHTTPError, match="truncated"):
            await ask(client, model_at(server))
        await server.all_closed.wait()


async def test_a_redirect_is_not_followed(open_client: OpenClient) -> None:
    elsewhere = failing("307 Temporary Redirect", b"", "location: http://127.0.0.1:1/")
    async with serving(elsewhere) as server, open_client() as client:
        with pytest.raises(ModelHTTPError, match=r"^307") as caught:
            await ask(client, model_at(server))

    assert not caught.value.retryable


@pytest.mark.parametrize("base_url", ["", "no address", "ftp://example.org", "http://[broken"])
async def test_an_address_that_is_none_is_said_so(open_client: OpenClient, base_url: str) -> None:
    async with open_client() as client:
        with pytest.raises((ModelError, ValueError)):
            await ask(client, Model(id="m", api="openai-completions", provider="x", base_url=base_url))


async def test_a_body_that_goes_on_after_its_end_is_left_soon(open_client: OpenClient) -> None:
    async def late(stream: trio.SocketStream, request: Request) -> None:
        await stream.send_all(head("200 OK", CHUNKED) + chunk(delta("Hello") + FINISH))
        assert await stream.receive_some() == b""

    async with serving(late) as server, open_client() as client:
        assert isinstance((await ask(client, model_at(server)))[-1], StreamDone)
        await server.all_closed.wait()


async def test_leaving_an_answer_early_closes_its_connection(open_client: OpenClient) -> None:
    async def endless(stream: trio.SocketStream, request: Request) -> None:
        await stream.send_all(head("200 OK", CHUNKED))
        while True:
            await stream.send_all(chunk(delta("word ")))

    async with serving(endless) as server, open_client() as client:
        async with client(model_at(server), CONTEXT, OPTIONS) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        await server.all_closed.wait()


async def test_a_reader_that_pauses_stops_the_server(open_client: OpenClient) -> None:
    sent = 0

    async def endless(stream: trio.SocketStream, request: Request) -> None:
        nonlocal sent
        stream.socket.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_SNDBUF, 20_000)
        await stream.send_all(head("200 OK", CHUNKED))
        while True:
            await stream.send_all(chunk(delta("x" * 10_000)))
            sent += 10_000

    async with (
        serving(endless) as server,
        open_client() as client,
        client(model_at(server), CONTEXT, OPTIONS) as events,
    ):
        await anext(events)
        await trio.sleep(0.2)
        before = sent
        await trio.sleep(0.2)

        assert sent == before
        assert sent < 20_000_000


async def test_no_key_and_no_text_of_the_user_is_in_an_error(open_client: OpenClient) -> None:
    body = f'{{"error": {{"message": "bad key {OPTIONS.api_key}", "input": "a private question"}}}}'.encode()
    async with serving(failing("401 Unauthorized", body)) as server, open_client() as client:
        with pytest.raises(ModelHTTPError) as caught:
            await ask(client, model_at(server))

    assert str(caught.value) == "401: bad key ***"


async def test_a_key_that_a_stream_repeats_is_not_in_the_failed_answer(open_client: OpenClient) -> None:
    event = f'data: {{"error": {{"message": "no such key: {OPTIONS.api_key}"}}}}\n\n'.encode()
    async with serving(streamed(event)) as server, open_client() as client:
        message = failure_of(await ask(client, model_at(server)))

    assert message.error_message == "no such key: ***"
