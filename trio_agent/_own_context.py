"""InOwnContext: a copy of the context for a coroutine that gets no task of its own.

As a task would, it keeps what the coroutine sets from whoever awaits it.
"""

from __future__ import annotations

import contextvars
from collections.abc import Coroutine, Generator
from typing import Any

__all__ = ["InOwnContext"]


class InOwnContext:
    """Awaits a coroutine in a copy of the current context, so that what it sets there is gone with it."""

    __slots__ = ("_coroutine",)

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, None]:
        run = contextvars.copy_context().run
        send, throw = self._coroutine.send, self._coroutine.throw
        try:
            trap = run(send, None)
            while True:
                try:
                    value = yield trap
                except BaseException as exc:  # noqa: BLE001, ASYNC103  # it goes into the coroutine
                    trap = run(throw, exc)
                else:
                    trap = run(send, value)
        except StopIteration:
            return
