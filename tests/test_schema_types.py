from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import pathlib
import uuid
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import jsonschema
import msgspec
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta

from trio_agent._errors import ToolArgumentsError
from trio_agent._tools import Tool, tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"
    AMBER = "amber"


class Level(enum.IntEnum):
    HIGH = 2
    LOW = 1


@dataclasses.dataclass
class Point:
    """A place.

    Attributes:
        x: to the right.
    """

    x: int
    y: int = 0
    tags: list[str] = dataclasses.field(default_factory=list)


class Node(msgspec.Struct):
    value: int
    children: list[Node] = []


class Circle(msgspec.Struct, tag=True):
    r: float


class Square(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    side: float


class Options(TypedDict):
    depth: int
    order: NotRequired[Literal["up", "down"]]


class Span(NamedTuple):
    start: int
    end: int = 9


def schema_of(annotation: Any) -> Any:
    async def function(value: Any) -> None: ...

    function.__annotations__["value"] = annotation
    return tool(function).parameters["properties"]["value"]


POINT = {
    "description": "A place.",
    "type": "object",
    "properties": {
        "x": {"type": "integer", "description": "to the right."},
        "y": {"type": "integer", "default": 0},
        "tags": {"type": "array", "items": {"type": "string"}, "default": []},
    },
    "required": ["x"],
}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list, {"type": "array"}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "items": False,
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (dict, {"type": "object"}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Literal["b", "a"], {"type": "string", "enum": ["b", "a"]}),
        (Literal[3, 1, 2], {"type": "integer", "enum": [3, 1, 2]}),
        (Literal["b", None], {"type": ["string", "null"], "enum": ["b", None]}),  # noqa: PYI061
        (Colour, {"type": "string", "enum": ["red", "blue", "amber"]}),
        (Level, {"type": "integer", "enum": [2, 1]}),
        (dt.datetime, {"type": "string", "format": "date-time"}),
        (Annotated[dt.datetime, Meta(tz=False)], {"type": "string"}),
        (dt.date, {"type": "string", "format": "date"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (decimal.Decimal, {"type": "string"}),
        (bytes, {"type": "string", "contentEncoding": "base64"}),
        (pathlib.Path, {"type": "string"}),
        (trio.Path, {"type": "string"}),
        (Annotated[int, Meta(ge=1, lt=10)], {"type": "integer", "minimum": 1, "exclusiveMaximum": 10}),
        (Annotated[str, Meta(min_length=1, pattern="^a")], {"type": "string", "pattern": "^a", "minLength": 1}),
        (
            Annotated[list[int], Meta(max_length=3)],
            {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
        ),
        (Annotated[dict[str, int], Meta(min_length=1)], None),
        (Annotated[str, Meta(examples=["x"])], {"type": "string", "examples": ["x"]}),
        (Point, POINT),
        (
            Options,
            {
                "type": "object",
                "properties": {
                    "depth": {"type": "integer"},
                    "order": {"type": "string", "enum": ["up", "down"]},
                },
                "required": ["depth"],
            },
        ),
        (
            Span,
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "integer", "default": 9}],
                "minItems": 1,
                "maxItems": 2,
            },
        ),
        (
            Circle | Square,
            {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"type": {"type": "string", "enum": ["Circle"]}, "r": {"type": "number"}},
                        "required": ["type", "r"],
                    },
                    {
                        "type": "object",
                        "properties": {"type": {"type": "string", "enum": ["Square"]}, "side": {"type": "number"}},
                        "required": ["type", "side"],
                        "additionalProperties": False,
                    },
                ]
            },
        ),
    ],
    ids=str,
)
def test_schema_of_a_type(annotation: Any, schema: Any) -> None:
    made = schema_of(annotation)

    jsonschema.Draft202012Validator.check_schema(made)
    assert made == (schema if schema is not None else made)


