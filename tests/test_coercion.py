from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any, Literal

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from referencing.exceptions import Unresolvable

from trio_agent._errors import ToolArgumentsError
from trio_agent._tools import Tool, ToolContext, tool


async def execute(arguments: dict[str, Any], ctx: ToolContext) -> None: ...


def bound(schema: dict[str, Any], arguments: Any) -> Any:
    return Tool(name="t", parameters=schema, execute=execute).bind(arguments).arguments


LIST = {
    "type": "object",
    "properties": {"edits": {"type": "array", "items": {"properties": {"n": {"type": "integer"}}}}},
}


def test_arguments_are_never_modified() -> None:
    sent = {"edits": [{"n": "1"}, {"n": 2}], "x": None}
    before = copy.deepcopy(sent)

    assert bound(LIST, sent) == {"edits": [{"n": 1}, {"n": 2}], "x": None}
    assert sent == before


@pytest.mark.parametrize("number", [1, "1"], ids=["fits", "coerced"])
async def test_what_hooks_see_what_the_tool_gets_and_what_was_sent_share_nothing(number: int | str) -> None:
    got: list[Any] = []

    async def keep(arguments: dict[str, Any], ctx: ToolContext) -> None:
        arguments["edits"][0]["n"] = "changed by the tool"
        got.append(arguments)

    sent = {"edits": [{"n": number}]}
    keeper = Tool(name="t", parameters=LIST, execute=keep)
    arguments = keeper.bind(sent)
    await keeper.invoke(arguments, None)
    arguments.arguments["edits"].append("added by a hook")

    assert sent == {"edits": [{"n": number}]}
    assert got == [{"edits": [{"n": "changed by the tool"}]}]
    assert arguments.arguments == {"edits": [{"n": 1}, "added by a hook"]}


async def test_open_parts_of_a_functions_arguments_are_its_own() -> None:
    @tool
    async def keep(data: dict[str, Any]) -> None:
        data["list"].append(1)

    sent: dict[str, Any] = {"data": {"list": []}}
    await keep.invoke(keep.bind(sent), None)

    assert sent == {"data": {"list": []}}


@pytest.mark.parametrize("absent", [None, "", {}])
def test_absent_arguments_are_an_empty_object(absent: Any) -> None:
    @tool
    async def f() -> None: ...

    assert f.bind(absent).arguments == {}
    assert bound({"type": "object"}, absent) == {}


@pytest.mark.parametrize("value", [[1], "text", 3, True])
def test_arguments_that_are_no_object_are_refused(value: Any) -> None:
    @tool
    async def f() -> None: ...

    with pytest.raises(ToolArgumentsError, match="root: the arguments must be an object, got"):
        f.bind(value)
    with pytest.raises(ToolArgumentsError, match="root: the arguments must be an object, got"):
        bound({"type": "object"}, value)


def test_arguments_that_are_nested_too_deeply_are_refused() -> None:
    @tool
    async def f(a: list[Any]) -> None: ...

    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]

    with pytest.raises(ToolArgumentsError, match="nested too deeply"):
        f.bind({"a": nested})
    with pytest.raises(ToolArgumentsError, match="nested too deeply"):
        bound(LIST, {"edits": nested})


def test_no_more_of_the_arguments_is_written_than_is_shown() -> None:
    numbers = range(1_000_000)

    with pytest.raises(ToolArgumentsError) as raised:
        bound({"type": "object", "properties": {"n": {"type": "null"}}}, {"n": list(numbers)})

    assert len(str(raised.value)) <= 1500
    assert str(raised.value).endswith("... (shortened)")


@dataclass
class Edit:
    old: str
    count: int = 1


@tool
async def edit(
    path: str,
    edits: list[Edit],
    mode: Literal["fast", "slow"] = "fast",
    ratio: float | None = None,
    limit: int = 10,
    dry: bool = False,
    tags: list[str] | None = None,
) -> None: ...


