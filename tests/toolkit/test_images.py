"""Each format is read as its specification lays it out."""

import struct

import pytest
from image_samples import BMP, EXTENDED, LOSSLESS, LOSSY, gif, jpeg, png, png_chunk, webp

from trio_agent.toolkit._images import image_size, is_animated_png, sniff_image

HEAD = 64


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
