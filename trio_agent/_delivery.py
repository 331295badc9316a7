"""Delivery of events: listeners first, in the order of their registration, then watchers; each handler is a barrier.

``Delivery.emit`` returns when everyone has handled the event. A listener has handled it when its call has returned; a
watcher when it asks for the next event, or closes. So a watcher's channel alone is no barrier, and each event that went
into it is acknowledged: ``_owed`` counts what was handed out and not yet acknowledged.

Nobody misses or gets an event twice when an emit is cut by a cancellation: the listeners whose turn had not come are
remembered for ``finish``, and what lies in a channel stays there. Nothing here knows what events mean.
"""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, final

import trio

from trio_agent._agent_events import AgentEvent
from trio_agent._errors import DeadlockError
from trio_agent._event_stream import Batch, EventStream
from trio_agent._failures import bare, leaves, split_cancelled

__all__ = ["Delivery", "Listener", "Subscription"]

Listener: TypeAlias = Callable[[AgentEvent], Awaitable[None] | None]
"""Handles an event; async or plain."""


@final
class Subscription:
    """A listener's registration; ends with ``close`` or as a context manager."""

    __slots__ = ("_delivery", "closed", "listener", "silent")

    def __init__(self, delivery: Delivery, listener: Listener) -> None:
        self._delivery = weakref.ref(delivery)  # few close a subscription that lasts as long as the agent
        self.listener = listener
        self.closed = False
        self.silent = False

    def close(self) -> None:
        """End it: the listener gets no further event, not even one that is being delivered. Idempotent."""
        if not self.closed:
            self.closed = self.silent = True
            delivery = self._delivery()
            if delivery is not None:
                delivery.remove_listener(self)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class Delivery:
    """The listeners and watchers of one agent.

    Attributes:
        failure: what a listener raised last in this run.
    """

    def __init__(self) -> None:
        # Replaced as a whole on each change, so that an emit goes through what was there when it began.
        self._listeners: tuple[Subscription, ...] = ()
        self._watchers: tuple[EventStream, ...] = ()
        self._cut: tuple[AgentEvent, tuple[Subscription, ...], tuple[EventStream, ...]] | None = None
        self._all_acknowledged: trio.Event | None = None
        self._batch: Batch | None = None
        self.failure: BaseException | None = None
        self._current: AgentEvent | None = None
        self._waiting_since: float | None = None

    def add_listener(self, listener: Listener) -> Subscription:
        """Register a listener; it gets the next event that is sent."""
        subscription = Subscription(self, listener)
        self._listeners = (*self._listeners, subscription)
        self._take_back_batch()
        return subscription

    def remove_listener(self, subscription: Subscription) -> None:
        """Forget a listener."""
        self._listeners = tuple([other for other in self._listeners if other is not subscription])

    def add_watcher(self, stream: EventStream) -> None:
        """Register a watcher; it gets the next event that is sent."""
        self._watchers = (*self._watchers, stream)
        self._take_back_batch()

    def remove_watcher(self, stream: EventStream) -> None:
        """Forget a watcher."""
        self._watchers = tuple([other for other in self._watchers if other is not stream])

    @property
    def events_waiting(self) -> int:
        """How many events were handed to watchers and not yet acknowledged."""
        return sum(stream.owed for stream in self._watchers)

    @property
    def waiting_for(self) -> float | None:
        """For how many seconds the run has waited for its watchers, if it does."""
        if self._waiting_since is None:
            return None
        return trio.current_time() - (self._waiting_since if self._batch is None else self._batch.taken_at)

    @property
    def current(self) -> AgentEvent | None:
        """The event that is being delivered."""
        return self._current if self._batch is None else self._batch.current

    def forget_failure(self) -> None:
        """What a listener raised, and a delivery that was cut, are over with the run; its traceback holds all of it."""
        self._cut = None
        self.failure = None
        self._current = None

    def unmute(self) -> None:
        """Let listeners that failed in an earlier run take part again."""
        for subscription in self._listeners:
            subscription.silent = False

    def emit(self, event: AgentEvent) -> Awaitable[None]:
        """Deliver an event; returns when all have handled it. A checkpoint only if a handler makes it one.

        Raises:
            Exception: of a listener; the others have got the event all the same, and this one gets no more in this run.
                Several are a group.
        """
        return self._deliver_each((event,))

    def emit_all(self, events: Iterator[AgentEvent]) -> Awaitable[None]:
        """Deliver events one after the other, each made when the one before has been handled.

        Raises:
            BaseException: as from ``emit``, or what the iterator raised.
        """
        watchers = self._watchers
        if len(watchers) == 1 and watchers[0].buffer == 0 and not self._listeners:
            return self._hand_over(events)
        return self._deliver_each(events)

    async def _deliver_each(
        self,
        events: Iterable[AgentEvent],
        left: tuple[tuple[Subscription, ...], tuple[EventStream, ...]] | None = None,
    ) -> None:
        # Most of what an event costs is spent here; hence no coroutine for each of them. Of a delivery that was cut,
        # some handlers are left; else all those count that are there when the event has been made.
        for event in events:
            self._current = event
            if left is None:
                listeners, watchers = self._listeners, self._watchers
            else:
                listeners, watchers = left
            subscription = None
            try:
                for subscription in listeners:
                    if not subscription.silent:
                        awaitable = subscription.listener(event)
                        if awaitable is not None:
                            await awaitable
            except BaseException as exc:  # noqa: BLE001, ASYNC103  # sorted out in the call
                await self._deliver_rest(event, listeners, subscription, exc, watchers)  # noqa: ASYNC102
            if watchers:
                await self._deliver_to_watchers(event, watchers)
        self._current = None

    async def _hand_over(self, events: Iterator[AgentEvent]) -> None:
        # The only watcher takes the events itself; what it leaves, because it closes or is joined, is sent.
        self._batch = batch = Batch(events)
        try:
            await self._hand_to(self._watchers, batch)
        finally:
            batch.is_over = True
            self._batch = None
        if batch.failure is not None:
            try:
                raise batch.failure
            finally:
                batch.failure = None
        if not batch.is_exhausted:
            await self._deliver_each(events)

    def _take_back_batch(self) -> None:
        # Whoever joins gets the next event, so the watcher must not take more than the one it has.
        if self._batch is not None:
            self._batch.is_over = True

    async def finish(self) -> None:
        """Finish a delivery that was cut, if one was: call the listeners that are left, and wait for the watchers.

        It comes before anything else is sent, and may itself be cut.

        Raises:
            Exception: of a listener, as from ``emit``.
        """
        if self._cut is None:
            return
        (event, listeners, watchers), self._cut = self._cut, None
        await self._deliver_each((event,), (listeners, watchers))
        self._current = event
        await self._deliver_to_watchers(event, ())
        self._current = None

    async def _deliver_to_watchers(self, event: AgentEvent, watchers: tuple[EventStream, ...]) -> None:
        try:
            await self._hand_to(watchers, event)
        except BaseException:
            self._cut = (event, (), ())
            raise

    async def _deliver_rest(
        self,
        event: AgentEvent,
        listeners: tuple[Subscription, ...],
        failed: Subscription | None,
        exc: BaseException,
        watchers: tuple[EventStream, ...],
    ) -> None:
        """After a listener has raised: the others get the event all the same, unless this is cancelled."""
        assert failed is not None
        self._cut = (event, listeners[listeners.index(failed) + 1 :], watchers)
        failure: BaseException | None = None
        try:
            failure = self._failed(failed, exc)
            try:
                await self.finish()
            except BaseException as further:  # noqa: BLE001, ASYNC103  # the failure weighs more than a cancellation, which comes again
                rest = split_cancelled(further)[1]
                if rest is not None:
                    failure = bare(BaseExceptionGroup("listeners failed", [failure, *leaves(rest)]))
            self.failure = failure
            raise failure
        finally:
            del failure, exc  # a frame that is in the traceback of what it holds is a circle

    def _failed(self, subscription: Subscription, exc: BaseException) -> BaseException:
        cancelled, failure = split_cancelled(exc)
        if isinstance(failure, Exception):
            subscription.silent = True  # but not for an interrupt that only struck while the listener had its turn
        if cancelled is not None:
            try:
                raise exc
            finally:
                del exc, cancelled, failure
        assert failure is not None
        return failure

    async def _hand_to(self, watchers: Sequence[EventStream], item: AgentEvent | Batch) -> None:
        for stream in watchers:
            if stream.is_open:
                stream.put(item)
        if self._is_held_up():
            self._waiting_since = trio.current_time()
            try:
                while self._is_held_up():
                    self._all_acknowledged = trio.Event()
                    await self._all_acknowledged.wait()
            finally:
                self._waiting_since = None

    def _is_held_up(self) -> bool:
        for stream in self._watchers:  # noqa: SIM110  # asked for every event, and a generator costs more than the answer
            if stream.owed > stream.buffer:
                return True
        return False

    def acknowledged(self) -> None:
        """A watcher has asked for more, or closed."""
        if self._all_acknowledged is not None and not self._is_held_up():
            self._all_acknowledged.set()
            self._all_acknowledged = None

    def check_not_waited_for(self, what: str) -> None:
        """Refuse a wait for the end of the run from inside a body that the run waits for.

        Raises:
            DeadlockError: the current task runs inside the body of a watcher.
        """
        for stream in self._watchers:
            body = stream.body
            if body is not None and stream.buffer == 0 and body.is_waited_for_by_current_task():
                raise DeadlockError(
                    f"{what} would wait for ever: the run waits for the body of an event stream in task "
                    f"{body.name!r}, and this call is inside it; call it after the loop, or from another task"
                )
