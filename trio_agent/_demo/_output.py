"""The standard output of an asynchronous program: a reader that is slow or stands still stops nobody else.

Written bytes wait here until the reader has room for them, so Ctrl-C works even when nobody reads. What a cancellation
cuts off is still here and goes out first the next time: no line is ever lost in the middle.
"""

from __future__ import annotations

import os
from typing import Final, TextIO

import trio

__all__ = ["Output"]

_PIECE: Final = 4096
"""As much as a pipe takes without blocking when it says that it has room."""


class Output:
    """Writes to the file below a text stream.

    Args:
        stream: an open text stream with a file descriptor, of which nothing is buffered.
    """

    def __init__(self, stream: TextIO) -> None:
        self._file = stream.fileno()
        self._encoding = stream.encoding
        self._waiting = bytearray()

    def put(self, data: str | bytes) -> None:
        """Take what is to be written; never blocks."""
        self._waiting += data.encode(self._encoding, "replace") if isinstance(data, str) else data

    async def flush(self) -> None:
        """Write all that is waiting, as the reader takes it.

        Raises:
            BrokenPipeError: the reader has left.
        """
        while self._waiting:
            await self._room()
            written = os.write(self._file, self._waiting[:_PIECE])
            del self._waiting[:written]

    async def _room(self) -> None:
        try:
            await trio.lowlevel.wait_writable(self._file)
        except OSError:
            # Nothing that could be waited for, such as a file on a disk, which always has room.
            await trio.lowlevel.checkpoint()
