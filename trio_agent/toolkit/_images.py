"""Which files are images, by their first bytes alone, and how large the pictures are.

Pure functions over bytes. Names and extensions lie; what is not recognised here is read as text. No image library: a
few header fields are all that a tool needs to know.
"""

from __future__ import annotations

import struct
from typing import Final

__all__ = ["MAX_IMAGE_BYTES", "MAX_IMAGE_SIDE", "image_size", "is_animated_png", "sniff_image"]

MAX_IMAGE_SIDE: Final = 2000
"""Longest side in pixels that providers take."""

MAX_IMAGE_BYTES: Final = int(4.5 * 1024 * 1024) // 4 * 3 - 1
"""Longest file whose base64 is shorter than 4.5 MiB, which providers take inline."""

_BMP_HEADER_SIZES: Final = frozenset({12, 16, 40, 52, 56, 64, 108, 124})
_JPEG_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE_MARKERS: Final = frozenset({0x01, *range(0xD0, 0xD9)})


def sniff_image(head: bytes) -> str | None:
    """The MIME type of a file that begins with these (at least 32) bytes; ``None`` if it is no image."""
    if head.startswith(b"\xff\xd8\xff") and head[3:4] != b"\xf7":
        return "image/jpeg"
    if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR":
        return "image/png"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    # "BM" also begins many a text; the length of the header that follows makes sure.
    if head.startswith(b"BM") and int.from_bytes(head[14:18], "little") in _BMP_HEADER_SIZES:
        return "image/bmp"
    return None


def image_size(data: bytes, mime_type: str) -> tuple[int, int] | None:
    """Width and height in pixels; ``None`` where the file does not say so, as for a broken one."""
    try:
        match mime_type:
            case "image/png":
                return struct.unpack_from(">II", data, 16)
            case "image/gif":
                return struct.unpack_from("<HH", data, 6)
            case "image/jpeg":
                return _jpeg_size(data)
            case "image/webp":
                return _webp_size(data)
            case _:
                return None
    except struct.error:
        return None


def is_animated_png(data: bytes) -> bool:
    """Whether a PNG is an animation, which no model takes: an ``acTL`` chunk comes before the first pixels."""
    place = 8
    while len(data) >= place + 8:
        kind = data[place + 4 : place + 8]
        if kind in (b"acTL", b"IDAT"):
            return kind == b"acTL"
        place += int.from_bytes(data[place : place + 4], "big") + 12
    return False


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """From the first frame header; the segments before it, such as a thumbnail's, are passed over by their length."""
    place = 2
    while place + 4 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xFF or marker in _JPEG_BARE_MARKERS:
            place += 1 if marker == 0xFF else 2
            continue
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, place + 5)
            return width, height
        place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            low_width, high_width, low_height, high_height = struct.unpack_from("<HBHB", data, 24)
            return (high_width << 16 | low_width) + 1, (high_height << 16 | low_height) + 1
        case _:
            return None
