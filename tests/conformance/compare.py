"""Compares an observation with what a scenario expects, and says readably where they part."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from .normalise import level_results
from .scenario import LISTS, JsonObject, Scenario

__all__ = ["difference"]

_MISSING: Final = object()
_WIDEST: Final = 600
_FREE_KEYS: Final = ("log", "tool.log", "prepareArguments")
"""Log entries for which the format names no keys beyond what they are; texts in them must agree."""


def difference(scenario: Scenario, seen: JsonObject) -> str | None:
    """Where an observation first differs in each of its lists; ``None`` if it does not."""
    expected = _prepare(scenario, scenario.expect)
    seen = _prepare(scenario, seen)
    if "log" in expected and "log" in seen:
        expected["log"], seen["log"] = _settle_free_keys(expected["log"], seen["log"])
    found = [report for part in LISTS for report in _in_part(part, expected.get(part), seen.get(part))]
    return "\n".join(found) if found else None


def _prepare(scenario: Scenario, observation: JsonObject) -> JsonObject:
    prepared: JsonObject = level_results(observation)
    log = prepared.get("log")
    if log is not None and scenario.by_lanes:
        prepared["log"] = sorted(log, key=lambda entry: (entry["t"], entry["lane"]))
    if "agent-end-messages" in scenario.tolerate:
        prepared["events"] = [_without_messages(event) for event in prepared["events"]]
    if "error-text" in scenario.tolerate:
        prepared["steps"] = [_without_wording(step) for step in prepared["steps"]]
        prepared["log"] = [_without_wording(entry) for entry in prepared["log"]]
    return prepared


def _without_messages(event: JsonObject) -> JsonObject:
    if event["type"] != "agent_end":
        return event
    return {key: value for key, value in event.items() if key != "messages"}


def _without_wording(entry: JsonObject) -> JsonObject:
    return {**entry, "error": "<any text>"} if entry.get("error") else entry


def _settle_free_keys(expected: list[JsonObject], seen: list[JsonObject]) -> tuple[list[JsonObject], list[JsonObject]]:
    # Keep the keys that both sides have; a text that one side has must be somewhere in the other.
    settled = list(zip(*(_settle(a, b) for a, b in zip(expected, seen, strict=False)), strict=True)) or [(), ()]
    count = len(settled[0])
    return [*settled[0], *expected[count:]], [*settled[1], *seen[count:]]


def _settle(expected: JsonObject, seen: JsonObject) -> tuple[JsonObject, JsonObject]:
    if seen["what"] not in _FREE_KEYS or ("text" in seen and seen["text"] not in expected.values()):
        return expected, seen
    common = [key for key in expected if key in seen and (key != "what" or seen["what"] != "log")]
    return {key: expected[key] for key in common}, {key: seen[key] for key in common}


def _in_part(part: str, expected: Any, seen: Any) -> Iterator[str]:
    if not isinstance(expected, list) or not isinstance(seen, list):
        if not _same(expected, seen):
            yield _report(part, expected, seen)
        return
    for index in range(max(len(expected), len(seen))):
        want = expected[index] if index < len(expected) else _MISSING
        have = seen[index] if index < len(seen) else _MISSING
        if not _same(want, have):
            lengths = "" if len(expected) == len(seen) else f" ({len(expected)} expected, {len(seen)} seen)"
            yield _report(f"{part}[{index}]{lengths}", want, have)
            return


def _report(where: str, expected: Any, seen: Any) -> str:
    lines = [f"{where}:", f"  expected {_show(expected)}", f"  seen     {_show(seen)}"]
    path, want, have = _deepest(expected, seen)
    if path:
        lines.append(f"  at {path}: expected {_show(want)}, seen {_show(have)}")
    return "\n".join(lines)


def _show(value: Any) -> str:
    if value is _MISSING:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]} ..."


def _deepest(expected: Any, seen: Any, path: str = "") -> tuple[str, Any, Any]:
    # Follow the first difference down as far as both sides have the same shape.
    if isinstance(expected, dict) and isinstance(seen, dict):
        for key in [*expected, *(key for key in seen if key not in expected)]:
            want, have = expected.get(key, _MISSING), seen.get(key, _MISSING)
            if not _same(want, have):
                return _deepest(want, have, f"{path}.{key}" if path else key)
    if isinstance(expected, list) and isinstance(seen, list):
        for index in range(max(len(expected), len(seen))):
            want = expected[index] if index < len(expected) else _MISSING
            have = seen[index] if index < len(seen) else _MISSING
            if not _same(want, have):
                return _deepest(want, have, f"{path}[{index}]")
    return path, expected, seen


def _same(a: Any, b: Any) -> bool:
    """Equality of JSON: no truth value is a number, and 1.0 is 1."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
