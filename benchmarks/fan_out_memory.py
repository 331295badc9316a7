"""How much memory does a fan-out need at its peak?

Unit: MB over the same process when it was idle, measured in a fresh process for each figure: one prompt with N calls of
a tool that makes one checkpoint, with one listener that does nothing; the transcript is kept. Beside it: N tasks in a
nursery with the same checkpoint, and a list of their results. The answer's events are made as they are asked for, as
those of a provider are; what is kept of them is the library's.

Not shown: what the process needs before it does anything; see ``import_time`` for what is imported.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterable
from functools import partial
from time import perf_counter

import trio

from benchmarks import _resident, fan_out
from benchmarks._harness import Benchmark, Case, Plan, Unit, fresh_process
from benchmarks._work import calls_events

__all__ = ["BENCHMARK"]


async def _peak_of(side: str, size: int) -> float:
    if side == "bare":
        await fan_out.bare(perf_counter, 1)
        before = _resident.idle()
        await fan_out.bare(perf_counter, size)
    else:
        await fan_out.listened(perf_counter, 1, calls_events(fan_out.calls(1)))
        before = _resident.idle()
        await fan_out.listened(perf_counter, size, calls_events(fan_out.calls(size)))
    # What fits into memory that the process has already got cannot be seen; a page is the least that can.
    return max(_resident.peak() - before, resource.getpagesize() // 1024) / 1000


def _measure(side: str, size: int, times: int) -> float:
    return sum(float(fresh_process("-m", "benchmarks.fan_out_memory", side, str(size))) for _ in range(times))


def cases(plan: Plan) -> Iterable[Case]:
    for size in plan.sizes(10_000):
        by_hand = partial(_measure, "bare", size)
        yield Case(series="listener", size=size, ours=partial(_measure, "ours", size), bare=by_hand, repeatable=False)


BENCHMARK = Benchmark(name="fan_out_memory", unit=Unit("MB", 1), cases=cases)

if __name__ == "__main__":
    print(trio.run(_peak_of, sys.argv[1], int(sys.argv[2])))
