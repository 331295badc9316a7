from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any, assert_type

import pytest
import trio

from trio_agent._errors import ToolDefinitionError
from trio_agent._tools import Tool, ToolContext, tool

SCHEMA: dict[str, Any] = {"type": "object"}


async def execute(arguments: dict[str, Any], ctx: ToolContext) -> str:
    return "done"


def test_a_tool_is_named_and_described_by_its_function() -> None:
    @tool
    async def read_file(path: str) -> str:
        """Read a file.

        Args:
            path: where it is.
        """
        return path

    assert read_file.name == "read_file"
    assert read_file.declaration.name == "read_file"
    assert read_file.declaration.description == "Read a file."
    assert read_file.declaration.parameters is read_file.parameters
    assert repr(read_file).startswith("<Tool 'read_file' from ")


def test_options_win_over_what_the_function_says() -> None:
    limiter = trio.CapacityLimiter(2)

    @tool(
        name="read",
        description="Reads.",
        label="Read a file",
        timeout=2.5,
        limiter=limiter,
        execution_mode="exclusive",
        terminate=True,
        max_result_chars=10,
        output_schema={"type": "string"},
    )
    async def read_file(path: str) -> str:
        """Read a file."""
        return path

    assert (read_file.name, read_file.description, read_file.label) == ("read", "Reads.", "Read a file")
    assert (read_file.timeout, read_file.limiter, read_file.execution_mode) == (2.5, limiter, "exclusive")
    assert (read_file.terminate, read_file.max_result_chars) == (True, 10)
    assert read_file.output_schema == {"type": "string"}


def test_a_declaration_is_the_same_object_each_time() -> None:
    made = Tool(name="t", parameters=SCHEMA, execute=execute)

    assert made.declaration is made.declaration


async def test_a_tool_can_be_called_like_its_function() -> None:
    @tool
    async def add(a: int, b: int = 1) -> int:
        return a + b

    @tool(label="Double")
    def double(a: int) -> int:
        return 2 * a

    assert assert_type(await add(1, b=2), int) == 3
    assert assert_type(double(2), int) == 4
    assert await Tool(name="t", parameters=SCHEMA, execute=execute)({}, None) == "done"  # type: ignore[arg-type]


async def test_callable_objects_methods_and_partials_are_tools() -> None:
    class HTTPFetcher:
        """Fetches."""

        async def __call__(self, url: str) -> str:
            return f"<{url}>"

        async def head(self, url: str) -> str:
            """Fetch the head."""
            return f"head of {url}"

    async def search(key: str, query: str) -> str:
        """Search."""
        return f"{key}:{query}"

    fetch = tool(HTTPFetcher())
    head = tool(HTTPFetcher().head)
    partial = tool(functools.partial(search, "k"))

    assert (fetch.name, fetch.description) == ("httpfetcher", "Fetches.")
    assert (head.name, head.description, list(head.parameters["properties"])) == ("head", "Fetch the head.", ["url"])
    assert (partial.name, partial.description) == ("search", "Search.")
    assert (await fetch.invoke(fetch.bind({"url": "x"}), None)).content[0].text == "<x>"  # type: ignore[union-attr]
    assert (await head.invoke(head.bind({"url": "x"}), None)).content[0].text == "head of x"  # type: ignore[union-attr]
    assert (await partial.invoke(partial.bind({"query": "x"}), None)).content[0].text == "k:x"  # type: ignore[union-attr]


def test_a_renamed_tool_differs_in_its_name_only() -> None:
    @tool(timeout=3)
    async def read(path: str) -> str:
        return path

    renamed = read.renamed("files_read")

    assert (renamed.name, renamed.declaration.name, renamed.timeout) == ("files_read", "files_read", 3)
    assert renamed.parameters is read.parameters
    with pytest.raises(Exception, match='Validation failed for tool "files_read"'):
        renamed.bind({})
    assert read.name == "read"


async def generator(a: int) -> AsyncIterator[int]:
    yield a


class Reader:
    async def read(self, path: str) -> str:
        return path


def plain(a: int) -> int:
    return a


async def coroutine(a: int) -> int:
    return a


