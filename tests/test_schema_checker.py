from __future__ import annotations

import socket
from typing import Any

import pytest

from trio_agent._checker import Checker
from trio_agent._errors import ToolArgumentsError, ToolDefinitionError
from trio_agent._tools import Tool, ToolContext


async def execute(arguments: dict[str, Any], ctx: ToolContext) -> None: ...


def problems(rule: Any, value: Any, **root: Any) -> list[str]:
    return Checker({"properties": {"v": rule}, **root}).problems({"v": value})


@pytest.mark.parametrize(
    ("rule", "value", "expected"),
    [
        ({"type": "integer"}, 1.5, "expected integer, got number"),
        ({"type": ["integer", "null"]}, "x", "expected integer or null, got string"),
        ({"type": "number"}, float("nan"), "expected number, got nan"),
        ({"enum": ["a", 1]}, "b", 'expected one of ["a",1]'),
        ({"enum": list(range(25))}, -1, "expected one of [" + ",".join(map(str, range(20))) + ", ... and 5 more]"),
        ({"const": "a"}, "b", 'expected "a"'),
        ({"minLength": 2}, "a", "expected at least 2 characters"),
        ({"maxLength": 2}, "abc", "expected at most 2 characters"),
        ({"pattern": "^a"}, "b", "expected to match ^a"),
        ({"format": "email"}, "x", "expected format email"),
        ({"format": "date"}, "29.11.2026", "expected format date"),
        ({"format": "date-time"}, "2026-11-29T10:00:00", "expected format date-time"),
        ({"format": "time"}, "10:00", "expected format time"),
        ({"format": "uri"}, "no scheme", "expected format uri"),
        ({"format": "ipv4"}, "1.2.3", "expected format ipv4"),
        ({"minimum": 3}, 2, "expected >= 3"),
        ({"maximum": 3}, 4, "expected <= 3"),
        ({"exclusiveMinimum": 3}, 3, "expected > 3"),
        ({"exclusiveMaximum": 3}, 3, "expected < 3"),
        ({"multipleOf": 0.01}, 0.035, "expected a multiple of 0.01"),
        ({"minItems": 2}, [1], "expected at least 2 items"),
        ({"maxItems": 1}, [1, 2], "expected at most 1 items"),
        ({"uniqueItems": True}, [1, 1], "expected unique items"),
        ({"contains": {"const": 1}}, [2], "expected at least 1 matching item"),
        ({"contains": {"const": 1}, "minContains": 2}, [1], "expected at least 2 matching items"),
        ({"contains": {"const": 1}, "maxContains": 1}, [1, 1], "expected between 1 and 1 matching items"),
        ({"minProperties": 1}, {}, "expected at least 1 properties"),
        ({"maxProperties": 0}, {"a": 1}, "expected at most 0 properties"),
        ({"not": {"type": "string"}}, "x", "must not match the schema in not"),
        (False, 1, "no value is allowed here"),
        ({"oneOf": [{"minimum": 0}, {"maximum": 9}]}, 5, "matches more than one alternative"),
        ({"$ref": "#/$defs/gone"}, 5, "unresolved reference #/$defs/gone"),
    ],
    ids=str,
)
def test_words_for_a_problem(rule: Any, value: Any, expected: str) -> None:
    assert problems(rule, value) == [f"v: {expected}"]


@pytest.mark.parametrize(
    ("rule", "value", "expected"),
    [
        ({"required": ["a"]}, {}, "v.a: missing"),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"b": 1}, "v.b: unknown field (known: a)"),
        ({"additionalProperties": False}, {"b": 1}, "v.b: unknown field"),
        ({"patternProperties": {"^n": {}}, "additionalProperties": False}, {"n": 1, "b": 1}, "v.b: unknown field"),
        ({"additionalProperties": {"type": "null"}}, {"b": 1}, "v.b: expected null, got integer"),
        ({"patternProperties": {"^n": {"type": "null"}}}, {"n": 1}, "v.n: expected null, got integer"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "v.b: required when a is present"),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "v.ab: invalid property name"),
        ({"items": {"properties": {"a/b": {"type": "null"}}}}, [{"a/b": 1}], "v.0.a/b: expected null, got integer"),
    ],
    ids=str,
)
def test_a_problem_names_its_place(rule: Any, value: Any, expected: str) -> None:
    assert problems(rule, value) == [expected]


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ({"multipleOf": 0.1}, 0.3),
        ({"pattern": r"^\p{Lu}"}, "x"),
        ({"patternProperties": {r"(?<n>x)": {}}, "additionalProperties": False}, {"y": 1}),
        ({"format": "date-time"}, "2026-11-29T10:00:00.5+01:00"),
        ({"format": "uri"}, "mailto:a@b.c"),
        ({"format": "no-such-format"}, "x"),
        ({"type": "integer"}, 3.0),
        (True, None),
    ],
    ids=str,
)
def test_what_is_right_or_cannot_be_checked_is_no_problem(rule: Any, value: Any) -> None:
    assert problems(rule, value) == []


