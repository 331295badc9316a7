"""The recorder: everything that is observed, in one order, with the virtual time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import trio

from trio_agent import MessageUpdate, StreamOptions
from trio_agent.lowlevel import replay

from .normalise import Normaliser, plain
from .scenario import JsonObject
from .values import role_of, roles

__all__ = ["EventFacts", "Recorder", "Trigger"]


@dataclass(frozen=True)
class EventFacts:
    """What a trigger can ask about an event."""

    type: str
    role: str | None
    tool_call_id: str | None
    update: str | None

    @classmethod
    def of(cls, event: Any) -> EventFacts:
        tag = str(event.__struct_config__.tag)
        call_id = getattr(event, "tool_call_id", None)
        if isinstance(event, MessageUpdate):
            # Reading the message of an update would build it; it is an assistant message.
            return cls(tag, "assistant", call_id, str(event.assistant_message_event.__struct_config__.tag))
        message = getattr(event, "message", None)
        return cls(tag, None if message is None else role_of(message), call_id, None)


class Trigger:
    """Matches events by what a scenario names; ``nth`` counts those that match the rest."""

    def __init__(self, spec: JsonObject) -> None:
        self._spec = spec
        self._matched = 0

    def matches(self, facts: EventFacts) -> bool:
        wanted = self._spec
        if wanted.get("event", "*") not in ("*", facts.type):
            return False
        told = {"role": facts.role, "toolCallId": facts.tool_call_id, "update": facts.update}
        if any(key in wanted and wanted[key] != value for key, value in told.items()):
            return False
        self._matched += 1
        return "nth" not in wanted or wanted["nth"] == self._matched


class Recorder:
    """Collects the lists of an observation."""

    def __init__(self, observe: JsonObject) -> None:
        self.normalise = Normaliser(observe)
        self.steps: list[JsonObject] = []
        self.events: list[JsonObject] = []
        self.log: list[JsonObject] = []
        self.requests: list[JsonObject] = []
        self._observe = observe
        self._start = trio.current_time()

    def now(self) -> int:
        return round((trio.current_time() - self._start) * 1000)

    def note(self, lane: str, what: str, /, **fields: Any) -> None:
        """Add an entry to the log."""
        self.log.append({"t": self.now(), "lane": lane, "what": what, **fields})

    def event(self, event: Any, facts: EventFacts, state: Any | None) -> None:
        """Record an event, with the agent's state at its time where the scenario wants it."""
        entry = {"n": len(self.events), "type": facts.type}
        if facts.role is not None:
            entry["role"] = facts.role
        if facts.tool_call_id is not None:
            entry["id"] = facts.tool_call_id
        shown = {"t": self.now(), **self.normalise.event(event)}
        if state is not None and self._observe.get("state"):
            shown["state"] = self.normalise.state(state)
        self.events.append(shown)
        self.note("events", "event", **entry)

    def request(self, model_id: str, messages: Any, options: StreamOptions) -> None:
        """Record what the model was given."""
        replayed = replay(messages)
        self.requests.append(
            {
                "t": self.now(),
                "model": model_id,
                "systemPrompt": replayed.system_prompt,
                "tools": self.normalise.declarations(replayed.tools),
                "messages": self.normalise.messages(messages),
                "options": self._options(options),
            }
        )
        self.note("main", "model.request", n=len(self.requests))

    def _options(self, options: StreamOptions) -> JsonObject:
        raw = plain(options)
        if options.max_retry_delay is not None:
            raw["maxRetryDelayMs"] = options.max_retry_delay * 1000
        wanted = ("apiKey", "reasoning", "sessionId", *self._observe.get("options", ()))
        return {key: raw[key] for key in wanted if key in raw}

    def turn(self, message: Any, tool_results: Any, context: Any, new_messages: Any) -> JsonObject:
        """What the hooks between answers log of a turn."""
        return {
            "stopReason": message.stop_reason,
            "toolResults": [result.tool_call_id for result in tool_results],
            "contextRoles": roles(context.messages),
            "newRoles": roles(new_messages),
        }
