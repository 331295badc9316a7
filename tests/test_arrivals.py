"""Events of an answer that arrive together: handled as if each had come by itself, at fewer steps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self

import pytest
import trio
from trio.testing import MockClock

from trio_agent import (
    Agent,
    AgentEvent,
    AssistantMessageEvent,
    Context,
    MessageEnd,
    MessageUpdate,
    Model,
    OverloadedError,
    RetryPolicy,
    StreamDone,
    StreamError,
    StreamFn,
    StreamOptions,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    UserMessage,
    with_retries,
)

MODEL = Model(id="m", api="scripted", provider="p")
CONTEXT = Context((UserMessage(content="hi", timestamp=0),))
START = (StreamStart(), TextStart(content_index=0))


def deltas(text: str) -> list[AssistantMessageEvent]:
    return [TextDelta(content_index=0, delta=letter) for letter in text]


def end(text: str) -> list[AssistantMessageEvent]:
    return [TextEnd(content_index=0, content=text), StreamDone(reason="stop")]


class OneByOne:
    """A stream function whose answers come event by event, a second apart at the end of each portion."""

    def __init__(self, *portions: Sequence[AssistantMessageEvent]) -> None:
        self._portions = portions
        self.asked = 0
        self.given = 0

    def __call__(self, model: Model, context: Context, options: StreamOptions, /) -> Self:
        self.asked += 1
        self._left = [list(portion) for portion in self._portions]
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None

    def __aiter__(self) -> AsyncIterator[AssistantMessageEvent]:
        return self

    async def __anext__(self) -> AssistantMessageEvent:
        while self._left and not self._left[0]:
            await trio.sleep(1)
            del self._left[0]
        if not self._left:
            raise StopAsyncIteration
        self.given += 1
        return self._left[0].pop(0)


class Together(OneByOne):
    """A stream function whose answers come in portions, a second apart."""

    async def receive_some(self) -> Sequence[AssistantMessageEvent]:
        try:
            first = await anext(self)
        except StopAsyncIteration:
            return ()
        portion, self._left[0] = [first, *self._left[0]], []
        self.given += len(portion) - 1
        return portion


def texts(events: Sequence[AgentEvent]) -> list[str]:
    """What the message said at each update, read at the end: it is exact all the same."""
    return ["".join(part.text for part in event.message.content) for event in events if type(event) is MessageUpdate]  # type: ignore[union-attr]


async def listen(agent: Agent, log: list[AgentEvent]) -> None:
    with agent.subscribe(log.append):
        await agent.prompt("go")


async def watch(agent: Agent, log: list[AgentEvent]) -> None:
    async with agent.run("go") as run:
        log.extend([event async for event in run])


async def observe(agent: Agent, log: list[AgentEvent]) -> None:
    with agent.events(buffer=100) as events:
        await agent.prompt("go")
        async for event in events:
            log.append(event)
            if not agent.is_running and event.__struct_config__.tag == "agent_end":
                break


@pytest.mark.parametrize("handle", [listen, watch, observe])
async def test_portions_give_the_same_events_as_single_events(
    handle: Callable[[Agent, list[AgentEvent]], Awaitable[None]], autojump_clock: MockClock
) -> None:
    portions = ([*START, *deltas("one ")], deltas("two"), end("one two"))
    logs: list[list[AgentEvent]] = []
    for make in (OneByOne, Together):
        log: list[AgentEvent] = []
        await handle(Agent(MODEL, stream_fn=make(*portions)), log)
        logs.append(log)

    single, together = logs
    assert [event.__struct_config__.tag for event in together] == [event.__struct_config__.tag for event in single]
    assert texts(together) == texts(single) == ["", *["one two"[:length] for length in range(1, 8)], "one two"]


async def test_abort_in_a_handler_takes_nothing_more_of_a_portion() -> None:
    agent = Agent(MODEL, stream_fn=Together([*START, *deltas("abcdef"), *end("abcdef")]))

    def listener(event: AgentEvent) -> None:
        if isinstance(event, MessageUpdate) and event.assistant_message_event == deltas("c")[0]:
            agent.abort()

    agent.subscribe(listener)
    result = await agent.prompt("go")

    assert result.stop_reason == "aborted"
    assert result.text == "abc"


async def test_abort_from_outside_while_a_watcher_holds_an_event_takes_nothing_more(autojump_clock: MockClock) -> None:
    agent = Agent(MODEL, stream_fn=Together([*START, *deltas("abcdef"), *end("abcdef")]))

    async def abort_later() -> None:
        await trio.sleep(5)
        agent.abort()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(abort_later)
        async with agent.run("go") as run:
            async for event in run:
                if isinstance(event, MessageUpdate) and event.assistant_message_event == deltas("b")[0]:
                    await trio.sleep(10)

    assert run.result.stop_reason == "aborted"
    assert run.result.text == "ab"


async def test_cancelled_in_a_portion_the_transcript_has_what_was_taken(autojump_clock: MockClock) -> None:
    agent = Agent(MODEL, stream_fn=Together([*START, *deltas("abcdef"), *end("abcdef")]))
    seen: list[AgentEvent] = []

    async def listener(event: AgentEvent) -> None:
        seen.append(event)
        if isinstance(event, MessageUpdate) and event.assistant_message_event == deltas("b")[0]:
            await trio.sleep(10)

    agent.subscribe(listener)
    with trio.move_on_after(5):
        await agent.prompt("go")

    assert agent.messages[-1].text == "ab"  # type: ignore[union-attr]
    assert [event.message for event in seen if isinstance(event, MessageEnd)][-1] == agent.messages[-1]


async def test_illegal_event_in_a_portion_keeps_what_came_before_it() -> None:
    agent = Agent(MODEL, stream_fn=Together([*START, *deltas("ab"), TextDelta(content_index=7, delta="?"), *end("ab")]))

    result = await agent.prompt("go")

    assert result.stop_reason == "error"
    assert result.text == "ab"
    assert result.message is not None
    assert "content index 7" in (result.message.error_message or "")


async def test_watcher_that_joins_in_a_portion_gets_the_next_event(autojump_clock: MockClock) -> None:
    agent = Agent(MODEL, stream_fn=Together([*START, *deltas("abcdef"), *end("abcdef")]))
    late: list[AgentEvent] = []

    async def join() -> None:
        with agent.events() as events:
            async for event in events:
                late.append(event)  # noqa: PERF401  # the block is cancelled

    async with trio.open_nursery() as nursery:
        async with agent.run("go") as run:
            async for event in run:
                if isinstance(event, MessageUpdate) and event.assistant_message_event == deltas("c")[0]:
                    nursery.start_soon(join)
                    await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()

    assert isinstance(late[0], MessageUpdate)
    assert late[0].assistant_message_event == deltas("d")[0]


async def ask_in_portions(stream_fn: StreamFn) -> list[int]:
    sizes: list[int] = []
    async with stream_fn(MODEL, CONTEXT, StreamOptions()) as events:
        while received := await events.receive_some():  # type: ignore[attr-defined]
            sizes.append(len(received))
    return sizes


async def test_retries_hand_portions_on(autojump_clock: MockClock) -> None:
    stream_fn = Together(START, deltas("abc"), deltas("de"), end("abcde"))

    assert await ask_in_portions(with_retries(stream_fn)) == [2, 3, 2, 2]
    async with with_retries(stream_fn)(MODEL, CONTEXT, StreamOptions()) as events:
        assert [event async for event in events] == [*START, *deltas("abcde"), *end("abcde")]


async def test_failure_that_comes_with_the_start_is_asked_for_again(autojump_clock: MockClock) -> None:
    failing = Together([StreamStart(), StreamError(reason="error", error_message="503: overloaded")])
    answering = Together([*START, *deltas("ab"), *end("ab")])
    functions = iter([failing, answering])

    def flaky(model: Model, context: Context, options: StreamOptions, /) -> OneByOne:
        return next(functions)(model, context, options)

    result = await Agent(MODEL, stream_fn=with_retries(flaky, RetryPolicy(jitter=0))).prompt("go")

    assert result.text == "ab"
    assert (failing.asked, answering.asked) == (1, 1)


async def test_failure_that_comes_with_a_block_is_not_asked_for_again() -> None:
    failing = Together([*START, *deltas("ab"), StreamError(reason="error", error_message="503: overloaded")])

    result = await Agent(MODEL, stream_fn=with_retries(failing)).prompt("go")

    assert (result.stop_reason, result.text, failing.asked) == ("error", "ab", 1)


async def test_stream_that_raises_behind_a_portion_keeps_the_portion() -> None:
    class Breaking(Together):
        async def receive_some(self) -> Sequence[AssistantMessageEvent]:
            if self.given:
                raise OverloadedError("the server is overloaded", status=529, provider="p")
            return await super().receive_some()

    result = await Agent(MODEL, stream_fn=Breaking([*START, *deltas("ab")])).prompt("go")

    assert (result.stop_reason, result.text) == ("error", "ab")


@pytest.mark.parametrize("make", [OneByOne, Together])
async def test_nothing_is_awaited_after_the_end_of_an_answer(make: type[OneByOne], autojump_clock: MockClock) -> None:
    # The stream would still wait for what never comes.
    result = await Agent(MODEL, stream_fn=make([*START, *deltas("ab"), *end("ab")], [])).prompt("go")

    assert result.text == "ab"
    assert trio.current_time() == 0


async def test_watcher_that_is_cancelled_gets_no_further_event_of_a_portion() -> None:
    agent = Agent(MODEL, stream_fn=Together([*START, *deltas("abcdef"), *end("abcdef")]))
    seen = 0

    with trio.CancelScope() as scope:
        async with agent.run("go") as run:
            async for event in run:
                if isinstance(event, MessageUpdate):
                    seen += 1
                    scope.cancel()

    assert scope.cancelled_caught
    assert seen == 1


async def test_statistics_tell_events_apart_that_arrived_together(autojump_clock: MockClock) -> None:
    agent = Agent(MODEL, stream_fn=Together([*START, *deltas("abcdef"), *end("abcdef")]))
    seen: list[tuple[object, float | None]] = []

    async def look() -> None:
        for _ in range(3):
            await trio.sleep(10)
            statistics = agent.statistics()
            delivering = statistics.delivering
            assert isinstance(delivering, MessageUpdate)
            seen.append((delivering.assistant_message_event, statistics.oldest_wait))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        async with agent.run("go") as run:
            async for event in run:
                if isinstance(event, MessageUpdate):
                    await trio.sleep(8)

    # The first text event is handled from 0 to 8, the next one to 16, and so on.
    assert seen == [(deltas("a")[0], 2.0), (deltas("b")[0], 4.0), (deltas("c")[0], 6.0)]
