"""MessageBuilder against a plain model of a fold, and what folding costs."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Sequence
from typing import Any

import msgspec
from builder_events import (
    blocks,
    call,
    done,
    fold,
    message,
    new_builder,
    start,
    text_start,
)
from hypothesis import given
from hypothesis import strategies as st

from trio_agent import (
    AssistantContent,
    AssistantMessage,
    AssistantMessageEvent,
    StreamStart,
    TextContent,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingContent,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCall,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from trio_agent.lowlevel import MessageBuilder

# Against a plain model of a fold: after each event, the message is built anew from all events so far.


class Naive:
    """What a message is, in the plainest words: no cost was spared."""

    def __init__(self, events: Sequence[AssistantMessageEvent]) -> None:
        self.content: dict[int, AssistantContent] = {}
        self.texts: dict[int, str] = {}
        for event in events:
            self.apply(event)

    def apply(self, event: AssistantMessageEvent) -> None:
        match event:
            case TextStart(content_index=i):
                self.content[i], self.texts[i] = TextContent(text=""), ""
            case ThinkingStart(content_index=i):
                self.content[i], self.texts[i] = ThinkingContent(thinking=""), ""
            case ToolCallStart(content_index=i):
                self.content[i], self.texts[i] = call(event.id, event.name), ""
            case TextDelta(content_index=i) | ThinkingDelta(content_index=i) | ToolCallDelta(content_index=i):
                self.grow(i, event.delta)
            case TextEnd(content_index=i):
                self.content[i] = TextContent(text=event.content)
            case ThinkingEnd(content_index=i):
                self.content[i] = ThinkingContent(thinking=event.content)
            case ToolCallEnd(content_index=i):
                self.content[i] = event.tool_call
            case _:
                pass

    def grow(self, index: int, delta: str) -> None:
        self.texts[index] += delta
        match self.content[index]:
            case TextContent():
                self.content[index] = TextContent(text=self.texts[index])
            case ThinkingContent():
                self.content[index] = ThinkingContent(thinking=self.texts[index])
            case ToolCall() as open_call:
                try:
                    arguments = msgspec.json.decode(self.texts[index], type=dict)
                except msgspec.DecodeError:
                    arguments = {}
                self.content[index] = msgspec.structs.replace(open_call, arguments=arguments)

    def message(self) -> AssistantMessage:
        return message(*[self.content[i] for i in sorted(self.content)])


@st.composite
def streams(draw: st.DrawFn) -> list[AssistantMessageEvent]:
    """Legal streams of up to four blocks that interleave."""
    queues = []
    for index in draw(st.permutations(range(draw(st.integers(0, 4))))):
        parts = draw(st.lists(st.sampled_from(["", "a", "bc", '{"a":', "1}", "{}", " "]), max_size=5))
        whole = "".join(parts)
        events: list[AssistantMessageEvent]
        match draw(st.sampled_from(["text", "thinking", "toolcall"])):
            case "text":
                events = [TextStart(content_index=index)]
                events += [TextDelta(content_index=index, delta=part) for part in parts]
                events += [TextEnd(content_index=index, content=draw(st.sampled_from([whole, "other"])))]
            case "thinking":
                events = [ThinkingStart(content_index=index)]
                events += [ThinkingDelta(content_index=index, delta=part) for part in parts]
                events += [ThinkingEnd(content_index=index, content=whole)]
            case _:
                events = [ToolCallStart(content_index=index, id=f"c{index}", name="read")]
                events += [ToolCallDelta(content_index=index, delta=part) for part in parts]
                events += [ToolCallEnd(content_index=index, tool_call=call(f"c{index}", end=True))]
        queues.append(events[: len(events) - draw(st.integers(0, 1))])
    stream: list[AssistantMessageEvent] = [StreamStart()] if draw(st.booleans()) else []
    while queues:
        queue = draw(st.sampled_from(queues))
        stream.append(queue.pop(0))
        queues = [queue for queue in queues if queue]
    return stream


@given(streams(), st.data())
def test_every_partial_is_what_a_plain_fold_gives(stream: list[AssistantMessageEvent], data: st.DataObject) -> None:
    builder = new_builder()
    events = []
    for position, event in enumerate(stream):
        events.append(builder.add(event))
        read = data.draw(st.integers(0, position)) if data.draw(st.booleans()) else position
        assert events[read].partial == Naive(stream[: read + 1]).message()
    assert builder.partial == Naive(stream).message()

    builder.fail("error", "broken")

    for position in data.draw(st.permutations(range(len(stream)))):
        assert events[position].partial == Naive(stream[: position + 1]).message()


# Cost


def allocated_by_folding(deltas: int) -> int:
    builder, _ = fold(start, text_start)
    events = [TextDelta(content_index=0, delta="abcdefgh") for _ in range(deltas)]
    gc.collect()
    tracemalloc.start()
    try:
        for event in events:
            builder.add(event)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_ten_times_the_deltas_take_ten_times_the_memory() -> None:
    few, many = allocated_by_folding(2_000), allocated_by_folding(20_000)

    assert many < 13 * few


def lines_run_by_folding(deltas: int) -> int:
    builder, _ = fold(start, text_start, *[TextDelta(content_index=0, delta="a") for _ in range(deltas)])
    count = 0

    def trace(*_: object) -> Any:
        nonlocal count
        count += 1
        return trace

    event = TextDelta(content_index=0, delta="a")
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        builder.add(event)
    finally:
        sys.settrace(before)
    return count


def test_a_delta_costs_the_same_however_much_has_arrived() -> None:
    assert lines_run_by_folding(10) == lines_run_by_folding(10_000)


def test_a_fold_that_nobody_reads_joins_no_text() -> None:
    builder, events = fold(start, text_start, *[TextDelta(content_index=0, delta="ab") for _ in range(1000)])
    tracemalloc.start()
    try:
        builder.add(TextDelta(content_index=0, delta="ab"))
        assert tracemalloc.get_traced_memory()[1] < 1000
        assert events[-1].partial.text == "ab" * 1000
    finally:
        tracemalloc.stop()


def test_events_and_builder_are_freed_without_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        builder, events = fold(start, *blocks["text"], *[done])
        _ = [event.partial for event in events]
        before = sum(isinstance(thing, MessageBuilder) for thing in gc.get_objects())
        del builder, events
        after = sum(isinstance(thing, MessageBuilder) for thing in gc.get_objects())
    finally:
        gc.enable()

    assert after == before - 1
