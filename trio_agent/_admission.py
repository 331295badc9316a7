"""Admission: calls of a batch start as slots of their limiters become free, so that those who wait are no tasks.

A call is under its tool's limiter, the run's, both, or none. It gets the tool's slot first, because waiting for that
holds no slot of the run. There is one feeder for each limiter of a tool: a full one must not hold back calls that are
not under it. And there is one gate to the run's limiter, which lets through whoever is first in source order among
those that wait there: feeders wake in any order, and the same script must give the same events.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import trio

from trio_agent._call_state import CallState
from trio_agent._slots import Slots

__all__ = ["Admission"]


class Admission:
    """Starts the calls of one batch, or of one part of it.

    Args:
        limiter: of the run.
        start: starts the task of a call that has its slots.
        ended: is called when a feeder or the gate has ended.
    """

    __slots__ = ("_at_gate", "_ended", "_feeders", "_gate_is_closed", "_limiter", "_news", "_start")

    def __init__(
        self, limiter: trio.CapacityLimiter | None, start: Callable[[CallState], None], ended: Callable[[], None]
    ) -> None:
        self._limiter = limiter
        self._start = start
        self._ended = ended
        self._at_gate: list[tuple[int, CallState]] = []
        self._gate_is_closed = False
        self._feeders = 0
        self._news = trio.Event()

    def admit(self, states: list[CallState], nursery: trio.Nursery) -> int:
        """Start what needs no slot at once, and tasks that start the rest.

        Args:
            states: in source order.
            nursery: for the tasks.

        Returns:
            How many tasks; each calls ``ended``.
        """
        by_limiter: dict[trio.CapacityLimiter, list[CallState]] = {}
        for state in states:
            assert state.tool is not None
            limiter = state.tool.limiter
            if limiter is not None:
                by_limiter.setdefault(limiter, []).append(state)
            else:
                self._pass_on(state)
        for limiter, waiting in by_limiter.items():
            self._feeders += 1
            nursery.start_soon(self._feed, limiter, waiting)
        if self._limiter is None:
            return len(by_limiter)
        nursery.start_soon(self._gate, self._limiter)
        return len(by_limiter) + 1

    def _pass_on(self, state: CallState) -> None:
        if self._limiter is None:
            self._start(state)
        elif self._gate_is_closed:
            state.release_slots()
        else:
            heapq.heappush(self._at_gate, (state.index, state))
            self._news.set()

    async def _gate(self, limiter: trio.CapacityLimiter) -> None:
        slots = Slots()
        try:
            # Whoever starts or wakes together with this task has arrived a scheduler pass later, here and below.
            await trio.lowlevel.checkpoint()
            while self._at_gate or self._feeders:
                if self._at_gate:
                    woken = await slots.acquire((limiter,))
                else:
                    self._news = trio.Event()
                    await self._news.wait()
                    woken = True
                if woken:
                    await trio.lowlevel.checkpoint()
                if slots:
                    self._let_through(slots)
                    slots = Slots()  # a limiter knows its borrowers apart
        finally:
            self._gate_is_closed = True
            slots.release()
            for _, state in self._at_gate:
                state.release_slots()
            self._ended()

    def _let_through(self, slots: Slots) -> None:
        _, state = heapq.heappop(self._at_gate)
        if state.result is not None:  # cancelled while it waited
            state.release_slots()
            slots.release()
            return
        if state.slots is None:
            state.slots = Slots()
        state.slots.adopt(slots)
        self._start(state)

    async def _feed(self, limiter: trio.CapacityLimiter, states: list[CallState]) -> None:
        try:
            for state in states:
                state.slots = Slots()
                await state.slots.acquire((limiter,))
                if state.result is None:
                    self._pass_on(state)
                else:
                    state.release_slots()
        finally:
            self._feeders -= 1
            self._news.set()
            self._ended()