def test_a_class_used_twice_and_a_recursive_one_are_definitions() -> None:
    @tool
    async def connect(start: Point, end: Point, tree: Node) -> None: ...

    assert connect.parameters["properties"] == {
        "start": {"$ref": "#/$defs/Point"},
        "end": {"$ref": "#/$defs/Point"},
        "tree": {"$ref": "#/$defs/Node"},
    }
    assert connect.parameters["$defs"]["Point"] == POINT
    assert connect.parameters["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}


def test_defaults_are_shown_if_a_model_could_send_them() -> None:
    @tool
    async def f(
        a: int = 3,
        b: Colour = Colour.BLUE,
        c: pathlib.Path = pathlib.Path("x"),
        d: list[int] = [1],  # noqa: B006
        e: Point | None = None,
        g: int = None,  # type: ignore[assignment]  # noqa: RUF013
        h: Point = Point(1),  # noqa: B008
    ) -> None: ...

    shown = {name: schema.get("default", "-") for name, schema in f.parameters["properties"].items()}
    assert shown == {
        "a": 3,
        "b": "blue",
        "c": "x",
        "d": [1],
        "e": None,
        "g": "-",
        "h": {"x": 1, "y": 0, "tags": []},
    }
    assert f.parameters["required"] == []


def test_the_schema_of_parameters_is_closed_and_made_once() -> None:
    @tool
    async def f(a: int) -> None: ...

    assert f.parameters == {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert f.parameters is f.parameters


async def test_functions_get_values_of_their_types() -> None:
    seen: dict[str, Any] = {}

    @tool
    async def f(
        path: pathlib.Path,
        when: dt.datetime,
        colour: Colour,
        point: Point,
        shape: Circle | Square,
        names: dict[int, set[str]],
        span: Span,
        amount: decimal.Decimal = decimal.Decimal(1),
    ) -> None:
        seen.update(locals())

    bound = f.bind(
        {
            "path": "a/b",
            "when": "2026-11-29T10:00:00Z",
            "colour": "red",
            "point": {"x": 1},
            "shape": {"type": "Square", "side": 2},
            "names": {"1": ["x"]},
            "span": [1, 2],
            "amount": 1.5,
        }
    )
    await f.invoke(bound, None)

    assert seen["path"] == pathlib.Path("a/b")
    assert seen["when"] == dt.datetime(2026, 11, 29, 10, tzinfo=dt.UTC)
    assert seen["colour"] is Colour.RED
    assert seen["point"] == Point(1)
    assert seen["shape"] == Square(2.0)
    assert seen["names"] == {1: {"x"}}
    assert seen["span"] == Span(1, 2)
    assert seen["amount"] == decimal.Decimal("1.5")


async def test_a_mutable_default_is_the_very_object_the_function_declared() -> None:
    default = [1]
    seen = []

    @tool
    async def f(values: list[int] = default) -> None:
        seen.append(values)

    await f.invoke(f.bind({}), None)

    assert seen[0] is default


def test_what_the_schema_cannot_express_is_told_in_the_same_form() -> None:
    @tool
    async def f(when: dt.date, path: pathlib.Path) -> None: ...

    with pytest.raises(ToolArgumentsError, match=r"  - when: expected format date\n"):
        f.bind({"when": "2026-13-01", "path": "x"})
    with pytest.raises(ToolArgumentsError, match=r"  - path: expected string, got array\n"):
        f.bind({"when": "2026-12-01", "path": []})

    @tool
    async def g(spans: list[dt.timedelta]) -> None: ...

    with pytest.raises(ToolArgumentsError, match=r"  - spans\.1: invalid ISO8601 duration\n"):
        g.bind({"spans": ["PT1S", "soon"]})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    "annotation", [float, float | None, list[float], dict[str, list[float]], Circle, Any, Annotated[float, Meta(ge=0)]]
)
def test_numbers_that_json_lacks_are_refused_everywhere(annotation: Any, value: float) -> None:
    async def function(value: Any) -> None: ...

    function.__annotations__["value"] = annotation
    checked = tool(function)
    argument: Any = {
        list[float]: [1, value],
        dict[str, list[float]]: {"a": [value]},
        Circle: {"type": "Circle", "r": value},
        Any: [{"deep": value}],
    }.get(annotation, value)

    with pytest.raises(ToolArgumentsError):
        checked.bind({"value": argument})


# -- any signature -----------------------------------------------------------------------------------------------------

Typed = tuple[Any, st.SearchStrategy[Any]]
"""An annotation, and the JSON values for it."""

TEXTS = st.text(max_size=5).filter(lambda text: not text.lstrip().startswith(("[", "{")))
LEAVES: list[Typed] = [
    (int, st.integers()),
    (float, st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)),
    (bool, st.booleans()),
    (str, TEXTS),
    (Colour, st.sampled_from(["red", "blue", "amber"])),
    (Literal["b", "a"], st.sampled_from(["a", "b"])),
    (Annotated[int, Meta(ge=0, le=9)], st.integers(0, 9)),
    (Annotated[str, Meta(max_length=3)], st.text(max_size=3)),
    (Point, st.fixed_dictionaries({"x": st.integers()}, optional={"y": st.integers(), "more": st.booleans()})),
    (Options, st.fixed_dictionaries({"depth": st.integers()}, optional={"order": st.sampled_from(["up", "down"])})),
]


