"""What an error text means: is the context too long, is it worth another try.

A fallback for texts of unknown origin, such as those in stored transcripts or within a stream. Where a status or a
typed error is at hand, it decides first. Overflow is tested before retryability: the same request would fail again.
"""

from __future__ import annotations

import re
from typing import Final

from trio_agent._messages import AssistantMessage

__all__ = [
    "is_context_overflow",
    "is_final_text",
    "is_overflow_text",
    "is_retryable_status",
    "is_retryable_text",
]


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_NO_OVERFLOW: Final = _any_of(
    r"^(?:Throttling error|ThrottlingException|Service unavailable):", r"rate limit", r"too many requests"
)
_OVERFLOW: Final = _any_of(
    r"prompt (?:is )?too long",
    r"prompt exceeds max length",
    r"request_too_large",
    r"input is too long for requested model",
    r"exceeds the context window",
    r"exceeds (?:the )?(?:model'?s )?maximum context length(?: of [\d,]+ tokens?|\s*\([\d,]+\))",
    r"context window exceeded",
    r"input token count.*exceeds the maximum",
    r"maximum prompt length is \d+",
    r"reduce the length of the messages",
    r"maximum context length is \d+ tokens",
    r"exceeds (?:the )?maximum allowed input length of [\d,]+ tokens?",
    r"input \(\d+ tokens\) is longer than the model'?s context length \(\d+ tokens\)",
    r"exceeds the limit of \d+\b(?! images?\b)",
    r"exceeds the available context size",
    r"exceed_context_size_error",
    r"greater than the context length",
    r"context window exceeds limit",
    r"exceeded model token limit",
    r"too large for model with \d+ maximum context length",
    r"prompt has [\d,]+ tokens?, but the configured context size is [\d,]+ tokens?",
    r"model_context_window_exceeded",
    r"prompt too long; exceeded (?:max )?context length",
    r"range of input length should be",
    r"context[_ ]length[_ ]exceeded",
    r"too many tokens",
    r"token limit exceeded",
    r"^(?:[\w -]+ API error \(413\):|413(?:\s|:|$))",
)
_CEREBRAS_OVERFLOW: Final = re.compile(r"^4(?:00|13)\s*(?:status code)?\s*\(no body\)", re.IGNORECASE)

_FINAL: Final = _any_of(
    r"GoUsageLimitError",
    r"FreeUsageLimitError",
    r"Monthly usage limit reached",
    r"available balance",
    r"insufficient_quota",
    r"out of budget",
    r"quota exceeded",
    r"billing",
    r"subscription_sharing_usage_limit_exceeded",
    r"subscription_sharing_workplace_individual_usage_limit_exceeded",
    r'"code"\s*:\s*"?1308(?![0-9])',
)
_TRANSIENT: Final = _any_of(
    # said by servers and the proxies before them
    r"overloaded",
    r"server_busy",
    r"servers are currently busy",
    r"currently experiencing high demand",
    r"model is at capacity",
    r"insufficient_system_resource",
    r"rate.?limit",
    r"too many requests",
    r"(?<![a-z0-9])(?:408|429|500|502|503|504|520|522|523|524|529)(?![a-z0-9])",
    r"service.?(?:is.?)?(?:temporarily.?)?unavailable",
    r"server.?error",
    r"internal.?error",
    r"provider.?returned.?(?:an.?)?error",
    r"exceeded request buffer limit while retrying upstream",
    r"unable to forward upstream",
    r"upstream.?request.?failed",
    r"upstream.?connect",
    r"upstream_stream_read_error",
    r"reset before headers",
    r"ResourceExhausted",
    r"retry delay",
    r"you can retry your request",
    r"try your request again",
    r"please retry your request",
    r"subscription_sharing_(?:usage|user)_unavailable",
    # connections, as JavaScript names their failures
    r"network.?error",
    r"connection.?(?:error|refused|lost|closed)",
    r"other side closed",
    r"fetch failed",
    r"request to \S+ failed, reason:",
    r"getaddrinfo",
    r"\b(?:ECONNRESET|ECONNABORTED|ECONNREFUSED|ETIMEDOUT|EPIPE)\b",
    r"ENOTFOUND",
    r"EAI_AGAIN",
    r"connection reset by peer",
    r"socket hang up",
    r"socket connection was closed",
    r"timed? out",
    r"timeout",
    r"terminated",
    r"websocket.?(?:closed|error)",
    r"websocket.?connection.?limit.?reached",
    r"http/?2 stream failed",
    r"http2 request did not get a response",
    # and as Python does
    r"peer closed connection",
    r"server disconnected",
    r"connection attempts failed",
    r"name or service not known",
    r"nodename nor servname",
    r"name resolution",
    r"\b(?:ConnectError|ReadError|WriteError|RemoteProtocolError|BrokenResourceError|IncompleteRead)\b",
    r"broken pipe",
    r"network is unreachable",
    r"no route to host",
    # streams cut short
    r"ended without",
    r"stream was interrupted",
    r"stream ended before message_stop",
    r"stream ended before a terminal response event",
    r"stream disconnected before completion",
    r"cut short after the reply had begun",
    r"pending stream has been canceled",
)


def is_overflow_text(text: str, *, provider: str = "") -> bool:
    """Whether an error text says that the prompt does not fit into the model's context window."""
    if _NO_OVERFLOW.search(text):
        return False
    return bool(_OVERFLOW.search(text) or (provider == "cerebras" and _CEREBRAS_OVERFLOW.search(text)))


def is_context_overflow(message: AssistantMessage, *, context_window: int = 0) -> bool:
    """Whether an answer failed because its prompt did not fit, also where the server does not say so.

    Some servers cut a long prompt in silence: the prompt is then longer than the window, or the answer is empty
    because the prompt left no room for it.

    Args:
        message: the answer.
        context_window: of the model, in tokens; 0 when unknown.
    """
    if message.stop_reason == "error":
        return is_overflow_text(message.error_message or "", provider=message.provider)
    if context_window <= 0:
        return False
    prompt = message.usage.input + message.usage.cache_read
    if message.stop_reason == "stop":
        return prompt > context_window
    return message.stop_reason == "length" and message.usage.output == 0 and prompt >= 0.99 * context_window


def is_final_text(text: str) -> bool:
    """Whether an error text tells of a limit that waiting does not lift, such as an empty account."""
    return bool(_FINAL.search(text))


def is_retryable_text(text: str, *, provider: str = "") -> bool:
    """Whether an error text tells of a failure that may have passed when the same request is sent again."""
    if not text or is_overflow_text(text, provider=provider) or is_final_text(text):
        return False
    return bool(_TRANSIENT.search(text))


def is_retryable_status(status: int) -> bool:
    """Whether a status alone speaks for another try."""
    return status in (408, 409, 429) or status >= 500
