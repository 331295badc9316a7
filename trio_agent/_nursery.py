"""Leaving a nursery that a class has entered by hand, so that one exception comes out, and the right one.

A nursery wraps what goes through it into groups. So the exception of the block's body does not go through it, and an
ordinary exception of a task in it is kept aside by that task. What comes out of the block then is:

* out of a task, a crash (``KeyboardInterrupt`` and whatever else is no ``Exception``): it, bare, in place of any other;
* else what the body raised, bare, unless that is a cancellation; what a task kept aside is added as a note;
* else what a task kept aside, also in place of a cancellation, because a real error weighs more;
* else the cancellation, untouched.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import trio

from trio_agent._failures import bare, describe, split_cancelled

__all__ = ["NurseryManager", "leave_nursery"]

NurseryManager = AbstractAsyncContextManager[trio.Nursery]


async def leave_nursery(
    manager: NurseryManager, exc: BaseException | None, get_error: Callable[[], Exception | None] = lambda: None
) -> None:
    """Wait for the tasks of a nursery and leave it; for the end of an ``__aexit__``.

    Args:
        manager: of the nursery.
        exc: what the body of the block raised; goes on if this returns.
        get_error: gives what a task kept aside, once all have ended.
    """
    cancellation: BaseException | None = None
    crash: BaseException | None = None
    error: Exception | None = None
    try:
        try:
            await manager.__aexit__(None, None, None)
        except BaseException as group:  # noqa: BLE001, ASYNC103  # sorted out below
            cancellation, crash = split_cancelled(group)
            if crash is not None:
                raise bare(crash) from exc  # noqa: ASYNC104
        error = get_error()
        if exc is not None and split_cancelled(exc)[1] is not None:
            if error is not None:
                exc.add_note(f"the run failed, too: {type(error).__name__}: {describe(error)}")
            return
        if error is not None:
            raise error
        if exc is None and cancellation is not None:
            raise cancellation
    finally:
        # A frame that is in the traceback of what it holds is a circle.
        del exc, cancellation, crash, error, get_error
