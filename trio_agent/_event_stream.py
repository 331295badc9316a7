"""EventStream: the events of an agent for one watcher, through a Trio memory channel, each acknowledged.

A channel alone is no barrier: a send returns when the item was taken, not when it was handled. So everything that goes
into the channel is owed until the watcher asks for more, or closes.

What goes in is an event, or a batch: an iterator that makes events as they are asked for. While the watcher takes from
a batch the run stands, and nothing has to cross from task to task for each event. The iterator is the run's own code,
so what it does between two events (a message is committed, a call is prepared) is done when the watcher takes the next
one, not before. Until then the rest of a batch has not happened, and can be taken back.
"""

from __future__ import annotations

import contextvars
import math
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, final

import trio
from trio.lowlevel import checkpoint_if_cancelled, current_task

from trio_agent._agent_events import AgentEvent

if TYPE_CHECKING:
    from trio_agent._delivery import Delivery

__all__ = ["Batch", "EventStream", "Place"]


class Place:
    """A point in a task: everything started from there on cannot end before the task gets past it.

    Args:
        task: that is there.
        depth: how many nurseries it has open there.
    """

    __slots__ = ("_depth", "_task")

    def __init__(self, task: trio.lowlevel.Task, depth: int) -> None:
        self._task = task
        self._depth = depth

    @classmethod
    def here(cls) -> Place:
        """Where the current task is."""
        task = current_task()
        return cls(task, len(task.child_nurseries))

    def is_waited_for_by_current_task(self) -> bool:
        """Whether the current task runs inside this place, so that the place cannot be left before it ends.

        That is the task itself, and all below the nurseries it has opened since; not those below nurseries that were
        open before.
        """
        task = current_task()
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


class Batch:
    """Events for one watcher, made as it takes them.

    Args:
        events: makes them; runs in the watcher's task, in the context of the run's.

    Attributes:
        is_over: nothing is to be taken from it any more.
        is_exhausted: all was taken.
        failure: what the iterator raised.
        current: what was taken last, as long as the next one is not asked for.
        taken_at: when that was, on Trio's clock; at first when the batch was made.
    """

    __slots__ = ("_events", "_in_context", "_now", "current", "failure", "is_exhausted", "is_over", "taken_at")

    def __init__(self, events: Iterator[AgentEvent]) -> None:
        self._events = events
        # What the run's own code sees in context variables is what the run's task sees.
        self._in_context = contextvars.copy_context().run
        self.is_over = False
        self.is_exhausted = False
        self.failure: BaseException | None = None
        self.current: AgentEvent | None = None
        self._now = trio.lowlevel.current_clock().current_time
        self.taken_at = self._now()

    def take(self) -> AgentEvent | None:
        """The next event, or ``None`` if there is no more."""
        if self.is_over:
            return None
        try:
            self.current = event = self._in_context(next, self._events, None)
            if event is not None:
                self.taken_at = self._now()
                return event
            self.is_exhausted = True
        except BaseException as exc:  # noqa: BLE001, ASYNC103  # it belongs to the run
            self.failure = exc
        self.is_over = True
        return None


@final
class EventStream:
    """A watcher's events, in order, until it is closed.

    ``async with agent.events() as events: async for event in events: ...``; a plain ``with`` does as well. The body of
    the loop is the handler: the run stands until it asks for the next event or the block is left. With a buffer the run
    goes on until as many events wait. Leaving the block never touches the run.

    Asking for the next event is a checkpoint whenever it has to be waited for; events that are there already come with
    a check for cancellation only.

    Raises:
        trio.BusyResourceError: two tasks iterate one stream.
        RuntimeError: iterated outside the block.
    """

    __slots__ = (
        "_batch", "_delivery", "_depth", "_held", "_receive", "_send", "_task", "_waiting", "buffer", "is_open", "owed",
    )  # fmt: skip

    def __init__(self, delivery: Delivery, buffer: int) -> None:
        self._delivery = delivery
        self.buffer = buffer
        self._send, self._receive = trio.open_memory_channel[AgentEvent | Batch](math.inf)
        self.is_open: bool | None = None
        self.owed = 0
        self._batch: Batch | None = None
        self._held = False
        self._waiting = False
        self._task: trio.lowlevel.Task | None = None
        self._depth = 0

    def open(self) -> None:
        """Begin to receive, with the next event that is sent."""
        if self.is_open is not None:
            raise RuntimeError("an event stream can be entered only once; open another one")
        self.is_open = True
        self._delivery.add_watcher(self)

    def finish(self) -> None:
        """Nothing more will come: iteration ends after what is waiting."""
        self._send.close()

    def close(self) -> None:
        """End it at once and acknowledge everything. Idempotent, never blocks, no checkpoint."""
        if not self.is_open:
            return
        self.is_open = False
        self._delivery.remove_watcher(self)
        self._send.close()
        self._receive.close()
        self.owed = 0
        self._batch = None
        self._held = False
        self._task = None
        self._delivery.acknowledged()

    def put(self, item: AgentEvent | Batch) -> None:
        """Hand out an event or a batch."""
        self.owed += 1
        self._send.send_nowait(item)

    @property
    def body(self) -> Place | None:
        """Where an event is being handled."""
        return None if self._task is None else Place(self._task, self._depth)

    def __aiter__(self) -> EventStream:
        if self.is_open is None:
            raise RuntimeError("enter the event stream first: async with agent.events() as events: ...")
        return self

    async def __anext__(self) -> AgentEvent:
        batch = self._batch
        event = None
        if batch is not None:
            await checkpoint_if_cancelled()
            event = batch.take()
        elif self._waiting:
            raise trio.BusyResourceError("another task iterates this event stream")
        while event is None:
            if self._held:
                self._acknowledge()
            item = await self._receive_item()
            self._held = True
            if isinstance(item, Batch):
                self._batch = item
                event = item.take()
            else:
                event = item
        self._task = task = current_task()
        self._depth = len(task.child_nurseries)
        return event

    def _acknowledge(self) -> None:
        self._held = False
        self._batch = None
        self._task = None
        self.owed -= 1
        self._delivery.acknowledged()

    async def _receive_item(self) -> AgentEvent | Batch:
        self._waiting = True
        try:
            return await self._receive.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError):
            raise StopAsyncIteration from None
        finally:
            self._waiting = False

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
