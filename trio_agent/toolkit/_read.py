"""The ``read`` tool: lines of a text file, or an image, in portions that a model can take.

Built on the public doors of the library. Which file is meant is decided in ``_paths``, which lines in ``_lines``, and
what an image is in ``_images``; here the file is opened, and what came out is put into words. Memory stays flat
whatever the size of the file, and a cancelled call stops reading at the next chunk and leaves no thread behind.
"""

from __future__ import annotations

import base64
import codecs
import math
import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
import trio

from trio_agent import ImageContent, TextContent, Tool, ToolContext, ToolError, ToolResult
from trio_agent.toolkit._images import MAX_IMAGE_BYTES, MAX_IMAGE_SIDE, image_size, is_animated_png, sniff_image
from trio_agent.toolkit._lines import LineSelection, select_lines
from trio_agent.toolkit._paths import find_existing, path_error
from trio_agent.toolkit._truncate import MAX_BYTES, MAX_LINES, format_size

__all__ = ["read_tool"]

_HEAD: Final = 4100
_CHUNK: Final = 256 * 1024

_DESCRIPTION: Final = (
    f"Read a file. Text comes in portions of at most {MAX_LINES} lines or {format_size(MAX_BYTES)}, whichever is less; "
    "a note at the end says so and with which offset to go on. PNG, JPEG, GIF and WebP files come as images."
)

_PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The file, relative to the working folder or absolute."},
        "offset": {"type": "number", "description": "The first line to read; 1 is the first of the file."},
        "limit": {"type": "number", "description": "How many lines to read at most."},
    },
    "required": ["path"],
}


def read_tool(root: str | os.PathLike[str], *, confined: bool = True) -> Tool:
    """A tool named ``read`` for the files below a folder.

    The model gives ``path`` and, for long texts, ``offset`` and ``limit`` in lines. It gets the text in whole lines,
    cut at 2000 lines or 50 KB with a note on how to go on, or an image block. Whatever cannot be read (a folder, a
    missing file, lines beyond the end) is an error result that says why; of a binary file it only learns the size.

    Reading runs in a worker thread. Cancelled, it stops within one chunk of 256 KB.

    Args:
        root: what relative paths are relative to.
        confined: refuse files outside the root, also those that a symbolic link leads to.
    """
    folder = Path(root).absolute()

    async def read(arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        path = arguments["path"]
        offset = _positive("offset", arguments.get("offset", 1))
        limit = None if arguments.get("limit") is None else _positive("limit", arguments["limit"])
        return await trio.to_thread.run_sync(
            lambda: _read(path, folder, offset, limit, confined=confined), limiter=ctx.thread_limiter
        )

    return Tool(name="read", description=_DESCRIPTION, parameters=_PARAMETERS, execute=read)


def _positive(name: str, value: float) -> int:
    number = math.floor(value)
    if number < 1:
        raise ToolError(f"{name} must be 1 or more, not {value}")
    return number


def _read(path: str, root: Path, offset: int, limit: int | None, *, confined: bool) -> ToolResult:
    real = find_existing(path, root, confined=confined)
    try:
        with open(real, "rb", opener=_open_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ToolError(f"Not a regular file: {path}")
            head = file.read(_HEAD)
            if (mime_type := sniff_image(head)) is not None:
                image = _read_image(head, file, status.st_size, mime_type)
                if image is not None:
                    return image
            if _is_binary(head):
                return ToolResult(content=f"[Binary file: {format_size(status.st_size)}, not shown]")
            return _describe(select_lines(_chunks(head, file), offset=offset, limit=limit), path, offset)
    except IsADirectoryError:
        raise ToolError(f"{path} is a directory, use ls") from None
    except OSError as error:
        raise path_error(error, path) from error


def _open_without_waiting(path: str, flags: int) -> int:
    # Opening a named pipe would wait for its other end, in a thread that nothing could stop. And the path was real
    # when it was checked: if its last part is a link by now, somebody wants to lead us out of the root.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))


def _chunks(head: bytes, file: BinaryIO) -> Iterator[bytes]:
    yield head.removeprefix(codecs.BOM_UTF8)
    while chunk := file.read(_CHUNK):
        trio.from_thread.check_cancelled()
        yield chunk


def _is_binary(head: bytes) -> bool:
    if b"\0" in head:
        return True
    try:
        # Not final: the head may end inside a character.
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return True
    return False


def _describe(selection: LineSelection, path: str, offset: int) -> ToolResult:
    """The text for the model: the lines, and after a blank line what was left out and how to get it."""
    kept = selection.kept
    if offset > max(selection.file_lines, 1):
        raise ToolError(f"Offset {offset} is beyond end of file ({selection.file_lines} lines total)")
    if not selection.file_lines:
        return ToolResult(content="(empty file)")
    if kept.first_line_exceeds_limit:
        size, most = format_size(selection.first_line_bytes), format_size(kept.max_bytes)
        command = f"sed -n '{offset}p' {shlex.quote(path)} | head -c {kept.max_bytes}"
        text = f"[Line {offset} is {size}, exceeds {most} limit. Use bash: {command}]"
        return ToolResult(content=text, details={"truncation": msgspec.to_builtins(kept)})
    following = offset + kept.output_lines
    if kept.truncated:
        why = f" ({format_size(kept.max_bytes)} limit)" if kept.truncated_by == "bytes" else ""
        shown = f"{offset}-{following - 1} of {selection.file_lines}{why}"
        text = f"{kept.content}\n\n[Showing lines {shown}. Use offset={following} to continue.]"
        return ToolResult(content=text, details={"truncation": msgspec.to_builtins(kept)})
    if following <= selection.file_lines:
        rest = selection.file_lines - following + 1
        note = f"[{rest} more lines in file. Use offset={following} to continue.]"
        return ToolResult(content=f"{kept.content}\n\n{note}")
    return ToolResult(content=kept.content)


def _read_image(head: bytes, file: BinaryIO, size: int, mime_type: str) -> ToolResult | None:
    """An image for the model; ``None`` if it is of a kind that it could not take, and so is not an image here."""
    title = f"Read image file [{mime_type}]"
    if size <= MAX_IMAGE_BYTES:
        data = head + file.read(MAX_IMAGE_BYTES)
        if mime_type == "image/png" and is_animated_png(data):
            return None
        sides = image_size(data, mime_type)
        if sides is not None and max(sides) <= MAX_IMAGE_SIDE:
            image = ImageContent(data=base64.b64encode(data).decode(), mime_type=mime_type)
            return ToolResult(content=(TextContent(text=title), image))
    return ToolResult(content=f"{title}\n[Image omitted: could not be resized below the inline image size limit.]")
