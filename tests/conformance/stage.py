"""The stage: what the parts of one performance share."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import trio

from trio_agent import Agent, Context, Hooks, ImageContent, Subscription, Tool
from trio_agent.lowlevel import AbortHandle

from .recorder import Recorder
from .scenario import JsonObject
from .values import role_of, to_message, to_messages, to_model

__all__ = ["Stage"]


class Stage:
    """One scenario while it is played.

    Args:
        script: the input of the scenario.
        background: for work of tools that outlives their calls.
        jitter: source of extra scheduling points; ``None`` for none.
    """

    def __init__(self, script: JsonObject, background: trio.Nursery, jitter: random.Random | None) -> None:
        self.input = script
        self.recorder = Recorder(script.get("observe", {}))
        self.background = background
        self.agent: Agent | None = None
        self.watcher: Callable[[Any], Awaitable[None]] | None = None
        self.abort_handle: AbortHandle | None = None
        self.hooks = Hooks()
        self.tools: dict[str, Tool] = {}
        self.listeners: dict[str, Callable[[Any], Awaitable[None]]] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.definitions: JsonObject = script.get("tools", {})
        self.options: JsonObject = script.get("options", {})
        self.model = to_model(script.get("model", "model-a"))
        self.first_messages = self.messages(script.get("messages", ()))
        self._jitter = jitter

    async def pause(self) -> None:
        """Pass some extra checkpoints: an observation must not depend on how many there are."""
        if self._jitter is not None:
            for _ in range(self._jitter.randrange(3)):
                await trio.lowlevel.checkpoint()

    @property
    def first_tools(self) -> tuple[Tool, ...]:
        """The tools that can be run at the start."""
        return self.tools_of(self.input.get("use", self.definitions))

    def tools_of(self, keys: Iterable[str]) -> tuple[Tool, ...]:
        return tuple([self.tools[key] for key in keys])

    def message(self, value: str | JsonObject) -> Any:
        return to_message(value, self.definitions)

    def messages(self, values: Iterable[str | JsonObject]) -> list[Any]:
        return to_messages(values, self.definitions)

    def context(self) -> Context:
        """What a nested call sees: the state of the agent, or the context that the low-level loop was given."""
        if self.agent is None:
            return Context(messages=self.first_messages, tools=self.first_tools)
        return Context(messages=self.agent.state.messages, tools=self.agent.state.tools)

    def last_answer(self) -> Any | None:
        answers = [message for message in self.context().messages if role_of(message) == "assistant"]
        return answers[-1] if answers else None

    def subscribe(self, name: str) -> None:
        assert self.agent is not None
        self.subscriptions[name] = self.agent.subscribe(self.listeners[name])

    def unsubscribe(self, name: str) -> None:
        self.subscriptions.pop(name).close()

    async def run_agent(self, prompt: Any = None, *, images: Sequence[ImageContent] = ()) -> None:
        """Prompt the agent, or let it continue, in the way in which this performance is watched."""
        assert self.agent is not None
        if self.watcher is not None:
            async with self.agent.run(prompt, images=images) as run:
                async for event in run:
                    await self.watcher(event)
        elif prompt is None:
            await self.agent.continue_()
        else:
            await self.agent.prompt(prompt, images=images)

    def abort(self) -> None:
        if self.agent is not None:
            self.agent.abort()
        elif self.abort_handle is not None:
            self.abort_handle.abort()
