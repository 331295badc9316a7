"""Actions of the caller, of listeners, hooks and tools, and the listeners themselves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

import msgspec
import trio

from trio_agent import Agent, AgentBusyError

from .recorder import EventFacts, Trigger
from .scenario import JsonObject
from .stage import Stage
from .values import ScriptedError, to_model

__all__ = ["ScriptedListener", "perform"]


async def perform(stage: Stage, actions: Iterable[JsonObject], lane: str) -> None:
    """Perform actions in order; what they find is logged on the lane."""
    for action in actions:
        [(name, value)] = action.items()
        if name == "sleep":
            await trio.sleep(value / 1000)
        elif name in _ATTEMPTS:
            await _attempt(stage, lane, name, value)
        else:
            _PLAIN[name](stage, lane, value)


def _abort(stage: Stage, lane: str, value: Any) -> None:
    stage.recorder.note(lane, "action", action="abort")
    stage.abort()


def _log(stage: Stage, lane: str, text: str) -> None:
    stage.recorder.note(lane, "log", text=text)


def _agent(stage: Stage) -> Agent:
    assert stage.agent is not None
    return stage.agent


def _steer(stage: Stage, lane: str, message: Any) -> None:
    _agent(stage).steer(stage.message(message))


def _follow_up(stage: Stage, lane: str, message: Any) -> None:
    _agent(stage).follow_up(stage.message(message))


def _clear(stage: Stage, lane: str, which: str) -> None:
    if which in ("steering", "all"):
        _agent(stage).clear_steering()
    if which in ("followUp", "all"):
        _agent(stage).clear_follow_ups()


def _subscribe(stage: Stage, lane: str, name: str) -> None:
    stage.subscribe(name)


def _unsubscribe(stage: Stage, lane: str, name: str) -> None:
    stage.unsubscribe(name)


def _peek(stage: Stage, lane: str, value: Any) -> None:
    agent = _agent(stage)
    stage.recorder.note(
        lane,
        "action",
        action="peek",
        messages=stage.recorder.normalise.messages(agent.queued()),
        hasQueued=bool(agent.queued_steering or agent.queued_follow_ups),
    )


def _state(stage: Stage, lane: str, value: Any) -> None:
    state = _agent(stage).state
    shown = stage.recorder.normalise.state(state)
    stage.recorder.note(lane, "action", action="state", state=shown, hasSignal=state.is_streaming)


def _set_state(stage: Stage, lane: str, changes: JsonObject) -> None:
    for name, value in changes.items():
        # A change that the library refuses during a run does nothing.
        with suppress(AgentBusyError):
            _SETTERS[name](stage, _agent(stage), value)


def _set_tools(stage: Stage, agent: Agent, keys: list[str]) -> None:
    agent.tools = stage.tools_of(keys)


def _set_model(stage: Stage, agent: Agent, model: str | JsonObject) -> None:
    agent.model = to_model(model)


def _set_messages(stage: Stage, agent: Agent, messages: list[Any]) -> None:
    agent.messages = stage.messages(messages)


def _push_message(stage: Stage, agent: Agent, message: Any) -> None:
    agent.messages = [*agent.state.messages, stage.message(message)]


def _pop_messages(stage: Stage, agent: Agent, count: int) -> None:
    agent.messages = agent.state.messages[: len(agent.state.messages) - count]


def _set_session(stage: Stage, agent: Agent, session_id: str | None) -> None:
    agent.options = msgspec.structs.replace(agent.options, session_id=session_id)


def _set_plain(attribute: str) -> Callable[[Stage, Agent, Any], None]:
    def change(stage: Stage, agent: Agent, value: Any) -> None:
        setattr(agent, attribute, value)

    return change


_SETTERS: dict[str, Callable[[Stage, Agent, Any], None]] = {
    "tools": _set_tools,
    "model": _set_model,
    "messages": _set_messages,
    "pushMessage": _push_message,
    "popMessages": _pop_messages,
    "sessionId": _set_session,
    "thinkingLevel": _set_plain("thinking_level"),
    "steeringMode": _set_plain("steering_mode"),
    "followUpMode": _set_plain("follow_up_mode"),
    "toolExecution": _set_plain("tool_execution"),
}

_PLAIN: dict[str, Callable[[Stage, str, Any], None]] = {
    "abort": _abort,
    "log": _log,
    "steer": _steer,
    "followUp": _follow_up,
    "clear": _clear,
    "subscribe": _subscribe,
    "unsubscribe": _unsubscribe,
    "peek": _peek,
    "state": _state,
    "setState": _set_state,
}


async def _try_prompt(stage: Stage, text: str) -> None:
    await stage.run_agent(text)


async def _try_continue(stage: Stage, value: Any) -> None:
    await stage.run_agent()


async def _try_reset(stage: Stage, value: Any) -> None:
    _agent(stage).reset()


_ATTEMPTS: dict[str, tuple[str, Callable[[Stage, Any], Awaitable[None]]]] = {
    "tryPrompt": ("prompt", _try_prompt),
    "tryContinue": ("continue", _try_continue),
    "tryReset": ("reset", _try_reset),
}


async def _attempt(stage: Stage, lane: str, name: str, value: Any) -> None:
    action, attempt = _ATTEMPTS[name]
    try:
        await attempt(stage, value)
    except Exception as error:  # noqa: BLE001 - whatever reaches the caller is the observation
        stage.recorder.note(lane, "action", action=action, outcome="error", error=str(error))
    else:
        stage.recorder.note(lane, "action", action=action, outcome="ok")


class ScriptedListener:
    """A further listener: logs the events that match, and does what its script says."""

    def __init__(self, stage: Stage, name: str, script: JsonObject) -> None:
        self._stage = stage
        self._name = name
        self._script = script
        self._trigger = Trigger(script)

    async def __call__(self, event: Any) -> None:
        facts = EventFacts.of(event)
        if not self._trigger.matches(facts):
            return
        lane = f"listener:{self._name}"
        note = self._stage.recorder.note
        await self._stage.pause()
        note(lane, "listener.start", name=self._name, event=facts.type)
        outcome = "throw"
        try:
            await self._play(lane)
            outcome = "return"
        finally:
            note(lane, "listener.end", name=self._name, event=facts.type, outcome=outcome)

    async def _play(self, lane: str) -> None:
        if "sleep" in self._script:
            await trio.sleep(self._script["sleep"] / 1000)
        await perform(self._stage, self._script.get("do", ()), lane)
        if "throw" in self._script:
            raise ScriptedError(self._script["throw"])
