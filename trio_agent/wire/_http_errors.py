"""Readable texts of what servers say when they fail, in a body of status 400 and above or within a stream.

Every server has its own shape, and proxies wrap one in another. The text keeps the message and the words by which
:mod:`trio_agent.wire._verdicts` and people tell one failure from another: status, type and code. It never holds what
the user sent: servers that validate like to quote their input.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator
from typing import Final

from trio_agent._messages import JsonValue, Value
from trio_agent.wire._json import as_list, as_object, as_text, quote, scrub_text

__all__ = ["ErrorReport", "describe_error", "read_error", "readable_text"]

_TEXT_LIMIT: Final = 4000
_QUOTED_INPUT: Final = frozenset({"body", "ctx", "input", "instances", "messages", "prompt", "request"})
_MARKUP: Final = re.compile(r"<(script|style|head)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>", re.DOTALL | re.IGNORECASE)
_TRY_AGAIN: Final = re.compile(r"try again in (?:(\d+)m(?!s))?\s*(?:([\d.]+)\s*(ms|s))?", re.IGNORECASE)
_DURATION: Final = re.compile(r"([\d.]+)s\Z")


class ErrorReport(Value, frozen=True, kw_only=True, gc=False):
    """What a failed response says.

    Attributes:
        text: for people, beginning with the status.
        words: type, code and status words of the server, as they came.
        retry_after: seconds to wait, if the body names a time.
    """

    text: str
    words: tuple[str, ...] = ()
    retry_after: float | None = None


def read_error(status: int, body: bytes, *, secrets: Iterable[str] = ()) -> ErrorReport:
    """Read the body of a failed response, whatever it is: JSON of any shape, a page of HTML, text, nothing.

    Args:
        status: of the response.
        body: all of it, or as much as was read.
        secrets: what must not be in the text, such as the key, which some servers repeat.
    """
    for secret in secrets:
        body = body.replace(secret.encode(), b"***") if secret else body
    text = body.decode("utf-8", "replace").strip()
    if not text:
        return ErrorReport(text=f"{status} status code (no body)")
    try:
        value: JsonValue = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return ErrorReport(text=_with_status(status, readable_text(body)))
    retry_after = _retry_after(value)
    return ErrorReport(
        text=_with_status(status, describe_error(value, status=status)),
        words=tuple(_words(_innermost(value))),
        retry_after=retry_after,
    )


def describe_error(value: JsonValue, *, status: int | None = None) -> str:
    """The message in an error object and, in brackets, those of its words that the message does not have.

    Args:
        value: of any shape.
        status: of the response; it is not said again.
    """
    error = _innermost(value)
    try:
        message = _message(error)
        if message is None:
            return _cut(quote(_without_input(value)))
    except RecursionError:
        return "an error of too many levels"
    said = message.lower()
    words = [word for word in _words(error) if word.lower() not in said and word != str(status)]
    text = f"{message} ({', '.join(dict.fromkeys(words))})" if words else message
    upstream = _upstream(error)
    if upstream and upstream not in text:
        text = f"{text}: {upstream}"
    return _cut(scrub_text(text))


def _innermost(value: JsonValue) -> JsonValue:
    # `{"error": {...}}`, Google's `[{"error": ...}]`, Cloudflare's `{"errors": [...]}`; the rest is flat.
    for _ in range(8):
        members = as_object(value)
        inner: JsonValue = members.get("error") or members.get("errors") or members.get("detail")
        items = as_list(value)
        if items:
            value = items[0]
        elif as_object(inner) or (as_list(inner) and "detail" not in members):
            value = inner
        else:
            break
    return value


def _message(error: JsonValue) -> str | None:
    if isinstance(error, str):
        return error.strip() or None
    members = as_object(error)
    for name in ("message", "error", "detail", "error_description", "msg", "title"):
        text = as_text(members.get(name)).strip()
        if text:
            return text
        findings = as_list(members.get(name))
        if findings:
            return "; ".join(_located(finding) for finding in findings)
    return None


def _located(finding: JsonValue) -> str:
    # A finding of FastAPI's validation: where and what. Its `input` is what the user sent.
    members = as_object(finding)
    place = ".".join(str(part) for part in as_list(members.get("loc")))
    text = as_text(members.get("msg")) or as_text(members.get("message")) or quote(_without_input(finding))
    return f"{place}: {text}" if place else text


def _words(error: JsonValue) -> Iterator[str]:
    members = as_object(error)
    for name in ("type", "code", "status"):
        word = members.get(name)
        if isinstance(word, str) and word not in ("", "error"):
            yield word
        elif type(word) is int:
            yield str(word)


def _upstream(error: JsonValue) -> str:
    # OpenRouter passes on what the provider behind it said.
    return as_text(as_object(as_object(error).get("metadata")).get("raw")).strip()[:1000]


def _retry_after(value: JsonValue) -> float | None:
    error = _innermost(value)
    for detail in as_list(as_object(error).get("details")):
        match = _DURATION.match(as_text(as_object(detail).get("retryDelay")))
        if match:
            return _seconds(match[1])
    match = _TRY_AGAIN.search(_message(error) or "")
    if match is None or not (match[1] or match[2]):
        return None
    rest = _seconds(match[2] or "0")
    return None if rest is None else 60 * int(match[1] or 0) + rest / (1000 if match[3] == "ms" else 1)


def _seconds(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _without_input(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        members = as_object(value)
        return {name: _without_input(member) for name, member in members.items() if name not in _QUOTED_INPUT}
    return [_without_input(item) for item in as_list(value)] if isinstance(value, list) else value


def readable_text(body: bytes) -> str:
    """The text of a body that is no JSON; of HTML, what a reader would see."""
    text = body.decode("utf-8", "replace")
    if "<" in text:
        text = html.unescape(_MARKUP.sub(" ", text[: 16 * _TEXT_LIMIT])) or text
    return _cut(scrub_text(" ".join(text.split())))


def _with_status(status: int, text: str) -> str:
    return text if text.startswith(str(status)) else f"{status}: {text}"


def _cut(text: str) -> str:
    if len(text) <= _TEXT_LIMIT:
        return text
    return f"{text[:_TEXT_LIMIT]}... [truncated {len(text) - _TEXT_LIMIT} chars]"
