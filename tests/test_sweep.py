"""Runs of every kind are stopped at every point of their schedule, in every way; see ``cancel_everywhere``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

import pytest
import trio

from trio_agent import (
    Agent,
    AgentEvent,
    AssistantMessage,
    AssistantMessageEvent,
    BlockToolCall,
    Hooks,
    MessageEnd,
    ModelError,
    ReplaceArguments,
    RequestDetails,
    StreamFn,
    TextContent,
    ToolCallDetails,
    ToolContext,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolResultDetails,
    ToolResultPatch,
    TurnDetails,
    TurnEnd,
    TurnStart,
    TurnUpdate,
    Usage,
    tool,
)
from trio_agent.testing import Action, Answer, Scenario, ScriptedModel, cancel_everywhere, tool_call

# -- tools -----------------------------------------------------------------------------------------------------------


@tool
async def work(seconds: float = 0.1) -> str:
    """Take time."""
    await trio.sleep(seconds)
    return "worked"


@tool
async def report(steps: int, *, ctx: ToolContext) -> str:
    """Take time, and say so."""
    for step in range(steps):
        await ctx.update(f"step {step}")
        await trio.sleep(0.1)
    return "reported"


@tool
async def delegate(levels: int, *, ctx: ToolContext) -> str:
    """Call the next level, or two workers at once."""
    if levels:
        outcome = await ctx.call_tool("delegate", {"levels": levels - 1})
        return f"delegated: {outcome.is_error}"
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(ctx.call_tool, "work")
    return "done"


@tool(timeout=60)
async def linger() -> str:
    """Do not come back."""
    await trio.sleep_forever()
    raise AssertionError


@tool(execution_mode="exclusive")
async def rewrite() -> str:
    """Take time, alone."""
    await trio.sleep(0.1)
    return "rewritten"


@tool
async def tidy() -> str:
    """Clean up when it is stopped, and take time for it."""
    try:
        await trio.sleep(0.2)
    finally:
        with trio.move_on_after(0.1, shield=True):
            await trio.sleep(0.05)
    return "tidied"


@tool
async def stubborn() -> str:
    """Return although it was cancelled."""
    with trio.CancelScope() as scope:
        try:
            await trio.sleep(0.2)
        except trio.Cancelled:
            scope.cancel()
            await trio.lowlevel.cancel_shielded_checkpoint()
    return "stubborn"


@tool
async def crash() -> str:
    """Fail in clean-up when it is stopped."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 0.2)
        try:
            await trio.sleep(0.1)
        finally:
            raise RuntimeError("clean-up failed")


_HELLO = AssistantMessage(
    content=(TextContent(text="Hello"),),
    api="scripted",
    provider="scripted",
    model="scripted",
    usage=Usage.zero(),
    stop_reason="stop",
    timestamp=0,
)


class RetriedAnswer:
    """A stream function that asks again when an answer fails before it has begun."""

    def __init__(self, stream_fn: StreamFn, *request: Any) -> None:
        self._stream_fn = stream_fn
        self._request = request
        self._stack = AsyncExitStack()
        self._first: AssistantMessageEvent | None = None

    def __call__(self, *request: Any) -> RetriedAnswer:
        return RetriedAnswer(self._stream_fn, *request)

    async def __aenter__(self) -> Self:
        while self._first is None:
            self._events = await self._stack.enter_async_context(self._stream_fn(*self._request))
            try:
                self._first = await anext(self._events)
            except ModelError:
                await self._stack.aclose()
                await trio.sleep(0.2)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stack.aclose()

    def __aiter__(self) -> RetriedAnswer:
        return self

    async def __anext__(self) -> AssistantMessageEvent:
        first, self._first = self._first, None
        return await anext(self._events) if first is None else first


# -- scenarios -------------------------------------------------------------------------------------------------------


def _agent(
    *answers: str | Answer,
    delay: float = 0.0,
    hooks: Hooks = Hooks(),  # noqa: B008
    limiter: trio.CapacityLimiter | None = None,
    sequential: bool = False,
) -> Agent:
    model = ScriptedModel(answers, delay=delay)
    return Agent(
        model.model,
        system_prompt="Be brief.",
        stream_fn=model,
        tools=[work, report, delegate, linger, rewrite, tidy, stubborn, crash],
        hooks=hooks,
        limiter=limiter,
        tool_execution="sequential" if sequential else "parallel",
    )


def plain() -> Scenario:
    """Nobody watches, so that delivery is no checkpoint."""
    return Scenario(agent=_agent(Answer(thinking="hm", text="Hello there", chunk_size=6), delay=0.01), watchers=())


def watched() -> Scenario:
    return Scenario(agent=_agent(Answer(text="Hello"), delay=0.01), watched=True)


