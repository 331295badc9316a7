"""AbortHandle: the flag that stops a run, and what is to be cut when it is raised.

Not a cancel scope: an abort is the library's own word for "stop in order", after which the run closes its transcript
and returns. The handle knows nothing of runs; whoever waits for something that may be cut says here how to cut it.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["AbortHandle"]


class AbortHandle:
    """Stops the loops and tool calls it is given to.

    One handle may serve several at once, and one that start later: these then stop before their first request.
    """

    __slots__ = ("_cuts", "aborted")

    def __init__(self) -> None:
        self.aborted = False
        """Whether :meth:`abort` was called."""
        self._cuts: list[Callable[[], None]] = []

    def abort(self) -> None:
        """Stop in order. Never blocks, no checkpoint, may be called from anywhere in the Trio thread, and repeatedly.

        What is waited for and may be cut is cancelled at once: requests, tools, hooks. What is owed is still delivered.
        """
        if not self.aborted:
            self.aborted = True
            for cut in tuple(self._cuts):
                cut()

    def add_cut(self, cut: Callable[[], None]) -> None:
        """From now on an abort calls ``cut``, which must not raise or block."""
        self._cuts.append(cut)

    def remove_cut(self, cut: Callable[[], None]) -> None:
        """Undo :meth:`add_cut`."""
        self._cuts.remove(cut)
