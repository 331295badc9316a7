"""The comparison itself: what it must notice, what it must let pass, and that it says where."""

from __future__ import annotations

import copy

import pytest

from .compare import difference
from .scenario import JsonObject, Scenario

GOLDEN: JsonObject = {
    "steps": [{"step": "prompt", "outcome": "error", "error": "busy"}],
    "events": [{"t": 0, "type": "agent_end", "messages": [{"role": "user", "content": "Hi"}]}],
    "log": [
        {"t": 0, "lane": "main", "what": "model.request", "n": 1},
        {"t": 0, "lane": "events", "what": "event", "n": 0, "type": "agent_end"},
    ],
    "requests": [],
    "final": {"isStreaming": False},
}


def scenario(
    expect: JsonObject = GOLDEN, *, by_lanes: bool = False, tolerate: frozenset[str] = frozenset()
) -> Scenario:
    return Scenario(
        name="made up",
        input={"steps": []},
        expect=expect,
        by_lanes=by_lanes,
        tolerate=tolerate,
        binding=True,
        note="",
    )


def seen() -> JsonObject:
    return copy.deepcopy(GOLDEN)


def test_equal_observations_do_not_differ() -> None:
    assert difference(scenario(), seen()) is None


def test_difference_names_list_index_place_and_both_values() -> None:
    other = seen()
    other["events"][0]["messages"][0]["content"] = "Ho"

    report = difference(scenario(), other)

    assert report is not None
    assert report.startswith("events[0]:\n  expected {")
    assert report.endswith('at messages[0].content: expected "Hi", seen "Ho"')


def test_missing_entry_is_a_difference() -> None:
    other = seen()
    other["log"].pop()

    report = difference(scenario(), other)

    assert report is not None
    assert report.startswith("log[1] (2 expected, 1 seen):")
    assert report.endswith("seen     nothing")


@pytest.mark.parametrize("value", [None, 0, "false"])
def test_false_is_nothing_but_false(value: object) -> None:
    other = seen()
    other["final"]["isStreaming"] = value

    assert difference(scenario(), other) is not None


def test_absent_and_null_are_different() -> None:
    other = seen()
    other["final"]["errorMessage"] = None

    assert difference(scenario(), other) is not None


def test_order_of_lanes_counts_only_where_nothing_else_is_said() -> None:
    other = seen()
    other["log"].reverse()

    assert difference(scenario(), other) is not None
    assert difference(scenario(by_lanes=True), other) is None


def test_tolerated_error_text_must_still_be_there() -> None:
    other = seen()
    tolerant = scenario(tolerate=frozenset({"error-text"}))

    other["steps"][0]["error"] = "try later"
    assert difference(scenario(), other) is not None
    assert difference(tolerant, other) is None

    other["steps"][0]["error"] = ""
    assert difference(tolerant, other) is not None


def test_tolerated_messages_of_the_last_event_do_not_count() -> None:
    other = seen()
    other["events"][0]["messages"] = []

    assert difference(scenario(tolerate=frozenset({"agent-end-messages"})), other) is None


def test_result_without_content_is_the_same_as_with_none() -> None:
    ours = {**seen(), "events": [{"result": {"content": [], "isError": False, "details": {}}}]}
    theirs = {**seen(), "events": [{"result": {"details": {}}}]}

    assert difference(scenario(theirs), ours) is None


def test_set_error_flag_of_a_result_counts() -> None:
    ours = {**seen(), "events": [{"result": {"content": [], "isError": True}}]}
    theirs = {**seen(), "events": [{"result": {"content": []}}]}

    assert difference(scenario(theirs), ours) is not None


def test_text_of_a_log_entry_counts_under_any_key() -> None:
    theirs = {**seen(), "log": [{"t": 0, "lane": "tool:c1", "what": "tool.log", "id": "c1", "message": "here"}]}
    ours = {**seen(), "log": [{"t": 0, "lane": "tool:c1", "what": "tool.log", "id": "c1", "text": "here"}]}
    others = {**seen(), "log": [{"t": 0, "lane": "tool:c1", "what": "tool.log", "id": "c1", "text": "there"}]}

    assert difference(scenario(theirs), ours) is None
    assert difference(scenario(theirs), others) is not None
