"""Small image files, built field by field as the formats are specified."""

import struct
import zlib


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, *, before_pixels: bytes = b"") -> bytes:
    header = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    pixels = png_chunk(b"IDAT", zlib.compress(bytes(height * (1 + 3 * width))))
    return b"\x89PNG\r\n\x1a\n" + header + before_pixels + pixels + png_chunk(b"IEND", b"")


def jpeg(width: int, height: int, *, frame: int = 0xC0) -> bytes:
    # A thumbnail in the first segment has a frame of its own, which must not count.
    thumbnail = b"\xff\xd8\xff\xc0\x00\x11\x08" + struct.pack(">HH", 1, 1)
    segment = b"\xff\xe1" + struct.pack(">H", 2 + len(thumbnail)) + thumbnail
    tables = b"\xff\xc4" + struct.pack(">H", 6) + bytes(4)
    return (
        b"\xff\xd8"
        + segment
        + tables
        + b"\xff\xff"
        + bytes([frame])
        + b"\x00\x11\x08"
        + struct.pack(">HH", height, width)
    )


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(20)


def webp(kind: bytes, data: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 12 + len(data)) + b"WEBP" + kind + struct.pack("<I", len(data)) + data


LOSSY = webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 300 | 1 << 14, 200))
LOSSLESS = webp(b"VP8L", b"\x2f" + struct.pack("<I", 299 | 199 << 14))
EXTENDED = webp(b"VP8X", bytes(4) + (299).to_bytes(3, "little") + (199).to_bytes(3, "little"))
BMP = b"BM" + bytes(12) + struct.pack("<Iii", 40, 300, 200)
