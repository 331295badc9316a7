"""The callable of a tool, and how it is called: in Trio or in a worker thread, with keywords or as it stands.

``_tools.py`` is above. What a body raises goes through here untouched.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
import trio

from trio_agent._tool_context import ToolContext

__all__ = ["Body", "is_async"]

_THREADS: Final = 40
_own_limiter: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("trio_agent tool threads")


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling a function gives something to await, as far as can be seen without calling it."""
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function):
        function = type(function).__call__
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(inspect.unwrap(function))


class Body(msgspec.Struct, frozen=True):
    """How to run a tool.

    Attributes:
        function: takes ``(arguments, ctx)``, or keywords if it has a signature of its own.
        in_thread: it blocks, and so runs in a worker thread.
        has_signature: the value it is run with is a Struct whose fields are its keywords.
        context_parameter: the keyword that takes the context.
        method: what to bind to an object before it can be run; ``None`` if it needs none.
    """

    function: Callable[..., Any]
    in_thread: bool
    has_signature: bool = False
    context_parameter: str | None = None
    method: Any = None

    @property
    def needs_context(self) -> bool:
        """Whether ``run`` makes use of a context."""
        return not self.has_signature or self.context_parameter is not None or self.in_thread

    def run(self, value: Any, ctx: ToolContext | None, *, abandon: bool) -> Awaitable[object]:  # noqa: ANN401
        """Call it; what it returns is to be awaited at once, as there is no more between than needed.

        Args:
            value: what the arguments were bound to.
            ctx: of the call.
            abandon: on cancellation, leave a worker thread behind and discard its result.
        """
        if self.has_signature:
            keywords = msgspec.structs.asdict(value)
            if self.context_parameter is not None:
                keywords[self.context_parameter] = ctx
            if not self.in_thread:
                return self.function(**keywords)  # type: ignore[no-any-return]
            call = functools.partial(self.function, **keywords)
        elif not self.in_thread:
            return self.function(value, ctx)  # type: ignore[no-any-return]
        else:
            call = functools.partial(self.function, value, ctx)
        return _run_in_thread(call, ctx, abandon=abandon)


async def _run_in_thread(call: Callable[[], Any], ctx: ToolContext | None, *, abandon: bool) -> object:
    def in_thread() -> tuple[Any]:
        return (call(),)

    # A `def` may be a wrapper around an `async def`; in a tuple, as Trio takes a coroutine from a thread for a mistake.
    (result,) = await trio.to_thread.run_sync(in_thread, abandon_on_cancel=abandon, limiter=_limiter(ctx))
    return await result if inspect.isawaitable(result) else result


def _limiter(ctx: ToolContext | None) -> trio.CapacityLimiter:
    if ctx is not None:
        ctx.note_deadline()
        if ctx.thread_limiter is not None:
            return ctx.thread_limiter
    # Never Trio's default: abandoned threads would keep the rest of the application from getting theirs.
    try:
        return _own_limiter.get()
    except LookupError:
        limiter = trio.CapacityLimiter(_THREADS)
        _own_limiter.set(limiter)
        return limiter
