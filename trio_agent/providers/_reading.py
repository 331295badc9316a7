"""Reading of responses: the events of an answer, or what the body of an error says.

After a whole answer the rest of the body is awaited for a moment, for only then the connection can be used again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import trio

from trio_agent._errors import ModelError
from trio_agent._messages import AssistantMessage
from trio_agent._stream_events import AssistantMessageEvent, StreamError
from trio_agent.providers._body import Body
from trio_agent.providers._connections import AsyncHTTPResponse
from trio_agent.wire import Decoder

__all__ = ["AnswerStream", "read_error_body"]

_DRAIN_SECONDS: Final = 0.5
_ERROR_BODY_SECONDS: Final = 5.0
_ERROR_BODY_SIZE: Final = 256 * 1024


class AnswerStream:
    """The events of an answer, decoded as they are asked for: a reader that pauses stops the server.

    A connection that breaks ends the answer with a ``StreamError``, which keeps what had arrived.

    Args:
        decoder: of the wire format.
        response: whose body it reads.
        explain: the library's own error for what the client raised, if it is a failure of HTTP.
        secrets: that must not be in the text of a failure.
    """

    def __init__(
        self,
        decoder: Decoder,
        response: AsyncHTTPResponse,
        explain: Callable[[Exception], ModelError | None],
        secrets: Sequence[str],
    ) -> None:
        self._decoder = decoder
        self._body = Body(response)
        self._explain = explain
        self._secrets = secrets
        self._events = deque(decoder.feed(b""))
        self.size = 0
        """Bytes of the body that were read."""

    def __aiter__(self) -> AnswerStream:
        return self

    async def __anext__(self) -> AssistantMessageEvent:
        if not self._events:
            self._events.extend(await self.receive_some())
        if not self._events:
            raise StopAsyncIteration
        return self._events.popleft()

    async def receive_some(self) -> Sequence[AssistantMessageEvent]:
        """Wait for events. Returns those that one read brings, or that wait to be taken; empty after the last."""
        events = list(self._events)
        self._events.clear()
        decoder = self._decoder
        while not events and not decoder.finished:
            try:
                data = await self._body.receive_some()
            except Exception as exc:
                error = self._explain(exc)
                if error is None:
                    raise
                events = decoder.fail(str(error))
            else:
                self.size += len(data)
                events = decoder.feed(data) if data else decoder.finish()
        last = events[-1] if events else None
        if type(last) is StreamError and self._secrets:
            events[-1] = self._without_secrets(last)
        return events

    def _without_secrets(self, event: StreamError) -> StreamError:
        message = event.message
        text = message.error_message if message is not None else None
        if message is None or not text:
            return event
        for secret in self._secrets:
            text = text.replace(secret, "***")
        scrubbed: AssistantMessage = msgspec.structs.replace(message, error_message=text)
        return msgspec.structs.replace(event, message=scrubbed)

    async def aclose(self) -> None:
        """Read no more. Waits for the end of the body, for a moment, if the answer is complete."""
        await self._body.aclose(_DRAIN_SECONDS if self._decoder.finished else 0, self._explain)


async def read_error_body(response: AsyncHTTPResponse, explain: Callable[[Exception], ModelError | None]) -> bytes:
    """The body of a response that is no answer, as much of it as comes soon and is of use."""
    body = Body(response)
    text = bytearray()
    with trio.move_on_after(_ERROR_BODY_SECONDS):
        try:
            while len(text) <= _ERROR_BODY_SIZE and (data := await body.receive_some()):
                text += data
        except Exception as exc:
            if explain(exc) is None:
                raise
    await body.aclose(0, explain)
    return bytes(text)
