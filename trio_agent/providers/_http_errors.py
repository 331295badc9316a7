"""From what HTTP clients raise and servers answer to the library's own errors.

Clients are told apart by nobody: their exceptions are looked up by the names of their classes, which ``httpx`` and its
successors share. No text holds an address, a header or a body that was sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import trio

from trio_agent._errors import (
    ContextOverflowError,
    ModelConnectionError,
    ModelError,
    ModelHTTPError,
    ModelTimeoutError,
    OverloadedError,
    RateLimitError,
)
from trio_agent._failures import describe
from trio_agent._models import Model
from trio_agent._retry import parse_retry_after
from trio_agent.wire import is_final_text, is_overflow_text, is_retryable_status, read_error

__all__ = ["connection_error", "request_id_of", "response_error"]

# The texts are those by which a failure is also known to have been a passing one when it is read in a transcript.
_TIMEOUTS: Final[Mapping[str, str]] = {
    "ConnectTimeout": "Request timed out: the server could not be reached in {connect:g} s",
    "ReadTimeout": "Request timed out: the server was silent for {idle:g} s",
    "TimeoutException": "Request timed out",
    "TooSlowError": "Request timed out",
    "TimeoutError": "Request timed out",
}
_BROKEN: Final = frozenset(
    {"TransportError", "DecodingError", "OSError", "BrokenResourceError", "ClosedResourceError", "EndOfStream"}
)
_MALFORMED: Final[Mapping[str, str]] = {
    "InvalidURL": "the base_url of the model is no address",
    "UnsupportedProtocol": "the base_url of the model must begin with http:// or https://",
    # What it says holds the header, and with that perhaps the key.
    "LocalProtocolError": "the request cannot be sent: one of its headers is not allowed in HTTP",
    "UnicodeEncodeError": "the request cannot be sent: one of its headers is not allowed in HTTP",
}
_CAUSES: Final = 5
_BUSY: Final = re.compile(r"overloaded|server_busy|at capacity|high demand", re.IGNORECASE)
_REQUEST_IDS: Final = ("request-id", "x-request-id")


def connection_error(exc: BaseException, *, connect: float, idle: float) -> ModelError | None:
    """The library's own error for what a client raised; ``None`` for what is no failure of HTTP.

    Args:
        exc: that was raised.
        connect: seconds that there were for the connection.
        idle: seconds of silence that were allowed.
    """
    for cls in type(exc).__mro__:
        name = cls.__name__
        if name in _TIMEOUTS:
            return ModelTimeoutError(_TIMEOUTS[name].format(connect=connect, idle=idle))
        if name in _MALFORMED:
            error = ModelError(_MALFORMED[name])
            error.retryable = False
            return error
        if name in _BROKEN:
            reason = _reason(exc)
            broken = ModelConnectionError(f"Connection error: {reason}")
            if "CERTIFICATE_VERIFY_FAILED" in reason:
                broken.retryable = False
            return broken
    return None


def _reason(exc: BaseException) -> str:
    # The innermost exception says most: "Connection refused", where the outer ones speak of attempts.
    for _ in range(_CAUSES):
        cause = exc.__cause__ or exc.__context__
        if cause is None or isinstance(cause, trio.Cancelled):
            break
        exc = cause
    return describe(exc)


def response_error(
    model: Model, status: int, headers: Mapping[str, str], body: bytes, *, secrets: Iterable[str], now: float
) -> ModelHTTPError:
    """The error that a response with an error status stands for.

    Args:
        model: that was asked.
        status: of the response.
        headers: of the response.
        body: as much of it as was read.
        secrets: that must not be in the text.
        now: seconds since the epoch.
    """
    report = read_error(status, body, secrets=secrets)
    retry_after = parse_retry_after(headers, now=now)
    if retry_after is None:
        retry_after = report.retry_after
    # A request that is too long stays so, whatever the status says.
    overflow = is_overflow_text(report.text, provider=model.provider)
    # Gemini speaks of an exceeded quota also where it says when to come back.
    final = retry_after is None and is_final_text(report.text)
    retryable = {"true": True, "false": False}.get(
        headers.get("x-should-retry", ""), is_retryable_status(status) and not final
    )
    kind = ModelHTTPError
    if overflow:
        kind = ContextOverflowError
    elif status == 429:
        kind = RateLimitError
    elif status in (503, 529) or (status >= 500 and _BUSY.search(report.text)):
        kind = OverloadedError
    return kind(
        report.text,
        status=status,
        provider=model.provider,
        retryable=retryable and not overflow,
        retry_after=retry_after,
        request_id=request_id_of(headers),
    )


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The id by which a provider finds a request in its logs, if it gives one."""
    return next((headers[name] for name in _REQUEST_IDS if name in headers), None)
