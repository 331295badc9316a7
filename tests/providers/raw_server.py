"""A server on the loopback that answers with the very bytes it is told to, and breaks as it is told to."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import trio

from trio_agent import Model, StreamOptions, UserMessage
from trio_agent._stream_events import AssistantMessageEvent
from trio_agent._stream_fn import StreamFn
from trio_agent._transcript import Context

KEY = "sk-secret-key-0123456789"
OPTIONS = StreamOptions(api_key=KEY)
CONTEXT = Context((UserMessage(content="a private question", timestamp=0),))


@dataclass(frozen=True)
class Request:
    """What a client sent.

    Attributes:
        connection: number of its connection, from 1.
        path: of its address.
        headers: names in lower case.
        body: decoded.
    """

    connection: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


Reply = Callable[[trio.SocketStream, Request], Awaitable[None]]
"""Answers one request; afterwards the next one is read from the connection, if it is still open."""


class RawServer:
    """What has been asked of a server, and by how many connections."""

    def __init__(self, replies: tuple[Reply, ...]) -> None:
        self.url = ""
        self.requests: list[Request] = []
        self.connections = 0
        self.open_connections = 0
        self.all_closed = trio.Event()
        self._replies = replies

    async def serve(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        self.open_connections += 1
        number = self.connections
        try:
            async with stream:
                while (request := await self._read(stream, number)) is not None:
                    self.requests.append(request)
                    # The last reply is repeated.
                    await self._replies[min(len(self.requests), len(self._replies)) - 1](stream, request)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self.open_connections -= 1
            if not self.open_connections:
                self.all_closed.set()

    async def _read(self, stream: trio.SocketStream, number: int) -> Request | None:
        data = b""
        while not (parts := data.partition(b"\r\n\r\n"))[1]:
            received = await stream.receive_some()
            if not received:
                return None
            data += received
        head, _, body = parts
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        while len(body) < int(headers["content-length"]):
            received = await stream.receive_some()
            if not received:
                return None
            body += received
        return Request(number, first.split()[1], headers, json.loads(body))


@asynccontextmanager
async def serving(*replies: Reply) -> AsyncGenerator[RawServer]:
    """Serve requests with these replies in order, the last one for all that follow."""
    server = RawServer(replies)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, server.serve, 0, host="127.0.0.1"))
        server.url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        yield server
        nursery.cancel_scope.cancel()


def model_at(server: RawServer | str, **fields: Any) -> Model:
    url = server if isinstance(server, str) else server.url
    return Model(id="m", api="openai-completions", provider="openai", base_url=f"{url}/v1", **fields)


# -- replies -----------------------------------------------------------------------------------------------------------


def head(status: str = "200 OK", *lines: str, content_type: str = "text/event-stream") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", f"content-type: {content_type}", *lines, "", ""]).encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


END = chunk(b"")
CHUNKED = "transfer-encoding: chunked"


def delta(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode() + b"\n\n"


FINISH = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
HELLO = delta("Hel") + delta("lo") + FINISH


def raw(*pieces: bytes, close: bool = False) -> Reply:
    """Send these bytes, and perhaps close the connection."""

    async def reply(stream: trio.SocketStream, request: Request) -> None:
        for piece in pieces:
            await stream.send_all(piece)
        if close:
            await stream.aclose()

    return reply


def streamed(*pieces: bytes) -> Reply:
    """A whole answer, in these pieces."""
    return raw(head("200 OK", CHUNKED), *[chunk(piece) for piece in pieces], END)


def failing(status: str, body: bytes = b"", *lines: str, content_type: str = "application/json") -> Reply:
    """A response with an error status."""
    return raw(head(status, f"content-length: {len(body)}", *lines, content_type=content_type) + body)


HELLO_REPLY = streamed(delta("Hel"), delta("lo"), FINISH)


# -- asking ------------------------------------------------------------------------------------------------------------


async def ask(
    stream_fn: StreamFn, model: Model, options: StreamOptions = OPTIONS, context: Context = CONTEXT
) -> list[AssistantMessageEvent]:
    """All events of an answer."""
    async with stream_fn(model, context, options) as events:
        return [event async for event in events]
