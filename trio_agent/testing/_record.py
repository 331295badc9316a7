"""record: what an agent sends, in a list."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from trio_agent._agent import Agent
from trio_agent._agent_events import AgentEvent

__all__ = ["record"]


@contextmanager
def record(agent: Agent) -> Generator[list[AgentEvent]]:
    """While the block runs, every event of the agent goes into the list, as it is delivered."""
    events: list[AgentEvent] = []
    with agent.subscribe(events.append):
        yield events
