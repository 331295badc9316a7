"""Cases from the field about cancellation, pools and exception groups (kind e), each named after its id."""

from __future__ import annotations

import pytest
import trio
from loop_kit import scripted_agent, text_of
from providers.raw_server import (
    CHUNKED,
    FINISH,
    OPTIONS,
    Reply,
    Request,
    chunk,
    delta,
    failing,
    head,
    model_at,
    serving,
    streamed,
)
from trio.testing import wait_all_tasks_blocked

from trio_agent import (
    Agent,
    AgentEnd,
    AgentEvent,
    Hooks,
    MessageUpdate,
    ModelHTTPError,
    ToolContext,
    ToolExecutionEnd,
    ToolExecutionUpdate,
    ToolResultMessage,
    tool,
    with_retries,
)
from trio_agent.providers import ModelClient
from trio_agent.testing import Answer, check_transcript, record, tool_call

GROUP_WORDS = ("TaskGroup", "unhandled errors", "sub-exception", "ExceptionGroup")
HELLO = streamed(delta("Hello."), FINISH)


async def endless(stream: trio.SocketStream, _request: Request) -> None:
    await stream.send_all(head("200 OK", CHUNKED))
    while True:
        await stream.send_all(chunk(delta("word ")))
        await trio.sleep(0.02)


async def silent(_stream: trio.SocketStream, _request: Request) -> None:
    await trio.sleep_forever()


@pytest.mark.parametrize("never", [endless, silent])
async def test_b82_twenty_cancelled_streams_leave_the_client_usable(never: Reply) -> None:
    # A request cancelled early may never arrive, so the count of requests cannot tell which is the last.
    reply = never

    async def answer_it(stream: trio.SocketStream, request: Request) -> None:
        await reply(stream, request)

    async with serving(answer_it) as server, ModelClient(limiter=trio.CapacityLimiter(2)) as client:
        for attempt in range(20):
            agent = Agent(model_at(server), stream_fn=client, options=OPTIONS)
            with trio.move_on_after(0.01 + attempt * 0.005) as scope:
                await agent.prompt("go")
            assert scope.cancelled_caught
            check_transcript(agent.messages)

        reply = HELLO
        agent = Agent(model_at(server), stream_fn=client, options=OPTIONS)
        with trio.fail_after(5):
            answer = await agent.prompt("go")

    assert answer.text == "Hello."


async def test_b83_aborts_while_requests_are_queued_lose_no_slot() -> None:
    async def slow(stream: trio.SocketStream, request: Request) -> None:
        await trio.sleep(0.05)
        await HELLO(stream, request)

    limiter = trio.CapacityLimiter(1)
    async with serving(slow) as server, ModelClient(limiter=limiter) as client:
        agents = [Agent(model_at(server), stream_fn=client, options=OPTIONS) for _ in range(5)]
        async with trio.open_nursery() as nursery:
            for agent in agents:
                nursery.start_soon(agent.prompt, "go")
            await trio.sleep(0.02)
            for agent in agents:
                agent.abort()

        with trio.fail_after(5):
            answer = await Agent(model_at(server), stream_fn=client, options=OPTIONS).prompt("go")

    assert answer.text == "Hello."
    assert limiter.borrowed_tokens == 0


async def test_b85_a_refused_request_is_an_answer_without_a_group() -> None:
    refused = failing("401 Unauthorized", b'{"error": {"message": "bad key"}}')
    async with serving(refused) as server, ModelClient() as client:
        result = await Agent(model_at(server), stream_fn=client, options=OPTIONS).prompt("go")

    message = result.message
    assert message is not None
    assert message.stop_reason == "error"
    assert "401" in (message.error_message or "")
    assert not any(word in (message.error_message or "") for word in GROUP_WORDS)


async def test_b85_groups_out_of_tools_name_their_leaves() -> None:
    @tool
    async def nested() -> str:
        """Fail in a child task."""

        async def child() -> None:
            raise KeyError("k")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)
            nursery.start_soon(trio.sleep_forever)
        return "never"

    @tool
    async def doubly() -> str:
        """Fail in a group in a group."""
        raise ExceptionGroup("outer", [ExceptionGroup("inner", [OSError(2, "x")])])

    agent, _ = scripted_agent(Answer(calls=[tool_call("nested"), tool_call("doubly")]), "Done.", tools=[nested, doubly])
    await agent.prompt("go")

    first, second = [text_of(message) for message in agent.messages if isinstance(message, ToolResultMessage)]
    assert "KeyError" in first
    assert "'k'" in first
    assert "OSError" in second or "FileNotFoundError" in second
    assert not any(word in text for word in GROUP_WORDS for text in (first, second))


