"""What several benchmarks have in common: ready answers, a stream that yields them, and the tool that fans out.

The script costs as little as it can: the events of an answer are made before anything is timed, and the stream only
hands them out. So it is the library that is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import Self, TypeAlias

import msgspec
import trio

from trio_agent import (
    AgentEvent,
    AssistantMessageEvent,
    Context,
    JsonObject,
    Model,
    StreamDone,
    StreamOptions,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    tool,
)

__all__ = [
    "FINAL",
    "MODEL",
    "Answer",
    "ReadyStream",
    "Script",
    "calls_answer",
    "calls_events",
    "check_item",
    "ignore",
    "text_answer",
    "tool_call",
    "work",
]

_READ = 256
Answer: TypeAlias = Sequence[AssistantMessageEvent]
MODEL = Model(id="script", api="script", provider="script")


class ReadyStream:
    """An answer whose events are there already, as from reads that never had to wait; no checkpoint."""

    __slots__ = ("_events",)

    def __init__(self, answer: Iterable[AssistantMessageEvent]) -> None:
        self._events = iter(answer)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None

    def __aiter__(self) -> ReadyStream:
        return self

    async def __anext__(self) -> AssistantMessageEvent:
        for event in self._events:
            return event
        raise StopAsyncIteration

    async def receive_some(self) -> Sequence[AssistantMessageEvent]:
        """As many as one read of 64 kB may bring; nothing has to be waited for."""
        return tuple(islice(self._events, _READ))


class Script:
    """A stream function that gives ready answers in order."""

    __slots__ = ("_answers",)

    def __init__(self, answers: Iterable[Iterable[AssistantMessageEvent]]) -> None:
        self._answers = iter(answers)

    def __call__(self, model: Model, context: Context, options: StreamOptions, /) -> ReadyStream:
        """The next answer."""
        return ReadyStream(next(self._answers))


def tool_call(name: str, number: int, arguments: JsonObject) -> ToolCall:
    """A call with a number."""
    return ToolCall(id=f"call_{number}", name=name, arguments=arguments)


def calls_events(calls: Iterable[ToolCall]) -> Iterator[AssistantMessageEvent]:
    """An answer that asks for tools, streamed as providers do it: each call opened, its arguments, and its end."""
    yield StreamStart()
    for index, call in enumerate(calls):
        yield ToolCallStart(content_index=index, id=call.id, name=call.name)
        yield ToolCallDelta(content_index=index, delta=msgspec.json.encode(call.arguments).decode())
        yield ToolCallEnd(content_index=index, tool_call=call)
    yield StreamDone(reason="toolUse")


def calls_answer(calls: Iterable[ToolCall]) -> Answer:
    """The same with all events made."""
    return tuple(calls_events(calls))


def text_answer(deltas: Sequence[str]) -> Answer:
    """An answer of text in deltas."""
    return (
        StreamStart(),
        TextStart(content_index=0),
        *[TextDelta(content_index=0, delta=delta) for delta in deltas],
        TextEnd(content_index=0, content="".join(deltas)),
        StreamDone(reason="stop"),
    )


FINAL = text_answer(["done"])
"""The answer that ends a run."""


async def work(item: int) -> str:
    """What the tool does: one checkpoint, and a result that depends on its argument."""
    await trio.lowlevel.checkpoint()
    return str(item)


@tool
async def check_item(item: int) -> str:
    """Look an item up."""
    return await work(item)


async def ignore(event: AgentEvent) -> None:
    """A listener that does nothing."""
