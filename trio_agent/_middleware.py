"""What makes stream functions of stream functions: retries, a limit, a fallback.

They compose: ``with_limiter(with_retries(ask), trio.CapacityLimiter(8))`` is a stream function, too.

An answer has begun with its first block. Until then nobody has seen anything of it, so it may be asked for once more,
or elsewhere; afterwards never. Hence entering reads up to that point: a second attempt could not be entered later,
inside scopes that the reader of the events may have opened in the meantime.

Stream functions are below, the loop is above and knows nothing of all this.
"""

from __future__ import annotations

import copy
import logging
import random
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from typing import Any

import msgspec
import trio

from trio_agent._errors import ModelError
from trio_agent._failures import bare, describe
from trio_agent._models import Model, StreamOptions
from trio_agent._retry import RetryPolicy
from trio_agent._stream_events import AssistantMessageEvent, StreamError, StreamStart
from trio_agent._stream_fn import ConnectingStreamFn, EventReceiver, StreamFn, as_receiver
from trio_agent._transcript import Context

__all__ = ["RetryDetails", "with_fallback", "with_limiter", "with_retries"]

logger = logging.getLogger("trio_agent")


class RetryDetails(msgspec.Struct, frozen=True):
    """A request that is about to be made again.

    Attributes:
        model: that is asked.
        failures: attempts that have failed.
        delay: seconds until the next one.
        error: why the last one failed.
    """

    model: Model
    failures: int
    delay: float
    error: Exception


def with_retries(
    stream_fn: StreamFn,
    policy: RetryPolicy = RetryPolicy(),  # noqa: B008
    *,
    on_retry: Callable[[RetryDetails], object] | None = None,
) -> StreamFn:
    """A stream function that makes requests again that failed for a passing reason, before anything was answered.

    These are connections that fail, and answers with status 408, 409, 429 and from 500 on, or that begin with an error
    of that kind. What the server asks for decides the delay, else the policy. It waits on Trio's clock and can be
    cancelled at any time. Each retry is logged as a warning.

    Args:
        stream_fn: makes each attempt.
        policy: how often, and after which delays.
        on_retry: called before each delay; must not block.
    """

    def wrap(ask: StreamFn) -> StreamFn:
        @asynccontextmanager
        async def retrying(
            model: Model, context: Context, options: StreamOptions, /
        ) -> AsyncGenerator[AsyncIterator[AssistantMessageEvent]]:
            for failures in count(1):
                is_last = failures >= policy.attempts
                has_begun = False
                try:
                    async with ask(model, context, options) as events:
                        answer = await _Begun.read(events)
                        failure = answer.failure
                        if is_last or failure is None or not _is_transient(failure, model):
                            has_begun = True
                            yield answer
                            return
                        error: Exception = failure
                except Exception as exc:
                    cause = bare(exc)
                    if has_begun or is_last or not isinstance(cause, Exception) or not _is_transient(cause, model):
                        raise
                    error = cause
                delay = _delay(error, failures, policy, options)
                if on_retry is not None:
                    on_retry(RetryDetails(model, failures, delay, error))
                logger.warning(
                    "%s/%s: attempt %d of %d failed, the next one is in %.2f s: %s",
                    *(model.provider, model.id, failures, policy.attempts, delay, describe(error)),
                )
                await trio.sleep(delay)

        return retrying

    return _compose(stream_fn, wrap)


def with_limiter(stream_fn: StreamFn, limiter: trio.CapacityLimiter) -> StreamFn:
    """A stream function of which only so many answers are open at once; others wait before they send anything.

    Inside of :func:`with_retries` the slot is given back while a retry waits, outside it is kept.

    Args:
        stream_fn: asks.
        limiter: of open answers; may be shared between stream functions and agents.
    """

    def wrap(ask: StreamFn) -> StreamFn:
        @asynccontextmanager
        async def limited(
            model: Model, context: Context, options: StreamOptions, /
        ) -> AsyncGenerator[AsyncIterator[AssistantMessageEvent]]:
            # Not on behalf of the task: while it reads an answer, a listener may ask for another one in the same task.
            slot = object()
            await limiter.acquire_on_behalf_of(slot)
            try:
                async with ask(model, context, options) as events:
                    yield events
            finally:
                limiter.release_on_behalf_of(slot)

        return limited

    return _compose(stream_fn, wrap)


