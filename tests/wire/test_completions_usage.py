from __future__ import annotations

from typing import Any

import pytest

from trio_agent._models import Model, ModelCost

from .streams import CHAT, delta, message_of, own_stream, sse


def test_usage_of_a_trailing_chunk_is_split_and_priced() -> None:
    model, body = own_stream("chat-text")
    priced = Model(
        id="m-1",
        api=model.api,
        provider="test",
        cost=ModelCost(input=1, output=10, cache_read=0.1, cache_write=0),
    )

    usage = message_of(priced, body).usage

    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (12, 7, 8, 0)
    assert (usage.total_tokens, usage.reasoning) == (27, 2)
    assert usage.cost.total == pytest.approx((12 * 1 + 7 * 10 + 8 * 0.1) / 1e6)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, (5, 2, 4, 0, None)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 3}, (6, 2, 3, 0, None)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 4},
            },
            (2, 2, 3, 4, None),
        ),
        (
            {"prompt_tokens": 1, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 5}},
            (0, 2, 5, 0, None),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "total_tokens": 51,
                "completion_tokens_details": {"reasoning_tokens": 40},
            },
            (9, 42, 0, 0, 40),
        ),
        ({"prompt_tokens": None, "completion_tokens": "2", "prompt_tokens_details": []}, (0, 0, 0, 0, None)),
        ({"prompt_tokens": 3.0, "completion_tokens": -1}, (3, 0, 0, 0, None)),
    ],
    ids=["deepseek", "kimi", "cache writes", "more cached than sent", "xai", "nonsense", "floats"],
)
def test_usage_of_each_server(usage: dict[str, Any], expected: tuple[int, int, int, int, int | None]) -> None:
    got = message_of(CHAT, sse(delta("stop", content="a"), {"choices": [], "usage": usage})).usage

    assert (got.input, got.output, got.cache_read, got.cache_write, got.reasoning) == expected
    assert got.total_tokens == sum(expected[:4])


def test_usage_that_comes_again_is_not_summed() -> None:
    chunks = [delta(content="a") | {"usage": {"prompt_tokens": 5, "completion_tokens": n}} for n in (1, 2, 3)]

    assert message_of(CHAT, sse(*chunks, delta("stop"))).usage.output == 3


def test_usage_in_the_choice_and_beside_it() -> None:
    in_choice = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 4}}]}
    beside = delta("stop") | {"x_groq": {"usage": {"prompt_tokens": 6}}}

    assert message_of(CHAT, sse(delta(content="a"), in_choice)).usage.input == 4
    assert message_of(CHAT, sse(delta(content="a"), beside)).usage.input == 6


@pytest.mark.parametrize(
    ("usage", "total"),
    [
        ({"cost": 0.5, "is_byok": False}, 0.5),
        ({"cost": 0.1, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.4}}, 0.5),
        (
            {
                "cost": 0.1,
                "is_byok": True,
                "cost_details": {
                    "upstream_inference_cost": None,
                    "upstream_inference_prompt_cost": 0.1,
                    "upstream_inference_completions_cost": 0.2,
                },
            },
            0.4,
        ),
        ({"cost": 0.1, "is_byok": True, "cost_details": {}}, None),
        ({"cost": 0.1}, None),
        ({"cost": -1, "is_byok": False}, None),
    ],
)
def test_openrouter_bill_stands_for_the_estimate(usage: dict[str, Any], total: float | None) -> None:
    model = Model(id="m", api=CHAT.api, provider="openrouter")
    usage |= {"prompt_tokens": 1, "completion_tokens": 1}

    cost = message_of(model, sse(delta("stop", content="a"), {"choices": [], "usage": usage})).usage.cost

    assert cost.total == pytest.approx(total or 0)
    assert cost.total_from_provider == (True if total else None)
