from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, assert_type

import pytest
import trio

from trio_agent._errors import ToolDefinitionError
from trio_agent._messages import TextContent
from trio_agent._tools import Tool, ToolContext, tool
from trio_agent._toolset import Toolset, collect_tools


class Notes(Toolset):
    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.written: list[str] = []

    @tool
    async def write(self, text: str) -> str:
        """Write a note.

        Args:
            text: of the note.
        """
        self.written.append(text)
        return f"noted for {self.owner}"

    @tool(name="read_all")
    async def read(self, ctx: ToolContext) -> list[str]:
        return self.written

    @tool
    @staticmethod
    async def version() -> int:
        return 1

    @tool
    @classmethod
    async def kind(cls) -> str:
        return cls.__name__

    async def helper(self) -> None: ...


async def run(made: Tool, **arguments: Any) -> str:
    result = await made.invoke(made.bind(arguments), None)
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text


async def test_methods_are_tools_that_share_the_object() -> None:
    notes = Notes("Ada")
    write, read, version, kind = notes.tools

    assert [each.name for each in notes.tools] == ["write", "read_all", "version", "kind"]
    assert list(write.parameters["properties"]) == ["text"]
    assert await run(write, text="a") == "noted for Ada"
    assert await run(read) == '["a"]'
    assert await run(version) == "1"
    assert await run(kind) == "Notes"
    assert read.needs_context


async def test_objects_do_not_share_state_but_share_declarations() -> None:
    ada, bob = Notes("Ada"), Notes("Bob")

    await run(ada.tools[0], text="a")

    assert (ada.written, bob.written) == (["a"], [])
    assert ada.tools is ada.tools
    assert ada.tools[0].declaration is bob.tools[0].declaration


async def test_a_method_can_be_called_as_such() -> None:
    notes = Notes("Ada")

    assert assert_type(await notes.write("a"), str) == "noted for Ada"
    assert await run(notes.write, text="b") == "noted for Ada"
    assert notes.written == ["a", "b"]


def test_a_prefix_tells_sets_apart() -> None:
    class Mine(Notes, prefix="my_"): ...

    theirs = Mine("Bob")
    theirs.prefix = "their_"

    names = [each.name for each in collect_tools([Mine("Ada"), theirs])]

    assert names[:2] == ["my_write", "my_read_all"]
    assert names[4:6] == ["their_write", "their_read_all"]


def test_subclasses_add_replace_and_remove_tools() -> None:
    class More(Notes):
        @tool
        async def write(self, text: str, title: str) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
            return title

        @tool
        async def erase(self) -> None: ...

        version = None  # type: ignore[assignment]

    assert [each.name for each in More("Ada").tools] == ["write", "read_all", "kind", "erase"]
    assert list(More("Ada").tools[0].parameters["properties"]) == ["text", "title"]


def test_an_override_that_is_no_tool_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match=r"Forgetful\.write replaces a tool .* decorate it with @tool"):

        class Forgetful(Notes):  # pyright: ignore[reportUnusedClass]
            async def write(self, text: str) -> str:  # type: ignore[override]
                return text


@tool
async def write(text: str) -> str:
    return text


def test_two_tools_of_one_name_are_refused_with_both_places() -> None:
    with pytest.raises(ToolDefinitionError) as raised:
        collect_tools([Notes("Ada"), write])

    assert str(raised.value) == (
        "two tools are named 'write': test_tools_toolset.Notes.write and test_tools_toolset.write; "
        "rename one with @tool(name=...) or give its Toolset a prefix"
    )


def test_functions_are_made_tools_and_the_same_tool_counts_once() -> None:
    async def plain(a: int) -> None: ...

    assert [each.name for each in collect_tools([plain, write, write])] == ["plain", "write"]


def test_a_method_without_its_object_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="is a method without its object"):
        collect_tools([Notes.write])


# -- resources -----------------------------------------------------------------------------------------------------


class Opened(Toolset):
    def __init__(self) -> None:
        self.log: list[str] = []
        self.failing: type[BaseException] | None = None

    async def open_resources(self, resources: AsyncExitStack) -> None:
        await resources.enter_async_context(self._resource("a"))
        await resources.enter_async_context(self._resource("b"))
        if self.failing is not None:
            raise self.failing

    @asynccontextmanager
    async def _resource(self, name: str) -> AsyncGenerator[None]:
        self.log.append(f"open {name}")
        try:
            yield
        finally:
            self.log.append(f"close {name}")

    @tool
    async def use(self) -> bool:
        return self.is_open


async def test_resources_are_open_inside_the_block() -> None:
    opened = Opened()

    async with opened as entered:
        assert entered is opened
        assert await run(opened.use) == "true"
        assert opened.log == ["open a", "open b"]
    assert opened.log[2:] == ["close b", "close a"]
    assert not opened.is_open


async def test_resources_are_closed_when_the_block_fails_or_is_cancelled() -> None:
    failed, cancelled = Opened(), Opened()

    with pytest.raises(ZeroDivisionError):
        async with failed:
            raise ZeroDivisionError
    with trio.CancelScope() as scope:
        async with cancelled:
            scope.cancel()
            await trio.sleep_forever()

    assert failed.log[2:] == cancelled.log[2:] == ["close b", "close a"]


async def test_what_was_opened_is_closed_when_opening_fails() -> None:
    opened = Opened()
    opened.failing = ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await opened.__aenter__()

    assert opened.log == ["open a", "open b", "close b", "close a"]
    assert not opened.is_open


async def test_a_set_is_opened_once_and_can_be_opened_again() -> None:
    opened = Opened()

    async with opened:
        with pytest.raises(RuntimeError, match="open it once, around all agents that use it"):
            await opened.__aenter__()
    async with opened:
        assert opened.is_open


async def test_a_nursery_can_be_a_resource() -> None:
    class Watcher(Toolset):
        async def open_resources(self, resources: AsyncExitStack) -> None:
            nursery = await resources.enter_async_context(trio.open_nursery())
            resources.callback(nursery.cancel_scope.cancel)
            nursery.start_soon(trio.sleep_forever)

        @tool
        async def watch(self) -> None: ...

    before = trio.lowlevel.current_statistics().tasks_living

    async with Watcher():
        assert trio.lowlevel.current_statistics().tasks_living > before
    assert trio.lowlevel.current_statistics().tasks_living == before


async def test_a_set_without_resources_can_be_opened_like_any_other() -> None:
    async with Notes("Ada") as notes:
        assert notes.is_open