def watched_alone() -> Scenario:
    """A watcher that is alone takes its events in batches."""
    calls = [tool_call("work"), tool_call("report", steps=2), tool_call("missing"), tool_call("work", seconds=0.2)]
    answers = (Answer(text="ok", calls=calls), "Done.")
    return Scenario(agent=_agent(*answers, limiter=trio.CapacityLimiter(2)), watched=True, watchers=())


def watched_alone_one_by_one() -> Scenario:
    calls = [tool_call("work"), tool_call("missing"), tool_call("work")]
    return Scenario(agent=_agent(Answer(calls=calls), "Done.", sequential=True), watched=True, watchers=())


def one_tool() -> Scenario:
    """A call that is alone needs no task of its own."""
    return Scenario(agent=_agent(Answer(calls=[tool_call("work")]), "Done."))


def parallel_tools() -> Scenario:
    calls = [tool_call("work"), tool_call("work", seconds=0.2), tool_call("missing"), tool_call("work")]
    return Scenario(agent=_agent(Answer(text="ok", calls=calls), "Done."))


def sequential_tools() -> Scenario:
    calls = [tool_call("work"), tool_call("report", steps=1), tool_call("work", seconds="wrong")]
    return Scenario(agent=_agent(Answer(calls=calls), "Done.", sequential=True))


def nested_tools() -> Scenario:
    calls = [tool_call("delegate", levels=2), tool_call("delegate", levels=0)]
    return Scenario(agent=_agent(Answer(calls=calls), "Done.", limiter=trio.CapacityLimiter(1)), watchers=())


def queued_messages() -> Scenario:
    agent = _agent(Answer(calls=[tool_call("work")]), "Steered.", "Followed.", "Once more.", "Again.")
    agent.steer("before the first request")
    agent.follow_up("one")
    agent.follow_up("two")

    def steer(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionStart):
            agent.steer("while a tool is on")

    agent.subscribe(steer)
    return Scenario(agent=agent)


def continued_from_queue() -> Scenario:
    agent = _agent("First.", "Second.")
    agent.messages = [*agent.messages, _HELLO]
    agent.steering_mode = "all"
    agent.steer("one")
    agent.steer("two")
    agent.follow_up("three")
    return Scenario(agent=agent, prompt=None)


def failing_stream() -> Scenario:
    """An answer breaks midway; the agent had a call before."""
    broken = Answer(text="It was", fail=ModelError("connection lost"), fail_after=3)
    return Scenario(agent=_agent(Answer(calls=[tool_call("work")]), broken, delay=0.01))


def retried_stream() -> Scenario:
    """The first attempts fail before output begins, and a stream function around tries again after a while."""
    agent = _agent(Answer(connect_delay=0.1, fail=ModelError("overloaded")), "Hello")
    assert agent._stream_fn is not None
    agent._stream_fn = RetriedAnswer(agent._stream_fn)
    return Scenario(agent=agent)


def slow_handlers() -> Scenario:
    agent = _agent(Answer(text="ok", calls=[tool_call("work"), tool_call("report", steps=1)]), "Done.")

    async def listen(event: AgentEvent) -> None:
        if isinstance(event, MessageEnd | ToolExecutionEnd):
            await trio.sleep(0.02)

    async def watch(event: AgentEvent) -> None:
        if isinstance(event, MessageEnd | TurnEnd):
            await trio.sleep(0.03)

    agent.subscribe(listen)
    return Scenario(agent=agent, watchers=[watch, watch])


def updates() -> Scenario:
    return Scenario(agent=_agent(Answer(calls=[tool_call("report", steps=2), tool_call("report", steps=1)]), "Done."))


def limited_tools() -> Scenario:
    calls = [tool_call("work"), tool_call("work"), tool_call("report", steps=1), tool_call("work")]
    return Scenario(agent=_agent(Answer(calls=calls), "Done.", limiter=trio.CapacityLimiter(2)))


def exclusive_tools() -> Scenario:
    calls = [tool_call("work"), tool_call("rewrite"), tool_call("work"), tool_call("work")]
    return Scenario(agent=_agent(Answer(calls=calls), "Done."), watchers=())


def awaiting_hooks() -> Scenario:
    return Scenario(agent=_agent(Answer(calls=[tool_call("work"), tool_call("tidy")]), "Done.", hooks=_AWAITING))


def resisting_tools() -> Scenario:
    calls = [tool_call("tidy"), tool_call("stubborn"), tool_call("crash"), tool_call("linger")]
    return Scenario(agent=_agent(Answer(calls=calls), Answer(calls=[tool_call("stubborn")]), "Done."))


