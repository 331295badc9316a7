from __future__ import annotations

from typing import Any

import msgspec
import pytest

from trio_agent._errors import RemoteProtocolError
from trio_agent.wire._json import decode_event, encode, finish_arguments, repair, scrub_text

DECODER = msgspec.json.Decoder(dict[str, Any])


class Typed(msgspec.Struct):
    text: str


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ('{"a":"tab\there"}', '{"a":"tab\\there"}'),
        ('{"a":"nul\x00"}', '{"a":"nul\\u0000"}'),
        ('{"a":"c:\\dir\\file"}', '{"a":"c:\\\\dir\\file"}'),
        ('{"a":"\\u12G4 \\u00e9"}', '{"a":"\\\\u12G4 \\u00e9"}'),
        ('{"a":"x\\', '{"a":"x\\\\'),
        ('{"a":\t"b"}', '{"a":\t"b"}'),
        ('{"a":"\\"\\\\"}', '{"a":"\\"\\\\"}'),
    ],
)
def test_strings_are_repaired_and_nothing_else(text: str, repaired: str) -> None:
    assert repair(text) == repaired


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a":"tab\there"}', {"a": "tab\there"}),
        (b'{"a":"\\q"}', {"a": "\\q"}),
        (b'{"a":"\\ud83d"}', {"a": "\ud83d"}),
        (b'{"a":"\xff"}', {"a": "\ufffd"}),
        (b'{"a\\ud83d":"\xff"}', {"a\ud83d": "\ufffd"}),
    ],
)
def test_events_are_read_as_their_senders_meant_them(data: bytes, value: dict[str, str]) -> None:
    assert decode_event(data, DECODER) == value


@pytest.mark.parametrize("data", [b"{not json}", b'{"a":', b"", b"[" * 100_000, b"[1]"])
def test_what_makes_no_sense_is_the_servers_fault(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="the server sent an event"):
        decode_event(data, DECODER)


def test_half_a_pair_where_another_type_is_wanted_is_the_servers_fault() -> None:
    with pytest.raises(RemoteProtocolError, match="unknown shape"):
        decode_event(b'"\\ud83d"', msgspec.json.Decoder(list[Typed]))


def test_wrong_type_is_the_servers_fault() -> None:
    with pytest.raises(RemoteProtocolError, match=r"unknown shape.*\$\.text"):
        decode_event(b'{"text": 5}', msgspec.json.Decoder(Typed))


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", {}),
        (" \n", {}),
        ("null", {}),
        ('{"a": 1}', {"a": 1}),
        ('{"n": 9007199254740993}', {"n": 9007199254740993}),
        ('{"t":"\\udc00"}', {"t": ""}),
        ('{"\\ud83dk":["\\ud83d\\ude00","\\uDC00"]}', {"k": ["😀", ""]}),
    ],
)
def test_arguments_that_are_an_object(text: str, arguments: dict[str, Any]) -> None:
    assert finish_arguments(text) == (arguments, None)


@pytest.mark.parametrize(
    "text",
    ['{"a":', "[1]", "12", '"x"', '{"a":NaN}', '{"a":"\\ud83d"} x', '{"a":"\\ud83d", "b": Infinity}', '{"a":"b\tc"}'],
)
def test_arguments_that_are_none_come_with_what_was_received(text: str) -> None:
    arguments, error = finish_arguments(text)

    assert arguments == {}
    assert error is not None
    assert error.endswith(f"Received arguments:\n{text}")


def test_long_faulty_arguments_are_quoted_in_part() -> None:
    _, error = finish_arguments('{"a":"' + "x" * 100_000)

    assert error is not None
    assert len(error) < 5000
    assert error.endswith("(100006 characters)")


def test_deeply_nested_arguments_are_an_error() -> None:
    assert finish_arguments('{"a":' + "[" * 100_000)[1] is not None


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [("a\ud83d b", "a b"), ("\ude00x", "x"), ("ok \ud83d\ude48", "ok 🙈"), ("\ud83d\ud83d\ude00", "😀"), ("é", "é")],
)
def test_unpaired_surrogates_are_dropped_and_pairs_joined(text: str, scrubbed: str) -> None:
    assert scrub_text(text) == scrubbed


def test_any_value_encodes_to_valid_utf8() -> None:
    value = {"a\ud83d": ["\ude00", {"b": "\ud83d\ude00"}, 1, None, True]}

    assert encode(value).decode() == '{"a":["",{"b":"😀"},1,null,true]}'
