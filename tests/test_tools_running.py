from __future__ import annotations

import contextvars
import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from trio_agent._agent_events import ToolResult
from trio_agent._errors import ToolError
from trio_agent._messages import JsonObject, TextContent
from trio_agent._tools import Tool, ToolContext, ToolOutcome, tool
from trio_agent._transcript import Context

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


class Calls:
    """Takes the place of the loop behind a context, and keeps what came from the tool."""

    def __init__(self) -> None:
        self.updates: list[ToolResult] = []
        self.nested: list[tuple[str, JsonObject, str]] = []

    def context(self, **options: Any) -> ToolContext:
        return ToolContext(
            tool_call_id="call_1",
            tool_name="t",
            agent_context=Context((), ()),
            update=self._update,
            call_tool=self._call_tool,
            **options,
        )

    async def _update(self, partial: ToolResult) -> None:
        await trio.lowlevel.checkpoint()
        self.updates.append(partial)

    async def _call_tool(
        self, name: str, arguments: JsonObject, call_id: str, on_update: Callable[[ToolResult], Any] | None
    ) -> ToolOutcome:
        await trio.lowlevel.checkpoint()
        self.nested.append((name, arguments, call_id))
        if on_update is not None:
            on_update(ToolResult("half"))
        return ToolOutcome(ToolResult("inner"), is_error=False, duration_ms=1)


def text_of(result: ToolResult) -> str:
    assert isinstance(result.content, tuple)
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def run(made: Tool, arguments: JsonObject | None = None, ctx: ToolContext | None = None) -> str:
    return text_of(await made.invoke(made.bind(arguments or {}), ctx))


# -- where a body runs ---------------------------------------------------------------------------------------------


async def test_async_functions_run_in_the_task_that_calls_them() -> None:
    @tool
    async def where() -> str:
        return trio.lowlevel.current_task().name

    assert await run(where) == trio.lowlevel.current_task().name
    assert not where.needs_context
    assert not where.in_thread


async def test_plain_functions_run_in_a_worker_thread_with_the_callers_context_variables() -> None:
    seen = []

    @tool
    def where() -> str:
        seen.append(threading.current_thread())
        variable.set("changed")
        return variable.get()

    variable.set("outside")
    assert await run(where) == "changed"
    assert variable.get() == "outside"
    assert seen[0] is not threading.current_thread()
    assert where.in_thread


async def test_a_plain_execute_runs_in_a_worker_thread_too() -> None:
    def execute(arguments: JsonObject, ctx: ToolContext) -> str:
        return f"{arguments['n']} {threading.current_thread() is threading.main_thread()}"

    made = Tool(name="t", parameters={"type": "object"}, execute=execute)

    assert await run(made, {"n": 1}, Calls().context()) == "1 False"


async def test_a_plain_wrapper_around_an_async_function_is_awaited() -> None:
    async def inner(n: int) -> str:
        await trio.lowlevel.checkpoint()
        return f"inner {n}"

    @tool
    def outer(n: int) -> Any:
        return inner(n)

    async def execute(arguments: JsonObject, ctx: ToolContext) -> str:
        return "executed"

    made = Tool(name="t", parameters={}, execute=lambda arguments, ctx: execute({}, ctx))

    assert await run(outer, {"n": 1}) == "inner 1"
    assert await run(made, {}, Calls().context()) == "executed"


async def test_worker_threads_count_against_the_limiter_of_the_context_and_never_against_trios() -> None:
    def borrowed() -> tuple[float, float]:
        default = trio.to_thread.current_default_thread_limiter()
        return limiter.borrowed_tokens, default.borrowed_tokens

    @tool
    def count() -> str:
        return str(trio.from_thread.run_sync(borrowed))

    limiter = trio.CapacityLimiter(1)

    assert await run(count, {}, Calls().context(thread_limiter=limiter)) == "(1, 0)"
    assert await run(count, {}, Calls().context()) == "(0, 0)"
    assert await run(count) == "(0, 0)"


# -- cancellation --------------------------------------------------------------------------------------------------


async def cancel_while_it_runs(made: Tool, started: threading.Event) -> trio.CancelScope:
    async def cancel_when_started() -> None:
        await trio.to_thread.run_sync(started.wait)
        scope.cancel()

    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cancel_when_started)
        with scope:
            await run(made)
    return scope


