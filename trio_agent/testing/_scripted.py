"""ScriptedModel: a stream function that answers from a script, on Trio's clock, and keeps what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from types import TracebackType
from typing import Literal, Self, TypeAlias, cast

import msgspec
import trio

from trio_agent._errors import ModelError
from trio_agent._messages import JsonObject, Message, ToolCall, ToolDeclaration, Usage
from trio_agent._models import Model, StreamOptions
from trio_agent._stream_events import (
    AssistantMessageEvent,
    StreamDone,
    StreamError,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from trio_agent._transcript import Context, replay

__all__ = ["Answer", "AnswerFn", "ScriptedModel", "ScriptedRequest", "tool_call"]


def tool_call(name: str, /, call_id: str = "", **arguments: object) -> ToolCall:
    """A tool call for an answer; without an id the model numbers it."""
    return ToolCall(id=call_id, name=name, arguments=arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One scripted answer: thinking, then text, then calls.

    Attributes:
        text: visible text.
        thinking: reasoning before it.
        calls: tool calls after it.
        stop_reason: by default ``toolUse`` with calls and ``stop`` without.
        error_message: for the stop reasons ``error`` and ``aborted``.
        usage: tokens; zeros if not given.
        chunk_size: characters of a delta; ``None`` for the model's.
        connect_delay: seconds before the answer opens.
        delay: seconds before each event; ``None`` for the model's.
        fail: raised by the stream, after ``fail_after`` events, or before the answer opens.
        fail_after: ``None`` fails before the answer opens.
    """

    text: str = ""
    thinking: str = ""
    calls: Sequence[ToolCall] = ()
    stop_reason: Literal["stop", "length", "toolUse", "error", "aborted"] | None = None
    error_message: str | None = None
    usage: Usage | None = None
    chunk_size: int | None = None
    connect_delay: float = 0.0
    delay: float | None = None
    fail: Exception | None = None
    fail_after: int | None = None


@dataclass(frozen=True, slots=True)
class ScriptedRequest:
    """What a scripted model was asked.

    Attributes:
        model: that was asked.
        context: what it was shown; a snapshot.
        options: of the request.
    """

    model: Model
    context: Context
    options: StreamOptions

    @property
    def messages(self) -> Sequence[Message]:
        """What the model was shown, system messages included."""
        return self.context.messages  # type: ignore[return-value]  # the loop has converted them

    @property
    def system_prompt(self) -> str:
        """The system messages, replayed."""
        return replay(self.context.messages).system_prompt

    @property
    def tools(self) -> tuple[ToolDeclaration, ...]:
        """The tools that the system messages declare."""
        return replay(self.context.messages).tools


AnswerFn: TypeAlias = Callable[[ScriptedRequest], str | Answer]
"""Makes an answer from what is asked."""

Script: TypeAlias = str | Answer | AnswerFn | Sequence[AssistantMessageEvent]
"""A text, an answer, a function that makes one, or the very events of a stream."""

_Step: TypeAlias = AssistantMessageEvent | float | Exception


