"""Shows the events of a run to a person: text as it streams, tools as they work.

On a terminal the progress of the running tools is one line that is written over; elsewhere every line is written once.
Knows events only, neither agents nor models nor where the text goes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trio_agent import (
    AgentEvent,
    AssistantMessage,
    MessageEnd,
    MessageUpdate,
    TextContent,
    TextDelta,
    ToolCall,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
)

__all__ = ["TerminalView"]

_BAR: Final = 24
_CLEAR_LINE: Final = "\r\x1b[2K"
# What a model or a file says must not be able to move the cursor or worse.
_HARMLESS: Final = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


class _Group:
    """The calls of one answer to one tool."""

    def __init__(self) -> None:
        self.calls = 0
        self.ended = 0
        self.errors: list[str] = []
        self.title = ""

    def add(self, call: ToolCall) -> None:
        arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
        self.calls += 1
        self.title = f"{call.name}({arguments})" if self.calls == 1 else f"{call.name}, {self.calls} calls"

    def end(self, event: ToolExecutionEnd) -> None:
        self.ended += 1
        if event.is_error:
            content = event.result.content
            texts = [content] if isinstance(content, str) else [b.text for b in content if isinstance(b, TextContent)]
            self.errors.append(" ".join(texts))

    def progress(self) -> str:
        if self.calls == 1:
            return self.title
        full = _BAR * self.ended // self.calls
        return f"{self.title} [{'#' * full}{'-' * (_BAR - full)}] {self.ended}"

    def outcome(self) -> str:
        if self.errors:
            return f"{self.title}: {len(self.errors)} failed: {self.errors[0]}"
        return f"{self.title}: done" if self.ended == self.calls else f"{self.title}: {self.ended} done"


class TerminalView:
    """Writes runs as text, each from its first event on.

    Args:
        write: takes the text.
        columns: of the terminal, whose last line may be written over; ``None`` if it is none.
    """

    def __init__(self, write: Callable[[str], object], *, columns: int | None) -> None:
        self._write = write
        self._columns = columns
        self._in_line = False
        self._status = ""
        self._groups: dict[str, _Group] = {}

    def handle(self, event: AgentEvent) -> None:
        """Show one event."""
        match event:
            case MessageUpdate(assistant_message_event=TextDelta(delta=delta)):
                self.text(delta)
            case MessageEnd(message=AssistantMessage() as message):
                self._end_line()
                if message.error_message is not None:
                    self.line(f"! {message.stop_reason}: {message.error_message}")
                # The calls of a failed answer are never made.
                for call in message.tool_calls if message.stop_reason not in ("error", "aborted") else ():
                    self._groups.setdefault(call.name, _Group()).add(call)
            case ToolExecutionStart(tool_name=name):
                self._show(name)
            case ToolExecutionEnd(tool_name=name):
                self._groups[name].end(event)
                self._show(name)
            case TurnEnd():
                for group in self._groups.values():
                    self.line(f"  {group.outcome()}")
                self._groups = {}
            case _:
                pass

    def text(self, text: str) -> None:
        """Write text at the cursor."""
        if text := text.translate(_HARMLESS):
            self._put_status("")
            self._write(text)
            self._in_line = not text.endswith("\n")

    def line(self, text: str) -> None:
        """Write a line of its own."""
        self._put_status("")
        self._end_line()
        self._write(" ".join(text.translate(_HARMLESS).split("\n")) + "\n")

    def close(self) -> None:
        """Leave the cursor at the beginning of a free line."""
        self._put_status("")
        self._end_line()

    def _show(self, name: str) -> None:
        self._put_status(f"  {self._groups[name].progress()}".translate(_HARMLESS))

    def _put_status(self, status: str) -> None:
        if self._columns is None:
            return
        # A status that wraps could not be written over.
        status = status.replace("\n", " ")[: self._columns - 1]
        if status != self._status:
            self._end_line()
            self._write(_CLEAR_LINE + status)
            self._status = status

    def _end_line(self) -> None:
        if self._in_line:
            self._write("\n")
            self._in_line = False
