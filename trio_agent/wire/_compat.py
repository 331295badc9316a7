"""Departures of servers from the API they imitate, as data.

One frozen record a provider; encoders ask the record, never who the server is. A model's own ``compat`` (pi's camelCase
JSON) overrides it field by field, so a server that is not in the tables, or has changed, needs no new release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeVar
from urllib.parse import urlsplit

import msgspec

from trio_agent._messages import Value
from trio_agent._models import Model
from trio_agent.wire._ids import CallIdRule

__all__ = ["AnthropicCompat", "CompletionsCompat", "anthropic_compat", "completions_compat", "provider_of"]

_C = TypeVar("_C", bound=Value)


class CompletionsCompat(Value, frozen=True, kw_only=True, gc=False):
    """How a Chat Completions server wants to be spoken to.

    Attributes:
        supports_store: takes ``store``.
        supports_developer_role: takes the role ``developer``; chat templates refuse it.
        supports_reasoning_effort: takes ``reasoning_effort``.
        supports_usage_in_streaming: takes ``stream_options``.
        supports_finish_reason: says why an answer ended; else the end of the stream is the end.
        max_tokens_field: name of the limit.
        requires_tool_result_name: results need the tool's name.
        requires_assistant_after_tool_result: its template wants an assistant message between a result and the user.
        requires_non_null_assistant_content: refuses ``content: null``.
        requires_tools_with_tool_history: refuses calls in the history of a request without tools.
        requires_thinking_as_text: takes reasoning only as text.
        requires_reasoning_content_on_assistant_messages: refuses assistant messages without ``reasoning_content``.
        thinking_format: how thinking is asked for; nothing is sent for an unknown word.
        thinking_token_budget_field: name of a bound on reasoning tokens.
        supports_strict_mode: takes ``strict`` in function declarations.
        cache_control_format: marks what to cache as Anthropic does.
        send_session_affinity_headers: routes by headers to where the prompt is cached.
        session_affinity_format: names of those headers.
        prompt_cache_key_mode: whether to send ``prompt_cache_key``; ``auto`` sends it to OpenAI and for long retention.
        supports_long_cache_retention: takes ``prompt_cache_retention``.
        zai_tool_stream: has to be asked for streamed arguments.
        vllm_priority: of the request in vLLM's queue.
        call_ids: what it demands of tool-call ids.
        api_key_header: where the key goes, ``authorization`` (as a bearer) or a header of its own.
    """

    supports_store: bool = True
    supports_developer_role: bool = False
    supports_reasoning_effort: bool = True
    supports_usage_in_streaming: bool = True
    supports_finish_reason: bool = True
    max_tokens_field: str = "max_completion_tokens"
    requires_tool_result_name: bool = False
    requires_assistant_after_tool_result: bool = False
    requires_non_null_assistant_content: bool = False
    requires_tools_with_tool_history: bool = False
    requires_thinking_as_text: bool = False
    requires_reasoning_content_on_assistant_messages: bool = False
    thinking_format: str = "openai"
    thinking_token_budget_field: str | None = None
    supports_strict_mode: bool = False
    cache_control_format: Literal["anthropic"] | None = None
    send_session_affinity_headers: bool = False
    session_affinity_format: Literal["openai", "openai-nosession", "openrouter"] = "openai"
    prompt_cache_key_mode: Literal["auto", "enabled", "disabled"] = "auto"
    supports_long_cache_retention: bool = True
    zai_tool_stream: bool = False
    vllm_priority: int | None = None
    call_ids: CallIdRule = CallIdRule(pair_length=40)
    api_key_header: str = "authorization"


class AnthropicCompat(Value, frozen=True, kw_only=True, gc=False):
    """How a Messages server wants to be spoken to.

    Attributes:
        supports_eager_tool_input_streaming: takes ``eager_input_streaming`` of tools; ``False`` asks for the same by
            the older beta header, ``None`` does neither.
        supports_long_cache_retention: takes a ``ttl``.
        supports_cache_control_on_tools: takes cache marks on tools.
        supports_strict_tools: takes ``strict`` in tools.
        supports_temperature: takes ``temperature``.
        force_adaptive_thinking: thinks by effort, not by a budget of tokens.
        allow_empty_signature: takes reasoning back without a signature.
        send_session_affinity_headers: routes by headers to where the prompt is cached.
        session_affinity_format: names of those headers.
        api_key_header: where the key goes, ``x-api-key`` or ``authorization`` (as a bearer).
    """

    supports_eager_tool_input_streaming: bool | None = None
    supports_long_cache_retention: bool = True
    supports_cache_control_on_tools: bool = True
    supports_strict_tools: bool = False
    supports_temperature: bool = True
    force_adaptive_thinking: bool = False
    allow_empty_signature: bool = False
    send_session_affinity_headers: bool = False
    session_affinity_format: Literal["openai", "openai-nosession", "openrouter"] = "openai"
    api_key_header: str = "x-api-key"


_PLAIN: Final = CompletionsCompat(supports_store=False)
_OLDER: Final = CompletionsCompat(supports_store=False, max_tokens_field="max_tokens")
_NO_EFFORT: Final = msgspec.structs.replace(_OLDER, supports_reasoning_effort=False)
_NO_EFFORT_SHORT: Final = msgspec.structs.replace(_NO_EFFORT, supports_long_cache_retention=False)

_COMPLETIONS: Final[Mapping[str, CompletionsCompat]] = {
    "openai": CompletionsCompat(supports_developer_role=True, call_ids=CallIdRule(max_length=40, pair_length=40)),
    "azure": CompletionsCompat(supports_store=False, api_key_header="api-key"),
    "ant-ling": _NO_EFFORT_SHORT,
    "baseten": msgspec.structs.replace(_OLDER, send_session_affinity_headers=True, supports_long_cache_retention=False),
    "cerebras": _PLAIN,
    "chutes": _OLDER,
    "cloudflare": _NO_EFFORT_SHORT,
    "deepseek": msgspec.structs.replace(
        _OLDER, thinking_format="deepseek", requires_reasoning_content_on_assistant_messages=True
    ),
    "fireworks": CompletionsCompat(
        supports_store=False, send_session_affinity_headers=True, supports_long_cache_retention=False
    ),
    # The servers that people run themselves take either limit, or only the older one.
    "llama.cpp": _OLDER,
    "lmstudio": _OLDER,
    "mistral": msgspec.structs.replace(
        _NO_EFFORT_SHORT,
        requires_tool_result_name=True,
        requires_thinking_as_text=True,
        prompt_cache_key_mode="disabled",
        call_ids=CallIdRule(exact_length=9),
    ),
    "moonshotai": msgspec.structs.replace(_NO_EFFORT, thinking_format="deepseek"),
    "nvidia": _NO_EFFORT_SHORT,
    "ollama": _OLDER,
    "opencode": _PLAIN,
    "openrouter": CompletionsCompat(
        thinking_format="openrouter", send_session_affinity_headers=True, session_affinity_format="openrouter"
    ),
    "together": msgspec.structs.replace(_NO_EFFORT_SHORT, thinking_format="together"),
    "vllm": _OLDER,
    "xai": CompletionsCompat(supports_store=False, supports_reasoning_effort=False),
    "zai": msgspec.structs.replace(_NO_EFFORT, thinking_format="zai"),
}

_ANTHROPIC: Final[Mapping[str, AnthropicCompat]] = {
    "anthropic": AnthropicCompat(supports_eager_tool_input_streaming=True),
    "fireworks": AnthropicCompat(supports_cache_control_on_tools=False, allow_empty_signature=True),
    "opencode": AnthropicCompat(allow_empty_signature=True),
    "openrouter": AnthropicCompat(
        send_session_affinity_headers=True, session_affinity_format="openrouter", api_key_header="authorization"
    ),
    "vercel": AnthropicCompat(allow_empty_signature=True),
}

_HOSTS: Final[tuple[tuple[str, str], ...]] = (
    ("api.openai.com", "openai"),
    ("openai.azure.com", "azure"),
    ("api.anthropic.com", "anthropic"),
    ("baseten.co", "baseten"),
    ("cerebras.ai", "cerebras"),
    ("chutes.ai", "chutes"),
    ("cloudflare.com", "cloudflare"),
    ("deepseek.com", "deepseek"),
    ("fireworks.ai", "fireworks"),
    ("groq.com", "groq"),
    ("mistral.ai", "mistral"),
    ("moonshot.ai", "moonshotai"),
    ("moonshot.cn", "moonshotai"),
    ("nvidia.com", "nvidia"),
    ("opencode.ai", "opencode"),
    ("openrouter.ai", "openrouter"),
    ("together.ai", "together"),
    ("together.xyz", "together"),
    ("vercel.sh", "vercel"),
    ("x.ai", "xai"),
    ("z.ai", "zai"),
    ("bigmodel.cn", "zai"),
)

_CLAUDE_VERSION: Final = re.compile(r"claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_FIRST_ADAPTIVE: Final[tuple[int, int]] = (4, 6)
_FIRST_WITHOUT_TEMPERATURE: Final[tuple[int, int]] = (4, 7)
_FIELD_NAMES: Final[Mapping[type, tuple[tuple[str, str], ...]]] = {
    kind: tuple(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    for kind in (CompletionsCompat, AnthropicCompat)
}


def provider_of(model: Model) -> str:
    """The provider whose record counts: the one of the base URL, for users name their own as they like."""
    host = urlsplit(model.base_url).hostname or ""
    for suffix, provider in _HOSTS:
        if host == suffix or host.endswith(f".{suffix}"):
            return provider
    return model.provider


def completions_compat(model: Model) -> CompletionsCompat:
    """The record of a model that speaks Chat Completions.

    Raises:
        ValueError: the model's own ``compat`` has a value of the wrong type.
    """
    provider = provider_of(model)
    record = _COMPLETIONS.get(provider, CompletionsCompat())
    if provider == "openrouter" and model.id.startswith("anthropic/"):
        record = msgspec.structs.replace(record, cache_control_format="anthropic")
    return _overridden(record, model)


def anthropic_compat(model: Model) -> AnthropicCompat:
    """The record of a model that speaks Anthropic's Messages; of Claude models the version counts, too.

    Raises:
        ValueError: the model's own ``compat`` has a value of the wrong type.
    """
    record = _ANTHROPIC.get(provider_of(model), AnthropicCompat())
    version = _claude_version(model.id)
    if version >= _FIRST_ADAPTIVE:
        record = msgspec.structs.replace(
            record, force_adaptive_thinking=True, supports_temperature=version < _FIRST_WITHOUT_TEMPERATURE
        )
    return _overridden(record, model)


def _claude_version(model_id: str) -> tuple[int, int]:
    match = _CLAUDE_VERSION.search(model_id)
    return (int(match[1]), int(match[2] or 0)) if match else (0, 0)


def _overridden(record: _C, model: Model) -> _C:
    if not model.compat:
        return record
    # Not `to_builtins`: it leaves out what equals a default, which a model may be setting back.
    fields = {name: getattr(record, attribute) for attribute, name in _FIELD_NAMES[type(record)]}
    try:
        return msgspec.convert({**fields, **model.compat}, type(record))
    except (msgspec.ValidationError, TypeError) as exc:
        raise ValueError(f"compat of model {model.id!r}: {exc}") from exc
