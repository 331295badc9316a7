"""What a conversation begins or goes on with, in the forms that users give it, made into messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from trio_agent._clock import timestamp_ms
from trio_agent._messages import AgentMessage, ImageContent, SystemMessage, TextContent, UserContent, UserMessage
from trio_agent._text import clean_text
from trio_agent._tools import Tool

__all__ = ["Prompt", "as_message", "as_messages", "with_head"]

Prompt: TypeAlias = str | AgentMessage | list[AgentMessage] | tuple[AgentMessage, ...]
"""What a run begins with: a text, a message, or messages in order."""


def as_message(message: str | AgentMessage) -> AgentMessage:
    """A message for a queue."""
    if isinstance(message, str):
        return UserMessage(content=clean_text(message), timestamp=timestamp_ms())
    return message


def as_messages(prompt: Prompt, images: Sequence[ImageContent]) -> list[AgentMessage]:
    """The messages of a prompt.

    Raises:
        ValueError: the prompt is empty, or images come with messages.
    """
    if isinstance(prompt, str):
        content: tuple[UserContent, ...] = (TextContent(text=clean_text(prompt)), *images)
        return [UserMessage(content=content, timestamp=timestamp_ms())]
    if images:
        raise ValueError("images go with a text; put the blocks into the messages instead")
    if isinstance(prompt, list | tuple):
        messages: list[AgentMessage] = list(prompt)
        if not messages:
            raise ValueError("an empty prompt has nothing to answer; call continue_() to go on without a prompt")
        return messages
    return [prompt]


def with_head(system_prompt: str, tools: Sequence[Tool], messages: Sequence[AgentMessage]) -> list[AgentMessage]:
    """A transcript that a system message leads, with the prompt and the tools, unless it has one or needs none."""
    declarations = tuple([tool.declaration for tool in tools]) or None
    if (messages and isinstance(messages[0], SystemMessage)) or not (system_prompt or declarations):
        return list(messages)
    return [SystemMessage(content=system_prompt, timestamp=0, tools_added=declarations), *messages]
