"""Tool sets: classes whose methods are tools and share state and resources, and the collecting of tools of all kinds.

The agent is above: it opens the sets it is given for its own life, and takes their tools through ``collect_tools``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from functools import cached_property
from types import TracebackType
from typing import Any, Self, TypeAlias, cast

from trio_agent._errors import ToolDefinitionError
from trio_agent._tools import Tool, tool

__all__ = ["AnyTool", "Toolset", "collect_tools"]


class Toolset:
    """Base of a class whose methods are tools.

    Methods decorated with ``@tool`` are its tools, in the order in which they are defined; ``self`` is not shown to the
    model. Resources are acquired in ``open_resources`` and released on every path when the block is left, in reverse
    order::

        class Files(Toolset, prefix="files_"):
            async def open_resources(self, resources: AsyncExitStack) -> None:
                self._connection = await resources.enter_async_context(connect())

            @tool
            async def read(self, path: str) -> str:
                return await self._connection.read(path)

    An agent that is used with ``async with`` opens its sets for that time, any other for each run. To share one between
    agents, open it yourself around them: who opens it closes it.

    Attributes:
        prefix: put before the name of each tool, to tell two sets or two objects of one class apart. Given with the
            class, or set on the object before its tools are first asked for.
    """

    prefix: str = ""

    _resources: AsyncExitStack | None = None

    def __init_subclass__(cls, *, prefix: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if prefix is not None:
            cls.prefix = prefix
        _tool_names(cls)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, bound to this object; the same objects each time."""
        return self._tools

    @cached_property
    def _tools(self) -> tuple[Tool, ...]:
        bound = [getattr(self, name) for name in _tool_names(type(self))]
        return tuple([each.renamed(self.prefix + each.name) if self.prefix else each for each in bound])

    @property
    def is_open(self) -> bool:
        """Whether its resources are there."""
        return self._resources is not None

    async def open_resources(self, resources: AsyncExitStack) -> None:
        """Acquire what the tools need; for subclasses. If it fails or is cancelled, what it has entered is closed.

        Args:
            resources: takes async context managers and callbacks, and closes them in reverse order.
        """

    async def __aenter__(self) -> Self:
        if self._resources is not None:
            raise RuntimeError(f"{type(self).__name__} is open already; open it once, around all agents that use it")
        async with AsyncExitStack() as resources:
            await self.open_resources(resources)
            self._resources = resources.pop_all()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        resources, self._resources = self._resources, None
        if resources is None:
            return None
        return await resources.__aexit__(exc_type, exc, traceback)  # noqa: ASYNC102  # the set's to bound


AnyTool: TypeAlias = Tool | Toolset | Callable[..., Any]
"""What can be given to an agent: a tool, a set of them, or a function to make one of."""


def collect_tools(given: Iterable[AnyTool]) -> tuple[Tool, ...]:
    """All tools of an agent, in order.

    Raises:
        ToolDefinitionError: two have the same name, or something is no tool.
    """
    collected: dict[str, Tool] = {}
    for item in given:
        for each in _tools_of(item):
            if each.is_unbound:
                raise ToolDefinitionError(
                    f"{each!r} is a method without its object; "
                    "give the method of an object, or the object itself if it is a Toolset"
                )
            other = collected.setdefault(each.name, each)
            if other is not each:
                raise ToolDefinitionError(
                    f"two tools are named {each.name!r}: {other.origin} and {each.origin}; "
                    "rename one with @tool(name=...) or give its Toolset a prefix"
                )
    return tuple(collected.values())


def _tools_of(item: AnyTool) -> tuple[Tool, ...]:
    if isinstance(item, Toolset):
        return item.tools
    return (cast("Tool", item) if isinstance(item, Tool) else tool(item),)


def _tool_names(cls: type) -> list[str]:
    # The attributes that are tools, in the order in which they were first defined, base classes first.
    names: dict[str, Tool] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, Tool):
                names[name] = value
            elif name in names:
                if value is not None:
                    raise ToolDefinitionError(
                        f"{cls.__name__}.{name} replaces a tool but is none; decorate it with @tool, or set it to None "
                        "to take the tool away"
                    )
                del names[name]
    return list(names)
