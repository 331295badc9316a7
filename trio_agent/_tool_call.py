"""One tool call: find the tool, prepare, validate, ask, run, ask again; the result is set once and never an exception.

The same steps for the calls of a batch and for calls nested in tools. Whatever a model, a tool or a tool hook does
wrong becomes an error result here, and only here. Three things are not results: a cancellation that is not the
library's own, ``KeyboardInterrupt`` and its like, and a failure of the delivery, which tools never see.

Nothing here knows of events or of the order of calls; that is the batch above. Below are tools, hooks and slots.
"""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import trio
from msgspec import UNSET

from trio_agent._abort import AbortHandle
from trio_agent._agent_events import ToolResult
from trio_agent._call_state import ABORTED, CallState, UpdateFn, error_result
from trio_agent._errors import ToolArgumentsError, ToolError
from trio_agent._failures import describe, split_cancelled
from trio_agent._hooks import (
    BlockToolCall,
    Hooks,
    ReplaceArguments,
    ToolCallDetails,
    ToolResultDetails,
    ToolResultPatch,
)
from trio_agent._messages import AssistantMessage, JsonObject, ToolCall
from trio_agent._slots import Slots
from trio_agent._tools import BoundArguments, Tool, ToolContext, ToolOutcome
from trio_agent._transcript import Context, text_content

__all__ = ["ToolRunner"]

logger = logging.getLogger("trio_agent")


