"""A server on the loopback that streams answers of any length, each event in an HTTP chunk of its own.

Runs as a process of its own, so that it takes no time from what is measured: it prints its port, and serves until it is
terminated. Any request below ``/1000`` is answered with 1000 text deltas in the format of OpenAI's chat completions.
"""

from __future__ import annotations

import functools
import json
import re

import trio

__all__ = ["PIECE"]

PIECE = "word "
_REQUEST = re.compile(
    rb"POST /(?P<deltas>\d+).*?\r\ncontent-length: (?P<length>\d+)(?=\r\n).*?\r\n\r\n", re.DOTALL | re.IGNORECASE
)
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_EVENT = (
    'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"some-model",'
    '"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}\n\n'
)


def _chunk(text: str) -> bytes:
    data = text.encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


@functools.cache
def _response(deltas: int) -> bytes:
    delta = _chunk(_EVENT % (json.dumps({"content": PIECE}), "null"))
    return b"".join(
        [_HEAD, delta * deltas, _chunk(_EVENT % ("{}", '"stop"')), _chunk("data: [DONE]\n\n"), b"0\r\n\r\n"]
    )


async def _serve(stream: trio.SocketStream) -> None:
    received = b""
    async with stream:
        while True:
            while not (request := _REQUEST.match(received)) or len(received) < request.end() + int(request["length"]):
                data = await stream.receive_some()
                if not data:
                    return
                received += data
            received = received[request.end() + int(request["length"]) :]
            await stream.send_all(_response(int(request["deltas"])))


async def _main() -> None:
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    print(listener.socket.getsockname()[1], flush=True)
    await trio.serve_listeners(_serve, [listener])


if __name__ == "__main__":
    trio.run(_main)