LOOSE = st.fixed_dictionaries(
    {},
    optional={
        "path": st.sampled_from(["a", 5, True, None, ["x"]]),
        "edits": st.sampled_from(
            [{"old": "a"}, [{"old": 1, "count": "2"}], '[{"old": "a", "count": 3.0}]', "{", [], [{"count": 1}], None]
        ),
        "mode": st.sampled_from(["fast", "Fast", None, 1]),
        "ratio": st.sampled_from([1, 2.5, "3", "", "x", None, "null", True]),
        "limit": st.sampled_from([3, 3.0, 3.5, "4", "4.0", "4.5", None, True]),
        "dry": st.sampled_from([True, 1, 0, 2, "true", "no", None]),
        "tags": st.sampled_from(["a", ["a", 1], None, "[1]", "[oops"]),
        "other": st.just(1),
    },
)


@given(LOOSE)
@settings(max_examples=150, deadline=None)
def test_functions_and_schemas_coerce_alike(arguments: dict[str, Any]) -> None:
    twin = Tool(name="edit", parameters=edit.parameters, execute=execute)

    def outcome(binder: Tool) -> str:
        try:
            return json.dumps(binder.bind(arguments).arguments)
        except ToolArgumentsError as exc:
            return str(exc)

    assert outcome(edit) == outcome(twin)


def test_a_function_gets_the_coerced_values() -> None:
    value = edit.bind({"path": 5, "edits": '[{"old": "a", "count": "3"}]', "limit": 4.0, "ratio": "null"}).value

    assert (value.path, value.edits, value.limit, value.ratio) == ("5", [Edit("a", 3)], 4, None)
    assert type(value.limit) is int


# -- any schema --------------------------------------------------------------------------------------------------------

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["1", "true", "x", "null", "", 1.0, 2.5])
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner), max_leaves=5
)
SIMPLE = st.sampled_from(
    [
        {},
        {"type": "integer"},
        {"type": "number", "minimum": 1},
        {"type": "string"},
        {"type": "boolean"},
        {"type": "null"},
        {"type": ["integer", "string"]},
        {"enum": ["1", 1, True]},
        {"enum": [1, 2]},
        {"const": "x"},
        {"$ref": "#/$defs/int"},
        {"$ref": "#/$defs/gone"},
    ]
)
SCHEMAS = st.recursive(
    SIMPLE,
    lambda inner: (
        st.builds(lambda item: {"type": "array", "items": item}, inner)
        | st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner)
        | st.builds(lambda a, b: {"oneOf": [a, b]}, inner, inner)
        | st.builds(lambda a: {"allOf": [a, {"type": ["integer", "string", "object"]}]}, inner)
        | st.builds(lambda a, b: {"type": "object", "properties": {"a": a, "b": b}, "required": ["a"]}, inner, inner)
        | st.builds(lambda a: {"type": "object", "additionalProperties": a}, inner)
    ),
    max_leaves=4,
)


@given(SCHEMAS, JSON)
@settings(max_examples=200, deadline=None)
def test_what_fits_is_taken_as_it_is_and_what_is_taken_fits(rule: dict[str, Any], value: Any) -> None:
    schema = {"type": "object", "properties": {"v": rule}, "$defs": {"int": {"type": "integer"}}}
    stock = jsonschema.Draft202012Validator(schema)
    sent = {"v": value}
    before = json.dumps(sent)

    def is_valid(arguments: Any) -> bool:
        try:
            return stock.is_valid(arguments)
        except Unresolvable:
            return False

    try:
        result = bound(schema, sent)
    except ToolArgumentsError:
        assert not is_valid(sent)
    else:
        if is_valid(sent):
            assert result == sent
        elif "gone" not in str(rule):
            assert is_valid(result)
    assert json.dumps(sent) == before


@given(JSON)
@settings(max_examples=100, deadline=None)
def test_coercing_twice_is_coercing_once(value: Any) -> None:
    try:
        once = bound(LIST, {"edits": value})
    except ToolArgumentsError:
        return
    assert bound(LIST, once) == once
