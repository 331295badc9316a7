"""AgentRun: a run of an agent that is watched, as a block that owns it.

The run is a task in a nursery that the block opens; the body of the block is the watcher. When the block is left early
the run is aborted, and in any case it has settled when the block is over. ``_nursery`` says which exception comes out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, final

import trio

from trio_agent._abort import AbortHandle
from trio_agent._agent_events import AgentEvent
from trio_agent._agent_state import RunResult
from trio_agent._errors import AgentError
from trio_agent._event_stream import EventStream, Place
from trio_agent._loop import Run
from trio_agent._messages import AgentMessage, AssistantMessage
from trio_agent._nursery import NurseryManager, leave_nursery
from trio_agent._stream_fn import Connected

__all__ = ["ActiveRun", "AgentRun"]


class ActiveRun:
    """The run that an agent has on.

    Attributes:
        run: the loop's.
        prompts: it begins with these; ``None`` for what is queued, or for the transcript as it is.
        handle: aborts it.
        connected: what asks the model, if it has connections to keep.
        over: set when its last handler has returned.
        place: of its task, once it is there.
    """

    __slots__ = ("connected", "handle", "over", "place", "prompts", "run")

    def __init__(
        self, run: Run, prompts: list[AgentMessage] | None, handle: AbortHandle, connected: Connected | None
    ) -> None:
        self.run = run
        self.prompts = prompts
        self.handle = handle
        self.connected = connected
        self.over = trio.Event()
        self.place: Place | None = None


@final
class AgentRun:
    """One run, watched: ``async with agent.run("...") as run: async for event in run: ...``. Made by ``Agent.run``.

    The body of the loop handles the event: the run stands until the next one is asked for or the block is left. A run
    that is not iterated stands at its first event. Leaving the block early aborts the run and waits until it has
    settled, so that after the block no task of it is left and its transcript is closed.

    Raises:
        AgentBusyError: on entering, if another run is on.
        Exception: on leaving, what a listener or hook raised, bare.
    """

    def __init__(
        self,
        claim: Callable[[AbortHandle], ActiveRun],
        drive: Callable[[ActiveRun], Awaitable[RunResult]],
        stream: EventStream,
    ) -> None:
        self._claim = claim
        self._drive = drive
        self._stream = stream
        self._active: ActiveRun | None = None
        self._handle = AbortHandle()
        self._nursery_manager: NurseryManager | None = None
        self._result: RunResult | None = None
        self._error: Exception | None = None

    @property
    def result(self) -> RunResult:
        """What the run has done; available when it is over.

        Raises:
            AgentError: it is not over, or failed.
        """
        if self._result is None:
            raise AgentError("the run has no result: it is not over yet, or it failed; read it after the block")
        return self._result

    @property
    def partial_message(self) -> AssistantMessage | None:
        """The answer that is being streamed, as it is now; ``None`` between answers."""
        return None if self._active is None else self._active.run.partial_message

    def abort(self) -> None:
        """Stop the run in order; see ``Agent.abort``."""
        self._handle.abort()

    def cancel_tool(self, call_id: str) -> None:
        """Cancel one tool call; its siblings and the run go on. Never blocks, no checkpoint.

        The call gets an error result that says so. Works also while the call waits for a slot; does nothing to a call
        that is over.

        Raises:
            KeyError: the run has no such call.
        """
        if self._active is None:
            raise KeyError(call_id)
        self._active.run.cancel_tool(call_id)

    async def __aenter__(self) -> AgentRun:
        await trio.lowlevel.checkpoint()
        if self._active is not None:
            raise RuntimeError("a run can be entered only once; call agent.run() again for another one")
        self._active = self._claim(self._handle)
        self._stream.open()
        self._nursery_manager = trio.open_nursery()
        nursery = await self._nursery_manager.__aenter__()
        nursery.start_soon(self._run, self._active)
        return self

    def __aiter__(self) -> AgentRun:
        if self._active is None:
            raise RuntimeError("enter the run first: async with agent.run(...) as run: async for event in run: ...")
        return self

    def __anext__(self) -> Coroutine[Any, Any, AgentEvent]:
        return self._stream.__anext__()

    async def _run(self, active: ActiveRun) -> None:
        try:
            self._result = await self._drive(active)
        except Exception as exc:  # noqa: BLE001  # raised when the block is left
            self._error = exc
        finally:
            self._stream.finish()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._nursery_manager is not None
        self._stream.close()
        self._handle.abort()
        # Not shielded: the run closes within its own grace, and the nursery waits for no one else.
        await leave_nursery(self._nursery_manager, exc, lambda: self._error)  # noqa: ASYNC102
