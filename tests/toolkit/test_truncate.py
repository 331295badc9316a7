"""Golden vectors of the original, and properties over random texts."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_agent.toolkit._truncate import (
    HeadWindow,
    TruncationResult,
    format_size,
    truncate_head,
    truncate_line,
    truncate_tail,
)

CASES: list[dict[str, Any]] = msgspec.json.decode((Path(__file__).parent / "data" / "truncation.json").read_bytes())[
    "cases"
]

texts = st.text(alphabet="ab\n\u00e9\u90a3\U0001f600", max_size=60)
limits = st.integers(min_value=1, max_value=12)


@pytest.mark.parametrize("case", CASES, ids=[f"{case['fn']}{number}" for number, case in enumerate(CASES)])
def test_golden_vectors(case: dict[str, Any]) -> None:
    content, options = case["content"], case.get("options", {})
    limits = {"max_lines": options.get("maxLines", 2000), "max_bytes": options.get("maxBytes", 51200)}
    result: object
    match case["fn"]:
        case "truncateHead":
            result = msgspec.to_builtins(truncate_head(content, **limits))
        case "truncateTail":
            result = msgspec.to_builtins(truncate_tail(content, **limits))
        case "truncateLine":
            text = truncate_line(content, options["maxChars"])
            result = {"text": text, "wasTruncated": text != content}
        case _:
            result = format_size(content)

    assert case["result"] == result


def lines_of(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def check_limits(text: str, result: TruncationResult) -> None:
    """What holds for both ends."""
    lines = lines_of(text)
    assert len(lines) == result.total_lines
    assert len(text.encode()) == result.total_bytes
    assert len(result.content.encode()) == result.output_bytes
    assert result.output_lines <= result.max_lines
    assert len(result.content.removesuffix("\n").encode()) <= result.max_bytes
    if not result.truncated:
        assert text == result.content
        assert result.truncated_by is None
    else:
        assert result.truncated_by == ("lines" if result.output_lines == result.max_lines else "bytes") or (
            result.last_line_partial
        )


@given(texts, limits, limits)
def test_head_keeps_as_many_whole_lines_as_fit(text: str, max_lines: int, max_bytes: int) -> None:
    result = truncate_head(text, max_lines=max_lines, max_bytes=max_bytes)

    check_limits(text, result)
    lines = lines_of(text)
    if result.truncated:
        count = result.output_lines
        assert "\n".join(lines[:count]) == result.content
        assert result.first_line_exceeds_limit == (count == 0)
        one_more = "\n".join(lines[: count + 1])
        assert count == max_lines or len(one_more.encode()) > max_bytes


@given(texts, limits, limits)
def test_tail_keeps_as_many_whole_lines_as_fit(text: str, max_lines: int, max_bytes: int) -> None:
    result = truncate_tail(text, max_lines=max_lines, max_bytes=max_bytes)

    check_limits(text, result)
    lines = lines_of(text)
    if result.last_line_partial:
        assert result.output_lines == 1
        assert lines[-1].endswith(result.content)
        assert len(lines[-1].encode()) > max_bytes
        assert max_bytes - result.output_bytes < 4
    elif result.truncated:
        count = result.output_lines
        assert "\n".join(lines[len(lines) - count :]) == result.content
        one_more = "\n".join(lines[len(lines) - count - 1 :])
        assert count == max_lines or len(one_more.encode()) > max_bytes


@given(texts, limits, limits, st.integers(min_value=1, max_value=7))
def test_a_window_fed_in_pieces_keeps_what_the_whole_keeps(text: str, lines: int, size: int, step: int) -> None:
    data = text.encode()
    window = HeadWindow(max_lines=lines, max_bytes=size)
    for start in range(0, len(data), step):
        window.feed(data[start : start + step])

    assert truncate_head(text, max_lines=lines, max_bytes=size) == window.result()
    assert len(data.split(b"\n")[0]) == window.first_line_bytes


def test_the_final_line_end_is_no_reason_to_cut() -> None:
    for truncate in (truncate_head, truncate_tail):
        assert truncate("abc\n", max_bytes=3).content == "abc\n"
        assert not truncate("abc\n", max_bytes=3).truncated


def test_a_lone_surrogate_is_no_crash() -> None:
    assert truncate_head("a\ud83d\nb", max_lines=1).content == "a?"
    assert truncate_tail("a\nb\ud83d", max_lines=1).content == "b?"
