"""From the values of the library to the JSON of an observation.

Only what the format defines is kept: no timestamps, no usage of answers, no durations, no wording that the library may
choose. The rules of :func:`level_results` hold for both sides, so the comparison applies them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from trio_agent import MessageUpdate

from .scenario import JsonObject
from .values import role_of

__all__ = ["ABORTED", "Normaliser", "level_results", "plain"]

ABORTED: Final = "<aborted>"

_FAILED: Final = ("error", "aborted")
_FREE_WORDING: Final = re.compile(r'Validation failed for tool "[^"]*"|Tool call "[^"]*" was not executed')


class Normaliser:
    """Makes JSON of messages, events and states.

    Args:
        observe: what a scenario wants to see beyond the default.
    """

    def __init__(self, observe: JsonObject) -> None:
        self._levels = observe.get("thinkingLevel", False)
        self._declarations = observe.get("toolDeclarations", False)
        self._validation = observe.get("validationText", False)

    def message(self, message: Any) -> JsonObject:
        raw: JsonObject = plain(message)
        if raw["role"] == "assistant":
            return self._assistant(raw)
        raw.pop("timestamp", None)
        if raw["role"] == "system":
            self._shorten_tools(raw)
        if "durationMs" in raw:
            raw["durationMs"] = "*"
        shown: JsonObject = self.texts(raw)
        return shown

    def messages(self, messages: Iterable[Any]) -> list[JsonObject]:
        return [self.message(message) for message in messages]

    def _assistant(self, raw: JsonObject) -> JsonObject:
        failed = raw["stopReason"] in _FAILED
        shown: JsonObject = {
            "role": "assistant",
            "content": _without_empty_text(raw["content"]) if failed else raw["content"],
            "stopReason": raw["stopReason"],
        }
        if "errorMessage" in raw:
            shown["errorMessage"] = ABORTED if raw["stopReason"] == "aborted" else raw["errorMessage"]
        if self._levels and "thinkingLevel" in raw:
            shown["thinkingLevel"] = raw["thinkingLevel"]
        return shown

    def _shorten_tools(self, raw: JsonObject) -> None:
        if "toolsRemoved" in raw:
            raw["toolsRemoved"] = [tool["name"] for tool in raw["toolsRemoved"]]
        if "toolsAdded" in raw:
            raw["toolsAdded"] = self.declarations(raw["toolsAdded"])

    def declarations(self, tools: Iterable[Any]) -> list[Any]:
        """Names of declared tools, or the whole declarations where a scenario wants them."""
        raw: list[JsonObject] = plain(list(tools))
        return raw if self._declarations else [tool["name"] for tool in raw]

    def opening(self, message: Any) -> JsonObject:
        """A message of which only role and content are known yet."""
        raw = plain(message)
        shown = {key: raw[key] for key in ("role", "content") if key in raw}
        if isinstance(shown.get("content"), list):
            shown["content"] = _without_empty_text(shown["content"])
        return shown

    def result(self, result: Any) -> JsonObject:
        """The result of a tool, also a partial one."""
        shown: JsonObject = self.texts(plain(result))
        return shown

    def event(self, event: Any) -> JsonObject:
        if isinstance(event, MessageUpdate):
            return self._update(event)
        raw: JsonObject = plain(event)
        if raw["type"] == "message_start" and raw["message"]["role"] == "assistant":
            raw["message"] = self.opening(event.message)
        elif raw.get("message") is not None:
            raw["message"] = self.message(event.message)
        for key, messages in (("messages", "messages"), ("toolResults", "tool_results")):
            if key in raw:
                raw[key] = self.messages(getattr(event, messages))
        if "durationMs" in raw:
            raw["durationMs"] = "*"
        shown: JsonObject = self.texts(raw)
        return shown

    def _update(self, event: MessageUpdate) -> JsonObject:
        raw = plain(event.assistant_message_event)
        kept = ("type", "contentIndex", "delta", "content", "toolCall")
        return {
            "type": "message_update",
            "update": {key: raw[key] for key in kept if key in raw},
            "content": plain(event.message.content),
        }

    def state(self, state: Any) -> JsonObject:
        """An agent's state, with the number of its messages."""
        streaming = state.streaming_message
        return {
            "isStreaming": state.is_streaming,
            "streamingMessage": None if streaming is None else self.opening(streaming),
            "pendingToolCalls": list(state.pending_tool_calls),
            "errorMessage": _error_of(state),
            "messages": len(state.messages),
        }

    def texts(self, value: Any) -> Any:
        """Cut texts whose rest the library words itself."""
        if isinstance(value, dict):
            return {key: self._text(item) if key == "text" else self.texts(item) for key, item in value.items()}
        return [self.texts(item) for item in value] if isinstance(value, list) else value

    def _text(self, text: Any) -> Any:
        found = _FREE_WORDING.match(text) if isinstance(text, str) else None
        if found is None or (self._validation and text.startswith("Validation")):
            return text
        return found[0]


def _error_of(state: Any) -> str | None:
    if state.error_message is None:
        return None
    answers = [message for message in state.messages if role_of(message) == "assistant"]
    aborted = answers and answers[-1].stop_reason == "aborted" and answers[-1].error_message == state.error_message
    return ABORTED if aborted else str(state.error_message)


def _without_empty_text(content: list[JsonObject]) -> list[JsonObject]:
    return [block for block in content if block != {"type": "text", "text": ""}]


def plain(value: Any) -> Any:
    """The value as its JSON reads."""
    return msgspec.json.decode(msgspec.json.encode(value))


def level_results(value: Any) -> Any:
    """Write results in one way: content is always there, flags only when set."""
    if isinstance(value, list):
        return [level_results(item) for item in value]
    if not isinstance(value, dict):
        return value
    levelled = {key: level_results(item) for key, item in value.items()}
    for key in ("result", "partialResult"):
        if isinstance(levelled.get(key), dict):
            levelled[key] = _level(levelled[key])
    return levelled


def _level(result: JsonObject) -> JsonObject:
    flags = ("isError", "terminate")
    return {"content": [], **{key: item for key, item in result.items() if key not in flags or item}}
