"""Runs of every kind are stopped at every point of their schedule, in every way; see ``cancel_everywhere``."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Self

import pytest
import trio

from trio_agent import (
    Agent,
    AgentEvent,
    AgentMessage,
    AssistantMessage,
    AssistantMessageEvent,
    BlockToolCall,
    Hooks,
    JsonObject,
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
    ToolResultMessage,
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
async def blink() -> str:
    """Come to an end in the moment in which it is stopped."""
    await trio.lowlevel.cancel_shielded_checkpoint()
    return "blinked"


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
        except trio.Cancelled:  # noqa: ASYNC103
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
    closing_grace: float = 1.0,
) -> Agent:
    model = ScriptedModel(answers, delay=delay)
    return Agent(
        model.model,
        system_prompt="Be brief.",
        stream_fn=model,
        tools=[work, blink, report, delegate, linger, rewrite, tidy, stubborn, crash],
        hooks=hooks,
        limiter=limiter,
        tool_execution="sequential" if sequential else "parallel",
        closing_grace=closing_grace,
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


def prompted_with_a_watcher_alone() -> Scenario:
    """The watcher is in a task that is not stopped with the run."""
    calls = [tool_call("work"), tool_call("report", steps=1), tool_call("missing")]
    return Scenario(agent=_agent(Answer(text="ok", calls=calls), "Done."), listened=False)


def joined_midway() -> Scenario:
    """A watcher that is alone does not stay so: in the middle of a batch a listener joins, and gets what follows."""
    calls = [tool_call("work"), tool_call("missing"), tool_call("report", steps=1)]
    agent = _agent(Answer(text="ok", calls=calls), "Done.")
    seen: list[AgentEvent] = []
    heard: list[AgentEvent] = []
    joined_at: list[int] = []

    async def watch(event: AgentEvent) -> None:
        seen.append(event)
        if isinstance(event, ToolExecutionStart) and not joined_at:
            joined_at.append(len(seen))
            agent.subscribe(heard.append)

    def check(_agent: Agent) -> None:
        for start in joined_at:
            both = zip(seen[start:], heard[: len(seen) - start], strict=True)
            assert all(a is b for a, b in both), "who joins gets other events than who is there"

    return Scenario(agent=agent, watchers=[watch], listened=False, check=check)


def without_closing_events() -> Scenario:
    calls = [tool_call("work"), tool_call("report", steps=1)]
    return Scenario(agent=_agent(Answer(text="ok", calls=calls), "Done.", closing_grace=0))


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


def nested_beside_others() -> Scenario:
    """A call that is nested gets two slots at once: the one it is lent, and one that another call gives back."""
    calls = [tool_call("delegate", levels=0), tool_call("work")]
    return Scenario(agent=_agent(Answer(calls=calls), "Done.", limiter=trio.CapacityLimiter(2)), watchers=())


def left_early() -> Scenario:
    calls = [tool_call("work"), tool_call("report", steps=1)]
    agent = _agent(Answer(text="Hello", calls=calls), "Done.", delay=0.01)
    return Scenario(agent=agent, watched=True, leaves_after=18)


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


def passing_hooks() -> Scenario:
    """Hooks and tools that come to an end in the moment in which they are stopped, so that nothing tells them."""
    calls = [tool_call("blink"), tool_call("blink")]
    return Scenario(agent=_agent(Answer(calls=calls), Answer(calls=calls[:1]), "Done.", hooks=_PASSING))


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
    prompted_with_a_watcher_alone,
    joined_midway,
    without_closing_events,
    sequential_tools,
    nested_tools,
    nested_beside_others,
    left_early,
    queued_messages,
    continued_from_queue,
    failing_stream,
    retried_stream,
    slow_handlers,
    updates,
    limited_tools,
    exclusive_tools,
    awaiting_hooks,
    passing_hooks,
    resisting_tools,
    truncated_answer,
    failing_listener,
    failing_hook,
    acting_handlers,
)


async def _wait() -> None:
    await trio.sleep(0.01)


def _hooks(wait: Callable[[], Awaitable[None]], arguments: JsonObject | None, content: str) -> Hooks:
    """Hooks that wait, and change nothing but the arguments and the result of a call."""

    async def transform(messages: Sequence[AgentMessage]) -> Sequence[AgentMessage]:
        await wait()
        return messages

    async def get_key(_provider: str) -> str | None:
        await wait()
        return None

    async def before_request(_details: RequestDetails) -> None:
        await wait()

    async def before_call(details: ToolCallDetails) -> BlockToolCall | ReplaceArguments | None:
        await wait()
        return ReplaceArguments(arguments) if arguments and details.tool_call.name == "work" else None

    async def after_call(_details: ToolResultDetails) -> ToolResultPatch | None:
        await wait()
        return ToolResultPatch(content=content)

    async def finish(_details: TurnDetails) -> None:
        await wait()

    async def stop(_details: TurnDetails) -> bool:
        await wait()
        return False

    async def prepare_next(_details: TurnDetails) -> TurnUpdate | None:
        await wait()
        return None

    return Hooks(
        transform_context=transform,
        get_api_key=get_key,
        prepare_request=before_request,
        before_tool_call=before_call,
        after_tool_call=after_call,
        finish_turn=finish,
        should_stop_after_turn=stop,
        prepare_next_turn=prepare_next,
    )


_AWAITING = _hooks(_wait, {"seconds": 0.05}, "seen")
_PASSING = _hooks(trio.lowlevel.cancel_shielded_checkpoint, None, "seen")


# -- the sweeps ------------------------------------------------------------------------------------------------------

SEEDS = range(int(os.environ.get("SWEEP_SEEDS", "1")))
"""Orders of tasks. One is enough to find what a change breaks; more are for a release."""


def every(step: int, start: int = 1) -> Iterable[int]:
    """Points of the schedule: each so many, but all of them for a release."""
    return range(start, 10_000, 1 if len(SEEDS) > 1 else step)


# What the tools of the scenarios can come to; anything else would be an invention of the loop.
_RESULTS = re.compile(
    "worked|blinked|reported|delegated: (True|False)|done|rewritten|tidied|stubborn|seen|RuntimeError: clean-up failed"
    "|Operation aborted|Tool missing not found|Tool \\S+ was cancelled|Tool \\S+ timed out after 60 s"
    "|Tool call \\S+ was not executed: .*|Validation failed for tool .*",
    re.DOTALL,
)

# Virtual seconds that a stop may take: none, but for what handlers, hooks and the clean-up of tools take.
_SLOWEST = {
    slow_handlers: 0.35,
    awaiting_hooks: 0.08,
    resisting_tools: 0.06,
    failing_listener: 0.02,
    failing_hook: 0.02,
}


def _checking(made: Scenario, *, is_answered: bool) -> Callable[[Agent], None]:
    def check(agent: Agent) -> None:
        for message in agent.messages:
            if isinstance(message, ToolResultMessage):
                assert _RESULTS.fullmatch(message.text), message.text
        if is_answered:
            assert isinstance(agent.messages[-1], AssistantMessage), "after the abort an answer is still owed"
        if made.check is not None:
            made.check(agent)

    return check


def sweep(
    scenario: Callable[[], Scenario], *, action: Action | Sequence[Action], points: Iterable[int] | None = None
) -> None:
    def make() -> Scenario:
        made = scenario()
        return replace(made, check=_checking(made, is_answered=action == "abort" and made.raises is None))

    report = cancel_everywhere(make, action=action, seeds=SEEDS, points=points)

    assert report.slowest_stop <= _SLOWEST.get(scenario, 0.0) + 1e-6, f"a stop took {report.slowest_stop} s"


@pytest.mark.parametrize("action", ["cancel", "abort"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_run_can_be_stopped_at_every_point(scenario: Callable[[], Scenario], action: Action) -> None:
    # Ctrl-C takes the ways of a cancellation, and a cancelled call those of a time limit.
    sweep(scenario, action=action, points=every(1 if action in {"cancel", "abort"} else 3))


@pytest.mark.parametrize("action", ["interrupt", "cancel_tool"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_run_can_be_disturbed_at_every_other_point(scenario: Callable[[], Scenario], action: Action) -> None:
    sweep(scenario, action=action, points=range(1, 10_000, 2))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_watcher_can_be_cancelled_at_every_point_and_the_run_goes_on(scenario: Callable[[], Scenario]) -> None:
    sweep(scenario, action="cancel_watcher", points=every(4))


@pytest.mark.parametrize("actions", [("abort", "cancel"), ("cancel", "abort"), ("abort", "interrupt")])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_run_that_is_being_stopped_can_be_stopped_again(
    scenario: Callable[[], Scenario], actions: Sequence[Action]
) -> None:
    sweep(scenario, action=actions, points=every(11))


@pytest.mark.parametrize("leaves_after", range(1, 28))
def test_a_run_can_be_left_after_each_event(leaves_after: int) -> None:
    def leave() -> Scenario:
        return replace(left_early(), leaves_after=leaves_after, watchers=())

    sweep(leave, action="abort", points=[10_000])


def test_a_listener_that_takes_its_time_cannot_hold_up_a_cancellation_beyond_the_grace() -> None:
    def make() -> Scenario:
        agent = _agent(Answer(calls=[tool_call("work")]), "Done.")

        async def listen(event: AgentEvent) -> None:
            if isinstance(event, TurnEnd | ToolExecutionEnd):
                await trio.sleep(20)

        agent.subscribe(listen)
        return Scenario(agent=agent)

    for action in ("cancel", "interrupt"):
        report = cancel_everywhere(make, action=action, seeds=SEEDS, points=range(1, 10_000, 3))

        assert 0.9 < report.slowest_stop <= 1.0 + 1e-6
