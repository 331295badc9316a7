"""What a contender is asked, and how its process measures it.

The questions are those of the benchmarks of the same names: ``fan_out`` (one answer with N calls of a tool that makes
one checkpoint, and a final answer), ``turns`` (T turns of one call), ``deltas`` (a text answer of D deltas, handled one
by one), ``agents`` (A agents at once, each with three turns of two calls), ``sse`` (a streamed answer of D deltas from
a server on the loopback). Each question is answered by an async function of the size that returns the seconds its work
took, set-up left out. Except for ``sse`` models are functions that answer at once.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, TypeAlias

__all__ = ["QUESTIONS", "Answers", "contend", "in_asyncio"]

QUESTIONS: Final = {"fan_out": 1000, "turns": 100, "deltas": 1000, "agents": 100, "sse": 10_000}
"""The questions and their sizes."""

Clock: TypeAlias = Callable[[], float]
Answers: TypeAlias = Mapping[str, Callable[[Clock, int], float]]
"""How a contender does the work of each question that is for it, once; returns seconds."""


def in_asyncio(work: Callable[[Clock, int], Coroutine[Any, Any, float]]) -> Callable[[Clock, int], float]:
    """Work that runs in asyncio."""
    return lambda clock, size: asyncio.run(work(clock, size))


async def at_once(one: Callable[[], Awaitable[object]], count: int) -> None:
    """Run so many of them together, in asyncio."""
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(_awaited(one))


async def _awaited(one: Callable[[], Awaitable[object]]) -> None:
    await one()


def contend(answers: Answers) -> None:
    """Answer the questions, and print seconds as JSON; what a contender's module does when it is run.

    Takes the largest size, and which clock, from the command line. Each question is warmed up at a small size, then
    measured three times, of which the best counts: what disturbs a process only ever adds.
    """
    bound, wall = int(sys.argv[1]), sys.argv[2] == "perf_counter"
    # Other threads of the process count: some libraries run tools in them.
    clock = time.perf_counter if wall else time.process_time
    costs: dict[str, float] = {}
    for question, answer in answers.items():
        size = QUESTIONS[question]
        answer(clock, min(size, bound, 10))
        costs[question] = min(answer(clock, min(size, bound)) for _ in range(3))
    print(json.dumps(costs))