def with_fallback(stream_fn: StreamFn, *models: Model) -> StreamFn:
    """A stream function that asks other models, in order, where one fails before it has answered anything.

    A model of another provider is not given the key and the headers of the options: they are not for its eyes. Its key
    comes from where keys else come from. Each fall is logged as a warning.

    Args:
        stream_fn: asks each model.
        models: to ask when the one that was meant fails.

    Raises:
        ValueError: there is no model to fall back to.
    """
    if not models:
        raise ValueError("with_fallback needs at least one model to fall back to")

    def wrap(ask: StreamFn) -> StreamFn:
        @asynccontextmanager
        async def falling_back(
            model: Model, context: Context, options: StreamOptions, /
        ) -> AsyncGenerator[AsyncIterator[AssistantMessageEvent]]:
            failures: list[str] = []
            for candidate in (model, *models):
                has_begun = False
                try:
                    async with ask(candidate, context, _options_for(candidate, model, options)) as events:
                        answer = await _Begun.read(events)
                        if answer.failure is None:
                            has_begun = True
                            yield answer
                            return
                        error: Exception = answer.failure
                except Exception as exc:
                    cause = bare(exc)
                    if has_begun or not isinstance(cause, (ModelError, *_CONNECTION_ERRORS)):
                        raise
                    error = cause
                failures.append(f"{candidate.provider}/{candidate.id}: {describe(error)}")
                logger.warning("no answer of %s", failures[-1])
            raise ModelError("; ".join(failures))

        return falling_back

    return _compose(stream_fn, wrap)


class _Begun:
    """The events of an answer, of which those before its first block have been read."""

    def __init__(self, head: deque[AssistantMessageEvent], rest: EventReceiver) -> None:
        self._head = head
        self._rest = rest

    @classmethod
    async def read(cls, events: AsyncIterator[AssistantMessageEvent]) -> _Begun:
        """Read until the answer has begun or is over."""
        head: deque[AssistantMessageEvent] = deque()
        rest = as_receiver(events)
        while received := await rest.receive_some():
            head.extend(received)
            if type(head[-1]) is not StreamStart:
                break
        return cls(head, rest)

    @property
    def failure(self) -> ModelError | None:
        """Why the answer failed, if it did so before it began."""
        first = next((event for event in self._head if type(event) is not StreamStart), None)
        if isinstance(first, StreamError) and first.reason == "error":
            text = first.error_message or (first.message and first.message.error_message)
            return ModelError(text or "the answer failed")
        return ModelError("the stream ended without an answer") if first is None else None

    def __aiter__(self) -> _Begun:
        return self

    async def __anext__(self) -> AssistantMessageEvent:
        if not self._head:
            self._head.extend(await self._rest.receive_some())
        if not self._head:
            raise StopAsyncIteration
        return self._head.popleft()

    def receive_some(self) -> Coroutine[Any, Any, Sequence[AssistantMessageEvent]]:
        # No coroutine of its own around what is received.
        head, self._head = self._head, deque[AssistantMessageEvent]()
        return _ready(head) if head else self._rest.receive_some()


async def _ready(events: Sequence[AssistantMessageEvent]) -> Sequence[AssistantMessageEvent]:
    return events


_CONNECTION_ERRORS = (ConnectionError, TimeoutError, trio.BrokenResourceError, trio.TooSlowError)


def _is_transient(error: Exception, model: Model) -> bool:
    if not isinstance(error, ModelError):
        return isinstance(error, _CONNECTION_ERRORS)
    if error.retryable is not None:
        return error.retryable
    from trio_agent.wire import is_retryable_text

    return is_retryable_text(str(error), provider=model.provider)


def _delay(error: Exception, failures: int, policy: RetryPolicy, options: StreamOptions) -> float:
    wanted = error.retry_after if isinstance(error, ModelError) else None
    if wanted is None:
        return policy.delay(failures, chance=random.random())  # noqa: S311  # no secret
    longest = policy.max_server_delay if options.max_retry_delay is None else options.max_retry_delay
    if longest and wanted > longest:
        refused = copy.copy(error)
        refused.args = (f"The server asks to wait {wanted:g} s, which is more than {longest:g} s. {error}",)
        raise refused from error
    return wanted


def _options_for(candidate: Model, model: Model, options: StreamOptions) -> StreamOptions:
    if candidate.provider == model.provider and candidate.base_url == model.base_url:
        return options
    return msgspec.structs.replace(options, api_key=None, headers=None)


def _compose(stream_fn: StreamFn, wrap: Callable[[StreamFn], StreamFn]) -> StreamFn:
    return _Composed(stream_fn, wrap) if isinstance(stream_fn, ConnectingStreamFn) else wrap(stream_fn)


class _Composed(ConnectingStreamFn):
    """A changed stream function that still can keep its connections."""

    def __init__(self, inner: ConnectingStreamFn, wrap: Callable[[StreamFn], StreamFn]) -> None:
        self._inner = inner
        self._wrap = wrap
        self._changed = wrap(inner)

    def __call__(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> AbstractAsyncContextManager[AsyncIterator[AssistantMessageEvent]]:
        return self._changed(model, context, options)

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[StreamFn]:
        async with self._inner.connected() as inner:
            yield self._wrap(inner)
