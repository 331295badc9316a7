"""A block of an answer while it grows, and how the argument text of a tool call is read.

The builder's material: it keeps which part came at which moment, so that the block can be shown as it was at any of
them. Which moves are legal is the builder's knowledge.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TypeAlias, cast

import msgspec

from trio_agent._messages import AssistantContent, JsonObject, TextContent, ThinkingContent, ToolCall
from trio_agent._stream_events import TextDelta, ThinkingDelta, ToolCallDelta

__all__ = ["Block", "Delta", "parse_arguments"]

Delta: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta

_NEVER = 1 << 62
_SHORT = 1024


def parse_arguments(text: str) -> tuple[JsonObject, str | None]:
    """Read the finished argument text of a call, once.

    Returns:
        The arguments, and why the text was no JSON object (the arguments are then ``{}``). An empty text and ``null``
        mean ``{}``.
    """
    stripped = text.strip()
    if not stripped or stripped == "null":
        return {}, None
    try:
        value = msgspec.json.decode(stripped)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as exc:
        return {}, f"the arguments are not valid JSON ({exc})"
    if not isinstance(value, dict):
        return {}, f"the arguments must be a JSON object, not {type(value).__name__}"
    return cast("JsonObject", value), None


class Block(msgspec.Struct):
    """A block that grows by parts, and can be shown as it was at any moment.

    Attributes:
        kind: the class of the deltas that it grows by.
        opened_at: the moment at which it was opened.
        sent_id: what the server calls the call; empty as long as it is not known.
        name: of the called tool.
        id: what we call it while it is open.
        closed_at: the moment from which on it is ``final``.
        final: its content, once it is closed.
        parts: what has arrived since the text was last read.
        moments: when each part arrived, also those that were read.
    """

    kind: type[Delta]
    opened_at: int
    sent_id: str = ""
    name: str = ""
    id: str = ""
    closed_at: int = _NEVER
    final: AssistantContent | None = None
    parts: list[str] = []
    moments: list[int] = []
    # Parts are joined when somebody reads: then `_text[:_ends[k]]` is what had arrived with the k-th part. There may be
    # very many blocks that nobody reads, so what is only for reading is made then.
    _text: str = ""
    _ends: list[int] | None = None
    _reading: tuple[int, JsonObject] | None = None

    def text_at(self, moment: int) -> str:
        """What had arrived."""
        ends = self._ends
        if ends is None:
            ends = self._ends = []
        if self.parts:
            end = len(self._text)
            for part in self.parts:
                end += len(part)
                ends.append(end)
            self._text += "".join(self.parts)
            self.parts.clear()
        known = bisect_right(self.moments, moment)
        return self._text[: ends[known - 1]] if known else ""

    def at(self, moment: int) -> AssistantContent:
        """The block as it was; the arguments of an open call are empty until they are complete."""
        if self.final is not None and self.closed_at <= moment:
            return self.final
        if self.kind is TextDelta:
            return TextContent(text=self.text_at(moment))
        if self.kind is ThinkingDelta:
            return ThinkingContent(thinking=self.text_at(moment))
        return ToolCall(id=self.id, name=self.name, arguments=_complete_arguments(self.text_at(moment)) or {})

    def arguments_at(self, moment: int) -> JsonObject:
        """A tolerant reading of a call's arguments as far as they had arrived.

        A text of up to 1024 characters is read as it is. Of a longer one up to an eighth is left out at the end, so
        that it is parsed anew only when it has grown by about as much, and reading at every delta stays linear.
        """
        text = self.text_at(moment)
        read = _tolerant_reader()
        length = len(text)
        if length > _SHORT and read is not _complete_arguments:
            length -= length % (1 << (length.bit_length() - 4))
        before, arguments = self._reading or (0, {})
        if length != before:
            last, read_now = arguments, read(text[:length])
            arguments = read_now if read_now is not None else last if before < length else {}
        self._reading = (length, arguments)
        return arguments


def _complete_arguments(text: str) -> JsonObject | None:
    # None while the text is no complete object. Most texts so far are not, and their last character says so.
    if not text.rstrip().endswith("}"):
        return None
    arguments, error = parse_arguments(text)
    return None if error else arguments


def _tolerant_reader() -> Callable[[str], JsonObject | None]:
    try:
        import jiter
    except ImportError:
        return _complete_arguments

    def read(text: str) -> JsonObject | None:
        try:
            value = jiter.from_json(text.encode("utf-8", "replace"), partial_mode="trailing-strings")
        except ValueError:
            return None
        return cast("JsonObject", value) if isinstance(value, dict) else {}

    return read
