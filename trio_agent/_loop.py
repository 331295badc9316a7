"""The loop: turns of a request, its answer and the results of its tools, until there is nothing more to do.

It reads from top to bottom like the life of a run:

    agent_start
      turn_start
        message_start/_end          the prompts, or what was queued; a system message that declares tools
        [steering]                  once before the first request
        prepare_request             and the other hooks of a request
        message_start, _update ..., _end    the answer; then its tools are prepared
        tool_execution_*            see the batch
        message_start/_end          one result for each call, in source order
        finish_turn                 may end the run or demand one more request
      turn_end
      should_stop_after_turn
      [steering]  ->  prepare_next_turn, [steering again if there was none], turn_start ...
      [follow-ups when there is nothing else to do]
    agent_end

Stopping. Three ways out lead to one place each.

*Abort.* ``AbortHandle.abort`` raises a flag and, if the run's task is waiting for something that may be cut, cancels
the run's one scope. Where the flag is found raised, the task leaves the scope in the same way, by cancellation. Outside
the scope ``_wind_up`` then sends what an ordinary run would have sent: no delivery is ever cut by an abort.

*Anything else* (the caller's cancellation, Ctrl-C, a hook or a sink that raises): ``_settle`` closes the transcript
synchronously and lists the events that are owed; these are then delivered, under a shield that the grace bounds if the
reason was no ordinary exception; and the same exception goes on.

*The end.* Nothing is owed.

The loop keeps no more state than a stop needs: the open turn, in it the open answer or the open batch, and the open
message. Whatever is about to be sent is marked as sent first, so each event begins at most once.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import msgspec
import trio
from msgspec import UNSET

from trio_agent._abort import AbortHandle
from trio_agent._agent_events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    TurnEnd,
    TurnStart,
)
from trio_agent._builder import MessageBuilder
from trio_agent._clock import timestamp_ms
from trio_agent._errors import RemoteProtocolError
from trio_agent._failures import describe, split_cancelled
from trio_agent._hooks import Hooks, RequestDetails, RequestUpdate, TurnDecision, TurnDetails, TurnUpdate
from trio_agent._messages import AgentMessage, AssistantMessage, ToolResultMessage
from trio_agent._models import Model, StreamOptions, ThinkingLevel
from trio_agent._run_transcript import Origin, Pending, RunTranscript
from trio_agent._stream_events import StreamStart
from trio_agent._stream_fn import StreamFn
from trio_agent._tool_batch import ToolBatch, ToolExecutionMode
from trio_agent._tool_call import ToolRunner
from trio_agent._transcript import Context, View, default_convert_to_llm

__all__ = ["Inbox", "LoopConfig", "Run", "Sink"]

logger = logging.getLogger("trio_agent")

T = TypeVar("T")

ABORTED = "Operation aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopConfig:
    """What a run keeps to.

    Attributes:
        model: that is asked.
        thinking_level: that it is asked for.
        options: of every request.
        hooks: that are asked.
        tool_execution: ``sequential`` runs the calls of an answer one by one.
        limiter: how many tools of the run may work at once; may be shared with other runs. ``None`` for no limit.
        tool_timeout: seconds for tools that have no timeout of their own.
        max_turns: the run ends after this many turns.
        closing_grace: seconds for the closing events of a run that is cancelled from outside; 0 sends none.

    Raises:
        ValueError: a bound is not positive, or the mode is unknown.
    """

    model: Model
    thinking_level: ThinkingLevel = "off"
    options: StreamOptions = StreamOptions()  # noqa: RUF009
    hooks: Hooks = Hooks()  # noqa: RUF009
    tool_execution: ToolExecutionMode = "parallel"
    limiter: trio.CapacityLimiter | None = None
    tool_timeout: float | None = None
    max_turns: int | None = None
    closing_grace: float = 1.0

    def __post_init__(self) -> None:
        for name in ("tool_timeout", "max_turns"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be more than 0, not {value!r}; None is no limit")
        if not self.closing_grace >= 0:
            raise ValueError(f"closing_grace must be 0 or more seconds, not {self.closing_grace!r}")
        if self.tool_execution not in {"parallel", "sequential"}:
            raise ValueError(f"tool_execution must be 'parallel' or 'sequential', not {self.tool_execution!r}")


class Sink(Protocol):
    """Where a run's messages and events go.

    Attributes:
        survives_failure: whether events can still be delivered after ``emit`` has raised.
    """

    survives_failure: bool

    def commit(self, message: AgentMessage, /) -> None:
        """Append a message to the transcript: synchronous, before any event says that it is there."""
        ...

    async def emit(self, event: AgentEvent, /) -> None:
        """Deliver an event; returns when it has been handled."""
        ...


class Inbox(Protocol):
    """Messages that wait to be taken into a run. Synchronous, so that none is ever between two places."""

    def take_steering(self) -> Sequence[AgentMessage]:
        """Take what is to be taken in at the next opportunity."""
        ...

    def take_follow_ups(self) -> Sequence[AgentMessage]:
        """Take what is to be taken in when there is nothing else to do."""
        ...

    def put_back(self, origin: Origin, message: AgentMessage, /) -> None:
        """Put a message that never reached the transcript back to the front of its queue."""
        ...


@dataclass(slots=True)
class _Turn:
    # `message` and `results` are set when they are in the transcript.
    answer: MessageBuilder | None = None
    asked_at: float = 0.0
    announced: bool = False
    message: AssistantMessage | None = None
    batch: ToolBatch | None = None
    finishing: bool = False

    @property
    def results(self) -> tuple[ToolResultMessage, ...]:
        return () if self.batch is None else tuple(self.batch.results)


@dataclass(slots=True)
class _Frame:
    # What is open: the run, its turn, a message that goes in; and the messages that are still to go in.
    running: bool = False
    turn: _Turn | None = None
    message: AgentMessage | None = None
    pending: deque[Pending] = field(default_factory=deque["Pending"])


class Run:
    """One run over a transcript.

    Args:
        context: where it starts; not modified.
        config: what it keeps to.
        sink: takes its messages and events.
        stream_fn: asks the model.
        abort: stops it in order.
        inbox: where queued messages come from, besides the hooks.
        cancellable_calls: whether single tool calls can be cancelled, so that each needs a scope of its own.
    """

    def __init__(
        self,
        context: Context,
        config: LoopConfig,
        sink: Sink,
        stream_fn: StreamFn,
        abort: AbortHandle,
        *,
        inbox: Inbox | None = None,
        cancellable_calls: bool = False,
    ) -> None:
        self.turns = 0
        self.cuttable = False
        self._transcript = RunTranscript(context)
        self._config = config
        self._hooks = config.hooks
        self._model = config.model
        self._thinking_level: ThinkingLevel = config.thinking_level
        self._sink = sink
        self._stream_fn = stream_fn
        self._abort = abort
        self._inbox = inbox
        self._cancellable_calls = cancellable_calls
        self._scope = trio.CancelScope()
        self._finish_scope: trio.CancelScope | None = None
        self._frame = _Frame()
        # Whether the run would go on to another answer if it were not stopped.
        self._owes_answer = True
        self._sink_failure: BaseException | None = None

    @property
    def new_messages(self) -> list[AgentMessage]:
        """All that the run has added so far."""
        return self._transcript.new

    @property
    def partial_message(self) -> AssistantMessage | None:
        """The answer that is being streamed, as it is now."""
        turn = self._frame.turn
        return turn.answer.partial if turn is not None and turn.answer is not None and turn.message is None else None

    def cancel_tool(self, call_id: str) -> None:
        """Cancel one call alone.

        Raises:
            KeyError: no answer of the run has such a call.
        """
        turn = self._frame.turn
        if turn is not None and turn.batch is not None:
            for state in turn.batch.states:
                if state.call.id == call_id:
                    turn.batch.cancel(state)
                    return
        for message in self.new_messages:
            if isinstance(message, ToolResultMessage) and message.tool_call_id == call_id:
                return
        raise KeyError(call_id)

    async def execute(self, prompts: Sequence[Pending]) -> list[AgentMessage]:
        """Run to the end.

        Returns:
            All messages that the run added.

        Raises:
            Exception: of a hook or the sink, bare; the transcript is closed.
            Cancelled: the caller was cancelled; the transcript is closed.
        """
        self._frame.pending.extend(self._transcript.declare(prompts))
        try:
            with self._abort.cutting(self._cut):
                with self._scope:
                    await self._drive()
                if self._frame.running:
                    await self._wind_up()
        except BaseException as exc:
            await self._close(exc)
            raise
        finally:
            self._put_back()
        return self.new_messages

    # -- the ordinary way --------------------------------------------------------------------------------------------

    async def _drive(self) -> None:
        self._frame.running = True
        # A run that begins with steering messages has had its share of them.
        began_with_steering = any(item.origin == "steering" for item in self._frame.pending)
        await self.emit(AgentStart())
        await self._open_turn()
        while self._frame.pending:
            await self._take_in()
        await self.stop_if_aborted()
        if not began_with_steering:
            await self._take_steering()
        while True:
            while self._frame.pending:
                await self.stop_if_aborted()
                await self._take_in()
            await self.stop_if_aborted()
            message = await self._answer()
            if message.stop_reason in {"error", "aborted"}:
                self._owes_answer = False
                await self._close_turn()
                break
            await self._run_tools(message)
            if not await self._goes_on():
                break
            await self._open_turn()
        await self._end()

    async def _goes_on(self) -> bool:
        """Close the turn and find out whether another one follows; if so, it is prepared."""
        needs_answer = self._owes_answer
        decision, details = await self._close_turn()
        limit = self._config.max_turns
        if decision == "end" or (limit is not None and self.turns >= limit):
            return False
        self._owes_answer = needs_answer or decision == "continue"
        if not self._abort.aborted and await self._should_stop(details):
            return False
        await self.stop_if_aborted()
        await self._take_steering()
        if not self._frame.pending and not needs_answer:
            await self._take_follow_ups()
            if not self._frame.pending and not self._owes_answer:
                return False
        await self._prepare_next_turn(details)
        return True

    async def _open_turn(self) -> None:
        self._frame.turn = _Turn()
        await self.emit(TurnStart())

    async def _take_in(self) -> None:
        message = self._frame.message = self._frame.pending[0].message
        await self.emit(MessageStart(message=message))
        await self._finish_taking_in()

    async def _finish_taking_in(self) -> None:
        await self.emit(MessageEnd(message=self._commit_open_message()))

    def _commit_open_message(self) -> AgentMessage:
        message = self._frame.pending.popleft().message
        self._frame.message = None
        self.commit(message)
        return message

    def commit(self, message: AgentMessage) -> None:
        """Append a message to the run's transcript and the sink's."""
        self._transcript.append(message)
        self._sink.commit(message)

    async def emit(self, event: AgentEvent) -> None:
        """Deliver an event, and remember it if that fails."""
        try:
            await self._sink.emit(event)
        except BaseException as exc:
            self._note_sink_failure(exc)
            raise

    def _note_sink_failure(self, exc: BaseException) -> None:
        if split_cancelled(exc)[1] is not None:
            self._sink_failure = exc

    async def _ask(self, answer: Awaitable[T]) -> T:
        """Wait for a hook that an abort may cut; then stop if there was an abort."""
        self.cuttable = True
        try:
            result = await answer
        finally:
            self.cuttable = False
        await self.stop_if_aborted()
        return result

    # -- queues ------------------------------------------------------------------------------------------------------

    async def _take_steering(self) -> None:
        if self._inbox is not None:
            self._enqueue("steering", self._inbox.take_steering())
        if not self._frame.pending and self._hooks.get_steering_messages is not None:
            self._enqueue(None, await self._ask(self._hooks.get_steering_messages()))

    async def _take_follow_ups(self) -> None:
        if self._inbox is not None:
            self._enqueue("follow_up", self._inbox.take_follow_ups())
        if not self._frame.pending and self._hooks.get_follow_up_messages is not None:
            self._enqueue(None, await self._ask(self._hooks.get_follow_up_messages()))

    def _enqueue(self, origin: Origin | None, messages: Sequence[AgentMessage]) -> None:
        self._frame.pending.extend([Pending(message, origin, message) for message in messages])

    def _put_back(self) -> None:
        pending, self._frame.pending = self._frame.pending, deque()
        if self._inbox is None:
            return
        for item in reversed(pending):
            if item.origin is not None and item.original is not None:
                self._inbox.put_back(item.origin, item.original)

    async def _prepare_next_turn(self, details: TurnDetails | None) -> None:
        frame = self._frame
        nothing_taken = not frame.pending
        added: list[Pending] = []
        hook = self._hooks.prepare_next_turn
        if hook is not None:
            assert details is not None
            update = await self._ask(hook(details))
            if update is not None:
                self._apply(update)
                added = [Pending(message) for message in update.messages]
        if nothing_taken:
            await self._take_steering()
        frame.pending = deque(self._transcript.declare([*added, *frame.pending]))

    def _apply(self, update: RequestUpdate | TurnUpdate) -> None:
        if update.context is not UNSET:
            self._transcript.replace(update.context)
        if update.model is not UNSET:
            self._model = update.model
        if update.thinking_level is not UNSET:
            self._thinking_level = update.thinking_level

    # -- the answer --------------------------------------------------------------------------------------------------

    async def _prepare_request(self) -> tuple[Context, StreamOptions]:
        hooks, transcript = self._hooks, self._transcript
        if hooks.prepare_request is not None:
            details = RequestDetails(context=transcript.context, model=self._model, thinking_level=self._thinking_level)
            request_update = await self._ask(hooks.prepare_request(details))
            if request_update is not None:
                self._apply(request_update)
                self._frame.pending.extend(transcript.declare([]))
                while self._frame.pending:
                    await self._take_in()
                await self.stop_if_aborted()
        messages: Sequence[AgentMessage] = transcript.context.messages
        if hooks.transform_context is not None:
            messages = await self._ask(hooks.transform_context(messages))
        if hooks.convert_to_llm is not None:
            llm = View(list(hooks.convert_to_llm(messages)))
        elif hooks.transform_context is not None:
            llm = View(default_convert_to_llm(messages))
        else:
            llm = transcript.for_llm()
        options = self._config.options
        key = None
        if hooks.get_api_key is not None:
            await self.stop_if_aborted()
            key = await self._ask(hooks.get_api_key(self._model.provider))
        level = None if self._thinking_level == "off" else self._thinking_level
        if key or level != options.reasoning:
            options = msgspec.structs.replace(options, api_key=key or options.api_key, reasoning=level)
        await self.stop_if_aborted()
        return Context(llm, transcript.context.tools), options

    async def _answer(self) -> AssistantMessage:
        turn = self._frame.turn
        assert turn is not None
        context, options = await self._prepare_request()
        turn.asked_at = trio.current_time()
        builder = turn.answer = MessageBuilder(
            self._model, timestamp=timestamp_ms(), thinking_level=self._thinking_level
        )
        try:
            await self._read_answer(turn, builder, context, options)
            await self.stop_if_aborted()
            if not builder.finished:
                raise RemoteProtocolError("the stream ended before the answer was complete")
        except Exception as exc:
            if self._sink_failure is not None:
                # It came through the stream function, which may have made something else of it.
                raise self._sink_failure from None
            if builder.finished:
                logger.warning("closing a complete answer failed", exc_info=exc)
            else:
                await self.stop_if_aborted()
                builder.fail("error", describe(exc))
        finally:
            self.cuttable = False
        return await self._end_answer(turn, builder)

    async def _read_answer(
        self, turn: _Turn, builder: MessageBuilder, context: Context, options: StreamOptions
    ) -> None:
        abort, emit = self._abort, self._sink.emit
        self.cuttable = True
        async with self._stream_fn(self._model, context, options) as events:
            async for event in events:
                self.cuttable = False
                if abort.aborted:
                    await self.stop_if_aborted()
                event = builder.add(event)  # noqa: PLW2901  # the same event, now with its partial message
                if builder.finished:
                    break
                if builder.started:
                    try:
                        if type(event) is not StreamStart:
                            await emit(MessageUpdate(assistant_message_event=event))
                        elif not turn.announced:
                            turn.announced = True
                            await emit(MessageStart(message=event.partial))
                    except BaseException as exc:
                        self._note_sink_failure(exc)
                        raise
                    if abort.aborted:
                        await self.stop_if_aborted()
                self.cuttable = True
            self.cuttable = True

    async def _end_answer(self, turn: _Turn, builder: MessageBuilder) -> AssistantMessage:
        message = self._final_answer(turn, builder)
        if not turn.announced:
            turn.announced = True
            await self.emit(MessageStart(message=message))
        turn.message = message
        self.commit(message)
        await self.emit(MessageEnd(message=message))
        return message

    def _final_answer(self, turn: _Turn, builder: MessageBuilder) -> AssistantMessage:
        message = builder.result() if builder.finished else builder.fail("aborted", ABORTED)
        if builder.started and message.duration_ms is None:
            duration = round((trio.current_time() - turn.asked_at) * 1000)
            message = msgspec.structs.replace(message, duration_ms=duration)
        return message

    # -- tools and the end of a turn ---------------------------------------------------------------------------------

    async def _run_tools(self, message: AssistantMessage) -> None:
        turn = self._frame.turn
        assert turn is not None
        turn.batch = self._batch(message)
        if turn.batch is not None:
            await self.stop_if_aborted()
            await turn.batch.run()
        self._owes_answer = turn.batch is not None and not turn.batch.terminates

    def _batch(self, message: AssistantMessage) -> ToolBatch | None:
        calls = message.tool_calls
        if not calls or message.stop_reason in {"error", "aborted"}:
            return None
        transcript = self._transcript
        runner = ToolRunner(
            tools=transcript.tools,
            hooks=self._hooks,
            limiter=self._config.limiter,
            tool_timeout=self._config.tool_timeout,
            abort=self._abort,
            assistant_message=message,
            context=lambda: transcript.context,
            cancellable=self._cancellable_calls,
        )
        truncated = message.stop_reason == "length"
        return ToolBatch(calls, runner, self, mode=self._config.tool_execution, truncated=truncated)

    async def _close_turn(self) -> tuple[TurnDecision, TurnDetails | None]:
        turn = self._frame.turn
        assert turn is not None
        assert turn.message is not None
        results = turn.results
        hooks = self._hooks
        details = None
        if any(hook is not None for hook in (hooks.finish_turn, hooks.should_stop_after_turn, hooks.prepare_next_turn)):
            details = TurnDetails(
                message=turn.message,
                tool_results=results,
                context=self._transcript.context,
                new_messages=View(self.new_messages),
            )
        decision: TurnDecision = None
        if hooks.finish_turn is not None and details is not None and not turn.finishing:
            turn.finishing = True
            decision = await self._finish_turn(details)
        self.turns += 1
        self._frame.turn = None
        await self.emit(TurnEnd(message=turn.message, tool_results=results))
        return decision, details

    async def _finish_turn(self, details: TurnDetails) -> TurnDecision:
        hook = self._hooks.finish_turn
        assert hook is not None
        decision: TurnDecision = None
        with trio.CancelScope() as self._finish_scope:
            if self._abort.aborted:
                self._limit_finish_turn()
            decision = await hook(details)
        self._finish_scope = None
        if self._abort.aborted:
            return None
        if decision not in {"end", "continue", None}:
            raise TypeError(f"finish_turn returned {decision!r}; return 'end', 'continue' or None")
        return decision

    def _limit_finish_turn(self) -> None:
        if self._finish_scope is not None:
            self._finish_scope.deadline = trio.current_time() + self._config.closing_grace

    async def _should_stop(self, details: TurnDetails | None) -> bool:
        hook = self._hooks.should_stop_after_turn
        if hook is None:
            return False
        assert details is not None
        return await self._ask(hook(details))

    async def _end(self) -> None:
        self._frame.running = False
        await self.emit(AgentEnd(messages=tuple(self.new_messages)))

    # -- stopping ----------------------------------------------------------------------------------------------------

    def _cut(self) -> None:
        if self.cuttable:
            self._scope.cancel()
        else:
            self._limit_finish_turn()

    async def stop_if_aborted(self) -> None:
        """Leave the run's scope by cancellation if the run was aborted."""
        if self._abort.aborted:
            self._scope.cancel()
            await trio.lowlevel.checkpoint()

    async def _wind_up(self) -> None:
        """After an abort, send what is owed, in the order of an ordinary run."""
        frame = self._frame
        if frame.message is not None:
            await self._finish_taking_in()
        if frame.turn is not None:
            await self._wind_up_turn(frame.turn)
        if self._owes_answer:
            await self._open_turn()
            assert frame.turn is not None
            await self._wind_up_turn(frame.turn)
        await self._end()

    async def _wind_up_turn(self, turn: _Turn) -> None:
        if turn.message is None:
            builder = turn.answer or self._empty_answer(turn)
            turn.batch = self._batch(await self._end_answer(turn, builder))
            self._owes_answer = turn.batch is not None
        if turn.batch is not None:
            await turn.batch.wind_up()
            self._owes_answer = not turn.batch.terminates
        await self._close_turn()

    def _empty_answer(self, turn: _Turn) -> MessageBuilder:
        turn.asked_at = trio.current_time()
        return MessageBuilder(self._model, timestamp=timestamp_ms(), thinking_level=self._thinking_level)

    async def _close(self, exc: BaseException) -> None:
        """After anything but an abort: close the transcript at once, then deliver the events that are owed.

        Raises:
            BaseException: what the sink raised meanwhile, if it weighs more than ``exc``, or both as a group.
        """
        owed = self._settle()
        if self._sink_failure is not None and not self._sink.survives_failure:
            return
        failures: list[Exception] = []
        grace = self._config.closing_grace
        if split_cancelled(exc)[0] is None and isinstance(exc, Exception):
            try:
                await self._send(owed, failures)
            except trio.Cancelled:
                with trio.move_on_after(grace, shield=True):
                    await self._send(owed, failures)
        elif grace > 0:
            with trio.move_on_after(grace, shield=True):
                await self._send(owed, failures)
        if not failures:
            return
        if isinstance(exc, trio.Cancelled):
            raise failures[0] if len(failures) == 1 else ExceptionGroup("listeners failed", failures)
        if isinstance(exc, Exception):
            raise ExceptionGroup("the run and its closing events failed", [exc, *failures])

    async def _send(self, owed: deque[AgentEvent], failures: list[Exception]) -> None:
        while owed:
            try:
                await self._sink.emit(owed.popleft())
            except Exception as exc:  # noqa: BLE001
                failures.append(exc)
                if not self._sink.survives_failure:
                    return

    def _settle(self) -> deque[AgentEvent]:
        frame, owed = self._frame, deque[AgentEvent]()
        if not frame.running:
            return owed
        if frame.message is not None:
            owed.append(MessageEnd(message=self._commit_open_message()))
        turn = frame.turn
        if turn is not None:
            builder = turn.answer
            if turn.message is None and builder is not None and (turn.announced or builder.finished):
                turn.message = self._final_answer(turn, builder)
                self.commit(turn.message)
                if not turn.announced:
                    owed.append(MessageStart(message=turn.message))
                owed.append(MessageEnd(message=turn.message))
                turn.batch = self._batch(turn.message)
            if turn.batch is not None:
                owed.extend(turn.batch.settle())
            owed.append(TurnEnd(message=turn.message, tool_results=turn.results))
        owed.append(AgentEnd(messages=tuple(self.new_messages)))
        frame.running = False
        frame.turn = None
        return owed
