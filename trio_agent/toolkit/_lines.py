"""Picking lines out of a stream of bytes that may be far larger than memory.

Pure: chunks come in, the asked lines come out, cut to what a model may get, with the number of lines of the whole.
Above is the ``read`` tool; below are the limits of ``_truncate``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from trio_agent.toolkit._truncate import HeadWindow, TruncationResult

__all__ = ["LineSelection", "select_lines"]


class LineSelection(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a file, cut to the limits of a model.

    Attributes:
        kept: what was kept of the selected lines.
        file_lines: lines of the whole file.
        first_line_bytes: length of the first selected line.
    """

    kept: TruncationResult
    file_lines: int
    first_line_bytes: int


def select_lines(chunks: Iterable[bytes], *, offset: int, limit: int | None) -> LineSelection:
    """Lines from ``offset`` (the first is 1), at most ``limit`` of them, out of a stream cut anywhere.

    All chunks are taken, as only the end tells how many lines there are, but never more than one is held. If lines
    follow the selected ones, the selection does not include its last LF.
    """
    window = HeadWindow()
    skip = offset - 1
    take = math.inf if limit is None else limit
    line_ends = 0
    last = b""
    for chunk in chunks:
        ends = chunk.count(b"\n")
        line_ends += ends
        last = chunk[-1:] or last
        if skip > ends:
            skip -= ends
            continue
        start = _after_line_end(chunk, 0, skip)
        ends, skip = ends - skip, 0
        if take > ends:
            window.feed(chunk[start:])
            take -= ends
        elif take > 0:
            window.feed(chunk[start : _after_line_end(chunk, start, int(take)) - 1])
            take = 0
    file_lines = line_ends + (last not in (b"", b"\n"))
    if take == 0 and limit is not None and offset - 1 + limit == file_lines:
        window.feed(b"\n")
    return LineSelection(kept=window.result(), file_lines=file_lines, first_line_bytes=window.first_line_bytes)


def _after_line_end(data: bytes, start: int, count: int) -> int:
    """The position after so many line ends."""
    for _ in range(count):
        start = data.index(b"\n", start) + 1
    return start
