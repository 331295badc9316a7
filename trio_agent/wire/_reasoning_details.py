"""ReasoningDetails: what OpenRouter sends about reasoning and wants back, unchanged, with the next request."""

from __future__ import annotations

from typing import Final

import msgspec

from trio_agent._messages import JsonObject, JsonValue
from trio_agent.wire._json import as_list, as_object, quote

__all__ = ["ReasoningDetails", "read_details"]

_PAYLOADS: Final = {"reasoning.summary": "summary", "reasoning.text": "text", "reasoning.encrypted": "data"}


class ReasoningDetails:
    """Gathers the details of an answer; fragments of one text are joined."""

    __slots__ = ("_details", "_texts")

    def __init__(self) -> None:
        self._details: list[JsonObject] = []
        self._texts: list[list[str]] = []

    def __bool__(self) -> bool:
        return bool(self._details)

    def add(self, details: JsonValue) -> str:
        """Take the details of one chunk.

        Returns:
            What of them is readable.
        """
        readable = ""
        for detail in _valid(details):
            payload = _PAYLOADS[detail["type"]]
            text: str = detail[payload]
            if payload == "data" or not self._continues(detail):
                self._details.append(detail)
                self._texts.append([text])
            else:
                self._texts[-1].append(text)
                # The signature of a text comes with its last fragment.
                self._details[-1].update({key: value for key, value in detail.items() if value is not None})
            if payload != "data":
                readable += text
        return readable

    def _continues(self, detail: JsonObject) -> bool:
        if not self._details:
            return False
        last = self._details[-1]
        return last["type"] == detail["type"] and all(
            last.get(key) is None or detail.get(key) is None or last[key] == detail[key] for key in ("id", "index")
        )

    def signature(self) -> str | None:
        """All details as a JSON array, which is what the thinking block keeps; ``None`` if there are none."""
        if not self._details:
            return None
        for detail, texts in zip(self._details, self._texts, strict=True):
            detail[_PAYLOADS[detail["type"]]] = "".join(texts)
        return quote(self._details)


def read_details(signature: str) -> list[JsonObject] | None:
    """The details in a thinking signature; ``None`` if it is one of another kind."""
    if not signature.startswith("["):
        return None
    try:
        value = msgspec.json.decode(signature)
    except msgspec.DecodeError:
        return None
    details = _valid(value)
    return details if details and len(details) == len(value) else None


def _valid(details: JsonValue) -> list[JsonObject]:
    objects = [as_object(detail) for detail in as_list(details)]
    return [detail for detail in objects if isinstance(detail.get(_PAYLOADS.get(str(detail.get("type")), "")), str)]
