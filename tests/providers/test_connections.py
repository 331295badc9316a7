"""Who owns connections, how many there are, and that nothing is left of them."""

from __future__ import annotations

import random

import pytest
import trio

from trio_agent import Agent, Context, MessageUpdate, StreamDone, StreamOptions, TextDelta
from trio_agent.lowlevel import LoopConfig, run_agent_loop
from trio_agent.providers import ModelClient

from .conftest import OpenClient
from .raw_server import (
    CHUNKED,
    CONTEXT,
    HELLO_REPLY,
    OPTIONS,
    Request,
    ask,
    chunk,
    delta,
    head,
    model_at,
    serving,
    streamed,
)

CALL = (
    b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c1", "type": "function", '
    b'"function": {"name": "nothing", "arguments": "{}"}}]}, "finish_reason": "tool_calls"}]}\n\ndata: [DONE]\n\n'
)

# httpx sends a body out of a generator, and leaves it suspended when it is cancelled meanwhile. It holds nothing.
BODY_GENERATOR = pytest.mark.filterwarnings("ignore:.*ByteStream.__aiter__:pytest.PytestUnraisableExceptionWarning")


async def nothing() -> str:
    """Do nothing."""
    return "done"


# -- owners ------------------------------------------------------------------------------------------------------------


async def test_answers_in_a_row_share_a_connection_of_an_open_client(open_client: OpenClient) -> None:
    async with serving(HELLO_REPLY) as server, open_client() as client:
        for _ in range(5):
            await ask(client, model_at(server))
        assert server.connections == 1

    assert server.open_connections == 0


async def test_a_client_that_is_not_open_keeps_nothing() -> None:
    client = ModelClient()
    async with serving(HELLO_REPLY) as server:
        for _ in range(2):
            await ask(client, model_at(server))
            await server.all_closed.wait()

    assert server.connections == 2


async def test_the_turns_of_a_run_share_a_connection_and_it_is_closed_with_the_run() -> None:
    async with serving(streamed(CALL), HELLO_REPLY) as server:
        agent = Agent(model_at(server), tools=[nothing], stream_fn=ModelClient(), options=OPTIONS)
        result = await agent.prompt("go")
        await server.all_closed.wait()

    assert (result.text, result.turns) == ("Hello", 2)
    assert server.connections == 1


async def test_the_runs_of_an_agent_that_was_entered_share_a_connection() -> None:
    async with serving(HELLO_REPLY) as server:
        async with Agent(model_at(server), stream_fn=ModelClient(), options=OPTIONS) as agent:
            for _ in range(3):
                assert (await agent.prompt("go")).text == "Hello"
            async with agent.run("go") as run:
                async for _ in run:
                    pass
            assert server.open_connections == 1
        await server.all_closed.wait()

    assert server.connections == 1


async def test_agents_share_the_connections_of_the_client_they_are_given() -> None:
    async with serving(HELLO_REPLY) as server, ModelClient() as client:
        for _ in range(3):
            await Agent(model_at(server), stream_fn=client, options=OPTIONS).prompt("go")
        assert server.connections == 1
        assert server.open_connections == 1


async def test_a_loop_without_an_agent_keeps_its_connection_for_itself() -> None:
    async with serving(streamed(CALL), HELLO_REPLY) as server:
        config = LoopConfig(model=model_at(server), options=OPTIONS)
        await run_agent_loop(list(CONTEXT.messages), Context(), config, lambda event: None, ModelClient())
        await server.all_closed.wait()

    assert server.connections == 1


async def test_a_client_is_opened_once() -> None:
    async with ModelClient() as client:
        with pytest.raises(RuntimeError, match="open already"):
            await client.__aenter__()
    async with client:
        pass


# -- cancellation ------------------------------------------------------------------------------------------------------


async def endless(stream: trio.SocketStream, request: Request) -> None:
    await stream.send_all(head("200 OK", CHUNKED))
    while True:
        await stream.send_all(chunk(delta("word ")))
        await trio.sleep(0.001)


async def test_cancelling_an_answer_closes_its_socket(open_client: OpenClient) -> None:
    async with serving(endless) as server, open_client() as client:
        with trio.CancelScope() as scope:
            async with client(model_at(server), CONTEXT, OPTIONS) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        scope.cancel()
        await server.all_closed.wait()

    assert scope.cancelled_caught


