"""SSEDecoder: the bytes of an event stream in, its events out.

Lines end with LF, CR or CRLF, wherever a read cuts them, and with nothing else: U+2028, U+0085, vertical tabs and the
like are text of the model. Hence bytes are split here, and decoded only as whole lines.

Nothing is below this module. What an event means is the business of the formats above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from trio_agent._errors import RemoteProtocolError

__all__ = ["MAX_EVENT_SIZE", "SSEDecoder", "ServerSentEvent"]

MAX_EVENT_SIZE = 32 * 1024 * 1024
"""Bytes that one event may have. No model streams more at once; a server that does is broken."""

_BOM = b"\xef\xbb\xbf"
_WHOLE_EVENT = re.compile(rb"(?:event: ([^\r\n]*)\n)?data: ([^\r\n]+)\n\n")


class ServerSentEvent(msgspec.Struct, frozen=True, gc=False):
    """One event that carries data.

    Attributes:
        name: of the ``event:`` line; empty without one.
        data: its ``data:`` lines, joined by LF.
    """

    name: str
    data: bytes


class SSEDecoder:
    """Splits a byte stream into server-sent events, in linear time however it was cut.

    Comments, ``id`` and ``retry`` are skipped, and so is an event without data. An event that lacks its closing blank
    line, or even the end of its last line, is given out by :meth:`finish`: many servers leave those away.

    Args:
        max_event_size: bytes after which an event is refused.
    """

    __slots__ = (
        "_after_cr",
        "_at_start",
        "_data",
        "_data_size",
        "_held_size",
        "_is_stream",
        "_limit",
        "_name",
        "_pending",
        "_stray",
    )

    def __init__(self, *, max_event_size: int = MAX_EVENT_SIZE) -> None:
        self._limit = max_event_size
        self._pending: list[bytes] = []
        self._held_size = 0
        self._after_cr = False
        self._at_start = True
        self._name = ""
        self._data: list[bytes] = []
        self._data_size = 0
        self._stray: list[bytes] = []
        self._is_stream = False

    @property
    def stray(self) -> bytes:
        """The body, if it was no event stream at all: the lines that were no field, until the first event came."""
        return b"\n".join(self._stray)

    def feed(self, data: bytes) -> Iterable[ServerSentEvent]:
        """Take the next bytes; they are taken as the events are asked for.

        Returns:
            The events that are complete with them.

        Raises:
            RemoteProtocolError: an event is larger than the limit; also while the events are asked for.
        """
        # Nearly every read of a stream that is under way brings one event, with one line of data.
        if self._is_stream and not (self._pending or self._data or self._name):
            whole = _WHOLE_EVENT.fullmatch(data)
            if whole is not None and len(data) <= self._limit:
                name = whole[1]
                return (ServerSentEvent("" if name is None else name.decode("utf-8", "replace"), whole[2]),)
        return self._feed(data)

    def _feed(self, data: bytes) -> Iterator[ServerSentEvent]:
        for line in self._complete_lines(data):
            if line:
                self._field(line)
            elif self._data or self._name:
                event = self._dispatch()
                if event is not None:
                    yield event
        # What is left over is known to be too large only after the events before it.
        self._check_size()

    def finish(self) -> ServerSentEvent | None:
        """Take the end of the stream.

        Returns:
            The event that was not closed, if there is one.
        """
        line = b"".join(self._pending)
        self._pending.clear()
        if line:
            self._field(line)
        return self._dispatch()

    def _complete_lines(self, data: bytes) -> list[bytes]:
        if self._at_start:
            data = self._without_bom(data)
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if b"\r" in data:
            # A CR ends its line at once; an LF that follows it, even in the next read, belongs to it.
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        if len(lines) > 1 and self._pending:
            # The parts of a line are joined once, when its end comes: a long line costs no more than its length.
            self._pending.append(lines[0])
            lines[0] = b"".join(self._pending)
            self._pending.clear()
            self._held_size = 0
        rest = lines.pop()
        if rest:
            self._pending.append(rest)
            self._held_size += len(rest)
        return lines

    def _without_bom(self, data: bytes) -> bytes:
        data = b"".join((*self._pending, data))
        self._pending.clear()
        if len(data) < len(_BOM) and _BOM.startswith(data):
            self._pending.append(data)
            return b""
        self._at_start = False
        return data.removeprefix(_BOM)

    def _check_size(self) -> None:
        if self._held_size + self._data_size > self._limit:
            raise RemoteProtocolError(f"the server sent an event of more than {self._limit} bytes")

    def _field(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._keep(self._data, line[6:] if line[5:6] == b" " else line[5:])
            return
        name, _, value = line.partition(b":")
        if name == b"event":
            self._name = value.removeprefix(b" ").decode("utf-8", "replace")
        elif name == b"data":
            self._keep(self._data, b"")
        elif not self._is_stream and name not in (b"", b"id", b"retry"):
            self._keep(self._stray, line)

    def _keep(self, lines: list[bytes], line: bytes) -> None:
        lines.append(line)
        self._data_size += len(line) + 1
        if self._data_size > self._limit:
            self._check_size()

    def _dispatch(self) -> ServerSentEvent | None:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        event = ServerSentEvent(self._name, data) if data else None
        self._name = ""
        self._data.clear()
        if event is not None:
            self._is_stream = True
            self._stray.clear()
        if not self._stray:
            self._data_size = 0
        return event
