"""StepInstrument: does something at the k-th point of a run's schedule, and can say where that was.

The points of a schedule are the moments between two steps of tasks. "Just after a step" and "just before the next" are
one moment, unless the scheduler looks for deadlines and sockets in between; so there is a point before each step and
one after the last step of each pass. Before a step, tasks may have their wake-up on the way (it comes before a
cancellation); after the last one, all that can be blocked is blocked, and a cancellation comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import trio

__all__ = ["Point", "StepInstrument", "describe_tasks"]

_FRAMES = 4
_TRIO = str(Path(trio.__file__).parent)


class Point:
    """Where a schedule was at a point.

    Attributes:
        number: counted from 1.
        timing: before the step of the task, or after it.
        task: the name of the task.
        frames: where it waits (the innermost last), as far as it is not Trio's own code.
    """

    __slots__ = ("frames", "number", "task", "timing")

    def __init__(self, number: int, timing: Literal["before", "after"], task: trio.lowlevel.Task) -> None:
        self.number = number
        self.timing = timing
        self.task = task.name
        self.frames = _await_frames(task)

    def __str__(self) -> str:
        place = " < ".join(reversed(self.frames)) or "(not begun, or over)"
        return f"point {self.number}, just {self.timing} a step of task {self.task!r} at {place}"


class StepInstrument(trio.abc.Instrument):
    """Counts the points of one task and all tasks below it, and acts at some of them.

    Args:
        first: the point of the first action.
        actions: done at ``first`` and the points that follow it, in order.
        max_steps: when there are more, something spins.
        spinning: called then, once, with the task.

    Attributes:
        reached: the points so far.
        done: where the actions were done.
    """

    def __init__(
        self,
        first: int,
        actions: list[Callable[[], None]],
        *,
        max_steps: int,
        spinning: Callable[[trio.lowlevel.Task], None],
    ) -> None:
        self.reached = 0
        self.done: list[Point] = []
        self._first = first
        self._actions = actions
        self._max_steps = max_steps
        self._spinning = spinning
        self._root: trio.lowlevel.Task | None = None
        self._stepped: trio.lowlevel.Task | None = None

    def arm(self, root: trio.lowlevel.Task) -> None:
        """Begin to count: steps of ``root`` and all tasks below it."""
        self._root = root

    def disarm(self) -> None:
        """Count no more."""
        self._root = None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """A point."""
        if self._root is None or not _is_below(task, self._root):
            return
        self._stepped = task
        self._count("before", task)

    def before_io_wait(self, timeout: float) -> None:
        """A point, if there was a step since the last wait."""
        task, self._stepped = self._stepped, None
        if self._root is not None and task is not None:
            self._count("after", task)

    def _count(self, timing: Literal["before", "after"], task: trio.lowlevel.Task) -> None:
        self.reached += 1
        due = self.reached - self._first
        if 0 <= due < len(self._actions):
            self.done.append(Point(self.reached, timing, task))
            self._actions[due]()
        elif self.reached == self._max_steps:
            self._spinning(task)


def _is_below(task: trio.lowlevel.Task, root: trio.lowlevel.Task) -> bool:
    while task is not root:
        if task.parent_nursery is None:
            return False
        task = task.parent_nursery.parent_task
    return True


def _await_frames(task: trio.lowlevel.Task) -> list[str]:
    try:
        frames = [(frame.f_code, line) for frame, line in task.iter_await_frames()]
    except TypeError:
        return []  # an awaitable that Trio cannot look into
    return [
        f"{code.co_qualname} ({Path(code.co_filename).name}:{line})"
        for code, line in frames
        if not code.co_filename.startswith(_TRIO)
    ][-_FRAMES:]


def describe_tasks(root: trio.lowlevel.Task) -> str:
    """The tasks below a task and where each one waits, for people who look for what hangs."""
    return "\n".join(_lines(root, 0))


def _lines(task: trio.lowlevel.Task, depth: int) -> Iterator[str]:
    yield f"{'  ' * depth}{task.name}: {' < '.join(reversed(_await_frames(task))) or '(not begun)'}"
    for nursery in task.child_nurseries:
        for child in sorted(nursery.child_tasks, key=lambda child: child.name):
            yield from _lines(child, depth + 1)