def truncated_answer() -> Scenario:
    calls = [tool_call("work"), tool_call("work")]
    return Scenario(agent=_agent(Answer(calls=calls, stop_reason="length"), "Done."))


def failing_listener() -> Scenario:
    agent = _agent(Answer(calls=[tool_call("work"), tool_call("report", steps=1)]), "Done.")

    async def listen(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionEnd):
            await trio.sleep(0.01)
            raise LookupError("listener")

    agent.subscribe(listen)
    return Scenario(agent=agent, raises=LookupError)


def failing_hook() -> Scenario:
    async def finish(_details: TurnDetails) -> None:
        await trio.sleep(0.01)
        raise LookupError("hook")

    agent = _agent(Answer(calls=[tool_call("work")]), "Done.", hooks=Hooks(finish_turn=finish))
    return Scenario(agent=agent, raises=LookupError)


def acting_handlers() -> Scenario:
    """Handlers that subscribe, steer and abort from inside."""
    agent = _agent(Answer(calls=[tool_call("work"), tool_call("work", seconds=0.3)]), "Steered.")

    def first_end(event: AgentEvent) -> None:
        if isinstance(event, TurnStart):
            agent.subscribe(lambda _event: None)
        if isinstance(event, ToolExecutionEnd):
            agent.steer("an end")
            agent.abort()

    agent.subscribe(first_end)
    return Scenario(agent=agent)


SCENARIOS: Sequence[Callable[[], Scenario]] = (
    plain,
    watched,
    one_tool,
    parallel_tools,
    watched_alone,
    watched_alone_one_by_one,
    sequential_tools,
    nested_tools,
    queued_messages,
    continued_from_queue,
    failing_stream,
    retried_stream,
    slow_handlers,
    updates,
    limited_tools,
    exclusive_tools,
    awaiting_hooks,
    resisting_tools,
    truncated_answer,
    failing_listener,
    failing_hook,
    acting_handlers,
)


async def _wait_transform(messages: Sequence[object]) -> Sequence[object]:
    await trio.sleep(0.01)
    return messages


async def _wait_key(_provider: str) -> str | None:
    await trio.sleep(0.01)
    return None


async def _wait_request(_details: RequestDetails) -> None:
    await trio.sleep(0.01)


async def _wait_before(details: ToolCallDetails) -> BlockToolCall | ReplaceArguments | None:
    await trio.sleep(0.01)
    return ReplaceArguments({"seconds": 0.05}) if details.tool_call.name == "work" else None


async def _wait_after(_details: ToolResultDetails) -> ToolResultPatch | None:
    await trio.sleep(0.01)
    return ToolResultPatch(content="seen")


async def _wait_finish(_details: TurnDetails) -> None:
    await trio.sleep(0.01)


async def _wait_stop(_details: TurnDetails) -> bool:
    await trio.sleep(0.01)
    return False


async def _wait_next(_details: TurnDetails) -> TurnUpdate | None:
    await trio.sleep(0.01)
    return None


_AWAITING = Hooks(
    transform_context=_wait_transform,  # type: ignore[arg-type]
    get_api_key=_wait_key,
    prepare_request=_wait_request,
    before_tool_call=_wait_before,
    after_tool_call=_wait_after,
    finish_turn=_wait_finish,
    should_stop_after_turn=_wait_stop,
    prepare_next_turn=_wait_next,
)


# -- the sweeps ------------------------------------------------------------------------------------------------------

SEEDS = range(int(os.environ.get("SWEEP_SEEDS", "1")))
"""Orders of tasks. One is enough to find what a change breaks; more are for a release."""

GRACE = 1.0
"""Seconds in which every stop must be over; handlers and clean-up of the scenarios take less."""


@pytest.mark.parametrize("action", ["cancel", "abort", "interrupt", "cancel_tool"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_run_can_be_disturbed_at_every_point(scenario: Callable[[], Scenario], action: Action) -> None:
    cancel_everywhere(scenario, action=action, seeds=SEEDS, stop_within=GRACE)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_watcher_can_be_cancelled_at_every_point_and_the_run_goes_on(scenario: Callable[[], Scenario]) -> None:
    cancel_everywhere(scenario, action="cancel_watcher", seeds=SEEDS, stop_within=GRACE, points=range(1, 10_000, 3))


@pytest.mark.parametrize("actions", [("abort", "cancel"), ("cancel", "abort"), ("abort", "interrupt")])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_run_that_is_being_stopped_can_be_stopped_again(
    scenario: Callable[[], Scenario], actions: Sequence[Action]
) -> None:
    cancel_everywhere(scenario, action=actions, seeds=SEEDS, stop_within=GRACE, points=range(1, 10_000, 7))
