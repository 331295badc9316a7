"""RunCore: what all parts of a run stand on.

The frame (what has been opened and not closed), the transcript, delivery, the abort, and the messages on their way in.
Whatever is about to be sent is marked as sent first, so each event begins at most once, and a stop finds in the frame
all that is owed. The order of things is not decided here, but in the loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Sequence
from typing import TypeVar

import trio
from msgspec import UNSET

from trio_agent._abort import AbortHandle
from trio_agent._agent_events import MessageEnd, MessageStart, TurnEnd
from trio_agent._builder import MessageBuilder
from trio_agent._clock import timestamps
from trio_agent._hooks import RequestUpdate, TurnUpdate
from trio_agent._loop_config import Inbox, LoopConfig, Sink
from trio_agent._messages import AgentMessage, AssistantMessage, ToolResultMessage
from trio_agent._models import ThinkingLevel
from trio_agent._run_transcript import Origin, Pending, RunTranscript
from trio_agent._tool_batch import ToolBatch
from trio_agent._transcript import Context

__all__ = ["RunCore", "Turn"]

T = TypeVar("T")


class Turn:
    """One turn, while it is open.

    Attributes:
        builder: folds the answer, once it was asked for.
        asked_at: when it was asked for, on Trio's clock.
        announced: whether the start of the answer was sent.
        message: the answer, once it is in the transcript.
        batch: its tool calls.
        finishing: whether the hook that finishes a turn was asked.
    """

    __slots__ = ("announced", "asked_at", "batch", "builder", "finishing", "message")

    def __init__(self) -> None:
        self.builder: MessageBuilder | None = None
        self.asked_at = 0.0
        self.announced = False
        self.message: AssistantMessage | None = None
        self.batch: ToolBatch | None = None
        self.finishing = False

    @property
    def results(self) -> tuple[ToolResultMessage, ...]:
        """The results that are in the transcript."""
        return () if self.batch is None else tuple(self.batch.results)


class RunCore:
    """The state of one run.

    Attributes:
        transcript: what it works on.
        config: what it keeps to.
        model: that it asks now.
        thinking_level: that it asks for now.
        abort: stops it in order.
        sink: takes its messages and events.
        emit: delivers an event; must be awaited at once.
        emit_all: delivers events, each made when the one before was handled.
        now_ms: gives timestamps.
        scope: the one scope of the run; left by cancellation after an abort.
        cuttable: whether the run's task waits for something that an abort may cut.
        running: whether the run was opened and not closed.
        turn: the open turn.
        message: a message whose start was sent and whose end was not; answers and results are in the turn.
        pending: messages on their way in; the first is ``message`` if that is set.
        owes_answer: whether the run would go on to another answer if it were not stopped.
        error_message: what went wrong with the answer of the turn that was closed last.
    """

    def __init__(
        self, context: Context, config: LoopConfig, sink: Sink, abort: AbortHandle, inbox: Inbox | None
    ) -> None:
        self.transcript = RunTranscript(context)
        self.config = config
        self.model = config.model
        self.thinking_level: ThinkingLevel = config.thinking_level
        self.abort = abort
        self.now_ms = timestamps()
        self.sink = sink
        self.emit = sink.emit
        self.emit_all = sink.emit_all
        self.scope = trio.CancelScope()
        self.cuttable = False
        self.running = False
        self.turn: Turn | None = None
        self.message: AgentMessage | None = None
        self.pending: deque[Pending] = deque()
        self.owes_answer = True
        self.error_message: str | None = None
        self._inbox = inbox

    # -- delivery and the transcript ---------------------------------------------------------------------------------

    def commit(self, message: AgentMessage) -> None:
        """Append a message to the run's transcript and the sink's."""
        self.transcript.append(message)
        self.sink.commit(message)

    async def take_in(self) -> None:
        """Announce the first pending message and add it to the transcript."""
        message = self.message = self.pending[0].message
        await self.emit(MessageStart(message=message))
        await self.emit(MessageEnd(message=self.commit_open_message()))

    def commit_open_message(self) -> AgentMessage:
        """Add the open message to the transcript."""
        message = self.pending.popleft().message
        self.message = None
        self.commit(message)
        return message

    def close_turn(self, turn: Turn) -> TurnEnd:
        """The end of a turn; from here on nothing of it is open."""
        message = turn.message
        if message is not None and message.error_message is not None:
            self.error_message = message.error_message
        self.turn = None
        return TurnEnd(message=message, tool_results=turn.results)

    # -- stopping ----------------------------------------------------------------------------------------------------

    async def stop_if_aborted(self) -> None:
        """Leave the run's scope by cancellation if the run was aborted."""
        if self.abort.aborted:
            self.scope.cancel()
            await trio.lowlevel.checkpoint()

    async def ask(self, answer: Awaitable[T]) -> T:
        """Wait for a hook that an abort may cut; then stop if there was an abort."""
        self.cuttable = True
        try:
            result = await answer
        finally:
            self.cuttable = False
        await self.stop_if_aborted()
        return result

    # -- messages on their way in ------------------------------------------------------------------------------------

    async def take_steering(self) -> None:
        """Take steering messages from the inbox, else from the hook."""
        if self._inbox is not None and (messages := self._inbox.take_steering()):
            self._enqueue("steering", messages)
        hook = self.config.hooks.get_steering_messages
        if hook is not None and not self.pending:
            self._enqueue(None, await self.ask(hook()))

    async def take_follow_ups(self) -> None:
        """Take follow-ups from the inbox, else from the hook."""
        if self._inbox is not None and (messages := self._inbox.take_follow_ups()):
            self._enqueue("follow_up", messages)
        hook = self.config.hooks.get_follow_up_messages
        if hook is not None and not self.pending:
            self._enqueue(None, await self.ask(hook()))

    def _enqueue(self, origin: Origin | None, messages: Sequence[AgentMessage]) -> None:
        self.pending.extend([Pending(message, origin, message) for message in messages])

    def put_back(self) -> None:
        """Put what was taken from the inbox and did not arrive back to the front."""
        pending, self.pending = self.pending, deque()
        for item in reversed(pending):
            if self._inbox is not None and item.origin is not None and item.original is not None:
                self._inbox.put_back(item.origin, item.original)

    def apply(self, update: RequestUpdate | TurnUpdate) -> None:
        """Take over what a hook changes."""
        if update.context is not UNSET:
            self.transcript.replace(update.context)
        if update.model is not UNSET:
            self.model = update.model
        if update.thinking_level is not UNSET:
            self.thinking_level = update.thinking_level