@pytest.mark.parametrize(
    ("define", "advice"),
    [
        (lambda: tool("read"), "write @tool(name='read')"),  # type: ignore[call-overload]
        (lambda: tool(Reader), "decorate its methods"),
        (lambda: tool(3), "a tool is made of a function"),  # type: ignore[call-overload]
        (lambda: tool(generator), "report progress with `await ctx.update(...)`"),
        (lambda: tool(tool(coroutine)), "remove one @tool"),
        (lambda: tool(lambda: None), "such as tool(name='read_file')"),
        (lambda: tool(name="read file")(coroutine), "letters a-z and A-Z, digits"),
        (lambda: tool(name="x" * 65)(coroutine), "1 to 64"),
        (lambda: tool(name="")(coroutine), "1 to 64"),
        (lambda: tool(timeout=0)(coroutine), "leave it out for no limit"),
        (lambda: tool(timeout=-1)(coroutine), "more than 0 seconds"),
        (lambda: tool(timeout="3")(coroutine), "more than 0 seconds"),  # type: ignore[call-overload]
        (lambda: tool(limiter=3)(coroutine), "write limiter=trio.CapacityLimiter("),  # type: ignore[call-overload]
        (lambda: tool(execution_mode="serial")(coroutine), "'sequential'"),  # type: ignore[call-overload]
        (lambda: tool(cancellable="maybe")(plain), "'cooperative'"),  # type: ignore[call-overload]
        (lambda: tool(cancellable=False)(coroutine), "trio.CancelScope(shield=True)"),
        (lambda: tool(max_result_chars=0)(coroutine), "None is for no bound"),
        (lambda: tool(output_schema={"type": "objekt"})(coroutine), "output_schema: no valid JSON Schema"),
        (lambda: Tool(name="t", parameters=SCHEMA, execute="x"), "cannot be called"),  # type: ignore[arg-type]
        (lambda: Tool(name="t", parameters=SCHEMA, execute=generator), "yields"),
        (lambda: Tool(name="a.b", parameters=SCHEMA, execute=execute), "is no name for a tool"),
    ],
)
def test_mistakes_in_a_definition_are_told_with_what_to_do(define: Callable[[], object], advice: str) -> None:
    with pytest.raises(ToolDefinitionError) as raised:
        define()

    assert advice in str(raised.value)


def test_a_tool_cannot_be_changed() -> None:
    made = Tool(name="t", parameters=SCHEMA, execute=execute)

    with pytest.raises(AttributeError):
        made.timeout = 3  # type: ignore[misc]


# -- strict schemas ----------------------------------------------------------------------------------------------------


def test_strict_parameters_are_closed_and_all_required() -> None:
    @tool(strict=True)
    async def search(query: str, limit: int = 10, order: str | None = None) -> None: ...

    assert search.declaration.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": ["integer", "null"]},
            "order": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["query", "limit", "order"],
        "additionalProperties": False,
    }
    assert search.declaration.strict
    assert search.parameters["required"] == ["query"]


async def test_null_for_what_strictness_made_required_means_left_out() -> None:
    seen = []

    @tool(strict=True)
    async def search(query: str, limit: int = 10) -> None:
        seen.append(limit)

    await search.invoke(search.bind({"query": "x", "limit": None}), None)

    assert seen == [10]


def test_strictness_goes_into_lists_references_and_enums() -> None:
    strict = Tool(
        name="t",
        parameters={
            "type": "object",
            "properties": {
                "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
                "mode": {"type": "string", "enum": ["a"], "default": "a"},
                "free": {"description": "anything"},
            },
            "$defs": {"item": {"type": "object", "properties": {"n": {"const": 1}}}},
        },
        execute=execute,
        strict=True,
    ).declaration.parameters

    assert strict["$defs"]["item"]["required"] == ["n"]
    assert strict["$defs"]["item"]["properties"]["n"] == {"anyOf": [{"const": 1}, {"type": "null"}]}
    assert strict["properties"]["mode"] == {"type": ["string", "null"], "enum": ["a", None]}
    assert strict["properties"]["items"]["type"] == ["array", "null"]


def test_an_object_with_free_keys_cannot_be_strict() -> None:
    @tool(strict=True)
    async def f(options: dict[str, str]) -> None: ...

    with pytest.raises(ToolDefinitionError, match=r"root\.options has free keys; declare its properties"):
        _ = f.declaration


# -- cost --------------------------------------------------------------------------------------------------------------


def test_function_tools_that_are_called_as_declared_do_not_load_jsonschema() -> None:
    program = (
        "import sys\n"
        "from trio_agent._tools import tool\n"
        "@tool\n"
        "async def f(a: int, b: str | None = None) -> int: ...\n"
        "f.declaration, f.bind({'a': 1}), f.bind({'a': '1', 'b': None})\n"
        "print({name.partition('.')[0] for name in sys.modules} & {'jsonschema', 'httpx'})\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603

    assert done.stdout == "set()\n"
