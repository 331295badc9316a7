r"""Cutting text for a model: whole lines, at most so many lines and so many bytes, never inside a character.

Pure functions over text and bytes; the tools are above, nothing of the library is below, and no file is opened here.

A line ends with LF and with nothing else. The LF at the very end ends the last line and begins none: ``"a\n"`` is one
line, ``""`` is none. LFs count as one byte *between* lines, so the one at the very end is never a reason to cut.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

__all__ = [
    "MAX_BYTES",
    "MAX_LINES",
    "MAX_LINE_CHARS",
    "HeadWindow",
    "TruncationResult",
    "format_size",
    "truncate_head",
    "truncate_line",
    "truncate_tail",
]

MAX_LINES: Final = 2000
MAX_BYTES: Final = 50 * 1024
MAX_LINE_CHARS: Final = 500


class TruncationResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What was kept of a text, and of how much.

    Attributes:
        content: what was kept; the text itself, final LF included, when nothing was cut.
        truncated: something was cut.
        truncated_by: the limit that was met first, ``lines`` when exactly that many fit.
        total_lines: lines of the whole text.
        total_bytes: bytes of the whole text.
        output_lines: lines kept, a partial one included.
        output_bytes: bytes kept.
        last_line_partial: even the last line alone was too long, and only its end was kept.
        first_line_exceeds_limit: even the first line alone was too long, and nothing was kept.
        max_lines: the limit that was applied.
        max_bytes: the limit that was applied.
    """

    content: str
    truncated: bool
    truncated_by: Literal["lines", "bytes"] | None
    total_lines: int
    total_bytes: int
    output_lines: int
    output_bytes: int
    last_line_partial: bool
    first_line_exceeds_limit: bool
    max_lines: int
    max_bytes: int


class HeadWindow:
    """The first whole lines of a stream of bytes: feed it any amount, it keeps no more than ``max_bytes``.

    Attributes:
        first_line_bytes: length of the first line so far, without its LF.
    """

    def __init__(self, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> None:
        self.first_line_bytes = 0
        self._max_lines = max_lines
        self._max_bytes = max_bytes
        # One byte more than the limit tells a line that ends at the limit from one that goes on.
        self._room = max_bytes + 1
        self._kept = bytearray()
        self._bytes = 0
        self._line_ends = 0
        self._last = b""

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        if not data:
            return
        if not self._line_ends:
            end = data.find(b"\n")
            self.first_line_bytes += len(data) if end < 0 else end
        if len(self._kept) < self._room:
            self._kept += data[: self._room - len(self._kept)]
        self._bytes += len(data)
        self._line_ends += data.count(b"\n")
        self._last = data[-1:]

    def result(self) -> TruncationResult:
        """What was kept of all that was fed; bytes that are not UTF-8 show as U+FFFD."""
        open_line = self._last not in (b"", b"\n")
        total_lines = self._line_ends + open_line
        body = self._bytes - (self._last == b"\n")
        if total_lines <= self._max_lines and body <= self._max_bytes:
            lines, kept = total_lines, bytes(self._kept)
        else:
            lines, end = self._whole_lines(body)
            kept = bytes(self._kept[:end])
        return _result(
            kept.decode("utf-8", "replace"),
            total=(total_lines, self._bytes),
            output=(lines, len(kept)),
            limits=(self._max_lines, self._max_bytes),
            first_line_exceeds_limit=total_lines > 0 and lines == 0,
        )

    def _whole_lines(self, body: int) -> tuple[int, int]:
        """How many of the lines fit, and where the last of them ends."""
        lines, start, end = 0, 0, 0
        while lines < self._max_lines and start <= body:
            line_end = self._kept.find(b"\n", start)
            if line_end < 0:
                line_end = body
            if line_end > self._max_bytes:
                break
            lines, start, end = lines + 1, line_end + 1, line_end
        return lines, end


def truncate_head(text: str, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> TruncationResult:
    """Keep the beginning: whole lines as long as both limits hold.

    If the first line alone is longer than ``max_bytes``, nothing is kept.
    """
    window = HeadWindow(max_lines=max_lines, max_bytes=max_bytes)
    window.feed(_encode(text))
    return window.result()


def truncate_tail(text: str, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> TruncationResult:
    """Keep the end: whole lines as long as both limits hold.

    If the last line alone is longer than ``max_bytes``, its end is kept, from the start of a character on.
    """
    data = _encode(text)
    body = data.removesuffix(b"\n")
    total = (data.count(b"\n") + (body == data and data != b""), len(data))
    if total[0] <= max_lines and len(body) <= max_bytes:
        return _result(text, total=total, output=total, limits=(max_lines, max_bytes))
    lines, start, end = 0, len(body), len(body)
    while lines < max_lines and end >= 0:
        line_start = body.rfind(b"\n", 0, end) + 1
        if len(body) - line_start > max_bytes:
            break
        lines, start, end = lines + 1, line_start, line_start - 1
    partial = lines == 0
    if partial:
        start = len(body) - max_bytes
        while start < len(body) and body[start] & 0xC0 == 0x80:
            start += 1
    kept = body[start:]
    return _result(
        kept.decode(),
        total=total,
        output=(lines + partial, len(kept)),
        limits=(max_lines, max_bytes),
        last_line_partial=partial,
    )


def truncate_line(line: str, max_chars: int = MAX_LINE_CHARS) -> str:
    """Cut one line after so many characters, with a note that says so."""
    return line if len(line) <= max_chars else f"{line[:max_chars]}... [truncated]"


def format_size(size: int) -> str:
    """A number of bytes for people: ``512B``, ``50.0KB``, ``5.3MB``."""
    if size < 1024:
        return f"{size}B"
    return f"{size / 1024:.1f}KB" if size < 1024 * 1024 else f"{size / 1024 / 1024:.1f}MB"


def _encode(text: str) -> bytes:
    # A lone surrogate has no UTF-8; no provider would take it either.
    return text.encode("utf-8", "replace")


def _result(
    content: str,
    *,
    total: tuple[int, int],
    output: tuple[int, int],
    limits: tuple[int, int],
    first_line_exceeds_limit: bool = False,
    last_line_partial: bool = False,
) -> TruncationResult:
    truncated = output != total
    by_lines = output[0] == limits[0] and not last_line_partial
    return TruncationResult(
        content=content,
        truncated=truncated,
        truncated_by=None if not truncated else "lines" if by_lines else "bytes",
        total_lines=total[0],
        total_bytes=total[1],
        output_lines=output[0],
        output_bytes=output[1],
        last_line_partial=last_line_partial,
        first_line_exceeds_limit=first_line_exceeds_limit,
        max_lines=limits[0],
        max_bytes=limits[1],
    )
