"""What an agent shows: its state, what a run has done, and the reducer that keeps the state up to date.

The reducer is the sink of an agent's runs. It changes the state before anyone sees the event that says so, and
synchronously for messages, so that a transcript can be closed without a checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast, final

from trio_agent._agent_events import (
    AgentEvent,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
)
from trio_agent._delivery import Delivery
from trio_agent._errors import ModelError
from trio_agent._messages import AgentMessage, AssistantMessage, StopReason, Usage
from trio_agent._models import Model, ThinkingLevel
from trio_agent._tools import Tool
from trio_agent._transcript import View, replay

if TYPE_CHECKING:
    from trio_agent._agent import Agent

__all__ = ["AgentState", "AgentStatistics", "Reducer", "RunResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
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
    """A read-only view of an agent; always current."""

    __slots__ = ("_agent", "_error_message", "_messages", "_pending", "_streaming")

    def __init__(self, agent: Agent, messages: list[AgentMessage]) -> None:
        self._agent = agent
        self._messages = messages
        self._streaming: MessageStart | MessageUpdate | None = None
        self._pending: dict[str, None] = {}
        self._error_message: str | None = None

    @property
    def model(self) -> Model:
        """The agent's model; a run may have gone on to another one."""
        return self._agent.model

    @property
    def thinking_level(self) -> ThinkingLevel:
        """The agent's thinking level."""
        return self._agent.thinking_level

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The agent's tools."""
        return self._agent.tools

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
        return self._agent.is_running

    @property
    def streaming_message(self) -> AgentMessage | None:
        """The message whose start was sent and whose end was not; an answer as far as it has come."""
        return None if self._streaming is None else self._streaming.message

    @property
    def pending_tool_calls(self) -> tuple[str, ...]:
        """The ids of calls whose start was sent and whose end was not, in the order of their starts."""
        return tuple(self._pending)

    @property
    def error_message(self) -> str | None:
        """What went wrong with the last answer; forgotten when a run begins."""
        return self._error_message

    def __repr__(self) -> str:
        return (
            f"AgentState(model={self.model.id!r}, messages={len(self._messages)}, is_streaming={self.is_streaming}, "
            f"pending_tool_calls={self.pending_tool_calls!r}, error_message={self.error_message!r})"
        )


class Reducer:
    """The sink of an agent's runs: state first, then delivery.

    Attributes:
        emit: delivers an event, after the state has followed it.
        emit_all: delivers events, each made when the one before was handled.
        finish: finishes a delivery that was cut.
    """

    survives_failure = True

    @property
    def failure(self) -> BaseException | None:
        """What a listener raised last."""
        return self.delivery.failure

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._answer_error: str | None = None
        self.delivery = Delivery(self._reduce)
        self.emit = self.delivery.emit
        self.emit_all = self.delivery.emit_all
        self.finish = self.delivery.finish

    def set_messages(self, messages: Sequence[AgentMessage]) -> None:
        """Replace the transcript."""
        self._state._messages = list(messages)

    def forget_error(self) -> None:
        """A new start: what went wrong before no longer counts."""
        self._state._error_message = self._answer_error = None

    def settle(self) -> None:
        """Nothing is open any more."""
        self._state._streaming = None
        self._state._pending.clear()
        self._take_over_error()

    def commit(self, message: AgentMessage, /) -> None:
        """Append a message of a run to the transcript."""
        state = self._state
        state._messages.append(message)
        state._streaming = None
        if isinstance(message, AssistantMessage):
            self._answer_error = message.error_message

    def _reduce(self, event: AgentEvent) -> None:
        state = self._state
        kind = type(event)
        if kind is MessageUpdate or kind is MessageStart:
            state._streaming = cast("MessageUpdate | MessageStart", event)
        elif kind is ToolExecutionStart:
            state._pending[cast("ToolExecutionStart", event).tool_call_id] = None
        elif kind is ToolExecutionEnd:
            state._pending.pop(cast("ToolExecutionEnd", event).tool_call_id, None)
        elif kind is TurnEnd:
            self._take_over_error()

    def _take_over_error(self) -> None:
        if self._answer_error is not None:
            self._state._error_message = self._answer_error


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStatistics:
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
