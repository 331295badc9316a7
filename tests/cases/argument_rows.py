"""Cases of kind c: a schema, the text of a call's arguments, and what becomes of them."""

from __future__ import annotations

import functools
import json
from typing import Any

from trio_agent._builder import parse_arguments
from trio_agent._errors import ToolArgumentsError
from trio_agent._tools import Tool, ToolContext

from .case_files import Check, NotDataError

KNOWN = {
    "args",
    "args_unchanged",
    "error",
    "error_length_max",
    "error_mentions",
    "python_type",
    "reference",
    "valid",
    "valid_either",
    "what",
    "why_different",
}


def argument_checks(name: str, case: dict[str, Any]) -> list[Check]:
    """A check for each row."""
    rows, expected = case["input"].get("rows"), case["expect"].get("rows")
    if rows is None or expected is None or len(rows) != len(expected):
        return [Check(name, case["kind"], functools.partial(_not_rows, name))]
    return [
        Check(f"{name}-{index}", case["kind"], functools.partial(check_row, row, expectation))
        for index, (row, expectation) in enumerate(zip(rows, expected, strict=True))
    ]


def _not_rows(name: str) -> None:
    raise NotDataError(f"{name} has no rows of input and expectation")


def check_row(row: dict[str, Any], expected: dict[str, Any]) -> None:
    """Run one row."""
    alternatives = expected.get("valid_either", [expected])
    for alternative in alternatives:
        if unknown := alternative.keys() - KNOWN:
            raise NotDataError(f"the expectation has {sorted(unknown)}, which this runner does not know")
    if row.keys() - {"schema", "args_json"}:
        raise NotDataError(f"the row has {sorted(row)}, which this runner does not know")
    differences = [_difference(row, alternative) for alternative in alternatives]
    assert None in differences, "\n".join(filter(None, differences))


async def _never(_arguments: dict[str, Any], _ctx: ToolContext) -> None:
    raise AssertionError


def _difference(row: dict[str, Any], expected: dict[str, Any]) -> str | None:
    # What is not as expected, if something is.
    tool = Tool(name="t", parameters=row["schema"], execute=_never)
    sent, malformed = parse_arguments(row["args_json"])
    error = f'Invalid arguments for tool "t": {malformed}' if malformed is not None else None
    arguments: dict[str, Any] = {}
    before = json.dumps(sent)
    if error is None:
        try:
            arguments = tool.bind(sent).arguments
        except ToolArgumentsError as exc:
            error = str(exc)
    assert json.dumps(sent) == before, "what the model wrote was modified"
    if (error is None) != expected["valid"]:
        return f"expected {expected}, got {arguments if error is None else error!r}"
    return _error_difference(error, expected) if error is not None else _value_difference(arguments, sent, expected)


def _value_difference(arguments: dict[str, Any], sent: dict[str, Any], expected: dict[str, Any]) -> str | None:
    wanted = sent if expected.get("args_unchanged") else expected.get("args", arguments)
    if not _same(arguments, wanted):
        return f"expected {wanted}, got {arguments}"
    if "python_type" in expected:
        (only,) = arguments.values()
        if type(only).__name__ != expected["python_type"]:
            return f"expected a value of type {expected['python_type']}, got {only!r}"
    return None


def _error_difference(error: str, expected: dict[str, Any]) -> str | None:
    if "error" in expected and error != expected["error"]:
        return f"expected the error\n{expected['error']}\ngot\n{error}"
    if expected.get("error_mentions", "") not in error:
        return f"{expected['error_mentions']!r} is not in {error!r}"
    if len(error) > expected.get("error_length_max", len(error)):
        return f"the error has {len(error)} characters"
    return None


def _same(a: Any, b: Any) -> bool:
    # As JSON: 1 is 1.0, but `true` is not 1.
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