async def test_b85_hooks_of_parallel_calls_that_raise_are_results_each_its_own() -> None:
    @tool
    async def work() -> str:
        """Work."""
        await trio.lowlevel.checkpoint()
        return "worked"

    async def after(details: object) -> None:
        raise ValueError(f"hook of {details.tool_call.id}")  # type: ignore[attr-defined]

    calls = [tool_call("work", "a"), tool_call("work", "b")]
    agent, _ = scripted_agent(Answer(calls=calls), "Done.", tools=[work], hooks=Hooks(after_tool_call=after))
    await agent.prompt("go")

    texts = [text_of(message) for message in agent.messages if isinstance(message, ToolResultMessage)]
    assert texts == ["hook of a", "hook of b"]


async def test_b85_an_abort_while_a_tool_raises_is_an_abort(autojump_clock: trio.testing.MockClock) -> None:
    @tool
    async def failing_clean_up() -> str:
        """Fail when it is stopped."""
        try:
            await trio.sleep_forever()
        finally:
            raise RuntimeError("clean-up failed")

    agent, _ = scripted_agent(Answer(calls=[tool_call("failing_clean_up")]), tools=[failing_clean_up])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.prompt, "go")
        await trio.sleep(1)
        agent.abort()

    check_transcript(agent.messages)
    assert agent.state.error_message == "Operation aborted"


async def test_b86_an_abort_settles_a_run_whose_reader_sleeps(autojump_clock: trio.testing.MockClock) -> None:
    agent, _ = scripted_agent(Answer(text="Hello there", chunk_size=1))
    async with trio.open_nursery() as nursery:

        async def sleepy() -> None:
            async with agent.run("go") as run:
                async for _ in run:
                    await trio.sleep_forever()

        nursery.start_soon(sleepy)
        await wait_all_tasks_blocked()
        agent.abort()
        await wait_all_tasks_blocked()
        # The body is a barrier and is never cut by an abort; leaving it lets the run settle at once.
        assert agent.is_running
        nursery.cancel_scope.cancel()

    with trio.fail_after(1):
        await agent.wait_idle()
    check_transcript(agent.messages)


async def test_b86_a_reader_that_closes_in_mid_run_does_not_break_it() -> None:
    agent, _ = scripted_agent(Answer(text="Hello there", chunk_size=1))
    async with trio.open_nursery() as nursery:
        with agent.events() as events:
            nursery.start_soon(agent.prompt, "go")
            async for event in events:
                if isinstance(event, MessageUpdate):
                    break

    assert text_of(agent.messages[-1]) == "Hello there"


async def test_b86_a_slow_reader_sets_the_pace_and_loses_nothing(autojump_clock: trio.testing.MockClock) -> None:
    @tool
    async def chatty(ctx: ToolContext) -> str:
        """Report two hundred times."""
        for number in range(200):
            await ctx.update(str(number))
        return "done"

    agent, _ = scripted_agent(Answer(calls=[tool_call("chatty")]), "Done.", tools=[chatty])
    updates: list[AgentEvent] = []
    started = trio.current_time()
    async with agent.run("go") as run:
        async for event in run:
            await trio.sleep(0.1)
            if isinstance(event, ToolExecutionUpdate):
                updates.append(event)

    assert len(updates) == 200
    assert trio.current_time() - started == pytest.approx(0.1 * (len(updates) + 22), abs=0.5)


@pytest.mark.parametrize("where", ["streaming", "tool", "back-off", "listener"])
async def test_b88_a_deadline_around_a_run_is_not_an_abort(where: str, autojump_clock: trio.testing.MockClock) -> None:
    @tool
    async def slow() -> str:
        """Take long."""
        await trio.sleep(1000)
        return "never"

    scripts: dict[str, list[Answer | str]] = {
        "streaming": [Answer(text="Hello there", chunk_size=1, delay=0.02)],
        "tool": [Answer(calls=[tool_call("slow")]), "Never."],
        "back-off": [Answer(fail=ModelHTTPError("overloaded", status=529, provider="scripted", retryable=True))] * 5,
        "listener": [Answer(text="Hello there")],
    }
    agent, model = scripted_agent(*scripts[where], tools=[slow])
    if where == "back-off":
        agent = Agent(model.model, stream_fn=with_retries(model))

    async def listen(event: AgentEvent) -> None:
        if where == "listener" and isinstance(event, MessageUpdate):
            await trio.sleep_forever()

    with record(agent) as events, agent.subscribe(listen):
        with trio.move_on_after(0.05) as scope:
            await agent.prompt("x")
        asked = len(model.requests)
        await trio.sleep(100)

    assert scope.cancelled_caught
    assert len(model.requests) == asked
    assert not agent.is_running
    check_transcript(agent.messages)
    assert isinstance(events[-1], AgentEnd)
    assert not any(isinstance(event, ToolExecutionEnd) and not event.is_error for event in events)
    again, _ = scripted_agent("Here I am.", messages=agent.messages, tools=[slow])
    assert (await again.prompt("again")).stop_reason == "stop"