async def test_aborting_a_run_closes_its_socket_and_keeps_what_had_arrived(open_client: OpenClient) -> None:
    async with serving(endless) as server, open_client() as client:
        agent = Agent(model_at(server), stream_fn=client, options=OPTIONS)
        async with agent.run("go") as run:
            async for event in run:
                if isinstance(event, MessageUpdate) and isinstance(event.assistant_message_event, TextDelta):
                    run.abort()
        await server.all_closed.wait()

    assert run.result.stop_reason == "aborted"
    assert run.result.text.startswith("word ")


async def test_a_request_can_be_cancelled_while_it_waits_for_a_slot(open_client: OpenClient) -> None:
    limiter = trio.CapacityLimiter(1)
    async with serving(HELLO_REPLY) as server, open_client(limiter=limiter) as client:
        async with client(model_at(server), CONTEXT, OPTIONS):
            with trio.move_on_after(0.05) as scope:
                await ask(client, model_at(server))
        assert scope.cancelled_caught
        assert isinstance((await ask(client, model_at(server)))[-1], StreamDone)

    assert limiter.borrowed_tokens == 0


@BODY_GENERATOR
async def test_two_hundred_cancelled_requests_leave_room_for_two_hundred_that_succeed(open_client: OpenClient) -> None:
    chance = random.Random(7)  # noqa: S311  # reproducible
    limiter = trio.CapacityLimiter(10)

    async def hesitating(stream: trio.SocketStream, request: Request) -> None:
        await trio.sleep(chance.uniform(0, 0.01))
        await HELLO_REPLY(stream, request)

    succeeded = 0

    async with serving(hesitating) as server, open_client(limiter=limiter) as client:

        async def cancelled() -> None:
            with trio.move_on_after(chance.uniform(0, 0.05)):
                await ask(client, model_at(server))

        async def patient() -> None:
            nonlocal succeeded
            last = (await ask(client, model_at(server)))[-1]
            succeeded += isinstance(last, StreamDone)

        for work in (cancelled, patient):
            async with trio.open_nursery() as nursery:
                for _ in range(200):
                    nursery.start_soon(work)

        assert limiter.borrowed_tokens == 0
        assert server.open_connections <= 10 + 20  # open answers, and idle connections that are kept

    assert succeeded == 200


@BODY_GENERATOR
async def test_nothing_is_left_wherever_an_answer_is_cancelled(open_client: OpenClient) -> None:
    # The answer takes some ten checkpoints; later moments find it complete.
    async with serving(HELLO_REPLY) as server, open_client() as client:
        await ask(client, model_at(server))
        before = trio.lowlevel.current_statistics().tasks_living
        for moment in range(40):
            with trio.CancelScope() as scope:
                instrument = CancelAt(scope, moment)
                trio.lowlevel.add_instrument(instrument)
                try:
                    await ask(client, model_at(server))
                finally:
                    trio.lowlevel.remove_instrument(instrument)
            await trio.testing.wait_all_tasks_blocked(0.001)
            # The connection's task of the server may come and go.
            assert trio.lowlevel.current_statistics().tasks_living <= before + 1
        assert isinstance((await ask(client, model_at(server)))[-1], StreamDone)


class CancelAt(trio.abc.Instrument):
    """Cancels a scope when its task has been scheduled a number of times."""

    def __init__(self, scope: trio.CancelScope, steps: int) -> None:
        self._task = trio.lowlevel.current_task()
        self._scope = scope
        self._steps = steps

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._task:
            self._steps -= 1
            if self._steps < 0:
                self._scope.cancel()


async def test_requests_to_many_hosts_at_once_are_bounded_by_the_limiter_alone() -> None:
    limiter = trio.CapacityLimiter(3)
    peak = 0

    async def slow(stream: trio.SocketStream, request: Request) -> None:
        nonlocal peak
        peak = max(peak, server.open_connections)
        await trio.sleep(0.01)
        await HELLO_REPLY(stream, request)

    async with serving(slow) as server, ModelClient(limiter=limiter) as client, trio.open_nursery() as nursery:
        for _ in range(12):
            nursery.start_soon(ask, client, model_at(server), StreamOptions(api_key=""))

    assert peak == 3
