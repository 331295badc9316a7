"""The boundary between the loop and models: what a stream function is, and which one is used when none is given.

Stream functions over HTTP are below, in :mod:`trio_agent.providers`; what changes a stream function is beside, in
``_middleware``. Whoever asks for several answers in a row, a run or an agent, keeps a :class:`Connected` open for that
time.
"""

from __future__ import annotations

import abc
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Protocol, Self, cast

from trio_agent._models import Model, StreamOptions
from trio_agent._stream_events import AssistantMessageEvent
from trio_agent._transcript import Context

__all__ = [
    "Connected",
    "ConnectingStreamFn",
    "EventReceiver",
    "StreamFn",
    "as_model",
    "as_receiver",
    "get_default_stream_fn",
    "set_default_stream_fn",
]


class EventReceiver(Protocol):
    """What the iterator of an answer may be besides: a receiver of all events that have arrived together.

    A network read brings a piece of an answer or many. A reader that gets them at once is spared a step for each.
    """

    async def receive_some(self) -> Sequence[AssistantMessageEvent]:
        """Wait for events. Returns those that have arrived, at least one, in order; empty after the last."""
        ...


def as_receiver(events: AsyncIterator[AssistantMessageEvent]) -> EventReceiver:
    """The iterator itself if it is a receiver; else one that receives its events one by one."""
    return cast("EventReceiver", events) if hasattr(events, "receive_some") else _OneByOne(events)


class _OneByOne:
    def __init__(self, events: AsyncIterator[AssistantMessageEvent]) -> None:
        self._events = aiter(events)

    async def receive_some(self) -> Sequence[AssistantMessageEvent]:
        async for event in self._events:
            return (event,)
        return ()


class StreamFn(Protocol):
    """Asks a model and streams its answer.

    Returns an async context manager, because an answer owns a socket; entering it opens the answer, leaving it closes
    the answer on every path. What it yields is an iterator over the events of the answer, of which the last is
    ``StreamDone`` or ``StreamError``. It may be an :class:`EventReceiver`, too.

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


class ConnectingStreamFn(abc.ABC):
    """A stream function that can keep its connections from one answer to the next."""

    @abc.abstractmethod
    def __call__(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> AbstractAsyncContextManager[AsyncIterator[AssistantMessageEvent]]:
        """Prepare a request, on connections that are made for it unless there is an owner of others."""

    @abc.abstractmethod
    def connected(self) -> AbstractAsyncContextManager[StreamFn]:
        """The same with connections that are kept until the block is left."""


class Connected:
    """A stream function that keeps its connections, if it has any, while the block runs.

    It can be called before that, and afterwards, too: then each answer is on its own.

    Args:
        stream_fn: any stream function.
    """

    def __init__(self, stream_fn: StreamFn) -> None:
        self.stream_fn = stream_fn
        self._current = stream_fn
        self._resources = AsyncExitStack()

    def __call__(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> AbstractAsyncContextManager[AsyncIterator[AssistantMessageEvent]]:
        """Prepare a request."""
        return self._current(model, context, options)

    async def __aenter__(self) -> Self:
        if isinstance(self.stream_fn, ConnectingStreamFn):
            self._current = await self._resources.enter_async_context(self.stream_fn.connected())
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        self._current = self.stream_fn
        return await self._resources.__aexit__(exc_type, exc, traceback)  # noqa: ASYNC102  # bounds itself


_default: StreamFn | None = None


def set_default_stream_fn(stream_fn: StreamFn | None) -> None:
    """Set the stream function that agents and loops use when they are given none; ``None`` restores the library's."""
    global _default  # noqa: PLW0603
    _default = stream_fn


def get_default_stream_fn() -> StreamFn:
    """The stream function that agents and loops use when they are given none.

    Unless another one was set, that is ``trio_agent.providers.stream``, which asks real models over HTTP.
    """
    if _default is not None:
        return _default
    from trio_agent.providers import stream

    return stream


def as_model(model: Model | str) -> Model:
    """The model itself, or the one of a name like ``"anthropic/claude-sonnet-4-5"``.

    Raises:
        ValueError: the name has no provider, or none that is known.
    """
    if isinstance(model, Model):
        return model
    from trio_agent.providers import find_model

    return find_model(model)
