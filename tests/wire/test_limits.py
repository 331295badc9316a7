"""Thinking levels, room for the answer, and the records of servers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from trio_agent._messages import Message, Usage
from trio_agent._models import Model, StreamOptions, ThinkingLevel
from trio_agent.wire._budget import clamp_to_context, estimate_tokens
from trio_agent.wire._compat import anthropic_compat, completions_compat, provider_of
from trio_agent.wire._thinking import clamp_level, level_of, supported_levels, thinking_budget, word_for

from .transcripts import PNG, answer, call, result, system, thought, tool, user

THINKER = Model(id="m", api="openai-completions", provider="p", reasoning=True)


def with_words(**words: str | None) -> Model:
    return msgspec.structs.replace(THINKER, thinking_level_map=words)


def test_levels_of_a_model() -> None:
    assert supported_levels(msgspec.structs.replace(THINKER, reasoning=False)) == ("off",)
    assert supported_levels(THINKER) == ("off", "minimal", "low", "medium", "high")
    assert supported_levels(with_words(off=None, minimal=None, max="max")) == ("low", "medium", "high", "max")


@pytest.mark.parametrize(
    ("asked", "got"),
    [("off", "low"), ("low", "low"), ("medium", "high"), ("high", "high"), ("xhigh", "max"), ("max", "max")],
)
def test_missing_level_becomes_the_next_higher(asked: ThinkingLevel, got: str) -> None:
    words = with_words(off=None, minimal=None, medium=None, xhigh=None, max="max")

    assert clamp_level(words, asked) == got


def test_level_above_all_becomes_the_highest() -> None:
    assert clamp_level(THINKER, "max") == "high"
    assert clamp_level(with_words(off=None, minimal=None, low=None, medium=None, high=None), "low") == "low"


def test_level_of_a_request() -> None:
    assert level_of(THINKER, StreamOptions()) == "off"
    assert level_of(THINKER, StreamOptions(reasoning="max")) == "high"
    assert level_of(msgspec.structs.replace(THINKER, reasoning=False), StreamOptions(reasoning="high")) == "off"
    assert word_for(with_words(high="default"), "high") == "default"
    assert word_for(THINKER, "high") == "high"


def test_budgets_by_level() -> None:
    options = StreamOptions(thinking_budgets={"low": 7})

    assert [thinking_budget(level, options) for level in ("off", "minimal", "low", "high", "max")] == [
        0,
        1024,
        7,
        16384,
        16384,
    ]


def test_estimate_is_by_length_where_nothing_was_counted() -> None:
    messages: list[Message] = [
        system("x" * 7),
        user("x" * 35),
        answer(THINKER, "x" * 7, thought("x" * 7), call("1", "read")),
    ]

    assert estimate_tokens(messages) == 2 + 10 + 6
    assert estimate_tokens([user("", PNG)]) == 1372
    assert estimate_tokens([]) == 0
    assert estimate_tokens([system("", tool("read"))]) > 20


def test_estimate_starts_from_the_last_counted_answer() -> None:
    counted = msgspec.structs.replace(
        answer(THINKER, "x" * 999), usage=msgspec.structs.replace(Usage.zero(), input=90, output=10, total_tokens=0)
    )

    assert estimate_tokens([user("x" * 9999), counted, result("1", "x" * 35)]) == 110
    failed = msgspec.structs.replace(counted, stop_reason="error")
    assert estimate_tokens([user("x" * 35), failed]) == 10 + 286
    older: list[Message] = [msgspec.structs.replace(user("x" * 35), timestamp=9), counted]
    assert estimate_tokens(older) == 10 + 286


def test_room_in_the_window() -> None:
    model = msgspec.structs.replace(THINKER, context_window=100_000)

    assert clamp_to_context(THINKER, [user("x")], 5) == 5
    assert clamp_to_context(THINKER, [user("x")], 0) == 1
    assert clamp_to_context(model, [user("x" * 35)], 200_000) == 100_000 - 10 - 4096
    assert clamp_to_context(model, [user("x" * 210_000)], 200_000) == 32768
    assert clamp_to_context(model, [user("x" * 340_000)], 200_000) == 1


@pytest.mark.parametrize(
    ("provider", "base_url", "expected"),
    [
        ("mine", "https://api.deepseek.com", "deepseek"),
        ("mine", "https://eu.api.openai.com/v1", "openai"),
        ("mine", "https://x.openai.azure.com/openai/v1", "azure"),
        ("openai", "http://127.0.0.1:8080/v1", "openai"),
        ("mine", "https://max.ai/v1", "mine"),
        ("groq", "", "groq"),
    ],
)
def test_record_goes_by_the_host_before_the_name(provider: str, base_url: str, expected: str) -> None:
    assert provider_of(Model(id="m", api="a", provider=provider, base_url=base_url)) == expected


def test_models_own_compat_overrides_single_fields() -> None:
    model = Model(
        id="m", api="a", provider="deepseek", compat={"supportsStore": True, "maxTokensField": "x", "unknown": 1}
    )

    compat = completions_compat(model)

    assert (compat.supports_store, compat.max_tokens_field, compat.thinking_format) == (True, "x", "deepseek")


@pytest.mark.parametrize(
    ("model_id", "adaptive", "temperature"),
    [
        ("claude-3-5-sonnet-20241022", False, True),
        ("claude-opus-4-20250514", False, True),
        ("claude-haiku-4-5-20251001", False, True),
        ("claude-sonnet-4-6", True, True),
        ("anthropic/claude-opus-4.7", True, False),
        ("claude-opus-5-5", True, False),
        ("some-model-9", False, True),
    ],
)
def test_claude_thinks_by_effort_from_a_version_on(model_id: str, adaptive: bool, temperature: bool) -> None:
    compat = anthropic_compat(Model(id=model_id, api="a", provider="anthropic"))

    assert (compat.force_adaptive_thinking, compat.supports_temperature) == (adaptive, temperature)


def test_record_of_a_router_to_anthropic_marks_the_cache() -> None:
    def format_of(model_id: str) -> Any:
        return completions_compat(Model(id=model_id, api="a", provider="openrouter")).cache_control_format

    assert (format_of("anthropic/claude-x"), format_of("openai/gpt-x")) == ("anthropic", None)
