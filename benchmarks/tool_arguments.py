"""What does a piece of a tool call's arguments cost, and does it cost more in a long call?

Unit: microseconds a delta, of one prompt whose answer calls a tool with one string of so many kB, in deltas of 16
characters, with one listener that does nothing; the result goes back and a final answer ends the run. Beside it: an
``async for`` over the same events that collects the texts, awaits the same listener, decodes the arguments once at the
end, and awaits the same function. The size is in kB; the growth exponent is that of the whole over the kB.

Not shown: a preview of unfinished arguments, which costs only who reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import msgspec
import trio

from benchmarks._harness import Benchmark, Case, Clock, Plan, Unit, in_trio
from benchmarks._work import FINAL, MODEL, Answer, ReadyStream, Script, ignore
from trio_agent import (
    Agent,
    AssistantMessageEvent,
    StreamDone,
    StreamStart,
    ToolCallDelta,
    ToolCallStart,
    ToolResultMessage,
    tool,
)

__all__ = ["BENCHMARK"]

_CHARACTERS = 16


async def _length(text: str) -> str:
    await trio.lowlevel.checkpoint()
    return str(len(text))


@tool
async def write_text(text: str) -> str:
    """Write a text."""
    return await _length(text)


async def ours(clock: Clock, answer: Answer, length: int) -> float:
    agent = Agent(MODEL, tools=[write_text], stream_fn=Script([answer, FINAL]))
    agent.subscribe(ignore)
    started = clock()
    result = await agent.prompt("write")
    seconds = clock() - started
    assert [m.text for m in result.messages if isinstance(m, ToolResultMessage)] == [str(length)]
    return seconds


async def bare(clock: Clock, answer: Answer, length: int) -> float:
    async def listener(event: AssistantMessageEvent) -> None:
        pass

    started = clock()
    parts: list[str] = []
    async with ReadyStream(answer) as events:
        async for event in events:
            if type(event) is ToolCallDelta:
                parts.append(event.delta)
            await listener(event)
    result = await _length(**msgspec.json.decode("".join(parts)))
    seconds = clock() - started
    assert result == str(length)
    return seconds


def _answer(length: int) -> tuple[Answer, int]:
    encoded = msgspec.json.encode({"text": "x" * length}).decode()
    pieces = [encoded[start : start + _CHARACTERS] for start in range(0, len(encoded), _CHARACTERS)]
    answer: Answer = (
        StreamStart(),
        ToolCallStart(content_index=0, id="call_1", name="write_text"),
        *[ToolCallDelta(content_index=0, delta=piece) for piece in pieces],
        # No end of the call with arguments made before: reading them once is part of the work, on both sides.
        StreamDone(reason="toolUse"),
    )
    return answer, len(pieces)


def cases(plan: Plan) -> Iterable[Case]:
    for kilobytes in plan.sizes(64, 512):
        length = kilobytes * 1024
        answer, deltas = _answer(length)
        yield Case(
            series="one string",
            size=kilobytes,
            per=deltas,
            ours=in_trio(partial(ours, plan.clock, answer, length)),
            bare=in_trio(partial(bare, plan.clock, answer, length)),
        )


BENCHMARK = Benchmark(name="tool_arguments", unit=Unit("us a delta"), cases=cases, growth_from=64)
