"""Gate: a tool that waits for the test."""

from __future__ import annotations

from typing import Any

import trio

from trio_agent._messages import JsonObject
from trio_agent._tools import Tool, ToolContext

__all__ = ["Gate"]


class Gate:
    """A tool whose calls wait until the test opens it.

    Args:
        name: of the tool.
        result: of every call.

    Attributes:
        tool: for the agent.
        entered: the ids of the calls that have entered the body, in order.
        cancelled: the ids of the calls that were cancelled while they waited.
    """

    def __init__(self, name: str = "gate", result: object = "open") -> None:
        self.tool = Tool(
            name=name,
            description="Waits for the test.",
            parameters={"type": "object", "properties": {}},
            execute=self._wait,
        )
        self.entered: list[str] = []
        self.cancelled: list[str] = []
        self._result = result
        self._opened = trio.Event()
        self._changed = trio.Event()

    def open(self) -> None:
        """Let all calls through, now and from now on."""
        self._opened.set()

    async def wait_entered(self, count: int = 1) -> None:
        """Wait until so many calls have entered the body."""
        await trio.lowlevel.checkpoint()
        while len(self.entered) < count:
            await self._changed.wait()

    async def _wait(self, _arguments: JsonObject, ctx: ToolContext) -> Any:  # noqa: ANN401
        self.entered.append(ctx.tool_call_id)
        self._changed.set()
        self._changed = trio.Event()
        try:
            await self._opened.wait()
        except trio.Cancelled:
            self.cancelled.append(ctx.tool_call_id)
            raise
        return self._result
