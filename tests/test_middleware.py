"""Retries, limits and fallbacks, on the virtual clock and with scripted models."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from trio_agent import (
    Agent,
    AssistantMessageEvent,
    ContextOverflowError,
    Model,
    ModelConnectionError,
    ModelError,
    OverloadedError,
    RateLimitError,
    RetryDetails,
    RetryPolicy,
    StreamDone,
    StreamError,
    StreamFn,
    StreamOptions,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    UserMessage,
    with_fallback,
    with_limiter,
    with_retries,
)
from trio_agent._transcript import Context
from trio_agent.testing import Answer, Gate, ScriptedModel, tool_call

MODEL = Model(id="m", api="scripted", provider="p")
CONTEXT = Context((UserMessage(content="hi", timestamp=0),))
PLAIN = StreamOptions()
EXACT = RetryPolicy(jitter=0)


async def ask(
    stream_fn: StreamFn,
    options: StreamOptions = PLAIN,
    model: Model = MODEL,
) -> list[AssistantMessageEvent]:
    async with stream_fn(model, CONTEXT, options) as events:
        return [event async for event in events]


def limited(retry_after: float | None = None) -> RateLimitError:
    return RateLimitError("429: slow down", status=429, provider="p", retryable=True, retry_after=retry_after)


def text_of(events: Sequence[AssistantMessageEvent]) -> str:
    return "".join(event.delta for event in events if isinstance(event, TextDelta))


async def test_a_passing_failure_is_tried_again_after_the_delays_of_the_policy(autojump_clock: MockClock) -> None:
    scripted = ScriptedModel([Answer(fail=limited()), Answer(fail=ModelConnectionError("reset")), "yes"])
    started = trio.current_time()

    events = await ask(with_retries(scripted, EXACT))

    assert text_of(events) == "yes"
    assert trio.current_time() - started == 0.5 + 1.0
    assert [type(event) for event in events].count(StreamStart) == 1


async def test_what_the_server_asks_for_decides_the_delay(autojump_clock: MockClock) -> None:
    scripted = ScriptedModel([Answer(fail=limited(7.25)), Answer(fail=limited(0)), "yes"])
    started = trio.current_time()

    assert text_of(await ask(with_retries(scripted))) == "yes"
    assert trio.current_time() - started == 7.25


async def test_a_wait_that_is_too_long_is_an_error_that_names_it(autojump_clock: MockClock) -> None:
    scripted = ScriptedModel([Answer(fail=limited(90)), "never"])

    with pytest.raises(RateLimitError, match=r"asks to wait 90 s, which is more than 60 s\. 429: slow down") as caught:
        await ask(with_retries(scripted))

    assert caught.value.retry_after == 90
    assert len(scripted.requests) == 1


@pytest.mark.parametrize("bound", [0, 100])
async def test_the_bound_of_a_request_counts_before_that_of_the_policy(autojump_clock: MockClock, bound: float) -> None:
    scripted = ScriptedModel([Answer(fail=limited(90)), "yes"])

    assert text_of(await ask(with_retries(scripted), StreamOptions(max_retry_delay=bound))) == "yes"


async def test_after_the_last_attempt_its_error_comes_out(autojump_clock: MockClock) -> None:
    scripted = ScriptedModel(
        [Answer(fail=limited()), Answer(fail=limited()), Answer(fail=ModelConnectionError("gone"))]
    )

    with pytest.raises(ModelConnectionError, match="gone"):
        await ask(with_retries(scripted, EXACT))


@pytest.mark.parametrize(
    "error",
    [
        ContextOverflowError("400: prompt is too long", status=400, provider="p"),
        ModelError("no such model"),
        ModelError("429: insufficient_quota"),
        ValueError("timeout"),
    ],
)
async def test_what_will_fail_again_is_not_tried_again(error: Exception) -> None:
    scripted = ScriptedModel([Answer(fail=error), "never"])

    with pytest.raises(type(error)):
        await ask(with_retries(scripted))

    assert len(scripted.requests) == 1


async def test_an_error_of_unknown_origin_is_judged_by_its_text(autojump_clock: MockClock) -> None:
    scripted = ScriptedModel([Answer(fail=ModelError("the engine is overloaded")), Answer(fail=OSError(5, "x"))])

    with pytest.raises(OSError, match="x"):
        await ask(with_retries(scripted))


async def test_an_answer_that_begins_with_a_passing_error_is_asked_for_again(autojump_clock: MockClock) -> None:
    overloaded: list[AssistantMessageEvent] = [
        StreamStart(),
        StreamError(reason="error", error_message="Overloaded (overloaded_error)"),
    ]
    scripted = ScriptedModel([overloaded, "yes"])

    events = await ask(with_retries(scripted))

    assert text_of(events) == "yes"
    assert not any(isinstance(event, StreamError) for event in events)


async def test_the_last_attempt_gives_its_error_event(autojump_clock: MockClock) -> None:
    overloaded: list[AssistantMessageEvent] = [StreamStart(), StreamError(reason="error", error_message="Overloaded")]
    scripted = ScriptedModel([overloaded, overloaded])

    events = await ask(with_retries(scripted, RetryPolicy(attempts=2)))

    assert events == overloaded


@pytest.mark.parametrize("last", [StreamError(reason="error", error_message="Overloaded"), limited()])
async def test_nothing_is_asked_for_again_once_output_has_begun(last: StreamError | Exception) -> None:
    begun: list[AssistantMessageEvent] = [
        StreamStart(),
        TextStart(content_index=0),
        TextDelta(content_index=0, delta="half"),
    ]
    asked = 0

    async def stream() -> AsyncGenerator[AssistantMessageEvent]:
        for event in begun:
            yield event
        if isinstance(last, Exception):
            raise last
        yield last

    @asynccontextmanager
    async def stream_fn(
        model: Model, context: Context, options: StreamOptions, /
    ) -> AsyncGenerator[AsyncIterator[AssistantMessageEvent]]:
        nonlocal asked
        asked += 1
        yield stream()

    if isinstance(last, Exception):
        with pytest.raises(RateLimitError):
            await ask(with_retries(stream_fn))
    else:
        assert (await ask(with_retries(stream_fn)))[-1] == last
    assert asked == 1


async def test_what_the_reader_raises_is_no_reason_to_ask_again() -> None:
    scripted = ScriptedModel(["yes", "never"])

    with pytest.raises(ConnectionError):
        async with with_retries(scripted)(MODEL, CONTEXT, StreamOptions()):
            raise ConnectionError("of the reader")

    assert len(scripted.requests) == 1


async def test_a_failure_out_of_a_nursery_of_the_stream_function_is_understood(autojump_clock: MockClock) -> None:
    attempts = 0
    scripted = ScriptedModel(["yes"])

    @asynccontextmanager
    async def stream_fn(
        model: Model, context: Context, options: StreamOptions, /
    ) -> AsyncGenerator[AsyncIterator[AssistantMessageEvent]]:
        nonlocal attempts
        attempts += 1
        async with trio.open_nursery():
            if attempts == 1:
                raise limited()
            async with scripted(model, context, options) as events:
                yield events

    assert text_of(await ask(with_retries(stream_fn))) == "yes"


async def test_a_waiting_retry_can_be_cancelled_at_once(autojump_clock: MockClock) -> None:
    scripted = ScriptedModel([Answer(fail=limited(50)), "never"])
    started = trio.current_time()

    with trio.move_on_after(3):
        await ask(with_retries(scripted))

    assert trio.current_time() - started == 3


async def test_an_abort_ends_a_waiting_retry(autojump_clock: MockClock) -> None:
    scripted = ScriptedModel([Answer(fail=limited(50)), "never"])
    agent = Agent(scripted.model, stream_fn=with_retries(scripted))
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def abort() -> None:
            await trio.sleep(2)
            agent.abort()

        result = await agent.prompt("hi")

    assert result.stop_reason == "aborted"
    assert trio.current_time() < 50


async def test_retries_can_be_seen(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[RetryDetails] = []
    error = limited(2)
    scripted = ScriptedModel([Answer(fail=error), "yes"])

    with caplog.at_level(logging.WARNING, logger="trio_agent"):
        await ask(with_retries(scripted, on_retry=seen.append))

    assert seen == [RetryDetails(MODEL, 1, 2, error)]
    assert caplog.messages == ["p/m: attempt 1 of 3 failed, the next one is in 2.00 s: 429: slow down"]


async def test_an_agent_sees_one_answer_however_often_it_was_asked_for(autojump_clock: MockClock) -> None:
    scripted = ScriptedModel(
        [Answer(fail=limited()), Answer(calls=[tool_call("wait")]), Answer(fail=limited()), "done"]
    )
    gate = Gate("wait")
    gate.open()

    result = await Agent(scripted.model, tools=[gate.tool], stream_fn=with_retries(scripted)).prompt("go")

    assert result.text == "done"
    assert result.turns == 2


# -- limits ------------------------------------------------------------------------------------------------------------


async def test_only_so_many_answers_are_open_at_once(autojump_clock: MockClock) -> None:
    scripted = ScriptedModel([Answer(text="x", connect_delay=10)] * 100)
    limiter = trio.CapacityLimiter(8)
    stream_fn = with_limiter(scripted, limiter)
    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(ask, stream_fn)
        await trio.testing.wait_all_tasks_blocked()
        assert limiter.borrowed_tokens == 8

    assert trio.current_time() == 130
    assert limiter.borrowed_tokens == 0


async def test_an_answer_that_fails_or_is_cancelled_gives_its_slot_back(autojump_clock: MockClock) -> None:
    scripted = ScriptedModel([Answer(fail=limited()), Answer(text="x", connect_delay=100), "yes"])
    limiter = trio.CapacityLimiter(1)
    stream_fn = with_limiter(scripted, limiter)

    with pytest.raises(RateLimitError):
        await ask(stream_fn)
    with trio.move_on_after(1):
        await ask(stream_fn)

    assert text_of(await ask(stream_fn)) == "yes"
    assert limiter.borrowed_tokens == 0


async def test_a_retry_outside_of_the_limit_gives_the_slot_to_others_while_it_waits(autojump_clock: MockClock) -> None:
    scripted = ScriptedModel([Answer(fail=limited(30)), Answer(text="other", connect_delay=1), "yes"])
    stream_fn = with_retries(with_limiter(scripted, trio.CapacityLimiter(1)))
    finished: list[str] = []

    async def note(delay: float) -> None:
        await trio.sleep(delay)
        finished.append(text_of(await ask(stream_fn)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(note, 0)
        nursery.start_soon(note, 1)

    assert finished == ["other", "yes"]


# -- fallbacks ---------------------------------------------------------------------------------------------------------

OTHER = Model(id="o", api="scripted", provider="q", base_url="https://q.example")


@pytest.mark.parametrize(
    "failure",
    [
        Answer(fail=OverloadedError("529: overloaded", status=529, provider="p")),
        Answer(fail=ConnectionError()),
        [StreamStart(), StreamError(reason="error", error_message="no")],
    ],
)
async def test_where_a_model_fails_the_next_one_is_asked(failure: Answer | list[AssistantMessageEvent]) -> None:
    scripted = ScriptedModel([failure, "from the other"])

    events = await ask(with_fallback(scripted, OTHER))

    assert text_of(events) == "from the other"
    assert [request.model.id for request in scripted.requests] == ["m", "o"]


async def test_another_provider_gets_neither_key_nor_headers() -> None:
    same = Model(id="small", api="scripted", provider="p")
    scripted = ScriptedModel([Answer(fail=limited()), Answer(fail=limited()), "yes"])
    options = StreamOptions(api_key="secret", headers={"authorization": "secret"}, temperature=0.5)

    await ask(with_fallback(scripted, same, OTHER), options)

    first, second, third = [request.options for request in scripted.requests]
    assert first == second == options
    assert third == StreamOptions(temperature=0.5)


async def test_if_all_fail_the_error_names_each() -> None:
    scripted = ScriptedModel([Answer(fail=limited()), Answer(fail=ModelError("no key"))])

    with pytest.raises(ModelError, match="p/m: 429: slow down; q/o: no key"):
        await ask(with_fallback(scripted, OTHER))


async def test_there_is_no_fallback_once_output_has_begun() -> None:
    half = Answer(text="half of it", fail=limited(), fail_after=3, chunk_size=2)
    scripted = ScriptedModel([half, "never"])

    with pytest.raises(RateLimitError):
        await ask(with_fallback(scripted, OTHER))


async def test_a_bug_is_no_reason_to_ask_another_model() -> None:
    scripted = ScriptedModel([Answer(fail=TypeError("a bug")), "never"])

    with pytest.raises(TypeError):
        await ask(with_fallback(scripted, OTHER))


def test_a_fallback_to_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one model"):
        with_fallback(ScriptedModel([]))


async def test_complete_answers_pass_through_unchanged() -> None:
    events: list[AssistantMessageEvent] = [
        StreamStart(),
        TextStart(content_index=0),
        TextDelta(content_index=0, delta="a"),
        TextEnd(content_index=0, content="a"),
        StreamDone(reason="stop"),
    ]
    stream_fn = with_fallback(with_retries(with_limiter(ScriptedModel([events]), trio.CapacityLimiter(1))), OTHER)

    assert await ask(stream_fn) == events
