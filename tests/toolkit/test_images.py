"""Headers built field by field, so that each format is read as its specification lays it out."""

import struct
import zlib

import pytest

from trio_agent.toolkit._images import image_size, is_animated_png, sniff_image

HEAD = 64


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


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (png(300, 200), "image/png"),
        (jpeg(300, 200), "image/jpeg"),
        (jpeg(300, 200, frame=0xC2), "image/jpeg"),
        (gif(300, 200), "image/gif"),
        (LOSSY, "image/webp"),
        (LOSSLESS, "image/webp"),
        (EXTENDED, "image/webp"),
    ],
)
def test_format_and_size_are_read_from_the_header(data: bytes, mime_type: str) -> None:
    assert mime_type == sniff_image(data[:HEAD])
    assert image_size(data, mime_type) == (300, 200)


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (png(300, 200)[:22], "image/png"),
        (jpeg(300, 200)[:-1], "image/jpeg"),
        (jpeg(300, 200)[:20], "image/jpeg"),
        (gif(300, 200)[:9], "image/gif"),
        (LOSSY[:29], "image/webp"),
        (LOSSLESS[:24], "image/webp"),
        (EXTENDED[:29], "image/webp"),
        (webp(b"ALPH", bytes(20)), "image/webp"),
        (BMP, "image/bmp"),
    ],
)
def test_the_size_of_a_broken_or_other_image_is_unknown(data: bytes, mime_type: str) -> None:
    assert image_size(data, mime_type) is None


def test_a_bitmap_is_known_by_its_second_header() -> None:
    assert sniff_image(BMP) == "image/bmp"
    assert sniff_image(b"BMW is a maker of cars and motorcycles") is None


@pytest.mark.parametrize("head", [b"", b"not an image", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xf7", b"RIFF\0\0\0\0WAVE"])
def test_other_files_are_no_images(head: bytes) -> None:
    assert sniff_image(head) is None


def test_an_animation_is_told_from_a_picture_by_a_chunk_before_the_pixels() -> None:
    profile = png_chunk(b"iCCP", bytes(10_000))
    animation = png_chunk(b"acTL", struct.pack(">II", 2, 0))

    assert is_animated_png(png(1, 1, before_pixels=profile + animation))
    assert not is_animated_png(png(1, 1, before_pixels=profile))
    assert not is_animated_png(png(1, 1) + animation)
    assert not is_animated_png(png(1, 1, before_pixels=profile)[:200])
