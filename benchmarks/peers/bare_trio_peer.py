"""The same by hand on bare Trio: what the others are compared with."""

from __future__ import annotations

from functools import partial

import trio

from benchmarks import agents, deltas, fan_out, sse, turns
from benchmarks._harness import Clock
from benchmarks._work import text_answer
from benchmarks.peers._contest import contend

__all__: list[str] = []


def _deltas(clock: Clock, size: int) -> float:
    return trio.run(partial(deltas.bare_listened, clock, text_answer(["word "] * size), "word " * size))


if __name__ == "__main__":
    contend(
        {
            "fan_out": lambda clock, size: trio.run(fan_out.bare, clock, size),
            "turns": lambda clock, size: trio.run(turns.bare, clock, size),
            "deltas": _deltas,
            "agents": lambda clock, size: trio.run(agents.bare, clock, size),
            "sse": lambda clock, size: sse.with_server(sse.bare, clock, size),
        }
    )
