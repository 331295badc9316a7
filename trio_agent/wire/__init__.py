"""Sans-IO wire formats: transcripts to requests, bytes of answers to stream events.

Nothing in here awaits or knows HTTP. A driver sends what :attr:`WireFormat.encode` made, gives the body of the answer
to a decoder piece by piece, and hands on its events::

    wire = WIRE_FORMATS[model.api]
    request = wire.encode(model, messages, options)
    decoder = wire.decoder(model, timestamp=now, aliases=request.aliases)

New formats are a module each, and an entry here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from trio_agent._messages import Message
from trio_agent._models import Model, StreamOptions
from trio_agent.wire._anthropic import AnthropicDecoder
from trio_agent.wire._anthropic_request import encode_anthropic
from trio_agent.wire._decoder import Decoder
from trio_agent.wire._http_errors import ErrorReport, describe_error, read_error
from trio_agent.wire._openai_completions import CompletionsDecoder
from trio_agent.wire._openai_completions_request import encode_completions
from trio_agent.wire._request import WireRequest, merge_headers
from trio_agent.wire._verdicts import (
    is_context_overflow,
    is_final_text,
    is_overflow_text,
    is_retryable_status,
    is_retryable_text,
)

__all__ = [
    "WIRE_FORMATS",
    "Decoder",
    "ErrorReport",
    "WireFormat",
    "WireRequest",
    "describe_error",
    "is_context_overflow",
    "is_final_text",
    "is_overflow_text",
    "is_retryable_status",
    "is_retryable_text",
    "merge_headers",
    "read_error",
]


@dataclass(frozen=True, slots=True)
class WireFormat:
    """One wire format.

    Attributes:
        encode: makes the request for a transcript.
        decoder: the class that reads the answer.
    """

    encode: Callable[[Model, Sequence[Message], StreamOptions], WireRequest]
    decoder: type[Decoder]


WIRE_FORMATS: Final[Mapping[str, WireFormat]] = MappingProxyType(
    {
        "anthropic-messages": WireFormat(encode_anthropic, AnthropicDecoder),
        "openai-completions": WireFormat(encode_completions, CompletionsDecoder),
    }
)
"""The formats, by the name that models give in ``api``."""
