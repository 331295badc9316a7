from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_agent import Cost, CostTier, Model, ModelCost, PromptCache, StreamOptions, Usage

MODEL: dict[str, Any] = {
    "id": "claude-x",
    "name": "Claude X",
    "api": "anthropic-messages",
    "provider": "anthropic",
    "baseUrl": "https://api.anthropic.com",
    "reasoning": False,
    "input": ["text"],
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    "contextWindow": 0,
    "maxTokens": 0,
}
FULL_MODEL: dict[str, Any] = {
    **MODEL,
    "type": "chat",
    "reasoning": True,
    "thinkingLevelMap": {"off": None, "high": "max"},
    "input": ["text", "image"],
    "inputLimits": {"maxRequestBytes": 1000, "images": {"maxPerMessage": 20}},
    "cost": {
        "input": 3,
        "output": 15,
        "cacheRead": 0.3,
        "cacheWrite": 3.75,
        "tiers": [{"inputTokensAbove": 200_000, "input": 6, "output": 22.5, "cacheRead": 0.6, "cacheWrite": 7.5}],
    },
    "promptCache": {"short": 300, "long": 3600},
    "contextWindow": 200_000,
    "maxTokens": 64_000,
    "headers": {"X-Team": "a"},
    "samplingParams": {"top_p": 0.9},
    "samplingParamsByThinkingLevel": {"high": {"top_p": 1}},
    "compat": {"supportsStore": False},
}


@pytest.mark.parametrize("sample", [MODEL, FULL_MODEL])
def test_models_keep_their_json(sample: dict[str, Any]) -> None:
    model = msgspec.json.decode(msgspec.json.encode(sample), type=Model)

    assert msgspec.json.decode(msgspec.json.encode(model)) == sample


def test_the_sample_has_every_field() -> None:
    assert set(FULL_MODEL) == set(Model.__struct_encode_fields__)


def test_a_model_needs_three_names_only() -> None:
    model = Model(id="m", api="openai-completions", provider="local")

    assert model.cost == ModelCost(input=0, output=0, cache_read=0, cache_write=0)
    assert (model.input, model.reasoning, model.context_window, model.max_tokens) == (("text",), False, 0, 0)
    assert model.price(usage(1000, 1000)).cost.total == 0


def test_prompt_cache_times_may_be_unknown() -> None:
    assert msgspec.json.encode(PromptCache(long=3600)) == b'{"long":3600}'


# Prices


def usage(
    tokens_in: int, tokens_out: int = 0, *, read: int = 0, write: int = 0, write_1h: int | None = None, cost: float = 0
) -> Usage:
    return Usage(
        input=tokens_in,
        output=tokens_out,
        cache_read=read,
        cache_write=write,
        total_tokens=tokens_in + tokens_out + read + write,
        cost=Cost(input=cost, output=cost, cache_read=cost, cache_write=cost, total=cost, total_from_provider=True),
        cache_write_1h=write_1h,
        reasoning=1,
    )


def tier(above: int, price: float) -> CostTier:
    return CostTier(input_tokens_above=above, input=price, output=price, cache_read=price, cache_write=price)


def priced(usage: Usage, *tiers: CostTier) -> Cost:
    cost = ModelCost(input=3, output=15, cache_read=0.3, cache_write=3.75, tiers=tiers or None)
    return Model(id="m", api="a", provider="p", cost=cost).price(usage).cost


def test_prices_are_per_million_tokens() -> None:
    assert priced(usage(1_000_000, 100_000, read=10_000_000, write=400_000)) == Cost(
        input=3, output=1.5, cache_read=3, cache_write=1.5, total=9
    )


def test_pricing_changes_nothing_but_the_cost() -> None:
    before = usage(10, 5, read=1, write=2, write_1h=1, cost=99)

    after = Model(id="m", api="a", provider="p").price(before)

    assert msgspec.structs.replace(after, cost=before.cost) == before
    assert after.cost == Cost(input=0, output=0, cache_read=0, cache_write=0, total=0)


def test_tokens_cached_for_an_hour_cost_twice_the_input_price() -> None:
    cost = priced(usage(0, write=1_000_000, write_1h=400_000))

    assert cost.cache_write == pytest.approx(0.6 * 3.75 + 0.4 * 2 * 3)
    assert cost.total == cost.cache_write


@pytest.mark.parametrize(
    ("prompt", "price"),
    [
        (usage(100), 3),
        (usage(101), 10),
        (usage(99, read=1), 3),
        (usage(99, read=2), 10),
        (usage(99, write=2), 10),
        (usage(0, 500), 3),
        (usage(200), 10),
        (usage(201), 20),
    ],
)
def test_the_highest_tier_below_the_prompt_prices_the_whole_request(prompt: Usage, price: float) -> None:
    for tiers in ([tier(100, 10), tier(200, 20)], [tier(200, 20), tier(100, 10)]):
        assert priced(prompt, *tiers).input == pytest.approx(prompt.input * price / 1e6)


def test_a_tier_prices_the_hour_cache_too() -> None:
    cost = priced(usage(1000, write=1_000_000, write_1h=1_000_000), tier(100, 10))

    assert cost.cache_write == pytest.approx(20)


tokens = st.integers(0, 10**7)
prices = st.floats(0, 1000, allow_subnormal=False)


@given(tokens, tokens, tokens, tokens, prices, prices)
def test_the_total_is_the_sum_of_the_parts(a: int, b: int, c: int, d: int, low: float, high: float) -> None:
    cost = priced(usage(a, b, read=c, write=d, write_1h=d // 2), tier(1000, low), tier(100_000, high))

    assert cost.total == pytest.approx(cost.input + cost.output + cost.cache_read + cost.cache_write)
    assert cost.total_from_provider is None


# Secrets


def test_a_model_shows_no_secret() -> None:
    model = Model(id="m", api="a", provider="p", headers={"Authorization": "Bearer sk-secret"})

    for shown in (repr(model), str(model), f"{model}", repr([model]), repr(model.__rich_repr__())):
        assert "sk-secret" not in shown
        assert "'m'" in shown


def test_options_show_no_secret() -> None:
    options = StreamOptions(
        api_key="sk-secret",
        headers={"X-Key": "sk-secret"},
        metadata={"user_id": "sk-secret"},
        temperature=0,
        session_id="s",
    )

    for shown in (repr(options), str(options), f"{options}", repr([options]), repr(options.__rich_repr__())):
        assert "sk-secret" not in shown
        assert "temperature" in shown
        assert "api_key" in shown


def test_options_show_only_what_was_given() -> None:
    assert repr(StreamOptions()) == "StreamOptions()"
    assert repr(StreamOptions(max_tokens=0)) == "StreamOptions(max_tokens=0)"
    assert repr(StreamOptions(api_key="")) == "StreamOptions(api_key='***')"


def test_options_compare_by_their_secrets_all_the_same() -> None:
    assert StreamOptions(api_key="a") != StreamOptions(api_key="b")