async def test_a_thread_is_abandoned_on_cancellation() -> None:
    started, release = threading.Event(), threading.Event()

    @tool
    def blocking() -> None:
        started.set()
        release.wait(10)

    scope = await cancel_while_it_runs(blocking, started)

    assert scope.cancelled_caught
    assert not release.is_set()
    release.set()


async def test_a_thread_that_may_not_be_cancelled_is_waited_for() -> None:
    started, release = threading.Event(), threading.Event()
    results = []

    @tool(cancellable=False)
    def blocking() -> str:
        started.set()
        release.wait(10)
        return "done"

    async def cancel_and_release() -> None:
        await trio.to_thread.run_sync(started.wait)
        scope.cancel()
        release.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(cancel_and_release)
        with trio.CancelScope() as scope:
            results.append(await run(blocking))

    assert results == ["done"]


async def test_a_cooperative_thread_learns_that_it_should_stop() -> None:
    started, stopped = threading.Event(), threading.Event()

    @tool(cancellable="cooperative")
    def polling() -> None:
        started.set()
        try:
            while True:
                trio.from_thread.check_cancelled()
        finally:
            stopped.set()

    scope = await cancel_while_it_runs(polling, started)

    assert scope.cancelled_caught
    assert stopped.is_set()


# -- what a body raises --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ToolError("no"), ValueError("bug"), KeyboardInterrupt(), SystemExit(3)], ids=repr)
@pytest.mark.parametrize("in_thread", [False, True])
async def test_what_a_body_raises_comes_out_unchanged(error: BaseException, in_thread: bool) -> None:
    async def in_trio() -> None:
        raise error

    def blocking() -> None:
        raise error

    made = tool(blocking) if in_thread else tool(in_trio)

    with pytest.raises(type(error)) as raised:
        await made.invoke(made.bind({}), None)

    assert raised.value is error


# -- the context ---------------------------------------------------------------------------------------------------


async def test_a_function_gets_the_context_by_its_annotation() -> None:
    calls = Calls()

    @tool
    async def show(n: int, *, environment: ToolContext) -> str:
        return f"{environment.tool_call_id} {environment.tool_name} {n} {environment is ctx}"

    ctx = calls.context()

    assert await run(show, {"n": 1}, ctx) == "call_1 t 1 True"


async def test_updates_are_handed_over_as_results() -> None:
    calls = Calls()
    ctx = calls.context()

    await ctx.update("half")
    await ctx.update(ToolResult("more", details={"n": 1}))

    assert [text_of(update) for update in calls.updates] == ["half", "more"]
    assert [update.details for update in calls.updates] == [{}, {"n": 1}]


async def test_nested_calls_have_ids_of_their_own() -> None:
    calls = Calls()
    ctx = calls.context()
    updates: list[ToolResult] = []

    first = await ctx.call_tool("a", {"n": 1})
    await ctx.call_tool("b", on_update=updates.append)
    await ctx.call_tool("c", call_id="mine")

    assert first.result.content == "inner"
    assert calls.nested == [("a", {"n": 1}, "call_1.1"), ("b", {}, "call_1.2"), ("c", {}, "mine")]
    assert len(updates) == 1


async def test_the_deadline_is_the_nearest_one(mock_clock: trio.testing.MockClock) -> None:
    ctx = Calls().context()

    @tool
    def in_thread(ctx: ToolContext) -> float:
        return ctx.deadline

    with trio.move_on_at(100), trio.move_on_at(50):  # noqa: ASYNC125
        assert ctx.deadline == 50
        assert float(await run(in_thread, {}, ctx)) == 50
    assert ctx.deadline == float("inf")


# -- wrapping ------------------------------------------------------------------------------------------------------


async def test_a_tool_can_be_wrapped() -> None:
    def loud(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> str:
            return f"{await function(*args, **kwargs)}!"

        return wrapper

    @tool
    async def greet(name: str) -> str:
        return f"hello {name}"

    class Greeter:
        @tool
        async def greet(self, name: str) -> str:
            return f"bye {name}"

        loudly = greet.wrapped(loud)

    assert await run(greet.wrapped(loud), {"name": "Bob"}) == "hello Bob!"
    assert await run(Greeter().loudly, {"name": "Bob"}) == "bye Bob!"
    assert await run(greet, {"name": "Bob"}) == "hello Bob"
    assert greet.wrapped(loud).declaration is greet.declaration
