"""What the body of a tool returned, made into a result for the model.

Pure values in and out. Whatever leaves here can be sent: text is valid Unicode and of bounded length, JSON is JSON, and
``content`` is a tuple of blocks. ``_tools.py`` is above.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Sequence
from typing import Final, cast

import msgspec
from msgspec import UNSET

from trio_agent._agent_events import ToolResult
from trio_agent._json_schema import encode_extra
from trio_agent._json_values import is_object
from trio_agent._messages import ImageContent, JsonValue, TextContent, ToolResultContent
from trio_agent._output import Output
from trio_agent._text import clean_text, truncated

__all__ = ["MAX_RESULT_CHARS", "ResultRules", "image"]

logger = logging.getLogger("trio_agent")

MAX_RESULT_CHARS: Final = 51_200
"""Characters of text that a result may have, unless its tool says otherwise."""

_BLOCK_LIKE: Final[tuple[type, ...]] = (TextContent, ImageContent, bytes, bytearray, memoryview)
_NO_OUTPUT: Final = "(no output)"
_MAGIC: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def image(data: bytes, mime_type: str | None = None) -> ImageContent:
    """An image for the result of a tool.

    Args:
        data: the file as it is.
        mime_type: such as ``image/png``; if not given, told from the first bytes of a PNG, JPEG, GIF or WebP.

    Raises:
        ValueError: no type is given and the data is none of these.
    """
    found = mime_type or _image_type(data)
    if found is None:
        raise ValueError("the data is no PNG, JPEG, GIF or WebP; say what it is, such as image(data, 'image/bmp')")
    return ImageContent(data=base64.b64encode(data).decode(), mime_type=found)


def _image_type(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime_type for magic, mime_type in _MAGIC.items() if data.startswith(magic)), None)


class ResultRules(msgspec.Struct, frozen=True):
    """How what a tool returns becomes its result.

    Attributes:
        tool_name: for errors.
        output: what is promised about structured results.
        max_chars: of text; ``None`` for no bound.
        terminate: successful results say that no further request is needed.
    """

    tool_name: str
    output: Output | None = None
    max_chars: int | None = MAX_RESULT_CHARS
    terminate: bool = False

    def result(self, value: object) -> ToolResult:
        """Make the result.

        Raises:
            TypeError: the value is neither text, blocks nor JSON.
        """
        max_chars = self.max_chars
        if (
            type(value) is str
            and self.output is None
            and (max_chars is None or len(value) <= max_chars)
            and value.isascii()
        ):
            # Nearly every result: nothing to convert, to check or to cut.
            return ToolResult((TextContent(text=value),), {}, terminate=self.terminate)
        if isinstance(value, str) and self.output is None:
            return self._of_text(value if type(value) is str else str.__str__(value))
        if isinstance(value, ToolResult):
            return self._of_result(value)
        if value is None and self.output is None:
            return self._of_text(_NO_OUTPUT)
        blocks = self._blocks(value)
        return self._of_json(value) if blocks is None else self._of_blocks(blocks)

    def _of_text(self, text: str) -> ToolResult:
        return self._of_blocks((TextContent(text=text),))

    def _of_blocks(self, blocks: tuple[ToolResultContent, ...], structured: JsonValue = UNSET) -> ToolResult:
        return ToolResult(self._sendable(blocks), {}, structured, terminate=self.terminate)

    def _of_json(self, value: object) -> ToolResult:
        structured, text = self._json(value, "returned")
        if failure := self._broken_promise(structured):
            return failure
        if structured is None:
            text = _NO_OUTPUT
        elif isinstance(structured, str):
            text = structured
        return self._of_blocks((TextContent(text=text),), structured)

    def _of_result(self, result: ToolResult) -> ToolResult:
        details, structured = result.details, result.structured_content
        if structured is not UNSET:
            structured, _ = self._json(structured, "returned structured_content with")
            if not result.is_error and (failure := self._broken_promise(structured)):
                return failure
        content = result.content
        return ToolResult(
            self._sendable(self._all_blocks((content,) if isinstance(content, str) else content)),
            {} if details is UNSET else self._details(details),
            structured,
            result.is_error,
            result.terminate or (self.terminate and not result.is_error),
            result.usage,
        )

    def _details(self, details: object) -> JsonValue:
        # They are for people and programs, never for the model: what a tool found is not lost because of them.
        try:
            return self._json(details, "returned details with")[0]
        except TypeError as exc:
            logger.warning("the details are left out: %s", exc)
            return {}

    def _blocks(self, value: object) -> tuple[ToolResultContent, ...] | None:
        # `None` if the value is meant as JSON.
        if isinstance(value, _BLOCK_LIKE):
            alone: list[object] = [value]
            return self._all_blocks(alone)
        if isinstance(value, list | tuple):
            items = cast("Sequence[object]", value)
            if any(isinstance(item, _BLOCK_LIKE) for item in items):
                return self._all_blocks(items)
        return None

    def _all_blocks(self, items: Sequence[object]) -> tuple[ToolResultContent, ...]:
        return tuple([self._block(item) for item in items])

    def _block(self, item: object) -> ToolResultContent:
        if isinstance(item, TextContent | ImageContent):
            return item
        if isinstance(item, str):
            return TextContent(text=item)
        if isinstance(item, bytes | bytearray | memoryview):
            data = bytes(cast("bytes", item))
            return TextContent(text=data.decode(errors="replace")) if _image_type(data) is None else image(data)
        raise TypeError(
            f"tool {self.tool_name!r} returned a {type(item).__name__} among content blocks; "
            "use str, bytes, TextContent and ImageContent there, and structured_content for JSON"
        )

    def _broken_promise(self, structured: JsonValue) -> ToolResult | None:
        problems = self.output.problems(structured) if self.output is not None else ()
        if not problems:
            return None
        lines = "".join(f"\n  - {problem}" for problem in problems)
        text = f'Tool "{self.tool_name}" returned a result that does not fit its output schema:{lines}'
        return ToolResult(self._sendable((TextContent(text=text),)), {}, is_error=True)

    def _json(self, value: object, what: str) -> tuple[JsonValue, str]:
        # By way of the text: then it is JSON and nothing else, whatever it was made of.
        try:
            try:
                text = msgspec.json.encode(value, enc_hook=encode_extra)
            except UnicodeEncodeError:
                plain = msgspec.to_builtins(value, str_keys=True, enc_hook=encode_extra)
                text = msgspec.json.encode(_clean_json(plain))
        except TypeError as exc:
            raise TypeError(
                f"tool {self.tool_name!r} {what} a value that is no JSON ({exc}); "
                "return text, JSON values, dataclasses, msgspec.Struct, content blocks or a ToolResult"
            ) from exc
        return msgspec.json.decode(text), text.decode()

    def _sendable(self, blocks: tuple[ToolResultContent, ...]) -> tuple[ToolResultContent, ...]:
        sendable: list[ToolResultContent] = []
        left = self.max_chars
        for block in blocks:
            if isinstance(block, TextContent):
                text = clean_text(block.text)
                if left is not None:
                    text, left = truncated(text, left), max(0, left - len(text))
                sendable.append(block if text == block.text else TextContent(text=text))
            else:
                sendable.append(block)
        return tuple(sendable)


def _clean_json(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list | tuple):
        return [_clean_json(item) for item in cast("Sequence[JsonValue]", value)]
    if is_object(value):
        return {clean_text(key): _clean_json(item) for key, item in value.items()}
    return value
