"""Delivery of events: listeners first, in the order of their registration, then watchers; each handler is a barrier.

``Delivery.emit`` returns when everyone has handled the event. A listener has handled it when its call has returned; a
watcher when it asks for the next event, or closes. So a watcher's channel alone is no barrier, and each event that went
into it is acknowledged: ``_owed`` counts what was handed out and not yet acknowledged.

Nobody misses or gets an event twice when an emit is cut by a cancellation: the listeners whose turn had not come are
remembered for ``finish``, and what lies in a channel stays there. Nothing here knows what events mean.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import TypeAlias, final

import trio

from trio_agent._agent_events import AgentEvent
from trio_agent._errors import DeadlockError
from trio_agent._failures import bare, split_cancelled

__all__ = ["Delivery", "EventStream", "Listener", "Place", "Subscription"]

Listener: TypeAlias = Callable[[AgentEvent], Awaitable[None] | None]
"""Handles an event; async or plain."""


class Place:
    """A point in a task: everything started from there on cannot end before the task gets past it."""

    __slots__ = ("_depth", "_task")

    def __init__(self) -> None:
        self._task = trio.lowlevel.current_task()
        self._depth = len(self._task.child_nurseries)

    def is_waited_for_by_current_task(self) -> bool:
        """Whether the current task runs inside this place, so that the place cannot be left before it ends.

        That is the task itself, and all below the nurseries it has opened since; not those below nurseries that were
        open before.
        """
        task = trio.lowlevel.current_task()
        if task is self._task:
            return True
        while task.parent_nursery is not None:
            nursery = task.parent_nursery
            task = nursery.parent_task
            if task is self._task:
                return nursery in task.child_nurseries[self._depth :]
        return False

    @property
    def name(self) -> str:
        """Of the task."""
        return self._task.name


@final
class Subscription:
    """A listener's registration; ends with ``close`` or as a context manager."""

    __slots__ = ("_delivery", "closed", "listener", "silent")

    def __init__(self, delivery: Delivery, listener: Listener) -> None:
        self._delivery = delivery
        self.listener = listener
        self.closed = False
        self.silent = False

    def close(self) -> None:
        """End it: the listener gets no further event, not even one that is being delivered. Idempotent."""
        if not self.closed:
            self.closed = self.silent = True
            self._delivery.remove_listener(self)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


