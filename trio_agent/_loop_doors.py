"""The doors to the loop for those who need no agent: run it with a sink, or observe it as a stream; or run one call.

The caller's context is never modified; what a run added is what it returns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from types import TracebackType
from typing import TypeAlias, final

import trio

from trio_agent._abort import AbortHandle
from trio_agent._agent_events import AgentEvent, ToolResult
from trio_agent._clock import timestamp_ms
from trio_agent._errors import AgentError
from trio_agent._failures import split_cancelled
from trio_agent._loop import Run
from trio_agent._loop_config import LoopConfig
from trio_agent._messages import AgentMessage, AssistantMessage, ToolCall, Usage
from trio_agent._nursery import NurseryManager, leave_nursery
from trio_agent._run_transcript import Pending, tools_by_name
from trio_agent._stream_fn import Connected, StreamFn, get_default_stream_fn
from trio_agent._tool_call import ToolRunner
from trio_agent._tools import ToolOutcome
from trio_agent._transcript import Context, check_can_continue

__all__ = [
    "Emit",
    "LoopStream",
    "agent_loop",
    "agent_loop_continue",
    "run_agent_loop",
    "run_agent_loop_continue",
    "run_tool_call",
]

Emit: TypeAlias = Callable[[AgentEvent], Awaitable[None] | None]
"""Takes an event and returns, or is awaited, when it has been handled."""


class _EmitSink:
    survives_failure = False

    def __init__(self, emit: Emit) -> None:
        self.failure: BaseException | None = None
        self._emit = emit

    def commit(self, message: AgentMessage, /) -> None:
        """The run keeps its own transcript."""

    async def emit_all(self, events: Iterator[AgentEvent], /) -> None:
        for event in events:
            await self.emit(event)

    async def finish(self) -> None:
        """There is one handler, and it was called."""

    async def emit(self, event: AgentEvent, /) -> None:
        try:
            awaitable = self._emit(event)
            if awaitable is not None:
                await awaitable
        except BaseException as exc:
            if split_cancelled(exc)[1] is not None:
                self.failure = exc
            raise


def _prompts(messages: Sequence[AgentMessage]) -> list[Pending]:
    if not messages:
        raise ValueError("no prompts: there is nothing to answer; to go on from the context, use the door to continue")
    return [Pending(message) for message in messages]


async def run_agent_loop(
    prompts: Sequence[AgentMessage],
    context: Context,
    config: LoopConfig,
    emit: Emit,
    stream_fn: StreamFn | None = None,
    *,
    abort: AbortHandle | None = None,
) -> list[AgentMessage]:
    """Run the loop with prompts. A checkpoint.

    Args:
        prompts: messages to begin with, at least one.
        context: messages before them, and the tools that can be run.
        config: what the run keeps to.
        emit: takes each event and is a barrier, as a listener of an agent is.
        stream_fn: asks the model; ``None`` for the default one.
        abort: stops the run in order; it then returns.

    Returns:
        All messages that the run added, the prompts first.

    Raises:
        ValueError: there is no prompt.
        Exception: of a hook, after the closing events; or of ``emit``, with none.
        Cancelled: after the closing events, which ``closing_grace`` bounds.
    """
    return await _run(_prompts(prompts), context, config, emit, stream_fn, abort)


async def run_agent_loop_continue(
    context: Context,
    config: LoopConfig,
    emit: Emit,
    stream_fn: StreamFn | None = None,
    *,
    abort: AbortHandle | None = None,
) -> list[AgentMessage]:
    """Run the loop from where the context ends; otherwise like :func:`run_agent_loop`.

    Raises:
        TranscriptError: the context has nothing to answer.
    """
    check_can_continue(context.messages)
    return await _run([], context, config, emit, stream_fn, abort)


async def _run(
    prompts: list[Pending],
    context: Context,
    config: LoopConfig,
    emit: Emit,
    stream_fn: StreamFn | None,
    abort: AbortHandle | None,
) -> list[AgentMessage]:
    await trio.lowlevel.checkpoint()
    async with Connected(stream_fn or get_default_stream_fn()) as connected:
        return await Run(context, config, _EmitSink(emit), connected, abort or AbortHandle()).execute(prompts)


def agent_loop(
    prompts: Sequence[AgentMessage],
    context: Context,
    config: LoopConfig,
    stream_fn: StreamFn | None = None,
    *,
    abort: AbortHandle | None = None,
    buffer: int = 1000,
) -> LoopStream:
    """Observe the loop: ``async with`` the result, and iterate it.

    Args:
        prompts: messages to begin with, at least one.
        context: messages before them, and the tools that can be run.
        config: what the run keeps to.
        stream_fn: asks the model; ``None`` for the default one.
        abort: stops the run in order.
        buffer: how many events may wait for the reader before the run does. Reading is no barrier.

    Raises:
        ValueError: there is no prompt, or the buffer is negative.
    """
    return LoopStream(_prompts(prompts), context, config, stream_fn, abort or AbortHandle(), buffer)


def agent_loop_continue(
    context: Context,
    config: LoopConfig,
    stream_fn: StreamFn | None = None,
    *,
    abort: AbortHandle | None = None,
    buffer: int = 1000,
) -> LoopStream:
    """Observe the loop from where the context ends; otherwise like :func:`agent_loop`.

    Raises:
        TranscriptError: the context has nothing to answer.
    """
    check_can_continue(context.messages)
    return LoopStream([], context, config, stream_fn, abort or AbortHandle(), buffer)


@final
class LoopStream:
    """A run of the loop in a task of its own, owned by the block, and its events behind a bounded buffer.

    A failure behind the stream reaches its reader after the events that were sent before it. Leaving the block early
    aborts the run and waits until it has settled.
    """

    def __init__(
        self,
        prompts: list[Pending],
        context: Context,
        config: LoopConfig,
        stream_fn: StreamFn | None,
        abort: AbortHandle,
        buffer: int,
    ) -> None:
        self._send, self._receive = trio.open_memory_channel[AgentEvent](buffer)
        # Of its own, because leaving the block is to stop this run alone.
        self._abort = AbortHandle()
        self._callers_abort = abort
        self._arguments = (prompts, context, config, self._emit, stream_fn, self._abort)
        self._nursery_manager: NurseryManager | None = None
        self._over = trio.Event()
        self._messages: list[AgentMessage] | None = None
        self._error: Exception | None = None
        self._raised = False

    async def _emit(self, event: AgentEvent) -> None:
        try:
            await self._send.send(event)
        except trio.BrokenResourceError:
            # The reader has left; the block has aborted the run, and what is still owed has nowhere to go.
            return

    async def _run(self) -> None:
        self._callers_abort.add_cut(self._abort.abort)
        try:
            if self._callers_abort.aborted:
                self._abort.abort()
            self._messages = await _run(*self._arguments)
        except Exception as exc:  # noqa: BLE001  # raised in the reader
            self._error = exc
        finally:
            self._callers_abort.remove_cut(self._abort.abort)
            self._send.close()
            self._over.set()

    async def result(self) -> list[AgentMessage]:
        """Wait until the run is over.

        Read the events meanwhile, or give the stream a buffer that holds them all: a run whose buffer is full waits.

        Returns:
            All messages that the run added.

        Raises:
            Exception: what ended the run.
        """
        await self._over.wait()
        self._raise_error()
        if self._messages is None:
            raise AgentError("the run was cancelled before it had a result")
        return self._messages

    def _raise_error(self) -> None:
        if self._error is not None:
            self._raised = True
            raise self._error

    async def __aenter__(self) -> LoopStream:
        if self._nursery_manager is not None:
            raise RuntimeError("a loop stream can be entered only once; make another one")
        await trio.lowlevel.checkpoint()
        self._nursery_manager = trio.open_nursery()
        nursery = await self._nursery_manager.__aenter__()
        nursery.start_soon(self._run)
        return self

    def __aiter__(self) -> LoopStream:
        if self._nursery_manager is None:
            raise RuntimeError("enter the stream first: async with agent_loop(...) as stream: ...")
        return self

    async def __anext__(self) -> AgentEvent:
        try:
            return await self._receive.receive()
        except trio.EndOfChannel:
            self._raise_error()
            raise StopAsyncIteration from None

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._nursery_manager is not None
        self._receive.close()
        self._abort.abort()
        # Not shielded: the run closes within its own grace, and the nursery waits for no one else.
        await leave_nursery(self._nursery_manager, exc, self._unreported_error)  # noqa: ASYNC102

    def _unreported_error(self) -> Exception | None:
        return None if self._raised else self._error


async def run_tool_call(
    tool_call: ToolCall,
    context: Context,
    config: LoopConfig,
    *,
    assistant_message: AssistantMessage | None = None,
    on_update: Callable[[ToolResult], Awaitable[None] | None] | None = None,
    abort: AbortHandle | None = None,
) -> ToolOutcome:
    """Run one tool call through the steps of the loop, with its hooks and limits; no events, no messages. A checkpoint.

    Args:
        tool_call: what is to be run.
        context: its tools are looked in; hooks get it.
        config: whose hooks, limiter and time limit count.
        assistant_message: that hooks are told of; an empty one if not given.
        on_update: is given what the tool reports.
        abort: after it the outcome is an error result that says so.

    Returns:
        The outcome; whatever the tool or a hook did wrong is an error result.
    """
    handle = abort or AbortHandle()
    if assistant_message is None:
        model = config.model
        assistant_message = AssistantMessage(
            content=(),
            api=model.api,
            provider=model.provider,
            model=model.id,
            usage=Usage.zero(),
            stop_reason="toolUse",
            timestamp=timestamp_ms(),
        )
    runner = ToolRunner(
        tools=tools_by_name(context.tools),
        hooks=config.hooks,
        limiter=config.limiter,
        tool_timeout=config.tool_timeout,
        abort=handle,
        assistant_message=assistant_message,
        context=lambda: context,
    )
    with trio.CancelScope() as scope:
        handle.add_cut(scope.cancel)
        try:
            return await runner.run_nested(tool_call, on_update=on_update)
        finally:
            handle.remove_cut(scope.cancel)
    return runner.aborted_outcome()
