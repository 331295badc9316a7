"""The doors to the loop without an agent: with a sink, and as a stream that is observed."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from loop_kit import assistant, outline, plain_tool, result, shorts, user
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_agent import (
    Agent,
    AgentEnd,
    AgentEvent,
    AgentMessage,
    Context,
    Hooks,
    MessageUpdate,
    SystemMessage,
    ToolExecutionStart,
    TranscriptError,
    TurnDetails,
    TurnEnd,
    get_default_stream_fn,
    providers,
    set_default_stream_fn,
)
from trio_agent.lowlevel import (
    AbortHandle,
    LoopConfig,
    LoopStream,
    agent_loop,
    agent_loop_continue,
    run_agent_loop,
    run_agent_loop_continue,
)
from trio_agent.testing import Answer, Gate, ScriptedModel, check_transcript, tool_call


def config(scripted: ScriptedModel, **settings: Any) -> LoopConfig:
    return LoopConfig(model=scripted.model, **settings)


def ignore(_event: AgentEvent) -> None:
    """A sink for runs of which only the result counts."""


async def read(stream: LoopStream, events: list[AgentEvent]) -> list[AgentMessage]:
    async with stream:
        async for event in stream:
            events.append(event)  # noqa: PERF401  # kept also if the stream fails
        return await stream.result()


# -- with a sink -------------------------------------------------------------------------------------------------------


async def test_a_run_returns_what_it_added_the_prompts_first() -> None:
    scripted = ScriptedModel(["Hello."])

    added = await run_agent_loop([user("Hi")], Context((user("before"),)), config(scripted), ignore, scripted)

    assert shorts(added) == ["user: Hi", "assistant[stop]: Hello."]
    assert shorts(scripted.requests[0].messages) == ["user: before", "user: Hi"]


async def test_the_callers_context_is_never_modified() -> None:
    scripted = ScriptedModel([Answer(calls=[tool_call("work", "c1")]), "Done."])
    messages: list[AgentMessage] = [SystemMessage(content="Be brief.", timestamp=0), user("before")]
    tools = [plain_tool("work")]
    prompts: list[AgentMessage] = [user("go")]
    context = Context(messages, tools)
    copies = (list(messages), list(tools), list(prompts))

    await run_agent_loop(prompts, context, config(scripted), ignore, scripted)

    assert (messages, tools, prompts) == copies
    assert (context.messages, context.tools) == (messages, tools)


async def test_messages_appended_to_the_callers_list_during_a_run_do_not_enter_it() -> None:
    scripted = ScriptedModel([Answer(calls=[tool_call("work", "c1")]), "Done."])
    messages: list[AgentMessage] = [user("before")]

    def meddle(event: AgentEvent) -> None:
        if isinstance(event, TurnEnd):
            messages.append(user("smuggled"))

    await run_agent_loop([user("go")], Context(messages, (plain_tool("work"),)), config(scripted), meddle, scripted)

    assert "user: smuggled" not in shorts(scripted.requests[1].messages)


async def test_a_sink_may_be_async_and_is_a_barrier(autojump_clock: MockClock) -> None:
    scripted = ScriptedModel(["Hello."])
    times: list[float] = []

    async def emit(_event: AgentEvent) -> None:
        start = trio.current_time()
        await trio.sleep(1)
        times.append(start)

    await run_agent_loop([user("Hi")], Context(), config(scripted), emit, scripted)

    assert [time - times[0] for time in times] == list(range(len(times)))


async def test_no_prompt_is_refused_and_names_the_other_door() -> None:
    scripted = ScriptedModel()

    with pytest.raises(ValueError, match="use the door to continue"):
        await run_agent_loop([], Context((user("x"),)), config(scripted), ignore, scripted)
    with pytest.raises(ValueError, match="use the door to continue"):
        agent_loop([], Context((user("x"),)), config(scripted), scripted)


@pytest.mark.parametrize(
    "tail",
    [user("Hi"), result("c0", "found"), SystemMessage(content="Be brief.", timestamp=0)],
    ids=["user", "result", "system after user"],
)
async def test_continuing_answers_the_tail_and_returns_only_what_is_new(tail: AgentMessage) -> None:
    scripted = ScriptedModel(["Hello."])
    head = (
        [user("first"), assistant(tool_call("work", "c0"), stop_reason="toolUse")]
        if tail == result("c0", "found")
        else [user("first")]
    )

    added = await run_agent_loop_continue(Context((*head, tail)), config(scripted), ignore, scripted)

    assert shorts(added) == ["assistant[stop]: Hello."]


@pytest.mark.parametrize(
    "messages",
    [
        (),
        (SystemMessage(content="x", timestamp=0),),
        (user("Hi"), assistant("Hello.")),
        (user("Hi"), assistant("Hello."), SystemMessage(content="x", timestamp=0)),
    ],
    ids=["empty", "system only", "assistant", "system after assistant"],
)
async def test_continuing_with_nothing_to_answer_is_refused_by_both_doors(messages: tuple[AgentMessage, ...]) -> None:
    scripted = ScriptedModel()

    with pytest.raises(TranscriptError, match="cannot continue"):
        await run_agent_loop_continue(Context(messages), config(scripted), ignore, scripted)
    with pytest.raises(TranscriptError, match="cannot continue"):
        agent_loop_continue(Context(messages), config(scripted), scripted)


async def test_a_failing_sink_gets_no_closing_events_and_its_exception_comes_out_bare() -> None:
    scripted = ScriptedModel([Answer(calls=[tool_call("work", "c1")])])
    events: list[AgentEvent] = []

    def emit(event: AgentEvent) -> None:
        events.append(event)
        if isinstance(event, ToolExecutionStart):
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        await run_agent_loop([user("go")], Context((), (plain_tool("work"),)), config(scripted), emit, scripted)

    assert isinstance(events[-1], ToolExecutionStart)


async def test_an_abort_handle_stops_the_run_which_then_returns() -> None:
    scripted = ScriptedModel([Answer(text="One two three", chunk_size=4)])
    abort = AbortHandle()
    events: list[AgentEvent] = []

    def emit(event: AgentEvent) -> None:
        events.append(event)
        if isinstance(event, MessageUpdate) and event.message.text == "One ":
            abort.abort()

    added = await run_agent_loop([user("go")], Context(), config(scripted), emit, scripted, abort=abort)

    assert shorts(added) == ["user: go", "assistant[aborted]: One "]
    assert outline(events)[-2:] == ["turn_end aborted 0", "agent_end 2"]


# -- the default stream function ---------------------------------------------------------------------------------------


@pytest.fixture
def no_default() -> Any:
    """No default stream function while the test runs."""
    set_default_stream_fn(None)
    yield
    set_default_stream_fn(None)


async def test_agents_and_doors_use_the_default_stream_function(no_default: None) -> None:
    scripted = ScriptedModel(["One.", "Two.", "Three."])
    set_default_stream_fn(scripted)
    assert get_default_stream_fn() is scripted

    added = await run_agent_loop([user("a")], Context(), config(scripted), ignore)
    async with agent_loop([user("b")], Context(), config(scripted)) as stream:
        added += await stream.result()
    added += (await Agent(scripted.model).prompt(user("c"))).messages

    assert shorts(added)[1::2] == ["assistant[stop]: One.", "assistant[stop]: Two.", "assistant[stop]: Three."]


def test_the_default_is_the_one_for_real_models(no_default: None) -> None:
    assert get_default_stream_fn() is providers.stream


async def test_a_stream_function_that_is_given_wins_over_the_default(no_default: None) -> None:
    scripted, default = ScriptedModel(["mine"]), ScriptedModel(["default"])
    set_default_stream_fn(default)

    await run_agent_loop([user("a")], Context(), config(scripted), ignore, scripted)

    scripted.assert_exhausted()
    assert default.requests == []


# -- as a stream -------------------------------------------------------------------------------------------------------


async def test_a_stream_gives_the_events_of_the_run_and_then_its_result() -> None:
    scripted = ScriptedModel([Answer(calls=[tool_call("work", "c1")]), "Done."])

    events: list[AgentEvent] = []
    stream = agent_loop([user("go")], Context((), (plain_tool("work"),)), config(scripted), scripted)
    added = await read(stream, events)

    last = events[-1]
    assert isinstance(last, AgentEnd)
    assert list(last.messages) == added
    assert outline(events)[0] == "agent_start"
    check_transcript(added)


async def test_a_continued_stream_returns_only_what_is_new() -> None:
    scripted = ScriptedModel(["Hello."])

    async with agent_loop_continue(Context((user("Hi"),)), config(scripted), scripted) as stream:
        added = await stream.result()

    assert shorts(added) == ["assistant[stop]: Hello."]


async def test_a_raising_hook_reaches_the_reader_after_the_events_before_it() -> None:
    scripted = ScriptedModel(["Hello."])

    async def finish_turn(_details: TurnDetails) -> None:
        raise LookupError("no such policy")

    stream = agent_loop([user("Hi")], Context(), config(scripted, hooks=Hooks(finish_turn=finish_turn)), scripted)
    events: list[AgentEvent] = []
    with pytest.raises(LookupError, match="no such policy"):
        await read(stream, events)

    assert outline(events)[-3:] == ["< assistant[stop]: Hello.", "turn_end stop 0", "agent_end 2"]


async def test_a_failure_reaches_the_waiter_for_the_result_too() -> None:
    scripted = ScriptedModel(["Hello."])

    async def prepare_request(_details: object) -> None:
        raise LookupError("no such policy")

    caught: list[str] = []
    async with agent_loop(
        [user("Hi")], Context(), config(scripted, hooks=Hooks(prepare_request=prepare_request)), scripted
    ) as stream:
        try:
            await stream.result()
        except LookupError as exc:
            caught.append(str(exc))

    assert caught == ["no such policy"]


async def test_a_failure_that_nobody_read_comes_out_of_the_block() -> None:
    scripted = ScriptedModel(["Hello."])

    async def prepare_request(_details: object) -> None:
        raise LookupError("no such policy")

    with pytest.raises(LookupError, match="no such policy"):
        async with agent_loop(
            [user("Hi")], Context(), config(scripted, hooks=Hooks(prepare_request=prepare_request)), scripted
        ):
            await wait_all_tasks_blocked()


async def test_a_full_buffer_holds_the_run_back() -> None:
    scripted = ScriptedModel(["Hello."])

    async with agent_loop([user("Hi")], Context(), config(scripted), scripted, buffer=3) as stream:
        await wait_all_tasks_blocked()
        assert scripted.requests == []  # the fourth event is the end of the prompt

        await stream.__anext__()
        await wait_all_tasks_blocked()
        assert len(scripted.requests) == 1


async def test_a_run_with_room_in_the_buffer_does_not_wait_for_the_reader() -> None:
    scripted = ScriptedModel(["Hello."])

    async with agent_loop([user("Hi")], Context(), config(scripted), scripted) as stream:
        added = await stream.result()
        events = [event async for event in stream]

    assert shorts(added) == ["user: Hi", "assistant[stop]: Hello."]
    assert outline(events)[-1] == "agent_end 2"


async def test_leaving_a_stream_early_aborts_the_run_and_waits_for_it() -> None:
    gate = Gate()
    scripted = ScriptedModel([Answer(calls=[tool_call("gate", "c1")])])
    tasks = trio.lowlevel.current_statistics().tasks_living

    async with agent_loop([user("go")], Context((), (gate.tool,)), config(scripted), scripted) as stream:
        async for event in stream:
            if isinstance(event, ToolExecutionStart):
                await gate.wait_entered()
                break

    assert gate.cancelled == ["c1"]
    assert trio.lowlevel.current_statistics().tasks_living == tasks
    assert shorts(await stream.result())[-2:] == ["error c1: Operation aborted", "assistant[aborted]: "]


async def test_an_abort_ends_a_stream_in_order() -> None:
    gate = Gate()
    scripted = ScriptedModel([Answer(calls=[tool_call("gate", "c1")])])
    abort = AbortHandle()
    events: list[AgentEvent] = []

    async with agent_loop([user("go")], Context((), (gate.tool,)), config(scripted), scripted, abort=abort) as stream:
        async for event in stream:
            events.append(event)
            if isinstance(event, ToolExecutionStart):
                abort.abort()

    assert outline(events)[-4:] == ["> assistant", "< assistant[aborted]: ", "turn_end aborted 0", "agent_end 5"]


async def test_a_stream_must_be_entered_and_only_once() -> None:
    scripted = ScriptedModel(["Hello."])
    stream = agent_loop([user("Hi")], Context(), config(scripted), scripted)

    with pytest.raises(RuntimeError, match="enter the stream first"):
        async for _event in stream:
            pass
    async with stream:
        pass
    with pytest.raises(RuntimeError, match="entered only once"):
        async with stream:
            pass


def test_a_negative_buffer_is_refused() -> None:
    scripted = ScriptedModel()

    with pytest.raises(ValueError, match="must be"):
        agent_loop([user("Hi")], Context(), config(scripted), scripted, buffer=-1)