def containers(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    def wrap(typed: Typed, kind: str) -> Typed:
        annotation: Any
        annotation, values = typed
        match kind:
            case "list":
                return list.__class_getitem__(annotation), st.lists(values, max_size=3)
            case "dict":
                return dict.__class_getitem__((str, annotation)), st.dictionaries(
                    st.text(max_size=3), values, max_size=3
                )
            case "tuple":
                return tuple.__class_getitem__((annotation, int)), st.tuples(values, st.integers()).map(list)
            case _:
                return annotation | None, st.none() | values

    return st.builds(wrap, inner, st.sampled_from(["list", "dict", "tuple", "optional"]))


ANNOTATIONS = st.recursive(st.sampled_from(LEAVES), containers, max_leaves=3)
SIGNATURES = st.dictionaries(st.sampled_from("abcd"), st.tuples(ANNOTATIONS, st.booleans()), max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "y", "depth", "k"]), inner),
    max_leaves=4,
)


def tool_with(signature: dict[str, tuple[Typed, bool]]) -> Tool:
    # Parameters that may be left out come last and take their default.
    import inspect

    async def function(**_: Any) -> None: ...

    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=annotation,
            default=None if optional else inspect.Parameter.empty,
        )
        for name, ((annotation, _), optional) in signature.items()
    ]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return tool(function)


@given(st.data(), SIGNATURES)
@settings(max_examples=150, deadline=None)
def test_values_of_the_types_are_valid_and_taken_as_they_are(
    data: st.DataObject, signature: dict[str, tuple[Typed, bool]]
) -> None:
    made = tool_with(signature)
    arguments = {
        name: data.draw(values, name)
        for name, ((_, values), optional) in signature.items()
        if not optional or data.draw(st.booleans())
    }

    assert jsonschema.Draft202012Validator(made.parameters).is_valid(arguments)
    bound = made.bind(arguments)
    assert bound.arguments == arguments
    assert bound.arguments is not arguments


@given(st.data(), SIGNATURES)
@settings(max_examples=150, deadline=None)
def test_what_is_bound_is_valid_and_what_is_valid_is_bound(
    data: st.DataObject, signature: dict[str, tuple[Typed, bool]]
) -> None:
    made = tool_with(signature)
    validator = jsonschema.Draft202012Validator(made.parameters)
    arguments = data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys("abcde", JSON)))
    before = msgspec.json.encode(arguments)

    try:
        bound = made.bind(arguments).arguments
    except ToolArgumentsError:
        assert not validator.is_valid(arguments)
    else:
        assert validator.is_valid(bound)
        if validator.is_valid(arguments):
            assert bound == arguments
    assert msgspec.json.encode(arguments) == before
