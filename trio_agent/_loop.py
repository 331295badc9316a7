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

*Anything else* (the caller's cancellation, Ctrl-C, a hook or a sink that raises): see ``_closing``. The transcript is
closed synchronously, the events that are owed are delivered, and the same exception goes on.

*The end.* Nothing is owed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import trio

from trio_agent._abort import AbortHandle
from trio_agent._agent_events import AgentEnd, AgentStart, TurnStart
from trio_agent._answer import ask_model, end_answer
from trio_agent._builder import MessageBuilder
from trio_agent._closing import close
from trio_agent._hooks import TurnDecision, TurnDetails
from trio_agent._loop_config import Inbox, LoopConfig, Sink
from trio_agent._messages import AgentMessage, AssistantMessage, ToolResultMessage
from trio_agent._run_core import RunCore, Turn
from trio_agent._run_transcript import Pending
from trio_agent._stream_fn import StreamFn
from trio_agent._tool_batch import ToolBatch
from trio_agent._tool_call import ToolRunner
from trio_agent._tool_tasks import ToolTasks
from trio_agent._transcript import Context, View

__all__ = ["Run"]


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
        thread_limiter: gives the limiter of worker threads.

    Attributes:
        turns: how many turns were closed.
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
        thread_limiter: Callable[[], trio.CapacityLimiter] | None = None,
    ) -> None:
        self.turns = 0
        self._core = RunCore(context, config, sink, abort, inbox)
        self._config = config
        self._hooks = config.hooks
        self._stream_fn = stream_fn
        self._abort = abort
        self._tool_tasks = ToolTasks()
        transcript = self._core.transcript
        self._runner = ToolRunner(
            tools=transcript.tools,
            hooks=config.hooks,
            limiter=config.limiter,
            tool_timeout=config.tool_timeout,
            abort=abort,
            assistant_message=None,
            context=lambda: transcript.context,
            cancellable=cancellable_calls,
            thread_limiter=thread_limiter,
        )
        self._finish_scope: trio.CancelScope | None = None

    @property
    def new_messages(self) -> list[AgentMessage]:
        """All that the run has added so far."""
        return self._core.transcript.new

    @property
    def partial_message(self) -> AssistantMessage | None:
        """The answer that is being streamed, as it is now."""
        turn = self._core.turn
        return turn.builder.partial if turn is not None and turn.builder is not None and turn.message is None else None

    @property
    def open_message(self) -> AgentMessage | None:
        """The message whose start was sent and whose end was not, as it is now."""
        turn = self._core.turn
        if self._core.message is not None or turn is None:
            return self._core.message
        if turn.message is None:
            return turn.builder.partial if turn.builder is not None and turn.announced else None
        return None if turn.batch is None else turn.batch.open_result

    @property
    def open_calls(self) -> tuple[str, ...]:
        """The ids of the calls whose start was sent and whose end was not, in source order."""
        turn = self._core.turn
        if turn is None or turn.batch is None:
            return ()
        return tuple([state.call.id for state in turn.batch.states if state.announced and not state.ended])

    @property
    def error_message(self) -> str | None:
        """What went wrong with the answer of the turn that was closed last."""
        return self._core.error_message

    def cancel_tool(self, call_id: str) -> None:
        """Cancel one call alone.

        Raises:
            KeyError: no answer of the run has such a call.
        """
        turn = self._core.turn
        if turn is not None and turn.batch is not None:
            for state in turn.batch.states:
                if state.call.id == call_id:
                    turn.batch.cancel(state)
                    return
        for message in self.new_messages:
            if isinstance(message, ToolResultMessage) and message.tool_call_id == call_id:
                return
        raise KeyError(call_id)

    def calls_at_work(self) -> tuple[int, int]:
        """How many tool bodies are at work, and how many calls wait for a slot."""
        turn = self._core.turn
        return (0, 0) if turn is None or turn.batch is None else turn.batch.at_work()

    async def execute(self, prompts: Sequence[Pending]) -> list[AgentMessage]:
        """Run to the end.

        Returns:
            All messages that the run added.

        Raises:
            Exception: of a hook or the sink, bare; the transcript is closed.
            Cancelled: the caller was cancelled; the transcript is closed.
        """
        core = self._core
        core.pending.extend(core.transcript.declare(prompts))
        cut = self._cut
        self._abort.add_cut(cut)
        try:
            with core.scope:
                async with self._tool_tasks:
                    await self._drive()
            if core.running:
                await self._wind_up()
        except BaseException as exc:
            await close(core, self._batch, exc)  # noqa: ASYNC102  # shields itself, within the grace
            raise
        finally:
            self._abort.remove_cut(cut)
            core.put_back()
        return self.new_messages

    # -- the ordinary way --------------------------------------------------------------------------------------------

    async def _drive(self) -> None:
        core = self._core
        core.running = True
        # A run that begins with steering messages has had its share of them.
        began_with_steering = any(item.origin == "steering" for item in core.pending)
        await core.emit(AgentStart())
        turn = await self._open_turn()
        while core.pending:
            await core.take_in()
        if self._abort.aborted:
            await core.stop_if_aborted()
        if not began_with_steering:
            await core.take_steering()
        while True:
            while core.pending:
                await core.stop_if_aborted()
                await core.take_in()
            if self._abort.aborted:
                await core.stop_if_aborted()
            message = await ask_model(core, turn, self._stream_fn)
            if message.stop_reason in {"error", "aborted"}:
                core.owes_answer = False
                await self._close_turn(turn)
                break
            await self._run_tools(turn, message)
            if not await self._goes_on(turn):
                break
            turn = await self._open_turn()
        await self._end()

    async def _open_turn(self) -> Turn:
        turn = self._core.turn = Turn()
        await self._core.emit(TurnStart())
        return turn

    async def _run_tools(self, turn: Turn, message: AssistantMessage) -> None:
        core = self._core
        batch = turn.batch = self._batch(message)
        if batch is not None:
            if self._abort.aborted:
                await core.stop_if_aborted()
            await batch.run()
        core.owes_answer = batch is not None and not batch.terminates

    def _batch(self, message: AssistantMessage) -> ToolBatch | None:
        calls = message.tool_calls
        if not calls or message.stop_reason in {"error", "aborted"}:
            return None
        runner = self._runner
        runner.assistant_message = message
        runner.tools = self._core.transcript.tools
        truncated = message.stop_reason == "length"
        return ToolBatch(
            calls, runner, self._tool_tasks, self._core, mode=self._config.tool_execution, truncated=truncated
        )

    async def _goes_on(self, turn: Turn) -> bool:
        """Close the turn and find out whether another one follows; if so, it is prepared."""
        core = self._core
        needs_answer = core.owes_answer
        decision, details = await self._close_turn(turn)
        limit = self._config.max_turns
        if decision == "end" or (limit is not None and self.turns >= limit):
            return False
        core.owes_answer = needs_answer or decision == "continue"
        if self._abort.aborted:
            await core.stop_if_aborted()
        if self._hooks.should_stop_after_turn is not None and await self._should_stop(details):
            return False
        await core.take_steering()
        if not core.pending and not needs_answer:
            await core.take_follow_ups()
            if not core.pending and not core.owes_answer:
                return False
        await self._prepare_next_turn(details)
        return True

    async def _close_turn(self, turn: Turn) -> tuple[TurnDecision, TurnDetails | None]:
        core, hooks = self._core, self._hooks
        assert turn.message is not None
        details = None
        if (
            hooks.finish_turn is not None
            or hooks.should_stop_after_turn is not None
            or hooks.prepare_next_turn is not None
        ):
            details = TurnDetails(
                message=turn.message,
                tool_results=turn.results,
                context=core.transcript.context,
                new_messages=View(self.new_messages),
            )
        decision: TurnDecision = None
        if hooks.finish_turn is not None and details is not None and not turn.finishing:
            turn.finishing = True
            decision = await self._finish_turn(details)
        self.turns += 1
        await core.emit(core.close_turn(turn))
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
        assert hook is not None
        assert details is not None
        return await self._core.ask(hook(details))

    async def _prepare_next_turn(self, details: TurnDetails | None) -> None:
        core = self._core
        nothing_taken = not core.pending
        added: list[Pending] = []
        hook = self._hooks.prepare_next_turn
        if hook is not None:
            assert details is not None
            update = await core.ask(hook(details))
            if update is not None:
                core.apply(update)
                added = [Pending(message) for message in update.messages]
        if nothing_taken:
            await core.take_steering()
        core.pending = deque(core.transcript.declare([*added, *core.pending]))

    async def _end(self) -> None:
        self._core.running = False
        await self._core.emit(AgentEnd(messages=tuple(self.new_messages)))

    # -- after an abort ----------------------------------------------------------------------------------------------

    def _cut(self) -> None:
        self._tool_tasks.cancel()
        if self._core.cuttable:
            self._core.scope.cancel()
        else:
            self._limit_finish_turn()

    async def _wind_up(self) -> None:
        """Send what is owed, in the order of an ordinary run."""
        core = self._core
        if core.turn is not None:
            await self._wind_up_turn(core.turn)
        if core.owes_answer:
            await self._wind_up_turn(await self._open_turn())
        await self._end()

    async def _wind_up_turn(self, turn: Turn) -> None:
        core = self._core
        if turn.message is None:
            builder = turn.builder = turn.builder or self._unasked(turn)
            turn.batch = self._batch(await end_answer(core, turn, builder))
            core.owes_answer = turn.batch is not None
        if turn.batch is not None:
            await turn.batch.wind_up()
            core.owes_answer = not turn.batch.terminates
        await self._close_turn(turn)

    def _unasked(self, turn: Turn) -> MessageBuilder:
        turn.asked_at = trio.current_time()
        return MessageBuilder(self._core.model, timestamp=self._core.now_ms(), thinking_level=self._core.thinking_level)
