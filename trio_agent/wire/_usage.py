"""Token counts of Chat Completions servers, which agree on two fields and differ in all others.

A count that is missing, null or nonsense is 0: no answer is lost for its bill.
"""

from __future__ import annotations

from typing import Final

from trio_agent._messages import JsonObject, JsonValue, Usage
from trio_agent.wire._json import as_object

__all__ = ["chat_usage", "count", "make_usage", "openrouter_cost"]

_MOST: Final = 1 << 53


def count(value: JsonValue) -> int:
    """A number of tokens."""
    if type(value) not in (int, float) or not 0 <= value <= _MOST:
        return 0
    return int(value)


def make_usage(
    *,
    fresh: int,
    output: int,
    cache_read: int,
    cache_write: int,
    cache_write_1h: int | None,
    reasoning: int | None,
) -> Usage:
    """A usage without a price, whose total is the sum of its four parts; ``fresh`` tokens met no cache."""
    return Usage(
        input=fresh,
        output=output,
        cache_read=cache_read,
        cache_write=cache_write,
        total_tokens=fresh + output + cache_read + cache_write,
        cost=Usage.zero().cost,
        cache_write_1h=cache_write_1h,
        reasoning=reasoning,
    )


def chat_usage(usage: JsonObject) -> Usage:
    """Read the ``usage`` of a Chat Completions answer."""
    prompt = count(usage.get("prompt_tokens"))
    details = as_object(usage.get("prompt_tokens_details"))
    cached = _first(details.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), usage.get("cached_tokens"))
    cache_read = count(cached)
    cache_write = count(details.get("cache_write_tokens"))
    output = count(usage.get("completion_tokens"))
    spent = as_object(usage.get("completion_tokens_details"))
    reasoning = _first(spent.get("reasoning_tokens"), usage.get("reasoning_tokens"))
    thought = count(reasoning)
    # xAI counts reasoning beside the completion, all others within it; its total tells.
    if thought and count(usage.get("total_tokens")) == prompt + output + thought:
        output += thought
    return make_usage(
        fresh=max(0, prompt - cache_read - cache_write),
        output=output,
        cache_read=cache_read,
        cache_write=cache_write,
        cache_write_1h=None,
        reasoning=None if reasoning is None else thought,
    )


def openrouter_cost(usage: JsonObject) -> float | None:
    """What OpenRouter billed in USD, upstream bills on the user's own key included; ``None`` when it does not say."""
    cost = _price(usage.get("cost"))
    byok = usage.get("is_byok")
    if cost is None or byok is False:
        return cost
    if byok is not True:
        return None
    details = as_object(usage.get("cost_details"))
    if "upstream_inference_cost" not in details:
        return None
    upstream = _price(details["upstream_inference_cost"])
    if upstream is not None:
        return cost + upstream
    parts = (
        _price(details.get("upstream_inference_prompt_cost")),
        _price(details.get("upstream_inference_completions_cost")),
    )
    return cost + sum(part for part in parts if part is not None) if None not in parts else None


def _price(value: JsonValue) -> float | None:
    usable = type(value) in (int, float) and 0 <= value <= _MOST
    return float(value) if usable else None


def _first(*values: JsonValue) -> JsonValue:
    return next((value for value in values if value is not None), None)
