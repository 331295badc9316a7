"""trio_agent itself, by the same benchmarks that measure it beside bare Trio."""

from __future__ import annotations

from functools import partial

import trio

from benchmarks import agents, deltas, fan_out, sse, turns
from benchmarks._harness import Clock
from benchmarks._work import calls_answer, text_answer
from benchmarks.peers._contest import contend

__all__: list[str] = []


def _fan_out(clock: Clock, size: int) -> float:
    return trio.run(partial(fan_out.listened, clock, size, calls_answer(fan_out.calls(size))))


def _deltas(clock: Clock, size: int) -> float:
    return trio.run(partial(deltas.listened, clock, text_answer(["word "] * size), "word " * size))


if __name__ == "__main__":
    contend(
        {
            "fan_out": _fan_out,
            "turns": lambda clock, size: trio.run(turns.ours, clock, size),
            "deltas": _deltas,
            "agents": lambda clock, size: trio.run(agents.ours, clock, size),
            "sse": lambda clock, size: sse.with_server(sse.ours, clock, size),
        }
    )
