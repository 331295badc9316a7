"""What a run reads and writes: contexts, views of a growing transcript, and the replay of its system messages.

Pure functions and small values. A transcript only grows during a run, so a prefix of it is a snapshot that costs
nothing: everything that is handed to hooks and models is such a view. System messages declare, the newest last, what
the model is told and which tools it may call; the functions here replay them and write the difference to the tools that
can be run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar, cast, overload

import msgspec

from trio_agent._errors import TranscriptError
from trio_agent._messages import (
    AgentMessage,
    AssistantMessage,
    Message,
    SystemMessage,
    TextContent,
    ToolDeclaration,
    ToolRemoval,
    ToolResultMessage,
    UserMessage,
)

if TYPE_CHECKING:
    from trio_agent._tools import Tool

__all__ = ["Context", "Replay", "View", "default_convert_to_llm", "replay"]

T = TypeVar("T")

LLM_MESSAGES = (SystemMessage, UserMessage, AssistantMessage, ToolResultMessage)


class View(Sequence[T], Generic[T]):
    """The first items of a list that only grows: a snapshot that copies nothing."""

    __slots__ = ("_items", "_length")

    def __init__(self, items: list[T]) -> None:
        self._items = items
        self._length = len(items)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple([self._items[i] for i in range(*index.indices(self._length))])
        if -self._length <= index < self._length:
            return self._items[index if index >= 0 else index + self._length]
        raise IndexError("message index out of range")

    def __iter__(self) -> Iterator[T]:
        items = self._items
        for index in range(self._length):
            yield items[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (View, list, tuple)):
            items = cast("Sequence[object]", other)
            return len(self) == len(items) and all(a == b for a, b in zip(self, items, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"View({list(self)!r})"

    def is_all_of(self, items: list[T]) -> bool:
        """Whether this is the whole of that very list."""
        return self._items is items and self._length == len(items)


class Context(msgspec.Struct, frozen=True):
    """What a run works on.

    Attributes:
        messages: the transcript; never modified.
        tools: what can be run. What the model may call is declared by the transcript's system messages; the loop writes
            the difference.
    """

    messages: Sequence[AgentMessage] = ()
    tools: Sequence[Tool] = ()


class Replay(msgspec.Struct):
    """What the system messages of a transcript say up to a point.

    Attributes:
        contents: contents that are not empty, in order.
        sections: named parts in the order of their first appearance; a removed one is ``None``.
        declared: the tools that may be called, by name.
    """

    contents: list[str] = msgspec.field(default_factory=list[str])
    sections: dict[str, str | None] = msgspec.field(default_factory=dict[str, "str | None"])
    declared: dict[str, ToolDeclaration] = msgspec.field(default_factory=dict[str, ToolDeclaration])

    @property
    def system_prompt(self) -> str:
        """The contents, then the sections, with an empty line between any two."""
        return "\n\n".join([*self.contents, *(text for text in self.sections.values() if text)])

    @property
    def tools(self) -> tuple[ToolDeclaration, ...]:
        """The declarations in the order in which they were made."""
        return tuple(self.declared.values())

    def apply(self, message: SystemMessage) -> None:
        """Take one more system message into account: removals first, then additions."""
        content = message.content
        text = content if isinstance(content, str) else "".join([block.text for block in content])
        if text:
            self.contents.append(text)
        if message.sections:
            self.sections.update(message.sections)
        for removal in message.tools_removed or ():
            self.declared.pop(removal.name, None)
        for declaration in message.tools_added or ():
            self.declared[declaration.name] = declaration

    def copy(self) -> Replay:
        """An independent copy."""
        return Replay(list(self.contents), dict(self.sections), dict(self.declared))


def replay(messages: Iterable[AgentMessage]) -> Replay:
    """Replay the system messages among ``messages``.

    Returns:
        The system prompt and the declared tools as they are after the last message.
    """
    state = Replay()
    for message in messages:
        if type(message) is SystemMessage:
            state.apply(message)
    return state


def declaration_changes(
    declared: dict[str, ToolDeclaration], wanted: Iterable[ToolDeclaration]
) -> tuple[tuple[ToolDeclaration, ...], tuple[ToolRemoval, ...]]:
    """What must be added and removed so that exactly ``wanted`` is declared; a redefinition is both."""
    by_name = {declaration.name: declaration for declaration in wanted}
    added = tuple([d for name, d in by_name.items() if (old := declared.get(name)) is not d and old != d])
    changed = {declaration.name for declaration in added}
    removed = tuple([ToolRemoval(name=name) for name in declared if name not in by_name or name in changed])
    return added, removed


def with_declarations(
    message: SystemMessage | None,
    added: tuple[ToolDeclaration, ...],
    removed: tuple[ToolRemoval, ...],
    timestamp: int,
) -> SystemMessage:
    """The system message that makes the changes: the given one extended, or a new one without content."""
    if message is None:
        return SystemMessage(content="", timestamp=timestamp, tools_added=added or None, tools_removed=removed or None)
    return msgspec.structs.replace(
        message,
        tools_added=(*(message.tools_added or ()), *added) or None,
        tools_removed=(*(message.tools_removed or ()), *removed) or None,
    )


def baseline(state: Replay, timestamp: int) -> SystemMessage | None:
    """One system message that says all that ``state`` says, or ``None`` if it says nothing."""
    prompt = state.system_prompt
    if not prompt and not state.declared:
        return None
    return SystemMessage(content=prompt, timestamp=timestamp, tools_added=state.tools or None)


def default_convert_to_llm(messages: Iterable[AgentMessage]) -> list[Message]:
    """The messages that models understand, the others left out."""
    return [message for message in messages if isinstance(message, LLM_MESSAGES)]


def last_spoken(messages: Sequence[AgentMessage]) -> AgentMessage | None:
    """The last message that is not a system message."""
    for message in reversed(messages):
        if type(message) is not SystemMessage:
            return message
    return None


def check_can_continue(messages: Sequence[AgentMessage]) -> None:
    """Refuse a transcript that has nothing to answer.

    Raises:
        TranscriptError: there is no message but system messages, or the last one is the assistant's.
    """
    last = last_spoken(messages)
    if last is None:
        raise TranscriptError("cannot continue: the transcript has no message to answer; prompt the agent instead")
    if type(last) is AssistantMessage:
        raise TranscriptError(
            "cannot continue: the last message is the assistant's, so there is nothing to answer; "
            "prompt the agent, or steer it first"
        )


def text_content(text: str) -> tuple[TextContent, ...]:
    """A text as the content of a message."""
    return (TextContent(text=text),)
