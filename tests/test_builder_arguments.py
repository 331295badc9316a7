"""How MessageBuilder reads the argument text of calls, at the end and on the way."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pytest
from builder_events import (
    call_start,
    fold,
    start,
)

from trio_agent import (
    StreamDone,
    ToolCall,
    ToolCallDelta,
)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", {}),
        ("  ", {}),
        ("null", {}),
        (" null\n", {}),
        ("{}", {}),
        (' {"a": [1, {"b": null}]} ', {"a": [1, {"b": None}]}),
    ],
)
def test_arguments_of_an_open_call_are_read_at_the_end(text: str, arguments: dict[str, Any]) -> None:
    builder, _ = fold(start, call_start, ToolCallDelta(content_index=0, delta=text), StreamDone(reason="toolUse"))

    assert builder.result().content == (ToolCall(id="c", name="read", arguments=arguments),)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"path": "/', "not valid JSON"),
        ('{"a": 1} {"b": 2}', "not valid JSON"),
        ('{"a": NaN}', "not valid JSON"),
        ('{"a": "\ud83d"}', "not valid JSON"),
        ('{"a":' * 100_000, "not valid JSON"),
        ("{'a': 1}", "not valid JSON"),
        ("[1]", "must be a JSON object, not list"),
        ('"{}"', "must be a JSON object, not str"),
        ("1", "must be a JSON object, not int"),
    ],
)
def test_malformed_arguments_are_never_repaired_into_a_call(text: str, reason: str) -> None:
    builder, _ = fold(start, call_start, ToolCallDelta(content_index=0, delta=text), StreamDone(reason="toolUse"))

    [made] = builder.result().tool_calls
    assert made.arguments == {}
    assert made.arguments_error is not None
    assert reason in made.arguments_error


def test_arguments_in_a_partial_are_empty_until_they_are_complete() -> None:
    _, events = fold(
        start,
        call_start,
        *[ToolCallDelta(content_index=0, delta=part) for part in ('{"a": {"b"', ": 1}", "}", " ", "x")],
    )

    assert [event.partial.tool_calls[0].arguments for event in events[1:]] == [
        {},
        {},
        {},
        {"a": {"b": 1}},
        {"a": {"b": 1}},
        {},
    ]


PARTS = ('{"pa', 'th": "/a', '/b", "n": 1', '2, "flag": tr', "ue", "}")
PREVIEWS: list[dict[str, Any]] = [
    {},
    {"path": "/a"},
    {"path": "/a/b", "n": 1},
    {"path": "/a/b", "n": 12},
    {"path": "/a/b", "n": 12, "flag": True},
    {"path": "/a/b", "n": 12, "flag": True},
]


def previews(parts: Sequence[str]) -> list[ToolCallDelta]:
    _, events = fold(start, call_start, *[ToolCallDelta(content_index=0, delta=part) for part in parts])
    return events[2:]


def test_a_preview_of_arguments_goes_as_far_as_the_text() -> None:
    pytest.importorskip("jiter")

    assert [event.partial_arguments for event in previews(PARTS)] == PREVIEWS


def test_a_preview_is_that_of_its_event_in_whatever_order_it_is_read() -> None:
    pytest.importorskip("jiter")
    events = previews(PARTS)

    assert [event.partial_arguments for event in reversed(events)] == PREVIEWS[::-1]
    assert [event.partial_arguments for event in events] == PREVIEWS


def test_without_jiter_a_preview_is_the_last_complete_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jiter", None)
    events = previews([*PARTS, "!"])

    assert [event.partial_arguments for event in events] == [{}, {}, {}, {}, {}, PREVIEWS[-1], PREVIEWS[-1]]
    assert events[2].partial_arguments == {}


def test_without_jiter_a_long_text_is_read_when_it_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jiter", None)
    events = previews(['{"a": "', *["x" * 100] * 50, '"', "}"])

    assert events[-2].partial_arguments == {}
    assert events[-1].partial_arguments == {"a": "x" * 5000}


@pytest.mark.parametrize("text", ["", " ", "null", "[1", '"a', "12"])
def test_a_preview_of_what_is_no_object_is_empty(text: str) -> None:
    assert previews([text])[0].partial_arguments == {}


def test_a_preview_of_malformed_text_is_the_last_good_one() -> None:
    pytest.importorskip("jiter")
    events = previews(['{"a": 1, ', "!", '"b": 2'])

    assert [event.partial_arguments for event in events] == [{"a": 1}, {"a": 1}, {"a": 1}]


def test_a_preview_of_a_long_text_lacks_an_eighth_at_most_and_is_seldom_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    jiter = pytest.importorskip("jiter")
    parsed: list[int] = []

    def counting(data: bytes, **options: Any) -> Any:
        parsed.append(len(data))
        return from_json(data, **options)

    from_json = jiter.from_json
    monkeypatch.setattr(jiter, "from_json", counting)
    parts = ['{"a": "', *["x" * 10] * 10_000]

    for position, event in enumerate(previews(parts)):
        seen = event.partial_arguments.get("a", "")
        assert len(seen) <= 10 * position
        assert len(seen) >= 10 * position * 7 / 8 - 8
        if 10 * position < 1000:
            assert len(seen) == 10 * position
    # The first hundred deltas are read one by one; then eight to sixteen readings for each doubling.
    assert len(parsed) < 250
    assert sum(parsed) < 20 * 100_000
