"""The three ways to run a loop: an agent, the low-level loop with a sink, and the low-level stream.

A performer carries out the steps that are its own and says what is left at the end. The recorder is the agent's first
listener, or the body of a watched run; the sink; or the reader of the stream.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from trio_agent import Agent, Context, ImageContent, StreamOptions
from trio_agent.lowlevel import (
    AbortHandle,
    LoopConfig,
    agent_loop,
    agent_loop_continue,
    run_agent_loop,
    run_agent_loop_continue,
)

from .actions import ScriptedListener, perform
from .model import ScriptedModel
from .recorder import EventFacts, Trigger
from .scenario import JsonObject
from .stage import Stage
from .tools import nested_call
from .values import roles

__all__ = ["PERFORMERS", "AgentPerformer", "LoopPerformer", "Performer", "StreamPerformer"]


class Performer(ABC):
    """Runs one mode.

    Args:
        stage: set with tools and hooks.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.model = ScriptedModel(stage)
        self._triggers = [(Trigger(entry), entry["do"]) for entry in stage.input.get("on", ())]
        scripts: JsonObject = stage.input.get("listeners", {})
        stage.listeners = {name: ScriptedListener(stage, name, script) for name, script in scripts.items()}
        self._subscribed_first = [name for name, script in scripts.items() if script.get("initial", True)]

    async def record(self, event: Any) -> None:
        """Record an event, then do what the scenario wants done at it."""
        await self.stage.pause()
        facts = EventFacts.of(event)
        agent = self.stage.agent
        self.stage.recorder.event(event, facts, None if agent is None else agent.state)
        for trigger, actions in self._triggers:
            if trigger.matches(facts):
                await perform(self.stage, actions, "main")

    async def run_tool_call(self, step: JsonObject, lane: str) -> None:
        await nested_call(self.stage, lane, step["runToolCall"], None)

    @abstractmethod
    def steps(self) -> dict[str, Callable[[JsonObject, str], Awaitable[Any]]]:
        """How each kind of step is carried out; what it returns are the messages that the step gave back."""

    @abstractmethod
    def final(self) -> JsonObject:
        """What is left at the end."""


class AgentPerformer(Performer):
    """One stateful agent.

    Args:
        watched: the recorder is the body of a watched run instead of a listener.
    """

    def __init__(self, stage: Stage, *, watched: bool = False) -> None:
        super().__init__(stage)
        options = stage.options
        self.agent = stage.agent = Agent(
            stage.model,
            system_prompt=stage.input.get("systemPrompt", ""),
            tools=stage.first_tools,
            messages=stage.first_messages,
            thinking_level=options.get("thinkingLevel", "off"),
            options=stream_options(options),
            hooks=stage.hooks,
            stream_fn=self.model,
            tool_execution=options.get("toolExecution", "parallel"),
            steering_mode=options.get("steeringMode", "one-at-a-time"),
            follow_up_mode=options.get("followUpMode", "one-at-a-time"),
        )
        if watched:
            stage.watcher = self.record
        else:
            self.agent.subscribe(self.record)
        for name in self._subscribed_first:
            stage.subscribe(name)

    def steps(self) -> dict[str, Callable[[JsonObject, str], Awaitable[Any]]]:
        return {
            "prompt": self._prompt,
            "continue": self._continue,
            "reset": self._reset,
            "waitForIdle": self._wait_for_idle,
            "runToolCall": self.run_tool_call,
        }

    async def _prompt(self, step: JsonObject, lane: str) -> None:
        prompt = step["prompt"]
        if isinstance(prompt, list):
            prompt = self.stage.messages(prompt)
        elif not isinstance(prompt, str):
            prompt = self.stage.message(prompt)
        images = msgspec.convert(step.get("images", ()), tuple[ImageContent, ...])
        await self.stage.run_agent(prompt, images=images)

    async def _continue(self, step: JsonObject, lane: str) -> None:
        await self.stage.run_agent()

    async def _reset(self, step: JsonObject, lane: str) -> None:
        self.agent.reset()

    async def _wait_for_idle(self, step: JsonObject, lane: str) -> None:
        await self.agent.wait_idle()

    def final(self) -> JsonObject:
        state = self.agent.state
        normalise = self.stage.recorder.normalise
        return {
            **normalise.state(state),
            "messages": normalise.messages(state.messages),
            "systemPrompt": state.system_prompt,
            "model": state.model.id,
            "thinkingLevel": state.thinking_level,
            "tools": [tool.name for tool in state.tools],
            "hasQueuedMessages": bool(self.agent.queued_steering or self.agent.queued_follow_ups),
        }


class LoopPerformer(Performer):
    """The low-level loop with an awaited event sink."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.messages = list(stage.first_messages)
        self.context = Context(messages=self.messages, tools=stage.first_tools)
        options = stage.options
        self.config = LoopConfig(
            model=stage.model,
            thinking_level=options.get("thinkingLevel", "off"),
            options=stream_options(options),
            hooks=stage.hooks,
            tool_execution=options.get("toolExecution", "parallel"),
        )

    def steps(self) -> dict[str, Callable[[JsonObject, str], Awaitable[Any]]]:
        return {"run": self.run, "continue": self.continue_, "runToolCall": self.run_tool_call}

    def new_abort_handle(self) -> AbortHandle:
        self.stage.abort_handle = AbortHandle()
        return self.stage.abort_handle

    async def sink(self, event: Any) -> None:
        await self.record(event)
        for name in self._subscribed_first:
            await self.stage.listeners[name](event)

    async def run(self, step: JsonObject, lane: str) -> Any:
        prompts = self.stage.messages(step["run"])
        abort = self.new_abort_handle()
        return await run_agent_loop(prompts, self.context, self.config, self.sink, self.model, abort=abort)

    async def continue_(self, step: JsonObject, lane: str) -> Any:
        abort = self.new_abort_handle()
        return await run_agent_loop_continue(self.context, self.config, self.sink, self.model, abort=abort)

    def final(self) -> JsonObject:
        observed = self.stage.input.get("observe", {})
        return {"contextRoles": roles(self.messages)} if observed.get("context") else {}


class StreamPerformer(LoopPerformer):
    """The low-level loop read through its event stream."""

    async def run(self, step: JsonObject, lane: str) -> Any:
        prompts = self.stage.messages(step["run"])
        abort = self.new_abort_handle()
        return await self._read(agent_loop(prompts, self.context, self.config, self.model, abort=abort))

    async def continue_(self, step: JsonObject, lane: str) -> Any:
        abort = self.new_abort_handle()
        return await self._read(agent_loop_continue(self.context, self.config, self.model, abort=abort))

    async def _read(self, opened: Any) -> Any:
        async with opened as stream:
            async for event in stream:
                await self.sink(event)
            return await stream.result()


def stream_options(options: JsonObject) -> StreamOptions:
    delay = options.get("maxRetryDelayMs")
    return StreamOptions(
        api_key=options.get("apiKey"),
        session_id=options.get("sessionId"),
        thinking_budgets=options.get("thinkingBudgets"),
        max_retry_delay=None if delay is None else delay / 1000,
    )


PERFORMERS: dict[str, Callable[[Stage], Performer]] = {
    "agent": AgentPerformer,
    "loop": LoopPerformer,
    "stream": StreamPerformer,
}
