from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trio_agent._errors import RemoteProtocolError
from trio_agent.wire._sse import SSEDecoder


def events_of(*reads: bytes) -> list[tuple[str, bytes]]:
    decoder = SSEDecoder()
    events = [(event.name, event.data) for read in reads for event in decoder.feed(read)]
    last = decoder.finish()
    return events if last is None else [*events, (last.name, last.data)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_ends_a_line(end: bytes) -> None:
    body = end.join([b"event: a", b"data: 1", b"", b"data: 2", b"data:3", b"", b""])

    assert events_of(body) == [("a", b"1"), ("", b"2\n3")]


def test_crlf_cut_between_reads_is_one_line_end() -> None:
    assert events_of(b"data: 1\r", b"\ndata: 2\r", b"\n\r", b"\n", b"data: 3\n\n") == [("", b"1\n2"), ("", b"3")]


LINES = st.sampled_from(
    [b"data: 1", b"data:2", b"data: ", b"data", b"data:  3", b"event: a", b"event:b", b"event", b"id: 7", b": c", b"x"]
)


@example(bodies=[[b"data: 1"], [b"data: "]], sizes=[2], end=b"\n")
@example(bodies=[[b"data: 1"], [b"data:2", b"data: 1"]], sizes=[2, 1], end=b"\n")
@example(bodies=[[b"data: 1"], [b"event: a", b"data: 1"]], sizes=[2, 1], end=b"\n")
@given(
    bodies=st.lists(st.lists(LINES, max_size=4), max_size=6),
    sizes=st.lists(st.integers(1, 4)),
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
)
def test_events_that_come_by_lines_are_those_that_come_byte_by_byte(
    bodies: list[list[bytes]], sizes: list[int], end: bytes
) -> None:
    lines = [line + end for body in bodies for line in (*body, b"")]
    whole = b"".join(lines)
    reads: list[bytes] = []
    for size in sizes:
        reads.append(b"".join(lines[:size]))
        del lines[:size]
    reads.append(b"".join(lines))

    assert events_of(*reads) == events_of(whole) == events_of(*[whole[i : i + 1] for i in range(len(whole))])


def test_a_read_that_looks_like_an_event_is_the_rest_of_a_line_if_one_is_open() -> None:
    assert events_of(b"data: 1\n\n", b"data: a", b"data: 2\n\n") == [("", b"1"), ("", b"adata: 2")]


def test_event_above_the_limit_is_refused_also_if_it_comes_as_a_whole() -> None:
    decoder = SSEDecoder(max_event_size=100)
    assert [event.data for event in decoder.feed(b"data: 1\n\n")] == [b"1"]

    with pytest.raises(RemoteProtocolError, match="more than 100 bytes"):
        list(decoder.feed(b"data: " + b"x" * 200 + b"\n\n"))


def test_other_separators_are_data() -> None:
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\x1dh\x1ei"

    assert events_of(f"data: {text}\n\n".encode()) == [("", text.encode())]


def test_byte_order_mark_is_skipped_wherever_it_is_cut() -> None:
    body = b"\xef\xbb\xbfdata: 1\n\n"

    assert events_of(body) == [("", b"1")]
    assert events_of(*[body[i : i + 1] for i in range(len(body))]) == [("", b"1")]


def test_a_byte_order_mark_later_on_is_data() -> None:
    assert events_of(b"data: \xef\xbb\xbf1\n\n") == [("", b"\xef\xbb\xbf1")]


def test_comments_ids_retries_and_unknown_fields_are_skipped() -> None:
    body = b": hello\n:\nid: 7\nretry: 10\nfoo: bar\nnonsense\ndata: 1\n: ping\n\n"

    assert events_of(body) == [("", b"1")]


def test_event_without_data_is_not_given_out_and_its_name_is_forgotten() -> None:
    assert events_of(b"event: ping\n\ndata:\n\ndata\n\ndata: 1\n\n") == [("", b"1")]


def test_only_one_space_after_the_colon_is_removed() -> None:
    assert events_of(b"data:  1\n\ndata:2\n\nevent:x\ndata:3\n\n") == [("", b" 1"), ("", b"2"), ("x", b"3")]


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n", b"\r", b"\r\n"])
def test_pending_event_is_given_out_at_the_end(end: bytes) -> None:
    assert events_of(b"data: 1\n\nevent: e\ndata: 2" + end) == [("", b"1"), ("e", b"2")]


def test_utf8_is_decoded_only_in_whole_lines() -> None:
    body = "data: 👩🏽‍🚀 Grüße\n\n".encode()

    assert events_of(*[body[i : i + 1] for i in range(len(body))]) == [("", "👩🏽‍🚀 Grüße".encode())]


def test_any_cut_gives_the_same_events() -> None:
    body = b"\xef\xbb\xbf: c\r\nevent: a\rdata: 1\ndata: 2\r\n\r\ndata: 3\r\r\ndata: 4"
    expected = events_of(body)
    cuts = random.Random(7)  # noqa: S311

    for _ in range(300):
        places = sorted(cuts.sample(range(len(body) + 1), cuts.randrange(1, 8)))
        pieces = [body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)]
        assert events_of(*pieces) == expected


def test_long_line_in_small_reads_is_joined_once() -> None:
    # Ten megabytes in reads of a kilobyte; work that grew with the line would take minutes here.
    piece = b"x" * 1000
    decoder = SSEDecoder()
    assert list(decoder.feed(b"data: ")) == []
    for _ in range(10_000):
        assert list(decoder.feed(piece)) == []

    [event] = decoder.feed(b"\n\n")

    assert event.data == piece * 10_000


@pytest.mark.parametrize(
    "body",
    [b"data: " + b"x" * 200, b"data: " + b"x" * 200 + b"\n", b"data: 12345678901\n" * 20, b"{" + b"x" * 200],
    ids=["line", "whole line", "many lines", "no stream"],
)
@pytest.mark.parametrize("size", [1, 50, 1000])
def test_event_over_the_limit_is_refused_after_those_before_it(body: bytes, size: int) -> None:
    decoder = SSEDecoder(max_event_size=100)
    events: list[bytes] = []
    is_stream = body.startswith(b"data")
    stream = b"data: first\n\n" + body if is_stream else body

    with pytest.raises(RemoteProtocolError, match="more than 100 bytes"):  # noqa: PT012 -- any read may be the one
        for i in range(0, len(stream), size):
            for event in decoder.feed(stream[i : i + size]):
                events.append(event.data)  # noqa: PERF401 -- a comprehension would lose those before the error
        decoder.finish()

    assert events == ([b"first"] if is_stream else [])


def test_many_events_are_no_large_event() -> None:
    decoder = SSEDecoder(max_event_size=100)

    assert len(list(decoder.feed(b": comment\ndata: 12345678\n\n" * 1000))) == 1000


def test_body_that_is_no_stream_is_kept_until_an_event_comes() -> None:
    decoder = SSEDecoder()
    assert list(decoder.feed(b'{\n  "error": "x"\n}')) == []
    assert decoder.finish() is None
    assert decoder.stray == b'{\n  "error": "x"\n}'

    decoder = SSEDecoder()
    assert [event.data for event in decoder.feed(b"noise\ndata: 1\n\nmore noise\n")] == [b"1"]
    assert decoder.stray == b""
