"""Lines of a stream that is cut anywhere, against the obvious way on the whole text."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_agent.toolkit._lines import select_lines

texts = st.text(alphabet="ab\r\n", max_size=40)
numbers = st.integers(min_value=1, max_value=12)


def pieces(data: bytes, step: int) -> Iterator[bytes]:
    for start in range(0, len(data), step):
        yield data[start : start + step]


def lines_with_ends(text: str) -> list[str]:
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1].removesuffix("\n")
    return [line for line in lines if line]


@given(texts, numbers, st.none() | numbers, numbers)
def test_lines_are_those_of_the_whole_text_whatever_the_cuts(
    text: str, offset: int, limit: int | None, step: int
) -> None:
    lines = lines_with_ends(text)
    end = len(lines) if limit is None else offset - 1 + limit
    expected = "".join(lines[offset - 1 : end])
    if end < len(lines):
        expected = expected.removesuffix("\n")

    selection = select_lines(pieces(text.encode(), step), offset=offset, limit=limit)

    assert expected == selection.kept.content
    assert len(lines) == selection.file_lines
    assert len(expected.split("\n")[0]) == selection.first_line_bytes


def test_all_chunks_are_taken_but_little_is_kept() -> None:
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        for _ in range(1000):
            taken += 1
            yield b"x" * 99 + b"\n"

    selection = select_lines(endless(), offset=10, limit=None)

    assert taken == 1000
    assert selection.file_lines == 1000
    assert selection.kept.output_lines == 512
    assert selection.kept.truncated_by == "bytes"


@pytest.mark.parametrize(("offset", "size"), [(1, 60_000), (2, 4)])
def test_the_length_of_a_line_that_is_too_long_is_that_of_the_whole_line(offset: int, size: int) -> None:
    selection = select_lines(pieces(b"z" * 60_000 + b"\nrest", 1000), offset=offset, limit=None)

    assert size == selection.first_line_bytes
    assert selection.kept.first_line_exceeds_limit == (offset == 1)
