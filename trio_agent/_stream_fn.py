"""The boundary between the loop and models: what a stream function is, and which one is used when none is given."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from trio_agent._errors import AgentError
from trio_agent._models import Model, StreamOptions
from trio_agent._stream_events import AssistantMessageEvent
from trio_agent._transcript import Context

__all__ = ["StreamFn", "get_default_stream_fn", "set_default_stream_fn"]


class StreamFn(Protocol):
    """Asks a model and streams its answer.

    Returns an async context manager, because an answer owns a socket; entering it opens the answer, leaving it closes
    the answer on every path. What it yields is an iterator over the events of the answer, of which the last is
    ``StreamDone`` or ``StreamError``.

    The context's messages are a read-only snapshot of what the model is to see, system messages included: replaying
    these gives the system prompt and the declared tools. ``options.reasoning`` is the thinking level, ``None`` for off.

    Every exception that is an ``Exception`` ends the answer as failed and never the run. Cancellation must pass
    through: an abort is nothing else.
    """

    def __call__(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> AbstractAsyncContextManager[AsyncIterator[AssistantMessageEvent]]:
        """Prepare a request; nothing is sent before the result is entered."""
        ...


_default: StreamFn | None = None


def set_default_stream_fn(stream_fn: StreamFn | None) -> None:
    """Set the stream function that agents and loops use when they are given none; ``None`` takes it away."""
    global _default  # noqa: PLW0603
    _default = stream_fn


def get_default_stream_fn() -> StreamFn:
    """The stream function that agents and loops use when they are given none.

    Raises:
        AgentError: there is none.
    """
    if _default is None:
        raise AgentError("there is no stream function: pass stream_fn=... or call set_default_stream_fn(...) first")
    return _default
