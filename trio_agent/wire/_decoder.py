"""Decoder: what the decoders of all formats have in common, from bytes to the end of the answer.

A decoder never raises for what a server sends. Whatever goes wrong ends the answer with one ``StreamError`` that says
what, and keeps what had arrived.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from trio_agent._errors import RemoteProtocolError
from trio_agent._models import Model
from trio_agent._stream_events import AssistantMessageEvent
from trio_agent.wire._answer import Answer
from trio_agent.wire._http_errors import readable_text
from trio_agent.wire._sse import MAX_EVENT_SIZE, ServerSentEvent, SSEDecoder

__all__ = ["NO_ALIASES", "Decoder"]

NO_ALIASES: Final[Mapping[str, str]] = MappingProxyType({})
"""No tool goes by another name."""


class Decoder(abc.ABC):
    """Turns the body of one answer into stream events, however the bytes are cut.

    The first call returns ``StreamStart`` as its first event, also when it was fed nothing; the last event is one
    ``StreamDone`` or ``StreamError`` with the whole message. The events are unbound values.

    Args:
        model: who was asked; names the message and prices it.
        timestamp: of the request, in milliseconds since the epoch.
        aliases: of the request, from tool names on the wire to the tools' own.
        max_event_size: bytes after which a single event fails the answer.
    """

    def __init__(
        self,
        model: Model,
        *,
        timestamp: int,
        aliases: Mapping[str, str] = NO_ALIASES,
        max_event_size: int = MAX_EVENT_SIZE,
    ) -> None:
        self._model = model
        self._answer = Answer(model, timestamp=timestamp, aliases=aliases)
        self._sse = SSEDecoder(max_event_size=max_event_size)

    @property
    def finished(self) -> bool:
        """Whether the answer has ended; nothing that follows on the wire counts."""
        return self._answer.finished

    def feed(self, data: bytes) -> list[AssistantMessageEvent]:
        """Take the next bytes of the body.

        Returns:
            The events that are complete with them.
        """
        answer = self._answer
        if not answer.finished:
            try:
                for event in self._sse.feed(data):
                    self._on_event(event)
                    if self._answer.finished:
                        break
            except RemoteProtocolError as exc:
                answer.fail(str(exc))
        return answer.take_events()

    def finish(self) -> list[AssistantMessageEvent]:
        """Take the end of the body.

        Returns:
            The remaining events. An answer that is not complete ends with a ``StreamError`` here.
        """
        answer = self._answer
        if not answer.finished:
            # An event that was cut in its middle makes no sense; whether anything is missing is for the format to say.
            with contextlib.suppress(RemoteProtocolError):
                event = self._sse.finish()
                if event is not None:
                    self._on_event(event)
        if not answer.finished:
            self._end()
        return answer.take_events()

    def fail(self, error_message: str) -> list[AssistantMessageEvent]:
        """End the answer for a reason that lies outside of its bytes, such as a lost connection.

        Returns:
            The closing events, with what had arrived; none if the answer had ended.
        """
        self._answer.fail(error_message)
        return self._answer.take_events()

    def _end(self) -> None:
        body = self._sse.stray
        if not body:
            self._on_end()
            return
        try:
            self._on_plain_body(body)
        except RemoteProtocolError:
            self._answer.fail(f"The server sent no event stream: {readable_text(body)}")

    @abc.abstractmethod
    def _on_event(self, event: ServerSentEvent) -> None:
        """Take one event.

        Raises:
            RemoteProtocolError: it makes no sense.
        """

    @abc.abstractmethod
    def _on_end(self) -> None:
        """End the answer: the stream is over, and the format's own closing event has not come."""

    @abc.abstractmethod
    def _on_plain_body(self, body: bytes) -> None:
        """End the answer: the body is over and was no event stream.

        Raises:
            RemoteProtocolError: it was nothing else that makes sense, either.
        """
