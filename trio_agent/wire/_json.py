"""JSON as servers send it and as they take it.

In Python a JSON text may be refused, or may smuggle in what no later request can be encoded with, in ways that
JavaScript, for which most servers were written, never notices: unpaired surrogates, raw control characters, ``NaN``.
Reading goes through msgspec; only what it refuses takes the slow way. Writing likewise.
"""

from __future__ import annotations

import json
import re
from typing import TypeGuard, TypeVar, cast

import msgspec

from trio_agent._block import parse_arguments
from trio_agent._errors import RemoteProtocolError
from trio_agent._messages import JsonObject, JsonValue

__all__ = [
    "as_list",
    "as_object",
    "as_text",
    "decode_event",
    "encode",
    "finish_arguments",
    "quote",
    "repair",
    "scrub",
    "scrub_text",
]

_T = TypeVar("_T")
_SURROGATE = re.compile("[\ud800-\udfff]")
_STRING = re.compile(r'"[^"\\]*(?:\\[\s\S][^"\\]*)*(?:"|\\?\Z)')
_FAULT = re.compile(r'[\x00-\x1f]|\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])|\\')
_SHORT_ESCAPES = {"\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
_RECEIVED_LIMIT = 4000


def decode_event(data: bytes, decoder: msgspec.json.Decoder[_T]) -> _T:
    """Read the data of one event.

    Raises:
        RemoteProtocolError: it is not JSON, even with its strings repaired, or not of the decoder's type.
    """
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, RecursionError):
        value = _decode_leniently(data.decode("utf-8", "replace"))
    try:
        return _convert(value, decoder)
    except (msgspec.ValidationError, RecursionError) as exc:
        raise RemoteProtocolError(f"the server sent an event of an unknown shape ({exc})") from exc


def _convert(value: JsonValue, decoder: msgspec.json.Decoder[_T]) -> _T:
    try:
        return cast("_T", msgspec.convert(value, decoder.type, strict=False))
    except UnicodeEncodeError:
        # Half a surrogate pair where msgspec has to compare a string, in a key or for another type.
        return cast("_T", msgspec.convert(scrub(value), decoder.type, strict=False))


def _decode_leniently(text: str) -> JsonValue:
    for candidate in (text, repair(text)):
        try:
            return json.loads(candidate, strict=False)
        except (ValueError, RecursionError) as exc:
            error = exc
    raise RemoteProtocolError(f"the server sent an event with malformed JSON ({error})") from error


def repair(text: str) -> str:
    """Escape, inside string literals, control characters and backslashes that JSON forbids."""
    return _STRING.sub(lambda literal: _FAULT.sub(_repair_fault, literal[0]), text)


def _repair_fault(fault: re.Match[str]) -> str:
    found = fault[0]
    if found == "\\":
        return r"\\"
    if found[0] == "\\":
        return found
    return _SHORT_ESCAPES.get(found) or f"\\u{ord(found):04x}"


def finish_arguments(text: str) -> tuple[JsonObject, str | None]:
    r"""Read the finished argument text of a call, once.

    Malformed text is never repaired into arguments. Half a surrogate pair, as in ``"\ud83d"``, is well-formed JSON; it
    is taken out, because no request could carry it again.

    Returns:
        The arguments, and why the text was no JSON object (the arguments are then ``{}``).
    """
    arguments, error = parse_arguments(scrub_text(text))
    if error is not None and "\\ud" in text.lower():
        try:
            value = scrub(json.loads(text, parse_constant=_refuse_constant))
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return cast("JsonObject", value), None
    if error is None:
        return arguments, None
    received = text if len(text) <= _RECEIVED_LIMIT else f"{text[:_RECEIVED_LIMIT]}... ({len(text)} characters)"
    return {}, scrub_text(f"{error}\n\nReceived arguments:\n{received}")


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def encode(value: JsonValue) -> bytes:
    """Compact JSON; unpaired surrogates anywhere in it are left out."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(scrub(value))


def quote(value: JsonValue) -> str:
    """Compact JSON as text."""
    return encode(value).decode()


def scrub_text(text: str) -> str:
    """The text with its surrogate pairs joined and without unpaired surrogates; the same object if it has none."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


def as_object(value: JsonValue) -> JsonObject:
    """The value if it is an object, else an empty one."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def as_list(value: JsonValue) -> list[JsonValue]:
    """The value if it is an array, else an empty one."""
    return value if _is_list(value) else []


def _is_list(value: JsonValue) -> TypeGuard[list[JsonValue]]:
    return isinstance(value, list)


def as_text(value: JsonValue) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def scrub(value: JsonValue) -> JsonValue:
    """A copy of a JSON value in which every string, keys included, is scrubbed."""
    match value:
        case str():
            return scrub_text(value)
        case dict():
            return {scrub_text(key): scrub(member) for key, member in as_object(value).items()}
        case list():
            return [scrub(item) for item in as_list(value)]
        case _:
            return value
