"""Costs that do not depend on the machine: scheduler steps, tasks, memory that a turn touches, encodings."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import repeat

import msgspec
import pytest
import trio

from trio_agent import (
    Agent,
    AgentEvent,
    AgentMessage,
    AssistantMessage,
    AssistantMessageEvent,
    MessageCodec,
    StreamDone,
    StreamStart,
    TextContent,
    TextDelta,
    TextStart,
    ToolCall,
    ToolCallEnd,
    ToolCallStart,
    TurnEnd,
    TurnStart,
    UnknownMessage,
    Usage,
    UserMessage,
    tool,
)
from trio_agent.testing import ScriptedModel


@tool
async def look_up(item: int) -> str:
    """Look an item up; makes one checkpoint."""
    await trio.lowlevel.checkpoint()
    return str(item)


def text(deltas: int) -> Sequence[AssistantMessageEvent]:
    parts = [TextDelta(content_index=0, delta="x") for _ in range(deltas)]
    return [StreamStart(), TextStart(content_index=0), *parts, StreamDone(reason="stop")]


def calls(count: int) -> Sequence[AssistantMessageEvent]:
    events: list[AssistantMessageEvent] = [StreamStart()]
    for index in range(count):
        call = ToolCall(id=f"call_{index}", name="look_up", arguments={"item": index})
        events += [
            ToolCallStart(content_index=index, id=call.id, name=call.name),
            ToolCallEnd(content_index=index, tool_call=call),
        ]
    return [*events, StreamDone(reason="toolUse")]


class Counter(trio.abc.Instrument):
    """Counts what happens in a task and in those below it, and the events."""

    def __init__(self) -> None:
        self.top = trio.lowlevel.current_task()
        self.steps = self.spawned = self.living = self.peak = self.events = 0

    def _counts(self, task: trio.lowlevel.Task) -> bool:
        while task is not self.top:
            if task.parent_nursery is None:
                return False
            task = task.parent_nursery.parent_task
        return True

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps += self._counts(task)

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        if self._counts(task):
            self.spawned += 1
            self.living += 1
            self.peak = max(self.peak, self.living)

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        self.living -= self._counts(task)


async def counted(
    script: Sequence[Sequence[AssistantMessageEvent]],
    *,
    watched: bool = False,
    listened: bool = True,
    limiter: trio.CapacityLimiter | None = None,
) -> Counter:
    scripted = ScriptedModel(script)
    agent = Agent(scripted.model, tools=[look_up], stream_fn=scripted, limiter=limiter)
    counter = Counter()

    def listener(event: AgentEvent) -> None:
        counter.events += 1

    trio.lowlevel.add_instrument(counter)
    try:
        with agent.subscribe(listener) if listened else nullcontext():
            if watched:
                async with agent.run("go") as run:
                    async for _ in run:
                        counter.events += not listened
            else:
                await agent.prompt("go")
    finally:
        trio.lowlevel.remove_instrument(counter)
    scripted.assert_exhausted()
    return counter


async def test_delta_costs_a_listener_no_scheduler_step() -> None:
    few, many = await counted([text(10)]), await counted([text(1000)])

    assert few.steps == many.steps
    assert many.events - few.events == 990


async def test_event_costs_watchers_at_most_two_scheduler_steps() -> None:
    few, many = await counted([text(10)], watched=True), await counted([text(1000)], watched=True)

    assert many.steps - few.steps <= 2 * (many.events - few.events)


async def test_event_that_arrives_with_others_costs_a_watcher_that_is_alone_no_scheduler_step() -> None:
    few = await counted([text(10)], watched=True, listened=False)
    many = await counted([text(1000)], watched=True, listened=False)

    assert many.steps == few.steps
    assert many.events - few.events == 990


async def test_events_of_a_call_cost_a_watcher_that_is_alone_no_scheduler_step() -> None:
    few = await counted([calls(10), text(1)], watched=True, listened=False)
    many = await counted([calls(1000), text(1)], watched=True, listened=False)

    assert many.spawned - few.spawned == 990
    assert many.steps - few.steps <= 2 * 990 + 10
    assert many.events - few.events == 990 * 6


async def test_call_costs_one_task_and_the_steps_of_its_body() -> None:
    few, many = await counted([calls(10), text(1)]), await counted([calls(1000), text(1)])

    assert many.spawned - few.spawned == 990
    assert many.steps - few.steps <= 2 * 990 + 10  # a body with one checkpoint has two steps


async def test_call_of_a_watched_run_costs_no_more_than_its_events_and_its_body() -> None:
    few = await counted([calls(10), text(1)], watched=True)
    many = await counted([calls(200), text(1)], watched=True)

    assert many.spawned - few.spawned == 190
    assert many.steps - few.steps <= 2 * (many.events - few.events) + 2 * 190 + 10


async def test_turn_of_one_call_costs_the_steps_of_its_tool_and_no_task() -> None:
    few = await counted([*repeat(calls(1), 10), text(1)])
    many = await counted([*repeat(calls(1), 200), text(1)])

    assert many.spawned == few.spawned == 0
    assert many.steps - few.steps == 190


async def test_calls_that_wait_for_a_slot_have_no_task_yet() -> None:
    counter = await counted([calls(1000), text(1)], limiter=trio.CapacityLimiter(64))

    assert counter.spawned >= 1000
    assert counter.peak <= 64 + 4


def long_history(length: int) -> list[AgentMessage]:
    question = UserMessage(content="Is it there?", timestamp=0)
    answer = AssistantMessage(
        content=(TextContent(text="It is."),),
        api="scripted",
        provider="scripted",
        model="scripted",
        usage=Usage.zero(),
        stop_reason="stop",
        timestamp=0,
    )
    return [question, answer] * (length // 2)


async def memory_of_a_turn(history: int) -> int:
    """What a turn in the middle of a run allocates at its peak, in bytes."""
    scripted = ScriptedModel([*repeat(calls(1), 20), text(1)])
    agent = Agent(scripted.model, tools=[look_up], stream_fn=scripted, messages=long_history(history))
    before = 0
    peaks: list[int] = []

    def measure(event: AgentEvent) -> None:
        nonlocal before
        if isinstance(event, TurnStart):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
        elif isinstance(event, TurnEnd):
            peaks.append(tracemalloc.get_traced_memory()[1] - before)

    agent.subscribe(measure)
    tracemalloc.start()
    try:
        await agent.prompt("go")
    finally:
        tracemalloc.stop()
    # The median: now and then a list that grows is given more room.
    return sorted(peaks)[len(peaks) // 2]


async def test_turn_allocates_nothing_that_grows_with_the_history() -> None:
    short, long = await memory_of_a_turn(100), await memory_of_a_turn(100_000)

    assert long < short + 8 * 100_000 / 10, "a copy of the message list takes 8 bytes a message"


class CountingMessage(UnknownMessage):
    """A message that counts how often it is encoded."""

    __slots__ = ("encodings", "json")

    def __init__(self) -> None:
        self.encodings = 0
        self.json = b'{"role":"note","text":"kept"}'
        self.role = "note"

    @property
    def raw(self) -> bytes:  # type: ignore[override]
        self.encodings += 1
        return self.json


@pytest.fixture
def note() -> CountingMessage:
    return CountingMessage()


def test_codec_encodes_each_message_once(note: CountingMessage) -> None:
    data = MessageCodec().encode_list([note, UserMessage(content="Hello", timestamp=1)])

    assert note.encodings == 1
    assert [message["role"] for message in msgspec.json.decode(data)] == ["note", "user"]


async def test_run_encodes_no_message(note: CountingMessage) -> None:
    scripted = ScriptedModel([calls(2), text(1)])
    agent = Agent(scripted.model, tools=[look_up], stream_fn=scripted, messages=[note])

    await agent.prompt("go")

    assert note in agent.messages
    assert note.encodings == 0
