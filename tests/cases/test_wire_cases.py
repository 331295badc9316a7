"""The committed cases of kind a, and those of kind b that are about a history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from . import history_cases, wire_cases

CASES: list[dict[str, Any]] = [
    json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(__file__).parent.glob("*.json"))
]


def ids(case: dict[str, Any]) -> str:
    return f"{case['id']} {case['title']}"


@pytest.mark.parametrize("case", [case for case in CASES if wire_cases.is_supported(case)], ids=ids)
def test_bodies_come_to_the_right_message(case: dict[str, Any]) -> None:
    assert wire_cases.run_case(case) == []


@pytest.mark.parametrize("case", [case for case in CASES if history_cases.is_supported(case)], ids=ids)
def test_histories_become_requests_that_servers_take(case: dict[str, Any]) -> None:
    assert history_cases.run_case(case) == []


def test_a_wrong_fact_is_a_difference() -> None:
    [case] = [case for case in CASES if case["id"] == "B05"]
    wrong = case | {"expect": {"text": "x", "tool_calls": [], "stop_reason": "stop", "never": 1}}

    assert [line.split(":")[1].strip() for line in wire_cases.run_case(wrong)] == [
        "text",
        "tool_calls",
        "stop_reason",
        "never",
    ]