UNION = {
    "anyOf": [
        {"properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "required": ["kind", "n"], "type": "object"},
        {"properties": {"kind": {"const": "b"}, "m": {"type": "integer"}}, "required": ["kind", "m"], "type": "object"},
    ]
}
UNTAGGED = {
    "anyOf": [
        {"properties": {"x": {"type": "integer"}}, "required": ["x"], "type": "object"},
        {"properties": {"y": {"type": "integer"}, "z": {}}, "required": ["y"], "type": "object"},
    ]
}


@pytest.mark.parametrize(
    ("rule", "value", "expected"),
    [
        (UNION, {"kind": "b", "m": "x"}, ["v.m: expected integer, got string"]),
        (UNION, {"kind": "c"}, ['v.kind: expected one of ["a","b"]']),
        (UNION, {"n": 1}, ['v.kind: expected one of ["a","b"]']),
        (UNION, 3, ["v: expected object, got integer"]),
        (UNTAGGED, {"y": "x", "z": 1}, ["v.y: expected integer, got string"]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", ["v: expected integer, got string"]),
        (
            {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]},
            ["x"],
            ["v.0: expected integer, got string"],
        ),
    ],
)
def test_only_the_branch_that_was_meant_is_explained(rule: Any, value: Any, expected: list[str]) -> None:
    assert problems(rule, value) == expected


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    rule = {"$ref": "https://example.com/schema.json"}

    assert problems(rule, 1) == ["v: unresolved reference https://example.com/schema.json"]


def test_a_reference_to_itself_refuses_its_place() -> None:
    assert problems({"$ref": "#/$defs/a"}, 1, **{"$defs": {"a": {"$ref": "#/$defs/a"}}}) == [
        "v: the reference #/$defs/a goes too deep"
    ]


def test_a_schema_that_names_its_dialect_is_checked_like_any_other() -> None:
    recursive = Checker(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "properties": {"next": {"$ref": "#"}, "n": {"type": "number", "multipleOf": 0.1}},
        }
    )

    assert recursive.problems({"next": {"next": {"n": 0.3}}}) == []
    assert recursive.problems({"next": {"n": "x"}}) == ["next.n: expected number, got string"]


def test_older_drafts_are_read_as_they_were_meant() -> None:
    old = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"pair": {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}},
    }
    tool = Tool(name="t", parameters=old, execute=execute)

    assert tool.bind({"pair": ["1", 2]}).arguments == {"pair": [1, "2"]}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "objekt"}, "at type: 'objekt' is not valid"),
        ({"type": "object", "properties": []}, "at properties: "),
        ({"type": "object", "required": "a"}, "at required: 'a' is not of type 'array'"),
        ({"type": "string"}, "the arguments of a call are an object"),
        ([], "must be a JSON Schema in a dict, not list"),
        (int, "to have it made from a function's annotations, use @tool"),
    ],
    ids=str,
)
def test_what_is_no_object_schema_is_refused_at_definition(schema: Any, reason: str) -> None:
    with pytest.raises(ToolDefinitionError, match="tool 't': parameters") as raised:
        Tool(name="t", parameters=schema, execute=execute)

    assert reason in str(raised.value)


def test_nested_unions_do_not_multiply() -> None:
    # Each level has six alternatives: tried one inside the other, this test would never end.
    kinds = [
        {
            "type": "object",
            "properties": {"kind": {"const": f"k{i}"}, "inner": {"$ref": "#/$defs/any"}},
            "required": ["kind"],
            "additionalProperties": False,
        }
        for i in range(6)
    ]
    tool = Tool(
        name="t",
        parameters={"type": "object", "properties": {"v": {"$ref": "#/$defs/any"}}, "$defs": {"any": {"anyOf": kinds}}},
        execute=execute,
    )
    value: Any = {"kind": "k5", "wrong": 1}
    for _ in range(25):
        value = {"kind": "k5", "inner": value}

    with pytest.raises(ToolArgumentsError, match="wrong: unknown field"):
        tool.bind({"v": value})
