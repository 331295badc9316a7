"""What an agent shows: its state, what a run has done, and where the messages and events of its runs go.

What is open is known to the run, which notes it before it sends the event that says so; the state asks the run. So it
is always current, and costs nothing where nobody looks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import final

import msgspec

from trio_agent._agent_events import AgentEvent
from trio_agent._delivery import Delivery
from trio_agent._errors import ModelError
from trio_agent._loop import Run
from trio_agent._loop_config import LoopConfig
from trio_agent._messages import AgentMessage, AssistantMessage, StopReason, Usage
from trio_agent._models import Model, ThinkingLevel
from trio_agent._tools import Tool
from trio_agent._transcript import View, replay

__all__ = ["AgentSink", "AgentState", "AgentStatistics", "RunResult"]


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has done.

    Attributes:
        messages: all that it added to the transcript, in order.
        turns: how many turns it took.
    """

    messages: tuple[AgentMessage, ...]
    turns: int

    @property
    def message(self) -> AssistantMessage | None:
        """The last answer; ``None`` if the run was stopped before there was one."""
        for message in reversed(self.messages):
            if isinstance(message, AssistantMessage):
                return message
        return None

    @property
    def text(self) -> str:
        """The text of the last answer; empty if there is none."""
        return "" if self.message is None else self.message.text

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the last answer ended."""
        return None if self.message is None else self.message.stop_reason

    @property
    def usage(self) -> Usage:
        """The tokens and the cost of all answers of the run."""
        total = Usage.zero()
        for message in self.messages:
            if isinstance(message, AssistantMessage):
                total += message.usage
        return total

    def raise_for_error(self) -> RunResult:
        """Raise if the last answer failed or was aborted; else return the result itself.

        Raises:
            ModelError: the text says what went wrong.
        """
        message = self.message
        if message is not None and message.stop_reason in {"error", "aborted"}:
            raise ModelError(f"the answer of {message.model!r} ended as {message.stop_reason}: {message.error_message}")
        return self


@final
class AgentState:
    """What an agent is at this moment: settings, transcript, and what its run has open. Read-only; always current."""

    # The agent holds its state, and not the other way round: a circle would keep the transcripts of agents that nobody
    # has any more until the garbage collector comes by.
    __slots__ = ("_config", "_error_message", "_messages", "_run", "_tools")

    def __init__(self, config: LoopConfig, tools: tuple[Tool, ...], messages: list[AgentMessage]) -> None:
        self._config = config
        self._tools = tools
        self._messages = messages
        self._run: Run | None = None
        self._error_message: str | None = None

    @property
    def model(self) -> Model:
        """The agent's model; a run may have gone on to another one."""
        return self._config.model

    @property
    def thinking_level(self) -> ThinkingLevel:
        """The agent's thinking level."""
        return self._config.thinking_level

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The agent's tools."""
        return self._tools

    @property
    def messages(self) -> Sequence[AgentMessage]:
        """The transcript: a snapshot that does not grow."""
        return View(self._messages)

    @property
    def system_prompt(self) -> str:
        """What the transcript's system messages say, replayed."""
        return replay(self._messages).system_prompt

    @property
    def is_streaming(self) -> bool:
        """Whether a run is on; it is until its last handler has returned."""
        return self._run is not None

    @property
    def streaming_message(self) -> AgentMessage | None:
        """The message whose start was sent and whose end was not; an answer as far as it has come."""
        return None if self._run is None else self._run.open_message

    @property
    def pending_tool_calls(self) -> tuple[str, ...]:
        """The ids of calls whose start was sent and whose end was not, in the order of their starts."""
        return () if self._run is None else self._run.open_calls

    @property
    def error_message(self) -> str | None:
        """What went wrong with the last answer; forgotten when a run begins."""
        return self._error_message if self._run is None else self._run.error_message

    def __repr__(self) -> str:
        return (
            f"AgentState(model={self.model.id!r}, messages={len(self._messages)}, is_streaming={self.is_streaming}, "
            f"pending_tool_calls={self.pending_tool_calls!r}, error_message={self.error_message!r})"
        )


class AgentSink:
    """The sink of an agent's runs: messages go into the state, events to listeners and watchers.

    Attributes:
        delivery: of the events.
        emit: delivers an event.
        emit_all: delivers events, each made when the one before was handled.
        finish: finishes a delivery that was cut.
    """

    survives_failure = True

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self.delivery = Delivery()
        self.emit: Callable[[AgentEvent], Awaitable[None]] = self.delivery.emit
        self.emit_all: Callable[[Iterator[AgentEvent]], Awaitable[None]] = self.delivery.emit_all
        self.finish = self.delivery.finish

    @property
    def failure(self) -> BaseException | None:
        """What a listener raised last."""
        return self.delivery.failure

    def commit(self, message: AgentMessage, /) -> None:
        """Append a message of a run to the transcript."""
        self._state._messages.append(message)

    def set_messages(self, messages: Sequence[AgentMessage]) -> None:
        """Replace the transcript."""
        self._state._messages = list(messages)

    def begin(self, run: Run) -> None:
        """From now on a run says what is open; what went wrong before no longer counts."""
        self.forget_error()
        self._state._run = run

    def end(self, run: Run) -> None:
        """The run is over: nothing is open any more, and nothing is kept of how it failed but its message."""
        self.delivery.forget_failure()
        self._state._run = None
        self._state._error_message = run.error_message

    def forget_error(self) -> None:
        """What went wrong before no longer counts."""
        self._state._error_message = None


class AgentStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is doing, for people who look for what holds it up.

    Attributes:
        running: tool bodies at work.
        waiting_for_slot: tool calls that are ready and wait for a slot of a limiter.
        queued: steering messages and follow-ups that wait to be taken into a run.
        events_waiting: events that were handed to watchers and are not handled yet.
        oldest_wait: for how long watchers have had the event that the run waits for, in seconds; ``None`` if it waits
            for no watcher.
        delivering: the event that handlers have now.
    """

    running: int
    waiting_for_slot: int
    queued: int
    events_waiting: int
    oldest_wait: float | None
    delivering: AgentEvent | None
