"""ToolTasks: the nursery in which the tools of a run work, beside the run's own task.

The run's task sends events, and a delivery must not be cut when tools are: so the tools' nursery is opened by a host
task, and its scope encloses the tools alone. It is opened when the first batch needs it and closed with the run, which
costs three scheduler passes a run instead of three a batch.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

import trio

from trio_agent._nursery import NurseryManager, leave_nursery

__all__ = ["ToolTasks"]


class ToolTasks:
    """An async context manager around a run. On leaving, all tools are cancelled and waited for."""

    __slots__ = ("_leaving", "_manager", "_nursery", "_opened")

    def __init__(self) -> None:
        self._manager: NurseryManager | None = None
        self._nursery: trio.Nursery | None = None
        self._opened: trio.Event | None = None
        self._leaving = trio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def open(self) -> trio.Nursery | None:
        """The nursery for tools; ``None`` after an abort. Call it from the task that entered the block.

        A checkpoint the first time. A cancellation may end the host before this task has noticed it; then it does so
        here.
        """
        if self._manager is None:
            self._manager = trio.open_nursery()
            outer = await self._manager.__aenter__()
            self._opened = trio.Event()
            outer.start_soon(self._host, self._opened, name="tools of an agent")
            await self._opened.wait()
        if self._nursery is None:
            await trio.lowlevel.checkpoint()
        return self._nursery

    async def _host(self, opened: trio.Event) -> None:
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            opened.set()
            try:
                await self._leaving.wait()
            finally:
                self._nursery = None  # from here on it is closed as soon as it is empty

    def cancel(self) -> None:
        """Cancel all tools; none can be started after that. Never blocks, no checkpoint."""
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._manager is None:
            return
        if self._opened is not None and not self._opened.is_set():
            # Cancelled while it was opened; the host is on its way.
            with trio.CancelScope(shield=True):
                await self._opened.wait()  # noqa: ASYNC102
        if self._nursery is not None and self._nursery.child_tasks:
            self.cancel()
        else:
            # After an ordinary run there is nobody to cancel, and a cancellation costs more than a word.
            self._leaving.set()
        manager, self._manager = self._manager, None
        # Not shielded, nor need it be: the tools are cancelled, and it waits for no one else.
        await leave_nursery(manager, exc)  # noqa: ASYNC102