class ScriptedModel:
    """A stream function that gives scripted answers, one for each request, in order.

    ``agent = Agent(scripted.model, stream_fn=scripted)``. Deterministic; all delays are on Trio's clock. A request for
    which no answer is left fails as a model's failure.

    Args:
        answers: the script.
        model: what it poses as.
        chunk_size: characters of a delta; ``None`` gives a block in one.
        delay: seconds before each event.

    Attributes:
        model: what it poses as.
        requests: all requests so far, in order.
    """

    def __init__(
        self,
        answers: Iterable[Script] = (),
        *,
        model: Model | None = None,
        chunk_size: int | None = None,
        delay: float = 0.0,
    ) -> None:
        if chunk_size is not None and chunk_size < 1:
            raise ValueError(f"chunk_size must be 1 or more characters, not {chunk_size!r}")
        self.model = model or Model(id="scripted", api="scripted", provider="scripted")
        self.requests: list[ScriptedRequest] = []
        self._script = list(answers)
        self._chunk_size = chunk_size
        self._delay = delay
        self._calls = 0

    def extend(self, answers: Iterable[Script]) -> None:
        """Add answers at the end of the script."""
        self._script.extend(answers)

    def assert_exhausted(self) -> None:
        """Check that every answer was given.

        Raises:
            AssertionError: answers are left.
        """
        left = len(self._script) - len(self.requests)
        if left > 0:
            raise AssertionError(f"{left} of {len(self._script)} scripted answers were never asked for")

    def __call__(self, model: Model, context: Context, options: StreamOptions, /) -> _ScriptedStream:
        """Take the next answer; the stream function of an agent."""
        return _ScriptedStream(self, ScriptedRequest(model, context, options))

    def steps(self, request: ScriptedRequest) -> Iterator[_Step]:
        """The steps of the answer to a request, which is recorded: events, seconds to wait, or a failure."""
        number = len(self.requests)
        self.requests.append(request)
        if number >= len(self._script):
            return iter([ModelError(f"the script has no answer for request {number + 1}")])
        script = self._script[number]
        answer = script(request) if callable(script) else script
        if isinstance(answer, str):
            answer = Answer(text=answer)
        return self._play(answer) if isinstance(answer, Answer) else iter(answer)

    def _play(self, answer: Answer) -> Iterator[_Step]:
        delay = self._delay if answer.delay is None else answer.delay
        if answer.connect_delay:
            yield answer.connect_delay
        if answer.fail is not None and answer.fail_after is None:
            yield answer.fail
            return
        for number, event in enumerate(self._events(answer)):
            if answer.fail is not None and number == answer.fail_after:
                yield answer.fail
                return
            if delay:
                yield delay
            yield event

    def _events(self, answer: Answer) -> Iterator[AssistantMessageEvent]:
        size = answer.chunk_size or self._chunk_size
        index = 0
        yield StreamStart()
        if answer.thinking:
            yield ThinkingStart(content_index=index)
            for chunk in _chunks(answer.thinking, size):
                yield ThinkingDelta(content_index=index, delta=chunk)
            yield ThinkingEnd(content_index=index, content=answer.thinking)
            index += 1
        if answer.text:
            yield TextStart(content_index=index)
            for chunk in _chunks(answer.text, size):
                yield TextDelta(content_index=index, delta=chunk)
            yield TextEnd(content_index=index, content=answer.text)
            index += 1
        for call in answer.calls:
            yield from self._call_events(index, call, size)
            index += 1
        reason = answer.stop_reason or ("toolUse" if answer.calls else "stop")
        if reason == "error" or reason == "aborted":
            yield StreamError(
                reason=reason, error_message=answer.error_message or "scripted failure", usage=answer.usage
            )
        else:
            yield StreamDone(reason=reason, usage=answer.usage)

    def _call_events(self, index: int, call: ToolCall, size: int | None) -> Iterator[AssistantMessageEvent]:
        if not call.id:
            self._calls += 1
            call = msgspec.structs.replace(call, id=f"call_{self._calls}")
        yield ToolCallStart(content_index=index, id=call.id, name=call.name)
        for chunk in _chunks(_arguments_text(call.arguments), size):
            yield ToolCallDelta(content_index=index, delta=chunk)
        yield ToolCallEnd(content_index=index, tool_call=call)


class _ScriptedStream:
    def __init__(self, scripted: ScriptedModel, request: ScriptedRequest) -> None:
        self._scripted = scripted
        self._request = request
        self._steps: Iterator[_Step] = iter(())

    async def __aenter__(self) -> Self:
        self._steps = self._scripted.steps(self._request)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._steps = iter(())

    def __aiter__(self) -> _ScriptedStream:
        return self

    async def __anext__(self) -> AssistantMessageEvent:
        for step in self._steps:
            kind = type(step)
            if kind is float or kind is int:
                await trio.sleep(cast("float", step))
            elif isinstance(step, Exception):
                raise step
            else:
                return cast("AssistantMessageEvent", step)
        raise StopAsyncIteration

    async def receive_some(self) -> Sequence[AssistantMessageEvent]:
        """The events up to the next delay or failure, as if one network read had brought them."""
        received: list[AssistantMessageEvent] = []
        async for event in self:
            received.append(event)
            for step in self._steps:
                if isinstance(step, float | int | Exception):
                    self._steps = chain((step,), self._steps)
                    break
                received.append(step)
            break
        return received


def _chunks(text: str, size: int | None) -> list[str]:
    return [text] if size is None else [text[start : start + size] for start in range(0, len(text), size)]


def _arguments_text(arguments: JsonObject) -> str:
    return msgspec.json.encode(arguments).decode()
