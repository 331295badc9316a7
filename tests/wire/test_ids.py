from __future__ import annotations

import re

import pytest

from trio_agent.wire._ids import CallIdMap, CallIdRule, short_hash
from trio_agent.wire._names import ToolNames

CLAUDE = CallIdRule(max_length=64, plain=True)
PIPED = "call_" + "A" * 30 + "|fc_" + "b" * 40


def test_short_hash_is_the_same_everywhere() -> None:
    assert short_hash("") == "k4n83c7h0j2b"
    assert short_hash("hello") == "1h6qa0qrowduu"
    assert short_hash("😀") == "13wj7r7usi372"


@pytest.mark.parametrize("rule", [CLAUDE, CallIdRule(exact_length=9), CallIdRule(max_length=40, pair_length=40)])
def test_ids_fit_and_stay_apart(rule: CallIdRule) -> None:
    ids = ["", "a", "f:0", "f/0", "f:0", PIPED + "==", PIPED + "=/", "x" * 100, "x" * 101, "日本", "call_1", "toolu_01"]
    ids_map = CallIdMap(rule)

    wire = [ids_map.assign(call_id, native=False) for call_id in ids]

    assert len(set(wire)) == len(wire)
    for call_id in wire:
        assert call_id
        assert not rule.max_length or len(call_id) <= rule.max_length
        assert not rule.plain or re.fullmatch(r"[a-zA-Z0-9_-]+", call_id)
        assert not rule.exact_length or re.fullmatch(rf"[a-zA-Z0-9]{{{rule.exact_length}}}", call_id)


def test_ids_that_fit_are_left_alone() -> None:
    assert CallIdMap(CLAUDE).assign("toolu_01ABC", native=False) == "toolu_01ABC"
    assert CallIdMap(CallIdRule(exact_length=9)).assign("abc123XYZ", native=False) == "abc123XYZ"


def test_replaced_characters_leave_no_underscore_at_the_end() -> None:
    assert CallIdMap(CLAUDE).assign("call_1==", native=False) == "call_1"
    assert CallIdMap(CLAUDE).assign("call_1_", native=False) == "call_1_"


def test_pair_of_ids_is_joined_or_cut_with_a_hash_of_the_whole() -> None:
    rule = CallIdRule(pair_length=40)

    assert CallIdMap(rule).assign("call_1|fc_2", native=False) == "call_1_fc_2"
    assert CallIdMap(rule).assign("call_abcdefghijklmnopqrstuvwx|fc_68d1e9c7" + "0" * 63, native=False) == (
        "call_abcdefghijklmnopqrstuvwx_a4ynf41k"
    )


def test_ids_of_the_same_model_are_only_made_unique() -> None:
    ids = CallIdMap(CLAUDE)

    assert ids.assign("f:0", native=True) == "f:0"
    assert ids.assign("f:0", native=True) != "f:0"


def test_the_map_depends_only_on_what_came_before() -> None:
    short, long = CallIdMap(CLAUDE), CallIdMap(CLAUDE)
    prefix = [short.assign(call_id, native=False) for call_id in ["a", "a", PIPED]]

    assert [long.assign(call_id, native=False) for call_id in ["a", "a", PIPED, "a", PIPED]][:3] == prefix


NAMES = ["files.read", "files/read", "Docker file scanner", "x" * 70, "x" * 69 + "y", "lesen_ä", "", "plain", "a-b_C9"]


def test_tool_names_fit_stay_apart_and_lead_back() -> None:
    names = ToolNames(NAMES)

    wire = [names.on_wire(name) for name in NAMES]

    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in wire)
    assert len(set(wire)) == len(wire)
    assert [names.aliases.get(name, name) for name in wire] == NAMES
    assert wire[-2:] == ["plain", "a-b_C9"]
    assert names.on_wire("files.read") == wire[0]


def test_alias_keeps_clear_of_declared_names() -> None:
    taken = ToolNames([]).on_wire("files.read")

    names = ToolNames([taken, "files.read"])

    assert names.on_wire("files.read") != taken
    assert names.on_wire(taken) == taken
