from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from msgspec import Meta

from trio_agent._errors import ToolDefinitionError
from trio_agent._tools import ToolContext, tool

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForCheckers


@dataclass
class Left:
    x: int


@dataclass
class Right:
    x: int


class Pairs(Enum):
    a = (1, 2)


async def unannotated(a, b: int) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
async def positional_only(a: int, /) -> None: ...
async def many_values(*values: int) -> None: ...
async def many_keywords(**options: int) -> None: ...
async def callback(done: Callable[[], None]) -> None: ...
async def anything(value: object) -> None: ...
async def iterable(values: Iterable[int]) -> None: ...
async def number(value: complex) -> None: ...
async def alternatives(shape: Left | Right) -> None: ...
async def only_for_checkers(value: OnlyForCheckers) -> None: ...
async def unknown(value: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821
async def no_type(value: 5) -> None: ...  # type: ignore[valid-type]
async def pairs(value: Pairs) -> None: ...
async def two_contexts(a: ToolContext, b: ToolContext) -> None: ...


@pytest.mark.parametrize(
    ("function", "parameter", "advice"),
    [
        (unannotated, "a", "annotate it, such as `a: str`"),
        (positional_only, "a", "remove the '/'"),
        (many_values, "values", "make it one list, such as `items: list[str]`"),
        (many_keywords, "options", "make it one dict"),
        (callback, "done", "use JSON's own types"),
        (anything, "value", "use JSON's own types"),
        (iterable, "values", "use JSON's own types, list"),
        (number, "value", "use JSON's own types"),
        (alternatives, "shape", "msgspec.Struct classes with `tag=True`"),
        (only_for_checkers, "value", "not under TYPE_CHECKING"),
        (unknown, "value", "define or import that name at module level"),
        (no_type, "value", "use JSON's own types"),
        (pairs, "value", "either all str or all int"),
        (two_contexts, "b", "remove it"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_cannot_be_a_parameter_is_refused_at_definition(
    function: Callable[..., Any], parameter: str, advice: str
) -> None:
    with pytest.raises(ToolDefinitionError) as raised:
        tool(function)

    assert f"tool {function.__name__!r}: parameter {parameter!r}" in str(raised.value)
    assert advice in str(raised.value)


def test_a_builtin_without_signature_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="wrap it in a function"):
        tool(dict.update)


def test_the_context_is_found_by_annotation_and_hidden() -> None:
    @tool
    async def anywhere(a: int, environment: ToolContext, b: int) -> None: ...

    @tool
    async def optional(a: int, ctx: ToolContext | None = None) -> None: ...

    @tool
    async def annotated(a: int, ctx: Annotated[ToolContext, "of the call"]) -> None: ...

    assert list(anywhere.parameters["properties"]) == ["a", "b"]
    assert list(optional.parameters["properties"]) == ["a"]
    assert list(annotated.parameters["properties"]) == ["a"]
    assert anywhere.needs_context
    assert optional.needs_context


def test_the_context_may_be_imported_for_type_checkers_only() -> None:
    namespace: dict[str, Any] = {}
    source = "async def f(a: int, ctx: ToolContext) -> None: ..."
    exec(compile(f"from __future__ import annotations\n{source}", "module", "exec"), namespace)  # noqa: S102

    assert list(tool(namespace["f"]).parameters["properties"]) == ["a"]


def test_classes_defined_beside_the_function_are_found() -> None:
    @dataclass
    class Local:
        x: int

    @tool
    async def bare(value: Local) -> None: ...

    @tool(name="other")
    async def with_options(value: Local) -> None: ...

    assert bare.parameters["properties"]["value"]["properties"] == {"x": {"type": "integer"}}
    assert with_options.parameters == bare.parameters


def test_a_tool_named_like_a_type_does_not_stand_for_it() -> None:
    class Files:
        @tool
        async def list(self, where: str) -> None: ...

        @tool
        async def remove(self, paths: list[str]) -> None: ...  # type: ignore[valid-type]

    assert Files.remove.parameters["properties"]["paths"] == {"type": "array", "items": {"type": "string"}}


def test_what_a_partial_has_filled_in_is_not_shown_to_the_model() -> None:
    async def search(key: str, query: str, limit: int = 10) -> str:
        return f"{key} {query} {limit}"

    with_key = tool(functools.partial(search, key="secret"))

    assert list(with_key.parameters["properties"]) == ["query", "limit"]
    assert "secret" not in repr(with_key.declaration)
    assert list(tool(functools.partial(search, "secret")).parameters["properties"]) == ["query", "limit"]


def test_texts_come_from_the_annotation_or_else_from_the_docstring() -> None:
    @tool
    async def move(x: Annotated[int, "to the right"], y: Annotated[int, Meta(description="up", ge=0)], z: int) -> None:
        """Move.

        Args:
            x: not used
            y: not used
            z: forth
        """

    properties = move.parameters["properties"]
    assert move.description == "Move."
    assert properties["x"] == {"type": "integer", "description": "to the right"}
    assert properties["y"] == {"type": "integer", "minimum": 0, "description": "up"}
    assert properties["z"] == {"type": "integer", "description": "forth"}


def test_wrapped_functions_keep_their_signature() -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @tool
    @logged
    async def add(a: int, b: int = 1) -> int:
        """Add."""
        return a + b

    assert add.name == "add"
    assert add.parameters["required"] == ["a"]
    assert not add.in_thread
