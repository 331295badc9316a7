"""CallState: where one tool call stands, and the results that are not its tool's.

What each step of a call needs to know of the steps before it. Who does the steps is above.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import trio

from trio_agent._agent_events import ToolResult
from trio_agent._messages import JsonObject, ToolCall, ToolResultMessage
from trio_agent._slots import Slots
from trio_agent._tools import BoundArguments, Tool
from trio_agent._transcript import text_content

__all__ = ["ABORTED", "CallState", "UpdateFn", "error_result"]

UpdateFn = Callable[["CallState", ToolResult], Awaitable[None]]


def error_result(text: str, *, terminate: bool = False) -> ToolResult:
    """The result of a call that failed; the text is for the model.

    The result's own flag is the tool's word, so it is not set: that the call failed is said of the call.
    """
    return ToolResult(text_content(text), {}, terminate=terminate)


ABORTED: Final = error_result("Operation aborted")


class CallState(msgspec.Struct):
    """Where one call stands.

    ``result`` is ``None`` until the call is over; then it is what the model gets, and ``is_error`` says whether the
    call failed. ``duration_ms`` is set if the tool ran.
    """

    call: ToolCall
    tool: Tool | None
    index: int = 0
    bound: BoundArguments | None = None
    hook_arguments: JsonObject | None = None
    result: ToolResult | None = None
    is_error: bool = False
    started_at: float | None = None
    duration_ms: float | None = None
    scope: trio.CancelScope | None = None
    slots: Slots | None = None
    update: UpdateFn | None = None
    cancel_requested: bool = False
    announced: bool = False
    prepared: bool = False
    ended: bool = False
    recorded: bool = False

    def fail(self, text: str, *, terminate: bool = False) -> None:
        """End the call with an error result."""
        self.end(error_result(text, terminate=terminate), is_error=True)

    def end(self, result: ToolResult, *, is_error: bool) -> None:
        """End the call."""
        self.result = result
        self.is_error = is_error

    def interrupt(self) -> None:
        """End the call as aborted, unless it has its result already."""
        if self.result is None:
            self.end(
                ABORTED if not self.left_in_thread else error_result(self.stopped("Operation aborted")), is_error=True
            )
            self.stop_clock()

    @property
    def left_in_thread(self) -> bool:
        """Whether the body, if it is stopped now, is abandoned in its thread."""
        tool = self.tool
        return tool is not None and tool.in_thread and tool.cancellable is True and self.started_at is not None

    def stopped(self, text: str) -> str:
        """The text of a result that says how the call was stopped."""
        return f"{text}; the work may still be going on in its thread" if self.left_in_thread else text

    def release_slots(self) -> None:
        """Give back what the call holds of limiters."""
        if self.slots is not None:
            self.slots.release()

    def stop_clock(self) -> None:
        if self.started_at is not None and self.duration_ms is None:
            self.duration_ms = round((trio.current_time() - self.started_at) * 1000)

    def message(self, timestamp: int) -> ToolResultMessage:
        """The transcript's record of the result."""
        result = self.result
        assert result is not None
        call = self.call
        return ToolResultMessage(
            tool_call_id=call.id,
            tool_name=call.name,
            content=result.content if type(result.content) is tuple else text_content(str(result.content)),
            is_error=self.is_error,
            timestamp=timestamp,
            details=result.details,
            usage=result.usage,
            duration_ms=self.duration_ms,
        )
