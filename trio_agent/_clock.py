"""Timestamps on the clock that Trio runs on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import trio

__all__ = ["timestamp_ms", "timestamps"]


def timestamp_ms() -> int:
    """Now, in milliseconds since the epoch; see :func:`timestamps`."""
    return timestamps()()


def timestamps() -> Callable[[], int]:
    """What tells the time, in milliseconds since the epoch, in this Trio run.

    Under a ``trio.testing.MockClock`` the epoch is the clock's start, so that a script gives the same messages every
    time.
    """
    testing = sys.modules.get("trio.testing")
    if testing is not None:
        try:
            clock = trio.lowlevel.current_clock()
        except RuntimeError:
            clock = None  # an agent can be made, and steered, before Trio runs
        if isinstance(clock, testing.MockClock):
            return _virtual
    return _real


def _virtual() -> int:
    return round(trio.current_time() * 1000)


def _real() -> int:
    return time.time_ns() // 1_000_000
