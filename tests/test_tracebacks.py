"""Wherever user code fails, whatever door the run was started through: the traceback ends in the user's line (P9).

And it is about nothing else: no group around it, no other exception before it that the reader has to understand first.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from loop_kit import scripted_agent, user

from trio_agent import Agent, AgentEvent, Context, Hooks, MessageEnd, MessageUpdate, ToolContext, ToolExecutionEnd, tool
from trio_agent.lowlevel import LoopConfig, agent_loop, agent_loop_continue, run_agent_loop, run_agent_loop_continue
from trio_agent.testing import Answer, ScriptedModel, tool_call


class BugError(Exception):
    """What user code raises."""


def fail(error: type[BaseException] = BugError) -> None:
    raise error("the user's line")


@tool
async def work() -> str:
    """Do nothing."""
    return "worked"


@tool
async def work_with_context(*, ctx: ToolContext) -> str:
    """Do nothing, in a task of its own."""
    return ctx.tool_call_id


@tool
async def exit_alone() -> None:
    """Ask for the end of the program, in the run's own task."""
    fail(SystemExit)


@tool
async def exit_in_task(*, ctx: ToolContext) -> None:
    """Ask for the end of the program, in a task of its own."""
    fail(SystemExit)


def _model() -> ScriptedModel:
    calls = [tool_call("work"), tool_call("work_with_context")]
    return ScriptedModel([Answer(text="Hello", calls=calls), "Done."])


def _agent(**options: Any) -> Agent:
    model = _model()
    return Agent(model.model, stream_fn=model, tools=[work, work_with_context], **options)


# -- where it fails: an agent with the fault in it -------------------------------------------------------------------


def plain_listener(kind: type[AgentEvent]) -> Agent:
    agent = _agent()
    agent.subscribe(lambda event: fail() if isinstance(event, kind) else None)
    return agent


def async_listener(kind: type[AgentEvent]) -> Agent:
    async def listen(event: AgentEvent) -> None:
        if isinstance(event, kind):
            fail()

    agent = _agent()
    agent.subscribe(listen)
    return agent


def hook(name: str) -> Agent:
    async def ask(_details: object) -> None:
        fail()

    return _agent(hooks=Hooks(**{name: ask}))  # type: ignore[arg-type]  # one of those that are awaited


def converter(_name: str) -> Agent:
    def convert(_messages: Sequence[Any]) -> Any:
        fail()

    return _agent(hooks=Hooks(convert_to_llm=convert))


FAULTS: list[tuple[Callable[[Any], Agent], Any]] = [
    *[(plain_listener, kind) for kind in (MessageUpdate, MessageEnd, ToolExecutionEnd)],
    *[(async_listener, kind) for kind in (MessageUpdate, MessageEnd, ToolExecutionEnd)],
    *[
        (hook, name)
        for name in (
            "transform_context",
            "get_api_key",
            "prepare_request",
            "finish_turn",
            "should_stop_after_turn",
            "prepare_next_turn",
        )
    ],
    (converter, "convert_to_llm"),
]


# -- the doors -------------------------------------------------------------------------------------------------------


async def prompt(agent: Agent) -> None:
    await agent.prompt("go")


async def continue_(agent: Agent) -> None:
    agent.messages = [*agent.messages, user("go")]
    await agent.continue_()


async def run(agent: Agent) -> None:
    async with agent.run("go") as watched:
        async for _ in watched:
            pass


def _last_lines(exc: BaseException) -> tuple[str, str]:
    """The function in which a traceback ends, and its source."""
    last = traceback.extract_tb(exc.__traceback__)[-1]
    return last.name, last.line or ""


def _is_alone(exc: BaseException) -> bool:
    return exc.__cause__ is None and (exc.__context__ is None or exc.__suppress_context__)


@pytest.mark.parametrize("door", [prompt, continue_, run])
@pytest.mark.parametrize(("fault", "place"), FAULTS)
async def test_the_traceback_of_a_failing_handler_or_hook_ends_in_the_users_line(
    fault: Callable[[Any], Agent], place: Any, door: Callable[[Agent], Awaitable[None]]
) -> None:
    agent = fault(place)

    with pytest.raises(BugError) as caught:
        await door(agent)

    assert _last_lines(caught.value) == ("fail", 'raise error("the user\'s line")')
    assert _is_alone(caught.value)
    assert door.__name__ in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


@pytest.mark.parametrize("kind", [MessageUpdate, MessageEnd, ToolExecutionEnd])
async def test_the_traceback_out_of_the_body_of_a_run_ends_in_the_users_line(kind: type[AgentEvent]) -> None:
    async def watch(agent: Agent) -> None:
        async with agent.run("go") as watched:
            async for event in watched:
                if isinstance(event, kind):
                    fail()

    with pytest.raises(BugError) as caught:
        await watch(_agent())

    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][-2:] == ["watch", "fail"]
    assert _is_alone(caught.value)


@pytest.mark.parametrize("door", [prompt, run])
@pytest.mark.parametrize("bad", [exit_alone, exit_in_task])
async def test_the_traceback_of_what_a_tool_cannot_turn_into_a_result_ends_in_the_users_line(
    bad: Any, door: Callable[[Agent], Awaitable[None]]
) -> None:
    agent, _ = scripted_agent(Answer(calls=[tool_call(bad.name)]), "Done.", tools=[bad])

    with pytest.raises(SystemExit) as caught:
        await door(agent)

    assert _last_lines(caught.value) == ("fail", 'raise error("the user\'s line")')


async def _run_loop(emit: Callable[[AgentEvent], None]) -> None:
    model = _model()
    await run_agent_loop([user("go")], Context((), (work,)), LoopConfig(model=model.model), emit, model)


async def _continue_loop(emit: Callable[[AgentEvent], None]) -> None:
    model = _model()
    await run_agent_loop_continue(Context([user("go")], (work,)), LoopConfig(model=model.model), emit, model)


async def _observe_loop(emit: Callable[[AgentEvent], None]) -> None:
    model = _model()
    async with agent_loop([user("go")], Context((), (work,)), LoopConfig(model=model.model), model) as events:
        async for event in events:
            emit(event)


async def _observe_continued_loop(emit: Callable[[AgentEvent], None]) -> None:
    model = _model()
    context = Context([user("go")], (work,))
    async with agent_loop_continue(context, LoopConfig(model=model.model), model, buffer=0) as events:
        async for event in events:
            emit(event)


@pytest.mark.parametrize("door", [_run_loop, _continue_loop, _observe_loop, _observe_continued_loop])
@pytest.mark.parametrize("kind", [MessageUpdate, MessageEnd, ToolExecutionEnd])
async def test_the_traceback_out_of_a_loop_without_an_agent_ends_in_the_users_line(
    kind: type[AgentEvent], door: Callable[[Callable[[AgentEvent], None]], Awaitable[None]]
) -> None:
    with pytest.raises(BugError) as caught:
        await door(lambda event: fail() if isinstance(event, kind) else None)

    assert _last_lines(caught.value) == ("fail", 'raise error("the user\'s line")')
    assert _is_alone(caught.value)