class ToolRunner(msgspec.Struct, kw_only=True):
    """What the steps of a call need to know of the run they belong to; one for all its batches.

    Attributes:
        tools: that can be run, by name.
        hooks: asked before and after.
        limiter: of the whole run.
        tool_timeout: seconds for tools that have no timeout of their own.
        abort: after it, no hook is asked and no body is entered.
        assistant_message: that asks for the calls of the batch at hand.
        context: what the run works on, taken anew for each hook.
        cancellable: whether single calls may be cancelled, so that each needs a scope.
        thread_limiter: gives the limiter of worker threads; ``None`` for the library's own.
        now: tells the time on Trio's clock.
    """

    tools: dict[str, Tool]
    hooks: Hooks
    limiter: trio.CapacityLimiter | None
    tool_timeout: float | None
    abort: AbortHandle
    assistant_message: AssistantMessage | None
    context: Callable[[], Context]
    cancellable: bool = False
    thread_limiter: Callable[[], trio.CapacityLimiter] | None = None
    now: Callable[[], float] = msgspec.field(default_factory=lambda: trio.lowlevel.current_clock().current_time)

    def bind(self, state: CallState) -> None:
        """Check tool and arguments. Afterwards the call has a result or can be run, if no hook objects."""
        call, tool = state.call, state.tool
        if tool is None:
            state.fail(f"Tool {call.name} not found")
            return
        try:
            if call.arguments_error is not None:
                raise ToolArgumentsError(f'Invalid arguments for tool "{call.name}": {call.arguments_error}')
            arguments = call.arguments
            if tool.prepare_arguments is not None:
                arguments = tool.prepare_arguments(copy.deepcopy(arguments))
            state.bound = tool.bind(arguments)
            if self.hooks.before_tool_call is not None or self.hooks.after_tool_call is not None:
                state.hook_arguments = state.bound.arguments
        except Exception as exc:  # noqa: BLE001
            state.fail(self._report(state, exc))

    async def ask_before(self, state: CallState) -> None:
        """Ask the hook, which may end the call. Cancelled, it leaves the call without a result."""
        hook, tool = self.hooks.before_tool_call, state.tool
        assert hook is not None
        assert tool is not None
        assert self.assistant_message is not None
        assert state.hook_arguments is not None
        details = ToolCallDetails(
            assistant_message=self.assistant_message,
            tool_call=state.call,
            arguments=state.hook_arguments,
            context=self.context(),
        )
        try:
            self._decide(state, tool, await hook(details))
        except Exception as exc:  # noqa: BLE001
            state.fail(self._report(state, exc))

    def _decide(self, state: CallState, tool: Tool, decision: BlockToolCall | ReplaceArguments | None) -> None:
        match decision:
            case None:
                pass
            case BlockToolCall(reason=reason, terminate=terminate):
                state.fail(reason or "Tool execution was blocked", terminate=terminate)
            case ReplaceArguments(arguments=arguments):
                state.bound = tool.bind(arguments)
                state.hook_arguments = state.bound.arguments
            case _:
                raise TypeError(
                    f"before_tool_call returned {decision!r}; return None, BlockToolCall or ReplaceArguments"
                )

    def limiters(self, tool: Tool) -> tuple[trio.CapacityLimiter, ...]:
        """The limiters of a call; the tool's own comes first, because waiting for it holds no slot of the run."""
        if tool.limiter is None:
            return () if self.limiter is None else (self.limiter,)
        return (tool.limiter,) if self.limiter is None else (tool.limiter, self.limiter)

    async def execute(self, state: CallState, done: Callable[[CallState], None]) -> None:
        """Run the body and the hook after it, and set the result; nothing if the call is over already.

        One coroutine for the whole life of a call, because there may be very many of them.

        Args:
            state: of the call.
            done: is called in any case, last.

        Raises:
            Cancelled: an abort or the caller's cancellation went through the body; after an abort the result is set.
            BaseException: what a tool must not be able to turn into a result.
        """
        try:
            if self.abort.aborted:
                state.interrupt()
            if state.result is not None:
                return
            tool, bound = state.tool, state.bound
            assert tool is not None
            assert bound is not None
            state.started_at = started_at = self.now()
            timeout = tool.timeout if tool.timeout is not None else self.tool_timeout
            if timeout is not None or self.cancellable:
                result, is_error = await self._run_in_scope(state, tool, bound, timeout)
            else:
                try:
                    context = self._tool_context(state) if tool.needs_context else None
                    # What `tool.invoke` does.
                    value = await tool._body.run(bound.value, context, abandon=tool.cancellable is True)
                    result = tool._rules.result(value)
                    is_error = result.is_error
                except BaseException as exc:  # noqa: ASYNC103  # it goes on, unless it is the tool's failure
                    failure = self._failure(state, exc)
                    if failure is None:
                        raise
                    result, is_error = failure, True
            if state.duration_ms is None:
                state.duration_ms = round((self.now() - started_at) * 1000)
            if self.hooks.after_tool_call is not None:
                result, is_error = await self._ask_after(state, result, is_error)
            state.result, state.is_error = result, is_error
        finally:
            done(state)

    async def _run_in_scope(
        self, state: CallState, tool: Tool, bound: BoundArguments, seconds: float | None
    ) -> tuple[ToolResult, bool]:
        deadline = trio.current_time() + seconds if seconds is not None else math.inf
        result: ToolResult | None = None
        is_error = True
        with trio.CancelScope(deadline=deadline) as scope:
            state.scope = scope
            if state.cancel_requested:
                scope.cancel()
            try:
                context = self._tool_context(state) if tool.needs_context else None
                value = await tool._body.run(bound.value, context, abandon=tool.cancellable is True)
                result = tool._rules.result(value)
            except BaseException as exc:  # noqa: ASYNC103  # it goes on, unless it is the tool's failure
                result = self._failure(state, exc)
                if result is None:
                    raise
            else:
                is_error = result.is_error
        state.scope = None
        if result is not None and not scope.cancelled_caught:
            return result, is_error
        if state.cancel_requested:
            return error_result(state.stopped(f'Tool "{state.call.name}" was cancelled')), True
        return error_result(state.stopped(f'Tool "{state.call.name}" timed out after {seconds:g} s')), True

    def _failure(self, state: CallState, exc: BaseException) -> ToolResult | None:
        """What came out of a body, as a result; ``None`` if it is none, and to be raised again.

        A group may hold a cancellation and the tool's own failure: the failure is the result, and the cancellation
        alone goes on.
        """
        # Exceptions that go on are not raised here: a frame that is in the traceback of what it holds is a circle.
        cancelled, failure = split_cancelled(exc)
        if cancelled is not None and trio.current_effective_deadline() != -math.inf:
            # Kept from somewhere else: here it would end the other tools, too, and nobody would know why.
            cancelled = None
            failure = failure or ToolError("the tool raised a cancellation although nothing was cancelled")
        if failure is None:
            self._interrupt_if_aborted(state)
            return None
        if not isinstance(failure, Exception):
            return None
        result = error_result(self._report(state, failure))
        if cancelled is None:
            return result
        state.end(result, is_error=True)
        state.stop_clock()
        try:
            raise cancelled from None
        finally:
            del cancelled, failure, exc

    async def _ask_after(self, state: CallState, result: ToolResult, is_error: bool) -> tuple[ToolResult, bool]:
        if self.abort.aborted:
            # Fail closed: what the hook is not asked about may hold what it would have taken out.
            return ABORTED, True
        hook = self.hooks.after_tool_call
        assert hook is not None
        assert self.assistant_message is not None
        assert state.hook_arguments is not None
        details = ToolResultDetails(
            assistant_message=self.assistant_message,
            tool_call=state.call,
            arguments=state.hook_arguments,
            result=result,
            is_error=is_error,
            context=self.context(),
        )
        try:
            patch = await hook(details)
            return (result, is_error) if patch is None else _patched(result, is_error, patch)
        except Exception as exc:  # noqa: BLE001
            return error_result(self._report(state, exc)), True
        except trio.Cancelled:
            self._interrupt_if_aborted(state)
            raise

    def _interrupt_if_aborted(self, state: CallState) -> None:
        if self.abort.aborted:
            state.interrupt()

    def _report(self, state: CallState, exc: BaseException) -> str:
        if not isinstance(exc, ToolError):
            logger.warning("tool call %r of %r failed", state.call.id, state.call.name, exc_info=exc)
        return describe(exc)

    def _tool_context(self, state: CallState) -> ToolContext:
        nested = 0

        async def update(partial: ToolResult) -> None:
            if state.update is None or state.result is not None or state.duration_ms is not None:
                await trio.lowlevel.checkpoint()
            else:
                await state.update(state, partial)

        async def call_tool(
            name: str,
            arguments: JsonObject,
            call_id: str | None,
            on_update: Callable[[ToolResult], Awaitable[None] | None] | None,
        ) -> ToolOutcome:
            nonlocal nested
            nested += 1
            call = ToolCall(id=call_id or f"{state.call.id}.{nested}", name=name, arguments=arguments)
            return await self.run_nested(call, parent=state, on_update=on_update)

        return ToolContext(
            tool_call_id=state.call.id,
            tool_name=state.call.name,
            agent_context=self.context(),
            update=update,
            call_tool=call_tool,
            thread_limiter=None if self.thread_limiter is None else self.thread_limiter(),
        )

    async def run_nested(
        self,
        call: ToolCall,
        *,
        parent: CallState | None = None,
        on_update: Callable[[ToolResult], Awaitable[None] | None] | None = None,
    ) -> ToolOutcome:
        """Run one call through all steps in the caller's task; no events, no messages. A checkpoint."""
        state = CallState(call, self.tools.get(call.name))
        await trio.lowlevel.checkpoint_if_cancelled()
        if on_update is not None:
            state.update = _forward_to(on_update)
        if not self.abort.aborted:
            self.bind(state)
            if state.result is None and self.hooks.before_tool_call is not None:
                await self.ask_before(state)
        if self.abort.aborted:
            state.end(ABORTED, is_error=True)
        if state.result is None:
            assert state.tool is not None
            state.slots = Slots(parent.slots if parent is not None else None)
            await state.slots.acquire(self.limiters(state.tool))
            await self.execute(state, CallState.release_slots)
        await trio.lowlevel.cancel_shielded_checkpoint()
        return _outcome(state)

    def aborted_outcome(self) -> ToolOutcome:
        """The outcome of a nested call that an abort has cut."""
        state = CallState(ToolCall(id="", name="", arguments={}), None)
        state.interrupt()
        return _outcome(state)


def _outcome(state: CallState) -> ToolOutcome:
    assert state.result is not None
    return ToolOutcome(result=state.result, is_error=state.is_error, duration_ms=state.duration_ms)


def _forward_to(on_update: Callable[[ToolResult], Awaitable[None] | None]) -> UpdateFn:
    async def forward(_state: CallState, partial: ToolResult) -> None:
        await trio.lowlevel.checkpoint()
        awaitable = on_update(partial)
        if awaitable is not None:
            await awaitable

    return forward


def _patched(result: ToolResult, is_error: bool, patch: ToolResultPatch) -> tuple[ToolResult, bool]:
    changes = {name: value for name in _PATCHED_FIELDS if (value := getattr(patch, name)) is not UNSET}
    if isinstance(changes.get("content"), str):
        changes["content"] = text_content(changes["content"])
    if "content" in changes and "structured_content" not in changes:
        changes["structured_content"] = UNSET
    if patch.is_error is not UNSET:
        is_error = patch.is_error
        changes["is_error"] = result.is_error and is_error
    return msgspec.structs.replace(result, **changes), is_error


_PATCHED_FIELDS: Sequence[str] = ("content", "details", "structured_content", "usage", "terminate")
