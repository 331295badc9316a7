"""RunTranscript: what one run works on, and what the model is told of it.

A list of messages that only grows, the tools that can be run, and the replay of the system messages, kept up to date so
that neither a turn nor a request costs more in a long transcript than in a short one. Purely synchronous.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from trio_agent._clock import timestamp_ms
from trio_agent._errors import ToolDefinitionError
from trio_agent._messages import AgentMessage, Message, SystemMessage
from trio_agent._tools import Tool
from trio_agent._transcript import LLM_MESSAGES, Context, View, declaration_changes, replay, with_declarations

__all__ = ["Origin", "Pending", "RunTranscript", "tools_by_name"]

Origin: TypeAlias = Literal["steering", "follow_up"]


class Pending(msgspec.Struct):
    """A message on its way into the transcript.

    Attributes:
        message: what will be in the transcript.
        origin: the queue it was taken from.
        original: what goes back to the queue if the message does not arrive.
    """

    message: AgentMessage
    origin: Origin | None = None
    original: AgentMessage | None = None


class RunTranscript:
    """The transcript of one run.

    Attributes:
        new: all that the run has added.
        tools: that can be run, by name.
        tools_in_order: the same, as they were given.
    """

    __slots__ = ("_converted", "_declared", "_llm", "_messages", "_replay", "new", "tools", "tools_in_order")

    def __init__(self, context: Context) -> None:
        self.new: list[AgentMessage] = []
        self._set_messages(context.messages)
        self._set_tools(context.tools)

    def _set_messages(self, messages: Sequence[AgentMessage]) -> None:
        self._messages = list(messages)
        self._replay = replay(self._messages)
        self._llm: list[Message] = []
        self._converted = 0
        self._declared = False

    def _set_tools(self, tools: Sequence[Tool]) -> None:
        self.tools_in_order = tuple(tools)
        self.tools = tools_by_name(self.tools_in_order)
        self._declared = False

    @property
    def context(self) -> Context:
        """A snapshot; copies nothing."""
        return Context(View(self._messages), self.tools_in_order)

    def replace(self, context: Context) -> None:
        """Go on with other messages and tools; what the run has added so far stays added."""
        messages = context.messages
        if not (isinstance(messages, View) and messages.is_all_of(self._messages)):
            self._set_messages(messages)
        if context.tools is not self.tools_in_order:
            self._set_tools(context.tools)

    def append(self, message: AgentMessage) -> None:
        """Add a message of this run."""
        self._messages.append(message)
        self.new.append(message)
        if type(message) is SystemMessage:
            self._replay.apply(message)
            self._declared = False

    def declare(self, pending: Sequence[Pending]) -> list[Pending]:
        """Make the messages that are about to be added declare exactly the tools that can be run.

        The difference joins the last system message among them, or becomes a system message in front of them. Costs
        nothing when neither tools nor declarations have changed.
        """
        result = list(pending)
        systems = [index for index, item in enumerate(result) if type(item.message) is SystemMessage]
        if self._declared and not systems:
            return result
        state = self._replay.copy()
        for index in systems:
            message = result[index].message
            assert type(message) is SystemMessage
            state.apply(message)
        added, removed = declaration_changes(state.declared, [tool.declaration for tool in self.tools_in_order])
        self._declared = True
        if not added and not removed:
            return result
        if not systems:
            return [Pending(with_declarations(None, added, removed, timestamp_ms())), *result]
        last = result[systems[-1]]
        assert type(last.message) is SystemMessage
        message = with_declarations(last.message, added, removed, timestamp_ms())
        result[systems[-1]] = Pending(message, last.origin, last.original)
        return result

    def for_llm(self) -> View[Message]:
        """A snapshot of the messages that models understand; only what is new since the last time is looked at."""
        messages, llm = self._messages, self._llm
        for index in range(self._converted, len(messages)):
            message = messages[index]
            if isinstance(message, LLM_MESSAGES):
                llm.append(message)
        self._converted = len(messages)
        return View(llm)


def tools_by_name(tools: Sequence[Tool]) -> dict[str, Tool]:
    """Index tools by their names.

    Raises:
        ToolDefinitionError: two have the same name.
    """
    by_name = {tool.name: tool for tool in tools}
    if len(by_name) < len(tools):
        names = [tool.name for tool in tools]
        twice = next(name for name in names if names.count(name) > 1)
        raise ToolDefinitionError(f"two tools are named {twice!r}; give one of them another name")
    return by_name
