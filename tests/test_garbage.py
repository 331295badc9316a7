"""Agents that nobody has are gone at once, with their transcripts: no circle waits for the garbage collector."""

from __future__ import annotations

import gc
import logging
import sys
import weakref
from collections.abc import Awaitable, Callable, Iterator

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_agent import Agent, AgentEvent, ModelError, Tool, ToolContext, ToolResult, tool
from trio_agent.testing import Answer, ScriptedModel, tool_call

pytestmark = pytest.mark.skipif(sys.implementation.name != "cpython", reason="without counts of references")


@pytest.fixture(autouse=True)
def _no_collector_and_no_log() -> Iterator[None]:
    # pytest keeps what is logged, and a tool that failed is logged with its traceback.
    logging.disable()
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    logging.disable(logging.NOTSET)


@tool
async def look_up(item: int) -> str:
    """Look an item up."""
    await trio.lowlevel.checkpoint()
    return str(item)


@tool
async def talk(item: int, *, ctx: ToolContext) -> str:
    """Report, and call another tool."""
    await ctx.update(ToolResult("half"))
    outcome = await ctx.call_tool("look_up", {"item": item})
    assert not outcome.is_error
    return "done"


@tool
async def fail(item: int) -> str:
    """Fail."""
    await trio.lowlevel.checkpoint()
    raise ValueError(item)


@tool
async def hang(item: int) -> str:
    """Wait for ever."""
    return await trio.sleep_forever()


@tool(timeout=1)
async def hang_a_second(item: int) -> str:
    """Wait for too long."""
    return await trio.sleep_forever()


def agent_that_calls(called: Tool, **options: object) -> Agent:
    scripted = ScriptedModel([Answer(calls=[tool_call(called.name, item=number) for number in range(2)]), "Done."])
    return Agent(scripted.model, tools=[look_up, talk, fail, hang, hang_a_second], stream_fn=scripted, **options)  # type: ignore[arg-type]


async def prompt(agent: Agent) -> None:
    await agent.prompt("go")


async def listen(agent: Agent) -> None:
    async def listener(event: AgentEvent) -> None:
        pass

    agent.subscribe(listener)
    await agent.prompt("go")


async def watch(agent: Agent) -> None:
    async with agent.run("go") as run:
        async for _ in run:
            pass


async def leave_early(agent: Agent) -> None:
    async with agent.run("go") as run:
        async for _ in run:
            break


async def abort(agent: Agent) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(prompt, agent)
        await wait_all_tasks_blocked()
        agent.abort()


async def cancel(agent: Agent) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(prompt, agent)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()


async def cancel_watcher(agent: Agent) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch, agent)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()


async def cancel_listener(agent: Agent) -> None:
    async def listener(event: AgentEvent) -> None:
        await trio.sleep_forever()

    agent.subscribe(listener)
    await cancel(agent)


async def make_a_listener_fail(agent: Agent) -> None:
    def listener(event: AgentEvent) -> None:
        raise LookupError

    with agent.subscribe(listener), pytest.raises(LookupError):
        await agent.prompt("go")


@pytest.mark.parametrize("called", [look_up, talk, fail, hang_a_second], ids=lambda called: called.name)
@pytest.mark.parametrize("use", [prompt, listen, watch, leave_early])
async def test_agent_is_gone_when_nobody_has_it(
    use: Callable[[Agent], Awaitable[None]], called: Tool, autojump_clock: MockClock
) -> None:
    agent = agent_that_calls(called)
    await use(agent)
    gone, its_delivery_gone = weakref.ref(agent), weakref.ref(agent._delivery)
    del agent

    assert gone() is None
    assert its_delivery_gone() is None


@pytest.mark.parametrize("use", [abort, cancel, cancel_watcher, cancel_listener, make_a_listener_fail])
async def test_agent_is_gone_after_its_run_was_stopped(
    use: Callable[[Agent], Awaitable[None]], autojump_clock: MockClock
) -> None:
    agent = agent_that_calls(hang)
    await use(agent)
    gone = weakref.ref(agent)
    del agent

    assert gone() is None


async def test_agent_with_a_limit_is_gone_when_nobody_has_it() -> None:
    agent = agent_that_calls(look_up, limiter=trio.CapacityLimiter(1))
    await agent.prompt("go")
    gone = weakref.ref(agent)
    del agent

    assert gone() is None


async def test_agent_whose_model_failed_is_gone_when_nobody_has_it() -> None:
    scripted = ScriptedModel([Answer(fail=ModelError("no answer"))])
    agent = Agent(scripted.model, stream_fn=scripted)
    await agent.prompt("go")
    gone = weakref.ref(agent)
    del agent, scripted

    assert gone() is None
