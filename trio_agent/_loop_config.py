"""What a run is given: its settings, where its events go, and where queued messages come from."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import trio

from trio_agent._agent_events import AgentEvent
from trio_agent._hooks import Hooks
from trio_agent._messages import AgentMessage
from trio_agent._models import Model, StreamOptions, ThinkingLevel
from trio_agent._run_transcript import Origin
from trio_agent._tool_batch import ToolExecutionMode

__all__ = ["Inbox", "LoopConfig", "Sink"]


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
        failure: what ``emit`` raised last in this run, cancellations aside. It may reach the loop through code that
            makes something else of it.
    """

    survives_failure: bool

    @property
    def failure(self) -> BaseException | None:
        """What ``emit`` raised last."""
        ...

    def commit(self, message: AgentMessage, /) -> None:
        """Append a message to the transcript: synchronous, before any event says that it is there."""
        ...

    def emit(self, event: AgentEvent, /) -> Awaitable[None]:
        """Deliver an event; awaiting the result, at once, returns when it has been handled."""
        ...

    def emit_all(self, events: Iterator[AgentEvent], /) -> Awaitable[None]:
        """Deliver events one after the other; each is made when the one before has been handled."""
        ...

    def finish(self) -> Awaitable[None]:
        """Finish a delivery that a cancellation has cut; nothing if there was none. Asked before events are sent again.

        A sink with one handler has nothing to finish: the handler was called, and saw the cancellation.
        """
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
