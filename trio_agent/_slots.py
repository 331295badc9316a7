"""Slots of capacity limiters for tool calls, which a call may lend to the calls nested in it.

A call holds one slot of each limiter it is under. Waiting for a nested call while holding the last slot would wait for
ever, so a parent lends its slot to one nested call at a time; the others wait for a slot of their own or for the loan
to come back, whichever is first.
"""

from __future__ import annotations

from collections.abc import Iterable

import trio

from trio_agent._failures import bare

__all__ = ["Slots"]


class _Slot:
    __slots__ = ("finished", "lender", "lent", "limiter", "owner", "waiters")

    def __init__(self, limiter: trio.CapacityLimiter, owner: Slots, lender: _Slot | None = None) -> None:
        self.limiter = limiter
        self.owner = owner
        self.lender = lender
        self.lent = False
        self.finished = False
        self.waiters: trio.lowlevel.ParkingLot | None = None

    def lend(self, borrower: Slots) -> _Slot:
        self.lent = True
        return _Slot(self.limiter, borrower, self)

    async def wait_to_lend(self, borrower: Slots) -> _Slot:
        while self.lent:
            if self.waiters is None:
                self.waiters = trio.lowlevel.ParkingLot()
            await self.waiters.park()
        return self.lend(borrower)

    def give_back(self) -> None:
        if self.lent:
            # A nested call has outlived its parent; the slot is in use until that call ends.
            self.finished = True
        elif self.lender is None:
            self.limiter.release_on_behalf_of(self.owner)
        else:
            self.lender.take_back()

    def take_back(self) -> None:
        self.lent = False
        if self.finished:
            self.give_back()
        elif self.waiters is not None:
            self.waiters.unpark()


class Slots:
    """The slots that one call holds, by limiter.

    Args:
        parent: of the call in which this one is nested; its slots can be borrowed, and those of its own parents.
    """

    __slots__ = ("_held", "_parent")

    def __init__(self, parent: Slots | None = None) -> None:
        self._held: dict[trio.CapacityLimiter, _Slot] = {}
        self._parent = parent

    def __bool__(self) -> bool:
        """Whether any slot is held."""
        return bool(self._held)

    def adopt(self, others: Slots) -> None:
        """Take over the slots of others, which are left without."""
        self._held.update(others._held)
        others._held.clear()

    async def acquire(self, limiters: Iterable[trio.CapacityLimiter]) -> bool:
        """Get a slot of each limiter, in order. If cancelled, none is kept.

        Returns:
            Whether it had to wait; only then was it a checkpoint.
        """
        waited = False
        try:
            for limiter in limiters:
                slot = self._acquire_at_once(limiter)
                if slot is None:
                    waited = True
                    slot = await self._wait_for(limiter)
                self._held[limiter] = slot
        except BaseException:
            self.release()
            raise
        return waited

    def release(self) -> None:
        """Give all slots back, borrowed ones to their lender."""
        while self._held:
            self._held.popitem()[1].give_back()

    def _find_lender(self, limiter: trio.CapacityLimiter) -> _Slot | None:
        ancestor = self._parent
        while ancestor is not None:
            if limiter in ancestor._held:
                return ancestor._held[limiter]
            ancestor = ancestor._parent
        return None

    def _acquire_at_once(self, limiter: trio.CapacityLimiter) -> _Slot | None:
        lender = self._find_lender(limiter)
        if lender is not None:
            return None if lender.lent else lender.lend(self)
        try:
            limiter.acquire_on_behalf_of_nowait(self)
        except trio.WouldBlock:
            return None
        return _Slot(limiter, self)

    async def _wait_for(self, limiter: trio.CapacityLimiter) -> _Slot:
        lender = self._find_lender(limiter)
        if lender is not None:
            return await self._first_of_two(limiter, lender)
        await limiter.acquire_on_behalf_of(self)
        return _Slot(limiter, self)

    async def _first_of_two(self, limiter: trio.CapacityLimiter, lender: _Slot) -> _Slot:
        won: list[_Slot] = []

        async def own(scope: trio.CancelScope) -> None:
            await limiter.acquire_on_behalf_of(self)
            won.append(_Slot(limiter, self))
            scope.cancel()

        async def borrowed(scope: trio.CancelScope) -> None:
            won.append(await lender.wait_to_lend(self))
            scope.cancel()

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(own, nursery.cancel_scope)
                nursery.start_soon(borrowed, nursery.cancel_scope)
        except BaseException as exc:  # noqa: BLE001  # it goes on
            for slot in won:
                slot.give_back()
            raise bare(exc) from None  # noqa: ASYNC104  # cancellations go on in their group
        for slot in won[1:]:
            # Both came in the same scheduler pass.
            slot.give_back()
        return won[0]