@final
class EventStream:
    """A watcher's events, in order, until it is closed.

    ``async with agent.events() as events: async for event in events: ...``; a plain ``with`` does as well. The body of
    the loop is the handler: the run stands until it asks for the next event or the block is left. With a buffer the run
    goes on until as many events wait. Leaving the block never touches the run.

    Raises:
        trio.BusyResourceError: two tasks iterate one stream.
        RuntimeError: iterated outside the block.
    """

    __slots__ = ("_buffer", "_delivery", "_held", "_owed", "_place", "_receive", "_send", "_state", "_waiting")

    def __init__(self, delivery: Delivery, buffer: int) -> None:
        self._delivery = delivery
        self._buffer = buffer
        self._send, self._receive = trio.open_memory_channel[AgentEvent](math.inf)
        self._state = "new"
        self._owed = 0
        self._held = False
        self._waiting = False
        self._place: Place | None = None

    def open(self) -> None:
        """Begin to receive, with the next event that is sent."""
        if self._state != "new":
            raise RuntimeError("an event stream can be entered only once; open another one")
        self._state = "open"
        self._delivery.add_watcher(self)

    def finish(self) -> None:
        """Nothing more will come: iteration ends after what is waiting."""
        self._send.close()

    def close(self) -> None:
        """End it at once and acknowledge everything. Idempotent, never blocks, no checkpoint."""
        if self._state == "closed":
            return
        self._state = "closed"
        self._delivery.remove_watcher(self)
        self._send.close()
        self._receive.close()
        self._owed = 0
        self._held = False
        self._place = None
        self._delivery.acknowledged()

    def put(self, event: AgentEvent) -> None:
        """Hand out an event."""
        self._owed += 1
        self._send.send_nowait(event)

    @property
    def holds(self) -> bool:
        """Whether the run has to wait for this watcher."""
        return self._owed > self._buffer

    @property
    def body(self) -> Place | None:
        """Where an event is being handled."""
        return self._place

    def __aiter__(self) -> EventStream:
        if self._state == "new":
            raise RuntimeError("enter the event stream first: async with agent.events() as events: ...")
        return self

    async def __anext__(self) -> AgentEvent:
        if self._waiting:
            raise trio.BusyResourceError("another task iterates this event stream")
        if self._held:
            self._held = False
            self._place = None
            self._owed -= 1
            self._delivery.acknowledged()
        self._waiting = True
        try:
            event = await self._receive.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError):
            raise StopAsyncIteration from None
        finally:
            self._waiting = False
        self._held = True
        self._place = Place()
        return event

    def __enter__(self) -> EventStream:
        self.open()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    async def __aenter__(self) -> EventStream:
        self.open()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class Delivery:
    """The listeners and watchers of one agent.

    Args:
        reduce: is given each event before anyone else, to bring the state up to date.

    Attributes:
        failure: what a listener raised last in this run.
        current: the event that is being delivered.
    """

    def __init__(self, reduce: Callable[[AgentEvent], None]) -> None:
        self._reduce = reduce
        # Replaced as a whole on each change, so that an emit goes through what was there when it began.
        self._listeners: tuple[Subscription, ...] = ()
        self._watchers: tuple[EventStream, ...] = ()
        self._cut: tuple[AgentEvent, tuple[Subscription, ...], tuple[EventStream, ...]] | None = None
        self._all_acknowledged: trio.Event | None = None
        self.failure: BaseException | None = None
        self.current: AgentEvent | None = None
        self._waiting_since: float | None = None

    def add_listener(self, listener: Listener) -> Subscription:
        """Register a listener; it gets the next event that is sent."""
        subscription = Subscription(self, listener)
        self._listeners = (*self._listeners, subscription)
        return subscription

    def remove_listener(self, subscription: Subscription) -> None:
        """Forget a listener."""
        self._listeners = tuple([other for other in self._listeners if other is not subscription])

    def add_watcher(self, stream: EventStream) -> None:
        """Register a watcher; it gets the next event that is sent."""
        self._watchers = (*self._watchers, stream)

    def remove_watcher(self, stream: EventStream) -> None:
        """Forget a watcher."""
        self._watchers = tuple([other for other in self._watchers if other is not stream])

    @property
    def events_waiting(self) -> int:
        """How many events were handed to watchers and not yet acknowledged."""
        return sum(stream._owed for stream in self._watchers)

    @property
    def waiting_for(self) -> float | None:
        """For how many seconds the run has waited for its watchers, if it does."""
        return None if self._waiting_since is None else trio.current_time() - self._waiting_since

    def unmute(self) -> None:
        """Let listeners that failed in an earlier run take part again."""
        self._cut = None
        self.failure = None
        for subscription in self._listeners:
            subscription.silent = False

    def emit(self, event: AgentEvent) -> Awaitable[None]:
        """Deliver an event; returns when all have handled it. A checkpoint only if a handler makes it one.

        Raises:
            Exception: of a listener; the others have got the event all the same, and this one gets no more in this run.
                Several are a group.
        """
        self._reduce(event)
        return self._deliver(event, self._listeners, self._watchers)

    async def finish(self) -> None:
        """Finish a delivery that was cut, if one was: call the listeners that are left, and wait for the watchers.

        It comes before anything else is sent, and may itself be cut.

        Raises:
            Exception: of a listener, as from ``emit``.
        """
        if self._cut is None:
            return
        (event, listeners, watchers), self._cut = self._cut, None
        await self._deliver(event, listeners, watchers)
        await self._hand_to((), event)

    async def _deliver(
        self, event: AgentEvent, listeners: tuple[Subscription, ...], watchers: tuple[EventStream, ...]
    ) -> None:
        self.current = event
        failures: list[BaseException] | None = None
        done = 0
        try:
            for subscription in listeners:
                done += 1
                if subscription.silent:
                    continue
                try:
                    awaitable = subscription.listener(event)
                    if awaitable is not None:
                        await awaitable
                except BaseException as exc:  # noqa: BLE001, ASYNC103  # sorted out in the call
                    failures = [*(failures or ()), self._failed(subscription, exc)]
            if watchers:
                left, watchers = watchers, ()
                await self._hand_to(left, event)
        except BaseException:  # noqa: ASYNC103
            self._cut = (event, listeners[done:], watchers)
            if not failures:
                raise
            # The cancellation comes again at the next checkpoint; the failure would not.
        self.current = None
        if failures:
            failure = failures[0] if len(failures) == 1 else bare(BaseExceptionGroup("listeners failed", failures))
            self.failure = failure
            raise failure

    def _failed(self, subscription: Subscription, exc: BaseException) -> BaseException:
        cancelled, failure = split_cancelled(exc)
        if isinstance(failure, Exception):
            subscription.silent = True  # but not for an interrupt that only struck while the listener had its turn
        if cancelled is not None:
            raise exc
        assert failure is not None
        return failure

    async def _hand_to(self, watchers: Sequence[EventStream], event: AgentEvent) -> None:
        for stream in watchers:
            if stream._state == "open":
                stream.put(event)
        if any(stream.holds for stream in self._watchers):
            self._waiting_since = trio.current_time()
            try:
                while any(stream.holds for stream in self._watchers):
                    self._all_acknowledged = trio.Event()
                    await self._all_acknowledged.wait()
            finally:
                self._waiting_since = None

    def acknowledged(self) -> None:
        """A watcher has asked for the next event, or closed."""
        if self._all_acknowledged is not None and not any(stream.holds for stream in self._watchers):
            self._all_acknowledged.set()
            self._all_acknowledged = None

    def check_not_waited_for(self, what: str) -> None:
        """Refuse a wait for the end of the run from inside a body that the run waits for.

        Raises:
            DeadlockError: the current task runs inside the body of a watcher.
        """
        for stream in self._watchers:
            if stream.body is not None and stream._buffer == 0 and stream.body.is_waited_for_by_current_task():
                raise DeadlockError(
                    f"{what} would wait for ever: the run waits for the body of an event stream in task "
                    f"{stream.body.name!r}, and this call is inside it; call it after the loop, or from another task"
                )
