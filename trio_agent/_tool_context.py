"""What the body of a tool sees of the run that called it. The loop makes it; tools only hold it."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias, final

import msgspec
import trio

from trio_agent._agent_events import ToolResult
from trio_agent._messages import JsonObject
from trio_agent._results import ResultRules

if TYPE_CHECKING:
    from trio_agent._transcript import Context

__all__ = ["ToolContext", "ToolOutcome", "UpdateCallback"]

UpdateCallback: TypeAlias = Callable[[ToolResult], Awaitable[None] | None]

_PARTIAL: Final = ResultRules("")


class ToolOutcome(msgspec.Struct, frozen=True):
    """What became of a nested call.

    Attributes:
        result: the result, after the hooks.
        is_error: the call failed.
        duration_ms: how long the tool ran, in milliseconds; ``None`` when it did not run.
    """

    result: ToolResult
    is_error: bool
    duration_ms: float | None


@final
class ToolContext:
    """What the body of a tool sees of the run that called it. Made by the loop, one for each call.

    A function gets it by a parameter with this annotation, which the model does not see.

    Attributes:
        tool_call_id: of the call.
        tool_name: as the model wrote it.
        agent_context: the messages and tools of the run, read-only.
        thread_limiter: what worker threads of ``def`` tools count against; ``None`` for the library's own limiter.
    """

    __slots__ = (
        "_call_tool",
        "_deadline",
        "_nested",
        "_update",
        "agent_context",
        "thread_limiter",
        "tool_call_id",
        "tool_name",
    )

    def __init__(
        self,
        *,
        tool_call_id: str,
        tool_name: str,
        agent_context: Context,
        update: Callable[[ToolResult], Awaitable[None]],
        call_tool: Callable[[str, JsonObject, str, UpdateCallback | None], Awaitable[ToolOutcome]],
        thread_limiter: trio.CapacityLimiter | None = None,
    ) -> None:
        self.tool_call_id = tool_call_id
        self.tool_name = tool_name
        self.agent_context = agent_context
        self.thread_limiter = thread_limiter
        self._update = update
        self._call_tool = call_tool
        self._nested = 0
        self._deadline = math.inf

    async def update(self, partial: ToolResult | str, /) -> None:
        """Report progress; comes back when all listeners have handled it. A checkpoint.

        After the tool has returned it does nothing. In a ``def`` tool: ``trio.from_thread.run(ctx.update, "half")``.

        Args:
            partial: what there is so far, as a text or in the form of a result.
        """
        await self._update(_PARTIAL.result(partial))

    async def call_tool(
        self,
        name: str,
        arguments: JsonObject | None = None,
        *,
        call_id: str | None = None,
        on_update: UpdateCallback | None = None,
    ) -> ToolOutcome:
        """Call another tool of the run, through the same steps, hooks and limits, without events or messages.

        Whatever goes wrong in it is in the outcome; only a cancellation comes out as an exception. A checkpoint.

        Args:
            name: of the tool.
            arguments: for it; not modified.
            call_id: of the nested call; by default one is made from that of this call.
            on_update: is given what the nested call reports.
        """
        self._nested += 1
        if call_id is None:
            call_id = f"{self.tool_call_id}.{self._nested}"
        return await self._call_tool(name, {} if arguments is None else arguments, call_id, on_update)

    @property
    def deadline(self) -> float:
        """When the call will be cancelled, on Trio's clock: the nearest deadline of tool, run and caller.

        In a worker thread, what it was when the thread was started.
        """
        try:
            return trio.current_effective_deadline()
        except RuntimeError:
            return self._deadline

    def note_deadline(self) -> None:
        """Keep the deadline for a thread that is about to be started; for the library."""
        self._deadline = trio.current_effective_deadline()
