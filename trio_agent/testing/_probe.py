"""Probe: what an agent asks of its surroundings, and whether it does so after it was told to stop.

It takes the place of the agent's stream function, its hooks, its tools' bodies, its two methods that queue messages and
``abort``; each notes the call and passes it on. That reaches below the public doors, on purpose: a sweep must see what
tools and hooks see, without asking their authors to instrument them.
"""

# pyright: reportPrivateUsage=false
# A sweep looks at what has no public door, and must not give it one.

from __future__ import annotations

import dataclasses
import functools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from trio_agent._agent import Agent
from trio_agent._hooks import Hooks
from trio_agent._messages import AgentMessage, SystemMessage
from trio_agent._models import Model, StreamOptions
from trio_agent._stream_events import AssistantMessageEvent
from trio_agent._stream_fn import StreamFn, get_default_stream_fn
from trio_agent._tool_body import is_async
from trio_agent._tool_type import Tool
from trio_agent._transcript import Context

__all__ = ["Probe"]


class Probe:
    """Watches one agent.

    Args:
        agent: from now on.

    Attributes:
        stopped: whether the agent was told to abort its run, by whomever.
        late: what was asked for after that.
    """

    def __init__(self, agent: Agent) -> None:
        self.stopped = False
        self.late: list[str] = []
        self._agent = agent
        self._queued: dict[str, list[AgentMessage]] = {
            "steering": list(agent.queued_steering),
            "follow-up": list(agent.queued_follow_ups),
        }
        self._stream_fn = agent._stream_fn or get_default_stream_fn()
        agent._stream_fn = self._ask_model
        agent.tools = [self._watched_tool(tool) for tool in agent.tools]
        agent.hooks = self._watched_hooks(agent.hooks)
        agent.abort = self._noting_abort(agent.abort)  # type: ignore[method-assign]
        for name, queued in (("steer", self._queued["steering"]), ("follow_up", self._queued["follow-up"])):
            setattr(agent, name, _appending(getattr(agent, name), functools.partial(self._waiting, name), queued))
        for name in ("clear_steering", "clear_follow_ups", "reset"):
            setattr(agent, name, _forgetting(getattr(agent, name), self._queued))

    def replace_stream_fn(self, stream_fn: StreamFn) -> None:
        """From now on, this one answers."""
        self._stream_fn = stream_fn

    def check_queues(self) -> None:
        """Check that every message that was ever queued is in the transcript or still in its queue, once, and in order.

        Raises:
            AssertionError: it is not.
        """
        transcript = list(self._agent.messages)
        waiting = {"steering": self._agent.queued_steering, "follow-up": self._agent.queued_follow_ups}
        for name, queued in self._queued.items():
            found = [message for message in [*transcript, *waiting[name]] if _is_one_of(message, queued)]
            if [id(message) for message in found] != [id(message) for message in queued if _is_tracked(message)]:
                raise AssertionError(
                    f"{name} messages were lost, doubled or reordered: queued {queued}, "
                    f"found in the transcript and then in the queue {found}"
                )

    def _waiting(self, method: str) -> Sequence[AgentMessage]:
        return self._agent.queued_steering if method == "steer" else self._agent.queued_follow_ups

    def _noting_abort(self, abort: Callable[[], None]) -> Callable[[], None]:
        def noting() -> None:
            self.stopped |= self._agent.is_running
            abort()

        return noting

    def _note(self, what: str) -> None:
        if self.stopped:
            self.late.append(what)

    def _ask_model(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> AbstractAsyncContextManager[AsyncIterator[AssistantMessageEvent]]:
        self._note("a request")
        return self._stream_fn(model, context, options)

    def _watched_tool(self, tool: Tool) -> Tool:
        return tool.wrapped(functools.partial(self._noting, what=f"the body of tool {tool.name!r}"))

    def _watched_hooks(self, hooks: Hooks) -> Hooks:
        changes = {
            field.name: self._noting(hook, f"hook {field.name}")
            for field in dataclasses.fields(Hooks)
            # The one hook that is asked after an abort, too.
            if field.name != "finish_turn" and (hook := getattr(hooks, field.name)) is not None
        }
        return dataclasses.replace(hooks, **changes)

    def _noting(self, function: Callable[..., Any], what: str) -> Callable[..., Any]:
        if is_async(function):

            @functools.wraps(function)
            async def noting(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
                self._note(what)
                return await function(*args, **kwargs)

            return noting

        @functools.wraps(function)
        def noting_plain(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            self._note(what)
            return function(*args, **kwargs)

        return noting_plain


def _appending(
    method: Callable[[str | AgentMessage], None],
    waiting: Callable[[], Sequence[AgentMessage]],
    queued: list[AgentMessage],
) -> Callable[[str | AgentMessage], None]:
    def append(message: str | AgentMessage) -> None:
        method(message)
        queued.append(waiting()[-1])

    return append


def _forgetting(method: Callable[[], None], queued: dict[str, list[AgentMessage]]) -> Callable[[], None]:
    # What was thrown away on purpose is not lost; which of it had been taken before is no longer known.
    def forget() -> None:
        method()
        for messages in queued.values():
            messages.clear()

    return forget


def _is_tracked(message: AgentMessage) -> bool:
    # A system message may be given declarations on its way in and is then another one.
    return not isinstance(message, SystemMessage)


def _is_one_of(message: AgentMessage, queued: Sequence[AgentMessage]) -> bool:
    return _is_tracked(message) and any(message is other for other in queued)
