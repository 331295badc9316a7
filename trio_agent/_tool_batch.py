"""The tool calls of one answer: prepared in source order, run together, reported as they end, recorded in source order.

Who does what. The run's own task prepares, sends every event and records; it is never inside a tool. Tools run in tasks
of the run's ``ToolTasks``. What they have to say (an end, an update) goes into ``_news`` and wakes the run's task,
which pumps until no tool of the batch is at work. A call that is alone and whose tool has no context to talk back with
needs none of this: it runs in the run's own task, in a context of its own.

When a run is stopped, the states say what is still owed: ``wind_up`` sends it after an abort, ``settle`` writes it into
the transcript at once after anything else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from operator import itemgetter
from typing import Literal, Protocol, TypeAlias

import trio

from trio_agent._admission import Admission
from trio_agent._agent_events import (
    AgentEvent,
    MessageEnd,
    MessageStart,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    ToolResult,
)
from trio_agent._call_state import ABORTED, CallState
from trio_agent._messages import AgentMessage, ToolCall, ToolResultMessage
from trio_agent._own_context import InOwnContext
from trio_agent._tool_call import ToolRunner
from trio_agent._tool_tasks import ToolTasks

__all__ = ["ToolBatch", "ToolExecutionMode"]

ToolExecutionMode: TypeAlias = Literal["parallel", "sequential"]


class RunPort(Protocol):
    """What a batch asks of the run it belongs to.

    Attributes:
        cuttable: whether the run's task waits for something that an abort may cancel.
        emit: delivers an event; awaited at once.
        emit_all: delivers events, each made when the one before was handled.
        now_ms: gives timestamps.
    """

    cuttable: bool
    emit: Callable[[AgentEvent], Awaitable[None]]
    emit_all: Callable[[Iterator[AgentEvent]], Awaitable[None]]
    now_ms: Callable[[], int]

    def commit(self, message: AgentMessage, /) -> None:
        """Append a message to the transcript."""
        ...

    async def stop_if_aborted(self) -> None:
        """Leave by cancellation if the run was aborted."""
        ...


_WHEN = itemgetter(0, 1)


class _Update:
    __slots__ = ("delivered", "partial", "state")

    def __init__(self, state: CallState, partial: ToolResult) -> None:
        self.state = state
        self.partial = partial
        self.delivered = trio.Event()


class ToolBatch:
    """The calls of one answer.

    Args:
        calls: in source order, with different ids.
        runner: does the steps of each call.
        tasks: of the run's tools.
        port: of the run.
        mode: ``sequential`` finishes and records each call before the next; a sequential tool forces it.
        truncated: the answer was cut at its length limit, so that no call may be run.

    Attributes:
        states: of the calls, in source order.
        results: that are in the transcript.
        open_result: a result whose start was sent and whose end was not.
    """

    def __init__(
        self,
        calls: Sequence[ToolCall],
        runner: ToolRunner,
        tasks: ToolTasks,
        port: RunPort,
        *,
        mode: ToolExecutionMode,
        truncated: bool,
    ) -> None:
        tools = runner.tools
        self.states = [CallState(call, tools.get(call.name), index) for index, call in enumerate(calls)]
        self.results: list[ToolResultMessage] = []
        self._runner = runner
        self._tasks = tasks
        self._port = port
        self._truncated = truncated
        self._sequential = (
            truncated
            or mode == "sequential"
            or any(s.tool is not None and s.tool.execution_mode == "sequential" for s in self.states)
        )
        self.open_result: ToolResultMessage | None = None
        self._news: list[tuple[float, int, CallState | _Update]] = []
        self._wakeup: trio.Event | None = None
        self._working = 0

    @property
    def terminates(self) -> bool:
        """Whether every result says that no further request is needed."""
        return all(state.result is not None and state.result.terminate for state in self.states)

    def at_work(self) -> tuple[int, int]:
        """How many bodies are at work, and how many calls wait for a slot."""
        running = sum(state.started_at is not None and state.duration_ms is None for state in self.states)
        waiting = sum(state.prepared and state.started_at is None and state.result is None for state in self.states)
        return running, waiting

    async def run(self) -> None:
        """Run the batch. Left by cancellation when the run is stopped; the states then say how far it came."""
        port = self._port
        if self._sequential:
            for state in self.states:
                if await self._prepare(state):
                    await self._run_together([state])
                await port.emit_all(self._records([state]))
                await port.stop_if_aborted()
            return
        if self._runner.hooks.before_tool_call is None:
            ready: list[CallState] = []
            await port.emit_all(self._preparations(ready))
            if self._runner.abort.aborted:
                await port.stop_if_aborted()
        else:
            ready = [state for state in self.states if await self._prepare(state)]
        if ready:
            await self._run_together(ready)
        await port.emit_all(self._records(self.states))

    def _preparations(self, ready: list[CallState]) -> Iterator[AgentEvent]:
        # Without a hook to wait for, a preparation is what happens between two events.
        for state in self.states:
            yield self._started(state)
            if self._runner.abort.aborted:
                return
            self._check(state)
            state.prepared = True
            if state.result is None:
                ready.append(state)
            else:
                yield self._ended(state)

    async def _prepare(self, state: CallState) -> bool:
        port, runner = self._port, self._runner
        await port.emit(self._started(state))
        if runner.abort.aborted:
            await port.stop_if_aborted()
        self._check(state)
        if state.result is None and runner.hooks.before_tool_call is not None:
            port.cuttable = True
            try:
                await runner.ask_before(state)
            finally:
                port.cuttable = False
            await port.stop_if_aborted()
        state.prepared = True
        if state.result is None:
            return True
        await port.emit(self._ended(state))
        return False

    def _check(self, state: CallState) -> None:
        if self._truncated:
            state.fail(
                f'Tool call "{state.call.name}" was not executed: the answer reached its output limit, so its '
                "arguments may be incomplete. Send the call again."
            )
        elif state.cancel_requested:
            state.fail(f'Tool "{state.call.name}" was cancelled')
        else:
            self._runner.bind(state)

    async def _run_together(self, ready: list[CallState]) -> None:
        first = ready[0]
        tool = first.tool
        assert tool is not None
        if len(ready) == 1 and not tool.needs_context and tool.limiter is None and self._runner.limiter is None:
            await self._run_alone(first)
        else:
            await self._run_in_tasks(ready)
        if self._runner.abort.aborted:
            await self._port.stop_if_aborted()

    async def _run_alone(self, state: CallState) -> None:
        self._port.cuttable = True
        try:
            await InOwnContext(self._runner.execute(state, CallState.release_slots))
        finally:
            self._port.cuttable = False
        # A tool may return although it was cut; what it returned is not to be delivered inside the cancelled scope.
        await self._port.stop_if_aborted()
        await self._port.emit(self._ended(state))

    async def _run_in_tasks(self, ready: list[CallState]) -> None:
        for segment in _segments(ready):
            nursery = await self._tasks.open()
            if nursery is None or self._runner.abort.aborted:
                break
            self._start(segment, nursery)
            await self._pump()
            if not self._runner.abort.aborted and any(state.result is None for state in segment):
                # A cancellation, or the crash of a tool, has ended these calls and is on its way to this task.
                await trio.sleep_forever()

    def _start(self, segment: list[CallState], nursery: trio.Nursery) -> None:
        start_soon, execute, done = nursery.start_soon, self._runner.execute, self._done

        def start(state: CallState) -> None:
            self._working += 1
            state.update = self._hand_over
            start_soon(execute, state, done, name=state.call.name)

        limiter = self._runner.limiter
        limited: list[CallState] = []
        for state in segment:
            assert state.tool is not None
            if limiter is None and state.tool.limiter is None:
                start(state)
            else:
                limited.append(state)
        if limited:
            self._working += Admission(limiter, start, self._admission_ended).admit(limited, nursery)

    # -- in tasks of their own ---------------------------------------------------------------------------------------

    def _admission_ended(self) -> None:
        self._working -= 1
        self._wake()

    def _done(self, state: CallState) -> None:
        if state.slots is not None:
            state.slots.release()
        state.update = None
        self._working -= 1
        self._report(state, state)

    async def _hand_over(self, state: CallState, partial: ToolResult) -> None:
        update = _Update(state, partial)
        self._report(state, update)
        await update.delivered.wait()

    def _report(self, state: CallState, news: CallState | _Update) -> None:
        self._news.append((self._runner.now(), state.index, news))
        self._wake()

    def _wake(self) -> None:
        if self._wakeup is not None:
            self._wakeup.set()
            self._wakeup = None

    def cancel(self, state: CallState) -> None:
        """Cancel one call alone; nothing if it is over. Never blocks, no checkpoint."""
        if state.result is not None or state.duration_ms is not None or state.cancel_requested:
            return
        state.cancel_requested = True
        if state.scope is not None:
            state.scope.cancel()
        elif state.prepared and state.started_at is None:
            # It waits for a slot; if its task is on the way, the body's own check comes first.
            state.fail(f'Tool "{state.call.name}" was cancelled')
            self._report(state, state)

    # -- in the run's task, or in a watcher's that takes the events
    # ------------------------------------------------------

    async def _pump(self) -> None:
        while True:
            if self._news:
                news, self._news = self._news, []
                # Calls that end in the same scheduler pass end in source order.
                news.sort(key=_WHEN)
                await self._port.emit_all(self._reports(news))
            elif not self._working:
                return
            else:
                wakeup = self._wakeup = trio.Event()
                await wakeup.wait()

    def _reports(self, news: list[tuple[float, int, CallState | _Update]]) -> Iterator[AgentEvent]:
        for _, _, item in news:
            if isinstance(item, _Update):
                call = item.state.call
                yield ToolExecutionUpdate(
                    tool_call_id=call.id, tool_name=call.name, args=call.arguments, partial_result=item.partial
                )
                item.delivered.set()
            elif item.result is not None and not item.ended:
                yield self._ended(item)

    def _started(self, state: CallState) -> ToolExecutionStart:
        state.announced = True
        call = state.call
        return ToolExecutionStart(tool_call_id=call.id, tool_name=call.name, args=call.arguments)

    def _ended(self, state: CallState) -> ToolExecutionEnd:
        state.ended = True
        assert state.result is not None
        return ToolExecutionEnd(
            tool_call_id=state.call.id,
            tool_name=state.call.name,
            result=state.result,
            is_error=state.is_error,
            duration_ms=state.duration_ms,
        )

    def _records(self, states: Sequence[CallState]) -> Iterator[AgentEvent]:
        for state in states:
            if state.recorded:
                continue
            message = self.open_result
            if message is None:
                message = self.open_result = state.message(self._port.now_ms())
                yield MessageStart(message=message)
            self.open_result = None
            state.recorded = True
            self.results.append(message)
            self._port.commit(message)
            yield MessageEnd(message=message)

    async def wind_up(self) -> None:
        """After an abort, give every call what it lacks: start, end and result, in the order of an ordinary batch."""
        await self._port.emit_all(self._what_is_lacking())

    def _what_is_lacking(self) -> Iterator[AgentEvent]:
        if self._sequential:
            for state in self.states:
                yield from self._finishing(state)
                yield from self._records([state])
            return
        for state in self.states:
            if not state.prepared:
                yield from self._finishing(state)
        for state in self.states:
            yield from self._finishing(state)
        yield from self._records(self.states)

    def _finishing(self, state: CallState) -> Iterator[AgentEvent]:
        if not state.announced:
            yield self._started(state)
        if not state.ended:
            if not state.prepared:
                state.end(ABORTED, is_error=True)  # whatever was decided in the same moment
            state.interrupt()
            yield self._ended(state)

    def settle(self) -> list[AgentEvent]:
        """Write the results that are missing into the transcript, at once.

        Returns:
            The events that are owed for calls that were announced and for all results.
        """
        for state in self.states:
            state.interrupt()
        owed: list[AgentEvent] = [self._ended(state) for state in self.states if state.announced and not state.ended]
        owed.extend(self._records(self.states))
        return owed


def _segments(ready: list[CallState]) -> list[list[CallState]]:
    # An exclusive call waits for all before it and holds back all after it, like a writer in a fair read-write lock.
    if not any(state.tool is not None and state.tool.execution_mode == "exclusive" for state in ready):
        return [ready]
    segments: list[list[CallState]] = [[]]
    for state in ready:
        if state.tool is not None and state.tool.execution_mode == "exclusive":
            segments += [[state], []]
        else:
            segments[-1].append(state)
    return [segment for segment in segments if segment]
