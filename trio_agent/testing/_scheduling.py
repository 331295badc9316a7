"""deterministic_scheduling: the same seed, the same order of tasks."""

from __future__ import annotations

import importlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

__all__ = ["deterministic_scheduling"]


@contextmanager
def deterministic_scheduling(seed: int) -> Generator[None]:
    """While the block runs, Trio runs tasks that are ready at the same time in an order that only ``seed`` decides.

    Trio shuffles such tasks on purpose, so that nobody relies on their order. A test that compares whole event lists of
    tools which end at the same virtual instant needs one order all the same, and a sweep must be able to replay a
    failure. Use it around ``trio.run``, or inside an async test; with a ``MockClock`` a run then is a function of its
    script and the seed. What threads, sockets and other seeds do is not covered.

    Args:
        seed: of the order.

    Raises:
        RuntimeError: this version of Trio has no such switch.
    """
    # Trio documents no public switch; these are the two names that pytest-trio uses, too.
    scheduler: Any = importlib.import_module("trio._core._run")
    try:
        random, before = scheduler._r, scheduler._ALLOW_DETERMINISTIC_SCHEDULING
    except AttributeError as exc:
        raise RuntimeError("this version of Trio cannot be made to schedule deterministically") from exc
    state = random.getstate()
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True
    random.seed(seed)
    try:
        yield
    finally:
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = before
        random.setstate(state)
